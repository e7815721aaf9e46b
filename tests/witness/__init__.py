"""A second witness: a small interpreter of program texts, for tests.

It parses with MLIR's bindings, runs no pass, folds nothing, and shares no code with what it judges:
of avial_lab only the reader of the short notation, which gives MLIR text.

`interpret(text, arrays)` -> the arrays afterwards, by name. A program without a meaning (out of
bounds, a flag that does not hold, …) raises `Undefined`; what it does not know, `Unsupported`.
"""

from __future__ import annotations

from tests.witness.reading import interpret
from tests.witness.values import Undefined, Unsupported, WitnessError

__all__ = ["Undefined", "Unsupported", "WitnessError", "interpret"]
