"""From where to where a whole number can be, as far as its own operations say.

Value -> (least, greatest), or None where nothing is known: as fast as it can be told, without isl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from avial_lab.compiler.ir.operations import constant_of

Range = tuple[int, int]

_WORD = (-(1 << 63), (1 << 63) - 1)
_DEPTH = 12
"""Operations that are followed back; a chain is longer only where nobody asks about it."""

_MOST_ELEMENTS = 1 << 47
"""Of an array along a dimension: there are no more addresses."""


def range_of(value: ir.Value, depth: int = _DEPTH) -> Range | None:
    """Signed; that of its type at least, where that has fewer bits than an index."""
    if isinstance(value.type, ir.VectorType | ir.FloatType) or not depth:
        return None
    known = _of_owner(value, depth - 1)
    limits = _limits(value.type)
    if known is not None and limits[0] <= known[0] and known[1] <= limits[1]:
        return known
    return limits if limits != _WORD else None


def _limits(kind: ir.Type) -> Range:
    if not isinstance(kind, ir.IntegerType) or kind.width >= 64:
        return _WORD
    return -(1 << kind.width - 1), (1 << kind.width - 1) - 1


def _of_owner(value: ir.Value, depth: int) -> Range | None:
    if isinstance(value.owner, ir.Block):
        return _of_variable(value, depth)
    number = constant_of(value)
    if number is not None:
        return number, number
    compute = _RANGES.get(value.owner.operation.name)
    return compute(value.owner.operation, depth) if compute is not None else None


def _of_variable(value: ir.Value, depth: int) -> Range | None:
    """Of a loop's own variable."""
    around = value.owner.owner
    loop, number = around.operation, ir.BlockArgument(value).arg_number
    if loop.name == "affine.for" and number == 0:
        return _between(*_affine_bounds(loop, depth))
    dimensions = {"scf.for": 1, "scf.parallel": len(value.owner.arguments)}.get(loop.name, 0)
    if number >= dimensions or "unsignedCmp" in loop.attributes:
        return None
    low, high = (range_of(loop.operands[number + k * dimensions], depth) for k in (0, 1))
    return _between(low, high)


def _between(low: Range | None, high: Range | None) -> Range | None:
    """Half-open; of a loop that never runs, whatever there is."""
    if low is None or high is None:
        return None
    return low[0], max(low[0], high[1] - 1)


def _affine_bounds(loop: ir.Operation, depth: int) -> tuple[Range | None, Range | None]:
    count = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    lows = _of_map(loop.attributes["lowerBoundMap"], operands[: count[0]], depth)
    highs = _of_map(loop.attributes["upperBoundMap"], operands[count[0] : sum(count[:2])], depth)
    return _extreme(lows, max), _extreme(highs, min)


def _of_map(
    attribute: ir.Attribute, operands: Sequence[ir.Value], depth: int
) -> list[Range | None]:
    form = ir.AffineMapAttr(attribute).value
    given = [range_of(operand, depth) for operand in operands]
    return [_of_form(each, given[: form.n_dims], given[form.n_dims :]) for each in form.results]


