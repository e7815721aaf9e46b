"""A C function as the Python function that computes the same.

pycparser's tree -> Python's tree (`ast`), at the places of the C text, with C's rules written out:
the usual conversions, division towards zero, the types of variables. What has no such form, a
pointer that moves, say, is refused at its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pycparser import c_ast

from avial_lab.compiler.frontends.c.questions import (
    changed,
    ids,
    jumps_of,
    outside,
    start_of,
    step_of,
    walk,
)

TYPES = {
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "_Bool": "uint8",
    "short": "int16", "short int": "int16", "unsigned short": "uint16",
    "int": "int32", "signed": "int32", "signed int": "int32", "unsigned": "uint32",
    "unsigned int": "uint32", "long": "int64", "long int": "int64", "long long": "int64",
    "long long int": "int64", "unsigned long": "uint64", "unsigned long int": "uint64",
    "unsigned long long": "uint64", "unsigned long long int": "uint64",
    "float": "float32", "double": "float64",
}  # fmt: skip
"""C's arithmetic types, as 64-bit Linux and macOS have them."""

NUMPY, ABS, MAX, MIN = "·np", "·abs", "·max", "·min"
"""Python's names that the tree uses, and no C text can."""

_MATH = {
    "fabs": ABS, "abs": ABS, "labs": ABS, "fmax": "fmax", "fmin": "fmin", "pow": "**",
    "atan": "arctan", "atan2": "arctan2", "asin": "arcsin", "acos": "arccos",
} | {
    name: name
    for name in (
        "sqrt", "exp", "log", "sin", "cos", "tan", "floor", "ceil", "sinh", "cosh", "tanh",
        "log2", "log10", "cbrt", "expm1", "log1p", "trunc",
    )
}  # fmt: skip
"""Functions of math.h, and NumPy's names of them."""

_MOST_DIGITS = 400  # of an integer constant: octal and zeros in front among them

_WHOLE = ("abs", "labs")

_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "&": ast.BitAnd, "|": ast.BitOr,
    "^": ast.BitXor, "<<": ast.LShift, ">>": ast.RShift,
}  # fmt: skip
_COMPARED: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq,
}  # fmt: skip

Refuse = Callable[[str, str, Any], Exception]


@dataclass(frozen=True)
class Parameter:
    """dtype: of a number, or of an array's elements; extents: of an array, None where the C text
    does not say a number.
    """

    name: str
    dtype: str
    extents: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class Typed:
    """An expression and its type in C; `truth` for what comparisons give."""

    node: ast.expr
    dtype: str
    truth: bool = False


@dataclass(frozen=True)
class Called:
    """Another function of the text. returns: its type; None of one without a result."""

    parameters: tuple[Parameter, ...]
    returns: str | None


CALL = "call "
"""What a function's name begins with in Python's tree, which hides nothing of Python's."""


