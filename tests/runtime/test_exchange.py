"""What travels, and what is written back: pure functions, no ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.binary import Manifest
from avial_lab.regions import Box
from avial_lab.runtime import exchange
from avial_lab.runtime.journal import read_death
from avial_lab.runtime.launch import environment, mpiexec_options
from avial_lab.runtime.outcome import Outcome, describe_step, trace_of
from avial_lab.runtime.parcels import ALIGNMENT, SMALL, aligned_empty, pack, unpack
from avial_lab.schedule import Piece, Step, StepKind, Transfer
from avial_lab.toolchain import tool

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


def two_ranks() -> Manifest:
    """rank 0: run x, send    rank 1: post, received, run y."""
    return Manifest(
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
    )


def test_a_trace_is_on_rank_0s_clock_and_starts_at_0():
    """Rank 1's clock is 50 s behind; its third step was never reached."""
    zero = np.array([[100, 0, 101, 0], [101, 0, 101, 500_000_000]])
    one = np.array([[50, 250_000_000, 50, 500_000_000], [50, 500_000_000, 52, 0], [0, 0, 0, 0]])
    trace = trace_of(two_ranks(), [Outcome(0, zero), Outcome(1, one, offset_s=50.0)])
    assert [(e.rank, e.name, e.start_s, e.end_s, e.nbytes) for e in trace.events] == [
        (0, "x", 0.0, 1.0, 0),
        (1, "ready to receive a[0:4] from rank 0", 0.25, 0.5, 16),
        (1, "wait for a[0:4] from rank 0", 0.5, 2.0, 16),
        (0, "send a[0:4] to rank 1", 1.0, 1.5, 16),
    ]
    assert trace.bytes_sent == 16
    assert trace.label == "measured, GPU emulated"


def test_where_a_rank_is_in_words():
    manifest = two_ranks()
    assert describe_step(manifest, 0, -1) == "before its first task"
    assert describe_step(manifest, 0, 0) == "in task 'x'"
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
def test_the_offset_measured_on_one_machine_is_none():
    """Where clocks are the same, what is measured is the error: less than the round trip."""
    code = (
        "from mpi4py import MPI; from avial_lab.runtime.world import measured_offset\n"
        "offsets = MPI.COMM_WORLD.gather(measured_offset(MPI.COMM_WORLD))\n"
        "if offsets: print(*offsets)"
    )
    out = subprocess.run(
        [tool("mpiexec"), "-n", "3", *mpiexec_options(), sys.executable, "-c", code],
        env=os.environ | environment(3), capture_output=True, text=True, check=True,
    )  # fmt: skip
    offsets = [float(word) for word in out.stdout.split()]
    assert len(offsets) == 3
    assert 0.0 in offsets
    assert max(map(abs, offsets)) < 0.05
