"""Launches that a text writes: what keeps them from being kernels.

Function or task with gpu.launch -> the operation that no kernel has, and why; a launch -> memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from avial_lab.compiler.codegen.loops.copies_at_once import COPYING
from avial_lab.compiler.codegen.loops.kernel_bodies import why_not_in_thread
from avial_lab.compiler.codegen.loops.warp_exchanges import EXCHANGES, is_exchange
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.nesting import FORS, parent_of
from avial_lab.compiler.ir.operations import constant_of, nbytes_of, operations_in
from avial_lab.core.words import format_bytes
from avial_lab.machine.devices.cuda import LANES

_AROUND = frozenset({*FORS, "scf.if", "affine.if", "scf.yield", "affine.yield", "func.return",
                     "omp.terminator"})  # fmt: skip
"""What the host may do around launches: it has none of the device's memory."""

_OF_THREADS = frozenset({"gpu.barrier", "gpu.terminator", "memref.atomic_rmw", "gpu.printf",
                         "gpu.dynamic_shared_memory", "llvm.extractvalue", "llvm.insertvalue",
                         "llvm.inttoptr", "llvm.getelementptr", "llvm.mlir.undef",
                         "memref.extract_aligned_pointer_as_index"})  # fmt: skip

MOST_STATIC_SHARED = 48 << 10
"""Bytes that a block may have without asking for more (CUDA C++ Programming Guide, 16)."""

_OF_DEVICES = ("nvvm.", "nvgpu.", "gpu.subgroup_mma_")

FENCES = frozenset(
    f"nvvm.{name}" for name in ("memory.barrier", "fence.proxy", "fence.sc.cluster", "nanosleep")
)
"""Threads that run one after the other see what those before have stored, and need none."""


def not_emulated(op: ir.Operation) -> bool:
    """Whether only a device does it: units for matrices, clocks, barriers of some threads."""
    if not op.name.startswith(_OF_DEVICES) or op.name in (*FENCES, *COPYING):
        return False
    return op.name not in EXCHANGES or not is_exchange(op)


_ALIGNED = 16
"""Bytes: where each memory of a block begins."""


def shared_places(shared: Sequence[ir.Operation]) -> list[int]:
    """Where the memory that each of these takes begins in all that a block has, in bytes; and then
    where the last ends.
    """
    places = [0]
    for op in shared:
        nbytes = nbytes_of(ir.MemRefType(op.results[0].type))
        places.append(places[-1] + -(-nbytes // _ALIGNED) * _ALIGNED)
    return places


def asked_for_bytes(shared: Sequence[ir.Operation]) -> int:
    """Bytes of a block that a launch has to ask for; 0 where the kernel itself may have as many."""
    nbytes = shared_places(shared)[-1]
    return nbytes if nbytes > MOST_STATIC_SHARED else 0


def first_not_launched(function: ir.Operation) -> tuple[ir.Operation, str] | None:
    """What in a function, or a task, keeps its launches from being kernels, and why."""
    for op in operations_in(function):
        launch = _launch_around(op)
        if op.name == "gpu.launch":
            why = _why_not_launched(op)
        elif launch is not None:
            why = _why_not_in_launch(op)
        elif op.name in _AROUND or is_pure(op):
            why = "it hands on numbers between launches" if _hands_on(op) else ""
        else:
            why = f"it has {op.name} beside its launches"
        if why:
            return op, why
    return None


def _hands_on(op: ir.Operation) -> bool:
    return op.name in (*FORS, "scf.if", "affine.if") and len(op.results) > 0


def _launch_around(op: ir.Operation) -> ir.Operation | None:
    around = parent_of(op)
    while around is not None and around.name != "gpu.launch":
        around = parent_of(around)
    return around


def _why_not_launched(launch: ir.Operation) -> str:
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    if len(launch.regions[0].blocks) != 1:
        return "its kernel has several blocks"
    if segments[0] or any(segments[7:10]) or len(launch.results):
        return "its launch is asynchronous, or has clusters"
    shared, _ = memory_of(launch)
    nbytes = sum(nbytes_of(ir.MemRefType(each.type)) for each in shared)
    if nbytes > MOST_STATIC_SHARED and segments[10]:
        most = format_bytes(MOST_STATIC_SHARED)
        return (
            f"its blocks share {format_bytes(nbytes)} beside memory of a size known at run time, "
            f"and kernels are made with up to {most} there"
        )
    return ""


def _why_not_in_launch(op: ir.Operation) -> str:
    if op.name in _OF_THREADS or op.name in INDICES or op.name.startswith(_OF_DEVICES):
        return ""
    if op.name == "gpu.shuffle":
        whole = constant_of(op.operands[2]) == LANES
        return "" if whole else f"its shuffle is of other than {LANES} lanes"
    if op.name.startswith(("vector.", "arith.")) and _has_vectors(op):
        return "a remainder of vectors is computed by the CPU" if op.name == "arith.remf" else ""
    return f"it has {op.name}" if op.name.startswith("gpu.") else why_not_in_thread(op)


def _has_vectors(op: ir.Operation) -> bool:
    return any(isinstance(value.type, ir.VectorType) for value in (*op.operands, *op.results))


INDICES = frozenset(
    f"gpu.{name}" for name in ("block_id", "thread_id", "block_dim", "grid_dim", "global_id")
)

_MEMORY = 12
"""Where memory begins in a launch's arguments."""


def memory_of(launch: ir.Operation) -> tuple[Sequence[ir.Value], Sequence[ir.Value]]:
    """Of a block, and of a thread."""
    given = list(launch.regions[0].blocks[0].arguments)[_MEMORY:]
    count = 0
    if "workgroup_attributions" in launch.attributes:
        count = ir.IntegerAttr(launch.attributes["workgroup_attributions"]).value
    return given[:count], given[count:]
