"""How often a launcher launches a kernel: the trips of the loops around, which stay on the host.

An operation in a function -> a number, in the mean where loops begin or end with those around.

    for %k = 0 to 100 {                       100
      for %i = 0 to affine_map<d0>(%k) {      100 · 49.5
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from avial_lab.compiler.analysis.costs.operation_counts import constant_bound
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import LOOPS, constant_of

Middles = dict[ir.Value, float]
"""The mean of each variable of the loops around."""


def launches_around(op: ir.Operation) -> float | None:
    """None where a loop around, or a condition, is not known before the program runs."""
    around: list[ir.Operation] = []
    parent = parent_of(op)
    while parent is not None and parent.name != "func.func":
        around.append(parent)
        parent = parent_of(parent)
    times, middles = 1.0, Middles()
    for loop in reversed(around):
        ends = _ends(loop, middles) if loop.name in LOOPS else None
        if ends is None:
            return None
        low, high, step = ends
        times *= max(0.0, (high - low) / step)
        middles[loop.regions[0].blocks[0].arguments[0]] = (low + high - step) / 2
    return times


def _ends(loop: ir.Operation, middles: Middles) -> tuple[float, float, float] | None:
    if loop.name == "scf.for":
        found = [_value(value, middles) for value in list(loop.operands)[:3]]
        low, high, step = found
        return None if low is None or high is None or not step else (low, high, step)
    if loop.name != "affine.for":
        return None
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    given = operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]
    ends: list[float] = []
    for name, values, among in zip(
        ("lowerBoundMap", "upperBoundMap"), given, (max, min), strict=True
    ):
        known = constant_bound(loop.attributes[name])
        form = ir.AffineMapAttr(loop.attributes[name]).value
        taken = [_value(value, middles) for value in values]
        results = [_at(result, taken, form.n_dims) for result in form.results]
        if known is None and any(result is None for result in results):
            return None
        ends.append(
            float(known) if known is not None else among(r for r in results if r is not None)
        )
    return ends[0], ends[1], float(ir.IntegerAttr(loop.attributes["step"]).value)


def _value(value: ir.Value, middles: Mapping[ir.Value, float]) -> float | None:
    known = constant_of(value)
    return middles.get(value) if known is None else float(known)


def _at(form: ir.AffineExpr, values: list[float | None], dims: int) -> float | None:
    """Of the form at these values, its dimensions and then its symbols."""
    if isinstance(form, ir.AffineConstantExpr):
        return float(form.value)
    if isinstance(form, ir.AffineDimExpr):
        return values[form.position]
    if isinstance(form, ir.AffineSymbolExpr):
        return values[dims + form.position]
    if not isinstance(form, ir.AffineBinaryExpr):
        return None
    left, right = _at(form.lhs, values, dims), _at(form.rhs, values, dims)
    if left is None or right is None:
        return None
    if isinstance(form, ir.AffineAddExpr):
        return left + right
    if isinstance(form, ir.AffineMulExpr):
        return left * right
    if isinstance(form, ir.AffineModExpr):
        return left % right
    return left / right
