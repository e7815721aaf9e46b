"""Values that loops at control level hand on, and hand out, live in memory: ranks exchange memory.

Module with loops that have results -> module in which only loops inside phases have them, and
control loops whose carried values every rank can compute by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.analysis.parallelism.loop_carried import own_elements
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import defined_in, end_of, handed_through
from avial_lab.compiler.ir.operations import Element, attributes_of, element_of, operations_in
from avial_lab.compiler.passes.tasks.control_level import LOOPS, ControlLevel, structured_functions


@dataclass(frozen=True)
class IterArgsToMemory:
    """A cell for each carried value that depends on memory, allocated where the function begins.

    before:  %s = affine.for %i … iter_args(%sum = %zero) -> f64 { …  affine.yield %next : f64 }
    after:   %sum = memref.alloc() : memref<f64>
             memref.store %zero, %sum[]
             affine.for %i … { %old = memref.load %sum[] …  memref.store %next, %sum[] }
             %s = memref.load %sum[]

    A value that starts as an element of an array and is stored back to it needs no cell: it stays
    in the element (`own_elements`).
    The same for scf.for, scf.while and for the reductions of scf.parallel and affine.parallel. Left
    alone: loops inside a parallel loop, whose values stay in registers; what a control loop carries
    that follows from scalars alone (a stride that doubles); what no memref holds; a loop that is
    one phase and whose results nobody uses.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in structured_functions(module):
                _convert(function)

    def __str__(self) -> str:
        return "iter-args-to-memory"


def _convert(function: ir.Operation) -> None:
    if not any(op.name in LOOPS and len(op.results) for op in operations_in(function)):
        return
    level = ControlLevel(function)
    loops = [
        (op, level.is_control(op), own_elements(level.scop, op) if op.name == "affine.for" else ())
        for block in list(level.blocks())
        for op in (view.operation for view in block.operations)
        if op.name in LOOPS and len(op.results)
    ]
    top = function.regions[0].blocks[0]
    # Inner before outer: an outer loop's operations move when it is made anew.
    for loop, control, own in reversed(loops):
        if control or any(len(list(result.uses)) for result in loop.results):
            _CONVERSIONS[loop.name](loop, _Cells(top, loop, own))


def live_in_own_elements(nest: ir.Operation) -> bool:
    """Whether all values that loops in the nest carry are in elements now, each in the one that it
    is loaded from and stored to again. If not, nothing has changed.
    """
    scop = read_scop(nest)
    loops = [op for op in operations_in(nest) if op.name in LOOPS and len(op.results)]
    own = [own_elements(scop, loop) if loop.name == "affine.for" else [False] for loop in loops]
    if not loops or not all(map(all, own)):
        return False
    for loop, elements in reversed(list(zip(loops, own, strict=True))):
        _for(loop, _Cells(nest.block, loop, elements))
    return True


class _Cells:
    """Makes memory for the values of one loop; `own`: which of them stay in their elements."""

    def __init__(self, top: ir.Block, loop: ir.Operation, own: Sequence[bool]) -> None:
        self._top, self._loop, self.own = top, loop, own

    @staticmethod
    def fitting(kind: ir.Type) -> bool:
        """Whether an array can hold it."""
        return isinstance(kind, _ELEMENTS)

    def new(self, kind: ir.Type, named: ir.Location) -> ir.Value:
        """A cell with the value's name, so that people see it under that."""
        name = name_of(named) or "carried"
        with (
            ir.InsertionPoint.at_block_begin(self._top),
            ir.Location.name(name, self._loop.location),
        ):
            return memref.alloc(ir.MemRefType.get([], kind), [], [])


_ELEMENTS = (ir.IntegerType, ir.IndexType, ir.FloatType, ir.ComplexType, ir.VectorType)


# What depends on scalars alone --------------------------------------------------------------------


