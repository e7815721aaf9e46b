"""`avial-lab search`: which degrees of parallelism are fastest, and what they hold."""

from __future__ import annotations

import argparse
import json
from typing import Any

from avial_lab.core.errors import OptionError
from avial_lab.planning.strategy_search import StrategyRow, model_called, search_strategies


def search_command(options: argparse.Namespace) -> int:
    found = search_strategies(
        model_called(options.model),
        _numbers("--batch", options.batch),
        _numbers("--devices", options.devices),
        memory_bytes=options.memory and options.memory * 1e9,
    )
    if options.json:
        best = found.best
        facts = {
            "model": str(found.model),
            "costs": options.costs,
            "rows": [_facts(row) for row in found.rows],
            "best": best and _facts(best),
        }
        print(json.dumps(facts, indent=2))
        return 0
    print(found)
    return 0


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
