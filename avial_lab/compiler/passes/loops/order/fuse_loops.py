"""Nests that go over the same elements become one: what one has loaded the next need not.

Functions of loops in their last order -> the same operations on every element, in the same order.

Source: K. Kennedy, K. S. McKinley, Maximizing loop parallelism and improving data locality via loop
fusion and distribution, LCPC 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.fusion import IN, OUT, needs_own_iteration
from avial_lab.compiler.analysis.parallelism.reductions import reductions
from avial_lab.compiler.analysis.polyhedral.budget import limited, remembered
from avial_lab.compiler.analysis.polyhedral.dependences import (
    carried_among,
    dependences_between,
)
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import (
    Access,
    Array,
    ArrayKind,
    ReductionKind,
    Scop,
    Statement,
)
from avial_lab.compiler.analysis.polyhedral.strides import factors_of
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.codegen.loops.unroll_and_jam import INDEPENDENT_ROWS
from avial_lab.compiler.ir.attributes import ORDERED, PARALLEL
from avial_lab.compiler.ir.effects import ACCESSES, is_pure
from avial_lab.compiler.ir.loop_bounds import BOUNDS
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import itemsize_of, operations_in
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.machine.constants import LINE_BYTES
from avial_lab.machine.cpu import Cpu, this_cpu

NAME = "fuse-loops"


@dataclass(frozen=True)
class FuseLoops:
    """Two nests after each other, of the same loops, become one where both need an array's element
    in the same iteration.

    before:  affine.for %i { affine.for %j { x[i] += A[i, j] * u[j] } }
             affine.for %i { affine.for %j { y[j] += A[i, j] * v[i] } }
    after:   affine.for %i { affine.for %j { x[i] += A[i, j] * u[j]  y[j] += A[i, j] * v[i] } }

    Only of arrays with an element for each iteration: A comes from memory once. Not where the
    second nest needs what the first computes later.

    Single loops are one where iterations of both may run in any order, but for sums, or both only
    combine what they load; and what they share is in no cache of a core's own. In a strict module
    sums have an order, too.

    before:  affine.for %i { for %j { y[i, j] = … y[i, j - 1] } }
             affine.for %i { for %k { z[i, n - k] = … y[i, n - k] } }
    after:   affine.for %i { for %j { y[i, j] = … }  for %k { z[i, n - k] = … y[i, n - k] } }

    Where only the outermost loops are the same, and may run their iterations in any order, they are
    one if each iteration of the second nest needs the first's own alone, and finds it in the cache
    of `cpu`.
    """

    cpu: Cpu = field(default_factory=this_cpu, repr=False)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for block in function.regions[0].blocks:
                    self._fuse_in(block)

    def _fuse_in(self, block: ir.Block) -> None:
        """Each nest of the block with the one before it, and that again where it has grown."""
        before: list[ir.Operation] = []
        read = _read_later(block)
        for op in [view.operation for view in block.operations]:
            if _is_open(op):
                nest = op
                while before and (
                    _fuse(before[-1], nest, read, self.cpu.l2_bytes)
                    or _fuse_outer(before[-1], nest, read, self.cpu.l2_bytes)
                ):
                    nest = before.pop()
                    read = _read_later(block)
                before.append(nest)
            elif not is_pure(op) and not op.name.startswith("memref.alloc"):
                before = []

    def __str__(self) -> str:
        return NAME


_Read = Callable[[], Scop]


def _read_later(block: ir.Block) -> _Read:
    """What its function does, read where it is asked for, and once."""
    return cache(lambda: read_scop(block.owner))


def _is_open(op: ir.Operation) -> bool:
    """Whether it is a loop that hands nothing on, and that no pass has marked."""
    marked = PARALLEL in op.attributes or ORDERED in op.attributes
    return op.name == "affine.for" and not len(op.results) and not marked


def _nest(op: ir.Operation) -> list[ir.Operation] | None:
    """The loops of a perfect nest around accesses and arithmetic, which hand nothing on."""
    loops: list[ir.Operation] = []
    while _is_open(op):
        loops.append(op)
        body = body_of(op)
        if any(len(inner.regions) for inner in body):
            if len(body) > 1:
                return None
            op = body[0]
            continue
        plain = all(inner.name in ACCESSES or is_pure(inner) for inner in body)
        return loops if plain else None
    return None


def _fuse(one: ir.Operation, other: ir.Operation, read: _Read, room: int) -> bool:
    first, second = _nest(one), _nest(other)
    if first is None or second is None:
        return False
    if len(first) != len(second) or not _same_loops(first, second):
        return False
    scop = read()
    shared = _shared(_inside(one, scop), _inside(other, scop), room)
    names = " ".join(map(loop_name, first))
    if not shared:
        return False
    if len(first) == 1 and not _may_be_divided(one, other, scop):
        return False
    if not _may_be_one(first[0], second[0], scop):
        add_remark(first[0], NAME, f"two nests over {names} not fused: one depends on the other")
        return False
    add_remark(first[0], NAME, f"two nests over {names} fused, to load {listed(shared)} once")
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
    return [s for s in scop.statements if any(around.op == loop for around in s.loops)]


def _shared(first: Sequence[Statement], second: Sequence[Statement], room: int) -> list[str]:
    """Elements, one for each iteration, that both meet in the same iteration; of one loop those of
    arrays that are more than `room` bytes.
    """
    one, other = (
        [a for s in nest for a in s.accesses if a.exact and a.array.kind is ArrayKind.MEMORY]
        for nest in (first, second)
    )
    met: dict[Array, dict[isl.Map, None]] = {}
    for b in other:
        met.setdefault(b.array, {})[b.relation] = None
    found = {
        str(a): None
        for a in one
        if a.array in met
        and _has_its_own(a.relation)
        and (a.relation.dim(IN) > 1 or _exceeds(a.array, room))
        and any(_same(a.relation, each) for each in met[a.array])
    }
    return list(found)


@remembered
def _has_its_own(elements: isl.Map) -> bool:
    """Whether each iteration meets an element that no other does."""
    return limited(elements.is_injective, lambda: False)


def _exceeds(array: Array, room: int) -> bool:
    """Whether it is known to be more bytes."""
    size = _size_of(array)
    return size is not None and prod(size) > room


def _size_of(array: Array) -> tuple[int, ...] | None:
    """Its extents, and the bytes of an element; None where nobody knows them all."""
    shape = [extent for extent in array.shape if extent is not None]
    if array.value is None or len(shape) < array.rank:
        return None
    return (*shape, itemsize_of(ir.MemRefType(array.value.type).element_type))


@remembered
def _same(one: isl.Map, other: isl.Map) -> bool:
    first, second = (each.reset_tuple_id(IN) for each in (one, other))
    return limited(lambda: first.is_equal(second), lambda: False)


def _may_be_one(first: ir.Operation, second: ir.Operation, scop: Scop) -> bool:
    """Whether everything in the second nest needs the first's only up to its own iteration."""
    between = dependences_between(*(_inside(nest, scop) for nest in (first, second)))

    def kept() -> bool:
        return all(
            d.exact and _without_tuple_ids(d.relation).is_disjoint(_later(d.relation))
            for d in between
        )

    return limited(kept, lambda: False)


