"""A client on `login`: a cluster over hosts that does what the lines of its input say.

    start HOSTS PPN    the cluster; answered by its status and the ranks' places
    carry MIB [HOW]    an array of that size to the ranks: of random numbers; `mapped`, in a file
                       that they see; `smooth`, of numbers that differ little
    stay MIB           an array of that size, of numbers that differ little, that stays with the
                       ranks, and comes back
    slurm NODES PPN    the same on nodes of Slurm's
    profile NAME N     the same of N ranks by a profile of ipyparallel's
    run STEPS          that many steps of a heat equation, checked against the reference
    local N            the same of N ranks here
    trips TIMES        medians, in s, of an empty run, and of an empty call to every rank
    leave | stop       as Cluster's

Each answer is a line of JSON; `run` says `running` as soon as a rank computes.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.core.errors import AvialError
from avial_lab.core.regions import Box
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.hosts import Hosts, Slurm, Where
from avial_lab.runtime.launch.progress import RunState
from avial_lab.runtime.launch.residence import Residence

SUMS = """
func.func @sums(%a: memref<ROWSx1024xf64>, %b: memref<ROWSxf64>) {
  affine.for %i = 0 to ROWS {
    affine.for %j = 0 to 1024 {
      %x = affine.load %a[%i, %j] : memref<ROWSx1024xf64>
      %y = affine.load %b[%i] : memref<ROWSxf64>
      %s = arith.addf %x, %y : f64
      affine.store %s, %b[%i] : memref<ROWSxf64>
    }
  }
  return
}
"""


EMPTY = """
func.func @empty(%a: memref<RANKSxf64>) {
  affine.for %i = 0 to RANKS {
    %x = affine.load %a[%i] : memref<RANKSxf64>
    %y = arith.negf %x : f64
    affine.store %y, %a[%i] : memref<RANKSxf64>
  }
  return
}
"""


def seconds_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def answer(**words: Any) -> None:
    sys.stdout.write(f"{json.dumps(words)}\n")
    sys.stdout.flush()


class Client:
    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.untouched = True
        """Whether the arrays of the last run are as they were, where it failed."""

    def start(self, hosts: str, ppn: str) -> None:
        self._start(Hosts.parse(hosts, ppn=int(ppn)))

    def slurm(self, nodes: str, ppn: str) -> None:
        self._start(Slurm(int(nodes), int(ppn), time="10:00"))

    def local(self, ranks: str) -> None:
        self._began(Cluster.start(int(ranks), gpu=0))

    def profile(self, name: str, ranks: str) -> None:
        self._began(Cluster.start(int(ranks), gpu=0, profile=name))

    def _start(self, where: Where) -> None:
        self._began(
            Cluster.start(
                gpu=0, where=where, keep_s=float(os.environ.get("KEEP_S", 0)), timeout=300
            )
        )

    def _began(self, cluster: Cluster) -> None:
        self.cluster = cluster
        facts = self.cluster.status.facts
        pids = {
            "controller": self.cluster._engines.result().controller.pid,  # type: ignore[union-attr]
            "client": os.getpid(),
        }
        answer(
            places=[(fact.node, fact.pid) for fact in facts], status=str(self.cluster.status),
            id=self.cluster.id, pids=pids,
        )  # fmt: skip

    def run(self, steps: str) -> None:
        assert self.cluster is not None
        kernel = kernel_program("jacobi-2d", numbers={"tsteps": int(steps)})
        before = {name: array.copy() for name, array in kernel.arrays.items()}
        program = avial_lab.compile(
            kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, function=kernel.function,
            topology=self.cluster.topology,
        )  # fmt: skip
        said = False

        def tell(state: RunState) -> None:
            nonlocal said
            if not said and "running: " in str(state):
                said = True
                answer(running=str(state))

        try:
            program.run(self.cluster, check=int(steps) < 1000, progress=tell)
        finally:
            whole = all(np.array_equal(before[name], kernel.arrays[name]) for name in before)
            self.untouched = whole
        trace = program.trace
        assert trace is not None
        answer(check=program.check_report, sent=trace.bytes_sent, printed=str(program.printed))

    def trips(self, times: str) -> None:
        """One element for every rank, which is as little as it can be given."""
        assert self.cluster is not None
        array = np.ones(self.cluster.topology.ranks)
        program = avial_lab.compile(
            EMPTY.replace("RANKS", str(len(array))), arrays={"a": array},
            topology=self.cluster.topology,
        )  # fmt: skip
        program.run(self.cluster)
        with self.cluster.turn() as (engines, _):
            view = engines.client[:]
        view.apply_sync(int)
        runs, calls = [], []
        for _ in range(int(times)):  # by turns: both see the same load
            runs.append(seconds_of(lambda: program.run(self.cluster)))
            calls.append(seconds_of(lambda: view.apply_sync(int)))
        answer(run_s=statistics.median(runs), call_s=statistics.median(calls))

    def carry(self, mib: str, how: str = "") -> None:
        """Sums of the rows of an array of that size; what was said meanwhile."""
        assert self.cluster is not None
        rows = int(mib) * 128  # of 8 KiB
        array, sums = np.random.default_rng(0).random((rows, 1024)), np.zeros(rows)
        if how == "smooth":
            array = np.fromfunction(lambda i, j: i // 8 + j // 8, array.shape)
        if how == "mapped":
            with tempfile.NamedTemporaryFile(dir=Path(__file__).parents[2] / "build") as file:
                np.save(file, array)
                file.flush()
                self._carry(np.load(file.name, mmap_mode="c"), sums)
        else:
            self._carry(array, sums)

    def _carry(self, array: np.ndarray, sums: np.ndarray) -> None:
        assert self.cluster is not None
        rows = len(array)
        program = avial_lab.compile(
            SUMS.replace("ROWS", str(rows)), arrays={"a": array, "b": sums},
            topology=self.cluster.topology,
        )  # fmt: skip
        said: list[str] = []
        began = time.monotonic()
        self.untouched = False
        try:
            program.run(self.cluster, progress=lambda state: said.append(str(state)))
        finally:
            self.untouched = not sums.any()
        seconds = time.monotonic() - began
        right = bool(np.allclose(sums, array.sum(axis=1)))
        assert program.trace is not None
        note = program.trace.note
        answer(right=right, said=said, bytes_per_s=array.nbytes / seconds, note=note)

    def stay(self, mib: str) -> None:
        assert self.cluster is not None
        array = np.fromfunction(lambda i, j: i // 8 + j // 8, (int(mib) * 128, 1024))
        residence = Residence(self.cluster)
        kept = residence.put(array)
        taken = residence.take(kept, array.dtype, Box.whole(array.shape))
        answer(right=bool(np.array_equal(taken, array)))

    def leave(self) -> None:
        assert self.cluster is not None
        self.cluster.leave()
        answer()

    def stop(self) -> None:
        assert self.cluster is not None
        self.cluster.stop()
        answer()


def main() -> None:
    faulthandler.register(signal.SIGUSR1)  # where it is, who asks
    client = Client()
    for line in sys.stdin:
        what, *words = line.split()
        began = time.monotonic()
        client.untouched = True
        try:
            getattr(client, what)(*words)
        except AvialError as error:
            answer(
                error=f"{type(error).__name__}: {error}", seconds=time.monotonic() - began,
                untouched=client.untouched,
            )  # fmt: skip


if __name__ == "__main__":
    main()
