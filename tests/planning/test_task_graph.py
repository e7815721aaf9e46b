"""Dependencies: sound (any legal order gives the same memory) and precise (no edge without a shared
element).
"""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Target
from avial_lab.planning.task_graph import Access, Hazard, Task, TaskGraph, build_dag
from tests.memory import Memory, run_task
from tests.strategies import task_graphs

CPU = Target("cpu")


def program(
    *tasks: tuple[str, dict[str, tuple[int, int]], dict[str, tuple[int, int]]],
) -> TaskGraph:
    """Tasks as (name, what it reads, what it writes) on arrays a and b of ten floats."""
    storages = tuple(Storage(name, (10,), 4, (name,)) for name in "ab")
    buffers = tuple(Buffer(name, (10,), "f32", name, (1,)) for name in "ab")

    def accesses(ranges: dict[str, tuple[int, int]]) -> tuple[Access, ...]:
        return tuple(Access(n, n, (Box((lo,), (hi,)),)) for n, (lo, hi) in ranges.items())

    return build_dag(
        [Task(name, CPU, accesses(reads), accesses(writes)) for name, reads, writes in tasks],
        buffers,
        storages,
    )


def edges(graph: TaskGraph) -> list[tuple[str, str, str, str, int]]:
    return [(e.before, e.after, e.hazard.value, e.buffer, e.nbytes) for e in graph.dependencies]


def test_each_hazard_has_its_buffer_and_bytes() -> None:
    graph = program(
        ("w", {}, {"a": (0, 10)}),
        ("r", {"a": (2, 5)}, {"b": (0, 1)}),
        ("v", {}, {"a": (4, 8)}),
    )
    assert edges(graph) == [
        ("w", "r", "RAW", "a", 12),
        ("w", "v", "WAW", "a", 16),
        ("r", "v", "WAR", "a", 4),
    ]
    assert [[task.name for task in level] for level in graph.levels] == [["w"], ["r"], ["v"]]


def test_touching_regions_and_two_readers_make_no_edge() -> None:
    graph = program(
        ("left", {}, {"a": (0, 5)}),
        ("right", {}, {"a": (5, 10)}),
        ("one", {"b": (0, 10)}, {}),
        ("two", {"b": (0, 10)}, {}),
    )
    assert graph.dependencies == ()
    assert len(graph.levels) == 1


def test_an_overwritten_write_is_not_depended_on() -> None:
    graph = program(
        ("old", {}, {"a": (0, 10)}),
        ("new", {}, {"a": (0, 10)}),
        ("reader", {"a": (0, 10)}, {}),
    )
    assert ("old", "reader", "RAW", "a", 40) not in edges(graph)
    assert ("new", "reader", "RAW", "a", 40) in edges(graph)


def test_an_explicit_edge_orders_tasks_that_share_nothing() -> None:
    first = Task("first", CPU, (), ())
    second = Task("second", CPU, (), (), after=("first",))
    graph = build_dag([first, second], (), ())
    assert [(e.before, e.after, e.hazard) for e in graph.dependencies] == [
        ("first", "second", Hazard.EXPLICIT)
    ]
    assert graph.level_of == {"first": 0, "second": 1}


@given(task_graphs(), st.randoms(use_true_random=False))
def test_any_legal_order_leaves_the_same_memory(graph: TaskGraph, rng: random.Random) -> None:
    expected = Memory(graph)
    for task in graph.tasks:
        run_task(expected, task)
    memory = Memory(graph)
    before: dict[str, set[str]] = {task.name: set() for task in graph.tasks}
    for edge in graph.dependencies:
        before[edge.after].add(edge.before)
    while before:
        ready = sorted(name for name, waits_for in before.items() if not waits_for)
        name = rng.choice(ready)
        run_task(memory, graph.by_name[name])
        del before[name]
        for waits_for in before.values():
            waits_for.discard(name)
    assert memory == expected


@given(task_graphs())
def test_every_edge_names_elements_both_tasks_touch(graph: TaskGraph) -> None:
    for edge in graph.dependencies:
        if edge.hazard is Hazard.EXPLICIT:
            continue
        before, after = graph.by_name[edge.before], graph.by_name[edge.after]
        first = before.reads if edge.hazard is Hazard.WRITE_AFTER_READ else before.writes
        second = after.reads if edge.hazard is Hazard.READ_AFTER_WRITE else after.writes
        for box in edge.region:
            for accesses in (first, second):
                assert any(
                    b.overlaps(box) for a in accesses if a.buffer == edge.buffer for b in a.region
                )
        assert edge.nbytes > 0


@given(task_graphs())
def test_levels_are_the_longest_paths(graph: TaskGraph) -> None:
    for task in graph.tasks:
        waits_for = [e.before for e in graph.dependencies if e.after == task.name]
        expected = 1 + max((graph.level_of[name] for name in waits_for), default=-1)
        assert graph.level_of[task.name] == expected
