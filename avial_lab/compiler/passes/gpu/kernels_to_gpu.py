"""What threads do, as functions of the gpu dialect.

Module of code for the CPU with kernels among it -> a module of each kernel alone, as devices take
it: pointers and numbers for arguments, the threads' numbers from the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.codegen.gpu_prints import PRINT, print_on_device
from avial_lab.compiler.codegen.kernel_arguments import array_of, plain_types
from avial_lab.compiler.codegen.loops.launch_bodies import asked_for_bytes, shared_places
from avial_lab.compiler.codegen.math.remainders import call_remainder, remainder_function
from avial_lab.compiler.ir.attributes import (
    BLOCKS,
    CHIP,
    KERNEL,
    LAUNCHES,
    NO_ALIAS,
    WORKGROUP,
)
from avial_lab.compiler.ir.effects import STORES, text_attribute
from avial_lab.compiler.ir.operations import functions_in, operations_in, operations_named
from avial_lab.compiler.ir.views import VIEWS
from avial_lab.machine.devices.cuda import OLDEST_CHIP, capability, first_chip_with


@dataclass(frozen=True)
class KernelsToGpu:
    """Each kernel in a module of its own, for the chip that it names, or else this one; nothing
    else stays.

    before:  func.func private @S1_kernel(%A: memref<4x5xf32>, %i, %block_x, …)
               {avial.kernel = array<i64: 64, 4, 1>, avial.no_alias}
    after:   gpu.module @S1_kernel [#nvvm.target<O = 3, chip = "sm_70">] {
               gpu.func @S1_kernel(%A: !llvm.ptr {llvm.noalias, llvm.readonly}, %i: index) kernel
                 attributes {known_block_size = array<i32: 64, 4, 1>} {
                 %array = … %A …   %block_x = gpu.block_id x … } }
    """

    chip: str = OLDEST_CHIP

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            block = module.regions[0].blocks[0]
            functions = {text_attribute(f, "sym_name"): f for f in functions_in(module)}
            kernels = [f for f in functions.values() if KERNEL in f.attributes]
            for kernel in reversed(kernels):  # each comes before those that stand there
                with ir.InsertionPoint.at_block_begin(block), kernel.location:
                    chip = text_attribute(kernel, CHIP) if CHIP in kernel.attributes else self.chip
                    _in_its_module(kernel, chip, _called_by(kernel, functions))
            for op in [view.operation for view in block.operations]:
                if op.name != "gpu.module":
                    op.erase()
            for name in list(module.attributes):
                del module.attributes[name]
            module.attributes["gpu.container_module"] = ir.UnitAttr.get()

    def __str__(self) -> str:
        return f"kernels-to-gpu{{chip={self.chip}}}"


_INTRINSICS = {
    f"math.{name}": f"llvm.{intrinsic}"
    for name, intrinsic in (
        ("absf", "fabs"), ("ceil", "ceil"), ("copysign", "copysign"), ("floor", "floor"),
        ("round", "round"), ("roundeven", "roundeven"), ("sqrt", "sqrt"), ("trunc", "trunc"),
    )
}  # fmt: skip
"""Functions that have one right value, which devices have instructions for: by their names nobody
makes calls of NVIDIA's library of them, whose roots are approximate.
"""


def _called_by(kernel: ir.Operation, functions: Mapping[str, ir.Operation]) -> list[ir.Operation]:
    """The functions that it calls, and those that they call: elementary functions as code."""
    found: dict[str, ir.Operation] = {}
    waiting = [kernel]
    while waiting:
        for op in operations_in(waiting.pop()):
            if op.name == "func.call":
                name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                if name not in found:
                    found[name] = functions[name]
                    waiting.append(functions[name])
    return list(found.values())


def _use_instructions(kernel: ir.Operation) -> None:
    for op in operations_in(kernel):
        if op.name in _INTRINSICS:
            with ir.InsertionPoint(op), op.location:
                call = ir.Operation.create(
                    "llvm.call_intrinsic",
                    [op.result.type],
                    list(op.operands),
                    attributes={
                        "intrin": ir.StringAttr.get(_INTRINSICS[op.name]),
                        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(op.operands), 0]),
                        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                    },
                )
            op.result.replace_all_uses_with(call.result)
            op.erase()


_HOPPER = 90
"""The capability whose own instructions came with PTX 8.0, while its chip takes 7.8 (PTX ISA,
release notes); of others a chip's first PTX has all.
"""


def _features(kernel: ir.Operation) -> str:
    newest = max((capability(first_chip_with(op.name)) for op in operations_in(kernel)), default=0)
    return ', features = "+ptx80"' if newest == _HOPPER else ""


_NUMBERS = [f"gpu.{what}_id" for what in ("block", "thread")]


def _in_its_module(kernel: ir.Operation, chip: str, called: Sequence[ir.Operation]) -> None:
    for each in (kernel, *called):
        _use_instructions(each)
    elements = dict.fromkeys(
        call_remainder(op)
        for each in (kernel, *called)
        for op in operations_named(each, "arith.remf")
    )
    name = text_attribute(kernel, "sym_name")
    target = ir.Attribute.parse(f'#nvvm.target<O = 3, chip = "{chip}"{_features(kernel)}>')
    around = ir.Operation.create(
        "gpu.module",
        attributes={"sym_name": ir.StringAttr.get(name), "targets": ir.ArrayAttr.get([target])},
        regions=1,
    )
    old = kernel.regions[0].blocks[0]
    _in_one_memory(kernel)
    given = list(old.arguments)[: -2 * len("xyz")]
    kinds = [plain for argument in given for plain in plain_types(argument.type)]
    facts = [fact for argument in given for fact in _facts(argument, NO_ALIAS in kernel.attributes)]
    threads = list(ir.DenseI64ArrayAttr(kernel.attributes[KERNEL]))
    known: dict[str, ir.Attribute] = {"avial.threads": ir.DenseI64ArrayAttr.get(threads)}
    if all(threads):
        known = {"known_block_size": ir.DenseI32ArrayAttr.get(threads)}
    with ir.InsertionPoint(around.regions[0].blocks.append()):
        function = ir.Operation.create(
            "gpu.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, [])),
                "arg_attrs": ir.ArrayAttr.get(facts),
                "gpu.kernel": ir.UnitAttr.get(),
                **{
                    name: kernel.attributes[name]
                    for name in (BLOCKS, LAUNCHES)
                    if name in kernel.attributes
                },
                **known,
            },
            regions=1,
        )
        inlined = ir.Attribute.parse("#llvm.linkage<internal>")  # and then gone
        for each in called:
            each.clone().operation.attributes["llvm.linkage"] = inlined
        for element in elements:
            made = ir.Module.parse(remainder_function(element))
            made.body.operations[0].operation.clone().attributes["llvm.linkage"] = inlined
    _move_body(function, old, given, kinds)
    _share_among_block(function)
    _find_what_is_asked_for(function, around)
    print_on_device(around, [op for op in operations_in(around) if op.name == PRINT])


def _in_one_memory(kernel: ir.Operation) -> None:
    """A thread's own memory has no space of its own here: LLVM finds it by its allocation."""
    for op in operations_in(kernel):
        for result in op.results:
            if isinstance(result.type, ir.MemRefType):
                kind = ir.MemRefType(result.type)
                if str(kind.memory_space) in _OWN_SPACES:
                    plain = ir.MemRefType.get(list(kind.shape), kind.element_type, kind.layout)
                    result.set_type(plain)


