"""The critical path: the chain of tasks that no number of devices can shorten, and how late every
other task could be.

Tasks with their costs, and who waits for whom -> Critical.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter

from avial_lab.core.words import brief, format_bytes, format_seconds, printable


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

    def words(self, value: float) -> str:
        """A cost or a slack in its unit."""
        return format_seconds(value) if self.measured else format_bytes(round(value))

    def summary(self, *, most: int = 4) -> str:
        """`task2 → task3: 480 B of 720 B, parallelism 1.5 (estimated …)`."""
        names = [printable(name) for name in self.path[: most - 1]]
        if len(self.path) > most:
            names += [f"{len(self.path) - most:,} more"]
        names += [printable(name) for name in self.path[most - 1 :][-1:]]
        wide = self.parallelism
        parallelism = f"{wide:.3g}" if wide < 1000 else f"{wide:,.0f}"
        how = "measured" if self.measured else "estimated from the bytes each task touches"
        return (
            f"{' → '.join(names)}: {self.words(self.length)} of {self.words(self.work)}, "
            f"parallelism {parallelism} ({how})"
        )

    def __repr__(self) -> str:
        return brief(self, f"path {self.summary()}")


def critical_path(
    cost: Mapping[str, float], edges: Iterable[tuple[str, str]], *, measured: bool = False
) -> Critical:
    """Of tasks in program order (the keys of `cost`), where every edge (before, after) points
    forward. Messages cost nothing, and there are as many devices as one likes.

    >>> found = critical_path({"a": 2, "b": 5, "c": 1}, [("a", "c"), ("b", "c")])
    >>> found.path, found.length, dict(found.slack)
    (('b', 'c'), 6, {'a': 3, 'b': 0, 'c': 0})
    """
    names, costs = list(cost), list(cost.values())
    position = {name: k for k, name in enumerate(names)}
    numbered = [(position[first], position[then]) for first, then in edges]
    start: list[float] = [0] * len(costs)
    for first, then in sorted(numbered, key=itemgetter(1)):  # all edges into `first` came before
        start[then] = max(start[then], start[first] + costs[first])
    rest = list(costs)
    following = [-1] * len(costs)
    for first, then in sorted(numbered, key=itemgetter(0), reverse=True):
        # Of equals the first in program order: same input, same path.
        longer, least = costs[first] + rest[then], rest[first]
        if longer > least or (longer == least and then < following[first]):
            rest[first], following[first] = longer, then
    length = max(rest, default=0)
    # Sums in another order differ in their last bits; what is all rounding is no slack.
    least = 1e-9 * length
    late = (length - begin - left for begin, left in zip(start, rest, strict=True))
    slack = {name: value if value > least else 0 for name, value in zip(names, late, strict=True)}
    path = [rest.index(length)] if rest else []
    while path and following[path[-1]] >= 0:
        path.append(following[path[-1]])
    chain = tuple(names[k] for k in path)
    return Critical(chain, length, sum(costs), cost, slack, measured)
