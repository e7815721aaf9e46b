"""NumPy's warnings of integer divisions: by zero, and of the least integer by -1.

Whether an array of divisors holds a zero is computed with the division, and told when it has run;
what a number says by itself is told at once. Floating-point numbers, whose results say it
themselves (inf, NaN), are divided without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.ptensor.arrays import Array
from avial_lab.ptensor.recording import persons_line, warn

if TYPE_CHECKING:
    from avial_lab.ptensor.namespace import Namespace


def watched_division(
    xp: Namespace, name: str, function: Callable[[Any, Any], Array]
) -> Callable[[Any, Any], Array]:
    """The function, which warns as NumPy's of that name, by what `numpy.errstate` is then."""

    def divide(x1: Any, x2: Any, /) -> Array:
        made = function(x1, x2)
        if made.dtype.kind in "iu" and made.size:
            _watch(xp, "divide", f"divide by zero encountered in {name}", xp.equal, (x2, 0))
            if name == "floor_divide" and made.dtype.kind == "i":
                least = int(np.iinfo(made.dtype).min)
                if _may_be(x1, least, made.dtype) and _may_be(x2, -1, made.dtype):
                    message = f"overflow encountered in {name}"
                    _watch(xp, "over", message, xp.equal, (x1, least), (x2, -1))
        return made

    return divide


def _may_be(x: Any, number: int, kind: np.dtype) -> bool:
    """Whether an operand of a division in that type may have that value."""
    if isinstance(x, Array | np.ndarray):
        return x.dtype.kind == "i" if number == -1 else x.dtype == kind
    return not isinstance(x, int | np.integer) or int(x) == number


def _watch(
    xp: Namespace,
    which: str,
    message: str,
    equal: Callable[[Any, Any], Array],
    *pairs: tuple[Any, int],
) -> None:
    """Somewhere all of them are those numbers."""
    how = np.geterr()[which]
    if how == "ignore":
        return
    found: Array | None = None
    for x, number in pairs:
        if isinstance(x, int | np.integer):
            if int(x) != number:
                return
            continue
        same = equal(x, number)
        found = same if found is None else xp.logical_and(found, same)
    if found is not None and how != "raise":
        xp.connection.record().watch_for(message, xp.any(found).value())
    elif how == "raise" and (found is None or bool(xp.any(found))):
        raise FloatingPointError(message)
    elif found is None:
        warn(message, persons_line())
