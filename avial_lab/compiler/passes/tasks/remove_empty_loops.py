"""Loops that never run go before anything looks at their bounds.

Module -> module without affine loops whose constant bounds leave no iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.ir.nesting import inits_of, parent_of
from avial_lab.compiler.ir.operations import operations_named


@dataclass(frozen=True)
class RemoveEmptyLoops:
    """Erase them, outer before inner.

    before:  affine.for %i = 3 to 2 { affine.for %j = 0 to min(%i + 2, 1) { … } }
    after:   nothing

    MLIR 22's canonicalize ends the process at such an inner loop: each of the two ends is needless
    beside the other for an %i that is at least 3 and below 2, and it drops both.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            empty = [op for op in operations_named(module, "affine.for") if _never_runs(op)]
            for op in [op for op in empty if not _inside_another(op, empty)]:
                for result, start in zip(op.results, inits_of(op), strict=True):
                    result.replace_all_uses_with(start)
                op.erase()

    def __str__(self) -> str:
        return "remove-empty-loops"


def _never_runs(op: ir.Operation) -> bool:
    lows, highs = ([end for end in ends if end is not None] for ends in known_ends(op))
    return bool(lows) and bool(highs) and max(lows) >= min(highs)


def _inside_another(op: ir.Operation, others: Sequence[ir.Operation]) -> bool:
    around = parent_of(op)
    while around is not None:
        if around in others:
            return True
        around = parent_of(around)
    return False