@dataclass
class Conversion:
    """Of one function. refuse: makes the error for what cannot be, at a node of C's tree. others:
    the text's function of a name, which is then converted, too. constants: numbers of the text.
    """

    definition: c_ast.FuncDef
    typedefs: Mapping[str, c_ast.Node]
    refuse: Refuse
    others: Callable[[str], Called | None] = lambda _: None
    constants: Mapping[str, c_ast.Decl] = field(default_factory=dict[str, c_ast.Decl])
    scalars: dict[str, str] = field(default_factory=dict[str, str])
    arrays: dict[str, tuple[str, int]] = field(default_factory=dict[str, "tuple[str, int]"])
    returns: str | None = None

    # -- the whole ---------------------------------------------------------------------------------

    def signature(self) -> Called:
        declared = self.definition.decl.type
        given = [] if declared.args is None else declared.args.params
        parameters = tuple(self.parameter(each) for each in given if not _is_void(each))
        self.returns = None if _is_void(declared) else self.type_of(declared.type)
        return Called(parameters, self.returns)

    def function(self) -> tuple[ast.FunctionDef, tuple[Parameter, ...]]:
        parameters = self.signature().parameters
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(each.name) for each in parameters], kwonlyargs=[],
            kw_defaults=[], defaults=[],
        )  # fmt: skip
        for node in walk(self.definition.body):
            if isinstance(node, c_ast.Decl) and not self.is_array(node.type):
                self.scalars[node.name] = self.type_of(node.type)
        body = self.block(self.definition.body) or [ast.Pass()]
        name = self.definition.decl.name
        made = ast.FunctionDef(name, arguments, body, [], None)
        self.place(made, self.definition.decl)
        first = (made.lineno, made.col_offset)
        for node in ast.walk(made):  # what stands nowhere is at the function's begin
            if isinstance(node, ast.expr | ast.stmt | ast.arg) and not hasattr(node, "lineno"):
                node.lineno, node.col_offset = first
        return ast.fix_missing_locations(made), parameters

    def parameter(self, node: c_ast.Node) -> Parameter:
        if not isinstance(node, c_ast.Decl) or node.name is None:
            raise self.refuse("a parameter has a name and a type here", "", node)
        extents: list[int | None] = []
        inner = node.type
        while isinstance(inner, c_ast.ArrayDecl | c_ast.PtrDecl):
            pointer = isinstance(inner, c_ast.PtrDecl)
            if pointer and extents:
                raise self.refuse(
                    "an array of pointers is not supported", "declare it as double a[n][m]", node
                )
            extents.append(None if pointer else self.extent(inner.dim))
            inner = inner.type
        dtype = self.type_of(inner)
        if not extents:
            self.scalars[node.name] = dtype
            return Parameter(node.name, dtype)
        self.arrays[node.name] = dtype, len(extents)
        return Parameter(node.name, dtype, tuple(extents))

    def extent(self, dim: c_ast.Node | None) -> int | None:
        """What a constant expression of integers comes to."""
        match dim:
            case c_ast.Constant() if "int" in dim.type:
                return int(dim.value.rstrip("uUlL"), 0)
            case c_ast.BinaryOp() if dim.op in "+-*":
                left, right = self.extent(dim.left), self.extent(dim.right)
                if left is None or right is None:
                    return None
                return {"+": left + right, "-": left - right, "*": left * right}[dim.op]
            case _:
                return None

    def type_of(self, node: c_ast.Node) -> str:
        while isinstance(node, c_ast.TypeDecl | c_ast.Typename):
            node = node.type
        if isinstance(node, c_ast.IdentifierType):
            words = " ".join(node.names)
            if words in self.typedefs:
                return self.type_of(self.typedefs[words])
            if words in TYPES:
                return TYPES[words]
            raise self.refuse(
                f"the type {words} is not supported", f"one of {', '.join(TYPES)}", node
            )
        what = "a pointer" if isinstance(node, c_ast.PtrDecl) else "this type"
        raise self.refuse(f"{what} is not supported", "use numbers, and arrays of them", node)

    def is_array(self, node: c_ast.Node) -> bool:
        return isinstance(node, c_ast.ArrayDecl)

    def place(self, made: Any, node: c_ast.Node) -> Any:  # noqa: ANN401 - any node of ast
        coord = node.coord
        if coord is not None:
            made.lineno = made.end_lineno = coord.line
            made.col_offset = made.end_col_offset = max((coord.column or 1) - 1, 0)
        return made

    # -- statements --------------------------------------------------------------------------------

    def block(self, node: c_ast.Node | None) -> list[ast.stmt]:
        if node is None:
            return []
        items = (node.block_items or []) if isinstance(node, c_ast.Compound) else [node]
        return [made for item in items for made in self.statement(item)]

    def statement(self, node: c_ast.Node) -> list[ast.stmt]:
        return [self.place(made, node) if not hasattr(made, "lineno") else made
                for made in self._statement(node)]  # fmt: skip

    def _statement(self, node: c_ast.Node) -> list[ast.stmt]:
        match node:
            case c_ast.Compound():
                return self.block(node)
            case c_ast.Pragma() | c_ast.EmptyStatement():
                return []
            case c_ast.DeclList():
                return [made for each in node.decls for made in self.statement(each)]
            case c_ast.Decl():
                return self.declaration(node)
            case c_ast.Assignment() if isinstance(node.rvalue, c_ast.Assignment):
                inner = node.rvalue  # a = b = x
                after = c_ast.Assignment(node.op, node.lvalue, inner.lvalue, node.coord)
                return [*self.statement(inner), *self.statement(after)]
            case c_ast.Assignment() | c_ast.UnaryOp():
                return [self.assignment(node)]
            case c_ast.ExprList():
                return [made for each in node.exprs for made in self.statement(each)]
            case c_ast.For():
                return self.loop(node)
            case c_ast.While():
                body = self.block(node.stmt) or [ast.Pass()]
                return [ast.While(self.truth(node.cond), body, [])]
            case c_ast.DoWhile():
                first, again = self.block(node.stmt), self.block(node.stmt)
                if any(jumps_of(node.stmt)):
                    raise self.refuse("break out of do … while is not supported", "use while", node)
                return [*first, ast.While(self.truth(node.cond), again or [ast.Pass()], [])]
            case c_ast.If():
                then = self.block(node.iftrue) or [ast.Pass()]
                return [ast.If(self.truth(node.cond), then, self.block(node.iffalse))]
            case c_ast.Return():
                if node.expr is None or self.returns is None:
                    return [ast.Return(None)]
                return [ast.Return(self.as_type(self.expression(node.expr), self.returns))]
            case c_ast.FuncCall():
                return [ast.Expr(self.call(node, for_result=False).node)]
            case c_ast.Break():
                return [ast.Break()]
            case c_ast.Continue():
                return [ast.Continue()]
            case _:
                what = type(node).__name__.lower()
                raise self.refuse(
                    f"'{what}' is not supported", "write it with for, while and if", node
                )

    def declaration(self, node: c_ast.Decl) -> list[ast.stmt]:
        if self.is_array(node.type):
            return [self.local_array(node)]
        dtype = self.type_of(node.type)
        self.scalars[node.name] = dtype
        if node.init is None:
            return []
        value = self.as_type(self.expression(node.init), dtype)
        return [ast.Assign([ast.Name(node.name, ast.Store())], value)]

    def local_array(self, node: c_ast.Decl) -> ast.stmt:
        extents: list[ast.expr] = []
        inner = node.type
        while isinstance(inner, c_ast.ArrayDecl):
            if inner.dim is None:
                raise self.refuse("how large the array is, is not said", "double a[100]", node)
            extents.append(self.expression(inner.dim).node)
            inner = inner.type
        if node.init is not None:
            raise self.refuse("an array gets its elements in a loop", "for (…) a[i] = …;", node)
        dtype = self.type_of(inner)
        self.arrays[node.name] = dtype, len(extents)
        made = ast.Call(
            _dotted(f"{NUMPY}.zeros"),
            [ast.Tuple(extents, ast.Load()), _dotted(f"{NUMPY}.{dtype}")],
            [],
        )
        return ast.Assign([ast.Name(node.name, ast.Store())], made)

    def assignment(self, node: c_ast.Node) -> ast.stmt:
        if isinstance(node, c_ast.UnaryOp):
            if node.op.removeprefix("p") not in ("++", "--"):
                raise self.refuse("this computes something that nobody looks at", "", node)
            target, op = node.expr, node.op.removeprefix("p")[0]
            new = self.binary(op, self.expression(target), Typed(_number(1), "int32"), node)
        elif isinstance(node, c_ast.Assignment):
            target, value = node.lvalue, self.expression(node.rvalue)
            op = node.op.removesuffix("=")
            new = self.binary(op, self.expression(target), value, node) if op else value
        else:
            raise self.refuse("this is no assignment", "", node)
        if isinstance(target, c_ast.ArrayRef):
            element = self.subscript(target, ast.Store())
            return ast.Assign([element.node], self.as_type(new, element.dtype))
        if not isinstance(target, c_ast.ID) or target.name not in self.scalars:
            raise self.refuse(
                "numbers and elements of arrays are assigned to", "no pointers", target
            )
        name = ast.Name(target.name, ast.Store())
        return ast.Assign([name], self.as_type(new, self.scalars[target.name]))

    # -- loops -------------------------------------------------------------------------------------

    def loop(self, node: c_ast.For) -> list[ast.stmt]:
        counted = self.counted(node)
        if counted is not None:
            return counted
        before = [] if node.init is None else self.statement(node.init)
        if any(isinstance(each, c_ast.Continue) for each in jumps_of(node.stmt)):
            raise self.refuse("continue in such a loop is not supported", "use if", node)
        test = ast.Constant(value=True) if node.cond is None else self.truth(node.cond)
        body = [*self.block(node.stmt), *([] if node.next is None else self.statement(node.next))]
        return [*before, ast.While(test, body or [ast.Pass()], [])]

    def counted(self, node: c_ast.For) -> list[ast.stmt] | None:
        """As a loop over a range, where it is one that counts."""
        start, test, by = start_of(node.init), node.cond, step_of(node.next)
        if start is None or by is None or not isinstance(test, c_ast.BinaryOp):
            return None
        name, low = start
        if not isinstance(test.left, c_ast.ID) or {test.left.name, by[0]} != {name}:
            return None
        up = by[1] > 0
        if test.op not in (("<", "<=") if up else (">", ">=")):
            return None
        others = changed(node.stmt)
        if name in others or others & {each.name for each in ids(test.right)}:
            return None
        if isinstance(node.init, c_ast.DeclList):
            self.scalars[name] = self.type_of(node.init.decls[0].type)
        if "int" not in self.scalars.get(name, ""):
            return None
        first, end = self.expression(low), self.expression(test.right)
        if "int" not in first.dtype or "int" not in end.dtype:
            return None
        last = end.node
        if test.op in ("<=", ">="):
            last = ast.BinOp(last, ast.Add() if up else ast.Sub(), _number(1))
        ends = [first.node, last] if by[1] == 1 else [first.node, last, _number(by[1])]
        body = self.block(node.stmt) or [ast.Pass()]
        target = ast.Name(name, ast.Store())
        made = ast.For(target, ast.Call(ast.Name("range", ast.Load()), ends, []), body, [])
        after: list[ast.stmt] = []
        if isinstance(node.init, c_ast.Assignment) and self.is_read_outside(name):
            if abs(by[1]) != 1:
                return None
            # In C it has the first value that the loop does not take.
            cut = ast.Name(MAX if up else MIN, ast.Load())
            value = ast.Call(cut, [first.node, last], [])
            after = [ast.Assign([ast.Name(name, ast.Store())], value)]
            if any(isinstance(each, c_ast.Break) for each in jumps_of(node.stmt)):
                return None
        return [self.place(made, node), *(self.place(each, node) for each in after)]

    def is_read_outside(self, name: str) -> bool:
        """Of loops that give it a value of its own."""
        return any(each.name == name for each in outside(self.definition.body, name))

    # -- expressions -------------------------------------------------------------------------------

    def expression(self, node: c_ast.Node) -> Typed:
        made = self._expression(node)
        if not hasattr(made.node, "lineno"):
            self.place(made.node, node)
        return made

    def _expression(self, node: c_ast.Node) -> Typed:
        match node:
            case c_ast.Constant():
                return self.constant(node)
            case c_ast.ID() if node.name in self.scalars:
                return Typed(ast.Name(node.name, ast.Load()), self.scalars[node.name])
            case c_ast.ID() if node.name in self.constants and node.name not in self.arrays:
                given = self.constants[node.name]
                dtype = self.type_of(given.type)
                return Typed(self.as_type(self.expression(given.init), dtype), dtype)
            case c_ast.ID():
                known = node.name in self.arrays
                words = "is an array here" if known else "is not declared in the function"
                raise self.refuse(f"'{node.name}' {words}", "hand it over as a parameter", node)
            case c_ast.ArrayRef():
                return self.subscript(node, ast.Load())
            case c_ast.BinaryOp():
                return self.operation(node)
            case c_ast.UnaryOp():
                return self.unary(node)
            case c_ast.TernaryOp():
                x, y = self.expression(node.iftrue), self.expression(node.iffalse)
                dtype = self.common(x, y)
                test = self.truth(node.cond)
                sides = self.as_type(x, dtype), self.as_type(y, dtype)
                return Typed(ast.IfExp(test, *sides), dtype)
            case c_ast.Cast():
                dtype = self.type_of(node.to_type.type)
                return Typed(self.as_type(self.expression(node.expr), dtype), dtype)
            case c_ast.FuncCall():
                return self.call(node)
            case _:
                what = type(node).__name__
                raise self.refuse(f"{what} is not supported", "write it with arithmetic", node)

    def constant(self, node: c_ast.Constant) -> Typed:
        text = node.value
        if node.type in ("float", "double") or (set(text) & set(".pP") and node.type != "char"):
            dtype = "float32" if text[-1] in "fF" and not text.startswith("0x") else "float64"
            plain = text.rstrip("fFlL")
            value = float.fromhex(plain) if plain.lower().startswith("0x") else float(plain)
            made = ast.Call(_dotted(f"{NUMPY}.{dtype}"), [ast.Constant(value=value)], [])
            return Typed(made, dtype)
        if "int" in node.type:
            suffix = text.lower()[len(text.rstrip("uUlL")) :]
            plain = text.rstrip("uUlL")
            base = 8 if plain.startswith("0") and plain.isdigit() and len(plain) > 1 else 0
            if len(plain) > _MOST_DIGITS:
                raise self.refuse(f"an integer of {len(plain):,} digits", "C has 64 bits", node)
            value = int(plain, base)
            wide = "l" in suffix or value >= 1 << (32 if "u" in suffix else 31)
            dtype = f"{'u' if 'u' in suffix else ''}int{64 if wide else 32}"
            if dtype == "int32":
                return Typed(_number(value), dtype)
            return Typed(ast.Call(_dotted(f"{NUMPY}.{dtype}"), [_number(value)], []), dtype)
        raise self.refuse(f"a constant of type {node.type} is not supported", "use a number", node)

    def subscript(self, node: c_ast.ArrayRef, context: ast.expr_context) -> Typed:
        places: list[ast.expr] = []
        inner: c_ast.Node = node
        while isinstance(inner, c_ast.ArrayRef):
            at = self.expression(inner.subscript)
            if "int" not in at.dtype:
                raise self.refuse("a subscript is an integer", "", inner)
            places.insert(0, at.node)
            inner = inner.name
        if not isinstance(inner, c_ast.ID) or inner.name not in self.arrays:
            raise self.refuse("what is subscripted is an array", "no pointers but parameters", node)
        dtype, rank = self.arrays[inner.name]
        if len(places) != rank:
            words = f"'{inner.name}' has {rank} dimensions, and {len(places)} subscripts"
            raise self.refuse(words, "name one element", node)
        index = places[0] if rank == 1 else ast.Tuple(places, ast.Load())
        base = self.place(ast.Name(inner.name, ast.Load()), inner)
        return Typed(self.place(ast.Subscript(base, index, context), node), dtype)

    def operation(self, node: c_ast.BinaryOp) -> Typed:
        if node.op in ("&&", "||"):
            op = ast.And() if node.op == "&&" else ast.Or()
            values = [self.truth(node.left), self.truth(node.right)]
            return Typed(ast.BoolOp(op, values), "int32", truth=True)
        x, y = self.expression(node.left), self.expression(node.right)
        if node.op in _COMPARED:
            dtype = self.common(x, y)
            left, right = self.as_type(x, dtype), self.as_type(y, dtype)
            return Typed(ast.Compare(left, [_COMPARED[node.op]()], [right]), "int32", truth=True)
        return self.binary(node.op, x, y, node)

    def binary(self, op: str, x: Typed, y: Typed, node: c_ast.Node) -> Typed:
        dtype = self.promoted(x.dtype) if op in ("<<", ">>") else self.common(x, y)
        left, right = self.as_type(x, dtype), self.as_type(y, dtype)
        if op in ("/", "%") and "int" in dtype:
            return Typed(_divided(op, left, right), dtype)
        if op not in _ARITHMETIC:
            raise self.refuse(f"the operator {op} is not supported for {dtype}", "", node)
        made = self.place(ast.BinOp(left, _ARITHMETIC[op](), right), node)
        return Typed(made, dtype)

    def unary(self, node: c_ast.UnaryOp) -> Typed:
        if node.op == "!":
            return Typed(ast.UnaryOp(ast.Not(), self.truth(node.expr)), "int32", truth=True)
        if node.op not in ("-", "+", "~"):
            raise self.refuse(
                f"the operator {node.op} is not supported within an expression",
                "write i = i + 1; as a statement, and arrays with subscripts",
                node,
            )
        x = self.expression(node.expr)
        dtype = self.promoted(x.dtype)
        op = {"-": ast.USub, "+": ast.UAdd, "~": ast.Invert}[node.op]()
        return Typed(ast.UnaryOp(op, self.as_type(x, dtype)), dtype)

    def call(self, node: c_ast.FuncCall, *, for_result: bool = True) -> Typed:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        other = self.others(name)
        if other is not None:
            if for_result and other.returns is None:
                raise self.refuse(f"{name} returns nothing", "call it as a statement", node)
            return self.call_of(name, other, node)
        plain = name.removesuffix("f")
        single = name not in _MATH and plain in _MATH
        known = plain if single else name
        if known not in _MATH:
            raise self.refuse(
                f"the function {name or 'here'} is not supported",
                "define it in the file; of math.h many are there",
                node,
            )
        dtype = "int32" if known in _WHOLE else "float32" if single else "float64"
        given = [] if node.args is None else node.args.exprs
        arguments = [self.as_type(self.expression(each), dtype) for each in given]
        match _MATH[known]:
            case "**":
                made: ast.expr = ast.BinOp(arguments[0], ast.Pow(), arguments[1])
            case "fmax" | "fmin":
                made = _extreme(arguments[0], arguments[1], largest=known == "fmax")
            case word:
                made = ast.Call(_dotted(word if word == ABS else f"{NUMPY}.{word}"), arguments, [])
        return Typed(self.place(made, node), dtype)

    def call_of(self, name: str, other: Called, node: c_ast.FuncCall) -> Typed:
        """Of a function of the text: numbers are converted, arrays are handed over as they are."""
        given = [] if node.args is None else node.args.exprs
        if len(given) != len(other.parameters):
            words = f"{name} takes {len(other.parameters)} arguments, and is given {len(given)}"
            raise self.refuse(words, "", node)
        arguments = [
            self.as_type(self.expression(each), parameter.dtype)
            if parameter.extents is None
            else self.whole_array(each, parameter, parameter.extents)
            for each, parameter in zip(given, other.parameters, strict=True)
        ]
        made = ast.Call(ast.Name(CALL + name, ast.Load()), arguments, [])
        return Typed(self.place(made, node), other.returns or "int32")

    def whole_array(
        self, node: c_ast.Node, parameter: Parameter, extents: tuple[int | None, ...]
    ) -> ast.expr:
        """`a`, or `a[i]` of one with more dimensions."""
        places: list[ast.expr] = []
        inner = node
        while isinstance(inner, c_ast.ArrayRef):
            places.insert(0, self.expression(inner.subscript).node)
            inner = inner.name
        if not isinstance(inner, c_ast.ID) or inner.name not in self.arrays:
            raise self.refuse(f"'{parameter.name}' is an array", "hand over an array", node)
        dtype, rank = self.arrays[inner.name]
        if dtype != parameter.dtype or rank - len(places) != len(extents):
            raise self.refuse(
                f"'{parameter.name}' is an array of {len(extents)} dimensions of "
                f"{parameter.dtype}, and is given one of {rank - len(places)} of {dtype}",
                "hand over an array of that kind",
                node,
            )
        base: ast.expr = self.place(ast.Name(inner.name, ast.Load()), inner)
        if not places:
            return base
        index = places[0] if len(places) == 1 else ast.Tuple(places, ast.Load())
        return self.place(ast.Subscript(base, index, ast.Load()), node)

    # -- types -------------------------------------------------------------------------------------

    def truth(self, node: c_ast.Node) -> ast.expr:
        made = self.expression(node)
        if made.truth:
            return made.node
        return ast.Compare(made.node, [ast.NotEq()], [_number(0)])

    def promoted(self, dtype: str) -> str:
        """The integer promotions: C11, 6.3.1.1."""
        small = "int" in dtype and np.dtype(dtype).itemsize < 4
        return "int32" if small else dtype

    def common(self, x: Typed, y: Typed) -> str:
        """The usual arithmetic conversions: C11, 6.3.1.8."""
        left, right = self.promoted(x.dtype), self.promoted(y.dtype)
        for dtype in ("float64", "float32"):
            if dtype in (left, right):
                return dtype
        sizes = {each: np.dtype(each).itemsize for each in (left, right)}
        widest = max(sizes.values())
        unsigned = any(each[0] == "u" and size == widest for each, size in sizes.items())
        return f"{'u' * unsigned}int{8 * widest}"

    def as_type(self, x: Typed, dtype: str) -> ast.expr:
        if x.truth:
            sides = (ast.Constant(value=1), ast.Constant(value=0))
            x = Typed(ast.IfExp(x.node, *sides), "int32")
        if x.dtype == dtype:
            return x.node
        value = x.node
        if "int" in x.dtype and "int" in dtype:  # it wraps, where Python's integers are refused
            value = ast.Call(_dotted(f"{NUMPY}.int64"), [value], [])
        return ast.Call(_dotted(f"{NUMPY}.{dtype}"), [value], [])


