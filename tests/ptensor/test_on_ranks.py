"""Arrays on the engines of a cluster: what they hold, where, and what moves."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from avial_lab.ptensor import on
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.launch.cluster import Cluster, LostArray
from avial_lab.runtime.launch.residence import Residence

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.start(cpu=3, gpu=0) as started:
        yield started


@pytest.fixture(scope="module")
def xp(cluster: Cluster) -> Namespace:
    return on(cluster)


def test_there_and_back(xp: Namespace) -> None:
    """Every dtype and awkward shapes; fewer rows than ranks, none, and no dimensions."""
    rng = np.random.default_rng(0)
    for dtype in ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "complex128"):
        for shape in ((7, 3), (2,), (0, 4), ()):
            array = rng.integers(0, 2, shape).astype(dtype)
            back = np.asarray(xp.asarray(array))
            assert back.dtype == array.dtype
            np.testing.assert_array_equal(back, array)


def test_a_heat_equation(xp: Namespace) -> None:
    """The bits of NumPy; a row each way over each border and sweep, and nothing else."""
    u, v = xp.zeros((31, 20)), np.zeros((31, 20))
    for array in (u, v):
        array[0] = 1.0
        for _ in range(40):
            array[1:-1, 1:-1] = 0.25 * (
                array[:-2, 1:-1] + array[2:, 1:-1] + array[1:-1, :-2] + array[1:-1, 2:]
            )
    np.testing.assert_array_equal(np.asarray(u), v)
    program = xp.connection.last
    assert program is not None
    assert program.plan is not None
    assert program.plan.bytes_moved <= 40 * 2 * 2 * 20 * 8


@pytest.mark.slow
def test_a_star_of_what_changes_everywhere(xp: Namespace) -> None:
    """Its halo is as wide for many turns as for one, and moves once."""
    given, before = np.random.default_rng(0).random((900, 700)), xp.connection.bytes_moved
    found: list[np.ndarray] = []
    for namespace in (np, xp):
        x, out = namespace.asarray(given), namespace.zeros((900, 700))
        for _ in range(70):
            out[2:-2, 1:] += 0.5 * (x[4:, 1:] - x[:-4, 1:]) - x[3:-1, :-1]
            x = x * 1.01
        found.append(np.asarray(out))
    np.testing.assert_array_equal(found[1], found[0])
    assert xp.connection.bytes_moved - before < given.nbytes // 10


def test_arrays_stay_where_they_are(xp: Namespace) -> None:
    """What is aligned moves nothing, in any number of runs; what comes of it lies the same way."""
    x = xp.asarray(np.arange(30.0).reshape(10, 3))
    y = x * 2 + 1
    xp.sync()
    before = xp.report()["bytes_moved"]
    z = xp.exp(y) - x
    xp.sync()
    assert z.layout.splitlines() == [
        "rank 0  [0:3, 0:3]",
        "rank 1  [3:6, 0:3]",
        "rank 2  [6:10, 0:3]",
        *["0 0 0"] * 3, *["1 1 1"] * 2, *["2 2 2"] * 3,
    ]  # fmt: skip
    assert xp.report()["bytes_moved"] == before
    want = np.arange(30.0).reshape(10, 3)
    np.testing.assert_allclose(np.asarray(z), np.exp(want * 2 + 1) - want, rtol=1e-15)


def test_layouts(xp: Namespace) -> None:
    """They are what creators are told, and results are right; what is none is an error."""
    array = np.arange(28.0).reshape(4, 7)
    x = xp.asarray(array, dist="columns")
    assert x.layout.splitlines()[:3] == [
        "rank 0  [0:4, 0:2]",
        "rank 1  [0:4, 2:4]",
        "rank 2  [0:4, 4:7]",
    ]
    assert x.layout.splitlines()[3:] == ["0 0 1 1 2 2 2"] * 4
    y = x * 2
    xp.sync()
    assert y.layout == x.layout
    np.testing.assert_array_equal(np.asarray(y + xp.ones((4, 7), dist="cyclic 1")), array * 2 + 1)
    told = x.redistribution("rows")
    before = xp.report()["bytes_moved"]
    assert str(told) == f"to rows: {told.messages} messages, {told.nbytes:,} bytes"
    assert x.redistribute("rows") is x
    assert xp.report()["bytes_moved"] - before == told.nbytes
    np.testing.assert_array_equal(np.asarray(x), array)
    for wrong, why in (
        ((2, 2), "are 4 parts, and there are 3 ranks"),
        ("diagonal", "does not say where an array lies"),
        ("split 2", "divides dimension 2, and the array has 2"),
        ("cyclic 0", "does not say where an array lies"),
    ):
        with pytest.raises(ValueError, match=why):
            xp.zeros((4, 7), dist=wrong)


@pytest.mark.slow
def test_computing_follows_the_layout(xp: Namespace) -> None:
    """What comes of columns lies in columns; of sums over what is divided each rank hands on what
    it has so far, also where they are in NumPy's order.
    """
    array = np.random.default_rng(0).random((300, 60))
    columns, rows = xp.asarray(array, dist="columns"), xp.asarray(array)
    v = xp.asarray(np.arange(300.0))
    xp.connection.always_compiled = True
    for made, want, moved in (
        (lambda: columns * 2 + 1, array * 2 + 1, 0),
        (lambda: xp.sum(columns, axis=0), array.sum(axis=0), 0),
        (lambda: xp.sum(columns, axis=1), array.sum(axis=1), 2 * 300 * 8),
        (lambda: xp.sum(rows, axis=0), array.sum(axis=0), 2 * 60 * 8),
        (lambda: rows.T @ v, array.T @ np.arange(300.0), 2 * 60 * 8),
    ):
        xp.sync()
        before = xp.report()["bytes_moved"]
        got = made()
        xp.sync()
        assert xp.report()["bytes_moved"] - before == moved
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-13)
        if got.shape == columns.shape:
            assert got.layout == columns.layout
    xp.connection.always_compiled = False


def test_texts_say_how_arrays_lie(xp: Namespace) -> None:
    for dist, told in (("columns", '"columns"'), ("cyclic 2", '"cyclic 2"'), ("rows", "unit"),
                       ("replicated", '"replicated"'), ("split 1", '"split 1"')):  # fmt: skip
        x = xp.asarray(np.ones((12, 8)), dist=dist)
        xp.connection.run()
        y = x + 1
        texts = [statement.text for statement in xp.connection.recording.statements]
        assert all(f"{told}>" in text for text in texts if "12x8" in text)
        assert any("12x8" in text for text in texts)
        np.testing.assert_array_equal(np.asarray(y), 2.0)


def test_one_element_and_none(xp: Namespace) -> None:
    x, empty = xp.asarray(np.array(5.0)), xp.asarray(np.empty(0, bool))
    x[()] = x[()] + 2
    assert float(x) == 7
    assert bool(xp.all(empty)), "of nothing all is true"


def test_one_element_a_neighbour(xp: Namespace) -> None:
    """Of arrays in blocks of rows: compiled, and without."""
    for kind in (np.float64, np.float16):
        x = xp.asarray(np.arange(30, dtype=kind))
        xp.sync()
        before = xp.report()
        d = x[1:] - x[:-1]
        xp.sync()
        after = xp.report()
        assert after["compiled"] - before["compiled"] == (kind == np.float16)
        assert after["messages"] - before["messages"] == 2
        assert after["bytes_moved"] - before["bytes_moved"] <= 4 * x.dtype.itemsize
        np.testing.assert_array_equal(np.asarray(d), 1.0)


def test_small_reductions_send_partial_results(xp: Namespace) -> None:
    """Rows of a small array are not brought together either."""
    want = np.arange(28_000.0).reshape(700, 40) % 997
    x = xp.asarray(want)
    before = xp.report()["bytes_moved"]
    found = xp.min(x, axis=0)
    xp.sync()
    assert xp.report()["bytes_moved"] - before == 40 * 8 * (xp.ranks - 1)
    np.testing.assert_array_equal(np.asarray(found), want.min(axis=0))


def test_writes_to_parts_reach_all_views(xp: Namespace) -> None:
    """Also a write of one element alone, in a program that is compiled."""
    want = np.arange(9000.0).reshape(90, 100)
    x, xp.connection.always_compiled = xp.asarray(want), True
    flat, line = x.ravel(), x.reshape(9000)[::2]
    for a, b in ((x, want), (flat, want.ravel())):
        a[-1], b[-1] = 1.0, 1.0
        xp.sync()
    line[1], want.reshape(9000)[2] = 5.0, 5.0
    np.testing.assert_array_equal(np.asarray(x), want)
    np.testing.assert_array_equal(np.asarray(x.diagonal(1)), want.diagonal(1))
    np.testing.assert_array_equal(np.asarray(flat), want.ravel())


def test_the_same_work_is_compiled_once(xp: Namespace) -> None:
    before = xp.report()["compiled"]
    for k in range(3):
        x = xp.full((9,), float(k))
        assert float((x * 3.5 + k / 7).sum()) == pytest.approx(9 * (3.5 * k + k / 7))
        del x
    # The first turn has other numbers alike (0.0 and 0.0), the next ones have the same structure.
    assert xp.report()["compiled"] - before <= 2


def test_numpys_functions_stay_here(xp: Namespace) -> None:
    x = xp.asarray(np.arange(12.0).reshape(3, 4))
    gathers = xp.report()["gathers"]
    total = np.sum(np.sqrt(x) + np.arange(4.0), axis=0)
    assert xp.report()["gathers"] == gathers
    want = np.sum(np.sqrt(np.arange(12.0).reshape(3, 4)) + np.arange(4.0), axis=0)
    np.testing.assert_allclose(np.asarray(total), want, rtol=1e-15)
    with pytest.raises(TypeError, match=r"numpy\.place of arrays .* not supported"):
        np.place(x, [True], [0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"could not broadcast input array from shape \(5,\)"):
        x[0] = np.zeros(5)
    with pytest.raises(IndexError):
        x[7]


def test_what_is_looked_at_comes_and_no_more(
    xp: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One element of a large array is 8 bytes; what a run makes comes with its answer."""
    x = xp.asarray(np.arange(30_000.0).reshape(3000, 10))
    before = xp.report()["gathered_bytes"]
    assert float(x[2999, 3]) == 29_993
    assert xp.report()["gathered_bytes"] - before == 8
    want = np.arange(30_000.0).reshape(3000, 10)
    np.testing.assert_array_equal(x[5:2990:7, ::-3], want[5:2990:7, ::-3])
    asked: list[int] = []
    ask = Residence._ask

    def counted(self: Residence, calls: Any, *rest: Any) -> Any:
        asked.append(len(calls))
        return ask(self, calls, *rest)

    monkeypatch.setattr(Residence, "_ask", counted)
    for compiled in (False, True):
        xp.connection.always_compiled = compiled
        y = x * 2.0 + 1.0
        assert float(y[7, 2]) == 145.0  # compiled, where it has not been
        del y
        asked.clear()
        y = x * 2.0 + 1.0
        assert float(y[7, 2]) == 145.0
        assert [n for n in asked if n] == ([] if compiled else [3])
    xp.connection.always_compiled = False


