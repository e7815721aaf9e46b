"""Texts that ended the compiler's process, kept it busy for ever or filled the page: each has the
right values now, or an error of a few lines with its place and a way out.
"""

from __future__ import annotations

import numpy as np
import pytest
from inline_snapshot import snapshot

import avial_lab
from avial_lab.core.errors import MOST, AvialError, CellSpan, InternalError, ParseError, VerifyError


def function(body: str, before: str = "", after: str = "") -> str:
    return f"{before}func.func @f(%A: memref<8xf64>) {{\n{body}\n  return\n}}\n{after}"


def in_loop(body: str) -> str:
    return function(f"affine.for %i = 0 to 8 {{\n{body}\n}}")


def told(text: str, kind: type[AvialError] = VerifyError) -> str:
    """What compiling `text` says, which has a place and is short."""
    with pytest.raises(kind) as caught:
        avial_lab.compile(text, arrays={"A": np.arange(8.0)}, cell="In [4]")
    said = str(caught.value)
    assert not isinstance(caught.value, InternalError)
    assert len(said) <= MOST
    assert "In [4]:" in said
    return said


# -- divisors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "wrong"),
    [
        ("%i mod 0", "mod 0"),
        ("%i mod -3", "mod -3"),
        ("%i floordiv 0", "floordiv 0"),
        ("%i ceildiv -2", "ceildiv -2"),
        ("%i floordiv (1 - 1)", "floordiv 0"),
    ],
)
@pytest.mark.parametrize("access", ["%x = affine.load %A[{}]", "affine.store %c, %A[{}]"])
def test_an_affine_divisor_is_positive(index: str, wrong: str, access: str) -> None:
    body = f"%c = arith.constant 1.0 : f64\n{access.format(index)} : memref<8xf64>"
    said = told(in_loop(body))
    assert said.startswith(f"{wrong}: the right side of {wrong.split()[0]} is a positive number\n")
    assert "In [4]:4:" in said


@pytest.mark.parametrize(
    "before",
    [
        "%n = arith.constant 0 : index",
        "%k = arith.constant 5 : index\n%n = arith.subi %k, %k : index",
    ],
)
def test_a_symbol_that_is_no_divisor(before: str) -> None:
    apply = "%q = affine.apply affine_map<(d)[s] -> (d mod s)>(%i)[%n]"
    body = (
        f"{apply}\n%x = memref.load %A[%q] : memref<8xf64>\nmemref.store %x, %A[%i] : memref<8xf64>"
    )
    assert "mod 0: the right side" in told(
        function(f"{before}\naffine.for %i = 0 to 8 {{\n{body}\n}}")
    )


def test_positive_divisors_are_left_alone() -> None:
    body = (
        "%x = affine.load %A[%i mod 3] : memref<8xf64>\n"
        "affine.store %x, %A[(%i ceildiv 2) floordiv 1] : memref<8xf64>"
    )
    avial_lab.compile(in_loop(body), arrays={"A": np.arange(8.0)})


# -- transposes of nothing, of which MLIR has no permutation ---------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "%a = memref.alloc() : memref<i64>\n"
        "linalg.transpose ins(%a : memref<i64>) outs(%a : memref<i64>) permutation = []",
        "%v = arith.constant dense<1> : vector<i64>\n"
        "%t = vector.transpose %v, [] : vector<i64> to vector<i64>",
    ],
)
def test_a_transpose_has_dimensions(body: str) -> None:
    assert told(function(body)).startswith("a transpose without dimensions")
    commented = "\n".join(f"// {line}" for line in body.splitlines())
    avial_lab.compile(function(commented), arrays={"A": np.arange(8.0)})


# -- cases that are marks of MLIR's hash table -----------------------------------------------------


def switch(case: str) -> str:
    return function(
        "%x = arith.constant 3 : index\n"
        f"scf.index_switch %x\ncase {case} {{\n scf.yield\n}}\ndefault {{\n}}"
    )


@pytest.mark.parametrize("case", [str(2**63 - 1), str(2**63 - 2), "0x7fffffffffffffff"])
def test_the_greatest_cases_are_told(case: str) -> None:
    said = told(switch(case))
    assert said.startswith(f"case {case}: the greatest of scf.index_switch is {2**63 - 3}\n")


