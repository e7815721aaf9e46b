"""The way down, stage by stage, each one kept as text with the line that makes it.

Module, Schedule -> Stages, and the Binary at the end.

    avial ─► placed ─► mpi ─┬─► host ─► llvm ─► llvmir ─► object
                            └─► gpu ─► ptx:task3

`python -m avial_lab.pipelines -p tasks-to-mpi placed.mlir -o mpi.mlir` runs passes of ours on a
file, as mlir-opt does its own.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Protocol

from mlir import ir, passmanager
from mlir.dialects import llvm

from avial_lab.binary import (
    Binary,
    MachineCode,
    assembly_command,
    begun,
    binary_of,
    compile_llvm_ir,
    has_fma,
)
from avial_lab.dialects import register
from avial_lab.dialects.places import span_of
from avial_lab.errors import AvialError, InternalError, PassError
from avial_lab.manifest import KnownMessages
from avial_lab.notation.source import Source
from avial_lab.parse.foreign import name_printed
from avial_lab.passes.apart_to_llvm import ApartToLlvm
from avial_lab.passes.arrays_apart import APART, ArraysApart
from avial_lab.passes.block_loops import BlockLoops
from avial_lab.passes.block_substitutions import BlockSubstitutions
from avial_lab.passes.bools_to_bytes import BoolsToBytes
from avial_lab.passes.check_accesses import CheckAccesses
from avial_lab.passes.check_bounds import CheckBounds
from avial_lab.passes.check_distances import CheckDistances
from avial_lab.passes.complete_replicates import CompleteReplicates
from avial_lab.passes.contract_products import ContractProducts
from avial_lab.passes.converge_to_loops import ConvergeToLoops
from avial_lab.passes.copies_to_loops import CopiesToLoops
from avial_lab.passes.cut_loops import CutLoops
from avial_lab.passes.distribute_loops import DistributeLoops
from avial_lab.passes.drop_in import DropIn
from avial_lab.passes.empty_loops import EmptyLoops
from avial_lab.passes.emulate_gpu import EmulateGpu
from avial_lab.passes.expand_arrays import ExpandArrays
from avial_lab.passes.expand_math import ExpandMath
from avial_lab.passes.expand_scalars import ExpandScalars
from avial_lab.passes.expm1_to_libm import Expm1ToLibm
from avial_lab.passes.extremes_to_llvm import ExtremesToLlvm
from avial_lab.passes.flatten_rows import FlattenRows, FlattenSums
from avial_lab.passes.free_allocations import FreeAllocations
from avial_lab.passes.fuse_nests import FuseNests
from avial_lab.passes.fuse_phases import FusePhases
from avial_lab.passes.hold_rows import HoldRows
from avial_lab.passes.independent_accesses import IndependentAccesses
from avial_lab.passes.independent_to_llvm import MARKS, IndependentToLlvm, KeepIndependent
from avial_lab.passes.inline_copies import InlineCopies
from avial_lab.passes.interleave_rows import InterleaveRows
from avial_lab.passes.jam_rows import JamRows
from avial_lab.passes.join_phases import JoinPhases
from avial_lab.passes.join_sums import JoinSums
from avial_lab.passes.keep_memory import KeepMemory
from avial_lab.passes.keep_on_one import KeepOnOne
from avial_lab.passes.mark_math import MarkMath
from avial_lab.passes.mark_parallel import MarkParallel
from avial_lab.passes.mpi_to_llvm import MpiToLlvm
from avial_lab.passes.near_arguments import NearArguments
from avial_lab.passes.normalise import Normalise
from avial_lab.passes.operations import operations_in, operations_named
from avial_lab.passes.order_loops import OrderLoops
from avial_lab.passes.pack_rows import PackRows
from avial_lab.passes.partial_sums import PartialSums
from avial_lab.passes.place_phases import PlacePhasesHere
from avial_lab.passes.place_tasks import PlaceTasks, PlaceTasksHere
from avial_lab.passes.promote_scalars import PromoteScalars
from avial_lab.passes.ptx import Kernels, compile_kernels, make_kernels, ptx_command
from avial_lab.passes.raise_loops import RaiseLoops
from avial_lab.passes.reorder_extremes import ReorderExtremes
from avial_lab.passes.reorder_sums import ReorderSums
from avial_lab.passes.replicate_to_mpi import ReplicateToMpi
from avial_lab.passes.reset_globals import ResetGlobals
from avial_lab.passes.scratch_per_iteration import ScratchPerIteration
from avial_lab.passes.select_gpu_tasks import SelectGpuTasks, is_gpu_task
from avial_lab.passes.share_loads import ShareLoads
from avial_lab.passes.share_rows import ShareRows
from avial_lab.passes.signed_offsets import SignedOffsets, may_run_backwards
from avial_lab.passes.split_drivers import SplitDrivers
from avial_lab.passes.split_wraps import SplitWraps
from avial_lab.passes.stream_stores import StreamStores
from avial_lab.passes.strict_arithmetic import StrictArithmetic
from avial_lab.passes.tasks_to_mpi import TasksToMpi
from avial_lab.passes.thread_loops import ThreadLoops
from avial_lab.passes.thread_sums import ThreadSums
from avial_lab.passes.tile_time import TileTime
from avial_lab.passes.transpose_tiles import TransposeTiles
from avial_lab.passes.unroll_short import UnrollShort
from avial_lab.passes.unroll_sums import UnrollSums
from avial_lab.passes.unwrap_tasks import UnwrapTasks
from avial_lab.passes.vectorise_rows import VectoriseRows
from avial_lab.passes.whole_vectors import WholeVectors
from avial_lab.passes.widen_halos import WidenHalos
from avial_lab.schedule import Schedule
from avial_lab.stages import Stage


class Pass(Protocol):
    """IR in, IR out; its text is its name and options."""

    def __call__(self, module: ir.Operation) -> None: ...

    def __str__(self) -> str: ...


OURS: dict[str, type] = {
    "contract-products": ContractProducts,
    "mark-math": MarkMath,
    "expand-math": ExpandMath,
    "strict-arithmetic": StrictArithmetic,
    "empty-loops": EmptyLoops,
    "normalise": Normalise,
    "raise-loops": RaiseLoops,
    "check-accesses": CheckAccesses,
    "distribute-loops": DistributeLoops,
    "scratch-per-iteration": ScratchPerIteration,
    "cut-loops": CutLoops,
    "drop-in": DropIn,
    "converge-to-loops": ConvergeToLoops,
    "complete-replicates": CompleteReplicates,
    "unwrap-tasks": UnwrapTasks,
    "replicate-to-mpi": ReplicateToMpi,
    "reset-globals": ResetGlobals,
    "expand-arrays": ExpandArrays,
    "split-wraps": SplitWraps,
    "unroll-short": UnrollShort,
    "unroll-sums": UnrollSums,
    "expand-scalars": ExpandScalars,
    "join-sums": JoinSums,
    "order-loops": OrderLoops,
    "fuse-nests": FuseNests,
    "partial-sums": PartialSums,
    "hold-rows": HoldRows,
    "jam-rows": JamRows,
    "transpose-tiles": TransposeTiles,
    "flatten-rows": FlattenRows,
    "flatten-sums": FlattenSums,
    "check-distances": CheckDistances,
    "near-arguments": NearArguments,
    "pack-rows": PackRows,
    "share-loads": ShareLoads,
    "inline-copies": InlineCopies,
    "stream-stores": StreamStores,
    "whole-vectors": WholeVectors,
    "reorder-sums": ReorderSums,
    "reorder-extremes": ReorderExtremes,
    "mark-parallel": MarkParallel,
    "thread-loops": ThreadLoops,
    "thread-sums": ThreadSums,
    "split-drivers": SplitDrivers,
    "promote-scalars": PromoteScalars,
    "independent-accesses": IndependentAccesses,
    "keep-independent": KeepIndependent,
    "tile-time": TileTime,
    "vectorise-rows": VectoriseRows,
    "interleave-rows": InterleaveRows,
    "block-loops": BlockLoops,
    "block-substitutions": BlockSubstitutions,
    "tasks-to-mpi": TasksToMpi,
    "emulate-gpu": EmulateGpu,
    "bools-to-bytes": BoolsToBytes,
    "copies-to-loops": CopiesToLoops,
    "expm1-to-libm": Expm1ToLibm,
    "extremes-to-llvm": ExtremesToLlvm,
    "free-allocations": FreeAllocations,
    "mpi-to-llvm": MpiToLlvm,
    "select-gpu-tasks": SelectGpuTasks,
    "check-bounds": CheckBounds,
    "signed-offsets": SignedOffsets,
    "place-tasks": PlaceTasksHere,
    "place-phases": PlacePhasesHere,
    "fuse-phases": FusePhases,
    "join-phases": JoinPhases,
    "keep-on-one": KeepOnOne,
    "share-rows": ShareRows,
    "widen-halos": WidenHalos,
    "arrays-apart": ArraysApart,
    "apart-to-llvm": ApartToLlvm,
    "independent-to-llvm": IndependentToLlvm,
    "keep-memory": KeepMemory,
}
"""Passes that can be named on a command line."""

TO_HOST: tuple[Pass | str, ...] = (
    EmulateGpu(),
    EmptyLoops(),
    ExpandMath(),
    "convert-linalg-to-loops",
    "lower-affine",
    ResetGlobals(),
    CopiesToLoops(),
    BoolsToBytes(),
    Expm1ToLibm(),
    ExtremesToLlvm(),
    FreeAllocations(),
    MpiToLlvm(),
)

TO_LLVM = (
    "func.func(lower-vector-multi-reduction,lower-vector-mask,convert-vector-to-scf,"
    "scf-forall-to-for,convert-scf-to-cf,convert-complex-to-standard,memref-expand,"
    "expand-strided-metadata,lower-affine,arith-expand,math-extend-to-supported-types)",
    "convert-math-to-funcs",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-vector-to-llvm",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
)
"""As much as can be function by function, which MLIR does for several at once."""


Watch = Callable[[Pass | str, ir.Operation, float], None]
"""Told of every pass after it ran: the pass, the module, the seconds it took."""

Stages = Iterator[tuple[Stage, ir.Operation | MachineCode | None]]
"""Each stage with what it is the text of: the live module, changed once the next is asked for, or
the machine code.
"""


def arithmetic(*, strict: bool) -> tuple[Pass, ...]:
    """What comes before everything else, in a run as in the reference: which operations there are.

    Where the machine has no instruction for a product and a sum, they are rounded apart, as with
    `strict`.
    """
    if strict:
        return (StrictArithmetic(),)
    return (ContractProducts(), MarkMath()) if has_fma() else (MarkMath(fused=False),)


def lower(
    module: ir.Module | ir.Operation,
    schedule: Schedule,
    *,
    strict: bool = False,
    watch: Watch | None = None,
) -> Stages:
    """The stages of `module` under `schedule`; `module` itself stays as it is.

    Kernels are made beside the host's part, so that `gpu` and `ptx:…` come after `llvmir`; nothing
    is made before it is asked for.
    """
    work = module.operation.clone().operation
    yield mlir_stage("avial", "the program as it was read", work, "", 0.0), work
    place = PlaceTasks(schedule)
    passes = (*arithmetic(strict=strict), place)
    seconds = run_passes(work, passes, watch=watch)
    line = our_line(passes, "avial.mlir", "placed.mlir") if place.is_told else ""
    yield mlir_stage("placed", "every task on its device, every message", work, line, seconds), work
    yield from lower_placed(work, watch=watch)


def lower_placed(work: ir.Operation, *, watch: Watch | None = None) -> Stages:
    """On from tasks that are placed; `work` is changed."""
    to_mpi = (TasksToMpi(),)
    seconds = run_passes(work, to_mpi, watch=watch)
    yield (
        mlir_stage(
            "mpi",
            "one block of steps for each rank",
            work,
            our_line(to_mpi, "placed.mlir", "mpi.mlir"),
            seconds,
        ),
        work,
    )
    yield from lower_mpi(work, watch=watch)


def lower_mpi(work: ir.Operation, *, watch: Watch | None = None) -> Stages:
    """On from what the ranks run: the host's part, and the kernels beside it."""
    with ThreadPoolExecutor(1, thread_name_prefix="tools") as pool:
        kernels = pool.submit(make_kernels, gpu_text(work)) if has_gpu_tasks(work) else None
        seconds = run_passes(work, TO_HOST, watch=watch)
        host = mlir_stage(
            "host",
            "what a CPU runs: kernels as loops, messages as calls",
            work,
            our_line(TO_HOST, "mpi.mlir", "host.mlir"),
            seconds,
        )
        yield host, work
        machine = yield from _to_tools(work, host.text, watch)
        if kernels is not None:
            yield from ((stage, None) for stage in _gpu_stages(kernels.result()))
        yield object_stage(machine)


