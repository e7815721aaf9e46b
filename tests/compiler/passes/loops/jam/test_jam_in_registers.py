"""Short rows in registers hold the same bits, however many there are and however long they are."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.facts.mark_parallel import MarkParallel
from avial_lab.compiler.passes.loops.jam.jam_in_registers import JamInRegisters
from tests.compiler.passes.rewriting import assert_same_bits, random_array

HEIGHT, WIDTH = 20, 40


def changed(text: str, rows: int = 0) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), MarkParallel(), JamInRegisters(rows)))
        return str(module)


def product(body: str, kind: str, rows: int, terms: int, first: int, columns: int) -> str:
    """Of what stands in the loop over rows; ROW is a loop over columns, TERMS one over terms."""
    array = f"memref<{HEIGHT}x{WIDTH}x{kind}>"
    body = body.replace("ROW", f"affine.for %j = {first} to {first + columns}")
    body = body.replace("TERMS", f"affine.for %k = 0 to {terms}")
    start, many = ("0.0", "-3.5") if kind.startswith("f") else ("0", "-3")
    for name in ("add", "mul"):
        body = body.replace(f"arith.{name} ", f"arith.{name}{kind[0]} ")
    return f"""
    func.func @f(%A: {array}, %B: {array}, %C: {array}) attributes {{avial.no_alias}} {{
      %zero = arith.constant {start} : {kind}
      %factor = arith.constant {many} : {kind}
      %T = memref.alloc() : {array}
      affine.for %i = 0 to {rows} {{
        {body.replace("ARRAY", array).replace("KIND", kind)}
      }}
      memref.dealloc %T : {array}
      return
    }}"""


ADD = """ROW {
    %b = affine.load %B[%k, %j] : ARRAY
    %c = affine.load %C[%i, %j] : ARRAY
    %p = arith.mul %a, %b : KIND
    %s = arith.add %p, %c : KIND
    affine.store %s, %C[%i, %j] : ARRAY
  }"""
SUM = f"TERMS {{ %a = affine.load %A[%i, %k] : ARRAY\n {ADD} }}"
CLEAR = "ROW { affine.store %zero, %C[%i, %j] : ARRAY }"
SCALE = """ROW {
    %c = affine.load %C[%i, %j] : ARRAY
    %p = arith.mul %c, %factor : KIND
    affine.store %p, %C[%i, %j] : ARRAY
  }"""
COPY = """ROW {
    %c = affine.load %C[%i, %j] : ARRAY
    affine.store %c, %B[%i + 10, %j] : ARRAY
  }"""
TWICE = f"""TERMS {{
    %a = affine.load %A[%i, %k] : ARRAY
    {ADD}
    %a2 = affine.load %A[%k + 1, %i] : ARRAY
    {ADD.replace("%a,", "%a2,")}
  }}"""
ONE_BY_ONE = """affine.for %j = 0 to 3 {
    %c = affine.load %C[%i, %j * 2] : ARRAY
    affine.store %c, %C[%i, %j * 2 + 30] : ARRAY
  }"""
ACROSS = """ROW {
    %a = affine.load %A[%i, %j] : ARRAY
    affine.store %a, %C[%i, %j + 2] : ARRAY
  }"""
WRITTEN_OUT = """ROW {
    %a0 = affine.load %A[%i, 0] : ARRAY
    %b0 = affine.load %B[0, %j] : ARRAY
    %a1 = affine.load %A[%i, 1] : ARRAY
    %b1 = affine.load %B[1, %j + 1] : ARRAY
    %p0 = arith.mul %a0, %b0 : KIND
    %p1 = arith.mul %a1, %b1 : KIND
    %s = arith.add %p0, %p1 : KIND
    affine.store %s, %C[%i, %j] : ARRAY
  }"""
BODIES = {
    "a sum": SUM,
    "what begins with nothing, and is scaled": f"{CLEAR} {SUM} {SCALE}",
    "what is scaled before": f"{SCALE} {SUM}",
    "two terms at a time": TWICE,
    "two sums after each other": f"{SUM} {SCALE} {SUM}",
    "what another loop writes between": f"{SUM} {ONE_BY_ONE} {SUM}",
    "what another loop writes into it": f"{SUM} {ONE_BY_ONE.replace('2 + 30', '2 + 1')} {SUM}",
    "a row that lies across it": f"{SUM} {ACROSS} {COPY}",
    "a copy of it": f"{CLEAR} {SUM} {COPY}",
    "terms written out": WRITTEN_OUT,
}


def check(texts: list[str], kind: str) -> None:
    """They become vectors, and hold the same bits."""
    afters = [changed(text) for text in texts]
    assert all("vector." in after for after in afters)
    rng = np.random.default_rng(7)
    arrays = {name: random_array(rng, (HEIGHT, WIDTH), kind) for name in "ABC"}
    assert_same_bits(texts, afters, arrays)


SIZES = [(2, 1, 0, 2), (3, 2, 1, 3), (5, 3, 0, 4), (8, 5, 2, 5), (9, 2, 0, 7), (7, 3, 0, 16)]


@pytest.mark.quick("*-f64")
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_all_numbers_of_rows_and_columns(body: str, kind: str) -> None:
    check([product(body, kind, *size) for size in SIZES], kind)


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_integers(kind: str) -> None:
    check([product(f"{CLEAR} {SUM}", kind, *size) for size in SIZES], kind)


def test_a_temporary_row_is_no_memory() -> None:
    body = f"{CLEAR} {SUM} {COPY}".replace("%C", "%T")
    text = product(body, "f64", 9, 4, 0, 6)
    after = changed(text)
    assert "memref.alloc" in text
    assert "memref.alloc" not in after
    check([text], "f64")


def test_a_temporary_that_is_read_later_stays() -> None:
    body = f"{CLEAR} {SUM}".replace("%C", "%T")
    later = "memref.copy %T, %C : ARRAY to ARRAY\n memref.dealloc"
    array = f"memref<{HEIGHT}x{WIDTH}xf64>"
    text = product(body, "f64", 9, 4, 0, 6).replace("memref.dealloc", later).replace("ARRAY", array)
    assert "vector.store" in changed(text)
    assert "memref.alloc" in changed(text)


def test_a_temporary_that_is_read_before_it_is_written_stays() -> None:
    after = changed(product(f"{SUM} {COPY}".replace("%C", "%T"), "f64", 9, 4, 0, 6))
    assert "vector.store" in after
    assert "memref.alloc" in after


def test_terms_that_may_not_be_there_need_a_row_that_is_written_before() -> None:
    none = {"affine.for %k = 0 to 4": "affine.for %k = 0 to %n", "%C: ": "%n: index, %C: "}
    cleared, alone = (product(body, "f64", 9, 4, 0, 6) for body in (f"{CLEAR} {SUM}", SUM))
    for old, new in none.items():
        cleared, alone = cleared.replace(old, new), alone.replace(old, new)
    assert "iter_args" in changed(cleared)
    assert "vector." not in changed(alone)


TRIANGLE = SUM.replace("TERMS", "affine.for %k = 0 to affine_map<(i) -> (i + 1)>(%i)")
LEFT_ALONE = {
    "a row that goes on with the terms": SUM.replace("%C[%i,", "%C[%i + %k,"),
    "a row that lies further on with each term": SUM.replace("%C[%i, %j]", "%C[%i, %j + %k * 8]"),
    "what is read again after it was written": SUM.replace(
        "affine.store %s, %C[%i, %j] : ARRAY",
        """affine.store %s, %C[%i, %j] : ARRAY
           %again = affine.load %C[%i, %j] : ARRAY
           %twice = arith.mul %again, %b : KIND
           affine.store %twice, %C[%i, %j] : ARRAY""",
    ),
    "other elements of the array are read": SUM.replace("%A[%i, %k]", "%C[%i, %k + 30]"),
    "what the row before has written": SUM.replace("%A[%i, %k]", "%C[%i - 1, %k + 30]"),
    "elements that lie apart": SUM.replace("%j]", "%j * 2]"),
    "of each row another number of terms": TRIANGLE,
    "of each row another number of terms, written before": f"{CLEAR} {TRIANGLE}",
    "two rows of an array, which overlap": SUM[:-1] + ADD.replace("%j]", "%j + 2]") + "}",
    "the sum of a row is read by the next term": SUM.replace("%b, ", "%b2, ").replace(
        "%p =", "%x = affine.load %C[%i, 0] : ARRAY\n %b2 = arith.mul %x, %b : KIND\n %p ="
    ),
}


@pytest.mark.parametrize("body", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_left_alone(body: str) -> None:
    text = product(body, "f64", 9, 4, 0, 6)
    assert "vector." not in changed(text.replace("%i = 0", "%i = 1"))


def test_rows_too_long_for_registers_are_left_alone() -> None:
    assert "vector." not in changed(product(SUM, "f64", 9, 4, 0, 39))


def test_as_many_rows_as_asked_for() -> None:
    assert "step 3" in changed(product(SUM, "f64", 9, 4, 0, 6), rows=3)
