"""Library code on shards: NumPy's results, whatever the ranks have of the operands."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.core.errors import AvialError
from avial_lab.ptensor import on
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.launch import lines
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.rank import shards
from avial_lab.runtime.rank.shards import Alone, Shard

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def xp() -> Iterator[Namespace]:
    with Cluster.start(cpu=3, gpu=0) as started:
        yield on(started)


def same(found: Any, wanted: Any, *, close: bool = False) -> None:
    many = isinstance(wanted, tuple)
    for each, other in zip(found if many else [found], wanted if many else [wanted], strict=True):
        here, there = np.asarray(each), np.asarray(other)
        assert (here.shape, here.dtype) == (there.shape, there.dtype)
        if close:
            np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_array_equal(here, there)


RNG = np.random.default_rng(0)
FLAT = np.array([3.0, np.nan, -0.0, 3.0, 0.0, 7.0, np.nan, 1.0, 3.0, -2.0, 3.0])
"""With what order is hard on."""
PLANE = RNG.integers(0, 9, (7, 4)).astype(np.int32)


def test_order(xp: Namespace) -> None:
    x, p = xp.asarray(FLAT), xp.asarray(PLANE)
    same(xp.sort(x), np.sort(FLAT, kind="stable"))
    same(xp.argsort(x), np.argsort(FLAT, kind="stable"))
    whole = xp.asarray(PLANE.reshape(-1))
    same(xp.argsort(whole, descending=True), np.argsort(-PLANE.reshape(-1), kind="stable"))
    same(xp.sort(whole, descending=True), np.sort(PLANE, axis=None)[::-1])
    for axis in (0, 1):
        same(xp.argsort(p, axis=axis), np.argsort(PLANE, axis=axis, kind="stable"))
        same(xp.argmax(p, axis=axis), np.argmax(PLANE, axis=axis))
        same(xp.argmin(p, axis=axis, keepdims=True), np.argmin(PLANE, axis=axis, keepdims=True))
    same(xp.argmin(x), np.argmin(FLAT))
    same(xp.argmax(p), np.argmax(PLANE))
    same(tuple(xp.unique_counts(p)), tuple(np.unique_counts(PLANE)))
    same(tuple(xp.unique_all(x)), tuple(np.unique_all(FLAT)))
    same(
        xp.searchsorted(xp.arange(9), p, side="right"),
        np.searchsorted(np.arange(9), PLANE, "right"),
    )


def test_what_hangs_on_the_data_stays_where_it_is(xp: Namespace) -> None:
    """A mask moves nothing; what it leaves is uneven, and computed with as any array."""
    rows = RNG.random((9, 3))
    x = xp.asarray(rows)
    mask = rows[:, 0] > 0.5
    given = xp.asarray(mask)
    before = xp.report()["bytes_moved"]
    found = x[given]
    assert xp.report()["bytes_moved"] == before
    same(found, rows[mask])
    same(found * 2 + 1, rows[mask] * 2 + 1)
    same(xp.nonzero(xp.asarray(PLANE)), np.nonzero(PLANE))


@pytest.mark.parametrize(
    "key",
    [
        ([0, -1, 3],),
        (slice(None), [[1, 0], [2, 2]]),
        ([[1], [5]], [0, 2]),
        (slice(1, 6), None, [3, 0]),
        (RNG.random((7, 4)) > 0.5,),
        (np.zeros((7, 4), bool),),
    ],
    ids=["rows", "columns", "both", "a view's", "mask", "no element"],
)
def test_subscripts_that_are_arrays(xp: Namespace, key: tuple[Any, ...]) -> None:
    same(xp.asarray(PLANE)[key], PLANE[key])
    x, y = xp.asarray(PLANE), PLANE.copy()
    value = np.arange(y[key].size, dtype=np.int32).reshape(y[key].shape)
    x[key], y[key] = value, value
    same(x, y)
    x[key] = y[key] = -3
    same(x, y)


def test_a_truth_value(xp: Namespace) -> None:
    x, y = xp.asarray(PLANE), PLANE.copy()
    for truth in (True, False):
        same(x[xp.asarray(truth)], PLANE[truth])
        x[truth] = y[truth] = int(truth)
        same(x, y)


def test_a_subscript_on_the_ranks(xp: Namespace) -> None:
    numbers = np.array([2, -1, 0, 6])
    x = xp.asarray(PLANE)
    same(x[xp.asarray(numbers)], PLANE[numbers])
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        x[xp.asarray(numbers + 1)]
    with pytest.raises(IndexError, match="along axis 0; size of axis is 7"):
        x[xp.asarray(np.ones((2, 2), bool))]
    same(x, PLANE)


def test_up_to_each(xp: Namespace) -> None:
    x = xp.asarray(PLANE)
    for axis in (0, 1):
        same(xp.cumulative_sum(x, axis=axis), np.cumulative_sum(PLANE, axis=axis))
    flat = PLANE.reshape(-1).astype(np.float64)
    same(
        xp.cumulative_prod(xp.asarray(flat[:9] + 1), include_initial=True),
        np.cumulative_prod(flat[:9] + 1, include_initial=True),
    )
    same(xp.diff(x, axis=0, n=2), np.diff(PLANE, axis=0, n=2))


def test_linear_algebra(xp: Namespace) -> None:
    """Stacks where they lie, a matrix on one rank; one that is singular costs nobody anything."""
    stack = RNG.random((4, 3, 3)) + 3 * np.eye(3)
    x = xp.asarray(stack)
    for matrices, here in ((x, stack), (x[1], stack[1])):
        same(xp.linalg.inv(matrices), np.linalg.inv(here), close=True)
        same(tuple(xp.linalg.qr(matrices)), tuple(np.linalg.qr(here)), close=True)
        same(xp.linalg.det(matrices), np.linalg.det(here), close=True)
    same(xp.linalg.solve(x, x[..., :1]), np.linalg.solve(stack, stack[..., :1]), close=True)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        xp.linalg.inv(xp.zeros((3, 3)))
    same(x, stack)


def test_a_tolerance_for_each_matrix(xp: Namespace) -> None:
    stack, each = RNG.random((5, 3, 2)), np.array([0.0, 0.5, 0.9, 0.1, 0.99])
    x, rtol = xp.asarray(stack), xp.asarray(each)
    same(xp.linalg.matrix_rank(x, rtol=rtol), np.linalg.matrix_rank(stack, rtol=each))
    same(xp.linalg.pinv(x, rtol=rtol), np.linalg.pinv(stack, rtol=each), close=True)


def test_fourier_transforms(xp: Namespace) -> None:
    x = xp.asarray(PLANE)
    for axis in (0, 1):
        same(xp.fft.rfft(x, axis=axis), np.fft.rfft(PLANE, axis=axis), close=True)
    same(xp.fft.fftn(x), np.fft.fftn(PLANE), close=True)
    same(xp.fft.irfftn(xp.fft.rfftn(x), s=PLANE.shape), PLANE.astype(float), close=True)


def test_random_numbers_are_those_of_numpy(xp: Namespace) -> None:
    """Whatever the ranks, and wherever the numbers are taken up again."""
    for make in ("default_rng(7)", "Generator(r.Philox(7))"):
        ours, theirs = (eval(f"r.{make}", {"r": r}) for r in (xp.random, np.random))
        for size in ((5, 3), 7, (2, 2)):
            same(ours.random(size), theirs.random(size))


def test_files(xp: Namespace, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", PLANE)
    x = xp.load(tmp_path / "a.npy")
    xp.save(tmp_path / "b.npy", x * 2)
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), PLANE * 2)
    xp.save(tmp_path / "c", xp.sum(x))
    np.save(tmp_path / "d.npy", PLANE.astype(">i2"))
    same(xp.load(tmp_path / "d.npy"), PLANE.astype(np.int16))
    np.save(tmp_path / "e.npy", np.array(["a"]))
    with pytest.raises(TypeError, match="<U1 cannot be divided"):
        xp.load(tmp_path / "e.npy")
    same(xp.load(tmp_path / "c.npy"), np.sum(PLANE))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.npy", "b.npy", "c.npy", "d.npy", "e.npy"]


def test_what_a_run_does_not_touch_stays(xp: Namespace) -> None:
    """A program that reads a part of an array leaves the rest of it with who has it."""
    x = xp.asarray(PLANE)
    same(x[1:3, ::2] + 1, PLANE[1:3, ::2] + 1)
    same(x, PLANE)


def test_a_program_without_a_loop(xp: Namespace) -> None:
    """It is one task, whose array has to come to rank 0."""
    x = xp.asarray(np.arange(9.0))[7]
    same(xp.max(x) + 0.5, np.float64(7.5))


def test_an_interrupt_costs_no_array(xp: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a step, of an assignment that is not compiled, and of a copy to here."""
    x, y = xp.asarray(PLANE), xp.asarray(FLAT)
    interrupts = iter([KeyboardInterrupt()])
    receive = lines.receive

    def receives(line: Any, room: Any) -> Any:
        answer = receive(line, room)
        for _ in interrupts:
            signal.raise_signal(signal.SIGINT)  # what has been read is not lost
        return answer

    monkeypatch.setattr(lines, "receive", receives)
    for stopped in (lambda: xp.sort(y), xp.sync, lambda: np.asarray(x)):
        if stopped == xp.sync:
            x[0] = 3
        interrupts = iter([KeyboardInterrupt()])
        with pytest.raises(KeyboardInterrupt):
            stopped()
        same(x, PLANE)
        same(xp.sort(y), np.sort(FLAT))


