"""What travels, and what is written back: pure functions, no ranks."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.artifact.manifest import DerivedMessages, KnownMessages
from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.core.toolchain import tool
from avial_lab.planning.schedule import Piece, Step, StepKind, Transfer
from avial_lab.runtime.launch.processes import environment, mpiexec_options
from avial_lab.runtime.rank import engine, exchange
from avial_lab.runtime.rank.clock import Reading, Times, aligned
from avial_lab.runtime.rank.journal import read_death
from avial_lab.runtime.rank.outcome import Outcome, describe_step
from avial_lab.runtime.rank.parcels import ALIGNMENT, SMALL, aligned_empty, pack, unpack
from avial_lab.runtime.rank.traces import trace_of
from avial_lab.trace.analysis import links

SIZES = st.lists(st.one_of(st.integers(0, 200), st.sampled_from([SMALL - 1, SMALL, SMALL + 5])))


@given(SIZES)
def test_pieces_come_out_of_their_parcels_unchanged(sizes):
    rng = np.random.default_rng(0)
    pieces = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    parcels = pack(pieces)
    assert len(parcels) == 1 + sum(size >= SMALL for size in sizes)
    again = unpack(parcels, sizes)
    assert all(np.array_equal(a, b) for a, b in zip(pieces, again, strict=True))


@pytest.mark.parametrize("nbytes", [0, 1, 63, 1000])
def test_memory_is_aligned(nbytes):
    memory = aligned_empty(nbytes)
    assert memory.nbytes == nbytes
    assert memory.ctypes.data % ALIGNMENT == 0 or nbytes == 0


def test_a_ranks_own_arrays_begin_in_different_places_of_a_page():
    """A load waits for a store to another array if their addresses end in the same twelve bits."""
    storages = tuple(Storage(name, (64, 64), 8, (name,)) for name in "abc")
    own = DerivedMessages(
        entry="f", ranks=1, buffers=(), storages=storages, inputs=(), results=(), phases=(),
        uses_mpi=False,
    )  # fmt: skip
    memory = engine.allocate(own, (), (), kept={})
    places = [each.ctypes.data % mmap.PAGESIZE for each in memory.values()]
    assert len(set(places)) == 3
    assert all(place % ALIGNMENT == 0 for place in places)
    assert [each.nbytes for each in memory.values()] == [64 * 64 * 8] * 3


@pytest.fixture
def manifest(build):
    a = np.zeros(4, np.int32)
    rows = [(0, "a", Box((k,), (k + 1,))) for k in range(4)]
    return build({"a": a}, tasks={"t": ""}, programs=["run t"], results=rows).manifest


def test_a_ctrl_c_while_results_are_written_waits_until_they_are(manifest, monkeypatch):
    a = np.zeros(4, np.int32)
    write_box = exchange.write_box

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        write_box(*arguments)

    monkeypatch.setattr(exchange, "write_box", interrupted)
    pieces = [np.array([k + 1], np.int32).view(np.uint8) for k in range(4)]
    with pytest.raises(KeyboardInterrupt):
        exchange.caller_arrays(manifest, {"a": a}).write_results(
            zip(manifest.results, pieces, strict=True)
        )
    assert a.tolist() == [1, 2, 3, 4]
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)  # the usual handler is back


def two_ranks() -> KnownMessages:
    """rank 0: run x, send    rank 1: post, received, run y."""
    return KnownMessages(
        entry="main",
        ranks=2,
        buffers=(),
        storages=(),
        programs=(
            (Step(StepKind.RUN, "x"), Step(StepKind.SEND, transfer=0)),
            (
                Step(StepKind.POST, transfer=0),
                Step(StepKind.WAIT_RECEIVED, transfer=0),
                Step(StepKind.RUN, "y"),
            ),
        ),
        transfers=(Transfer(0, "a", Box((0,), (4,)), 0, 1, "x", "y", 16),),
        inputs=(Piece(0, "a", Box((0,), (4,))),),
        results=(),
        devices={"x": "cpu0", "y": "gpu0"},
        kinds={"cpu0": "cpu", "gpu0": "emulated-gpu"},
    )


def stamps(*seconds: float) -> np.ndarray:
    """As compiled code leaves them: a start and a middle for each step, and the end."""
    return np.array([[int(s), round(s % 1 * 1e9)] for s in seconds])


def test_a_trace_is_on_rank_0s_clock_and_starts_at_0():
    """Rank 1's clock is 50 s behind, and it unpacks what it got."""
    zero = Times(stamps(100, 0, 101, 0, 101.5, 0))
    one = Times(
        stamps(50.25, 0, 50.5, 51.75, 52, 0, 53, 0), (Reading(1, 50e9, 7.0), Reading(9, 50e9, 5.0))
    )
    trace = trace_of(two_ranks(), [Outcome(0, zero), Outcome(1, one)])
    assert [(e.kind.value, e.rank, e.name, e.start_s, e.end_s, e.nbytes) for e in trace.events] == [
        ("task", 0, "x", 0.0, 1.0, 0),
        ("post", 1, "ready to receive a[0:4] from rank 0", 0.25, 0.5, 16),
        ("wait", 1, "wait for a[0:4] from rank 0", 0.5, 1.75, 16),
        ("send", 0, "send a[0:4] to rank 1", 1.0, 1.5, 16),
        ("copy", 1, "unpack a[0:4] from rank 0", 1.75, 2.0, 16),
        ("task", 1, "y", 2.0, 3.0, 0),
    ]
    assert trace.bytes_sent == 16
    assert trace.clock_error_s == 7e-9
    assert [(s.rank, r.rank) for s, r in links(trace.events)] == [(0, 1)]
    assert trace.label == "measured, GPU emulated"


