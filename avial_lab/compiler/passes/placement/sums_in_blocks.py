"""A sum for a GPU as partial sums of many threads, in a shape that hangs on its length alone.

Module of replicates that add to one element -> for each one that does it in many threads, and some
that do it again with what those found, until one thread has it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir import ir
from mlir.dialects import affine

from avial_lab.compiler.analysis.accesses.reassociation import TERMS
from avial_lab.compiler.codegen.partial_sums import (
    COMBINED_BY,
    adds_to,
    begins_with,
    clone_with,
    combined,
    handle_of,
    is_alone,
    known_ends,
    load_at,
    memory_beside,
    store_at,
    work_before,
)
from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.dialects.avial import (
    buffer_of,
    operand_segments,
)
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import body_of, defined_in
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.passes.placement.target_devices import stays_for
from avial_lab.machine.devices import kind_for

THREADS = 256
"""That add beside each other, each to its own partial sum: elements that are neighbours."""

MOST_GROUPS = 1024
"""Of so many threads: more than any GPU runs at a time. Half as many are as fast on an H200: 0.93
of its copy bandwidth.
"""

EACH = 8
"""Terms of a thread, at least."""

AGAIN = 32
"""Partial sums that a thread adds of those that are left."""

LAST = 16
"""That are left for a single thread."""


@dataclass(frozen=True)
class SumsInBlocks:
    """Any device, and any number of them, adds the same terms in the same order.

    before:  avial.replicate %gpu, %x, %s { affine.for %i = 0 to N { s[0] += x[i] } }
    after:   avial.replicate %gpu, %x, %p {
               affine.for %g = 0 to G { affine.for %t = 0 to 256 {
                 %sum = affine.for %k = 0 to min(K, …) iter_args(%a = -0.0) {
                   a + x[256 (K g + k) + t] }
                 affine.store %sum, %p[256 g + t] } } }
             avial.replicate %gpu, %p, %q { … 32 of them are added to one, until 16 are left … }
             avial.replicate %gpu, %q, %s { affine.for %one = 0 to 1 {
               affine.for %m = 0 to 16 { s[0] += q[m] } } }

    Sums (of products, too), products, minima and maxima of elements, beside whatever else the loop
    does in its iterations, over one loop or several right inside of each other, whose ends are
    known: of `least` iterations or more.
    """

    on: str = "gpu"
    least: int = 2 * THREADS

    def __call__(self, module: ir.Operation) -> None:
        if kind_for(self.on).family != "gpu":
            return
        with module.context:
            for op in operations_named(module, "avial.replicate"):
                found = _found(op) if reduced_arrays(op) and not stays_for(op, self.on) else None
                if found is not None and found.length >= self.least:
                    _Writer(op, found).write()

    def __str__(self) -> str:
        return f"sums-in-blocks{{on={self.on}}}"


@dataclass(frozen=True)
class _Sum:
    """`step` combines what `load` has with a term, `store` keeps it."""

    load: ir.Operation
    step: ir.Operation
    store: ir.Operation

    @property
    def array(self) -> ir.Value:
        return self.load.operands[0]

    @property
    def kind(self) -> ir.Type:
        return self.load.result.type

    @property
    def combine(self) -> str:
        """Of two partial results."""
        return COMBINED_BY[self.step.name]

    def begins_with(self) -> ir.Value:
        return begins_with(self.combine, self.kind)

    def combined(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return combined(self.combine, one, other)


@dataclass(frozen=True)
class _Found:
    """Loops right inside of each other, the outermost first, with the ends of each, and the sums
    that the innermost makes.
    """

    loops: tuple[ir.Operation, ...]
    ends: tuple[tuple[int, int], ...]
    sums: tuple[_Sum, ...]

    @property
    def length(self) -> int:
        return prod(high - low for low, high in self.ends)


def _found(replicate: ir.Operation) -> _Found | None:
    loops = _nest(replicate)
    if not loops or SPLIT not in loops[0].attributes:
        return None
    ends = [known_ends(loop) for loop in loops]
    known = [each for each in ends if each is not None and each[0] < each[1]]
    sums = _sums(loops[-1], loops[0], reduced_arrays(replicate))
    if (
        len(known) < len(loops)
        or not sums
        or not is_alone(replicate, loops, [s.store for s in sums])
    ):
        return None
    return _Found(tuple(loops), tuple(known), tuple(sums))


def _nest(replicate: ir.Operation) -> list[ir.Operation]:
    """The loops right inside of each other, beside arithmetic, down to that which stores."""
    nest: list[ir.Operation] = []
    around = replicate
    while True:
        others = [op for op in body_of(around) if not is_pure(op)]
        if len(others) != 1 or others[0].name != "affine.for" or len(others[0].results):
            return nest
        (around,) = others
        nest.append(around)


def _sums(loop: ir.Operation, nest: ir.Operation, arrays: Sequence[ir.Value]) -> list[_Sum]:
    """All that the loop does with these arrays; none where it does something else with them."""
    found: list[_Sum] = []
    touching = [op for op in operations_in(loop) if set(arrays) & set(op.operands)]
    for store in touching:
        if (
            store.name == "affine.store"
            and store.operands[1] in arrays
            and store.block == _in(loop)
        ):
            known = _sum_of(store, nest, [op for op in touching if op.block == _in(loop)])
            if known is None:
                return []
            found.append(known)
    accounted = {op for each in found for op in (each.load, each.store)}
    return found if len(accounted) == len(touching) == 2 * len(found) else []


def _in(loop: ir.Operation) -> ir.Block:
    return loop.regions[0].blocks[0]


def _sum_of(store: ir.Operation, nest: ir.Operation, others: Sequence[ir.Operation]) -> _Sum | None:
    if isinstance(store.operands[0].owner, ir.Block):
        return None
    step = store.operands[0].owner.operation
    loads = [op for op in others if op.name == "affine.load" and _same_element(op, store, nest)]
    if len(loads) != 1 or not adds_to(loads[0], step):
        return None
    (load,) = loads
    return _Sum(load, step, store)


def _same_element(load: ir.Operation, store: ir.Operation, loop: ir.Operation) -> bool:
    """Whether both are of one element, the same in all iterations."""
    subscripts = list(load.operands)[1:]
    same = load.attributes["map"] == store.attributes["map"]
    return (
        same
        and load.operands[0] == store.operands[1]
        and subscripts == list(store.operands)[2:]
        and not any(defined_in(loop, subscript) for subscript in subscripts)
    )


class _Writer:
    def __init__(self, replicate: ir.Operation, found: _Found) -> None:
        self.replicate, self.found = replicate, found
        self.name = ir.StringAttr(replicate.attributes["name"]).value
        most = -(-found.length // (THREADS * MOST_GROUPS))
        self.terms = max(EACH, most)
        self.groups = -(-found.length // (THREADS * self.terms))

    def write(self) -> None:
        with self.replicate.location:
            parts = self._arrays(self.groups * THREADS, "parts")
            self._first(parts)
            groups, width, number = self.groups, THREADS, 0
            while groups * width > LAST:
                if groups == 1:
                    groups, width = width // LAST, LAST
                left = -(-groups // AGAIN)
                fewer = self._arrays(left * width, f"parts_{number}")
                self._again(parts, groups, fewer, left, width, number)
                parts, groups, number = fewer, left, number + 1
            self._last(parts, groups * width)

    def _arrays(self, size: int, what: str) -> list[ir.Value]:
        return [
            memory_beside(
                self.replicate,
                ir.MemRefType.get([size], each.kind),
                f"{name_of(each.array.location) or self.name}_{what}",
            )
            for each in self.found.sums
        ]

    def _threads(
        self, replicate: ir.Operation, groups: int, width: int
    ) -> tuple[ir.Operation, Any, Any]:
        """Loops over groups, which are divided, and the threads of each; where to write in them."""
        end = replicate.regions[0].blocks[0].operations[0].operation
        with ir.InsertionPoint(end), _named("group"):
            outer = affine.AffineForOp(0, groups)
        outer.operation.attributes[SPLIT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        with ir.InsertionPoint(outer.body), _named("thread"):
            inner = affine.AffineForOp(0, width)
            affine.AffineYieldOp([])
        with ir.InsertionPoint(inner.body):
            last = affine.AffineYieldOp([]).operation
        return last, outer.induction_variable, inner.induction_variable

    def _first(self, parts: Sequence[ir.Value]) -> None:
        f, n = self.found, self.terms
        _, reads, writes, _ = operand_segments(self.replicate)
        sums = {each.array for each in f.sums}
        given = list(self.replicate.operands)[1 : 1 + reads + writes]
        read = [each for each in given[:reads] if buffer_of(each) not in sums]
        written = [each for each in given[reads:] if buffer_of(each) not in sums]
        why = f"each of {self.groups} x {THREADS} threads combines up to {n} terms, in their order"
        written += map(handle_of, parts)
        made = work_before(self.replicate, "parts", read, written, why)
        end, group, thread = self._threads(made, self.groups, THREADS)
        g, t = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
        k = ir.AffineExpr.get_dim(2)
        left = ir.AffineExpr.get_floor_div(f.length - THREADS * n * g - t + (THREADS - 1), THREADS)
        with ir.InsertionPoint(end), f.loops[0].location:
            inside: dict[ir.Value, ir.Value] = {}
            for op in body_of(self.replicate):
                if op != f.loops[0]:  # what is computed before the loop
                    clone_with(op, inside)
            begin = [each.begins_with() for each in f.sums]
            loop = affine.AffineForOp(
                0, ir.AffineMap.get(2, 0, [ir.AffineConstantExpr.get(n), left]), 1, begin,
                upper_bound_operands=[group, thread],
            )  # fmt: skip
            for result, array in zip(loop.results, parts, strict=True):
                store_at(result, array, [group, thread], ir.AffineMap.get(2, 0, [THREADS * g + t]))
        with ir.InsertionPoint(loop.body):
            number = THREADS * n * g + THREADS * k + t
            at = [group, thread, loop.induction_variable]
            for around, form in zip(f.loops, _subscripts(number, f.ends), strict=True):
                index = affine.AffineApplyOp(ir.AffineMap.get(3, 0, [form]), at).result
                inside[_in(around).arguments[0]] = index
            inside.update(
                zip((each.load.result for each in f.sums), loop.inner_iter_args, strict=True)
            )
            apart = {op for each in f.sums for op in (each.load, each.store)} | {*f.loops}
            for around in f.loops:
                for op in body_of(around):
                    if op not in apart:
                        clone_with(op, inside)
            affine.AffineYieldOp([inside[each.step.result] for each in f.sums])

    def _again(
        self,
        parts: Sequence[ir.Value],
        groups: int,
        fewer: Sequence[ir.Value],
        left: int,
        width: int,
        number: int,
    ) -> None:
        """Of `groups` of `width` parts are `left` such groups."""
        why = f"each of {left} x {width} threads combines up to {AGAIN} parts, in their order"
        reads, writes = (list(map(handle_of, arrays)) for arrays in (parts, fewer))
        made = work_before(self.replicate, f"again{number or ''}", reads, writes, why)
        end, group, thread = self._threads(made, left, width)
        g, t, k = (ir.AffineExpr.get_dim(number) for number in range(3))
        with ir.InsertionPoint(end):
            begin = [each.begins_with() for each in self.found.sums]
            most = [ir.AffineConstantExpr.get(AGAIN), groups - AGAIN * g]
            loop = affine.AffineForOp(
                0, ir.AffineMap.get(1, 0, most), 1, begin, upper_bound_operands=[group]
            )
            for result, array in zip(loop.results, fewer, strict=True):
                store_at(result, array, [group, thread], ir.AffineMap.get(2, 0, [width * g + t]))
        with ir.InsertionPoint(loop.body):
            at = ir.AffineMap.get(3, 0, [width * AGAIN * g + width * k + t])
            where = [group, thread, loop.induction_variable]
            found = [
                each.combined(so_far, load_at(array, where, at))
                for each, so_far, array in zip(
                    self.found.sums, loop.inner_iter_args, parts, strict=True
                )
            ]
            affine.AffineYieldOp(found)

    def _last(self, parts: Sequence[ir.Value], count: int) -> None:
        """The last few onto what was there, by one thread, in place of the sums as they were."""
        f = self.found
        sums = {each.array for each in f.sums}
        _, reads, writes, _ = operand_segments(self.replicate)
        given = list(self.replicate.operands)[1 + reads : 1 + reads + writes]
        own = [each for each in given if buffer_of(each) in sums]
        why = f"one thread combines the last {count} parts, in their order, with what was there"
        made = work_before(self.replicate, "sum", [*own, *map(handle_of, parts)], own, why)
        if TERMS in self.replicate.attributes:
            made.attributes[TERMS] = self.replicate.attributes[TERMS]
        end = made.regions[0].blocks[0].operations[0].operation
        with ir.InsertionPoint(end), _named("one"):
            outer = affine.AffineForOp(0, 1)
        outer.operation.attributes[SPLIT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        inside: dict[ir.Value, ir.Value] = {}
        with ir.InsertionPoint(outer.body):
            for op in body_of(self.replicate):
                if op != f.loops[0]:  # what is computed before the loop
                    clone_with(op, inside)
            loads = [_again_at(each.load, inside) for each in f.sums]
            loop = affine.AffineForOp(0, count, 1, loads)
            for each, result in zip(f.sums, loop.results, strict=True):
                store = each.store.clone().operation
                store.operands[0] = result
                remap(store, inside)
            affine.AffineYieldOp([])
        with ir.InsertionPoint(loop.body):
            affine.AffineYieldOp(
                [
                    each.combined(so_far, load_at(array, [loop.induction_variable]))
                    for each, so_far, array in zip(f.sums, loop.inner_iter_args, parts, strict=True)
                ]
            )
        self.replicate.results[0].replace_all_uses_with(made.results[0])
        self.replicate.erase()


def _again_at(load: ir.Operation, inside: dict[ir.Value, ir.Value]) -> ir.Value:
    copy = load.clone().operation
    remap(copy, inside)
    return copy.result


def _subscripts(number: ir.AffineExpr, ends: Sequence[tuple[int, int]]) -> list[ir.AffineExpr]:
    """The values of the loops' variables in the iteration of that number, the last fastest."""
    found: list[ir.AffineExpr] = []
    inner = 1
    for k, (low, high) in reversed(list(enumerate(ends))):
        value = ir.AffineExpr.get_floor_div(number, inner) if inner > 1 else number
        if k > 0:
            value = ir.AffineExpr.get_mod(value, high - low)
        found.insert(0, value + low)
        inner *= high - low
    return found


def _named(variable: str) -> ir.Location:
    return ir.Location.name(variable, ir.Location.current)
