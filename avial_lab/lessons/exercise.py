"""Exercises that check themselves: what a program should be, and for what it is not, why.

Program, expectations -> lines with a tick or a cross, and CheckError where one is a cross. Every
cross says what was found instead, why, and where in the cell.

    ✓ 2 levels
    ✗ task3 waits for task1
        no: task1 writes d, task3 reads c; neither touches what the other writes
        task1 is at In [4]:5:12, task3 at In [4]:21:12
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from avial_lab.core.errors import CheckError
from avial_lab.core.words import brief, count, format_bytes, format_seconds
from avial_lab.planning.graph_facts import access_words, buffer_words, region_words
from avial_lab.planning.schedule import ALL_TASKS
from avial_lab.planning.task_graph import Dependency, Task, TaskKind
from avial_lab.program.program import Program
from avial_lab.trace import EventKind

TOLERANCE = 1e-9
"""Floating-point values may be so far from the expected ones, relative to the largest of them."""


FEW = 6
"""So many names are listed where one is not known; of more, the nearest."""


@dataclass(frozen=True)
class Finding:
    """One thing that was expected: whether it holds, what it is, and what there is to say of it."""

    holds: bool
    what: str
    why: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [line for text in self.why for line in text.splitlines()]
        return "\n".join(
            [f"{'✓' if self.holds else '✗'} {self.what}", *(f"    {x}" for x in lines)]
        )

    def __repr__(self) -> str:
        return brief(self, f"{'✓' if self.holds else '✗'} {self.what}")


def check(
    program: Program,
    *,
    tasks: int | None = None,
    levels: int | None = None,
    reads: Mapping[str, Iterable[str]] | None = None,
    writes: Mapping[str, Iterable[str]] | None = None,
    depends: Iterable[tuple[str, str]] = (),
    independent: Iterable[tuple[str, str]] = (),
    on: Mapping[str, str] | None = None,
    ranks: int | None = None,
    divided: Iterable[str] = (),
    in_order: Iterable[str] = (),
    messages: int | None = None,
    bytes_moved: int | None = None,
    bytes_copied: int | None = None,
    values: Mapping[str, object] | None = None,
    predicted: Mapping[str, float] | None = None,
) -> None:
    """Print what of this holds for `program` and what does not, with the reason; CheckError at the
    end if something does not.

    reads, writes: exactly these buffers, by task. depends: pairs (before, after) whose second has
    to wait; independent: pairs of which neither has to. on: the kind of device (`cpu`, `gpu`), by
    task. bytes_copied: between hosts and GPUs. divided, in_order: loops, as `program.explain()`
    calls them. values: what arrays hold after the run; integers exactly, floating-point numbers
    within `TOLERANCE`. predicted: on that machine (`preset:…`) the simulated run takes at most so
    many seconds.
    """
    if not isinstance(program, Program):  # pyright: ignore[reportUnnecessaryIsInstance] - a cell's
        kind = type(program).__name__
        raise CheckError(
            "there is no program yet" if program is None else f"check takes a program, not {kind}",
            hint="run the cell above first; `%%avial -o NAME` keeps its program in NAME",
        )
    findings = [
        *_count(
            program,
            "task",
            tasks,
            ["  " + ", ".join(t.name for t in program.graph.tasks)],
            found=len(program.graph.tasks),
        ),
        *_count(program, "level", levels, _level_lines(program), found=len(program.graph.levels)),
        *_count(program, "rank", ranks, [], found=program.schedule.topology.ranks),
        *_of_tasks(program, reads or {}, "reads", _reads),
        *_of_tasks(program, writes or {}, "writes", _writes),
        *(_waits(program, before, after) for before, after in depends),
        *(_waits_not(program, one, other) for one, other in independent),
        *(_placed(program, task, kind) for task, kind in (on or {}).items()),
        *(_became(program, name, TaskKind.REPLICATE) for name in divided),
        *(_became(program, name, TaskKind.CONVERGE) for name in in_order),
        *_messages(program, messages, bytes_moved),
        *([] if bytes_copied is None else [_copied(program, bytes_copied)]),
        *(_values(program, name, wanted) for name, wanted in (values or {}).items()),
        *(_predicted(program, machine, limit) for machine, limit in (predicted or {}).items()),
    ]
    if not findings:
        raise CheckError("there is nothing to check", hint="pass what you expect: levels=2, …")
    print("\n".join(map(str, findings)))  # noqa: T201 - what a check cell is for
    wrong = sum(not finding.holds for finding in findings)
    if wrong:
        raise CheckError(f"{wrong} of {count(len(findings), 'point')} not met: see the ✗ above")


# How many ----------------------------------------------------------------------------------------


def _count(
    program: Program, noun: str, wanted: int | None, listed: Sequence[str], *, found: int
) -> Iterator[Finding]:
    if wanted is None:
        return
    if found == wanted:
        yield Finding(True, count(wanted, noun))
        return
    lines = [f"the program has {count(found, noun)}{':' if listed else ''}", *listed]
    if noun == "rank":
        lines.append(f"`%%avial --ranks {wanted}`, or compile(…, ranks={wanted})")
    if noun == "level" and found > wanted:
        lines.append(_longest_chain(program))
    yield Finding(False, count(wanted, noun), tuple(lines))


def _level_lines(program: Program) -> list[str]:
    return [
        f"  level {level}: {', '.join(task.name for task in tasks)}"
        for level, tasks in enumerate(program.graph.levels)
    ]


def _longest_chain(program: Program) -> str:
    """A reason for so many levels: tasks of which each waits for the one before."""
    level_of, edges = program.graph.level_of, program.graph.dependencies
    task = max(level_of, key=lambda name: level_of[name])
    chain: list[str] = []
    while level_of[task]:
        edge = next(
            e for e in edges if e.after == task and level_of[e.before] == level_of[task] - 1
        )
        chain.append(f"{task} waits for {edge.before} ({_edge(edge)})")
        task = edge.before
    return "; ".join(reversed(chain))


# Tasks -------------------------------------------------------------------------------------------


def _reads(task: Task) -> set[str]:
    return {access.buffer for access in task.reads}


def _writes(task: Task) -> set[str]:
    return {access.buffer for access in task.writes}


def _of_tasks(
    program: Program, wanted: Mapping[str, Iterable[str]], verb: str, of: Callable[[Task], set[str]]
) -> Iterator[Finding]:
    for name, buffers in wanted.items():
        listed = list(buffers)
        what = f"{name} {verb} {_and(listed) or 'nothing'}"
        task = program.graph.by_name.get(name)
        if task is None:
            yield Finding(False, what, _no_task(program, name))
        elif of(task) == set(listed):
            yield Finding(True, what)
        else:
            said = access_words(task.reads if verb == "reads" else task.writes) or "nothing"
            yield Finding(False, what, (f"it {verb} {said}; {_places(task)}",))


def _waits(program: Program, before: str, after: str) -> Finding:
    what = f"{after} waits for {before}"
    missing = [name for name in (before, after) if name not in program.graph.by_name]
    if missing:
        return Finding(False, what, _no_task(program, missing[0]))
    chain = _chain(program, before, after)
    if chain:
        return Finding(True, f"{what}: {_by_way_of(chain)}")
    first, second = (program.graph.by_name[name] for name in (before, after))
    if _chain(program, after, before):
        return Finding(
            False,
            what,
            (f"the order is reversed: {before} waits for {after}", _places(first, second)),
        )
    touched = "; ".join(f"{task.name} {_touches(task)}" for task in (first, second))
    none = "neither touches what the other writes"
    return Finding(False, what, (f"no: {touched}", none, _places(first, second)))


def _waits_not(program: Program, one: str, other: str) -> Finding:
    what = f"{one} and {other} may run at the same time"
    missing = [name for name in (one, other) if name not in program.graph.by_name]
    if missing:
        return Finding(False, what, _no_task(program, missing[0]))
    for before, after in ((one, other), (other, one)):
        chain = _chain(program, before, after)
        if chain:
            tasks = (program.graph.by_name[name] for name in (before, after))
            said = f"no: {after} waits for {before}: {_by_way_of(chain)}"
            return Finding(False, what, (said, _places(*tasks)))
    return Finding(True, what)


def _chain(program: Program, before: str, after: str) -> list[Dependency]:
    """A shortest chain of edges from one task to the other; none where they are not ordered."""
    reached: dict[str, list[Dependency]] = {before: []}
    frontier = {before}
    while frontier and after not in reached:
        edges = [edge for edge in program.graph.dependencies if edge.before in frontier]
        new = {edge.after: [*reached[edge.before], edge] for edge in reversed(edges)}
        frontier = new.keys() - reached.keys()
        reached |= {name: new[name] for name in frontier}
    chain = reached.get(after, [])
    direct = [e for e in program.graph.dependencies if (e.before, e.after) == (before, after)]
    return direct if len(chain) == 1 else chain


def _by_way_of(chain: Sequence[Dependency]) -> str:
    """`RAW c[0:20], 80 B`; of several in a row also through whom."""
    if len({(edge.before, edge.after) for edge in chain}) == 1:
        return "; ".join(map(_edge, chain))
    return ", then ".join(f"{edge.after} for {edge.before} ({_edge(edge)})" for edge in chain)


def _edge(edge: Dependency) -> str:
    if not edge.buffer:
        return f"after %{edge.before}, as written"
    where = f"{edge.buffer}{region_words(edge.region)}"
    return f"{edge.hazard.value} {where}, {format_bytes(edge.nbytes)}"


def _placed(program: Program, name: str, kind: str) -> Finding:
    what = f"{name} runs on a {kind.upper()}"
    placement = program.schedule.placement_of.get(name)
    if placement is None:
        return Finding(False, what, _no_task(program, name))
    device = program.schedule.topology.device(placement.device)
    if device.kind.family == kind.lower():
        return Finding(True, f"{what}: {device}")
    task = program.graph.by_name[name]
    target = f"its target is %{task.target.name} ({task.target})"
    return Finding(False, what, (f"it is on {device}: {target}", _places(task)))


def _touches(task: Task) -> str:
    reads, writes = buffer_words(task.reads), buffer_words(task.writes)
    return " and ".join(
        f"{verb} {names}" for verb, names in (("reads", reads), ("writes", writes)) if names
    )


def _places(*tasks: Task) -> str:
    """`task1 is at In [4]:5:12, task2 at In [4]:9:12`."""
    known = [task for task in tasks if task.span is not None]
    return ", ".join(f"{t.name} {'is ' * (k == 0)}at {t.span}" for k, t in enumerate(known))


def _no_task(program: Program, name: str) -> tuple[str, ...]:
    return (_unknown("task", name, list(program.graph.by_name)),)


# Loops and messages ------------------------------------------------------------------------------


def _became(program: Program, name: str, kind: TaskKind) -> Finding:
    what = (
        f"{name} is {'divided over the ranks' if kind is TaskKind.REPLICATE else 'kept in order'}"
    )
    reports = {report.name: report for report in program.explain().reports}
    report = reports.get(name)
    if report is None:
        return Finding(False, what, (_unknown("loop", name, list(reports)),))
    divided = report.kind is TaskKind.REPLICATE
    if divided == (kind is TaskKind.REPLICATE):
        return Finding(True, what, report.reasons)
    place = f" (at {report.span})" if report.span is not None else ""
    return Finding(False, what, (f"it is {report.title}{place}", *report.reasons))


def _messages(program: Program, messages: int | None, nbytes: int | None) -> Iterator[Finding]:
    """As the schedule foresees them; a run on ranks has to have sent the same."""
    wanted = {"message": messages, "byte": nbytes}
    planned = {"message": program.schedule.messages, "byte": program.schedule.bytes_moved}
    told = False
    for noun, expected in wanted.items():
        if expected is None:
            continue
        what = f"{count(expected, noun)} between ranks"
        if planned[noun] != expected:
            listed = _message_lines(program) if not told else []
            said = f"the program needs {count(planned[noun], noun)}{':' * bool(listed)}"
            yield Finding(False, what, (said, *listed))
            told = True
            continue
        counted = _counted(program)
        if counted is not None and counted[noun] != expected:
            yield Finding(False, what, (f"planned, but the run sent {counted[noun]:,}",))
            continue
        yield Finding(True, f"{what}, {'planned' if counted is None else 'planned and counted'}")


def _copied(program: Program, wanted: int) -> Finding:
    """With who copies how much, where it is another number of bytes."""
    planned = program.plan.copies
    what = f"{count(wanted, 'byte')} between hosts and GPUs"
    found = sum(copy.nbytes for copy in planned)
    if found != wanted:
        listed = [
            f"  {copy.nbytes:,} from {copy.source} to {copy.dest}"
            + (f" for {copy.phase}" if copy.phase not in ("", ALL_TASKS) else "")
            for copy in planned
        ]
        said = f"the program copies {count(found, 'byte')}{':' * bool(listed)}"
        return Finding(False, what, (said, *listed))
    trace = program.trace
    if trace is None or not trace.ranks:
        return Finding(True, f"{what}, planned")
    counted = sum(copy.nbytes for copy in trace.copies)
    if counted != wanted:
        return Finding(False, what, (f"planned, but the run copied {counted:,}",))
    return Finding(True, f"{what}, planned and counted")


def _predicted(program: Program, machine: str, limit_s: float) -> Finding:
    """With what the ranks' time goes into where it is too long."""
    trace = program.simulate(machine)
    what = f"at most {format_seconds(limit_s)} on {trace.label.partition(' on ')[2]}, simulated"
    if trace.makespan_s <= limit_s:
        return Finding(True, what)
    spent: dict[str, float] = {}
    for total in trace.totals:
        doing = "computing" if total.kind is EventKind.TASK else "sending and waiting for"
        spent[f"{doing} {total.phase}"] = spent.get(f"{doing} {total.phase}", 0) + total.seconds
    most = sorted(spent, key=lambda name: -spent[name])[:3]
    whole = trace.makespan_s * trace.ranks
    lines = [f"  {100 * spent[name] / whole:.0f} % of the ranks' time: {name}" for name in most]
    return Finding(False, what, (f"it takes {format_seconds(trace.makespan_s)}:", *lines))


