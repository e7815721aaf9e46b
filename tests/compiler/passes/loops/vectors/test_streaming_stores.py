"""Stores past the caches: of which arrays, and with which values; where vectors begin in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.ir.attributes import STREAMED
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.jam.jam_for_loads import JamForLoads
from avial_lab.compiler.passes.loops.vectors.align_vectors import AlignVectors
from avial_lab.compiler.passes.loops.vectors.streaming_stores import StreamingStores
from avial_lab.machine.cpu import Cpu
from tests.compiler.passes.rewriting import KINDS, assert_same_bits, random_array

CACHE = 1 << 14
"""Bytes: the arrays here are two or three times as large."""

MARK = StreamingStores(cache=CACHE)
VECTORS = AlignVectors(lanes=8)


def after(text: str, *passes: Pass) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), *passes))
        return str(module)


def check(texts: Sequence[str], width: int, kind: str, *before: Pass) -> None:
    """The same bits, some of them stored past the caches."""
    afters = [after(text, *before, MARK, VECTORS) for text in texts]
    assert all("nontemporal" in each for each in afters)
    assert all(each.count("llvm.fence seq_cst") == 1 for each in afters)
    rng = np.random.default_rng(3)
    arrays = {name: random_array(rng, (21, width), kind) for name in "ABC"}
    assert_same_bits(texts, afters, arrays)


def sums(width: int, kind: str, low: str = "0", high: str = "") -> str:
    """C = A + B from column `low` to `high`, in any of the rows but the first and last."""
    array = f"memref<21x{width}x{kind}>"
    return f"""
    func.func @f(%A: {array}, %B: {array}, %C: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 1 to 20 {{
        affine.for %j = {low} to {high or width} {{
          %a = affine.load %A[%i, %j] : {array}
          %b = affine.load %B[%i, %j] : {array}
          %c = arith.add{kind[0]} %a, %b : {kind}
          affine.store %c, %C[%i, %j] : {array}
        }}
      }}
      return
    }}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [512, 513, 519, 600])
def test_rows_of_known_lengths(kind: str, width: int) -> None:
    check([sums(width, kind), sums(width, kind, "3"), sums(width, kind, "1", "101")], width, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [512, 515])
def test_rows_of_any_length(kind: str, width: int) -> None:
    """Also of none, of less than a vector, and those that end before one begins."""
    ends = [
        ("affine_map<(d) -> (d)>(%i)", "affine_map<(d) -> (4 * d - 9)>(%i)"),
        ("affine_map<(d) -> (7 * d)>(%i)", "affine_map<(d) -> (7 * d + 3)>(%i)"),
        ("0", "affine_map<(d) -> (25 * d + 4)>(%i)"),
        ("affine_map<(d) -> (512 - 3 * d)>(%i)", "512"),
    ]
    check([sums(width, kind, low, high) for low, high in ends], width, kind)


def stencil(width: int) -> str:
    array = f"memref<21x{width}xf64>"
    return f"""
    func.func @f(%A: {array}, %B: {array}, %C: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 1 to 20 {{
        affine.for %j = 0 to {width} {{
          %a = affine.load %A[%i - 1, %j] : {array}
          %b = affine.load %A[%i, %j] : {array}
          %c = affine.load %A[%i + 1, %j] : {array}
          %d = arith.addf %a, %b : f64
          %e = arith.addf %d, %c : f64
          affine.store %e, %C[%i, %j] : {array}
        }}
      }}
      return
    }}"""


def test_several_rows_at_once() -> None:
    """Past the caches where all of them begin vectors alike, else none of them."""
    check([stencil(512)], 512, "f64", JamForLoads(Cpu()))
    whole = after(stencil(512), JamForLoads(Cpu()), MARK, VECTORS)
    assert whole.count("nontemporal") == 4 + 1  # four rows, and the loop over those left over
    odd = after(stencil(513), JamForLoads(Cpu()), MARK, VECTORS)
    assert odd.count("nontemporal") == 1


def two(width: int, column: str = "%j") -> str:
    """Sums in one array, differences in another; these in `column`."""
    array = f"memref<21x{width}xf32>"
    return f"""
    func.func @f(%A: {array}, %B: {array}, %C: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to 20 {{
        affine.for %j = 0 to {width - 2} {{
          %a = affine.load %A[%i, %j] : {array}
          %b = arith.addf %a, %a : f32
          %c = arith.mulf %a, %b : f32
          affine.store %b, %B[%i, %j] : {array}
          affine.store %c, %C[%i, {column}] : {array}
        }}
      }}
      return
    }}"""


def test_several_arrays_at_once() -> None:
    """Past the caches where all of them begin vectors alike, which is asked when they are there."""
    check([two(512)], 512, "f32")
    text = after(two(512), MARK, VECTORS)
    assert text.count("nontemporal") == 2
    assert text.count("scf.if") == 1
    for other in (two(513), two(512, "%j + 1")):
        assert "nontemporal" not in after(other, MARK, VECTORS)


