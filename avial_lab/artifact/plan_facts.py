"""The facts of a plan in words: who owns what, what goes from rank to rank, what each rank holds.

Plan (and the moves that a run counted) -> sentences and `Table`s, for its own text, for pictures
and the tables below them.

It is below the type it describes, and imports it for annotations only: a plan prints with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from avial_lab.artifact.device_memory import fullest, told
from avial_lab.core.buffers import Storage
from avial_lab.core.table import ROW_LIMIT, Table, left_out
from avial_lab.core.words import MOST_ROWS, count, format_bytes
from avial_lab.machine.devices import ends_words, place_name
from avial_lab.trace import Move
from avial_lab.trace.run_facts import copies_table, copies_words

if TYPE_CHECKING:
    from avial_lab.artifact.plan import Plan


def moves_summary(plan: Plan, counted: Sequence[Move] | None = None) -> str:
    """One line: how many bytes in how many messages, foreseen or counted, and whether they agree.

    `3 ranks, 156 messages, 34.1 KiB moved, counted in the run and as planned`
    """
    shown = plan.moves if counted is None else counted
    messages = sum(move.messages for move in shown)
    nbytes = sum(move.nbytes for move in shown)
    words = f"{count(plan.ranks, 'rank')}, {count(messages, 'message')}, "
    between = sum(move.nbytes for move in shown if move.devices)
    devices = f" ({format_bytes(between)} from GPU to GPU)" if between else ""
    copied = f", {copies_words(plan.copies)}" if plan.copies else ""
    moved = f"{format_bytes(nbytes)} moved{devices}{copied}"
    return f"{words}{moved}, {agreement_words(plan, counted)}"


def between_devices_words(plan: Plan) -> str:
    """What goes from a rank's GPU to another's, and which way; empty where nothing does."""
    between = [move for move in plan.moves if move.devices]
    if not between:
        return ""
    number, nbytes = sum(move.messages for move in between), sum(move.nbytes for move in between)
    return (
        f"from GPU to GPU of another rank: {count(number, 'message')}, {format_bytes(nbytes)}; "
        "straight from their memory where MPI passes a self-test on the machine of the run, else "
        "through the memory of the hosts (avial-lab doctor and the run's trace say which)"
    )


def agreement_words(plan: Plan, counted: Sequence[Move] | None) -> str:
    """Where the numbers come from, and whether the run did what was planned."""
    if not plan.complete:
        sample = "the plan is a sample: a loop's iteration count depends on data"
        return sample if counted is None else f"counted in the run ({sample})"
    if counted is None:
        return "planned before the run"
    if _by_phase_and_pair(counted) == _by_phase_and_pair(plan.moves):
        return "counted in the run and as planned"
    planned = sum(move.messages for move in plan.moves), plan.bytes_moved
    return f"counted in the run; planned were {planned[0]:,} and {format_bytes(planned[1])}"


def moves_table(
    plan: Plan, counted: Sequence[Move] | None = None, *, most: int = ROW_LIMIT
) -> Table:
    """Phase by phase and pair by pair: what was planned, and what a run has counted."""
    planned, run = _by_phase_and_pair(plan.moves), _by_phase_and_pair(counted or ())
    order = {phase.phase: k for k, phase in enumerate(plan.phases)}
    keys = sorted({*planned, *run}, key=lambda key: (order.get(key[0], len(order)), *key))
    rows: list[tuple[str, ...]] = []
    for key in keys[:most]:
        phase, source, dest, devices = key
        row = (phase, *ends_words(source, dest, devices), *_amounts(planned.get(key)))
        rows.append(row if counted is None else (*row, *_amounts(run.get(key))))
    head = ("phase", "from rank", "to rank", "messages", "bytes")
    if counted is not None:
        head = (*head, "messages counted", "bytes counted")
    note = left_out(len(keys), "row", most)
    return Table("Messages", head, tuple(rows), frozenset(head[1:]), note)


def phase_table(plan: Plan, *, most: int = ROW_LIMIT) -> Table:
    """Every phase: how often it is begun, what moves for it, and whether it could be split."""
    sent: dict[str, int] = {}
    for move in plan.moves:
        sent[move.phase] = sent.get(move.phase, 0) + move.messages
    rows = tuple(
        (
            phase.phase,
            f"{phase.begun:,}",
            f"{sent.get(phase.phase, 0):,}",
            format_bytes(phase.nbytes),
            f"{phase.whole:,}",
        )
        for phase in plan.phases[:most]
    )
    head = ("phase", "begun", "messages", "bytes", "times not divided")
    note = left_out(len(plan.phases), "phase", most)
    return Table("Phases", head, rows, frozenset(head[1:]), note)


def held_table(plan: Plan, storages: Sequence[Storage], *, most: int = ROW_LIMIT) -> Table:
    """What each rank ever holds, beside its share of all arrays."""
    share = all_bytes(storages) / plan.ranks
    rows = tuple(
        (name, format_bytes(nbytes), f"{nbytes / share:.2f}" if share else "")
        for name, nbytes in _held(plan)[:most]
    )
    head = ("rank", "holds at most", "times its share")
    note = left_out(len(_held(plan)), "rank" if not plan.device_bytes else "row", most)
    return Table("Memory of each rank", head, rows, frozenset(head), note)


def _held(plan: Plan) -> list[tuple[str, int]]:
    """What each rank and each device ever holds."""
    ranks = [(str(rank), nbytes) for rank, nbytes in enumerate(plan.held_bytes)]
    places = enumerate(plan.device_bytes, plan.ranks)
    return ranks + [(place_name(place, plan.ranks), nbytes) for place, nbytes in places]


def held_summary(plan: Plan, storages: Sequence[Storage]) -> str:
    """`the fullest rank holds 5.6 KiB; all arrays divided by 3 ranks are 4.7 KiB`."""
    share = format_bytes(round(all_bytes(storages) / plan.ranks))
    fullest = format_bytes(max(plan.held_bytes, default=0))
    words = f"all arrays divided by {count(plan.ranks, 'rank')} are {share}"
    return f"the fullest rank holds {fullest}; {words}"


def taken_words(plan: Plan) -> str:
    """`gpu0 takes at most 1.6 KiB: a 800 B, b 800 B`, a line for each of the first devices."""
    return "\n".join(
        f"{place_name(place, plan.ranks)} takes at most "
        f"{format_bytes(sum(stay.nbytes for stay in there))}: {told(there)}"
        for place, there in list(fullest(plan.stays).items())[:MOST_ROWS]
    )


def plan_text(
    plan: Plan,
    counted: Sequence[Move] | None = None,
    *,
    storages: Sequence[Storage] = (),
    most: int = ROW_LIMIT,
) -> str:
    """The pictures' facts for a terminal, of each table at most so many rows; memory where the
    `storages` are known.
    """
    tables = [phase_table(plan, most=most), moves_table(plan, counted, most=most)]
    if plan.copies:
        tables.append(copies_table(plan.copies, most=most))
    words = [moves_summary(plan, counted)]
    if storages:
        tables.append(held_table(plan, storages, most=most))
        words.append(held_summary(plan, storages))
    if plan.stays:
        words.append(taken_words(plan))
    return "\n".join([*words, *(table.to_text() for table in tables if table.rows)])


def all_bytes(storages: Iterable[Storage]) -> int:
    """Bytes of all arrays, those of the program's own included."""
    total = 0
    for storage in storages:
        size = storage.itemsize
        for extent in storage.shape:
            size *= extent
        total += size
    return total


