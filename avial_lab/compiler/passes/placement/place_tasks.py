"""The schedule, written onto the tasks: what every later pass reads.

Module, Schedule -> the same module with rank, level, device and order on every task, transfers and
rank programs on the function. No operation moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.program import read_program
from avial_lab.compiler.ir.attributes import COPIES, PLACES, TOUCHES
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.program import PROGRAMS, scheduled_function, schedules_of, tasks_of
from avial_lab.core.buffers import Buffer, Storage, row_major
from avial_lab.core.errors import PassError
from avial_lab.machine.topology import Topology
from avial_lab.planning.placement import BY_HAND, schedule_tasks
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Schedule, Sync, Transfer
from avial_lab.planning.task_graph import TaskGraph, build_dag


@dataclass(frozen=True)
class PlaceTasks:
    """Write the decisions of `schedule` on the tasks and their function.

    before:  avial.task(%cpu, %a) {…} {name = "task1"}
    after:   avial.task(%cpu, %a) {…} {name = "task1", avial.rank = 1 : i32, avial.level = 0 : i32,
             avial.device = "cpu1", avial.order = 0}
    """

    schedule: Schedule

    def __call__(self, module: ir.Operation) -> None:
        function = scheduled_function(module)
        placements = {placed.task: (k, placed) for k, placed in enumerate(self.schedule.placements)}
        with module.context:
            i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
            for task in tasks_of(function):
                name = text_attribute(task, "name")
                if name not in placements:
                    raise PassError(
                        f"the schedule does not place task '{name}'", span=span_of(task.location)
                    )
                order, placed = placements[name]
                task.attributes["avial.rank"] = ir.IntegerAttr.get(i32, placed.rank)
                task.attributes["avial.level"] = ir.IntegerAttr.get(i32, placed.level)
                task.attributes["avial.device"] = ir.StringAttr.get(placed.device)
                task.attributes["avial.order"] = ir.IntegerAttr.get(i64, order)
                place = self.schedule.topology.place_of(placed.device)
                if place >= self.schedule.topology.ranks:
                    task.attributes[PLACES] = ir.DenseI64ArrayAttr.get([place])
                    task.attributes[TOUCHES] = _touched(self.schedule.graph, name)
            graph = self.schedule.graph
            _write_memory(function, graph.buffers, graph.storages)
            _write_programs(
                function,
                [[str(step) for step in program] for program in self.schedule.programs],
                self.schedule.transfers,
            )
            _write_copies(function, self.schedule)

    def __str__(self) -> str:
        schedule = self.schedule
        return str(
            PlaceTasksHere(
                schedule.topology.ranks,
                schedule.topology.gpus,
                schedule.policy.value,
                schedule.sync.value,
            )
        )

    @property
    def has_command_line(self) -> bool:
        """Whether its text says all of it: places by a policy, on ranks of this machine, of arrays
        that each have memory of their own.
        """
        topology, graph = self.schedule.topology, self.schedule.graph
        if any(placement.reason == BY_HAND for placement in self.schedule.placements):
            return False
        if self.schedule.policy.looks_at_costs:
            return False  # which are found in the program as it was written
        return topology == Topology.local(topology.ranks, gpus=topology.gpus) and all(
            buffer.storage == buffer.name
            and buffer.offset_bytes == 0
            and buffer.strides == row_major(buffer.shape)
            for buffer in graph.buffers
        )


@dataclass(frozen=True)
class PlaceTasksHere:
    """Schedule the tasks on ranks of this machine, the last `gpus` of which drive a GPU each, and
    place them so: what `place-tasks` is on a command line.

    before, after:  as PlaceTasks
    """

    ranks: int = 1
    gpus: int = 0
    policy: str = Policy.LEVELS.value
    sync: str = Sync.EDGES.value

    def __call__(self, module: ir.Operation) -> None:
        graph = build_dag(*read_program(module, None))
        topology = Topology.local(self.ranks, gpus=self.gpus)
        policy, sync = Policy(self.policy), Sync(self.sync)
        PlaceTasks(schedule_tasks(graph, topology, policy=policy, sync=sync))(module)

    def __str__(self) -> str:
        options = f"ranks={self.ranks} gpus={self.gpus} policy={self.policy} sync={self.sync}"
        return f"place-tasks{{{options}}}"


def _write_memory(
    function: ir.Operation, buffers: Sequence[Buffer], storages: Sequence[Storage]
) -> None:
    """`avial.storages` on the function; storage and byte offset on each argument that is a
    buffer; on each allocation between tasks the name of its buffer.
    """
    _name_allocations(function, [buffer.name for buffer in buffers if buffer.temporary])
    i64 = ir.IntegerType.get_signless(64)
    function.attributes["avial.storages"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {
                    "name": ir.StringAttr.get(storage.name),
                    "shape": ir.DenseI64ArrayAttr.get(list(storage.shape)),
                    "itemsize": ir.IntegerAttr.get(i64, storage.itemsize),
                    "buffers": ir.ArrayAttr.get([ir.StringAttr.get(b) for b in storage.buffers]),
                }
            )
            for storage in storages
        ]
    )
    known = {buffer.name: buffer for buffer in buffers}
    count = len(function.regions[0].blocks[0].arguments)
    old = (
        ir.ArrayAttr(function.attributes["arg_attrs"])
        if "arg_attrs" in function.attributes
        else [ir.DictAttr.get({})] * count
    )
    placed: list[ir.Attribute] = []
    for attributes in old:
        facts = {named.name: named.attr for named in ir.DictAttr(attributes)}
        if "avial.name" in facts:
            buffer = known.get(ir.StringAttr(facts["avial.name"]).value)
            if buffer is not None:
                facts["avial.storage"] = ir.StringAttr.get(buffer.storage)
                facts["avial.offset"] = ir.IntegerAttr.get(i64, buffer.offset_bytes)
        placed.append(ir.DictAttr.get(facts))
    if count:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(placed)


def _name_allocations(function: ir.Operation, names: Sequence[str]) -> None:
    """`names` are in the order of `read_program`: the function's own before those in schedules."""
    blocks = [part.regions[0].blocks[0] for part in (function, *schedules_of(function))]
    allocations = [
        op.operation
        for block in blocks
        for op in block.operations
        if op.operation.name in ("memref.alloc", "memref.alloca")
    ]
    for op, name in zip(allocations, names, strict=True):
        op.attributes["avial.name"] = ir.StringAttr.get(name)


