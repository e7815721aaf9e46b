"""What a task's body touches: which memref, read or written, and which elements of it.

A block -> Touches. Indices are followed as linear forms of loop variables with constant ranges,
views through their offsets and strides; what is not understood counts as reading and writing all it
can reach. Exact polyhedral sets are a later module's; boxes are enough to tell slices apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.accesses.index_forms import NO_SYMBOLS, IndexForms
from avial_lab.accesses.linear import (
    ONE,
    Linear,
    Variable,
    Window,
    apply_map,
    extreme,
    unknown,
)
from avial_lab.accesses.views import (
    VIEW_MAPS,
    VIEWS,
    alternatives,
    defining,
    extents_of,
    is_memref,
)
from avial_lab.arrays import UNBOUNDED
from avial_lab.dialects.avial import SEGMENTS, operand_segments
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


@dataclass(frozen=True, slots=True)
class _Guard:
    """Inside this branch, low <= form <= high."""

    form: Linear
    low: int | None
    high: int | None


class BodyReader:
    """Walks a body once. `certain` falls when what follows may not run; guards narrow known index
    forms.
    """

    def __init__(self, symbols: Mapping[ir.Value, Linear] = NO_SYMBOLS) -> None:
        self.touches: list[Touch] = []
        self.forms = IndexForms(symbols)
        self.certain = True
        self.unreached = False
        self.guards: tuple[_Guard, ...] = ()

    def read_block(self, block: ir.Block) -> None:
        for view in block.operations:
            op = view.operation
            name = op.name
            if name in _SILENT or name.partition(".")[0] in _SILENT_DIALECTS:
                continue
            handler = handler_of(name)
            if handler is not None:
                handler(self, op)
            else:
                self.touch_operands(op)

    def read_regions(
        self, op: ir.Operation, *, certain: bool, guards: tuple[_Guard, ...] = ()
    ) -> None:
        before = self.certain, self.guards
        self.certain, self.guards = self.certain and certain, self.guards + guards
        for region in op.regions:
            for block in region.blocks:
                self.read_block(block)
        self.certain, self.guards = before

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


# -- operations with regions


def _scf_for(reader: BodyReader, op: ir.Operation) -> None:
    low, high, step = (reader.forms.of(op.operands[k]) for k in range(3))
    _enter_loop(reader, op, [(low, high, step)])


def _scf_parallel(reader: BodyReader, op: ir.Operation) -> None:
    rank = operand_segments(op)[0]
    forms = [reader.forms.of(op.operands[k]) for k in range(3 * rank)]
    _enter_loop(reader, op, [(forms[k], forms[rank + k], forms[2 * rank + k]) for k in range(rank)])


def _affine_for(reader: BodyReader, op: ir.Operation) -> None:
    lower_map = op.attributes["lowerBoundMap"].value
    upper_map = op.attributes["upperBoundMap"].value
    step = op.attributes["step"].value
    operands = [reader.forms.of(operand) for operand in op.operands]
    split = lower_map.n_inputs
    lows = apply_map(lower_map, operands[:split])
    highs = apply_map(upper_map, operands[split : split + upper_map.n_inputs])
    _enter_loop(reader, op, [(extreme(lows, max), extreme(highs, min), Linear(step))])


def _affine_parallel(reader: BodyReader, op: ir.Operation) -> None:
    lower_map = op.attributes["lowerBoundsMap"].value
    upper_map = op.attributes["upperBoundsMap"].value
    steps = [ir.IntegerAttr(step).value for step in ir.ArrayAttr(op.attributes["steps"])]
    operands = [reader.forms.of(operand) for operand in op.operands]
    split = lower_map.n_inputs
    lows = _grouped(op, "lowerBoundsGroups", apply_map(lower_map, operands[:split]), max)
    highs = _grouped(op, "upperBoundsGroups", apply_map(upper_map, operands[split:]), min)
    ranges = [(low, high, Linear(step)) for low, high, step in zip(lows, highs, steps, strict=True)]
    _enter_loop(reader, op, ranges)


def _grouped(
    op: ir.Operation, name: str, forms: list[Linear], pick: Callable[..., int]
) -> list[Linear]:
    sizes = [int(size) for size in ir.DenseIntElementsAttr(op.attributes[name])]
    result = []
    for size in sizes:
        result.append(extreme(forms[:size], pick))
        forms = forms[size:]
    return result


def _enter_loop(
    reader: BodyReader, op: ir.Operation, ranges: list[tuple[Linear, Linear, Linear]]
) -> None:
    """Read a loop's body with its variables' ranges; what stands in a loop that never runs reaches
    no element.
    """
    certain, unreached = True, reader.unreached
    arguments = list(op.regions[0].blocks[0].arguments)
    for argument, (low, high, step) in zip(arguments, ranges, strict=False):
        first, last = low.bounds(), high.bounds()
        origin = Linear(0)
        if first is None or last is None:
            origin, low, high = _common_origin(low, high)
            first, last = low.bounds(), high.bounds()
        stride = step.constant if not step.terms and step.constant > 0 else None
        if first is None or last is None or stride is None:
            certain = False
            reader.forms[argument] = unknown()
            continue
        if first[0] >= last[1]:
            reader.unreached = True
            reader.forms[argument] = unknown()
            continue
        fixed = not low.terms and not high.terms
        certain = certain and fixed
        variable = Variable(first[0], last[1], stride if fixed else 1, full=fixed)
        reader.forms[argument] = Linear(0, (*origin.terms, (variable, 1)))
    reader.read_regions(op, certain=certain)
    reader.unreached = unreached


def _common_origin(low: Linear, high: Linear) -> tuple[Linear, Linear, Linear]:
    """What both bounds of a loop count from, and the bounds counted from there."""
    (origin, from_low), (other, from_high) = low.split(), high.split()
    if origin.symbols() != other.symbols():
        return Linear(0), low, high
    return origin, from_low, from_high


def _scf_if(reader: BodyReader, op: ir.Operation) -> None:
    guard = _guard(reader, op.operands[0])
    before = reader.certain, reader.guards
    for k, region in enumerate(op.regions):
        narrowed = guard is not None and k == 0
        reader.certain = before[0] and narrowed
        reader.guards = (*before[1], guard) if narrowed and guard is not None else before[1]
        for block in region.blocks:
            reader.read_block(block)
    reader.certain, reader.guards = before


# arith.cmpi's predicates by number, as bounds on the left side against a constant on the right:
# (low, high).
_BOUNDS_OF_PREDICATE: dict[int, Callable[[int], tuple[int | None, int | None]]] = {
    0: lambda k: (k, k),  # eq
    2: lambda k: (None, k - 1),  # slt
    3: lambda k: (None, k),  # sle
    4: lambda k: (k + 1, None),  # sgt
    5: lambda k: (k, None),  # sge
    6: lambda k: (0, k - 1),  # ult
    7: lambda k: (0, k),  # ule
}


def _guard(reader: BodyReader, condition: ir.Value) -> _Guard | None:
    """`form < constant` and its kin as a guard; None for any other condition."""
    op = defining(condition)
    if op is None or op.name != "arith.cmpi":
        return None
    predicate = op.attributes["predicate"].value
    form, limit = reader.forms.of(op.operands[0]), reader.forms.of(op.operands[1])
    bounds = form.bounds()
    if limit.terms or not form.terms or bounds is None or predicate not in _BOUNDS_OF_PREDICATE:
        return None
    if predicate in (6, 7) and (bounds[0] < 0 or limit.constant < 0):
        return None
    return _Guard(form, *_BOUNDS_OF_PREDICATE[predicate](limit.constant))


def _gpu_launch(reader: BodyReader, op: ir.Operation) -> None:
    """Block arguments: block ids, thread ids, grid sizes, block sizes, x y z each."""
    first = operand_segments(op)[0]
    sizes = [reader.forms.of(op.operands[first + k]) for k in range(6)]
    arguments = list(op.regions[0].blocks[0].arguments)
    ids_before = reader.forms.launch_ids
    launch_ids: dict[tuple[str, str], Linear] = {}
    certain = True
    for k, size in enumerate(sizes):
        known = not size.terms
        certain = certain and known and size.constant > 0
        variable = Variable(0, size.constant, full=True) if known else Variable(None)
        form = Linear(0, ((variable, 1),))
        ids, extents = ("block_id", "grid_dim") if k < 3 else ("thread_id", "block_dim")
        axis = "xyz"[k % 3]
        launch_ids[ids, axis] = reader.forms[arguments[k]] = form
        launch_ids[extents, axis] = reader.forms[arguments[6 + k]] = size
    reader.forms.launch_ids = launch_ids
    reader.read_regions(op, certain=certain)
    reader.forms.launch_ids = ids_before


def _certain_regions(reader: BodyReader, op: ir.Operation) -> None:
    reader.read_regions(op, certain=True)


def _uncertain_regions(reader: BodyReader, op: ir.Operation) -> None:
    reader.read_regions(op, certain=False)


# -- operations that touch memory


def _memref_load(reader: BodyReader, op: ir.Operation) -> None:
    operands = op.operands
    indices = [reader.forms.of(operands[k]) for k in range(1, len(operands))]
    reader.touch_element(op, operands[0], indices, reads=True, writes=False)


def _memref_store(reader: BodyReader, op: ir.Operation) -> None:
    operands = op.operands
    indices = [reader.forms.of(operands[k]) for k in range(2, len(operands))]
    reader.touch_element(op, operands[1], indices, reads=False, writes=True)


def _atomic_rmw(reader: BodyReader, op: ir.Operation) -> None:
    first = 1 if op.name == "memref.atomic_rmw" else 0
    operands = list(op.operands)
    indices = [reader.forms.of(operand) for operand in operands[first + 1 :]]
    reader.touch_element(op, operands[first], indices, reads=True, writes=True)
    if len(op.regions):
        reader.read_regions(op, certain=True)


def _affine_load(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    reader.touch_element(
        op, operands[0], _affine_indices(reader, op, operands[1:]), reads=True, writes=False
    )


def _affine_store(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    reader.touch_element(
        op, operands[1], _affine_indices(reader, op, operands[2:]), reads=False, writes=True
    )


def _affine_indices(reader: BodyReader, op: ir.Operation, operands: list[ir.Value]) -> list[Linear]:
    return apply_map(
        op.attributes["map"].value,
        [reader.forms.of(operand) for operand in operands],
    )


def _affine_vector(reader: BodyReader, op: ir.Operation) -> None:
    store = op.name == "affine.vector_store"
    operands = list(op.operands)
    memref, rest = (operands[1], operands[2:]) if store else (operands[0], operands[1:])
    vector = operands[0].type if store else op.results[0].type
    _touch_vector(
        reader, op, memref, _affine_indices(reader, op, rest), vector, reads=not store, writes=store
    )


def _vector_load(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    indices = [reader.forms.of(operand) for operand in operands[1:]]
    _touch_vector(reader, op, operands[0], indices, op.results[0].type, reads=True, writes=False)


def _vector_store(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    indices = [reader.forms.of(operand) for operand in operands[2:]]
    _touch_vector(reader, op, operands[1], indices, operands[0].type, reads=False, writes=True)


def _touch_vector(
    reader: BodyReader,
    op: ir.Operation,
    memref: ir.Value,
    indices: list[Linear],
    vector: ir.Type,
    *,
    reads: bool,
    writes: bool,
) -> None:
    shape = list(ir.VectorType(vector).shape)
    windows = [ONE] * (len(indices) - len(shape)) + [Window(1, size) for size in shape]
    reader.touch(op, memref, indices, windows, reads=reads, writes=writes)


def _memref_copy(reader: BodyReader, op: ir.Operation) -> None:
    source, dest = op.operands[0], op.operands[1]
    reader.touch_whole(op, source, reads=True)
    # Source and destination have one shape, so every element of the destination is written.
    reader.touch_whole(op, dest, writes=True, certain=True)


def _linalg(reader: BodyReader, op: ir.Operation) -> None:
    """Inputs are read; an output is read too where the body uses its old value."""
    operands = list(op.operands)
    body = op.regions[0].blocks[0] if len(op.regions) else None
    if body is None or SEGMENTS not in op.attributes or len(body.arguments) != len(operands):
        reader.touch_operands(op)
        return
    inputs = operand_segments(op)[0]
    sizes = [size for operand in operands if is_memref(operand) for size in extents_of(operand)]
    everywhere = 0 not in sizes and _covers_outputs(op)
    for k, operand in enumerate(operands):
        if not is_memref(operand):
            continue
        if k < inputs:
            reader.touch_whole(op, operand, reads=True)
            continue
        old_value_used = any(True for _ in body.arguments[k].uses)
        reader.touch_whole(op, operand, reads=old_value_used, writes=True, certain=everywhere)
    reader.read_regions(op, certain=False)


def _covers_outputs(op: ir.Operation) -> bool:
    """Whether the outputs' indexing maps are plain permutations, so that each element is written.

    Only `linalg.generic` carries its maps; the named operations we trust are elementwise or
    contractions.
    """
    if op.name != "linalg.generic":
        return True
    maps = [ir.AffineMapAttr(item).value for item in ir.ArrayAttr(op.attributes["indexing_maps"])]
    outputs = maps[operand_segments(op)[0] :]
    return all(m.is_projected_permutation for m in outputs)


def _dealloc(_reader: BodyReader, _op: ir.Operation) -> None:
    """Frees what the body allocated; touches nothing of the caller's."""


