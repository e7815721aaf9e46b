"""Loops whose iterations meet as far apart as only the run knows: vectors, where that is enough.

Functions of loops -> the same values, such innermost loops in two versions. LLVM asks whether what
a loop stores overlaps with what it loads, which it always does where both are of one array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import innermost_loops
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    as_index,
    at_most,
    every,
    number,
    parameter_values,
    plus,
    times,
)
from avial_lab.compiler.ir.attributes import INDEPENDENT, PARALLEL, SAFELEN
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.remarks import add_remark, loop_name
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.machine.cpu import this_cpu

NAME = "version-by-distance"


class _Unsafe(Exception):
    """Nothing that is known before the loop would allow vectors."""


@dataclass(frozen=True)
class VersionByDistance:
    """Ask before the loop.

    before:  affine.for %w { D[%w] = max(D[%w], D[%w - %weight] + %value) }
    after:   %far = %weight >= 16 or %weight <= 0
             scf.if %far { affine.for %w { … } {avial.safelen = 16} } else { affine.for %w { … } }

    What an iteration loads was stored `weight` iterations before. With none or fewer than none it
    is stored later, and vectors load before they store.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for loop in _candidates(function):
                    try:
                        _version(loop)
                    except _Unsafe:
                        continue

    def __str__(self) -> str:
        return NAME


def _candidates(function: ir.Operation) -> list[ir.Operation]:
    """Innermost loops of straight code that load and store elements of one array."""
    nests = [v.operation for b in function.regions[0].blocks for v in b.operations]
    loops = [loop for nest in nests for loop in innermost_loops(nest) if loop.name in FORS]
    return [loop for loop in loops if _may_gain(loop)]


def _may_gain(loop: ir.Operation) -> bool:
    if len(loop.results) or any(mark in loop.attributes for mark in (INDEPENDENT, PARALLEL)):
        return False
    inside = [view.operation for view in loop.regions[0].blocks[0].operations]
    stored = {op.operands[1] for op in inside if op.name in STORES}
    loaded = {op.operands[0] for op in inside if op.name in LOADS}
    return not stored.isdisjoint(loaded) and not any(len(op.regions) for op in inside)


def _version(loop: ir.Operation) -> None:
    scop = read_scop(loop)
    (own,) = scop.loops_of(loop)
    lanes = _lanes(scop)
    distances = list(dict.fromkeys(_distances(scop, own, lanes)))
    if not distances:
        raise _Unsafe  # LLVM knows them, too
    known = {name for name, value in scop.parameters.items() if value is not None} | {*scop.sizes}
    if any(name not in known for form, _ in distances for name, _ in form.terms):
        raise _Unsafe
    with ir.InsertionPoint(loop), loop.location:
        values = parameter_values(scop)
        far = every(*(_is_far(form, values, lanes, ordered) for form, ordered in distances))
        choice = scf.IfOp(far, has_else=True)
    together, _ = (_copy_in(region.blocks[0], loop) for region in choice.operation.regions)
    i32 = ir.IntegerType.get_signless(32)
    together.attributes[SAFELEN] = ir.IntegerAttr.get(i32, lanes)
    add_remark(
        loop,
        NAME,
        f"two versions of loop {loop_name(loop)}: vectors of {lanes} if no dependence is shorter",
    )
    loop.erase()


def _copy_in(block: ir.Block, loop: ir.Operation) -> ir.Operation:
    with ir.InsertionPoint(block), loop.location:
        copy = loop.clone().operation
        scf.YieldOp([])
    return copy


def _lanes(scop: Scop) -> int:
    """Of vectors of its widest elements, as LLVM chooses."""
    accesses = [access for statement in scop.statements for access in statement.accesses]
    if not all(access.array.kind is ArrayKind.MEMORY for access in accesses):
        raise _Unsafe
    lanes = this_cpu().lanes(max(ITEMSIZE.get(a.array.element_type, 8) for a in accesses))
    if lanes < 2:
        raise _Unsafe
    return lanes


def _distances(scop: Scop, own: Loop, lanes: int) -> Iterator[tuple[Affine, bool]]:
    """By how many iterations an element is loaded after it was stored, where that is no number; and
    whether an iteration loads before it stores. _Unsafe where numbers are too small already.
    """
    if own.step != 1:
        raise _Unsafe
    for statement, stored in _accesses(scop):
        if not stored.writes:
            continue
        for other, access in _accesses(scop):
            if access is stored or access.array != stored.array:
                continue
            form = _distance(stored, access, own)
            ordered = other.position < statement.position
            if form is None or (form.is_constant and not form.constant):
                continue
            if access.writes:
                raise _Unsafe  # two stores meet
            if not form.is_constant:
                yield form, ordered
            elif not (form.constant >= lanes or (form.constant < 0 and ordered)):
                raise _Unsafe


def _accesses(scop: Scop) -> Iterator[tuple[Statement, Access]]:
    for statement in scop.statements:
        for access in statement.accesses:
            yield statement, access


def _distance(stored: Access, loaded: Access, own: Loop) -> Affine | None:
    """After how many iterations what is stored is loaded; None for never."""
    if not stored.forms or not loaded.forms:
        raise _Unsafe
    gaps: list[Affine] = []
    for a, b in zip(stored.forms, loaded.forms, strict=True):
        if a is None or b is None:
            raise _Unsafe
        gaps.append(a.plus(b, -1))
    *rows, gap = gaps
    *others, last = (_step(form, own.name) for form in stored.forms if form is not None)
    if any(others) or any(_step(row, own.name) for row in rows):
        raise _Unsafe  # on a diagonal, say: another row may be that of another iteration
    if any(row.is_constant and row.constant for row in rows):
        return None
    if not all(row.is_constant for row in rows):
        raise _Unsafe
    if last not in (1, -1) or _step(gap, own.name):
        raise _Unsafe
    return gap.times(last)


def _step(form: Affine, name: str) -> int:
    """By how much it grows with the loop's variable; _Unsafe where not always by as much."""
    terms = dict(form.terms)
    step = terms.pop(name, 0)
    if any(name in re.findall(r"\w+", term) for term in terms):
        raise _Unsafe  # in a quotient or a remainder
    return step


def _is_far(form: Affine, values: dict[str, ir.Value], lanes: int, ordered: bool) -> ir.Value:
    distance = number(form.constant)
    for name, factor in form.terms:
        distance = plus(distance, times(as_index(values[name]), factor))
    far = at_most(number(lanes), distance)
    return arith.ori(far, at_most(distance, number(0))) if ordered else far
