"""Whether a run's arrays are those of the sequential reference.

Storages, arrays of both, which of them depend on reassociated sums -> a sentence, or CheckError
at the first element that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from avial_lab.core.buffers import Storage, read_box
from avial_lab.core.element_types import element_of_dtype, is_numpys
from avial_lab.core.errors import CheckError
from avial_lab.core.regions import Box, union
from avial_lab.planning.task_graph import Access


def agreement(
    storages: Sequence[Storage],
    arrays: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    reordered: Mapping[str, int],
    nudged: Callable[[], Mapping[str, np.ndarray]] | None = None,
    written: Mapping[str, int] | None = None,
) -> str:
    """Say that `arrays` equal `expected` (by storage, as the reference leaves them), bit for bit.
    One NaN is as good as another: which one an operation on two hands on is LLVM's choice.

    All elements are compared; those counted are the ones that the program may write, `written` of
    each storage, without which all are.

    `reordered`: storages whose floating-point values are sums of so many terms, added in another
    order. Their elements may be k · eps · scale apart, where scale is the largest finite number of
    any floating-point array: terms that cancel leave a small sum, but not a small error (Higham,
    Accuracy and Stability of Numerical Algorithms, section 4.2). NaN and infinities are where the
    reference has them.

    What comes after a sum may amplify its error without limit, and no such bound foresees that. So
    where values are farther apart, `nudged` is asked for the reference with other roundings (of its
    products and of what it is given), and k times what those move the storage by is allowed too: a
    program so sensitive has no more digits to compare, or its sums had far greater terms than what
    is left of them. (Of W. Kahan's schemes in How futile are mindless assessments of roundoff,
    2006, the one that repeats a computation with other roundings.)
    """
    compared = [s for s in storages if all(buffer in arrays for buffer in s.buffers)]
    wanted = {s.name: _typed(expected[s.name], s, arrays) for s in compared}
    scale = max((_largest(array) for array in wanted.values()), default=0.0) if reordered else 0.0
    other = cache(nudged) if nudged is not None else None
    elements = 0
    near: list[str] = []
    for storage in compared:
        got = read_box(arrays, storage, Box.whole(storage.shape))
        want = wanted[storage.name]
        wrong = _differing(got, want)
        terms = reordered.get(storage.name, 0)
        if wrong.size and terms and _is_inexact(got.dtype):
            bound = terms * float(_limits(got.dtype).eps) * scale
            wrong = _far(got, want, bound)
            why = f"a sum of {terms:,} terms, reassociated"
            if wrong.size and other is not None:
                moved = _moved(want, _typed(other()[storage.name], storage, arrays))
                if terms * moved > bound:
                    bound = terms * moved
                    wrong = _far(got, want, bound)
                    why += f", and rounding the inputs differently alone changes it by {moved:.2g}"
            if wrong.size:
                raise _difference(storage, got, want, wrong, f" by more than {bound:.2g}")
            largest = _distance(got, want)
            near.append(f"'{storage.name}' within {bound:.2g} ({why}; {largest:.2g} at most)")
        elif wrong.size:
            raise _difference(storage, got, want, wrong, "")
        else:
            elements += got.size if written is None else written.get(storage.name, 0)
    told = f"equal to the sequential reference, bit for bit ({elements:,} elements)"
    if near and not elements:
        told = "equal to the sequential reference"
    return "; ".join([told, *near])


def allowances(
    storages: Sequence[Storage],
    arrays: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    reordered: Mapping[str, int],
    nudged: Callable[[], Mapping[str, np.ndarray]],
) -> dict[str, float]:
    """How far an element may be from `expected`, by storage: what `agreement` grants at most. Only
    of those that are reordered sums; all others are the same bits.
    """
    sums = [s for s in storages if reordered.get(s.name) and all(b in arrays for b in s.buffers)]
    if not sums:
        return {}
    every = [s for s in storages if all(buffer in arrays for buffer in s.buffers)]
    scale = max(_largest(_typed(expected[s.name], s, arrays)) for s in every)
    other = nudged()
    found: dict[str, float] = {}
    for storage in sums:
        want = _typed(expected[storage.name], storage, arrays)
        if not _is_inexact(want.dtype):
            continue
        moved = _moved(want, _typed(other[storage.name], storage, arrays))
        unit = float(_limits(want.dtype).eps) * scale
        found[storage.name] = reordered[storage.name] * max(unit, moved)
    return found


def written_elements(writes: Iterable[Access]) -> dict[str, int]:
    """How many elements of each storage those may write; bytes of one that arrays share."""
    regions: dict[str, list[Box]] = {}
    for access in writes:
        regions.setdefault(access.storage, []).extend(access.region)
    return {name: sum(box.size for box in union(boxes)) for name, boxes in regions.items()}


def rounded_elsewhere(array: np.ndarray) -> np.ndarray:
    """The floating-point numbers next to those of `array`, above or below; zeros stay, and what is
    infinite or no number.
    """
    if array.dtype.kind != "f":
        return array
    up = np.random.default_rng(0).random(array.shape) < 0.5
    with np.errstate(all="ignore"):  # next to the greatest and the least
        beside = np.nextafter(array, np.where(up, np.inf, -np.inf).astype(array.dtype))
    stays = (array == 0) | ~np.isfinite(array) | ~np.isfinite(beside)
    return np.where(stays, array, beside)


def _typed(values: np.ndarray, storage: Storage, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The reference's values in the array's own type (they may be plain bytes)."""
    if storage.shared:
        return values.reshape(storage.shape)
    dtype = arrays[storage.buffers[0]].dtype
    return np.ascontiguousarray(values).reshape(-1).view(dtype).reshape(storage.shape)


