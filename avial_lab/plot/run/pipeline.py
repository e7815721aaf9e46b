"""A divided function as a picture: what each rank does when, micro-batch by micro-batch, and below
that what it holds.

Foreseen -> SVG; tables for who cannot see it.
"""

from __future__ import annotations

from collections.abc import Iterator

from avial_lab.core.table import Table
from avial_lab.core.words import count, format_bytes, format_seconds, listed
from avial_lab.planning.foreseen import Foreseen, HeldFrom, Turn, Way
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, box_item, framed
from avial_lab.plot.palette import BLUE, VERMILION
from avial_lab.trace import Event, EventKind

_FILLS = {Way.FORTH: "#cfe3f1", Way.BACK: "#f6dcc8", Way.BOTH: "#e2dfdc"}
_LINES = {Way.FORTH: BLUE, Way.BACK: VERMILION, Way.BOTH: svg.QUIET}
_ONCE = "#e5e7eb"
_HELD = "#d9ead3"
GUTTER, WIDTH, LANE, AREA, GAP = 66.0, 760.0, 24.0, 26.0, 12.0
MOST_RANKS, MOST_TASKS = 16, 2_000


def pipeline_svg(foreseen: Foreseen, *, title: str) -> str:
    """Ranks above each other; forth and back differ in colour, a number is the micro-batch's."""
    trace = foreseen.trace
    span, most = trace.makespan_s or 1.0, max(*foreseen.peaks, 1)
    shown = min(trace.ranks, MOST_RANKS)
    tasks = [e for e in trace.events if e.kind is EventKind.TASK and e.rank < shown]
    shapes: list[str] = []
    pitch = LANE + AREA + GAP
    for rank in range(shown):
        top = rank * pitch
        shapes.append(svg.rectangle(GUTTER, top, WIDTH, LANE, fill=svg.BAND))
        shapes.append(svg.text(GUTTER - 8, top + 16, f"rank {rank}", size=12, anchor="end"))
        peak = foreseen.peaks[rank]
        shapes += _held(foreseen.held[rank], span, most, top + LANE)
        words = format_bytes(peak)
        shapes.append(svg.text(GUTTER + WIDTH + 8, top + LANE + 16, words, size=11, fill=svg.QUIET))
    for event in tasks[:MOST_TASKS]:
        shapes.append(_task(event, foreseen.turns.get(event.name), span, event.rank * pitch))
    summary = pipeline_summary(foreseen)
    notes = [f"Hidden: {count(trace.ranks - shown, 'more rank')}."] if trace.ranks > shown else []
    if len(tasks) > MOST_TASKS:
        notes.append(f"Hidden: {count(len(tasks) - MOST_TASKS, 'later task')}.")
    return framed(
        "".join(shapes),
        GUTTER + WIDTH + 90,
        shown * pitch,
        title=title,
        summary=summary,
        description=summary,
        legend=_legend(foreseen),
        notes=notes,
    )


def pipeline_summary(foreseen: Foreseen) -> str:
    trace = foreseen.trace
    share = f", ranks compute {foreseen.busy:.0%} of the time" if trace.makespan_s else ""
    return (
        f"{format_seconds(trace.makespan_s)} predicted{share}; "
        f"{format_bytes(foreseen.schedule.bytes_moved)} moved; "
        f"the fullest rank holds {format_bytes(max(foreseen.peaks, default=0))}"
    )


def foreseen_text(foreseen: Foreseen) -> str:
    """The picture in words."""
    machine = foreseen.schedule.topology.speeds.label
    summary, table = pipeline_summary(foreseen), memory_table(foreseen).to_text()
    return f"simulated on {machine}: {summary}\n{table}"


def memory_table(foreseen: Foreseen) -> Table:
    """What each rank holds in the end, the largest arrays by name."""
    rows = tuple(
        (str(rank), format_bytes(peak), _of_what(steps[-1]) if steps else "")
        for rank, (peak, steps) in enumerate(zip(foreseen.peaks, foreseen.held, strict=True))
    )
    return Table("Memory by rank", ("rank", "holds", "most of it"), rows, frozenset({"holds"}))


def _of_what(held: HeldFrom) -> str:
    parts = sorted(held.of.items(), key=lambda part: -part[1])
    return listed([f"{name} {format_bytes(nbytes)}" for name, nbytes in parts], most=6)


def _task(event: Event, turn: Turn | None, span: float, top: float) -> str:
    x, width = GUTTER + event.start_s / span * WIDTH, event.duration_s / span * WIDTH
    fill = _ONCE if turn is None else _FILLS[turn.way]
    line = svg.LINE if turn is None else _LINES[turn.way]
    shape = svg.rectangle(x, top + 1, max(width, 0.8), LANE - 2, fill=fill, stroke=line)
    if turn is not None and width >= svg.text_width(str(turn.number), 11) + 2:
        middle = x + width / 2
        shape += svg.text(middle, top + 16, str(turn.number), size=11, anchor="middle")
    time = f"{format_seconds(event.duration_s)} from {format_seconds(event.start_s)}"
    of = "" if turn is None else f"micro-batch {turn.number}, stage {turn.stage}, "
    return svg.group(shape, title=f"{event.name}: {of}{time}", label="task")


def _held(steps: tuple[HeldFrom, ...], span: float, most: int, top: float) -> Iterator[str]:
    ends = [step.start_s for step in steps[1:]] + [span]
    for step, end in zip(steps, ends, strict=True):
        height = step.nbytes / most * (AREA - 4)
        x, width = GUTTER + step.start_s / span * WIDTH, (end - step.start_s) / span * WIDTH
        shape = svg.rectangle(x, top + AREA - height, width, height, fill=_HELD)
        at = f"{format_bytes(step.nbytes)} from {format_seconds(step.start_s)}"
        yield svg.group(shape, title=f"{at}: {_of_what(step)}", label="held")


def _legend(foreseen: Foreseen) -> list[LegendItem]:
    ways = {turn.way for turn in foreseen.turns.values()}
    words = {
        Way.FORTH: "forward, of the micro-batch numbered",
        Way.BACK: "backward",
        Way.BOTH: "the last stage's, both at once",
    }
    items = [box_item(_FILLS[way], words[way], stroke=_LINES[way]) for way in Way if way in ways]
    once = box_item(_ONCE, "once: sums, updates" if ways else "tasks", stroke=svg.LINE)
    return [*items, once, box_item(_HELD, "memory that the rank holds")]
