"""Arrays in programs that were not recorded: texts and functions run on them where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import BindError
from avial_lab.ptensor import on
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.launch.cluster import Cluster

pytestmark = pytest.mark.mpi

SUMS = """func.func @f(%a: memref<9x5xf64>, %b: memref<9x5xf64>) {
  affine.for %i = 1 to 9 {
    affine.for %j = 0 to 5 {
      %x = affine.load %a[%i, %j] : memref<9x5xf64>
      %y = affine.load %a[%i - 1, %j] : memref<9x5xf64>
      %z = arith.addf %x, %y : f64
      affine.store %z, %b[%i, %j] : memref<9x5xf64>
    }
  }
  return
}"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.start(cpu=3, gpu=0) as started:
        yield started


@pytest.fixture(scope="module")
def places(cluster: Cluster) -> dict[str, Namespace]:
    return {"3 ranks": on(cluster), "1 rank": avial_lab.ptensor.on()}


@pytest.fixture(params=["3 ranks", "1 rank"])
def xp(request: pytest.FixtureRequest, places: dict[str, Namespace]) -> Namespace:
    return places[request.param]


def _values() -> np.ndarray:
    return np.arange(45.0).reshape(9, 5) ** 2


def _summed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    b = b.copy()
    b[1:] = a[1:] + a[:-1]
    return b


@pytest.mark.parametrize("layout", [None, "columns", "replicated"])
def test_a_text_runs_on_them_in_place(xp: Namespace, layout: str | None) -> None:
    """Between recorded operations; an element that was taken before keeps its value."""
    x, y = xp.asarray(_values()), xp.ones((9, 5))
    if layout is not None:
        x.redistribute(layout)
    y = y * 2.0
    before = y[3, 3]
    program = avial_lab.compile(SUMS, arrays={"a": x, "b": y})
    trace = program.run(check=True)
    assert trace.moves or layout == "replicated" or xp.connection.ranks == 1
    expected = _summed(_values(), np.full((9, 5), 2.0))
    np.testing.assert_array_equal(np.asarray(y + 1.0), expected + 1.0)
    assert float(before) == 2.0
    x[0] = 7.0
    program.run()
    now = _values()
    now[0] = 7.0
    np.testing.assert_array_equal(np.asarray(y), _summed(now, expected))


def test_nothing_comes_here(cluster: Cluster) -> None:
    xp = on(cluster)
    x, y = (xp.arange(45.0) ** 2).reshape(9, 5), xp.zeros((9, 5))
    gathers = xp.report()["gathers"]
    avial_lab.compile(SUMS, arrays={"a": x, "b": y}).run(timeout=60.0)
    assert xp.report()["gathers"] == gathers
    np.testing.assert_array_equal(np.asarray(y), _summed(_values(), np.zeros((9, 5))))


def test_parts_and_arrays_of_numpy_are_written_back(xp: Namespace) -> None:
    whole = xp.zeros((20, 7))
    here = np.zeros((9, 5))
    x = xp.asarray(_values())
    avial_lab.compile(SUMS, arrays={"a": x, "b": whole[2:20:2, 1:6]}).run()
    avial_lab.compile(SUMS, arrays={"a": whole[2:20:2, 1:6], "b": here}).run()
    expected = np.zeros((20, 7))
    expected[2:20:2, 1:6] = _summed(_values(), np.zeros((9, 5)))
    np.testing.assert_array_equal(np.asarray(whole), expected)
    np.testing.assert_array_equal(here, _summed(expected[2:20:2, 1:6], np.zeros((9, 5))))


def test_an_array_that_another_looks_at(xp: Namespace) -> None:
    y = xp.zeros((9, 5))
    flat = y.reshape(-1)
    avial_lab.compile(SUMS, arrays={"a": xp.asarray(_values()), "b": y}).run()
    expected = _summed(_values(), np.zeros((9, 5)))
    np.testing.assert_array_equal(np.asarray(flat), expected.reshape(-1))
    np.testing.assert_array_equal(np.asarray(y), expected)


def _tripled(a: Any, b: Any, by: float) -> Any:
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * by
            total += a[i, j]
    return total


def test_one_that_is_only_read_may_stand_twice(xp: Namespace) -> None:
    two = SUMS.replace("%b: mem", "%c: memref<9x5xf64>, %b: mem").replace("%a[%i - 1", "%c[%i - 1")
    x, y = xp.asarray(_values()), xp.zeros((9, 5))
    avial_lab.compile(two, arrays={"a": x, "c": x, "b": y}).run()
    np.testing.assert_array_equal(np.asarray(y), _summed(_values(), np.zeros((9, 5))))


@pytest.mark.parametrize("size", [9, 10])
def test_functions_take_them(xp: Namespace, size: int) -> None:
    function = avial_lab.program(_tripled)
    values = np.arange(size * 5.0).reshape(size, 5)
    x, y = xp.asarray(values), xp.zeros((size, 5))
    assert function(x, y, 3.0) == values.sum()
    np.testing.assert_array_equal(np.asarray(y), values * 3.0)


@avial_lab.program
def _taken(places: Any, a: Any, b: Any) -> None:
    print(7)  # noqa: T201 - of the program
    for i in range(places.shape[0]):
        b[i] = a[places[i]]


def test_what_goes_wrong_stands_at_its_line(
    xp: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    made, brought, b = xp.ones(10), xp.asarray(np.arange(10.0)), xp.ones(6)
    _taken(xp.asarray(np.array([0, 3, 5, 9, 1, 2])), brought, b)
    np.testing.assert_array_equal(np.asarray(b), [0, 3, 5, 9, 1, 2])
    assert capsys.readouterr().out == "7\n"
    with pytest.raises(IndexError, match=r"out of bounds, size 10[^a]*\S+:\d+"):
        _taken(xp.asarray(np.array([0, 3, 5, 99, 1, 2])), made, b)
    if xp.connection.is_this_process:
        np.testing.assert_array_equal(np.asarray(b), [0, 3, 5, 9, 1, 2])
    else:
        with pytest.raises(avial_lab.AvialError, match="the array is gone"):
            np.asarray(b)
    np.testing.assert_array_equal(np.asarray(made), np.ones(10))  # made again, as it was made


def test_what_cannot_be_is_told(cluster: Cluster, places: dict[str, Namespace]) -> None:
    x, y = (place.asarray(_values()) for place in places.values())
    with pytest.raises(BindError, match="'b' lies elsewhere"):
        avial_lab.compile(SUMS, arrays={"a": x, "b": y}).run()
    with pytest.raises(BindError, match="'a', 'b' are the same array on the ranks"):
        avial_lab.compile(SUMS, arrays={"a": x, "b": x}).run()
    whole = places["3 ranks"].zeros((12, 5))
    with pytest.raises(BindError, match="or parts of it, and one is written"):
        avial_lab.compile(SUMS, arrays={"a": whole[:9], "b": whole[3:]}).run()
    with pytest.raises(BindError, match="or parts of it, and one is written"):
        avial_lab.compile(SUMS, arrays={"a": x, "b": x.reshape(-1).reshape(9, 5)}).run()
    with pytest.raises(BindError, match="for 2 ranks, and its arrays lie on 3"):
        avial_lab.compile(SUMS, arrays={"a": x, "b": x.copy()}, ranks=2).run()
    with pytest.raises(BindError, match="used on the ranks that have them"):
        avial_lab.compile(SUMS, arrays={"a": y, "b": y.copy()}).run(cluster)
    np.testing.assert_array_equal(np.asarray(x), _values())