def _differing(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Flat positions of the elements whose bytes differ, and that are not both NaN."""
    if not got.size:
        return np.empty(0, dtype=np.intp)
    left = np.ascontiguousarray(got).reshape(-1).view(np.uint8).reshape(got.size, -1)
    right = np.ascontiguousarray(want).reshape(-1).view(np.uint8).reshape(got.size, -1)
    wrong = np.flatnonzero((left != right).any(axis=1))
    if not wrong.size or not _is_inexact(got.dtype):
        return wrong
    both = np.isnan(_wide(got.reshape(-1)[wrong])) & np.isnan(_wide(want.reshape(-1)[wrong]))
    return wrong[~both]


def _far(got: np.ndarray, want: np.ndarray, bound: float) -> np.ndarray:
    """Flat positions of the elements farther apart than `bound`, or not both the same infinity or
    NaN.
    """
    left, right = _wide(got).reshape(-1), _wide(want).reshape(-1)
    with np.errstate(all="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right)) | np.isinf(bound)
        return np.flatnonzero(~(same | (np.abs(left - right) <= bound)))


def _moved(want: np.ndarray, nudged: np.ndarray) -> float:
    """How far other roundings move the values; without limit where they make others infinite."""
    if (np.isfinite(_wide(want)) != np.isfinite(_wide(nudged))).any():
        return np.inf
    return _distance(want, nudged)


def _distance(got: np.ndarray, want: np.ndarray) -> float:
    """How far two elements are apart at most, where both are finite."""
    left, right = _wide(got), _wide(want)
    finite = np.isfinite(left) & np.isfinite(right)
    return float(np.abs(left[finite] - right[finite]).max(initial=0.0))


def _largest(array: np.ndarray) -> float:
    """The magnitude of the largest finite element; 0 for integers."""
    if not _is_inexact(array.dtype):
        return 0.0
    wide = _wide(array)
    return float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))


def _wide(array: np.ndarray) -> np.ndarray:
    """In double precision, complex or real."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _is_inexact(dtype: np.dtype[Any]) -> bool:
    element = element_of_dtype(dtype)
    return element is not None and element.is_inexact


def _limits(dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - NumPy's finfo, or ml_dtypes' own
    finfo: Any = np.finfo
    if not is_numpys(dtype.name):
        import ml_dtypes

        finfo = ml_dtypes.finfo
    return finfo(dtype)


def _difference(
    storage: Storage, got: np.ndarray, want: np.ndarray, wrong: np.ndarray, how: str
) -> CheckError:
    where = cast("tuple[int, ...]", np.unravel_index(wrong[0], storage.shape))
    index = tuple(int(k) for k in where)
    return CheckError(
        f"the run differs from the sequential reference in {wrong.size} of {got.size} "
        f"elements of '{storage.name}'{how}, first at {list(index)}: "
        f"{got[index]} instead of {want[index]}"
    )
