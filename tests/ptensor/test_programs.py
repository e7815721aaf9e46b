"""Random programs of views, assignments, reductions and loops: as NumPy has them, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.ptensor import recording
from tests.ptensor.local import local_namespace
from tests.quick import examples

SHAPE = (5, 4)
Step = Callable[[Any, dict[str, Any]], None]
NAMES = ("a", "b", "c")

names = st.sampled_from(NAMES)


@st.composite
def cuts(draw: st.DrawFn, rows: int, columns: int) -> tuple[slice, slice]:
    """Of the array's two dimensions, `rows` and `columns` long, with steps of either sign."""

    def cut(extent: int, count: int) -> slice:
        step = draw(st.sampled_from([1, 1, 1, 2, -1]))
        span = (count - 1) * abs(step) + 1
        if span > extent:
            step, span = (1 if step > 0 else -1), count
        first = draw(st.integers(0, extent - span))
        if step > 0:
            return slice(first, first + span, step)
        return slice(first + span - 1, first - 1 if first else None, step)

    return cut(SHAPE[0], rows), cut(SHAPE[1], columns)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    kind = draw(st.sampled_from(["assign", "elementwise", "sum", "number", "product", "in place"]))
    x, y, z = draw(names), draw(names), draw(names)
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    to, left, right = (draw(cuts(rows, columns)) for _ in range(3))
    sign = draw(st.sampled_from(["add", "subtract", "multiply", "maximum"]))

    def assign(xp: Any, have: dict[str, Any]) -> None:
        have[x][to] = getattr(xp, sign)(have[y][left], have[z][right])

    def elementwise(xp: Any, have: dict[str, Any]) -> None:
        have[x] = getattr(xp, sign)(have[y], have[z]) * 0.5

    def total(xp: Any, have: dict[str, Any]) -> None:
        have[x] = have[y] + xp.sum(have[z], axis=0)[None] - xp.max(have[y], axis=1)[:, None]

    def number(xp: Any, have: dict[str, Any]) -> None:
        have[x][to] = 1.5

    def product(xp: Any, have: dict[str, Any]) -> None:
        have[x] = xp.matmul(xp.matmul(have[y], have[z].T), have[y])

    def in_place(xp: Any, have: dict[str, Any]) -> None:
        part = have[x][to]
        part += have[y][left]
        have[x] *= 0.25

    return {
        "assign": assign, "elementwise": elementwise, "sum": total, "number": number,
        "product": product, "in place": in_place,
    }[kind]  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, list[Step]]]:
    """Parts, each so many times: several in a row are a loop."""
    times = st.sampled_from([1, 1, 4, 6])
    return draw(
        st.lists(
            st.tuples(times, st.lists(steps(), min_size=1, max_size=4)), min_size=1, max_size=4
        )
    )


def run(program: list[tuple[int, list[Step]]], xp: Any, *, forced: int = 0) -> list[np.ndarray]:
    """`forced`: what is recorded runs after every so many steps."""
    rng = np.random.default_rng(5)
    # Whole numbers: sums in any order, and products that are rounded once or twice, are the same.
    have = {name: xp.asarray(rng.integers(-3, 4, SHAPE).astype(float)) for name in NAMES}
    done = 0
    for times, steps in program:
        for _ in range(times):
            for step in steps:
                step(xp, have)
                for name in NAMES:  # a product of halves and quarters has thrice their digits
                    have[name] = xp.floor(xp.remainder(have[name], 8.0))
                done += 1
                if forced and done % forced == 0:
                    xp.sync()
    return [np.asarray(have[name]) for name in NAMES]


@settings(max_examples=examples(8), deadline=None)
@given(programs(), st.sampled_from([0, 2, 5]))
def test_programs(program: list[tuple[int, list[Step]]], forced: int) -> None:
    check(program, forced)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(programs(), st.sampled_from([0, 2, 5]))
def test_many_programs(program: list[tuple[int, list[Step]]], forced: int) -> None:
    check(program, forced)


def check(program: list[tuple[int, list[Step]]], forced: int) -> None:
    want = run(program, np)
    got = run(program, local_namespace(), forced=forced)
    for mine, numpys in zip(got, want, strict=True):
        np.testing.assert_array_equal(mine, numpys)


