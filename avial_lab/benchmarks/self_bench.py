"""The bench of the lab itself: compiler, messages, dispatch; against a hand-written peer where
there is one.

Nothing -> a table of medians and ratios, each beside its goal. Peers are raced interleaved, in one
run.
"""

from __future__ import annotations

import gc
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.benchmarks.command import write_file
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.results_page import SELF
from avial_lab.compiler.requests import Analyse, Source
from avial_lab.core.errors import ClusterError
from avial_lab.core.toolchain import find_tool, tool
from avial_lab.lessons.demo import deck_text
from avial_lab.machine.host import this_machine
from avial_lab.machine.topology import Topology
from avial_lab.planning.placement import schedule_tasks
from avial_lab.program import compilation
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.processes import environment, mpiexec_options

REPEATS = 9
SMALL_BYTES = 16
LARGE_BYTES = 64 << 20


@dataclass(frozen=True)
class Figure:
    """One measured figure and the goal it should not exceed, in the same unit."""

    what: str
    value: float
    unit: str
    goal: float

    @property
    def met(self) -> bool:
        return self.value <= self.goal

    def __str__(self) -> str:
        mark = "ok  " if self.met else "MISS"
        return f"{mark} {self.value:9.3f} {self.unit:<4} (goal {self.goal:g})  {self.what}"


def bench_self(*, json_to: str | None, given: Sequence[str]) -> int:
    """Print every figure as it is measured, or with `-` all of them as JSON (which else goes to
    that file); 0 where all goals are met. `given`: the arguments of the command line.
    """
    figures: list[Figure] = []
    for figure in _figures():
        figures.append(figure)
        if json_to != "-":
            print(figure, flush=True)
    if json_to is not None:
        text = json.dumps(self_facts(figures, made_by(given)), indent=2)
        if json_to == "-":
            print(text)
        else:
            write_file(Path(json_to), text)
    return 0 if all(figure.met for figure in figures) else 1


def self_facts(figures: Sequence[Figure], made: Mapping[str, Any]) -> dict[str, Any]:
    """What `results.py` makes a table of."""
    return {
        "format": SELF,
        "version": 1,
        "made": dict(made),
        "machine": this_machine().facts(),
        "rows": [{**asdict(figure), "met": figure.met} for figure in figures],
    }


def _figures() -> Iterator[Figure]:
    yield from _compiler_figures()
    yield from _growth_figures()
    yield _empty_task_figure()
    yield from _message_figures()
    yield _dispatch_figure()


def _median_s(work: Callable[[], object], *, repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# The compiler -------------------------------------------------------------------------------------

# A constant no compile before has seen: what is measured comes from no cache.
_fresh = itertools.count(time.time_ns() % 1_000_000_000)


def _fresh_deck() -> str:
    """The deck's program with one more addition, of a number never used before."""
    added = f"%k = arith.constant {next(_fresh)} : i32\n      %w = arith.addi %z, %k"
    store = "memref.store %z, %c[%i]"
    return deck_text().replace(store, f"{added}\n      {store.replace('%z', '%w')}")


def _compiler_figures() -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-99, 99, 20, dtype=np.int32) for name in "abcd"}
    compilation.compile(_fresh_deck(), arrays=arrays, ranks=3)  # the worker is warm
    graph_s = _median_s(lambda: compilation.analyse(_fresh_deck(), arrays=arrays))
    yield Figure("the deck's cell to its DAG, warm", graph_s * 1e3, "ms", 150)
    build_s = _median_s(lambda: compilation.compile(_fresh_deck(), arrays=arrays, ranks=3))
    yield Figure("the deck's cell to a binary, nothing cached", build_s * 1e3, "ms", 700)
    compilation.compile(deck_text(), arrays=arrays, ranks=3)
    again_s = _median_s(lambda: compilation.compile(deck_text(), arrays=arrays, ranks=3))
    yield Figure("the same cell again", again_s * 1e3, "ms", 50)


def _layers(tasks: int, *, width: int = 100, slice_size: int = 64) -> str:
    """`tasks` tasks in layers of `width`; each reads the slices left and right of its own."""
    size = width * slice_size
    lines = [f"avial.schedule %x: memref<{size}xf32>, %y: memref<{size}xf32> {{"]
    lines.append('  %cpu = avial.target {arch = "cpu"}')
    for k in range(tasks):
        source, dest = ("%x", "%y") if k // width % 2 == 0 else ("%y", "%x")
        low = k % width * slice_size
        first, last = max(low, 1), min(low + slice_size, size - 1)
        lines.append(
            f"""  %t{k} = avial.task %cpu, {source}, {dest} {{
    affine.for %i = {first} to {last} {{
      %l = affine.load {source}[%i - 1]
      %r = affine.load {source}[%i + 1]
      %s = arith.addf %l, %r
      affine.store %s, {dest}[%i]
    }}
  }}"""
        )
    return "\n".join([*lines, "}"])


def _growth_figures() -> Iterator[Figure]:
    seconds = {}
    for tasks in (1_000, 10_000):
        text = _layers(tasks)
        seconds[tasks] = statistics.median(_placed_s(text) for _ in range(3))
    yield Figure("10,000 tasks: parse, DAG, levels, schedule", seconds[10_000], "s", 6)
    yield Figure("… against 1,000 tasks", seconds[10_000] / seconds[1_000], "×", 13)
    yield Figure("… memory of the compiler's process", _peak_memory_gib(), "GiB", 1)


