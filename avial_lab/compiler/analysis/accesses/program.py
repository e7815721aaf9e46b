"""From a module to tasks: who touches which elements of which buffer.

Module in the avial dialect -> Tasks with their Accesses, buffers, storages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlir import ir

from avial_lab.compiler.analysis.accesses.buffers import program_buffers
from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.analysis.accesses.control_tree import Grouped
from avial_lab.compiler.analysis.accesses.footprints import (
    BodyReader,
    Handler,
    Touch,
    read_body,
)
from avial_lab.compiler.analysis.accesses.index_forms import IndexForms
from avial_lab.compiler.analysis.accesses.linear import Linear
from avial_lab.compiler.analysis.accesses.storage_regions import TouchedBox, access
from avial_lab.compiler.analysis.accesses.summary import summary
from avial_lab.compiler.analysis.accesses.symbols import unbound_numbers
from avial_lab.compiler.ir.dialects.avial import buffer_of, operand_segments
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.program import scheduled_function
from avial_lab.compiler.ir.views import defining, view_chain
from avial_lab.core.buffers import Binding, Buffer, Storage
from avial_lab.core.errors import PassError
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Target
from avial_lab.planning.task_graph import Access, Group, Task, TaskKind


def read_program(
    module: ir.Module | ir.Operation, binding: Binding | None = None
) -> tuple[tuple[Task, ...], tuple[Buffer, ...], tuple[Storage, ...]]:
    """The tasks of `module` in program order with what each touches, its buffers and their
    storages; those in loops with what any round touches.

    Arrays that `binding` says share memory share a storage; without a binding each buffer has its
    own, and numbers without a value are symbols. Raises PassError for what may not stand between
    tasks, or where there is no task.
    """
    function = scheduled_function(module)
    buffers, storages = program_buffers(function, binding)
    # A program that is run has all its numbers: whoever moves data need not know of symbols.
    symbols = unbound_numbers(function) if binding is None else {}
    program = _Program(buffers, {storage.name: storage for storage in storages}, symbols)
    tasks: list[Task] = []
    for op, groups in Grouped(function).operations():
        if op.name == "avial.target":
            program.targets[op.results[0]] = _target(op)
            continue
        task = replace(program.task(op), group=groups)
        for result in (op.results[0], *(around.results[0] for around in _converges(op))):
            program.names.setdefault(result, []).append(task.name)
        tasks.append(task)
    if not tasks:
        raise PassError(
            "the program has no task",
            span=span_of(function.location),
            hint="write %t = avial.task %target, %buffers… { … } inside avial.schedule",
        )
    return tuple(tasks), tuple(buffers.values()), storages


def writes_between(module: ir.Module | ir.Operation, binding: Binding | None) -> tuple[Access, ...]:
    """What operations of the program that are in no task may write."""
    function = scheduled_function(module)
    buffers, storages = program_buffers(function, binding)
    by_name = {storage.name: storage for storage in storages}
    reader = _Between(Functions(), IndexForms({}))
    for block in function.regions[0].blocks:
        reader.read_block(block)
    parts: dict[ir.Value, list[TouchedBox]] = {}
    for touch in reader.touches:
        buffer = buffers.get(touch.root)
        box = touch.box and buffer and touch.box.intersection(Box.whole(buffer.shape))
        if touch.writes and box is not None:
            parts.setdefault(touch.root, []).append(TouchedBox(box, exact=False))
    return tuple(access(buffers[root], by_name, boxes, ()) for root, boxes in parts.items())


class _Between(BodyReader):
    """Passes over tasks, and what makes handles of arrays for them."""

    @staticmethod
    def handling(name: str) -> Handler:
        if name in _TASK_KINDS or name.startswith("builtin."):
            return lambda *_: None
        if name.startswith("avial."):
            return lambda reader, op: reader.read_regions(op, certain=False)
        return BodyReader.handling(name)


def read_groups(module: ir.Module | ir.Operation) -> tuple[Group, ...]:
    """The loops and conditions around the tasks of `module`, in textual order."""
    grouped = Grouped(scheduled_function(module))
    names = {name for _, around in grouped.operations() for name in around}
    return tuple(group for group in grouped.groups if group.name in names)


_TASK_KINDS = {
    "avial.task": TaskKind.TASK,
    "avial.replicate": TaskKind.REPLICATE,
}

_Parts = dict[tuple[ir.Value, tuple[str, ...]], list[TouchedBox]]
"""What is touched of each buffer, apart by anchor (of what `dag.Access` says)."""


def _target(op: ir.Operation) -> Target:
    attributes = op.attributes

    def text(name: str) -> str | None:
        return ir.StringAttr(attributes[name]).value if name in attributes else None

    name = text("name") or name_of(op.location) or "target"
    rank = ir.IntegerAttr(attributes["rank"]).value if "rank" in attributes else None
    return Target(name, text("arch") or "cpu", text("node"), rank=rank)


@dataclass
class _Program:
    """What is known of the program while its tasks are read in order."""

    buffers: Mapping[ir.Value, Buffer]
    storages: Mapping[str, Storage]
    symbols: Mapping[ir.Value, Linear]
    targets: dict[ir.Value, Target] = field(default_factory=dict)
    names: dict[ir.Value, list[str]] = field(default_factory=dict)
    """The tasks behind what `after` may name; several behind a converge."""
    functions: Functions = field(default_factory=Functions)

    def task(self, op: ir.Operation) -> Task:
        operands, segments = list(op.operands), operand_segments(op)
        block = op.regions[0].blocks[0]
        body = read_body(block, self.functions, self.symbols)
        reads, writes = self._touched(op, operands, segments, body.touches)
        return Task(
            name=ir.StringAttr(op.attributes["name"]).value
            if "name" in op.attributes
            else name_of(op.location) or "task",
            target=self.targets[operands[0]],
            reads=tuple(self._access(key, parts) for key, parts in reads.items()),
            writes=tuple(
                self._access(key, some)
                for key, parts in writes.items()
                for some in _certain_and_rest(parts)
            ),
            after=tuple(self._after(op)),
            kind=_TASK_KINDS[op.name],
            summary=summary(block),
            span=span_of(op.location),
            in_bounds=body.in_bounds,
        )

    def _after(self, op: ir.Operation) -> Iterator[str]:
        """The tasks it is to wait for, and those that the converges around it are to wait for."""
        for each in (op, *_converges(op)):
            for operand in list(each.operands)[sum(operand_segments(each)[:-1]) :]:
                yield from self.names[operand]

    def _touched(
        self,
        op: ir.Operation,
        operands: list[ir.Value],
        segments: list[int],
        touches: Sequence[Touch],
    ) -> tuple[_Parts, _Parts]:
        """What the body reads and what it writes, by buffer."""
        reads: _Parts = {}
        writes: _Parts = {}
        for touch in touches:
            buffer = self.buffers.get(touch.root)
            if buffer is None:
                if not (touch.op.name == "func.call" and _is_whole_program(op)):
                    _refuse_global_write(touch)
                continue
            box = touch.box and touch.box.intersection(Box.whole(buffer.shape))
            if box is None:
                continue
            anchor, relative = _anchor(touch, box) if touch.anchors else ((), None)
            if touch.reads:
                reads.setdefault((touch.root, anchor), []).append(TouchedBox(box, True, relative))
            if touch.writes:
                part = TouchedBox(box, touch.certain and box == touch.box, relative)
                writes.setdefault((touch.root, anchor), []).append(part)
        if op.name == "avial.task":
            listed = operands[segments[0] : segments[0] + segments[1]]
            for root in _untouched(touches, listed):
                if (buffer := self.buffers.get(root)) is not None:
                    parts = [TouchedBox(box) for box in _handed(touches, root, buffer)]
                    reads.setdefault((root, ()), []).extend(parts)
        return reads, writes

    def _access(self, key: tuple[ir.Value, tuple[str, ...]], parts: list[TouchedBox]) -> Access:
        root, anchor = key
        return access(self.buffers[root], self.storages, parts, anchor)


def _converges(op: ir.Operation) -> Iterator[ir.Operation]:
    """The converges around it, innermost first."""
    around = op.parent
    while around is not None:
        if around.operation.name == "avial.converge":
            yield around.operation
        around = around.operation.parent


def _anchor(touch: Touch, box: Box) -> tuple[tuple[str, ...], Box]:
    """What the touch counts from in each dimension, and its box counted from there."""
    starts, stops = list(box.start), list(box.stop)
    for d, anchored in enumerate(touch.anchors):
        if anchored is not None:
            starts[d], stops[d] = anchored.low, anchored.high
    names = tuple("" if anchored is None else anchored.symbols for anchored in touch.anchors)
    return names, Box(tuple(starts), tuple(stops))


def _untouched(touches: Sequence[Touch], listed: Sequence[ir.Value]) -> list[ir.Value]:
    """The roots of buffers declared as read that the body does not touch; they count as read, since
    their author knows more than we do.
    """
    touched = {touch.value for touch in touches if touch.reads}
    missing = [value for value in map(buffer_of, listed) if value not in touched]
    if not missing:
        return []
    through_views = {value for direct in touched for value in view_chain(direct)}
    return [view_chain(value)[-1] for value in missing if value not in through_views]


def _handed(touches: Sequence[Touch], root: ir.Value, buffer: Buffer) -> list[Box]:
    """What a body may read that says it reads `root` and does not: the parts that it hands to
    functions, else all.
    """
    whole = Box.whole(buffer.shape)
    boxes = [t.box for t in touches if t.root == root and not t.reads and not t.writes and t.box]
    return [common for box in boxes if (common := box.intersection(whole)) is not None] or [whole]


def _certain_and_rest(parts: list[TouchedBox]) -> list[list[TouchedBox]]:
    """The parts written for sure, and those written only perhaps and not among them; without empty
    lists.
    """
    certain = [part for part in parts if part.exact]
    if len(certain) == len(parts):
        return [certain]
    rest = [
        part
        for part in parts
        if not part.exact and not any(sure.box.contains(part.box) for sure in certain)
    ]
    return [some for some in (certain, rest) if some]


def _is_whole_program(task: ir.Operation) -> bool:
    """Whether one-task made it of all of a function: there is no other rank then, to which what a
    called function keeps in a global would have to go.
    """
    return task.name == "avial.task" and "avial.why" in task.attributes


def _refuse_global_write(touch: Touch) -> None:
    op = defining(touch.root)
    if touch.writes and op is not None and op.name == "memref.get_global":
        raise PassError(
            "a task writes a memref.global, which other ranks cannot see",
            span=span_of(touch.op.location),
            hint="make it an argument of the function, or a buffer of avial.schedule",
        )
