"""The way down for structured programs: every rank runs the control flow, and its part of each nest.

Plain function, or replicates and converges written by hand -> tasks -> stages, LLVM IR, the phases'
names. (`pipelines.py` is the way for programs of tasks alone.)

    source ─► avial ─► mpi ─► host ─► llvm ─► llvmir ─► object
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.dialects.program import is_plain, program_function, schedule_operations
from avial_lab.passes.complete_replicates import CompleteReplicates
from avial_lab.passes.converge_to_loops import ConvergeToLoops
from avial_lab.passes.drop_in import DropIn
from avial_lab.passes.normalise import Normalise
from avial_lab.passes.replicate_to_mpi import ReplicateToMpi
from avial_lab.pipelines import (
    TO_HOST,
    Pass,
    machine_stages,
    mlir_stage,
    our_line,
    run_passes,
)
from avial_lab.stages import Stage

TO_TASKS: tuple[Pass | str, ...] = (
    "canonicalize",
    "cse",
    Normalise(),
    DropIn(),
)
"""From a plain function to one of tasks."""

BY_HAND: tuple[Pass | str, ...] = (ConvergeToLoops(), CompleteReplicates())
"""From replicates and converges as people write them to what the lowering takes."""

TO_SPMD_HOST = TO_HOST[:-1]
"""Without mpi-to-llvm: such programs call the ownership runtime, not MPI."""


def is_structured(module: ir.Module | ir.Operation) -> bool:
    """Whether the program is more than tasks one after the other."""
    return is_plain(module) or any(
        op.name in ("avial.replicate", "avial.converge")
        for op in schedule_operations(program_function(module))
    )


def take_apart(module: ir.Module | ir.Operation) -> ir.Operation:
    """The program with its parallel nests in replicates and the rest in tasks; `module` stays."""
    work = module.operation.clone().operation
    run_passes(work, TO_TASKS if is_plain(work) else BY_HAND)
    return work


def lower_structured(
    source: ir.Module | ir.Operation, structured: ir.Operation
) -> Iterator[tuple[Stage, ir.Operation | None]]:
    """The stages of a program of replicates: as it was read, its tasks, every rank's control flow,
    machine code.
    """
    yield mlir_stage("source", "the program as it was read", source.operation, "", 0.0), None
    yield mlir_stage("avial", "its loops as tasks", structured, "", 0.0), structured
    work = structured.clone().operation
    to_mpi = (ReplicateToMpi(),)
    seconds = run_passes(work, to_mpi)
    line = our_line(to_mpi, "avial.mlir", "mpi.mlir")
    yield mlir_stage("mpi", "what every rank runs", work, line, seconds), work
    seconds = run_passes(work, TO_SPMD_HOST)
    line = our_line(TO_SPMD_HOST, "mpi.mlir", "host.mlir")
    host = mlir_stage("host", "loops that are cut to a rank's range", work, line, seconds)
    yield host, work
    yield from machine_stages(work, host.text)


def build_structured(
    source: ir.Module | ir.Operation, structured: ir.Operation
) -> tuple[tuple[Stage, ...], str, tuple[str, ...]]:
    """All stages, the LLVM IR, and the names of the phases by their numbers."""
    stages: list[Stage] = []
    phases: tuple[str, ...] = ()
    for stage, module in lower_structured(source, structured):
        stages.append(stage)
        if stage.name == "mpi" and module is not None:
            names = program_function(module).attributes["avial.phases"]
            phases = tuple(ir.StringAttr(name).value for name in ir.ArrayAttr(names))
    llvm_ir = next(stage.text for stage in stages if stage.name == "llvmir")
    return tuple(stages), llvm_ir, phases
