"""Loops that a device runs, as kernels: free loops are threads, and the rest is launched in order.

Functions of phases whose calls are marked for a device -> what one thread does, the loops over
blocks and threads that stand for it on an emulated device, and the launches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, product

from mlir import ir
from mlir.dialects import arith, func, memref, scf

from avial_lab.compiler.analysis.accesses.no_alias import has_no_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import ends_of, maps_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.codegen.loops.kernel_bodies import (
    Axis,
    axes_of,
    free_loops_in,
    is_launched_from_host,
    why_no_kernel,
)
from avial_lab.compiler.ir.attributes import (
    KERNEL,
    LAUNCH,
    LAUNCHER,
    NO_ALIAS,
    PLACES,
    QUEUED,
    SHARED,
)
from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.effects import symbols_in, text_attribute
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import constant_of, functions_in, operations_in
from avial_lab.compiler.ir.remarks import add_remark, listed
from avial_lab.machine.devices.cuda import MOST_BLOCKS

NAME = "form-kernels"

BLOCKS = {0: (1, 1, 1), 1: (256, 1, 1), 2: (64, 4, 1), 3: (64, 2, 2)}
"""Threads in x, y and z by the number of axes: 256, rows of which are whole lines of memory. (One
with no axis is a single thread.)
"""


@dataclass(frozen=True)
class FormKernels:
    """Parallel loops become a grid of blocks of threads, x the loop along memory.

    before:  func.func private @S1(%A, %low, %high, …) {
               affine.for %i = max(1, %low) to min(99, %high) { affine.for %j = 1 to 99 {…} } }
    after:   func.func private @S1_kernel(%A, %low, %high, %i0, %j0, %block…, %thread…)
                 {avial.kernel = array<i64: 64, 4, 1>} {
               %i = %i0 + %block_y * 4 + %thread_y    %j = %j0 + %block_x * 64 + %thread_x
               scf.if %i < min(99, %high) { scf.if %j < 99 {…} } }
             func.func private @S1_kernel.grid(%A, …, %x, %y, %z) { for all blocks, all threads … }
             func.func private @S1(%A, …) {avial.launcher} {
               call @S1_kernel.grid(%A, …, %x, %y, %z) {avial.queued = "S1_kernel"} }

    Loops around parallel ones stay in the launcher, which runs on the host. Where more blocks are
    needed than a grid may have in y or z, it launches several. What is no such loop is a kernel of
    one thread. Of a function whose arrays may overlap only the loops that are divided are parallel.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            launched = {
                ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                for op in operations_in(module)
                if LAUNCH in op.attributes and PLACES not in op.attributes
            }
            for function in functions_in(module):
                if text_attribute(function, "sym_name") in launched and not why_no_kernel(function):
                    _Launcher(module, function).write()

    def __str__(self) -> str:
        return NAME


class _Launcher:
    """Turns one function into launches."""

    def __init__(self, module: ir.Operation, function: ir.Operation) -> None:
        self.module, self.function = module, function
        self.index = ir.IndexType.get()

    def write(self) -> None:
        block = self.function.regions[0].blocks[0]
        scop = read_scop(self.function)
        distinct = has_no_aliases(self.function)
        loops = list(free_loops_in(block, scop)) if is_launched_from_host(block, scop) else []
        for loop in loops:
            self._parallel(loop, axes_of(loop, scop, alone=not distinct), scop, distinct)
        if not loops:
            self._single(block, distinct)
        self.function.attributes[LAUNCHER] = ir.UnitAttr.get()
        self.function.attributes[SHARED] = ir.UnitAttr.get()

    def _parallel(
        self, loop: ir.Operation, axes: Sequence[Axis], scop: Scop, distinct: bool
    ) -> None:
        order = sorted(range(len(axes)), key=lambda k: (axes[k].unit, k), reverse=True)
        threads = BLOCKS[len(axes)]
        kernel = _Kernel(self, loop, axes, order, threads)
        with ir.InsertionPoint(loop), loop.location:
            kernel.measure()
        kernel.write(distinct)
        with ir.InsertionPoint(loop), loop.location:
            kernel.launch()
        names = [scop.loops_of(axis.loop)[axis.dimension].name for axis in axes]
        where = (f"{names[k]} along {xyz}" for k, xyz in zip(order, "xyz", strict=False))
        shape = " x ".join(str(extent) for extent in threads[: len(axes)])
        add_remark(loop, NAME, f"{listed(list(where))}, in blocks of {shape} threads")
        loop.erase()

    def _single(self, block: ir.Block, distinct: bool) -> None:
        """All of it by one thread."""
        ops = [view.operation for view in block.operations][:-1]
        add_remark(self.function, NAME, "its loops run in order, on a single thread")
        kernel = _Kernel(self, self.function, (), (), BLOCKS[0])
        kernel.write(distinct, ops)
        with ir.InsertionPoint(block.operations[len(block.operations) - 1]), self.function.location:
            kernel.launch()

    def new_symbol(self) -> str:
        """Of letters and digits alone, as PTX has names."""
        stem = re.sub(r"\W", "_", text_attribute(self.function, "sym_name"), flags=re.ASCII)
        known = symbols_in(self.module)
        name, k = f"{stem}_kernel", 0
        while name in known:
            name, k = f"{stem}_kernel_{k}", k + 1
        return name