def _write_programs(
    function: ir.Operation, programs: Sequence[Sequence[str]], transfers: Sequence[Transfer]
) -> None:
    """What each rank does, and every message, on the function."""
    i32 = ir.IntegerType.get_signless(32)
    function.attributes["avial.ranks"] = ir.IntegerAttr.get(i32, len(programs))
    function.attributes[PROGRAMS] = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.StringAttr.get(step) for step in steps]) for steps in programs]
    )
    function.attributes["avial.transfers"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {
                    "storage": ir.StringAttr.get(transfer.storage),
                    "start": ir.DenseI64ArrayAttr.get(list(transfer.box.start)),
                    "stop": ir.DenseI64ArrayAttr.get(list(transfer.box.stop)),
                    "source": ir.IntegerAttr.get(i32, transfer.source),
                    "dest": ir.IntegerAttr.get(i32, transfer.dest),
                    "producer": ir.StringAttr.get(transfer.producer),
                    "consumer": ir.StringAttr.get(transfer.consumer),
                    **(
                        {PLACES: ir.DenseI64ArrayAttr.get(list(transfer.places))}
                        if transfer.places
                        else {}
                    ),
                }
            )
            for transfer in transfers
        ]
    )


def _touched(graph: TaskGraph, task: str) -> ir.Attribute:
    names = {access.storage for access in graph.by_name[task].accesses if access.region}
    numbers = [k for k, storage in enumerate(graph.storages) if storage.name in names]
    return ir.DenseI64ArrayAttr.get(numbers)


def _write_copies(function: ir.Operation, schedule: Schedule) -> None:
    """What ranks copy to their devices and from them, on the function, where they do."""
    if not schedule.copies:
        return
    number = {storage.name: k for k, storage in enumerate(schedule.graph.storages)}
    function.attributes[COPIES] = ir.ArrayAttr.get(
        [
            ir.DenseI64ArrayAttr.get(
                [copy.source, copy.dest, number[copy.storage], *copy.box.start, *copy.box.stop]
            )
            for copy in schedule.copies
        ]
    )
