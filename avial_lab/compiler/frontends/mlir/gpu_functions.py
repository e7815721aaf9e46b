"""Kernels in modules of their own, as other compilers hand them over, in the launches of them.

gpu.launch_func and gpu.module -> gpu.launch, and the functions that kernels call beside the others.
"""

from __future__ import annotations

from mlir import ir, passmanager
from mlir.dialects import arith

from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.program import functions_of
from avial_lab.core.errors import VerifyError

SEGMENTS = "operandSegmentSizes"
MEMORY_OF_BLOCK = "workgroup_attributions"

INDICES = 12
"""The first arguments of a launch's body: block, thread, grid and block sizes, x y z each."""

_CLUSTERS, _DYNAMIC, _GIVEN, _OBJECT = slice(7, 10), 10, 11, 12
"""Among the operands of gpu.launch_func, behind those it waits for, its grid and its block."""


def launch_in_place(module: ir.Module) -> None:
    """Each launch of a kernel by its name becomes a launch with the kernel's body; modules of
    kernels are gone then, and what a compiler has made of those in SPIR-V beside them.

    before:  gpu.launch_func @m::@k blocks in (%g, …) threads in (%b, …) args(%A : …)
             gpu.module @m { gpu.func @k(%A: …) kernel { … gpu.return } }
    after:   gpu.launch blocks(…) in (%g, …) threads(…) in (%b, …) { … gpu.terminator }

    Raises VerifyError at a launch whose kernel is not there in the gpu dialect.
    """
    for lowered in operations_named(module.operation, "spirv.module"):
        lowered.erase()  # the same kernels, for a runtime that is not here
    modules = operations_named(module.operation, "gpu.module")
    launches = operations_named(module.operation, "gpu.launch_func")
    if not modules and not launches:
        return
    with module.context:
        for each in modules:
            _move_helpers_out(each, module)
        kernels = {
            f"@{_name(each)}::@{_name(kernel)}": kernel
            for each in modules
            for kernel in operations_named(each, "gpu.func")
        }
        for launch in launches:
            _put_in_place(launch, kernels)
        for each in modules:
            each.erase()
        if "gpu.container_module" in module.operation.attributes:
            del module.operation.attributes["gpu.container_module"]


def write_out_threads(module: ir.Module) -> None:
    """Functions that ask which thread they are of are part of the launches that call them.

    before:  gpu.launch … { func.call @k(%A) … }
             func.func private @k(%a) { %t = gpu.thread_id x  affine.store %v, %a[symbol(%t)] … }
    after:   gpu.launch … { %t = gpu.thread_id x  memref.store %v, %A[%t] … }

    What is affine there has a thread's number as a symbol, which it is not in a launch. Functions
    of several blocks stay.
    """
    functions = {_name(op): op for op in operations_named(module.operation, "func.func")}
    for launch in operations_named(module.operation, "gpu.launch"):
        for _ in range(_MOST_DEPTH):
            calls = [
                (call, functions[name])
                for call in operations_named(launch, "func.call")
                if _asks(name := _callee(call), functions, set())
            ]
            for call, function in calls:
                _write_out(call, function)


_MOST_DEPTH = 16
"""Of calls in calls."""


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _asks(name: str, functions: dict[str, ir.Operation], seen: set[str]) -> bool:
    """Whether it, or what it calls, holds operations of the gpu dialect."""
    function = functions.get(name)
    if function is None or name in seen or len(function.regions[0].blocks) != 1:
        return False
    seen.add(name)
    return any(
        op.name.startswith("gpu.")
        or (op.name == "func.call" and _asks(_callee(op), functions, seen))
        for op in operations_in(function)
    )


