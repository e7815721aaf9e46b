"""From a module to tasks: who touches which elements of which buffer.

Module in the avial dialect -> Tasks with their Accesses, buffers, storages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mlir import ir

from avial_lab.accesses.index_forms import IndexForms
from avial_lab.accesses.touches import Touch, body_touches, handler_of
from avial_lab.accesses.views import DYNAMIC, defining, view_chain
from avial_lab.arrays import ITEMSIZE, UNBOUNDED, Binding, Buffer, Storage, row_major
from avial_lab.dag import Access, Task, TaskKind
from avial_lab.dialects.avial import SEGMENTS, buffer_of, operand_segments
from avial_lab.dialects.places import name_of, span_of
from avial_lab.errors import PassError
from avial_lab.regions import Box, Region, union
from avial_lab.topology import Target

MOST_BOXES = 32
"""A body that touches more boxes of one buffer than this is taken to touch their hull."""


def read_program(
    module: ir.Module, binding: Binding | None = None
) -> tuple[tuple[Task, ...], tuple[Buffer, ...], tuple[Storage, ...]]:
    """The tasks of `module` in program order with what each touches, its buffers and their
    storages.

    Arrays that `binding` says share memory share a storage; without a binding each buffer has its
    own. Raises PassError for what may not stand between tasks, or where there is no task.
    """
    function = entry_function(module)
    buffers, storages = _buffers(function, binding)
    roots: dict[ir.Value, Buffer] = dict(buffers)
    by_name = {storage.name: storage for storage in storages}
    targets: dict[ir.Value, Target] = {}
    names: dict[ir.Value, str] = {}
    tasks: list[Task] = []
    for op in schedule_operations(function):
        if op.name == "avial.target":
            targets[op.results[0]] = _target(op)
        elif op.name in _TASK_KINDS:
            task = _task(op, roots, by_name, targets, names)
            names[op.results[0]] = task.name
            tasks.append(task)
    if not tasks:
        raise PassError(
            "the program has no task",
            span=span_of(function.location),
            hint="write %t = avial.task %target, %buffers… { … } inside avial.schedule",
        )
    return tuple(tasks), tuple(roots.values()), storages


def entry_function(module: ir.Module) -> ir.Operation:
    """The function that holds the schedules; there has to be exactly one."""
    found = [
        view.operation
        for view in module.body.operations
        if view.operation.name == "func.func"
        and any(op.name == "avial.schedule" for op in _top_operations(view.operation))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise PassError(
            "several functions have an avial.schedule",
            span=span_of(found[1].location),
            hint="keep the program in one function",
        )
    raise PassError(
        "the program has no avial.schedule", hint="put the tasks into avial.schedule %a, %b { … }"
    )


def schedule_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """The operations in the function's schedules, in program order, without the terminators."""
    for op in _top_operations(function):
        if op.name != "avial.schedule":
            continue
        for inner in op.regions[0].blocks[0].operations:
            if inner.operation.name != "omp.terminator":
                yield inner.operation


def _top_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    for region in function.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation


_TASK_KINDS = {
    "avial.task": TaskKind.TASK,
    "avial.replicate": TaskKind.REPLICATE,
    "avial.converge": TaskKind.CONVERGE,
}


def _buffers(
    function: ir.Operation, binding: Binding | None
) -> tuple[dict[ir.Value, Buffer], tuple[Storage, ...]]:
    """The function's memref arguments and the memory it allocates between tasks, with their
    storages.
    """
    bound = {buffer.name: buffer for buffer in binding.buffers} if binding is not None else {}
    shared = (
        {storage.name: storage for storage in binding.storages if storage.shared} if binding else {}
    )
    roots: dict[ir.Value, Buffer] = {}
    arg_attrs = function.attributes.get("arg_attrs")
    for k, argument in enumerate(function.regions[0].blocks[0].arguments):
        if not isinstance(argument.type, ir.MemRefType):
            continue
        name = _argument_name(arg_attrs, k) or name_of(argument.location) or f"arg{k}"
        roots[argument] = bound.get(name) or _unbound(name, argument.type)
    taken = {buffer.name for buffer in roots.values()}
    for op in (*_top_operations(function), *schedule_operations(function)):
        if op.name in ("memref.alloc", "memref.alloca"):
            result = op.results[0]
            name = _fresh(name_of(op.location) or "temporary", taken)
            taken.add(name)
            roots[result] = replace(_unbound(name, result.type), temporary=True)
    storages: dict[str, Storage] = {}
    for buffer in roots.values():
        own = Storage(buffer.name, buffer.shape, buffer.itemsize, (buffer.name,))
        storages.setdefault(buffer.storage, shared.get(buffer.storage, own))
    return roots, tuple(storages.values())


