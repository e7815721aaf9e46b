"""Binaries on a real cluster: values in every kind of array, and every way a run can fail."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import psutil
import pytest

from avial_lab.core.errors import BindError, CellSpan, ClusterError, RunError
from avial_lab.core.regions import Box
from avial_lab.runtime.launch import lines, mpiexec
from avial_lab.runtime.launch.cluster import ClusterState, run
from avial_lab.runtime.rank.job import Options
from avial_lab.trace import EventKind
from tests.waiting import assert_gone, with_limits

pytestmark = pytest.mark.mpi

ADD_ONE = "for (int i = 0; i < 20; i++) ((int32_t *)a)[i] += 1;"
FOREVER = "for (volatile int64_t i = 0;; i++) ;"


def ring(build, a, body, *, ranks=3):
    """`body` on `a` at rank 0, then sent on and done again at every other rank; the last one's `a`
    comes back.
    """
    last = ranks - 1
    receive = [f"post {r - 1}; received {r - 1}; run t{r}" for r in range(1, ranks)]
    send = [f"send {r}; sent {r}" for r in range(last)]
    programs = ["; ".join(part) for part in zip(["run t0", *receive], [*send, ""], strict=True)]
    return build(
        {"a": a},
        tasks={f"t{r}": body for r in range(ranks)},
        programs=programs,
        transfers=[("a", Box.whole(a.shape), r, r + 1) for r in range(last)],
        inputs=[(0, "a")],
        results=[(last, "a")],
    )


def alone(build, arrays, body, *, results=("a",), **options):
    """`body` on rank 0, with no messages."""
    return build(
        arrays,
        tasks={"t": body},
        programs=["run t"],
        inputs=[(0, name) for name in options.pop("inputs", ("a",))],
        results=[(0, name) for name in results],
        **options,
    )


def assert_usable(build, cluster):
    a = np.arange(20, dtype=np.int32)
    run(ring(build, a, ADD_ONE), {"a": a}, cluster)
    assert (a == np.arange(20) + 3).all()


def test_three_ranks_and_their_trace(build, cluster):
    a = np.arange(20, dtype=np.int32)
    trace = run(ring(build, a, ADD_ONE), {"a": a}, cluster)
    assert (a == np.arange(20) + 3).all()
    kinds = [event.kind for event in trace.events if event.rank == 1]
    assert kinds == [EventKind.POST, EventKind.WAIT, EventKind.TASK, EventKind.SEND, EventKind.WAIT]
    tasks = [event for event in trace.events if event.kind is EventKind.TASK]
    assert [(t.name, t.device) for t in tasks] == [("t0", "cpu0"), ("t1", "cpu1"), ("t2", "cpu2")]
    assert trace.bytes_sent == 160
    assert trace.ranks == 3
    # One clock: no task starts before the one that sends to it has ended.
    assert all(a.end_s <= b.start_s for a, b in pairwise(tasks))
    assert min(event.start_s for event in trace.events) == 0.0


def test_devices_and_status(cluster):
    devices = [(d.name, d.rank, d.emulated) for d in cluster.topology.devices]
    assert devices == [
        ("cpu0", 0, False),
        ("cpu1", 1, False),
        ("cpu2", 2, False),
        ("gpu0", 2, True),
    ]
    assert cluster.status.state is ClusterState.READY
    assert "cluster of 3 engines, ready" in str(cluster.status)


@pytest.mark.parametrize("ranks", [1, 2])
def test_fewer_ranks_than_engines(build, cluster, ranks):
    a = np.arange(20, dtype=np.int32)
    run(ring(build, a, ADD_ONE, ranks=ranks), {"a": a}, cluster)
    assert (a == np.arange(20) + ranks).all()


def test_more_ranks_than_engines(build, cluster):
    a = np.arange(20, dtype=np.int32)
    with pytest.raises(ClusterError, match="needs 5 ranks, and the cluster has 3 engines"):
        run(ring(build, a, ADD_ONE, ranks=5), {"a": a}, cluster)
    assert cluster.status.state is ClusterState.READY


def test_large_messages_arrive_whole(build, cluster):
    """8 MiB: past every eager protocol, and too large to share a parcel."""
    a = np.arange(1 << 20, dtype=np.int64)
    body = "for (int i = 0; i < 1 << 20; i++) ((int64_t *)a)[i] += 1;"
    run(ring(build, a, body), {"a": a}, cluster)
    assert (a == np.arange(1 << 20) + 3).all()


INVERT = "for (int64_t i = 0; i < {n}; i++) a[i] = ~a[i];"

LAYOUTS = {
    "contiguous": lambda x: x,
    "every other column": lambda x: x[:, ::2],
    "fortran": np.asfortranarray,
    "backwards": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "broadcast row": lambda x: x[2],
    "0-d": lambda x: x[1, 1, ...].reshape(()) if x.ndim == 2 else x,
    "empty": lambda x: x[:0],
    "rank 8": lambda x: x[:, :8].reshape(2, 3, 1, 2, 1, 2, 1, 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_come_back_whatever_the_strides(build, cluster, layout):
    whole = np.arange(6 * 9, dtype=np.int32).reshape(6, 9)
    before = whole.copy()
    a = LAYOUTS[layout](whole)
    want = ~a.copy()
    run(alone(build, {"a": a}, INVERT.format(n=a.nbytes)), {"a": a}, cluster)
    assert (a == want).all()
    if np.shares_memory(a, whole):
        a[...] = ~a
        assert (whole == before).all(), "memory outside the view was written"


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int64", "float16", ml_dtypes.bfloat16, "float32", "complex64", "complex128"],
)
def test_every_dtype_passes_unchanged(build, cluster, dtype):
    a = np.array([1, 0, 1, 1, 0, 0, 1], dtype=dtype)[::-1]
    want = a.copy()
    a2 = np.zeros(7, dtype)
    body = f"memcpy(b, a, {a.nbytes});"
    run(
        alone(build, {"a": a, "b": a2}, body, results=("b",)),
        {"a": a, "b": a2},
        cluster,
        timeout=60,
    )
    assert a2.tobytes() == want.tobytes()


def test_nan_keeps_its_bits(build, cluster):
    a = np.array([0x7FF8_0000_DEAD_BEEF, 0xFFF0_0000_0000_0001], np.uint64).view(np.float64)
    b = np.zeros(2)
    run(
        alone(build, {"a": a, "b": b}, "memcpy(b, a, 16);", results=("b",)),
        {"a": a, "b": b}, cluster,
    )  # fmt: skip
    assert b.tobytes() == a.tobytes()


def test_two_names_for_one_memory(build, cluster):
    """a = x[0:10], b = x[5:15]: one storage of 60 bytes, and what is written through one shows in
    the other.
    """
    x = np.arange(15, dtype=np.int32)
    arrays = {"a": x[0:10], "b": x[5:15]}
    binary = alone(build, arrays, "((int32_t *)a)[7] = 70; ((int32_t *)a)[12] = 120;")
    run(binary, arrays, cluster)
    want = np.arange(15, dtype=np.int32)
    want[7], want[12] = 70, 120
    assert (x == want).all()
    assert arrays["b"][2] == 70


def test_only_the_pieces_a_rank_needs_travel(build, cluster):
    """Rank 1 gets a[5:10] alone; the rest of its memory is poisoned and comes back so."""
    a = np.arange(20, dtype=np.int32)
    b = np.zeros(20, dtype=np.int32)
    binary = build(
        {"a": a, "b": b},
        tasks={"t": "memcpy(b, a, 80);"},
        programs=["", "run t"],
        inputs=[(1, "a", Box((5,), (10,)))],
        results=[(1, "b")],
    )
    run(binary, {"a": a, "b": b}, cluster, options=Options(poison=True))
    assert (b[5:10] == a[5:10]).all()
    assert (b.view(np.uint32)[:5] == 0xA5A5A5A5).all()


def test_many_pieces(build, cluster):
    """More pieces than ipyparallel takes apart in one message (64)."""
    a = np.arange(200, dtype=np.int32)
    rows = [(0, "a", Box((k,), (k + 1,))) for k in range(0, 200, 2)]
    binary = build(
        {"a": a},
        tasks={"t": "for (int i = 0; i < 200; i++) ((int32_t *)a)[i] *= 2;"},
        programs=["run t"],
        inputs=rows,
        results=rows,
    )
    run(binary, {"a": a}, cluster)
    assert (a[::2] == 2 * np.arange(200)[::2]).all()
    assert (a[1::2] == np.arange(200)[1::2]).all()


def test_a_program_is_sent_once(build, cluster):
    a = np.arange(20, dtype=np.int32)
    binary = ring(build, a, ADD_ONE)
    for _ in range(3):
        run(binary, {"a": a}, cluster)
    assert (a == np.arange(20) + 9).all()
    with cluster.turn() as (engines, _):
        assert all(binary.key in keys for keys in engines.loaded.values())
        kept = [engines.client.results, engines.client.history, *(v.history for v in engines.views)]
        assert not any(kept), "ipyparallel keeps a record of every call"


# --- what is refused before anything runs ---------------------------------------------------------


def test_read_only(build, cluster):
    a = np.arange(20, dtype=np.int32)
    binary = alone(build, {"a": a}, ADD_ONE)
    a.flags.writeable = False
    with pytest.raises(BindError, match="'a', which is read-only"):
        run(binary, {"a": a}, cluster)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "needs the array 'a'"),
        ({"a": np.zeros(21, np.int32)}, "is 21xi32, and the program was compiled for 20xi32"),
        ({"a": np.zeros(20, np.float32)}, "is 20xf32"),
        ({"a": [0] * 20}, "not a NumPy array"),
    ],
)
def test_other_arrays_than_compiled_for(build, cluster, arrays, message):
    binary = alone(build, {"a": np.zeros(20, np.int32)}, ADD_ONE)
    with pytest.raises(BindError, match=message):
        run(binary, arrays, cluster)


def test_other_overlaps_than_compiled_for(build, cluster):
    x = np.arange(15, dtype=np.int32)
    binary = alone(build, {"a": x[0:10], "b": x[5:15]}, "", results=())
    with pytest.raises(BindError, match="does not share memory"):
        run(binary, {"a": x[0:10].copy(), "b": x[5:15].copy()}, cluster)


def test_a_program_for_another_machine(build, cluster):
    a = np.arange(20, dtype=np.int32)
    binary = alone(build, {"a": a}, ADD_ONE)
    broken = type(binary)("f" * 64, b"not ELF at all", {}, binary.manifest)
    with pytest.raises(RunError, match="could not be loaded"):
        run(broken, {"a": a}, cluster)
    assert cluster.status.state is ClusterState.READY


@pytest.mark.parametrize("target", ["cluster", "mpiexec"])
def test_a_program_for_a_better_cpu(build, cluster, target):
    """It would die of SIGILL, on whichever rank comes to such an instruction first."""
    arrays = {"a": np.zeros(4, np.float32)}
    binary = alone(build, arrays, "a[0] = 1;")
    manifest = replace(binary.manifest, instruction_sets=("avx2048f",))
    program = replace(binary, key="for a better CPU", manifest=manifest)
    before = cluster.status.facts
    with pytest.raises(RunError, match="lacks avx2048f") as caught:
        run(program, arrays, cluster) if target == "cluster" else mpiexec.run(program, arrays)
    assert platform.node() in str(caught.value)
    assert "compile it on that machine" in str(caught.value)
    assert cluster.status.facts == before
    assert not arrays["a"].any()


# --- what costs the engines -----------------------------------------------------------------------


@pytest.mark.quick("*-SIGSEGV")
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("*(volatile int *)8 = 1;", "SIGSEGV"),
        ("volatile int z = 0; ((volatile int *)a)[0] = ((volatile int *)a)[5] / z;", "SIGFPE"),
        ("raise(SIGABRT);", "SIGABRT"),
    ],
)
def test_a_crash_names_rank_signal_task_and_place(build, cluster, body, name):
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a},
        tasks={"mul": body, "first": ADD_ONE},
        programs=["run first; post 0; received 0", "run mul", ""],
        transfers=[("a", Box.whole(a.shape), 1, 0)],
        inputs=[(0, "a"), (1, "a")],
        results=[(0, "a")],
    )
    span = CellSpan("In [4]", "", 7, 3)
    with pytest.raises(RunError, match=f"rank 1 of 3 died of {name} in task 'mul'") as caught:
        run(binary, {"a": a}, cluster, spans={"mul": span})
    assert caught.value.span == span
    assert (a == np.arange(20)).all()
    assert_usable(build, cluster)


def test_a_killed_engine_is_named_while_the_others_wait(build, cluster):
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a},
        tasks={"loop": FOREVER},
        programs=["run loop", "post 0; received 0", "barrier"],
        transfers=[("a", Box.whole(a.shape), 0, 1)],
    )
    with cluster.turn() as (engines, number):
        pass
    killer = threading.Thread(target=_kill_in_second_step, args=(engines, number + 1, 1))
    killer.start()
    with pytest.raises(RunError, match=r"rank 1 of 3 died of SIGKILL receiving a\[0:20\]"):
        run(binary, {"a": a}, cluster)
    killer.join()
    assert_usable(build, cluster)


def halves(build, a):
    """Ranks 0 and 1 each turn every bit of their half of the large array."""
    middle = len(a) // 2
    boxes = [Box((0,), (middle,)), Box((middle,), a.shape)]
    bounds = [(box.start[0], box.stop[0]) for box in boxes]
    body = "for (int64_t i = {}; i < {}; i++) ((int64_t *)a)[i] = ~((int64_t *)a)[i];"
    return build(
        {"a": a},
        tasks={f"t{r}": body.format(*those) for r, those in enumerate(bounds)},
        programs=["run t0", "run t1", ""],
        inputs=[(r, "a", box) for r, box in enumerate(boxes)],
        results=[(r, "a", box) for r, box in enumerate(boxes)],
    )


LARGE = 1 << 20


def test_a_rank_that_dies_while_arrays_come_back_leaves_them_whole(build, cluster, monkeypatch):
    """One half is here already; the other is more than a line takes ahead of its reader."""
    size = 4 * LARGE
    a = np.arange(size)
    binary = halves(build, a)
    run(binary, {"a": a}, cluster)
    assert (a == ~np.arange(size)).all()
    with cluster.turn() as (engines, _):
        pass
    receive, answered = lines.receive, []

    def receives(line, room):
        answer = receive(line, room)
        others = [rank for rank in (0, 1) if engines.lines.ends[rank] is not line]
        if len(others) == 1:  # rank 2 has none of the array
            answered.append(line)
            engines.processes[others[0]].kill()
            engines.processes[others[0]].wait()
        return answer

    monkeypatch.setattr(lines, "receive", receives)
    with pytest.raises(RunError, match="died"):
        run(binary, {"a": a}, cluster)
    monkeypatch.undo()
    assert len(answered) == 1
    assert (a == ~np.arange(size)).all()
    run(binary, {"a": a}, cluster)
    assert (a == np.arange(size)).all()


@pytest.mark.slow
def test_a_stopped_rank_that_takes_no_array_is_told(build, cluster):
    a = np.arange(LARGE)
    binary = halves(build, a)
    run(binary, {"a": a}, cluster)
    with cluster.turn() as (engines, _):
        engines.processes[1].suspend()
    with pytest.raises(RunError, match="rank 1"):
        run(binary, {"a": a}, cluster, timeout=2)
    assert (a == ~np.arange(LARGE)).all()
    assert_usable(build, cluster)


def test_an_engine_killed_between_runs_costs_nothing(build, cluster):
    with cluster.turn() as (engines, _):
        pass
    engines.processes[1].kill()
    engines.processes[1].wait()
    assert_usable(build, cluster)


def test_engines_that_could_not_be_started_are_tried_again(build, cluster, monkeypatch):
    def fail(*_, **__):
        raise ClusterError("no host answers")

    with cluster.turn() as (engines, _):
        pass
    engines.processes[1].kill()
    engines.processes[1].wait()
    with monkeypatch.context() as broken:
        broken.setattr("avial_lab.runtime.launch.cluster.start_engines", fail)
        with pytest.raises(ClusterError, match="no host answers"):
            assert_usable(build, cluster)
        assert cluster.status.state is ClusterState.BROKEN
    assert_usable(build, cluster)


def test_a_failed_mpi_call_is_reported_while_the_others_wait(build, cluster):
    """Rank 1 sends to a rank that is not there; rank 2 waits for a message that nobody sends."""
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a},
        tasks={"add": ADD_ONE},
        programs=["", "run add; send 0", "post 1; received 1"],
        transfers=[("a", Box.whole(a.shape), 1, 99), ("a", Box.whole(a.shape), 1, 2)],
        inputs=[(1, "a")],
        results=[(1, "a")],
    )
    with pytest.raises(
        RunError, match=r"rank 1 of 3 failed sending a\[0:20\] to rank 99.*[Ii]nvalid rank"
    ):
        run(binary, {"a": a}, cluster)
    assert (a == np.arange(20)).all()
    assert_usable(build, cluster)


def test_a_hang_is_ended_by_the_time_limit(build, cluster):
    a = np.arange(20, dtype=np.int32)
    binary = build(
        {"a": a},
        tasks={"spin": FOREVER},
        programs=["run spin", "post 0; received 0", ""],
        transfers=[("a", Box.whole(a.shape), 0, 1)],
    )
    span = CellSpan("In [4]", "", 7, 3)

    def stopped(limit_s):
        with pytest.raises(RunError, match=rf"did not finish within {limit_s:g} s") as caught:
            run(binary, {"a": a}, cluster, timeout=limit_s, spans={"spin": span})
        return caught.value

    error = with_limits(stopped, lambda error: error.message.count(" is ") == 2)
    assert "rank 0 is in task 'spin'" in error.message
    assert "rank 1 is receiving a[0:20] from rank 0" in error.message
    assert "rank 2" not in error.message
    assert error.span == span
    assert_usable(build, cluster)


def test_two_threads_take_turns(build, cluster):
    arrays = [np.arange(20, dtype=np.int32) for _ in range(2)]
    binary = ring(build, arrays[0], ADD_ONE)

    def three_runs(a):
        for _ in range(3):
            run(binary, {"a": a}, cluster)

    threads = [threading.Thread(target=three_runs, args=(a,)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == np.arange(20) + 9).all() for a in arrays)


CHILD = """
import signal, sys, threading, time
import numpy as np
from avial_lab.runtime.launch.cluster import Cluster, run
from tests.runtime.conftest import stand_in

