"""Scopes within a function: nested functions, lambdas, comprehensions.

What a nested function reads of its surroundings is looked at where it is called, which liveness has
to know: `Reaching` is a name of such a function, with those names below it.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence

FUNCTIONS = (ast.FunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


class Reaching(ast.Name):
    """A name of a function that is defined within, where it is looked at."""

    _fields = ("id", "ctx", "reached")
    reached: list[ast.Name]


def names_in(node: ast.AST) -> Generator[ast.Name]:
    """Names of the scope that the node is in: what the scopes within bind of their own is left out.

    >>> [n.id for n in names_in(ast.parse("f = lambda x: x + k; sum(i * s for i in range(n))"))]
    ['f', 'k', 'sum', 's', 'range', 'n']
    """
    if isinstance(node, FUNCTIONS):
        own = bound_by(node)
        # Defaults and decorators are of the scope outside.
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            yield from names_in(default)
        body = node.body if isinstance(node.body, list) else [node.body]
        for statement in body:
            yield from (each for each in names_in(statement) if _is_free(each, own))
        return
    if isinstance(node, COMPREHENSIONS):
        own = frozenset(name.id for part in node.generators for name in names_in(part.target))
        for child in ast.iter_child_nodes(node):
            for each in names_in(child):
                if each.id not in own:
                    yield each
        return
    if isinstance(node, ast.Name):
        yield node
        yield from getattr(node, "reached", ())
        return
    for child in ast.iter_child_nodes(node):
        yield from names_in(child)


def _is_free(name: ast.Name, own: frozenset[str]) -> bool:
    return name.id not in own and isinstance(name.ctx, ast.Load)


def parameters_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def bound_by(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """Names that are the function's own."""
    body = node.body if isinstance(node.body, list) else [node.body]
    stored = {n.id for part in body for n in names_in(part) if isinstance(n.ctx, ast.Store)}
    within = {each.name for part in body for each in defined_in(part)}
    return frozenset({each.arg for each in parameters_of(node)} | stored | within)


def defined_in(node: ast.AST) -> Generator[ast.FunctionDef]:
    """Functions that are defined in the node's scope."""
    if isinstance(node, ast.FunctionDef):
        yield node
    elif not isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
        for child in ast.iter_child_nodes(node):
            yield from defined_in(child)


def with_reaches(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body, its loads of functions that are defined within replaced by what these reach."""
    reaches: dict[str, frozenset[str]] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef):
                free = frozenset(each.id for each in names_in(node))
                reaches[node.name] = reaches.get(node.name, frozenset()) | free
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and _has_lambda(node):
                free = frozenset(
                    each.id for each in names_in(node) if isinstance(each.ctx, ast.Load)
                )
                for each in ast.walk(node):
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                        reaches[each.id] = reaches.get(each.id, frozenset()) | free
    if not reaches:
        return list(body)
    grown = True
    while grown:  # functions that call one another
        grown = False
        for name, free in reaches.items():
            more = free.union(*(reaches[other] for other in free if other in reaches))
            if more != free:
                reaches[name], grown = more, True
    return [_Reach(reaches).visit(statement) for statement in body]


def _has_lambda(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Lambda) for each in ast.walk(node))


class _Reach(ast.NodeTransformer):
    def __init__(self, reaches: dict[str, frozenset[str]]) -> None:
        self.reaches = reaches

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id not in self.reaches or not isinstance(node.ctx, ast.Load):
            return node
        made = Reaching(node.id, node.ctx)
        made.reached = [ast.Name(each, ast.Load()) for each in sorted(self.reaches[node.id])]
        return ast.copy_location(made, node)


def without_bindings_in_tests(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """`while (v := f()) < 5:` as a loop that binds v, and breaks."""
    return [_Unbound().visit(statement) for statement in body]


class _Unbound(ast.NodeTransformer):
    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        if not binds_in(node.test) or node.orelse:
            return node
        stop = ast.If(node.test, [ast.Pass()], [ast.Break()])
        ast.copy_location(stop, node.test)
        for each in (*stop.body, *stop.orelse):
            ast.copy_location(each, node.test)
        true = ast.copy_location(ast.Constant(value=True), node.test)
        return ast.copy_location(ast.While(true, [stop, *node.body], []), node)


def binds_in(node: ast.AST) -> bool:
    """Whether `:=` is in there."""
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))
