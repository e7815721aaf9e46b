"""Rows in whole vectors hold the same bits, wherever they begin in memory and however long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.jam.jam_for_loads import JamForLoads
from avial_lab.compiler.passes.loops.vectors import align_vectors
from avial_lab.compiler.passes.loops.vectors.align_vectors import AlignVectors
from avial_lab.compiler.passes.loops.vectors.pack_operands import PackOperands
from avial_lab.machine.cpu import Cpu
from tests.compiler.passes.rewriting import KINDS, assert_same_bits, random_array

WIDTH = 603


def vectors(text: str, *, lanes: int = 8) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), AlignVectors(lanes)))
        return str(module)


def check(texts: Sequence[str], kind: str) -> None:
    """Rows are of an odd length: each begins somewhere else in memory."""
    afters = [vectors(text) for text in texts]
    assert all("vector.store" in after for after in afters)
    rng = np.random.default_rng(5)
    arrays = {name: random_array(rng, (4, WIDTH), kind) for name in "AB"}
    assert_same_bits(texts, afters, arrays)


def rows(kind: str, low: int, high: int, body: str) -> str:
    array = f"memref<4x{WIDTH}x{kind}>"
    return f"""
    func.func @f(%A: {array}, %B: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 1 to 3 {{
        affine.for %j = {low} to {high} {{
          {body.replace("ARRAY", array).replace("KIND", kind)}
        }}
      }}
      return
    }}"""


STENCIL = """
    %a = affine.load %A[%i - 1, %j] : ARRAY
    %b = affine.load %A[%i, %j + 1] : ARRAY
    %c = affine.load %A[%i, 2] : ARRAY
    %d = arith.SUB %a, %b : KIND
    %e = arith.ADD %d, %c : KIND
    affine.store %e, %B[%i, %j] : ARRAY"""
IN_PLACE = """
    %a = affine.load %A[%i, %j] : ARRAY
    %b = affine.load %B[%i, %j] : ARRAY
    %c = affine.load %B[0, %j + 1] : ARRAY
    %d = arith.ADD %a, %b : KIND
    %e = arith.ADD %d, %c : KIND
    affine.store %e, %B[%i, %j] : ARRAY
    affine.store %d, %A[%i, %j] : ARRAY"""


ENDS = [(0, 64), (0, 65), (1, 72), (3, 74), (1, 97), (2, 111), (5, 602)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [STENCIL, IN_PLACE])
def test_all_lengths_and_beginnings(kind: str, body: str) -> None:
    text = body.replace("ADD", f"add{kind[0]}").replace("SUB", f"sub{kind[0]}")
    check([rows(kind, low, high, text) for low, high in ENDS], kind)


AGAIN = """
    %zero = arith.constant 0 : index
    %a = affine.load %A[%i, %zero] : ARRAY
    %b = affine.load %B[%i, %j] : ARRAY
    %c = arith.ADD %a, %b : KIND
    affine.store %c, %B[%i, %j] : ARRAY
    %d = affine.load %B[%i, %j] : ARRAY
    %e = affine.load %A[%i - 1, %j + 1] : ARRAY
    %g = arith.ADD %d, %e : KIND
    affine.store %g, %B[%i, %j] : ARRAY"""


NEIGHBOURS = """
    %a = affine.load %A[%i, %j] : ARRAY
    %b = affine.load %A[%i, %j + 1] : ARRAY
    %c = arith.addf %a, %b : KIND
    affine.store %c, %B[%i, %j] : ARRAY"""
BY_ITSELF = NEIGHBOURS.replace("%j + 1", "3")


@pytest.mark.parametrize(
    ("body", "columns", "halves", "lanes"),
    [
        (NEIGHBOURS, 602, True, 4),
        (NEIGHBOURS, 602, False, 8),
        (NEIGHBOURS, 511, True, 8),  # so long that whole ones are aligned, and no longer
        (NEIGHBOURS, 63, True, 4),  # too few whole ones
        (BY_ITSELF, 602, True, 8),
    ],
)
def test_neighbours_are_loaded_by_half_vectors(
    body: str, columns: int, halves: bool, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(The arrays have 19 kB, which is made to be more than the first cache.)"""
    cpu = Cpu(64, 32, fma=True, l1_bytes=1 << 14, halves=halves)
    monkeypatch.setattr(align_vectors, "this_cpu", lambda: cpu)
    text = rows("f64", 0, columns, body)
    after = vectors(text, lanes=0)
    assert f"vector<{lanes}xf64>" in after
    assert f"vector<{12 - lanes}xf64>" not in after
    array = random_array(np.random.default_rng(5), (4, WIDTH), "f64")
    assert_same_bits([text], [after], {"A": array, "B": array.copy()})


def test_neighbours_in_the_first_cache_are_loaded_by_whole_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu = Cpu(64, 32, fma=True, halves=True)
    monkeypatch.setattr(align_vectors, "this_cpu", lambda: cpu)
    assert "vector<8xf64>" in vectors(rows("f64", 0, 602, NEIGHBOURS), lanes=0)


