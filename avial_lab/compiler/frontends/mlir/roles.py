"""Which buffers a task reads and which it writes: inferred from its body, or checked.

avial.task with its buffers listed -> avial.task with `reads` and `writes`; a touch of a buffer that
is not listed, or a listed write that never happens, is an error at its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.analysis.accesses.control import CONTROL
from avial_lab.compiler.analysis.accesses.footprints import BodyReader, Handler
from avial_lab.compiler.analysis.accesses.index_forms import IndexForms
from avial_lab.compiler.analysis.accesses.linear import Linear, Window
from avial_lab.compiler.frontends.notation.elaboration import Elaboration, Listed
from avial_lab.compiler.frontends.notation.source import did_you_mean
from avial_lab.compiler.ir.dialects.avial import (
    CAST,
    SEGMENTS,
    buffer_of,
    operand_segments,
    rebuilt,
)
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.views import alternatives, is_memref, view_chain
from avial_lab.core.errors import AvialError, BindError, CellSpan, VerifyError

WORK = ("avial.task", "avial.replicate")


@dataclass(frozen=True, slots=True)
class RoleTouch:
    """`op` reads or writes `value`, which is `source` or a view of it; or hands it to a function
    that does neither.
    """

    op: ir.Operation
    value: ir.Value
    source: ir.Value
    reads: bool
    writes: bool


class _RoleReader(BodyReader):
    """Roles do not depend on indices: a store in a loop that never runs is a write all the same."""

    def __init__(self, functions: Functions) -> None:
        super().__init__(functions, IndexForms())
        self.roles: list[RoleTouch] = []

    @staticmethod
    def handling(name: str) -> Handler:
        return _read_regions if name in CONTROL else BodyReader.handling(name)

    def indices(self, values: Sequence[ir.Value]) -> Sequence[Linear]:
        return ()

    def affine_indices(self, op: ir.Operation, operands: Sequence[ir.Value]) -> Sequence[Linear]:
        return ()

    def extents(self, value: ir.Value) -> Sequence[Linear]:
        return ()

    def read_call(self, op: ir.Operation) -> None:
        footprint = self.functions.footprint(op)
        if footprint is None:
            self.touch_operands(op)
            return
        read, written = footprint.read, footprint.written
        for number, operand in enumerate(op.operands):
            if is_memref(operand):
                self.touch(op, operand, (), (), reads=number in read, writes=number in written)

    def touch_whole(
        self,
        op: ir.Operation,
        value: ir.Value,
        *,
        reads: bool = False,
        writes: bool = False,
        certain: bool = False,
    ) -> None:
        self.touch(op, value, (), (), reads=reads, writes=writes)

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
        for source in alternatives(value):
            self.roles.append(RoleTouch(op, value, source, reads, writes))


def _read_regions(reader: BodyReader, op: ir.Operation) -> None:
    reader.read_regions(op, certain=False)


def role_touches(block: ir.Block, functions: Functions) -> list[RoleTouch]:
    """Every read and write of a memref in the block, whether or not it is ever reached."""
    reader = _RoleReader(functions)
    reader.read_block(block)
    return reader.roles


def resolve_roles(
    function: ir.Operation, elaboration: Elaboration, read_only: Set[ir.Value] = frozenset()
) -> None:
    """Infer or check the roles of every task's buffers; nothing may write one of `read_only`."""
    functions = Functions()
    for op in list(work_operations(function)):
        _Task(op, elaboration, functions).resolve(read_only)


def check_unwritten(function: ir.Operation, read_only: Set[ir.Value]) -> None:
    """BindError where a plain function writes one of the arguments whose arrays are `read_only`."""
    functions = Functions()
    for block in function.regions[0].blocks if read_only else ():
        for touch in role_touches(block, functions):
            root = view_chain(touch.source)[-1]
            # A handle of a buffer says of itself neither; what is done with it, tasks do.
            if touch.writes and root in read_only and touch.op.name != CAST:
                name = _name(root)
                raise BindError(
                    f"the function writes %{name}, but the array '{name}' is read-only",
                    span=span_of(touch.op.location),
                    hint=f"pass a copy: {name}.copy()",
                )


_AROUND = ("avial.schedule", "avial.converge", "affine.for", "scf.for", "scf.while")
"""What tasks stand in; loops of the program's control, in a converge."""


def work_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """Tasks and replicates in program order, those inside a converge included."""

    def within(block: ir.Block) -> Iterator[ir.Operation]:
        for view in block:
            op = view.operation
            if op.name in WORK:
                yield op
            elif op.name in _AROUND:
                for region in op.regions:
                    for inner in region.blocks:
                        yield from within(inner)

    yield from within(function.regions[0].blocks[0])


