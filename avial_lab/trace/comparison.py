"""What was predicted beside what happened.

A simulated Trace and measured ones -> Comparison: tasks, makespan and critical path of both, and
the largest errors with their likely cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from avial_lab.core.table import PRINTED_ROWS, Table, left_out
from avial_lab.core.words import brief, count, format_bytes, format_seconds, listed
from avial_lab.trace.analysis import critical_path
from avial_lab.trace.events import EventKind, Trace

LARGEST = 3
"""Errors that are explained."""

SHORT_S = 5e-6
"""A task below this is mostly what it takes to begin one."""

AGREES = 1.25
"""Within this factor there is nothing to explain."""


@dataclass(frozen=True)
class TaskError:
    """A task, or a phase over all its pieces: seconds predicted and measured (the median of the
    runs), how far the runs were apart (greatest less least), where the prediction came from.
    """

    name: str
    predicted_s: float
    measured_s: float
    spread_s: float
    source: str = ""

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted_s / self.measured_s if self.measured_s else float("inf")

    @property
    def off_s(self) -> float:
        return abs(self.predicted_s - self.measured_s)


@dataclass(frozen=True)
class Comparison:
    """`predicted` was made before the runs; `runs` are what then happened. sources: where the
    seconds of each task came from.
    """

    predicted: Trace
    runs: tuple[Trace, ...]
    sources: Mapping[str, str]
    tasks_of: str = "task"
    note: str = ""
    """Why the measured times may not be trusted: a busy machine."""

    @cached_property
    def measured(self) -> Trace:
        """The run whose makespan is the median: no one run's spike stands for all."""
        ordered = sorted(self.runs, key=lambda run: run.makespan_s)
        return ordered[(len(ordered) - 1) // 2]

    @property
    def ratio(self) -> float:
        """Makespan predicted over makespan measured."""
        measured = self.measured.makespan_s
        return self.predicted.makespan_s / measured if measured else float("inf")

    @property
    def spread(self) -> float:
        """How far the runs' makespans were apart, as a part of their median."""
        spans = [run.makespan_s for run in self.runs]
        return (max(spans) - min(spans)) / median(spans) if median(spans) else 0.0

    @cached_property
    def tasks(self) -> tuple[TaskError, ...]:
        """Every task of both, the largest errors first."""
        said = _seconds(self.predicted)
        happened = [_seconds(run) for run in self.runs]
        found: list[TaskError] = []
        for name, predicted_s in said.items():
            times = [run[name] for run in happened if name in run]
            if not times:
                continue
            spread_s = max(times) - min(times)
            source = self.sources.get(name, "")
            found.append(TaskError(name, predicted_s, median(times), spread_s, source))
        return tuple(sorted(found, key=lambda each: -each.off_s))

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """The largest errors, and their likely cause."""
        wrong = [
            each for each in self.tasks if not 1 / AGREES <= each.ratio <= AGREES and each.off_s
        ]
        return tuple((each.name, self._cause(each)) for each in wrong[:LARGEST])

    def _cause(self, task: TaskError) -> str:
        if task.spread_s > task.off_s:
            return "noise: the runs are further apart than the error"
        if task.measured_s < SHORT_S:
            return "launch: so short that beginning it is most of its time"
        if task.source == "guessed":
            return "its operations are not known, only what it touches"
        if task.measured_s > task.predicted_s:
            others = _beside(self.measured, task.name)
            if others:
                return f"contention, or caches: it ran beside {listed(others, most=3)}"
            return "caches, or a chain of dependences: the roofline knows neither"
        return "caches: the roofline takes more from memory than the run did"

    @property
    def table(self) -> Table:
        rows = tuple(
            (
                each.name,
                format_seconds(each.predicted_s),
                format_seconds(each.measured_s),
                format_seconds(each.spread_s),
                f"{each.ratio:.2f}",
                each.source,
            )
            for each in self.tasks[:PRINTED_ROWS]
        )
        head = (self.tasks_of, "predicted", "measured", "spread", "ratio", "predicted from")
        note = left_out(len(self.tasks), self.tasks_of, PRINTED_ROWS)
        return Table("Predicted and measured", head, rows, frozenset(head[1:5]), note)

    @property
    def summary(self) -> str:
        """`predicted 3.1 ms, measured 3.4 ms (5 runs, 8 % apart): 0.91 of it`."""
        runs = count(len(self.runs), "run")
        apart = f", {100 * self.spread:.0f} % apart" if len(self.runs) > 1 else ""
        return (
            f"predicted {format_seconds(self.predicted.makespan_s)} "
            f"({self.predicted.label}), measured {format_seconds(self.measured.makespan_s)} "
            f"({runs}{apart}): {self.ratio:.2f} of it"
        )

    @property
    def paths(self) -> str:
        """What the critical path was said to be, and what it was."""
        said, was = _path(self.predicted), _path(self.measured)
        if said == was:
            return f"The critical path was as predicted: {listed(said, most=6)}."
        return (
            f"The critical path was said to be {listed(said, most=6) or 'empty'}, "
            f"and was {listed(was, most=6) or 'empty'}."
        )

    @property
    def memory(self) -> str:
        """What ranks were said to hold, and what they held; empty where either is not known."""
        said, held = self.predicted.held_bytes, self.measured.held_bytes
        if not held or len(said) != len(held):
            return ""
        off = [abs(a - b) / max(b, 1) for a, b in zip(said, held, strict=True)]
        worst = off.index(max(off))
        told = f"predicted {format_bytes(said[worst])}, held {format_bytes(held[worst])}"
        return f"Memory of arrays, rank {worst} (the furthest off): {told}"

    @property
    def causes(self) -> str:
        """The largest errors in words; empty where all is within a quarter."""
        return "\n".join(f"  {name}: {cause}" for name, cause in self.errors)

    def __str__(self) -> str:
        if not self.measured.ranks:
            return f"predicted {format_seconds(self.predicted.makespan_s)}; {self.measured.label}"
        causes = f"The largest errors\n{self.causes}" if self.errors else ""
        parts = [self.summary, self.note, self.table.to_text(), self.paths, self.memory, causes]
        return "\n".join(filter(None, parts))

    def __repr__(self) -> str:
        return brief(self, self.summary if self.measured.ranks else "of a run without ranks")


def _seconds(trace: Trace) -> dict[str, float]:
    """Of each task, all its runs together; of a phase the rank that took longest."""
    if trace.turns and trace.totals:
        found: dict[str, float] = {}
        for total in trace.totals:
            if total.kind is EventKind.TASK:
                found[total.phase] = max(found.get(total.phase, 0.0), total.seconds)
        return found
    by_rank: dict[tuple[str, int], float] = {}
    for event in trace.events:
        if event.kind is EventKind.TASK:
            key = event.name, event.rank
            by_rank[key] = by_rank.get(key, 0.0) + event.duration_s
    longest: dict[str, float] = {}
    for (name, _), seconds in by_rank.items():
        longest[name] = max(longest.get(name, 0.0), seconds)
    return longest


def _path(trace: Trace) -> list[str]:
    """The tasks of the critical path, in their order."""
    kept: Iterable[str] = (
        segment.name for segment in critical_path(trace) if segment.kind == "task"
    )
    return list(dict.fromkeys(kept))


def _beside(trace: Trace, name: str) -> list[str]:
    """Tasks of other ranks that ran while that one did."""
    tasks = [event for event in trace.events if event.kind is EventKind.TASK]
    mine: Sequence[tuple[int, float, float]] = [
        (event.rank, event.start_s, event.end_s) for event in tasks if event.name == name
    ]
    return list(
        dict.fromkeys(
            event.name
            for event in tasks
            for rank, start, end in mine
            if event.rank != rank and event.start_s < end and event.end_s > start
        )
    )
