"""Spellings that people bring from Numba mean what they mean in Python, or are refused at their
line.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from avial_lab.core.errors import AvialError
from tests.compiler.frontends.python.comparing import interpreted
from tests.compiler.frontends.python.spellings import CASES

REFUSED = {
    "bincount": "np.bincount is not supported",
    "shapes": "'.strides' is not supported",
    "listed": "a list that grows is not supported",
    "dict_comp": "a dictionary or a set is not supported",
    "math_names": "math.gamma is not supported",
    "list_plus": "a list is no array",
    "list_store": "the elements of a list are not assigned to here",
    "walrus_comp": "':=' in a comprehension is not supported",
    "reshaped_part_written": "a copy of a part in another shape",
    "shape_assigned_to_two": "has other names",
    "drawn_at_random": "np.random",
    "out_of_another_kind": "an array of int64 cannot take float64",
    "out_where": "where= is not supported",
    "out_of_nothing": "out is one array",
    "returns_one_or_nothing": "a branch returns a value, and another one nothing",
    "returns_the_callers_or_another": "an array of the caller's, and another one does not",
    "rounded_to_digits": "Python's floats are not rounded to digits here",
    "contiguous_part_written": "a copy of a part in another shape",
    "part_of_complex_written": "the parts of complex numbers are not assigned to here",
    "part_of_complex_named_and_written": "a part of complex numbers is named",
    "refused_mask_and_more": "a mask is the only subscript here",
    "refused_sinh_of_complex": "np.sinh of complex numbers is not supported",
    "refused_rounded_complex": "complex numbers are not rounded here",
    "refused_starred": "a starred name is not supported",
    "signs_of_bools": "np.sign takes no bools",
    "refused_shared_best": "name one array from here on",
    "refused_shared_in_a_while": "name one array from here on",
    "refused_part_by_function": "a part of complex numbers is named",
    "refused_part_that_would_change": "a part of complex numbers is named",
    "cond_lambda": "both sides of a condition are numbers here",
}
NOT_WITH_THE_WITNESS = ("complex_names",)
"""It has no complex.im."""

ALL = [
    pytest.param(function, make, id=f"{function.__name__}-{k}")
    for function, makers in CASES
    for k, make in enumerate(makers)
    if function.__name__ not in NOT_WITH_THE_WITNESS
]


@pytest.mark.quick(
    "nested_*", "late_binding*", "recursion*", "shadow*", "walrus*", "sum_*", "any_*", "listed_*",
    "masked_shape*", "masked_2d*", "masked_empty*", "cumsum-*", "sort-0", "sort-2", "argsort-1",
    "max_*", "argmax_nan*", "diag_view*", "bincount*", "dict_comp*", "cond_lambda*",
    "raise_within*", "reshaped_*", "shape_assigned*", "drawn_at_random*", "fmod_of_integers-0",
    "values_of*", "sums_as*", "kinds_of*", "points_*", "signs_*", "pythons_*", "masked_and*-0",
    "masked_by*", "same_arrays*", "contiguous_part*", "arrays_*", "places_named*", "part_of*",
    "out_*", "returns_*", "rows_of*", "stretches*", "rounded*", "ndindex_written*",
    "returned_diagonal*", "logspace*", "shared_*", "refused_*", "ints_*", "rows_under*",
    "running_*",
)  # fmt: skip
@pytest.mark.parametrize(("function", "make"), ALL)
def test_it_means_what_python_means(
    function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]
) -> None:
    mine = make()
    theirs = deepcopy(mine)
    words = REFUSED.get(function.__name__)
    if words is not None:
        with pytest.raises(AvialError, match="Hint") as refused:
            interpreted(function, *mine)
        assert words in refused.value.message
        return
    try:
        with np.errstate(all="ignore"):
            wanted = function(*theirs)
    except Exception as error:
        with pytest.raises(type(error)):
            interpreted(function, *mine)
        return
    close(interpreted(function, *mine), wanted)
    close(mine, theirs)


def a_root(x, y):
    return x**y


def test_a_power_that_is_complex_in_python_is_refused_when_it_comes_to_it() -> None:
    assert interpreted(a_root, 4.0, 0.5) == 2.0
    assert interpreted(a_root, -4.0, 3.0) == -64.0
    raised: type[Exception] = ValueError
    with pytest.raises(raised):
        interpreted(a_root, -4.0, 0.5)


def close(found: object, wanted: object) -> None:
    """Of one type and shape; floats within some roundings, as sums are in another order."""
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)
        return
    if wanted is None:
        assert found is None
        return
    if isinstance(wanted, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
    kind = np.asarray(wanted).dtype
    rtol = {np.dtype(np.float16): 1e-3, np.dtype(np.float32): 3e-7}.get(kind, 1e-12)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-13)  # type: ignore[arg-type]
