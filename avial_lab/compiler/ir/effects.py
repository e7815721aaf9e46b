"""What may stand between tasks, and what a pass asks of an operation.

Operation -> facts about it. Read only. (`dialects.program` knows the function and its tasks.)
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.core.errors import PassError

LOADS, STORES = ("affine.load", "memref.load"), ("affine.store", "memref.store")
ACCESSES = (*LOADS, *STORES)
"""To one element: the array is a load's first operand, and a store's second."""

PURE_BETWEEN_TASKS = frozenset(
    {
        "affine.apply",
        "affine.max",
        "affine.min",
        "builtin.unrealized_conversion_cast",
        "memref.cast",
        "memref.collapse_shape",
        "memref.dim",
        "memref.expand_shape",
        "memref.extract_strided_metadata",
        "memref.get_global",
        "memref.memory_space_cast",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.transpose",
        "memref.view",
        "ub.poison",
        "complex.constant",
        "complex.create",
    }
)
"""Operations without effect that may stand between tasks, besides all of `arith`, `math` and
`index`.
"""


def is_pure(op: ir.Operation) -> bool:
    """Whether `op` has no effect, so that it may stand between tasks and be repeated inside
    them.
    """
    return op.name in PURE_BETWEEN_TASKS or op.name.startswith(("arith.", "index.", "math."))


def symbols_in(module: ir.Operation) -> set[str]:
    """The names of functions and globals."""
    return {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.regions[0].blocks[0].operations
        if "sym_name" in op.attributes
    }


def text_attribute(op: ir.Operation, name: str) -> str:
    """The string attribute `name` of `op`; a broken precondition where it is missing."""
    if name not in op.attributes:
        raise PassError(f"{op.name} has no attribute '{name}'", span=span_of(op.location))
    return ir.StringAttr(op.attributes[name]).value
