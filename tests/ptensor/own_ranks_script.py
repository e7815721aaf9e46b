"""A script that every rank runs, under mpiexec; what it finds wrong ends it with an error.

mpiexec -n 3 python -m tests.ptensor.own_ranks_script EXAMPLES
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import avial_lab.ptensor as xp
from tests.ptensor.test_programs import Step, programs, run

ME, ALL = xp.on().connection.residence.rank, xp.on().ranks  # type: ignore[union-attr]


def check_parts() -> None:
    """Parts of every rank, uneven, some of them empty: joined, computed with, read by all."""
    mine = np.full((ME * 2 % 3, 2), float(ME))
    joined = xp.from_local(mine)
    want = np.concatenate([np.full((r * 2 % 3, 2), float(r)) for r in range(ALL)])
    np.testing.assert_array_equal(np.asarray(joined), want)
    np.testing.assert_array_equal(joined.local, mine.reshape(joined.local.shape))
    np.testing.assert_array_equal(want[joined.local_box], joined.local)
    assert not joined.local.flags.writeable
    doubled = joined * 2 + xp.arange(2.0)
    np.testing.assert_array_equal(np.asarray(doubled), want * 2 + np.arange(2.0))
    np.testing.assert_array_equal(doubled.local, np.asarray(doubled)[doubled.local_box])
    with pytest.raises(ValueError, match=r"rank 0 has float64 of shape|at least one dimension"):
        xp.from_local(np.zeros((1, 2 + ME)) if ALL > 1 else np.zeros(()))


def check_kept() -> None:
    """A part that somebody looks at is nobody else's memory."""
    x = xp.asarray(np.arange(30.0))
    seen, box = x.local, x.local_box
    del x
    for k in range(120):
        xp.sync()
        xp.asarray(np.full(30, float(k))).local.sum()
    np.testing.assert_array_equal(seen, np.arange(30.0)[box])


def check_files() -> None:
    """A file is one that all ranks have written."""
    folder = tempfile.gettempdir()
    path = xp.on().connection.once(lambda: tempfile.mkdtemp(dir=folder)) + "/a.npy"
    want = np.arange(70.0).reshape(10, 7)
    xp.save(path, xp.asarray(want))
    np.testing.assert_array_equal(np.asarray(xp.load(path)), want)
    np.testing.assert_array_equal(np.load(path), want)
    xp.on().connection.once(lambda: shutil.rmtree(os.path.dirname(path)))


def check_library_and_errors() -> None:
    x = xp.asarray(np.array([3.0, np.nan, 1.0, 2.0, 5.0, 4.0, -0.0]))
    assert repr(xp.sort(x)) == "Array([-0.,  1.,  2.,  3.,  4.,  5., nan])"
    assert xp.nonzero(x > 2)[0].tolist() == [0, 4, 5]
    with pytest.raises(np.linalg.LinAlgError):
        xp.linalg.inv(xp.zeros((3, 3)))
    assert float(x[0]) == 3.0, "a singular matrix costs no array"
    many = xp.asarray(np.arange(200_000.0))
    halves = xp.sqrt(many) * 0.5 + many
    np.testing.assert_allclose(
        np.asarray(halves), np.sqrt(np.arange(2e5)) * 0.5 + np.arange(2e5), rtol=1e-15
    )
    assert xp.report()["compiled"] == 1
    one = xp.asarray(np.array(2.5))
    assert (float(one), float(one * 2), one.local.size) == (2.5, 5.0, int(ME == 0))
    x[x < 1.0] = 0.0
    assert float(x[6]) == 0.0


def check_names_of_numpys() -> None:
    """What rank 0 computes, and what is drawn by all ranks alike."""
    x = xp.asarray([4.0, 1.0, 3.0, 2.0, 5.0])
    counts, edges = xp.histogram(x, bins=2)
    assert (counts.tolist(), edges.tolist(), float(xp.median(x))) == ([2, 3], [1.0, 3.0, 5.0], 3.0)
    with pytest.raises(ValueError, match="Percentiles must be in the range"):
        xp.percentile(x, 400)
    drawn = xp.random.default_rng().normal(size=7)
    older = xp.random.rand(4)
    assert drawn.shape == (7,)
    assert bool(xp.all(older < 1))
    rows = xp.array([x[k] for k in range(3)])
    assert (rows.tolist(), str(rows), f"{x[0]:.1f}") == ([4.0, 1.0, 3.0], "[4. 1. 3.]", "4.0")


