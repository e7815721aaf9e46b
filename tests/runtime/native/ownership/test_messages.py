"""Which messages a phase costs, to the byte, and what goes by a collective."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from avial_lab.core.buffers import Storage
from avial_lab.core.paged import paged_bytes
from avial_lab.core.regions import Box, union
from avial_lab.planning.schedule import Piece
from avial_lab.plot import trace_text
from avial_lab.runtime.launch import cluster as clusters
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.rank.job import Options
from avial_lab.trace import EventKind, Move
from avial_lab.trace.analysis import links, shares
from tests.runtime.native.ownership.cases import CASES, JACOBI, doubles, random

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 20, 33])
def test_a_stencil_exchanges_one_row_a_direction_and_pair(ranks: int) -> None:
    plan = JACOBI.plan(random((20, 20), (20, 20))(), ranks)
    assert plan.complete
    assert {move.phase for move in plan.moves} == {"even", "odd"}
    neighbours = set(pairwise(rank for rank in range(ranks) if _rows(rank, ranks)))
    neighbours |= {(b, a) for a, b in neighbours}
    assert {(move.source, move.dest) for move in plan.moves} == neighbours
    # Seven sweeps: the first reads what the caller gave, of the others three are odd ones.
    for move in plan.moves:
        assert move.messages == 3
        assert move.nbytes == 3 * 18 * 8
    assert plan.bytes_moved == len(neighbours) * 6 * 18 * 8


def _rows(rank: int, ranks: int) -> list[int]:
    """The inner rows that the rank writes."""
    bounds = [k * 20 // ranks for k in range(ranks + 1)]
    bounds[0], bounds[-1] = 1, 19
    return [v for v in range(1, 19) if bounds[rank] <= v < bounds[rank + 1]]


def test_a_rank_is_given_its_part_and_the_rows_beside_it() -> None:
    plan = JACOBI.plan(random((20, 20), (20, 20))(), 4)
    given = {
        rank: union(p.box for p in plan.inputs if p.rank == rank and p.storage == "A")
        for rank in range(4)
    }
    assert given[0] == (Box((0, 0), (6, 20)),)
    assert given[1] == (Box((4, 0), (11, 20)),)
    assert given[3] == (Box((14, 0), (20, 20)),)
    # Two arrays of 7 rows, less the corners that nobody reads or writes.
    assert plan.held_bytes[1] == 2 * 7 * 20 * 8


def test_a_plan_counts_the_pages_that_its_ranks_touch() -> None:
    """A row of 700 numbers is more than a page: its ends alone are not."""
    shape = (40, 700)
    plan = JACOBI.plan(random(shape, shape)(), 4)
    for rank in range(4):
        held: dict[str, list[Box]] = {}
        for piece in (*plan.inputs, *plan.results):
            if piece.rank == rank:
                held.setdefault(piece.storage, []).append(piece.box)
        pages = sum(paged_bytes(Storage(n, shape, 8, (n,)), boxes) for n, boxes in held.items())
        assert plan.touched_bytes[rank] == plan.paged_bytes[rank] == pages
        assert plan.held_bytes[rank] < pages


def test_results_come_from_one_owner_each() -> None:
    plan = JACOBI.plan(random((20, 20), (20, 20))(), 2)
    assert plan.results == (
        Piece(0, "A", Box((1, 1), (10, 19))),
        Piece(1, "A", Box((10, 1), (19, 19))),
        Piece(0, "B", Box((1, 1), (10, 19))),
        Piece(1, "B", Box((10, 1), (19, 19))),
    )


def test_more_ranks_than_rows_leave_some_without_work() -> None:
    plan = JACOBI.plan(random((20, 20), (20, 20))(), 40)
    busy = {rank for rank in range(40) if _rows(rank, 40)}
    assert len(busy) == 18
    assert {rank for rank, held in enumerate(plan.held_bytes) if held} == busy
    assert {move.source for move in plan.moves} == busy


ROOT = doubles(
    """
