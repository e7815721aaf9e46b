"""Rows that became one long row hold the same bits, whatever part of an array they are."""

from __future__ import annotations

import itertools

import numpy as np
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.order.coalesce_loops import CoalesceLoops, CoalesceReductions
from avial_lab.compiler.passes.loops.reductions.reassociate_sums import ReassociateSums
from avial_lab.compiler.passes.loops.storage.promote_scalars import PromoteScalars
from tests.compiler.passes.rewriting import assert_same_bits

PLANES, ROWS = 5, 9


def flattened(text: str) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), CoalesceLoops()))
        return str(module)


def planes(columns: int, first: tuple[int, int], end: tuple[int, int], away: int) -> str:
    """Of A, and of C `away` rows from there, into B, and C becomes A."""
    array = f"memref<{PLANES}x{ROWS}x{columns}xf32>"
    return f"""
    func.func @f(%A: {array}, %B: {array}, %C: {array}) attributes {{avial.no_alias}} {{
      affine.for %p = {first[0]} to {end[0]} {{
        affine.for %i = {first[1]} to {end[1]} {{
          affine.for %j = 0 to {columns} {{
            %a = affine.load %A[%p, %i, %j] : {array}
            %c = affine.load %C[%p, %i + {away}, %j] : {array}
            %k = affine.load %A[0, 1, {columns - 1}] : {array}
            %x = math.fma %a, %c, %k : f32
            affine.store %x, %B[%p, %i, %j] : {array}
            affine.store %a, %C[%p, %i + {away}, %j] : {array}
          }}
        }}
      }}
      return
    }}"""


def test_parts_of_planes_hold_the_same_bits() -> None:
    corners = [((0, 0), (PLANES, ROWS)), ((0, 0), (PLANES, ROWS - 2)), ((1, 2), (4, 3))]
    rng = np.random.default_rng(7)
    for columns in (1, 2, 3, 7, 8, 13):
        texts = [
            planes(columns, first, end, away)
            for (first, end), away in itertools.product(corners, (0, 1, -1, 2))
            if first[1] + away >= 0 and end[1] + away <= ROWS
        ]
        afters = [flattened(text) for text in texts]
        # Whole planes are one row, and parts of planes are one for each plane.
        assert [text.count("affine.for") for text in afters].count(1) == 1
        assert all(text.count("affine.for") <= 2 for text in afters)
        shape = (PLANES, ROWS, columns)
        arrays = {name: rng.normal(size=shape).astype(np.float32) for name in "ABC"}
        assert_same_bits(texts, afters, arrays)


def sums(columns: int, first: tuple[int, int], end: tuple[int, int], away: int) -> str:
    """Of A and of C `away` rows from there, into an element of B; C becomes A."""
    store = f"affine.store %x, %B[%p, %i, %j] : memref<{PLANES}x{ROWS}x{columns}xf32>"
    text = planes(columns, first, end, away).replace("math.fma %a, %c, %k", "math.fma %a, %c, %b")
    load = "%b = affine.load %B[0, 2, 0]"
    return (
        text.replace("%k = affine.load %A[0, 1", "%k = affine.load %B[0, 2")
        .replace(f"%k = affine.load %B[0, 2, {columns - 1}]", load)
        .replace(store, store.replace("[%p, %i, %j]", "[0, 2, 0]"))
    )


def test_sums_hold_the_same_bits() -> None:
    corners = [((0, 0), (PLANES, ROWS)), ((0, 0), (PLANES, ROWS - 2)), ((1, 2), (4, 3))]
    rng = np.random.default_rng(7)
    for columns in (1, 2, 7, 13):
        texts = [
            sums(columns, first, end, away)
            for (first, end), away in itertools.product(corners, (0, 1, -1, 2))
            if first[1] + away >= 0 and end[1] + away <= ROWS
        ]
        afters: list[str] = []
        for text in texts:
            with ir.Context():
                module = ir.Module.parse(text)
                run_passes(module.operation, (CoalesceReductions(),))
                afters.append(str(module))
        assert [text.count("affine.for") for text in afters].count(1) == 1
        assert all(text.count("affine.for") <= 2 for text in afters)
        shape = (PLANES, ROWS, columns)
        arrays = {name: rng.normal(size=shape).astype(np.float32) for name in "ABC"}
        assert_same_bits(texts, afters, arrays)


def test_a_sum_of_short_rows_is_added_up_in_vectors() -> None:
    """What reassociate-sums asks of a row, whether the next element is beside, holds of a view,
    too.
    """
    text = sums(7, (0, 0), (PLANES, ROWS), 0).replace(
        "{avial.no_alias}", '{avial.no_alias, avial.task = "S1"}'
    )
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (CoalesceReductions(), PromoteScalars(), ReassociateSums()))
        assert "reassoc" in str(module)
