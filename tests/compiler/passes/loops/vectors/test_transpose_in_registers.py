"""Arrays across each other go through registers in squares: which do, and with which values."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.facts.mark_parallel import MarkParallel
from avial_lab.compiler.passes.loops.threads.thread_loops import ThreadLoops
from avial_lab.compiler.passes.loops.vectors.transpose_in_registers import TransposeInRegisters
from tests.compiler.passes.rewriting import KINDS, assert_same_bits, random_array

LANES = 8
"""Of 32 bits: with f64 a row of a tile is two vectors' worth, with f32 one."""


def after(text: str, *passes: Pass) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), MarkParallel(), *passes))
        return str(module)


def tiled(text: str, lanes: int = LANES) -> bool:
    return "vector.shuffle" in after(text, TransposeInRegisters(lanes))


def both(rows: int, columns: int, kind: str, *, low: int = 0) -> str:
    """B is written along %i; A and C are read along %j, and what is added follows each."""
    along, across = f"memref<{rows}x{columns}x{kind}>", f"memref<{columns}x{rows}x{kind}>"
    add, line = f"arith.add{kind[0]}", f"memref<{rows}x{kind}>"
    return f"""
    func.func @f(%A: {along}, %B: {across}, %C: {along}, %s: {line})
        attributes {{avial.no_alias}} {{
      affine.for %i = {low} to {rows} {{
        %v = affine.load %s[%i] : {line}
        affine.for %j = {low} to {columns} {{
          %a = affine.load %A[%i, %j] : {along}
          %b = {add} %a, %v : {kind}
          affine.store %b, %B[%j, %i] : {across}
          %c = {add} %b, %a : {kind}
          affine.store %c, %C[%i, %j] : {along}
        }}
      }}
      return
    }}"""