_OWN_SPACES = ("#gpu.address_space<private>", "5", "5 : i64", "5 : i32")


def _share_among_block(function: ir.Operation) -> None:
    """Memory of a block is what the function says that it has."""
    body = function.regions[0].blocks[0]
    shared = [op for op in operations_in(function) if WORKGROUP in op.attributes]
    nbytes = asked_for_bytes(shared)
    if nbytes:
        i64 = ir.IntegerType.get_signless(64)
        function.attributes["avial.shared_bytes"] = ir.IntegerAttr.get(i64, nbytes)
        _share_what_is_asked_for(body, shared)
        return
    for op in shared:
        memory = body.add_argument(op.result.type, op.location)
        op.result.replace_all_uses_with(memory)
        op.erase()
    if shared:
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(shared))
        function.attributes["workgroup_attributions"] = count
        facts = ir.DictAttr.get({"llvm.align": ir.IntegerAttr.get(count.type, _ALIGNED)})
        function.attributes["workgroup_attrib_attrs"] = ir.ArrayAttr.get([facts] * len(shared))


_ALIGNED = 16
"""Bytes; memory that is bytes to its block may be numbers of any size to its threads."""


def _share_what_is_asked_for(body: ir.Block, shared: Sequence[ir.Operation]) -> None:
    """More than a kernel may have by itself: parts of what each launch asks for."""
    kind = ir.Type.parse("memref<?xi8, #gpu.address_space<workgroup>>")
    with ir.InsertionPoint.at_block_begin(body), body.owner.location:
        everything = ir.Operation.create("gpu.dynamic_shared_memory", [kind], []).result
        for op, first in zip(shared, shared_places(shared), strict=False):
            own = ir.MemRefType(op.result.type)
            space = ir.MemRefType(kind).memory_space
            part = ir.MemRefType.get(list(own.shape), own.element_type, None, space)
            place = arith.constant(ir.IndexType.get(), first)
            view = memref.ViewOp(part, everything, place, []).result
            if part != own:
                view = memref.memory_space_cast(own, view)
            op.result.replace_all_uses_with(view)
    for op in shared:
        op.erase()


