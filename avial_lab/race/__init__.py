"""The race: our programs against C with OpenMP, Numba and NumPy, on the kernels of the repository.

Kernels, Course -> Sheet. Every contestant works on the same arguments in a
process of its own, its result is checked before it is timed, and all take turns.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from avial_lab import program
from avial_lab.arrays import dtype_of_element
from avial_lab.errors import AvialError, CheckError
from avial_lab.program import Program
from avial_lab.race.booth import Booth
from avial_lab.race.ceilings import Ceilings, measure_ceilings
from avial_lab.race.entry import NUMBA_HINT, CEntry, Entry, NumbaEntry, NumpyEntry, OwnEntry
from avial_lab.race.native import c_compilers, peer_folder, peer_source
from avial_lab.race.table import OURS, Heat, Lane, Sheet
from avial_lab.suite import Kernel, KernelProgram, kernel_program

PEERS = ("c", "numba", "numpy")
"""Whom we may be raced against; `c` is every C compiler that is here, with and without fast math.
"""

LEAST_RUNS = 5
MOST_RUNS = 25

_TURN_S = 0.5
"""So much of each contestant's time is worth more than the fewest runs."""

_PAUSE_S = 0.005
"""Between two turns: the threads of the one before spin for a while before they sleep."""


@dataclass(frozen=True)
class Course:
    """What a race is run over. `told` hears of every heat as it ends."""

    size: str = "SMALL"
    element: str | None = None
    against: tuple[str, ...] = PEERS
    ranks: tuple[int, ...] = (1,)
    threads: tuple[int, ...] = (1,)
    told: Callable[[Heat], None] = field(default=lambda _: None, repr=False)


def race(kernels: Sequence[str], course: Course) -> Sheet:
    """Race on each of `kernels`; raises BindError where one is none, before anybody starts."""
    starts = [kernel_program(name, size=course.size, element=course.element) for name in kernels]
    notes = list(_missing(course))
    ceilings: dict[tuple[int, str], Ceilings] = {}
    heats: list[Heat] = []
    for start in starts:
        element = _element(start)
        answer = Answer(start)
        for threads in course.threads:
            key = (threads, element)
            if key not in ceilings:
                ceilings[key] = measure_ceilings(threads, element)
            for ranks in course.ranks:
                heat = _heat(start, answer, course, ranks, threads, ceilings[key])
                heats.append(heat)
                course.told(heat)
    return Sheet(course.size, tuple(heats), tuple(dict.fromkeys(ceilings.values())), tuple(notes))


def _missing(course: Course) -> Iterator[str]:
    """What cannot race here, in words."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2:
        yield f"other work runs here (load {load:.1f} on {cores} cores): do not trust these times"
    if "c" in course.against and not c_compilers():
        yield "left out: C, there is neither gcc nor clang"
    if "numba" in course.against and not _has_numba():
        yield f"left out: Numba is not installed; {NUMBA_HINT}"
    if max(course.threads) > 1:
        yield f"{OURS} runs one thread on each rank, whatever --threads says"
    if max(course.ranks) > 1:
        yield f"peers have one process; {OURS} on several ranks is started afresh for each run"


def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _element(start: KernelProgram) -> str:
    """The element type the program was made for."""
    kernel = start.kernel
    array = next(name for name, item in kernel.arguments.items() if _is_own_array(item))
    dtype = start.arrays[array].dtype
    return next(e for e in kernel.elements if dtype_of_element(e) == dtype)


def _is_own_array(argument: object) -> bool:
    """Whether it is an array of the kernel's own element type."""
    return hasattr(argument, "extents") and getattr(argument, "element", None) is None


# -- one heat --------------------------------------------------------------------------------------


def _heat(
    start: KernelProgram,
    answer: Answer,
    course: Course,
    ranks: int,
    threads: int,
    ceilings: Ceilings,
) -> Heat:
    kernel, element = start.kernel, _element(start)
    sizes = _sizes(start, course)
    with contextlib.ExitStack() as stack:
        lanes: dict[str, Lane] = {}
        turns: dict[str, Callable[[], float]] = {}
        for name, enter in _entrants(start, course, ranks, threads, stack):
            try:
                compile_s, turn, arrays = enter()
                turn()
                answer.check(arrays())
            except AvialError as error:
                lanes[name] = Lane(name, fault=str(error).replace("\n", "; "))
                continue
            lanes[name], turns[name] = Lane(name, compile_s=compile_s), turn
        seconds = _take_turns(turns)
    lanes |= {
        name: Lane(name, tuple(seconds[name]), lanes[name].compile_s)
        for name in turns
        if seconds[name]
    }
    return Heat(
        kernel.name,
        element,
        sizes,
        ranks,
        threads,
        kernel.flops(sizes),  # pyright: ignore[reportAttributeAccessIssue]
        kernel.swept_bytes(sizes, dtype_of_element(element)),  # pyright: ignore
        tuple(lanes.values()),
        ceilings,
    )


