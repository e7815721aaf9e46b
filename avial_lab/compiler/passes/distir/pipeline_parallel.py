"""Pipeline parallelism: layers on different devices, batches in parts that follow one another.

Function on tensors -> the same on one mesh for each stage, with an axis of turns for micro-batches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from mlir import ir

from avial_lab.compiler.analysis.placements.dimension_classes import DimensionClasses
from avial_lab.compiler.analysis.placements.reading import Reading
from avial_lab.compiler.ir.attributes import PIPELINE
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.placements import (
    MOVES,
    PlacedTypes,
    is_tensor,
    meshes_in,
    settle_signature,
    with_placement,
    write_mesh,
)
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distir.data_parallel import batch_of, check_degree
from avial_lab.compiler.passes.distir.propagate import add_axis, place_on_one
from avial_lab.compiler.passes.distir.stages import bytes_of, stages_of
from avial_lab.compiler.passes.distir.task_order import SCHEDULES
from avial_lab.compiler.passes.distir.told import tell
from avial_lab.core.errors import ScheduleError
from avial_lab.core.words import count, format_bytes
from avial_lab.planning.tensor_placement import Mesh, Placement


@dataclass(frozen=True)
class PipelineParallel:
    """Layers on `stages` times as many devices, the batch in `microbatches` turns.

    before:  %h = matmul %x, %w1   %y = matmul %h, %w2            all on @m
    after:   %h = matmul %x, %w1   %s = distir.send %h   %y = matmul %s, %w2
             with %x, %w1, %h on @m and %s, %w2, %y on @m_1, which both have turns

    `schedule` is the order in which a device takes micro-batches: 1f1b (one forward, one backward:
    no more than the stages from it on in flight), gpipe (all forward first), interleaved (each of
    the devices has `chunks` stages), zero-bubble (1f1b, and gradients of weights when there is
    time). `flight` is the most micro-batches in flight on a device; 0: what the schedule has.
    """

    stages: int = 2
    microbatches: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    flight: int = 0

    def __call__(self, module: ir.Operation) -> None:
        check_degree("pipeline-parallel", self.stages)
        if self.schedule not in SCHEDULES:
            raise ScheduleError(
                f"there is no schedule '{self.schedule}'", hint=f"choose {' or '.join(SCHEDULES)}"
            )
        function = program_function(module)
        place_on_one(module, function)
        meshes = meshes_in(module)
        if len(meshes) > 1 or any(mesh.turns for mesh in meshes.values()):
            raise ScheduleError(
                "the function is a pipeline already", span=span_of(function.location)
            )
        classes = DimensionClasses.of(function)
        batch = batch_of(function, classes=classes)
        self._check_rows(function, batch)
        stage_of = stages_of(function, batch, self.stages * self.chunks, classes=classes)
        (mesh,) = meshes.values()
        total = 1 + max(mesh.devices)
        made = [
            replace(
                mesh,
                name=mesh.name if not stage else f"{mesh.name}_{stage}",
                devices=tuple(stage % self.stages * total + device for device in mesh.devices),
            )
            for stage in range(self.stages * self.chunks)
        ]
        for each in reversed(made):
            write_mesh(module, each)
        division = _Division(made, stage_of, classes.reading)
        division.run(function)
        told = f"{self}: {division.told()}"
        settle_signature(function)
        if self.microbatches > 1:
            reading = classes.reading
            add_axis(module, function, self.microbatches, batch, turns=True, reading=reading)
            function = program_function(module)
        numbers = [self.flight, self.stages] if self.chunks > 1 else [self.flight][: self.flight]
        order = " ".join([self.schedule, *map(str, numbers)])
        function.attributes[PIPELINE] = ir.StringAttr.get(order, module.context)
        tell(function, told)

    def _check_rows(self, function: ir.Operation, batch: dict[ir.Value, int]) -> None:
        check_degree("pipeline-parallel in micro-batches", self.microbatches)
        rows = min(value.type.shape[dim] for value, dim in batch.items())
        if self.microbatches > rows:
            raise ScheduleError(
                f"{self.microbatches} micro-batches of {rows} rows",
                span=span_of(function.location),
                hint=f"use {rows} or fewer",
            )

    def __str__(self) -> str:
        more = f" chunks={self.chunks}" if self.chunks > 1 else ""
        more += f" flight={self.flight}" if self.flight else ""
        return (
            f"pipeline-parallel{{stages={self.stages} microbatches={self.microbatches} "
            f"schedule={self.schedule}{more}}}"
        )


@dataclass
class _Division:
    """Every operation on the mesh of its stage; what other stages made is sent."""

    made: list[Mesh]
    stage_of: dict[ir.Operation, int]
    reading: Reading
    sent: dict[tuple[ir.Value, int], ir.Value] = field(default_factory=dict)

    def run(self, function: ir.Operation) -> None:
        self.block = block = function.regions[0].blocks[0]
        self.types = PlacedTypes({mesh.name: mesh for mesh in self.made})
        *operations, _ = [view.operation for view in block.operations]
        self.free = {
            op
            for op in operations
            if op.name not in MOVES
            and self.reading.is_free(op)
            and any(is_tensor(value.type) for value in op.results)
        }
        readers: dict[ir.Value, list[ir.Operation]] = {}
        for op in operations:
            for value in self.reading.used(op):
                readers.setdefault(value, []).append(op)
        for argument in block.arguments:
            users = readers.get(argument, [])
            stages = [self.stage_of[user] for user in users if user in self.stage_of]
            if is_tensor(argument.type) and stages:
                self._put(argument, min(stages))
        for op in operations:
            if op in self.free:
                continue
            stage = self.stage_of[op]
            for k, value in enumerate(op.operands):
                if is_tensor(value.type):
                    op.operands[k] = self._on(value, stage)
            for value in self.reading.captured(op):
                self.reading.replace_captured(op, value, self._on(value, stage))
            for value in op.results:
                if is_tensor(value.type):
                    self._put(value, stage)

    def told(self) -> str:
        """How many operations each stage has, and what is sent between them."""
        each = Counter(stage for op, stage in self.stage_of.items() if op not in self.free)
        stages = ", ".join(str(each[stage]) for stage in range(len(self.made)))
        sent = [v.operation for v in self.block.operations if v.operation.name == "distir.send"]
        nbytes = sum(bytes_of(op.operands[0]) for op in sent)
        copied = count(len(self.sent) - len(sent), "value")
        return (
            f"stages of {stages} operations, {count(len(sent), 'send')} of "
            f"{format_bytes(nbytes)} between them; {copied} of numbers alone made on each"
        )

    def _placement(self, value: ir.Value) -> Placement:
        placement = self.types.placement_of(value)
        assert placement is not None
        return placement

    def _put(self, value: ir.Value, stage: int) -> None:
        self.types.place(value, Placement(self.made[stage], self._placement(value).along))

    def _on(self, value: ir.Value, stage: int) -> ir.Value:
        """The value on the mesh of that stage: made there, if it is made of numbers, else sent."""
        have = self._placement(value)
        if have.mesh == self.made[stage]:
            return value
        if (value, stage) in self.sent:
            return self.sent[value, stage]
        owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if owner is not None and owner in self.free:
            copy = owner.clone(ip=ir.InsertionPoint.after(owner))
            for k, operand in enumerate(owner.operands):
                if is_tensor(operand.type):
                    copy.operands[k] = self._on(operand, stage)
            result = copy.results[0]
            self._put(result, stage)
        else:
            after = (
                ir.InsertionPoint.at_block_begin(self.block)
                if owner is None
                else ir.InsertionPoint.after(owner)
            )
            kind = with_placement(value.type, Placement(self.made[stage], have.along))
            result = ir.Operation.create(
                "distir.send", [kind], [value], ip=after, loc=value.location
            ).result
        self.sent[value, stage] = result
        return result
