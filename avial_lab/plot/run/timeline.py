"""The timeline: what every rank did, when, and what it waited for.

Trace -> SVG. Times are shown as they were measured (or modelled); the trace's own label says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import floor, log10

from avial_lab.core.words import count, format_bytes, format_seconds
from avial_lab.machine.devices import Look
from avial_lab.planning.schedule import Schedule
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, box_item, framed, line_item
from avial_lab.plot.palette import MESSAGE, ORANGE, SKY, look_of, task_colours, tinted
from avial_lab.trace import Event, EventKind, Trace, run_facts
from avial_lab.trace.analysis import links

WIDTH = 860.0
GUTTER = 110.0
ROW = 34.0
PITCH = 46.0
AXIS = 26.0
ROW_LIMIT = 48
BAR_LIMIT = 3000
NAME_WIDTH = 44.0
ARROW_LIMIT = 250
NAMED_TASKS = 6

WAIT_FILL = "#e5e7eb"
BARRIER_FILL = "#9ca3af"
_FILL = {
    EventKind.SEND: MESSAGE,
    EventKind.POST: SKY,
    EventKind.WAIT: WAIT_FILL,
    EventKind.COPY: ORANGE,
    EventKind.BARRIER: BARRIER_FILL,
}


@dataclass(frozen=True)
class Bar:
    """One event, or (`merged` > 1) neighbours too short to be drawn separately, and what each
    kind of them took.
    """

    event: Event
    start_s: float
    end_s: float
    merged: int = 1
    spent_s: Mapping[EventKind, float] = field(default_factory=dict[EventKind, float])


@dataclass(frozen=True)
class Scale:
    """Seconds to pixels."""

    begin_s: float
    pixels_per_s: float

    def x(self, time_s: float) -> float:
        return GUTTER + (time_s - self.begin_s) * self.pixels_per_s

    def width(self, bar: Bar) -> float:
        """At least one visible pixel: what happened is there, however short."""
        return max(1.4, (bar.end_s - bar.start_s) * self.pixels_per_s)


def timeline_svg(
    trace: Trace,
    schedule: Schedule | None = None,
    *,
    title: str = "Timeline",
    span_s: float = 0.0,
) -> str:
    """A Gantt chart, one row a rank; at most 1 MB whatever the trace.

    With the schedule, messages are named by what they carry and emulated devices are known. The
    axis is as long as the run, or `span_s` where that is longer: two runs above each other.
    """
    summary = run_facts.trace_summary(trace, schedule)
    if not trace.events:
        words = f"{trace.label}: no events"
        return framed("", 0, 0, title=title, summary=words, description=summary)
    span_s = max(trace.makespan_s, span_s)
    scale = Scale(min(event.start_s for event in trace.events), WIDTH / (span_s or 1e-9))
    by_rank: dict[int, list[Event]] = {}
    for event in trace.events:
        by_rank.setdefault(event.rank, []).append(event)
    ranks = sorted(by_rank)
    shown = ranks[:ROW_LIMIT]
    budget = BAR_LIMIT // len(shown)
    rows = {rank: _fitting_bars(by_rank[rank], scale, budget) for rank in shown}
    height = AXIS + PITCH * len(shown)
    tops = {rank: AXIS + k * PITCH for k, rank in enumerate(shown)}
    colours = task_colours(run_facts.task_names(trace, schedule))
    shapes = [_row_head(rank, by_rank[rank], top) for rank, top in tops.items()]
    shapes.append(_axis(span_s, height))
    for rank, top in tops.items():
        bars = rows[rank]
        shapes += [
            _bar(bar, top, scale, _look(bar.event, trace, schedule, colours)) for bar in bars
        ]
        shapes += _names_beside(bars, top, scale)
    arrows = links(trace.events)
    if len(arrows) <= ARROW_LIMIT:
        shapes += [
            _arrow(*ends, tops, scale) for ends in arrows if {e.rank for e in ends} <= {*tops}
        ]
    return framed(
        "".join(shapes),
        GUTTER + WIDTH + 10,
        height,
        title=title,
        summary=summary,
        description=f"{summary}. {_longest(trace)}",
        legend=_legend(trace, schedule, colours, arrows=0 < len(arrows) <= ARROW_LIMIT),
        notes=[
            *_notes(rows, hidden_ranks=len(ranks) - len(shown), arrows=len(arrows)),
            *filter(None, (run_facts.dropped_words(trace), run_facts.clock_words(trace))),
        ],
    )


def _arrow(send: Event, wait: Event, tops: Mapping[int, float], scale: Scale) -> str:
    """From the lane that sends to the one that has it when its wait is over."""
    down = tops[wait.rank] > tops[send.rank]
    start = scale.x(send.start_s), tops[send.rank] + (ROW - 9 if down else 9)
    end = scale.x(wait.end_s), tops[wait.rank] + (9 if down else ROW - 9)
    third = (end[0] - start[0]) / 3, (end[1] - start[1]) / 3
    curve = (start, (start[0] + third[0], start[1] + third[1]),
             (end[0] - third[0], end[1] - third[1]), end)  # fmt: skip
    return svg.group(
        svg.arrow(curve, stroke=MESSAGE, width=1),
        title=f"rank {send.rank} to rank {wait.rank}, {format_bytes(send.nbytes)}",
        label="message",
    )


def _notes(rows: dict[int, list[Bar]], *, hidden_ranks: int, arrows: int) -> list[str]:
    notes: list[str] = []
    if arrows > ARROW_LIMIT:
        notes.append(f"{count(arrows, 'message')} are too many to draw as arrows.")
    merged = sum(bar.merged for bars in rows.values() for bar in bars if bar.merged > 1)
    if merged:
        notes.append(
            f"{count(merged, 'event')} too short to be drawn separately are merged: the "
            "height of a colour is its share of the time."
        )
    if hidden_ranks:
        notes.append(f"Hidden: {count(hidden_ranks, 'more rank')}.")
    return notes


def _fitting_bars(events: Sequence[Event], scale: Scale, most: int) -> list[Bar]:
    """The events in order, neighbours put together over as many pixels as it takes."""
    pixels = 1.5
    while True:
        bars = _bars(events, pixels / scale.pixels_per_s)
        if len(bars) <= most or pixels > WIDTH:
            return bars
        pixels *= 2


def _bars(events: Sequence[Event], together_s: float) -> list[Bar]:
    """What lies within so many seconds becomes one bar."""
    bars: list[Bar] = []
    group: list[Event] = []
    for event in events:
        if group and event.end_s > group[0].start_s + together_s:
            bars.append(_together(group))
            group = []
        group.append(event)
    return [*bars, _together(group)] if group else bars


def _together(group: Sequence[Event]) -> Bar:
    first = group[0]
    if len(group) == 1:
        return Bar(first, first.start_s, first.end_s)
    spent = dict.fromkeys(EventKind, 0.0)
    for event in group:
        spent[event.kind] += event.duration_s
    end_s = max(event.end_s for event in group)
    # A message has no device; the colour of the compute among them is that of its own.
    shown = next((event for event in group if event.kind is EventKind.TASK), first)
    return Bar(shown, first.start_s, end_s, len(group), {k: s for k, s in spent.items() if s > 0})


def _bar(bar: Bar, top: float, scale: Scale, look: Look) -> str:
    """`look` is that of its task, if it is one's."""
    if bar.merged > 1:
        return _mixed(bar, top, scale, look)
    x, width, event = scale.x(bar.start_s), scale.width(bar), bar.event
    words = run_facts.event_words(event)
    time = format_seconds(bar.end_s - bar.start_s)
    tip = f"{words}: {time} from {format_seconds(bar.start_s - scale.begin_s)}"
    tip += f" on {event.device}" if event.device else ""
    tip += f", {format_bytes(event.nbytes)}" if event.nbytes else ""
    if event.kind is EventKind.TASK:
        shape = _task(x, top, width, words, time, look)
    else:
        inset = 4.0 if event.kind is EventKind.BARRIER else 9.0
        shape = svg.rectangle(x, top + inset, width, ROW - 2 * inset, fill=_FILL[event.kind])
        if event.kind is EventKind.WAIT and width > svg.text_width(words, 10.5) + 8:
            shape += svg.text(x + 5, top + 21, words, size=10.5, fill=svg.QUIET)
    return svg.group(shape, title=tip, label=event.kind.value)


