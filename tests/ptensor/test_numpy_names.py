"""Lines that people write for NumPy: the same text, the same values, types and print."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import avial_lab.ptensor as xp
from avial_lab.ptensor.numpy_names import ALIASES, ON_ONE, NumpyNames

BEGIN = """
a = np.array([[3, 1, 2], [9, 7, 8]])
b = np.array([1.0, 2.0, 4.0, 8.0]); c = np.arange(24).reshape(4, 6)
s = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
"""

LINES = """
np.sum(a, 0), np.max(a, 1), np.mean(b, 0), a.sum(0), np.std(b, ddof=1), np.sum([1, 2, 3])
np.all(a > 0, 1)
np.zeros((2, 2), int), np.ones(3, np.float32), np.full(2, 7, np.int8), np.array([1, 2], float)
np.eye(3, k=1), np.linspace(0, 1, 5, False)
np.array([b.max(), b.min()]), np.array([[b[0], 1.0], [b[1], 2.0]]), np.array([a[0], a[1]]) + 1
np.concatenate((a, a), 1), np.vstack([b, b]), np.hstack((b, b)), np.column_stack((b, b))
np.c_[b, b], np.r_[b, 0:3]
np.dstack((a, a)), np.append(b, 5.0), np.split(c, 2)[1], np.array_split(b, 3)[0]
np.hsplit(c, 3)[1], np.vsplit(c, 2)[0]
np.where(b > 2)[0], np.where(b > 2, 1, 0), np.argwhere(a > 2), np.flatnonzero(b > 1)
np.extract(b > 1, b)
np.roll(b, 1, 0), np.sort(a, 0), np.flip(b, 0), np.triu(s, 1), np.repeat(b, 2), np.diff(c, 1, 0)
np.take(b, [0, 2])
np.tensordot(s, s, 1), np.count_nonzero(a, 0)
np.amax(a, 1), np.amin(a, 0)
np.take_along_axis(a, np.argsort(a, 1), 1), np.searchsorted(b, [2.0, 3.0], "right")
np.isclose(b, b + 1e-9), np.allclose(b, b), np.array_equal(a, a), np.array_equal(a, b)
np.diag(b), np.diag(s), np.diag([1, 2], -1), np.trace(s), np.identity(2), np.fliplr(a)
np.swapaxes(c, 0, 1)
np.piecewise(b, [b < 2, b > 3], [-1, lambda x: x * 2]), np.vectorize(lambda x: x + 1)(b)
np.apply_over_axes(np.sum, c, [0, 1]), np.apply_along_axis(lambda r: r.max() - r.min(), 1, c)
np.nonzero([0, 3, 4])[0], np.linalg.solve(s, [1, 2, 3]), c[(0, 1), (2, 3)]
np.linspace(0, b.max(), 3)
np.array2string(b), str([(i, int(v)) for i, v in np.ndenumerate(a)]), np.poly1d([3, 2, -1])(b)
np.trace(np.ones((2, 3, 4)), 1, 2, 1), np.tensordot(np.zeros((0, 3)), np.zeros((3, 0)), 1)
np.dot(s, s), np.dot(b, b), np.dot(2, b), np.inner(s, s), np.outer(b, b), np.vdot(b, b), b.dot(b)
np.cross(s[0], s[1])
np.add.outer(b, b), np.maximum.accumulate(b), np.add.accumulate(c, 1), np.add.reduce(c)
np.multiply.reduce(b)
np.gradient(b), np.gradient(c, 0.5)[1], np.gradient(s, axis=0), np.angle(b + 1j)
np.round(b / 3, 2), (b / 3).round(1)
np.round(np.arange(9) * 5), np.round(np.arange(9) * 5, 1), np.round(np.arange(9) * 5, -1)
np.unique(c % 5), np.unique(c % 5, return_counts=True)[1], np.unique(c % 5, return_inverse=True)[1]
np.histogram(b, bins=3)[0], np.histogram(b, bins=3)[1], np.percentile(b, [25, 75])
np.median(c, axis=0), np.bincount(a[0])
np.einsum("ij,kj->ik", c, c), np.kron(s, s), np.interp(2.5, b, b), np.convolve(b, b), np.cov(s)
np.corrcoef(s), np.pad(b, 2)
np.insert(b, 1, 5.0), np.delete(b, [0]), np.isin(b, [1, 2]), np.union1d(b, b), np.lexsort((b, -b))
np.digitize(b, [2, 5])
np.linalg.lstsq(s, s[0], rcond=None)[0], np.linalg.svd(s, compute_uv=False), np.linalg.cond(s)
np.linalg.norm(b)
np.nanmean(np.where(b > 1, b, np.nan)), np.average(b, weights=b), np.polyfit(b, b, 1)
np.polyval([2.0, 1.0], b)
np.fft.rfftfreq(8, 0.5), np.fft.fft(b, 8), np.fft.fft2(s), np.unravel_index(np.argmax(c), c.shape)
np.logspace(0, 2, 3)
c[np.ix_([0, 2], [1, 3])], np.mgrid[0:2, 0:3], np.tri(3), np.hypot(b, b), np.degrees(b)
np.gradient(b, [0, 1, 3, 4]), np.gradient(s, [0, 1, 2.5], 2.0)[0], np.float32(2) * b, np.uint8(250)
(np.mgrid[0:2, 0:3] + np.ogrid[-1:1:3j])[0], np.ogrid[0:2, 0:3][1]
b + 1j > 2, b * 1j <= b * 1j, (b[::-1] + 1j * b) >= b + 2j, 4 < b - 1j
np.lib.stride_tricks.sliding_window_view(c, (2, 3))
np.lib.stride_tricks.sliding_window_view(c, 2, axis=1)
np.lib.stride_tricks.sliding_window_view(b, 3)
np.add.reduceat(b, [0, 2]), np.maximum.reduceat(c, [0, 3], 1)
np.unique(a[:, :2] % 2, axis=0), np.unique(c % 5, axis=1, return_index=True)[1], np.tile([1, 2], 2)
np.fabs(-b), np.fmod(b, 3)
b.clip(2, 4), s.trace(), s.diagonal(), c.squeeze(), c.swapaxes(0, 1), b.searchsorted(3.0)
b.itemsize, 2.0 in b, a.item(1)
c.flat[3], list(b), len(b.flat), f"{b.mean():.2f}", f"{b[1]}", str(a), str(b.sum())
round(b[0] / 3, 2), divmod(b, 3.0)
np.amax(a, 0), np.amin(a), np.around(b / 3, 1), np.arccos(b / 9), np.arccosh(b), np.arcsin(b / 9)
np.arcsinh(b), np.arctan(b), np.arctan2(b, b), np.arctanh(b / 9), np.conjugate(b + 1j)
np.bitwise_not(a), np.invert(a), np.left_shift(a, 1), np.right_shift(a, 1), np.true_divide(b, 3)
np.asanyarray(b), np.asarray_chkfinite(b), np.ascontiguousarray(b), np.asfortranarray(c)
np.atleast_1d(b), np.atleast_2d(b), np.atleast_3d(b), np.row_stack((b, b)) if 0 else b, np.copy(b)
np.block([[c, c], [c, c]]), np.choose(a % 2, [a, -a]), np.correlate(b, b), np.diagflat(b)
np.diagonal(s), np.ediff1d(b), np.flipud(c), np.i0(b), np.intersect1d(b, b), np.ravel(c)
np.histogram2d(b, b, bins=2)[0], np.histogram_bin_edges(b, 3), np.iscomplex(b), np.isreal(b)
np.isneginf(b), np.isposinf(b), np.linalg.eig(s)[0], np.linalg.eigvals(s)
np.linalg.multi_dot([s, s, s]), np.linalg.tensorinv(s, 1), np.linalg.tensorsolve(s, s[0])
np.nan_to_num(b), np.nanargmax(b), np.nanargmin(b), np.nancumprod(b), np.nancumsum(b), np.nanmax(b)
np.nanmedian(b), np.nanmin(b), np.nanpercentile(b, 50), np.nanprod(b), np.nanquantile(b, 0.5)
np.nanstd(b), np.nansum(b), np.nanvar(b), np.packbits(b > 1), np.unpackbits(np.packbits(b > 1))
np.partition(b, 1), np.argpartition(b, 1)[1], np.poly(b), np.polyadd(b, b), np.polyder(b)
np.polyint(b), np.polymul(b, b), np.polysub(b, b), np.ptp(b), np.quantile(b, 0.25)
np.ravel_multi_index((a[0] % 2, a[1] % 3), (2, 3)), np.real_if_close(b + 0j), np.resize(b, (2, 3))
np.roots(b), np.rot90(c), np.select([b > 2, b > 1], [b, -b], 0.5), np.setdiff1d(b, [2.0])
np.setxor1d(b, [2.0, 3.0]), np.sinc(b), np.trapezoid(b), np.trim_zeros(b), np.unwrap(b)
np.vander(b, 3), np.tile(b, 2), np.tile(c, (2, 1)), np.shape(c), np.ndim(c), np.size(c)
np.iscomplexobj(b), np.argsort(b), np.argmax(c, 1), np.cumsum(c), np.cumprod(b)
np.nonzero(b > 1)[0]
np.linalg.norm(s, axis=1), np.linalg.norm(s), np.linalg.solve(s, s[0]), np.linalg.inv(s)
np.linalg.det(s), np.linalg.eigh(s)[0], np.linalg.matrix_power(s, 2), np.fft.rfft(b)
np.sum(a=c, axis=1), np.concatenate([c, c], axis=1), np.stack((b, b)), np.squeeze(c), np.var(b)
np.add(b, 1, dtype=np.float32), np.subtract.outer(b, b), np.divmod(b, 3), np.maximum.reduce(b)
np.max(c, axis=1, keepdims=True), np.clip(b, 2, 4), np.meshgrid(b, b)[1], np.broadcast_to(b, (2, 4))
np.random.RandomState(3).rand(2), np.random.RandomState(4).normal(0.5, 2.0, (3, 2))
np.random.RandomState(3).rand(2) if np is numpy else (np.random.seed(3), np.random.rand(2))[1]
""".strip().splitlines()

WRITES = """
b.sort(); b[::-1]
b.fill(3.0); b + 0
np.fill_diagonal(s, 9.0); s + 0
np.add.at(b, [0, 0, 2], 1.0); b + 0
c.flat[3] = 99; c.flat[-2:] = 7; c + 0
np.sum(c, 0, out=c[0]); c + 0
np.copyto(b, 3.0); b + 0
np.copyto(b, -b, where=b > 2); b + 0
np.putmask(b, b > 2, 9.0); b + 0
np.put(c, [0, 7], [8, 9]); c + 0
np.add(b, 1.0, out=b, where=b > 2); b + 0
""".strip().splitlines()


def done(line: str, numpys: Any, arrays: Any = None) -> list[Any]:
    """What the names of the line are then. arrays: whose they are, where not `numpys`."""
    names: dict[str, Any] = {"np": arrays or numpys, "numpy": np}
    exec(BEGIN, names)
    names["np"] = numpys
    *first, last = line.split("; ")
    exec("\n".join(first), names)
    found = eval(last, names)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("line", [*LINES, *WRITES])
def test_a_line_for_numpy(line: str) -> None:
    for got, want in zip(done(line, xp), done(line, np), strict=True):
        if isinstance(want, str):
            assert got == want
            continue
        mine, numpys = np.asarray(got), np.asarray(want)
        assert mine.dtype == numpys.dtype
        np.testing.assert_allclose(mine, numpys, rtol=1e-12, atol=1e-14)


@pytest.mark.quick("*vstack*", "*norm*", "*copyto*", "*median*", "*add*", "*shape*", "*a=c*")
@pytest.mark.parametrize("line", [*LINES, *WRITES])
def test_numpys_own_functions_of_our_arrays(line: str) -> None:
    """The same text, where `np` is NumPy and only the arrays are ours."""
    if "np.c_" in line or "np.random" in line or "grid[" in line or "np.lib" in line:
        pytest.skip("makes arrays of NumPy's")
    there = any(word in line for word in _NUMPYS)
    for got, want in zip(done(line, np, xp), done(line, np), strict=True):
        if isinstance(want, str):
            assert got == want
            continue
        parts, wanted = (each if isinstance(each, tuple) else (each,) for each in (got, want))
        assert there or all(isinstance(p, xp.Array) or np.ndim(p) == 0 for p in parts)
        for mine, numpys in zip(parts, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(mine), numpys, rtol=1e-12, atol=1e-14)


_NUMPYS = ("np.array(", "np.arange(", "[1, 2]", "np.zeros(", "np.eye(", "fftfreq", "list(b)",
           "np.asanyarray", "np.vectorize", "np.nonzero([", "np.shape", "np.tri(",
           "np.logspace")  # fmt: skip
"""In lines with results that are made of lists and numbers, or by what NumPy gives nobody else."""


def test_every_name_has_a_line() -> None:
    names = {n for n in vars(NumpyNames) if not n.startswith("_") and hasattr(np, n)}
    text = "\n".join([*LINES, *WRITES])
    missing = {n for n in {*names, *ON_ONE, *ALIASES} if not re.search(rf"np\.{n}[(\[.]", text)}
    assert missing == set()


@pytest.mark.parametrize("bits", ["PCG64", "Philox", "SFC64"])
def test_a_generators_numbers_are_numpys(bits: str) -> None:
    """In whichever order they are drawn."""
    ours, numpys = (r.Generator(getattr(r, bits)(5)) for r in (xp.random, np.random))
    for draw in ("random(7)", "normal(2.0, 0.5, 5)", "integers(0, 9, 3)", "random((2, 3))",
                 "standard_normal(4)", "uniform(-1, 1, 3)", "integers(0, 9, 4)", "random(2)",
                 "permutation(6)", "choice(5, 3)", "random()", "uniform()", "random(1)",
                 "random(3, np.float32)", "random(size=())", "random(4)"):  # fmt: skip
        got, want = (np.asarray(eval(f"g.{draw}", {"g": g, "np": np})) for g in (ours, numpys))
        np.testing.assert_array_equal(got, want, err_msg=draw)
    x, y = xp.arange(9), np.arange(9)
    ours.shuffle(x)
    numpys.shuffle(y)
    assert x.tolist() == y.tolist()


def test_an_element_is_a_number() -> None:
    """It stays what it is, whatever becomes of its array; nor does the array change with it."""
    found: list[list[Any]] = []
    for namespace in (np, xp):
        a = namespace.asarray([5.0, 2.0, 9.0, 1.0])
        for i in range(4):
            for j in range(3 - i):
                if a[j] > a[j + 1]:
                    a[j], a[j + 1] = a[j + 1], a[j]
        first, row = a[0], a[2:]
        last = row[1]
        first += 10
        a[2] += 0.5
        a[:] = a[::-1]
        found.append([a.tolist(), float(first), float(last), float(row[0]), [float(x) for x in a]])
    assert found[0] == found[1]


def test_a_generator_without_a_seed() -> None:
    a, b = (xp.random.default_rng() for _ in range(2))
    assert a.random(2).tolist() != b.random(2).tolist()
    assert xp.random.default_rng(a) is a
    same = [r.default_rng([1, 2]).random(3).tolist() for r in (xp.random, np.random)]
    assert same[0] == same[1]


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(
        AttributeError, match=r"busday_count is not supported .* numpy.asarray\(x\)"
    ):
        xp.busday_count  # noqa: B018
    with pytest.raises(TypeError, match=r"numpy.place of arrays .* not supported"):
        np.place(xp.arange(3.0), [True], [0])  # type: ignore[arg-type]
    assert xp.int16 == np.int16
    assert issubclass(xp.floating, np.generic)


def test_complex_numbers_far_out() -> None:
    """As the array API standard has them, which says more than NumPy computes of expm1."""
    inf, nan = np.inf, np.nan
    x = np.array(
        [complex(a, b) for a in (-inf, inf, 0.0, -0.0, nan, 1.0) for b in (inf, nan, -inf)]
    )
    x = np.concatenate([x, [complex(-inf, 0.5), complex(inf, 0.5), 1 + 2j]])
    given = xp.asarray(x)
    found = [getattr(xp, name)(given) for name in ("exp", "log", "tanh", "expm1")]
    with np.errstate(all="ignore"):
        wanted = [np.exp(x), np.log(x), np.tanh(x), np.expm1(x)]
    infinite = np.isinf(x.real) & ~np.isfinite(x.imag)
    wanted[3][infinite] = [-1 if re < 0 else complex(inf, nan) for re in x.real[infinite]]
    # Of some the standard leaves open which part is NaN, or infinite: both are said to be NaN.
    wanted[2][np.isinf(x.real)] = np.asarray(found[2])[np.isinf(x.real)]
    for mine, numpys in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(mine), numpys, rtol=1e-14, equal_nan=True)


def test_an_array_of_one_process_is_shared() -> None:
    """By whoever asks for its memory and for no copy."""
    x = xp.asarray(np.arange(5.0))
    numpys = np.from_dlpack(x, copy=False)
    numpys[2] = 7
    assert x[2] == 7
    assert xp.astype(np.arange(3.0), np.int8).dtype == np.int8
    assert isinstance(xp.finfo(xp.float32).eps, float)
    np.from_dlpack(x[::-2], copy=False)[0] = 9
    assert x[4] == 9
