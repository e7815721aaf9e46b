"""Launches that the text writes, as kernels: a GPU runs the launch, an emulated one its loops.

Functions of GPU tasks with gpu.launch -> what one thread does, the launch that stands for it on an
emulated device, and calls that put kernels into a queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, func, memref

from avial_lab.compiler.codegen.loops.kernel_functions import (
    NUMBERS,
    calls_on_devices,
    kernel_symbol,
    name_chip,
    refuse_kernel,
)
from avial_lab.compiler.codegen.loops.launch_bodies import (
    INDICES,
    first_not_launched,
    memory_of,
    not_emulated,
)
from avial_lab.compiler.ir.attributes import (
    BLOCKS,
    KERNEL,
    LAUNCHER,
    NO_ALIAS,
    NOT_EMULATED,
    ON_DEVICE,
    QUEUED,
    SHARED,
    WORKGROUP,
    WRITTEN,
)
from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import (
    constant_of,
    functions_in,
    operations_in,
    operations_named,
)
from avial_lab.compiler.ir.remarks import add_remark

NAME = "outline-launches"


@dataclass(frozen=True)
class OutlineLaunches:
    """Each launch of a GPU task becomes a kernel, and the call of its grid.

    before:  func.func private @t(%A, %B) {
               gpu.launch blocks(…) in (%x, …) threads(…) in (%c64, …) { %i = gpu.global_id x … } }
    after:   func.func private @t_kernel(%A, %B, %block…, %thread…)
                 {avial.kernel = array<i64: 64, 1, 1>, avial.on_device} { %i = … %block_x … }
             func.func private @t_kernel.grid(%A, %B, %x, …, %shared) { gpu.launch … { … } }
             func.func private @t(%A, %B) {avial.launcher} {
               call @t_kernel.grid(%A, %B, %x, %y, %z, %c64, %c1, %c1, %c0)
                 {avial.queued = "t_kernel", avial.written} }

    A function that does something else beside its launches, or whose threads do what no kernel has
    yet, stays as it is and says why.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            launched = calls_on_devices(module)
            for function in functions_in(module):
                if text_attribute(function, "sym_name") not in launched:
                    continue
                launches = operations_named(function, "gpu.launch")
                if not launches:
                    continue
                found = first_not_launched(function)
                if found is None:
                    for launch in launches:
                        _Launch(module, function, launch).write()
                    function.attributes[LAUNCHER] = ir.UnitAttr.get()
                    function.attributes[SHARED] = ir.UnitAttr.get()
                else:
                    refuse_kernel(function, *found, who=NAME)

    def __str__(self) -> str:
        return NAME


_BLOCK, _THREAD, _GRID, _WIDTH = 0, 3, 6, 9
"""Where block ids, thread ids, the grid and a block begin in a launch's arguments."""


