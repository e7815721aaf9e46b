"""What counts as the same result: bit for bit, and where a sum was added in another order, within
its rounding.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import CheckError
from avial_lab.program.agreement import agreement, rounded_elsewhere


def compare(
    got: dict[str, np.ndarray],
    want: dict[str, np.ndarray],
    reordered: dict[str, int] | None = None,
    nudged: dict[str, np.ndarray] | None = None,
) -> str:
    storages = bind_arrays(got).storages
    other = None if nudged is None else lambda: nudged
    return agreement(storages, got, want, reordered or {}, other)


def test_numbers_beside() -> None:
    """Nothing becomes special that was not, and nothing is rounded that was whole."""
    a = np.array([1.0, -3.0, 0.0, -0.0, np.inf, np.nan, np.finfo(float).max, 5e-324])
    beside = rounded_elsewhere(a)
    far = (beside[:2] - a[:2]) / np.spacing(a[:2])
    assert (np.abs(far) <= 1).all()
    assert (beside[:2] != a[:2]).all()
    np.testing.assert_array_equal(beside[2:6], a[2:6])
    assert np.isfinite(beside[6])
    assert rounded_elsewhere(np.arange(3)).tolist() == [0, 1, 2]


def test_equal_bit_for_bit() -> None:
    a = np.array([1.0, np.nan, -0.0, np.inf])
    told = compare({"a": a, "b": np.arange(3)}, {"a": a.copy(), "b": np.arange(3)})
    assert told == "equal to the sequential reference, bit for bit (7 elements)"


@pytest.mark.parametrize("wrong", [np.nextafter(1.0, 2), -0.0, np.nan])
def test_one_bit_is_a_difference(wrong: float) -> None:
    want = np.array([0.0, 1.0, 2.0])
    got = want.copy()
    got[0 if wrong == 0 else 1] = wrong
    with pytest.raises(CheckError, match=r"in 1 of 3 elements of 'a', first at \[[01]\]"):
        compare({"a": got}, {"a": want})


def test_plain_bytes_have_the_array_s_type() -> None:
    """As the reference hands them back for memory of its own."""
    want = np.array([1.0, 2.0]).view("V8")
    assert "2 elements" in compare({"a": np.array([1.0, 2.0])}, {"a": want})


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.complex64, ml_dtypes.bfloat16]
)
def test_a_sum_in_another_order(dtype: type[np.generic]) -> None:
    """k · eps · largest, and not more."""
    eps = float(ml_dtypes.finfo(dtype).eps) if dtype != np.complex64 else 2.0**-23
    want = np.array([8.0, 4.0], dtype)
    got = np.array([8.0, 4.0 + 8 * 3 * eps], dtype)
    told = compare({"a": got}, {"a": want}, {"a": 4})
    assert "'a' within" in told
    assert "a sum of 4 terms, reassociated" in told
    assert told.startswith("equal to the sequential reference; ")
    far = np.array([8.0, 4.0 + 8 * 6 * eps], dtype)
    with pytest.raises(CheckError, match=r"elements of 'a' by more than .*, first at \[1\]"):
        compare({"a": far}, {"a": want}, {"a": 4})


def test_a_sum_whose_error_is_amplified() -> None:
    """By as much as other roundings move the reference, for every term, and not more."""
    want, nudged = {"a": np.array([1.0, 2.0])}, {"a": np.array([1.0, 2.5])}
    told = compare({"a": np.array([1.0, 3.9])}, want, {"a": 4}, nudged)
    assert "'a' within 2 (a sum of 4 terms, reassociated, and rounding the inputs" in told
    assert "alone changes it by 0.5; 1.9 at most)" in told
    for far in (4.1, np.nan, np.inf):
        with pytest.raises(CheckError, match="by more than 2"):
            compare({"a": np.array([1.0, far])}, want, {"a": 4}, nudged)
    infinite = {"a": np.array([1.0, np.inf])}
    assert "changes it by inf" in compare({"a": np.array([np.nan, 2.0])}, want, {"a": 4}, infinite)
    with pytest.raises(CheckError):
        compare({"a": np.array([1.0, 3.9])}, want, {"a": 4}, want)


def test_what_is_amplified_is_not_asked_for_in_vain() -> None:
    def ask() -> dict[str, np.ndarray]:
        raise AssertionError

    a = {"a": np.array([1.0])}
    assert "bit for bit" in agreement(bind_arrays(a).storages, a, a, {"a": 4}, ask)


def test_one_nan_is_as_good_as_another() -> None:
    got, want = np.array([np.nan, 1.0]), np.array([-np.nan, 1.0])
    assert got.tobytes() != want.tobytes()
    assert "bit for bit (2 elements)" in compare({"a": got}, {"a": want})


def test_what_was_not_reordered_stays_exact() -> None:
    want = {"a": np.array([1.0]), "b": np.array([1.0])}
    got = {"a": np.array([1.0 + 1e-15]), "b": np.array([1.0 + 1e-15])}
    with pytest.raises(CheckError, match="'b'"):
        compare(got, want, {"a": 100})


def test_terms_that_cancel_leave_their_rounding() -> None:
    """1 + eps - 1 in two orders: the result is small, the error is not."""
    arrays = {"x": np.array([1.0, 2e-16, -1.0]), "sum": np.array([2.2e-16])}
    told = compare(arrays | {"sum": np.array([0.0])}, arrays, {"sum": 3})
    assert "'sum' within" in told


@pytest.mark.parametrize(
    ("got", "want"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf), (1.0, np.inf)]
)
def test_nan_and_infinities_stand_where_they_stood(got: float, want: float) -> None:
    with pytest.raises(CheckError):
        compare({"a": np.array([got, 9.0])}, {"a": np.array([want, 9.0])}, {"a": 10**9})


def test_integers_are_exact_whatever_is_said() -> None:
    with pytest.raises(CheckError):
        compare({"a": np.array([1])}, {"a": np.array([2])}, {"a": 10**9})


def test_empty_arrays() -> None:
    empty = np.zeros((0, 3))
    assert "(0 elements)" in compare({"a": empty}, {"a": empty.copy()}, {"a": 5})


def test_only_what_the_program_may_write_is_counted() -> None:
    a = {"a": np.arange(7), "b": np.arange(9)}
    said = agreement(bind_arrays(a).storages, a, a, {}, written={"b": 4})
    assert said == "equal to the sequential reference, bit for bit (4 elements)"
