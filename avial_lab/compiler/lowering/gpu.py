"""Kernels of GPU tasks: their stages down to PTX."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.nvptx import (
    Kernels,
    compile_each,
    compile_kernels,
    exact_ptx_command,
    ptx_command,
)
from avial_lab.compiler.catalogue import LAUNCHED, SELECT
from avial_lab.compiler.ir.attributes import KERNEL
from avial_lab.compiler.ir.operations import functions_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.lowering.stages import our_line, text_of
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


@dataclass(frozen=True)
class Launched:
    """The kernels of loops in a program: as modules of the gpu dialect, and compiled."""

    text: str
    ptx: Mapping[str, str]
    failures: Mapping[str, str]
    seconds: float


def launches_kernels(module: ir.Operation) -> bool:
    """Whether there are kernels of loops among its functions."""
    return any(KERNEL in function.attributes for function in functions_in(module))


def kernel_modules(host: ir.Operation) -> str:
    """Of code for the CPU, the kernels in it."""
    part = host.clone().operation
    run_passes(part, LAUNCHED.passes())
    return text_of(part)


def compile_launched(text: str) -> Launched:
    """PTX of such modules, by tools in processes of their own."""
    started = time.perf_counter()
    ptx, failures = compile_each(text)
    return Launched(text, ptx, failures, time.perf_counter() - started)


def launched_stages(launched: Launched) -> Iterator[Stage]:
    line = our_line(LAUNCHED.passes(), "host.mlir", "gpu.mlir")
    yield Stage("gpu", "kernels", "mlir", launched.text, line, launched.seconds)
    yield from _ptx_stages(launched.ptx, launched.failures, exact_ptx_command())


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