def check_layouts(*, compiled: bool) -> None:
    """Whatever the operands lie like: NumPy's bits; what is told to move moves."""
    connection = xp.on().connection
    connection.always_compiled = compiled
    layouts = ("rows", "columns", "replicated", "cyclic 2", (1, ALL))
    first = np.random.default_rng(0).integers(0, 9, (7, 5)).astype(float)
    second = first[:, ::-1].copy()
    for one, other in itertools.product(layouts, layouts):
        x, y = xp.asarray(first, dist=one), xp.asarray(second, dist=other)
        np.testing.assert_array_equal(np.asarray(x * 2 + y), first * 2 + second)
        np.testing.assert_array_equal(np.asarray(x.T @ y), first.T @ second)
        want = second.copy()
        y[1:-1] = x[2:] - y[:-2]
        want[1:-1] = first[2:] - want[:-2]
        np.testing.assert_array_equal(np.asarray(y), want)
        np.testing.assert_array_equal(np.asarray(xp.sort(y, axis=0)), np.sort(want, axis=0))
        told, before = x.redistribution(other), xp.report()
        x.redistribute(other)
        after = xp.report()
        assert after["bytes_moved"] - before["bytes_moved"] == told.nbytes
        assert after["messages"] - before["messages"] == told.messages
        assert x.redistribution(other).messages == 0
        np.testing.assert_array_equal(np.asarray(x), first)
    connection.always_compiled = False


def check_devices() -> None:
    """Kernels of a GPU, emulated where there is none; an edge comes by a message, the rest does
    not, and both are copied there.
    """
    array = np.arange(1200.0).reshape(40, 30)
    x = xp.asarray(array, device="cuda:0")
    for _ in range(2):
        y = x[1:] * 2 + x[:-1]
        assert (y.device, xp.sum(y, axis=0).device) == ("cuda:0", "cuda:0")
        np.testing.assert_array_equal(np.asarray(y), array[1:] * 2 + array[:-1])
        assert xp.on().at("cuda:0").connection.trace.kinds  # type: ignore[union-attr]
    assert len(x.layout.splitlines()[0].split("  ")) == 2
    here = x.to_device("default")
    assert here.device == "default"
    assert xp.from_dlpack(here, device="cuda:0").device == "cuda:0"
    np.testing.assert_array_equal(np.asarray(here), array)
    with pytest.raises(ValueError, match=r"one on device 'cuda:0' .* one on device 'default'"):
        xp.add(x, here)
    with pytest.raises(ValueError, match=r"own_ranks_script.py:\d+\), one on device 'cuda:0'"):
        here[...] = x
    with pytest.raises(ValueError, match="the devices are 'default', 'cuda:0', not 'cuda:1'"):
        xp.zeros(3, device="cuda:1")


def check_what_is_looked_at() -> None:
    """Another element on each rank; memory by rank."""
    x = xp.asarray(np.arange(40.0).reshape(20, 2))
    assert float(x[ME, 1]) == 2 * ME + 1
    y = x * 2
    np.testing.assert_array_equal(np.asarray(y[ME:]), np.arange(40.0).reshape(20, 2)[ME:] * 2)
    use = xp.memory()
    assert len(use.live) == xp.on().ranks
    assert all(use.peak)
    assert all(use.taken)


def check_programs(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(programs(), st.sampled_from([0, 2, 5]))
    def alike(program: list[tuple[int, list[Step]]], forced: int) -> None:
        want, got = run(program, np), run(program, xp.on(), forced=forced)
        for mine, numpys in zip(got, want, strict=True):
            np.testing.assert_array_equal(mine, numpys)

    alike()


if __name__ == "__main__":
    check_parts()
    check_what_is_looked_at()
    check_kept()
    check_files()
    check_library_and_errors()
    check_names_of_numpys()
    check_devices()
    check_layouts(compiled=False)
    check_layouts(compiled=True)
    check_programs(int(sys.argv[1]))
    assert "ipyparallel" not in sys.modules, "no controller has been there"
