"""`avial-lab search`: which degrees of parallelism are fastest, and what they hold."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from avial_lab.cli.divided_model import (
    OF_A_FILE,
    check_is_of_a_file,
    numbers_of,
    source_of_file,
    source_of_mlp,
)
from avial_lab.cli.question import print_to_stderr
from avial_lab.compiler.frontends.onnx import SUFFIX
from avial_lab.compiler.requests import Source
from avial_lab.core.errors import OptionError
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.planning.model_search import MOST_DEVICES, ModelSearch, SearchRow
from avial_lab.planning.search_explanation import explained
from avial_lab.planning.strategy_search import StrategyRow, model_called, search_strategies
from avial_lab.program.model_search import searched


def search_command(options: argparse.Namespace) -> int:
    _check_explained(options)
    path = Path(options.model)
    if path.suffix in (SUFFIX, ".mlir"):
        if options.costs is not None:
            raise OptionError("--costs is for mlp:LAYERSxWIDTH", hint="leave it out")
        return _searched(source_of_file(path, options), str(path), options)
    if options.costs is None:
        source = source_of_mlp(options.model, options)
        return _searched(source, source.cell, options)
    if options.batch is None:
        raise OptionError("how many rows has a batch?", hint="--batch 4096")
    check_is_of_a_file(options, (*OF_A_FILE, "topology"))
    found = search_strategies(
        model_called(options.model),
        numbers_of("--batch", options.batch),
        numbers_of("--devices", options.devices),
        memory_bytes=options.memory and options.memory * 1e9,
    )
    told = [found.explain(*options.explain)] if options.explain else []
    if options.json:
        best = found.best
        facts = {
            **({"explained": told[0]} if told else {}),
            "model": str(found.model),
            "costs": options.costs,
            "rows": [_facts(row) for row in found.rows],
            "best": best and _facts(best),
        }
        print(json.dumps(facts, indent=2))
        return 0
    print("\n\n".join([str(found), *told]))
    return 0


def _check_explained(options: argparse.Namespace) -> None:
    if len(options.explain or ()) > 2:
        raise OptionError("--explain is given three times", hint="it compares two")


def _searched(source: Source, name: str, options: argparse.Namespace) -> int:
    devices, *more = numbers_of("--devices", options.devices)
    if more or not 1 <= devices <= MOST_DEVICES:
        raise OptionError(f"--devices {options.devices}", hint=f"one number, 1 to {MOST_DEVICES:,}")
    given = topology_called(options.topology) if options.topology else None
    topology = given or Topology.local(devices)
    if devices > topology.ranks:
        raise OptionError(
            f"{options.topology} has {topology.ranks:,} ranks, not {devices:,}",
            hint="ask for fewer devices",
        )
    found: ModelSearch | None = None
    try:
        for each in searched(
            source,
            topology.first(devices),
            memory_bytes=options.memory and options.memory * 1e9,
            simulated=options.simulate,
            progress=print_to_stderr,
        ):
            found = each
    except KeyboardInterrupt:
        if found is not None and not options.json:
            print(f"{found}\nstopped: fewer are simulated than were asked for")
        raise
    assert found is not None
    if not options.json:
        print(found)  # (before a word that is wrong ends it: it took a while)
        if options.explain:
            print(f"\n{explained(found, *options.explain)}")
        return 0
    told = [explained(found, *options.explain)] if options.explain else []
    best = found.best
    facts = {
        **({"explained": told[0]} if told else {}),
        "model": name,
        "devices": devices,
        "rows": [row_facts(row) for row in found.rows],
        "best": best and row_facts(best),
        "front": [row.words for row in found.front],
        "left_out": list(found.left_out),
    }
    print(json.dumps(facts, indent=2))
    return 0


def row_facts(row: SearchRow) -> dict[str, Any]:
    given = row.configuration
    return {
        "d": given.d,
        "h": given.h,
        "p": given.p,
        "k": given.k,
        "schedule": given.schedule,
        "zero": given.zero if given.zero >= 0 else None,
        "recompute": given.recompute,
        "overlap": given.overlap,
        "stages": [list(each) for each in given.inside] or None,
        "parallel": row.words,
        "feasible": row.feasible,
        "reason": row.reason,
        "latency_s": row.predicted_s,
        "peak_bytes": row.predicted_bytes,
        "simulated_s": row.simulated_s,
        "held_bytes": row.held_bytes,
        "moved_bytes": row.moved_bytes,
    }


def _facts(row: StrategyRow) -> dict[str, Any]:
    return {
        "batch": row.batch,
        "d": row.d,
        "h": row.h,
        "p": row.p,
        "k": row.k,
        "feasible": row.feasible,
        "reason": row.reason,
        "latency_s": row.latency_s,
        "peak_bytes": row.peak_bytes,
    }
