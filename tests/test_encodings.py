"""Text is UTF-8 whatever the locale is: where it is written to a file or given to a program in
ISO-8859-1, an ellipsis in a C source or an arrow in a remark cannot be.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "avial_lab"
MODES = frozenset("rwax+t")
SPOKEN_OF = re.compile(r"(read_text|write_text|open)\(|subprocess\.")


def has_no_encoding(call: ast.Call) -> bool:
    """Whether the call reads, writes or hands on text as the locale has it.

    >>> [has_no_encoding(ast.parse(text).body[0].value) for text in (
    ...     "path.read_text()", "path.read_text('utf-8')", "path.write_text(t, encoding='utf-8')",
    ...     "path.open('w')", "path.open('wb')", "open(path)", "subprocess.run(line, text=True)")]
    [True, False, False, True, False, True, True]
    """
    named = {each.arg for each in call.keywords}
    if "encoding" in named:
        return False
    match call.func:
        case ast.Attribute(ast.Name("subprocess")):
            return "text" in named
        case ast.Attribute(attr="read_text"):
            return not call.args
        case ast.Attribute(attr="write_text"):
            return len(call.args) == 1
        case ast.Attribute(attr="open") | ast.Attribute(attr="fdopen") | ast.Name("open"):
            modes = [a.value for a in call.args if isinstance(a, ast.Constant)]
            if not modes:
                return isinstance(call.func, ast.Name)
            return isinstance(modes[0], str) and set(modes[0]) <= MODES
        case _:
            return False


def test_whoever_reads_or_writes_text_says_utf_8() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)[:60]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if SPOKEN_OF.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and has_no_encoding(node)
    ]
    assert not found
