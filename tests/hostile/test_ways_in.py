"""Ways in beside a program's text: Python functions, C files, task graphs, options of runs. What is
hostile there is an AvialError of a few lines, too.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.cli.main import main
from avial_lab.compiler.frontends.c.functions import c_function
from avial_lab.compiler.frontends.python import liveness
from avial_lab.core.errors import MOST, AvialError, BindError, InternalError, OptionError
from avial_lab.machine.simgrid_platform import read_platform

DEEP = 1_000


def told(call: Callable[[], object]) -> str:
    with pytest.raises(AvialError) as caught:
        call()
    assert not isinstance(caught.value, InternalError)
    assert len(str(caught.value)) <= MOST
    return str(caught.value)


# -- Python functions ------------------------------------------------------------------------------


def function_of(body: str) -> Callable[..., Any]:
    """`def f(a)` of these lines, as if it stood in a file."""
    text = f"def f(a):\n{body}\n"
    file = f"/hostile/{hash(text)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def translated(body: str) -> str:
    return avial_lab.program(function_of(body)).translated(np.zeros(3))


@pytest.mark.parametrize(
    "body",
    [
        "    if a[0] == 0.0:\n        a[0] = 1.0\n"
        + "\n".join(f"    elif a[0] == {k}.0:\n        a[0] = 1.0" for k in range(1, DEEP)),
        "    a[0] = " + "a[1] + " * DEEP + "1.0",
        "    a[0] = " + "-" * DEEP + "a[1]",
    ],
    ids=["elif", "sum", "minus"],
)
def test_a_function_that_is_nested_too_deeply(body: str) -> None:
    try:
        function_of(body)
    except RecursionError:
        pytest.skip("this Python cannot compile it either")
    assert "f is nested too deeply to be read" in told(lambda: translated(body))


@pytest.mark.parametrize("power", ["3 ** 10**18", "2 ** 64", "1 << 10**18", "-1 << 64"])
def test_a_constant_that_would_take_all_memory(power: str) -> None:
    """It is not computed."""
    words = told(lambda: translated(f"    k = 10\n    a[0] = {power}"))
    assert "does not fit into 64 bits" in words
    assert "64 bits" in told(lambda: translated(f"    for i in range({power}):\n        a[0] = i"))


@pytest.mark.parametrize("power", ["(-2) ** 63", "1 ** 10**18", "0 << 10**18", "-1 << 63"])
def test_a_constant_that_fits(power: str) -> None:
    assert translated(f"    if {power} > 5:\n        a[0] = 1.0")


def test_many_statements_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is live behind each was found anew for each: 12 s of 300 of them."""
    seen: list[ast.stmt] = []
    before = liveness._before

    def counted(statement: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        seen.append(statement)
        return before(statement, after)

    monkeypatch.setattr(liveness, "_before", counted)
    translated("\n".join(f"    a[{k % 3}] = {k}.0" for k in range(40)))
    assert len(seen) <= 3 * 40


def test_live_behind_each_is_what_the_rest_looks_at() -> None:
    body = ast.parse("x = a\nfor i in y:\n    z = x + w\nif z:\n    q = v\nu = q").body
    after = frozenset({"u"})
    found = liveness.live_after_each(body, after)
    assert found == [liveness.live_before(body[k + 1 :], after) for k in range(len(body))]


@pytest.mark.parametrize(
    "options",
    [
        {"ranks": "two"},
        {"ranks": 2.5},
        {"without": [1]},
        {"name": "f"},
        {"cell": None},
        {"arrays": {}},
        {"nosuch": 1},
    ],
    ids=str,
)
def test_a_wrong_option_of_a_function(options: dict[str, Any]) -> None:
    def doubled(a: np.ndarray) -> None:
        a[0] = 2.0

    told(lambda: avial_lab.program(doubled, **options))


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": "soon"},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": 10**400},
        {"threads": "x"},
        {"threads": 2.5},
        {"cluster": 2},
        {"cluster": "two"},
    ],
    ids=str,
)
def test_a_wrong_option_of_a_run(wrong: dict[str, Any]) -> None:
    program = avial_lab.compile(
        "func.func @f(%a: memref<3xf64>) {\n  return\n}", arrays={"a": np.zeros(3)}, ranks=1
    )
    with pytest.raises(OptionError):
        program.run(**wrong)


# -- C files ---------------------------------------------------------------------------------------

C = "void f(int n, double x[n]) { %s }"


