"""Elementary functions in loops: computed by code that vectors can have, and not by libm.

Module as it was read -> the same, with the choice on each such operation. `expand-math` writes the
code, much later: until then it is one operation, for people and for the analyses.

Which function it is stands in the text, like the contraction of products, so that a run on any
number of ranks and threads and the sequential reference compute the same bits. Where nothing is
repeated, and in strict programs, it stays libm's.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math

from avial_lab.compiler.codegen.math.functions import FUNCTIONS, LIMITS
from avial_lab.compiler.ir.attributes import CHOSEN, MARKED
from avial_lab.compiler.ir.effects import LOADS
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.passes.arithmetic.contract_fma import is_real, show_bodies

_LOOPS = ("affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.forall", "gpu.launch")

_STAYS_UNKNOWN = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "math.fma",
                  "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "math.absf",
                  "math.sqrt", *FUNCTIONS)  # fmt: skip
"""What MLIR folds to no constant as long as one operand is none."""

_EASY_POWERS = (-1.0, 0.0, 0.5, 1.0, 2.0)
"""Exponents in the text, as of 1 / x, √x and x²."""


@dataclass(frozen=True)
class SelectMath:
    """Mark the functions that are computed again and again: in loops, and in private functions,
    which loops call.

    before:  affine.for %i { %y = math.exp %x : f64 }
    after:   affine.for %i { %y = math.exp %x {avial.expand = "fused"} : f64 }

    MLIR computes a function of a constant itself, with libm. An operand that may become one, as a
    variable of a loop that is written out, gets a product with 1 that MLIR leaves alone:

    before:  %y = math.exp %x                    after:  %same = math.fma %x, 1.0, -0.0
                                                         %y = math.exp %same {avial.expand = …}

    Single and double precision, numbers and vectors of them. Powers that LLVM has less code for
    stay as they are (`_EASY_POWERS`).
    """

    fused: bool = True

    def __call__(self, module: ir.Operation) -> None:
        if MARKED in module.attributes:
            return
        with module.context:
            show_bodies(module, FUNCTIONS)
            how = ir.StringAttr.get("fused" if self.fused else "apart")
            for op in operations_in(module):
                if op.name in FUNCTIONS and _has_code(op) and _is_repeated(op):
                    op.attributes[CHOSEN] = how
                    if not any(map(_stays_unknown, op.operands)):
                        op.operands[0] = _same(op)
            module.attributes[MARKED] = ir.UnitAttr.get()

    def __str__(self) -> str:
        return "select-math" if self.fused else "select-math{fused=false}"


def functions_chosen(module: ir.Module | ir.Operation) -> tuple[str, ...]:
    """The names of those that become code, as in ("exp", "log")."""
    chosen = (op for op in operations_in(module.operation) if CHOSEN in op.attributes)
    return tuple(sorted({op.name.removeprefix("math.") for op in chosen}))


def _has_code(op: ir.Operation) -> bool:
    """Where it stands, and for its type. The question after a limit is for a row of lanes."""
    kind = op.results[0].type
    if op.name == "math.powf" and _number(op.operands[1]) in _EASY_POWERS:
        return False
    if op.name not in LIMITS:
        return is_real(kind)
    is_row = not isinstance(kind, ir.VectorType) or (kind.rank == 1 and not kind.scalable)
    return is_real(kind) and is_row


def _number(value: ir.Value) -> float | None:
    """That it is in the text, in all lanes."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    number = value.owner.operation.attributes["value"]
    if isinstance(number, ir.DenseElementsAttr):
        number = number.get_splat_value() if number.is_splat else None
    return number.value if isinstance(number, ir.FloatAttr) else None


def _is_repeated(op: ir.Operation) -> bool:
    around = parent_of(op)
    while around is not None and around.name != "func.func":
        if around.name in _LOOPS or around.name.startswith("linalg."):
            return True
        around = parent_of(around)
    return around is not None and "sym_visibility" in around.attributes


def _stays_unknown(value: ir.Value, steps: int = 32) -> bool:
    """Whether it is computed from an element of an array that was passed in."""
    if isinstance(value.owner, ir.Block) or not steps:
        return False
    op = value.owner.operation
    if op.name in LOADS:
        return isinstance(op.operands[0].owner, ir.Block)
    return op.name in _STAYS_UNKNOWN and any(_stays_unknown(x, steps - 1) for x in op.operands)


def _same(op: ir.Operation) -> ir.Value:
    """Its first operand again."""
    value = op.operands[0]
    with ir.InsertionPoint(op), op.location:
        return math.fma(value, _all(value.type, 1.0), _all(value.type, -0.0))


def _all(kind: ir.Type, value: float) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, ir.FloatAttr.get(kind, value))
    each = ir.FloatAttr.get(kind.element_type, value)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, each))
