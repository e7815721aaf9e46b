"""What passes are worth, in a table: a row a pass; and as plain data.

Timed programs -> Worth -> rows -> text, JSON.

    format      "avial-lab passes"
    version     1
    made        {command, commit, date, versions}
    size, ranks, threads, passes, machine, notes
    programs    [{program, element, compile_s [[pass, seconds]], races [{left_out, with_s,
                without_s, with_least_s, without_least_s, fault}], skipped (why), unreached [pass]}]
    unreached   programs that the time limit was reached for

Times are in seconds, medians. Nothing in it names the machine's owner, its host or its folders.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from avial_lab.benchmarks.table import columns
from avial_lab.machine.host import CacheLevel, Machine

FORMAT = "avial-lab passes"
VERSION = 1

LEAST_GAIN = 1.02
"""Less is within what the machine makes of it."""

GAIN = (
    "Gains are the time without the pass over that with it, of medians; least: of the fastest runs."
)

INTERRUPTED = "interrupted at "
"""So begins the note of where somebody ended it."""


@dataclass(frozen=True)
class Race:
    """A program with all passes against itself without one of them; medians, and of the fastest
    runs, which other work on the machine disturbs less. `fault`: why there are no times.
    """

    left_out: str
    with_s: float = 0.0
    without_s: float = 0.0
    with_least_s: float = 0.0
    without_least_s: float = 0.0
    fault: str = ""

    @property
    def gain(self) -> float:
        """The time without the pass over that with it."""
        return self.without_s / self.with_s

    @property
    def least_gain(self) -> float:
        return self.without_least_s / self.with_least_s


@dataclass(frozen=True)
class Timed:
    """A program: what each pass takes to compile it, and the races with those that change it.
    `skipped`: why it was not raced. `unreached`: passes that the time limit was reached for.
    """

    program: str
    element: str = ""
    compile_s: tuple[tuple[str, float], ...] = ()
    races: tuple[Race, ...] = ()
    skipped: str = ""
    unreached: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(
            f"{self.program} without {race.left_out}: {race.fault}"
            for race in self.races
            if race.fault
        )


@dataclass(frozen=True)
class Row:
    """One pass. `gains`: by program, of those that are other code without it and came home;
    `least_gains`: of the fastest runs.
    `raced`: how many were compiled without it, `changed`: how many of these are other code.
    `compile_s`: in all, of so many `programs`.
    """

    name: str
    raced: int
    changed: int
    gains: Mapping[str, float]
    least_gains: Mapping[str, float]
    compile_s: float
    programs: int

    @property
    def mean(self) -> float:
        """Geometric, over the programs it changes; 1 where there are none."""
        return _mean(self.gains.values())

    @property
    def least_mean(self) -> float:
        return _mean(self.least_gains.values())

    @property
    def best(self) -> str:
        return max(self.gains, key=lambda name: self.gains[name])

    @property
    def worst(self) -> str:
        return min(self.gains, key=lambda name: self.gains[name])

    @property
    def mark(self) -> str:
        """What speaks against the pass."""
        served = [name for name, gain in self.gains.items() if gain >= LEAST_GAIN]
        if not self.changed:
            return "changes nothing here" if self.raced else "not raced"
        if not served:
            return "< 2 % everywhere" if self.gains else "faults alone"
        return f"serves {served[0]} alone" if len(served) == 1 else ""


def _mean(gains: Collection[float]) -> float:
    return math.exp(math.fsum(map(math.log, gains)) / len(gains)) if gains else 1.0


@dataclass(frozen=True)
class Worth:
    """All programs that were reached."""

    size: str
    ranks: int
    threads: int
    machine: Machine
    passes: tuple[str, ...]
    programs: tuple[Timed, ...] = ()
    unreached: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return not self.unreached and not any(timed.unreached for timed in self.programs)

    @property
    def interrupted(self) -> bool:
        return any(note.startswith(INTERRUPTED) for note in self.notes)

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(map(self._row, self.passes))

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(fault for timed in self.programs for fault in timed.faults)

    def _row(self, name: str) -> Row:
        races = {t.program: r for t in self.programs for r in t.races if r.left_out == name}
        took = [seconds for t in self.programs for of, seconds in t.compile_s if of == name]
        home = {program: race for program, race in races.items() if not race.fault}
        gains = {program: race.gain for program, race in home.items()}
        least = {program: race.least_gain for program, race in home.items()}
        raced = sum(not t.skipped and name not in t.unreached for t in self.programs)
        return Row(name, raced, len(races), gains, least, math.fsum(took), len(took))

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(self._remarks())

    def _remarks(self) -> Iterator[str]:
        yield from self.notes
        for timed in self.programs:
            if timed.skipped:
                yield f"skipped: {timed.program}: {timed.skipped}"
            if timed.unreached:
                yield f"not reached: {timed.program} without {', '.join(timed.unreached)}"
        if self.unreached:
            yield f"not reached: {', '.join(self.unreached)}"

    def __str__(self) -> str:
        raced = sum(not timed.skipped for timed in self.programs)
        head = (
            f"{raced} program{'' if raced == 1 else 's'}, {self.size}, "
            f"{self.ranks} × {self.threads}"
        )
        lines = [*text_table(self.rows), "", GAIN, head, str(self.machine)]
        return "\n".join([*lines, *self.faults, *self.remarks])


HEAD = (
    "pass", "changes", "mean", "least", "best", "of", "worst", "of", "compile, ms", "a program", "",
)  # fmt: skip


def cells(row: Row) -> tuple[str, ...]:
    """A row of the table, under `HEAD`."""
    gains = ("-",) * 6
    if row.gains:
        best, worst = row.gains[row.best], row.gains[row.worst]
        means = (f"{row.mean:.3f}", f"{row.least_mean:.3f}")
        gains = (*means, f"{best:.2f}", row.best, f"{worst:.2f}", row.worst)
    each = row.compile_s / row.programs if row.programs else 0.0
    took = (f"{row.compile_s * 1e3:.1f}", f"{each * 1e3:.2f}")
    return (row.name, str(row.changed), *gains, *took, row.mark)


def text_table(rows: Sequence[Row]) -> list[str]:
    return columns([HEAD, *map(cells, rows)], left=(0, 5, 7, 10))


# -- as plain data ---------------------------------------------------------------------------------


def worth_facts(report: Worth, made: Mapping[str, Any]) -> dict[str, Any]:
    """The report as JSON has it; `made`: how (`made.made_by`)."""
    return {"format": FORMAT, "version": VERSION, "made": dict(made), **asdict(report)}


def worth_of(facts: Mapping[str, Any]) -> Worth:
    """The report that these facts are of."""
    return Worth(
        facts["size"],
        facts["ranks"],
        facts["threads"],
        machine_of(facts["machine"]),
        tuple(facts["passes"]),
        tuple(map(_timed_of, facts["programs"])),
        tuple(facts["unreached"]),
        tuple(facts["notes"]),
    )


def machine_of(facts: Mapping[str, Any]) -> Machine:
    caches = tuple(CacheLevel(**cache) for cache in facts["caches"])
    return Machine(**{**facts, "caches": caches})


def _timed_of(facts: Mapping[str, Any]) -> Timed:
    return Timed(
        facts["program"],
        facts["element"],
        tuple((name, seconds) for name, seconds in facts["compile_s"]),
        tuple(Race(**race) for race in facts["races"]),
        facts["skipped"],
        tuple(facts["unreached"]),
    )