def _mixed(bar: Bar, top: float, scale: Scale, look: Look) -> str:
    """The kinds of several events one upon the other, as high as their share of the time."""
    x, width, low = scale.x(bar.start_s), scale.width(bar), top + ROW
    whole = max(bar.end_s - bar.start_s, sum(bar.spent_s.values()), 1e-12)
    shapes, words = "", f"{bar.merged:,} events"
    for kind, seconds in bar.spent_s.items():
        task = kind is EventKind.TASK
        fill = look.colour if task else _FILL[kind]
        height = ROW * seconds / whole
        shapes += svg.rectangle(x, low - height, width, height, fill=fill)
        words += f", {run_facts.KIND_WORDS[kind]} {100 * seconds / whole:.0f} %"
        low -= height
    return svg.group(shapes, title=words, label="several")


def _task(x: float, top: float, width: float, name: str, time: str, look: Look) -> str:
    """A task's bar, with its name and time where they fit into it."""
    shape = svg.rectangle(
        x, top, width, ROW, fill=look.tint, stroke=look.colour, stroke_width=1.4, dash=look.dash
    )
    if width > 8:
        shape += svg.rectangle(x, top, 4, ROW, fill=look.colour)
    if width <= NAME_WIDTH:
        return shape
    words = svg.shorten(name, width - 14, 12, bold=True)
    shape += svg.text(x + 10, top + 14, words, size=12, bold=True)
    if svg.text_width(time, 10.5) < width - 14:
        shape += svg.text(x + 10, top + 28, time, size=10.5, fill=svg.QUIET)
    return shape


