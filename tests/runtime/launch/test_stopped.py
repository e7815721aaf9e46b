"""A rank that somebody suspended is not called a loop that never ends."""

from __future__ import annotations

import signal
import sys
import threading

import numpy as np
import psutil
import pytest

import avial_lab
from avial_lab.core.errors import RunError
from avial_lab.runtime.launch.processes import stopped_among
from avial_lab.runtime.rank.outcome import DEATH_HINTS
from tests.waiting import wait_until

LONG = """
func.func @f(%A: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant 1000000000000 : index
  %v = arith.constant 1.0 : f64
  scf.for %i = %c0 to %many step %c1 {
    %x = memref.load %A[%c0] : memref<8xf64>
    %y = arith.addf %x, %v : f64
    memref.store %y, %A[%c0] : memref<8xf64>
  }
  return
}
"""


def _ranks() -> list[psutil.Process]:
    """The ranks that this process started, deep as they are."""
    children = psutil.Process().children(recursive=True)
    return [
        child for child in children if "avial_lab.runtime.rank.engine" in " ".join(_line(child))
    ]


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.slow
@pytest.mark.mpi
def test_a_stopped_rank_is_told() -> None:
    program = avial_lab.compile(LONG, arrays={"A": np.zeros(8)}, ranks=1)

    def stop() -> None:
        # It has told its process number, and computes, once it has used so much of a core.
        wait_until(lambda: [rank for rank in _ranks() if rank.cpu_times().user > 2])
        for rank in _ranks():
            rank.send_signal(signal.SIGSTOP)

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(RunError) as told:
        program.run(timeout=40, threads=1)
    stopper.join()
    said = str(told.value)
    assert "rank 0 is stopped (SIGSTOP)" in said
    assert "kill -CONT" in said
    assert "does not terminate" not in said


def test_who_is_stopped() -> None:
    asleep = psutil.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    try:
        found = {0: psutil.Process(), 1: asleep}
        assert stopped_among(found, [0, 1, 2]) == []
        asleep.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped_among(found, [0, 1, 2]))
        assert stopped_among(found, [0, 1, 2]) == [1]
        assert stopped_among(found, [0]) == []
    finally:
        asleep.kill()
        asleep.wait()


def test_a_killed_rank_may_have_been_out_of_memory() -> None:
    assert DEATH_HINTS["SIGKILL"].startswith("usually memory ran out")
