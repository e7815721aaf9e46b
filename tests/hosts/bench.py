"""How fast clusters over hosts are, each figure beside its goal.

`python -m tests.hosts.bench [FILE]` -> a table; into FILE, as `bench --self` writes it.

The hosts are this machine's: four and their client share its cores. Links are as slow as is said,
at the client; those without a rate have the delay of a virtual switch.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.self_bench import Figure, self_facts
from tests.hosts.conftest import Client, client_on
from tests.hosts.rig import Rig, hosts
from tests.hosts.test_runs import NODES

STARTS, TRIPS = 3, 30
LINKS = {"400mbit": 50e6, "1gbit": 125e6}
"""As `tc` names them: bytes a second."""

MIB = 1024
RANKS = 64


def figures(rig: Rig) -> Iterator[Figure]:
    with client_on(rig) as client:
        client.ask("local 3")  # its imports are over
        here = client.ask(f"trips {TRIPS}")
        starts = [restart_s(client, f"start {NODES} 1") for _ in range(STARTS)]
        yield Figure("a start on 3 hosts", statistics.median(starts), "s", 10)
        apart = client.ask(f"trips {TRIPS}")
        over, call_ms = apart["run_s"] - here["run_s"], apart["call_s"] * 1e3
        words = f"an empty run on 3 hosts over one here ({here['run_s'] * 1e3:.1f} ms)"
        words += f", in empty round trips there ({call_ms:.1f} ms)"
        yield Figure(words, over / apart["call_s"], "×", 2)
        names = ",".join(node.name for node in rig.nodes)
        took_s = restart_s(client, f"start {names} {RANKS // len(rig.nodes)}")
        yield Figure(f"a start of {RANKS} engines on one controller", took_s, "s", 60)
        yield Figure("an empty run on them", client.ask(f"trips {TRIPS // 3}")["run_s"], "s", 0.5)
        client.ask("stop")
    for rate, bytes_per_s in LINKS.items():
        yield carried(rig, rate, bytes_per_s)


def carried(rig: Rig, rate: str, bytes_per_s: float) -> Figure:
    """Of random numbers, which nothing makes smaller."""
    rig.login.slow_down(rate)
    with client_on(rig) as client:
        client.ask(f"start {NODES} 1")
        reached = client.ask(f"carry {MIB}")["bytes_per_s"]
        client.ask("stop")
    rig.login.run("tc", "qdisc", "del", "dev", "eth0", "root")
    words = f"1 GiB to 3 hosts from a client with {rate}/s, over what that link takes"
    return Figure(words, bytes_per_s / reached, "×", 1.25)


def restart_s(client: Client, line: str) -> float:
    """Seconds that the next cluster takes to start."""
    client.ask("stop")
    began = time.monotonic()
    started = client.ask(line)
    if "places" not in started:
        raise SystemExit(started["error"])
    return time.monotonic() - began


def main(arguments: Sequence[str]) -> int:
    measured: list[Figure] = []
    with hosts(4) as rig:
        for figure in figures(rig):
            sys.stdout.write(f"{figure}\n")
            sys.stdout.flush()
            measured.append(figure)
    if arguments:
        made = made_by(()) | {"command": f"python -m tests.hosts.bench {Path(arguments[0]).name}"}
        facts = self_facts(measured, made) | {"title": "Several hosts"}
        Path(arguments[0]).write_text(json.dumps(facts, indent=2) + "\n")
    return 0 if all(figure.met for figure in measured) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
