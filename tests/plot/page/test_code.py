"""Coloured text: what it keeps, what it cuts, and that it is only text."""

from __future__ import annotations

import html
import re

import pytest
from pygments.token import Error, Keyword, Name, Number

from avial_lab.artifact.stages import Stage
from avial_lab.plot import highlighted, stage_html, stage_text
from avial_lab.plot.page.lexers import MLIRLexer, PTXLexer

MLIR = """\
%task1 = avial.task %cpu, %a, %b {  // a comment
  %x = memref.load %a[%i] : memref<20x?xi32>
  "avial.task"(%x) ({ ^bb0: }) : (f32, !avial.task_ref) -> ()
} after %task0
"""

PTX = """\
.visible .entry k(.param .u64 k_0) {
  mov.u32 %r1, %tid.x;
$L__BB0_1:
  @%p1 bra $L__BB0_1;
}
"""


def kinds(lexer: type, text: str) -> dict[str, object]:
    return {value: kind for kind, value in lexer().get_tokens(text)}


def test_mlir_tokens() -> None:
    found = kinds(MLIRLexer, MLIR)
    assert found["avial.task"] is Name.Function
    assert found['"avial.task"'] is Name.Function
    assert found["%task1"] is Name.Variable
    assert found["memref"] is Keyword.Type
    assert found["20x?x"] is Number.Integer
    assert found["i32"] is Keyword.Type
    assert found["!avial.task_ref"] is Keyword.Type
    assert found["after"] is Keyword


def test_ptx_tokens() -> None:
    found = kinds(PTXLexer, PTX)
    assert found[".u64"] is Keyword.Type
    assert found["%tid.x"] is Name.Variable
    assert found["$L__BB0_1"] is Name.Label
    assert found["mov"] is Name.Function


@pytest.mark.parametrize(("lexer", "text"), [(MLIRLexer, MLIR), (PTXLexer, PTX)])
def test_lexers_lose_nothing(lexer: type, text: str) -> None:
    tokens = list(lexer().get_tokens(text))
    assert "".join(value for _, value in tokens) == text
    assert not any(kind is Error for kind, _ in tokens)


@pytest.mark.parametrize("language", ["mlir", "llvm", "ptx", "asm", "something else"])
def test_highlighted_text_is_the_text(language: str) -> None:
    text = 'a <b> & "c" \x1b[31m %x = i32\n  indented'
    shown = html.unescape(re.sub(r"<[^>]*>", "", highlighted(text, language)))
    assert shown.strip("\n") == text.replace("\x1b", "\ufffd")
    assert "class=" not in highlighted(text, language)
    assert "<code" not in highlighted(text, language)  # a page's own style would reach into it


def test_long_stages_are_cut_openly() -> None:
    stage = Stage("llvm", "LLVM's dialect", "mlir", "\n".join(f"line {k}" for k in range(5000)))
    for shown in (stage_html(stage), stage_text(stage)):
        assert "4,600 of 5,000 lines left out" in re.sub(r"<[^>]*>", "", shown)
        assert "line 4999" in re.sub(r"<[^>]*>", "", shown)
    wide = Stage("mpi", "one line", "mlir", "x" * 10_000)
    assert "9,600 more characters" in re.sub(r"<[^>]*>", "", stage_html(wide))


def test_the_command_is_shown_and_escaped() -> None:
    stage = Stage("mpi", "<mpi>", "mlir", "", command="mlir-opt --pass='a<b>'")
    assert "mlir-opt --pass=&#x27;a&lt;b&gt;&#x27;" in stage_html(stage)
    assert "made by mlir-opt --pass='a<b>'" in stage_text(stage)