def _impure(
    arguments: Sequence[ir.Value], handed: Sequence[ir.Value], inside: Callable[[ir.Value], bool]
) -> set[int]:
    """The numbers of carried values that depend on memory or on a loop's result."""
    found: set[int] = set()
    while True:
        tainted = {arguments[k] for k in found}
        more = {
            k
            for k, value in enumerate(handed)
            if k not in found and _depends_on_memory(value, tainted, inside)
        }
        if not more:
            return found
        found |= more


def _depends_on_memory(
    value: ir.Value, tainted: set[ir.Value], inside: Callable[[ir.Value], bool]
) -> bool:
    seen: set[ir.Value] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in tainted:
            return True
        if current in seen or not inside(current):
            continue
        seen.add(current)
        owner = current.owner
        if isinstance(owner, ir.Block):
            continue
        op = owner.operation
        if len(op.regions) or not op.name.startswith(("arith.", "index.", "affine.", "math.")):
            return True
        if op.name in ("affine.load", "affine.vector_load"):
            return True
        pending += list(op.operands)
    return False


def _inside(loop: ir.Operation) -> Callable[[ir.Value], bool]:
    return lambda value: defined_in(loop, value)


# affine.for, scf.for ------------------------------------------------------------------------------


def _for(loop: ir.Operation, cells: _Cells) -> None:
    arguments = list(loop.regions[0].blocks[0].arguments)[1:]
    handed = list(end_of(loop).operands)
    first = len(loop.operands) - len(handed)
    chosen = [
        k
        for k in sorted(_impure(arguments, handed, _inside(loop)))
        if cells.fitting(arguments[k].type)
    ]
    if not chosen:
        return
    inits = {k: loop.operands[first + k] for k in chosen}
    own = {k: element_of(inits[k].owner.operation) for k in chosen if cells.own and cells.own[k]}
    made = {k: cells.new(arguments[k].type, arguments[k].location) for k in chosen if k not in own}
    with ir.InsertionPoint(loop), loop.location:
        for k, cell in made.items():
            memref.store(inits[k], cell, [])
    places: dict[int, Element | ir.Value] = {**made, **own}
    _live_in(loop, places)
    _after(loop, places)
    _without(loop, first, [k for k in range(len(handed)) if k not in places])


def _live_in(loop: ir.Operation, places: Mapping[int, Element | ir.Value]) -> None:
    """Each iteration takes these of the carried values from memory and leaves them there. What it
    only hands to a loop inside and gets back from there, lives in the same place there.
    """
    block = loop.regions[0].blocks[0]
    arguments = list(block.arguments)[1:]
    through: dict[ir.Operation, dict[int, Element | ir.Value]] = {}
    for k, place in places.items():
        inner = handed_through(loop, k)
        if inner is not None:
            through.setdefault(inner[0], {})[inner[1]] = place
            continue
        with ir.InsertionPoint.at_block_begin(block), arguments[k].location:
            arguments[k].replace_all_uses_with(_load(place))
    for inner, inside in through.items():
        _live_in(inner, inside)
        count = len(inner.results)
        first = len(inner.operands) - count
        for k in inside:
            inner.results[k].replace_all_uses_with(inner.operands[first + k])
        _without(inner, first, [k for k in range(count) if k not in inside])
    end = end_of(loop)
    handed = list(end.operands)
    with ir.InsertionPoint(end), end.location:
        for k, place in places.items():
            if handed[k] != arguments[k]:
                _store(handed[k], place)


def _load(place: Element | ir.Value) -> ir.Value:
    return place.load() if isinstance(place, Element) else memref.load(place, [])


def _store(value: ir.Value, place: Element | ir.Value) -> None:
    if isinstance(place, Element):
        place.store(value)
    else:
        memref.store(value, place, [])


def _after(loop: ir.Operation, places: Mapping[int, Element | ir.Value]) -> None:
    """Load what the loop's results were."""
    with ir.InsertionPoint.after(loop), loop.location:
        for k, place in places.items():
            if len(list(loop.results[k].uses)):
                loop.results[k].replace_all_uses_with(_load(place))


