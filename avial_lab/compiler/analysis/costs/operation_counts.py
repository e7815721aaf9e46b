"""How much arithmetic and memory traffic a program asks for, before anything is optimised.

Module with loops of known bounds -> operations and bytes, every load and store counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.costs.weights import weight_of
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.operations import integer_of, itemsize_of


@dataclass(frozen=True)
class OperationCounts:
    """Totals; `known` is false where a loop's bounds, or what a call or a linalg operation does,
    are not known here: the totals are then those of the rest.
    """

    flops: int = 0
    integer: int = 0
    loaded: int = 0
    stored: int = 0
    known: bool = True

    def __add__(self, other: OperationCounts) -> OperationCounts:
        return OperationCounts(
            self.flops + other.flops,
            self.integer + other.integer,
            self.loaded + other.loaded,
            self.stored + other.stored,
            self.known and other.known,
        )

    def times(self, count: int) -> OperationCounts:
        return OperationCounts(
            self.flops * count,
            self.integer * count,
            self.loaded * count,
            self.stored * count,
            self.known,
        )


_UNKNOWN = OperationCounts(known=False)


def operation_counts(op: ir.Operation) -> OperationCounts:
    """Of everything in `op`, each branch of a condition counted as if it were taken."""
    inside = OperationCounts()
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inside += operation_counts(view.operation)
    if op.name in _LOOPS:
        count = _LOOPS[op.name](op)
        return inside.times(count) if count is not None else _UNKNOWN
    if op.name in ("scf.while", "func.call", "avial.converge") or op.name.startswith("linalg."):
        return _UNKNOWN
    return inside + own_counts(op)


def own_counts(op: ir.Operation) -> OperationCounts:
    if op.name in LOADS:
        return OperationCounts(loaded=itemsize_of(op.results[0].type))
    if op.name in STORES:
        return OperationCounts(stored=itemsize_of(op.operands[0].type))
    weight = weight_of(op.name)
    if weight.flops:
        return OperationCounts(flops=_elements(op) * weight.flops)
    if weight.integers and str(op.operands[0].type) != "index":
        return OperationCounts(integer=_elements(op) * weight.integers)
    return OperationCounts()


def _elements(op: ir.Operation) -> int:
    count = 1
    kind = op.operands[0].type
    if isinstance(kind, ir.ShapedType) and kind.has_static_shape:
        for extent in kind.shape:
            count *= extent
    return count


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in ("arith.constant", "index.constant"):
        return None
    return integer_of(owner.attributes["value"])


def _trips(bounds: list[int | None]) -> int | None:
    """Of lower, upper and step of each dimension, these three after each other."""
    rank = len(bounds) // 3
    count = 1
    for k in range(rank):
        low, high, step = bounds[k], bounds[rank + k], bounds[2 * rank + k]
        if low is None or high is None or not step:
            return None
        count *= max(0, -(-(high - low) // step))
    return count


def _scf_for(op: ir.Operation) -> int | None:
    return _trips([_constant(value) for value in list(op.operands)[:3]])


def _scf_parallel(op: ir.Operation) -> int | None:
    rank = len(op.regions[0].blocks[0].arguments)
    return _trips([_constant(value) for value in list(op.operands)[: 3 * rank]])


def _affine_for(op: ir.Operation) -> int | None:
    step = ir.IntegerAttr(op.attributes["step"]).value
    bounds = [constant_bound(op.attributes[name]) for name in ("lowerBoundMap", "upperBoundMap")]
    return _trips([*bounds, step])


def _affine_parallel(op: ir.Operation) -> int | None:
    bounds: list[int | None] = []
    for name in ("lowerBoundsMap", "upperBoundsMap"):
        results = ir.AffineMapAttr(op.attributes[name]).value.results
        bounds += [_value(expression) for expression in results]
    steps = [ir.IntegerAttr(step).value for step in ir.ArrayAttr(op.attributes["steps"])]
    return _trips([*bounds, *steps]) if len(bounds) == 2 * len(steps) else None


def constant_bound(attribute: ir.Attribute) -> int | None:
    """The number that a bound is; None for any other."""
    results = ir.AffineMapAttr(attribute).value.results
    return _value(results[0]) if len(results) == 1 else None


def _value(expression: ir.AffineExpr) -> int | None:
    return expression.value if isinstance(expression, ir.AffineConstantExpr) else None


def _launch(op: ir.Operation) -> int | None:
    sizes = [_constant(value) for value in list(op.operands)[-6:]]
    count = 1
    for size in sizes:
        if size is None:
            return None
        count *= size
    return count


_LOOPS = {
    "scf.for": _scf_for,
    "scf.parallel": _scf_parallel,
    "affine.for": _affine_for,
    "affine.parallel": _affine_parallel,
    "gpu.launch": _launch,
}
