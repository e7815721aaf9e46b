"""What the walk notes of each operation, and the statements made of it once the walk is over.

PreStatements: names and constraints as text -> Statements: isl sets and relations. Only then is
every parameter known, and every array that an access to something unknown may mean.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.budget import OPERATIONS, TOO_HARD, limited, remembered
from avial_lab.compiler.analysis.polyhedral.indices import Scope, quantified
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, ArrayKind, Loop, Statement
from avial_lab.compiler.analysis.polyhedral.views import Window
from avial_lab.compiler.ir.locations import span_of


@dataclass(frozen=True)
class PreAccess:
    """An access before its relation is built; `window` is None for all that may be touched."""

    array: Array | None
    window: Window | None
    writes: bool
    exact: bool
    subscripts: tuple[str, ...] | None = None
    text: str | None = None


@dataclass(frozen=True)
class PreStatement:
    """A statement before its sets are built: by then every parameter has been met."""

    op: ir.Operation
    loops: tuple[Loop, ...]
    scope: Scope
    exact: bool
    position: tuple[int, ...]
    touches: tuple[PreAccess, ...]
    note: str | None


@dataclass(frozen=True)
class LoopBounds:
    """The values of a loop variable: from the greatest of `lows`, below the least of `highs`."""

    argument: ir.Value
    lows: Sequence[Affine | None]
    highs: Sequence[Affine | None]
    step: Affine | None


def statement_of(
    name: str,
    pre: PreStatement,
    parameters: Sequence[str],
    context: isl.Set,
    choices: Mapping[str, str],
    arrays: Collection[Array],
) -> Statement:
    """The statement with its sets; what isl finds too hard is all there may be, with a note."""
    around = pre.scope
    # Without the name: what stands in one nest, and what several passes read, is asked once.
    points = set_within(around.set_text("", parameters, choices), context)
    hard = points is None
    if points is None:
        points = isl.Set(Scope(around.names).set_text("", parameters, {}))
    head = f"[{', '.join(parameters)}] -> {{ [{', '.join(around.names)}] -> "
    accesses: list[Access] = []
    for touch in pre.touches:
        for array, each in _arrays_of(touch, arrays):
            exactly = f"{head}{_range_text(array, each, choices)} }}"
            relation = _relation_within(exactly, points)
            exact = each.exact and relation is not None
            if relation is None:
                hard = True
                anywhere = _range_text(array, replace(each, window=None), choices)
                relation = _relation(f"{head}{anywhere} }}", points)
            forms = each.window.subscripts if each.window is not None else None
            relation = _relation_of(name, relation)
            accesses.append(Access(array, each.writes, relation, exact, each.subscripts, forms))
    note = TOO_HARD.format(limit=OPERATIONS) if hard else pre.note
    domain = _points_of(name, points)
    return Statement(
        name, pre.op, pre.loops, domain, pre.exact and not hard, pre.position,
        tuple(accesses), span_of(pre.op.location), note,
    )  # fmt: skip


@remembered
def _points_of(name: str, points: isl.Set) -> isl.Set:
    """Iterations as those of a statement. (One object for all who ask: questions about it are
    remembered by what it is.)
    """
    return points.set_tuple_name(name)


@remembered
def _relation_of(name: str, relation: isl.Map) -> isl.Map:
    return relation.set_tuple_name(isl.dim_type.in_, name)


def _arrays_of(touch: PreAccess, arrays: Collection[Array]) -> list[tuple[Array, PreAccess]]:
    """The access with its array; where that may be any, with every array there is."""
    if touch.array is not None:
        return [(touch.array, touch)]
    found: list[tuple[Array, PreAccess]] = []
    for array in arrays:
        if array.kind is ArrayKind.EFFECT:
            found.append((array, PreAccess(array, None, touch.writes, False, text=f"{array}[]")))
        elif array.value is not None:
            window = Window(array.value, (None,) * array.rank)
            found.append((array, PreAccess(array, window, touch.writes, False)))
    return found


@remembered
def set_within(text: str, context: isl.Set) -> isl.Set | None:
    """The set for the parameters of `context`; None where isl finds that too hard."""
    return limited(lambda: isl.Set(text).intersect_params(context), lambda: None)


@remembered
def _relation_within(text: str, domain: isl.Set) -> isl.Map | None:
    return limited(partial(_relation, text, domain), lambda: None)


def _relation(text: str, domain: isl.Set) -> isl.Map:
    return isl.Map(text).intersect_domain(domain)


def _range_text(array: Array, touch: PreAccess, choices: Mapping[str, str]) -> str:
    """`A[x0, x1] : x0 = i - 1 and x1 = j`.

    Subscripts that are not known lie anywhere in the array.
    """
    if touch.text is not None:
        return touch.text
    window = touch.window or Window(array.value, (None,) * array.rank)
    dims = [f"x{dim}_" for dim in range(array.rank)]
    where: list[str] = []
    for dim, subscript, size in zip(dims, window.subscripts, array.sizes, strict=True):
        if subscript is not None:
            where.append(f"{dim} = {subscript}")
        else:
            where.append(f"{dim} >= 0" if size is None else f"0 <= {dim} < {size}")
    for variable, size in window.variables:
        where.append(f"{variable} >= 0" if size is None else f"0 <= {variable} < {size}")
    text = " and ".join(where) or "true"
    bound = [variable for variable, _ in window.variables]
    return f"{array.name}[{', '.join(dims)}] : {quantified(text, choices, bound)}"
