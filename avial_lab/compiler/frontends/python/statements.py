"""Statements, and what a function returns at the ends of its branches."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from avial_lab.compiler.frontends.python.arithmetic import constant
from avial_lab.compiler.frontends.python.closures import Element
from avial_lab.compiler.frontends.python.frames import ArrayKind, Cell, Restart
from avial_lab.compiler.frontends.python.kinds import BOOL, Kind
from avial_lab.compiler.frontends.python.liveness import live_after_each, live_before
from avial_lab.compiler.frontends.python.loops import Loops
from avial_lab.compiler.frontends.python.values import Array, Fixed, Lazy, Number, Value


class Statements(Loops):
    """The layer of `Translation` that does one statement after the other."""

    def block_with_result(self, body: Sequence[ast.stmt]) -> Value | None:
        """A function's body; what it returns."""
        key = (*self.frame.path, "returned")
        before, self.after = self.after, [frozenset()]
        try:
            found = self._returning(list(body), key)
            return None if found is _NOWHERE else found
        finally:
            self.after = before

    def _returning(self, body: list[ast.stmt], key: tuple[object, ...]) -> Value | None:
        """The last statement returns, or both branches of it do, or none; `_NOWHERE` where it
        raises.
        """
        last = body[-1] if body else None
        if isinstance(last, ast.Return):
            self.block(body[:-1], live_before([last], frozenset()))
            if self.frame.path == ():
                self.returned = last
            with self.e.at(last):
                return None if last.value is None else self.expression(last.value)
        if isinstance(last, ast.If) and _returns(last):
            self.block(body[:-1], live_before([last], frozenset()))
            return self._returning_if(last, key)
        self.block(body, frozenset())
        return _NOWHERE if _raises(body) else None

    def _returning_if(self, node: ast.If, key: tuple[object, ...]) -> Value | None:
        """Results of two branches: what they return is put into the same cells."""
        with self.e.at(node):
            condition = self.condition(node.test)
            if condition.known is not None:
                return self._returning(
                    list(node.body if condition.known else node.orelse), (*key, id(node))
                )
            cells = _ReturnCells(self, (*key, id(node)))
            names = dict(self.frame.names)
            head = f"scf.if {condition.ssa} {{"
            with self.e.block(head, end=""):
                self._refine(node.test, holds=True)
                cells.put(self._returning(list(node.body), (*key, id(node), 0)))
            self.frame.names = dict(names)
            with self.e.block("} else {"):
                self._refine(node.test, holds=False)
                cells.put(self._returning(list(node.orelse), (*key, id(node), 1)))
            self.frame.names = names
            return cells.get()

    def block(self, body: Sequence[ast.stmt], after: frozenset[str]) -> None:
        before, self.frame.outside = self.frame.outside, dict(self.frame.names)
        for statement, live in zip(body, live_after_each(body, after), strict=True):
            with self.e.at(statement):
                self.statement(statement, live)
        self.frame.outside = before

    def statement(self, node: ast.stmt, live: frozenset[str]) -> None:
        match node:
            case ast.Assign(targets, value):
                self._assign(targets, value, live)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self._assign([target], value, live)
            case ast.AugAssign(target, op, value):
                self._augmented(target, op, value)
            case ast.For():
                self._for(node, live)
            case ast.While():
                self._while(node, live)
            case ast.If():
                self._if(node, live)
            case Element(value):
                self._told_element(value)
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.expression(value)
            case ast.Assert(test, message):
                self._assert(test, message)
            case ast.Raise():
                self._raise(node)
            case ast.With():
                self._with(node, live)
            case ast.Global() | ast.Nonlocal():
                raise self.refused(
                    "a global variable cannot be changed", "hand it over, and hand it back"
                )
            case ast.Try():
                raise self.not_there("try", node, "test for what may go wrong with if")
            case ast.FunctionDef(name):
                self.bind_name(name, self.closures.made(node))
            case ast.Import() | ast.ImportFrom():
                raise self.not_there("import", node, "import outside of the function")
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.frame.names.pop(target.id, None)
            case ast.Return():
                raise self.refused("a return is at the end of the function here", "")
            case _:
                what = type(node).__name__.lower()
                raise self.not_there(f"'{what}'", node, "write it with for, while and if")

    def _assert(self, test: ast.expr, message: ast.expr | None) -> None:
        condition = self.condition(test)
        words = ""
        if message is not None:
            if not isinstance(message, ast.Constant) or not isinstance(message.value, str):
                raise self.refused("the text of an assert is a constant here", "", node=message)
            words = message.value
        if condition.known:
            return
        if condition.known is None:
            self.a.raise_unless(self.a.value(condition, BOOL), "AssertionError", words)
        else:
            self._raise_here(AssertionError, words)

    def _raise(self, node: ast.Raise) -> None:
        match node.exc:
            case ast.Call(ast.Name(kind), [ast.Constant(str(words))], []):
                pass
            case ast.Call(ast.Name(kind), [], []) | ast.Name(kind):
                words = ""
            case _:
                raise self.refused("an exception with a constant text is raised here", "")
        found = getattr(builtins, kind, None)
        if not (isinstance(found, type) and issubclass(found, Exception)):
            raise self.refused(f"{kind} is no exception of Python's own", "raise ValueError(…)")
        self._raise_here(found, words)

    def _raise_here(self, kind: type[Exception], words: str) -> None:
        """What every run does needs no run: all arrays are as they were after one."""
        if self.e.is_certain and self.e.plain:
            raise self.refused(words or kind.__name__, "", kind)
        self.a.raise_unless(self.a.value(constant(False), BOOL), kind.__name__, words)

    def _with(self, node: ast.With, live: frozenset[str]) -> None:
        raise self.not_there("with", node, "leave it out")

    def _if(self, node: ast.If, live: frozenset[str]) -> None:
        condition = self.condition(node.test)
        if condition.known is not None:
            self.block(node.body if condition.known else node.orelse, live)
            return
        cells = self.cells_of(node, live)
        with self.e.block(f"scf.if {condition.ssa} {{", end="" if node.orelse else "}"):
            self._refine(node.test, holds=True)
            self._scoped(node.body, live)
        if node.orelse:
            with self.e.block("} else {"):
                self._refine(node.test, holds=False)
                self._scoped(node.orelse, live)
        self._settle(cells, live)

    def _scoped(self, body: Sequence[ast.stmt], live: frozenset[str]) -> None:
        """What is bound in there is gone afterwards, but for cells."""
        names = dict(self.frame.names)
        self.block(body, live)
        self.frame.names = names


