"""Placed tensors as tasks: what each device computes, on its blocks of the buffers.

Plain function on placed tensors -> the same with an avial.schedule on memory; every task knows its
rank, and their order is that in which ranks run them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.analysis.placements.check import check_placements
from avial_lab.compiler.analysis.placements.report import told_of
from avial_lab.compiler.codegen.describe_split import text_attributes
from avial_lab.compiler.ir.attributes import (
    DIVIDED,
    FOLLOWS,
    GRADIENT_OF,
    IN_PLACE,
    KEPT,
    ON_RANK,
    OVERLAP,
    PIPELINE,
    SUMMED,
    TOLD,
    TURN,
    WEIGHTS,
)
from avial_lab.compiler.ir.captures import used_by
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import MESH, MOVES, is_tensor, meshes_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.sums_of_parts import summed_axes, ways_to_sum
from avial_lab.compiler.passes.distir.held_by_devices import held_by_devices
from avial_lab.compiler.passes.distir.late_sums import LateSums
from avial_lab.compiler.passes.distir.local_bodies import Bodies, Input, Output, combine, inlined
from avial_lab.compiler.passes.distir.memories import (
    Held,
    Memory,
    View,
    allocated,
    fill,
    kind_of,
    memory_type,
    subview_of,
    view_of,
)
from avial_lab.compiler.passes.distir.rotate_turns import rotate_turns
from avial_lab.compiler.passes.distir.segments import Segment, cut, terms_of
from avial_lab.compiler.passes.distir.task_order import (
    Job,
    Part,
    PipelineOrder,
    in_pipeline_order,
    link,
    living,
)
from avial_lab.compiler.passes.distir.told import told_by_transforms
from avial_lab.core.errors import PassError
from avial_lab.core.regions import Box
from avial_lab.planning.sum_algorithms import SumBy, power_below
from avial_lab.planning.tensor_placement import COPY, Kind, Mesh, Placement, divided_sums


@dataclass(frozen=True)
class LowerPlacements:
    """Tasks for the devices of the meshes.

    before:  func.func @f(%x: tensor<4x3xf32, #distir.on<@m, "split 0">>) -> … {
               %y = math.tanh %x : …   return %y }
    after:   func.func @f(%x: memref<4x3xf32>) -> memref<4x3xf32> {
               %y = memref.alloc()
               avial.schedule %x, %y {
                 avial.task %cpu, %x, %y { … rows 0 1 … } {avial.on_rank = 0}
                 avial.task %cpu, %x, %y { … rows 2 3 … } {avial.on_rank = 1} }
               return %y }

    A run of operations between two moves is one task for each device (and turn). What one device
    reads and another wrote is sent because it is read: gathers, scatters and sends are no tasks.
    Partial results are added up in a ring of tasks, block by block.
    """

    def __call__(self, module: ir.Operation) -> None:
        check_placements(module)
        function = program_function(module)
        told = (*told_by_transforms(function), *told_of(module, function))
        with module.context, ir.Location.unknown(module.context):
            held = _Lowering(module, function).run()
            module.attributes[DIVIDED] = text_attributes((*told, *held))

    def __str__(self) -> str:
        return "lower-placements"


_Adder = Callable[[tuple[int, ...], int, "Part | None", Part, Part, int], None]
"""(point, turn, what is added, to what, where, how far on the way): one job."""


@dataclass(frozen=True)
class _Sums:
    """Parts along an `axis` that a move adds up: they lie in `held` as `have` says, their sums then
    in `into` as `made` says, those of axes `alone` on the first device.
    """

    move: ir.Operation
    axis: int
    alone: tuple[int, ...]
    have: Placement
    made: Placement
    held: Held
    into: Held

    @property
    def devices(self) -> int:
        return self.have.mesh.axes[self.axis]

    def along(self, point: Sequence[int], n: int) -> tuple[int, ...]:
        """The n-th point along the axis."""
        return (*point[: self.axis], n, *point[self.axis + 1 :])

    def at(self, held: Held, point: Sequence[int], box: Box) -> Part:
        return Part((held.memory, held.memory.slot(self.have.mesh, point)), box)

    def part_of(self, point: Sequence[int], box: Box) -> Part:
        return self.at(self.held, point, box)

    def into_at(self, point: Sequence[int], box: Box) -> Part:
        return self.at(self.into, point, box)


@dataclass
class _Lowering:
    module: ir.Operation
    function: ir.Operation
    held: dict[ir.Value, Held] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def run(self) -> tuple[str, ...]:
        """The function's tasks in its place; what each device holds, in words."""
        self.meshes = meshes_in(self.module)
        self.block = self.function.regions[0].blocks[0]
        self.end = self.block.operations[len(self.block.operations) - 1].operation
        self._check_static()
        self.order = self._pipeline_order()
        late = self.order.schedule == "zero-bubble"
        self.bucket_bytes = (
            ir.IntegerAttr(self.function.attributes[OVERLAP]).value
            if OVERLAP in self.function.attributes
            else None
        )
        self.cut = cut(self.function, self.meshes, sums_late=late, bucket_bytes=self.bucket_bytes)
        self.stage_of_mesh = self._stage_of_mesh()
        self.bodies = Bodies(self.module)
        self._make_memories()
        self.roles = self._roles()
        self._make_jobs()
        wanted = self._wanted()
        jobs = living(self.jobs, wanted)
        if any(mesh.turns for mesh in self.meshes.values()):
            link(jobs)
            jobs = in_pipeline_order(jobs, self._places(), self.order)
            rotate_turns(jobs, (memory for memory, _ in wanted))
        self._emit(jobs)
        return (*self.told, *held_by_devices(jobs, self.roles))

    def _wanted(self) -> set[tuple[Memory, int]]:
        """What somebody reads after the last task: the caller results, devices what they keep."""
        wanted = {(memory, 0) for memory in self.results}
        if KEPT in self.function.attributes:
            kept = [self.returned[k] for k in ir.DenseI64ArrayAttr(self.function.attributes[KEPT])]
            wanted |= {(memory, slot) for memory in kept for slot in range(memory.slots)}
        return wanted

    def _check_static(self) -> None:
        number = next((v for v in self.end.operands if not is_tensor(v.type)), None)
        if number is not None:
            raise PassError(
                f"a function on several devices returns {number.type}",
                span=span_of(self.end.location),
                hint="return a tensor of no dimensions: tensor<f32>",
            )
        for value in (
            *self.block.arguments,
            *(r for v in self.block.operations for r in v.results),
        ):
            if is_tensor(value.type) and not value.type.has_static_shape:
                raise PassError(
                    f"{value.type} has a size that is not known",
                    span=span_of(value.location),
                    hint="write all sizes of what lies on several devices",
                )

    def _pipeline_order(self) -> PipelineOrder:
        """As `pipeline-parallel` has written it: schedule, stages, devices, most in flight."""
        attributes = self.function.attributes
        if PIPELINE not in attributes:
            return PipelineOrder(stages=len(self.meshes), devices=len(self.meshes))
        schedule, *numbers = ir.StringAttr(attributes[PIPELINE]).value.split()
        flight, devices = (int(each) for each in [*numbers, "0", "0"][:2])
        stages = len(self.meshes)
        return PipelineOrder(schedule, stages, devices or stages, flight)

    def _stage_of_mesh(self) -> dict[str, int]:
        """Meshes are the stages of a pipeline, as they first come in the function."""
        first: dict[str, int] = {}
        for segment in self.cut.segments:
            first.setdefault(segment.key.mesh, len(first))
        return first

    def _places(self) -> dict[int, int]:
        """Along the pipeline, of every device."""
        return {
            device: stage % self.order.devices
            for name, stage in self.stage_of_mesh.items()
            for device in self.meshes[name].devices
        }

    # -- memory ------------------------------------------------------------------------------------

    def _make_memories(self) -> None:
        """One for each value that a segment hands on, and for each sum of partial results."""
        for argument in self.block.arguments:
            if is_tensor(argument.type):
                memory = Memory(tuple(argument.type.shape), argument.type.element_type)
                self.held[argument] = Held(memory, None)
        for segment in self.cut.segments:
            for value in segment.outputs:
                self.held[value] = self._new(value, self.cut.placements[value])
        for view in self.block.operations:
            op = view.operation
            if op.name in MOVES and self._sums(op):
                source, axes = self.cut.placements[op.operands[0]], self._sums(op)
                ways = self._ways(op)
                made = _divided(source, op, ways, axes)
                self.held[op.results[0]] = (
                    Held(self.held[op.operands[0]].memory, made)
                    if IN_PLACE in op.attributes and self._only_added(op.operands[0])
                    else self._new(op.results[0], made, shared=_in_one(ways, axes))
                )
                if GRADIENT_OF in op.attributes:
                    name = f"{ir.StringAttr(op.attributes[GRADIENT_OF]).value}_gradient"
                    self.held[op.results[0]].memory.name = name
        self.results: list[Memory] = []
        self.returned: list[Memory] = []
        self.copied_out: list[tuple[ir.Value, Memory]] = []
        for value in self.end.operands:
            source = self.cut.source(value)
            held = self.held.get(source)
            if (
                held is not None
                and source not in list(self.block.arguments)
                and held.memory not in self.results
                and self._begins_with_first(held)
            ):
                memory = held.memory
            else:
                memory = Memory(tuple(value.type.shape), value.type.element_type)
                self.copied_out.append((value, memory))
            self.results.append(memory)
            self.returned.append(memory)

    def _begins_with_first(self, held: Held) -> bool:
        return held.placement is not None and not any(
            each.kind.is_partial and not held.placement.mesh.is_time(axis)
            for axis, each in enumerate(held.placement.along)
        )

    def _new(self, value: ir.Value, placement: Placement, *, shared: Sequence[int] = ()) -> Held:
        """Memory for a value that lies so; devices along `shared` axes have one of it."""
        mesh = placement.mesh
        axes = tuple(
            axis
            for axis, each in enumerate(placement.along)
            if each.kind is not Kind.SPLIT
            and not mesh.is_time(axis)
            and mesh.axes[axis] > 1
            and axis not in shared
        )
        slots = prod(mesh.axes[axis] for axis in axes)
        shape, element = tuple(value.type.shape), value.type.element_type
        turned = placement.along[-1].dim if mesh.turns else -1
        return Held(Memory(shape, element, axes, slots, turned=turned), placement)

    def _sums(self, move: ir.Operation) -> list[int]:
        """The axes along which a move combines what devices hold."""
        return summed_axes(
            self.cut.placements[move.operands[0]], self.cut.placements[move.results[0]]
        )

    def _ways(self, move: ir.Operation) -> dict[int, SumBy]:
        return ways_to_sum(move, self._sums(move))

    def _base(self, value: ir.Value) -> ir.Value:
        """The value that has the memory: behind moves that are views."""
        while value not in self.held:
            value = value.owner.operation.operands[0]
        return value

    def _part(self, value: ir.Value, point: Sequence[int], mesh: Mesh, device: int) -> Part:
        """What is read of `value` at a point of the mesh that it lies on."""
        held = self.held[self._base(value)]
        placement = self.cut.placements.get(value)
        shape = held.memory.shape
        box = placement.box(shape, point) if placement is not None else Box.whole(shape)
        slot = 0
        if held.placement is not None and held.memory.axes:
            at = self._nearest(held.placement.mesh, mesh, point, device)
            slot = held.memory.slot(held.placement.mesh, at)
        return Part((held.memory, slot), box)

    def _nearest(
        self, source: Mesh, mesh: Mesh, point: Sequence[int], device: int
    ) -> Sequence[int]:
        """The point of a value's own mesh whose copy is read."""
        if source == mesh:
            return point
        return next(
            (at for at, there in source.points() if there == device), (0,) * len(source.axes)
        )

    def _roles(self) -> dict[Memory, str]:
        """Memory of the weights, gradients and optimizer state that ZeRO divides."""
        attributes = self.function.attributes
        if KEPT not in attributes:
            return {}
        followed = {k for k in ir.DenseI64ArrayAttr(attributes[FOLLOWS]) if k >= 0}
        weights = set(ir.DenseI64ArrayAttr(attributes[WEIGHTS]))
        roles: dict[Memory, str] = {
            self.held[self.block.arguments[k]].memory: "weights" if k in weights else "state"
            for k in followed
        }
        sums = [v.operation for v in self.block.operations if GRADIENT_OF in v.operation.attributes]
        return roles | {self.held[op.results[0]].memory: "gradients" for op in sums}

    # -- jobs --------------------------------------------------------------------------------------

    def _make_jobs(self) -> None:
        """Segments in order; each sum of partial results as soon as they are there."""
        waiting = [v.operation for v in self.block.operations if v.operation.name in MOVES]
        waiting = [op for op in waiting if self._sums(op)]
        made: set[ir.Value] = set(self.block.arguments)

        def ready(op: ir.Operation) -> bool:
            return self._base(op.operands[0]) in made

        late = LateSums() if self.bucket_bytes is not None else None

        def reduce_ready() -> None:
            while op := next((op for op in waiting if ready(op)), None):
                waiting.remove(op)
                begun = len(self.jobs)
                self._reduce(op)
                made.add(op.results[0])
                if late is not None:
                    late.put_off(self.jobs, begun, _bytes_of(op.operands[0]))

        reduce_ready()
        depth = 0
        for number, segment in enumerate(self.cut.segments):
            if late is not None and segment.key.depth > depth:
                late.finish(self.jobs)
            depth = segment.key.depth
            self._segment(number, segment)
            if late is not None:
                late.go_on(self.jobs)
            made.update(segment.outputs)
            reduce_ready()
        if late is not None:
            late.finish(self.jobs)
            self.told.append(late.told(len(self.cut.segments)))
        for value, memory in self.copied_out:
            self._copy_out(value, memory)

    def _segment(self, number: int, segment: Segment) -> None:
        mesh = self.meshes[segment.key.mesh]
        operations, operands = self._inside(segment)
        self._begin_sums(number, segment, mesh)
        for point, device in mesh.points():
            turn = point[-1] if segment.key.in_turns else -1
            if mesh.turns and not segment.key.in_turns and point[-1]:
                continue
            boxes = self._boxes(operations, operands, point)
            outputs = [(value, self._part(value, point, mesh, device)) for value in segment.outputs]
            outputs = [(value, part) for value, part in outputs if not part.box.empty]
            if not outputs:
                continue
            inputs = [(value, self._part(value, point, mesh, device)) for value in operands]
            self._segment_job(
                self._name(f"S{number + 1}", device, turn), segment, operations, boxes, inputs,
                outputs, device, turn,
            )  # fmt: skip

    def _segment_job(
        self,
        name: str,
        segment: Segment,
        operations: Sequence[ir.Operation],
        boxes: dict[ir.Value, Box],
        inputs: Sequence[tuple[ir.Value, Part]],
        outputs: Sequence[tuple[ir.Value, Part]],
        device: int,
        turn: int,
    ) -> None:
        reads = [part for _, part in inputs if not part.box.empty]
        added = [self._added_over_time(value) for value, _ in outputs]
        location = segment.operations[0].location

        parts = [*reads, *(part for _, part in outputs)]

        def body() -> ir.Operation:
            given = [Input(value, part.box, kind_of(part)) for value, part in inputs]
            made = [
                Output(value, part.box, kind_of(part), kind)
                for (value, part), kind in zip(outputs, added, strict=True)
            ]
            return self.bodies.of(operations, boxes, given, made)

        task = _Task(name, device, segment.outputs[0], location, parts, body, inlined)

        # That of the first turn tells for all.
        terms = [
            terms_of(value, self.cut)
            for (value, _), kind in zip(outputs, added, strict=True)
            if kind is not None and not turn
        ]
        accumulated = [part for (_, part), kind in zip(outputs, added, strict=True) if kind]
        self.jobs.append(
            Job(
                name,
                device,
                segment.key.depth,
                turn,
                [*reads, *accumulated],
                [part for _, part in outputs],
                task,
                terms=max(terms, default=0),
                stage=self.stage_of_mesh[segment.key.mesh],
                late=segment.key.late,
            )
        )

    def _inside(self, segment: Segment) -> tuple[list[ir.Operation], list[ir.Value]]:
        """The segment's operations with what they repeat for themselves, in program order; the
        values that they read from memory.
        """
        own: set[ir.Value] = {value for op in segment.operations for value in op.results}
        wanted: set[ir.Operation] = set(segment.operations)
        operands: dict[ir.Value, None] = {}
        queue = [(op, operand) for op in segment.operations for operand in used_by(op)]
        while queue:
            _, value = queue.pop(0)
            if value in own:
                continue
            owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
            if owner is not None and owner in self.cut.free:
                if owner not in wanted:
                    wanted.add(owner)
                    queue += [(owner, each) for each in used_by(owner)]
            elif owner is not None and owner.name in MOVES and self._is_inside(value, own):
                if owner not in wanted:
                    wanted.add(owner)
                    queue.append((owner, owner.operands[0]))
            elif is_tensor(value.type):
                operands[value] = None
        ordered = [v.operation for v in self.block.operations if v.operation in wanted]
        return ordered, list(operands)

    def _is_inside(self, value: ir.Value, own: set[ir.Value]) -> bool:
        """Whether a moved value is a block of one that the segment itself makes."""
        return value not in self.held and self.cut.source(value) in own

    def _boxes(
        self,
        operations: Sequence[ir.Operation],
        operands: Sequence[ir.Value],
        point: Sequence[int],
    ) -> dict[ir.Value, Box]:
        values = [*operands, *(value for op in operations for value in op.results)]
        return {
            value: self.cut.placements[value].box(value.type.shape, point)
            for value in values
            if value in self.cut.placements
        }

    # -- partial results ---------------------------------------------------------------------------

    def _added_over_time(self, value: ir.Value) -> Kind | None:
        """How what the turns make is combined, where each makes a part."""
        placement = self.cut.placements[value]
        mesh = placement.mesh
        if mesh.turns and placement.along[-1].kind.is_partial:
            return placement.along[-1].kind
        return None

    def _begin_sums(self, number: int, segment: Segment, mesh: Mesh) -> None:
        """Memory in which turns are added up begins with nothing."""
        for k, value in enumerate(segment.outputs):
            kind = self._added_over_time(value)
            if kind is None:
                continue
            for point, device in mesh.points():
                part = self._part(value, point, mesh, device)
                if point[-1] or part.box.empty:
                    continue
                name = self._name(f"Z{number + 1}_{k}", device, -1)
                location = segment.operations[0].location
                task = _Task(name, device, value, location, [part], lambda kind=kind: kind, _fill)
                self.jobs.append(Job(name, device, segment.key.depth, -1, [], [part], task))

    def _reduce(self, move: ir.Operation) -> None:
        """Along each axis in turn, as is marked for it: every device adds its part to what came
        from the one before, and the last one of a block has its sum; or a tree, or doubling.
        """
        value = move.operands[0]
        axes, ways = self._sums(move), self._ways(move)
        result = self.held[move.results[0]]
        current, held = self.cut.placements[value], self.held[self._base(value)]
        once = self._only_added(value)
        alone: list[int] = []
        for k, axis in enumerate(axes):
            made = _divided(current, move, ways, [axis])
            if made.along[axis] == COPY and ways[axis] is not SumBy.DOUBLING:
                alone.append(axis)
            done = axes[: k + 1]
            into = result if done == axes else self._new(value, made, shared=_in_one(ways, done))
            before = _in_one(ways, axes[:k])
            spare = held if once or k else self._new(value, current, shared=before)
            sums = _Sums(move, axis, tuple(alone), current, made, held, into)
            if ways[axis] is SumBy.DOUBLING:
                rounds = power_below(current.mesh.axes[axis])[0].bit_length() - 1
                spares = [self._new(value, current, shared=before) for _ in range(rounds)]
                self._doubling(sums, spares)
            elif ways[axis] is SumBy.TREE:
                self._tree(sums, spare)
            else:
                self._ring(sums, spare)
            current, held = made, into

    def _only_added(self, value: ir.Value) -> bool:
        """Whether its parts are needed for their sum alone, and no more when it is there."""
        return len(list(value.uses)) == 1 and self._base(value) == value

    def _ring(self, sums: _Sums, spare: Held) -> None:
        """The sums of the blocks of `made` along one axis, each of which ends at the device that
        keeps it; those of axes `alone` at the first. On their way they lie in `spare`.
        """
        parts, adder = sums.devices, self._adder(sums)
        for point, box, turn in self._places_of(sums):
            if any(point[a] for a in sums.alone):
                continue
            target = sums.into_at(point, box)
            total: Part | None = None
            for hop in range(1, parts + 1):
                at = sums.along(point, (point[sums.axis] + hop) % parts)
                mine = sums.part_of(at, box)
                if parts > 1 and total is None:
                    total = mine
                    continue
                to = target if hop == parts else sums.at(spare, at, box)
                adder(at, turn, total, mine, to, hop)
                total = to

    def _tree(self, sums: _Sums, spare: Held) -> None:
        """To the first device: in round r that of each pair 2^r apart which is nearer to it adds
        what the other has so far.
        """
        parts, adder = sums.devices, self._adder(sums)
        for point, box, turn in self._places_of(sums):
            if any(point[a] for a in sums.alone):
                continue
            have = [sums.part_of(sums.along(point, n), box) for n in range(parts)]
            rounds = (parts - 1).bit_length()
            for r in range(rounds):
                for n in range(0, parts - (1 << r), 2 << r):
                    at = sums.along(point, n)
                    last = not n and r == rounds - 1
                    to = sums.into_at(point, box) if last else sums.at(spare, at, box)
                    adder(at, turn, have[n + (1 << r)], have[n], to, r + 1)
                    have[n] = to

    def _doubling(self, sums: _Sums, spares: Sequence[Held]) -> None:
        """In round r each device adds what the one 2^r from it has so far, in a memory of its own:
        the other reads what was there. Those over a power of two come before and behind.
        """
        parts, adder = sums.devices, self._adder(sums)
        most, over = power_below(parts)
        for point, box, turn in self._places_of(sums):
            if point[sums.axis]:
                continue
            ats = [sums.along(point, n) for n in range(parts)]
            have = [sums.part_of(at, box) for at in ats]
            for n in range(over):
                to = sums.at(spares[0], ats[n], box)
                adder(ats[n], turn, have[most + n], have[n], to, 1)
                have[n] = to
            # (What is folded in lies in the first memory, which no round writes then.)
            between = [*spares[1:], None] if over else [*spares[: len(spares) - 1], None]
            for r, memory in enumerate(between):
                to_each = [
                    sums.into_at(at, box) if memory is None else sums.at(memory, at, box)
                    for at in ats[:most]
                ]
                for n, to in enumerate(to_each):
                    adder(ats[n], turn, have[n ^ (1 << r)], have[n], to, r + 2)
                have[:most] = to_each
            for n in range(over):
                to = sums.into_at(ats[most + n], box)
                adder(ats[most + n], turn, None, have[n], to, len(between) + 2)

    def _places_of(self, sums: _Sums) -> Iterator[tuple[tuple[int, ...], Box, int]]:
        """The points at which there is something to add up, what, and the turn; -1: once."""
        mesh = sums.have.mesh
        in_turns = bool(mesh.turns) and sums.have.along[-1].kind is Kind.SPLIT
        for point, _ in mesh.points():
            box = sums.made.box(sums.held.memory.shape, point)
            if not box.empty and (in_turns or not mesh.turns or not point[-1]):
                yield tuple(point), box, point[-1] if in_turns else -1

    def _adder(self, sums: _Sums) -> _Adder:
        """What makes the jobs of a sum, numbered as they are made."""
        base = f"R{len(self.names) + 1}"
        self.names[base] = 0
        where = dict(sums.have.mesh.points())
        kind = sums.have.along[sums.axis].kind
        step = 0

        def add(
            at: tuple[int, ...], turn: int, total: Part | None, mine: Part, to: Part, hop: int
        ) -> None:
            nonlocal step
            # The first task tells how many terms there are for all.
            terms = 0 if step else terms_of(sums.move.operands[0], self.cut)
            name = self._name(f"{base}_{step}", where[at], turn)
            self._add(sums.move, name, where[at], turn, total, mine, to, kind, terms)
            self.jobs[-1].hop = hop
            step += 1

        return add

    def _add(
        self,
        move: ir.Operation,
        name: str,
        device: int,
        turn: int,
        total: Part | None,
        mine: Part,
        to: Part,
        kind: Kind,
        terms: int,
    ) -> None:
        parts = [part for part in (mine, total) if part is not None]
        parts += [] if to == mine else [to]
        how = None if total is None else kind
        made = move.results[0]
        task = _Task(name, device, made, move.location, parts, lambda: how, _combine)
        segment = self.cut.segment_of.get(self.cut.source(move.operands[0]))
        depth = segment.key.depth if segment is not None else 0
        reads = [part for part in (total, mine) if part is not None]
        self.jobs.append(
            Job(name, device, depth, turn, reads, [to],
                task, terms=terms, stage=self.stage_of_mesh[segment.key.mesh] if segment else 0)
        )  # fmt: skip

    def _copy_out(self, value: ir.Value, memory: Memory) -> None:
        placement = self.cut.placements.get(value)
        mesh = placement.mesh if placement is not None else Mesh("", (1,), (0,))
        placement = placement or Placement(mesh, (COPY,))
        done: list[Box] = []
        for point, device in mesh.points():
            box = placement.box(memory.shape, point)
            if box.empty or box in done:
                continue
            done.append(box)
            part = self._part(value, point, mesh, device)
            to = Part((memory, 0), box)
            name = self._name("C1", device, -1)

            part = Part(part.memory, box)
            location = self.end.location
            task = _Task(name, device, value, location, [part, to], lambda: None, _combine)
            self.jobs.append(Job(name, device, 1 << 30, -1, [part], [to], task))

    # -- writing -----------------------------------------------------------------------------------

    def _name(self, base: str, device: int, turn: int) -> str:
        name = f"{base}_on{device}" + (f"_turn{turn}" if turn >= 0 else "")
        number = self.names.get(name, 0)
        self.names[name] = number + 1
        return f"{name}_{number}" if number else name

    def _emit(self, jobs: Sequence[Job]) -> None:
        """The function on memory, in place of that on tensors."""
        handles: dict[ir.Value, ir.Value] = {}
        with self.function.location:
            new = ir.Operation.create(
                "func.func",
                [],
                [],
                {name: self.function.attributes[name] for name in self.function.attributes},
                regions=1,
                ip=ir.InsertionPoint(self.function),
            )
        kinds = [memory_type(a.type) for a in self.block.arguments]
        locations = [a.location for a in self.block.arguments]
        block = ir.Block.create_at_start(new.regions[0], kinds, locations)
        for old, argument in zip(self.block.arguments, block.arguments, strict=True):
            if old in self.held:
                self.held[old].memory.memory = argument
            elif any(True for _ in old.uses):
                raise PassError(
                    f"%{name_of(old.location) or 'an argument'} is a number without a value",
                    span=span_of(old.location),
                    hint="give it one: -D NAME=VALUE",
                )
        reference = ir.Type.parse("!avial.buffer_ref")
        with ir.InsertionPoint(block), self.function.location:
            returned = self._allocate(jobs)
            roots = [
                value
                for value in (*block.arguments, *(v.results[0] for v in block.operations))
                if isinstance(value.type, ir.MemRefType)
            ]
            for root in roots:
                handles[root] = ir.Operation.create(CAST, [reference], [root]).result
            given = [handles[root] for root in roots if isinstance(root.owner, ir.Block)]
            schedule = ir.Operation.create("avial.schedule", [], given, regions=1)
            ir.Operation.create("func.return", [], returned)
        inside = ir.Block.create_at_start(schedule.regions[0], [])
        with ir.InsertionPoint(inside), self.function.location:
            cpu = ir.StringAttr.get("cpu")
            self.target = ir.Operation.create(
                "avial.target",
                [ir.Type.parse("!avial.target_ref")],
                attributes={"name": cpu, "arch": cpu},
            ).result
            tasks = _Tasks(self.target, handles)
            for job in jobs:
                tasks.write(job)
            ir.Operation.create("omp.terminator")
        kind = ir.FunctionType.get(kinds, [value.type for value in returned])
        new.attributes["function_type"] = ir.TypeAttr.get(kind)
        for name in (PIPELINE, FOLLOWS, KEPT, WEIGHTS, OVERLAP, TOLD):
            if name in new.attributes:
                del new.attributes[name]
        self.function.erase()
        for view in list(self.module.regions[0].blocks[0].operations):
            if view.operation.name == MESH:
                view.operation.erase()

    def _allocate(self, jobs: Sequence[Job]) -> list[ir.Value]:
        """Memory for what the jobs touch; the results'."""
        slots: dict[Memory, set[int]] = {}
        for job in jobs:
            for part in (*job.reads, *job.writes):
                memory, slot = part.memory
                slots.setdefault(memory, set()).add(slot)
        for memory in self.results:
            if memory.first is None:
                kind = ir.MemRefType.get(list(memory.shape), memory.element)
                memory.first = allocated(kind, memory.name)
        for memory, used in slots.items():
            if memory.memory is not None or (memory.first is not None and used == {0}):
                continue
            kind = ir.MemRefType.get(memory.stored_shape, memory.element)
            memory.memory = allocated(kind, memory.name)
        return [memory.first for memory in self.returned if memory.first is not None]


