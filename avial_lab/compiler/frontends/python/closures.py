"""Functions that are defined within, and comprehensions, in place of their calls.

A nested function reads its surroundings when it is called. A comprehension is such a function: of a
loop that fills an array, or that adds up.

    sum(f(v) for v in x if v > 0)   ─►   total = 0
                                         for v in x:
                                             if v > 0: total = total + f(v)
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from avial_lab.compiler.frontends.python.kinds import Kind
from avial_lab.compiler.frontends.python.scopes import (
    binds_in,
    bound_by,
    names_in,
    parameters_of,
)
from avial_lab.compiler.frontends.python.values import (
    Array,
    Closure,
    Fixed,
    Lazy,
    Listed,
    Value,
)

if TYPE_CHECKING:
    from avial_lab.compiler.frontends.python.translate import Translation

LIST, COUNT, TOTAL, SEEN, VALUE = "·list", "·count", "the result", "·seen", "·value"
PLACE = "·place"
"""Names within what a comprehension or a loop is translated as; none can be one of the person's."""


class Element(ast.Expr):
    """The statement that tells what kind of elements a list has."""


class Closures:
    """Those of one translation."""

    def __init__(self, translation: Translation) -> None:
        self.t = translation

    # -- functions ---

    def made(self, node: ast.FunctionDef | ast.Lambda) -> Closure:
        """Its defaults are what they are now."""
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            raise self.t.refused(
                "a function within the function has no decorator here",
                "leave it out: it is compiled with the function that it is in",
                node=node.decorator_list[0],
            )
        if node.args.vararg is not None or node.args.kwarg is not None:
            raise self.t.refused("*args and **kwargs are not supported", "name each parameter")
        positional = [*node.args.posonlyargs, *node.args.args]
        late = positional[len(positional) - len(node.args.defaults) :]
        given = [*zip(late, node.args.defaults, strict=True)]
        given += [
            (arg, value)
            for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value is not None
        ]
        defaults = {arg.arg: self.t.expression(value) for arg, value in given}
        return Closure(node, self.t.frame, defaults)

    def called(
        self, closure: Closure, args: list[Any], named: Mapping[str, Any], node: ast.AST
    ) -> Value:
        function = closure.node
        name = getattr(function, "name", "the lambda")
        try:
            bound = self._signature(closure).bind(*args, **named)
        except TypeError as error:
            raise self.t.refused(f"{name}: {error}", "", TypeError) from None
        given = {
            key: self.t.arrays.materialised(value) if isinstance(value, Lazy) else value
            for key, value in (dict(closure.defaults) | bound.arguments).items()
        }
        if isinstance(function, ast.Lambda):
            made = ast.copy_location(ast.Return(function.body), function.body)
            body = self._once(function, lambda: [made])
        else:
            body = self._once(function, lambda: self.t.plain_body(function.body))
        return self.t.within(closure.frame, body, bound_by(function), given, node)

    def _signature(self, closure: Closure) -> inspect.Signature:
        arguments, kinds = closure.node.args, inspect.Parameter
        rows = [
            *((each, kinds.POSITIONAL_ONLY) for each in arguments.posonlyargs),
            *((each, kinds.POSITIONAL_OR_KEYWORD) for each in arguments.args),
            *((each, kinds.KEYWORD_ONLY) for each in arguments.kwonlyargs),
        ]
        assert len(rows) == len(parameters_of(closure.node))
        return inspect.Signature(
            [
                kinds(each.arg, kind, default=None if each.arg in closure.defaults else kinds.empty)
                for each, kind in rows
            ]
        )

    def _once(self, key: object, made: Callable[[], list[ast.stmt]]) -> list[ast.stmt]:
        """The same nodes in each translation, by which kinds of variables are remembered."""
        kept = self.t.bodies
        if id(key) not in kept:
            kept[id(key)] = made()
        return kept[id(key)]

    # -- loops over all places of an array ---

    def nested(self, node: ast.For) -> ast.For | None:
        """`for i, j in np.ndindex(a.shape)` as a loop for each dimension, the last one innermost;
        None for other loops.
        """
        call = node.iter
        if not isinstance(call, ast.Call) or isinstance(call.func, ast.Call) or not call.args:
            return None
        called = self.t.expression(call.func)
        if not isinstance(called, Fixed) or called.value not in (np.ndindex, np.ndenumerate):
            return None
        made = self._once(node, lambda: [self._nest(node, call, called.value)])[0]
        assert isinstance(made, ast.For)
        return made

    def _nest(self, node: ast.For, call: ast.Call, called: object) -> ast.stmt:
        first = call.args[0]
        if isinstance(first, ast.Starred) and len(call.args) == 1:
            first = first.value
        shape = ast.Attribute(first, "shape") if called is np.ndenumerate else first
        if not isinstance(first, ast.Name | ast.Attribute | ast.Tuple | ast.Constant):
            raise self.t.refused("what this goes over has no name", "name it before", node=first)
        _placed([ast.Expr(shape)], call)
        whole = self.t.expression(shape)
        ends: list[ast.expr] = list(call.args)
        if isinstance(whole, tuple):
            ends = [ast.Subscript(shape, ast.Constant(value=d)) for d in range(len(whole))]
        names = [f"{PLACE}{d}" for d in range(len(ends))]
        places: ast.expr = ast.Tuple([_load(name) for name in names])
        if called is np.ndenumerate:
            places = ast.Tuple([places, ast.Subscript(first, places)])
        body: list[ast.stmt] = [ast.Assign([node.target], places), *node.body]
        along = ast.Constant(value=cast("Any", range))
        for name, end in zip(reversed(names), reversed(ends), strict=True):
            target = ast.Name(name, ast.Store())
            body = [ast.For(target, ast.Call(along, [end], []), body, [], None)]
        return _placed(body, node)[0]

    # -- comprehensions ---

    def reduced(self, called: object, node: ast.Call) -> Value | None:
        """sum(…), max(…), all(…) of a comprehension; None where this is none."""
        if not node.args or _how(called) is None:
            return None
        of = self._comprehension(node.args[0])
        if of is None:
            return None
        if called is builtins.sum and len(node.args) + len(node.keywords) == 2:
            start = node.args[1] if len(node.args) > 1 else node.keywords[0].value
        elif len(node.args) > 1 or node.keywords:
            raise self.t.refused("key= and default= are not supported", "write the loop")
        else:
            start = ast.Constant(value=0)
        begin, each, end = _HOW[called](of.elt, start)
        body = self._once(of, lambda: _placed(self._body(of, begin, each, end), of))
        return self._run(of, body, {}, {TOTAL, SEEN, VALUE})

    def _comprehension(self, node: ast.expr) -> ast.ListComp | ast.GeneratorExp | None:
        """Also `map(f, x)`, `range(n)` and their like, as one."""
        if isinstance(node, ast.GeneratorExp | ast.ListComp):
            return node
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        if self.t.calls.is_sequence(node.func):
            value = ast.copy_location(ast.Name("·each", ast.Load()), node)
            target = ast.copy_location(ast.Name("·each", ast.Store()), node)
            part = ast.comprehension(target, node, [], 0)
            made = ast.Expr(ast.GeneratorExp(value, [part]))
            kept = self._once(node, lambda: _placed([made], node))[0]
            assert isinstance(kept, ast.Expr)
            assert isinstance(kept.value, ast.GeneratorExp)
            return kept.value
        return None

    def _body(
        self,
        of: ast.ListComp | ast.GeneratorExp,
        begin: Sequence[ast.stmt],
        each: Sequence[ast.stmt],
        end: Sequence[ast.stmt],
    ) -> list[ast.stmt]:
        """Loops around `each`."""
        inner: list[ast.stmt] = list(each)
        for part in reversed(of.generators):
            if part.is_async:
                raise self.t.refused("async is not supported", "leave it out", node=of)
            for test in reversed(part.ifs):
                inner = [ast.If(test, inner, [])]
            inner = [ast.For(part.target, part.iter, inner, [], None)]
        return [*begin, *inner, *end]

    def _run(
        self,
        of: ast.ListComp | ast.GeneratorExp,
        body: list[ast.stmt],
        given: Mapping[str, Value],
        own: set[str],
    ) -> Value:
        if binds_in(of):
            raise self.t.refused(
                "':=' in a comprehension is not supported", "write the loop", node=of
            )
        targets = {n.id for part in of.generators for n in names_in(part.target)}
        outer = {n.id for n in names_in(of.generators[0].iter)}
        if targets & outer:
            raise self.t.refused(
                f"'{min(targets & outer)}' is what the comprehension goes over and its variable",
                "give the variable another name",
                node=of,
            )
        own = own | targets | set(given)
        return self.t.within(self.t.frame, body, frozenset(own), given, of)

    def listed(self, node: ast.ListComp) -> Value:
        """A list that is as long as what it goes over."""
        part = node.generators[0]
        if len(node.generators) > 1:
            raise self.t.refused(
                "a list has one 'for' here",
                "make an array, np.empty(…), and fill it in loops, or put a list into the list",
                node=node,
            )
        sequence = self.t.calls.iterated(part.iter)
        if sequence.items is not None:
            return self._of_tuple(node, sequence.items)
        key = (*self.t.frame.path, id(node), "list")
        kind = self.t.kinds.get(key)
        filled = self._once(node, lambda: _placed(self._filling(node), node))
        if kind is None:
            told = self._once(part, lambda: _placed(self._telling(node), node))
            self.t.list_kinds.append(key)
            self._run(node, told, {}, {COUNT})
            raise self.t.refused("what this list holds is not known here", "np.empty(…)", node=node)
        if sequence.step.known != 1:
            sequence = self.t.calls.counted(sequence)
        extents = getattr(kind, "extents", ())
        kind = getattr(kind, "kind", kind)
        assert isinstance(kind, Kind)
        memory = self.t.arrays.fresh(kind, (sequence.high - sequence.low, *extents))
        result = self._run(node, filled, {LIST: memory}, {COUNT})
        assert isinstance(result, Array)
        return Listed(result, kind)

    def _of_tuple(self, node: ast.ListComp, items: Sequence[Value]) -> Value:
        part = node.generators[0]
        if part.ifs:
            raise self.t.refused("'if' in a list over a tuple is not supported", "", node=node)
        name = ast.Name(LIST, ast.Load())
        body = self._once(
            node,
            lambda: _placed(
                [ast.Assign([part.target], name), ast.Return(node.elt)],
                node,
            ),
        )
        return tuple(self._run(node, body, {LIST: each}, set()) for each in items)

    def _filling(self, node: ast.ListComp) -> list[ast.stmt]:
        part = node.generators[0]
        at = ast.Subscript(ast.Name(LIST, ast.Load()), ast.Name(COUNT, ast.Load()), ast.Store())
        store = ast.Assign([at], node.elt)
        whole = ast.Name(LIST, ast.Load())
        if not part.ifs:
            pair = ast.Tuple([ast.Name(COUNT, ast.Store()), part.target], ast.Store())
            along = ast.Call(ast.Constant(cast("Any", enumerate)), [part.iter], [])
            return [ast.For(pair, along, [store], [], None), ast.Return(whole)]
        zero, one = ast.Constant(value=0), ast.Constant(value=1)
        count = ast.Name(COUNT, ast.Store())
        begin = [ast.Assign([count], zero)]
        each = [store, ast.AugAssign(count, ast.Add(), one)]
        stretch = ast.Slice(None, ast.Name(COUNT, ast.Load()), None)
        end = [ast.Return(ast.Subscript(whole, stretch, ast.Load()))]
        return self._body(node, begin, each, end)

    def _telling(self, node: ast.ListComp) -> list[ast.stmt]:
        return self._body(node, [], [Element(node.elt)], [])


