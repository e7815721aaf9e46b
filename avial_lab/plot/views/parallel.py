"""What the page of a model's divisions shows: the search's rows, and the one that is picked.

ModelSearch, Foreseen -> JSON for parallel.js.
"""

from __future__ import annotations

from typing import Any

from avial_lab.core.words import count, format_bytes, format_seconds
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.model_search import ModelSearch, SearchRow
from avial_lab.plot.run.pipeline import memory_table, pipeline_svg

Json = dict[str, Any]

COLUMNS = ("--parallel", "predicted", "simulated", "a device holds", "moved", "run", "")
MOST_ROWS, MOST_INFEASIBLE = 200, 30


def parallel_data(found: ModelSearch, title: str) -> Json:
    """All is text. The best rows, then those that are infeasible, with the reason in place of
    times; where there are many, one for each reason.
    """
    infeasible = [row for row in found.rows if not row.feasible]
    if len(infeasible) > MOST_INFEASIBLE:
        infeasible = list({row.reason: row for row in reversed(infeasible)}.values())[::-1]
    rows = [*found.ranked[:MOST_ROWS], *infeasible[:MOST_INFEASIBLE]]
    told = f"{count(len(found.rows), 'configuration')} on {count(found.devices, 'device')}"
    over = len(found.rows) - len(found.ranked)
    hidden = len(found.rows) - len(rows)
    more = f"; {count(hidden, 'more row')} not shown" if hidden else ""
    return {
        "title": f"{title}: {told}, {over:,} infeasible{more}",
        "columns": COLUMNS,
        "rows": [row_data(row, found) for row in rows],
    }


def row_data(row: SearchRow, found: ModelSearch, *, ran_s: float | None = None) -> Json:
    def time(seconds: float | None) -> str:
        return "" if seconds is None else format_seconds(seconds)

    moved = "" if row.moved_bytes is None else format_bytes(row.moved_bytes)
    note = row.reason or ("front" if row in found.front else "")
    held = format_bytes(row.nbytes) if row.predicted_bytes is not None else ""
    return {
        "words": row.words,
        "cells": [time(row.predicted_s), time(row.simulated_s), held, moved, time(ran_s), note],
        "feasible": row.feasible,
        "seconds": row.seconds if row.predicted_s is not None else None,
        "nbytes": row.nbytes,
        "simulated": row.simulated_s is not None,
    }


def picked_data(foreseen: Foreseen, words: str) -> Json:
    """The picture is made and escaped here."""
    return {
        "picture": pipeline_svg(foreseen, title=words),
        "table": memory_table(foreseen).to_html(),
        "told": list(foreseen.told),
    }
