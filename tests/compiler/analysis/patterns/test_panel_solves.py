"""What lines of a block wait for: its core, and themselves."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.patterns.factorisations import Elimination, elimination_in
from avial_lab.compiler.analysis.patterns.panel_solves import Strips
from avial_lab.compiler.analysis.polyhedral.units import units_of
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from tests.compiler.analysis.polyhedral.texts import scop_of
from tests.compiler.passes.loops.contractions.test_block_contractions import (
    CHOLESKY,
    LU,
    ORTHOGONAL,
    SOLVE,
    WIDE,
    check,
    factorisation,
)


def strips_in(body: str) -> list[tuple[list[str], str, str]]:
    """Of blocks of 16 steps: for each group what it stores, its first line and the last."""
    return [_told(group) for group in _groups(body)]


def eliminated(body: str) -> Elimination:
    """In blocks of 16 steps."""
    text = factorisation(body, 70).replace(" attributes {avial.no_alias}", "")
    for line in (lines := text.splitlines())[:2]:
        name, _, map_ = line.partition(" = ")
        lines = [each.replace(name, map_) for each in lines[1:]]
    scop = scop_of("\n".join(lines), ir.Context())
    found = elimination_in(scop, units_of(scop, apart=True), width=16, first="first")
    assert found is not None
    return found


def _groups(body: str) -> tuple[Strips, ...]:
    found = eliminated(body)
    core, groups = found.strips
    for part in found.panel:  # each instance is in one of them
        own = [g.part.points for s in groups for g in s.strips if g.part.unit == part.unit]
        own += [each.points for each in core if each.unit == part.unit]
        whole = own[0]
        for piece in own[1:]:
            assert whole.intersect(piece).is_empty()
            whole = whole.union(piece)
        assert whole.is_equal(part.points)
    return groups


def _told(group: Strips) -> tuple[list[str], str, str]:
    stores = [str(s.part.unit.statements[-1].accesses[0]) for s in group.strips]
    lows, highs = (sorted(map(str, e)) for e in (group.extent.lows, group.extent.highs))
    return stores, ", ".join(lows), ", ".join(highs)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CHOLESKY, [(["C[i, j]", "C[i, j]"], "first + 16", "70")]),
        (LU, [(["C[i, j]", "C[i, j]"], "first + 16", "70"), (["C[i, j]"], "first + 16", "70")]),
        (SOLVE, [(["C[i, j]", "C[i, j]"], "0", "40")]),
        (ORTHOGONAL, [(["B[i, j]", "B[i, j]", "C[k, j]"], "first + 16", "70")]),
    ],
    ids=["rows", "rows and columns", "all columns", "columns that steps go through"],
)
def test_lines_that_wait_for_no_other(body, expected):
    assert strips_in(body) == expected


def test_what_another_line_needs_is_no_strip():
    """Rows that take from the row before: not even the first one beyond is apart from the rest."""
    row = "%a = affine.load %C[%i, %j] : memref<70x70xf64>"
    assert CHOLESKY.count(row) == 2
    before = row.replace("%i, %j", "%i - 1, %j").replace("%a", "%b")
    mixed = f"{row}\n{before}\n%pivot0 = arith.maximumf %a, %b : f64"
    body = mixed.join(CHOLESKY.rsplit(row, 1)).replace("divf %a", "divf %pivot0")
    assert "%i - 1" in body
    body = body.replace("affine.for %i = 0", "affine.for %i = 1")
    assert not any("C[i, j]" in stores for stores, _, _ in strips_in(body))


REST = """
      affine.for %i = 0 to 66 {
        %t = affine.load %A[67, %j] : memref<70x70xf64>
        %a = affine.load %C[%i, %j] : memref<70x70xf64>
        %sum = arith.addf %t, %a : f64
        affine.store %sum, %A[67, %j] : memref<70x70xf64>
      }"""
"""In each step, of what it left of a column."""


@pytest.mark.parametrize("waits", [False, True], ids=["the next step", "the same step"])
def test_what_a_step_leaves_goes_by_once_for_it_and_the_next(waits):
    body = ORTHOGONAL.replace("} } }", f"}} {REST} }} }}") if waits else ORTHOGONAL
    (group,) = _groups(body)
    assert len(group.strips) == 3 + waits
    stores = [group.late and group.late.part, group.early and group.early.part]
    told = [str(part.unit.statements[-1].accesses[0]) for part in stores if part]
    assert told == ([] if waits else ["C[k, j]", "B[i, j]"])
    text = factorisation(body, 65)
    assert check([(text, BlockContractions(steps=16, cpu=WIDE))], "f64", special=True) == 1
