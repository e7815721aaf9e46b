"""Waiting for what other processes do, for as long as it takes: no verdict hangs on how busy the
machine is. What hangs, pytest's own time limit finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psutil

LONG_S = 600.0
"""Longer than anything takes that ends."""

Found = TypeVar("Found")


def assert_gone(processes: Sequence[psutil.Process]) -> None:
    """All of them end."""
    _, alive = psutil.wait_procs(processes, timeout=LONG_S)
    assert not alive, "processes are left behind"


def wait_until(true: Callable[[], object]) -> None:
    """Until it is."""
    while not true():
        time.sleep(0.01)


def with_limits(attempt: Callable[[float], Found], good: Callable[[Found], object]) -> Found:
    """What `attempt` makes of the first time limit, in seconds, that lets it get as far as it has
    to: ranks of a busy machine may not have begun when a short one is over.
    """
    limit_s = 0.5
    while not good(found := attempt(limit_s)) and limit_s < LONG_S:
        limit_s *= 2
    return found
