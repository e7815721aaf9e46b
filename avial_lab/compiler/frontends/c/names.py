"""Names of a C function's variables as Python can have them: one variable a name, and none of
Python's own words.

pycparser's tree of a function -> the same tree, whose names are changed where they have to be.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field

from pycparser import c_ast, c_generator

from avial_lab.compiler.frontends.c.questions import children

_TAKEN = {*keyword.kwlist, "range"}
"""Of Python's, which the tree that is made uses."""


def name_apart(definition: c_ast.FuncDef) -> None:
    """A variable of an inner block that hides another, or is of another type than one of its name
    before, has a name of its own.
    """
    scopes = _Scopes()
    outer: dict[str, str] = {}
    arguments = definition.decl.type.args
    if arguments is not None:
        scopes.visit(arguments, outer)
    scopes.visit(definition.body, outer)


@dataclass
class _Scopes:
    """kinds: the types of the names so far, as C writes them."""

    kinds: dict[str, str] = field(default_factory=dict[str, str])

    def visit(self, node: c_ast.Node, scope: dict[str, str]) -> None:
        """scope: what names mean there; what is declared there is added."""
        match node:
            case c_ast.Decl() if node.name is not None:
                for child in children(node):
                    self.visit(child, scope)
                name = self._name(node, scope)
                scope[node.name], node.name = name, name
            case c_ast.ID():
                name = str(node.name)
                node.name = scope.get(name, name)
            case c_ast.FuncCall():
                if node.args is not None:
                    self.visit(node.args, scope)
            case c_ast.Compound() | c_ast.For():
                inner = dict(scope)
                for child in children(node):
                    self.visit(child, inner)
            case _:
                for child in children(node):
                    self.visit(child, scope)

    def _name(self, node: c_ast.Decl, scope: Mapping[str, str]) -> str:
        kind = c_generator.CGenerator().visit(c_ast.Typename(None, [], None, node.type))
        name, count = node.name, 0
        while (
            name in _TAKEN
            or (node.name in scope and name == scope[node.name])
            or self.kinds.get(name, kind) != kind
        ):
            count += 1
            name = f"{node.name}_{count}"
        self.kinds[name] = kind
        return name