def _write_out(call: ir.Operation, function: ir.Operation) -> None:
    copy = function.clone(ir.InsertionPoint(function)).operation
    passmanager.PassManager.parse("func.func(lower-affine)", function.context).run(copy)
    block = copy.regions[0].blocks[0]
    for argument, given in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(given)
    *body, end = [view.operation for view in block]
    for op in body:
        op.move_before(call)
    for result, value in zip(call.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    copy.erase()


def refuse_only_kernels(module: ir.Module) -> None:
    """VerifyError at the first kernel of a text in which no function launches any."""
    for kernel in operations_named(module.operation, "gpu.func"):
        around = kernel.parent
        assert around is not None, "a gpu.func stands in a gpu.module"
        symbol = f"@{_name(around.operation)}::@{_name(kernel)}"
        kinds = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs
        given = ", ".join(f"%a{k} : {kind}" for k, kind in enumerate(kinds))
        named = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(kinds))
        raise VerifyError(
            f"no function of the text launches kernel {symbol}",
            span=span_of(kernel.location),
            hint=f"add one beside the gpu.module: func.func @f({named}) {{ "
            f"gpu.launch_func {symbol} blocks in (%x, %y, %z) threads in (%u, %v, %w) "
            f"args({given}) return }}",
        )


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _put_in_place(launch: ir.Operation, kernels: dict[str, ir.Operation]) -> None:
    symbol = str(launch.attributes["kernel"])
    kernel = kernels.get(symbol)
    if kernel is None:
        raise VerifyError(
            f"kernel {symbol} is not in the program as a gpu.func",
            span=span_of(launch.location),
            hint="hand the program over before its kernels are lowered: a gpu.module with a "
            "gpu.func of that name",
        )
    segments = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    if any(segments[_CLUSTERS]) or segments[_OBJECT]:
        raise VerifyError(
            "clusters of blocks and streams of another runtime are not known here",
            span=span_of(launch.location),
            hint="launch it with a grid and a block alone, and tokens of gpu.wait async",
        )
    operands = list(launch.operands)
    waits, sizes = operands[: segments[0]], operands[segments[0] :][:6]
    behind = operands[segments[0] + 6 :]
    dynamic, given = behind[: segments[_DYNAMIC]], behind[segments[_DYNAMIC] :]
    with ir.InsertionPoint(launch), launch.location:
        sizes = [_index(size) for size in sizes]
        counts = [len(waits), *[1] * 6, 0, 0, 0, len(dynamic)]
        made = ir.Operation.create(
            "gpu.launch",
            [result.type for result in launch.results],
            [*waits, *sizes, *dynamic],
            {SEGMENTS: ir.DenseI32ArrayAttr.get(counts)},
            regions=1,
        )
    _fill(made, kernel, given)
    for old, new in zip(launch.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    launch.erase()


def _index(size: ir.Value) -> ir.Value:
    index = ir.IndexType.get()
    return size if size.type == index else arith.IndexCastOp(index, size).result


def _fill(launch: ir.Operation, kernel: ir.Operation, given: list[ir.Value]) -> None:
    """A copy of the kernel's blocks, whose arguments are what the launch gives it."""
    copy = kernel.clone().operation
    for block in list(copy.regions[0].blocks):
        block.append_to(launch.regions[0])
    copy.erase()
    if MEMORY_OF_BLOCK in kernel.attributes:
        launch.attributes[MEMORY_OF_BLOCK] = kernel.attributes[MEMORY_OF_BLOCK]
    entry = launch.regions[0].blocks[0]
    old = list(entry.arguments)
    index = ir.IndexType.get()
    for _ in range(INDICES):
        entry.add_argument(index, launch.location)
    for argument, value in zip(old, given, strict=False):
        argument.replace_all_uses_with(value)
    for memory in old[len(given) :]:
        memory.replace_all_uses_with(entry.add_argument(memory.type, memory.location))
    for _ in old:
        entry.erase_argument(0)
    for op in operations_in(launch):
        if op.name == "gpu.return":
            with ir.InsertionPoint(op), op.location:
                ir.Operation.create("gpu.terminator")
            op.erase()


def _move_helpers_out(module: ir.Operation, program: ir.Module) -> None:
    """What kernels call, and the tables that they read, beside the functions of the host: under a
    name of its own where that is taken.
    """
    taken = {_name(each) for each in functions_of(program)}
    for op in [view.operation for view in module.regions[0].blocks[0].operations]:
        if op.name not in ("func.func", "memref.global"):
            continue
        name = _name(op)
        fresh = next(new for k in range(len(taken) + 1) if (new := name + "_" * k) not in taken)
        taken.add(fresh)
        op.move_before(module)
        if fresh == name:
            continue
        op.attributes["sym_name"] = ir.StringAttr.get(fresh)
        for user in operations_in(module):
            for key in ("callee", "name"):
                if key in user.attributes and str(user.attributes[key]) == f"@{name}":
                    user.attributes[key] = ir.FlatSymbolRefAttr.get(fresh)


def launch_again(
    launch: ir.Operation, operands: list[ir.Value], segments: list[int]
) -> ir.Operation:
    """The same launch with these operands, without a token; the old one is gone."""
    attributes = {name: launch.attributes[name] for name in launch.attributes}
    attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get(segments)
    with ir.InsertionPoint(launch), launch.location:
        made = ir.Operation.create("gpu.launch", [], operands, attributes, regions=1)
    for block in list(launch.regions[0].blocks):
        block.append_to(made.regions[0])
    launch.erase()
    return made