# Operations that touch no memory: whole dialects of arithmetic, and these.
_SILENT_DIALECTS = {"arith", "math", "index", "complex", "ub"}
_SILENT = {
    "omp.terminator", "scf.yield", "scf.reduce.return", "affine.yield", "gpu.terminator",
    "gpu.barrier", "linalg.yield", "linalg.index", "memref.alloc", "memref.alloca",
    "memref.dim", "memref.rank", "memref.get_global", "affine.apply", "affine.min",
    "affine.max", "scf.condition", "gpu.thread_id", "gpu.block_id", "gpu.block_dim",
    "gpu.grid_dim", "gpu.global_id", "gpu.lane_id", "gpu.subgroup_id", "memref.yield",
    "gpu.yield", "cf.assert", "avial.target", "memref.alloca_scope.return",
    "memref.assume_alignment", "vector.broadcast", "vector.splat", "vector.extract",
    "vector.insert", "vector.fma", "vector.reduction", "vector.contract", "vector.shuffle",
    "vector.transpose", "vector.shape_cast", "vector.step", "vector.extract_strided_slice",
    "vector.insert_strided_slice", "vector.constant_mask", "vector.create_mask",
    "vector.bitcast", "vector.multi_reduction", "vector.outerproduct", "vector.from_elements",
    "vector.to_elements", "gpu.shuffle", "gpu.all_reduce", *VIEWS,
}  # fmt: skip