def _of_form(
    form: ir.AffineExpr, dims: Sequence[Range | None], symbols: Sequence[Range | None]
) -> Range | None:
    if isinstance(form, ir.AffineConstantExpr):
        return form.value, form.value
    if isinstance(form, ir.AffineDimExpr):
        return dims[form.position]
    if isinstance(form, ir.AffineSymbolExpr):
        return symbols[form.position]
    left, right = _of_form(form.lhs, dims, symbols), _of_form(form.rhs, dims, symbols)
    if left is None or right is None:
        return None
    if isinstance(form, ir.AffineAddExpr | ir.AffineMulExpr):
        found = (_sum if isinstance(form, ir.AffineAddExpr) else _product)(left, right)
        return found if _WORD[0] <= found[0] and found[1] <= _WORD[1] else None
    if right[0] != right[1] or right[0] <= 0:
        return None
    by = right[0]
    if isinstance(form, ir.AffineModExpr):
        return 0, by - 1
    if isinstance(form, ir.AffineFloorDivExpr):
        return left[0] // by, left[1] // by
    return -(-left[0] // by), -(-left[1] // by)


def _extreme(ranges: Sequence[Range | None], pick: Callable[[list[int]], int]) -> Range | None:
    known = [each for each in ranges if each is not None]
    if not known or len(known) < len(ranges):
        return None
    return pick([low for low, _ in known]), pick([high for _, high in known])


def _sum(left: Range, right: Range) -> Range:
    return left[0] + right[0], left[1] + right[1]


def _product(left: Range, right: Range) -> Range:
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


# -- operations ------------------------------------------------------------------------------------


Compute = Callable[[ir.Operation, int], "Range | None"]


def _of_two(combine: Callable[[Range, Range], Range | None]) -> Compute:
    def compute(op: ir.Operation, depth: int) -> Range | None:
        left, right = (range_of(operand, depth) for operand in op.operands)
        return combine(left, right) if left is not None and right is not None else None

    return compute


def _same(op: ir.Operation, depth: int) -> Range | None:
    return range_of(op.operands[0], depth)


def _extended(op: ir.Operation, depth: int) -> Range | None:
    """By zeros, from fewer bits; or cut."""
    known, kind = range_of(op.operands[0], depth), op.operands[0].type
    if known is not None and known[0] >= 0:
        return known
    if isinstance(kind, ir.IntegerType) and kind.width < 64:
        return 0, (1 << kind.width) - 1
    return None


def _rest(left: Range, right: Range) -> Range | None:
    if right[0] != right[1] or right[0] <= 0:
        return None
    most = right[0] - 1
    return (0 if left[0] >= 0 else -most), (most if left[1] > 0 else 0)


def _unsigned_rest(left: Range, right: Range) -> Range | None:
    return (0, right[0] - 1) if right[0] == right[1] and right[0] > 0 else None


def _quotient(left: Range, right: Range) -> Range | None:
    if right[0] != right[1] or right[0] <= 0:
        return None
    return _towards_zero(left[0], right[0]), _towards_zero(left[1], right[0])


def _towards_zero(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def _masked(left: Range, right: Range) -> Range | None:
    positive = [each[1] for each in (left, right) if each[0] >= 0]
    return (0, min(positive)) if positive else None


def _chosen(op: ir.Operation, depth: int) -> Range | None:
    ranges = [range_of(op.operands[k], depth) for k in (1, 2)]
    known = [each for each in ranges if each is not None]
    if len(known) < 2:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _of_apply(op: ir.Operation, depth: int) -> Range | None:
    return _of_map(op.attributes["map"], list(op.operands), depth)[0]


_RANGES: dict[str, Compute] = {
    "affine.apply": _of_apply,
    "affine.max": lambda op, depth: _extreme(
        _of_map(op.attributes["map"], list(op.operands), depth), max
    ),
    "affine.min": lambda op, depth: _extreme(
        _of_map(op.attributes["map"], list(op.operands), depth), min
    ),
    "arith.addi": _of_two(_sum),
    "arith.andi": _of_two(_masked),
    "arith.divsi": _of_two(_quotient),
    "arith.extsi": _same,
    "arith.extui": _extended,
    "arith.index_cast": _same,
    "arith.index_castui": _extended,
    "arith.maxsi": _of_two(lambda a, b: (max(a[0], b[0]), max(a[1], b[1]))),
    "arith.minsi": _of_two(lambda a, b: (min(a[0], b[0]), min(a[1], b[1]))),
    "arith.muli": _of_two(_product),
    "arith.remsi": _of_two(_rest),
    "arith.remui": _of_two(_unsigned_rest),
    "arith.select": _chosen,
    "arith.subi": _of_two(lambda a, b: (a[0] - b[1], a[1] - b[0])),
    "memref.dim": lambda op, depth: (0, _MOST_ELEMENTS),
}
