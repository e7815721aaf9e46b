"""Linear algebra with its independent iterations outside: their loops can be divided.

Module with linalg.generic -> the same, parallel iterators before reductions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in


@dataclass(frozen=True)
class ParallelFirst:
    """Reorder the iterators; each element of the outputs still sees its terms in the same order.

    before:  iterator_types = ["reduction", "parallel"], maps (d0, d1) -> (d0, d1), (d1)
    after:   iterator_types = ["parallel", "reduction"], maps (d0, d1) -> (d1, d0), (d0)

    Only where the parallel iterators' loops may be exchanged with the others: no array is both an
    input and an output, and the outputs' maps hold no reduction. (Named operations are made generic
    before.)
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in list(operations_in(module)):
                if op.name == "linalg.generic":
                    _reorder(op)

    def __str__(self) -> str:
        return "parallel-first"


def _reorder(op: ir.Operation) -> None:
    kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
    order = sorted(range(len(kinds)), key=lambda k: "parallel" not in kinds[k])
    if order == list(range(len(kinds))) or not _may_reorder(op, kinds):
        return
    place = {old: new for new, old in enumerate(order)}
    maps = [ir.AffineMapAttr(item).value for item in ir.ArrayAttr(op.attributes["indexing_maps"])]
    op.attributes["iterator_types"] = ir.ArrayAttr.get(
        [ir.ArrayAttr(op.attributes["iterator_types"])[k] for k in order]
    )
    op.attributes["indexing_maps"] = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(_renamed(each, place)) for each in maps]
    )
    for inner in operations_in(op):
        if inner.name == "linalg.index":
            number = ir.IntegerAttr(inner.attributes["dim"])
            inner.attributes["dim"] = ir.IntegerAttr.get(number.type, place[number.value])


def _may_reorder(op: ir.Operation, kinds: Sequence[str]) -> bool:
    inputs = next(iter(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])))
    operands = list(op.operands)
    if any(operand in operands[:inputs] for operand in operands[inputs:]):
        return False
    maps = [ir.AffineMapAttr(item).value for item in ir.ArrayAttr(op.attributes["indexing_maps"])]
    parallel = {ir.AffineExpr.get_dim(k) for k, kind in enumerate(kinds) if "parallel" in kind}
    # Each output element belongs to one point of the parallel iterators.
    return all(
        each.is_projected_permutation and set(each.results) == parallel for each in maps[inputs:]
    )


def _renamed(each: ir.AffineMap, place: dict[int, int]) -> ir.AffineMap:
    """The map for the iterators in their new places."""
    count = each.n_dims
    names = ir.AffineMap.get(count, 0, [ir.AffineExpr.get_dim(place[k]) for k in range(count)])
    return ir.AffineMap.get(count, 0, [expr.compose(names) for expr in each.results])