class _Kernel:
    """A loop as what a thread does. axes: outermost first. order: which of them is x, y and z."""

    def __init__(
        self,
        launcher: _Launcher,
        loop: ir.Operation,
        axes: Sequence[Axis],
        order: Sequence[int],
        threads: tuple[int, int, int],
    ) -> None:
        self.launcher, self.loop, self.axes = launcher, loop, axes
        self.order, self.threads = order, threads
        self.index = launcher.index
        self.name = launcher.new_symbol()
        self.lows: list[ir.Value] = []
        self.steps: list[ir.Value] = []
        self.counts: list[ir.Value] = []

    # -- before the launch -------------------------------------------------------------------------

    def measure(self) -> None:
        """Where each axis begins, and how many iterations it has at most."""
        highs: list[ir.Value] = []
        for axis in self.axes:
            low, high, step = self._hull(axis, highs) if axis.depends else self._ends(axis)
            none = self._constant(0)
            length = arith.maxsi(arith.subi(high, low), none)
            if self.counts:  # where an axis before has no iteration, its ends say nothing
                empty = arith.cmpi(arith.CmpIPredicate.eq, self.counts[-1], none)
                length = arith.select(empty, none, length)
            self.lows.append(low)
            highs.append(high)
            self.steps.append(step)
            self.counts.append(self._divided(length, step))

    def _ends(self, axis: Axis) -> tuple[ir.Value, ir.Value, ir.Value]:
        low, high, step = (
            self._constant(each) if isinstance(each, int) else each
            for each in bounds_of(axis.loop, axis.dimension)
        )
        return low, high, step

    def _hull(self, axis: Axis, highs: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The least and the greatest end that the axis has for any values of those before it: each
        bound grows or falls with each of them, so it is least and greatest at their ends.
        """
        one = self._constant(1)
        spans = {
            before.variable: (low, arith.subi(high, one))
            for before, low, high in zip(self.axes, self.lows, highs, strict=False)
        }
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

    # -- what a thread does ------------------------------------------------------------------------

    def write(self, distinct: bool, ops: Sequence[ir.Operation] = ()) -> None:
        """The kernel, and its grid for emulated devices; of `ops` where it is no loop."""
        moved = list(ops) or [self.loop]
        captured = Captured.by(chain.from_iterable((op, *operations_in(op)) for op in moved))
        self.arguments = captured.arguments
        kinds = [value.type for value in self.arguments]
        inputs = [*kinds, *[self.index] * (len(self.axes) + 6)]
        self.function = self._new_function(self.name, inputs, distinct)
        self.function.attributes[KERNEL] = ir.DenseI64ArrayAttr.get(list(self.threads))
        locations = [
            *(value.location for value in self.arguments),
            *(axis.variable.location for axis in self.axes),
            *(ir.Location.name(name, self.loop.location) for name in _PLACES),
        ]
        block = self.function.add_entry_block(locations)
        given = list(block.arguments)
        inside = dict(zip(self.arguments, given, strict=False))
        with ir.InsertionPoint(block), self.loop.location:
            for fixed in captured.chain:
                copy = fixed.clone()
                remap(copy, inside)
                inside.update(zip(fixed.results, copy.results, strict=True))
            variables = self._variables(given, inside)
            end = func.ReturnOp([]).operation
        if self.axes:
            self._guard(variables, inside, end)
        for op in ops:
            op.move_before(end)
        for op in operations_in(self.function.operation):
            remap(op, inside)
        _keep_in_thread(self.function.operation)
        self._write_grid(inputs, distinct)

    def _new_function(self, name: str, inputs: Sequence[ir.Type], distinct: bool) -> func.FuncOp:
        with ir.InsertionPoint(self.launcher.function), self.loop.location:
            function = func.FuncOp(name, (list(inputs), []), visibility="private")
        function.attributes[SHARED] = ir.UnitAttr.get()
        if distinct:
            function.attributes[NO_ALIAS] = ir.UnitAttr.get()
        return function

    def _variables(
        self, given: Sequence[ir.Value], inside: dict[ir.Value, ir.Value]
    ) -> list[ir.Value]:
        """Of each axis, in this thread: low + step * (block * threads + thread)."""
        first = len(self.arguments)
        lows, blocks, threads = given[first:-6], given[-6:-3], given[-3:]
        found: list[ir.Value] = []
        for k, low in enumerate(lows):
            xyz = self.order.index(k)
            skipped = arith.muli(blocks[xyz], self._constant(self.threads[xyz]))
            number = arith.addi(skipped, threads[xyz])
            step = self._step_inside(self.axes[k], inside)
            found.append(arith.addi(low, number if step is None else arith.muli(number, step)))
        return found

    def _step_inside(self, axis: Axis, inside: dict[ir.Value, ir.Value]) -> ir.Value | None:
        """None for 1."""
        if axis.loop.name == "affine.for":
            step = ir.IntegerAttr(axis.loop.attributes["step"]).value
        else:
            *_, step = bounds_of(axis.loop, axis.dimension, lambda value: inside.get(value, value))
        if isinstance(step, int):
            return None if step == 1 else self._constant(step)
        return step

    def _guard(
        self, variables: Sequence[ir.Value], inside: dict[ir.Value, ir.Value], end: ir.Operation
    ) -> None:
        """The loops' bodies, each under the condition that this thread is in its loop."""
        inside.update(zip((axis.variable for axis in self.axes), variables, strict=True))
        at = end
        for k, axis in enumerate(self.axes):
            with ir.InsertionPoint(at), axis.loop.location:
                low, high, _ = bounds_of(
                    axis.loop, axis.dimension, lambda value: inside.get(value, value)
                )
                is_in = self._below(variables[k], high)
                if axis.depends:
                    is_in = arith.andi(self._below(low, variables[k], equal=True), is_in)
                branch = scf.IfOp(is_in)
                with ir.InsertionPoint(branch.then_block):
                    at = scf.YieldOp([]).operation
            nested = [later.loop for later in self.axes[k + 1 :]]
            if axis.loop in nested:
                continue  # another dimension of the same loop comes first
            for op in body_of(axis.loop):
                if op not in nested:
                    op.move_before(at)

    def _below(
        self, one: ir.Value | int, other: ir.Value | int, *, equal: bool = False
    ) -> ir.Value:
        first, second = (self._constant(v) if isinstance(v, int) else v for v in (one, other))
        how = arith.CmpIPredicate.sle if equal else arith.CmpIPredicate.slt
        return arith.cmpi(how, first, second)

    # -- all threads, one after the other ----------------------------------------------------------

    def _write_grid(self, inputs: Sequence[ir.Type], distinct: bool) -> None:
        kinds = [*inputs[:-6], *[self.index] * 3]
        self.grid = self._new_function(f"{self.name}.grid", kinds, distinct)
        places = [ir.Location.name(name, self.loop.location) for name in ("x", "y", "z")]
        given = [argument.location for argument in self.function.arguments][:-6]
        block = self.grid.add_entry_block([*given, *places])
        arguments = list(block.arguments)
        numbers: dict[int, ir.Value] = {}
        with ir.InsertionPoint(block), self.loop.location:
            zero, one = self._constant(0), self._constant(1)
            extents = [*arguments[-3:], *map(self._constant, self.threads)]
            point = func.ReturnOp([]).operation
        for k in (2, 1, 0, 5, 4, 3):
            with ir.InsertionPoint(point), self.loop.location:
                loop = scf.ForOp(zero, extents[k], one)
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
            per_block = self._constant(self.threads[xyz])
            count = self.counts[k]
            if xyz > 0 and not _fits(self.axes[k], MOST_BLOCKS[xyz] * self.threads[xyz]):
                most = self._constant(MOST_BLOCKS[xyz] * self.threads[xyz])
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


_PLACES = ("block_x", "block_y", "block_z", "thread_x", "thread_y", "thread_z")


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
