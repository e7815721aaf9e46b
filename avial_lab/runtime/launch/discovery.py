"""What machines can do, found by trying: arithmetic, memory, caches, and messages.

Nothing -> Measured; hosts -> MeasuredHosts; in some ten seconds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import run, tool
from avial_lab.machine.constants import THREADS_MEET_S
from avial_lab.machine.measure import measure_node
from avial_lab.machine.measured import (
    Measured,
    MeasuredHosts,
    MeasuredMessages,
    collectives_through,
    keep,
    line_through,
    node_in,
)
from avial_lab.machine.platform import CollectiveTime, Node, assumed_platform
from avial_lab.machine.steadiness import watched
from avial_lab.runtime.launch.hosts import Hosts
from avial_lab.runtime.launch.processes import mpiexec_options
from avial_lab.runtime.rank.threads import cores

_LIMIT_S = 20.0
_HOSTS_LIMIT_S = 120.0

MOST_RANKS = 16
"""Of the largest group whose calls are measured; one a core, as more would wait for cores."""

CROWDS = (2, 4)
"""Ranks on a core whose messages are measured."""

Say = Callable[[str], None]


def measure_machine(say: Say = lambda _: None) -> Measured:
    """And keeps it for this machine. `say` is told what is being measured.

    Raises AvialError without a C compiler or MPI, and where two ranks do not answer in time.
    """
    with watched() as watch:
        node = measure_node(len(cores()), say)
        watch.look()
        say("messages between two ranks")
        messages = _messages([_printed(_ranks_here(2), "ping_pong", _LIMIT_S)])
        calls = _calls_here(say)
        say("messages of ranks that share cores")
        crowded = tuple((float(n), _crowded_s(n * len(cores()))) for n in CROWDS)
    pace = max(each.pace for each in watch.probes)
    node = replace(node, team_s=_team_s(len(cores())), crowded_s=crowded)
    found = Measured(node, messages, calls, watch.doubts, pace)
    keep(found)
    return found


def _crowded_s(ranks: int) -> float:
    return float(_printed(_ranks_here(max(2, ranks)), "crowded", _LIMIT_S)["turn_s"])


def _team_s(threads: int) -> float:
    """Until so many have begun together; with one there is nothing to wait for, and no measure."""
    alone = [sys.executable, "-m", "avial_lab.runtime.rank.team_start", str(threads)]
    done = run(alone, limit_s=_LIMIT_S)
    told = json.loads(done.stdout) if not done.returncode else {}
    return float(told.get("team_s") or THREADS_MEET_S)


def _calls_here(say: Say) -> tuple[CollectiveTime, ...]:
    ranks = min(len(cores()), MOST_RANKS)
    if ranks < 2:
        return ()
    say("calls of several ranks: barrier, broadcast, all-gather, all-reduce")
    told = _printed(_ranks_here(ranks), "collective_times", _LIMIT_S)
    return collectives_through(told["collectives"])


def _ranks_here(ranks: int) -> list[str]:
    return [str(tool("mpiexec")), "-n", str(ranks), *mpiexec_options()]


def measure_hosts(hosts: Hosts, say: Say = lambda _: None) -> MeasuredHosts:
    """`hosts.ppn` ranks on each: a core and the memory of each host, and messages by class of link,
    on a host and between two.

    Raises ClusterError where a host cannot be reached, AvialError where ranks do not answer.
    """
    hosts.check()
    say(f"cores and memories of {hosts}, then messages on them and between them")
    arguments = hosts.arguments(hosts.address())
    command = [*hosts.command(), "-n", str(hosts.most), *arguments]
    told = _printed(command, "survey", _HOSTS_LIMIT_S)
    nodes = tuple(_node(host, say) for host in told["hosts"])
    inside, between = (
        _messages(told[where]) if told[where] else None for where in ("inside", "between")
    )
    return MeasuredHosts(nodes, inside, between, collectives_through(told["collectives"]))


def _node(host: dict[str, Any], say: Say) -> Node:
    name, known = host["name"], {key: int(host[key]) for key in ("cores", "memory_bytes")}
    if "node" in host:
        node = node_in(host["node"]).node(name, **known)
    else:
        say(f"{name} could not be measured, and is assumed to be as others are: {host['why']}")
        node = replace(assumed_platform((name,)).nodes[0], **known)
    domains = [(tuple(map(int, own)), int(nbytes)) for own, nbytes in host["domains"]]
    return replace(node, ranks=int(host["ranks"])).divided(domains)


def _messages(pairs: Sequence[dict[str, Any]]) -> MeasuredMessages:
    """Of one class of links: the line through what all its pairs took; the least eager of them."""
    rows = [(int(n), float(s)) for pair in pairs for n, s in pair["one_way"]]
    sizes, seconds = [n for n, _ in rows], [s for _, s in rows]
    return MeasuredMessages(
        *line_through(sizes, seconds), min(int(pair["eager_bytes"]) for pair in pairs)
    )


def _printed(command: Sequence[str], module: str, limit_s: float) -> dict[str, Any]:
    """What rank 0 of that module of `runtime/rank/` says."""
    program = (sys.executable, "-m", f"avial_lab.runtime.rank.{module}")
    done = run((*command, *program), limit_s=limit_s)
    if done.returncode:
        ended = re.search(r"EXIT CODE: (\d+)", done.stdout + done.stderr)  # as MPICH's frame has it
        why = f"one of them ended with code {ended[1]}" if ended else done.complaint
        raise AvialError(
            f"ranks could not exchange messages: {why}",
            hint="avial-lab doctor says what is wrong with MPI",
        )
    return json.loads(done.stdout.strip().splitlines()[-1])