enum { N = 50 };
static void root(const i64 *p, const i64 *r) { avial_write(0, BOX(0, 0, N, N), 1); }
static void each(const i64 *p, const i64 *r) {
    avial_read(0, BOX(0, p[0], N, N)); avial_write(1, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 2; t++) {
        PHASE(0, TASK, root, 0, SPACE(0, 1, 0), {
            for (i64 k = 0; k < N * N; k++) A[k] = k * (t + 1);
        });
        PHASE(1, REPLICATE, each, BOX(t), SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 k = t; k < N; k++) B[i] += A[k*N+(i+k)%N];
        });
    }
}
""",
    "AB",
    "root each",
)


def plan_of_root(ranks: int) -> set[Move]:
    return {Move("each", 0, rank, 2, (50 * 50 + 50 * 49) * 8) for rank in range(1, ranks)}


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "collective"), [(2, False), (3, True), (7, True)])
def test_what_everyone_reads_of_one_rank_is_broadcast(ranks, collective, cluster) -> None:
    arrays = random((50, 50), (50,))()
    want = arrays["B"].copy()
    trace = clusters.run(ROOT.binary(arrays, ranks), arrays, cluster)
    for t in range(2):
        a = np.arange(2500.0).reshape(50, 50) * (t + 1)
        for column in range(t, 50):
            want += a[column, (np.arange(50) + column) % 50]
    # The program does not say that it reads B, and ranks have what they were not given poisoned.
    assert set(trace.moves) == plan_of_root(ranks) == set(ROOT.plan(arrays, ranks).moves)
    sends = [event for event in trace.events if event.kind is EventKind.SEND]
    assert all(("all ranks" in event.name) == collective for event in sends)
    assert len(sends) == 2 * (1 if collective else ranks - 1)
    assert trace.bytes_sent == sum(move.nbytes for move in trace.moves)


@pytest.mark.mpi
def test_what_everyone_reads_of_everyone_is_gathered(cluster: Cluster) -> None:
    case = CASES["matrix_product_of_what_all_wrote"]
    arrays = case.make()
    trace = clusters.run(case.program.binary(arrays, 3), arrays, cluster)
    sends = [event for event in trace.events if event.kind is EventKind.SEND]
    # Of B, two of six rows are each rank's.
    assert {(move.phase, move.nbytes) for move in trace.moves} == {("gemm", 3 * 2 * 9 * 8)}
    assert [event.name for event in sends] == ["send B to all ranks for gemm"] * 9
    assert {event.nbytes for event in sends} == {2 * 2 * 9 * 8}


@pytest.mark.mpi
def test_a_trace_shows_the_inner_part_before_the_wait(cluster: Cluster) -> None:
    arrays = random((20, 20), (20, 20))()
    trace = clusters.run(JACOBI.binary(arrays, 2), arrays, cluster)
    mine = [event for event in trace.events if event.rank == 0]
    kinds = [(event.kind, event.name) for event in mine]
    task, send, wait = EventKind.TASK, EventKind.SEND, EventKind.WAIT
    later = [
        (EventKind.COPY, "pack B for odd"),
        (send, "send B to rank 1 for odd"),
        (task, "odd"),
        (wait, "wait for B from rank 1, for odd"),
        (task, "odd"),
    ]
    assert kinds[0] == (task, "even"), "the caller's rows are there from the start"
    assert kinds[1:6] == later
    assert [mine[k].what for k in (2, 4)] == ["B[9:10, …]", "B[10:11, …]"]
    assert dict(trace.turns) == {"even": 4, "odd": 3}
    assert trace.bytes_sent == sum(move.nbytes for move in trace.moves) == 12 * 18 * 8
    assert {event.device for event in trace.events if event.kind is task} == {"cpu0", "cpu1"}


@pytest.mark.mpi
@pytest.mark.parametrize(
    "name",
    ["stencil_in_two_dimensions", "matrix_product_of_what_all_wrote", "column_sums_shared_out"],
)
def test_every_message_has_its_two_ends(name: str, cluster: Cluster) -> None:
    """None is received before it was sent, by more than the clocks' error; what is waited for has
    been sent by somebody; the sums are those of the events.
    """
    case = CASES[name]
    arrays = case.make()
    trace = clusters.run(case.program.binary(arrays, 3), arrays, cluster)
    ends = links(trace.events)
    assert ends
    for sent, received in ends:
        assert received.end_s >= sent.start_s - trace.clock_error_s
        assert sent.peer in (received.rank, None)
        assert received.peer in (sent.rank, None)
    waits = [event for event in trace.events if event.kind is EventKind.WAIT]
    assert {id(event) for event in waits} == {id(received) for _, received in ends}
    assert not trace.dropped
    for kind in EventKind:
        listed = [event for event in trace.events if event.kind is kind]
        sums = [total for total in trace.totals if total.kind is kind]
        assert sum(total.events for total in sums) == len(listed)
        spent = sum(event.duration_s for event in listed)
        assert sum(total.seconds for total in sums) == pytest.approx(spent, abs=1e-8 * len(listed))


@pytest.mark.mpi
def test_events_that_are_not_kept_are_counted(cluster: Cluster) -> None:
    arrays = random((20, 20), (20, 20))()
    few = Options(most_events=9)
    cut = clusters.run(JACOBI.binary(arrays, 2), arrays, cluster, options=few)
    whole = clusters.run(JACOBI.binary(arrays, 2), arrays, cluster)
    assert all(sum(event.rank == rank for event in cut.events) >= 5 for rank in (0, 1))
    counted = {(t.rank, t.phase, t.kind): (t.events, t.nbytes) for t in whole.totals}
    assert {(t.rank, t.phase, t.kind): (t.events, t.nbytes) for t in cut.totals} == counted
    rows = sum(
        events for (_, _, kind), (events, _) in counted.items() if kind is not EventKind.COPY
    )
    assert sum(cut.dropped) == rows - 10
    assert cut.bytes_sent == whole.bytes_sent
    assert cut.turns == whole.turns
    for share in shares(cut):
        assert sum(share.parts) == pytest.approx(cut.makespan_s)
    assert "were not kept" in trace_text(cut)


@pytest.mark.mpi
def test_the_same_under_plain_mpiexec() -> None:
    case = CASES["stencil_in_two_dimensions"]
    arrays, want = case.make(), case.make()
    case.meaning(want, 3)
    trace = mpiexec.run(case.program.binary(arrays, 3), arrays)
    np.testing.assert_array_equal(arrays["A"], want["A"])
    np.testing.assert_array_equal(arrays["B"], want["B"])
    assert set(trace.moves) == set(case.program.plan(arrays, 3).moves)
    assert trace.events