def _sizes(start: KernelProgram, course: Course) -> dict[str, int]:
    rows = start.kernel.datasets.items()
    return dict(next(row for which, row in rows if which.name == course.size))


def _take_turns(turns: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Seconds of each contestant's runs, one of everybody's after the other: whatever else this
    machine does meanwhile comes to all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    waiting = dict(turns)
    while waiting:
        for name, turn in list(waiting.items()):
            time.sleep(_PAUSE_S)
            seconds[name].append(turn())
            runs, total = len(seconds[name]), sum(seconds[name])
            if runs >= MOST_RUNS or (runs >= LEAST_RUNS and total >= _TURN_S):
                del waiting[name]
    return seconds


Entered = tuple[float, Callable[[], float], Callable[[], dict[str, np.ndarray]]]
"""Seconds to build, one run's seconds, the arrays the last run left."""


def _entrants(
    start: KernelProgram, course: Course, ranks: int, threads: int, stack: contextlib.ExitStack
) -> Iterator[tuple[str, Callable[[], Entered]]]:
    """Everybody's name, and how they are built."""

    def in_booth(entry: Entry, *, more_s: float = 0.0) -> Entered:
        root = str(peer_folder(start.kernel).parent.parent)
        booth = Booth(entry, start.before, threads=threads, places=[root])
        stack.callback(booth.close)
        return booth.built.compile_s + more_s, booth.run, booth.arrays

    yield OURS, lambda: _ours(start, ranks, in_booth)
    for name, entry in _peers(start, course):
        yield name, lambda entry=entry: in_booth(entry)


def _ours(start: KernelProgram, ranks: int, in_booth: Callable[..., Entered]) -> Entered:
    """Our own program: on one rank in a booth like everybody, on more under mpiexec."""
    began = time.perf_counter()
    compiled = program.compile(
        start.text,
        arrays=start.arrays,
        scalars=start.scalars,
        function=start.function,
        ranks=ranks,
        name=start.kernel.name,
    )
    compile_s = time.perf_counter() - began
    if ranks == 1:
        return in_booth(OwnEntry(compiled.binary), more_s=compile_s)
    return compile_s, lambda: _launched(compiled, start), lambda: compiled.arrays


def _launched(compiled: Program, start: KernelProgram) -> float:
    for name, array in compiled.arrays.items():
        if name in start.before:
            np.copyto(array, start.before[name])
    gc.collect()
    return compiled.run().makespan_s


def _peers(start: KernelProgram, course: Course) -> Iterator[tuple[str, Entry]]:
    kernel, element = start.kernel, _element(start)
    peers = peer_folder(kernel) / "peers.py"
    if "c" in course.against:
        source = peer_source(kernel, element, _sizes(start, course), symbol=kernel.function)
        for compiler in c_compilers(integers=element.startswith("i")):
            yield compiler.name, CEntry(compiler, source, kernel.function)
    if "numba" in course.against and _has_numba():
        yield "numba", NumbaEntry(peers, fastmath=False)
        if not element.startswith("i"):
            yield "numba-fast", NumbaEntry(peers, fastmath=True)
    if "numpy" in course.against and "def arrays(" in peers.read_text(encoding="utf-8"):
        yield "numpy", NumpyEntry(peers)


# -- the right answer ------------------------------------------------------------------------------


class Answer:
    """What a kernel's truth leaves and how far a run may be from it; computed at the first use.

    Scratch is not looked at: what is left there is nobody's result.
    """

    def __init__(self, start: KernelProgram) -> None:
        self.start = start
        self._known: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None = None

    def check(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Raises CheckError for the first array that is wrong."""
        if self._known is None:
            kernel, before = self.start.kernel, self.start.before
            self._known = kernel.truth(before), kernel.bound(before)
        truth, bound = self._known
        for name in results(self.start.kernel):
            got, want = arrays[name], truth[name]
            with np.errstate(all="ignore"):
                right = (got == want) | (np.isnan(got) & np.isnan(want))
                right |= np.abs(got - want) <= bound[name]
            if not right.all():
                at = np.argwhere(~right)[0].tolist()
                raise CheckError(
                    f"wrong: {name}{at} is {got[tuple(at)]}, not {want[tuple(at)]} "
                    f"± {bound[name][tuple(at)]:.2g}"
                )


def results(kernel: Kernel) -> tuple[str, ...]:
    """The arrays that a caller of the kernel looks at."""
    return tuple(name for name in kernel.outputs if kernel.arguments[name].role.name != "SCRATCH")
