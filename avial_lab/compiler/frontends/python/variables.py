"""Variables: values, and memory of one element where a value matters beyond the iteration or the
branch that binds it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from avial_lab.compiler.frontends.python.exceptions import HangsOnTheIteration
from avial_lab.compiler.frontends.python.frames import (
    ArrayKind,
    Cell,
    Frame,
    Frames,
    Restart,
    _word,
)
from avial_lab.compiler.frontends.python.jumps import RETURNED
from avial_lab.compiler.frontends.python.kinds import Kind, joined
from avial_lab.compiler.frontends.python.liveness import (
    carried,
    changed_in_place,
    is_bound,
    named_otherwise,
)
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Held,
    Lazy,
    Method,
    Number,
    Value,
)


class Variables(Frames):
    """The layer of `Translation` that binds and reads names."""

    def name(self, name: str, node: ast.AST) -> Value:
        found = self.frame.names.get(name)
        if isinstance(found, Cell):
            if found.memory is None:
                if found.kind is None and found.key in self.kinds:
                    raise Restart
                raise self.refused(f"'{name}' is used before it is bound", "", NameError, node=node)
            return found.memory if found.memory.shape else self._read_cell(found)
        if found is not None:
            return found
        if self.frame.outer is not None and name not in self.frame.own:
            inner, self.frame = self.frame, self.frame.outer
            try:
                return self.name(name, node)
            finally:
                self.frame = inner
        code = self.frame.function.__code__
        if name in self.frame.own or name in (*code.co_varnames, *code.co_cellvars):
            raise self.refused(
                f"'{name}' may be used before it is bound",
                "bind it before the loop or branch",
                UnboundLocalError,
                node=node,
            )
        return self.constant(self._outside(name, node))

    def is_named(self, array: Array) -> bool:
        """Whether anybody may look at its memory under a name: the caller, or the function."""
        return not array.own or bool(self.names_of(array))

    def names_of(self, array: Array) -> list[str]:
        """The variables that are in its memory."""
        found: list[str] = []
        frame: Frame | None = self.frame
        while frame is not None:
            for name, value in frame.names.items():
                held = value.memory if isinstance(value, Cell) else value
                if isinstance(held, Array) and held.memory == array.memory:
                    found.append(name)
            frame = frame.outer
        return found

    def bind_name(self, name: str, value: Value) -> None:
        if isinstance(value, Fixed) and isinstance(value.value, Held):
            value = self.loaded(value.value)
        if isinstance(value, Method):
            raise self.refused("a method is called where it is named", "")
        if isinstance(value, tuple):
            value = self._kept_parts(value)
        if isinstance(value, Lazy):
            value = self._kept(value)
            if isinstance(value, Lazy) and name in self._named_otherwise():
                value = self.arrays.compacted(value)
        cell = self.frame.names.get(name)
        if isinstance(value, Lazy):
            if isinstance(cell, Cell):
                raise self.refused(
                    f"'{name}' becomes what a mask leaves in a loop or a branch, and is used later",
                    f"keep all elements, and a mask of those that count: keep &= {name} > 0, say",
                    HangsOnTheIteration,
                )
            self.frame.names[name] = value
            return
        if not isinstance(cell, Cell):
            if isinstance(value, Number) and value.linear is None and value.known is not None:
                value = Number(value.kind, constant=value.known)
            self.frame.names[name] = value
            return
        if cell.memory is not None and cell.memory.shape:
            self._into_array(cell, name, value)
            return
        if isinstance(value, Array) and value.own and cell.memory is None and self._sized(value):
            self.kinds[cell.key] = ArrayKind(Kind(value.kind.dtype), value.extents)
            raise Restart
        if not isinstance(value, Number):
            raise self.refused(
                f"'{name}' becomes {_word(value)} in a loop or a branch, and is used after it",
                "give it another name there, or assign to its elements: name[:] = …",
                HangsOnTheIteration,
            )
        self._store_cell(cell, value)

    def _named_otherwise(self) -> frozenset[str]:
        """Names of the function that are not only read as wholes, element by element."""
        tree = self.frame.source.tree
        if id(tree) not in self.otherwise:
            space = self.frame.function.__globals__
            self.otherwise[id(tree)] = named_otherwise(tree, space)
        return self.otherwise[id(tree)]

    def changed_in_place(self) -> frozenset[str]:
        """Names of the function whose arrays it writes to."""
        tree = self.frame.source.tree
        if id(tree) not in self.changed:
            self.changed[id(tree)] = changed_in_place(tree, self.frame.function.__globals__)
        return self.changed[id(tree)]

    def _kept_parts(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            self._kept(each)
            if isinstance(each, Lazy)
            else self._kept_parts(each)
            if isinstance(each, tuple)
            else each
            for each in value
        )

    def _kept(self, value: Lazy) -> Array | Lazy:
        """In memory, so that it stays what it is now."""
        if value.mask is None:
            return self.arrays.materialised(value)
        return self.arrays.frozen(value)

    def _into_array(self, cell: Cell, name: str, value: Value) -> None:
        """A name of an array that a loop binds again: its elements change."""
        assert cell.memory is not None
        if isinstance(value, Array) and not value.own:
            raise self.refused(
                f"'{name}' names another array in each iteration",
                f"copy the elements: {name}[:] = …",
                HangsOnTheIteration,
            )
        if (
            not isinstance(value, Array)
            or value.shape != cell.memory.shape
            or value.kind.dtype != cell.memory.kind.dtype
        ):
            raise self.refused(
                f"'{name}' becomes an array of another kind in a loop or a branch",
                "give it another name there",
                HangsOnTheIteration,
            )
        self.refuse_shared(value, name)
        self._save_others(cell.memory, name)
        self.arrays.assign(cell.memory, value)

    def refuse_shared(self, value: Array, name: str) -> None:
        """A copy of what others go on to name is as good where none of them is written to; of a
        result, after which nothing is.
        """
        if name.startswith(RETURNED):
            return
        others = [n for n in self.names_of(value) if n != name and n in self.frame.live]
        if others and {name, *others} & self.changed_in_place():
            raise self.refused(
                f"'{name or others[0]}' and '{others[0]}' name one array from here on, "
                "which is written to",
                f"copy the elements: {others[0]}.copy()",
                HangsOnTheIteration,
            )

    def _save_others(self, memory: Array, name: str) -> None:
        """Other names of an array whose memory is about to become another's keep its elements:
        `old = u; u = v; v = old`.
        """
        others = [n for n in self.names_of(memory) if n != name and n in self.frame.live]
        if not others:
            return
        names = self.frame.names
        if any(names.get(n) != memory or n in self.frame.outside for n in others):
            raise self.refused(
                f"'{others[0]}' names what '{name}' was, in a loop or a branch",
                f"{others[0]} = {name}.copy() before",
                HangsOnTheIteration,
            )
        kept = self.arrays.materialised(memory)
        names.update(dict.fromkeys(others, kept))

    def _store_cell(self, cell: Cell, value: Number) -> None:
        kind = value.kind if cell.kind is None else joined(cell.kind, value.kind)
        if kind != cell.kind:
            self.kinds[cell.key] = kind
            raise Restart
        assert cell.memory is not None
        self.arrays.store(value, cell.memory, [])

    def cells_of(self, node: ast.If | ast.For | ast.While, live: frozenset[str]) -> dict[str, Cell]:
        """Memory for the variables that the statement hands on; those in memory already stay."""
        made: dict[str, Cell] = {}
        for name in carried(node, live):
            before = self.frame.names.get(name)
            if isinstance(before, Cell):
                continue
            if isinstance(before, Array) and not is_bound(node, name):
                continue  # a += b changes its elements
            if isinstance(before, Fixed) and isinstance(before.value, Held):
                before = self.loaded(before.value)
            key = (*self.frame.path, id(node), name)
            made[name] = self._cell(key, before, name)
        for name, cell in made.items():
            self.frame.names[name] = cell
        return made

    def _cell(self, key: tuple[object, ...], before: Value | None, name: str) -> Cell:
        if isinstance(before, Array | Lazy):
            array = replace(self.arrays.in_memory(before), copied=False)
            if array.memory in self.arrays.views:
                array = self.arrays.materialised(array)
            if isinstance(before, Array) and not before.own:
                raise self.refused(
                    f"'{name}' is an array of the caller's and is bound to another in a loop or "
                    "a branch",
                    f"copy the elements: {name}[:] = …, or {name} = {name}.copy() before",
                    HangsOnTheIteration,
                )
            if isinstance(before, Array) and len(self.names_of(before)) > 1:
                raise self.refused(
                    f"'{name}' has other names, and is bound anew in a loop or a branch",
                    f"{name} = {name}.copy() before",
                    HangsOnTheIteration,
                )
            return Cell(key, array, array.kind)
        kind = self.kinds.get(key)
        if isinstance(kind, ArrayKind):
            return Cell(key, self.arrays.fresh(kind.kind, kind.extents), kind.kind)
        if isinstance(before, Number):
            kind = before.kind if kind is None else joined(before.kind, kind)
            return Cell(key, self.arrays.cell(kind, before), kind)
        if before is not None and not isinstance(before, Fixed):
            raise self.refused(
                f"'{name}' is {_word(before)} and is bound again in a loop or a branch",
                "give it another name there",
            )
        return Cell(key, None if kind is None else self.arrays.cell(kind), kind)

    def _settle(self, cells: Mapping[str, Cell], live: frozenset[str]) -> None:
        """After the statement: values again."""
        for name, cell in cells.items():
            if cell.memory is None or name not in live:
                self.frame.names.pop(name, None)
            elif cell.memory.shape:
                self.frame.names[name] = cell.memory
            else:
                self.frame.names[name] = self._read_cell(cell)

    def _read_cell(self, cell: Cell) -> Number:
        assert cell.memory is not None
        assert cell.kind is not None
        return replace(self.arrays.load(cell.memory, []), kind=cell.kind)