def test_memory(cluster: Cluster) -> None:
    """Each rank its part, and a row that it borrowed; what is forgotten counts no more."""
    xp = on(cluster)
    x = xp.asarray(np.ones((3000, 1000)))
    assert xp.memory().live == (8_000_000,) * 3
    assert all(8_000_000 <= taken < 64 << 20 for taken in xp.memory().taken)
    y = x + x[::-1]
    xp.sync()
    assert xp.memory().live[1] in range(16_000_000, 16_200_000)  # the middle lies on itself
    z = xp.asarray(np.ones(30), dist="replicated")
    assert z.redistribute("replicated").nbytes == 240
    del y, z
    use = xp.memory()
    assert use.live[1] == 8_000_000
    assert use.peak[1] >= 16_000_000
    assert str(use).splitlines()[0] == "Memory of arrays"


def test_a_dead_engine_takes_its_arrays_along(cluster: Cluster, xp: Namespace) -> None:
    """It is told with rank and line, what is made of nothing is made again, and what is made next
    works.
    """
    x = xp.asarray(np.arange(5.0))
    ones, drawn = xp.ones((4, 3)) * 3, xp.random.default_rng(7).random(10)
    changed = xp.zeros(6)
    before = np.asarray(drawn)
    both = xp.ones(3) * 2 + x[:3]
    xp.sync()
    changed[2] = 1.0
    assert float(changed[2]) == 1
    os.kill(cluster.status.facts[1].pid, signal.SIGKILL)
    with pytest.raises(LostArray, match=r"made at .*test_on_ranks.py:\d+ is gone: .*rank 1"):
        float(xp.sum(x))
    assert float(xp.sum(ones)) == 36
    np.testing.assert_array_equal(np.asarray(ones), np.full((4, 3), 3.0))
    np.testing.assert_array_equal(np.asarray(drawn), before)
    with pytest.raises(LostArray, match="made at"):
        float(changed[2])
    with pytest.raises(LostArray, match="made at"):
        float(both[2])
    with pytest.raises(LostArray):  # and stays so on the new engines
        np.asarray(x)
    y = xp.asarray(np.arange(5.0))
    assert float(xp.sum(y * 2)) == 20