@pytest.mark.parametrize(
    "body",
    [
        "{" * DEEP + "}" * DEEP,
        "x[0] = " + "1 + " * DEEP + "1;",
        "x[0] = " + "(" * DEEP + "1" + ")" * DEEP + ";",
        "if (n) " * DEEP + ";",
        "int q" + "[1]" * DEEP + ";",
    ],
    ids=["braces", "sum", "parentheses", "if", "extents"],
)
def test_c_that_is_nested_too_deeply(body: str) -> None:
    assert "nested too deeply" in told(lambda: c_function(C % body, "k.c"))


def test_an_integer_of_c_of_thousands_of_digits() -> None:
    words = told(lambda: c_function(C % f"int q = {'9' * 5000};", "k.c"))
    assert "an integer of 5,000 digits" in words
    assert "k.c:1:" in words


@pytest.mark.parametrize("n", [None, "3", b"3", [3], {}, 1j, float("nan"), np.zeros(1), object()])
def test_what_is_no_number_of_c(n: object) -> None:
    found = c_function(C % "x[0] = n;", "k.c")
    with pytest.raises(BindError, match="'n' is a number in C"):
        found.taken({"n": n, "x": np.zeros(3)})


@pytest.mark.parametrize(
    "wrong",
    [{"include": 3}, {"include": "here"}, {"include": ["\0"]}, {"define": ["N"]},
     {"define": {"N": "\0"}}],
    ids=str,
)  # fmt: skip
def test_wrong_headers_and_macros(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "k.c"
    path.write_text("#include <math.h>\n" + C % "x[0] = n;")
    with pytest.raises(OptionError):
        avial_lab.from_c(path, **wrong)


# -- models in ONNX --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimensions": [3]},
        {"dimensions": {"batch": "x"}},
        {"dimensions": {"batch": 2.5}},
        {"values": {"input": "y"}},
        {"shapes": {"input": 3}},
        {"shapes": {"input": (3, "x")}},
        {"shapes": [1]},
    ],
    ids=str,
)
def test_wrong_sizes_of_a_model(wrong: dict[str, Any], tmp_path: Path) -> None:
    models = pytest.importorskip("tests.compiler.frontends.onnx.models")
    path = tmp_path / "m.onnx"
    path.write_bytes(models.mlp("batch").SerializeToString())
    with pytest.raises(OptionError):
        avial_lab.load_onnx(path, **wrong)


# -- names of files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read", [avial_lab.load_graph, avial_lab.load_onnx, avial_lab.from_c, read_platform]
)
def test_a_nul_in_the_name_of_a_file(read: Callable[[Path], object]) -> None:
    assert "cannot be a file's name" in told(lambda: read(Path("a\0b.json")))


@pytest.mark.parametrize(
    "words",
    [["plan", "x" * 30_000], ["plan", "k", "--size", "x" * 30_000], ["export", ""],
     ["graph", "x" * 30_000], ["run", "x" * 30_000], ["export", "x" * 30_000 + ".ipynb"]],
    ids=lambda words: f"{words[0]} {len(words[-1])}",
)  # fmt: skip
def test_words_of_a_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):  # argparse's
        assert main(words) == 1
    said = capsys.readouterr().err.partition(f"avial-lab {words[0]}: error: ")
    assert 0 < len(said[2] or said[0]) <= MOST


# -- task graphs and machines ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.json", '{"workflow": ' + "9" * 5000 + "}"),
        ("g.json", "9" * 5000),
        ("g.json", '{"traceEvents": [{"ph": "X", "ts": 1' + "0" * 400 + "}]}"),
        ("g.json", '{"workflow": {"tasks": [{"name": "a", "files": [{"link": "input", '
                   '"name": "f", "size": Infinity}]}]}}'),
        ("g.stg", "9" * 5000),
        ("g.stg", "²\n"),
        ("g.stg", "1\n" + f"0 {'9' * 5000} 0\n" * 3),
    ],
)  # fmt: skip
def test_numbers_of_a_task_graph(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert name in told(lambda: avial_lab.load_graph(path))


@pytest.mark.parametrize("core", ["²", "9" * 5000])
def test_numbers_of_a_platform(core: str, tmp_path: Path) -> None:
    path = tmp_path / "p.xml"
    path.write_text(
        '<platform version="4.1"><zone id="z" routing="Full">'
        f'<host id="h" speed="1Gf" core="{core}"/></zone></platform>',
        encoding="utf-8",
    )
    assert "is a whole number" in told(lambda: read_platform(path))
