"""Random affine nests, run in plain Python: isl's dependences must be exactly those that occur."""

from __future__ import annotations

from collections import defaultdict

import islpy as isl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from tests.compiler.analysis.polyhedral.nests import (
    Event,
    Nest,
    affine_text,
    nests,
    scf_text,
    trace,
)
from tests.quick import examples

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

Pairs = set[tuple[tuple[int, ...], tuple[int, ...]]]


def carried(a: Event, b: Event) -> int | None:
    """The number of the outermost common loop in which the two differ."""
    for first, second, x, y in zip(a.loops, b.loops, a.iteration, b.iteration, strict=False):
        if first != second:
            return None
        if x != y:
            return first
    return None


def by_running(events: list[Event]) -> dict[tuple[int, int, int | None], Pairs]:
    """(source access, target access, loop) -> pairs of iterations."""
    found: dict[tuple[int, int, int | None], Pairs] = defaultdict(set)
    touched: dict[object, list[Event]] = defaultdict(list)
    for event in events:
        for earlier in touched[event.element]:
            if earlier.writes or event.writes:
                key = earlier.number, event.number, carried(earlier, event)
                found[key].add((earlier.iteration, event.iteration))
        touched[event.element].append(event)
    return dict(found)


def points(relation: isl.Map, n: int) -> Pairs:
    """The pairs of a relation at that value of the parameter `n`."""
    place = relation.find_dim_by_name(isl.dim_type.param, "n")
    if place >= 0:
        relation = relation.fix_val(isl.dim_type.param, place, n)
    relation = relation.project_out(isl.dim_type.param, 0, relation.dim(isl.dim_type.param))
    split = relation.dim(isl.dim_type.in_)
    found: Pairs = set()

    def add(point: isl.Point) -> None:
        size = split + relation.dim(isl.dim_type.out)
        at = [point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(size)]
        found.add((tuple(at[:split]), tuple(at[split:])))

    relation.wrap().flatten().foreach_point(add)
    return found


def by_isl(text: str, n: int) -> dict[tuple[int, int, int | None], Pairs]:
    with ir.Context():
        module = named(text)
        scop = read_scop(module.body.operations[0])
        numbers = {loop: k for k, loop in enumerate(scop.loops)}
        found: dict[tuple[int, int, int | None], Pairs] = {}
        for d in dependences(scop):
            assert d.exact, d.note
            key = (
                int(d.source.name[1:]),
                int(d.target.name[1:]),
                None if d.carrier is None else numbers[d.carrier],
            )
            pairs = points(d.relation, n)
            if pairs:
                found[key] = pairs
        return found


def named(text: str) -> ir.Module:
    """The module in `text`, the function's arguments named as they are written."""
    for name, kind in (("A", "memref<?xf32>"), ("B", "memref<?x?xf32>"), ("n", "index")):
        text = text.replace(f"%{name}: {kind}", f'%{name}: {kind} loc("{name}")')
    return ir.Module.parse(text)


@pytest.mark.parametrize("spelling", [affine_text, scf_text])
@settings(max_examples=examples(120), deadline=None, suppress_health_check=SLOW)
@given(nest=nests, n=st.integers(0, 4))
def test_dependences_are_exactly_those_that_occur(spelling, nest: Nest, n: int) -> None:
    events = trace(nest, n)
    if len(events) > 300:
        return
    assert by_isl(spelling(nest), n) == by_running(events)


@pytest.mark.parametrize("spelling", [affine_text, scf_text])
@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(nest=nests, n=st.integers(0, 4))
def test_accesses_are_exactly_what_is_touched(spelling, nest: Nest, n: int) -> None:
    events = trace(nest, n)
    with ir.Context():
        module = named(spelling(nest))
        scop = read_scop(module.body.operations[0])
        found: set[tuple[str, str, bool, tuple[int, ...], tuple[int, ...]]] = set()
        for statement in scop.statements:
            (access,) = statement.accesses
            assert statement.exact
            assert access.exact
            assert statement.must_write(access) is access.writes
            key = statement.name, access.array.name, access.writes
            found |= {(*key, *pair) for pair in points(access.relation, n)}
    assert found == {
        (f"S{e.number}", e.element[0], e.writes, e.iteration, e.element[1]) for e in events
    }
