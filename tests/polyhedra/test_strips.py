"""What lines of a block wait for: its core, and themselves."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.polyhedra.eliminations import elimination_in
from avial_lab.polyhedra.strips import Strips
from avial_lab.polyhedra.units import units_of
from tests.passes.test_block_loops import CHOLESKY, LU, SOLVE, factorisation
from tests.polyhedra.texts import scop_of


def strips_in(body: str) -> list[tuple[list[str], str, str]]:
    """Of blocks of 16 steps: for each group what it stores, its first line and the last."""
    return [_told(group) for group in _groups(body)]


def _groups(body: str) -> tuple[Strips, ...]:
    text = factorisation(body, 70).partition("\n")[2].replace(" attributes {avial.apart}", "")
    scop = scop_of(text.replace("#same", "affine_map<(d) -> (d)>"), ir.Context())
    found = elimination_in(scop, units_of(scop, apart=True), width=16, first="first")
    assert found is not None
    core, groups = found.strips()
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
    ],
    ids=["rows", "rows and columns", "all columns"],
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
