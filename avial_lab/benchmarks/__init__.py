"""The race: our programs against C with OpenMP, Numba and NumPy, on the kernels of the repository.

Kernels, Configuration -> Report. Every contestant works on the same arguments in a
process of its own, its result is checked before it is timed, and all run alternately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from avial_lab.benchmarks.contestants import PEERS, Start, missing_peers
from avial_lab.benchmarks.kernel_suite import KernelProgram, element_of, kernel_program
from avial_lab.benchmarks.rounds import run_round
from avial_lab.benchmarks.table import Report, Round
from avial_lab.benchmarks.verification import Answer
from avial_lab.machine.host import busy, this_machine
from avial_lab.machine.measure import measure_ceilings
from avial_lab.machine.roofline import Ceilings
from avial_lab.runtime.rank.blas import blas_of_numpy, needed

__all__ = ["PEERS", "Answer", "Configuration", "race"]


@dataclass(frozen=True)
class Configuration:
    """What a race is run over. `elements`: of each kernel the first of these that it has a version
    of; of none, its own first. `without`: optional passes that our own programs do without;
    `strict` is their arithmetic; with `blas` they call one; `tune`: seconds for which each is tuned
    before it races.

    `on_round` is called with every round as it ends.
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
    on_round: Callable[[Round], None] = field(default=lambda _: None, repr=False)


def race(kernels: Sequence[str], configuration: Configuration) -> Report:
    """Race on each of `kernels`; raises BindError where one is none, before any contestant starts.

    An interrupt ends the race: what was finished is in the report, whose notes say so.
    """
    for name in kernels:
        _program(name, "MINI", configuration.elements)
    notes = list(_doubts(configuration))
    rounds: list[Round] = []
    planned = len(kernels) * len(configuration.threads) * len(configuration.ranks)
    try:
        for raced in _rounds(kernels, configuration, notes):
            rounds.append(raced)
            configuration.on_round(raced)
    except KeyboardInterrupt:
        notes.append(f"interrupted after {len(rounds)} of {planned} rounds")
    ceilings = tuple(dict.fromkeys(h.ceilings for h in rounds if h.ceilings is not None))
    whole = len(rounds) == planned
    return Report(configuration.size, tuple(rounds), ceilings, this_machine(), tuple(notes), whole)


def _program(name: str, size: str, elements: Sequence[str]) -> KernelProgram:
    chosen = element_of(name, elements) or next(iter(elements), None)
    return kernel_program(name, size=size, element=chosen)


def _rounds(
    kernels: Sequence[str], configuration: Configuration, notes: list[str]
) -> Iterator[Round]:
    ceilings: dict[tuple[int, str], Ceilings] = {}
    for name in kernels:
        program = _program(name, configuration.size, configuration.elements)
        answer = Answer(program)
        for threads in configuration.threads:
            for ranks in configuration.ranks:
                key = (threads * ranks, program.element.replace("i", "f"))
                if key not in ceilings:
                    ceilings[key] = measure_ceilings(*key)
                start = Start(
                    program,
                    ranks,
                    threads,
                    configuration.against,
                    configuration.without,
                    configuration.strict,
                    configuration.blas,
                    configuration.tune,
                )
                yield run_round(start, answer, ceilings[key])
        if answer.note:
            notes.append(answer.note)


def _doubts(configuration: Configuration) -> Iterator[str]:
    """Which peers are missing, and reasons to doubt the times."""
    yield from busy()
    yield from missing_peers(configuration.against, configuration.ranks)
    theirs = blas_of_numpy() if "numpy" in configuration.against else None
    if theirs is not None:
        yield f"NumPy's products of matrices: {theirs.name}"
    if configuration.without:
        yield f"avial without {configuration.without}"
    if configuration.tune is not None:
        yield f"avial tuned for {configuration.tune:g} s before each race"
    if configuration.strict:
        yield "avial with strict arithmetic"
    if configuration.blas:
        yield f"avial calls a BLAS for products of matrices: {needed()}"
