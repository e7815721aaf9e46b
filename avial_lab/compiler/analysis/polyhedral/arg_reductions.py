"""Which cells keep the first least (greatest) of all, and which follow them: argmin and argmax.

Cells with how an iteration changes them -> updates, the key's and its payloads'.

    %old = memref.load %best[]                  best leads: it takes x where x is strictly better
    %c = arith.cmpf olt, %x, %old
    scf.if %c {                                 at follows: it takes i whenever best takes x
      memref.store %x, %best[]
      memref.store %i, %at[] }

The same by arith.select, by values of scf.if, in inner loops with iter_args, and in any mixture.
The order is strict, so that of those alike the first stays, and what a NaN compares to stays too.
Then parts may be looked at apart: of two neighbours the second counts where it is strictly better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.scop import Array, ReductionKind, Statement, Update
from avial_lab.compiler.analysis.polyhedral.selects import (
    Steps,
    Take,
    Trail,
    Use,
    shape,
    takes,
    ways,
)
from avial_lab.compiler.analysis.polyhedral.updates import loads_behind, same_place, written_between
from avial_lab.compiler.analysis.polyhedral.views import Window
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.views import defining

PAYLOAD = "avial.payload"


@dataclass(frozen=True)
class Carried:
    """A loop's iter_arg as `array`: `argument` begins an iteration, operand `end` is handed on."""

    array: Array
    argument: ir.Value
    end: Use
    load: str
    store: str


@dataclass(frozen=True)
class Cell:
    """A value that lives from iteration to iteration, with what one iteration does to it.

    `home` is the block that keeps it at its end, or that holds the branch that stores it; `end` is
    what keeps it; `uses` are those that the steps go through.
    """

    array: Array
    load: str
    store: str
    steps: Steps
    home: ir.Block
    end: ir.Operation
    uses: frozenset[Use]


@dataclass(frozen=True)
class Lead:
    """A cell that leads: the operation, what its compares use, the statement it is loaded by."""

    op: str
    uses: frozenset[Use]
    load: str

    @property
    def kind(self) -> ReductionKind:
        least = self.op.startswith("avial.argmin")
        return ReductionKind.MINIMUM if least else ReductionKind.MAXIMUM


def led_updates(
    carried: Sequence[Carried],
    statements: Sequence[Statement],
    windows: Mapping[ir.Operation, Window],
    known: Sequence[Update],
) -> list[Update]:
    """The updates of keys and their payloads; keys alone but for those `known`."""
    code = _Code(statements, windows)
    cells = [*_carried_cells(carried), *code.stored_cells()]
    plain = {update.store for update in known}
    found: list[Update] = []
    for cell in cells:
        lead = code.lead(cell)
        if lead is None:
            continue
        others = [other for other in cells if _goes_with(other, cell)]
        arrays = tuple(dict.fromkeys(other.array for other in others))
        if not code.closed([cell, *others], lead) or (not others and cell.store in plain):
            continue
        key = Update(cell.array, lead.kind, lead.op, lead.load, cell.store, payloads=arrays)
        found.append(key)
        found += [
            Update(other.array, lead.kind, PAYLOAD, other.load, other.store, key=key)
            for other in others
        ]
    return found


def _goes_with(cell: Cell, key: Cell) -> bool:
    """Whether a cell takes something exactly when the key does."""
    if cell.array == key.array:
        return False
    if isinstance(cell.steps[0], Take) and cell.steps[0].kept is None:
        return shape(tuple(takes(key.steps))) == shape(cell.steps) and (_stands_in(cell.home, key))
    return cell.home == key.home and shape(cell.steps) == shape(key.steps)


def _stands_in(block: ir.Block, key: Cell) -> bool:
    """Whether what runs in `block` always reaches the key's home as the key's value does."""
    passed = list(ways(key.steps))
    while block != key.home:
        owner = block.owner.operation
        if owner not in passed:
            return False
        block = owner.block
    return True


def _carried_cells(carried: Iterable[Carried]) -> Iterator[Cell]:
    for each in carried:
        trail = Trail(each.argument)
        steps = trail.of(each.end)
        if steps:
            end = each.end[0]
            uses = frozenset(trail.uses)
            yield Cell(each.array, each.load, each.store, steps, end.block, end, uses)


# -- in the code around it


