"""What happened when, on one clock.

Manifest, Times of all ranks -> Trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from avial_lab.artifact.logs import LOGGED, Row
from avial_lab.artifact.manifest import Manifest
from avial_lab.core.runtime_constants import RunEvent
from avial_lab.machine.devices import kind_named, label_with
from avial_lab.runtime.rank.clock import Times, aligned
from avial_lab.runtime.rank.outcome import Outcome
from avial_lab.trace import Copy, EventKind, Move, Total, Trace


@dataclass
class Ran:
    """A run that is over: what its ranks sent and copied to devices and back, and its Trace, which
    is made when somebody looks at it; runs of some ten microseconds are often followed by the next.
    """

    moves: tuple[Move, ...]
    make: Callable[[], Trace]
    copies: tuple[Copy, ...] = ()

    @cached_property
    def trace(self) -> Trace:
        return self.make()


def ran(manifest: Manifest, outcomes: Sequence[Outcome]) -> Ran:
    """As `trace_of`, later."""
    moves = tuple(move for outcome in outcomes for move in outcome.moves)
    copies = tuple(copy for outcome in outcomes for copy in outcome.copies)
    return Ran(moves, lambda: trace_of(manifest, outcomes), copies)


def trace_of(manifest: Manifest, outcomes: Iterable[Outcome]) -> Trace:
    """The steps of all ranks on the clock of rank 0, from the first of them."""
    ranks = [outcome for outcome in outcomes if outcome.times is not None]
    taken = {outcome.rank: outcome.times for outcome in ranks if outcome.times is not None}
    logs = {rank: times.rows for rank, times in taken.items()}
    rows = list(manifest.log.rows(logs, lambda rank, ns: aligned(ns, taken[rank].readings)))
    rows.sort(key=lambda row: (row.start_ns, row.end_ns, row.rank))
    origin = rows[0].start_ns if rows else 0
    moves = tuple(move for outcome in ranks for move in outcome.moves)
    held = tuple(outcome.touched_bytes for outcome in ranks)
    dropped = tuple(taken[rank].dropped for rank in sorted(taken))
    return Trace(
        ranks=manifest.ranks,
        events=tuple(row.event(origin) for row in rows),
        label=label_with("measured", map(kind_named, manifest.kinds.values())),
        kinds=tuple(manifest.kinds.items()),
        moves=moves,
        copies=tuple(copy for outcome in ranks for copy in outcome.copies),
        taken_bytes=tuple(sorted(taken for each in ranks for taken in each.taken_bytes)),
        held_bytes=held if any(held) else (),
        clock_error_s=_clock_error_s(taken.values()),
        around=tuple(row.event(origin) for row in _asides(taken)) if rows else (),
        totals=tuple(total for rank, times in taken.items() for total in _totals(rank, times)),
        dropped=dropped if any(dropped) else (),
        turns=next((times.turns for times in taken.values()), ()),
        ends_s=_ends_s(taken, origin) if any(dropped) else (),
        threads=tuple(outcome.team.count for outcome in ranks),
        note="; ".join(dict.fromkeys(filter(None, _notes(ranks, moves)))),
        machine="; ".join(dict.fromkeys(t.machine for t in taken.values() if t.machine)),
    )


def _notes(outcomes: Iterable[Outcome], moves: Iterable[Move]) -> Iterator[str]:
    """Of threads; and which way messages between devices went, where there were any."""
    between = any(move.devices for move in moves)
    for outcome in outcomes:
        yield outcome.team.note
        yield outcome.way if between else ""


def _clock_error_s(taken: Iterable[Times]) -> float:
    """What two ranks' times may be wrong by against each other, at most."""
    errors = sorted(max(reading.error_ns for reading in times.readings) for times in taken)
    return sum(errors[-2:]) / 1e9


def _asides(taken: dict[int, Times]) -> Iterator[Row]:
    for rank, times in sorted(taken.items()):
        for aside in times.around:
            ends = aligned(np.array([aside.start_ns, aside.end_ns]), times.readings).tolist()
            yield Row(EventKind.COPY, aside.name, rank, *ends, nbytes=aside.nbytes)


def _ends_s(taken: dict[int, Times], origin_ns: int) -> tuple[float, ...]:
    return tuple(
        float(aligned(np.array([times.done_ns]), times.readings)[0] - origin_ns) / 1e9
        for _, times in sorted(taken.items())
    )


def _totals(rank: int, times: Times) -> Iterator[Total]:
    """A copy that is part of a message's event counts as a copy."""
    copies: dict[str, np.ndarray] = {}
    for total in times.totals:
        kind, events = (
            LOGGED[RunEvent(total.kind)],
            np.array([total.events, total.ns, total.nbytes]),
        )
        parts = np.array([total.copies, total.copies_ns, total.copies_nbytes])
        if kind is EventKind.COPY:
            parts = events
        else:
            seconds = (total.ns - total.copies_ns) / 1e9
            yield Total(rank, total.phase, kind, total.events, seconds, total.nbytes)
        copies[total.phase] = copies.get(total.phase, 0) + parts
    for phase, (events, ns, nbytes) in copies.items():
        if events:
            yield Total(rank, phase, EventKind.COPY, int(events), float(ns) / 1e9, int(nbytes))
