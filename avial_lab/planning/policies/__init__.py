"""How tasks are placed: a policy is a member of `Policy` and a module of its name here.

Each module has `place(graph, topology, costs)`: every task with its device, in an order that
respects the graph.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avial_lab.planning.schedule import Placement


class Policy(enum.Enum):
    """How tasks are placed: `levels` goes round-robin over the fitting devices in each level; the
    others look at what tasks and messages cost.

    A policy decides device and order of every task of a program of tasks alone. The iterations of
    loops are placed by their division (`planning/distribution.py`).
    """

    LEVELS = "levels"
    HEFT = "heft"
    PEFT = "peft"
    MIN_MEMORY = "min-memory"
    CRITICAL_LOCALITY = "critical-locality"
    SEARCH = "search"
    EXACT = "exact"

    @property
    def looks_at_costs(self) -> bool:
        return self is not Policy.LEVELS

    @property
    def place(self) -> Callable[..., tuple[Placement, ...]]:
        """What places the tasks: the function of the policy's module, loaded when it is used."""
        return import_module(f"{__name__}.{self.value.replace('-', '_')}").place
