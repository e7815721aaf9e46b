"""Gradients of what is read through windows: subscripts that are sums of loops, as i * 2 + k.

Gradient of every element of every window -> that of the tensor that they lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from avial_lab.compiler.ir.locations import span_of
from avial_lab.core.errors import PassError


@dataclass(frozen=True)
class Subscript:
    """The sum of `loops` times `steps`, and `begin`; a loop alone is itself."""

    loops: tuple[int, ...]
    steps: tuple[int, ...]
    begin: int

    @property
    def is_loop(self) -> bool:
        return self.steps == (1,) and not self.begin


def subscripts_of(op: ir.Operation, map_: ir.AffineMap) -> list[Subscript]:
    """PassError for those that are no such sums, and for a loop that stands in two."""
    found = [_subscript(op, each, map_.n_dims) for each in map_.results]
    loops = [loop for each in found for loop in each.loops]
    if len(set(loops)) < len(loops):
        raise _refused(op)
    return found


def _refused(op: ir.Operation) -> PassError:
    return PassError(
        "a subscript that is no sum of loops has no derivative here", span=span_of(op.location)
    )


def _subscript(op: ir.Operation, expression: ir.AffineExpr, count: int) -> Subscript:
    def at(point: Sequence[int]) -> int:
        return _value(op, expression, point)

    begin = at([0] * count)
    steps = [at([int(d == loop) for d in range(count)]) - begin for loop in range(count)]
    loops = [loop for loop in range(count) if steps[loop]]
    if not loops or begin < 0 or min(steps) < 0:
        raise _refused(op)
    return Subscript(tuple(loops), tuple(steps[loop] for loop in loops), begin)


def _value(op: ir.Operation, expression: ir.AffineExpr, point: Sequence[int]) -> int:
    if isinstance(expression, ir.AffineDimExpr):
        return point[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        raise _refused(op)
    both = ir.AffineBinaryExpr(expression)
    a, b = _value(op, both.lhs, point), _value(op, both.rhs, point)
    return a + b if isinstance(expression, ir.AffineAddExpr) else a * b


def from_windows(
    shares: ir.Value, order: Sequence[int], subscripts: Sequence[Subscript], source: ir.Type
) -> ir.Value:
    """The sums of the shares of each element: of those at j with j = s i + t k + c.

    `shares` has the dimensions `order`, loops. Along the first loop of each subscript it is spread
    out by its step, among zeros, and then read at j - t k: other loops are reductions.

        shares  a b c     s = 2, t = 1, K = 2:   0 a 0 b 0 c 0    at j + 1 - k
    """
    extents = dict(zip(order, shares.type.shape, strict=True))
    spread, before, shape = [1] * len(order), [0] * len(order), list(shares.type.shape)
    for k, each in enumerate(subscripts):
        first, *others = zip(each.loops, each.steps, strict=True)
        loop, step = first
        low = each.begin + sum(t * (extents[o] - 1) for o, t in others)
        size = max((extents[loop] - 1) * step + 1, source.shape[k] - each.begin)
        at = order.index(loop)
        spread[at], before[at], shape[at] = step, low, low + size
    moved = _among_zeros(shares, before, spread, shape)
    return _summed(moved, order, subscripts, source)


def _among_zeros(
    value: ir.Value, before: Sequence[int], steps: Sequence[int], shape: Sequence[int]
) -> ir.Value:
    if list(shape) == list(value.type.shape):
        return value
    whole = _zeros(shape, value.type.element_type)
    return ir.Operation.create(
        "tensor.insert_slice",
        [whole.type],
        [value, whole],
        {
            "static_offsets": ir.DenseI64ArrayAttr.get(list(before)),
            "static_sizes": ir.DenseI64ArrayAttr.get(list(value.type.shape)),
            "static_strides": ir.DenseI64ArrayAttr.get(list(steps)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0]),
        },
    ).result


def _zeros(shape: Sequence[int], element: ir.Type) -> ir.Value:
    zero = arith.constant(element, ir.FloatAttr.get(element, 0.0))
    return linalg.fill(zero, outs=[tensor.EmptyOp(list(shape), element).result])


def _summed(
    moved: ir.Value, order: Sequence[int], subscripts: Sequence[Subscript], source: ir.Type
) -> ir.Value:
    """Loops: the dimensions of the result, then what is summed over."""
    rank = len(subscripts)
    others = [loop for each in subscripts for loop in each.loops[1:]]
    number = {loop: rank + k for k, loop in enumerate(others)}
    extents = dict(zip(order, moved.type.shape, strict=True))
    dims: dict[int, ir.AffineExpr] = {
        loop: ir.AffineExpr.get_dim(at) for loop, at in number.items()
    }
    for k, each in enumerate(subscripts):
        place: ir.AffineExpr = ir.AffineExpr.get_dim(k)
        for loop, step in zip(each.loops[1:], each.steps[1:], strict=True):
            back = ir.AffineExpr.get_constant(step * (extents[loop] - 1))
            place = place - dims[loop] * step + back
        dims[each.loops[0]] = place
    count = rank + len(others)
    read = ir.AffineMap.get(count, 0, [dims[loop] for loop in order])
    written = ir.AffineMap.get(count, 0, [ir.AffineExpr.get_dim(k) for k in range(rank)])
    kinds = ["parallel"] * rank + ["reduction"] * len(others)
    element = source.element_type
    new = ir.Operation.create(
        "linalg.generic",
        [source],
        [moved, _zeros(source.shape, element)],
        {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (read, written)]),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    here = [new.location] * 2
    block = ir.Block.create_at_start(new.regions[0], [element, element], here)
    with ir.InsertionPoint(block):
        share, total = block.arguments
        ir.Operation.create("linalg.yield", [], [arith.addf(total, share) if others else share])
    return new.result
