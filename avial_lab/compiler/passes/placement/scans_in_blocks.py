"""Running sums for a GPU: every part by itself, the sums of the parts in order, and those added.

Module of tasks in which each element is the one before it and a term -> for each one two replicates
that many threads share, and between them a task of one step for each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine

from avial_lab.compiler.analysis.accesses.reassociation import TERMS
from avial_lab.compiler.codegen.partial_sums import (
    COMBINED_BY,
    adds_to,
    clone_with,
    combined,
    handle_of,
    known_ends,
    load_at,
    memory_beside,
    store_at,
    work_before,
)
from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.dialects.avial import buffer_of, operand_segments
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import body_of, parent_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.passes.placement.target_devices import stays_for
from avial_lab.machine.devices import kind_for

LEAST_TERMS = 2048
"""With fewer the CPU is done before a GPU begins."""

MOST_PARTS = 16384
"""As many threads as keep a GPU busy; the sums of parts are added up in order."""

EACH = 8
"""Terms of a part, at least."""


@dataclass(frozen=True)
class ScansInBlocks:
    """A running sum, product, least or greatest value (Blelloch 1990, "Prefix Sums and Their
    Applications", section 1.3: with as many processors as parts).

    before:  avial.task %cpu, %s, %x { affine.for %i = 1 to N { s[i] = s[i - 1] + x[i] } }
    after:   avial.replicate %cpu, %s, %x, %p {
               affine.for %n = 0 to P { s[1 + K n] = x[1 + K n]
                 affine.for %k = 1 to min(K, …) { s[1 + K n + k] = s[K n + k] + x[1 + K n + k] }
                 p[n] = the last of them } }
             avial.task %cpu, %s, %p, %c {
               c[0] = s[0]  affine.for %n = 1 to P { c[n] = c[n - 1] + p[n - 1] } }
             avial.replicate %cpu, %s, %c {
               affine.for %i = 1 to N { s[i] = c[(i - 1) / K] + s[i] } }

    How many parts there are hangs on N alone, so any number of devices has the same bits; those of
    whole numbers are the program's. Not where arithmetic is to be in the text's order.
    """

    on: str = "gpu"

    def __call__(self, module: ir.Operation) -> None:
        if kind_for(self.on).family != "gpu":
            return
        with module.context:
            for task in operations_named(module, "avial.task"):
                found = None if stays_for(task, self.on) else _found(task)
                if found is None or (found.is_float and is_strict(module)):
                    continue
                with task.location:
                    _Writer(task, found).write()

    def __str__(self) -> str:
        return f"scans-in-blocks{{on={self.on}}}"


@dataclass(frozen=True)
class _Found:
    """The loop, from `low` on so many `terms`; in it what loads the element before, combines it
    with a term, and stores the element, whose subscript is the loop's number and `shift`.
    """

    loop: ir.Operation
    low: int
    terms: int
    load: ir.Operation
    step: ir.Operation
    store: ir.Operation
    shift: int

    @property
    def array(self) -> ir.Value:
        return self.store.operands[1]

    @property
    def is_float(self) -> bool:
        return not isinstance(self.step.results[0].type, ir.IntegerType)

    @property
    def each(self) -> int:
        """Terms of a part; the last one may have fewer."""
        return max(EACH, -(-self.terms // MOST_PARTS))

    @property
    def parts(self) -> int:
        return -(-self.terms // self.each)

    def combine(self, before: ir.Value, term: ir.Value) -> ir.Value:
        return combined(self.step.name, before, term)


def _found(task: ir.Operation) -> _Found | None:
    loops = [op for op in body_of(task) if not is_pure(op)]
    if len(loops) != 1 or loops[0].name != "affine.for":
        return None
    (loop,) = loops
    ends, inside = known_ends(loop), body_of(loop)
    stores = [op for op in inside if op.name == "affine.store"]
    if ends is None or ends[1] - ends[0] < LEAST_TERMS or len(stores) != 1:
        return None
    (store,) = stores
    step = store.operands[0].owner
    if isinstance(step, ir.Block) or any(
        op != store and op.name != "affine.load" and not is_pure(op) for op in inside
    ):
        return None
    loads = [
        op for op in inside if op.name == "affine.load" and op.operands[0] == store.operands[1]
    ]
    if len(loads) != 1 or COMBINED_BY.get(step.operation.name) != step.operation.name:
        return None
    shifts = [_shift(op, loop) for op in (loads[0], store)]
    if None in shifts or not adds_to(loads[0], step.operation):
        return None
    before, at = (shift for shift in shifts if shift is not None)
    if before != at - 1:
        return None
    terms = ends[1] - ends[0]
    return _Found(loop, ends[0], terms, loads[0], step.operation, store, at)


def _shift(access: ir.Operation, loop: ir.Operation) -> int | None:
    """What it adds to the loop's number for its one subscript; None where that is not all."""
    form = ir.AffineMapAttr(access.attributes["map"]).value
    subscripts = list(access.operands)[1 if access.name == "affine.load" else 2 :]
    if subscripts != [loop.regions[0].blocks[0].arguments[0]] or len(form.results) != 1:
        return None
    rest = ir.AffineExpr.simplify_affine_expr(form.results[0] - ir.AffineExpr.get_dim(0), 1, 0)
    known = rest.maybe_downcast()
    return known.value if isinstance(known, ir.AffineConstantExpr) else None


class _Writer:
    def __init__(self, task: ir.Operation, found: _Found) -> None:
        self.task, self.found = task, found
        name = name_of(found.array.location) or ir.StringAttr(task.attributes["name"]).value
        kind = ir.MemRefType.get([found.parts], found.step.results[0].type)
        self.parts, self.before = (
            memory_beside(task, kind, f"{name}_{what}") for what in ("parts", "before")
        )
        _, reads, writes, _ = operand_segments(task)
        given = list(task.operands)[1 : 1 + reads + writes]
        self.reads = [each for each in given[:reads] if buffer_of(each) != found.array]
        self.own = next(each for each in given[reads:] if buffer_of(each) == found.array)

    def write(self) -> None:
        self._each_part()
        self._before_each()
        self._together()
        self.task.erase()

    def _work(
        self,
        name: str,
        reads: Sequence[ir.Value],
        writes: Sequence[ir.Value],
        why: str,
        *,
        kind: str = "avial.replicate",
    ) -> ir.Operation:
        """Where to write in it."""
        made = work_before(self.task, name, reads, writes, why, kind=kind)
        return made.regions[0].blocks[0].operations[0].operation

    def _divided(self, low: int, high: int, name: str) -> affine.AffineForOp:
        with ir.Location.name(name, self.found.loop.location):
            loop = affine.AffineForOp(low, high)
        loop.operation.attributes[SPLIT] = _number(0)
        return loop

    def _each_part(self) -> None:
        f = self.found
        parts = handle_of(self.parts)
        why = f"{f.parts} parts of {f.each} terms each, in order, as if nothing came before"
        end = self._work("parts", self.reads, [self.own, parts], why)
        n, k = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
        with ir.InsertionPoint(end):
            inside: dict[ir.Value, ir.Value] = {}
            for op in body_of(self.task):
                if op != f.loop:
                    clone_with(op, inside)
            loop = self._divided(0, f.parts, "part")
        with ir.InsertionPoint(loop.body), f.loop.location:
            part = loop.induction_variable
            at = affine.AffineApplyOp(ir.AffineMap.get(1, 0, [f.each * n + f.low]), [part]).result
            first = self._term(at, inside)
            self._store(first, at)
            fewer = ir.AffineMap.get(1, 0, [
                ir.AffineConstantExpr.get(f.each), f.terms - f.each * n,
            ])  # fmt: skip
            rest = affine.AffineForOp(1, fewer, 1, [first], upper_bound_operands=[part])
            with ir.InsertionPoint(rest.body):
                form = ir.AffineMap.get(2, 0, [f.each * n + k + f.low])
                at = affine.AffineApplyOp(form, [part, rest.induction_variable]).result
                so_far = f.combine(rest.inner_iter_args[0], self._term(at, inside))
                self._store(so_far, at)
                affine.AffineYieldOp([so_far])
            store_at(rest.results[0], self.parts, [part])
            affine.AffineYieldOp([])

    def _term(self, at: ir.Value, known: dict[ir.Value, ir.Value]) -> ir.Value:
        """What iteration `at` combines with the element before."""
        f = self.found
        inside = known | {f.loop.regions[0].blocks[0].arguments[0]: at}
        for op in body_of(f.loop):
            if op not in (f.load, f.step, f.store):
                clone_with(op, inside)
        (term,) = (value for value in f.step.operands if value != f.load.result)
        return inside.get(term, term)

    def _store(self, value: ir.Value, at: ir.Value) -> None:
        shift = ir.AffineMap.get(1, 0, [ir.AffineExpr.get_dim(0) + self.found.shift])
        store_at(value, self.found.array, [at], shift)

    def _before_each(self) -> None:
        f = self.found
        reads = [self.own, handle_of(self.parts)]
        why = f"what comes before each of {f.parts} parts, in their order"
        end = self._work("before", reads, [handle_of(self.before)], why, kind="avial.task")
        n = ir.AffineExpr.get_dim(0)
        behind = ir.AffineMap.get(1, 0, [n - 1])
        first = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(f.low + f.shift - 1)])
        none = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(0)])
        with ir.InsertionPoint(end), f.loop.location:
            store_at(load_at(f.array, [], first), self.before, [], none)
            loop = affine.AffineForOp(1, f.parts)
            with ir.InsertionPoint(loop.body):
                part = [loop.induction_variable]
                so_far = load_at(self.before, part, behind)
                store_at(f.combine(so_far, load_at(self.parts, part, behind)), self.before, part)
                affine.AffineYieldOp([])

    def _together(self) -> None:
        f = self.found
        why = "each element is what comes before its part and what its part has"
        end = self._work("sum", [self.own, handle_of(self.before)], [self.own], why)
        if f.is_float:
            work = parent_of(end)
            assert work is not None, "a terminator stands in something"
            work.attributes[TERMS] = _number(f.terms)
        i = ir.AffineExpr.get_dim(0)
        number = ir.AffineMap.get(1, 0, [ir.AffineExpr.get_floor_div(i - f.low, f.each)])
        with ir.InsertionPoint(end):
            loop = self._divided(f.low, f.low + f.terms, name_of(f.loop.location) or "i")
        with ir.InsertionPoint(loop.body), f.loop.location:
            at = loop.induction_variable
            shifted = ir.AffineMap.get(1, 0, [i + f.shift])
            own = load_at(f.array, [at], shifted)
            self._store(f.combine(load_at(self.before, [at], number), own), at)
            affine.AffineYieldOp([])


def _number(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
