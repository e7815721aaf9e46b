"""The deck's graph, schedule and run as fixtures; what makes them is in `by_hand.py`."""

from __future__ import annotations

import pytest

from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.trace import Trace
from tests.plot import by_hand


@pytest.fixture
def deck() -> TaskGraph:
    return by_hand.deck()


@pytest.fixture
def deck_schedule() -> Schedule:
    return by_hand.deck_schedule()


@pytest.fixture
def deck_trace() -> Trace:
    return by_hand.deck_trace()
