"""Which variables a statement hands on: to what follows it, or to its own next iteration.

Statements, backwards -> sets of names. Jumps are gone by then (`jumps.py`).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from weakref import WeakKeyDictionary

from avial_lab.compiler.frontends.python.jumps import StoppedFor
from avial_lab.compiler.frontends.python.scopes import COMPREHENSIONS, FUNCTIONS, names_in
from avial_lab.compiler.frontends.python.source import FunctionSource

Names = frozenset[str]
NOTHING: Names = frozenset()


def reads(*nodes: ast.AST | None) -> Names:
    """Names that are looked at."""
    return NOTHING.union(*(_uses_of(node)[0] for node in nodes if node is not None))


def assigned(*nodes: ast.AST) -> Names:
    """Names that are bound, anywhere within."""
    return NOTHING.union(*(_uses_of(node)[1] for node in nodes))


_USES: WeakKeyDictionary[ast.AST, tuple[Names, Names]] = WeakKeyDictionary()
"""Statements are asked about once for each one before them, and anew in each try of a translation:
nobody changes them from then on.
"""


def _uses_of(node: ast.AST) -> tuple[Names, Names]:
    found = _USES.get(node)
    if found is None:
        names = list(names_in(node))
        found = _USES[node] = _loaded(names), _stored(names)
    return found


def _loaded(names: Iterable[ast.Name]) -> Names:
    return frozenset(each.id for each in names if isinstance(each.ctx, ast.Load))


def _stored(names: Iterable[ast.Name]) -> Names:
    return frozenset(each.id for each in names if isinstance(each.ctx, ast.Store))


def live_before(statements: Sequence[ast.stmt], after: Names) -> Names:
    """Names whose values may be looked at from there on."""
    for statement in reversed(statements):
        after = _before(statement, after)
    return after


def live_after_each(statements: Sequence[ast.stmt], after: Names) -> list[Names]:
    """Of each statement, names whose values may be looked at behind it."""
    found: list[Names] = []
    for statement in reversed(statements):
        found.append(after)
        after = _before(statement, after)
    return found[::-1]


def _before(statement: ast.stmt, after: Names) -> Names:
    match statement:
        case ast.If(test, body, orelse):
            return reads(test) | live_before(body, after) | live_before(orelse, after)
        case ast.For() | ast.While():
            return live_at_head(statement, after) | _entered(statement)
        case ast.With(items, body):
            return reads(*items) | live_before(body, after)
        case ast.Return(value):
            return reads(value)
        case ast.AugAssign(target, _, value):
            more = {target.id} if isinstance(target, ast.Name) else set[str]()
            return after | reads(target, value) | more
        case _:
            return (after - _bound(statement)) | reads(statement)


def _bound(statement: ast.stmt) -> Names:
    return assigned(statement)


def _entered(loop: ast.For | ast.While) -> Names:
    return reads(loop.iter) if isinstance(loop, ast.For) else NOTHING


def live_at_head(loop: ast.For | ast.While, after: Names) -> Names:
    """Of a loop, what may be looked at when an iteration begins, or after the last one."""
    own = assigned(loop.target) if isinstance(loop, ast.For) else NOTHING
    test = reads(loop.test) if isinstance(loop, ast.While) else NOTHING
    if isinstance(loop, StoppedFor):
        test = frozenset({loop.flag})
    head = after
    while True:
        before = (live_before(loop.body, head | after) - own) | test | after
        if before <= head:
            return head
        head |= before


def carried(statement: ast.If | ast.For | ast.While, after: Names) -> list[str]:
    """Names bound within whose value matters beyond the branch or iteration that binds them, in
    order.
    """
    if isinstance(statement, ast.If):
        wanted, bound = after, assigned(*statement.body, *statement.orelse)
    else:
        wanted, bound = live_at_head(statement, after), assigned(*statement.body)
        if isinstance(statement, ast.For):
            bound |= assigned(statement.target) & after
    return sorted(bound & wanted)


def is_bound(statement: ast.stmt, name: str) -> bool:
    """Whether something in there binds the name anew; `name += …` alone does not, of an array."""
    changed = {
        id(node.target)
        for node in ast.walk(statement)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Store)
        and id(node) not in changed
        for node in ast.walk(statement)
    )


def counts_of(source: FunctionSource) -> frozenset[str]:
    """Parameters that the function only counts, compares and computes with: what they are decides
    no size and no subscript.
    """
    tree = source.tree  # which is changed afterwards: nothing of it is remembered
    names = {each.arg for each in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.discard(node.id)
        if isinstance(node, ast.Subscript):
            names -= _loaded(names_in(node.slice))
        if isinstance(node, ast.Call) and not _is_range(node.func):
            names -= _loaded(n for each in (*node.args, *node.keywords) for n in names_in(each))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.discard(node.target.id)
        if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS)) and node is not tree:
            names -= _loaded(names_in(node))
    return frozenset(names)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("range", "prange")


_READ = {
    "sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "size", "shape", "ndim",
    "dtype", "copy", "astype",
}  # fmt: skip
"""Of an array's attributes, those that neither write to it nor name a part of it."""
_READING = {"len", "sum", "max", "min", "abs", "any", "all"}
_WRITING = {"at", "copyto", "put", "place", "putmask", "fill_diagonal", "shuffle"}
_OF_THREE = {"where", "clip"}


