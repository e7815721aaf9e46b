"""Binaries under plain mpiexec."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from avial_lab.core.errors import BindError, CellSpan, RunError
from avial_lab.core.regions import Box
from avial_lab.runtime.launch import mpiexec
from avial_lab.trace import EventKind

pytestmark = pytest.mark.mpi

ADD_ONE = "int32_t *x = (int32_t *)a; for (int i = 0; i < 20; i++) x[i] += 1;"


def test_one_rank_without_messages(build):
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a}, tasks={"t": ADD_ONE}, programs=["run t"], inputs=[(0, "a")], results=[(0, "a")]
    )
    trace = mpiexec.run(binary, {"a": a})
    assert (a == np.arange(20) + 1).all()
    assert [event.name for event in trace.events] == ["t"]


@pytest.mark.quick("3")
@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_a_ring_passes_every_rank_in_turn(build, ranks):
    """rank 0 ──► 1 ──► … ──► n-1, and each adds one."""
    a = np.arange(20, dtype=np.int32)
    box = Box.whole(a.shape)
    last = ranks - 1
    middle = [
        f"post {r - 1}; received {r - 1}; run t{r}; send {r}; sent {r}" for r in range(1, last)
    ]
    binary = build(
        {"a": a},
        tasks={f"t{r}": ADD_ONE for r in range(ranks)},
        programs=[
            "run t0; send 0; sent 0",
            *middle,
            f"post {last - 1}; received {last - 1}; run t{last}",
        ],
        transfers=[("a", box, r, r + 1) for r in range(last)],
        inputs=[(0, "a")],
        results=[(last, "a")],
    )
    trace = mpiexec.run(binary, {"a": a})
    assert (a == np.arange(20) + ranks).all()
    tasks = [event for event in trace.events if event.kind is EventKind.TASK]
    assert [event.name for event in tasks] == [f"t{r}" for r in range(ranks)]
    assert trace.bytes_sent == last * 80
    assert all(a.end_s <= b.start_s for a, b in pairwise(tasks))


def test_a_crash_names_rank_signal_task_and_place(build):
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a},
        tasks={"mul": "*(volatile int *)8 = 1;"},
        programs=["post 0; received 0", "run mul", ""],
        transfers=[("a", Box.whole(a.shape), 1, 0)],
        inputs=[(1, "a")],
        results=[(0, "a")],
    )
    span = CellSpan("In [4]", "", 7, 3)
    with pytest.raises(RunError, match=r"rank 1 of 3 died of SIGSEGV in task 'mul'") as caught:
        mpiexec.run(binary, {"a": a}, spans={"mul": span})
    assert caught.value.span == span
    assert (a == np.arange(20)).all()


def test_a_read_only_array_is_refused_before_anything_runs(build):
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a}, tasks={"t": ADD_ONE}, programs=["run t"], inputs=[(0, "a")], results=[(0, "a")]
    )
    a.flags.writeable = False
    with pytest.raises(BindError, match="read-only"):
        mpiexec.run(binary, {"a": a})
