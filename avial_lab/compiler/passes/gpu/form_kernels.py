"""Loops that a device runs, as kernels: free loops are threads, and the rest is launched in order.

Functions of phases and tasks whose calls are marked for a device -> what one thread does, the loops
over blocks and threads that stand for it on an emulated device, and the launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

from mlir import ir
from mlir.dialects import arith, func, memref, scf

from avial_lab.compiler.analysis.accesses.no_alias import has_no_aliases
from avial_lab.compiler.analysis.costs.launch_counts import launches_around
from avial_lab.compiler.analysis.parallelism.marked_loops import ends_of, maps_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.codegen.loops.kernel_bodies import (
    Axis,
    axes_of,
    first_without_kernel,
    free_loops_in,
    is_launched_from_host,
    launched_accesses,
)
from avial_lab.compiler.codegen.loops.kernel_functions import (
    NUMBERS,
    calls_on_devices,
    kernel_symbol,
    name_chip,
    refuse_kernel,
)
from avial_lab.compiler.codegen.loops.kernel_nests import distribute, draw_out
from avial_lab.compiler.ir.attributes import (
    BLOCKS,
    KERNEL,
    LAUNCHER,
    LAUNCHES,
    NO_ALIAS,
    NO_KERNEL,
    QUEUED,
    SHARED,
)
from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, text_attribute
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.nesting import body_of, end_of
from avial_lab.compiler.ir.operations import (
    LOOPS,
    constant_of,
    functions_in,
    itemsize_of,
    operations_in,
)
from avial_lab.compiler.ir.remarks import UNNAMED, add_remark, listed
from avial_lab.machine.constants import GPU_LINE_BYTES
from avial_lab.machine.devices.cuda import MOST_BLOCKS

NAME = "form-kernels"

MOST_BYTES = 16
"""That a thread loads of one array at a time: fewer leave memory idle, and more take registers."""

MOST_ROW_BYTES = 32
"""The same where it goes along rows, whose neighbours are then loaded once: on an H200 f32 in three
dimensions has 0.81 of the copy bandwidth with them, and 0.75 with half as many.
"""

ENOUGH_BLOCKS = 2048
"""For which threads may have as much: two times what a large GPU runs at once."""

THREADS = {0: (1, 1, 1), 1: (256, 1, 1), 2: (64, 4, 1), 3: (64, 4, 1)}
"""Threads in x, y and z by the number of axes: 256, rows of which are whole lines of memory. (One
with no axis is a single thread.)
"""


@dataclass(frozen=True)
class FormKernels:
    """Parallel loops become a grid of blocks of threads, x the loop along memory.

    before:  func.func private @S1(%A, %low, %high, …) {
               affine.for %i = max(1, %low) to min(99, %high) { affine.for %j = 1 to 99 {…} } }
    after:   func.func private @S1_kernel.element(%A, %low, %high, %i, %j) {…}
             func.func private @S1_kernel(%A, %low, %high, %i0, %j0, %block…, %thread…)
                 {avial.kernel = array<i64: 64, 4, 1>} {
               %i = %i0 + %block_y * 4 + %thread_y    %j = %j0 + %block_x * 64 + %thread_x
               scf.if %i < min(99, %high) and %j < 99 { call @S1_kernel.element(…, %i, %j) } }
             func.func private @S1_kernel.grid(%A, …, %x, %y, %z) { for all blocks, all threads … }
             func.func private @S1(%A, …) {avial.launcher} {
               call @S1_kernel.grid(%A, …, %x, %y, %z) {avial.queued = "S1_kernel"} }

    A thread has several rows, or elements, where that keeps memory busy. Loops around parallel ones
    stay in the launcher, which runs on the host. Where more blocks are needed than a grid may have
    in y or z, it launches several. What is no such loop is a kernel of one thread. Of a function
    whose arrays may overlap only the loops that are divided are parallel.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            launched = calls_on_devices(module)
            for function in functions_in(module):
                if text_attribute(function, "sym_name") not in launched or _is_done(function):
                    continue
                found = first_without_kernel(function)
                if found is None:
                    _Launcher(module, function).write()
                else:
                    refuse_kernel(function, *found, who=NAME)

    def __str__(self) -> str:
        return NAME


def _is_done(function: ir.Operation) -> bool:
    """Whether outline-launches has looked at it."""
    return LAUNCHER in function.attributes or NO_KERNEL in function.attributes


