"""Where the boxes and lines of a layered graph go.

Boxes with a level each, lines between them -> positions and curves. Graphviz's `dot` where there
is one (on the PATH, or the `graphviz-pure` wheel), else a small layout of our own; the caller
draws, so both look alike. Names never reach Graphviz: boxes are numbered.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

Point = tuple[float, float]

TIME_LIMIT_S = 10.0
LEVEL_GAP = 46.0
BOX_GAP = 26.0


@dataclass(frozen=True)
class Box:
    """Size in pixels; boxes of one level are in one row, level 0 on top."""

    width: float
    height: float
    level: int


@dataclass(frozen=True)
class Line:
    """From box `tail` down to box `head` (indices), with room for a label of that size; 0 x 0
    for none.
    """

    tail: int
    head: int
    label_width: float = 0
    label_height: float = 0


@dataclass(frozen=True)
class Layout:
    """`centers[k]` of box k; `curves[k]` of line k, a chain of cubic Béziers (1 + 3n points);
    `labels[k]` its label's center, None where it has none or no room is left. y grows downwards.
    `engine` says who laid it out.
    """

    width: float
    height: float
    centers: tuple[Point, ...]
    curves: tuple[tuple[Point, ...], ...]
    labels: tuple[Point | None, ...]
    engine: str


def lay_out(boxes: Sequence[Box], lines: Sequence[Line], *, engine: str | None = None) -> Layout:
    """Positions for all; `engine` is the path of a `dot`, or "built-in"; by default what the
    machine has.

    A `dot` that fails or takes longer than 10 s gives way to the built-in layout;
    `Layout.engine` then says so.
    """
    program = find_dot() if engine is None else engine
    if program is None or program == "built-in":
        return _built_in(boxes, lines)
    try:
        return _graphviz(program, boxes, lines)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        layout = _built_in(boxes, lines)
        reason = f"built-in: {Path(program).name} failed ({type(error).__name__})"
        return Layout(
            layout.width, layout.height, layout.centers, layout.curves, layout.labels, reason
        )


@cache
def find_dot() -> str | None:
    """`dot` on the PATH, else the wheel's `graphviz-pure` (which may lie beside a Python that is
    not on the PATH).
    """
    beside = str(Path(sys.executable).parent)
    return (
        shutil.which("dot")
        or shutil.which("graphviz-pure")
        or shutil.which("graphviz-pure", path=beside)
    )


def dot_source(boxes: Sequence[Box], lines: Sequence[Line]) -> str:
    """The graph for `dot`, in points; `rank=same` keeps each level in one row."""
    rows: dict[int, list[int]] = {}
    for k, box in enumerate(boxes):
        rows.setdefault(box.level, []).append(k)
    out = [
        "digraph {",
        f"nodesep={BOX_GAP / 72:.3f}; ranksep={LEVEL_GAP / 72:.3f};",
        'node [shape=box, fixedsize=true, label=""]; edge [dir=none];',
    ]
    out += [
        f"n{k} [width={b.width / 72:.4f}, height={b.height / 72:.4f}];" for k, b in enumerate(boxes)
    ]
    out += [f"{{rank=same; {'; '.join(f'n{k}' for k in row)}}}" for _, row in sorted(rows.items())]
    for line in lines:
        label = (
            ' [label=<<table border="0" cellspacing="0" cellpadding="0" fixedsize="true"'
            f' width="{line.label_width:.0f}" height="{line.label_height:.0f}">'
            "<tr><td></td></tr></table>>]"
            if line.label_width
            else ""
        )
        out.append(f"n{line.tail} -> n{line.head}{label};")
    return "\n".join([*out, "}"])


def _graphviz(program: str, boxes: Sequence[Box], lines: Sequence[Line]) -> Layout:
    done = subprocess.run(
        [program, "-Kdot", "-Tjson0"],
        input=dot_source(boxes, lines),
        capture_output=True,
        encoding="utf-8",
        timeout=TIME_LIMIT_S,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    width, height = (float(value) for value in answer["bb"].split(",")[2:])

    def point(pair: str) -> Point:
        x, y = pair.split(",")
        return float(x), height - float(y)

    by_name = {item["name"]: item for item in answer.get("objects", ()) if "pos" in item}
    # It numbers edges by the boxes they leave, not in the order of the text.
    number = {name: item["_gvid"] for name, item in by_name.items()}
    found: dict[tuple[int, int], list[Any]] = {}
    for edge in sorted(answer.get("edges", ()), key=lambda edge: edge["_gvid"]):
        found.setdefault((edge["tail"], edge["head"]), []).append(edge)
    edges = [found[number[f"n{each.tail}"], number[f"n{each.head}"]].pop(0) for each in lines]
    return Layout(
        width,
        height,
        tuple(point(by_name[f"n{k}"]["pos"]) for k in range(len(boxes))),
        tuple(tuple(point(pair) for pair in edge["pos"].split()) for edge in edges),
        tuple(point(edge["lp"]) if "lp" in edge else None for edge in edges),
        Path(program).name,
    )


def _built_in(boxes: Sequence[Box], lines: Sequence[Line]) -> Layout:
    """Rows by level; order within a row by the mean position of the neighbours, a line's own way
    kept free.

    A line over several levels gets a thin dummy box in each row it passes (Sugiyama, Tagawa,
    Toda 1981).
    """
    sizes = [(box.width, box.height) for box in boxes]
    level = [box.level for box in boxes]
    ways: list[list[int]] = []
    for line in lines:
        way = [line.tail]
        for passed in range(level[line.tail] + 1, level[line.head]):
            way.append(len(sizes))
            sizes.append((max(8.0, line.label_width), 1.0))
            level.append(passed)
        ways.append([*way, line.head])
    neighbours: list[list[int]] = [[] for _ in sizes]
    for way in ways:
        for a, b in pairwise(way):
            neighbours[a].append(b)
            neighbours[b].append(a)
    rows = [[k for k, at in enumerate(level) if at == value] for value in sorted(set(level))]
    x = _columns(rows, [size[0] for size in sizes], neighbours)
    tops, height = _row_tops(rows, sizes, lines, level)
    y = [0.0] * len(sizes)
    for row, top in zip(rows, tops, strict=True):
        tallest = max(sizes[k][1] for k in row)
        for k in row:
            y[k] = top + tallest / 2
    left = min((x[k] - sizes[k][0] / 2 for k in range(len(sizes))), default=0.0)
    x = [value - left for value in x]
    width = max((x[k] + sizes[k][0] / 2 for k in range(len(sizes))), default=0.0)
    leave, arrive = _ports(ways, x, sizes, end=0), _ports(ways, x, sizes, end=-1)
    curves = tuple(
        _smooth(
            [
                (out, y[way[0]] + sizes[way[0]][1] / 2),
                *((x[k], y[k]) for k in way[1:-1]),
                (into, y[way[-1]] - sizes[way[-1]][1] / 2),
            ]
        )
        for way, out, into in zip(ways, leave, arrive, strict=True)
    )
    labels = _free_labels(lines, curves)
    return Layout(
        width, height, tuple((x[k], y[k]) for k in range(len(boxes))), curves, labels, "built-in"
    )


def _columns(
    rows: list[list[int]], widths: list[float], neighbours: list[list[int]]
) -> list[float]:
    """x of every box: rows are swept down and up, each box drawn to its neighbours' mean and
    kept apart from the next.
    """
    x = [0.0] * len(widths)
    for row in rows:
        _spread(
            row, widths, x, [sum(widths[k] + BOX_GAP for k in row[:n]) for n in range(len(row))]
        )
    for sweep in range(8):
        order = rows if sweep % 2 == 0 else list(reversed(rows))
        for row in order:
            wish = {k: _mean([x[n] for n in neighbours[k]], x[k]) for k in row}
            # Ties keep the order there was, which began as program order: same graph, same picture.
            row.sort(key=lambda k: wish[k])
            _spread(row, widths, x, [wish[k] for k in row])
    return x


def _spread(row: list[int], widths: list[float], x: list[float], wishes: list[float]) -> None:
    """Give each box of the row its wish, shifted as little as two passes need to keep the gaps."""
    right = list(wishes)
    for n in range(1, len(row)):
        right[n] = max(right[n], right[n - 1] + (widths[row[n - 1]] + widths[row[n]]) / 2 + BOX_GAP)
    left = list(wishes)
    for n in range(len(row) - 2, -1, -1):
        left[n] = min(left[n], left[n + 1] - (widths[row[n + 1]] + widths[row[n]]) / 2 - BOX_GAP)
    for n, k in enumerate(row):
        x[k] = (left[n] + right[n]) / 2


def _row_tops(
    rows: list[list[int]], sizes: list[tuple[float, float]], lines: Sequence[Line], level: list[int]
) -> tuple[list[float], float]:
    """The top of every row, and where the last one ends; rows are further apart where labels
    need the room.
    """
    label = max((line.label_height for line in lines), default=0.0)
    tops: list[float] = []
    y = 0.0
    for row in rows:
        tops.append(y)
        y += max(sizes[k][1] for k in row) + LEVEL_GAP + label
    return tops, max(0.0, y - LEVEL_GAP - label)


def _ports(
    ways: list[list[int]], x: list[float], sizes: list[tuple[float, float]], *, end: int
) -> list[float]:
    """Where on its box each line leaves (end 0) or arrives (end -1): side by side, in the order
    of where they go.
    """
    ports = [x[way[end]] for way in ways]
    at_box: dict[int, list[int]] = {}
    for line, way in enumerate(ways):
        at_box.setdefault(way[end], []).append(line)
    for box, there in at_box.items():
        there.sort(key=lambda line: x[ways[line][1 if end == 0 else -2]])
        for n, line in enumerate(there):
            ports[line] = x[box] + sizes[box][0] * 0.7 * ((n + 0.5) / len(there) - 0.5)
    return ports


def _free_labels(
    lines: Sequence[Line], curves: Sequence[tuple[Point, ...]]
) -> tuple[Point | None, ...]:
    """A place on each line's first stretch where its label covers no other; None where there is
    none.
    """
    placed: list[tuple[Point, Line]] = []
    labels: list[Point | None] = []
    for line, curve in zip(lines, curves, strict=True):
        spots = (
            (_at(curve[:4], t) for t in (0.5, 0.38, 0.62, 0.28, 0.72)) if line.label_width else ()
        )
        free = next(
            (spot for spot in spots if not any(_covers(spot, line, *other) for other in placed)),
            None,
        )
        labels.append(free)
        if free is not None:
            placed.append((free, line))
    return tuple(labels)


def _covers(a: Point, first: Line, b: Point, second: Line) -> bool:
    return (
        abs(a[0] - b[0]) < (first.label_width + second.label_width) / 2
        and abs(a[1] - b[1]) < (first.label_height + second.label_height) / 2
    )


def _smooth(stops: list[Point]) -> tuple[Point, ...]:
    """A curve through the stops that is vertical at each."""
    curve = [stops[0]]
    for (ax, ay), (bx, by) in pairwise(stops):
        bend = (by - ay) / 2
        curve += [(ax, ay + bend), (bx, by - bend), (bx, by)]
    return tuple(curve)


def _at(curve: tuple[Point, ...], t: float) -> Point:
    """The point of one cubic Bézier at `t` from 0 to 1."""
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x, y = (sum(w * point[d] for w, point in zip(weights, curve, strict=True)) for d in (0, 1))
    return x, y


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