def test_an_interrupt_while_nothing_comes(xp: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(FLAT)
    readable, interrupts = lines._readable, iter([KeyboardInterrupt()])

    def waits(*given: Any) -> Any:
        for error in interrupts:
            raise error
        return readable(*given)

    monkeypatch.setattr(lines, "_readable", waits)
    with pytest.raises(KeyboardInterrupt):
        xp.sort(x)
    same(x, FLAT)


def test_a_failing_step_costs_no_array(xp: Namespace) -> None:
    x, singular = xp.asarray(FLAT), xp.zeros((3, 3))
    for failing in (
        lambda: xp.linalg.inv(singular),
        lambda: xp.take(x, xp.asarray(np.array([99]))),
        lambda: xp.mapped("AxisConcatenator", [x], along=(0,)),  # raises what nobody thought of
    ):
        with pytest.raises((ValueError, IndexError, AttributeError)):
            failing()
        same(x, FLAT)
        same(singular, np.zeros((3, 3)))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: shards.sorted_flat([s], Alone(), descending=False, order=False),
        lambda s: shards.unique_flat([s], Alone()),
        lambda s: shards.nonzero([s], Alone()),
    ],
    ids=["sorted", "unique", "nonzero"],
)
def test_nothing_of_an_array(call: Callable[[Shard], list[Shard]]) -> None:
    for result in call(Shard((0,), (0,), np.empty(0))):
        assert result.shape == (0,)


