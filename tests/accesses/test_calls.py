"""Tasks that call functions on parts of arrays: what they touch, and what follows for the graph."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.accesses import read_program
from avial_lab.dag import Access, TaskGraph, build_dag
from avial_lab.parse import parse_cell
from tests.blocked import ALGORITHMS
from tests.calls import CallProgram, Memory, call_programs, numbered

ELEMENTS = numbered()
SIZE = sum(elements.size for elements in ELEMENTS.values())


def graph_of(text: str) -> TaskGraph:
    return build_dag(*read_program(parse_cell(text, cell="t", context=ir.Context())))


def elements_of(accesses: tuple[Access, ...], *, exact: bool = False) -> set[int]:
    """The numbers of the elements in their regions; of those that are exact alone."""
    return {
        int(element)
        for access in accesses
        if access.exact or not exact
        for box in access.region
        for element in ELEMENTS[access.storage][box.slices].flat
    }


@settings(max_examples=150)
@given(call_programs(), st.randoms(use_true_random=False))
def test_regions_hold_what_is_touched(program: CallProgram, rng: random.Random) -> None:
    graph = graph_of(program.text)
    values = [rng.randrange(-9, 30) for _ in range(SIZE)]
    for task in graph.tasks:
        memory = Memory(values)
        program.tasks[task.name](memory)
        assert memory.read <= elements_of(task.reads)
        assert memory.written <= elements_of(task.writes)
        assert elements_of(task.writes, exact=True) <= memory.written


@settings(max_examples=100)
@given(call_programs(most_tasks=8), st.randoms(use_true_random=False))
def test_any_legal_order_leaves_the_same_memory(program: CallProgram, rng: random.Random) -> None:
    graph = graph_of(program.text)
    first = [rng.randrange(-9, 30) for _ in range(SIZE)]
    expected, memory = Memory(list(first)), Memory(list(first))
    for step in program.tasks.values():
        step(expected)
    before: dict[str, set[str]] = {task.name: set() for task in graph.tasks}
    for edge in graph.dependencies:
        before[edge.after].add(edge.before)
    while before:
        name = rng.choice(sorted(name for name, waits_for in before.items() if not waits_for))
        program.tasks[name](memory)
        del before[name]
        for waits_for in before.values():
            waits_for.discard(name)
    assert memory.values == expected.values


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_blocked_algorithms_have_the_textbooks_graph(name: str, blocks: int) -> None:
    program = ALGORITHMS[name](blocks, 4)
    graph = graph_of(program.text)
    found = {(edge.before, edge.after) for edge in graph.dependencies}
    assert found == program.pairs | program.beside


@pytest.mark.parametrize(
    ("name", "tasks", "pairs"),
    # n = 5: n³ products; n (n + 1) (n + 2) / 6 and n (n + 1) (2 n + 1) / 6 tasks.
    [("gemm", 125, 100), ("cholesky", 35, 60), ("lu", 55, 110)],
)
def test_the_textbooks_graphs_have_that_many_pairs(name: str, tasks: int, pairs: int) -> None:
    program = ALGORITHMS[name](5, 4)
    assert len(graph_of(program.text).tasks) == tasks
    assert len(program.pairs - program.beside) == pairs
