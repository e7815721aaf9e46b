"""Small programs are computed without compiling them: the same bits, whichever way they go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avial_lab.core.array_functions import BINARY, UNARY, is_blockwise, is_exact
from avial_lab.core.regions import Box
from avial_lab.ptensor import on
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.rank.interpreter import Operation, needs
from tests.ptensor.local import InterpretedConnection, local_namespace
from tests.ptensor.test_programs import Step, programs, run
from tests.quick import examples

Pair = tuple[Namespace, Namespace]


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.slow), 3])
def both(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """On one cluster: interpreted, and always compiled."""
    with Cluster.start(cpu=request.param, gpu=0) as started:
        quick, compiled = on(started), on(started)
        compiled.connection.always_compiled = True
        yield quick, compiled


def same(quick: Any, compiled: Any) -> None:
    """Equal bits, but for those of a NaN; zeros have signs."""
    here, there = np.asarray(quick), np.asarray(compiled)
    assert (here.shape, here.dtype) == (there.shape, there.dtype)
    np.testing.assert_array_equal(here, there)
    if here.dtype.kind in "fc":
        for part in ("real", "imag"):
            x, y = getattr(here, part), getattr(there, part)
            np.testing.assert_array_equal(np.signbit(x) & (x == x), np.signbit(y) & (y == y))


TINY = 5e-324
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, -2.5, 1e300, -1e300, TINY, np.inf, -np.inf, np.nan, 7.25, 3e-9]
KINDS = ["bool", "int8", "uint8", "int32", "uint64", "int64", "float32", "float64", "complex128"]


def numbers(kind: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(3)
    if kind.kind == "b":
        return rng.integers(0, 2, 14).astype(bool)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        edges = [0, 1, 2, 3, info.max, info.min, info.max - 1, 7, 63, 64]
        return np.array([*edges, *rng.integers(0, 90, 4)], kind)
    if kind.kind == "c":
        return (rng.integers(-9, 9, 14) / 8 + 1j * rng.standard_normal(14)).astype(kind)
    with np.errstate(over="ignore"):
        return np.array(FLOATS, kind)


HARD = frozenset({"maximum", "floor_divide", "remainder", "sign", "round", "bitwise_right_shift"})


def computed(xp: Namespace, kind: np.dtype, only: frozenset[str] | None) -> list[Any]:
    """Every function that has one result (or those `only`), of every pair of a dozen numbers;
    reductions, products and conversions.
    """
    given = numbers(kind)
    x, y = xp.asarray(given)[:, None], xp.asarray(given[::-1].copy())[None, :]
    made: list[Any] = []
    for names, operands in ((UNARY, (x,)), (BINARY, (x, y))):
        for name, ufunc in names.items():
            try:
                types = getattr(np, ufunc).resolve_dtypes((*(kind for _ in operands), None))
            except TypeError:
                continue
            if is_exact(name, types[0]) and (only is None or name in only):
                made.append(getattr(xp, name)(*operands))
    finite = xp.asarray(given[np.isfinite(given) & (np.abs(given) < 100)])
    total = finite if kind.kind != "c" else finite[:5]
    made += [xp.sum(total), xp.matmul(total[:, None], total[None, :])]
    made += [xp.matmul(total[None, :], total[:, None]), xp.vecdot(total, total)]
    if kind.kind != "c":
        made += [
            xp.prod(finite[:7]),
            xp.max(x),
            xp.min(x, axis=0),
            xp.any(xp.not_equal(x, 0)),
            xp.all(xp.equal(x, x)),
        ]
    made += [xp.where(x == y, x, y), xp.where(x != x, y, x)]
    positive = xp.abs(finite) if kind.kind != "c" else finite
    for other in ("bool", "int16", "uint8", "float32", "float64", "complex64"):
        if kind.kind != "c" or other == "complex64":
            made.append(xp.astype(positive, np.dtype(other)))
    return made


@pytest.mark.mpi
def test_functions(both: Pair) -> None:
    check_functions(both, "float64", HARD)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_all_functions(both: Pair, name: str) -> None:
    check_functions(both, name)


def check_functions(both: Pair, name: str, only: frozenset[str] | None = None) -> None:
    quick, compiled = both
    before = quick.connection.compiled
    with np.errstate(all="ignore"):  # integers are divided by zero, too
        found, wanted = (computed(xp, np.dtype(name), only) for xp in both)
    for mine, other in zip(found, wanted, strict=True):
        same(mine, other)
    assert quick.connection.compiled == before
    assert compiled.connection.interpreted == 0


def sums(xp: Namespace, rows: int, columns: int) -> list[Any]:
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-5, 5, (rows, columns))
    x, y = xp.asarray(a), xp.asarray(a.astype(np.float32))
    made = [xp.sum(each, axis=axis) for each in (x, y) for axis in (0, 1, None)]
    made += [xp.var(x), xp.mean(y, axis=0), x @ x.T, y.T @ y, x @ x[0], xp.vecdot(x, x)]
    return [*made, xp.sum(x * 1j), xp.sum(x[::-1, ::2] @ (x[:, ::2].T * 2j), axis=0)]


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("rows", "columns"),
    [(5, 7), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((1, 1), (64, 61)))],
)
def test_sums_of_few_terms_are_in_order(both: Pair, rows: int, columns: int) -> None:
    """Of floating-point numbers that are not whole: where their order and rounding show."""
    quick, _ = both
    before = quick.connection.compiled
    for mine, other in zip(*(sums(xp, rows, columns) for xp in both), strict=True):
        same(mine, other)
    assert quick.connection.compiled - before <= (rows > 60)


@settings(max_examples=examples(25), deadline=None)
@given(program=programs(), forced=st.sampled_from([0, 1, 3]), ranks=st.integers(1, 4))
def test_programs(program: list[tuple[int, list[Step]]], forced: int, ranks: int) -> None:
    check(program, forced, ranks)


@pytest.mark.slow
@settings(max_examples=examples(600), deadline=None)
@given(program=programs(), forced=st.sampled_from([0, 1, 3]), ranks=st.integers(1, 7))
def test_many_programs(program: list[tuple[int, list[Step]]], forced: int, ranks: int) -> None:
    check(program, forced, ranks)


def check(program: list[tuple[int, list[Step]]], forced: int, ranks: int) -> None:
    """Where each rank has no more than it needs."""
    xp = local_namespace(InterpretedConnection(ranks))
    for mine, numpys in zip(run(program, xp, forced=forced), run(program, np), strict=True):
        np.testing.assert_array_equal(mine, numpys)


@pytest.mark.mpi
@pytest.mark.slow
@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(program=programs(), forced=st.sampled_from([0, 3]))
def test_programs_both_ways(both: Pair, program: list[tuple[int, list[Step]]], forced: int) -> None:
    quick, compiled = both
    for mine, other in zip(run(program, quick, forced=forced), run(program, compiled), strict=True):
        same(mine, other)


def elementary(xp: Namespace, names: Sequence[str], kind: str) -> list[Any]:
    rng = np.random.default_rng(5)
    drawn = rng.standard_normal(5000) * 10.0 ** rng.integers(-9, 9, 5000)
    x = np.concatenate([np.array(FLOATS), drawn])
    with np.errstate(over="ignore"):
        given = xp.asarray(x.astype(kind))
    made = [getattr(xp, name)(part) for name in names for part in (given, given[:1], given[14:])]
    return [*made, *(getattr(xp, name)(given[:4][:, None] * given[5:8]) + 1 for name in names)]


ELEMENTARY = [name for name in UNARY if is_blockwise(name, np.dtype(float))]


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["exp", "tanh"], "float64"),
        *(
            pytest.param(ELEMENTARY, kind, marks=pytest.mark.slow)
            for kind in ("float32", "float64")
        ),
    ],
)
def test_elementary_functions(both: Pair, names: list[str], kind: str) -> None:
    """Each is compiled once, for whatever shape: the bits are those of a program of its own."""
    quick, _ = both
    before = quick.connection.compiled
    for mine, other in zip(*(elementary(xp, names, kind) for xp in both), strict=True):
        same(mine, other)
    assert quick.connection.compiled == before


@pytest.mark.mpi
def test_what_differs_is_compiled(both: Pair) -> None:
    """Only the values tell that these conversions are the machine's business."""
    quick, _ = both
    before = quick.connection.compiled
    x = quick.asarray(np.array([1.0, 300.0, -1e30]))
    assert np.asarray(quick.astype(x, np.int8))[0] == 1
    assert quick.connection.compiled == before + 1


