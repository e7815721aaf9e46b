"""Stages: what each is called, its text, and the line that makes it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from mlir import ir

from avial_lab.artifact.assembled import with_images
from avial_lab.artifact.binary import MachineCode
from avial_lab.artifact.kernels import KernelRow, kernels_in
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.llvm import assembly_command
from avial_lab.compiler.lowering.run import Pass, Stages
from avial_lab.core.errors import InternalError
from avial_lab.core.underway import tell_done
from avial_lab.machine.devices import CUDA
from avial_lab.machine.devices.cuda import chip_of
from avial_lab.machine.topology import Topology

_READING_ORDER = (
    "ptensor", "dist", "source", "avial", "placed", "mpi", "gpu", "ptx", "loops", "host", "llvm",
    "llvmir", "object",
)  # fmt: skip


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


def kernels_of_stages(stages: Iterable[Stage], topology: Topology) -> tuple[KernelRow, ...]:
    """What a manifest says of the kernels; with machine code for the GPUs that are there, or else
    the usual one, where it can be assembled.
    """
    made = tuple(stages)
    rows = next((kernels_in(stage.text) for stage in made if stage.name == "gpu"), ())
    chips = [each.arch for each in topology.devices if each.kind is CUDA and chip_of(each.arch)]
    return with_images(rows, ptx_in(made).values(), chips) if rows else rows


def in_reading_order(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """The GPU's part before the host's."""
    return tuple(sorted(stages, key=lambda s: _READING_ORDER.index(s.name.partition(":")[0])))


# -- stages ----------------------------------------------------------------------------------------


def mlir_stage(name: str, title: str, module: ir.Operation, command: str, seconds: float) -> Stage:
    tell_done(name)
    return Stage(name, title, "mlir", text_of(module), command, seconds)


def text_of(module: ir.Operation) -> str:
    """The module with the user's names for values."""
    return str(module.get_asm(use_name_loc_as_prefix=True, assume_verified=True))


def our_line(passes: Sequence[Pass | str], source: str, result: str) -> str:
    names = shlex.quote(",".join(map(str, passes)))
    return f"python -m avial_lab.compiler.lowering.opt -p {names} {source} -o {result}"


def mlir_opt_line(passes: Sequence[str], source: str, result: str) -> str:
    pipeline = shlex.quote(f"--pass-pipeline=builtin.module({','.join(passes)})")
    return f"mlir-opt {pipeline} {source} -o {result}"


def object_stage(code: MachineCode) -> tuple[Stage, MachineCode]:
    """The last stage: the assembly, to read."""
    line = assembly_command(
        "llvmir.ll", "object.s", parts=code.parts, guards=code.guards, cpu=code.cpu
    )
    return Stage("object", "machine code", "asm", code.assembly, line, code.seconds), code
