"""Casts to fewer bits and back that cut nothing off.

Module with arith.index_cast -> the same without those pairs that give back what they took.

MLIR's own canonicalize drops every such pair, also where the number had more bits (llvm#90296,
#90238): hashes and random numbers are computed so. Its patterns are off (`compiler/upstream.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.codegen.loops.value_ranges import range_of
from avial_lab.compiler.ir.operations import operations_in

_CASTS = ("arith.index_cast", "arith.index_castui")


@dataclass(frozen=True)
class FoldIndexCasts:
    """A pair is dropped where the type between has all bits, or the number is known to fit.

    before:  scf.for %k = %c0 to %c9 step %c1 {
               %i = arith.index_cast %k : index to i32  %j = arith.index_cast %i : i32 to index
               memref.store %x, %A[%j] … }
    after:   scf.for %k = %c0 to %c9 step %c1 { … memref.store %x, %A[%k] … }

    What is computed from a loop's variable fits if the loop's bounds do; bounds that come from i32
    fit into i32.
    """

    def __call__(self, module: ir.Operation) -> None:
        for op in operations_in(module):
            if op.name in _CASTS:
                same = _given_back(op)
                if same is not None:
                    first = op.operands[0].owner.operation
                    op.results[0].replace_all_uses_with(same)
                    op.erase()
                    if not any(True for _ in first.results[0].uses):
                        first.erase()

    def __str__(self) -> str:
        return "fold-index-casts"


def _given_back(op: ir.Operation) -> ir.Value | None:
    """The value that `op` is again: what was cast to what it casts."""
    owner = op.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name not in _CASTS:
        return None
    first = owner.operation
    value = first.operands[0]
    if value.type != op.results[0].type:
        return None
    if isinstance(value.type, ir.VectorType):
        return None
    between = op.operands[0].type
    if isinstance(between, ir.IndexType):
        return value if value.type.width <= 64 else None  # extended, and cut again
    if between.width >= 64:
        return value
    signed = op.name == "arith.index_cast"
    low, high = (
        (-1 << between.width - 1, 1 << between.width - 1) if signed else (0, 1 << between.width)
    )
    known = range_of(value)
    return value if known is not None and low <= known[0] and known[1] < high else None
