"""A phase as a function: a nest's body with its split loops cut to the range a rank is given.

A replicate or task in the program -> `func.func private @S1(arrays, scalars, low0, high0, low1,
high1)`, and the values to call it with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func

from avial_lab.compiler.analysis.accesses.view_maps import VIEWS
from avial_lab.compiler.ir.dialects.avial import buffer_of
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.llvm_attributes import NOT_INLINED, tell_llvm
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.loop_bounds import bounds_of, leaning, narrowed
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.core.errors import PassError

PHASES = ("avial.replicate", "avial.task")
"""The operations that are phases."""

SPLIT_DIMENSIONS = 2
AS_WRITTEN = "avial.as_written"
"""On a task, and on its function: its body is as a person wrote it, not in the normal form of
loops.
"""


OF_TASK = "avial.task"
"""On a function: the name of the task whose body it is."""

SPLIT = "avial.split"
"""On a loop: its iterations are divided, along this dimension (0 or 1) of the grid of ranks."""

LEAN = "avial.lean"
"""On a split loop in a loop over time: the iterations before the part and after it that are run too
in the first step, and by how many these are fewer with every step.
"""

HALO = "avial.halo"
"""On a replicate with such loops: the most iterations that any of them runs before and after."""


ALONE = "avial.alone"
"""On a schedule: why one of several ranks runs all of it."""


SYNC = "avial.sync"
"""On a schedule of phases: `levels` where all ranks wait for each other after each level."""

LEVEL = "avial.level"
"""On a phase, then: its level among its neighbours. Without one, as what several phases became, it
is a level of its own.
"""


def alone_in(module: ir.Operation) -> str | None:
    """Why one of several ranks runs the whole program; None where they share it."""
    for op in operations_in(module):
        if ALONE in op.attributes:
            return ir.StringAttr(op.attributes[ALONE]).value
    return None


@dataclass(frozen=True)
class Phase:
    """Call `symbol` with these values, then low and high of each split dimension."""

    symbol: str
    arguments: tuple[ir.Value, ...]


def split_loops(op: ir.Operation, dimension: int = 0) -> list[ir.Operation]:
    """The loops in `op` that are divided along that dimension."""
    return [inner for inner in operations_in(op) if dimension in split_dimensions(inner)]


def split_dimensions(loop: ir.Operation) -> list[int]:
    """For each of the loop's own dimensions the grid's, -1 where it is not divided."""
    if SPLIT not in loop.attributes:
        return [-1] * max(
            [len(block.arguments) for region in loop.regions for block in region], default=0
        )
    value = loop.attributes[SPLIT]
    if isinstance(value, ir.IntegerAttr):
        return [value.value]
    return list(ir.DenseI64ArrayAttr(value))


def reduced_arrays(op: ir.Operation) -> list[ir.Value]:
    """The arrays onto which the phase accumulates in each rank's own memory."""
    if "avial.reduced" not in op.attributes:
        return []
    places = list(ir.DenseI64ArrayAttr(op.attributes["avial.reduced"]))
    return [buffer_of(op.operands[place]) for place in places]


def halo_of(op: ir.Operation) -> tuple[int, int] | None:
    """The iterations before and after its part that a rank runs too; None where there are none, and
    parts can be cut further.
    """
    if HALO not in op.attributes:
        return None
    below, above = ir.DenseI64ArrayAttr(op.attributes[HALO])
    return below, above


# The function -------------------------------------------------------------------------------------


def outline_phase(op: ir.Operation, before: ir.Operation, symbol: str) -> Phase:
    """Move the body of `op` into the function `symbol`, before `before`; `op` is left empty.

    The function remembers the name of the task that it is of.
    """
    captured = Captured.by(operations_in(op))
    index = ir.IndexType.get()
    inputs = [value.type for value in captured.arguments] + [index] * (2 * SPLIT_DIMENSIONS)
    with ir.InsertionPoint(before), op.location:
        function = func.FuncOp(symbol, (inputs, []), visibility="private")
    function.attributes[OF_TASK] = op.attributes["name"]
    if AS_WRITTEN in op.attributes:
        function.attributes[AS_WRITTEN] = ir.UnitAttr.get()
    # It is called at one place, and would be optimised once more there.
    tell_llvm(function.operation, NOT_INLINED)
    region = op.regions[0]
    body = region.blocks[0]
    body.append_to(function.regions[0])
    inside: dict[ir.Value, ir.Value] = {}
    for value in captured.arguments:
        inside[value] = body.add_argument(value.type, value.location)
    ranges = [
        body.add_argument(index, ir.Location.name(name, op.location))
        for name in ("low0", "high0", "low1", "high1")
    ]
    start = ir.InsertionPoint.at_block_begin(body)
    for fixed in captured.chain:
        copy = fixed.clone(ip=start)
        remap(copy, inside)
        inside.update(zip(fixed.results, copy.results, strict=True))
    for inner in list(operations_in(function.operation)):
        remap(inner, inside)
    _narrow(function.operation, ranges)
    last = body.operations[len(body.operations) - 1]
    with ir.InsertionPoint(last), last.location:
        func.ReturnOp([])
    last.operation.erase()
    with ir.InsertionPoint(ir.Block.create_at_start(region, [])), op.location:
        ir.Operation.create("omp.terminator")
    return Phase(symbol, tuple(captured.arguments))


