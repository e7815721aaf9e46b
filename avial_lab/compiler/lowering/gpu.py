"""Kernels of GPU tasks: their stages down to PTX."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from mlir import ir

from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.nvptx import Kernels, compile_kernels, ptx_command
from avial_lab.compiler.catalogue import SELECT
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.gpu.select_gpu_tasks import is_gpu_task


def has_gpu_tasks(module: ir.Operation) -> bool:
    return any(
        op.operation.name == "func.func" and is_gpu_task(op.operation)
        for op in module.regions[0].blocks[0].operations
    )


def gpu_text(module: ir.Operation) -> str:
    part = module.clone().operation
    run_passes(part, SELECT.passes())
    return str(part.get_asm(enable_debug_info=True))


def gpu_stages(kernels: Kernels) -> Iterator[Stage]:
    line = "python -m avial_lab.compiler.lowering.opt -p select-gpu-tasks mpi.mlir"
    line += f" | {kernels.outline_command}"
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
        line = f"{command} | python -m avial_lab.compiler.backends.nvptx {shlex.quote(task)}"
        line += f" -o {shlex.quote(f'ptx:{task}.ptx')}"
        yield Stage(f"ptx:{task}", f"PTX of {task}", "ptx", text, line)
    for task, why in failures.items():
        yield Stage(f"ptx:{task}", f"no PTX for {task}", "text", why, command)
