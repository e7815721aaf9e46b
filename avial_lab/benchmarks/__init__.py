"""The race: our programs against C with OpenMP, Numba and NumPy, on the kernels of the repository.

Kernels, Course -> Sheet. Every contestant works on the same arguments in a
process of its own, its result is checked before it is timed, and all take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from avial_lab.benchmarks.contestants import PEERS, Start, missing_peers
from avial_lab.benchmarks.kernel_suite import KernelProgram, kernel_program
from avial_lab.benchmarks.rounds import run_heat
from avial_lab.benchmarks.table import Heat, Sheet
from avial_lab.benchmarks.verification import Answer
from avial_lab.machine.host import busy, this_machine
from avial_lab.machine.measure import measure_ceilings
from avial_lab.machine.roofline import Ceilings
from avial_lab.runtime.rank.blas import blas_of_numpy, needed

__all__ = ["PEERS", "Answer", "Course", "race"]


@dataclass(frozen=True)
class Course:
    """What a race is run over. `elements`: of each kernel the first of these that it has a version
    of; of none, its own first. `without`: optional passes that our own programs do without;
    `strict` is their arithmetic; with `blas` they call one; `tune`: seconds for which each is tuned
    before it races.

    `told` hears of every heat as it ends.
    """

    size: str = "SMALL"
    elements: tuple[str, ...] = ()
    against: tuple[str, ...] = PEERS
    ranks: tuple[int, ...] = (1,)
    threads: tuple[int, ...] = (1,)
    without: str = ""
    strict: bool = False
    blas: bool = False
    tune: float | None = None
    told: Callable[[Heat], None] = field(default=lambda _: None, repr=False)


def race(kernels: Sequence[str], course: Course) -> Sheet:
    """Race on each of `kernels`; raises BindError where one is none, before anybody starts.

    An interrupt ends the race: what was finished is in the sheet, whose notes say so.
    """
    for name in kernels:
        _program(name, "MINI", course.elements)
    notes = list(_doubts(course))
    heats: list[Heat] = []
    planned = len(kernels) * len(course.threads) * len(course.ranks)
    try:
        for heat in _heats(kernels, course, notes):
            heats.append(heat)
            course.told(heat)
    except KeyboardInterrupt:
        notes.append(f"interrupted after {len(heats)} of {planned} heats")
    ceilings = tuple(dict.fromkeys(h.ceilings for h in heats if h.ceilings is not None))
    whole = len(heats) == planned
    return Sheet(course.size, tuple(heats), ceilings, this_machine(), tuple(notes), whole)


def _program(name: str, size: str, elements: Sequence[str]) -> KernelProgram:
    own = kernel_program(name, size="MINI").kernel.elements
    chosen = next((each for each in elements if each in own), None)
    return kernel_program(name, size=size, element=chosen or next(iter(elements), None))


def _heats(kernels: Sequence[str], course: Course, notes: list[str]) -> Iterator[Heat]:
    ceilings: dict[tuple[int, str], Ceilings] = {}
    for name in kernels:
        program = _program(name, course.size, course.elements)
        answer = Answer(program)
        for threads in course.threads:
            for ranks in course.ranks:
                key = (threads * ranks, program.element.replace("i", "f"))
                if key not in ceilings:
                    ceilings[key] = measure_ceilings(*key)
                start = Start(
                    program,
                    ranks,
                    threads,
                    course.against,
                    course.without,
                    course.strict,
                    course.blas,
                    course.tune,
                )
                yield run_heat(start, answer, ceilings[key])
        if answer.note:
            notes.append(answer.note)


def _doubts(course: Course) -> Iterator[str]:
    """What cannot race here, and why not to trust the times."""
    yield from busy()
    yield from missing_peers(course.against, course.ranks)
    theirs = blas_of_numpy() if "numpy" in course.against else None
    if theirs is not None:
        yield f"NumPy's products of matrices: {theirs.name}"
    if course.without:
        yield f"avial without {course.without}"
    if course.tune is not None:
        yield f"avial tuned for {course.tune:g} s before each race"
    if course.strict:
        yield "avial with strict arithmetic"
    if course.blas:
        yield f"avial calls a BLAS for products of matrices: {needed()}"
