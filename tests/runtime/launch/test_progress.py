"""What a run tells of itself while it goes on, and what its ranks print."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.core.errors import RunError, RunInterrupted
from avial_lab.core.regions import Box
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.launch.cluster import run
from avial_lab.runtime.launch.processes import memory_kills
from avial_lab.runtime.launch.progress import (
    MOST_SHARE,
    PERIOD_S,
    ProgressReporter,
    RunState,
    TaskState,
)
from avial_lab.runtime.rank.journal import Entry, RankState
from avial_lab.runtime.rank.output import MOST_LINES, Output, output_path

pytestmark = pytest.mark.mpi

ADD_ONE = "for (int i = 0; i < 20; i++) ((int32_t *)a)[i] += 1;"
FOREVER = "for (volatile int64_t i = 0;; i++) ;"
UNTIL_TOLD = 'for (int told = 0; !told; usleep(1000)) told = access("{}", F_OK) == 0;'


@pytest.fixture
def a():
    return np.arange(20, dtype=np.int32)


def chain(build, a, body):
    """`first` on rank 0, sent to rank 1, where `second` does the body."""
    return build(
        {"a": a},
        tasks={"first": ADD_ONE, "second": body, "third": ADD_ONE},
        programs=["run first; send 0; sent 0", "post 0; received 0; run second; run third"],
        transfers=[("a", Box.whole(a.shape), 0, 1)],
        inputs=[(0, "a")],
        results=[(1, "a")],
    )


@pytest.fixture(params=["cluster", "mpiexec"])
def go(request):
    """`go(binary, arrays, …)`, on a cluster and without one."""
    if request.param == "mpiexec":
        return mpiexec.run
    cluster = request.getfixturevalue("cluster")
    return lambda binary, arrays, **rest: run(binary, arrays, cluster, **rest)


def states(state):
    return {task.name: task.state for task in state.tasks}


def test_tasks_run_and_are_done(go, build, a, tmp_path):
    """The second task waits until the first update has come: no update, no end."""
    told: list[RunState] = []

    def tell(state):
        told.append(state)
        if states(state).get("second") is TaskState.RUNNING:
            (tmp_path / "told").touch()

    binary = chain(build, a, UNTIL_TOLD.format(tmp_path / "told"))
    go(binary, {"a": a}, reporter=ProgressReporter(binary.manifest, tell))
    during = next(s for s in told if states(s).get("second") is TaskState.RUNNING)
    assert states(during) == {
        "first": TaskState.DONE, "second": TaskState.RUNNING, "third": TaskState.WAITING,
    }  # fmt: skip
    assert during.sent_bytes == during.planned_bytes == 80
    assert during.ranks[1].doing == "in task 'second' on cpu1"
    assert not during.ended
    assert "1 of 3 tasks done; running: second; 80 of 80 bytes sent" in str(during)
    last = told[-1]
    assert last.ended == "done"
    assert set(states(last).values()) == {TaskState.DONE}
    assert [rank.finished for rank in last.ranks] == [True, True]
    assert (a == np.arange(20) + 2).all()


def test_what_each_step_says(build, a, tmp_path):
    """Rank 0 runs, sends, and waits until that is sent."""
    manifest = chain(build, a, "").manifest
    said = []
    for step in range(-1, 3):
        entries = [Entry(RankState.RUNNING, step, 1, 1), Entry(RankState.RUNNING, -1, 2, 1)]
        reporter = ProgressReporter(manifest)
        reporter.begin(tmp_path, entries.__getitem__)
        state = reporter._state()
        said.append((states(state)["first"].value, state.ranks[0].sent_bytes))
    assert said == [("waiting", 0), ("running", 0), ("done", 0), ("done", 80)]


def loops(rounds: tuple[int, ...]) -> DerivedMessages:
    return DerivedMessages(
        entry="main", ranks=1, buffers=(), storages=(), inputs=(), results=(),
        phases=("S1", "S2"), rounds=rounds,
    )  # fmt: skip


def state_of(manifest, tmp_path, *, mark: int, begun: tuple[int, ...]) -> RunState:
    reporter = ProgressReporter(manifest)
    reporter.begin(tmp_path, lambda _: Entry(RankState.RUNNING, mark, 1, 1, 0, begun))
    return reporter._state()


def test_a_phase_is_over_when_the_next_has_begun(tmp_path):
    """The one that a rank is in does not count: a single long phase is not full from the start."""
    once = loops((1, 1))
    assert state_of(once, tmp_path, mark=-1, begun=()).share == 0
    assert state_of(once, tmp_path, mark=0, begun=(1,)).share == 0
    assert state_of(once, tmp_path, mark=1, begun=(1, 1)).share == 0.5
    often = state_of(loops((10, 10)), tmp_path, mark=1, begun=(5, 5))
    assert (often.ranks[0].step, often.ranks[0].steps, often.share) == (9, 20, 0.45)


def test_what_remains_is_told_where_phases_are_repeated(tmp_path):
    often = replace(state_of(loops((10, 10)), tmp_path, mark=0, begun=(6, 5)), elapsed_s=3.0)
    assert often.left_s == 3.0
    assert "about 3 s left" in str(often)
    for rounds, begun in (((1, 1), (1, 1)), ((10, 10), (1, 1)), ((), (6, 5))):
        state = state_of(loops(rounds), tmp_path, mark=1, begun=begun)
        assert state.left_s is None
        assert "left" not in str(state)


def test_of_phases_that_only_the_run_can_count_there_is_no_share(tmp_path):
    state = state_of(loops(()), tmp_path, mark=0, begun=(7, 6))
    assert (state.share, state.ranks[0].step, state.ranks[0].steps) == (None, 12, 0)


def test_the_task_that_failed_and_those_it_cost(go, build, a):
    told: list[RunState] = []
    binary = build(
        {"a": a},
        tasks={"bad": "*(volatile int *)8 = 1;", "spin": FOREVER},
        programs=["run bad", "run spin"],
    )
    with pytest.raises(RunError, match="in task 'bad' on cpu0"):
        go(binary, {"a": a}, reporter=ProgressReporter(binary.manifest, told.append))
    last = told[-1]
    assert states(last)["bad"] is TaskState.FAILED
    assert states(last)["spin"] in (TaskState.STOPPED, TaskState.WAITING)
    assert last.failed
    assert last.ended.startswith("rank 0 of 2 died of SIGSEGV")


def test_equal_errors_of_ranks_are_one(go, build, a):
    """Both send to a rank that is not there."""
    binary = build(
        {"a": a},
        tasks={},
        programs=["send 0", "send 0"],
        transfers=[("a", Box.whole(a.shape), 0, 99)],
    )
    with pytest.raises(RunError, match=r"ranks \[0-1\] of 2 failed sending") as caught:
        go(binary, {"a": a})
    assert caught.value.message.count("of 2 failed") == 1


def test_an_interrupt_says_what_it_stopped(go, build, a):
    binary = chain(build, a, FOREVER)
    told: list[RunState] = []

    def interrupt(state):
        told.append(state)
        if states(state).get("second") is TaskState.RUNNING and not state.ended:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(RunInterrupted, match="rank 1 was in task 'second' on cpu1") as caught:
        go(binary, {"a": a}, reporter=ProgressReporter(binary.manifest, interrupt))
    assert "the arrays are as they were" in str(caught.value)
    assert (a == np.arange(20)).all()
    assert states(told[-1])["second"] is TaskState.STOPPED


def test_who_watches_slowly_is_told_rarely(build, a):
    """Five times a second at most, and in no more than the share of the time that is allowed."""
    times: list[tuple[float, float]] = []

    def slow(state):
        began = time.monotonic()
        threading.Event().wait(0.02)
        times.append((began, time.monotonic()))
        if len(times) > 5 and not state.ended:
            signal.raise_signal(signal.SIGINT)

    binary = build({"a": a}, tasks={"t": FOREVER}, programs=["run t"], inputs=[(0, "a")])
    with pytest.raises(RunInterrupted):
        mpiexec.run(binary, {"a": a}, reporter=ProgressReporter(binary.manifest, slow))
    _, *during, _ = times
    for (began, ended), (following, _) in pairwise(during):
        assert following - ended >= max(PERIOD_S, (ended - began) / MOST_SHARE)


def test_a_kill_for_memory_is_told_from_another(build, a, monkeypatch):
    """The system counts its kills; nothing here is so large that it would really do one."""
    binary = build({"a": a}, tasks={"big": "raise(SIGKILL);"}, programs=["run big"])
    with pytest.raises(RunError, match="died of SIGKILL in task 'big'"):
        mpiexec.run(binary, {"a": a})
    assert isinstance(memory_kills(), int)
    counted = iter([3, 4])
    monkeypatch.setattr("avial_lab.runtime.launch.progress.memory_kills", lambda: next(counted))
    with pytest.raises(RunError, match="died of SIGKILL: memory ran out in task 'big'"):
        mpiexec.run(binary, {"a": a})


def test_journals_out_of_reach_are_not_made_up(build, a, tmp_path):
    told: list[RunState] = []
    reporter = ProgressReporter(build({"a": a}, tasks={}, programs=[""]).manifest, told.append)
    reporter.begin(tmp_path, None)
    reporter.end()
    assert not told[0].tasks
    assert "no live state: the ranks' journals are on other machines" in told[0].unknown


def test_a_restart_is_waited_for_with_a_word(build, cluster, a):
    binary = build({"a": a}, tasks={"t": "raise(SIGABRT);"}, programs=["run t"])
    with pytest.raises(RunError):
        run(binary, {"a": a}, cluster)
    told: list[RunState] = []
    fine = build({"a": a}, tasks={"t": ADD_ONE}, programs=["run t"])
    run(fine, {"a": a}, cluster, reporter=ProgressReporter(fine.manifest, told.append))
    assert "waiting for new engines" in str(told[0])


SAY = 'int puts(const char *); puts("{}");'


def printing(build, a, *bodies):
    return build(
        {"a": a},
        tasks={f"t{k}": body for k, body in enumerate(bodies)},
        programs=[f"run t{k}" for k in range(len(bodies))],
    )


def test_what_ranks_print_is_merged(go, build, a):
    binary = printing(build, a, SAY.format("alike"), SAY.format("alike"))
    for _ in range(2):  # a cluster's ranks go on writing where they were
        reporter = ProgressReporter(binary.manifest)
        go(binary, {"a": a}, reporter=reporter)
        assert str(reporter.printed) == "[0-1]  alike"


def test_what_a_rank_said_before_it_died(go, build, a, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    binary = printing(build, a, SAY.format("last words") + "raise(SIGABRT);", "")
    reporter = ProgressReporter(binary.manifest)
    with pytest.raises(RunError, match="SIGABRT"):
        go(binary, {"a": a}, reporter=reporter)
    assert reporter.printed.lines[0][0] == "last words"


def test_a_loop_that_prints_is_cut_short(build, cluster, a):
    body = 'int puts(const char *); for (int i = 0; i < 30000; i++) puts("again");'
    binary = printing(build, a, body, SAY.format("again"))
    reporter = ProgressReporter(binary.manifest)
    run(binary, {"a": a}, cluster, reporter=reporter)
    lines = str(reporter.printed).splitlines()
    assert lines[0] == "[0-1]  again"
    assert lines[1] == "[0]    again"
    assert lines[-1] == f"[0]    … {30000 - MOST_LINES:,} more lines"
    assert len(lines) == MOST_LINES + 1


def test_a_file_that_grows_without_end_is_emptied(build, a, tmp_path, monkeypatch):
    monkeypatch.setattr("avial_lab.runtime.rank.output._MOST_BYTES", 1000)
    path = output_path(tmp_path, 0)
    path.write_text("before this run\n")
    output = Output(tmp_path, 1)
    with path.open("a") as file:
        for _ in range(3):
            file.write("x\n" * 600)
            file.flush()
            output.printed()
            assert path.stat().st_size == 0
        reporter = ProgressReporter(build({"a": a}, tasks={}, programs=[""]).manifest)
        reporter.begin(tmp_path, None)
        file.write("z\n" * 600)
        file.flush()
        reporter._next = 0.0
        reporter.poll()  # also where nobody is told
        assert path.stat().st_size == 0
        file.write("half a line")
        file.flush()
    printed = output.printed()
    assert set(printed.lines[0]) == {"x"}
    assert printed.more[0] == 1800 - MOST_LINES
