"""Messages become calls of MPI, steps leave a mark in the journal and the trace.

Module with the mpi dialect -> module without it, with the globals an engine sets and the functions
of runtime.mlir. (Upstream's own lowering bakes one MPI's constants in, leaves isend, irecv and wait
behind, and aborts on i1 and f16.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, llvm, memref

from avial_lab.compiler.codegen.runtime_calls import add_runtime
from avial_lab.compiler.ir.attributes import KERNEL
from avial_lab.compiler.ir.llvm_attributes import NOT_INLINED, tell_llvm
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import functions_in, itemsize_of, operations_in
from avial_lab.core.errors import PassError

LARGEST_COUNT = 2**31 - 1
"""What an MPI 3 count can say; above it the calls with 64-bit counts are used."""


@dataclass(frozen=True)
class MpiToLlvm:
    """Lower the mpi dialect and mark every step.

    before:  func.func @main(%a: memref<20xi32>) {
               call @task1(%a) {avial.step = 0}
               %e, %request = mpi.isend(%a, %tag, %dest, %comm) {avial.step = 1} …
    after:   func.func @_mlir_ciface_main(%descriptor: !llvm.ptr) {
               llvm.call @avial.begin(%0)  call @task1.local(%a)
               llvm.call @avial.begin(%1)  llvm.call @avial.isend(%address, %nbytes, …) …
               llvm.call @avial.end(%last)

    A step ends where the next begins, so that each costs one look at the clock.

    The entry takes what MLIR's C interface takes, one pointer to a descriptor for each storage,
    without the function in between: thousands of arrays are thousands of arguments then, not tens
    of thousands.
    """

    def __call__(self, module: ir.Operation) -> None:
        entries = [op for op in functions_in(module) if "avial.ranks" in op.attributes]
        if not entries:  # the ownership runtime, which this program calls, marks its own steps
            return
        with module.context, ir.Location.unknown(module.context):
            called = {"avial.begin", "avial.end"}
            for entry in entries:
                called |= _Entry(entry).lower()
            _make_local(module)
        add_runtime(module, called)

    def __str__(self) -> str:
        return "mpi-to-llvm"


@dataclass
class _Entry:
    """Lowers one entry function; `called` collects the runtime's functions it needs."""

    function: ir.Operation
    called: set[str] = field(default_factory=set)
    slots: dict[ir.Value, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    steps: dict[int, ir.Value] = field(default_factory=dict)
    used: int = 0

    def lower(self) -> set[str]:
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self.pointer = llvm.PointerType.get()
        ops = list(operations_in(self.function))
        _take_descriptors(self.function)
        with ir.InsertionPoint.at_block_begin(self.function.regions[0].blocks[0]):
            # Its size is known when every message has its slot.
            count = llvm.mlir_constant(ir.IntegerAttr.get(self.i64, 0))
            self.table = llvm.alloca(self.pointer, count, self.i64)
        self._mark_steps(ops)
        messages = [op for op in ops if op.name.startswith("mpi.")]
        for op in messages:
            self._lower(op)
        for op in reversed(messages):
            op.erase()
        if self.used:
            count.owner.attributes["value"] = ir.IntegerAttr.get(self.i64, self.used)
        else:
            self.table.owner.erase()
            count.owner.erase()
        return self.called

    # -- the journal and the trace -----------------------------------------------------------------

    def _mark_steps(self, ops: list[ir.Operation]) -> None:
        """A call of begin before the first operation of each step, of end after the last one's; of
        mid where a copy and its message meet.
        """
        open_step: tuple[int, ir.Operation] | None = None
        for op in ops:
            if "avial.step" not in op.attributes:
                if open_step is not None and op.name in ("scf.yield", "func.return"):
                    self._end(open_step)
                    open_step = None
                continue
            step = ir.IntegerAttr(op.attributes["avial.step"]).value
            if open_step is None or open_step[0] != step:
                with ir.InsertionPoint(op), op.location:
                    self._call("avial.begin", [self._step(step)])
            open_step = (step, op)
            del op.attributes["avial.step"]
            if "avial.copy" in op.attributes:
                self._mid(step, op)
        if open_step is not None:
            self._end(open_step)

    def _mid(self, step: int, copy: ir.Operation) -> None:
        """After packing, before unpacking."""
        packs = ir.StringAttr(copy.attributes["avial.copy"]).value == "pack"
        del copy.attributes["avial.copy"]
        with ir.InsertionPoint.after(copy) if packs else ir.InsertionPoint(copy), copy.location:
            self._call("avial.mid", [self._step(step)])

    def _end(self, step: tuple[int, ir.Operation]) -> None:
        number, last = step
        with ir.InsertionPoint.after(last), last.location:
            self._call("avial.end", [self._step(number)])

    def _step(self, step: int) -> ir.Value:
        return llvm.mlir_constant(ir.IntegerAttr.get(self.i64, step))

    # -- messages ----------------------------------------------------------------------------------

    def _lower(self, op: ir.Operation) -> None:
        kind = op.name.removeprefix("mpi.")
        place = op.location
        if place.is_a_name() and kind != "comm_rank":
            place = place.child_loc  # a message's name is not that of its address
        with ir.InsertionPoint(op), place:
            if kind == "comm_world":
                return  # its handle is avial_comm, which the runtime's functions read
            if kind == "comm_rank":
                rank = self._call("avial.rank", [], self.i32)
                op.results[1].replace_all_uses_with(rank)
            elif kind in ("isend", "irecv"):
                self._start(kind, op)
            elif kind in ("send", "recv"):
                self._call_message(kind, op)
            elif kind == "wait":
                slot = self._slot_of(op)
                self._call("avial.wait", [self._slot(slot)])
                self.free.append(slot)
            elif kind == "barrier":
                self._call("avial.barrier", [])
            else:
                raise PassError(f"{op.name} is not yet lowered", span=span_of(op.location))

    def _start(self, kind: str, op: ir.Operation) -> None:
        if self.free:
            slot = self.free.pop()
        else:
            slot, self.used = self.used, self.used + 1
        self.slots[op.results[1]] = slot
        self._call_message(kind, op, slot)

    def _call_message(self, kind: str, op: ir.Operation, slot: int | None = None) -> None:
        buffer, tag, peer, _ = op.operands
        address, nbytes = self._address(buffer, op)
        large = "_large" if nbytes > LARGEST_COUNT else ""
        size = llvm.mlir_constant(ir.IntegerAttr.get(self.i64, nbytes))
        request = [] if slot is None else [self._slot(slot)]
        self._call(f"avial.{kind}{large}", [address, size, peer, tag, *request])

    def _slot_of(self, wait: ir.Operation) -> int:
        request = wait.operands[0]
        if request not in self.slots:
            raise PassError(
                "mpi.wait needs the request of an isend or irecv before it in the same block",
                span=span_of(wait.location),
            )
        return self.slots[request]

    def _slot(self, number: int) -> ir.Value:
        return llvm.getelementptr(self.pointer, self.table, [], [number], self.i64, None)

    def _address(self, buffer: ir.Value, op: ir.Operation) -> tuple[ir.Value, int]:
        """Where the buffer's first element lies, and how many bytes it has."""
        kind = ir.MemRefType(buffer.type)
        strides, offset = kind.get_strides_and_offset()
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        if not kind.has_static_shape or offset == dynamic or list(strides) not in ([], [1]):
            raise PassError(
                f"a message of type {kind} is not one stretch of known size",
                span=span_of(op.location),
                hint="pack it into a buffer of rank 1",
            )
        nbytes = itemsize_of(kind.element_type)
        for extent in kind.shape:
            nbytes *= extent
        start = memref.extract_aligned_pointer_as_index(buffer)
        if offset:
            skipped = offset * itemsize_of(kind.element_type)
            start = arith.addi(start, arith.constant(ir.IndexType.get(), skipped))
        number = arith.index_cast(self.i64, start)
        return llvm.inttoptr(self.pointer, number), nbytes

    def _call(
        self, name: str, operands: list[ir.Value], result: ir.Type | None = None
    ) -> ir.Value | None:
        self.called.add(name)
        op = llvm.CallOp(
            result,
            operands,
            [],
            [],
            callee=ir.FlatSymbolRefAttr.get(name),
        )
        return op.result if result is not None else None


def _take_descriptors(entry: ir.Operation) -> None:
    """The entry's arrays come by pointers to their descriptors, under the name of the C
    interface.
    """
    block = entry.regions[0].blocks[0]
    arrays = list(block.arguments)
    start = ir.InsertionPoint.at_block_begin(block)
    pointer = llvm.PointerType.get()
    for array in arrays:
        descriptor = block.add_argument(pointer, array.location)
        with start, array.location:
            fields = llvm.load(_descriptor_type(ir.MemRefType(array.type)), descriptor)
            cast = ir.Operation.create("builtin.unrealized_conversion_cast", [array.type], [fields])
        array.replace_all_uses_with(cast.result)
    for _ in arrays:
        block.erase_argument(0)
    name = ir.StringAttr(entry.attributes["sym_name"]).value
    entry.attributes["sym_name"] = ir.StringAttr.get(f"_mlir_ciface_{name}")
    kind = ir.FunctionType.get([pointer] * len(arrays), [])
    entry.attributes["function_type"] = ir.TypeAttr.get(kind)
    for attribute in ("llvm.emit_c_interface", "arg_attrs"):
        if attribute in entry.attributes:
            del entry.attributes[attribute]


def _descriptor_type(kind: ir.MemRefType) -> ir.Type:
    """MLIR's descriptor: allocated and aligned pointer, offset, sizes, strides."""
    extents = f", array<{kind.rank} x i64>" * 2 if kind.rank else ""
    return ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{extents})>")


def _make_local(module: ir.Operation) -> None:
    """Functions get a name no C library has (`@malloc` is `@malloc.local`), internal linkage, and
    stay functions.

    Internal, or the dynamic linker could bind calls to a symbol of that name in the program that
    loads us.

    Their arguments of known shape are passed as bare pointers. They are not inlined: compile time
    stays linear in the number of steps, and a profile shows the task.
    """
    renamed: dict[str, ir.Attribute] = {}
    for op in module.regions[0].blocks[0].operations:
        function = op.operation
        if function.name != "func.func" or len(function.regions[0].blocks) == 0:
            continue
        if "avial.ranks" in function.attributes:
            continue
        function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        if KERNEL in function.attributes:
            continue  # a device knows it by its name
        old = ir.StringAttr(function.attributes["sym_name"]).value
        renamed[old] = ir.FlatSymbolRefAttr.get(f"{old}.local")
        function.attributes["sym_name"] = ir.StringAttr.get(f"{old}.local")
        if "avial.arch" in function.attributes:
            tell_llvm(function, NOT_INLINED)
            if all(
                _has_fixed_layout(argument.type)
                for argument in function.regions[0].blocks[0].arguments
            ):
                function.attributes["llvm.bareptr"] = ir.UnitAttr.get()
    for op in operations_in(module):
        if op.name in ("func.call", "func.constant"):
            key = "callee" if op.name == "func.call" else "value"
            target = ir.FlatSymbolRefAttr(op.attributes[key]).value
            if target in renamed:
                op.attributes[key] = renamed[target]


def _has_fixed_layout(kind: ir.Type) -> bool:
    """Whether a bare pointer says all of an argument; a number is passed as it is."""
    if not isinstance(kind, ir.MemRefType):
        return isinstance(kind, ir.IndexType | ir.IntegerType | ir.FloatType)
    if not kind.has_static_shape:
        return False
    strides, offset = kind.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return offset != dynamic and dynamic not in strides