a = np.arange(20, dtype=np.int32)
ends = dict(inputs=[(0, "a")], results=[(0, "a")])
spin = stand_in({{"a": a}}, tasks={{"t": {spin!r}}}, programs=["run t"], **ends)
add = stand_in({{"a": a}}, tasks={{"t": {add!r}}}, programs=["run t"], **ends)
cluster = Cluster.start(cpu=1, gpu=0)
print("pid", cluster.status.facts[0].pid, flush=True)

def tell():
    while (entry := cluster._engines.result().entry(0)) is None or entry.step < 0:
        time.sleep(0.01)
    print("running", flush=True)

threading.Thread(target=tell, daemon=True).start()
try:
    run(spin, {{"a": a}}, cluster)
except KeyboardInterrupt:
    assert (a == np.arange(20)).all()
    run(add, {{"a": a}}, cluster)
    assert (a == np.arange(20) + 1).all()
    print("usable", flush=True)
"""


@pytest.fixture
def child():
    """A Python of its own that runs a task that never ends, once it is in it; (process, pid of the
    engine).
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD.format(spin=FOREVER, add=ADD_ONE)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3], start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        engine = int(process.stdout.readline().split()[1])
        family = psutil.Process(process.pid).children(recursive=True)
        assert process.stdout.readline() == "running\n"
        yield process, engine, family
        process.kill()
    assert_gone(family)


def test_ctrl_c_ends_the_run_and_leaves_a_usable_cluster(child):
    process, _, _ = child
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "usable\n"
    assert process.wait() == 0


def test_nothing_is_left_when_the_caller_is_killed(child):
    """The guardian's work; the fixture looks at the whole family."""
    process, engine, family = child
    assert engine in [p.pid for p in family]
    process.kill()


def _kill_in_second_step(engines, run_number, rank):
    """SIGKILL for a rank as soon as its journal says that it is in step 1 of that run."""
    while (entry := engines.entry(rank)) is None or (entry.run, entry.step) != (run_number, 1):
        time.sleep(0.01)
    os.kill(entry.pid, signal.SIGKILL)
