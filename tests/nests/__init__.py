"""Random functions of loops over arrays: as MLIR text, and what they compute in plain Python.

A function is a tree of loops, conditions and statements. All accesses are in bounds by
construction: each array is made as large as its subscripts, over all values that the loops around
can have, ask for.

    function = draw(functions())
    function.text, function.arrays, function.scalars        what to compile and call
    function.expected()                                     what its arrays then hold
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.nests.drawing import functions
from tests.nests.running import MOST_STEPS, RandomFunction

__all__ = ["MOST_STEPS", "WHOLE_PROGRAMS", "RandomFunction", "functions"]

WHOLE_PROGRAMS = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                           HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip
"""Of tests that draw a program, compile and run it."""