def _later(pairs: isl.Map) -> isl.Map:
    """{ x -> y : x comes after y }"""
    return isl.Map.lex_gt(_without_tuple_ids(pairs).get_space().domain())


def _without_tuple_ids(pairs: isl.Map) -> isl.Map:
    """Of iterations, whatever runs in them."""
    return pairs.reset_tuple_id(IN).reset_tuple_id(OUT)


# -- outermost loops alone ------------------------------------------------------------------------


def _fuse_outer(first: ir.Operation, second: ir.Operation, read: _Read, room: int) -> bool:
    """Whether the two loops are one now, around what stood in both."""
    if not _same_loops([first], [second]) or not all(map(_is_plain_inside, (first, second))):
        return False
    scop = read()
    before, after = _inside(first, scop), _inside(second, scop)
    shared = _brought_twice(before, after, room)
    if not shared or not all(_in_any_order(nest, scop) for nest in (first, second)):
        return False
    if not needs_own_iteration(before, after):
        return False
    remark = f"two nests fused in loop {loop_name(first)}, to find {listed(shared)} in cache"
    add_remark(first, NAME, remark)
    _merge([first], [second])
    return True


def _in_any_order(nest: ir.Operation, scop: Scop) -> bool:
    """Whether the iterations of its outermost loop may run in any order, as on several threads."""
    return not carried_among(scop.loops_of(nest)[0], _inside(nest, scop))


