"""What the errors of a newcomer's first cells say, and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inline_snapshot import snapshot
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.compiler.frontends.notation.hints import WHAT_A_CELL_TAKES, language_hint
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import AvialError


def error_of(text: str) -> tuple[str, str, str]:
    """Message, hint, and the text under the caret."""
    with pytest.raises(AvialError) as caught:
        parse_cell(text, cell="t", context=ir.Context())
    error = caught.value
    assert error.span is not None
    line = text.splitlines()[error.span.line - 1]
    return error.message, error.hint or "", line[error.span.column - 1 :]


def in_a_loop(statement: str) -> tuple[str, str, str]:
    return error_of(f"""avial.schedule %a: memref<16xi32>, %b: memref<16xf64> {{
      %cpu = avial.target {{arch = "cpu"}}
      %t = avial.task %cpu, %a, %b {{
        scf.for %i = 0 to 16 {{
          %x = memref.load %a[%i]
          %y = memref.load %b[%i]
          {statement}
          memref.store %y, %b[%i]
        }}
      }}
    }}""")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("arith.adi %x, %x", "arith.addi"),
        ("arith.addd %x, %x", "arith.addi"),
        ("arith.addd %y, %y", "arith.addf"),
        ("arith.add %y, %y", "arith.addf"),
        ("arith.mult %x, %x", "arith.muli"),
        ("arith.mod %x, %x", "arith.remsi"),
        ("arith.max %y, %y", "arith.maximumf"),
        ("memref.read %a[%i]", "memref.load"),
        ("memref.laod %a[%i]", "memref.load"),
        ("math.sqr %y", "math.sqrt"),
    ],
)
def test_the_operation_that_was_meant(written: str, meant: str) -> None:
    message, hint, place = in_a_loop(f"%z = {written}")
    assert message == f"unknown operation '{written.split()[0]}'"
    assert hint == f"did you mean {meant}?"
    assert place == written


def test_a_number_among_the_operands() -> None:
    assert in_a_loop("%z = arith.addi %x, 1") == snapshot(
        (
            "arith.addi takes values, and 1 is a number",
            "give the number a name first: %c1 = arith.constant 1 : i32",
            "1",
        )
    )
    assert in_a_loop("%z = arith.mulf -2, %y") == snapshot(
        (
            "arith.mulf takes values, and -2 is a number",
            "give the number a name first: %cm2 = arith.constant -2.0 : f64",
            "-2, %y",
        )
    )
    assert in_a_loop("%z = arith.cmpi slt, %x, 10") == snapshot(
        (
            "arith.cmpi takes values, and 10 is a number",
            "give the number a name first: %c10 = arith.constant 10 : i32",
            "10",
        )
    )
    assert in_a_loop("%z = math.sqrt 2.0") == snapshot(
        (
            "math.sqrt takes values, and 2.0 is a number",
            "give the number a name first: %c2 = arith.constant 2.0 : f32",
            "2.0",
        )
    )


def test_integers_and_floats() -> None:
    assert in_a_loop("%z = arith.addf %x, %x") == snapshot(
        (
            "arith.addf takes floats, and %x is i32",
            "arith.addi takes integers; arith.sitofp %x : i32 to f32 makes a float of it",
            "%x, %x",
        )
    )
    assert in_a_loop("%z = arith.addi %y, %y") == snapshot(
        (
            "arith.addi takes integers, and %y is f64",
            "arith.addf takes floats; arith.fptosi %y : f64 to i32 makes an integer of it",
            "%y, %y",
        )
    )
    assert in_a_loop("%z = arith.muli %x, %i") == snapshot(
        (
            "the operands of arith.muli have two types: %x is i32, %i is index",
            "convert one: %c = arith.index_cast %x : i32 to index",
            "%i",
        )
    )
    assert in_a_loop("%z = arith.mulf %y, %i") == snapshot(
        (
            "arith.mulf takes floats, and %i is index",
            "arith.muli takes an index; "
            "arith.index_cast %i : index to i64, then arith.sitofp, makes a float of it",
            "%i",
        )
    )
    assert in_a_loop("%z = arith.cmpi slt, %x, %i") == snapshot(
        (
            "the operands of arith.cmpi have two types: %x is i32, %i is index",
            "convert one: %c = arith.index_cast %x : i32 to index",
            "%i",
        )
    )


def test_a_comment_of_pythons() -> None:
    assert in_a_loop("# twice") == snapshot(
        ("'#' is not a statement", "a comment begins with //", "# twice")
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("c[i] = a[i] + b[i]", "Python"),
        ("import numpy as np", "Python"),
        ("def f(a):\n  return a", "Python"),
        ("for i in range(10):\n  c[i] = a[i]", "Python"),
        ("print(a)", "Python"),
        ("np.add(a, b)", "Python"),
        ("#include <stdio.h>", "C"),
        ("for (int i = 0; i < n; i++) c[i] = a[i];", "C"),
        ("double a[10];", "C"),
        ("int main() { return 0; }", "C"),
        ("void f(float *a) {}", "C"),
    ],
)
def test_other_languages(text: str, language: str) -> None:
    _, hint, _ = error_of(text)
    assert hint.startswith(f"this looks like {language}; ")
    assert hint.endswith(WHAT_A_CELL_TAKES)
    assert ("def" in hint) if language == "Python" else ("--lang=c" in hint)


def test_a_sum_of_arrays_is_answered_with_its_program() -> None:
    """What a newcomer writes first; what is answered can be run as it stands."""
    _, hint, marked = error_of("c = a + b")
    assert marked == "c = a + b"
    assert hint.startswith("this looks like Python; a cell takes a Python function, too")
    text = hint[hint.index("def f(") : hint.index("in MLIR")]
    a, b, c = np.arange(8), np.arange(8), np.zeros(8, int)
    function: dict[str, Any] = {}
    exec(text, function)
    function["f"](a, b, c)
    assert c.tolist() == (a + b).tolist()
    program = hint[hint.index("func.func") : hint.index("where a, b, c are NumPy arrays")]
    arrays = bind_arrays({name: np.arange(8, dtype=np.int32) for name in "abc"})
    module = parse_cell(program, cell="t", context=ir.Context(), binding=arrays)
    assert "arith.addi" in str(module)
    assert "arith.mulf" in error_of("x = x * y")[1]
    assert "func.func @f(%x, %y) {" in error_of("x = x * y")[1]


def test_a_value_in_other_letters_is_offered_and_else_those_there_are() -> None:
    assert in_a_loop("%z = arith.addi %X, %x")[1] == "did you mean %x?"
    assert in_a_loop("%z = arith.addi %other, %x")[1].startswith("the values here are %y, %x, %i, ")


def test_the_brace_that_is_not_closed_is_the_one_of_the_indentation() -> None:
    text = "func.func @f(%a: memref<8xi32>) {\n  affine.for %i = 0 to 8 {\n\n  return\n}\n"
    with pytest.raises(AvialError) as caught:
        parse_cell(text, cell="t", context=ir.Context())
    assert caught.value.span is not None
    assert (caught.value.message, caught.value.span.line) == ("'{' is never closed", 2)


def test_a_value_without_its_sign() -> None:
    assert in_a_loop("z = arith.addi %x, %x")[1] == "a value is written with a %: %z = …"


@pytest.mark.parametrize("text", ["%x = arith.constant 1 : i32", "return", "func.func @f() {", ""])
def test_mlir_is_no_other_language(text: str) -> None:
    assert language_hint(text, 0) is None


def test_any_other_word() -> None:
    assert error_of("hello") == ("unknown operation 'hello'", WHAT_A_CELL_TAKES, "hello")
