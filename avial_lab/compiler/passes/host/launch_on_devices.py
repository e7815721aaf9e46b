"""What runs on a device is put into its queue, not called.

Module whose entry calls functions that are marked with the arrays they are given -> the entry hands
each of them to the device's queue, with the arrays where they lie there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, llvm

from avial_lab.compiler.codegen.kernel_arguments import plain_words
from avial_lab.compiler.codegen.loops.launch_bodies import asked_for_bytes
from avial_lab.compiler.codegen.runtime_calls import call_of
from avial_lab.compiler.ir.attributes import (
    KERNEL,
    LAUNCH,
    LAUNCH_SIZES,
    LAUNCHER,
    NO_KERNEL,
    NOT_EMULATED,
    PLACES,
    QUEUED,
    SHARED,
    TOUCHES,
    WORKGROUP,
    WRITTEN,
)
from avial_lab.compiler.ir.dialects.avial import CAST
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.core.errors import PassError

_WORD = 8
"""Bytes; every argument begins at a whole one."""


@dataclass(frozen=True)
class LaunchOnDevices:
    """A call with `avial.launch`, the number of the array of each operand (-1: a number), becomes a
    launch: the function is handed a copy of its arguments when its turn comes.

    before:  call @S1(%A, %lo, %hi) {avial.launch = array<i64: 0, -1, -1>}
    after:   func.func private @S1.launch(%data: !llvm.ptr) { %A = … load %data …  call @S1(…) }
             %there = llvm.call @avial_there(%zero, %here)    where %A is on the device
             llvm.store …, %room    llvm.call @avial_launch(@S1.launch, %room, %bytes)

    One of a launcher stays a call, with the arrays where they are on the device; the call of a
    kernel's grid in it becomes the launch, with what the device needs to find the kernel.

    before:  call @S1_kernel.grid(%A, %lo, %x, %y, %z) {avial.queued = "S1_kernel"}
    after:   llvm.call @avial_launch_kernel(@S1_kernel.grid.launch, %room, %bytes, %sizes,
                                            @S1_kernel.image, @S1_kernel.name, @offsets, %arguments)

    %sizes are the blocks, the threads of one, and the bytes they share beside those of the kernel
    itself; the k-th argument of the kernel, a pointer or a number, is offsets[k] bytes into %room.
    The image is filled in later. A kernel that only real devices run has a null pointer in place of
    the function, and its name is followed by why.
    """

    def __call__(self, module: ir.Operation) -> None:
        calls = [op for op in operations_in(module) if LAUNCH in op.attributes]
        if not calls:
            return
        with module.context, ir.Location.unknown(module.context):
            _declare(module, _RUNTIME)
            if any(PLACES in call.attributes for call in calls):
                _declare(module, _STEPS)
            launchers = {
                text_attribute(each, "sym_name")
                for each in functions_in(module)
                if LAUNCHER in each.attributes
            }
            functions: dict[str, str] = {}
            for call in calls:
                if ir.FlatSymbolRefAttr(call.attributes["callee"]).value in launchers:
                    _call_launcher(call)
                else:
                    _launch(module, call, functions)
            for call in [op for op in operations_in(module) if QUEUED in op.attributes]:
                _queue(module, call, functions)

    def __str__(self) -> str:
        return "launch-on-devices"


_RUNTIME = """
llvm.func @avial_there(i64, !llvm.ptr) -> !llvm.ptr
llvm.func @avial_launch(!llvm.ptr, !llvm.ptr, i64)
llvm.func @avial_launch_kernel(
  !llvm.ptr, !llvm.ptr, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64)