class _Launcher:
    """Turns one function into launches."""

    def __init__(self, module: ir.Operation, function: ir.Operation) -> None:
        self.module, self.function = module, function
        self.index = ir.IndexType.get()

    def write(self) -> None:
        block = self.function.regions[0].blocks[0]
        distinct = has_no_aliases(self.function)
        scop = self._rearranged(block) if distinct else read_scop(self.function)
        loops = list(free_loops_in(block, scop)) if is_launched_from_host(block, scop) else []
        between = list(launched_accesses(block, scop)) if loops else []
        for loop in loops:
            self._parallel(loop, axes_of(loop, scop, alone=not distinct), scop, distinct)
        for ops in between:
            self._single(ops, distinct, _behind(ops[-1]))
        if between:
            line = "what stands between its loops is done on a single thread"
            add_remark(self.function, NAME, line)
        if not loops:
            add_remark(self.function, NAME, "its loops run in order, on a single thread")
            self._single(body_of(self.function), distinct, end_of(self.function))
        self.function.attributes[LAUNCHER] = ir.UnitAttr.get()
        self.function.attributes[SHARED] = ir.UnitAttr.get()

    def _rearranged(self, block: ir.Block) -> Scop:
        """Loops in the form that has most threads."""
        scop = read_scop(self.function)
        for change in (distribute, draw_out):
            if not is_launched_from_host(block, scop):
                break
            changed = [change(loop, scop) for loop in list(free_loops_in(block, scop))]
            if any(changed):
                scop = read_scop(self.function)
        return scop

    def _parallel(
        self, loop: ir.Operation, axes: Sequence[Axis], scop: Scop, distinct: bool
    ) -> None:
        order = sorted(range(len(axes)), key=lambda k: (axes[k].unit, k), reverse=True)
        threads = THREADS[len(axes)]
        kernel = _Kernel(self, loop, axes, order, threads, launches_around(loop))
        with ir.InsertionPoint(loop), loop.location:
            kernel.measure()
        kernel.write(distinct)
        with ir.InsertionPoint(loop), loop.location:
            kernel.launch()
        names = [scop.loops_of(axis.loop)[axis.dimension].name for axis in axes]
        where = (f"{names[k]} along {xyz}" for k, xyz in zip(order, "xyz", strict=False))
        shape = " x ".join(str(extent) for extent in threads[: len(axes)])
        several = f" with {kernel.turns} of {names[kernel.along]} each" * (kernel.turns > 1)
        add_remark(loop, NAME, f"{listed(list(where))}, in blocks of {shape} threads{several}")
        loop.erase()

    def _single(self, ops: Sequence[ir.Operation], distinct: bool, behind: ir.Operation) -> None:
        """By one thread, launched before `behind`."""
        times = launches_around(behind)
        kernel = _Kernel(self, self.function, (), (), THREADS[0], times)
        kernel.write(distinct, ops)
        with ir.InsertionPoint(behind), self.function.location:
            kernel.launch()