def _placed(body: list[ast.stmt], at: ast.expr | ast.stmt) -> list[ast.stmt]:
    """Each node that has no place stands where the comprehension does."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
                ast.copy_location(node, at)
    return body


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _bind(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


Parts = tuple[list[ast.stmt], list[ast.stmt], list[ast.stmt]]


def _adding(op: ast.operator) -> Callable[[ast.expr, ast.expr], Parts]:
    def parts(element: ast.expr, start: ast.expr) -> Parts:
        step = ast.BinOp(_load(TOTAL), op, element)
        return [_bind(TOTAL, start)], [_bind(TOTAL, step)], [ast.Return(_load(TOTAL))]

    return parts


def _product(element: ast.expr, _: ast.expr) -> Parts:
    return _adding(ast.Mult())(element, ast.Constant(value=1))


def _deciding(*, stops: bool) -> Callable[[ast.expr, ast.expr], Parts]:
    """any and all: what comes after the one that decides is not computed."""

    def parts(element: ast.expr, _: ast.expr) -> Parts:
        test = element if stops else ast.UnaryOp(ast.Not(), element)
        decided = _load(TOTAL) if stops else ast.UnaryOp(ast.Not(), _load(TOTAL))
        found = ast.If(test, [_bind(TOTAL, ast.Constant(value=stops))], [])
        each = ast.If(decided, [ast.Pass()], [found])
        begin = [_bind(TOTAL, ast.Constant(value=not stops))]
        return begin, [each], [ast.Return(_load(TOTAL))]

    return parts


def _choosing(op: ast.cmpop) -> Callable[[ast.expr, ast.expr], Parts]:
    """Python's max and min: the first of equals; a nan stays where it came first."""

    def parts(element: ast.expr, _: ast.expr) -> Parts:
        name = {ast.Gt: "max", ast.Lt: "min"}[type(op)]
        better = ast.Compare(_load(VALUE), [op], [_load(TOTAL)])
        take = _bind(TOTAL, _load(VALUE))
        first = ast.UnaryOp(ast.Not(), _load(SEEN))
        begin = [_bind(TOTAL, _load(VALUE)), _bind(SEEN, ast.Constant(value=True))]
        taken = ast.If(first, begin, [ast.If(better, [take], [])])
        words = f"{name}() arg is an empty sequence"
        error = ast.Call(ast.Name("ValueError", ast.Load()), [ast.Constant(value=words)], [])
        nothing = ast.UnaryOp(ast.Not(), _load(SEEN))
        empty = ast.If(nothing, [ast.Raise(error, None)], [])
        begin = [_bind(SEEN, ast.Constant(value=False))]
        return begin, [_bind(VALUE, element), taken], [empty, ast.Return(_load(TOTAL))]

    return parts


_HOW: dict[object, Callable[[ast.expr, ast.expr], Parts]] = {
    builtins.sum: _adding(ast.Add()),
    math.prod: _product,
    builtins.any: _deciding(stops=True),
    builtins.all: _deciding(stops=False),
    builtins.max: _choosing(ast.Gt()),
    builtins.min: _choosing(ast.Lt()),
}


def _how(called: object) -> Callable[[ast.expr, ast.expr], Parts] | None:
    try:
        return _HOW.get(called)
    except TypeError:
        return None