def _may_be_divided(one: ir.Operation, other: ir.Operation, scop: Scop) -> bool:
    """Whether threads and vectors may have parts of both loops, as one: what keeps their iterations
    in order are sums, or they do nothing but look for the least, the greatest and their like.
    """
    if is_strict(one):
        return _in_any_order(one, scop) and _in_any_order(other, scop)
    both: list[tuple[bool, bool]] = []
    for nest in (one, other):
        (own,), inside = scop.loops_of(nest), _inside(nest, scop)
        carried = carried_among(own, inside)
        found = [r for r in reductions(own, scop, carried) if r.fixed and not r.payloads]
        if not {id(d) for d in carried} <= {id(d) for r in found for d in r.relaxed}:
            return False
        written = {a.array for s in inside for a in s.accesses if a.writes}
        both.append(
            (
                all(each.kind is ReductionKind.SUM for each in found),
                written <= {each.array for each in found},
            )
        )
    return any(map(all, zip(*both, strict=True)))


def _is_plain_inside(loop: ir.Operation) -> bool:
    """Whether there is a loop in it, and else only branches, accesses and arithmetic."""
    inside = list(operations_in(loop))
    return any(op.name == "affine.for" for op in inside) and all(
        op.name in (*ACCESSES, "affine.for", "affine.if") or is_pure(op) or op.name in _ENDS
        for op in inside
    )


_ENDS = ("affine.yield",)


def _brought_twice(before: Sequence[Statement], after: Sequence[Statement], room: int) -> list[str]:
    """Arrays that come to a core for both nests, and would not for one: they are more than `room`
    bytes of its cache, and what a few iterations need of all is less.
    """
    needs: dict[Array, _Need] = {}
    for access in (a for s in (*before, *after) for a in s.accesses):
        need = _need_of(access)
        if need is None:
            return []
        known = needs.get(access.array, need)
        needs[access.array] = _Need(need.whole, max(need.part, known.part))
    used = [{a.array for s in nest for a in s.accesses} for nest in (before, after)]
    shared = [array for array in needs if array in used[0] & used[1]]
    parts = sum(need.part for need in needs.values())
    fits = parts * INDEPENDENT_ROWS <= room < sum(needs[array].whole for array in shared)
    return [str(array) for array in shared] if fits else []


@dataclass(frozen=True)
class _Need:
    """Bytes of an array, and of its elements that one iteration of the outermost loop needs."""

    whole: int
    part: int


def _need_of(access: Access) -> _Need | None:
    """None where nobody knows the array's size."""
    array = access.array
    if array.kind is ArrayKind.VALUE:
        return _Need(0, 0)
    size = _size_of(array)
    if size is None:
        return None
    *shape, item = size
    whole = part = prod(size)
    domain = access.relation.domain()
    counts = [most_iterations(domain, loop) for loop in range(access.relation.dim(IN))]
    moves = [f for k in range(len(counts)) if (f := factors_of(access, k)) is not None]
    if len(moves) < len(counts):
        return _Need(whole, whole)
    for place, extent in enumerate(shape):
        own, *others = (abs(each[place]) for each in moves)
        if own:
            # With those that loops inside go on to; and a column with those beside it.
            window = 1 + sum(f * (n - 1) for f, n in zip(others, counts[1:], strict=True))
            beside = LINE_BYTES // item if place == len(shape) - 1 else 1
            part = part // extent * min(extent, max(window, beside))
    return _Need(whole, part)


def _merge(first: Sequence[ir.Operation], second: Sequence[ir.Operation]) -> None:
    """Move the body of `second` behind the one of `first`, with what stands between before both."""
    for a, b in zip(first, second, strict=True):
        _variable(b).replace_all_uses_with(_variable(a))
    body = first[-1].regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1].operation
    moved = body_of(second[-1])
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
