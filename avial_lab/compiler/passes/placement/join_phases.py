"""Phases after each other that go over the same array: on a single rank one task, which reads it
once.

Module of replicates, converges and tasks, placed on one rank -> the same with fewer of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func

from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.ir.attributes import FUSED, NO_ALIAS, PHASES, SPLIT
from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.dialects.avial import SEGMENTS, buffer_of, operand_segments
from avial_lab.compiler.ir.effects import is_pure, text_attribute
from avial_lab.compiler.ir.nesting import body_of, end_of
from avial_lab.compiler.ir.operations import functions_in, nbytes_of, operations_in
from avial_lab.compiler.ir.phases import alone_in, on_cpu, touched_by
from avial_lab.compiler.ir.program import STRICT, is_strict
from avial_lab.compiler.ir.remarks import listed
from avial_lab.compiler.passes.loops.order.fuse_loops import FuseLoops
from avial_lab.compiler.passes.loops.order.interchange_loops import InterchangeLoops
from avial_lab.machine.cpu import this_cpu


@dataclass(frozen=True)
class JoinPhases:
    """Replicates beside each other become one task where fuse-loops makes one nest of theirs.

    before:  avial.replicate { x += A * u } {S1}  avial.replicate { y += transposed A * v } {S2}
    after:   avial.task { x += A * u  y += transposed A * v } {name = "S1", avial.fused = ["S1",
             "S2"]}

    That is tried on a copy, with the loops in the order that interchange-loops puts them into. On
    several `ranks` only a program that is left to one of them.
    """

    ranks: int = 1

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            if self.ranks > 1 and alone_in(module) is None:
                return
            for schedule in [op for op in operations_in(module) if op.name == "avial.schedule"]:
                join_in(schedule)

    def __str__(self) -> str:
        return "join-phases" if self.ranks == 1 else f"join-phases{{ranks={self.ranks}}}"


def joined_in(module: ir.Operation) -> dict[str, tuple[str, ...]]:
    """For each task that has taken the name of its first phase: the names of all of them."""
    found: dict[str, tuple[str, ...]] = {}
    for op in operations_in(module):
        if FUSED in op.attributes:
            names = names_of(op)
            if names[0] == text_attribute(op, "name"):
                found[names[0]] = tuple(names)
    return found


def names_of(phase: ir.Operation) -> list[str]:
    """Of the phases that it is."""
    if FUSED not in phase.attributes:
        return [text_attribute(phase, "name")]
    return [ir.StringAttr(name).value for name in ir.ArrayAttr(phase.attributes[FUSED])]


def join_in(op: ir.Operation) -> None:
    """The phases in each block of `op` that nothing stands between but arithmetic."""
    for region in op.regions:
        for block in region.blocks:
            before: _Trial | None = None
            for inner in [view.operation for view in block.operations]:
                if inner.name in PHASES:
                    may = may_join(inner) and FUSED not in inner.attributes
                    before = _joined(before, _Trial(inner)) if may else None
                elif not is_pure(inner):
                    before = None
                    join_in(inner)


def may_join(phase: ir.Operation) -> bool:
    """Whether it runs on the CPU, and nobody waits for it by hand, nor it for others."""
    waits = operand_segments(phase)[3] or any(True for _ in phase.results[0].uses)
    return on_cpu(phase) and not waits


def _joined(before: _Trial | None, trial: _Trial) -> _Trial:
    """A task of both where that is better, else the phase itself."""
    phase = trial.phase
    if before is None or before.phase.operands[0] != phase.operands[0]:
        return trial
    if not have_common(before.phase, phase):
        return trial
    apart = before.nests.count() + trial.nests.count()
    together = before.nests.followed_by(trial.nests)
    if together.count() == apart:
        return _Trial(phase)
    names = [*names_of(before.phase), *names_of(phase)]
    why = f"{listed(names)} run as one task on one rank: they access the same array"
    task = as_joined(before.phase, phase, "avial.task", (why,))
    for op in operations_in(task):
        if SPLIT in op.attributes:
            del op.attributes[SPLIT]
    return _Trial(task, together)


def as_joined(
    before: ir.Operation, phase: ir.Operation, kind: str, why: Sequence[str]
) -> ir.Operation:
    """A task or replicate (`kind`) in place of the two, with what stands in both."""
    names = [*names_of(before), *names_of(phase)]
    reads, writes = (touched_by((before, phase), segment) for segment in (1, 2))
    made = ir.Operation.create(
        kind,
        [phase.results[0].type],
        [phase.operands[0], *reads, *writes],
        attributes={
            "name": before.attributes["name"],
            SEGMENTS: ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), 0]),
            "avial.why": ir.ArrayAttr.get([ir.StringAttr.get(line) for line in why]),
            FUSED: ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names]),
        },
        regions=1,
        loc=before.location,
        ip=ir.InsertionPoint(phase),
    )
    phase.regions[0].blocks[0].append_to(made.regions[0])
    start = made.regions[0].blocks[0].operations[0].operation
    for op in body_of(before):
        op.move_before(start)
    for op in (before, phase):
        op.erase()
    return made


def have_common(a: ir.Operation, b: ir.Operation) -> bool:
    """Whether both are given some array of two dimensions or more, or one that is not in a core's
    own cache: of others there is nothing to try.
    """
    given = (set(touched_by([each], 1) + touched_by([each], 2)) for each in (a, b))
    kinds = [ir.MemRefType(buffer_of(value).type) for value in set.intersection(*given)]
    return any(len(kind.shape) > 1 or _exceeds(kind, this_cpu().l2_bytes) for kind in kinds)


def _exceeds(kind: ir.MemRefType, nbytes: int) -> bool:
    return kind.has_static_shape and nbytes_of(kind) > nbytes


class _Trial:
    """A phase, and what its nests become where they are a function of their own: tried when it is
    asked for.
    """

    def __init__(self, phase: ir.Operation, nests: _Nests | None = None) -> None:
        self.phase = phase
        self._nests = nests

    @property
    def nests(self) -> _Nests:
        if self._nests is None:
            self._nests = _Nests.of(self.phase)
        return self._nests


@dataclass
class _Nests:
    """A module of one function: copies of nests, their loops in order; and what stands there for
    the values that they use from outside (`inside`).
    """

    module: ir.Operation
    inside: dict[ir.Value, ir.Value]
    fused: bool = False

    @staticmethod
    def of(phase: ir.Operation) -> _Nests:
        bodies = body_of(phase)
        captured = Captured.by(inner for op in bodies for inner in (op, *operations_in(op)))
        with phase.location:
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                kinds = [value.type for value in captured.arguments]
                function = func.FuncOp("trial", (kinds, []))
            function.attributes[NO_ALIAS] = ir.UnitAttr.get()
            if is_strict(phase):
                module.operation.attributes[STRICT] = ir.UnitAttr.get()
            names = [value.location for value in captured.arguments]
            block = ir.Block.create_at_start(function.regions[0], kinds, names)
            inside: dict[ir.Value, ir.Value] = dict(
                zip(captured.arguments, block.arguments, strict=True)
            )
            with ir.InsertionPoint(block):
                for op in (*captured.chain, *bodies):
                    copy = op.clone().operation
                    for each in (copy, *operations_in(copy)):
                        remap(each, inside)
                    inside.update(zip(op.results, copy.results, strict=True))
                func.ReturnOp([])
        InterchangeLoops()(module.operation)
        given = (*captured.arguments, *(v for op in captured.chain for v in op.results))
        return _Nests(module.operation, {value: inside[value] for value in given})

    def count(self) -> int:
        """How many are left once fuse-loops has been at them."""
        found = len(list(nearest_loops(self.module)))
        if self.fused or found < 2:
            return found
        copy = self.module.clone().operation
        FuseLoops()(copy)
        return len(list(nearest_loops(copy)))

    def followed_by(self, others: _Nests) -> _Nests:
        """Both as one function, fused; neither can be used any more."""
        (function,), (other,) = (functions_in(each.module) for each in (self, others))
        block = function.regions[0].blocks[0]
        end = end_of(function)
        for value, theirs in others.inside.items():
            ours = self.inside.get(value)
            if ours is None and isinstance(theirs.owner, ir.Block):
                ours = self.inside[value] = block.add_argument(theirs.type, theirs.location)
            if ours is None:
                self.inside[value] = theirs
            else:
                theirs.replace_all_uses_with(ours)
        for op in body_of(other):
            op.move_before(end)
        kinds = [argument.type for argument in block.arguments]
        with self.module.context:
            kind = ir.FunctionType.get(kinds, [])
            function.attributes["function_type"] = ir.TypeAttr.get(kind)
        FuseLoops()(self.module)
        return _Nests(self.module, self.inside, fused=True)
