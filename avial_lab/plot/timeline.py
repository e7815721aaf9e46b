"""The timeline: what every rank did, when, and what it waited for.

Trace -> SVG. Times are shown as they were measured (or modelled); the trace's own label says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from avial_lab.plot import facts, svg
from avial_lab.plot.frame import LegendItem, box_item, framed
from avial_lab.plot.palette import CPU, EMULATED_GPU, GPU, MESSAGE, SKY, Look
from avial_lab.trace import Event, EventKind, Trace

WIDTH = 860.0
GUTTER = 110.0
ROW = 34.0
PITCH = 46.0
AXIS = 26.0
ROW_LIMIT = 48
BAR_LIMIT = 3000

WAIT_FILL = "#e5e7eb"
BARRIER_FILL = "#9ca3af"
_FILL = {
    EventKind.SEND: MESSAGE,
    EventKind.POST: SKY,
    EventKind.WAIT: WAIT_FILL,
    EventKind.BARRIER: BARRIER_FILL,
}
_WORDS = {
    EventKind.SEND: "send",
    EventKind.POST: "start receiving",
    EventKind.WAIT: "wait for a message",
    EventKind.BARRIER: "barrier",
}


@dataclass(frozen=True)
class Bar:
    """One event, or (`merged` > 1) several neighbours of one kind too short to be told apart."""

    event: Event
    start_s: float
    end_s: float
    merged: int = 1


def timeline_svg(trace: Trace, *, title: str = "Timeline") -> str:
    """A Gantt chart, one row a rank; at most 1 MB whatever the trace."""
    summary = facts.trace_summary(trace)
    if not trace.events:
        return framed(
            "", 0, 0, title=title, summary=f"{trace.label}: no events", description=summary
        )
    begin = min(event.start_s for event in trace.events)
    scale = WIDTH / (trace.makespan_s or 1e-9)
    ranks = sorted({event.rank for event in trace.events})
    shown = ranks[:ROW_LIMIT]
    rows = {rank: _bars([e for e in trace.events if e.rank == rank], scale) for rank in shown}
    budget = BAR_LIMIT // len(shown)
    merged = sum(bar.merged - 1 for bars in rows.values() for bar in bars)
    cut = sum(max(0, len(bars) - budget) for bars in rows.values())
    height = AXIS + PITCH * len(shown)
    shapes = [_axis(trace.makespan_s, height)]
    for k, rank in enumerate(shown):
        top = AXIS + k * PITCH
        devices = list(
            dict.fromkeys(
                e.device for e in trace.events if e.rank == rank and e.kind is EventKind.TASK
            )
        )
        shapes.append(_row_head(rank, devices, top))
        shapes += [
            _bar(bar, top, begin, scale, emulated=_emulated(trace)) for bar in rows[rank][:budget]
        ]
    notes: list[str] = []
    if merged:
        notes.append(
            f"{facts.count(merged + 1, 'event')} shorter than a pixel "
            "are drawn with their neighbours."
        )
    if cut:
        notes.append(f"Hidden: {facts.count(cut, 'bar')} at the ends of the rows.")
    if len(ranks) > len(shown):
        notes.append(f"Hidden: {facts.count(len(ranks) - len(shown), 'more rank')}.")
    return framed(
        "".join(shapes),
        GUTTER + WIDTH + 10,
        height,
        title=title,
        summary=summary,
        description=f"{summary}. {_longest(trace)}",
        legend=_legend(trace),
        notes=notes,
    )


def _emulated(trace: Trace) -> bool:
    return "emulated" in trace.label.lower()


def _bars(events: Sequence[Event], scale: float) -> list[Bar]:
    """The events in order; runs of one kind below a pixel become one bar."""
    bars: list[Bar] = []
    for event in events:
        last = bars[-1] if bars else None
        if (
            last is not None
            and last.event.kind is event.kind
            and last.event.device == event.device
            and (event.end_s - last.start_s) * scale < 1.5
        ):
            bars[-1] = Bar(last.event, last.start_s, max(last.end_s, event.end_s), last.merged + 1)
        else:
            bars.append(Bar(event, event.start_s, event.end_s))
    return bars


def _bar(bar: Bar, top: float, begin: float, scale: float, *, emulated: bool) -> str:
    x = GUTTER + (bar.start_s - begin) * scale
    width = max(1.2, (bar.end_s - bar.start_s) * scale)
    event = bar.event
    words = event.name if bar.merged == 1 else f"{bar.merged:,} events"
    tip = f"{words}: {_WORDS.get(event.kind, 'task')} on {event.device}, "
    tip += facts.format_seconds(bar.end_s - bar.start_s)
    tip += f" from {facts.format_seconds(bar.start_s - begin)}"
    tip += f", {facts.format_bytes(event.nbytes)}" if event.nbytes else ""
    if event.kind is EventKind.TASK:
        look = _task_look(event.device, emulated=emulated)
        shape = svg.rectangle(
            x,
            top,
            width,
            ROW,
            fill=look.tint,
            stroke=look.colour,
            stroke_width=1.4,
            dash=look.dash,
            radius=min(4.0, width / 3) if not look.cut_corners else 0,
        )
        if width > 8:
            shape += svg.rectangle(x, top, 4, ROW, fill=look.colour)
        if width > 44:
            shape += svg.text(
                x + 10, top + 14, svg.shorten(words, width - 14, 12, bold=True), size=12, bold=True
            )
            time = facts.format_seconds(bar.end_s - bar.start_s)
            if svg.text_width(time, 10.5) < width - 14:
                shape += svg.text(x + 10, top + 28, time, size=10.5, fill=svg.QUIET)
    else:
        inset = 4.0 if event.kind is EventKind.BARRIER else 9.0
        shape = svg.rectangle(x, top + inset, width, ROW - 2 * inset, fill=_FILL[event.kind])
        label = f"wait {words}" if event.kind is EventKind.WAIT else words
        if event.kind is EventKind.WAIT and width > svg.text_width(label, 10.5) + 8:
            shape += svg.text(x + 5, top + 21, label, size=10.5, fill=svg.QUIET)
    return svg.group(shape, title=tip, label=event.kind.value)


def _task_look(device: str, *, emulated: bool) -> Look:
    """A trace names its devices only; `gpu0` is a GPU."""
    if not device.startswith("gpu"):
        return CPU
    return EMULATED_GPU if emulated else GPU


def _row_head(rank: int, devices: Sequence[str], top: float) -> str:
    return (
        svg.rectangle(0, top - 5, GUTTER + WIDTH + 10, ROW + 10, fill=svg.BAND, radius=6)
        + svg.text(10, top + 15, f"rank {rank}", size=12, bold=True)
        + svg.text(
            10,
            top + 29,
            svg.shorten(", ".join(devices) or "no task", GUTTER - 16, 10.5),
            size=10.5,
            fill=svg.QUIET,
        )
    )


def _axis(makespan_s: float, height: float) -> str:
    """Ticks at round times."""
    if makespan_s <= 0:
        return ""
    step = _round_step(makespan_s / 7)
    shapes: list[str] = []
    for k in range(floor(makespan_s / step) + 1):
        x = GUTTER + k * step / makespan_s * WIDTH
        shapes.append(svg.line(x, AXIS - 10, x, height - 4))
        shapes.append(
            svg.text(
                x, 11, facts.format_seconds(k * step), size=11, fill=svg.QUIET, anchor="middle"
            )
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
        + "; ".join(f"{e.name} on {e.device}, {facts.format_seconds(e.duration_s)}" for e in tasks)
        if tasks
        else "No tasks."
    )


def _legend(trace: Trace) -> list[LegendItem]:
    kinds = {event.kind for event in trace.events}
    looks = {
        _task_look(e.device, emulated=_emulated(trace))
        for e in trace.events
        if e.kind is EventKind.TASK
    }
    items = [
        LegendItem(
            svg.rectangle(
                0, 0, 26, 14, fill=look.tint, stroke=look.colour, stroke_width=1.4, dash=look.dash
            )
            + svg.rectangle(0, 0, 4, 14, fill=look.colour),
            f"task on {look.name}",
        )
        for look in (CPU, GPU, EMULATED_GPU)
        if look in looks
    ]
    return items + [box_item(fill, _WORDS[kind]) for kind, fill in _FILL.items() if kind in kinds]