def test_a_clock_that_drifts_is_set_right_between_two_readings():
    """Rank 1's clock runs slow: 100 ns behind at its 1000, 300 ns at its 2000."""
    readings = (Reading(1000, 100.0, 10.0), Reading(2000, 300.0, 12.0))
    assert aligned(np.array([1000, 1500, 2000, 2500]), readings).tolist() == [
        1100, 1700, 2300, 2900
    ]  # fmt: skip


def test_where_a_rank_is_in_words():
    manifest = two_ranks()
    assert describe_step(manifest, 0, -1) == "before its first task"
    assert describe_step(manifest, 0, 0) == "in task 'x' on cpu0"
    assert describe_step(manifest, 0, 1) == "sending a[0:4] to rank 1 (for task 'y')"
    assert describe_step(manifest, 1, 1) == "receiving a[0:4] from rank 0 (of task 'x')"


@pytest.mark.parametrize(
    ("text", "death"),
    [("0\n", None), ("3\n", "exit code 3"), ("139\n", "SIGSEGV"), ("13", None), ("", None)],
)
def test_what_a_witness_wrote(tmp_path, text, death):
    (tmp_path / "2.exit").write_text(text)
    assert read_death(tmp_path, 2) == death


@pytest.mark.mpi
def test_clocks_are_compared_to_within_the_error_told():
    """Each rank's clock is made to be 1000 s ahead of the one before, and 1 % faster: comparing
    them by messages finds that out, twice, as well as it says.
    """
    code = (
        "import time\n"
        "from mpi4py import MPI; from avial_lab.runtime.rank.world import compared\n"
        "rank, start = MPI.COMM_WORLD.rank, time.monotonic_ns()\n"
        "start = MPI.COMM_WORLD.bcast(start)\n"
        "def clock():\n"
        "    return round((time.monotonic_ns() - start) * (1 + rank / 100)) + rank * 10**12\n"
        "for _ in range(2):\n"
        "    found = compared(MPI.COMM_WORLD, clock_ns=clock)\n"
        "    real = (found.at_ns - rank * 10**12) / (1 + rank / 100)\n"
        "    off = abs(found.at_ns + found.offset_ns - real)\n"
        "    for line in MPI.COMM_WORLD.gather((off, found.error_ns)) or (): print(*line)\n"
    )
    out = subprocess.run(
        [tool("mpiexec"), "-n", "3", *mpiexec_options(), sys.executable, "-c", code],
        env=os.environ | environment(3), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [tuple(map(float, line.split())) for line in out.stdout.splitlines()]
    assert len(lines) == 6
    assert all(off <= 1.03 * error + 2 for off, error in lines), lines
    assert sum(error == 0 for _, error in lines) == 2, "rank 0 has its own clock"