@pytest.mark.quick("*-f32", "*-i64")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [STENCIL, IN_PLACE, AGAIN])
def test_short_rows_are_written_out(kind: str, body: str) -> None:
    """Also those that read what they stored; half a vector at the end where that is left over."""
    lanes = 8 if kind.endswith("32") else 4
    text = body.replace("ADD", f"add{kind[0]}").replace("SUB", f"sub{kind[0]}")
    counts = [lanes, lanes * 3 // 2, 2 * lanes, 3 * lanes + lanes // 2, 7 * lanes]
    texts = [rows(kind, low, low + count, text) for count in counts for low in (0, 3)]
    assert not any("affine.for %arg3" in each or "scf.for" in each for each in map(vectors, texts))
    check(texts, kind)


def test_other_short_rows_stay_loops() -> None:
    """Of a length that is no vectors, or of so much to do that it would be long."""
    for count in (5, 6, 7, 9, 17, 30):
        assert "vector." not in vectors(rows("f32", 0, count, STENCIL_F32))
    long = STENCIL_F32.replace("affine.store", "%l0 = arith.addf %e, %e : KIND\n affine.store")
    for k in range(30):
        more = f"%l{k + 1} = arith.addf %l{k}, %e : KIND\n affine.store"
        long = long.replace("affine.store", more)
    assert "vector." in vectors(rows("f32", 0, 40, long))
    assert "vector." not in vectors(rows("f32", 0, 48, long))


STENCIL_F32 = STENCIL.replace("ADD", "addf").replace("SUB", "subf")

CHOICE = """
    %a = affine.load %A[%i, %j] : ARRAY
    %b = affine.load %B[%i, %j] : ARRAY
    %zero = arith.constant 0.0 : KIND
    %less = arith.cmpf olt, %a, %b : KIND
    %x = arith.select %less, %zero, %a : KIND
    %y = arith.minimumf %x, %b : KIND
    %z = math.sqrt %y : KIND
    %w = math.fma %z, %a, %b : KIND
    affine.store %w, %B[%i, %j] : ARRAY"""


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_choices_and_functions(kind: str) -> None:
    check([rows(kind, 0, 131, CHOICE)], kind)


@pytest.mark.parametrize("place", ["2 * %j, 1", "3 * %j, %i", "-%j + 120, 0", "2 * %j, %i - 1"])
def test_what_moves_by_several_rows_is_no_single_element(place: str) -> None:
    far, row = "memref<128x4xf64>", "memref<4x40xf64>"
    text = f"""
    func.func @f(%A: {far}, %B: {row}) attributes {{avial.no_alias}} {{
      affine.for %i = 1 to 3 {{
        affine.for %j = 0 to 40 {{
          %a = affine.load %A[{place}] : {far}
          %b = arith.addf %a, %a : f64
          affine.store %b, %B[%i, %j] : {row}
        }}
      }}
      return
    }}"""
    rng = np.random.default_rng(3)
    arrays = {"A": random_array(rng, (128, 4), "f64"), "B": random_array(rng, (4, 40), "f64")}
    assert_same_bits([text], [vectors(text)], arrays)


FACTORS = st.integers(-3, 3)


@given(
    loads=st.lists(st.tuples(FACTORS, FACTORS, FACTORS, FACTORS), min_size=1, max_size=3),
    columns=st.integers(8, 40),
    kind=st.sampled_from(["f32", "f64", "i32"]),
)
def test_rows_that_load_from_anywhere(
    loads: list[tuple[int, int, int, int]], columns: int, kind: str
) -> None:
    """Each load's subscripts are two sums of factors times i and j, from 0 on."""
    count = 20
    shapes: dict[str, tuple[int, int]] = {"B": (count, columns)}
    lines: list[str] = []
    total = ""
    for k, (a0, b0, a1, b1) in enumerate(loads):
        both = [(a0, b0), (a1, b1)]
        ends = [
            (min(a * (count - 1), 0) + min(b * (columns - 1), 0), abs(a) * count + abs(b) * columns)
            for a, b in both
        ]
        shapes[f"A{k}"] = (ends[0][1] + 1, ends[1][1] + 1)
        where = ", ".join(
            f"%i * {a} + %j * {b} + {-low}" for (a, b), (low, _) in zip(both, ends, strict=True)
        )
        lines.append(f"%x{k} = affine.load %A{k}[{where}] : {memref(shapes[f'A{k}'], kind)}")
        if total:
            lines.append(f"%s{k} = arith.add{kind[0]} {total}, %x{k} : {kind}")
        total = f"%s{k}" if total else f"%x{k}"
    body = "\n".join(lines)
    parameters = ", ".join(f"%{name}: {memref(shape, kind)}" for name, shape in shapes.items())
    text = f"""
    func.func @f({parameters}) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to {count} {{
        affine.for %j = 0 to {columns} {{
          {body}
          affine.store {total}, %B[%i, %j] : {memref(shapes["B"], kind)}
        }}
      }}
      return
    }}"""
    with ir.Context():
        module = ir.Module.parse(text)
        steps = (IndependentAccesses(), PackOperands(), JamForLoads(), AlignVectors(8))
        run_passes(module.operation, steps)
        after = str(module)
    rng = np.random.default_rng(columns)
    arrays = {name: random_array(rng, shape, kind) for name, shape in shapes.items()}
    assert_same_bits([text], [after], arrays)


def memref(shape: tuple[int, int], kind: str) -> str:
    return f"memref<{shape[0]}x{shape[1]}x{kind}>"