def _by_phase_and_pair(moves: Iterable[Move]) -> dict[tuple[str, int, int, str], tuple[int, int]]:
    found: dict[tuple[str, int, int, str], tuple[int, int]] = {}
    for move in moves:
        key = move.phase, move.source, move.dest, move.devices
        messages, nbytes = found.get(key, (0, 0))
        found[key] = messages + move.messages, nbytes + move.nbytes
    return found


def _amounts(cell: tuple[int, int] | None) -> tuple[str, str]:
    return ("–", "–") if cell is None else (f"{cell[0]:,}", format_bytes(cell[1]))


def split_table(plan: Plan) -> Table:
    """Phase by phase and rank by rank: the boxes that are written and read."""
    grouped: dict[tuple[str, int], dict[bool, list[str]]] = {}
    for each in plan.footprints:
        uses = grouped.setdefault((each.phase, each.rank), {True: [], False: []})
        uses[each.use.writes].append(f"{each.storage}{each.box}{each.use.mark}")
    rows = tuple(
        (phase, "every" if rank < 0 else str(rank), _joined(uses[True]), _joined(uses[False]))
        for (phase, rank), uses in list(grouped.items())[:ROW_LIMIT]
    )
    head = ("phase", "rank", "writes", "reads")
    note = left_out(len(grouped), "row")
    return Table("Split", head, rows, frozenset({"rank"}), note)


def _joined(boxes: Sequence[str], *, most: int = 6) -> str:
    more = f" and {len(boxes) - most:,} more" if len(boxes) > most else ""
    return ", ".join(boxes[:most]) + more
