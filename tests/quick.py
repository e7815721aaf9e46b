"""What `make test` leaves to `make test-full`: most cases of a long sweep, most random examples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

ALL = os.environ.get("AVIAL_TEST_EXAMPLES") == "all"


def examples(count: int) -> int:
    """How many random programs are drawn: `count`, or a quarter of them, which are others each
    time that the tests run.
    """
    return count if ALL else -(-count // 4)


def mark_slow_cases(cases: Sequence[pytest.Function]) -> None:
    """Those of one test with `@pytest.mark.quick("pattern", …)` whose id matches no pattern.

    Raises UsageError where a pattern matches no case: it would leave out what it names.
    """
    patterns = [p for mark in cases[0].iter_markers("quick") for p in mark.args] if cases else []
    if not patterns:
        return
    ids = {case: case.callspec.id for case in cases}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in ids.values()):
            raise pytest.UsageError(
                f"{cases[0].nodeid}: no case's id matches quick's {pattern!r}; "
                f"ids: {', '.join(ids.values())}"
            )
    for case, name in ids.items():
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            case.add_marker(pytest.mark.slow)