def _to_tools(
    work: ir.Operation, host_text: str, watch: Watch | None
) -> Generator[tuple[Stage, ir.Operation | None], None, MachineCode]:
    """The stages down to what tools make machine code of; they do so while these are printed, and
    whoever asked for them looks at them.
    """
    started = time.perf_counter()
    line = lower_to_llvm(work, host_text, watch=watch)
    check_lowered(work)
    seconds = time.perf_counter() - started
    llvm_ir = _translated(work)
    with begun(llvm_ir.text) as underway:
        yield mlir_stage("llvm", "the LLVM dialect", work, line, seconds), work
        yield llvm_ir, None
        return compile_llvm_ir(llvm_ir.text, underway=underway)


def _translated(work: ir.Operation) -> Stage:
    started = time.perf_counter()
    llvm_ir = llvm.translate_module_to_llvmir(work)
    line = "mlir-translate --mlir-to-llvmir llvm.mlir -o llvmir.ll"
    return Stage("llvmir", "LLVM IR", "llvm", llvm_ir, line, time.perf_counter() - started)


def machine_stages(work: ir.Operation, host_text: str, *, watch: Watch | None = None) -> Stages:
    """On from the host's part, whose text is `host_text`, to machine code."""
    machine = yield from _to_tools(work, host_text, watch)
    yield object_stage(machine)


