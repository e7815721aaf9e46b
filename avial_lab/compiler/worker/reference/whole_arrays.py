"""Operations on whole arrays: the sizes they tie to each other, and how much they do.

linalg.generic, memref.view -> dimensions of operands, elements, bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mlir import ir

from avial_lab.compiler.ir.operations import constant_of, itemsize_of
from avial_lab.compiler.ir.views import DYNAMIC, view_chain

Shape = Sequence[int | None]
"""None: a size that is not known."""


def axes_of(op: ir.Operation) -> list[list[tuple[int, int]]]:
    """For each loop of a linalg.generic the operands' dimensions (operand, dimension) it runs
    over.
    """
    maps = _maps(op)
    axes: list[list[tuple[int, int]]] = [[] for _ in range(maps[0].n_dims if maps else 0)]
    for operand, each in enumerate(maps):
        for dim, result in enumerate(each.results):
            if isinstance(result, ir.AffineDimExpr):
                axes[result.position].append((operand, dim))
    return axes


def windows(op: ir.Operation, shapes: Sequence[Shape]) -> list[tuple[int, int, int]]:
    """Operand, dimension and size of what a linalg.generic reads at sums of its loops' variables,
    where the loops run over operands of those shapes.
    """
    maps, last = _maps(op), _last(op, shapes)
    found: list[tuple[int, int, int]] = []
    for place, each in enumerate(maps):
        for dim, result in enumerate(each.results):
            most = None if isinstance(result, ir.AffineDimExpr) else _most(result, last)
            if most is not None and shapes[place]:
                found.append((place, dim, most + 1))
    return found


def _last(op: ir.Operation, shapes: Sequence[Shape]) -> dict[int, int]:
    """The last iteration of those of a linalg.generic's loops that are known."""
    return {
        result.position: size - 1
        for each, shape in zip(_maps(op), shapes, strict=True)
        for result, size in zip(each.results, shape, strict=False)
        if isinstance(result, ir.AffineDimExpr) and size is not None
    }


def _maps(op: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]


def points(function: ir.Operation) -> int:
    """How many iterations operations on whole arrays have, where these have a size."""
    found = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        if op.name == "linalg.generic":
            shapes = [_static_shape(operand.type) for operand in op.operands]
            found += prod(last + 1 for last in _last(op, shapes).values())
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _static_shape(kind: ir.Type) -> Shape:
    if not isinstance(kind, ir.MemRefType):
        return []
    return [None if n == DYNAMIC else n for n in kind.shape]


def _most(expression: ir.AffineExpr, last: Mapping[int, int]) -> int | None:
    """Its value where every loop is at its last iteration; None for what is no sum of multiples."""
    if isinstance(expression, ir.AffineDimExpr):
        return last.get(expression.position)
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = _most(expression.lhs, last), _most(expression.rhs, last)
    if left is None or right is None:
        return None
    return left + right if isinstance(expression, ir.AffineAddExpr) else left * right


def viewed_bytes(function: ir.Operation) -> list[tuple[ir.Value, int]]:
    """How many bytes operations make other arrays of, where that is known."""
    found: list[tuple[ir.Value, int]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.view":
            kind = ir.MemRefType(op.result.type)
            parts = [constant_of(value) for value in list(op.operands)[1:]]
            fixed = [n for n in kind.shape if n != DYNAMIC]
            if None not in parts:
                shift, *sizes = [part or 0 for part in parts]
                nbytes = prod([itemsize_of(kind.element_type), *fixed, *sizes])
                found.append((view_chain(op.operands[0])[-1], shift + nbytes))
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