def _without(loop: ir.Operation, first: int, kept: Sequence[int]) -> None:
    """Make the loop anew with these of its carried values only; the others are used no more."""
    old = loop.regions[0].blocks[0]
    operands = [*list(loop.operands)[:first], *(loop.operands[first + k] for k in kept)]
    attributes = attributes_of(loop)
    if loop.name == "affine.for":
        low, high = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))[:2]
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([low, high, len(kept)])
    types = [loop.results[k].type for k in kept]
    with ir.InsertionPoint(loop):
        new = ir.Operation.create(
            loop.name, types, operands, attributes, regions=1, loc=loop.location
        )
    arguments = [old.arguments[0], *(old.arguments[1 + k] for k in kept)]
    body = ir.Block.create_at_start(
        new.regions[0], [a.type for a in arguments], [a.location for a in arguments]
    )
    for argument, fresh in zip(arguments, body.arguments, strict=True):
        argument.replace_all_uses_with(fresh)
    _move(old, body, [old.operations[len(old.operations) - 1].operation.operands[k] for k in kept])
    for place, k in enumerate(kept):
        loop.results[k].replace_all_uses_with(new.results[place])
    loop.erase()


def _move(old: ir.Block, new: ir.Block, handed: Sequence[ir.Value]) -> None:
    """All operations of `old`, its terminator with those operands."""
    *body, end = [view.operation for view in old.operations]
    for op in body:
        new.append(op)
    attributes = attributes_of(end)
    with ir.InsertionPoint(new):
        ir.Operation.create(end.name, [], list(handed), attributes, loc=end.location)


# scf.while ----------------------------------------------------------------------------------------


def _while(loop: ir.Operation, cells: _Cells) -> None:
    """Both what the condition is given and what it hands on, which may be other values."""
    before, after = (region.blocks[0] for region in loop.regions)
    condition, end = (b.operations[len(b.operations) - 1].operation for b in (before, after))
    carried, passed = list(before.arguments), list(after.arguments)
    handed = [*end.operands, *list(condition.operands)[1:]]
    impure = _impure([*carried, *passed], handed, _inside(loop))
    # A value of the body that nobody changes is passed on by the condition: it is as pure as that.
    made = {
        k: cells.new(value.type, value.location)
        for k, value in enumerate([*carried, *passed])
        if k in impure and cells.fitting(value.type)
    }
    if not made:
        return
    n = len(carried)
    with ir.InsertionPoint(loop), loop.location:
        for k in made:
            if k < n:
                memref.store(loop.operands[k], made[k], [])
    for block, values, shift in ((before, carried, 0), (after, passed, n)):
        with ir.InsertionPoint.at_block_begin(block):
            for k, value in enumerate(values):
                if k + shift in made:
                    with value.location:
                        value.replace_all_uses_with(memref.load(made[k + shift], []))
    for op, values, shift in (
        (condition, list(condition.operands)[1:], n),
        (end, list(end.operands), 0),
    ):
        with ir.InsertionPoint(op), op.location:
            for k, value in enumerate(values):
                if k + shift in made:
                    memref.store(value, made[k + shift], [])
    _after(loop, {k - n: cell for k, cell in made.items() if k >= n})
    _while_without(loop, made)


def _while_without(loop: ir.Operation, made: dict[int, ir.Value]) -> None:
    before, after = (region.blocks[0] for region in loop.regions)
    n = len(before.arguments)
    carried = [k for k in range(n) if k not in made]
    passed = [k for k in range(len(after.arguments)) if k + n not in made]
    attributes = attributes_of(loop)
    with ir.InsertionPoint(loop):
        new = ir.Operation.create(
            loop.name,
            [loop.results[k].type for k in passed],
            [loop.operands[k] for k in carried],
            attributes,
            regions=2,
            loc=loop.location,
        )
    for old, region, kept in ((before, 0, carried), (after, 1, passed)):
        arguments = [old.arguments[k] for k in kept]
        body = ir.Block.create_at_start(
            new.regions[region], [a.type for a in arguments], [a.location for a in arguments]
        )
        for argument, fresh in zip(arguments, body.arguments, strict=True):
            argument.replace_all_uses_with(fresh)
        last = list(old.operations[len(old.operations) - 1].operation.operands)
        handed = [last[0], *(last[1 + k] for k in passed)] if old == before else None
        _move(old, body, handed if handed is not None else [last[k] for k in carried])
    for place, k in enumerate(passed):
        loop.results[k].replace_all_uses_with(new.results[place])
    loop.erase()