def arrays_of(rows: int, columns: int, kind: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = {"A": (rows, columns), "B": (columns, rows), "C": (rows, columns), "s": (rows,)}
    return {name: random_array(rng, shape, kind) for name, shape in shapes.items()}


@pytest.mark.quick("16-*", "4-f32")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_every_size(kind: str, lanes: int) -> None:
    """One below and above each vector and line, and none left over."""
    bits = int(kind[1:])
    for rows, columns in [(16, 16), (31, 33), (40, 8), (23, 47)]:
        texts = [both(rows, columns, kind), both(rows, columns, kind, low=3)]
        rewritten = [after(text, TransposeInRegisters(lanes)) for text in texts]
        for low, each in zip((0, 3), rewritten, strict=True):
            is_square = columns - low >= lanes * 32 // bits and rows - low >= 512 // bits
            assert ("vector.shuffle" in each) == is_square
        assert_same_bits(texts, rewritten, arrays_of(rows, columns, kind))


def test_threads_divide_the_blocks_of_rows() -> None:
    text = both(40, 24, "f64")
    rewritten = after(text, TransposeInRegisters(LANES), ThreadLoops())
    assert "vector.shuffle" in rewritten
    assert "omp.parallel" in rewritten


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_read_across(kind: str) -> None:
    """S = (A + A^T) * 2.5, with the constant where text may have it."""
    array = f"memref<37x37x{kind}>"
    text = f"""
    func.func @f(%A: {array}, %S: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to 37 {{
        affine.for %j = 0 to 37 {{
          %a = affine.load %A[%i, %j] : {array}
          %b = affine.load %A[%j, %i] : {array}
          %d = arith.constant {"2.5" if kind[0] == "f" else "7"} : {kind}
          %e = arith.add{kind[0]} %a, %b : {kind}
          %c = arith.mul{kind[0]} %e, %d : {kind}
          affine.store %c, %S[%i, %j] : {array}
        }}
      }}
      return
    }}"""
    rewritten = after(text, TransposeInRegisters(LANES))
    assert "vector.shuffle" in rewritten
    rng = np.random.default_rng(3)
    arrays = {name: random_array(rng, (37, 37), kind) for name in "AS"}
    assert_same_bits([text], [rewritten], arrays)


def between(bounds: str = "0 to 3") -> str:
    """Channels go behind the columns: the loops across each other have others between."""
    given, made = "memref<2x20x3x19xf32>", "memref<2x3x19x20xf32>"
    return f"""
    func.func @f(%A: {given}, %B: {made}) attributes {{avial.no_alias}} {{
      affine.for %n = 0 to 2 {{
        affine.for %c = 0 to 20 {{
          affine.for %i = {bounds} {{
            affine.for %j = 1 to 19 {{
              %a = affine.load %A[%n, %c, %i, %j] : {given}
              affine.store %a, %B[%n, %i, %j, %c] : {made}
            }}
          }}
        }}
      }}
      return
    }}"""


def test_loops_between() -> None:
    rewritten = after(between(), TransposeInRegisters(LANES))
    assert "vector.shuffle" in rewritten
    rng = np.random.default_rng(3)
    arrays = {
        "A": random_array(rng, (2, 20, 3, 19), "f32"),
        "B": random_array(rng, (2, 3, 19, 20), "f32"),
    }
    assert_same_bits([between()], [rewritten], arrays)


@pytest.mark.parametrize(
    "text",
    [
        between("0 to affine_map<(d) -> (d mod 4)>(%c)"),  # rows have bounds of their own
        both(40, 7, "f32"),
        both(7, 40, "f32"),
        both(40, 40, "f64").replace("%A[%i, %j]", "%A[%i, 2 * %j]"),  # no vectors along %j
        both(40, 40, "f64").replace("%B[%j, %i]", "%B[%j, 2 * %i mod 40]"),  # nor along %i
        both(40, 40, "f64").replace("%B[%j, %i]", "%C[%i, %j]"),  # all lie alike
        both(40, 40, "f64").replace("%A[%i, %j]", "%B[%j, %i - 1]").replace("0 to", "1 to"),
    ],
)
def test_others_stay(text: str) -> None:
    """The last one's rows wait for each other."""
    assert not tiled(text)


def test_wide_bodies_stay() -> None:
    """What all rows of a tile would have to do is not worth to be compiled."""
    more = "\n".join(f"%x{k} = arith.mulf %a, %a : f64" for k in range(50))
    text = both(40, 40, "f64").replace("%b = ", f"{more}\n%b = ")
    assert not tiled(text)


@pytest.mark.parametrize("kind", KINDS)
def test_past_the_caches(kind: str) -> None:
    """Where each row begins a line of the cache, and where the array does, else through them."""
    cache = TransposeInRegisters(LANES, cache=1 << 12)
    text = both(48, 35, kind)
    rewritten = after(text, cache)
    line = 512 // int(kind[1:])
    assert rewritten.count("nontemporal") == line
    assert rewritten.count("llvm.fence") == 1
    places = [{"B": 0}, {"B": 1}, {"B": line - 1}, {"A": 5, "B": line}]
    assert_same_bits([text], [rewritten], arrays_of(48, 35, kind), *places)
    for rows in (47, 49, 52):
        assert "nontemporal" not in after(both(rows, 35, kind), cache)
    assert "nontemporal" not in after(text, TransposeInRegisters(LANES, cache=1 << 20))


SKEWED = """
    func.func @f(%A: memref<48x64xf64>, %B: memref<64x128xf64>) attributes {avial.no_alias} {
      affine.for %i = 0 to 48 {
        affine.for %j = 0 to 64 {
          %a = affine.load %A[%i, %j] : memref<48x64xf64>
          affine.store %a, %B[%j, PLACE] : memref<64x128xf64>
        }
      }
      return
    }"""


@pytest.mark.parametrize("place", ["%i", "%i + %j", "%i + 3", "%i + 8 * %j - 7 * %j"])
def test_only_whole_lines_go_past_the_caches(place: str) -> None:
    """On a diagonal each column begins elsewhere in a line."""
    text = SKEWED.replace("PLACE", place)
    rewritten = after(text, TransposeInRegisters(LANES, cache=1 << 12))
    assert "vector.shuffle" in rewritten
    assert ("nontemporal" in rewritten) == ("%j" not in place)
    rng = np.random.default_rng(3)
    arrays = {
        "A": random_array(rng, (48, 64), "f64"),
        "B": random_array(rng, (64, 128), "f64"),
    }
    assert_same_bits([text], [rewritten], arrays)


def test_views_of_each_row_stay() -> None:
    """Each row of a tile would need its own."""
    text = """
    func.func @f(%A: memref<48x64xf64>, %B: memref<64x48xf64>) attributes {avial.no_alias} {
      affine.for %i = 0 to 48 {
        %row = memref.subview %A[%i, 0] [1, 64] [1, 1]
          : memref<48x64xf64> to memref<64xf64, strided<[1], offset: ?>>
        affine.for %j = 0 to 64 {
          %a = affine.load %row[%j] : memref<64xf64, strided<[1], offset: ?>>
          affine.store %a, %B[%j, %i] : memref<64x48xf64>
        }
      }
      return
    }"""
    assert not tiled(text)
