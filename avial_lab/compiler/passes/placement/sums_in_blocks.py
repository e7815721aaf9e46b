"""A sum for a GPU as partial sums of many threads, in a shape that hangs on its length alone.

Module of replicates that add to one element -> for each one that does it in many threads, one that
does it again with what those found, and the last few terms where the sum was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import affine, arith, memref

from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS, buffer_of, operand_segments
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import body_of, defined_in, parent_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.passes.placement.target_devices import stays_for
from avial_lab.machine.devices import kind_for

THREADS = 256
"""That add beside each other, each to its own partial sum: elements that are neighbours."""

MOST_GROUPS = 1024
"""Of so many threads: more than any GPU runs at a time."""

EACH = 8
"""Terms of a thread, at least."""

AGAIN = 32
"""Partial sums that are added in the second pass to one."""


@dataclass(frozen=True)
class SumsInBlocks:
    """Any device, and any number of them, adds the same terms in the same order.

    before:  avial.replicate %gpu, %x, %s { affine.for %i = 0 to N { s[0] += x[i] } }
    after:   avial.replicate %gpu, %x, %p {
               affine.for %g = 0 to G { affine.for %t = 0 to 256 {
                 %sum = affine.for %k = 0 to min(K, …) iter_args(%a = -0.0) {
                   a + x[256 (K g + k) + t] }
                 affine.store %sum, %p[256 g + t] } } }
             avial.replicate %gpu, %p, %q { … 32 of them are added to one … }
             avial.replicate %gpu, %q, %s { affine.for %m = 0 to M { s[0] += q[m] } }

    Sums (of products, too), products, minima and maxima of one element over one loop whose ends are
    known, of `least` iterations or more. What is left to do is for the CPU.
    """

    on: str = "gpu"
    least: int = 2 * THREADS

    def __call__(self, module: ir.Operation) -> None:
        if kind_for(self.on).family != "gpu":
            return
        with module.context:
            for op in operations_named(module, "avial.replicate"):
                found = _found(op) if len(reduced_arrays(op)) == 1 else None
                if found is not None and found.length >= self.least and not stays_for(op, self.on):
                    _Writer(op, found).write()

    def __str__(self) -> str:
        return f"sums-in-blocks{{on={self.on}}}"


@dataclass(frozen=True)
class _Found:
    """The loop from `low` on; `step` combines what `load` has with a term, `store` keeps it."""

    loop: ir.Operation
    low: int
    length: int
    load: ir.Operation
    step: ir.Operation
    store: ir.Operation

    @property
    def kind(self) -> ir.Type:
        return self.load.result.type

    @property
    def combine(self) -> str:
        """Of two partial results."""
        return _COMBINED_BY[self.step.name]


_COMBINED_BY = {
    "arith.addf": "arith.addf",
    "arith.subf": "arith.addf",
    "math.fma": "arith.addf",
    "arith.mulf": "arith.mulf",
    "arith.minimumf": "arith.minimumf",
    "arith.maximumf": "arith.maximumf",
}

_BEGINS_WITH = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.minimumf": float("inf"),
    "arith.maximumf": float("-inf"),
}
"""What changes nothing that it is combined with, the sign of zero and NaN included."""


def _found(replicate: ir.Operation) -> _Found | None:
    loops = [op for op in body_of(replicate) if not is_pure(op)]
    if len(loops) != 1 or loops[0].name != "affine.for" or SPLIT not in loops[0].attributes:
        return None
    (loop,) = loops
    ends = _ends(loop)
    body = body_of(loop)
    stores = [op for op in body if op.name == "affine.store"]
    if ends is None or len(stores) != 1 or any(len(op.regions) for op in body):
        return None
    (store,) = stores
    others = (op for op in body if op != store and op.name != "affine.load")
    if not all(is_pure(op) for op in others) or isinstance(store.operands[0].owner, ir.Block):
        return None
    step = store.operands[0].owner.operation
    of_it = [op for op in body if op.name == "affine.load" and op.operands[0] == store.operands[1]]
    if step.name not in _COMBINED_BY or len(of_it) != 1 or not _same_element(of_it[0], store, loop):
        return None
    place = {"math.fma": 2, "arith.subf": 0}.get(step.name)
    at = [k for k, operand in enumerate(step.operands) if operand == of_it[0].result]
    uses = sum(1 for _ in of_it[0].result.uses)
    if uses != 1 or len(at) != 1 or (place is not None and at != [place]):
        return None
    if not isinstance(of_it[0].result.type, ir.F32Type | ir.F64Type):
        return None
    return _Found(loop, ends[0], ends[1] - ends[0], of_it[0], step, store)


def _ends(loop: ir.Operation) -> tuple[int, int] | None:
    if len(loop.results) or ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return None
    found: list[int] = []
    for name in ("lowerBoundMap", "upperBoundMap"):
        form = ir.AffineMapAttr(loop.attributes[name]).value
        known = form.results[0].maybe_downcast() if len(form.results) == 1 else None
        if not isinstance(known, ir.AffineConstantExpr):
            return None
        found.append(known.value)
    return found[0], found[1]


def _same_element(load: ir.Operation, store: ir.Operation, loop: ir.Operation) -> bool:
    """Whether both are of one element, the same in all iterations."""
    subscripts = list(load.operands)[1:]
    same = load.attributes["map"] == store.attributes["map"]
    return (
        same
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
            parts = self._array(self.groups * THREADS, "parts")
            self._first(parts)
            left = self.groups
            if self.groups > AGAIN:
                left = -(-self.groups // AGAIN)
                fewer = self._array(left * THREADS, "parts_of_parts")
                self._second(parts, fewer, left)
                parts = fewer
            self._last(parts, left * THREADS)

    def _array(self, size: int, what: str) -> ir.Value:
        """Memory of the function's own."""
        function = self.replicate
        while function.name != "func.func":
            around = parent_of(function)
            assert around is not None, "replicates stand in a function"
            function = around
        whose = name_of(self.found.load.operands[0].location) or self.name
        with (
            ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]),
            ir.Location.name(f"{whose}_{what}"),
        ):
            kind = ir.MemRefType.get([size], self.found.kind)
            return memref.alloc(kind, [], [])

    def _handle(self, array: ir.Value) -> ir.Value:
        with ir.InsertionPoint.after(array.owner.operation):
            reference = ir.Type.parse("!avial.buffer_ref")
            return ir.Operation.create(CAST, [reference], [array]).result

    def _replicate(
        self, name: str, reads: Sequence[ir.Value], writes: ir.Value, why: str
    ) -> ir.Operation:
        """An empty one before the sum."""
        i32 = ir.DenseI32ArrayAttr
        made = ir.Operation.create(
            "avial.replicate",
            [ir.Type.parse("!avial.task_ref")],
            [self.replicate.operands[0], *reads, writes],
            attributes={
                "name": ir.StringAttr.get(f"{self.name}_{name}"),
                "avial.why": ir.ArrayAttr.get([ir.StringAttr.get(why)]),
                SEGMENTS: i32.get([1, len(reads), 1, 0]),
            },
            regions=1,
            ip=ir.InsertionPoint(self.replicate),
        )
        with ir.InsertionPoint(ir.Block.create_at_start(made.regions[0], [])):
            ir.Operation.create("omp.terminator")
        return made

    def _threads(self, replicate: ir.Operation, groups: int) -> tuple[ir.Operation, Any, Any]:
        """Loops over groups, which are divided, and the threads of each; where to write in them."""
        end = replicate.regions[0].blocks[0].operations[0].operation
        with ir.InsertionPoint(end), _named("group"):
            outer = affine.AffineForOp(0, groups)
        outer.operation.attributes[SPLIT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        with ir.InsertionPoint(outer.body), _named("thread"):
            inner = affine.AffineForOp(0, THREADS)
            affine.AffineYieldOp([])
        with ir.InsertionPoint(inner.body):
            last = affine.AffineYieldOp([]).operation
        return last, outer.induction_variable, inner.induction_variable

    def _first(self, parts: ir.Value) -> None:
        f, n = self.found, self.terms
        _, reads, _, _ = operand_segments(self.replicate)
        read = [each for each in list(self.replicate.operands)[1 : 1 + reads]
                if buffer_of(each) != f.load.operands[0]]  # fmt: skip
        why = f"each of {self.groups} x {THREADS} threads combines up to {n} terms, in their order"
        made = self._replicate("parts", read, self._handle(parts), why)
        end, group, thread = self._threads(made, self.groups)
        g, t = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
        k = ir.AffineExpr.get_dim(2)
        left = ir.AffineExpr.get_floor_div(f.length - THREADS * n * g - t + (THREADS - 1), THREADS)
        with ir.InsertionPoint(end), f.loop.location:
            inside: dict[ir.Value, ir.Value] = {}
            for op in body_of(self.replicate):
                if op != f.loop:  # what is computed before the loop
                    _clone(op, inside)
            begin = arith.constant(f.kind, _BEGINS_WITH[f.combine])
            loop = affine.AffineForOp(
                0, ir.AffineMap.get(2, 0, [ir.AffineConstantExpr.get(n), left]), 1, [begin],
                upper_bound_operands=[group, thread],
            )  # fmt: skip
            _store_at(loop.results[0], parts, THREADS * g + t, [group, thread])
        with ir.InsertionPoint(loop.body):
            at = ir.AffineMap.get(3, 0, [f.low + THREADS * n * g + THREADS * k + t])
            index = affine.AffineApplyOp(at, [group, thread, loop.induction_variable]).result
            inside[f.loop.regions[0].blocks[0].arguments[0]] = index
            inside[f.load.result] = loop.inner_iter_args[0]
            for op in body_of(f.loop):
                if op not in (f.load, f.store):
                    _clone(op, inside)
            affine.AffineYieldOp([inside[f.step.result]])

    def _second(self, parts: ir.Value, fewer: ir.Value, groups: int) -> None:
        why = f"each of {groups} x {THREADS} threads combines up to {AGAIN} parts, in their order"
        made = self._replicate("again", [self._handle(parts)], self._handle(fewer), why)
        end, group, thread = self._threads(made, groups)
        g, t, k = (ir.AffineExpr.get_dim(number) for number in range(3))
        left = self.groups - AGAIN * g
        with ir.InsertionPoint(end):
            begin = arith.constant(self.found.kind, _BEGINS_WITH[self.found.combine])
            loop = affine.AffineForOp(
                0, ir.AffineMap.get(1, 0, [ir.AffineConstantExpr.get(AGAIN), left]), 1, [begin],
                upper_bound_operands=[group],
            )  # fmt: skip
            _store_at(loop.results[0], fewer, THREADS * g + t, [group, thread])
        with ir.InsertionPoint(loop.body):
            at = ir.AffineMap.get(3, 0, [THREADS * AGAIN * g + THREADS * k + t])
            part = _load_at(parts, at, [group, thread, loop.induction_variable])
            affine.AffineYieldOp([self._combined(loop.inner_iter_args[0], part)])

    def _last(self, parts: ir.Value, count: int) -> None:
        """The sum as it was, of the parts."""
        f = self.found
        body, variable = f.loop.regions[0].blocks[0], f.loop.regions[0].blocks[0].arguments[0]
        loop = f.loop
        loop.attributes["lowerBoundMap"] = _just(0)
        loop.attributes["upperBoundMap"] = _just(count)
        with ir.InsertionPoint(f.step), f.step.location:
            part = _load_at(parts, ir.AffineMap.get_identity(1), [variable])
            combined = self._combined(f.load.result, part)
        f.store.operands[0] = combined
        for op in reversed([view.operation for view in body.operations][:-1]):
            if op not in (f.load, f.store) and not any(True for r in op.results for _ in r.uses):
                op.erase()
        _, reads, writes, after = operand_segments(self.replicate)
        operands = list(self.replicate.operands)
        own = [each for each in operands[1 : 1 + reads] if buffer_of(each) == f.load.operands[0]]
        given = [operands[0], *own, self._handle(parts), *operands[1 + reads :]]
        attributes = {name: self.replicate.attributes[name] for name in self.replicate.attributes}
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([1, len(own) + 1, writes, after])
        reduced = list(ir.DenseI64ArrayAttr(attributes["avial.reduced"]))
        moved = [place - reads + len(own) + 1 for place in reduced]
        attributes["avial.reduced"] = ir.DenseI64ArrayAttr.get(moved)
        attributes["avial.owned0"] = ir.DenseI64ArrayAttr.get([0, count])
        attributes.pop("avial.weights", None)
        made = ir.Operation.create(
            "avial.replicate", [self.replicate.results[0].type], given, attributes, regions=1,
            ip=ir.InsertionPoint(self.replicate),
        )  # fmt: skip
        self.replicate.regions[0].blocks[0].append_to(made.regions[0])
        self.replicate.results[0].replace_all_uses_with(made.results[0])
        self.replicate.erase()

    def _combined(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return ir.Operation.create(self.found.combine, [self.found.kind], [one, other]).result


def _named(variable: str) -> ir.Location:
    return ir.Location.name(variable, ir.Location.current)


def _clone(op: ir.Operation, inside: dict[ir.Value, ir.Value]) -> None:
    copy = op.clone().operation
    remap(copy, inside)
    inside.update(zip(op.results, copy.results, strict=True))


def _just(number: int) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(number)]))


def _load_at(array: ir.Value, form: ir.AffineMap, operands: Sequence[ir.Value]) -> ir.Value:
    kind = ir.MemRefType(array.type).element_type
    attributes = {"map": ir.AffineMapAttr.get(form)}
    return ir.Operation.create("affine.load", [kind], [array, *operands], attributes).result


def _store_at(
    value: ir.Value, array: ir.Value, place: ir.AffineExpr, operands: Sequence[ir.Value]
) -> None:
    attributes = {"map": ir.AffineMapAttr.get(ir.AffineMap.get(len(operands), 0, [place]))}
    ir.Operation.create("affine.store", [], [value, array, *operands], attributes)