# scf.parallel, affine.parallel --------------------------------------------------------------------


def _scf_parallel(loop: ir.Operation, cells: _Cells) -> None:
    *dims, count = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    if not all(cells.fitting(result.type) for result in loop.results):
        return
    first = sum(dims)
    made = {k: cells.new(loop.results[k].type, loop.location) for k in range(count)}
    with ir.InsertionPoint(loop), loop.location:
        for k, cell in made.items():
            memref.store(loop.operands[first + k], cell, [])
    block = loop.regions[0].blocks[0]
    reduce = block.operations[len(block.operations) - 1].operation
    for k, cell in made.items():
        _combine(reduce, k, cell)
    _after(loop, made)
    attributes = attributes_of(loop)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([*dims, 0])
    _parallel_without(loop, list(loop.operands)[:first], attributes)


def _combine(reduce: ir.Operation, number: int, cell: ir.Value) -> None:
    """The reduction's region, written out before the end of the iteration."""
    block = reduce.regions[number].blocks[0]
    *body, end = [view.operation for view in block.operations]
    with ir.InsertionPoint(reduce), reduce.location:
        block.arguments[0].replace_all_uses_with(memref.load(cell, []))
    block.arguments[1].replace_all_uses_with(reduce.operands[number])
    for op in body:
        op.move_before(reduce)
    with ir.InsertionPoint(reduce), reduce.location:
        memref.store(end.operands[0], cell, [])


def _affine_parallel(loop: ir.Operation, cells: _Cells) -> None:
    if not all(cells.fitting(result.type) for result in loop.results):
        return
    kinds = [ir.IntegerAttr(kind).value for kind in ir.ArrayAttr(loop.attributes["reductions"])]
    if any(kind not in _KINDS for kind in kinds):
        return
    made = {k: cells.new(result.type, loop.location) for k, result in enumerate(list(loop.results))}
    block = loop.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    for (k, cell), kind in zip(made.items(), kinds, strict=True):
        name, neutral = _KINDS[kind]
        with ir.InsertionPoint(loop), loop.location:
            memref.store(arith.constant(loop.results[k].type, neutral), cell, [])
        with ir.InsertionPoint(end), end.location:
            old = memref.load(cell, [])
            new = getattr(arith, name)(old, end.operands[k])
            memref.store(new, cell, [])
    _after(loop, made)
    attributes = attributes_of(loop)
    attributes["reductions"] = ir.ArrayAttr.get([])
    _parallel_without(loop, list(loop.operands), attributes)


def _parallel_without(
    loop: ir.Operation, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]
) -> None:
    old = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop):
        new = ir.Operation.create(
            loop.name, [], list(operands), attributes, regions=1, loc=loop.location
        )
    body = ir.Block.create_at_start(
        new.regions[0], [a.type for a in old.arguments], [a.location for a in old.arguments]
    )
    for argument, fresh in zip(old.arguments, body.arguments, strict=True):
        argument.replace_all_uses_with(fresh)
    _move(old, body, ())
    loop.erase()


# arith's AtomicRMWKind -> the operation, and what it starts from, as lower-affine has it.
_KINDS: dict[int, tuple[str, float | int]] = {
    0: ("addf", 0.0),
    1: ("addi", 0),
    2: ("andi", -1),
    4: ("maximumf", float("-inf")),
    8: ("minimumf", float("inf")),
    12: ("mulf", 1.0),
    13: ("muli", 1),
    14: ("ori", 0),
}

_CONVERSIONS: dict[str, Callable[[ir.Operation, _Cells], None]] = {
    "affine.for": _for,
    "scf.for": _for,
    "scf.while": _while,
    "scf.parallel": _scf_parallel,
    "affine.parallel": _affine_parallel,
}
