"""What a task's body touches: which memref, read or written, and which elements of it.

A block -> Touches. Indices are followed as linear forms of loop variables with constant ranges,
views through their offsets and strides; what is not understood counts as reading and writing all it
can reach. Exact polyhedral sets are a later module's; boxes are enough to tell slices apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mlir import ir

from avial_lab.accesses.control import CONTROL
from avial_lab.accesses.index_forms import NO_SYMBOLS, IndexForms
from avial_lab.accesses.linear import ONE, Guard, Linear, Variable, Window, apply_map
from avial_lab.accesses.memory import MEMORY, SILENT, SILENT_DIALECTS, is_linalg, linalg
from avial_lab.accesses.views import VIEW_MAPS, VIEWS, alternatives, defining, extents_of, is_memref
from avial_lab.arrays import UNBOUNDED
from avial_lab.regions import Box


@dataclass(frozen=True, slots=True)
class Anchored:
    """low <= index - symbols < high, where symbols is a sum of numbers without a value."""

    symbols: str
    low: int
    high: int


@dataclass(frozen=True)
class Touch:
    """`op` reads or writes `box` of `root`, through `value`: the same memref or a view of it.

    `certain` says of a write that every element of the box is written for sure whenever the body
    runs. The box is not yet cut to the root's shape; it is None in a loop that never runs.
    `anchors` has an entry for each dimension, or none at all where no index hangs on a symbol.
    """

    op: ir.Operation
    value: ir.Value
    root: ir.Value
    reads: bool
    writes: bool
    box: Box | None
    certain: bool = False
    anchors: tuple[Anchored | None, ...] = ()


def body_touches(block: ir.Block, symbols: Mapping[ir.Value, Linear] = NO_SYMBOLS) -> list[Touch]:
    """Every touch of a memref in `block`, nested regions included, in program order.

    symbols: the forms of numbers from outside that have no value yet.
    """
    reader = BodyReader(symbols)
    reader.read_block(block)
    return reader.touches


class BodyReader:
    """Walks a body once. `certain` falls when what follows may not run; guards narrow known index
    forms.
    """

    def __init__(self, symbols: Mapping[ir.Value, Linear] = NO_SYMBOLS) -> None:
        self.touches: list[Touch] = []
        self.forms = IndexForms(symbols)
        self.certain = True
        self.unreached = False
        self.guards: tuple[Guard, ...] = ()

    @staticmethod
    def handling(name: str) -> Handler:
        """What to do with an operation of that name."""
        return _handling(name)

    def read_block(self, block: ir.Block) -> None:
        handling = self.handling
        for view in block.operations:
            op = view.operation
            handling(op.name)(self, op)

    def read_regions(
        self, op: ir.Operation, *, certain: bool, guards: tuple[Guard, ...] = ()
    ) -> None:
        before = self.certain, self.guards
        self.certain, self.guards = self.certain and certain, self.guards + guards
        for region in op.regions:
            for block in region.blocks:
                self.read_block(block)
        self.certain, self.guards = before

    def indices(self, values: Sequence[ir.Value]) -> Sequence[Linear]:
        """The forms of the values an operation takes as indices."""
        return [self.forms.of(value) for value in values]

    def affine_indices(self, op: ir.Operation, operands: Sequence[ir.Value]) -> Sequence[Linear]:
        """The results of the operation's affine map."""
        return apply_map(op.attributes["map"].value, self.indices(operands))

    # -- touches

    def touch_whole(
        self,
        op: ir.Operation,
        value: ir.Value,
        *,
        reads: bool = False,
        writes: bool = False,
        certain: bool = False,
    ) -> None:
        """A touch of every element of `value`, or of everything `value` may stand for."""
        extents = extents_of(value)
        windows = [Window(1, extent) for extent in extents]
        indices = [Linear(0)] * len(extents)
        self.touch(op, value, indices, windows, reads=reads, writes=writes, certain=certain)

    def touch_element(
        self,
        op: ir.Operation,
        value: ir.Value,
        indices: Sequence[Linear],
        *,
        reads: bool,
        writes: bool,
    ) -> None:
        self.touch(op, value, indices, [ONE] * len(indices), reads=reads, writes=writes)

    def touch(
        self,
        op: ir.Operation,
        value: ir.Value,
        indices: Sequence[Linear],
        windows: Sequence[Window],
        *,
        reads: bool,
        writes: bool,
        certain: bool = True,
    ) -> None:
        """A touch of the window of elements from `indices` on; `certain` falls where the walk knows
        better.
        """
        for source in alternatives(value):
            if source != value:
                whole = extents_of(source)
                indices, windows = [Linear(0)] * len(whole), [Window(1, extent) for extent in whole]
                certain = False
            root, forms, spans, precise = self._at_root(source, indices, windows)
            box, filled, anchors = self._box(forms, spans)
            sure = writes and certain and precise and filled and self.certain
            reached = None if self.unreached else box
            self.touches.append(Touch(op, value, root, reads, writes, reached, sure, anchors))

    def _at_root(
        self, value: ir.Value, indices: Sequence[Linear], windows: Sequence[Window]
    ) -> tuple[ir.Value, Sequence[Linear], Sequence[Window], bool]:
        """The same window in the index space of the memref that `value` is a view of, and whether
        nothing was lost.
        """
        precise = True
        while (op := defining(value)) is not None and op.name in VIEWS:
            source = op.operands[0]
            step = VIEW_MAPS.get(op.name)
            mapped = step(self.forms, op, indices, windows) if step is not None else None
            if mapped is None:
                extents = extents_of(source)
                mapped = [Linear(0)] * len(extents), [Window(1, extent) for extent in extents]
                precise = False
            indices, windows = mapped
            value = source
        return value, indices, windows, precise

    def _box(
        self, indices: Sequence[Linear], windows: Sequence[Window]
    ) -> tuple[Box, bool, tuple[Anchored | None, ...]]:
        """The bounding box of a window, whether it is filled for sure, and its anchors."""
        starts, stops = [], []
        anchors: dict[int, Anchored | None] = {}
        filled = True
        used: set[Variable] = set()
        guarded: set[int] = set()
        for index, window in zip(indices, windows, strict=True):
            if not index.terms:
                starts.append(max(index.constant, 0))
                stops.append(index.constant + window.extent)
                filled = filled and (window.stride == 1 or window.count == 1)
                continue
            bounds = index.bounds()
            if bounds is None:
                anchors[len(starts)] = _anchored(index, window)
                starts.append(0)
                stops.append(UNBOUNDED)
                filled = False
                continue
            low, high = bounds
            for k, guard in enumerate(self.guards):
                if guard.form.terms == index.terms:
                    shift = index.constant - guard.form.constant
                    low = low if guard.low is None else max(low, guard.low + shift)
                    high = high if guard.high is None else min(high, guard.high + shift)
                    guarded.add(k)
            starts.append(max(low, 0))
            stops.append(high + window.extent)
            variables = {variable for variable, _ in index.terms}
            filled = filled and index.dense(window) and not variables & used
            used |= variables
        # A guard that narrows none of the indices leaves out elements we cannot tell.
        filled = filled and len(guarded) == len(self.guards)
        found = tuple(map(anchors.get, range(len(starts)))) if any(anchors.values()) else ()
        return Box(tuple(starts), tuple(stops)), filled, found

    def touch_operands(self, op: ir.Operation) -> None:
        """Not understood: it may read and write every memref it is given, and may not run its
        regions.
        """
        for operand in op.operands:
            if is_memref(operand):
                self.touch_whole(op, operand, reads=True, writes=True)
        if len(op.regions):
            self.read_regions(op, certain=False)


def _anchored(index: Linear, window: Window) -> Anchored | None:
    """Where the window lies, counted from the symbols in `index`; None where there is none, or more
    than them is unknown.
    """
    symbols, rest = index.split()
    bounds = rest.bounds()
    if not symbols.terms or bounds is None:
        return None
    return Anchored(symbols.symbols(), bounds[0], bounds[1] + window.extent)


Handler = Callable[[BodyReader, ir.Operation], None]


def handler_of(name: str) -> Handler | None:
    """What reads operations of that name; None for those that touch no memory and for those not
    understood.
    """
    return linalg if is_linalg(name) else CONTROL.get(name) or MEMORY.get(name)


@cache
def _handling(name: str) -> Handler:
    if name in SILENT or name.partition(".")[0] in SILENT_DIALECTS:
        return _pass_over
    return handler_of(name) or BodyReader.touch_operands


def _pass_over(_reader: BodyReader, _op: ir.Operation) -> None:
    """Touches no memory."""