def _argument_name(arg_attrs: ir.Attribute | None, position: int) -> str | None:
    if arg_attrs is None:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(arg_attrs)[position])
    return ir.StringAttr(attributes["avial.name"]).value if "avial.name" in attributes else None


def _fresh(name: str, taken: set[str]) -> str:
    return (
        name
        if name not in taken
        else next(fresh for k in range(len(taken) + 1) if (fresh := f"{name}_{k}") not in taken)
    )


def _unbound(name: str, memref: ir.Type) -> Buffer:
    """The buffer of that type where no array is bound; a size that is not known counts as
    unbounded.
    """
    memref = ir.MemRefType(memref)
    shape = tuple(UNBOUNDED if size == DYNAMIC else size for size in memref.shape)
    element = str(memref.element_type)
    if element not in ITEMSIZE:
        raise PassError(
            f"buffer '{name}' has elements of type {element}, which no NumPy array holds"
        )
    return Buffer(name, shape, element, name, row_major(shape))


def _target(op: ir.Operation) -> Target:
    attributes = op.attributes

    def text(name: str) -> str | None:
        return ir.StringAttr(attributes[name]).value if name in attributes else None

    name = text("name") or name_of(op.location) or "target"
    return Target(name, text("arch") or "cpu", text("node"))


def _task(
    op: ir.Operation,
    roots: Mapping[ir.Value, Buffer],
    storages: Mapping[str, Storage],
    targets: Mapping[ir.Value, Target],
    names: Mapping[ir.Value, str],
) -> Task:
    operands = list(op.operands)
    reads: dict[str, list[tuple[Box, bool]]] = {}
    writes: dict[str, list[tuple[Box, bool]]] = {}
    block = op.regions[0].blocks[0]
    touches = body_touches(block)
    for touch in touches:
        buffer = roots.get(touch.root)
        if buffer is None:
            _refuse_global_write(touch)
            continue
        box = touch.box and touch.box.intersection(Box.whole(buffer.shape))
        if box is None:
            continue
        if touch.reads:
            reads.setdefault(buffer.name, []).append((box, True))
        if touch.writes:
            writes.setdefault(buffer.name, []).append((box, touch.certain))
    _declared_reads(operands, op, touches, roots, reads)
    by_name = {buffer.name: buffer for buffer in roots.values()}
    target = next((targets[operand] for operand in operands if operand in targets), Target("any"))
    return Task(
        name=ir.StringAttr(op.attributes["name"]).value
        if "name" in op.attributes
        else name_of(op.location) or "task",
        target=target,
        reads=tuple(_access(by_name[name], storages, boxes) for name, boxes in reads.items()),
        writes=tuple(
            _access(by_name[name], storages, part)
            for name, boxes in writes.items()
            for part in ([b for b in boxes if b[1]], _rest(boxes))
            if part
        ),
        after=tuple(names[operand] for operand in operands if operand in names),
        kind=_TASK_KINDS[op.name],
        summary=_summary(block),
        span=span_of(op.location),
    )


def _declared_reads(
    operands: Sequence[ir.Value],
    op: ir.Operation,
    touches: Sequence[Touch],
    roots: Mapping[ir.Value, Buffer],
    reads: dict[str, list[tuple[Box, bool]]],
) -> None:
    """A buffer declared as read that the body does not touch counts as read: its author knows more
    than we do.
    """
    if op.name != "avial.task" or SEGMENTS not in op.attributes:
        return
    segments = operand_segments(op)
    touched = {value for touch in touches if touch.reads for value in view_chain(touch.value)}
    for operand in map(buffer_of, operands[segments[0] : segments[0] + segments[1]]):
        buffer = roots.get(view_chain(operand)[-1])
        if buffer is not None and operand not in touched:
            reads.setdefault(buffer.name, []).append((Box.whole(buffer.shape), True))


