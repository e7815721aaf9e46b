"""Cases of stored answers: the simulator against somebody else's, platform by platform.

A file of cases (tasks, edges, hosts, and when each task ended) -> Verdict. The form is that of
`simgrid_golden.json`; what the cases mean stands in the head of the file:

- A host runs its tasks one at a time, in the order of their numbers.
- An edge [from, to, bytes] between hosts is one message, which starts when `from` has ended.
- full: a link for each pair of hosts, for both directions. star: a link up and one down for each
  host. islands: star, and a backbone between the first and the second half of the hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from avial_lab.core.errors import AvialError
from avial_lab.core.json_file import read_json
from avial_lab.core.table import Table
from avial_lab.core.words import count
from avial_lab.planning.simulator.activities import ActivityList, simulate

LINK_BYTES_PER_S, BACKBONE_BYTES_PER_S = 1.25e9, 6.25e8
FULL_LATENCY_S, STAR_LATENCY_S = 1e-5, 5e-6

Route = tuple[tuple[int, ...], float]
"""The links that a message crosses, and its latency in seconds."""


@dataclass(frozen=True)
class Tolerance:
    """At most `strays` cases are beyond `close`, and none is beyond `worst`; relative errors."""

    worst: float
    close: float
    strays: int = 0


TOLERANCES = {
    "full": Tolerance(1e-9, 1e-9),
    "star": Tolerance(1e-9, 1e-9),
    "islands": Tolerance(5e-3, 1e-6, strays=2),
}
"""Of makespans. The stored ends of single tasks differ from fair shares by up to 1e-4 (star) and
0.4 % (islands), as if SimGrid 3.32 solved anew only around a message's first link when that
changes: messages which leave a host together would for a while get more of a later link than it
has. That is inferred from the answers.
"""


@dataclass(frozen=True)
class Case:
    """hosts run at `flops_per_s`; task k has `flops[k]` on `host[k]`, and ended at `end_s[k]`."""

    name: str
    platform: str
    flops: tuple[float, ...]
    edges: tuple[tuple[int, int, float], ...]
    host: tuple[int, ...]
    flops_per_s: tuple[float, ...]
    makespan_s: float
    end_s: tuple[float, ...]


@dataclass(frozen=True)
class Judgement:
    """Relative errors of all cases, by platform: of their makespans (`errors`), and the worst of
    their tasks' ends, which no verdict is made of.
    """

    errors: Mapping[str, tuple[float, ...]]
    ends: Mapping[str, float]

    def strays(self, platform: str) -> int:
        return sum(error > TOLERANCES[platform].close for error in self.errors[platform])

    def holds(self, platform: str) -> bool:
        tolerance = TOLERANCES[platform]
        return (
            all(error <= tolerance.worst for error in self.errors[platform])
            and self.strays(platform) <= tolerance.strays
        )

    @property
    def good(self) -> bool:
        return all(map(self.holds, self.errors))

    def __str__(self) -> str:
        rows = tuple(
            (
                platform,
                str(len(errors)),
                f"{max(errors):.2g}",
                f"{self.ends[platform]:.2g}",
                f"{TOLERANCES[platform].worst:g}",
                f"{self.strays(platform)} of {TOLERANCES[platform].strays} allowed "
                f"beyond {TOLERANCES[platform].close:g}",
                "within" if self.holds(platform) else "BEYOND",
            )
            for platform, errors in self.errors.items()
        )
        head = ("platform", "cases", "makespan", "one task", "tolerance", "strays", "verdict")
        total = count(sum(map(len, self.errors.values())), "stored case")
        title = f"{total}: the worst relative errors; the tolerance is of makespans"
        return Table(title, head, rows, frozenset(head[1:5])).to_text()


def judge(path: Path) -> Judgement:
    """How far the simulator is from the answers stored in that file.

    Raises AvialError for a file that holds no such cases.
    """
    errors: dict[str, list[float]] = {}
    worst: dict[str, float] = {}
    for case in _cases(path):
        ends = task_ends(case)
        scale = case.makespan_s or 1.0
        of_task = max(abs(got - want) for got, want in zip(ends, case.end_s, strict=True)) / scale
        worst[case.platform] = max(worst.get(case.platform, 0.0), of_task)
        errors.setdefault(case.platform, []).append(abs(max(ends) - case.makespan_s) / scale)
    return Judgement({platform: tuple(found) for platform, found in sorted(errors.items())}, worst)


def task_ends(case: Case) -> list[float]:
    """When each task ends, in seconds, simulated."""
    capacity, route = _PLATFORMS[case.platform](len(case.flops_per_s))
    arriving: list[list[tuple[int, float]]] = [[] for _ in case.flops]
    for before, after, nbytes in case.edges:
        arriving[after].append((before, nbytes))
    made = ActivityList()
    number: list[int] = []
    last_on: dict[int, int] = {}
    for task, host in enumerate(case.host):
        waits = [last_on[host]] if host in last_on else []
        for before, nbytes in arriving[task]:
            if case.host[before] == host:
                waits.append(number[before])
                continue
            links, latency_s = route(case.host[before], host)
            waits.append(made.add(nbytes, after=(number[before],), latency_s=latency_s, uses=links))
        number.append(made.add(case.flops[task], after=waits, cap=case.flops_per_s[host]))
        last_on[host] = number[task]
    return simulate(made.on(capacity)).end_s[number].tolist()


def _full(hosts: int) -> tuple[Sequence[float], Callable[[int, int], Route]]:
    def route(source: int, dest: int) -> Route:
        low, high = sorted((source, dest))
        return (low * hosts + high,), FULL_LATENCY_S

    return [LINK_BYTES_PER_S] * (hosts * hosts), route


def _star(hosts: int) -> tuple[Sequence[float], Callable[[int, int], Route]]:
    def route(source: int, dest: int) -> Route:
        return (source, hosts + dest), 2 * STAR_LATENCY_S

    return [LINK_BYTES_PER_S] * (2 * hosts), route


def _islands(hosts: int) -> tuple[Sequence[float], Callable[[int, int], Route]]:
    def route(source: int, dest: int) -> Route:
        apart = (source < hosts // 2) != (dest < hosts // 2)
        return (source, hosts + dest, *((2 * hosts,) if apart else ())), 2 * STAR_LATENCY_S

    return [LINK_BYTES_PER_S] * (2 * hosts) + [BACKBONE_BYTES_PER_S], route


_PLATFORMS = {"full": _full, "star": _star, "islands": _islands}


# The file -----------------------------------------------------------------------------------------


def _cases(path: Path) -> list[Case]:
    cases = read_json(path).get("cases")
    if not isinstance(cases, list) or not cases:
        raise AvialError(
            f"{path} holds no cases", hint='expected {"cases": [{"platform": "star", …}, …]}'
        )
    entries = cast("list[dict[str, Any]]", cases)
    return [_case(entry, f"{path}, case {k}") for k, entry in enumerate(entries)]


def _case(entry: dict[str, Any], where: str) -> Case:
    try:
        case = Case(
            name=f"{where} (seed {entry.get('seed', '?')})",
            platform=entry["platform"],
            flops=tuple(map(float, entry["flops"])),
            edges=tuple((int(a), int(b), float(nbytes)) for a, b, nbytes in entry["edges"]),
            host=tuple(map(int, entry["host"])),
            flops_per_s=tuple(map(float, entry["flops_per_s"])),
            makespan_s=float(entry["makespan_s"]),
            end_s=tuple(map(float, entry["task_end_s"])),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AvialError(f"{where} is not a case: {type(error).__name__}: {error}") from None
    if case.platform not in _PLATFORMS:
        known = ", ".join(_PLATFORMS)
        raise AvialError(f"{where}: no platform '{case.platform}'", hint=f"there are: {known}")
    tasks, hosts = len(case.flops), len(case.flops_per_s)
    if not (tasks == len(case.host) == len(case.end_s) and all(0 <= h < hosts for h in case.host)):
        raise AvialError(f"{where}: every task has flops, a host and an end")
    for before, after, _ in case.edges:
        if not 0 <= before < after < tasks:
            raise AvialError(f"{where}: an edge from task {before} to {after} of {tasks}")
    return case
