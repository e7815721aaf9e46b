"""break, continue and early returns as conditions.

for i in r:              broken = False
    if a: continue       while more and not broken:
    if b: break    ─►        if not a:
    c                            if b: broken = True
else: d                          else: c
                         if not broken: d
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

RETURNED = "·returned"
"""What names of an early return's results begin with."""

_JUMPS = (ast.Continue, ast.Break, ast.Return)


class StoppedFor(ast.For):
    """A loop that may end before its range does: when the variable `flag` holds."""

    flag: str


@dataclass
class Jumps:
    """Numbers the names that it makes up; none can be one of the person's."""

    count: int = 0

    def without(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A function's body whose returns are at its ends, and which has no other jumps."""
        return self._block(list(body))

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Whatever follows a statement that may jump goes into the branches that do not."""
        done: list[ast.stmt] = []
        for at, statement in enumerate(body):
            rest = body[at + 1 :]
            if isinstance(statement, _JUMPS):
                return [*done, statement]
            if isinstance(statement, ast.For | ast.While):
                flag, loop, otherwise = self._loop(statement)
                done += loop
                if otherwise:
                    rest = [*otherwise, *rest]
                if flag is None and not otherwise:
                    continue
                if flag is None:
                    return [*done, *self._block(rest)]
                # It may have returned.
                value = _returned(flag, _arity(statement), ast.Load())
                back = _like(ast.Return(value), statement)
                if _ends_by_return(statement):
                    return [*done, back]
                done.append(_like(ast.If(_name(flag, ast.Load()), [back], self._block(rest)), back))
                return done
            if isinstance(statement, ast.With):
                statement = _like(
                    ast.With(statement.items, self._block(list(statement.body))), statement
                )
            if not isinstance(statement, ast.If):
                done.append(statement)
                continue
            if not _may_jump(statement):
                branches = self._block(list(statement.body)), self._block(list(statement.orelse))
                done.append(_like(ast.If(statement.test, *branches), statement))
                continue
            then, other = [*statement.body], [*statement.orelse]
            then += [] if _always_jumps(then) else rest
            other += [] if _always_jumps(other) else rest
            branches = self._block(then), self._block(other)
            done.append(_like(ast.If(statement.test, *branches), statement))
            return done
        return done

    def _loop(self, loop: ast.For | ast.While) -> tuple[str | None, list[ast.stmt], list[ast.stmt]]:
        """The loop without jumps out of it; the flag that says that it has returned; its `else`, as
        what comes then.
        """
        self.count += 1
        broken, returned = f"·broken{self.count}", f"{RETURNED}{self.count}"
        body = self._block(list(loop.body))
        breaks, returns = _has(body, ast.Break), _has(body, ast.Return)
        flags = _Flags(broken, returned, _arity(loop))
        body = flags.end(body)
        if not (breaks or returns):
            return None, [_like(_with_body(loop, body), loop)], list(loop.orelse)
        before = [_assign(broken, ast.Constant(value=False), loop)]
        if returns:
            before.append(_assign(returned, ast.Constant(value=False), loop))
        going = ast.UnaryOp(ast.Not(), _name(broken, ast.Load()))
        otherwise = [_like(ast.If(going, list(loop.orelse), []), loop)] if loop.orelse else []
        if isinstance(loop, ast.While):
            test = ast.BoolOp(ast.And(), [going, loop.test])
            made = ast.While(test, body, [])
        else:
            made = StoppedFor(loop.target, loop.iter, body, [], None)
            made.flag = broken
        return (returned if returns else None), [*before, _like(made, loop)], otherwise


@dataclass(frozen=True)
class _Flags:
    """What jumps become at the ends of a loop's body."""

    broken: str
    returned: str
    arity: int | None

    def end(self, body: list[ast.stmt]) -> list[ast.stmt]:
        if not body:
            return body
        last = body[-1]
        match last:
            case ast.Continue():
                return body[:-1]
            case ast.Break():
                return [*body[:-1], _assign(self.broken, ast.Constant(value=True), last)]
            case ast.Return(value):
                target = _returned(self.returned, self.arity, ast.Store())
                value = value or ast.Constant(value=None)
                kept = [] if target is None else [_like(ast.Assign([target], value), last)]
                return [
                    *body[:-1],
                    *kept,
                    _assign(self.returned, ast.Constant(value=True), last),
                    _assign(self.broken, ast.Constant(value=True), last),
                ]
            case ast.If(test, then, other):
                made = ast.If(test, self.end(then) or [_like(ast.Pass(), last)], self.end(other))
                return [*body[:-1], _like(made, last)]
            case _:
                return body


def _ends_by_return(loop: ast.For | ast.While) -> bool:
    """Whether a loop that returns comes to no other end: `while True` without a break."""
    endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
    return endless and bool(loop.test.value) and not _has(loop.body, ast.Break)


def _arity(loop: ast.AST) -> int | None:
    """How many values the first return in there hands back: 0 where none of them hands anything
    back; None for one that is no tuple.
    """
    found = [node.value for node in ast.walk(loop) if isinstance(node, ast.Return)]
    if all(value is None or _is_none(value) for value in found):
        return 0
    return len(found[0].elts) if isinstance(found[0], ast.Tuple) and found[0].elts else None


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _returned(flag: str, arity: int | None, context: ast.expr_context) -> ast.expr | None:
    """What a loop that returns has put aside, if anything."""
    if arity == 0:
        return None
    if arity is None:
        return _name(f"{flag}_value", context)
    return ast.Tuple([_name(f"{flag}_value{k}", context) for k in range(arity)], context)


def _with_body(loop: ast.For | ast.While, body: list[ast.stmt]) -> ast.For | ast.While:
    if isinstance(loop, ast.While):
        return ast.While(loop.test, body, [])
    return ast.For(loop.target, loop.iter, body, [], None)


def _may_jump(node: ast.AST) -> bool:
    """Whether it may leave the block that it is in; loops within keep their own jumps."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _JUMPS):
            return True
        if isinstance(child, ast.For | ast.While):
            if _has([child], ast.Return) or any(map(_jumps, child.orelse)):
                return True
            continue
        if isinstance(child, ast.stmt) and _may_jump(child):
            return True
    return False


def _jumps(node: ast.stmt) -> bool:
    return isinstance(node, _JUMPS) or _may_jump(node)


def _always_jumps(body: Sequence[ast.stmt]) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _always_jumps(last.body) and _always_jumps(last.orelse)
    return isinstance(last, _JUMPS)


def _has(body: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether there is such a statement, not counting what loops within have of their own."""
    for statement in body:
        if isinstance(statement, kind):
            return True
        inner = [c for c in ast.iter_child_nodes(statement) if isinstance(c, ast.stmt)]
        if isinstance(statement, ast.For | ast.While) and kind is not ast.Return:
            continue
        if _has(inner, kind):
            return True
    return False


def _name(name: str, context: ast.expr_context) -> ast.Name:
    return ast.Name(name, context)


def _assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return _like(ast.Assign([_name(name, ast.Store())], value), at)


def _like(made: ast.stmt, at: ast.AST) -> ast.stmt:
    ast.copy_location(made, at)
    for child in ast.iter_child_nodes(made):
        if not hasattr(child, "lineno"):
            ast.copy_location(child, at)
    return ast.fix_missing_locations(made)