@dataclass
class _Launch:
    module: ir.Operation
    function: ir.Operation
    launch: ir.Operation
    threads: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        widths = [constant_of(value) for value in list(self.launch.operands)[3:6]]
        self.threads = tuple(0 if width is None else width for width in widths)
        self.body = self.launch.regions[0].blocks[0]
        self.index = ir.IndexType.get()
        self.name = kernel_symbol(self.module, self.function)

    def write(self) -> None:
        self._ask_for_numbers()
        inner = list(operations_in(self.launch))
        captured = Captured.by(inner)
        own = list(self.body.arguments)
        self.arguments = [value for value in captured.arguments if value not in own]
        self.chain = captured.chain
        self._write_kernel()
        grid, *shared = [list(self.launch.operands)[:6], *list(self.launch.operands)[6:]]
        place = self.launch.location
        with ir.InsertionPoint(self.launch), place:
            nbytes = arith.index_cast(self.index, shared[0]) if shared else self._constant(0)
            call = func.CallOp([], f"{self.name}.grid", [*self.arguments, *grid, nbytes])
        call.attributes[QUEUED] = ir.StringAttr.get(self.name)
        call.attributes[WRITTEN] = ir.UnitAttr.get()
        widths = self.threads[: max(1, _axes(self.threads))]
        shape = " x ".join(str(each) if each else "n" for each in widths)
        add_remark(self.launch, NAME, f"a kernel with blocks of {shape} threads")
        self._write_grid()

    def _ask_for_numbers(self) -> None:
        """What the launch hands its body is asked for by operations, as others write it."""
        arguments = list(self.body.arguments)
        with ir.InsertionPoint.at_block_begin(self.body), self.launch.location:
            for first, name in ((_BLOCK, "block_id"), (_THREAD, "thread_id"), (_GRID, "grid_dim")):
                for d, dimension in enumerate("xyz"):
                    if any(True for _ in arguments[first + d].uses):
                        asked = _ask(name, dimension, arguments[first + d].location)
                        arguments[first + d].replace_all_uses_with(asked)
            for d, width in enumerate(self.threads):
                if any(True for _ in arguments[_WIDTH + d].uses):
                    place = arguments[_WIDTH + d].location
                    known = self._constant(width) if width else _ask("block_dim", "xyz"[d], place)
                    arguments[_WIDTH + d].replace_all_uses_with(known)

    def _constant(self, number: int) -> ir.Value:
        return arith.constant(self.index, number)

    # -- what a thread does ------------------------------------------------------------------------

    def _function(
        self, name: str, more: tuple[str, ...]
    ) -> tuple[func.FuncOp, dict[ir.Value, ir.Value]]:
        """Of what the launch uses from outside, and so many indices; what is called how there."""
        kinds = [value.type for value in self.arguments] + [self.index] * len(more)
        with ir.InsertionPoint(self.function), self.launch.location:
            function = func.FuncOp(name, (kinds, []), visibility="private")
        function.attributes[SHARED] = ir.UnitAttr.get()
        if NO_ALIAS in self.function.attributes:
            function.attributes[NO_ALIAS] = ir.UnitAttr.get()
        names = [ir.Location.name(each, self.launch.location) for each in more]
        block = function.add_entry_block([*(v.location for v in self.arguments), *names])
        inside: dict[ir.Value, ir.Value] = dict(zip(self.arguments, block.arguments, strict=False))
        with ir.InsertionPoint(block), self.launch.location:
            for fixed in self.chain:
                copy = fixed.clone()
                remap(copy, inside)
                inside.update(zip(fixed.results, copy.results, strict=True))
        return function, inside

    def _write_kernel(self) -> None:
        function, inside = self._function(self.name, NUMBERS)
        function.attributes[KERNEL] = ir.DenseI64ArrayAttr.get(list(self.threads))
        function.attributes[BLOCKS] = ir.ArrayAttr.get(
            [ir.StringAttr.get(_in_words(value)) for value in list(self.launch.operands)[:3]]
        )
        function.attributes[ON_DEVICE] = ir.UnitAttr.get()
        name_chip(function.operation, self.function, operations_in(self.launch))
        block = function.operation.regions[0].blocks[0]
        numbers = list(block.arguments)[-len(NUMBERS) :]
        shared, own = memory_of(self.launch)
        with ir.InsertionPoint(block), self.launch.location:
            for memory in (*shared, *own):
                made = memref.alloca(ir.MemRefType(memory.type), [], [])
                if memory in shared:
                    made.owner.attributes[WORKGROUP] = ir.UnitAttr.get()
                inside[memory] = made
            for view in list(self.body.operations)[:-1]:
                copy = view.operation.clone()
                for op in (copy.operation, *operations_in(copy.operation)):
                    remap(op, inside)
                inside.update(zip(view.operation.results, copy.operation.results, strict=True))
            func.ReturnOp([])
        for op in list(operations_in(function.operation)):
            if op.name in INDICES and op.name != "gpu.grid_dim":
                with ir.InsertionPoint(op), op.location:
                    number = self._number(op, numbers)
                if number is not None:
                    op.result.replace_all_uses_with(number)
                    op.erase()

    def _number(self, op: ir.Operation, numbers: list[ir.Value]) -> ir.Value | None:
        """None for a width that only the device knows."""
        d = next(k for k, x in enumerate("xyz") if f"dim {x}" in str(op.attributes["dimension"]))
        block, thread = numbers[d], numbers[3 + d]
        if op.name == "gpu.block_id":
            return block
        if op.name == "gpu.thread_id":
            return thread
        if op.name == "gpu.block_dim":
            return self._constant(self.threads[d]) if self.threads[d] else None
        if self.threads[d]:
            width = self._constant(self.threads[d])
        else:
            width = _ask("block_dim", "xyz"[d], op.location)
        return arith.addi(arith.muli(block, width), thread)

    # -- all of them -------------------------------------------------------------------------------

    def _write_grid(self) -> None:
        """The launch itself, in a function of its own."""
        function, inside = self._function(f"{self.name}.grid", _SIZES)
        block = function.operation.regions[0].blocks[0]
        *sizes, shared = list(block.arguments)[-len(_SIZES) :]
        beyond = next((op for op in operations_in(self.launch) if not_emulated(op)), None)
        with ir.InsertionPoint(block), self.launch.location:
            for d, width in enumerate(self.threads):
                if width:
                    sizes[3 + d] = self._constant(width)
            if len(self.launch.operands) > len(sizes):
                i32 = ir.IntegerType.get_signless(32)
                sizes.append(arith.index_cast(i32, shared))
            end = func.ReturnOp([])
        if beyond is not None:
            function.attributes[NOT_EMULATED] = ir.StringAttr.get(_why_not_emulated(beyond))
            self.launch.erase()
            return
        self.launch.move_before(end.operation)
        for k, size in enumerate(sizes):
            self.launch.operands[k] = size
        for op in operations_in(self.launch):
            remap(op, inside)


_SIZES = ("x", "y", "z", "wide", "high", "deep", "shared")


def _why_not_emulated(op: ir.Operation) -> str:
    span = span_of(op.location)
    where = f" (line {span.line})" if span is not None else ""
    return f"{op.name}{where} is what only a GPU does: an emulated one does not"


def _ask(name: str, dimension: str, place: ir.Location) -> ir.Value:
    which = {"dimension": ir.Attribute.parse(f"#gpu<dim {dimension}>")}
    with place:
        return ir.Operation.create(f"gpu.{name}", [ir.IndexType.get()], [], which).result


def _axes(threads: tuple[int, ...]) -> int:
    return max((d + 1 for d, width in enumerate(threads) if width != 1), default=1)


def _in_words(value: ir.Value) -> str:
    known = constant_of(value)
    if known is not None:
        return str(known)
    span = span_of(value.location)
    return f"as line {span.line} says" if span is not None else "known at run time"
