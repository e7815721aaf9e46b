"""Nests that go over the same elements become one: what one has loaded the next need not.

Functions of loops in their last order -> the same operations on every element, in the same order.

Source: K. Kennedy, K. S. McKinley, Maximizing loop parallelism and improving data locality via loop
fusion and distribution, LCPC 1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.mark_parallel import ORDERED, PARALLEL
from avial_lab.passes.notes import listed, loop_name, tell
from avial_lab.passes.program import is_pure
from avial_lab.passes.promote_scalars import LOADS, STORES
from avial_lab.polyhedra import Access, ArrayKind, Scop, Statement, read_scop
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.dependences import dependences
from avial_lab.polyhedra.nesting import holds

NAME = "fuse-nests"
IN, OUT = isl.dim_type.in_, isl.dim_type.out
ACCESSES = (*LOADS, *STORES)
BOUNDS = ("lowerBoundMap", "upperBoundMap", "step")


@dataclass(frozen=True)
class FuseNests:
    """Two nests after each other, of the same loops, become one where both need an array's element
    in the same iteration.

    before:  affine.for %i { affine.for %j { x[i] += A[i, j] * u[j] } }
             affine.for %i { affine.for %j { y[j] += A[i, j] * v[i] } }
    after:   affine.for %i { affine.for %j { x[i] += A[i, j] * u[j]  y[j] += A[i, j] * v[i] } }

    Only of arrays with an element for each iteration: A comes from memory once. Not where the
    second nest needs what the first computes later.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                for block in function.regions[0].blocks:
                    while _fuse_two(block):
                        pass

    def __str__(self) -> str:
        return NAME


def fused_lines(lines: Sequence[str]) -> list[str]:
    """Those of a phase's lines that tell of nests that became one."""
    return [line.partition(": ")[2] for line in lines if line.startswith(f"{NAME}: ")]


def _fuse_two(block: ir.Block) -> bool:
    """Whether two nests of the block have become one."""
    first: list[ir.Operation] | None = None
    for op in [view.operation for view in block.operations]:
        nest = _nest(op)
        if nest is not None and first is not None and _fuse(first, nest):
            return True
        if nest is not None:
            first = nest
        elif not is_pure(op) and not op.name.startswith("memref.alloc"):
            first = None
    return False


def _nest(op: ir.Operation) -> list[ir.Operation] | None:
    """The loops of a perfect nest of two or more around accesses and arithmetic, which hand nothing
    on.
    """
    loops: list[ir.Operation] = []
    while op.name == "affine.for" and not len(op.results):
        if PARALLEL in op.attributes or ORDERED in op.attributes:
            return None
        loops.append(op)
        body = _body(op)
        if any(len(inner.regions) for inner in body):
            if len(body) > 1:
                return None
            op = body[0]
            continue
        plain = all(inner.name in ACCESSES or is_pure(inner) for inner in body)
        return loops if plain and len(loops) > 1 else None
    return None


def _body(loop: ir.Operation) -> list[ir.Operation]:
    """Without the terminator."""
    return [view.operation for view in loop.regions[0].blocks[0].operations][:-1]


def _fuse(first: Sequence[ir.Operation], second: Sequence[ir.Operation]) -> bool:
    if len(first) != len(second) or not _same_loops(first, second):
        return False
    function = first[0].block.owner
    scop = read_scop(function)
    shared = _shared(*(_inside(nest[0], scop) for nest in (first, second)))
    names = " ".join(map(loop_name, first))
    if not shared:
        return False
    if not _may_be_one(first[0], second[0], scop):
        tell(first[0], NAME, f"two nests over {names} stay apart: one waits for the other")
        return False
    tell(first[0], NAME, f"two nests over {names} are one, and load {listed(shared)} once")
    _merge(first, second)
    return True


def _same_loops(first: Sequence[ir.Operation], second: Sequence[ir.Operation]) -> bool:
    """Whether they have the same bounds, one by one."""
    same: dict[ir.Value, ir.Value] = {}
    for a, b in zip(first, second, strict=True):
        bounds = [same.get(value, value) for value in b.operands]
        if any(a.attributes[name] != b.attributes[name] for name in BOUNDS):
            return False
        if list(a.operands) != bounds:
            return False
        same[_variable(b)] = _variable(a)
    return True


def _inside(loop: ir.Operation, scop: Scop) -> list[Statement]:
    return [s for s in scop.statements if holds(loop, s.op)]


def _shared(first: Sequence[Statement], second: Sequence[Statement]) -> list[str]:
    """Elements, one for each iteration, that both meet in the same iteration."""
    found: dict[str, None] = {}
    for a in (access for s in first for access in s.accesses):
        for b in (access for s in second for access in s.accesses):
            if a.array == b.array and limited(lambda a=a, b=b: _same(a, b), lambda: False):
                found[str(a)] = None
    return list(found)


def _same(a: Access, b: Access) -> bool:
    if not (a.exact and b.exact) or a.array.kind is not ArrayKind.MEMORY:
        return False
    one, other = (each.relation.reset_tuple_id(IN) for each in (a, b))
    return one.dim(IN) > 1 and one.is_injective() and one.is_equal(other)


def _may_be_one(first: ir.Operation, second: ir.Operation, scop: Scop) -> bool:
    """Whether everything in the second nest needs the first's only up to its own iteration."""
    before, after = _inside(first, scop), _inside(second, scop)
    between = [
        d for d in dependences([*before, *after]) if d.source in before and d.target in after
    ]

    def kept() -> bool:
        return all(d.exact and _plain(d.relation).is_disjoint(_later(d.relation)) for d in between)

    return limited(kept, lambda: False)


def _later(pairs: isl.Map) -> isl.Map:
    """{ x -> y : x comes after y }"""
    return isl.Map.lex_gt(_plain(pairs).get_space().domain())


def _plain(pairs: isl.Map) -> isl.Map:
    """Of iterations, whatever runs in them."""
    return pairs.reset_tuple_id(IN).reset_tuple_id(OUT)


def _merge(first: Sequence[ir.Operation], second: Sequence[ir.Operation]) -> None:
    """Move the body of `second` behind the one of `first`, with what stands between before both."""
    for a, b in zip(first, second, strict=True):
        _variable(b).replace_all_uses_with(_variable(a))
    body = first[-1].regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1].operation
    moved = _body(second[-1])
    for op in moved:
        op.move_before(end)
    block = first[0].block
    order = [view.operation for view in block.operations]
    start, stop = order.index(first[0]), order.index(second[0])
    for op in order[start + 1 : stop]:
        op.move_before(first[0])
    second[0].erase()


def _variable(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]
