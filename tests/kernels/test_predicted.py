"""Every kernel simulated beside its run: the same messages, and each rank's events in their order.

What they take is reported, never asserted (`avial-lab bench --predict`).
"""

from __future__ import annotations

import pytest

import avial_lab
import kernels
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.trace import EventKind, Trace


def _program(name: str, ranks: int, **options: object) -> Program:
    there = kernels.load(name).elements
    element = "f64" if "f64" in there else there[0]
    made = kernel_program(name, size="MINI", element=element, numbers={}, seed=0)
    return avial_lab.compile(
        made.text,
        arrays=made.arrays,
        scalars=made.scalars,
        function=made.function,
        ranks=ranks,
        **options,  # pyright: ignore[reportArgumentType]
    )


def _moves(trace: Trace) -> dict[tuple[str, int, int], tuple[int, int]]:
    return {(m.phase, m.source, m.dest): (m.messages, m.nbytes) for m in trace.moves}


def _told(trace: Trace, rank: int) -> list[tuple[object, ...]]:
    """What a rank did, in order; copies are part of a message where they are simulated."""
    events = (e for e in trace.events if e.rank == rank and e.kind is not EventKind.COPY)
    return [
        (e.kind, e.name, e.turn if e.kind is EventKind.TASK else 0, e.nbytes, e.peer, e.what)
        for e in sorted(events, key=lambda e: (e.start_s, e.end_s))
    ]


def _check(program: Program, cluster: Cluster, ranks: int) -> None:
    predicted = program.simulate()
    measured = program.run(cluster, threads=1, oversubscribe=True)
    assert _moves(predicted) == _moves(measured)
    assert predicted.bytes_sent == measured.bytes_sent
    assert predicted.turns == measured.turns
    for rank in range(ranks):
        assert _told(predicted, rank) == _told(measured, rank)


QUICK = frozenset(["atax", "gramschmidt", "jacobi-2d"])
"""Partial results, broadcasts, halos; the others differ in how many there are of each."""


@pytest.mark.quick("jacobi-2d-3", "gramschmidt-3")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in kernels.names()
    ],
)
def test_a_run_is_as_it_was_simulated(name: str, ranks: int, cluster: Cluster) -> None:
    _check(_program(name, ranks), cluster, ranks)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("options", [{"division": "grid"}, {"sync": "levels"}], ids=str)
def test_so_is_one_compiled_otherwise(options: dict[str, str], cluster: Cluster) -> None:
    _check(_program("jacobi-2d", 3, **options), cluster, 3)


@pytest.mark.mpi
def test_of_blocks_in_turn_each_turn_is_one_part(cluster: Cluster) -> None:
    """A run tells each block; the messages are the same."""
    program = _program("gemm", 3, division="cyclic(2)")
    measured = program.run(cluster, threads=1, oversubscribe=True)
    assert _moves(program.simulate()) == _moves(measured)
