"""What a task's body touches: which memref, read or written, and which elements of it.

A block -> Touches. Indices are followed as linear forms of loop variables with constant ranges,
views through their offsets and strides, calls into the functions they call; what is not understood
counts as reading and writing all it can reach. Exact polyhedral sets are a later module's; boxes
are enough to tell slices apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mlir import ir

from avial_lab.compiler.analysis.accesses.control import CONTROL
from avial_lab.compiler.analysis.accesses.index_forms import NO_SYMBOLS, IndexForms
from avial_lab.compiler.analysis.accesses.linear import ONE, Guard, Linear, Variable, Window
from avial_lab.compiler.analysis.accesses.memory import (
    MEMORY,
    SILENT,
    SILENT_DIALECTS,
    is_linalg,
    linalg,
)
from avial_lab.compiler.analysis.accesses.view_maps import ABSOLUTE, VIEW_MAPS, addressed, whole_of
from avial_lab.compiler.ir.views import (
    DYNAMIC,
    VIEWS,
    alternatives,
    defining,
    is_memref,
    view_chain,
)
from avial_lab.core.buffers import UNBOUNDED
from avial_lab.core.regions import Box

if TYPE_CHECKING:
    from avial_lab.compiler.analysis.accesses.calls import Functions


@dataclass(frozen=True, slots=True)
class Anchored:
    """low <= index - origin < high, where origin is a sum of numbers without a value."""

    origin: Linear
    low: int
    high: int

    @property
    def symbols(self) -> str:
        """The sum as text."""
        return self.origin.symbols()


@dataclass(frozen=True)
class Touch:
    """`op` reads or writes `box` of `root`, through `value`: the same memref or a view of it. Where
    it does neither, it hands `value` to a function that does neither.

    `certain` says of a write that every element of the box is written for sure whenever the body
    runs. The box is not cut to the root's shape, below 0 neither; it is None in a loop that never
    runs.
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


def body_touches(
    block: ir.Block,
    functions: Functions,
    symbols: Mapping[ir.Value, Linear] = NO_SYMBOLS,
) -> list[Touch]:
    """Every touch of a memref in `block`, nested regions included, in program order; see
    `read_body`.
    """
    return read_body(block, functions, symbols).touches


def read_body(
    block: ir.Block,
    functions: Functions,
    symbols: Mapping[ir.Value, Linear] = NO_SYMBOLS,
) -> BodyReader:
    """What has read `block`, nested regions included: its touches, in program order.

    functions: what the module's functions touch; kept from body to body, as each is read once.
    symbols: the forms of numbers from outside that have no value yet.
    """
    reader = BodyReader(functions, IndexForms(symbols))
    reader.read_block(block)
    return reader


_Placed = tuple[ir.Value, Sequence[Linear], Sequence[Window], bool]


