"""Sums for a GPU onto elements that nobody knows before: many threads, each with its own copy.

Module of replicates that add to small arrays in any order -> for each one that sets copies to what
changes nothing, one whose threads add to a copy each, and one that adds the copies up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

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
from avial_lab.compiler.ir.dialects.avial import buffer_of, operand_segments
from avial_lab.compiler.ir.effects import LOADS, STORES, is_pure
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.passes.placement.target_devices import stays_for
from avial_lab.machine.devices import kind_for

WIDTH = 32
"""Threads of a group, whose terms are neighbours."""

MOST_COPIES = 16384
"""As many threads as keep a GPU busy."""

LEAST_COPIES = 64
"""Fewer threads than that are slower than the CPU."""

EACH = 2
"""Terms of a thread for each element of its copy, at least: else the copies take longer."""


@dataclass(frozen=True)
class SumsInCopies:
    """Neighbouring threads take neighbouring terms; the copies are added up in their order.

    before:  avial.replicate %gpu, %b, %h { affine.for %i = 0 to N { h[b[i]] += 1 } }
    after:   avial.replicate %gpu, %c {
               affine.for %g = 0 to G { affine.for %t = 0 to 32 { affine.for %e {
                 c[32 g + t, e] = 0 } } } }
             avial.replicate %gpu, %b, %c {
               affine.for %g = 0 to G { affine.for %t = 0 to 32 {
                 affine.for %k { i = 32 (K g + k) + t   c[32 g + t, b[i]] += 1 } } } }
             avial.replicate %gpu, %c, %h {
               affine.for %e { affine.for %n = 0 to 32 G { h[e] += c[n, e] } } }

    How many copies there are hangs on the sizes alone, so any number of devices has the same bits.
    Of loops of known ends; where there are enough terms for `LEAST_COPIES`.
    """

    on: str = "gpu"

    def __call__(self, module: ir.Operation) -> None:
        if kind_for(self.on).family != "gpu":
            return
        with module.context:
            for op in operations_named(module, "avial.replicate"):
                if not reduced_arrays(op) or stays_for(op, self.on):
                    continue
                found = _found(op)
                if found is not None and found.copies >= LEAST_COPIES:
                    with op.location:
                        _Writer(op, found).write()

    def __str__(self) -> str:
        return f"sums-in-copies{{on={self.on}}}"


@dataclass(frozen=True)
class _Found:
    """The divided loop from `low` on, and by what partial results of each array are combined."""

    loop: ir.Operation
    low: int
    length: int
    combine: dict[ir.Value, str]

    @property
    def copies(self) -> int:
        elements = sum(prod(ir.MemRefType(array.type).shape) for array in self.combine)
        copies = min(MOST_COPIES, self.length // max(1, EACH * elements))
        return copies // WIDTH * WIDTH


def _found(replicate: ir.Operation) -> _Found | None:
    loops = [op for op in body_of(replicate) if not is_pure(op)]
    if len(loops) != 1 or loops[0].name != "affine.for" or SPLIT not in loops[0].attributes:
        return None
    (loop,) = loops
    ends, arrays = known_ends(loop), reduced_arrays(replicate)
    known = [ir.MemRefType(array.type) for array in arrays]
    if ends is None or len(loop.results) or not all(each.has_static_shape for each in known):
        return None
    sums = _sums(loop, arrays)
    combine = {store.operands[1]: how for store, how in sums.items()}
    if set(combine) != set(arrays) or not is_alone(replicate, [loop], list(sums)):
        return None
    return _Found(loop, ends[0], ends[1] - ends[0], combine)


def _sums(loop: ir.Operation, arrays: Sequence[ir.Value]) -> dict[ir.Operation, str]:
    """By what each store combines; none where something else is done with these arrays, or an array
    is combined by several.
    """
    found: dict[ir.Operation, str] = {}
    touching = [op for op in operations_in(loop) if set(arrays) & set(op.operands)]
    loads = [op for op in touching if op.name in LOADS]
    for store in (op for op in touching if op.name in STORES):
        if isinstance(store.operands[0].owner, ir.Block):
            return {}
        step = store.operands[0].owner.operation
        same = [op for op in loads if op.block == store.block and _is_same_element(op, store)]
        if not any(adds_to(load, step) for load in same):
            return {}
        found[store] = COMBINED_BY[step.name]
    hows = {(store.operands[1], how) for store, how in found.items()}
    whole = len(touching) == 2 * len(found) and len(hows) == len(arrays)
    return found if whole else {}


def _is_same_element(load: ir.Operation, store: ir.Operation) -> bool:
    same_form = load.name.partition(".")[0] == store.name.partition(".")[0] and (
        "map" not in load.attributes or load.attributes["map"] == store.attributes["map"]
    )
    return same_form and list(load.operands) == list(store.operands)[1:]


class _Writer:
    def __init__(self, replicate: ir.Operation, found: _Found) -> None:
        self.replicate, self.found, self.copies = replicate, found, found.copies
        self.groups = self.copies // WIDTH
        name = ir.StringAttr(replicate.attributes["name"]).value
        self.own: dict[ir.Value, ir.Value] = {}
        for array in found.combine:
            kind = ir.MemRefType(array.type)
            shape = [self.copies, *kind.shape]
            self.own[array] = memory_beside(
                replicate,
                ir.MemRefType.get(shape, kind.element_type),
                f"{name_of(array.location) or name}_copies",
            )

    def write(self) -> None:
        for array in self.found.combine:
            self._set(array)
        self._add()
        for array in self.found.combine:
            self._add_up(array)
        self.replicate.erase()

    def _called(self, what: str, array: ir.Value) -> str:
        """Of several arrays each has its number."""
        arrays = list(self.found.combine)
        return what if len(arrays) == 1 else f"{what}_{arrays.index(array)}"

    def _loops(
        self, replicate: ir.Operation, ends: Sequence[int], names: Sequence[str]
    ) -> tuple[ir.Operation, list[ir.Value]]:
        """Loops right inside of each other, the first divided; where to write in the last."""
        end = replicate.regions[0].blocks[0].operations[0].operation
        variables: list[ir.Value] = []
        for high, name in zip(ends, names, strict=True):
            with ir.InsertionPoint(end), ir.Location.name(name, replicate.location):
                loop = affine.AffineForOp(0, high)
            if not variables:
                i64 = ir.IntegerType.get_signless(64)
                loop.operation.attributes[SPLIT] = ir.IntegerAttr.get(i64, 0)
            with ir.InsertionPoint(loop.body):
                end = affine.AffineYieldOp([]).operation
            variables.append(loop.induction_variable)
        return end, variables

    def _set(self, array: ir.Value) -> None:
        """What each copy begins with."""
        own, kind = self.own[array], ir.MemRefType(array.type)
        made = work_before(
            self.replicate, self._called("none", array), [], [handle_of(own)],
            f"{self.copies} copies begin with what changes nothing",
        )  # fmt: skip
        names = ["group", "thread", *(f"e{k}" for k in range(kind.rank))]
        end, variables = self._loops(made, [self.groups, WIDTH, *kind.shape], names)
        with ir.InsertionPoint(end):
            none = begins_with(self.found.combine[array], kind.element_type)
            copy, *element = variables[1:]
            copy = _numbered(variables[0], copy)
            store_at(none, own, [copy, *element])

    def _add(self) -> None:
        """Every term onto its thread's copy."""
        f = self.found
        _, reads, writes, _ = operand_segments(self.replicate)
        given = list(self.replicate.operands)[1 : 1 + reads + writes]
        others = [[each for each in part if buffer_of(each) not in f.combine]
                  for part in (given[:reads], given[reads:])]  # fmt: skip
        reads_own, writes_own = ([handle_of(own) for own in self.own.values()] for _ in range(2))
        made = work_before(
            self.replicate, "copies", [*others[0], *reads_own], [*others[1], *writes_own],
            f"each of {self.copies} threads adds its terms, in their order, to a copy of its own",
        )  # fmt: skip
        end, (group, thread) = self._loops(made, [self.groups, WIDTH], ["group", "thread"])
        terms = -(-f.length // self.copies)
        g, t, k = (ir.AffineExpr.get_dim(number) for number in range(3))
        left = ir.AffineExpr.get_floor_div(f.length - WIDTH * terms * g - t + (WIDTH - 1), WIDTH)
        with ir.InsertionPoint(end), f.loop.location:
            inside: dict[ir.Value, ir.Value] = {}
            for op in body_of(self.replicate):
                if op != f.loop:
                    clone_with(op, inside)
            copy = _numbered(group, thread)
            upper = ir.AffineMap.get(2, 0, [ir.AffineConstantExpr.get(terms), left])
            loop = affine.AffineForOp(0, upper, 1, upper_bound_operands=[group, thread])
            with ir.InsertionPoint(loop.body):
                at = ir.AffineMap.get(3, 0, [WIDTH * terms * g + WIDTH * k + t + f.low])
                index = affine.AffineApplyOp(at, [group, thread, loop.induction_variable]).result
                inside[f.loop.regions[0].blocks[0].arguments[0]] = index
                for op in body_of(f.loop):
                    clone_with(op, inside)
                affine.AffineYieldOp([])
        for op in list(operations_in(loop.operation)):
            if op.name in (*LOADS, *STORES):
                self._onto_copy(op, copy)

    def _onto_copy(self, op: ir.Operation, copy: ir.Value) -> None:
        """The same access to the thread's copy where it is one to an array that is added to."""
        place = int(op.name in STORES)
        operands = list(op.operands)
        if operands[place] not in self.own:
            return
        own = self.own[operands[place]]
        changed = [*operands[:place], own, copy, *operands[place + 1 :]]
        attributes = {name: op.attributes[name] for name in op.attributes}
        if "map" in attributes:
            attributes["map"] = ir.AffineMapAttr.get(_behind_copy(attributes["map"]))
        with ir.InsertionPoint(op), op.location:
            made = ir.Operation.create(op.name, [r.type for r in op.results], changed, attributes)
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _add_up(self, array: ir.Value) -> None:
        f, own, kind = self.found, self.own[array], ir.MemRefType(array.type)
        _, reads, writes, _ = operand_segments(self.replicate)
        given = list(self.replicate.operands)[1 + reads : 1 + reads + writes]
        handle = next(each for each in given if buffer_of(each) == array)
        made = work_before(
            self.replicate, self._called("sum", array), [handle, handle_of(own)], [handle],
            f"each element is the sum of its {self.copies} copies, in their order",
        )  # fmt: skip
        if TERMS in self.replicate.attributes:
            made.attributes[TERMS] = self.replicate.attributes[TERMS]
        extents = list(kind.shape) or [1]
        names = [*(f"e{k}" for k in range(len(extents))), "copy"]
        end, (*element, copy) = self._loops(made, [*extents, self.copies], names)
        element = element[: kind.rank]
        with ir.InsertionPoint(end):
            so_far = load_at(array, element)
            more = load_at(own, [copy, *element])
            store_at(combined(f.combine[array], so_far, more), array, element)


def _numbered(group: ir.Value, thread: ir.Value) -> ir.Value:
    number = WIDTH * ir.AffineExpr.get_dim(0) + ir.AffineExpr.get_dim(1)
    return affine.AffineApplyOp(ir.AffineMap.get(2, 0, [number]), [group, thread]).result


def _behind_copy(form: ir.Attribute) -> ir.AffineMap:
    """The map of an access, with the number of the copy as its first operand and result."""
    known = ir.AffineMapAttr(form).value
    moved = [result.shift_dims(known.n_dims, 1) for result in known.results]
    first = ir.AffineExpr.get_dim(0)
    return ir.AffineMap.get(known.n_dims + 1, known.n_symbols, [first, *moved])
