"""What a search for a division has to know: the layers of a function on tensors, and what would
happen on ranks if it were divided.

Source -> ModelCosts; Source that is divided, Topology -> Simulated.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from mlir import ir

from avial_lab.compiler.analysis.placements.dimension_classes import DimensionClasses
from avial_lab.compiler.frontends.mlir.tensors import tensors_to_memory
from avial_lab.compiler.ir.attributes import FOLLOWS
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.placements import is_tensor
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distir.data_parallel import batch_of
from avial_lab.compiler.passes.distir.stages import (
    arithmetic_of,
    bytes_of,
    in_order_of_use,
    stages_of,
    values_in_batch,
    weights_behind,
)
from avial_lab.compiler.requests import Foresee, Simulate, Simulated, Source, WeighLayers
from avial_lab.compiler.worker.build import graph_of, parse, parse_source, to_tensors
from avial_lab.compiler.worker.placed import (
    ranks_of_tasks,
    schedule_on_ranks,
    told_of_division,
    turns_of_tasks,
)
from avial_lab.compiler.worker.task_demands import task_demands
from avial_lab.core.errors import BindError
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.memory import held_bytes
from avial_lab.planning.model_costs import Layer, ModelCosts
from avial_lab.planning.optimizers import Optimizer
from avial_lab.planning.schedule import Schedule, Sync
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.trace import Trace


def weigh_layers(question: WeighLayers) -> ModelCosts:
    """BindError for a function without weights."""
    source = question.source
    found: list[ModelCosts] = []

    def weighed(module: ir.Module) -> bool:
        to_tensors(module, source)
        found.append(_Layers(program_function(module), source).costs())
        return tensors_to_memory(module)

    parse_source(source, weighed)
    return found[0]


def simulate_divided(question: Simulate) -> Simulated:
    """The tasks of a divided function by events, in the order and with the messages of a run."""
    _, schedule, trace = _simulated(question.source, question.topology)
    return Simulated(trace.makespan_s, held_bytes(schedule), schedule.bytes_moved)


def foresee(question: Foresee) -> Foreseen:
    module, schedule, trace = _simulated(question.source, question.topology)
    told = told_of_division(module.operation)
    return Foreseen(schedule, trace, turns_of_tasks(module), told)


def _simulated(source: Source, topology: Topology) -> tuple[ir.Module, Schedule, Trace]:
    module = parse(source)
    graph = graph_of(module, source)
    schedule = schedule_on_ranks(graph, topology, ranks_of_tasks(module), sync=Sync.EDGES)
    return module, schedule, simulated(schedule, Costs(task_demands(module.operation)))


class _Layers:
    def __init__(self, function: ir.Operation, source: Source) -> None:
        self.function, self.source = function, source
        block = function.regions[0].blocks[0]
        *operations, end = [view.operation for view in block.operations]
        self.operations: Sequence[ir.Operation] = operations
        classes = DimensionClasses.of(function)
        self.batch = batch_of(function, classes=classes)
        self.in_batch = values_in_batch(function, self.batch, classes=classes)
        weights = [
            a for a in block.arguments if is_tensor(a.type) and a.type.rank and a not in self.batch
        ]
        self.reading = classes.reading
        uses = {op: self.reading.used(op) for op in operations}
        self.behind = weights_behind(uses, weights, self.in_batch)
        self.order, self.work = in_order_of_use(uses, self.behind, self.in_batch, self.reading)
        if not self.order:
            raise BindError(
                "the function has no weights that a search could divide",
                hint="arguments without the batch's dimension are weights",
            )
        self.unit_of = stages_of(function, self.batch, len(self.order), classes=classes)
        loss = end.operands[0].owner if source.gradient and len(end.operands) else None
        last = len(operations)
        if loss is not None and not isinstance(loss, ir.Block):
            last = operations.index(loss.operation) + 1
        shapes = {tuple(weight.type.shape) for weight in weights}
        gradients = [k for k, op in enumerate(operations) if self._makes_gradient(op, shapes)]
        self.by_hand = bool(gradients) and FOLLOWS not in function.attributes
        if self.by_hand and not source.gradient:
            last = gradients[0]
        self.forward = set(operations[:last])

    def _makes_gradient(self, op: ir.Operation, shapes: Container[tuple[int, ...]]) -> bool:
        """Whether it adds something of the shape of a weight up over the batch."""
        made = [v for v in op.results if is_tensor(v.type) and v not in self.in_batch]
        return any(v.type.rank and tuple(v.type.shape) in shapes for v in made) and any(
            value in self.in_batch for value in self.reading.used(op)
        )

    def costs(self) -> ModelCosts:
        kept, sent = self._kept(), self._sent()
        done = {way: [0] * len(self.order) for way in (True, False)}
        for op in self.operations:
            loops = self.reading.loops(op)
            adds = any(
                loop is not None and loops.is_reduction(loop)
                for dims in loops.operands
                for loop in dims
            )
            work = arithmetic_of(op, loops) * (2 if adds else 1)
            done[op in self.forward][self.unit_of[op]] += work
        layers: list[Layer] = []
        for k, weight in enumerate(self.order):
            name = name_of(weight.location) or f"arg{weight.arg_number}"
            work = self.work[weight], done[True][k], done[False][k]
            result = self._columns(weight)
            layers.append(Layer(name, bytes_of(weight), *work, kept[k], sent[k], *result))
        trained = FOLLOWS in self.function.attributes or self.by_hand
        states = len(Optimizer.parse(self.source.update).kept) if self.source.update else 0
        given = sum(bytes_of(value) for value in self.batch)
        return ModelCosts(self._rows(), tuple(layers), trained, states, given, by_hand=self.by_hand)

    def _rows(self) -> int:
        return min(value.type.shape[dim] for value, dim in self.batch.items())

    def _made(self) -> Iterator[tuple[ir.Value, int, list[ir.Operation]]]:
        """What the way forward makes of the batch: by which layer, and who reads it."""
        readers: dict[ir.Value, list[ir.Operation]] = {}
        for op in self.operations:
            for value in self.reading.used(op):
                readers.setdefault(value, []).append(op)
        for op in self.operations:
            computed = op in self.forward and not self.reading.is_free(op)
            for value in op.results if computed else ():
                if value in self.in_batch and is_tensor(value.type):
                    yield value, self.unit_of[op], readers.get(value, [])

    def _kept(self) -> list[int]:
        kept = [0] * len(self.order)
        for value, unit, readers in self._made():
            if any(op not in self.forward for op in readers):
                kept[unit] += bytes_of(value)
        return kept

    def _sent(self) -> list[int]:
        sent = [0] * len(self.order)
        for value, unit, readers in self._made():
            last = max((self.unit_of[op] for op in readers if op in self.forward), default=unit)
            for between in range(unit, last):
                sent[between] += bytes_of(value)
        return sent

    def _columns(self, weight: ir.Value) -> tuple[int, int, int]:
        """Bytes of the result, the weight's dimension that it has, too, and how long that is."""
        for op in self.operations:
            loops = self.reading.loops(op)
            if weight.type.rank < 2 or weight not in list(op.operands) or op not in self.forward:
                continue
            dims = loops.operands[list(op.operands).index(weight)]
            results = loops.results[0] if loops.results else ()
            columns = [d for d, loop in enumerate(dims) if loop is not None and loop in results]
            if len(columns) == 1 and any(value in self.in_batch for value in op.results):
                return bytes_of(op.results[0]), columns[0], weight.type.shape[columns[0]]
        return 0, -1, 0
