"""isl's expressions as arithmetic.

isl.Aff, isl.Set of parameters, the ends of a parametric box -> i64 values, computed by arith.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import islpy as isl
from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.polyhedral.boxes import End, Expression, ParametricBox

PARAM, DIV = isl.dim_type.param, isl.dim_type.div


class AffineValues:
    """Writes at the insertion point; `define` gives the i64 value of a parameter, once for each.

    What has been computed is used again: all of it has to stand in one block.
    """

    def __init__(self, define: Callable[[str], ir.Value]) -> None:
        self.i64 = ir.IntegerType.get_signless(64)
        self._define = define
        self._parameters: dict[str, ir.Value] = {}
        self._constants: dict[int, ir.Value] = {}
        self._known: dict[tuple[str, bool], ir.Value] = {}

    def constant(self, value: int) -> ir.Value:
        if value not in self._constants:
            self._constants[value] = arith.constant(self.i64, value)
        return self._constants[value]

    def parameter(self, name: str) -> ir.Value:
        if name not in self._parameters:
            self._parameters[name] = self._define(name)
        return self._parameters[name]

    def plus(self, value: ir.Value, constant: int) -> ir.Value:
        return value if not constant else arith.addi(value, self.constant(constant))

    def ends(self, box: ParametricBox, *, most: int) -> tuple[list[ir.Value], list[ir.Value]]:
        """Low and high of each dimension, half-open; 0 and `most` where there is no end."""
        lows = [self._end(end, low=True) if end else self.constant(0) for end in box.low]
        highs = [self._end(end, low=False) if end else self.constant(most) for end in box.high]
        return lows, highs

    def _end(self, end: End, *, low: bool) -> ir.Value:
        inner, outer = (arith.maxsi, arith.minsi) if low else (arith.minsi, arith.maxsi)
        more = 0 if low else 1  # the set's ends are inclusive
        each = [
            _folded(inner, [self.rounded(aff.add_constant_val(more), up=low) for aff in choice])
            for choice in end
        ]
        return _folded(outer, each)

    def rounded(self, aff: Expression, *, up: bool) -> ir.Value:
        """An expression rounded to an integer."""
        key = str(aff), up
        if key not in self._known:
            if isinstance(aff, isl.PwAff):
                self._known[key] = self._cases(aff, up=up)
                return self._known[key]
            divisor = aff.get_denominator_val().to_python()
            value = self._numerator(aff, divisor)
            if divisor != 1:
                divide = arith.ceildivsi if up else arith.floordivsi
                value = divide(value, self.constant(divisor))
            self._known[key] = value
        return self._known[key]

    def _cases(self, pieces: isl.PwAff, *, up: bool) -> ir.Value:
        """What holds outside of the other cases is the last one."""
        *others, (_, last) = pieces.get_pieces()
        value = self.rounded(last, up=up)
        for cases, aff in others:
            value = arith.select(self.holds(cases), self.rounded(aff, up=up), value)
        return value

    def _numerator(self, aff: isl.Aff, divisor: int) -> ir.Value:
        """The expression times its denominator."""
        found, constant = self._terms(aff, divisor)
        terms = [self._times(term, factor) for term, factor in found]
        return self.plus(_folded(arith.addi, terms), constant) if terms else self.constant(constant)

    def _terms(self, aff: isl.Aff, divisor: int) -> tuple[list[tuple[ir.Value, int]], int]:
        """Its terms, each with a factor, and the constant, all times the denominator."""
        found = [
            (self._term(aff, kind, place), factor)
            for kind in (PARAM, DIV)
            for place in range(aff.dim(kind))
            if (factor := (aff.get_coefficient_val(kind, place) * divisor).to_python())
        ]
        return found, (aff.get_constant_val() * divisor).to_python()

    def _term(self, aff: isl.Aff, kind: isl.dim_type, place: int) -> ir.Value:
        if kind == DIV:
            return self.rounded(aff.get_div(place), up=False)
        return self.parameter(str(aff.get_dim_name(PARAM, place)))

    def _times(self, value: ir.Value, factor: int) -> ir.Value:
        return value if factor == 1 else arith.muli(value, self.constant(factor))

    def holds(self, cases: isl.Set) -> ir.Value:
        """Whether the parameters are in that set."""
        each: list[ir.Value] = []
        for case in cases.compute_divs().get_basic_sets():
            conditions = [self._constraint(constraint) for constraint in case.get_constraints()]
            each.append(_folded(arith.andi, conditions) if conditions else self._truth(True))
        return _folded(arith.ori, each) if each else self._truth(False)

    def _truth(self, value: bool) -> ir.Value:
        return arith.constant(ir.IntegerType.get_signless(1), value)

    def _constraint(self, constraint: isl.Constraint) -> ir.Value:
        """What is added on the left, what is subtracted on the right: a single number is compared
        as it is, so that those at the ends of 64 bits do not wrap.
        """
        aff = constraint.get_aff()
        terms, number = self._terms(aff, aff.get_denominator_val().to_python())
        left, right = (
            [self._times(term, abs(factor)) for term, factor in terms if (factor > 0) is more]
            for more in (True, False)
        )
        if not left:
            left.append(self.constant(number))
        else:
            right.append(self.constant(-number))
        predicates = arith.CmpIPredicate
        relation = predicates.eq if constraint.is_equality() else predicates.sge
        return arith.cmpi(
            relation, _folded(arith.addi, left), _folded(arith.addi, right or [self.constant(0)])
        )


def _folded(
    combine: Callable[[ir.Value, ir.Value], ir.Value], values: Sequence[ir.Value]
) -> ir.Value:
    """Of one value at least."""
    found = values[0]
    for value in values[1:]:
        found = combine(found, value)
    return found
