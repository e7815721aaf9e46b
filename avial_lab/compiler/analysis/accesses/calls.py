"""What functions do with the memory they are given, read once and seen from every call.

func.call -> touches of its operands. A function is read with its numbers and open sizes as symbols,
so that one reading serves calls at different places; where a loop's bound or the like depends on
one of them, it is read once for each value that it is called with.

    func.func private @scale(%v: memref<?xf32>, %k: index) { for %i = 0 to dim(%v) … %v[%i], … }

    touches:  %v from 0 on, dim(%v) elements; read once more with dim(%v) = 64: 64 elements
    call:     %v is a subview of %A at [128], so that is %A[128:192]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mlir import ir

from avial_lab.compiler.analysis.accesses.footprints import BodyReader
from avial_lab.compiler.analysis.accesses.index_forms import IndexForms
from avial_lab.compiler.analysis.accesses.linear import Linear, Window, ranged, symbol
from avial_lab.compiler.analysis.accesses.storage_regions import joined
from avial_lab.compiler.analysis.accesses.view_maps import ABSOLUTE
from avial_lab.compiler.ir.views import DYNAMIC, defining, is_memref
from avial_lab.core.buffers import UNBOUNDED
from avial_lab.core.regions import Box


@dataclass(frozen=True, slots=True)
class ArgumentTouch:
    """The function reads or writes a box of its argument of that number: `origin` + `box`, where
    each dimension counts from a sum of the function's numbers. A stop of UNBOUNDED is the
    argument's own end.

    `certain` as of a Touch. `reached`: not only in a loop that never runs. `anywhere`: not only in
    the argument, but in all the memory that it may be a view of.
    """

    argument: int
    origin: tuple[Linear, ...]
    box: Box
    reads: bool
    writes: bool
    certain: bool = False
    reached: bool = True
    anywhere: bool = False


@dataclass(frozen=True)
class Footprint:
    """What a function does; `vague` names the numbers it depends on in a way that is not told."""

    touches: tuple[ArgumentTouch, ...]
    globals: tuple[ir.Value, ...]
    """What is written of the module's, as the function gets hold of it."""
    vague: frozenset[str]
    in_bounds: bool = True
    """No index whose range is known leaves its array."""

    @cached_property
    def read(self) -> frozenset[int]:
        """The numbers of the arguments that are read."""
        return frozenset(touch.argument for touch in self.touches if touch.reads)

    @cached_property
    def written(self) -> frozenset[int]:
        return frozenset(touch.argument for touch in self.touches if touch.writes)


_NOWHERE = Box((), ())

Known = Mapping[str, tuple[int, int]]
"""The least and the greatest value of numbers of a function."""