def test_what_no_array_is(xp: Namespace) -> None:
    """NumPy's errors, at the line, and no array is lost by them."""
    x = xp.asarray(np.arange(12.0).reshape(4, 3))
    for wrong, error, told in (
        (lambda: xp.zeros((-1, 2)), ValueError, "negative dimensions are not allowed"),
        (lambda: xp.zeros((1,) * 33), ValueError, "dimension .* 32, found 33"),
        (lambda: x[(None,) * 31], ValueError, "dimension .* 32, found 33"),
        (lambda: xp.asarray(np.ma.array([1.0], mask=[True])), TypeError, "masked"),
        (lambda: x + np.ma.masked_equal([1.0, 2, 3], 2), TypeError, "masked"),
        (lambda: x.__setitem__(0, 1j), TypeError, "not 'complex'"),
        (lambda: x + xp.zeros((5, 3)), ValueError, r"together with shapes \(4,3\) \(5,3\)"),
        (lambda: x[:, np.array([0, 9])], IndexError, "index 9 is out of bounds for axis 1 with"),
        (lambda: xp.asarray([1, 2]).__iadd__(0.5), TypeError, "ufunc 'add' output"),
        (lambda: pickle.dumps(x), TypeError, "on 3 ranks cannot be pickled"),
    ):
        with pytest.raises(error, match=told):
            wrong()
    assert float(x[1, 1]) == 4
    np.testing.assert_array_equal(np.asarray(x * (1, 2, 3))[1], [3, 8, 15])
    assert np.asarray(xp.exp(xp.asarray(np.zeros((1,) * 32)))).shape == (1,) * 32


def test_products_stay_as_they_are_written(xp: Namespace) -> None:
    """What is recorded together or apart has the same bits; it is told."""
    a, b, c = (np.random.default_rng(k).random(1000) for k in range(3))
    together = xp.asarray(a) * xp.asarray(b) + xp.asarray(c)
    np.testing.assert_array_equal(np.asarray(together), a * b + c)
    assert "every operation is rounded separately" in str(together.explain())