@pytest.mark.parametrize("case", [2**63 - 3, -(2**63)])
def test_other_cases_are_not(case: int) -> None:
    avial_lab.compile(switch(str(case)), arrays={"A": np.arange(8.0)})


# -- constants, arrays, resources ------------------------------------------------------------------


def test_a_constant_that_no_machine_has() -> None:
    assert told(function("%x = arith.constant dense<0.0> : tensor<1000000000000xf64>")) == snapshot(
        """\
a constant of 7.28 TiB, more than the 1 GiB that may become part of the program's code
In [4]:2:21
%x = arith.constant dense<0.0> : tensor<1000000000000xf64>
                    ^
Hint: hand it over as an array, or write it by a loop (linalg.fill)\
"""
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%x = arith.constant dense<2.0> : tensor<4000000xf64>", "a constant of 30.5 MiB"),
        ("%x = memref.alloc() : memref<9223372036854775807x9xi8>", "more than any machine has"),
        ("%x = tensor.empty() : tensor<1000000x1000000x1000000xf64>", "more than any machine has"),
        ("%x = arith.constant dense<2.0> : vector<4097xf64>", "a vector of 4,097 elements"),
        ("%x = arith.constant 2 : i16777215", "an integer of 16777215 bits"),
    ],
)
def test_sizes_that_no_machine_has(text: str, words: str) -> None:
    assert words in told(function(text))


def test_sizes_in_comments_and_strings_are_no_sizes() -> None:
    body = '// tensor<1000000000000xf64>\n%t = arith.constant {a = "vector<99999xf64>"} 1.0 : f64'
    body += "\naffine.store %t, %A[0] : memref<8xf64>"
    avial_lab.compile(function(body), arrays={"A": np.zeros(8)})


TABLE = """
  %c = arith.constant dense_resource<x> : tensor<2xf64>
  affine.for %i = 0 to 2 {
    %x = tensor.extract %c[%i] : tensor<2xf64>
    affine.store %x, %A[%i] : memref<8xf64>
  }"""
BLOB = '{{-# dialect_resources: {{ builtin: {{ x: "0x08000000{}" }} }} #-}}'
ONE_AND_TWO = "000000000000F03F0000000000000040"


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (BLOB.format(ONE_AND_TWO[:16]), "the resource 'x' has 8 bytes of values, and its type ta"),
        (BLOB.format(""), "has 0 bytes of values"),
        (BLOB.format(ONE_AND_TWO + "00"), "has 17 bytes of values"),
        ("", "the text has no resource 'x'"),
    ],
)
def test_a_resource_of_another_size(after: str, words: str) -> None:
    assert words in told(function(TABLE, after=after))


@pytest.mark.mpi
def test_a_resource_that_is_right() -> None:
    a = np.zeros(8)
    text = function(TABLE, after=BLOB.format(ONE_AND_TWO))
    avial_lab.compile(text, arrays={"A": a}).run(check=True)
    assert a[:3].tolist() == [1.0, 2.0, 0.0]


# -- nesting, lengths ------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [500, 100_000])
def test_nesting_without_end(depth: int) -> None:
    body = "%t = arith.constant true\n" + "scf.if %t {\n" * depth + "}\n" * depth
    assert told(function(body), ParseError).startswith("brackets nest deeper than 100\n")


@pytest.mark.mpi
def test_fifty_loops_inside_of_each_other_run_as_one_task() -> None:
    a = np.arange(8.0)
    loops = "".join(f"affine.for %i{k} = 0 to 1 {{\n" for k in range(50))
    copy = (
        "%x = affine.load %A[%i49] : memref<8xf64>\naffine.store %x, %A[%i49 + 1] : memref<8xf64>"
    )
    program = avial_lab.compile(function(f"{loops}{copy}{'}' * 50}"), arrays={"A": a}, ranks=2)
    assert "loops nest deeper than the 16 that are analysed" in str(program.explain())
    program.run(check=True)
    assert a[:3].tolist() == [0.0, 0.0, 2.0]