def _placed_s(text: str) -> float:
    """What parsing, the DAG, its levels and the schedule take, without transport."""
    analysis = shared_compiler().ask(Analyse(Source(text, "<bench>")))
    gc.collect()
    gc.disable()  # as in the compiler's process
    start = time.perf_counter()
    schedule_tasks(analysis.graph, Topology.local(4))
    placing_s = time.perf_counter() - start
    gc.enable()
    return sum(analysis.seconds.values()) + placing_s


def _peak_memory_gib() -> float:
    status = Path(f"/proc/{shared_compiler().pid}/status").read_text(encoding="utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 2**20


# Inside the ranks ---------------------------------------------------------------------------------


def _empty_task_figure() -> Figure:
    tasks = 10_000
    lines = ["avial.schedule {", '  %cpu = avial.target {arch = "cpu"}']
    lines += [f"  %t{k} = avial.task %cpu {{ }}" for k in range(tasks)]
    compiled = compilation.compile("\n".join([*lines, "}"]), arrays={}, ranks=1)
    per_task_s = statistics.median(compiled.run().makespan_s / tasks for _ in range(REPEATS))
    return Figure("an empty task inside a rank", per_task_s * 1e6, "µs", 1)


def _message_figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="avial-bench-") as folder:
        peer = _compiled_peer(Path(folder))
        for nbytes, hops, goal in ((SMALL_BYTES, 2_000, 1.5), (LARGE_BYTES, 40, 1.15)):
            ours, theirs = [], []
            compiled = _ping_pong(nbytes // 4, hops)
            for _ in range(REPEATS):
                ours.append(compiled.run().makespan_s / hops)
                theirs.append(_peer_s(peer, nbytes, hops))
            size = f"{nbytes} B" if nbytes < 1024 else f"{nbytes >> 20} MiB"
            us, c = statistics.median(ours), statistics.median(theirs)
            words = f"a {size} edge ({us * 1e6:.1f} µs) against MPI in C ({c * 1e6:.1f} µs)"
            yield Figure(words, us / c, "×", goal)


def _ping_pong(elements: int, hops: int) -> Program:
    """A chain of tasks by turns on rank 0 (a CPU target) and rank 1 (which drives the GPU).

    Each writes one element, but which one stands in memory: all of them go to the next rank.
    """
    lines = [f"avial.schedule %x: memref<{elements}xi32>, %where: memref<i32> {{"]
    lines.append('  %cpu = avial.target {arch = "cpu"}')
    lines.append('  %gpu = avial.target {arch = "gpu"}')
    lines += [
        f"""  %t{k} = avial.task {"%gpu" if k % 2 else "%cpu"}, %where, %x {{
    %at = memref.load %where[]
    %i = arith.index_cast %at : i32 to index
    %v = memref.load %x[%i]
    memref.store %v, %x[%i]
  }}"""
        for k in range(hops)
    ]
    arrays = {"x": np.zeros(elements, np.int32), "where": np.zeros((), np.int32)}
    return compilation.compile("\n".join([*lines, "}"]), arrays=arrays, ranks=2, gpus=1)


_PEER = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, bytes = atoi(argv[1]), hops = atoi(argv[2]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *data = calloc(bytes, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int k = 0; k < hops; k += 2) {
    if (rank == 0) {
      MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) printf("%.12f\\n", (MPI_Wtime() - start) / hops);
  MPI_Finalize();
}
"""


def _compiled_peer(folder: Path) -> Path:
    """The same messages, written by hand in C against the same MPI."""
    compiler = find_tool("mpicc")
    if compiler is None:
        raise ClusterError("there is no mpicc to build the peer with", hint="pip install mpich")
    source, peer = folder / "ping_pong.c", folder / "ping_pong"
    source.write_text(_PEER, encoding="utf-8")
    # The wheel's mpicc names its libraries, not where they are.
    library = Path(sys.prefix) / "lib"
    flags = ["-O3", f"-L{library}", f"-Wl,-rpath,{library}"]
    subprocess.run([compiler, *flags, source, "-o", peer], check=True)
    return peer


def _peer_s(peer: Path, nbytes: int, hops: int) -> float:
    command = [tool("mpiexec"), *mpiexec_options(), "-n", "2", peer, str(nbytes), str(hops)]
    done = subprocess.run(
        command, env=environment(2), check=True, capture_output=True, encoding="utf-8"
    )
    return float(done.stdout)


# Dispatch -----------------------------------------------------------------------------------------


def _dispatch_figure() -> Figure:
    """A built program to three engines and back, over what ipyparallel takes for nothing at all."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-99, 99, 20, dtype=np.int32) for name in "abcd"}
    with Cluster.start(cpu=2, gpu=1) as cluster:
        compiled = compilation.compile(deck_text(), arrays=arrays, topology=cluster.topology)
        with cluster.turn() as (engines, _):
            view = engines.client[:]
        compiled.run(cluster)
        view.apply_sync(int)
        ours, empty = [], []
        for _ in range(4 * REPEATS):
            ours.append(_median_s(lambda: compiled.run(cluster), repeats=1))
            empty.append(_median_s(lambda: view.apply_sync(int), repeats=1))
    over_s = statistics.median(ours) - statistics.median(empty)
    words = f"dispatch to 3 engines over an empty trip ({statistics.median(empty) * 1e3:.1f} ms)"
    return Figure(words, over_s * 1e3, "ms", 60)