def lower_llvm(work: ir.Operation) -> Stages:
    """On from the LLVM dialect."""
    check_lowered(work)
    stage = _translated(work)
    yield stage, None
    yield object_stage(compile_llvm_ir(stage.text))


def lower_to_llvm(module: ir.Operation, text: str, *, watch: Watch | None = None) -> str:
    """Bring the host's module, whose text is `text`, into the LLVM dialect.

    Returns the line that does the same.
    """
    printing = operations_named(module, "vector.print") if "vector.print" in text else ()
    for first in printing:
        raise PassError(
            "vector.print needs a library of MLIR's own, which ranks do without",
            span=span_of(first.location),
            hint="store what you want to see in an array",
        )
    run_passes(module, TO_LLVM, watch=watch)
    ours: list[Pass] = []
    if may_run_backwards(text):
        ours.append(SignedOffsets())
    if APART in text:
        ours.append(ApartToLlvm())
    if any(mark in text for mark in MARKS):
        ours.append(IndependentToLlvm())
    if "memref.alloc(" in text:
        ours.append(KeepMemory())
    if not ours:
        return mlir_opt_line(TO_LLVM, "host.mlir", "llvm.mlir")
    run_passes(module, ours, watch=watch)
    line = mlir_opt_line(TO_LLVM, "host.mlir", "-")
    return f"{line} | {our_line(ours, '-', 'llvm.mlir')}"


