"""Activities in arrays: the one thing that the simulator knows.

Activities -> Times, by `events.c`. A task on a core, bytes through a node's memory, a message over
links, a copy to a GPU are all of them activities: an amount, a latency, a cap of the rate, the
resources that are shared, and what it waits for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from avial_lab.core.errors import AvialError, ScheduleError
from avial_lab.core.words import brief, count, format_seconds, listed
from avial_lab.planning.simulator.native import native


@dataclass(frozen=True)
class Activities:
    """n activities on `capacity.size` resources; amounts are in whatever unit their rates have.

    amount, latency_s, cap, weight: (n,). A rate is at most `cap`; among those that share a
    resource rates are fair in proportion to `weight`. Activity a uses
    `use_resource[use_begin[a]:use_begin[a + 1]]`, of each `use_factor` times its rate, and waits
    for `after[after_begin[a]:after_begin[a + 1]]`.
    """

    amount: np.ndarray
    latency_s: np.ndarray
    cap: np.ndarray
    use_begin: np.ndarray
    use_resource: np.ndarray
    capacity: np.ndarray
    after_begin: np.ndarray
    after: np.ndarray
    weight: np.ndarray | None = None
    use_factor: np.ndarray | None = None

    def __len__(self) -> int:
        return self.amount.size

    def __repr__(self) -> str:
        shared = count(self.capacity.size, "resource")
        return brief(self, f"of {count(len(self), 'activity')} on {shared}")


@dataclass(frozen=True)
class Times:
    """Seconds from the start of everything: when each activity was `ready`, when its latency was
    over (`flow`), when it ended. `rates` are (time, activity, rate) where they were asked for.
    """

    ready_s: np.ndarray
    flow_s: np.ndarray
    end_s: np.ndarray
    events: int
    rates: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @property
    def makespan_s(self) -> float:
        return float(self.end_s.max(initial=0.0))

    def __repr__(self) -> str:
        took = format_seconds(self.makespan_s)
        return brief(self, f"of {count(self.end_s.size, 'activity')}: {took} in all")


@dataclass
class ActivityList:
    """Activities one by one, numbered from 0 in the order in which they are added."""

    amount: list[float] = field(default_factory=list[float])
    latency_s: list[float] = field(default_factory=list[float])
    cap: list[float] = field(default_factory=list[float])
    weight: list[float] = field(default_factory=list[float])
    uses: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    use_begin: list[int] = field(default_factory=lambda: [0])
    after: list[int] = field(default_factory=list[int])
    after_begin: list[int] = field(default_factory=lambda: [0])

    def add(
        self,
        amount: float,
        *,
        after: Iterable[int] = (),
        cap: float = float("inf"),
        latency_s: float = 0.0,
        weight: float = 1.0,
        uses: Iterable[int | tuple[int, float]] = (),
    ) -> int:
        """Its number. uses: resources, those that it uses more or less than its rate of with a
        factor.
        """
        self.amount.append(amount)
        self.latency_s.append(latency_s)
        self.cap.append(cap)
        self.weight.append(weight)
        self.uses.extend(use if isinstance(use, tuple) else (use, 1.0) for use in uses)
        self.use_begin.append(len(self.uses))
        self.after.extend(after)
        self.after_begin.append(len(self.after))
        return len(self.amount) - 1

    def on(self, capacity: Sequence[float]) -> Activities:
        """All of them, on resources of that capacity."""
        return Activities(
            amount=np.array(self.amount, np.float64),
            latency_s=np.array(self.latency_s, np.float64),
            cap=np.array(self.cap, np.float64),
            weight=np.array(self.weight, np.float64),
            use_begin=np.array(self.use_begin, np.int64),
            use_resource=np.array([resource for resource, _ in self.uses], np.int32),
            use_factor=np.array([factor for _, factor in self.uses], np.float64),
            capacity=np.array(capacity, np.float64),
            after_begin=np.array(self.after_begin, np.int64),
            after=np.array(self.after, np.int32),
        )


def simulate(activities: Activities, *, rates: int = 0) -> Times:
    """When each activity begins and ends; with `rates` also the first so many changes of a rate.

    Raises ScheduleError for numbers that are none, or below 0, and for activities that wait for
    each other in a circle.
    """
    _check(activities)
    n = len(activities)
    start, flow, end = np.zeros(n), np.zeros(n), np.zeros(n)
    log_time, log_rate = np.zeros(rates), np.zeros(rates)
    log_activity = np.zeros(rates, np.int32)
    run = _Run(
        n=n,
        amount=_address(activities.amount, np.float64),
        latency=_address(activities.latency_s, np.float64),
        cap=_address(activities.cap, np.float64),
        weight=_address(activities.weight, np.float64),
        use_begin=_address(activities.use_begin, np.int64),
        use_resource=_address(activities.use_resource, np.int32),
        use_factor=_address(activities.use_factor, np.float64),
        resources=activities.capacity.size,
        capacity=_address(activities.capacity, np.float64),
        after_begin=_address(activities.after_begin, np.int64),
        after=_address(activities.after, np.int32),
        start=start.ctypes.data,
        flow=flow.ctypes.data,
        end=end.ctypes.data,
        log_room=rates,
        log_time=log_time.ctypes.data,
        log_rate=log_rate.ctypes.data,
        log_activity=log_activity.ctypes.data,
    )
    done = _library().avial_simulate(ctypes.byref(run))
    if done < 0:
        raise AvialError(f"out of memory for a simulation of {count(n, 'activity')}")
    if done < n:
        left = np.flatnonzero(end == 0)[:4]
        raise ScheduleError(
            f"{count(n - done, 'activity')} of {n:,} never end: they wait for each other "
            f"(among them {listed([str(k) for k in left])})",
            hint="a graph of tasks has no cycles",
        )
    logged = min(run.logged, rates)
    log = (log_time[:logged], log_activity[:logged], log_rate[:logged]) if rates else None
    return Times(start, flow, end, run.events, log)


def _check(activities: Activities) -> None:
    """What the core takes for granted."""
    for what, values in (
        ("amount", activities.amount),
        ("latency", activities.latency_s),
    ):
        if not (np.isfinite(values) & (values >= 0)).all():
            k = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[0])
            raise ScheduleError(f"the {what} of activity {k} is {values[k]}, not 0 or more")
    for what, values in (
        ("rate cap of activity", activities.cap),
        ("capacity of resource", activities.capacity),
        ("weight of activity", activities.weight),
        ("use", activities.use_factor),
    ):
        if values is not None and not (values > 0).all():
            k = int(np.flatnonzero(~(values > 0))[0])
            raise ScheduleError(f"the {what} {k} is {values[k]}, not more than 0")
    for what, places, number in (
        ("uses resource", activities.use_resource, activities.capacity.size),
        ("waits for activity", activities.after, len(activities)),
    ):
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < number:
            bad = int(places[(places < 0) | (places >= number)][0])
            raise ScheduleError(f"an activity {what} {bad}, and there are {number}")


# The core -----------------------------------------------------------------------------------------


class _Run(ctypes.Structure):
    """`Run` of `events.c`."""

    _fields_ = [
        ("n", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("amount", "latency", "cap", "weight")),
        *((name, ctypes.c_void_p) for name in ("use_begin", "use_resource", "use_factor")),
        ("resources", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("capacity", "after_begin", "after")),
        *((name, ctypes.c_void_p) for name in ("start", "flow", "end")),
        ("log_room", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("log_time", "log_rate", "log_activity")),
        ("events", ctypes.c_int64),
        ("logged", ctypes.c_int64),
    ]


def _address(values: np.ndarray | None, kind: type[np.generic]) -> int | None:
    if values is None:
        return None
    if values.dtype != kind or not values.flags.c_contiguous:
        raise TypeError(f"an array of {kind.__name__} in one piece is wanted, not {values.dtype}")
    return values.ctypes.data


@cache
def _library() -> ctypes.CDLL:
    library = native("events.c")
    library.avial_simulate.restype = ctypes.c_int64
    library.avial_simulate.argtypes = [ctypes.c_void_p]
    return library