@dataclass
class Functions:
    """The functions beside a program, and what has been read of them."""

    _by_name: dict[str, ir.Operation] | None = None
    _footprints: dict[tuple[str, frozenset[tuple[str, tuple[int, int]]]], Footprint] = field(
        default_factory=dict
    )
    _being_read: set[str] = field(default_factory=set)
    _leaving: dict[str, bool] = field(default_factory=dict)

    def read_call(self, reader: BodyReader, op: ir.Operation) -> None:
        """What the function does, as touches of the operands of its call."""
        name, function = self._called(op)
        if function is None or name in self._being_read:
            self._read_unknown(reader, op, anywhere=function is not None and self._leaves(name))
            return
        numbers = _Numbers(reader.forms, op)
        footprint = self._footprint_with(numbers, name, function)
        operands = list(op.operands)
        for touch in footprint.touches:
            _touch_operand(reader, op, operands[touch.argument], touch, numbers)
        reader.in_bounds = reader.in_bounds and footprint.in_bounds
        for value in footprint.globals:
            reader.note_memory(op, value, value, reads=False, writes=True)
        for number, operand in enumerate(operands):
            if number not in footprint.read and is_memref(operand):
                reader.touch_whole(op, operand)

    def footprint(self, op: ir.Operation) -> Footprint | None:
        """What the function that is called does with numbers that nobody knows; None where it has
        no body here, or is being read.
        """
        name, function = self._called(op)
        if function is None or name in self._being_read:
            return None
        return self._footprint(name, function, {})

    def may_leave(self, op: ir.Operation) -> bool:
        """Whether any function of the module that `op` is in may hand back memory beside what it
        is given.
        """
        return any(
            _hands_back_memory(function) and self._leaves(name)
            for name, function in self._beside(op).items()
        )

    def _called(self, op: ir.Operation) -> tuple[str, ir.Operation | None]:
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        return name, self._beside(op).get(name)

    def _beside(self, op: ir.Operation) -> dict[str, ir.Operation]:
        if self._by_name is None:
            self._by_name = {
                ir.StringAttr(each.attributes["sym_name"]).value: each for each in _beside(op)
            }
        return self._by_name

    def _footprint_with(self, numbers: _Numbers, name: str, function: ir.Operation) -> Footprint:
        """What it does with these numbers, as far as it depends on them."""
        known: dict[str, tuple[int, int]] = {}
        while True:
            footprint = self._footprint(name, function, known)
            open_numbers = footprint.vague - known.keys()
            more = {number: numbers[number].bounds() for number in open_numbers}
            found = {number: bounds for number, bounds in more.items() if bounds is not None}
            if not found:
                numbers.forms.lose(*map(numbers.__getitem__, open_numbers))
                return footprint
            known |= found

    def _footprint(self, name: str, function: ir.Operation, known: Known) -> Footprint:
        key = name, frozenset(known.items())
        found = self._footprints.get(key)
        if found is None:
            self._being_read.add(name)
            found = self._footprints[key] = _read(self, function, known)
            self._being_read.remove(name)
        return found

    def _read_unknown(self, reader: BodyReader, op: ir.Operation, *, anywhere: bool) -> None:
        if not anywhere:
            reader.touch_operands(op)
            return
        for operand in op.operands:
            if is_memref(operand):
                reader.touch_memory(op, operand, reads=True, writes=True)

    def _leaves(self, name: str) -> bool:
        """Whether the function, or one that it calls, gets at memory beside what it is given."""
        found = self._leaving.get(name)
        if found is not None:
            return found
        self._leaving[name] = False  # it calls itself
        function = (self._by_name or {}).get(name)
        found = self._leaving[name] = function is not None and any(
            op.name in ABSOLUTE or (op.name == "func.call" and self._leaves(self._called(op)[0]))
            for op in _inside(function)
        )
        return found


class _Numbers:
    """The numbers and open sizes of a function, as a call gives them."""

    def __init__(self, forms: IndexForms, op: ir.Operation) -> None:
        self.forms, self._op = forms, op

    def __getitem__(self, name: str) -> Linear:
        number, _, dim = name.partition(".")
        value = self._op.operands[int(number)]
        return self.forms.extents(value)[int(dim)] if dim else self.forms.of(value)

    def given(self, form: Linear) -> Linear:
        """A sum of the function's numbers in the caller's."""
        result = Linear(form.constant)
        for variable, factor in form.terms:
            result = result.plus(self[variable.symbol].times(factor))
        return result


def _touch_operand(
    reader: BodyReader,
    op: ir.Operation,
    operand: ir.Value,
    touch: ArgumentTouch,
    numbers: _Numbers,
) -> None:
    unreached = reader.unreached
    reader.unreached = unreached or not touch.reached
    if touch.anywhere:
        reader.touch_memory(op, operand, reads=touch.reads, writes=touch.writes)
    else:
        start, stop = touch.box
        reader.touch(
            op,
            operand,
            [
                numbers.given(origin).plus(Linear(low)) if origin.terms else Linear(low)
                for origin, low in zip(touch.origin, start, strict=True)
            ],
            [
                Window(1, UNBOUNDED if high >= UNBOUNDED else high - low)
                for low, high in zip(start, stop, strict=True)
            ],
            reads=touch.reads,
            writes=touch.writes,
            certain=touch.certain,
        )
    reader.unreached = unreached


