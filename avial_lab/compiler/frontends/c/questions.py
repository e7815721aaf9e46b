"""Questions at pycparser's trees: what is changed in there, and how a loop counts.

A node -> names, nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pycparser import c_ast


def walk(node: c_ast.Node) -> Iterator[c_ast.Node]:
    yield node
    for child in children(node):
        yield from walk(child)


def jumps_of(body: c_ast.Node) -> Iterator[c_ast.Node]:
    """The breaks and continues of the loop whose body that is."""
    if isinstance(body, c_ast.Break | c_ast.Continue):
        yield body
    if not isinstance(body, c_ast.For | c_ast.While | c_ast.DoWhile):
        for child in children(body):
            yield from jumps_of(child)


def children(node: c_ast.Node) -> list[c_ast.Node]:
    untyped: Any = node
    return [child for _, child in untyped.children()]


def ids(node: c_ast.Node) -> list[c_ast.ID]:
    return [each for each in walk(node) if isinstance(each, c_ast.ID)]


def changed(node: c_ast.Node | None) -> set[str]:
    """Names that are assigned to in there."""
    found: set[str] = set()
    for each in [] if node is None else walk(node):
        target = each.lvalue if isinstance(each, c_ast.Assignment) else None
        if isinstance(each, c_ast.UnaryOp) and each.op in ("++", "--", "p++", "p--"):
            target = each.expr
        if isinstance(target, c_ast.ID):
            found.add(target.name)
        if isinstance(each, c_ast.Decl):
            found.add(each.name)
    return found


def start_of(init: c_ast.Node | None) -> tuple[str, c_ast.Node] | None:
    if isinstance(init, c_ast.Assignment) and init.op == "=" and isinstance(init.lvalue, c_ast.ID):
        return init.lvalue.name, init.rvalue
    if isinstance(init, c_ast.DeclList) and len(init.decls) == 1 and init.decls[0].init is not None:
        return init.decls[0].name, init.decls[0].init
    return None


def step_of(node: c_ast.Node | None) -> tuple[str, int] | None:
    """The variable, and by how much it grows."""
    if isinstance(node, c_ast.UnaryOp) and isinstance(node.expr, c_ast.ID):
        by = {"++": 1, "p++": 1, "--": -1, "p--": -1}.get(node.op)
        return None if by is None else (node.expr.name, by)
    if not isinstance(node, c_ast.Assignment) or not isinstance(node.lvalue, c_ast.ID):
        return None
    name, value, op = node.lvalue.name, node.rvalue, node.op
    if op == "=" and isinstance(value, c_ast.BinaryOp) and value.op in "+-":
        if not isinstance(value.left, c_ast.ID) or value.left.name != name:
            return None
        op, value = f"{value.op}=", value.right
    if op not in ("+=", "-=") or not isinstance(value, c_ast.Constant) or "int" not in value.type:
        return None
    by = int(value.value.rstrip("uUlL"), 0)
    return (name, by if op == "+=" else -by) if by else None


def outside(node: c_ast.Node, name: str) -> Iterator[c_ast.ID]:
    """Where the variable is looked at, but in loops that set it."""
    if isinstance(node, c_ast.For):
        start = start_of(node.init)
        if start is not None and start[0] == name:
            yield from outside(start[1], name)
            return
    if isinstance(node, c_ast.Assignment) and node.op == "=" and isinstance(node.lvalue, c_ast.ID):
        yield from outside(node.rvalue, name)
        return
    if isinstance(node, c_ast.ID) and node.name == name:
        yield node
        return
    for child in children(node):
        yield from outside(child, name)
