"""Where loops begin and end, as far as that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.indices import evaluate
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.operations import integer_of
from avial_lab.compiler.ir.views import defining, extents_of
from avial_lab.core.buffers import UNBOUNDED
from avial_lab.core.regions import iterations

MOST_ITERATIONS = 5
"""Neighbours along one dimension, as stencils have them."""

FOR = "affine.for"

MOST_STEPS = 64
"""Operations that are followed to find a constant."""

_ARITHMETIC = {
    "arith.addi": int.__add__,
    "arith.subi": int.__sub__,
    "arith.muli": int.__mul__,
}


def steps_of(loop: ir.Operation, most: int = MOST_ITERATIONS, least: int = 1) -> range | None:
    """The values of its variable, if they are known and from `least` to `most`."""
    if loop.name != "affine.for":
        return None
    lows, highs = known_ends(loop)
    low, high = (ends[0] if len(ends) == 1 else None for ends in (lows, highs))
    if low is None or high is None:
        return None
    step = ir.IntegerAttr(loop.attributes["step"]).value
    return range(low, high, step) if least <= iterations(low, high, step) <= most else None


def extent_of(scop: Scop, loop: ir.Operation) -> tuple[int, int] | None:
    """The first value of the loop's variable and how many there are to its last, where that is
    known for all that is not.
    """
    if loop.name != FOR:
        return None
    (own,) = scop.loops_of(loop)
    known = scop.iterations.get(own)
    if known is None:
        return None

    def ends() -> tuple[int, int] | None:
        values = known.project_out_all_params()
        low, high = values.dim_min_val(own.depth), values.dim_max_val(own.depth)
        if not (low.is_int() and high.is_int()):
            return None
        return low.to_python(), high.to_python() - low.to_python() + 1

    return limited(ends, lambda: None)


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
        return integer_of(op.attributes["value"])
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