@dataclass(frozen=True)
class _Task:
    """What a job becomes: `write` makes `what` of subviews of `parts`, in their order; it is a part
    of `made`.
    """

    name: str
    device: int
    made: ir.Value
    location: ir.Location
    parts: Sequence[Part]
    what: Callable[[], Any]
    write: Callable[[Any, Sequence[ir.Value]], None]


def _fill(kind: Kind, blocks: Sequence[ir.Value]) -> None:
    fill(blocks[0], kind)


def _combine(kind: Kind | None, blocks: Sequence[ir.Value]) -> None:
    """The last block becomes the first two combined, or the first alone; of two, the first stays
    what it was combined with.
    """
    if kind is None:
        memref.CopyOp(blocks[0], blocks[1])
    elif len(blocks) == 2:
        combine(blocks[1], None, blocks[0], kind)
    else:
        combine(blocks[1], blocks[0], blocks[2], kind)


class _Tasks:
    """Tasks in the schedule. Those that do the same on blocks of the same sizes are copies of the
    first, on other blocks: the devices of a ring have thousands.
    """

    def __init__(self, target: ir.Value, handles: Mapping[ir.Value, ir.Value]) -> None:
        self.target, self.handles = target, handles
        self.kind = ir.Type.parse("!avial.task_ref")
        self.i64 = ir.IntegerType.get_signless(64)
        self.first: dict[object, tuple[ir.Operation, Sequence[int]]] = {}
        """With the places of its subviews among its operations."""

    def write(self, job: Job) -> None:
        task: _Task = job.task
        views = [view_of(part) for part in task.parts]
        roots = [
            list(dict.fromkeys(part.memory[0].root(part.memory[1]) for part in parts))
            for parts in (job.reads, job.writes)
        ]
        what = task.what()
        alike = (
            task.write, what, task.made, *map(tuple, roots),
            *[(view.root, view.sizes) for view in views],
        )  # fmt: skip
        views = [view for view in views if view.sizes]
        if alike in self.first:
            op = self._copied(*self.first[alike], views)
        else:
            op = self._made(task, what, roots)
            inside = op.regions[0].blocks[0].operations
            found = (k for k, v in enumerate(inside) if v.operation.name == "memref.subview")
            self.first[alike] = op, [next(found) for _ in views]
        op.attributes["name"] = ir.StringAttr.get(task.name)
        op.attributes[ON_RANK] = ir.IntegerAttr.get(self.i64, task.device)
        if job.turn >= 0:
            turn = [job.turn, job.stage, int(job.way)]
            op.attributes[TURN] = ir.DenseI64ArrayAttr.get(turn)
        if job.terms:
            op.attributes[SUMMED] = ir.IntegerAttr.get(self.i64, job.terms)

    def _made(self, task: _Task, what: object, roots: list[list[ir.Value]]) -> ir.Operation:
        with task.location:
            op = ir.Operation.create(
                "avial.task",
                [self.kind],
                [self.target, *(self.handles[root] for each in roots for root in each)],
                {SEGMENTS: ir.DenseI32ArrayAttr.get([1, *map(len, roots), 0])},
                regions=1,
            )
            with ir.InsertionPoint(ir.Block.create_at_start(op.regions[0], [])):
                task.write(what, [subview_of(part) for part in task.parts])
                ir.Operation.create("omp.terminator")
        return op

    def _copied(
        self, first: ir.Operation, places: Sequence[int], views: Sequence[View]
    ) -> ir.Operation:
        op = first.clone()
        for name in (TURN, SUMMED):
            if name in op.attributes:
                del op.attributes[name]
        inside = op.regions[0].blocks[0].operations
        for place, view in zip(places, views, strict=True):
            view.move(inside[place].operation)
        return op


def _bytes_of(value: ir.Value) -> int:
    return prod(value.type.shape) * itemsize_of(value.type.element_type)


def _divided(
    source: Placement, move: ir.Operation, ways: Mapping[int, SumBy], axes: Sequence[int]
) -> Placement:
    """Where sums along these axes lie: in blocks, or whole where no ring adds them up."""
    for axis in axes:
        ring = ways[axis] is SumBy.RING
        along = divided_sums(move.results[0].type.shape, source, axis) if ring else COPY
        source = source.with_axis(axis, along)
    return source


def _in_one(ways: Mapping[int, SumBy], axes: Sequence[int]) -> list[int]:
    """The axes whose devices have one memory of the sums: who makes a block of them has it."""
    return [axis for axis in axes if ways[axis] is not SumBy.DOUBLING]
