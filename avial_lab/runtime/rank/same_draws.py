"""pytest under mpiexec: tests that all ranks run together draw the same random numbers.

Loaded by pytest itself (the entry point `avial-ranks`). A test for one process may draw from
Python's `random`, which every process begins differently, and so would be another test on each
rank. hypothesis does so, too, in `.example()`; what `@given` draws is equal with --derandomize or
--hypothesis-seed.

    mpiexec -n 3 python -m pytest --derandomize tests/
"""

from __future__ import annotations

import random
from typing import Protocol

from avial_lab.runtime.rank.copies import copies


class Item(Protocol):
    """A test of pytest's, which is not asked for where no tests are."""

    nodeid: str


def pytest_runtest_setup(item: Item) -> None:
    """What fixtures draw is equal, too."""
    if copies()[0] > 1:
        random.seed(item.nodeid)
