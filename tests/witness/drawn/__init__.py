"""Random programs as texts, of the kinds where rewrites go wrong: integers of every width, casts,
control flow, views, tensors.

`functions()` and `schedules()` are hypothesis strategies of `Drawn`; none of the programs is
undefined (ranges of values are followed while they are drawn).
"""

from __future__ import annotations

from tests.witness.drawn.programs import Drawn, functions, schedules

__all__ = ["Drawn", "functions", "schedules"]
