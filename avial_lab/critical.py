"""The critical path: the chain of tasks that no number of devices can shorten, and how late every
other task could be.

Tasks with their costs, and who waits for whom -> Critical.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Critical:
    """`path` is a longest chain, first to last; `length` is what it costs, `work` what all tasks
    cost. A task may start `slack` later than it could without making the whole longer.

    Of a run, costs are measured and in seconds. Before there is one (`measured` is False) they are
    the bytes that each task touches: how long that takes, nobody has said yet.
    """

    path: tuple[str, ...]
    length: float
    work: float
    cost: Mapping[str, float]
    slack: Mapping[str, float]
    measured: bool = False

    @property
    def parallelism(self) -> float:
        """How many devices can be kept busy on average: work / length."""
        return self.work / self.length if self.length else 1.0


def critical_path(
    cost: Mapping[str, float], edges: Iterable[tuple[str, str]], *, measured: bool = False
) -> Critical:
    """Of tasks in program order (the keys of `cost`), where every edge (before, after) points
    forward. Messages cost nothing, and there are as many devices as one likes.

    >>> found = critical_path({"a": 2, "b": 5, "c": 1}, [("a", "c"), ("b", "c")])
    >>> found.path, found.length, dict(found.slack)
    (('b', 'c'), 6, {'a': 3, 'b': 0, 'c': 0})
    """
    before: dict[str, list[str]] = {name: [] for name in cost}
    after: dict[str, list[str]] = {name: [] for name in cost}
    for first, then in edges:
        before[then].append(first)
        after[first].append(then)
    end: dict[str, float] = {}
    for name, own in cost.items():
        end[name] = own + max([end[each] for each in before[name]], default=0)
    rest: dict[str, float] = {}
    for name in reversed(list(cost)):
        rest[name] = cost[name] + max([rest[each] for each in after[name]], default=0)
    length = max(rest.values(), default=0)
    # Sums in another order differ in their last bits; what is all rounding is no slack.
    least = 1e-9 * length
    late = {name: length - end[name] - rest[name] + cost[name] for name in cost}
    slack = {name: value if value > least else 0 for name, value in late.items()}
    path = [max(rest, key=rest.__getitem__)] if rest else []
    while path and after[path[-1]]:
        path.append(max(after[path[-1]], key=rest.__getitem__))
    return Critical(tuple(path), length, sum(cost.values()), cost, slack, measured)
