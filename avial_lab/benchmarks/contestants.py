"""Who races in a round, and how each is built.

Start -> contestants by name -> runners, which run on request and return their seconds.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from avial_lab.benchmarks.builders import NUMBA_HINT, CallEntry, CEntry, Entry, NumbaEntry, OwnEntry
from avial_lab.benchmarks.c_peers import mpi_compilers, mpi_source, peer_folder, peer_source
from avial_lab.benchmarks.kernel_suite import KernelProgram
from avial_lab.benchmarks.mpi_builders import CallGroup, CGroup, GroupEntry, OwnGroup
from avial_lab.benchmarks.mpi_workers import MpiGroup
from avial_lab.benchmarks.table import ALONE, OURS
from avial_lab.benchmarks.worker import BenchmarkWorker
from avial_lab.core.c_compiler import c_compilers
from avial_lab.program import compilation

PEERS = ("c", "numba", "numpy")
"""The peers to race against: `c` is every C compiler that is here, with and without fast math;
`numpy` has SciPy beside it where that is installed and has something to say.
"""

ARRAY_PEERS = ("numpy", "jax", "dask")
"""Of programs on arrays; those that are not installed stay away."""

PYTHON_PEERS = ("numpy", "numba")
"""Of Python functions; likewise."""

OTHER_PEERS = ("pythran", "dace")
"""That take Python functions, too, and are not raced against: they compile files, or folders."""


class RemoteRunner(Protocol):
    """A contestant, built and run once."""

    compile_s: float
    note: str

    def run(self) -> float: ...
    def arrays(self) -> dict[str, np.ndarray]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Start:
    """What a round starts from."""

    program: KernelProgram
    ranks: int
    threads: int
    against: tuple[str, ...]
    without: str = ""
    strict: bool = False
    blas: bool = False
    tune: float | None = None

    @property
    def places(self) -> list[str]:
        """Where `kernels` is imported from."""
        return [str(peer_folder(self.program.kernel).parent.parent)]


@dataclass(frozen=True)
class Contestant:
    name: str
    enter: Callable[[], RemoteRunner]


def contestants(start: Start) -> Iterator[Contestant]:
    """All contestants, our own first."""
    yield Contestant(OURS, lambda: _own_runner(start))
    if start.ranks * start.threads > 1:
        alone = replace(start, ranks=1, threads=1, tune=None)  # it is tuned by then
        yield Contestant(ALONE, lambda: _own_runner(alone))
    if start.ranks > 1:
        for name, entry in _groups(start):
            yield Contestant(name, lambda entry=entry: _group_of(start, entry))
    else:
        for name, entry in _peers(start):
            yield Contestant(name, lambda entry=entry: _worker_of(start, entry))


def missing_peers(against: Sequence[str], ranks: Sequence[int]) -> Iterator[str]:
    """The peers that are missing here, in words."""
    if "c" in against:
        found = {compiler.name for compiler in c_compilers()}
        if not found:
            yield "left out: C (neither gcc nor clang is installed)"
        else:
            missing = [name for name in ("gcc", "clang") if name not in found]
            yield from (f"left out: {name} is not installed" for name in missing)
    if "numba" in against and not _installed("numba"):
        yield f"left out: Numba is not installed; {NUMBA_HINT}"
    if "numpy" in against and not _installed("scipy"):
        yield f"left out: SciPy is not installed; {NUMBA_HINT}"
    if "c" in against and max(ranks) > 1 and not mpi_compilers():
        yield "left out: C with MPI (no mpicc is installed)"


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _own_runner(start: Start) -> RemoteRunner:
    compiled = compilation.compile(
        start.program.text,
        arrays=start.program.arrays,
        scalars=start.program.scalars,
        function=start.program.function,
        ranks=start.ranks,
        without=start.without,
        strict=start.strict,
        blas=start.blas,
        name=start.program.kernel.name,
    )
    if start.tune is not None:
        compiled = compiled.tune(start.tune, threads=start.threads)
    runner: RemoteRunner
    if start.ranks > 1:
        runner = _group_of(start, OwnGroup(compiled.binary, start.threads))
    else:
        runner = _worker_of(start, OwnEntry(compiled.binary, start.threads))
    # As it was when it was compiled, which the cache may have spared us now.
    runner.compile_s += sum(compiled.seconds.values())
    return runner


def _worker_of(start: Start, entry: Entry) -> BenchmarkWorker:
    return BenchmarkWorker(entry, start.program.before, threads=start.threads, places=start.places)


def _group_of(start: Start, entry: GroupEntry) -> MpiGroup:
    return MpiGroup(
        entry,
        start.program.before,
        ranks=start.ranks,
        threads=start.threads,
        places=start.places,
    )


def _groups(start: Start) -> Iterator[tuple[str, GroupEntry]]:
    """The peers on several ranks, of kernels that have such."""
    kernel, element = start.program.kernel, start.program.element
    peers = peer_folder(kernel) / "peers_mpi.py"
    if not peers.is_file():
        return
    if "c" in start.against:
        source = mpi_source(kernel, element, start.program.sizes)
        for compiler in mpi_compilers(integers=element.startswith("i")):
            yield compiler.name, CGroup(peers, compiler, source, kernel.function)
    if "numpy" in start.against:
        yield "mpi4py", CallGroup(peers)


def _peers(start: Start) -> Iterator[tuple[str, Entry]]:
    kernel, element = start.program.kernel, start.program.element
    peers = peer_folder(kernel) / "peers.py"
    if "c" in start.against:
        source = peer_source(kernel, element, start.program.sizes, symbol=kernel.function)
        for compiler in c_compilers(integers=element.startswith("i")):
            yield compiler.name, CEntry(compiler, source, kernel.function)
    if "numba" in start.against and _installed("numba"):
        yield "numba", NumbaEntry(peers, fastmath=False)
        if not element.startswith("i"):
            yield "numba-fast", NumbaEntry(peers, fastmath=True)
    if "numpy" in start.against:
        if _has(peers, "arrays"):
            yield "numpy", CallEntry(peers, "arrays")
        if _has(peers, "scipy_arrays") and _installed("scipy") and not element.startswith("i"):
            yield "scipy", CallEntry(peers, "scipy_arrays")


def _has(peers: Path, function: str) -> bool:
    return f"def {function}(" in peers.read_text(encoding="utf-8")