def test_arrays_that_begin_elsewhere_in_memory() -> None:
    """A store past the caches to where no vector begins would end the process."""
    text = two(512)
    arrays = {name: random_array(np.random.default_rng(3), (21, 512), "f32") for name in "ABC"}
    places = [{"B": b, "C": c} for b in (0, 1, 7, 8) for c in (0, 1, 9, 15)]
    assert_same_bits([text], [after(text, MARK, VECTORS)], arrays, *places)


def test_rows_that_lie_apart_begin_anywhere() -> None:
    """Only those of an array that lies whole can be told to begin where vectors do."""
    whole, apart = "memref<21x512xf32>", "memref<21x512xf32, strided<[513, 1]>>"
    text = two(512).replace(f"%C: {whole}", f"%C: {apart}")
    text = text.replace(f"%C[%i, %j] : {whole}", f"%C[%i, %j] : {apart}")
    past = [line for line in after(text, MARK, VECTORS).splitlines() if "nontemporal" in line]
    assert len(past) == 1
    assert "strided" not in past[0]


def test_arrays_of_one_dimension_have_one_row() -> None:
    """It begins where the array does, however long it is."""
    array = "memref<9001xf32>"
    text = f"""
    func.func @f(%A: {array}, %B: {array}, %C: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to 9001 {{
        %a = affine.load %A[%i] : {array}
        %b = arith.addf %a, %a : f32
        %c = arith.mulf %a, %b : f32
        affine.store %b, %B[%i] : {array}
        affine.store %c, %C[%i] : {array}
      }}
      return
    }}"""
    rewritten = after(text, MARK, VECTORS)
    assert rewritten.count("nontemporal") == 2
    arrays = {name: random_array(np.random.default_rng(3), (9001,), "f32") for name in "ABC"}
    assert_same_bits([text], [rewritten], arrays, {"B": 1, "C": 1}, {"B": 0, "C": 3})


def marked(body: str, *, rows: int = 64, last: int = CACHE) -> bool:
    """Whether a store of `body`, which is about A and C, is marked."""
    array = f"memref<{rows}x64xf64>"
    text = f"""
    func.func private @g({array})
    func.func @f(%A: {array}, %C: {array}, %D: memref<?x64xf64>, %n: index)
        attributes {{avial.no_alias}} {{
      {body.replace("ARRAY", array)}
      return
    }}"""
    return STREAMED in after(text, StreamingStores(cache=last))


COPY = """
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %a = affine.load %A[%i, %j] : ARRAY
        affine.store %a, %C[%i, %j] : ARRAY
      }
    }"""


def test_large_arrays_that_are_filled_are_marked() -> None:
    assert marked(COPY)
    backwards = COPY.replace("%C[%i, %j]", "%C[-%i + 63, %j]")
    assert marked(backwards)
    in_tiles = COPY.replace("%i = 0 to 64 {", "%t = 0 to 64 step 8 { affine.for %i = ROWS {")
    rows = "affine_map<(d) -> (d)>(%t) to affine_map<(d) -> (d + 8)>(%t)"
    assert marked(in_tiles.replace("ROWS", rows) + "}")


@pytest.mark.parametrize(
    "body",
    [
        COPY.replace("%A[", "%C["),  # it is read in the same place
        COPY + COPY.replace("%A", "%x").replace("%C", "%A").replace("%x", "%C"),  # it is read later
        COPY + "func.call @g(%C) : (ARRAY) -> ()",
        COPY.replace("%C[%i, %j]", "%C[3, %j]"),  # one row, again and again
        "affine.for %t = 0 to 9 {" + COPY + "}",
        "scf.while : () -> () { %c = arith.constant 0 : i1 scf.condition(%c) } do {"
        + COPY
        + " scf.yield }",
        COPY.replace("%C[%i, %j] : ARRAY", "%D[%i, %j] : memref<?x64xf64>"),
    ],
)
def test_others_are_not(body: str) -> None:
    assert not marked(body)


def test_zeros_are_left_to_memset() -> None:
    fill = COPY.replace("%a = affine.load %A[%i, %j] : ARRAY", "%a = arith.constant 0.0 : f64")
    assert not marked(fill)
    assert marked(fill.replace("0.0", "-0.0"))
    assert marked(fill.replace("0.0", "1.0"))


def test_neither_are_small_ones() -> None:
    """All arrays together decide whether there is room in the caches."""
    both = 2 * 64 * 64 * 8
    assert marked(COPY, last=both // 2)
    assert not marked(COPY, last=both // 2 + 1)


def test_rows_that_nobody_marked_stay_in_the_caches() -> None:
    text = after(sums(512, "f64"), VECTORS)
    assert "vector.store" in text
    assert "nontemporal" not in text
    assert "fence" not in text
