"""Tasks as a Python function marks them, and its statements arranged by them.

    with avial_lab.task(target="gpu", name="rhs"):      for i in avial_lab.replicate(range(n)):
    for _ in avial_lab.converge(error, below=1e-6, most=1000):

A function's statements -> the same as tasks, and loops around them; what is marked as nothing is a
task of its own. As Python runs the function, the markers do what they say in one process.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from avial_lab.core.errors import OptionError

T = TypeVar("T")


# -- what people write -----------------------------------------------------------------------------


def task(*, target: str = "cpu", name: str = "") -> AbstractContextManager[None]:
    """The statements under it are one task, on a device that `target` asks for (`cpu`, `gpu`,
    `sm_90`); what it reads and writes follows from them.
    """
    return nullcontext()


def replicate(iterable: Iterable[T], *, target: str = "cpu", name: str = "") -> Iterable[T]:
    """A loop whose iterations are divided over all devices of its target."""
    return iterable


def converge(
    watched: np.ndarray[Any, Any] | None = None,
    *,
    below: float | None = None,
    above: float | None = None,
    most: int,
) -> Iterator[int]:
    """Rounds of the tasks under it: `most` of them, or until `watched`, an array of one element, is
    below or above a number after one.
    """
    if (watched is None) != (below is None and above is None):
        raise OptionError(
            "converge watches an array, and a number that it gets below or above",
            hint="for _ in avial_lab.converge(error, below=1e-6, most=1000):",
        )
    return _rounds(watched, below, above, most)


def _rounds(
    watched: np.ndarray[Any, Any] | None, below: float | None, above: float | None, most: int
) -> Generator[int]:
    for turn in range(most):
        yield turn
        if watched is None:
            continue
        value = watched.reshape(-1)[0]
        if (below is not None and value < below) or (above is not None and value > above):
            return


# -- how a function is arranged --------------------------------------------------------------------


class Marked(ast.If):
    """Statements that are one task; `as_what`: `task`, or `replicate` of the one loop in it."""

    as_what: str
    target: str
    name: str


class Rounds(ast.For):
    """A converge: `watched` is an expression, or None."""

    watched: ast.expr | None
    predicate: str
    threshold: float
    most: int


@dataclass(frozen=True)
class Arrangement:
    """Of one function's statements, in which `called` says what an expression names. `refuse` makes
    the error for what cannot be.
    """

    called: Callable[[ast.expr], object]
    refuse: Callable[..., Exception]

    def has_tasks(self, *nodes: ast.AST) -> bool:
        return any(self._marker(each) is not None for node in nodes for each in ast.walk(node))

    def arranged(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Every statement in there is a task, or a loop around tasks; a return stands last."""
        return [self._statement(each) for each in body]

    def _marker(self, node: ast.AST) -> object:
        """Of a `with` or a loop, the one of the three functions above that it calls."""
        call: ast.AST | None = None
        if isinstance(node, ast.With) and len(node.items) == 1:
            call = node.items[0].context_expr
        elif isinstance(node, ast.For):
            call = node.iter
        if not isinstance(call, ast.Call):
            return None
        found = self.called(call.func)
        return found if found in (task, replicate, converge) else None

    def _statement(self, node: ast.stmt) -> ast.stmt:
        marker = self._marker(node)
        if isinstance(node, ast.Return):
            return node
        if isinstance(node, ast.With) and marker is task:
            self._refuse_within(node.body, "a task holds no other task")
            call = node.items[0].context_expr
            assert isinstance(call, ast.Call)
            given = self._named(call, "target", "name")
            return _marked(node, node.body, "task", given)
        if isinstance(node, ast.For) and marker is replicate:
            self._refuse_within(node.body, "a replicate holds no task")
            assert isinstance(node.iter, ast.Call)
            given = self._named(node.iter, "target", "name")
            if len(node.iter.args) != 1:
                raise self.refuse("replicate takes one range", "replicate(range(n))", node=node)
            loop = ast.For(node.target, node.iter.args[0], node.body, node.orelse, None)
            return _marked(node, [ast.copy_location(loop, node)], "replicate", given)
        if isinstance(node, ast.For) and marker is converge:
            return self._rounds(node)
        if not self.has_tasks(node):
            return _marked(node, [node], "task", {})
        if isinstance(node, ast.For) and type(node) is ast.For:
            made = ast.For(node.target, node.iter, self.arranged(node.body), node.orelse, None)
            return ast.copy_location(made, node)
        raise self.refuse(
            "tasks stand in the function, and in loops over a range",
            "put the whole statement into a task, or end a loop with avial_lab.converge(…)",
            node=node,
        )

    def _refuse_within(self, body: Sequence[ast.stmt], words: str) -> None:
        for node in body:
            if self.has_tasks(node):
                raise self.refuse(words, "end the one before the other", node=node)

    def _named(self, call: ast.Call, *names: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in call.keywords:
            value = keyword.value
            if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
                value = value.operand
            if keyword.arg not in names or not isinstance(value, ast.Constant):
                raise self.refuse(
                    f"{keyword.arg} is a constant here, one of {', '.join(names)}", "", node=call
                )
            found[keyword.arg] = ast.literal_eval(keyword.value)
        return found

    def _rounds(self, node: ast.For) -> Rounds:
        call = node.iter
        assert isinstance(call, ast.Call)
        given = self._named(call, "below", "above", "most")
        limits = {"lt": given.get("below"), "gt": given.get("above")}
        found = [(name, float(limit)) for name, limit in limits.items() if limit is not None]
        if "most" not in given or len(found) != len(call.args) or len(found) > 1:
            raise self.refuse(
                "converge takes most=, and for an array that it watches below= or above=",
                "converge(error, below=1e-6, most=1000)",
                node=call,
            )
        used = {n.id for each in node.body for n in ast.walk(each) if isinstance(n, ast.Name)}
        if isinstance(node.target, ast.Name) and node.target.id in used:
            raise self.refuse(
                "which round it is, is not known to tasks", "count in an array", node=node
            )
        made = Rounds(node.target, node.iter, self.arranged(node.body), node.orelse, None)
        made.watched = call.args[0] if call.args else None
        made.predicate, made.threshold = found[0] if found else ("", 0.0)
        made.most = int(given["most"])
        return ast.copy_location(made, node)


def _marked(at: ast.stmt, body: Sequence[ast.stmt], as_what: str, given: dict[str, Any]) -> Marked:
    made = Marked(ast.Constant(value=True), list(body), [])
    made.as_what, made.target = as_what, str(given.get("target", "cpu"))
    made.name = str(given.get("name", ""))
    ast.copy_location(made, at)
    return ast.fix_missing_locations(made)


def named_in(function: FunctionType, node: ast.expr) -> object:
    """What a name, or a name's attributes, stand for around the function; None where nothing."""
    if isinstance(node, ast.Attribute):
        base = named_in(function, node.value)
        return None if base is None else getattr(base, node.attr, None)
    if not isinstance(node, ast.Name):
        return None
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in closure:
        if name == node.id:
            return cell.cell_contents
    return function.__globals__.get(node.id, getattr(builtins, node.id, None))