def _divided(op: str, x: ast.expr, y: ast.expr) -> ast.expr:
    """Towards zero, and what is left, which has the sign of `x`; Python rounds down."""
    zero = _number(0)
    whole = ast.FloorDiv() if op == "/" else ast.Mod()
    minus = ast.UnaryOp(ast.USub(), x)
    known = isinstance(y, ast.Constant) and isinstance(y.value, int) and y.value > 0
    same = ast.Compare(x, [ast.GtE()], [zero])
    if known:
        plain = ast.BinOp(x, whole, y)
        return ast.IfExp(same, plain, ast.UnaryOp(ast.USub(), ast.BinOp(minus, whole, y)))
    size = ast.Call(ast.Name(ABS, ast.Load()), [y], [])
    by = y if op == "/" else size
    test: ast.expr = same
    if op == "/":
        test = ast.Compare(same, [ast.Eq()], [ast.Compare(y, [ast.Gt()], [zero])])
    other = ast.UnaryOp(ast.USub(), ast.BinOp(minus, whole, by))
    return ast.IfExp(test, ast.BinOp(x, whole, by), other)


def _extreme(x: ast.expr, y: ast.expr, *, largest: bool) -> ast.expr:
    """The other one where one is no number, which NumPy has no name for here."""
    better = ast.Compare(x, [ast.GtE() if largest else ast.LtE()], [y])
    alone = ast.Compare(y, [ast.NotEq()], [y])
    return ast.IfExp(ast.BoolOp(ast.Or(), [better, alone]), x, y)


def _number(value: int) -> ast.expr:
    return ast.Constant(value=value)


def _dotted(name: str) -> ast.expr:
    first, *rest = name.split(".")
    made: ast.expr = ast.Name(first, ast.Load())
    for each in rest:
        made = ast.Attribute(made, each, ast.Load())
    return made


def _is_void(node: c_ast.Node) -> bool:
    inner = node.type if isinstance(node, c_ast.Decl | c_ast.FuncDecl | c_ast.Typename) else node
    inner = inner.type if isinstance(inner, c_ast.TypeDecl) else inner
    return isinstance(inner, c_ast.IdentifierType) and inner.names == ["void"]