def declared_roles(op: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    """The buffers a task lists as read and those it lists as written."""
    operands, sizes = list(op.operands), operand_segments(op)
    buffers = [buffer_of(handle) for handle in operands[1 : 1 + sizes[1] + sizes[2]]]
    return buffers[: sizes[1]], buffers[sizes[1] :]


def inferred_roles(
    op: ir.Operation, listed: list[ir.Value], functions: Functions
) -> tuple[list[ir.Value], list[ir.Value]] | None:
    """The roles of a plain list of buffers, None where the body touches another or leaves one
    alone.
    """
    block = op.regions[0].blocks[0]
    found = _found(op, role_touches(block, functions), set(listed))
    if found.stray:
        return None
    if not found.reads and not found.writes and len(block.operations) == 1:
        return listed, []
    if any(value not in found.reads and value not in found.writes for value in listed):
        return None
    return [v for v in listed if v in found.reads], [v for v in listed if v in found.writes]


@dataclass
class _Found:
    """The declared buffers that a body reads, writes, hands to functions; touches of others."""

    reads: set[ir.Value] = field(default_factory=set)
    writes: set[ir.Value] = field(default_factory=set)
    handed: set[ir.Value] = field(default_factory=set)
    stray: list[RoleTouch] = field(default_factory=list)


def _found(op: ir.Operation, touches: Sequence[RoleTouch], declared: set[ir.Value]) -> _Found:
    found = _Found()
    for touch in touches:
        buffer = touch.value if touch.value in declared else _buffer(touch, declared)
        if buffer is None:
            if (touch.reads or touch.writes) and not _own(op, touch.source):
                found.stray.append(touch)
            continue
        if touch.reads:
            found.reads.add(buffer)
        if touch.writes:
            found.writes.add(buffer)
        if touch.op.name == "func.call":
            found.handed.add(buffer)
    return found


def _buffer(touch: RoleTouch, declared: set[ir.Value]) -> ir.Value | None:
    """The declared buffer that is touched: the nearest on the way to the root."""
    for start in (touch.value, touch.source):
        for value in view_chain(start):
            if value in declared:
                return value
    return None


def _own(op: ir.Operation, source: ir.Value) -> bool:
    """Whether the memory is the task's own (made in its body) or a constant of the module."""
    owner = view_chain(source)[-1].owner
    if isinstance(owner, ir.Block):
        operation = owner.owner.operation
    else:
        operation = owner.operation
        if operation.name == "memref.get_global":
            return True
        operation = operation.parent and operation.parent.operation
    while operation is not None:
        if operation == op:
            return True
        operation = operation.parent and operation.parent.operation
    return False


class _Task:
    """One task while its roles are found."""

    def __init__(self, op: ir.Operation, elaboration: Elaboration, functions: Functions) -> None:
        self.op, self.source = op, elaboration.source
        operands = list(op.operands)
        sizes = operand_segments(op)
        self.target = operands[0]
        handles = operands[1 : 1 + sizes[1] + sizes[2]]
        buffers = [buffer_of(handle) for handle in handles]
        self.handles = dict(zip(buffers, handles, strict=True))
        self.reads, self.writes = buffers[: sizes[1]], buffers[sizes[1] :]
        self.after = operands[1 + sizes[1] + sizes[2] :]
        span = span_of(op.location)
        place = (span.line, span.column) if span is not None else (0, 0)
        self.listed: Listed | None = elaboration.listed.get(place)
        self.block = op.regions[0].blocks[0]
        self.touches = role_touches(self.block, functions)

    @property
    def name(self) -> str:
        return ir.StringAttr(self.op.attributes["name"]).value

    def resolve(self, read_only: Set[ir.Value]) -> None:
        plain = self.listed is not None and self.listed.plain is not None
        declared = list(dict.fromkeys([*self.reads, *self.writes]))
        found = _found(self.op, self.touches, set(declared))
        if found.stray:
            raise self._undeclared(found.stray[0], declared, found.reads | found.writes)
        for buffer in found.writes if read_only else ():
            if view_chain(buffer)[-1] in read_only:
                raise self._read_only(buffer)
        if not plain:
            self._check_explicit(found)
            return
        unused = [v for v in declared if v not in found.reads and v not in found.writes]
        empty = len(self.block.operations) == 1
        idle = [value for value in unused if value not in found.handed]
        if idle and not empty:
            raise self._unused(idle[0])
        if found.writes or (unused and not empty):
            reads = [value for value in declared if value in found.reads]
            self._rebuild(reads, [value for value in declared if value in found.writes])

    def _check_explicit(self, found: _Found) -> None:
        """A body may do less than it says it reads, but not more, and it has to write what it says
        it writes, or hand it to a function.
        """
        for value in self.writes:
            if value not in found.writes and value not in found.handed:
                raise VerifyError(
                    f"task '{self.name}' lists %{_name(value)} as written, "
                    "but its body never writes it",
                    span=self._listed_at(value, writes=True),
                    hint="take it out of writes(…)"
                    + (", put it into reads(…)" if value in found.reads else ""),
                )
        for used, declared, verb in (
            (found.writes, self.writes, "writes"),
            (found.reads, self.reads, "reads"),
        ):
            known = set(declared)
            for touch in self.touches if not used <= known else ():
                buffer = _buffer(touch, used)
                does = touch.writes if verb == "writes" else touch.reads
                if buffer is not None and buffer not in known and does:
                    name = _name(buffer)
                    raise VerifyError(
                        f"task '{self.name}' {verb} %{name}, which it lists only as "
                        f"{'read' if verb == 'writes' else 'written'}",
                        span=self._touch_at(touch),
                        hint=f"add %{name} to {verb}(…)",
                    )

    # -- Errors

    @property
    def span(self) -> CellSpan | None:
        return span_of(self.op.location)

    def _undeclared(
        self, touch: RoleTouch, declared: list[ir.Value], used: set[ir.Value]
    ) -> AvialError:
        name = _name(touch.value)
        root = _name(view_chain(touch.source)[-1])
        shown = f"%{name}" if name == root else f"%{name} (a view of %{root})"
        verb = "writes" if touch.writes else "reads"
        unused = [_name(value) for value in declared if value not in used]
        if unused:
            hint = (
                f"it lists %{unused[0]} and never touches it; write %{unused[0]} here, "
                f"or list %{root} in its place"
            )
        else:
            near = did_you_mean(f"%{name}", [f"%{_name(value)}" for value in declared])
            hint = near or f"add %{root} to the buffers of '{self.name}'"
        return VerifyError(
            f"task '{self.name}' {verb} {shown}, which it does not list",
            span=self._touch_at(touch),
            hint=hint,
        )

    def _read_only(self, buffer: ir.Value) -> AvialError:
        root = _name(view_chain(buffer)[-1])
        touch = next(t for t in self.touches if t.writes and _buffer(t, {buffer}) is not None)
        return BindError(
            f"task '{self.name}' writes %{root}, but the array '{root}' is read-only",
            span=self._touch_at(touch),
            hint=f"pass a copy: {root}.copy()",
        )

    def _unused(self, value: ir.Value) -> AvialError:
        name = _name(value)
        return VerifyError(
            f"task '{self.name}' lists %{name}, but its body never touches it",
            span=self._listed_at(value),
            hint=f"take %{name} out of the list",
        )

    def _touch_at(self, touch: RoleTouch) -> CellSpan | None:
        """The value's name in the statement that touches it, or that statement."""
        span = span_of(touch.op.location)
        if span is None:
            return self.span
        start = self.source.offset_of(span.line, span.column)
        name = re.escape(_name(touch.value))
        match = re.compile(rf"[^\n]*?[,\s(=]\s*(%{name})(?![\w$.-])").match(self.source.text, start)
        return self.source.span(match.start(1) if match else start)

    def _listed_at(self, value: ir.Value, *, writes: bool = False) -> CellSpan | None:
        """The buffer's name in the head of the task."""
        if self.listed is None:
            return self.span
        pairs = self.listed.plain or (
            self.listed.writes if writes else (*self.listed.reads, *self.listed.writes)
        )
        name = f"%{_name(value)}"
        return next((self.source.span(at) for known, at in pairs if known == name), self.span)

    def _rebuild(self, reads: list[ir.Value], writes: list[ir.Value]) -> None:
        """The same task with these roles."""
        segments = ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), len(self.after)])
        handles = [self.handles[value] for value in (*reads, *writes)]
        rebuilt(self.op, [self.target, *handles, *self.after], {SEGMENTS: segments})


def _name(value: ir.Value) -> str:
    """The value's name in the text."""
    owner = value.owner
    location = value.location if isinstance(owner, ir.Block) else owner.operation.location
    return name_of(location) or value.get_name().lstrip("%")
