"""Loops are cut where one iteration alone keeps the others from being split.

Function of loops -> the same values in the same order, computed by more loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.parallelism.index_set_splits import cut
from avial_lab.compiler.analysis.parallelism.partition import unsplit
from avial_lab.compiler.analysis.parallelism.splits import LoopNest
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.dialects.avial import rebuilt_with
from avial_lab.compiler.ir.operations import operations_in

MOST = 16
"""Loops of one function that are cut at most."""


@dataclass(frozen=True)
class SplitIndexSets:
    """Three loops of one: before, at and after the iteration that the others depend on.

    before:  affine.for %i = 0 to %n { row i of %P from row %k }
    after:   affine.for %i = 0 to min(%n, %k) { … }
             affine.for %i = max(0, %k) to min(%n, %k + 1) { … }
             affine.for %i = max(0, %k + 1) to %n { … }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in [op for op in operations_in(module) if op.name == "func.func"]:
                if [len(region.blocks) for region in op.regions] == [1]:
                    _cut_all(op)

    def __str__(self) -> str:
        return "split-index-sets"


def _cut_all(function: ir.Operation) -> None:
    for _ in range(MOST):
        if not _cut_one(function):
            return


def _cut_one(function: ir.Operation) -> bool:
    """Cut the first loop that can be; whether there was one."""
    for nest, splitter in unsplit(function):
        found = cut(nest, splitter)
        values = None if found is None else _values(found, nest, splitter.scop)
        if found is not None and values is not None:
            _cut(nest.op, found.constant, values)
            return True
    return False


def _values(form: Affine, nest: LoopNest, scop: Scop) -> list[tuple[int, ir.Value]] | None:
    """The terms of the form, each a factor and an index; None where one cannot be used there."""
    loops = {loop.name: loop for loop in nest.statements[0].loops[: nest.around]}
    found: list[tuple[int, ir.Value]] = []
    for name, factor in form.terms:
        loop = loops.get(name)
        value = scop.parameters.get(name) if loop is None else loop.variable
        if value is None or not isinstance(value.type, ir.IndexType):
            return None
        # An affine bound holds variables of affine loops, and what no loop computes.
        if nest.op.name == "affine.for" and loop is not None and not _is_affine(loop.op):
            return None
        found.append((factor, value))
    return found


def _is_affine(op: ir.Operation) -> bool:
    return op.name.startswith("affine.")


def _cut(loop: ir.Operation, constant: int, values: list[tuple[int, ir.Value]]) -> None:
    with loop.location:
        with ir.InsertionPoint(loop):
            at = _computed(constant, values)
            past = _computed(constant + 1, values)
        _narrowed(loop, None, at)
        _narrowed(loop, at, past)
        _narrowed(loop, past, None)
    loop.erase()


def _computed(constant: int, values: list[tuple[int, ir.Value]]) -> ir.Value:
    form: ir.AffineExpr = ir.AffineExpr.get_constant(constant)
    for k, (factor, _) in enumerate(values):
        form = ir.AffineExpr.get_add(
            form,
            ir.AffineExpr.get_mul(ir.AffineExpr.get_dim(k), ir.AffineExpr.get_constant(factor)),
        )
    attribute = ir.AffineMapAttr.get(ir.AffineMap.get(len(values), 0, [form]))
    return ir.Operation.create(
        "affine.apply",
        [ir.IndexType.get()],
        [value for _, value in values],
        attributes={"map": attribute},
    ).result


def _bound_operands(loop: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    return operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]


def _narrowed(loop: ir.Operation, low: ir.Value | None, high: ir.Value | None) -> None:
    """A copy of the loop before it, from `low` on at least, up to `high` at most."""
    if loop.name == "scf.for":
        copy = loop.clone(ip=ir.InsertionPoint(loop))
        with ir.InsertionPoint(copy):
            if low is not None:
                copy.operands[0] = arith.maxsi(copy.operands[0], low)
            if high is not None:
                copy.operands[1] = arith.minsi(copy.operands[1], high)
        return
    lows, highs = _bound_operands(loop)
    maps = [loop.attributes["lowerBoundMap"], loop.attributes["upperBoundMap"]]
    if low is not None:
        maps[0], lows = _with_dimension(maps[0], lows, low)
    if high is not None:
        maps[1], highs = _with_dimension(maps[1], highs, high)
    attributes = {name: loop.attributes[name] for name in loop.attributes}
    attributes["lowerBoundMap"], attributes["upperBoundMap"] = maps
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(lows), len(highs), 0])
    copy = loop.clone(ip=ir.InsertionPoint(loop)).operation
    rebuilt_with(copy, [*lows, *highs], attributes)


def _with_dimension(
    attribute: ir.Attribute, operands: list[ir.Value], value: ir.Value
) -> tuple[ir.AffineMapAttr, list[ir.Value]]:
    """The bound's map with one more result: `value`, as its last dimension."""
    form = ir.AffineMapAttr(attribute).value
    extra = ir.AffineExpr.get_dim(form.n_dims)
    more = ir.AffineMap.get(form.n_dims + 1, form.n_symbols, [*form.results, extra])
    return ir.AffineMapAttr.get(more), [*operands[: form.n_dims], value, *operands[form.n_dims :]]