@dataclass
class Captured:
    """What a part of a program uses from outside: `arguments` in order of first use, and a `chain`
    of constants, views and index arithmetic that is repeated inside.
    """

    arguments: list[ir.Value] = field(default_factory=list)
    chain: list[ir.Operation] = field(default_factory=list)
    _seen: set[ir.Value] = field(default_factory=set)

    @staticmethod
    def by(operations: Iterable[ir.Operation]) -> Captured:
        """What these, an operation before those in it, use of others."""
        captured = Captured()
        inside: set[ir.Value] = set()
        for inner in operations:
            for region in inner.regions:
                for block in region.blocks:
                    inside.update(block.arguments)
            for operand in inner.operands:
                if operand not in inside:
                    captured._add(operand)
            inside.update(inner.results)
        return captured

    def _add(self, value: ir.Value) -> None:
        if value in self._seen:
            return
        self._seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block) or not _repeated(owner.operation):
            self.arguments.append(value)
            return
        for operand in owner.operation.operands:
            self._add(operand)
        if owner.operation not in self.chain:
            self.chain.append(owner.operation)


def _repeated(op: ir.Operation) -> bool:
    """Whether it costs nothing, or says how numbers that are passed hang together."""
    return op.name in VIEWS or op.name in (
        "affine.apply",
        "affine.max",
        "affine.min",
        "arith.constant",
        "complex.constant",
        "memref.dim",
        "memref.get_global",
        "ub.poison",
    )


def remap(op: ir.Operation, inside: dict[ir.Value, ir.Value]) -> None:
    for k, operand in enumerate(op.operands):
        replacement = inside.get(operand)
        if replacement is not None:
            op.operands[k] = replacement


# Cutting loops to a range -------------------------------------------------------------------------


def _narrow(function: ir.Operation, ranges: Sequence[ir.Value]) -> None:
    """Cut every split loop to low <= variable < high of its dimension."""
    for loop in list(operations_in(function)):
        if SPLIT not in loop.attributes:
            continue
        for own, dimension in enumerate(split_dimensions(loop)):
            if dimension < 0:
                continue
            low, high = ranges[2 * dimension : 2 * dimension + 2]
            cut = _cut_leaning if LEAN in loop.attributes else narrowed
            loop = cut(loop, own, low, high)


def _cut_leaning(loop: ir.Operation, _own: int, low: ir.Value, high: ir.Value) -> ir.Operation:
    """To the part and what is run beyond it in this step of the time loop around."""
    below, above, fewer_below, fewer_above = ir.DenseI64ArrayAttr(loop.attributes[LEAN])
    del loop.attributes[LEAN]
    steps = parent_of(loop)
    assert steps is not None, "a loop that leans stands in a loop over time"
    time = steps.regions[0].blocks[0].arguments[0]
    return leaning(loop, time, (low, -below, fewer_below), (high, above, -fewer_above))


# The iterations that are divided ------------------------------------------------------------------


def split_space(op: ir.Operation) -> list[ir.Value | int]:
    """For each split dimension: lower and upper bound, step, offset and extent of what is owned.

    What the bounds of an outermost loop are is computed where the phase stands; of inner ones
    `avial.bounds` says it.
    """
    words: list[ir.Value | int] = []
    for dimension in range(SPLIT_DIMENSIONS):
        loops = split_loops(op, dimension)
        if not loops:
            words += [0, 1, 1, 0, 0]
            continue
        words += [*_bounds(op, loops, dimension), *_owned(op, dimension)]
    return words


def _bounds(
    op: ir.Operation, loops: Sequence[ir.Operation], dimension: int
) -> Sequence[ir.Value | int]:
    key = f"avial.bounds{dimension}"
    if key in op.attributes:
        return list(ir.DenseI64ArrayAttr(op.attributes[key]))
    loop = loops[0]
    own = split_dimensions(loop).index(dimension)
    for value in list(loop.operands):
        _draw_out(value, op)
    return bounds_of(loop, own)


def _draw_out(value: ir.Value, op: ir.Operation) -> None:
    """What a bound is computed from inside of `op` is computed before it."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block.owner != op:
        return
    if not is_pure(owner.operation):
        raise PassError(
            "the bounds of a split loop are computed inside of the replicate",
            span=span_of(owner.operation.location),
            hint="compute them before it",
        )
    for operand in owner.operation.operands:
        _draw_out(operand, op)
    owner.operation.move_before(op)


def _owned(op: ir.Operation, dimension: int) -> list[ir.Value | int]:
    key = f"avial.owned{dimension}"
    if key not in op.attributes:
        return [0, 0]
    return list(ir.DenseI64ArrayAttr(op.attributes[key]))
