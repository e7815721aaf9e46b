"""Loops that never run go before anything looks at their bounds.

Module -> module without affine loops whose constant bounds leave no iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mlir import ir

from avial_lab.compiler.analysis.accesses.view_maps import defining, extents_of
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.indices import evaluate
from avial_lab.compiler.ir.nesting import inits_of, parent_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.core.buffers import UNBOUNDED

MOST_STEPS = 64
"""Operations that are followed to find a constant."""


@dataclass(frozen=True)
class EmptyLoops:
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
        return "empty-loops"


def _never_runs(op: ir.Operation) -> bool:
    lows, highs = ([end for end in ends if end is not None] for ends in known_ends(op))
    return bool(lows) and bool(highs) and max(lows) >= min(highs)


def known_ends(
    loop: ir.Operation, given: Mapping[ir.Value, int] = MappingProxyType({})
) -> tuple[list[int | None], list[int | None]]:
    """What an affine loop starts from, and what it stays below, as far as they are numbers, or are
    with those values.
    """
    low, high, _ = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    lows = _ends(loop.attributes["lowerBoundMap"].value, operands[:low], given)
    highs = _ends(loop.attributes["upperBoundMap"].value, operands[low : low + high], given)
    return lows, highs


def _inside_another(op: ir.Operation, others: Sequence[ir.Operation]) -> bool:
    around = parent_of(op)
    while around is not None:
        if around in others:
            return True
        around = parent_of(around)
    return False


def _ends(
    ends: ir.AffineMap, operands: Sequence[ir.Value], given: Mapping[ir.Value, int]
) -> list[int | None]:
    """The map's results, as far as they are known."""
    values = [_constant(operand, MOST_STEPS, given) for operand in operands]
    forms = [None if value is None else Affine(value) for value in values]
    found = [evaluate(expr, forms[: ends.n_dims], forms[ends.n_dims :]) for expr in ends.results]
    return [form.constant if form is not None and form.is_constant else None for form in found]


def _constant(value: ir.Value, steps: int, given: Mapping[ir.Value, int]) -> int | None:
    if value in given:
        return given[value]
    op = defining(value)
    if op is None or steps <= 0:
        return None
    if op.name == "arith.constant":
        number = op.attributes["value"]
        return number.value if isinstance(number, ir.IntegerAttr) else None
    if op.name == "arith.index_cast":
        return _fitting(_constant(op.operands[0], steps - 1, given), op.results[0].type)
    if op.name == "memref.dim":
        return _extent(op, steps, given)
    if op.name == "affine.apply":
        return _ends(op.attributes["map"].value, list(op.operands), given)[0]
    if op.name not in _ARITHMETIC:
        return None
    left, right = (_constant(operand, steps // 2, given) for operand in op.operands)
    if left is None or right is None:
        return None
    return _fitting(_ARITHMETIC[op.name](left, right), op.results[0].type)


def _fitting(number: int | None, kind: ir.Type) -> int | None:
    """None where it would go round the end of that type."""
    if number is None or not isinstance(kind, ir.IntegerType):
        return number
    return number if -(1 << kind.width - 1) <= number < 1 << kind.width - 1 else None


def _extent(op: ir.Operation, steps: int, given: Mapping[ir.Value, int]) -> int | None:
    kind, dimension = op.operands[0].type, _constant(op.operands[1], steps - 1, given)
    if not isinstance(kind, ir.MemRefType) or dimension is None or dimension >= kind.rank:
        return None
    extent = extents_of(op.operands[0])[dimension]
    return None if extent == UNBOUNDED else extent


_ARITHMETIC = {
    "arith.addi": int.__add__,
    "arith.subi": int.__sub__,
    "arith.muli": int.__mul__,
}
