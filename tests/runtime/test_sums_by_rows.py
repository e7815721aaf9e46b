"""Sums over columns by the rows that each rank has: the reference within a reordered sum's bound,
on every number of ranks, and the bytes that the plan says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from tests.sums_by_rows import CHANGED, COLUMNS, ROWS, SCALED, both

PROGRAMS = {
    "rows and columns": {"bodies": (ROWS, COLUMNS)},
    "columns and rows": {"bodies": (COLUMNS, ROWS)},
    "changed rows": {"bodies": (SCALED, COLUMNS, ROWS)},
    "changed later": {"bodies": (COLUMNS, SCALED)},
    "its own element": {"bodies": (ROWS, COLUMNS), "of": "%x[%j]"},
    "all elements": {"bodies": (CHANGED, COLUMNS), "of": "%x[%i]"},
    "again and again": {"bodies": (CHANGED, COLUMNS), "of": "%x[%i]", "around": 3},
}


def compiled(n: int, dtype: Any, ranks: int, *, bodies: tuple[str, ...], **options: Any) -> Program:
    """On whole numbers: any order of a sum has the same bits, and what is left out shows."""
    element = {np.float64: "f64", np.float32: "f32", np.int64: "i64"}[dtype]
    text = both(n, *bodies, element=element, **options)
    if element == "i64":
        text = text.replace("arith.mulf", "arith.muli").replace("arith.addf", "arith.addi")
    rng = np.random.default_rng(n)
    arrays = {name: rng.integers(-2, 3, n).astype(dtype) for name in "uwxy"}
    arrays |= {name: rng.integers(-1, 2, (n, n)).astype(dtype) for name in "AB"}
    return avial_lab.compile(text, arrays=arrays, ranks=ranks)


@pytest.mark.quick("*-701-3")
@pytest.mark.mpi
@pytest.mark.parametrize(("n", "ranks"), [(701, 3), (768, 2)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_of_the_reference_and_the_bytes_of_the_plan(
    cluster: Cluster, name: str, n: int, ranks: int
) -> None:
    program = compiled(n, np.float64, ranks, **PROGRAMS[name])
    assert "avial.by_rows" in program.stages["placed"].text
    check(program, cluster)


@pytest.mark.mpi
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_of_other_elements(cluster: Cluster, dtype: Any) -> None:
    program = compiled(1201, dtype, 3, **PROGRAMS["changed rows"])
    assert "avial.by_rows" in program.stages["placed"].text
    check(program, cluster)


def check(program: Program, cluster: Cluster) -> None:
    expected = program.reference().data
    program.run(cluster)
    assert program.plan is not None
    assert program.trace is not None
    for name, want in expected.items():
        np.testing.assert_array_equal(program.arrays[name].ravel(), want.ravel())
    assert sum(move.nbytes for move in program.trace.moves) == program.plan.bytes_moved
    assert 0 < program.plan.bytes_moved < program.arrays["A"].nbytes / 8  # vectors alone


@pytest.mark.parametrize("ranks", [2, 4, 7])
def test_no_rank_is_given_more_than_its_rows(ranks: int) -> None:
    n = 1200
    plan = compiled(n, np.float64, ranks, bodies=(ROWS, COLUMNS)).plan
    assert plan is not None
    given = [0] * ranks
    for piece in plan.inputs:
        if piece.storage == "A":
            given[piece.rank] += piece.box.size
    assert sum(given) == n * n
    assert max(given) == -(-n // ranks) * n
    assert plan.bytes_moved == ranks * (ranks - 1) * n * 8  # every rank gets all partial sums


def test_only_what_is_added_up_by_several_ranks_has_another_order() -> None:
    program = compiled(1200, np.float64, 2, bodies=(SCALED, COLUMNS))
    assert "avial.by_rows" in program.stages["placed"].text
    assert program.built.reordered == {"y": 1200}
    alone = compiled(1200, np.float64, 1, bodies=(SCALED, COLUMNS))
    assert not alone.built.reordered