def doubling(count: int) -> str:
    """Functions that each call the next one twice; the last adds 1 to the first element."""
    functions = "".join(
        f"func.func private @g{k}(%A: memref<8xf64>) {{\n"
        f"call @g{k + 1}(%A) : (memref<8xf64>) -> ()\ncall @g{k + 1}(%A) : (memref<8xf64>) -> ()\n"
        "return\n}\n"
        for k in range(count)
    )
    add = (
        "%c = arith.constant 1.0 : f64\n%x = affine.load %A[0] : memref<8xf64>\n"
        "%y = arith.addf %x, %c : f64\naffine.store %y, %A[0] : memref<8xf64>"
    )
    last = f"func.func private @g{count}(%A: memref<8xf64>) {{\n{add}\nreturn\n}}\n"
    return function("call @g0(%A) : (memref<8xf64>) -> ()", functions + last)


@pytest.mark.quick("20")
@pytest.mark.mpi
@pytest.mark.parametrize("count", [4, 20])
def test_calls_that_double(count: int) -> None:
    a = np.zeros(8)
    program = avial_lab.compile(doubling(count), arrays={"A": a}, ranks=2)
    assert ("more than the 20,000 that are analysed" in str(program.explain())) == (count == 20)
    program.run(check=True)
    assert a[0] == 2**count


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"%{'n' * 10**6} = arith.constant 1.0 : f64", "a name or number of more than 1,000 char"),
        (f"%x = arith.constant {'7' * 10**6} : i32", "a name or number of more than 1,000 char"),
        (
            "%k = arith.constant 1 : index\n%x = affine.apply affine_map<(d) -> "
            f"({'-' * 10**6}d)>(%k)",
            "more than 100 signs",
        ),
        (
            "%k = arith.constant 1 : index\n%x = affine.apply affine_map<(d) -> "
            f"({' + '.join(f'd mod {k + 2}' for k in range(9000))})>(%k)",
            "more than 1,000 divisions",
        ),
    ],
)
def test_lengths_that_nobody_writes(text: str, words: str) -> None:
    assert words in told(function(text), ParseError)


def test_comments_and_strings_may_be_long() -> None:
    body = (
        f"// {'x' * 10**6}\naffine.for %i = 0 to 8 {{\n  %x = affine.load %A[%i] : memref<8xf64>\n"
    )
    body += f'  affine.store %x, %A[%i] {{note = "{"y" * 10**6}"}} : memref<8xf64>\n}}'
    avial_lab.compile(function(body), arrays={"A": np.zeros(8)})


# -- numbers at the ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loop",
    [
        "affine.for %i = -9223372036854775808 to 20",
        "affine.for %i = 0 to 9223372036854775807",
        "scf.for %i = %least to %c20 step %c1",
        "scf.parallel (%i) = (%least) to (%c20) step (%c1)",
    ],
)
def test_a_loop_that_never_ends(loop: str) -> None:
    constants = (
        "%least = arith.constant -9223372036854775808 : index\n%c20 = arith.constant 20 : index\n"
        "%c1 = arith.constant 1 : index\n%v = arith.constant 1.0 : f64"
    )
    body = f"{constants}\n{loop} {{\nmemref.store %v, %A[%c1] : memref<8xf64>\n}}"
    assert "times, and never ends\nIn [4]:6:1" in told(function(body))


# -- the bound itself ------------------------------------------------------------------------------


def test_an_error_is_never_longer_than_a_page() -> None:
    line = "x" * 3000 + "ERR" + "y" * 10**6
    error = AvialError(
        "m" * 10**6 + "end",
        span=CellSpan("c" * 10**6, line, 1, 3001),
        hint="h" * 10**6,
    )
    for each in (error, InternalError(*error.args, span=error.span, hint=error.hint)):
        said = str(each)
        assert len(said) <= MOST
        assert "end\nccc" in said
        text, caret = said.splitlines()[2:4]
        assert text[caret.index("^") :].startswith("ERR")
    assert error.message.endswith("end")
    assert len(error.message) == 10**6 + 3


@pytest.mark.parametrize("column", [1, 2, 159, 160, 161, 200, 298, 299, 300, 301])
def test_the_caret_of_a_long_line(column: int) -> None:
    line = "".join(chr(0x4E00 + k) for k in range(300))
    _, text, caret = CellSpan("c", line, 1, column).excerpt().splitlines()
    assert len(text) <= 162
    at = caret.index("^")
    assert text[at : at + 1] == line[column - 1 : column] or at == len(text)
