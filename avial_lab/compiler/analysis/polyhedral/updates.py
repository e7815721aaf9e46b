"""Which values accumulate: `new = old op x`, with an operation whose order does not matter.

SSA values -> the operation that combines them, found through chains (`old + a + b`), branches and
inner loops; statements -> updates of one memory location.

    %s = memref.load %A[]            the load's value is used by the chain alone, and the chain ends
    %t = arith.addf %s, %x           in the store: an update, sum
    memref.store %t, %A[]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.scop import ReductionKind, Statement, Update
from avial_lab.compiler.analysis.polyhedral.views import Window
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.views import defining


@dataclass(frozen=True)
class Combination:
    """How a new value is made of the old: `op` is the name of the operation, say `arith.addf`."""

    kind: ReductionKind
    op: str


def combination(old: ir.Value, new: ir.Value) -> Combination | None:
    """The one operation by which `new` accumulates onto `old`; None where there is none.

    Nothing but the chain may use the old value or one in between, nor anything but its one end (a
    store, a yield) the new: a reduction that is looked at halfway depends on its order.
    """
    chain = _accumulating(old, new)
    return chain.found if chain is not None else None


def links(old: ir.Value, new: ir.Value) -> tuple[ir.Operation, ...]:
    """The operations that combine, where `new` accumulates onto `old`, the last one first."""
    chain = _accumulating(old, new)
    return chain.links if chain is not None else ()


def _accumulating(old: ir.Value, new: ir.Value) -> _Chain | None:
    chain = _Chain(old)
    if not chain.reaches(new) or chain.found is None or not chain.unseen_elsewhere():
        return None
    return chain if sum(1 for _ in new.uses) == 1 else None


class _Chain:
    """Follows a value back to the old one, with the uses it goes through."""

    def __init__(self, old: ir.Value) -> None:
        self.found: Combination | None = None
        self.links: tuple[ir.Operation, ...] = ()
        self._values: dict[ir.Value, bool] = {old: True}
        self._uses: set[tuple[ir.Operation, int]] = set()

    def reaches(self, value: ir.Value) -> bool:
        """Whether `value` is the old one with things combined onto it (and nothing else)."""
        if value not in self._values:
            op = defining(value)
            self._values[value] = op is not None and self._through(op, value)
        return self._values[value]

    def _through(self, op: ir.Operation, value: ir.Value) -> bool:
        if op.name in _COMBINING:
            return self._combined(op, _COMBINING[op.name])
        if op.name == "arith.select":
            return self._selected(op)
        if op.name in ("scf.if", "affine.if"):
            number = ir.OpResult(value).result_number
            ends = [region.blocks[0].operations[-1].operation for region in op.regions]
            return len(ends) == 2 and all(self._use(end, number) for end in ends)
        if op.name in ("scf.for", "affine.for"):
            return self._looped(op, ir.OpResult(value).result_number)
        return False

    def _use(self, op: ir.Operation, number: int) -> bool:
        if not self.reaches(op.operands[number]):
            return False
        self._uses.add((op, number))
        return True

    def _combined(self, op: ir.Operation, kind: ReductionKind) -> bool:
        places = [2] if op.name == "math.fma" else [0] if op.name in _LEFT_ONLY else [0, 1]
        used = [number for number in places if self._use(op, number)]
        if len(used) != 1 or not self._agrees(Combination(kind, op.name)):
            return False
        self.links = (op, *self.links)
        return True

    def _agrees(self, combination: Combination) -> bool:
        """Whether all links of the chain are of one kind."""
        if self.found is None:
            self.found = combination
        if self.found.kind in (_MINIMUM, _MAXIMUM):
            return self.found == combination  # signed and unsigned orders do not mix
        return self.found.kind is combination.kind

    def _selected(self, op: ir.Operation) -> bool:
        """`c ? old + x : old`, or the smaller (greater) of the old value and another."""
        compare = defining(op.operands[0])
        sides = [self._use(op, 1), self._use(op, 2)]
        if all(sides):
            return True
        if not any(sides) or compare is None or compare.name not in ("arith.cmpi", "arith.cmpf"):
            return False
        old, other = (1, 2) if sides[0] else (2, 1)
        pair = [op.operands[old], op.operands[other]]
        if list(compare.operands) == pair:
            place = 0
        elif list(compare.operands) == pair[::-1]:
            place = 1
        else:
            return False
        predicate = ir.IntegerAttr(compare.attributes["predicate"]).value
        less = _LESS[compare.name].get(predicate)
        if less is None or not self._use(compare, place):
            return False
        self._uses.add((op, 0))  # which of the two it was tells of the old value
        # `old < x ? old : x` is the minimum; each exchange of sides turns it around.
        smaller = less ^ (place == 1) ^ (old == 2)
        kind = _MINIMUM if smaller else _MAXIMUM
        name = f"arith.{'min' if smaller else 'max'}"
        if compare.name == "arith.cmpf":
            # A NaN compares false: it has to leave the old value, or what comes last would count.
            # Of zeros, which differ in sign, the first stays; of `x <= old ? x : old` it would be
            # the last, for which ranks have no operation.
            strictly = predicate in (2, 4)
            name = name.replace("arith.", "avial.arg")
            return old == 2 and strictly and self._agrees(Combination(kind, name))
        return self._agrees(Combination(kind, name + ("si" if predicate < 6 else "ui")))

    def _looped(self, op: ir.Operation, number: int) -> bool:
        """An inner loop that accumulates onto what it is given, by an iter_arg."""
        argument = op.regions[0].blocks[0].arguments[number + 1]
        end = op.regions[0].blocks[0].operations[-1].operation
        if op.name == "scf.for":
            first = 3
        else:
            segments = op.attributes["operandSegmentSizes"]
            first = segments[0] + segments[1]
        # On its own: what it yields must come from its argument, not from the value outside.
        inner = combination(argument, end.operands[number])
        return inner is not None and self._use(op, first + number) and self._agrees(inner)

    def unseen_elsewhere(self) -> bool:
        """Whether every use of the old value and of those on the way to the new is in the chain."""
        on_the_way = {op.operands[number] for op, number in self._uses}
        return all(
            (use.owner.operation, use.operand_number) in self._uses
            for value in on_the_way
            for use in value.uses
        )


def stored_updates(
    statements: Sequence[Statement], windows: Mapping[ir.Operation, Window]
) -> list[Update]:
    """The updates of memory among the statements: load, combine, store to the same place."""
    by_op = {s.op: s for s in statements}
    found: list[Update] = []
    for store in statements:
        if store.op.name == "memref.atomic_rmw":
            kind = declared(ir.IntegerAttr(store.op.attributes["kind"]).value)
            if kind is not None and not any(True for _ in store.op.results[0].uses):
                array = store.accesses[0].array
                found.append(Update(array, kind.kind, kind.op, store.name, store.name))
        if store.op.name not in STORES or len(store.accesses) != 1:
            continue
        for load_op in loads_behind(store.op.operands[0]):
            load = by_op.get(load_op)
            if load is None or not same_place(load, store, windows):
                continue
            combined = combination(load_op.results[0], store.op.operands[0])
            if combined is not None and not written_between(load, store, statements):
                array = store.accesses[0].array
                found.append(Update(array, combined.kind, combined.op, load.name, store.name))
                break
    return found


def loads_behind(value: ir.Value) -> list[ir.Operation]:
    """The loads that a stored value is computed from, through at most a few operations."""
    found: list[ir.Operation] = []
    seen: set[ir.Value] = set()
    pending = [value]
    while pending and len(seen) < 64:
        current = pending.pop(0)
        op = defining(current)
        if op is None or current in seen:
            continue
        seen.add(current)
        if op.name in LOADS:
            found.append(op)
        elif op.name in ("scf.if", "affine.if"):
            number = ir.OpResult(current).result_number
            ends = [body.operations[-1] for region in op.regions for body in region.blocks]
            pending.extend(end.operation.operands[number] for end in ends)
        else:
            pending.extend(op.operands)
    return found


def same_place(load: Statement, store: Statement, windows: Mapping[ir.Operation, Window]) -> bool:
    """Whether both touch one element in each iteration: equal subscripts, or the same values. The
    second may be a load too.
    """
    a, b = load.op, store.op
    if load.loops != store.loops or len(load.accesses) != 1:
        return False
    if load.accesses[0].array != store.accesses[0].array:
        return False
    first, second = windows.get(a), windows.get(b)
    if first is not None and first.exact and first == second:
        return True
    if a.name.partition(".")[0] != b.name.partition(".")[0]:
        return False
    same_map = "map" not in a.attributes or a.attributes["map"] == b.attributes["map"]
    return same_map and list(a.operands) == list(b.operands)[b.name in STORES :]


def written_between(load: Statement, store: Statement, statements: Sequence[Statement]) -> bool:
    array = store.accesses[0].array
    return any(
        load.position < s.position < store.position
        and any(access.writes and access.array == array for access in s.accesses)
        for s in statements
    )


_SUM, _PRODUCT = ReductionKind.SUM, ReductionKind.PRODUCT
_MINIMUM, _MAXIMUM = ReductionKind.MINIMUM, ReductionKind.MAXIMUM

_COMBINING = {
    "arith.addf": _SUM,
    "arith.addi": _SUM,
    "arith.subf": _SUM,
    "arith.subi": _SUM,
    "math.fma": _SUM,
    "arith.mulf": _PRODUCT,
    "arith.muli": _PRODUCT,
    "arith.minimumf": _MINIMUM,
    "arith.minnumf": _MINIMUM,
    "arith.minsi": _MINIMUM,
    "arith.minui": _MINIMUM,
    "arith.maximumf": _MAXIMUM,
    "arith.maxnumf": _MAXIMUM,
    "arith.maxsi": _MAXIMUM,
    "arith.maxui": _MAXIMUM,
    "arith.andi": ReductionKind.AND,
    "arith.ori": ReductionKind.OR,
    "arith.xori": ReductionKind.XOR,
}
# `old - x` adds -x; `x - old` does not accumulate.
_LEFT_ONLY = {"arith.subf", "arith.subi"}

# Predicates by number: True for "less", False for "greater", equality allowed or not.
_LESS: dict[str, dict[int, bool]] = {
    "arith.cmpi": {2: True, 3: True, 4: False, 5: False, 6: True, 7: True, 8: False, 9: False},
    "arith.cmpf": {2: False, 3: False, 4: True, 5: True},
}

# arith's AtomicRMWKind, as memref.atomic_rmw and affine.parallel's `reduce` number them.
_DECLARED = {
    0: "addf", 1: "addi", 2: "andi", 4: "maximumf", 5: "maxnumf", 6: "maxsi", 7: "maxui",
    8: "minimumf", 9: "minnumf", 10: "minsi", 11: "minui", 12: "mulf", 13: "muli", 14: "ori",
    15: "xori",
}  # fmt: skip


def declared(number: int) -> Combination | None:
    """The combination of that number among arith's AtomicRMWKind; None for `assign`."""
    name = _DECLARED.get(number)
    return Combination(_COMBINING[f"arith.{name}"], f"arith.{name}") if name else None