class _FunctionReader(BodyReader):
    """Reads a function's body; memory of its own is nobody else's business."""

    def __init__(self, functions: Functions, forms: IndexForms, function: ir.Operation) -> None:
        super().__init__(functions, forms)
        arguments = function.regions[0].blocks[0].arguments
        self._number = {argument: k for k, argument in enumerate(arguments)}
        self.found: list[ArgumentTouch] = []
        self.globals: list[ir.Value] = []

    def note(
        self,
        op: ir.Operation,
        value: ir.Value,
        root: ir.Value,
        indices: Sequence[Linear],
        windows: Sequence[Window],
        *,
        reads: bool,
        writes: bool,
        certain: bool,
    ) -> None:
        box, filled, anchors = self.box_of(indices, windows)
        self.check_inside(box, root)
        number = self._number.get(root)
        if number is None:
            self._note_global(root, writes=writes)
            return
        origin = [Linear(0)] * len(box.start)
        start, stop = list(box.start), list(box.stop)
        for dim, anchored in enumerate(anchors):
            if anchored is not None:
                origin[dim] = anchored.origin
                start[dim], stop[dim] = anchored.low, anchored.high
        box = Box(tuple(start), tuple(stop))
        sure, reached = certain and filled, not self.unreached
        touch = ArgumentTouch(number, tuple(origin), box, reads, writes, sure, reached)
        self.found.append(touch)

    def note_memory(
        self, op: ir.Operation, value: ir.Value, root: ir.Value, *, reads: bool, writes: bool
    ) -> None:
        number = self._number.get(root)
        if number is None:
            self._note_global(root, writes=writes)
            return
        reached = not self.unreached
        touch = ArgumentTouch(number, (), _NOWHERE, reads, writes, reached=reached, anywhere=True)
        self.found.append(touch)

    def _note_global(self, root: ir.Value, *, writes: bool) -> None:
        op = defining(root)
        if writes and op is not None and op.name == "memref.get_global":
            self.globals.append(root)


def _read(functions: Functions, function: ir.Operation, known: Known) -> Footprint:
    """One reading of a function's body."""
    blocks = list(function.regions[0].blocks)
    forms = _argument_forms(blocks[0], known)
    reader = _FunctionReader(functions, forms, function)
    reader.read_block(blocks[0])
    reader.certain = False  # a branch decides whether the others run
    for block in blocks[1:]:
        reader.read_block(block)
    globals_ = tuple(dict.fromkeys(reader.globals))
    vague = frozenset(forms.vague)
    return Footprint(tuple(_joined(reader.found)), globals_, vague, reader.in_bounds)


def _argument_forms(entry: ir.Block, known: Known) -> IndexForms:
    """The function's numbers and open sizes: what is known of them, else symbols."""

    def form(name: str) -> Linear:
        return ranged(*known[name]) if name in known else symbol(name)

    numbers: dict[ir.Value, Linear] = {}
    extents: dict[ir.Value, list[Linear]] = {}
    for k, argument in enumerate(entry.arguments):
        kind = argument.type
        if isinstance(kind, ir.IndexType | ir.IntegerType):
            numbers[argument] = form(str(k))
        elif isinstance(kind, ir.MemRefType) and not kind.has_static_shape:
            extents[argument] = [
                form(f"{k}.{dim}") if size == DYNAMIC else Linear(size)
                for dim, size in enumerate(kind.shape)
            ]
    return IndexForms(numbers, extents)


def _joined(touches: Sequence[ArgumentTouch]) -> list[ArgumentTouch]:
    """The same touches, in few: those of the same kind together, and what is read and written is
    touched once.
    """
    kinds: dict[ArgumentTouch, dict[Box, None]] = {}
    for touch in touches:
        kinds.setdefault(replace(touch, box=_NOWHERE), {})[touch.box] = None
    found: dict[ArgumentTouch, ArgumentTouch] = {}
    for kind, boxes in kinds.items():
        region, exact = joined(list(boxes))
        for box in region or boxes:
            touch = replace(kind, box=box, certain=kind.certain and exact)
            place = replace(touch, reads=False, writes=False, certain=False)
            other = found.get(place, place)
            found[place] = replace(
                touch,
                reads=touch.reads or other.reads,
                writes=touch.writes or other.writes,
                certain=touch.certain or other.certain,
            )
    return list(found.values())


def _hands_back_memory(function: ir.Operation) -> bool:
    results = ir.FunctionType(function.attributes["function_type"].value).results
    return any(isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType) for kind in results)


def _beside(op: ir.Operation) -> Iterator[ir.Operation]:
    """The functions with a body of the module that `op` is in."""
    while op.name != "builtin.module" and op.parent is not None:
        op = op.parent.operation
    for view in op.regions[0].blocks[0].operations:
        each = view.operation
        if each.name == "func.func" and len(each.regions[0].blocks):
            yield each


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from _inside(view.operation)
