"""A limit on isl's work: integer programming can take for ever, an analysis may not.

A computation -> its result, or the conservative one and a note when isl gives up. Counted in isl's
own operations, not in seconds: the same program gets the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import islpy as isl

T = TypeVar("T")

_BY_VALUE = {str, int, bool}

KEPT = 1 << 14
"""Results of one function that are remembered, of some hundred bytes to kilobytes each."""

OPERATIONS = 200_000
"""isl operations one computation may take; about a second where every one is costly."""

_FAILED = (isl.Error, TypeError)
"""What a computation ends with at the limit: a number whose text isl refuses is None, and
`to_python` reads that as one.
"""

_PROBE = isl.Set("{ [i, j] : 0 <= i <= j <= 5 }")

TOO_HARD = "isl gave up after {limit} operations; assumed to be possible"


def limited(compute: Callable[[], T], otherwise: Callable[[], T], *, limit: int = OPERATIONS) -> T:
    """`compute()`, or `otherwise()` when isl needs more than `limit` operations for it.

    >>> limited(lambda: isl.Set("{ [i] : 0 <= i < 3 }").is_empty(), lambda: False)
    False
    """
    context = isl.DEFAULT_CONTEXT
    before = context.get_max_operations()
    context.set_max_operations(limit)
    context.reset_operations()
    try:
        return compute()
    except _FAILED:
        if not _spent():
            raise
    finally:
        context.set_max_operations(before)
        context.reset_operations()
    return otherwise()


def answered(compute: Callable[[], T]) -> T | None:
    """`compute()`, or None where isl itself fails at it; not where a limit around is reached."""
    try:
        return compute()
    except isl.Error:
        if _spent():
            raise
    return None


def remembered(compute: Callable[..., T]) -> Callable[..., T]:
    """`compute`, a function of texts, numbers and isl's objects, which asks isl once for each of
    them: several passes read the same nest.

    Objects are told apart by what they are and not by what they say, which isl would be asked for.
    With a limit inside, it gives up for all who ask or for none. Who asks within a limit has all of
    it before and afterwards, whether the answer was there or not: what was compiled earlier must
    not matter.
    """
    known: dict[tuple[object, ...], tuple[tuple[object, ...], T]] = {}
    _MEMORIES.append(known)

    @wraps(compute)
    def once(*arguments: object) -> T:
        key = tuple([each if type(each) in _BY_VALUE else id(each) for each in arguments])
        found = known.get(key)
        isl.DEFAULT_CONTEXT.reset_operations()
        if found is None:
            if len(known) >= KEPT:
                known.clear()
            # The arguments are held: nothing else gets their place in memory.
            found = known[key] = (arguments, compute(*arguments))
            isl.DEFAULT_CONTEXT.reset_operations()
        return found[1]

    return once


def forget() -> None:
    """What was remembered: with another limit it might have been otherwise."""
    for known in _MEMORIES:
        known.clear()


_MEMORIES: list[dict[tuple[object, ...], Any]] = []


def _spent() -> bool:
    """Whether the limit is reached, so that it is why isl failed.

    Its messages do not tell: a text whose reading is cut off is reported as a syntax error.
    """
    try:
        _PROBE.sample_point()
    except isl.Error:
        return True
    return False
