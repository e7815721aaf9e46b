"""Affine forms as arithmetic, by their definition: what a subscript, a bound or a condition is.

Affine expression, the values of its dimensions and symbols -> a value of index type. Whole numbers
of 64 bits that wrap, with no promise to LLVM that they do not; division rounds towards minus
infinity (`floordiv`, `mod`) or plus infinity (`ceildiv`) for every dividend, the least one too.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

_LESS = arith.CmpIPredicate.slt
_MORE = arith.CmpIPredicate.sgt


def value_of(
    form: ir.AffineExpr, dims: Sequence[ir.Value], symbols: Sequence[ir.Value] = ()
) -> ir.Value:
    """The form's value, written at the current insertion point."""
    if isinstance(form, ir.AffineConstantExpr):
        return number(form.value)
    if isinstance(form, ir.AffineDimExpr):
        return dims[form.position]
    if isinstance(form, ir.AffineSymbolExpr):
        return symbols[form.position]
    left, right = value_of(form.lhs, dims, symbols), value_of(form.rhs, dims, symbols)
    if isinstance(form, ir.AffineAddExpr):
        return arith.addi(left, right)
    if isinstance(form, ir.AffineMulExpr):
        return arith.muli(left, right)
    if isinstance(form, ir.AffineFloorDivExpr):
        return floor_division(left, right)
    if isinstance(form, ir.AffineCeilDivExpr):
        return ceil_division(left, right)
    rest = arith.remsi(left, right)
    return arith.select(_is(_LESS, rest, number(0)), arith.addi(rest, right), rest)


def values_of(form: ir.AffineMap, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """All results of a map; `operands` are its dimensions and, behind them, its symbols."""
    dims, symbols = list(operands)[: form.n_dims], list(operands)[form.n_dims :]
    return [value_of(result, dims, symbols) for result in form.results]


def floor_division(left: ir.Value, right: ir.Value) -> ir.Value:
    """Rounded towards minus infinity, whatever the signs."""
    return _one_more(left, right, up=False)


def ceil_division(left: ir.Value, right: ir.Value) -> ir.Value:
    """Rounded towards plus infinity, whatever the signs."""
    return _one_more(left, right, up=True)


def _one_more(left: ir.Value, right: ir.Value, *, up: bool) -> ir.Value:
    """The quotient rounded towards zero, and one more (less) where there is a rest and the exact
    quotient lies above (below) zero.
    """
    kind = left.type
    zero, one = number(0, kind), number(1, kind)
    quotient, rest = arith.divsi(left, right), arith.remsi(left, right)
    inexact = _is(arith.CmpIPredicate.ne, rest, zero)
    alike = _is(arith.CmpIPredicate.eq, _is(_LESS, rest, zero), _is(_LESS, right, zero))
    wanted = alike if up else arith.xori(alike, arith.constant(alike.type, 1))
    beside = arith.addi(quotient, one) if up else arith.subi(quotient, one)
    return arith.select(arith.andi(inexact, wanted), beside, quotient)


def extreme(values: Sequence[ir.Value], *, largest: bool) -> ir.Value:
    """The largest or the smallest of signed numbers."""
    result, *others = values
    for value in others:
        taken = _is(_MORE if largest else _LESS, value, result)
        result = arith.select(taken, value, result)
    return result


def number(value: int, kind: ir.Type | None = None) -> ir.Value:
    kind = kind or ir.IndexType.get()
    if isinstance(kind, ir.VectorType):
        each = ir.IntegerAttr.get(kind.element_type, value)
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, each))
    return arith.constant(kind, value)


def _is(predicate: arith.CmpIPredicate, left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.cmpi(predicate, left, right)