def build(
    module: ir.Module | ir.Operation, schedule: Schedule, *, strict: bool = False
) -> tuple[tuple[Stage, ...], Binary]:
    """All stages in reading order, and what engines run."""
    stages, code = finished(lower(module, schedule, strict=strict))
    binary = binary_of(code, KnownMessages.of(schedule), ptx=ptx_in(stages))
    return in_reading_order(stages), binary


def finished(stages: Stages) -> tuple[list[Stage], MachineCode]:
    """All of the stages, and the machine code at their end."""
    made: list[Stage] = []
    code: MachineCode | None = None
    for stage, of in stages:
        made.append(stage)
        code = of if isinstance(of, MachineCode) else code
    if code is None:
        raise InternalError("the stages do not end in machine code")
    return made, code


def ptx_in(stages: Iterable[Stage]) -> dict[str, str]:
    """The PTX by task."""
    found = (s for s in stages if s.name.startswith("ptx:") and s.language == "ptx")
    return {stage.name.removeprefix("ptx:"): stage.text for stage in found}


_READING_ORDER = (
    "source", "avial", "placed", "mpi", "gpu", "ptx", "loops", "host", "llvm", "llvmir", "object"
)  # fmt: skip


def in_reading_order(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """The GPU's part before the host's."""
    return tuple(sorted(stages, key=lambda s: _READING_ORDER.index(s.name.partition(":")[0])))


# -- passes ----------------------------------------------------------------------------------------


def run_passes(
    module: ir.Operation, passes: Sequence[Pass | str], *, watch: Watch | None = None
) -> float:
    """Run `passes` on `module` in place, verified after the last, with a `watch` after each; the
    seconds it took.

    A string is the name of one of MLIR's. Errors are PassErrors at the operation's place in the
    cell.
    """
    started = time.perf_counter()
    if watch is not None:
        for item in passes:
            watch(item, module, run_passes(module, (item,)))
        return time.perf_counter() - started
    try:
        with module.context:
            names: list[str] = []
            for item in passes:
                if isinstance(item, str):
                    names.append(item)
                    continue
                _run_mlirs(module, names)
                names = []
                _run_ours(module, item)
            _run_mlirs(module, names)
            _verify(module, passes)
    except ir.MLIRError as error:
        raise _pass_error(error, passes) from None
    return time.perf_counter() - started


def _run_ours(module: ir.Operation, item: Pass) -> None:
    """InternalError where it cannot make the IR that it wants to make."""
    try:
        item(module)
    except ir.MLIRError as error:
        raise InternalError(f"{_said(error)} in the pass {item}\n{error}") from error


def _verify(module: ir.Operation, passes: Sequence[Pass | str]) -> None:
    """InternalError where they left IR that cannot be."""
    try:
        module.verify()
    except ir.MLIRError as error:
        if _said(error).startswith(_STRUCTURED):
            raise  # shapes that do not fit, which nobody sees in an operation with a name
        names = ",".join(map(str, passes))
        raise InternalError(f"{_said(error)} after the passes {names}\n{error}") from None


_STRUCTURED = ("'linalg.", "'tensor.", "'tosa.")


def _said(error: ir.MLIRError) -> str:
    return error.error_diagnostics[0].message if error.error_diagnostics else str(error)


def _run_mlirs(module: ir.Operation, names: Sequence[str]) -> None:
    """Ours run outside of their manager: within, nothing may load a dialect or run other passes."""
    if not names:
        return
    manager = passmanager.PassManager("builtin.module")
    manager.enable_verifier(enable=False)  # some 4 ms a pass for a big module
    for name in names:
        manager.add(name)
    manager.run(module)


def _pass_error(error: ir.MLIRError, passes: Sequence[Pass | str]) -> AvialError:
    names = ",".join(map(str, passes))
    if not error.error_diagnostics:
        return InternalError(f"{error} in the passes {names}")
    first = error.error_diagnostics[0]
    return PassError(f"{first.message} (in the passes {names})", span=span_of(first.location))


def check_lowered(module: ir.Operation) -> None:
    """PassError at the first operation that is not in the LLVM dialect."""
    for op in operations_in(module):
        if op.name.startswith(("llvm.", "omp.")):  # these are translated together
            continue
        if op.name == "builtin.unrealized_conversion_cast":
            # The operation that needs it has not been lowered: it is the one to name.
            users = [use.owner.operation for result in op.results for use in result.uses]
            done = ("llvm.", "builtin.")
            op = next((user for user in users if not user.name.startswith(done)), op)
        raise PassError(f"no lowering was found for {op.name}", span=span_of(op.location))


# -- stages ----------------------------------------------------------------------------------------


def mlir_stage(name: str, title: str, module: ir.Operation, command: str, seconds: float) -> Stage:
    return Stage(name, title, "mlir", text_of(module), command, seconds)


def text_of(module: ir.Operation) -> str:
    """The module with the user's names for values."""
    return str(module.get_asm(use_name_loc_as_prefix=True, assume_verified=True))


def our_line(passes: Sequence[Pass | str], source: str, result: str) -> str:
    names = shlex.quote(",".join(map(str, passes)))
    return f"python -m avial_lab.pipelines -p {names} {source} -o {result}"


def mlir_opt_line(passes: Sequence[str], source: str, result: str) -> str:
    pipeline = shlex.quote(f"--pass-pipeline=builtin.module({','.join(passes)})")
    return f"mlir-opt {pipeline} {source} -o {result}"


def object_stage(code: MachineCode) -> tuple[Stage, MachineCode]:
    """The last stage: the assembly, to read."""
    line = assembly_command("llvmir.ll", "object.s", parts=code.parts)
    return Stage("object", "machine code", "asm", code.assembly, line, code.seconds), code


def has_gpu_tasks(module: ir.Operation) -> bool:
    return any(
        op.operation.name == "func.func" and is_gpu_task(op.operation)
        for op in module.regions[0].blocks[0].operations
    )


def gpu_text(module: ir.Operation) -> str:
    part = module.clone().operation
    run_passes(part, (SelectGpuTasks(),))
    return str(part.get_asm(enable_debug_info=True))


def _gpu_stages(kernels: Kernels) -> Iterator[Stage]:
    line = f"python -m avial_lab.pipelines -p select-gpu-tasks mpi.mlir | {kernels.outline_command}"
    title = "; ".join(["kernels, outlined", *kernels.remarks])
    yield Stage("gpu", title, "mlir", kernels.outlined, line, kernels.seconds)
    yield from _ptx_stages(kernels.ptx, kernels.failures, kernels.ptx_command)


def kernel_stages(outlined: str, tasks: Sequence[str]) -> Iterator[Stage]:
    """On from kernels that are outlined."""
    yield from _ptx_stages(*compile_kernels(outlined, tasks), ptx_command())


def _ptx_stages(
    ptx: Mapping[str, str], failures: Mapping[str, str], command: str
) -> Iterator[Stage]:
    for task, text in ptx.items():
        line = f"{command} | python -m avial_lab.passes.ptx {shlex.quote(task)}"
        line += f" -o {shlex.quote(f'ptx:{task}.ptx')}"
        yield Stage(f"ptx:{task}", f"PTX of {task}", "ptx", text, line)
    for task, why in failures.items():
        yield Stage(f"ptx:{task}", f"no PTX for {task}", "text", why, command)


# -- the command line ------------------------------------------------------------------------------


_PASS = r"\s*[\w-]+(\{[^{}]*\})?\s*"


def parse_passes(text: str) -> tuple[Pass | str, ...]:
    """Passes from their printed form, one after the other; what is none of ours is MLIR's.
    PassError where one is not written as a pass: MLIR's nested pipelines are for mlir-opt.

    >>> [str(item) for item in parse_passes("tasks-to-mpi{share=false},lower-affine,mpi-to-llvm")]
    ['tasks-to-mpi{share=false}', 'lower-affine', 'mpi-to-llvm']
    """
    if not re.fullmatch(rf"{_PASS}(,{_PASS})*", text):
        raise PassError(
            f"{text!r} is no list of passes",
            hint="write name,name{option=value},… as --help lists them",
        )
    result: list[Pass | str] = []
    for name, options in re.findall(r"([\w-]+)(?:\{([^}]*)\})?", text):
        if name not in OURS:
            result.append(f"{name}{{{options}}}" if options else name)
            continue
        given = dict(option.split("=", 1) for option in options.split())
        known = {field.name.replace("_", "-"): field.name for field in fields(OURS[name])}
        if unknown := given.keys() - known.keys():
            raise PassError(f"{name} has no option {', '.join(sorted(unknown))}")
        values = {known[key]: _option(value) for key, value in given.items()}
        result.append(OURS[name](**values))
    return tuple(result)


def _option(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run our passes on a file."""
    parser = argparse.ArgumentParser(prog="python -m avial_lab.pipelines", description=main.__doc__)
    parser.add_argument(
        "-p", dest="passes", required=True, help="comma-separated: " + ", ".join(OURS)
    )
    parser.add_argument("file", help="- reads standard input")
    parser.add_argument("-o", dest="output", default="-")
    options = parser.parse_args(arguments)
    context = ir.Context()
    register(context)
    try:
        source = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
        with context:
            parsed = ir.Module.parse(source)
            name_printed(parsed, Source(source, options.file))
        module = parsed.operation
        run_passes(module, parse_passes(options.passes))
    except (AvialError, ir.MLIRError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if options.output == "-":
        sys.stdout.write(text_of(module))
    else:
        Path(options.output).write_text(text_of(module))
    return 0


if __name__ == "__main__":
    sys.exit(main())