class _Kernel:
    """A loop as what a thread does. axes: outermost first. order: which of them is x, y and z.
    launches: how often a call of the launcher launches it, where that is known.
    """

    def __init__(
        self,
        launcher: _Launcher,
        loop: ir.Operation,
        axes: Sequence[Axis],
        order: Sequence[int],
        threads: tuple[int, int, int],
        launches: float | None,
    ) -> None:
        self.launcher, self.loop, self.axes, self.launches = launcher, loop, axes, launches
        self.order, self.threads = order, threads
        self.index = launcher.index
        self.name = kernel_symbol(launcher.module, launcher.function)
        self.itemsize = self._itemsize()
        self.along, self.turns = self._several()
        self.lows: list[ir.Value] = []
        self.steps: list[ir.Value] = []
        self.counts: list[ir.Value] = []

    # -- before the launch -------------------------------------------------------------------------

    def measure(self) -> None:
        """Where each axis begins, and how many iterations it has at most."""
        spans: dict[ir.Value, tuple[ir.Value, ir.Value]] = {}
        for axis in self.axes:
            low, high, step = self._hull(axis, spans) if axis.depends else self._ends(axis)
            none = self._constant(0)
            length = arith.maxsi(arith.subi(high, low), none)
            spans[axis.variable] = (low, arith.subi(high, self._constant(1)))
            if self._begins_at_line(axis):
                line = arith.andi(low, self._constant(-(GPU_LINE_BYTES // self.itemsize)))
                before = arith.subi(low, line)
                length = arith.select(self._is(length, 0), none, arith.addi(length, before))
                low = line
            if self.counts:  # where an axis before has no iteration, its ends say nothing
                length = arith.select(self._is(self.counts[-1], 0), none, length)
            self.lows.append(low)
            self.steps.append(step)
            self.counts.append(self._divided(length, step))

    def _ends(self, axis: Axis) -> tuple[ir.Value, ir.Value, ir.Value]:
        low, high, step = (
            self._constant(each) if isinstance(each, int) else each
            for each in bounds_of(axis.loop, axis.dimension)
        )
        return low, high, step

    def _is(self, value: ir.Value, number: int) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.eq, value, self._constant(number))

    def _begins_at_line(self, axis: Axis) -> bool:
        """Whether the first threads along x may have nothing to do, so that all rows of threads
        begin at whole lines, where the array's rows do.
        """
        if len(self.axes) < 2 or axis != self.axes[self.order[0]] or not axis.unit or axis.depends:
            return False
        if axis.loop.name != "affine.for" or GPU_LINE_BYTES % (self.itemsize or 3):
            return False
        ends = ends_of(axis.loop)
        known = ends is not None and len(maps_of(axis.loop)[0].results) == 1
        at_line = known and ends is not None and ends[0] * self.itemsize % GPU_LINE_BYTES == 0
        return ir.IntegerAttr(axis.loop.attributes["step"]).value == 1 and not at_line

    def _hull(
        self, axis: Axis, spans: Mapping[ir.Value, tuple[ir.Value, ir.Value]]
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The least and the greatest end that the axis has for any values of those before it: each
        bound grows or falls with each of them, so it is least and greatest at their ends.
        """
        one = self._constant(1)
        sizes = list(ir.DenseI32ArrayAttr(axis.loop.attributes["operandSegmentSizes"]))
        operands = list(axis.loop.operands)
        given = operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]
        ends: list[ir.Value] = []
        for form, values, within, among in zip(
            maps_of(axis.loop), given, (arith.minsi, arith.maxsi), (arith.maxsi, arith.minsi),
            strict=True,
        ):  # fmt: skip
            found: list[ir.Value] = []
            for result in form.results:
                single = ir.AffineMap.get(form.n_dims, form.n_symbols, [result])
                corners = product(*(spans.get(value, (value,)) for value in values))
                found.append(_reduced(within, [_applied(single, corner) for corner in corners]))
            ends.append(_reduced(among, found))
        return ends[0], ends[1], one

    def _constant(self, number: int) -> ir.Value:
        return arith.constant(self.index, number)

    def _divided(self, count: ir.Value, by: ir.Value) -> ir.Value:
        """Rounded up."""
        if constant_of(by) == 1:
            return count
        more = arith.addi(count, arith.subi(by, self._constant(1)))
        return arith.divui(more, by)

    def _itemsize(self) -> int:
        """Of the largest element that is loaded or stored; 0 where there is none."""
        inside = operations_in(self.axes[-1].loop) if self.axes else []
        sizes = [
            itemsize_of(ir.MemRefType(op.operands[0 if op.name in LOADS else 1].type).element_type)
            for op in inside
            if op.name in ACCESSES
        ]
        return max(sizes, default=0)

    def _several(self) -> tuple[int, int]:
        """Along which axis a thread goes, and how often, so that enough is loaded at a time: along
        the last of x, y and z, whose neighbours are loaded once then. Once where iterations
        have loops of their own, or other numbers of iterations inside.
        """
        if not self.axes or any(axis.depends for axis in self.axes) or not self.itemsize:
            return 0, 1
        if any(op.name in (*LOOPS, "scf.while") for op in operations_in(self.axes[-1].loop)):
            return 0, 1
        turns = min(4, max(1, MOST_BYTES // self.itemsize))
        more = min(8, MOST_ROW_BYTES // self.itemsize)
        if len(self.axes) > 1 and turns < more and self._has_blocks(more):
            turns = more
        return self.order[-1], turns

    def _has_blocks(self, turns: int) -> bool:
        """Whether there are surely enough where each thread has so many of the last axis."""
        blocks = 1
        for xyz, k in enumerate(self.order):
            ends = ends_of(self.axes[k].loop)
            if ends is None or ends[1] is None:
                return False
            each = self.threads[xyz] * (turns if k == self.order[-1] else 1)
            blocks *= max(0, ends[1] - ends[0]) // each
        return blocks >= ENOUGH_BLOCKS

    def _iterations(self, xyz: int) -> int:
        """Of a block along x, y or z."""
        return self.threads[xyz] * (self.turns if self.order[xyz] == self.along else 1)

    # -- what a thread does ------------------------------------------------------------------------

    def write(self, distinct: bool, ops: Sequence[ir.Operation] = ()) -> None:
        """An iteration, the kernel, and its grid for emulated devices; of `ops` where it is no
        loop.
        """
        moved = list(ops) or [self.loop]
        captured = Captured.by(chain.from_iterable((op, *operations_in(op)) for op in moved))
        self.arguments = captured.arguments
        self.chain = captured.chain
        self.distinct = distinct
        places = [axis.variable.location for axis in self.axes]
        element, inside = self._function(f"{self.name}.element", places)
        inside.update(
            zip(
                (axis.variable for axis in self.axes),
                list(element.arguments)[len(self.arguments) :],
                strict=True,
            )
        )
        end = _end_of(element)
        nested = {axis.loop for axis in self.axes}
        for op in ops or [op for axis in self._loops() for op in body_of(axis.loop)]:
            if op not in nested:
                op.move_before(end)
        _keep_in_thread(element.operation)
        self._write_kernel(places)
        for op in operations_in(element.operation):
            remap(op, inside)
        self._write_grid(places)

    def _loops(self) -> list[Axis]:
        """The axes, those of one loop once."""
        return [axis for axis in self.axes if axis.dimension == 0]

    def _function(
        self, name: str, more: Sequence[ir.Location]
    ) -> tuple[func.FuncOp, dict[ir.Value, ir.Value]]:
        """A function of what the loop uses, and of `more` indices; what its values are called
        there.
        """
        kinds = [value.type for value in self.arguments] + [self.index] * len(more)
        with ir.InsertionPoint(self.launcher.function), self.loop.location:
            function = func.FuncOp(name, (kinds, []), visibility="private")
        function.attributes[SHARED] = ir.UnitAttr.get()
        if self.distinct:
            function.attributes[NO_ALIAS] = ir.UnitAttr.get()
        block = function.add_entry_block([*(v.location for v in self.arguments), *more])
        inside = dict(zip(self.arguments, block.arguments, strict=False))
        with ir.InsertionPoint(block), self.loop.location:
            for fixed in self.chain:
                copy = fixed.clone()
                remap(copy, inside)
                inside.update(zip(fixed.results, copy.results, strict=True))
            func.ReturnOp([])
        return function, inside

    def _write_kernel(self, places: Sequence[ir.Location]) -> None:
        """Which iterations are this thread's, and whether there are such."""
        numbers = [ir.Location.name(name, self.loop.location) for name in NUMBERS]
        kernel, inside = self._function(self.name, [*places, *numbers])
        kernel.attributes[KERNEL] = ir.DenseI64ArrayAttr.get(list(self.threads))
        name_chip(kernel.operation, self.launcher.function)
        kernel.attributes[BLOCKS] = ir.ArrayAttr.get([ir.StringAttr.get(b) for b in self._blocks()])
        if self.launches not in (None, 1):
            f64 = ir.F64Type.get()
            kernel.attributes[LAUNCHES] = ir.FloatAttr.get(f64, float(self.launches or 0))
        given = list(kernel.arguments)
        own = given[: len(self.arguments)]
        with ir.InsertionPoint(_end_of(kernel)), self.loop.location:
            variables = self._variables(given)
            steps = self._steps_inside(inside)
            values = [
                arith.addi(low, number if step is None else arith.muli(number, step))
                for low, number, step in zip(
                    given[len(self.arguments) :], variables, steps, strict=False
                )
            ]
            inside.update(zip((axis.variable for axis in self.axes), values, strict=True))
            guards = self._guards(values, inside)
            if self.turns == 1:
                self._under(guards, lambda: self._call_element([*own, *values]))
            else:
                self._go_along(own, values, steps, guards, inside)

    def _blocks(self) -> list[str]:
        """In words."""
        known = [
            f"ceil({name_of(self.axes[k].variable.location) or UNNAMED} / {self._iterations(xyz)})"
            for xyz, k in enumerate(self.order)
        ]
        return [*known, *["1"] * (len("xyz") - len(known))]

    def _variables(self, given: Sequence[ir.Value]) -> list[ir.Value]:
        """Of each axis the number of this thread's first iteration."""
        blocks, threads = given[-6:-3], given[-3:]
        found: list[ir.Value] = []
        for k in range(len(self.axes)):
            xyz = self.order.index(k)
            skipped = arith.muli(blocks[xyz], self._constant(self._iterations(xyz)))
            thread = threads[xyz]
            if k == self.along and xyz > 0 and self.turns > 1:
                thread = arith.muli(thread, self._constant(self.turns))
            found.append(arith.addi(skipped, thread))
        return found

    def _steps_inside(self, inside: dict[ir.Value, ir.Value]) -> list[ir.Value | None]:
        """None for 1."""
        found: list[ir.Value | None] = []
        for axis in self.axes:
            if axis.loop.name == "affine.for":
                step = ir.IntegerAttr(axis.loop.attributes["step"]).value
            else:
                *_, step = bounds_of(axis.loop, axis.dimension, lambda v: inside.get(v, v))
            known = step if isinstance(step, int) else constant_of(step)
            found.append(None if known == 1 else self._index(step))
        return found

    def _guards(
        self, values: Sequence[ir.Value], inside: dict[ir.Value, ir.Value]
    ) -> list[ir.Value]:
        """Of each axis whether the thread is in its loop."""
        found: list[ir.Value] = []
        for axis, value in zip(self.axes, values, strict=True):
            low, high, _ = bounds_of(axis.loop, axis.dimension, lambda v: inside.get(v, v))
            is_in = self._below(value, high)
            if axis.depends or self._begins_at_line(axis):
                is_in = arith.andi(self._below(low, value, equal=True), is_in)
            found.append(is_in)
        return found

    def _go_along(
        self,
        own: Sequence[ir.Value],
        values: Sequence[ir.Value],
        steps: Sequence[ir.Value | None],
        guards: Sequence[ir.Value],
        inside: dict[ir.Value, ir.Value],
    ) -> None:
        """Several iterations, as many as are in the loop; where all are, their number is known."""
        k = self.along
        axis, xyz = self.axes[k], self.order.index(self.along)
        apart = self._constant(1 if xyz > 0 else self.threads[0])
        if steps[k] is not None:
            apart = arith.muli(apart, steps[k])
        _, high, _ = bounds_of(axis.loop, axis.dimension, lambda v: inside.get(v, v))
        last = arith.addi(values[k], arith.muli(apart, self._constant(self.turns - 1)))
        others = [guard for number, guard in enumerate(guards) if number != k]

        def all_turns(count: ir.Value) -> None:
            loop = scf.ForOp(self._constant(0), count, self._constant(1))
            with ir.InsertionPoint(loop.body):
                value = arith.addi(values[k], arith.muli(loop.induction_variable, apart))
                self._call_element([*own, *values[:k], value, *values[k + 1 :]])
                scf.YieldOp([])

        def those_inside() -> None:
            left = arith.subi(self._index(high), values[k])
            all_turns(arith.minsi(self._divided(left, apart), self._constant(self.turns)))

        whole = scf.IfOp(_all([*others, self._below(last, high)]), has_else=True)
        with ir.InsertionPoint(whole.then_block):
            all_turns(self._constant(self.turns))
            scf.YieldOp([])
        with ir.InsertionPoint(whole.elseRegion.blocks[0]):
            self._under(guards, those_inside)
            scf.YieldOp([])

    def _under(self, conditions: Sequence[ir.Value], write: Callable[[], None]) -> None:
        if not conditions:
            write()
            return
        branch = scf.IfOp(_all(conditions))
        with ir.InsertionPoint(branch.then_block):
            write()
            scf.YieldOp([])

    def _call_element(self, arguments: Sequence[ir.Value]) -> None:
        func.CallOp([], f"{self.name}.element", list(arguments))

    def _below(
        self, one: ir.Value | int, other: ir.Value | int, *, equal: bool = False
    ) -> ir.Value:
        how = arith.CmpIPredicate.sle if equal else arith.CmpIPredicate.slt
        return arith.cmpi(how, self._index(one), self._index(other))

    def _index(self, value: ir.Value | int) -> ir.Value:
        return self._constant(value) if isinstance(value, int) else value

    # -- all threads, one after the other ----------------------------------------------------------

    def _write_grid(self, places: Sequence[ir.Location]) -> None:
        extents = [ir.Location.name(name, self.loop.location) for name in ("x", "y", "z")]
        grid, _ = self._function(f"{self.name}.grid", [*places, *extents])
        arguments = list(grid.arguments)
        numbers: dict[int, ir.Value] = {}
        point = _end_of(grid)
        with ir.InsertionPoint(point), self.loop.location:
            zero, one = self._constant(0), self._constant(1)
            ends = [*arguments[-3:], *map(self._constant, self.threads)]
        for k in (2, 1, 0, 5, 4, 3):
            with ir.InsertionPoint(point), self.loop.location:
                loop = scf.ForOp(zero, ends[k], one)
                with ir.InsertionPoint(loop.body):
                    point = scf.YieldOp([]).operation
            numbers[k] = loop.induction_variable
        with ir.InsertionPoint(point), self.loop.location:
            func.CallOp([], self.name, [*arguments[:-3], *(numbers[k] for k in range(6))])

    # -- the launch --------------------------------------------------------------------------------

    def launch(self) -> None:
        """At the insertion point; several where an axis has more blocks than a grid."""
        lows = list(self.lows)
        blocks: list[ir.Value] = [self._constant(1)] * 3
        outer: list[ir.InsertionPoint] = []
        for xyz, k in enumerate(self.order):
            per_block = self._constant(self._iterations(xyz))
            count = self.counts[k]
            if xyz > 0 and not _fits(self.axes[k], MOST_BLOCKS[xyz] * self._iterations(xyz)):
                most = self._constant(MOST_BLOCKS[xyz] * self._iterations(xyz))
                loop = scf.ForOp(self._constant(0), count, most)
                with ir.InsertionPoint(loop.body):
                    end = scf.YieldOp([]).operation
                outer.append(ir.InsertionPoint(end))
                outer[-1].__enter__()
                done = loop.induction_variable
                lows[k] = arith.addi(lows[k], arith.muli(done, self.steps[k]))
                count = arith.minsi(arith.subi(count, done), most)
            blocks[xyz] = self._divided(count, per_block)
        call = func.CallOp([], f"{self.name}.grid", [*self.arguments, *lows, *blocks])
        call.attributes[QUEUED] = ir.StringAttr.get(self.name)
        for point in reversed(outer):
            point.__exit__(None, None, None)


def _behind(op: ir.Operation) -> ir.Operation:
    """What follows it in its block."""
    everything = [view.operation for view in op.block.operations]
    return everything[everything.index(op) + 1]


def _end_of(function: func.FuncOp) -> ir.Operation:
    block = function.operation.regions[0].blocks[0]
    return block.operations[len(block.operations) - 1].operation


def _all(conditions: Sequence[ir.Value]) -> ir.Value:
    return _reduced(arith.andi, conditions)


def _keep_in_thread(kernel: ir.Operation) -> None:
    """What is allocated is each thread's own, and small."""
    for op in operations_in(kernel):
        if op.name == "memref.dealloc":
            op.erase()
        elif op.name == "memref.alloc":
            with ir.InsertionPoint(op), op.location:
                own = memref.alloca(ir.MemRefType(op.result.type), [], [])
            op.result.replace_all_uses_with(own)
            op.erase()


def _applied(form: ir.AffineMap, values: Sequence[ir.Value]) -> ir.Value:
    return ir.Operation.create(
        "affine.apply",
        [ir.IndexType.get()],
        list(values),
        attributes={"map": ir.AffineMapAttr.get(form)},
    ).result


def _reduced(combine: Callable[..., ir.Value], values: Sequence[ir.Value]) -> ir.Value:
    first, *rest = values
    for value in rest:
        first = combine(first, value)
    return first


def _fits(axis: Axis, most: int) -> bool:
    """Whether the axis surely has no more iterations than that."""
    ends = ends_of(axis.loop)
    return ends is not None and ends[1] is not None and ends[1] - ends[0] <= most