class BodyReader:
    """Walks a body once. `certain` falls when what follows may not run; guards narrow known index
    forms. `in_bounds` falls at an access whose bounding box is not inside of its array, or of the
    view that it goes through, as far as both are numbers.
    """

    def __init__(self, functions: Functions, forms: IndexForms) -> None:
        self.touches: list[Touch] = []
        self.functions = functions
        self.forms = forms
        self.certain = True
        self.unreached = False
        self.guards: tuple[Guard, ...] = ()
        self.in_bounds = True

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
        return self.forms.apply(op.attributes["map"].value, self.indices(operands))

    def extents(self, value: ir.Value) -> Sequence[Linear]:
        """The shape of a memref."""
        return self.forms.extents(value)

    def read_call(self, op: ir.Operation) -> None:
        """What the called function does, seen from here."""
        self.functions.read_call(self, op)

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
        indices, windows, fixed = whole_of(self.forms, value)
        if not fixed:
            self.forms.lose(*self.forms.extents(value))
            # All of memory that has no size yet is still all of it; of a view, some part.
            certain = certain and view_chain(value)[-1] == value
            windows = [Window(1, UNBOUNDED if e.terms else e.constant) for e in self.extents(value)]
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
        op_of_view = defining(value)
        if op_of_view is not None and op_of_view.name in VIEWS:
            self.check_inside(self.box_of(indices, windows)[0], value)
        for source in alternatives(value):
            if source != value:
                indices, windows, _ = whole_of(self.forms, source)
                certain = False
            # A function may hand back a view of memory beside what it was given.
            leaves = source != value and self.functions.may_leave(op)
            placed = None if leaves else self._at_root(source, indices, windows)
            if placed is None:
                self.note_memory(op, value, view_chain(source)[-1], reads=reads, writes=writes)
                continue
            root, forms, spans, precise = placed
            certainly = writes and certain and precise and self.certain
            self.note(op, value, root, forms, spans, reads=reads, writes=writes, certain=certainly)

    def touch_memory(self, op: ir.Operation, value: ir.Value, *, reads: bool, writes: bool) -> None:
        """A touch of anything in the memory that `value` is a view of."""
        for root in dict.fromkeys(view_chain(source)[-1] for source in alternatives(value)):
            self.note_memory(op, value, root, reads=reads, writes=writes)

    def note_memory(
        self, op: ir.Operation, value: ir.Value, root: ir.Value, *, reads: bool, writes: bool
    ) -> None:
        """Keep a touch of anything in that memory."""
        indices, windows, _ = whole_of(self.forms, root)
        self.note(op, value, root, indices, windows, reads=reads, writes=writes, certain=False)

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
        """Keep a touch of that window of `root`."""
        box, filled, anchors = self.box_of(indices, windows)
        sure = certain and filled and not anchors
        reached = None if self.unreached else box
        self.check_inside(box, root)
        self.touches.append(Touch(op, value, root, reads, writes, reached, sure, anchors))

    def _at_root(
        self, value: ir.Value, indices: Sequence[Linear], windows: Sequence[Window]
    ) -> _Placed | None:
        """The same window in the index space of the memref that `value` is a view of, and whether
        nothing was lost; None where it may be anywhere in that memory.
        """
        precise = True
        while (op := defining(value)) is not None and op.name in VIEWS:
            indices, windows, kept = self._within(value, indices, windows)
            precise = precise and kept
            if op.name in ABSOLUTE:
                root, mapped = addressed(self.forms, op, indices, windows)
                return mapped and (root, mapped[0], mapped[1], precise and mapped[2])
            value = op.operands[0]
            step = VIEW_MAPS.get(op.name)
            mapped = step(self.forms, op, indices, windows) if step is not None else None
            indices, windows, exact = mapped or (*whole_of(self.forms, value)[:2], False)
            precise = precise and exact
        return value, indices, windows, precise

    def _within(
        self, value: ir.Value, indices: Sequence[Linear], windows: Sequence[Window]
    ) -> tuple[Sequence[Linear], Sequence[Window], bool]:
        """The window where an index is anything, or its end is open: as long as the view is."""
        loose: list[int] = []
        for k, index in enumerate(indices):
            if windows[k].count >= UNBOUNDED or (index.terms and index.is_vague):
                loose.append(k)
        if not loose:
            return indices, windows, True
        whole, spans, fixed = whole_of(self.forms, value)
        if len(whole) != len(indices):
            return indices, windows, True  # of a rank that is not known
        kept = fixed and not any(indices[k].terms or indices[k].constant for k in loose)
        indices = [whole[k] if k in loose else index for k, index in enumerate(indices)]
        windows = [spans[k] if k in loose else window for k, window in enumerate(windows)]
        return indices, windows, kept

    def check_inside(self, box: Box, memref: ir.Value) -> None:
        """Lets `in_bounds` fall where the box leaves the memref, in code that is reached."""
        if self.in_bounds and not self.unreached:
            self.in_bounds = _is_inside(box, memref)

    def box_of(
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
                starts.append(index.constant)
                stops.append(index.constant + window.extent)
                filled = filled and (window.stride == 1 or window.count == 1)
                continue
            bounds = index.bounds()
            if bounds is None:
                anchors[len(starts)] = anchored = _anchored(index, window)
                starts.append(0)
                stops.append(UNBOUNDED)
                index = index.split()[1]
                variables = {variable for variable, _ in index.terms}
                dense = anchored is not None and index.dense(window)
                filled = filled and dense and not variables & used
                used |= variables
                continue
            low, high = bounds
            for k, guard in enumerate(self.guards):
                if guard.form.terms == index.terms:
                    shift = index.constant - guard.form.constant
                    low = low if guard.low is None else max(low, guard.low + shift)
                    high = high if guard.high is None else min(high, guard.high + shift)
                    guarded.add(k)
            starts.append(low)
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


def _is_inside(box: Box, memref: ir.Value) -> bool:
    """Whether a box lies in a memref, as far as its ends and the memref's sizes are known."""
    kind = ir.ShapedType(memref.type)
    return not kind.has_rank or all(
        low >= 0 and (extent == DYNAMIC or high <= extent or high >= UNBOUNDED)
        for low, high, extent in zip(*box, kind.shape, strict=True)
    )


def _anchored(index: Linear, window: Window) -> Anchored | None:
    """Where the window lies, counted from the symbols in `index`; None where there is none, or more
    than them is unknown.
    """
    symbols, rest = index.split()
    bounds = rest.bounds()
    if not symbols.terms or bounds is None:
        return None
    return Anchored(symbols, bounds[0], bounds[1] + window.extent)


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
    if name == "func.call":
        return _read_call
    return handler_of(name) or BodyReader.touch_operands


def _read_call(reader: BodyReader, op: ir.Operation) -> None:
    reader.read_call(op)


def _pass_over(_reader: BodyReader, _op: ir.Operation) -> None:
    """Touches no memory."""
