"""Expressions: operators, comparisons, conditions, and what these say of a loop's variable."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import constant
from avial_lab.compiler.frontends.python.frames import ArrayKind, Restart, _word
from avial_lab.compiler.frontends.python.kinds import BOOL, Kind, promoted
from avial_lab.compiler.frontends.python.linear import Linear, Range, least, most, number, term
from avial_lab.compiler.frontends.python.scopes import binds_in
from avial_lab.compiler.frontends.python.subscripts import Subscripts
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Held,
    Lazy,
    Listed,
    Number,
    Value,
)
from avial_lab.core.errors import AvialError

_NOT_AGAIN = (ast.Call, ast.NamedExpr, ast.ListComp)
"""What is computed once."""


class Expressions(Subscripts):
    """The layer of `Translation` that computes."""

    def expression(self, node: ast.expr) -> Value:
        with self.e.at(node):
            return self._expression(node)

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value):
                return self.constant(value)
            case ast.Name(name):
                found = self.name(name, node)
                if isinstance(found, Fixed) and isinstance(found.value, Held):
                    return self.loaded(found.value)
                return found
            case ast.BinOp(ast.Mult() as op, left, right) if isinstance(left, ast.List):
                raise self.not_there("a list", node, "make an array: np.zeros(…), np.full(…)")
            case ast.BinOp(left, ast.Pow(), ast.Constant(int(2))):  # which NumPy squares
                return self.calls.squared(self.expression(left))
            case ast.BinOp(left, op, right):
                x, y = self.expression(left), self.expression(right)
                return self.binary(op, x, y)
            case ast.UnaryOp(op, operand):
                return self._unary(op, self.expression(operand), operand)
            case ast.BoolOp(op, values):
                self._refuse_bindings(*values[1:])
                return self._one_of(op, values)
            case ast.UnaryOp(ast.Not() as op, ast.BoolOp() as operand):
                return self._unary(op, self.condition(operand), operand)
            case ast.Compare(left, ops, comparators):
                return self._compare(left, ops, comparators)
            case ast.IfExp(test, body, orelse):
                return self._conditional(test, body, orelse)
            case ast.Subscript(value, index):
                return self._subscript(value, index)
            case ast.Attribute(value, name):
                return self.calls.attribute(self.expression(value), name)
            case ast.Call():
                return self.calls.call(node)
            case ast.Tuple(elts) | ast.List(elts):
                return tuple(self.expression(each) for each in elts)
            case ast.JoinedStr():
                raise self.not_there("an f-string", node, "print(f'…') is, and numbers are")
            case ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp():
                raise self.not_there("a dictionary or a set", node, "use arrays")
            case ast.ListComp():
                return self.closures.listed(node)
            case ast.GeneratorExp():
                raise self.not_there(
                    "a generator", node, "sum, max, min, any and all take one; or make a list"
                )
            case ast.Lambda():
                return self.closures.made(node)
            case ast.NamedExpr(ast.Name(name), value):
                found = self.expression(value)
                self.bind_name(name, found)
                return self.name(name, node)
            case _:
                what = type(node).__name__.lower()
                raise self.not_there(f"'{what}'", node, "write it with arithmetic and arrays")

    def binary(self, op: ast.operator, x: Value, y: Value) -> Value:
        if isinstance(op, ast.MatMult):
            return self._matmul(x, y)
        if isinstance(x, tuple) and isinstance(y, tuple) and isinstance(op, ast.Add):
            return (*x, *y)
        if isinstance(x, Number) and isinstance(y, Number):
            return self.a.binary(op, x, y)
        self._refuse_lists(x, y)
        x, y = self.operand(x), self.operand(y)
        kind = self.result_kind(lambda a, b: self.a.binary(op, a, b), x, y)
        return self.calls.elementwise(kind, lambda a, b: self.a.binary(op, a, b), x, y)

    def _refuse_lists(self, *values: Value) -> None:
        """Their operators are those of lists."""
        if any(isinstance(each, Listed) for each in values):
            raise self.refused("a list is no array", "make it one: np.array([…])", TypeError)

    def _matmul(self, x: Value, y: Value) -> Value:
        left, right = self.operand(x), self.operand(y)
        if isinstance(left, Number) or isinstance(right, Number):
            raise self.refused("@ multiplies arrays", "use *", TypeError)
        return self.arrays.product(left, right)

    def _unary(self, op: ast.unaryop, x: Value, node: ast.expr) -> Value:
        if isinstance(x, Fixed) and isinstance(op, ast.Not):
            return constant(not x.value)
        self._refuse_lists(x)
        x = self.operand(x)
        if isinstance(x, Number):
            return self.a.unary(op, x)
        if isinstance(op, ast.Not):
            return self.a.unary(op, self.number(x, node))
        kind = self.result_kind(lambda a: self.a.unary(op, a), x)
        return self.calls.elementwise(kind, lambda a: self.a.unary(op, a), x)

    def _one_of(self, op: ast.boolop, values: Sequence[ast.expr]) -> Value:
        """What `x and y` is: one of the two; `y` is looked at only where `x` does not decide."""
        stops = isinstance(op, ast.Or)
        first = self.expression(values[0])
        if len(values) == 1:
            return first
        if isinstance(first, Fixed) and not isinstance(first.value, Held):
            return first if bool(first.value) == stops else self._one_of(op, values[1:])
        x = self.number(first, values[0])
        test = self.a.truth(x)
        if test.known is not None:
            return first if bool(test.known) == stops else self._one_of(op, values[1:])
        ranges = dict(self.e.ranges)
        with self.e.aside() as lines:
            self._refine(values[0], holds=not stops)
            y = self._one_of(op, values[1:])
            self.e.ranges = ranges
        if not isinstance(y, Number):
            raise self.refused("both sides of 'and' and 'or' are numbers here", "use if … else …")
        return (
            self._either(test, ([], x), (lines, y))
            if stops
            else (self._either(test, (lines, y), ([], x)))
        )

    def _boolean(self, op: ast.boolop, values: Sequence[ast.expr]) -> Number:
        """Whether it holds; the second is looked at only where the first does not decide."""
        self._refuse_bindings(*values[1:])
        stops = isinstance(op, ast.Or)
        found = self.condition(values[0])
        for node in values[1:]:
            if found.known is not None:
                if bool(found.known) == stops:
                    return found
                found = self.condition(node)
                continue
            with self.e.aside() as lines:
                ranges = dict(self.e.ranges)
                self._refine(values[0], holds=not stops)
                second = self.condition(node)
                ssa = self.a.value(second, BOOL)
                self.e.ranges = ranges
            if not any("load" in line or "assert" in line for line in lines):
                self.e.lines += lines
                name = "ori" if stops else "andi"
                found = Number(BOOL, ssa=self.e.value(f"arith.{name} {found.ssa}, {ssa} : i1"))
                continue
            name = self.e.fresh()
            with self.e.block(f"{name} = scf.if {found.ssa} -> (i1) {{", end=""):
                if stops:
                    true = self.e.value("arith.constant true")
                    self.e.line(f"scf.yield {true} : i1")
                else:
                    self.e.lines += [f"  {line}" for line in lines]
                    self.e.line(f"scf.yield {ssa} : i1")
            with self.e.block("} else {"):
                if stops:
                    self.e.lines += [f"  {line}" for line in lines]
                    self.e.line(f"scf.yield {ssa} : i1")
                else:
                    false = self.e.value("arith.constant false")
                    self.e.line(f"scf.yield {false} : i1")
            found = Number(BOOL, ssa=name)
        return found

    def _refuse_bindings(self, *nodes: ast.expr) -> None:
        """Of what may not be computed."""
        for node in nodes:
            if binds_in(node):
                raise self.refused(
                    "':=' is where it is always computed here", "bind it before", node=node
                )

    def _compare(
        self, left: ast.expr, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr]
    ) -> Value:
        self._refuse_bindings(*comparators[1:])
        x = self.expression(left)
        found: Value | None = None
        for op, node in zip(ops, comparators, strict=True):
            y = self.expression(node)
            told = self._compared(op, x, y)
            if found is None:
                found = told
            elif isinstance(found, Number) and isinstance(told, Number):
                found = self._both_hold(found, told)
            else:
                raise self.refused("arrays are compared two at a time", "use (a < b) & (b < c)")
            x = y
        assert found is not None
        return found

    def _both_hold(self, x: Number, y: Number) -> Number:
        for one, other in ((x, y), (y, x)):
            if one.known is not None:
                return other if one.known else one
        ssa = self.e.value(f"arith.andi {x.ssa}, {y.ssa} : i1")
        return Number(promoted(x.kind, y.kind), ssa=ssa)

    def _compared(self, op: ast.cmpop, x: Value, y: Value) -> Value:
        if isinstance(op, ast.Is | ast.IsNot):
            same = self._is_same(x, y)
            return constant(same if isinstance(op, ast.Is) else not same)
        if isinstance(x, Fixed) and isinstance(y, Fixed):
            equal = x.value == y.value
            if isinstance(op, ast.Eq | ast.NotEq):
                return constant(bool(equal) if isinstance(op, ast.Eq) else not equal)
        if isinstance(op, ast.In | ast.NotIn):
            return self._contained(op, x, y)
        self._refuse_lists(x, y)
        if isinstance(x, tuple) and isinstance(y, tuple) and isinstance(op, ast.Eq | ast.NotEq):
            equal = len(x) == len(y) and all(
                self.number(self._compared(ast.Eq(), a, b), ast.Pass()).known is True
                for a, b in zip(x, y, strict=True)
            )
            return constant(equal if isinstance(op, ast.Eq) else not equal)
        x, y = self.operand(x), self.operand(y)
        if isinstance(x, Number) and isinstance(y, Number):
            return self.a.compared(op, x, y)
        kind = Kind(np.dtype(np.bool_))
        return self.calls.elementwise(kind, lambda a, b: self.a.compared(op, a, b), x, y)

    def _contained(self, op: ast.cmpop, x: Value, y: Value) -> Value:
        """In a tuple; in an array, any of it."""
        if isinstance(y, Fixed) and isinstance(y.value, range | tuple | list | set | frozenset):
            y = tuple(self.constant(each) for each in y.value)
        if not isinstance(y, tuple) or not isinstance(x, Number | Fixed):
            raise self.refused("'in' asks for a number in a tuple here", "compare in a loop")
        found = Number(BOOL, constant=False)
        for each in y:
            equal = self.number(self._compared(ast.Eq(), x, each), ast.Pass())
            found = self._either_holds(found, self.a.truth(equal))
        return found if isinstance(op, ast.In) else self.a.negation(found)

    def _either_holds(self, x: Number, y: Number) -> Number:
        for one, other in ((x, y), (y, x)):
            if one.known is not None:
                return one if one.known else other
        return Number(BOOL, ssa=self.e.value(f"arith.ori {x.ssa}, {y.ssa} : i1"))

    def _is_same(self, x: Value, y: Value) -> bool:
        if isinstance(x, Fixed) and isinstance(y, Fixed):
            return x.value is y.value
        return x is y

    def _conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        self._refuse_bindings(body, orelse)
        condition = self.condition(test)
        if condition.known is not None:
            return self.expression(body if condition.known else orelse)
        ranges = dict(self.e.ranges)
        with self.e.aside() as first:
            self._refine(test, holds=True)
            x = self.expression(body)
            self.e.ranges = dict(ranges)
        with self.e.aside() as second:
            self._refine(test, holds=False)
            y = self.expression(orelse)
            self.e.ranges = dict(ranges)
        if not isinstance(x, Number) or not isinstance(y, Number):
            raise self.refused("both sides of a condition are numbers here", "use if … else …")
        return self._either(condition, (first, x), (second, y))

    def _either(
        self, condition: Number, then: tuple[list[str], Number], other: tuple[list[str], Number]
    ) -> Number:
        """One number where it holds, else another, each with the lines that compute it."""
        (first, x), (second, y) = then, other
        kind = promoted(x.kind, y.kind)
        with self.e.aside() as first_end:
            left = self.a.value(x, kind)
        with self.e.aside() as second_end:
            right = self.a.value(y, kind)
        first, second = [*first, *first_end], [*second, *second_end]
        if not any("load" in line or "assert" in line for line in (*first, *second)):
            self.e.lines += [*first, *second]
            text = f"arith.select {condition.ssa}, {left}, {right} : {kind.mlir}"
            return Number(kind, ssa=self.e.value(text))
        name = self.e.fresh()
        with self.e.block(f"{name} = scf.if {condition.ssa} -> ({kind.mlir}) {{", end=""):
            self.e.lines += [f"  {line}" for line in first]
            self.e.line(f"scf.yield {left} : {kind.mlir}")
        with self.e.block("} else {"):
            self.e.lines += [f"  {line}" for line in second]
            self.e.line(f"scf.yield {right} : {kind.mlir}")
        return Number(kind, ssa=name)

    def _told_element(self, node: ast.expr) -> None:
        """What a list holds."""
        value, key = self.expression(node), self.list_kinds[-1]
        if isinstance(value, tuple):
            value = self.calls.array_of(value)
        if isinstance(value, Number):
            self.kinds[key] = value.kind
        elif isinstance(value, Array | Lazy | Listed):
            shape = value.array.shape if isinstance(value, Listed) else value.shape
            if any(not extent.terms.keys() <= self.e.sizes for extent in shape):
                raise self.refused(
                    "the elements of this list differ in length, or may",
                    "make an array, np.empty(…), and fill it in a loop",
                )
            self.kinds[key] = ArrayKind(value.kind, shape)
        else:
            raise self.refused(f"a list of numbers or arrays, not of {_word(value)}", "")
        raise Restart

    def condition(self, node: ast.expr) -> Number:
        if isinstance(node, ast.BoolOp):
            return self._boolean(node.op, node.values)
        value = self.expression(node)
        if isinstance(value, Fixed) and not isinstance(value.value, Held):
            return Number(BOOL, constant=bool(value.value))
        return self.a.truth(self.number(value, node))

    def _refine(self, test: ast.expr, *, holds: bool) -> None:
        """What a comparison says of a loop's variable, in the branch."""
        match test:
            case ast.BoolOp(ast.And(), values) if holds:
                for each in values:
                    self._refine(each, holds=True)
            case ast.BoolOp(ast.Or(), values) if not holds:
                for each in values:
                    self._refine(each, holds=False)
            case ast.UnaryOp(ast.Not(), inner):
                self._refine(inner, holds=not holds)
            case ast.Compare(left, [op], [right]):
                with self.e.aside():
                    x, y = self._linear_of(left), self._linear_of(right)
                if x is not None and y is not None:
                    self._narrow(x - y, type(op) if holds else _OPPOSITE.get(type(op), ast.Is))

    def _linear_of(self, node: ast.expr) -> Linear | None:
        if not isinstance(node, ast.Name | ast.Constant | ast.BinOp | ast.Subscript):
            return None
        if any(isinstance(each, _NOT_AGAIN) for each in ast.walk(node)):
            return None
        try:
            value = self.expression(node)
        except AvialError:
            return None
        return value.linear if isinstance(value, Number) else None

    def _narrow(self, apart: Linear, op: type[ast.cmpop]) -> None:
        """`apart` compared with 0 holds."""
        for name, factor in apart.terms.items():
            if abs(factor) != 1 or name not in self.e.ranges:
                continue
            rest = apart - term(name).scaled(factor)
            # name * factor + rest op 0
            end = (-rest).scaled(factor)
            if any(_defined_after(other, name, self.e.ranges) for other in rest.terms):
                continue
            up = op in (ast.Gt, ast.GtE) if factor > 0 else op in (ast.Lt, ast.LtE)
            down = op in (ast.Lt, ast.LtE) if factor > 0 else op in (ast.Gt, ast.GtE)
            by = number(1 if op in (ast.Gt, ast.Lt) else 0)
            old = self.e.ranges[name]
            if (up or op is ast.Eq) and _is_better(end, old.least, self.e.ranges, up=True):
                old = replace(old, least=end + (by if up else number(0)))
            if (down or op is ast.Eq) and _is_better(end, old.most, self.e.ranges, up=False):
                old = replace(old, most=end - (by if down else number(0)))
            self.e.ranges[name] = old


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
}


def _defined_after(other: str, name: str, ranges: Mapping[str, Range]) -> bool:
    order = list(ranges)
    return other not in ranges or order.index(other) > order.index(name)


def _is_better(end: Linear, old: Linear | None, ranges: Mapping[str, Range], *, up: bool) -> bool:
    if old is None:
        return True
    apart = end - old
    if up:
        low = least(apart, ranges)
        return low is not None and low >= 0
    high = most(apart, ranges)
    return high is not None and high <= 0