class _Code:
    """The statements by their operations, and where they are."""

    def __init__(
        self, statements: Sequence[Statement], windows: Mapping[ir.Operation, Window]
    ) -> None:
        self._statements, self._windows = statements, windows
        self._by_op = {s.op: s for s in statements}

    def stored_cells(self) -> Iterator[Cell]:
        for store in self._statements:
            if store.op.name in STORES and len(store.accesses) == 1:
                cell = self._stored(store) or _stored_if(store)
                if cell is not None:
                    yield cell

    def _stored(self, store: Statement) -> Cell | None:
        """A store that comes whatever happens, of the old value or another."""
        for op in loads_behind(store.op.operands[0]):
            load = self._loaded(op, store)
            if load is None:
                continue
            trail = Trail(op.results[0])
            steps = trail.of((store.op, 0))
            if steps:
                array, uses = store.accesses[0].array, frozenset(trail.uses)
                block = store.op.block
                return Cell(array, load.name, store.name, steps, block, store.op, uses)
        return None

    def _loaded(self, op: ir.Operation, store: Statement) -> Statement | None:
        """The load's statement, where it is of what the store overwrites."""
        load = self._by_op.get(op)
        if load is None or not same_place(load, store, self._windows):
            return None
        return None if written_between(load, store, self._statements) else load

    def lead(self, cell: Cell) -> Lead | None:
        """How the cell leads: each of its steps takes what is strictly better than what it was."""
        orders: set[str] = set()
        uses: set[Use] = set()
        load = cell.load
        for take in takes(cell.steps):
            found = self._order(take, take.condition, take.truth, cell)
            if found is None:
                return None
            orders.add(found.op)
            uses |= found.uses
            load = found.load
        return Lead(orders.pop(), frozenset(uses), load) if len(orders) == 1 else None

    def _order(self, take: Take, condition: ir.Value, truth: bool, cell: Cell) -> Lead | None:
        """The compare among the conditions that must all hold for the take."""
        op = defining(condition)
        if op is None:
            return None
        if op.name in ("arith.cmpi", "arith.cmpf"):
            return self._compared(take, op, truth, cell)
        parts = [0, 1] if op.name == ("arith.andi" if truth else "arith.ori") else []
        if op.name == "arith.xori":
            parts = [k for k in (0, 1) if _is_true(op.operands[1 - k])]
            truth = not truth
        for k in parts:
            found = self._order(take, op.operands[k], truth, cell)
            if found is not None:
                return Lead(found.op, found.uses | {(op, k)}, found.load)
        return None

    def _compared(self, take: Take, op: ir.Operation, truth: bool, cell: Cell) -> Lead | None:
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        order = _STRICT[op.name, truth].get(predicate)
        if order is None:
            return None
        for k in (0, 1):
            load = self._was(take, op.operands[k], cell)
            if load is not None and self._same(op.operands[1 - k], take.taken):
                # `x < old` takes the smaller; `old < x` the greater.
                return Lead(order[k], frozenset({(op, k)}), load)
        return None

    def _was(self, take: Take, value: ir.Value, cell: Cell) -> str | None:
        """The statement that loads the old value, where `value` is that."""
        if take.kept is not None:
            return cell.load if value == take.kept else None
        op = defining(value)
        load = self._loaded(op, self._by_op[cell.end]) if op is not None else None
        return load.name if load is not None else None

    def _same(self, first: ir.Value, second: ir.Value) -> bool:
        """Whether both are one value, or loads of one element with no write in between."""
        if first == second:
            return True
        a, b = (self._by_op.get(op) if (op := defining(v)) is not None else None
                for v in (first, second))  # fmt: skip
        if a is None or b is None or a.op.name not in LOADS or b.op.name not in LOADS:
            return False
        if b.position < a.position:
            a, b = b, a
        return same_place(a, b, self._windows) and not written_between(a, b, self._statements)

    def closed(self, cells: Sequence[Cell], lead: Lead) -> bool:
        """Whether nothing else is seen of the cells on the way, nor of what is decided there."""
        uses = lead.uses.union(*(cell.uses for cell in cells))
        on_the_way = {op.operands[number] for op, number in uses}
        ends = [cell.end for cell in cells]
        return all(
            (use.owner.operation, use.operand_number) in uses
            for value in on_the_way
            for use in value.uses
        ) and all(
            self._only_stores(op, ends, on_the_way)
            for op, number in uses
            if op.name == "scf.if" and number == 0
        )

    def _only_stores(
        self, branch: ir.Operation, ends: Sequence[ir.Operation], on_the_way: set[ir.Value]
    ) -> bool:
        """Whether a branch on the compare does nothing but what the cells' steps are."""
        if any(result not in on_the_way and any(True for _ in result.uses)
               for result in branch.results):  # fmt: skip
            return False
        inside = (view.operation for region in branch.regions
                  for block in region.blocks for view in block.operations)  # fmt: skip
        return all(op in ends or not (len(op.regions) or self._writes(op)) for op in inside)

    def _writes(self, op: ir.Operation) -> bool:
        statement = self._by_op.get(op)
        return statement is not None and any(access.writes for access in statement.accesses)


def _stored_if(store: Statement) -> Cell | None:
    """A store that comes only where a condition holds."""
    branch = parent_of(store.op)
    if branch is None or branch.name != "scf.if":
        return None
    truth = store.op.block == branch.regions[0].blocks[0]
    take = Take(branch.operands[0], truth, None, store.op.operands[0])
    array, name = store.accesses[0].array, store.name
    uses = frozenset({(branch, 0)})
    return Cell(array, name, name, (take,), branch.block, store.op, uses)


def _is_true(value: ir.Value) -> bool:
    op = defining(value)
    if op is None or op.name != "arith.constant" or str(value.type) != "i1":
        return False
    return str(op.attributes["value"]) == "true"


_BELOW, _ABOVE = ("avial.argmax", "avial.argmin"), ("avial.argmin", "avial.argmax")
_BELOW_UI, _ABOVE_UI = (tuple(f"{name}ui" for name in pair) for pair in (_BELOW, _ABOVE))

# Of compares that take where they are true, or false: what `old` is as the left operand, and as the
# right one. `x < old`, below, takes the least. Of floats, not (x >= old or NaN) is x < old.
_STRICT: dict[tuple[str, bool], dict[int, tuple[str, ...]]] = {
    ("arith.cmpi", True): {2: _BELOW, 4: _ABOVE, 6: _BELOW_UI, 8: _ABOVE_UI},
    ("arith.cmpi", False): {5: _BELOW, 3: _ABOVE, 9: _BELOW_UI, 7: _ABOVE_UI},
    ("arith.cmpf", True): {4: _BELOW, 2: _ABOVE},
    ("arith.cmpf", False): {10: _BELOW, 12: _ABOVE},
}