def _counted(program: Program) -> dict[str, int] | None:
    """What the last run on ranks sent; None where there was none, or it kept no events."""
    trace = program.trace
    if trace is None or not trace.ranks or not (trace.events or trace.moves):
        return None
    if trace.moves:  # counted, also where events were dropped
        return {
            "message": sum(move.messages for move in trace.moves),
            "byte": sum(move.nbytes for move in trace.moves),
        }
    sent = [event for event in trace.events if event.kind is EventKind.SEND]
    return {"message": len(sent), "byte": sum(event.nbytes for event in sent)}


def _message_lines(program: Program, *, most: int = 6) -> list[str]:
    tasks = [
        f"  {t.storage}{t.box} from rank {t.source} to rank {t.dest}: {t.consumer} needs what "
        f"{t.producer} wrote"
        for t in program.schedule.transfers
    ]
    loops = [
        f"  {count(m.messages, 'message')} of {format_bytes(m.nbytes)} in all from rank {m.source} "
        f"to rank {m.dest}, for {m.phase}"
        for m in program.schedule.moves
    ]
    lines = [*tasks, *loops]
    return [*lines[:most], *([f"  and {len(lines) - most} more"] if len(lines) > most else [])]


# Values ------------------------------------------------------------------------------------------


def _values(program: Program, name: str, wanted: object) -> Finding:
    what = f"{name} has the expected values"
    if name not in program.arrays:
        return Finding(False, what, (_unknown("array", name, list(program.arrays)),))
    if program.trace is None:
        return Finding(False, what, (f"it has not run yet: `%avial run {program.name}`",))
    got, want = program.arrays[name], np.asarray(wanted)
    if got.shape != want.shape:
        return Finding(False, what, (f"its shape is {got.shape}; expected {want.shape}",))
    wrong = np.argwhere(~_equal(got, want))
    if not len(wrong):
        return Finding(True, f"{what} ({count(got.size, 'element')})")
    first = tuple(int(k) for k in wrong[0])
    writers = [task for task in program.graph.tasks if name in _writes(task)]
    who = (
        f"{writers[-1].name} writes it last; {_places(writers[-1])}"
        if writers
        else "no task writes it"
    )
    return Finding(
        False,
        what,
        (
            f"{len(wrong):,} of {count(got.size, 'element')} differ, first {name}{list(first)}: "
            f"{got[first]} instead of {want[first]}",
            who,
        ),
    )


def _equal(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if got.dtype.kind not in "fc":
        return np.asarray(got == want)
    scale = float(np.abs(want).max(initial=0.0))
    return np.isclose(got, want, rtol=0, atol=TOLERANCE * scale, equal_nan=True)


def _unknown(noun: str, name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1) if len(known) > FEW else []
    there = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known) or 'none'}"
    return f"there is no {noun} '{name}'; {there}"


def _and(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])
