"""Affine forms of any number, written so that they are right at the ends of 64 bits.

Operation with affine operations inside -> the same, without those that MLIR 22's lower-affine gets
wrong for some numbers: `a ceildiv b` becomes `-(-a / b)` for negative ones, and the least has no
opposite (llvm PR 215696); products promise not to wrap, which a number from memory may do.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import condition_of, operations_in


def exact_forms(root: ir.Operation) -> None:
    """Only where a number comes in that may be any; a loop's variable is never near the ends."""
    for op in operations_in(root):
        if not op.name.startswith("affine.") or all(_counts(operand) for operand in op.operands):
            continue
        if op.name in _EXTREMES:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_written_out(op))
            op.erase()
        else:
            _rewrite(op)


_EXTREMES = {"affine.apply": arith.maxsi, "affine.max": arith.maxsi, "affine.min": arith.minsi}


def _written_out(op: ir.Operation) -> ir.Value:
    form = ir.AffineMapAttr(op.attributes["map"]).value
    operands = list(op.operands)
    found, *more = (
        _value(each, operands[: form.n_dims], operands[form.n_dims :]) for each in form.results
    )
    for each in more:
        found = _EXTREMES[op.name](found, each)
    return found


def _value(form: ir.AffineExpr, dims: Sequence[ir.Value], symbols: Sequence[ir.Value]) -> ir.Value:
    if isinstance(form, ir.AffineConstantExpr):
        return arith.constant(ir.IndexType.get(), form.value)
    if isinstance(form, ir.AffineDimExpr):
        return dims[form.position]
    if isinstance(form, ir.AffineSymbolExpr):
        return symbols[form.position]
    left, right = _value(form.lhs, dims, symbols), _value(form.rhs, dims, symbols)
    if isinstance(form, ir.AffineModExpr):
        rest = arith.remsi(left, right)
        zero = arith.constant(ir.IndexType.get(), 0)
        below = arith.cmpi(arith.CmpIPredicate.slt, rest, zero)
        return arith.select(below, arith.addi(rest, right), rest)
    return _IN_ARITH[type(form)](left, right)


_IN_ARITH = {
    ir.AffineAddExpr: arith.addi,
    ir.AffineMulExpr: arith.muli,
    ir.AffineFloorDivExpr: arith.floordivsi,
    ir.AffineCeilDivExpr: arith.ceildivsi,
}


_MAPS = ("map", "lowerBoundMap", "upperBoundMap", "lowerBoundsMap", "upperBoundsMap")


def _rewrite(op: ir.Operation) -> None:
    """With the quotient that is rounded down, and one more where there is a rest, for `ceildiv`."""
    for name in _MAPS:
        if name in op.attributes and "ceildiv" in str(op.attributes[name]):
            form = ir.AffineMapAttr(op.attributes[name]).value
            results = [_exact(each) for each in form.results]
            made = ir.AffineMap.get(form.n_dims, form.n_symbols, results)
            op.attributes[name] = ir.AffineMapAttr.get(made)
    if "condition" in op.attributes and "ceildiv" in str(op.attributes["condition"]):
        _rewrite_condition(op)


def _counts(value: ir.Value) -> bool:
    """Whether it is a loop's variable, or lies in memory that has that many elements."""
    if isinstance(value.type, ir.ShapedType):
        return True
    owner = value.owner
    if not isinstance(owner, ir.Block):
        return owner.operation.name == "memref.dim"
    around = owner.owner.operation
    if around.name not in ("affine.for", "scf.for", "affine.parallel", "scf.parallel"):
        return False
    loop_variables = 1 if around.name.endswith("for") else len(owner.arguments)
    return ir.BlockArgument(value).arg_number < loop_variables


def _exact(form: ir.AffineExpr) -> ir.AffineExpr:
    if not isinstance(form, ir.AffineBinaryExpr):
        return form
    left, right = _exact(form.lhs), _exact(form.rhs)
    if not isinstance(form, ir.AffineCeilDivExpr):
        return type(form).get(left, right)
    rest = ir.AffineExpr.get_mod(left, right)
    up = ir.AffineExpr.get_floor_div(rest + right - 1, right)
    return ir.AffineExpr.get_floor_div(left, right) + up


def _rewrite_condition(op: ir.Operation) -> None:
    equal, form = condition_of(op.attributes["condition"])
    exact = [_exact(each) for each in form.results]
    held = ir.IntegerSet.get(form.n_dims, form.n_symbols, exact, equal)
    op.attributes["condition"] = ir.IntegerSetAttr.get(held)