def is_linalg(name: str) -> bool:
    return name.startswith("linalg.") and name not in ("linalg.yield", "linalg.index")


_HANDLERS: dict[str, Callable[[BodyReader, ir.Operation], None]] = {
    "scf.for": _scf_for,
    "scf.parallel": _scf_parallel,
    "scf.if": _scf_if,
    "scf.while": _uncertain_regions,
    "scf.execute_region": _certain_regions,
    "scf.index_switch": _uncertain_regions,
    "scf.reduce": _certain_regions,
    "memref.alloca_scope": _certain_regions,
    "affine.for": _affine_for,
    "affine.parallel": _affine_parallel,
    "affine.if": _uncertain_regions,
    "gpu.launch": _gpu_launch,
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "memref.atomic_rmw": _atomic_rmw,
    "memref.generic_atomic_rmw": _atomic_rmw,
    "affine.load": _affine_load,
    "affine.store": _affine_store,
    "affine.vector_load": _affine_vector,
    "affine.vector_store": _affine_vector,
    "vector.load": _vector_load,
    "vector.store": _vector_store,
    "memref.copy": _memref_copy,
    "memref.dealloc": _dealloc,
    "avial.task": _certain_regions,
    "avial.replicate": _certain_regions,
    "avial.converge": _uncertain_regions,
}


def handler_of(name: str) -> Callable[[BodyReader, ir.Operation], None] | None:
    """What reads operations of that name; None for those that touch no memory and for those not
    understood.
    """
    return _linalg if is_linalg(name) else _HANDLERS.get(name)