def named_otherwise(tree: ast.AST, space: Mapping[str, object]) -> frozenset[str]:
    """Names that are more than operands, and arguments of functions that read: parts of them are
    named, written to, handed on. `space`: what names from outside are.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and not _only_reads(node, child, space):
                found.add(child.id)
            elif isinstance(child, ast.keyword) and isinstance(child.value, ast.Name):
                found.add(child.value.id)
    return frozenset(found)


def _only_reads(node: ast.AST, name: ast.Name, space: Mapping[str, object]) -> bool:
    match node:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Return():
            return True
        case ast.Assign(targets):
            return name in targets
        case ast.Attribute(_, attribute):
            return attribute in _READ
        case ast.Call(ast.Name(called)) if called in _READING:
            return True
        case ast.Call(ast.Attribute(base, called), args) if name in args:
            while isinstance(base, ast.Attribute):
                base = base.value
            module = space.get(base.id) if isinstance(base, ast.Name) else None
            is_numpys = getattr(module, "__name__", "").partition(".")[0] == "numpy"
            reads = called not in _WRITING and (len(args) < 3 or called in _OF_THREE)
            return is_numpys and reads
        case _:
            return False


_CHANGING = {"sort", "fill", "put", "partition", "resize", "itemset", "setfield", "shuffle"}
"""Methods that write to what they are called of."""
_VIEWING = {
    "asarray", "asanyarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d",
    "reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "swapaxes", "moveaxis",
    "rollaxis", "squeeze", "expand_dims", "broadcast_to", "diagonal", "diag", "real", "imag",
    "flip", "flipud", "fliplr", "rot90", "split", "array_split", "hsplit", "vsplit", "require",
}  # fmt: skip
"""NumPy's functions whose results may be in their arguments' memory."""


def changed_in_place(tree: ast.AST, space: Mapping[str, object]) -> frozenset[str]:
    """Names of arrays whose elements are written, by these names or by others of the same memory.
    `space`: as of `named_otherwise`.
    """
    found: set[str] = set()
    shared: list[Names] = []

    def memory_of(*nodes: ast.expr) -> Names:
        return NOTHING.union(*(_memory_of(node, space) for node in nodes))

    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=base, ctx=ast.Store()):
                found |= memory_of(base)
            case ast.Attribute(value=base, ctx=ast.Store()):
                found |= memory_of(base)
            case ast.AugAssign(target=ast.Name(name)):
                found.add(name)
            case ast.Assign(targets, value):
                shared += [memory_of(each, value) for each in targets]
            case ast.NamedExpr(target, value) | ast.For(target, value):
                shared.append(memory_of(target, value))
            case ast.Call(func, args, keywords):
                found |= memory_of(*(each.value for each in keywords if each.arg == "out"))
                if isinstance(func, ast.Attribute) and not _is_of_module(func, space):
                    found |= memory_of(func.value) if func.attr in _CHANGING else NOTHING
                elif not _reads_arguments(func, len(args), space):
                    found |= memory_of(*args)
            case _:
                pass
    while True:
        more = {name for names in shared if names & found for name in names} - found
        if not more:
            return frozenset(found)
        found |= more


def _memory_of(node: ast.expr, space: Mapping[str, object]) -> Names:
    """Names in whose memory its value may be."""
    parts: Sequence[ast.expr] = ()
    match node:
        case ast.Name(name):
            return frozenset({name})
        case ast.Attribute(value, attribute):
            parts = () if attribute in _READ else (value,)
        case ast.Subscript(value) | ast.Starred(value):
            parts = (value,)
        case ast.Tuple(elts) | ast.List(elts):
            parts = elts
        case ast.IfExp(_, first, second) | ast.NamedExpr(first, second):
            parts = (first, second)
        case ast.BoolOp(_, values):
            parts = values
        case ast.Call(ast.Attribute(_, called) as func, args) if _is_of_module(func, space):
            parts = args if called in _VIEWING else ()
        case ast.Call(func, args):
            parts = (func, *args)
        case _:
            pass
    return NOTHING.union(*(_memory_of(part, space) for part in parts))


def _is_of_module(node: ast.Attribute, space: Mapping[str, object]) -> bool:
    base = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and isinstance(space.get(base.id), ModuleType)


def _reads_arguments(func: ast.expr, count: int, space: Mapping[str, object]) -> bool:
    """Of a function of Python's own, or of a module: an array among three may be written to."""
    match func:
        case ast.Attribute(_, called):
            reads = called not in _WRITING | _CHANGING and count < 3
            return reads or called in _OF_THREE
        case ast.Name(called):
            return called not in space and hasattr(builtins, called)
        case _:
            return False
