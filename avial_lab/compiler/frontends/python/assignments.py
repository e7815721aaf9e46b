"""Assignments to names, to several at once, and to elements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import affine
from avial_lab.compiler.frontends.python.expressions import Expressions
from avial_lab.compiler.frontends.python.frames import Cell
from avial_lab.compiler.frontends.python.linear import number
from avial_lab.compiler.frontends.python.liveness import assigned, reads
from avial_lab.compiler.frontends.python.subscripts import _is_picked
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Held,
    Lazy,
    Listed,
    Number,
    Operand,
    Value,
)


class Assignments(Expressions):
    """The layer of `Translation` that binds and stores."""

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, live: frozenset[str]) -> None:
        found = self.expression(value)
        if len(targets) > 1 and isinstance(found, Lazy):
            found = self._kept(found)
        if isinstance(found, Lazy) and _is_part(value):  # NumPy writes through it
            if reads(value) & self.changed_in_place():
                raise self.refused(
                    "a part of complex numbers is named, and would change with them",
                    "name a copy: ….copy()",
                    node=value,
                )
            found = replace(self.arrays.materialised(found), copied=True)
        self.frame.live = live - assigned(*targets)
        if len(targets) > 1:  # each of them goes on to name what the others do
            self.frame.live |= assigned(*targets) & live
        for target in targets:
            self._bind(target, found)

    def _reshape(self, name: str, base: ast.Name, shape: Value) -> None:
        """`a.shape = …`: the same memory, of an array that has no other name."""
        array = self.expression(base)
        if not isinstance(array, Array) or not array.own or len(self.names_of(array)) > 1:
            raise self.refused(
                f"'{name}' has other names, for which its shape would change, too",
                f"{name} = {name}.reshape(…)",
                node=base,
            )
        self.bind_name(name, self.calls.reshape(array, shape))

    def _bind(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self.bind_name(name, value)
            case ast.Tuple(elts) | ast.List(elts):
                for each in elts:
                    if isinstance(each, ast.Starred):
                        raise self.not_there("a starred name", each, "name each of them")
                parts = self._parts(value, len(elts), target)
                for each, part in zip(elts, parts, strict=True):
                    self._bind(each, part)
            case ast.Subscript():
                self._store(target, value)
            case ast.Attribute(ast.Name(name) as base, "shape"):
                self._reshape(name, base, value)
            case _:
                raise self.refused(
                    "this cannot be assigned to", "assign to names and elements", node=target
                )

    def _parts(self, value: Value, count: int, node: ast.AST) -> list[Value]:
        """Of something that is unpacked."""
        match value:
            case tuple():
                found = list(value)
            case Array() if value.shape and value.shape[0].known is not None:
                found = [self.item(value, [affine(number(k))]) for k in range(value.shape[0].known)]
            case Fixed(inner) if isinstance(inner, tuple | list):
                found = [self.constant(each) for each in inner]
            case _:
                raise self.refused("this cannot be unpacked", "", TypeError, node=node)
        if len(found) != count:
            raise self.refused(
                f"{count} values are wanted, and there are {len(found)}", "", ValueError, node=node
            )
        # All are evaluated before any is bound: a, b = b, a; of arrays in a loop the elements move.
        cells = {
            cell.memory.memory
            for cell in self.frame.names.values()
            if isinstance(cell, Cell) and cell.memory is not None
        }
        kept: list[Value] = []
        for each in found:
            if isinstance(each, Array) and each.memory in cells:
                self.refuse_shared(each, "")
                kept.append(self.arrays.materialised(each))
            else:
                kept.append(self._kept(each) if isinstance(each, Lazy) else each)
        return kept

    def _augmented(self, target: ast.expr, op: ast.operator, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                before = self.name(name, target)
                if isinstance(before, Array):  # in place, as NumPy
                    self._update(before, op, self.expression(value))
                    return
                after = self.binary(op, before, self.expression(value))
                self.bind_name(name, after)
            case ast.Subscript(base, index):
                array = self._target(self.expression(base), base)
                places = self.indices(index, array)
                if _is_picked(places):
                    old = self._picked(array, places, index)
                    new = self.operand(self.binary(op, old, self.expression(value)))
                    self._put(array, places, new)
                    return
                part = self.subscripted(array, places)
                if not part.shape:
                    given = self.expression(value)
                    old = self.arrays.load(part, [])
                    new = self.number(self.binary(op, old, given), value)
                    self._store_number(new, part, target)
                else:
                    self._update(part, op, self.expression(value))
            case _:
                raise self.refused("this cannot be assigned to", "", node=target)

    def _update(self, part: Array, op: ast.operator, value: Value) -> None:
        result = self.binary(op, part, value)
        kind = result.kind if isinstance(result, Array | Lazy | Number) else part.kind
        if not np.can_cast(kind.dtype, part.kind.dtype, "same_kind"):
            raise self.refused(
                f"an array of {part.kind} cannot take {kind} in place", "", TypeError
            )
        if not isinstance(result, Array | Lazy | Number):
            raise self.refused("this cannot be added to an array", "")
        self.arrays.assign(part, result)

    def _store(self, target: ast.Subscript, value: Value) -> None:
        base = self.expression(target.value)
        array = self._target(base, target.value)
        if isinstance(value, Listed):
            value = value.array
        if isinstance(value, tuple):
            value = self.calls.array_of(value)
        with self.e.at(target):
            places = self.indices(target.slice, array)
            if _is_picked(places):
                self._put(array, places, self.operand(value))
                return
            part = self.subscripted(array, places)
            if isinstance(value, Fixed) and isinstance(value.value, Held):
                value = self.loaded(value.value)
            if not isinstance(value, Number | Array | Lazy):
                raise self.refused("only numbers and arrays are elements", "", TypeError)
            if not part.shape:
                self._store_number(self.number(value, target), part, target)
            else:
                self.arrays.assign(part, value)

    def _target(self, value: Value, node: ast.expr) -> Array:
        """What elements are stored to."""
        if isinstance(value, Lazy) and _is_part(node):
            raise self.refused(
                "the parts of complex numbers are not assigned to here",
                "assign whole numbers: a[i] = complex(re, im)",
                node=node,
            )
        return self._array(value, node)

    def _put(self, array: Array, places: Sequence[Any], value: Operand) -> None:
        """Assignment under a mask, or to places that arrays name."""
        if self.is_under_mask(places):
            self.arrays.assign_masked(array, places[0], value)
        else:
            self.arrays.scatter(array, places, value)

    def _store_number(self, value: Number, part: Array, node: ast.AST) -> None:
        if value.kind.is_complex and not part.kind.is_complex:
            raise self.refused(
                "a complex number is no real one", "take its .real", TypeError, node=node
            )
        self.arrays.store(value, part, [])


def _is_part(node: ast.expr) -> bool:
    """Whether it is the real or the imaginary part of something: z.real, np.real(z)."""
    of = node.func if isinstance(node, ast.Call) else node
    return isinstance(of, ast.Attribute) and of.attr in ("real", "imag")