@dataclass
class _ReturnCells:
    """What two branches return: an array that both of them name; else in memory of its own."""

    t: Statements
    key: tuple[object, ...]

    def __post_init__(self) -> None:
        self.cells: dict[int, Cell] = {}
        self.arrays: dict[int, Array] = {}
        self.is_tuple: bool | None = None
        self.count: int | None = None
        for key, kind in self.t.kinds.items():
            if key[:-1] != (*self.key, "result"):
                continue
            made = (
                self.t.arrays.fresh(kind.kind, kind.extents)
                if isinstance(kind, ArrayKind)
                else self.t.arrays.cell(kind)
            )
            self.cells[cast("int", key[-1])] = Cell(key, made, made.kind)

    def put(self, value: Value | None) -> None:
        if value is _NOWHERE:
            return
        nothing = value is None or value == Fixed(None)
        parts = list(value) if isinstance(value, tuple) else [] if nothing else [value]
        if self.count is not None and 0 in (self.count, len(parts)) and self.count != len(parts):
            raise self.t.refused(
                "a branch returns a value, and another one nothing",
                "return a value everywhere: -1, say, or math.nan",
            )
        if self.is_tuple not in (None, isinstance(value, tuple)) or (
            self.count not in (None, len(parts))
        ):
            raise self._different()
        self.is_tuple, self.count = isinstance(value, tuple), len(parts)
        missing = False
        for k, part in enumerate(parts):
            if isinstance(part, Array | Lazy):
                self._put_array(k, self.t.arrays.in_memory(part))
                continue
            if not isinstance(part, Number) or k in self.arrays:
                raise self._different()
            if k not in self.cells:
                self.t.kinds[(*self.key, "result", k)] = part.kind
                missing = True
                continue
            self.t._store_cell(self.cells[k], part)
        if missing:
            raise Restart

    def _put_array(self, k: int, part: Array) -> None:
        other = self.cells[k].memory if k in self.cells else self.arrays.setdefault(k, part)
        assert other is not None
        if other == part:
            return
        if other.shape != part.shape or other.kind.dtype != part.kind.dtype or not other.shape:
            raise self._different()
        if not (part.own and other.own):
            raise self.t.refused(
                "a branch returns an array of the caller's, and another one does not",
                "return a copy: ….copy()",
            )
        if k in self.cells:
            self.t.arrays.assign(other, part)
            return
        if not self.t._sized(part):
            raise self._different()
        self.t.kinds[(*self.key, "result", k)] = ArrayKind(Kind(part.kind.dtype), part.shape)
        raise Restart

    def _different(self) -> Exception:
        return self.t.refused(
            "the branches return different things",
            "return as many everywhere: numbers, or arrays of one shape and dtype",
        )

    def get(self) -> Value | None:
        if self.count is None:
            return _NOWHERE
        found = tuple(map(self._found, range(self.count)))
        if not found:
            return None
        return found if self.is_tuple else found[0]

    def _found(self, k: int) -> Value:
        if k in self.arrays:
            return self.arrays[k]
        cell = self.cells[k]
        assert cell.memory is not None
        return cell.memory if cell.memory.shape else self.t._read_cell(cell)


_NOWHERE = Fixed(object())
"""What is returned where an exception is raised in any case."""


def _raises(body: Sequence[ast.stmt]) -> bool:
    """Whether whatever ends it is an exception."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _raises(last.body) and _raises(last.orelse)
    return isinstance(last, ast.Raise)


def _returns(node: ast.If) -> bool:
    def ends(body: Sequence[ast.stmt]) -> bool:
        if not body:
            return False
        last = body[-1]
        return isinstance(last, ast.Return) or (isinstance(last, ast.If) and _returns(last))

    return ends(node.body) or ends(node.orelse)
