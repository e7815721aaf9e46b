"""Who races in a heat, and how each is built.

Start -> entrants by name -> teams: something that runs when it is asked, and tells its seconds.
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
from avial_lab.benchmarks.mpi_builders import CallCrew, CCrew, CrewEntry, OwnCrew
from avial_lab.benchmarks.mpi_workers import Crew
from avial_lab.benchmarks.table import ALONE, OURS
from avial_lab.benchmarks.worker import Booth
from avial_lab.core.c_compiler import c_compilers
from avial_lab.program import compilation

PEERS = ("c", "numba", "numpy")
"""Whom we may be raced against: `c` is every C compiler that is here, with and without fast math;
`numpy` has SciPy beside it where that is installed and has something to say.
"""


class Team(Protocol):
    """A contestant, built and run once."""

    compile_s: float
    note: str

    def run(self) -> float: ...
    def arrays(self) -> dict[str, np.ndarray]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Start:
    """What a heat starts from."""

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
class Entrant:
    name: str
    enter: Callable[[], Team]


def entrants(start: Start) -> Iterator[Entrant]:
    """Everybody, ourselves first."""
    yield Entrant(OURS, lambda: _own_team(start))
    if start.ranks * start.threads > 1:
        alone = replace(start, ranks=1, threads=1, tune=None)  # it is tuned by then
        yield Entrant(ALONE, lambda: _own_team(alone))
    if start.ranks > 1:
        for name, entry in _crews(start):
            yield Entrant(name, lambda entry=entry: _crew(start, entry))
    else:
        for name, entry in _peers(start):
            yield Entrant(name, lambda entry=entry: _booth(start, entry))


def missing_peers(against: Sequence[str], ranks: Sequence[int]) -> Iterator[str]:
    """Whoever cannot race here, in words."""
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


def _own_team(start: Start) -> Team:
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
    team: Team
    if start.ranks > 1:
        team = _crew(start, OwnCrew(compiled.binary, start.threads))
    else:
        team = _booth(start, OwnEntry(compiled.binary, start.threads))
    # As it was when it was compiled, which the cache may have spared us now.
    team.compile_s += sum(compiled.seconds.values())
    return team


def _booth(start: Start, entry: Entry) -> Booth:
    return Booth(entry, start.program.before, threads=start.threads, places=start.places)


def _crew(start: Start, entry: CrewEntry) -> Crew:
    return Crew(
        entry,
        start.program.before,
        ranks=start.ranks,
        threads=start.threads,
        places=start.places,
    )


def _crews(start: Start) -> Iterator[tuple[str, CrewEntry]]:
    """The peers on several ranks, of kernels that have such."""
    kernel, element = start.program.kernel, start.program.element
    peers = peer_folder(kernel) / "peers_mpi.py"
    if not peers.is_file():
        return
    if "c" in start.against:
        source = mpi_source(kernel, element, start.program.sizes)
        for compiler in mpi_compilers(integers=element.startswith("i")):
            yield compiler.name, CCrew(peers, compiler, source, kernel.function)
    if "numpy" in start.against:
        yield "mpi4py", CallCrew(peers)


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