@pytest.mark.mpi
def test_what_is_done_often_is_compiled(both: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has cost as much as compiling."""
    monkeypatch.setattr("avial_lab.ptensor.connection.MOST_SPENT", 30)
    quick, _ = both
    x = quick.asarray(np.arange(37.0))
    before = quick.report()
    for _ in range(8):
        np.testing.assert_array_equal(np.asarray(x * 3 - 1), np.arange(37.0) * 3 - 1)
    after = quick.report()
    assert after["compiled"] - before["compiled"] == 1
    assert 1 <= after["interpreted"] - before["interpreted"] < 8


def test_a_rank_needs_its_rows_and_a_halo() -> None:
    """d = a[1:] - a[:-1], of which a rank has rows 3 to 6."""
    kind = np.dtype(float)
    later, earlier = ((1, 0, 1),), ((0, 0, 1),)
    program = [
        Operation("load", "%a", ("%m0",), (10,), kind),
        Operation("view", "%l", ("%a",), (9,), kind, part=later),
        Operation("view", "%e", ("%a",), (9,), kind, part=earlier),
        Operation("binary", "%d", ("%l", "%e"), (9,), kind, "subtract"),
        Operation("store", "", ("%d", "%m1"), (9,), kind),
    ]
    found = needs(program, {"%m1": Box((3,), (6,))})
    assert found.given == {"%m0": Box((3,), (7,))}
    assert not needs(program, {"%m1": Box((9,), (9,))}).values