"""

_STEPS = """
llvm.func @avial_step_on(i64, i64)
llvm.func @avial_step_uses(i64)
"""
"""For tasks, whose places are known; of phases the ownership runtime knows them."""

STEP = "avial.step"


def _declare(module: ir.Operation, text: str) -> None:
    start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
    declared = ir.Module.parse(text, module.context)
    for op in list(declared.body.operations):
        op.operation.clone(ip=start)


def _launch(module: ir.Operation, call: ir.Operation, functions: dict[str, str]) -> None:
    numbers = list(ir.DenseI64ArrayAttr(call.attributes[LAUNCH]))
    symbol = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    kinds = [_carried(operand.type, call) for operand in call.operands]
    offsets = _offsets(kinds)
    if symbol not in functions:
        functions[symbol] = _write_launched(module, call, symbol, kinds, offsets)
    i64, pointer = ir.IntegerType.get_signless(64), llvm.PointerType.get()
    with ir.InsertionPoint(call), call.location:
        if PLACES in call.attributes:
            _choose(call)
        room = _room(_entry_of(call), offsets[-1])
        for operand, kind, number, offset in zip(
            call.operands, kinds, numbers, offsets, strict=False
        ):
            value = _as_carried(operand, kind)
            if number >= 0:
                value = _moved(value, number)
            llvm.store(value, _slot(room, offset))
        signature = ir.FunctionType.get([pointer], [])
        function = func.ConstantOp(signature, functions[symbol]).result
        address = ir.Operation.create(CAST, [pointer], [function]).result
        size = llvm.mlir_constant(ir.IntegerAttr.get(i64, offsets[-1]))
        why = _why_no_kernel(module, symbol)
        if why:
            none = llvm.mlir_zero(pointer)
            said = _address_of(_text(module, f"{symbol}.why", why))
            nothing = llvm.mlir_constant(ir.IntegerAttr.get(i64, 0))
            words = [address, room, size, none, none, said, none, nothing]
            launched = call_of("avial_launch_kernel", words)
        else:
            launched = call_of("avial_launch", [address, room, size])
    if STEP in call.attributes:
        launched.attributes[STEP] = call.attributes[STEP]
    call.erase()


def _why_no_kernel(module: ir.Operation, symbol: str) -> str:
    called = next(f for f in functions_in(module) if text_attribute(f, "sym_name") == symbol)
    return text_attribute(called, NO_KERNEL) if NO_KERNEL in called.attributes else ""


def _text(module: ir.Operation, name: str, text: str) -> str:
    """A global of that name with the text, made once; its name."""
    start = module.regions[0].blocks[0]
    known = (view.operation for view in start.operations)
    if any(
        op.name == "llvm.mlir.global" and text_attribute(op, "sym_name") == name for op in known
    ):
        return name
    words = text.encode() + b"\0"
    declared = ir.Module.parse(
        f"llvm.mlir.global private unnamed_addr constant @t() : !llvm.array<{len(words)} x i8>",
        module.context,
    )
    made = declared.body.operations[0].operation.clone(ip=ir.InsertionPoint.at_block_begin(start))
    made.operation.attributes["sym_name"] = ir.StringAttr.get(name)
    made.operation.attributes["value"] = ir.StringAttr.get(words)
    return name


def _call_launcher(call: ir.Operation) -> None:
    """With the arrays where they are on the device."""
    numbers = list(ir.DenseI64ArrayAttr(call.attributes[LAUNCH]))
    with ir.InsertionPoint(call), call.location:
        if PLACES in call.attributes:
            _choose(call)
        for k, (operand, number) in enumerate(zip(call.operands, numbers, strict=True)):
            if number >= 0:
                there = _moved(_as_carried(operand, _carried(operand.type, call)), number)
                call.operands[k] = ir.Operation.create(CAST, [operand.type], [there]).result
    del call.attributes[LAUNCH]


_DIMENSIONS = 3


def _queue(module: ir.Operation, call: ir.Operation, functions: dict[str, str]) -> None:
    symbol = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    kernel = _kernel_of(module, call, symbol)
    name = text_attribute(kernel, "sym_name")
    kinds = [_carried(operand.type, call) for operand in call.operands]
    offsets = _offsets(kinds)
    if symbol not in functions:
        grid = next(f for f in functions_in(module) if text_attribute(f, "sym_name") == symbol)
        why = text_attribute(grid, NOT_EMULATED) if NOT_EMULATED in grid.attributes else ""
        functions[symbol] = "" if why else _write_launched(module, call, symbol, kinds, offsets)
        _describe(module, call, name, why, offsets)
    i64, pointer = ir.IntegerType.get_signless(64), llvm.PointerType.get()
    threads = list(ir.DenseI64ArrayAttr(kernel.attributes[KERNEL]))
    with ir.InsertionPoint(call), call.location:
        room = _room(_entry_of(call), offsets[-1])
        sizes = _room(_entry_of(call), _WORD * (2 * _DIMENSIONS + 1))
        for operand, kind, offset in zip(call.operands, kinds, offsets, strict=False):
            llvm.store(_as_carried(operand, kind), _slot(room, offset))
        told = [arith.index_cast(i64, each) for each in list(call.operands)[-_sizes_of(call) :]]
        shared = [op for op in operations_in(kernel) if WORKGROUP in op.attributes]
        asked = asked_for_bytes(shared)
        known = (*threads, asked)[len(told) - _DIMENSIONS :]
        if asked:
            told, known = told[:-1], (asked,)
        fixed = [llvm.mlir_constant(ir.IntegerAttr.get(i64, each)) for each in known]
        for k, word in enumerate((*told, *fixed)):
            llvm.store(word, _slot(sizes, _WORD * k))
        if functions[symbol]:
            signature = ir.FunctionType.get([pointer], [])
            function = func.ConstantOp(signature, functions[symbol]).result
            address = ir.Operation.create(CAST, [pointer], [function]).result
        else:
            address = llvm.mlir_zero(pointer)
        known = [_address_of(f"{name}.{part}") for part in ("image", "name", "offsets")]
        size, count = (
            llvm.mlir_constant(ir.IntegerAttr.get(i64, number))
            for number in (offsets[-1], len(_places(call, offsets)))
        )
        call_of("avial_launch_kernel", [address, room, size, sizes, *known, count])
    call.erase()


def _kernel_of(module: ir.Operation, call: ir.Operation, grid: str) -> ir.Operation:
    """The one that it names; where that and its grid have become one with equal ones, theirs."""
    known = {text_attribute(f, "sym_name"): f for f in functions_in(module)}
    name = text_attribute(call, QUEUED)
    return known[name if name in known else grid.removesuffix(".grid")]


def _sizes_of(call: ir.Operation) -> int:
    """How many of its operands, the last, are sizes of the launch."""
    return LAUNCH_SIZES if WRITTEN in call.attributes else _DIMENSIONS


def _places(call: ir.Operation, offsets: Sequence[int]) -> list[int]:
    """Where the arguments of the kernel are, in bytes."""
    given = list(zip(call.operands, offsets, strict=False))[: -_sizes_of(call)]
    return [at + _WORD * word for operand, at in given for word in plain_words(operand.type)]


def _describe(
    module: ir.Operation, call: ir.Operation, name: str, why: str, offsets: Sequence[int]
) -> None:
    """What a device is told of the kernel, as constants."""
    places = _places(call, offsets)
    said = [name, why] if why else [name]
    texts = '"' + "".join(f"{each}\\00" for each in said) + '"', sum(len(each) + 1 for each in said)
    words = ", ".join(map(str, places))
    declared = ir.Module.parse(
        f"""
        llvm.mlir.global private unnamed_addr constant @{name}.name({texts[0]})
          : !llvm.array<{texts[1]} x i8>
        llvm.mlir.global private unnamed_addr constant @{name}.image("\\00") : !llvm.array<1 x i8>
        llvm.mlir.global private unnamed_addr constant @{name}.offsets(
          dense<[{words}]> : tensor<{len(places)}xi64>) : !llvm.array<{len(places)} x i64>
        """,
        module.context,
    )
    start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
    for op in list(declared.body.operations):
        op.operation.clone(ip=start)


def _address_of(symbol: str) -> ir.Value:
    return ir.Operation.create(
        "llvm.mlir.addressof",
        [llvm.PointerType.get()],
        attributes={"global_name": ir.FlatSymbolRefAttr.get(symbol)},
    ).result


def _choose(call: ir.Operation) -> None:
    """Where the next launches are, and what they may touch, where no phase says that."""
    i64 = ir.IntegerType.get_signless(64)
    (place,) = ir.DenseI64ArrayAttr(call.attributes[PLACES])
    step = ir.IntegerAttr(call.attributes[STEP]).value
    words = [llvm.mlir_constant(ir.IntegerAttr.get(i64, word)) for word in (place, step)]
    call_of("avial_step_on", words)
    for number in ir.DenseI64ArrayAttr(call.attributes[TOUCHES]):
        call_of("avial_step_uses", [llvm.mlir_constant(ir.IntegerAttr.get(i64, number))])


def _words(kind: ir.Type) -> int:
    """Two for a number, of up to 128 bits; of a descriptor pointers, offset, extents, strides."""
    if not str(kind).startswith("!llvm.struct<(ptr"):
        return 2
    rank = re.search(r"array<(\d+) x i64>", str(kind))
    return 3 + 2 * int(rank[1] if rank else 0)


def _carried(kind: ir.Type, call: ir.Operation) -> ir.Type:
    """What an argument of that type is in the memory that carries it."""
    if isinstance(kind, ir.MemRefType):
        extents = f", array<{kind.rank} x i64>" * 2 if kind.rank else ""
        return ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{extents})>")
    if isinstance(kind, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    if isinstance(kind, ir.IntegerType | ir.FloatType):
        return kind
    if isinstance(kind, ir.ComplexType):
        part = ir.ComplexType(kind).element_type
        return ir.Type.parse(f"!llvm.struct<({part}, {part})>")
    raise PassError(
        f"a number of type {kind} is not yet passed to a device",
        span=span_of(call.location),
        hint="put it into an array",
    )


def _offsets(kinds: Sequence[ir.Type]) -> list[int]:
    """Where each begins, in bytes, and then where the last ends."""
    offsets = [0]
    for kind in kinds:
        offsets.append(offsets[-1] + _words(kind) * _WORD)
    return offsets


def _entry_of(call: ir.Operation) -> ir.Block:
    """The first block of the function around: what is taken there is taken once."""
    around = call.parent
    while around is not None and around.name != "func.func":
        around = around.parent
    assert around is not None, "a call stands in a function"
    return around.operation.regions[0].blocks[0]


def _room(block: ir.Block, size: int) -> ir.Value:
    with ir.InsertionPoint.at_block_begin(block):
        count = llvm.mlir_constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), size))
        byte = ir.IntegerType.get_signless(8)
        return llvm.alloca(llvm.PointerType.get(), count, byte, alignment=16)


def _slot(room: ir.Value, offset: int) -> ir.Value:
    byte = ir.IntegerType.get_signless(8)
    return llvm.getelementptr(llvm.PointerType.get(), room, [], [offset], byte, None)


def _as_carried(value: ir.Value, kind: ir.Type) -> ir.Value:
    if isinstance(value.type, ir.IndexType):
        return arith.index_cast(kind, value)
    if isinstance(value.type, ir.MemRefType | ir.ComplexType):
        return ir.Operation.create(CAST, [kind], [value]).result
    return value


def _moved(descriptor: ir.Value, number: int) -> ir.Value:
    """The descriptor of the array where it lies on the device that the range at hand runs on."""
    i64, pointer = ir.IntegerType.get_signless(64), llvm.PointerType.get()
    here = llvm.extractvalue(pointer, descriptor, [1])
    which = llvm.mlir_constant(ir.IntegerAttr.get(i64, number))
    there = call_of("avial_there", [which, here], results=[pointer]).result
    for place in (0, 1):
        descriptor = llvm.insertvalue(descriptor, there, [place])
    return descriptor


def _write_launched(
    module: ir.Operation,
    call: ir.Operation,
    symbol: str,
    kinds: Sequence[ir.Type],
    offsets: Sequence[int],
) -> str:
    """The function that a queue calls with the arguments' memory."""
    called = next(f for f in functions_in(module) if text_attribute(f, "sym_name") == symbol)
    name = f"{symbol}.launch"
    pointer = llvm.PointerType.get()
    with ir.InsertionPoint(called), call.location:
        function = func.FuncOp(name, ([pointer], []), visibility="private")
    function.attributes[SHARED] = ir.UnitAttr.get()
    block = function.add_entry_block([ir.Location.name("data", call.location)])
    with ir.InsertionPoint(block), call.location:
        values = [
            _as_argument(llvm.load(kind, _slot(block.arguments[0], offset)), operand.type)
            for operand, kind, offset in zip(call.operands, kinds, offsets, strict=False)
        ]
        func.CallOp([], symbol, values)
        func.ReturnOp([])
    return name


def _as_argument(value: ir.Value, kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.IndexType):
        return arith.index_cast(kind, value)
    if isinstance(kind, ir.MemRefType | ir.ComplexType):
        return ir.Operation.create(CAST, [kind], [value]).result
    return value