_ASKED_FOR = "shared_with_block"


def _find_what_is_asked_for(function: ir.Operation, module: ir.Operation) -> None:
    """Behind all that kernels of the module share: a symbol that has no size, and no other home
    (PTX ISA, 5.4: `.extern .shared`). MLIR's own lowering makes it one that is inside.
    """
    asked = [op for op in operations_in(function) if op.name == "gpu.dynamic_shared_memory"]
    if not asked:
        return
    start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
    declared = ir.Module.parse(
        f"llvm.mlir.global external @{_ASKED_FOR}() "
        f"{{addr_space = 3 : i32, alignment = {_ALIGNED} : i64}} : !llvm.array<0 x i8>"
    )
    declared.body.operations[0].operation.clone(ip=start)
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    for op in asked:
        with ir.InsertionPoint(op), op.location:
            begins = ir.Operation.create(
                "llvm.mlir.addressof",
                [ir.Type.parse("!llvm.ptr<3>")],
                attributes={"global_name": ir.FlatSymbolRefAttr.get(_ASKED_FOR)},
            ).result
            register = "nvvm.read.ptx.sreg.dynamic.smem.size"
            nbytes = arith.extui(i64, ir.Operation.create(register, [i32]).result)
            found = array_of(ir.MemRefType(op.result.type), [begins, nbytes])
        op.result.replace_all_uses_with(found)
        op.erase()


def _move_body(
    function: ir.Operation, old: ir.Block, given: Sequence[ir.Value], kinds: Sequence[ir.Type]
) -> None:
    old.append_to(function.regions[0])
    body = function.regions[0].blocks[0]
    before, numbers = len(body.arguments), list(body.arguments)[len(given) :]
    names = [argument.location for argument in given for _ in plain_types(argument.type)]
    for kind, place in zip(kinds, names, strict=True):
        body.add_argument(kind, place)
    words = iter(list(body.arguments)[before:])
    with ir.InsertionPoint.at_block_begin(body):
        for argument in given:
            own = [next(words) for _ in plain_types(argument.type)]
            is_array = isinstance(argument.type, ir.MemRefType)
            value = array_of(ir.MemRefType(argument.type), own) if is_array else own[0]
            argument.replace_all_uses_with(value)
        index = ir.IndexType.get()
        asked = [(name, dimension) for name in _NUMBERS for dimension in "xyz"]
        for number, (name, dimension) in zip(numbers, asked, strict=True):
            if not any(True for _ in number.uses):
                continue
            which = {"dimension": ir.Attribute.parse(f"#gpu<dim {dimension}>")}
            number.replace_all_uses_with(ir.Operation.create(name, [index], [], which).result)
    for _ in range(before):
        body.erase_argument(0)
    end = body.operations[len(body.operations) - 1].operation
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("gpu.return")
    end.erase()


def _facts(argument: ir.Value, distinct: bool) -> list[ir.Attribute]:
    """What LLVM is told of its words: of a pointer that nothing else points there, and whether it
    is only read.
    """
    plain: list[ir.Attribute] = [ir.DictAttr.get({}) for _ in plain_types(argument.type)]
    if isinstance(argument.type, ir.MemRefType) and distinct:
        known = {"llvm.noalias": ir.UnitAttr.get()}
        if _is_only_read(argument):
            known["llvm.readonly"] = ir.UnitAttr.get()
        plain[0] = ir.DictAttr.get(known)
    return plain


def _is_only_read(array: ir.Value) -> bool:
    for use in array.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            if not all(map(_is_only_read, op.results)):
                return False
        elif op.name in STORES or op.name not in ("memref.load", "memref.dim"):
            return False
    return True
