"""Where in the cell an operation was written.

MLIR location -> CellSpan. Locations are made as `loc("x"("In [4]":7:3))`: the value's name around
the place, so that every later stage can print the user's names and every error can show the user's
line.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.core.errors import CellSpan


def span_of(location: ir.Location) -> CellSpan | None:
    """The place behind `location`, without its text; None where an operation comes from no cell.

    Whoever holds the cell's text fills it in (`dataclasses.replace(span, text=…)`).
    """
    if location.is_a_name():
        return span_of(location.child_loc)
    if location.is_a_fused():
        return next((span for part in location.locations if (span := span_of(part))), None)
    if location.is_a_callsite():
        return span_of(location.callee)
    if location.is_a_file():
        return CellSpan(location.filename, "", location.start_line, location.start_col)
    return None


def name_of(location: ir.Location) -> str | None:
    """The name in `loc("x"(…))`, without the %; None where there is none."""
    return location.name_str if location.is_a_name() else None
