"""A limit on isl's work: integer programming can take for ever, an analysis may not.

A computation -> its result, or the conservative one and a note when isl gives up. Counted in isl's
own operations, not in seconds: the same program gets the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import islpy as isl

T = TypeVar("T")

OPERATIONS = 200_000
"""isl operations one computation may take; about a second where every one is costly."""

_PROBE = isl.Set("{ [i, j] : 0 <= i <= j <= 5 }")

TOO_HARD = "isl gave up after {limit} operations; taken to be possible"


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
    except isl.Error:
        if not _spent():
            raise
    finally:
        context.set_max_operations(before)
        context.reset_operations()
    return otherwise()


def _spent() -> bool:
    """Whether the limit is reached, so that it is why isl failed.

    Its messages do not tell: a text whose reading is cut off is reported as a syntax error.
    """
    try:
        _PROBE.sample_point()
    except isl.Error:
        return True
    return False