def _names_beside(bars: Sequence[Bar], top: float, scale: Scale) -> list[str]:
    """The names of tasks too short to hold them, beside their bars where nothing else is named."""
    tasks = [bar for bar in bars if bar.event.kind is EventKind.TASK]
    taken = [(scale.x(bar.start_s), scale.x(bar.start_s) + scale.width(bar)) for bar in tasks]
    names: list[str] = []
    for bar in tasks:
        x, width = scale.x(bar.start_s), scale.width(bar)
        if width > NAME_WIDTH or bar.merged > 1:
            continue
        words = svg.shorten(bar.event.name, 120, 11, bold=True)
        room = svg.text_width(words, 11, bold=True)
        for left in (x + width + 3, x - room - 3):
            free = all(left + room < low or high < left for low, high in taken)
            if free and left >= GUTTER and left + room <= GUTTER + WIDTH + 8:
                names.append(svg.text(left, top + 7, words, size=11, bold=True, halo=True))
                taken.append((left, left + room))
                break
    return names


def _look(
    event: Event, trace: Trace, schedule: Schedule | None, colours: Mapping[str, str]
) -> Look:
    """The device's look, from the schedule or, without one, as the trace says; in the colour of the
    task.
    """
    if schedule is not None and event.device:
        look = look_of(schedule.topology.device(event.device))
    else:
        look = trace.kind_of(event.device).look
    colour = colours.get(event.name)
    return look if colour is None else replace(look, colour=colour, tint=tinted(colour, 0.16))


def _row_head(rank: int, events: Sequence[Event], top: float) -> str:
    devices = dict.fromkeys(event.device for event in events if event.kind is EventKind.TASK)
    where = svg.shorten(", ".join(devices) or "no task", GUTTER - 16, 10.5)
    return (
        svg.rectangle(0, top - 5, GUTTER + WIDTH + 10, ROW + 10, fill=svg.BAND, radius=6)
        + svg.text(10, top + 15, f"rank {rank}", size=12, bold=True)
        + svg.text(10, top + 29, where, size=10.5, fill=svg.QUIET)
    )


def _axis(span_s: float, height: float) -> str:
    """Ticks at round times."""
    if span_s <= 0:
        return ""
    step = _round_step(span_s / 7)
    shapes: list[str] = []
    for k in range(floor(span_s / step) + 1):
        x = GUTTER + k * step / span_s * WIDTH
        shapes.append(svg.line(x, AXIS - 10, x, height - 4))
        shapes.append(
            svg.text(x, 11, format_seconds(k * step), size=11, fill=svg.QUIET, anchor="middle")
        )
    return "".join(shapes)


def _round_step(value: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below `value`.

    >>> _round_step(0.13), _round_step(3.0)
    (0.2, 5.0)
    """
    power = 10.0 ** floor(log10(value))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= value)


def _longest(trace: Trace) -> str:
    tasks = sorted(
        (e for e in trace.events if e.kind is EventKind.TASK), key=lambda e: -e.duration_s
    )[:6]
    return (
        "Longest tasks: "
        + "; ".join(f"{e.name} on {e.device}, {format_seconds(e.duration_s)}" for e in tasks)
        if tasks
        else "No tasks."
    )


def _legend(
    trace: Trace, schedule: Schedule | None, colours: Mapping[str, str], *, arrows: bool = False
) -> list[LegendItem]:
    """A box for each of the first tasks, dashed where its device is emulated; then the rest."""
    kinds = {event.kind for event in trace.events}
    first = {event.name: event for event in reversed(trace.events) if event.name in colours}
    looks = {name: _look(first[name], trace, schedule, colours) for name in colours}
    tasks = [
        box_item(
            look.tint,
            svg.shorten(f"{name} on {look.name}", 170, 12),
            stroke=look.colour,
            dash=look.dash,
        )
        for name, look in islice(looks.items(), NAMED_TASKS)
    ]
    if len(looks) > NAMED_TASKS:
        tasks.append(box_item(svg.PAPER, f"and {count(len(looks) - NAMED_TASKS, 'more task')}"))
    tasks += [
        box_item(fill, run_facts.KIND_WORDS[kind]) for kind, fill in _FILL.items() if kind in kinds
    ]
    return [*tasks, line_item(MESSAGE, "message", width=1)] if arrows else tasks
