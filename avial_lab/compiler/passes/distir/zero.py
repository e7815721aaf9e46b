"""ZeRO: what replicas of a data-parallel step hold twice, divided over them.

Step whose weights follow gradients, on a mesh with an axis of data -> the same, with optimizer
state, gradients and weights in blocks along that axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.placements.split_loops import loops_of
from avial_lab.compiler.ir.attributes import FOLLOWS, GRADIENT_OF, IN_PLACE, KEPT, WEIGHTS
from avial_lab.compiler.ir.captures import replace_captured, tensors_captured
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.placements import (
    MOVES,
    has_placements,
    is_tensor,
    meshes_in,
    place,
    placement_of,
    settle_signature,
    with_placement,
)
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distir.data_parallel import batch_of
from avial_lab.compiler.passes.distir.propagate import Propagation
from avial_lab.compiler.passes.distir.told import tell
from avial_lab.core.errors import ScheduleError
from avial_lab.core.words import count
from avial_lab.planning.tensor_placement import COPY, Along, Kind, Placement, divided_sums


@dataclass(frozen=True)
class Zero:
    """Of the N replicas, each holds an N-th of the optimizer's state (`level` 1), of the gradients
    (2), of the weights (3), too. 0: each holds all, and keeps the new weights.

    before:  %g = distir.all_reduce %parts   %new = %w - rate * %g   return %new
    after:   %g = distir.reduce_scatter %parts   %b = distir.scatter %w   %part = %b - rate * %g
             %all = distir.all_gather %part   %new = linalg.copy %all   return %new   (level=1, 2)

    With AdamW in f32, of ψ weights, 16ψ, 8ψ+8ψ/N, 4ψ+12ψ/N and 16ψ/N bytes are held at levels 0
    to 3, and each replica sends (N-1)/N of 2ψ, 2ψ, 2ψ and 3ψ elements a step. (Rajbhandari et al.,
    ZeRO, 2020, sections 5 and 7.)
    """

    level: int = 1

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        if self.level not in range(4):
            raise ScheduleError(f"ZeRO has no level {self.level}", hint="choose 0, 1, 2 or 3")
        if FOLLOWS not in function.attributes:
            raise ScheduleError(
                "no argument of the function follows a gradient: ZeRO has nothing to divide",
                span=span_of(function.location),
                hint="say how weights are trained: --gradient 'w0 w1' --update 'adamw'",
            )
        if not has_placements(module):
            raise ScheduleError(
                "ZeRO divides what replicas hold, and there are none",
                span=span_of(function.location),
                hint="write it behind them: data 2, zero 1",
            )
        if len({len(mesh.shape) for mesh in meshes_in(module).values()}) > 1:
            raise ScheduleError(
                "ZeRO divides what all stages hold alike, and one is divided by itself",
                span=span_of(function.location),
                hint="write zero before what is divided `in` a stage",
            )
        with module.context:
            _Division(module, function, self.level).run()
        settle_signature(function)

    def __str__(self) -> str:
        return f"zero{{level={self.level}}}"


class _Division:
    def __init__(self, module: ir.Operation, function: ir.Operation, level: int) -> None:
        self.function, self.level = function, level
        self.meshes = meshes_in(module)
        self.block = function.regions[0].blocks[0]
        self.axis = self._axis_of_data()
        self.copies: set[ir.Operation] = set()
        self.propagation = Propagation(self.meshes, dict.fromkeys(self.meshes, self.axis))

    def run(self) -> None:
        pairs = list(self._followed())
        trained = set(ir.DenseI64ArrayAttr(self.function.attributes[WEIGHTS]))
        states = {old for _, old in pairs if old.arg_number not in trained}
        weights = {new: old for new, old in pairs if old not in states and self._gradients(new)}
        # Before anything moves: where what each weight consists of would be cut.
        cuts = {old: self._cut(new) for new, old in weights.items()}
        cuts = {old: along for old, along in cuts.items() if along != COPY}
        divided = [(new, old) for new, old in weights.items() if old in cuts]
        for new, old in weights.items():
            for move in self._gradients(new):
                name = name_of(old.location) or f"arg{old.arg_number}"
                move.attributes[GRADIENT_OF] = ir.StringAttr.get(name)
        if self.level:
            changed: set[ir.Value] = set()
            for new, old in divided:
                for move in self._gradients(new):
                    changed.add(self._scattered(move, cuts[old]))
                for state in self._states(new, states):
                    place(state, self._placement(state).with_axis(self.axis, cuts[old]))
                    changed.add(state)
            if self.level == 3:
                for _, old in divided:
                    self._gathered_when_read(old, cuts[old])
                    changed.add(old)
            self._follow(changed)
        self._keep()
        whole = [
            f"%{name_of(old.location) or 'arg'}"
            for _, old in pairs
            if old not in states and old not in cuts
        ]
        what = ("nothing", "the optimizer's state", "state and gradients", "all")[self.level]
        told = f"of {count(len(divided), 'weight')} each replica holds a part of {what}"
        if whole:
            told += f"; left whole, without a sum of gradients or too small: {', '.join(whole)}"
        tell(self.function, f"zero{{level={self.level}}}: {told}")

    def _axis_of_data(self) -> int:
        """The last axis along which the batch is divided into rows of several devices."""
        for argument, dim in batch_of(self.function).items():
            placement = placement_of(argument.type, self.meshes)
            if placement is None:
                continue
            for axis in reversed(range(len(placement.along))):
                if placement.along[axis] == Along(Kind.SPLIT, dim) and not placement.mesh.is_time(
                    axis
                ):
                    return axis
        raise ScheduleError(
            "ZeRO divides what replicas hold, and there are none",
            span=span_of(self.function.location),
            hint="write it behind them: data 2, zero 1",
        )

    def _end(self) -> ir.Operation:
        return self.block.operations[len(self.block.operations) - 1].operation

    def _followed(self) -> Iterator[tuple[ir.Value, ir.Value]]:
        """What is returned in an argument's place, and the argument."""
        numbers = list(ir.DenseI64ArrayAttr(self.function.attributes[FOLLOWS]))
        for value, number in zip(self._end().operands, numbers, strict=True):
            if number >= 0:
                yield value, self.block.arguments[number]

    def _placement(self, value: ir.Value) -> Placement:
        placement = placement_of(value.type, self.meshes)
        assert placement is not None
        return placement

    def _update(self, value: ir.Value) -> Iterator[ir.Value]:
        """The value, and what it is made of element by element, as far as tensors of its shape go;
        moves are the last.
        """
        seen, queue = {value}, [value]
        while queue:
            each = queue.pop()
            yield each
            if isinstance(each.owner, ir.Block) or each.owner.operation.name in MOVES:
                continue
            loops = loops_of(each.owner.operation)
            for k, operand in enumerate(each.owner.operation.operands):
                same = is_tensor(operand.type) and operand.type.shape == value.type.shape
                if same and operand not in seen and loops.operands[k] == loops.results[0]:
                    seen.add(operand)
                    queue.append(operand)

    def _gradients(self, new: ir.Value) -> list[ir.Operation]:
        """The moves behind a new weight that add up what the replicas found."""
        found = [v.owner.operation for v in self._update(new) if not isinstance(v.owner, ir.Block)]
        return [
            op
            for op in found
            if op.name in MOVES
            and self._placement(op.operands[0]).along[self.axis].kind is Kind.SUM
            and self._placement(op.results[0]).along[self.axis] == COPY
        ]

    def _states(self, new: ir.Value, kept: set[ir.Value]) -> list[ir.Value]:
        return [v for v in self._update(new) if v in kept]

    def _cut(self, new: ir.Value) -> Along:
        """How the weight is cut: as the sums of its gradient lie where they were made."""
        source = self._gradients(new)[0].operands[0]
        return divided_sums(source.type.shape, self._placement(source), self.axis)

    def _scattered(self, move: ir.Operation, along: Along) -> ir.Value:
        """The move's result, in blocks along the axis in place of copies."""
        source, old = move.operands[0], move.results[0]
        have, made = self._placement(source), self._placement(old).with_axis(self.axis, along)
        only = all(a == b for k, (a, b) in enumerate(zip(have.along, made.along, strict=True))
                   if k != self.axis)  # fmt: skip
        new = ir.Operation.create(
            "distir.reduce_scatter" if only and have.mesh == made.mesh else "distir.reshard",
            [with_placement(old.type, made)],
            [source],
            {GRADIENT_OF: move.attributes[GRADIENT_OF]}
            | ({IN_PLACE: ir.UnitAttr.get()} if self.level == 1 else {}),
            ip=ir.InsertionPoint(move),
            loc=move.location,
        ).result
        old.replace_all_uses_with(new)
        move.erase()
        return new

    def _gathered_when_read(self, weight: ir.Value, along: Along) -> None:
        """What reads the weight outside of its update reads a copy, gathered once for the way
        forward and once for the way back: neither is held in between.
        """
        placement = self._placement(weight)
        made = placement.with_axis(self.axis, along)
        loss = self._end().operands[0]
        operations = [view.operation for view in self.block.operations]
        back = operations.index(loss.owner.operation) if not isinstance(loss.owner, ir.Block) else 0
        place(weight, made)
        copies: dict[bool, ir.Value] = {}

        def copy_for(late: bool) -> ir.Value:
            if late not in copies:
                copies[late] = self._gathered(weight, placement)
            return copies[late]

        updating = {v for new, old in self._followed() if old == weight for v in self._update(new)}
        for number, op in enumerate(operations):
            if any(result in updating for result in op.results):
                continue
            for k, operand in enumerate(op.operands):
                if operand == weight:
                    op.operands[k] = copy_for(number > back)
            if weight in tensors_captured(op):
                replace_captured(op, weight, copy_for(number > back))

    def _gathered(self, value: ir.Value, to: Placement) -> ir.Value:
        """`value` handed out by those who hold its blocks, at the beginning of the function."""
        with ir.InsertionPoint.at_block_begin(self.block), value.location:
            handed = self._copied(value, value.type)
            return ir.Operation.create(
                "distir.all_gather", [with_placement(value.type, to)], [handed]
            ).result

    def _copied(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        empty = ir.Operation.create("tensor.empty", [kind], []).result
        copy = ir.Operation.create(
            "linalg.copy",
            [kind],
            [value, empty],
            {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
            regions=1,
        )
        element = kind.element_type
        body = ir.Block.create_at_start(copy.regions[0], [element] * 2, [copy.location] * 2)
        with ir.InsertionPoint(body):
            ir.Operation.create("linalg.yield", [], [body.arguments[0]])
        self.copies.add(copy)
        return copy.result

    def _follow(self, changed: set[ir.Value]) -> None:
        """Everything that reads what lies in blocks now does so, too."""
        for view in list(self.block.operations):
            op = view.operation
            if op.name in (*MOVES, "func.return") or op in self.copies:
                continue
            if any(operand in changed for operand in op.operands):
                self.propagation.place(op)
                changed.update(op.results)

    def _keep(self) -> None:
        """Every replica has what it began with: new weights where it had all of them."""
        end, kept = self._end(), list[int]()
        for k, number in enumerate(ir.DenseI64ArrayAttr(self.function.attributes[FOLLOWS])):
            if number < 0:
                continue
            old, new = self.block.arguments[number], end.operands[k]
            wanted, have = self._placement(old), self._placement(new)
            if wanted.along[self.axis] == have.along[self.axis]:
                kept.append(k)
            elif wanted.along[self.axis] == COPY:
                with ir.InsertionPoint(end), end.location:
                    gathered = ir.Operation.create(
                        "distir.all_gather",
                        [with_placement(new.type, have.with_axis(self.axis, COPY))],
                        [new],
                    ).result
                    end.operands[k] = self._copied(gathered, gathered.type)
                kept.append(k)
        self.function.attributes[KEPT] = ir.DenseI64ArrayAttr.get(kept)