def _rest(boxes: list[tuple[Box, bool]]) -> list[tuple[Box, bool]]:
    """The boxes written only perhaps, less what is written for sure."""
    certain = [box for box, sure in boxes if sure]
    return [
        pair for pair in boxes if not pair[1] and not any(box.contains(pair[0]) for box in certain)
    ]


def _refuse_global_write(touch: Touch) -> None:
    op = defining(touch.root)
    if touch.writes and op is not None and op.name == "memref.get_global":
        raise PassError(
            "a task writes a memref.global, which no other rank would see",
            span=span_of(touch.op.location),
            hint="make it a buffer of avial.schedule",
        )


def _access(
    buffer: Buffer, storages: Mapping[str, Storage], boxes: list[tuple[Box, bool]]
) -> Access:
    """The boxes (with whether each is exact) in the index space of the buffer's storage."""
    exact = all(sure for _, sure in boxes)
    region = union(box for box, _ in boxes) if len(boxes) <= MOST_BOXES else None
    if region is None or len(region) > MOST_BOXES:
        hull = boxes[0][0]
        for box, _ in boxes:
            hull = hull.hull(box)
        exact = exact and region is not None and sum(box.size for box in region) == hull.size
        region = (hull,)
    storage = storages[buffer.storage]
    if storage.shared:
        intervals = [_byte_intervals(buffer, box) for box in region]
        exact = exact and all(filled for _, filled in intervals)
        region = union(box for part, _ in intervals for box in part)
    return Access(buffer.name, storage.name, region, exact)


def _byte_intervals(buffer: Buffer, box: Box) -> tuple[Region, bool]:
    """The bytes of `box` in a storage that several buffers share, and whether no byte between them
    is another's.
    """
    dims = sorted(range(len(box.start)), key=lambda d: -abs(buffer.strides[d]))
    outer = dims[0] if dims else None
    whole, filled = _byte_hull(buffer, box)
    if filled or outer is None or box.shape[outer] > MOST_BOXES:
        return (whole,), filled
    rows = []
    for k in range(box.start[outer], box.stop[outer]):
        start, stop = list(box.start), list(box.stop)
        start[outer], stop[outer] = k, k + 1
        rows.append(_byte_hull(buffer, Box(tuple(start), tuple(stop))))
    return tuple(row for row, _ in rows), all(full for _, full in rows)


def _byte_hull(buffer: Buffer, box: Box) -> tuple[Box, bool]:
    low = high = buffer.offset_bytes
    for start, stop, stride in zip(box.start, box.stop, buffer.strides, strict=True):
        ends = (start * stride * buffer.itemsize, (stop - 1) * stride * buffer.itemsize)
        low, high = low + min(ends), high + max(ends)
    high += buffer.itemsize
    return Box((low,), (high,)), box.size * buffer.itemsize == high - low


def _summary(block: ir.Block) -> str:
    """What a body does in a few words: its loops, launches and linalg operations at the top."""
    words: list[str] = []
    forms = IndexForms()
    for view in block.operations:
        op = view.operation
        if op.name in ("scf.parallel", "scf.for"):
            words.append(f"{op.name} {_trip_counts(forms, op)}")
        elif handler_of(op.name) is not None:
            words.append(op.name)
        if len(words) == 3:
            return ", ".join(words[:2]) + ", …"
    return ", ".join(words)


def _trip_counts(forms: IndexForms, op: ir.Operation) -> str:
    rank = 1 if op.name == "scf.for" else len(op.regions[0].blocks[0].arguments)
    operands = list(op.operands)
    counts = []
    for k in range(rank):
        low, high, step = (forms.constant(operands[k + part * rank]) for part in range(3))
        known = low is not None and high is not None and step is not None and step > 0
        counts.append(str(len(range(low, high, step))) if known else "?")  # type: ignore[arg-type]
    return " × ".join(counts)
