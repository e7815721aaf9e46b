"""Integer divisions warn as NumPy's do, at the person's line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from avial_lab.ptensor import on

X = np.array([[-128, 5], [0, 7]], np.int8)
Y = np.array([[-1, 2], [0, 3]], np.int8)

DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "number": lambda x, y: x // 0,
    "least": lambda x, y: x // -1,
    "a loop": lambda x, y: [x // (y + k) for k in range(60)],
    "nothing": lambda x, y: (x // 3, x[:0] // 0, abs(y + 9) % 5, 7 // (y + 10), x / (y + 1.5)),
    "unsigned": lambda x, y: x.astype(np.uint8) // y.astype(np.uint8),
    "in place": lambda x, y: x.copy().__ifloordiv__(y),
}


def _told(function: Callable[[Any, Any], Any], x: Any, y: Any) -> set[tuple[str, int]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(x, y)
        if not isinstance(x, np.ndarray):
            on().sync()
    return {(str(each.message), each.lineno) for each in caught}


@pytest.mark.parametrize("name", DIVISIONS)
def test_warnings_are_numpys(name: str) -> None:
    ours = _told(DIVISIONS[name], on().asarray(X), on().asarray(Y))
    assert ours == _told(DIVISIONS[name], X, Y)


def test_errstate() -> None:
    x, y = on().asarray(X), on().asarray(Y)
    with np.errstate(all="ignore"):
        assert not _told(DIVISIONS["array"], x, y)
    with np.errstate(divide="raise"):
        with pytest.raises(FloatingPointError, match="divide by zero"):
            _ = x // y
        with pytest.raises(FloatingPointError, match="divide by zero"):
            _ = x % 0
        np.testing.assert_array_equal(np.asarray(x // 3), X // 3)
