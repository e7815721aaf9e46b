"""`avial-lab search`: which degrees of parallelism are fastest, and what they hold."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from avial_lab.cli.question import model_of, print_to_stderr, read_text
from avial_lab.compiler.frontends.onnx import SUFFIX
from avial_lab.compiler.requests import Source
from avial_lab.core.errors import OptionError
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.planning.model_search import MOST_DEVICES, ModelSearch, SearchRow
from avial_lab.planning.search_explanation import explained
from avial_lab.planning.strategy_search import StrategyRow, model_called, search_strategies
from avial_lab.program.inputs import parse_inputs, parse_numbers
from avial_lab.program.model_search import mlp_source, searched


def search_command(options: argparse.Namespace) -> int:
    path = Path(options.model)
    _check_explained(options)
    if path.suffix in (SUFFIX, ".mlir"):
        return _search_file(path, options)
    if options.batch is None:
        raise OptionError("how many rows has a batch?", hint="--batch 4096")
    if options.costs is None:
        return _search_mlp(options)
    _check_is_of_a_file(options, _NOT_DISTIRS)
    found = search_strategies(
        model_called(options.model),
        _numbers("--batch", options.batch),
        _numbers("--devices", options.devices),
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


_OF_A_FILE = ("loss", "of", "gradient", "update", "numbers", "inputs")
_NOT_DISTIRS = (*_OF_A_FILE, "topology")
_FLAGS = {"numbers": "-D", "inputs": "--in"}


def _check_is_of_a_file(options: argparse.Namespace, names: Sequence[str]) -> None:
    """OptionError for what mlp:LAYERSxWIDTH has not."""
    wrong = next((name for name in names if getattr(options, name)), None)
    if wrong is not None:
        own = " on a machine of its own" if "topology" in names else ""
        raise OptionError(
            f"{_FLAGS.get(wrong, f'--{wrong}')} is for a model in a file",
            hint=f"mlp:LAYERSxWIDTH is trained as microsoft/dist-ir does it{own}",
        )


def _search_mlp(options: argparse.Namespace) -> int:
    """Of one step of its training, by the same costs as models in files."""
    _check_is_of_a_file(options, _OF_A_FILE)
    rows, *more = _numbers("--batch", options.batch)
    if more or not rows:
        raise OptionError(
            f"--batch {options.batch}", hint="one number of rows; --costs distir takes several"
        )
    model = model_called(options.model)
    return _searched(mlp_source(model, rows), str(model), options)


def _check_explained(options: argparse.Namespace) -> None:
    if len(options.explain or ()) > 2:
        raise OptionError("--explain is given three times", hint="it compares two")


def _search_file(path: Path, options: argparse.Namespace) -> int:
    """Of a model in ONNX, or of a function on tensors in MLIR."""
    if options.costs is not None or options.batch is not None:
        raise OptionError(
            "--batch and --costs are for mlp:LAYERSxWIDTH",
            hint="a file says itself how many rows it has, and -D binds dimensions",
        )
    if path.suffix == SUFFIX:
        arrays, scalars = parse_inputs(options.inputs)
        model = model_of(path, arrays, scalars | parse_numbers(options.numbers))
        how = {"optimizer": options.update} if options.update else {}
        source = model.source(options.loss or "", of=options.of, **how)
    else:
        gradient = "+".join((options.gradient or "").split())
        update = options.update or ""
        source = Source(read_text(path), str(path), gradient=gradient, update=update)
    return _searched(source, str(path), options)


def _searched(source: Source, name: str, options: argparse.Namespace) -> int:
    devices, *more = _numbers("--devices", options.devices)
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
        "rows": [_facts_of_file(row) for row in found.rows],
        "best": best and _facts_of_file(best),
        "front": [row.words for row in found.front],
        "left_out": list(found.left_out),
    }
    print(json.dumps(facts, indent=2))
    return 0


def _facts_of_file(row: SearchRow) -> dict[str, Any]:
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


def _numbers(flag: str, text: str) -> list[int]:
    """`1,2,4` as numbers."""
    if not all(each.isdecimal() and len(each) < 10 for each in text.split(",")):
        raise OptionError(f"{flag} {text}", hint=f"write numbers: {flag} 16, or {flag} 1,2,4")
    return [int(each) for each in text.split(",")]


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
