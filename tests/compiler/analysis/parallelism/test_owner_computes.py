"""Accesses whose places hang on unknown numbers: whatever the numbers are, no order is missing; and
windows of one number that share nothing make no edge.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

from hypothesis import assume, given
from hypothesis import strategies as st

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.regions import Box, overlaps, union
from avial_lab.machine.topology import Target
from avial_lab.planning.task_graph import Access, Task, TaskGraph, build_dag

EXTENT = 8
SHAPE = (EXTENT, EXTENT)
STORAGE = Storage("a", SHAPE, 4, ("a",))
BUFFER = Buffer("a", SHAPE, "f32", "a", (EXTENT, 1))
NUMBERS = ("", "k", "n")


def window(anchor: tuple[str, ...], *ends: tuple[int, int]) -> Access:
    """The elements from `ends` on, counted from the anchor in each dimension."""
    relative = Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
    if not any(anchor):
        return Access("a", "a", (relative,))
    reach = [(0, EXTENT) if name else end for name, end in zip(anchor, ends, strict=True)]
    region = Box(tuple(low for low, _ in reach), tuple(high for _, high in reach))
    return Access("a", "a", (region,), exact=False, anchor=anchor, relative=(relative,))


@st.composite
def windows(draw: st.DrawFn) -> Access:
    anchor = tuple(draw(st.sampled_from(NUMBERS)) for _ in SHAPE)
    ends: list[tuple[int, int]] = []
    for _ in SHAPE:
        whole = draw(st.integers(0, 3)) == 0
        low = 0 if whole else draw(st.integers(0, EXTENT - 1))
        ends.append((low, EXTENT if whole else draw(st.integers(low + 1, EXTENT))))
    return window(anchor, *ends)


@st.composite
def programs(draw: st.DrawFn) -> TaskGraph:
    tasks = [
        Task(
            f"t{k}",
            Target("cpu"),
            tuple(draw(st.lists(windows(), max_size=1))),
            tuple(draw(st.lists(windows(), max_size=1))),
        )
        for k in range(draw(st.integers(2, 7)))
    ]
    return build_dag(tasks, [BUFFER], [STORAGE])


def settled(access: Access, numbers: dict[str, int]) -> Access:
    """The access once the numbers are known."""
    if not access.anchor:
        return access
    shifts = [numbers[name] for name in access.anchor]
    moved = (
        Box(
            tuple(max(0, low + by) for low, by in zip(box.start, shifts, strict=True)),
            tuple(min(EXTENT, high + by) for high, by in zip(box.stop, shifts, strict=True)),
        )
        for box in access.relative
    )
    return replace(access, region=union(moved), anchor=(), relative=())


def collide(a: Task, b: Task, numbers: dict[str, int]) -> bool:
    """Whether the order of the two matters for these numbers."""
    pairs = [*product(a.writes, (*b.reads, *b.writes)), *product(a.reads, b.writes)]
    return any(overlaps(settled(x, numbers).region, settled(y, numbers).region) for x, y in pairs)


def reached(graph: TaskGraph) -> dict[str, set[str]]:
    """Every task with all that wait for it, directly or not."""
    later: dict[str, set[str]] = {task.name: set() for task in graph.tasks}
    for task in reversed(graph.tasks):
        for edge in graph.dependencies:
            if edge.before == task.name:
                later[task.name] |= {edge.after} | later[edge.after]
    return later


@given(programs())
def test_no_order_is_missing_whatever_the_numbers_are(graph: TaskGraph) -> None:
    later = reached(graph)
    for k, n in product((-3, 0, 2, 5), repeat=2):
        numbers = {"": 0, "k": k, "n": n}
        for a, b in combinations(graph.tasks, 2):
            if collide(a, b, numbers):
                assert b.name in later[a.name], numbers


@given(windows(), windows())
def test_an_edge_is_there_only_where_some_numbers_make_two_touch(a: Access, b: Access) -> None:
    rows, columns = ({x.anchor[d] for x in (a, b) if x.anchor} - {""} for d in (0, 1))
    assume(not rows & columns)  # a number that ties rows to columns is not looked at that closely
    first, second = Task("a", Target("cpu"), (), (a,)), Task("b", Target("cpu"), (), (b,))
    graph = build_dag([first, second], [BUFFER], [STORAGE])
    shifts = range(-EXTENT, EXTENT + 1)
    possible = any(
        collide(first, second, {"": 0, "k": k, "n": n}) for k, n in product(shifts, shifts)
    )
    assert bool(graph.dependencies) == possible


def test_windows_of_one_number_side_by_side() -> None:
    tasks = [
        Task("low", Target("cpu"), (), (window(("k", ""), (0, 3), (0, 8)),)),
        Task("high", Target("cpu"), (), (window(("k", ""), (3, 6), (0, 8)),)),
        Task("other", Target("cpu"), (window(("n", ""), (0, 1), (0, 4)),), ()),
        Task("right", Target("cpu"), (), (window(("", ""), (0, 8), (4, 8)),)),
    ]
    graph = build_dag(tasks, [BUFFER], [STORAGE])
    assert [(e.before, e.after, str(e.region[0])) for e in graph.dependencies] == [
        ("low", "other", "[0:8, 0:4]"),
        ("high", "other", "[0:8, 0:4]"),
        ("low", "right", "[0:8, 4:8]"),
        ("high", "right", "[0:8, 4:8]"),
    ]


def test_a_write_of_everything_is_all_that_a_later_task_waits_for() -> None:
    tasks = [
        Task("window", Target("cpu"), (), (window(("k", ""), (0, 3), (0, 8)),)),
        Task("fill", Target("cpu"), (), (window(("", ""), (0, 8), (0, 8)),)),
        Task("reader", Target("cpu"), (window(("k", ""), (0, 3), (0, 8)),), ()),
    ]
    graph = build_dag(tasks, [BUFFER], [STORAGE])
    assert [(e.before, e.after) for e in graph.dependencies] == [
        ("window", "fill"),
        ("fill", "reader"),
    ]
