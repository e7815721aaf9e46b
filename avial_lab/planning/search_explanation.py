"""Why a search ranks one configuration before another, and what one lacks that cannot be.

ModelSearch, the words of one or two of its rows -> a table and sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from avial_lab.core.errors import OptionError, ScheduleError
from avial_lab.core.table import Table
from avial_lab.core.words import count, format_bytes, format_seconds, shortened
from avial_lab.planning.model_costs import Configuration, closed_form, costs_of
from avial_lab.planning.model_search import ModelSearch, SearchRow
from avial_lab.planning.parallelism import devices_of


def explained(found: ModelSearch, words: str, against: str = "") -> str:
    """What a configuration costs, beside another one: by default the best, or the second best.

    Where it is infeasible: what it lacks, and what would help. OptionError for words of no row.
    """
    row = _row_called(found, words)
    other = _row_called(found, against) if against else _rival(found, row)
    lines: list[str] = []
    if not row.feasible:
        lines += _lack(found, row)
    if other is None or other == row:
        return "\n".join(lines or [f"{row.words} is the only configuration that can be"])
    if row.predicted_s is None or other.predicted_s is None:
        missing = row if row.predicted_s is None else other
        told = f"{missing.words} cannot be: {missing.reason}"
        return "\n".join(lines or [told])
    return "\n".join([*lines, *_compared(found, row, other)])


def _row_called(found: ModelSearch, words: str) -> SearchRow:
    plain = " ".join(words.split())
    for row in found.rows:
        if plain in (row.words, row.configuration.name):
            return row
    hint = f"write one as the table has it: {found.rows[0].words}"
    with suppress(ScheduleError):
        taken = devices_of(plain)
        if taken != found.devices:
            hint = f"it takes {count(taken, 'device')}, and all here take {found.devices:,}"
        elif found.left_out:
            hint = f"it may be among those left out: {found.left_out[0]}"
    raise OptionError(f"'{shortened(words, 60)}' is no configuration of this search", hint=hint)


def _rival(found: ModelSearch, row: SearchRow) -> SearchRow | None:
    return next((each for each in found.ranked if each != row), None)


def _compared(found: ModelSearch, row: SearchRow, other: SearchRow) -> Iterator[str]:
    assert found.machine is not None
    here, there = (costs_of(found.model, r.configuration, found.machine) for r in (row, other))
    seconds = _rows(here.seconds, there.seconds, format_seconds)
    memory = _rows(here.held, there.held, lambda n: format_bytes(int(n)))
    first, second = sum(here.seconds.values()), sum(there.seconds.values())
    fast, slow = (row, other) if first <= second else (other, row)
    ratio = max(first, second) / max(min(first, second), 1e-30)
    times = f"{ratio:.2f} times" if ratio >= 1.005 else "about"
    yield Table(
        f"{fast.words} is {times} as fast as {slow.words}, in closed form",
        ("", row.words, other.words),
        (
            *seconds,
            ("a step", format_seconds(first), format_seconds(second)),
            *memory,
            ("a device holds", *(format_bytes(int(sum(c.held.values()))) for c in (here, there))),
        ),
        frozenset((row.words, other.words)),
    ).to_text()
    lower, higher = (here, there) if first <= second else (there, here)
    saved = {name: higher.seconds[name] - lower.seconds[name] for name in here.seconds}
    name = max(saved, key=lambda each: saved[each])
    if saved[name] > 0:
        yield f"most of it: {name}, {format_seconds(saved[name])} less"
    if row.simulated_s is not None and other.simulated_s is not None:
        yield (
            f"by events: {row.words} {format_seconds(row.simulated_s)}, "
            f"{other.words} {format_seconds(other.simulated_s)}"
        )


def _rows(
    here: Mapping[str, float], there: Mapping[str, float], text: Callable[[float], str]
) -> list[tuple[str, str, str]]:
    return [
        (name, text(here.get(name, 0.0)), text(there.get(name, 0.0)))
        for name in dict.fromkeys((*here, *there))
        if here.get(name, 0.0) or there.get(name, 0.0)
    ]


def _lack(found: ModelSearch, row: SearchRow) -> list[str]:
    """How far it is from what can be, and which neighbours are nearer."""
    told = [f"{row.words} cannot be: {row.reason}"]
    machine = found.machine
    if machine is None or row.predicted_bytes is None or row.nbytes <= machine.memory_bytes:
        return told
    costs = costs_of(found.model, row.configuration, machine)
    most = sorted(costs.held.items(), key=lambda each: -each[1])[:3]
    held = ", ".join(f"{name} {format_bytes(int(n))}" for name, n in most if n)
    room = format_bytes(int(machine.memory_bytes))
    told.append(f"a device would hold {format_bytes(row.nbytes)} of {room}: {held}")
    for given, words in _neighbours(found, row.configuration):
        _, nbytes = closed_form(found.model, given, machine)
        if nbytes < row.predicted_bytes:
            over = nbytes - machine.memory_bytes
            rest = f"{format_bytes(int(over))} over" if over > 0 else "it fits"
            told.append(f"with {words} it is {format_bytes(nbytes)}: {rest}")
    return [*told, *found.least]


def _neighbours(found: ModelSearch, given: Configuration) -> Iterator[tuple[Configuration, str]]:
    """The same with one thing more that holds less."""
    there = {row.configuration for row in found.rows if row.predicted_bytes}
    changes = [(replace(given, zero=level), f"zero {level}") for level in (1, 2, 3)]
    changes.append((replace(given, recompute=True), "recompute"))
    changes.append((replace(given, k=2 * given.k), f"{2 * given.k} micro-batches"))
    changes += [(replace(given, schedule=each), each) for each in ("1f1b", "zero-bubble")]
    changes.append((replace(given, d=1, h=given.d * given.h), "horizontal in place of data"))
    yield from ((each, words) for each, words in changes if each != given and each in there)
