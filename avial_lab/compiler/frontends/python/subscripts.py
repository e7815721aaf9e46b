"""Subscripts: elements, views, and elements that a mask or an array of places picks."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import TOO_LONG
from avial_lab.compiler.frontends.python.arrays import Index
from avial_lab.compiler.frontends.python.values import Array, Fixed, Lazy, Listed, Number, Value
from avial_lab.compiler.frontends.python.variables import Variables
from avial_lab.core.errors import AvialError


class Subscripts(Variables):
    """The layer of `Translation` that reads elements and parts."""

    def _subscript(self, value: ast.expr, index: ast.expr) -> Value:
        base = self.expression(value)
        if isinstance(base, tuple):
            at = self.expression(index) if not isinstance(index, ast.Slice) else None
            if at is None:
                return base[self._known_slice(index)]
            known = self.number(at, index).known
            if not isinstance(known, int):
                raise self.refused("the index of a tuple is a constant here", "", node=index)
            if not -len(base) <= known < len(base):
                raise self.refused("tuple index out of range", "", IndexError, node=index)
            return base[known]
        if isinstance(base, Listed):
            return self._of_list(base, index)
        if isinstance(base, Lazy):
            base = self.arrays.materialised(base)
        if isinstance(base, Fixed) and base.value is np.mgrid:
            return self.calls.grid(index)
        array = self._array(base, value)
        places = self.indices(index, array)
        if _is_picked(places):
            return self._picked(array, places, index)
        return self.item_at(array, places)

    def _of_list(self, of: Listed, index: ast.expr) -> Value:
        if isinstance(index, ast.Tuple):
            raise self.refused("list indices must be integers or slices", "", TypeError)
        places = self.indices(index, of.array)
        if _is_picked(places) or None in places:
            raise self.refused("list indices must be integers or slices", "", TypeError)
        return self.list_item(of, places)

    def list_item(self, of: Listed, index: Sequence[Index]) -> Value:
        found = self.item(of.array, index)
        if isinstance(found, Number):
            return replace(found, kind=of.kind)
        assert isinstance(found, Array)
        return Listed(found, of.kind)

    def _known_slice(self, node: ast.expr) -> slice:
        assert isinstance(node, ast.Slice)
        ends: list[int | None] = []
        for each in (node.lower, node.upper, node.step):
            known = None if each is None else self.number(self.expression(each), each).known
            ends.append(known if isinstance(known, int) else None)
        return slice(*ends)

    def item(self, array: Array, index: Sequence[Index]) -> Value:
        part = self.arrays.view(array, index)
        return part if part.shape or not array.shape else self.arrays.load(part, [])

    def item_at(self, array: Array, index: Sequence[Any]) -> Value:
        part = self.subscripted(array, index)
        if part.shape:
            return part
        return self.arrays.load(part, [])

    def subscripted(self, array: Array, index: Sequence[Any]) -> Array:
        return self.arrays.view(array, index)

    def indices(self, node: ast.expr, array: Array) -> list[Any]:
        """What stands between the brackets."""
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Slice):
                ends = [
                    None if end is None else self._slice_end(end)
                    for end in (each.lower, each.upper, each.step)
                ]
                found.append(slice(*ends))
                continue
            value = self._index(each)
            if isinstance(value, Fixed) and value.value is None:
                found.append(None)
            elif isinstance(value, Fixed) and value.value is Ellipsis:
                found.append(Ellipsis)
            elif isinstance(value, tuple):
                found += list(value)
            elif isinstance(value, Array | Lazy) and value.shape:
                found.append(value)
            else:
                found.append(self.number(value, each))
        if Ellipsis in [each for each in found if each is Ellipsis]:
            at = next(k for k, each in enumerate(found) if each is Ellipsis)
            used = sum(each is not None and each is not Ellipsis for each in found)
            found[at : at + 1] = [slice(None)] * (len(array.shape) - used)
        return found

    def _index(self, node: ast.expr) -> Value:
        try:
            return self.expression(node)
        except AvialError as error:
            if not error.message.endswith(TOO_LONG):
                raise
            words = "cannot fit 'int' into an index-sized integer"
            raise self.refused(words, "", IndexError, node=node) from None

    def _slice_end(self, node: ast.expr) -> Number | None:
        value = self.expression(node)
        if isinstance(value, Fixed) and value.value is None:
            return None
        return self.number(value, node)

    def _picked(self, array: Array, places: Sequence[Any], node: ast.expr) -> Lazy:
        """The elements under a mask, or at places that arrays name."""
        if self.is_under_mask(places):
            return self.arrays.masked(array, places[0], ast.dump(node))
        return self.arrays.gathered(array, places)

    def is_under_mask(self, places: Sequence[Any]) -> bool:
        """Whether the subscript is a mask."""
        if not any(map(_is_mask, places)):
            return False
        if len(places) > 1:
            raise self.refused("a mask is the only subscript here", "write it as a loop")
        return True


def _is_picked(places: Sequence[Any]) -> bool:
    """Whether arrays are among the subscripts."""
    return any(isinstance(each, Array | Lazy) for each in places)


def _is_mask(place: object) -> bool:
    return isinstance(place, Array | Lazy) and place.kind.is_bool