def test_a_number_that_does_not_fit_is_not_assigned(xp: Namespace) -> None:
    small = PLANE.astype(np.int8)
    x = xp.asarray(small)
    for key in (small > 3, [0, 2]):
        with pytest.raises(OverflowError):
            x[key] = 300
    same(x, small)


@pytest.mark.parametrize(("path", "package"), [("a.zarr", "zarr"), ("b.h5", "h5py")])
def test_arrays_in_stores(tmp_path: Path, path: str, package: str) -> None:
    """By every rank its chunks; without the package a message that names it."""
    xp, place = on(), tmp_path / path
    x = xp.asarray(np.arange(60.0).reshape(12, 5))
    try:
        there = importlib.import_module(package)
    except ImportError:
        with pytest.raises(AvialError, match=f"the package {package}"):
            xp.save(place, x)
        with pytest.raises(AvialError, match=f"the package {package}"):
            xp.load(place)
        return
    xp.save(place, x, "group/x", chunks=(5, 3))
    same(xp.load(place, "group/x"), np.asarray(x))
    opened = there.open(place, mode="r") if package == "zarr" else there.File(place)
    np.testing.assert_array_equal(opened["group/x"][...], np.asarray(x))
    with pytest.raises(AvialError, match="name= says which"):
        xp.load(place)