def test_a_loop_is_a_loop() -> None:
    xp = local_namespace()
    u, v = xp.zeros((9, 9)), np.zeros((9, 9))
    for array in (u, v):
        array[0] = 1.0
        for _ in range(50):
            array[1:-1, 1:-1] = 0.25 * (
                array[:-2, 1:-1] + array[2:, 1:-1] + array[1:-1, :-2] + array[1:-1, 2:]
            )
    np.testing.assert_array_equal(np.asarray(u), v)
    (text,) = xp.connection.texts
    assert "affine.for %turn0 = 0 to 50 {" in text
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize("steps", [pytest.param(3, marks=pytest.mark.slow), 40])
def test_a_loop_that_hands_values_on_is_a_loop(steps: int) -> None:
    """Of one turn and of the one before; what is kept of the last turns stays."""
    xp = local_namespace()
    found: list[list[np.ndarray]] = []
    for namespace in (np, xp):
        u = namespace.linspace(0.0, 1.0, 300)
        v, s = u * 0.5, u[:3] + 1
        for _ in range(steps):
            u, v = v + 0.1 * u[::-1], u
            s = s + 0.01 * namespace.stack([s[1] - s[0], s[0] * s[2], s[1] * u[3]])
        found.append([np.asarray(each) for each in (u, v, s, s[::-1])])
    for numpys, mine in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, numpys)
    text = xp.connection.texts[0]
    assert text.count("affine.for") == (steps > 8)
    assert len(text.splitlines()) < 250


def test_recordings_of_the_same_turns_are_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end where a turn does, and are compiled once."""
    xp = local_namespace()
    connection = xp.connection
    monkeypatch.setattr(recording, "MOST_STATEMENTS", 200)
    full = lambda: connection.recording.is_full() and connection.run()  # noqa: E731
    monkeypatch.setattr(connection, "run_if_full", full)
    found: list[np.ndarray] = []
    for namespace in (np, xp):
        s = namespace.asarray(np.array([1.0, 2.0, 3.0]))
        for _ in range(80):
            x, y, z = s[0], s[1], s[2]
            s = s + 0.01 * namespace.stack([y - x, x * (28.0 - z) - y, x * y])
        found.append(np.asarray(s))
    np.testing.assert_array_equal(found[1], found[0])
    assert len(connection.texts) > 5
    assert len(set(connection.texts)) <= 3


def test_what_was_read_before_an_assignment_stays() -> None:
    """Neither has memory of its own when the assignment comes: both are kept before it."""
    xp = local_namespace()

    def old_and_new(array: Any) -> Any:
        doubled = array * 2
        before = array[::-1]
        summed = before + doubled
        array[1:3] = 50.0
        return summed + array

    want = np.arange(5.0)
    got = xp.asarray(want)
    kept = old_and_new(got)
    np.testing.assert_array_equal(np.asarray(kept), old_and_new(want))
    np.testing.assert_array_equal(np.asarray(got), want)


def test_an_assignment_reads_what_it_writes() -> None:
    """Of a value that gets its memory only for that assignment, after what is assigned was
    recorded.
    """
    xp = local_namespace()

    def turned(array: Any) -> Any:
        doubled = array * 2.0
        part = doubled[:, 0:2]
        part += doubled[::-1, 0:2]
        return doubled

    want = np.arange(20.0).reshape(5, 4)
    np.testing.assert_array_equal(np.asarray(turned(xp.asarray(want))), turned(want))


def test_a_value_of_before_is_taken_in_every_turn() -> None:
    xp = local_namespace()

    def turns(array: Any) -> Any:
        start = array + 1.0
        for _ in range(5):
            array[:] = array * 0.5 + start
        return array

    want = turns(np.arange(4.0))
    np.testing.assert_array_equal(np.asarray(turns(xp.asarray(np.arange(4.0)))), want)
    assert "affine.for %turn0" in xp.connection.texts[0]


def test_what_takes_long_to_compile_is_run_in_parts() -> None:
    """Statements that differ; equal turns of a loop are one program, whatever their number."""
    xp = local_namespace()
    x = xp.asarray(np.arange(240.0))
    for _ in range(300):
        x[1:] = x[:-1] * 0.5
    assert not xp.connection.record().is_full()
    for k in range(110):
        x[k] = x[2 * k] + x[2 * k + 1]
    assert xp.connection.record().is_full()
    xp = local_namespace()
    x = xp.asarray(np.arange(3.0))
    kept = [x[k % 3] + x[0] for k in range(150)]
    assert xp.connection.record().is_full()
    del kept
