"""Kernels that a program launches: their stages down to PTX."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.nvptx import by_task, compile_each, ptx_command
from avial_lab.compiler.catalogue import LAUNCHED
from avial_lab.compiler.codegen.outline_tasks import is_gpu_task
from avial_lab.compiler.ir.attributes import KERNEL, NO_KERNEL
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.operations import functions_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.lowering.stages import our_line, text_of


@dataclass(frozen=True)
class Kernels:
    """Those of a program as modules of the gpu dialect. tasks: for a GPU, by their functions, and
    why one has no kernel.
    """

    text: str
    tasks: Mapping[str, str]


@dataclass(frozen=True)
class Compiled:
    """Kernels and their PTX by their names; why others have none."""

    kernels: Kernels
    ptx: Mapping[str, str]
    failures: Mapping[str, str]
    seconds: float


def has_kernels(module: ir.Operation) -> bool:
    """Whether there are kernels among its functions, or tasks that have none though they should."""
    return any(KERNEL in each.attributes or is_gpu_task(each) for each in functions_in(module))


def kernels_of(host: ir.Operation) -> Kernels:
    """Of code for the CPU, the kernels in it."""
    tasks = {
        text_attribute(each, "sym_name").removesuffix(".local"): text_attribute(each, NO_KERNEL)
        if NO_KERNEL in each.attributes
        else ""
        for each in functions_in(host)
        if is_gpu_task(each)
    }
    return Kernels(text_of(kernel_modules(host)), tasks)


def kernel_modules(host: ir.Operation) -> ir.Operation:
    part = host.clone().operation
    run_passes(part, LAUNCHED.passes())
    return part


def compile_kernels(kernels: Kernels) -> Compiled:
    """Their PTX, by tools in processes of their own."""
    started = time.perf_counter()
    ptx, failures = compile_each(kernels.text)
    return Compiled(kernels, ptx, failures, time.perf_counter() - started)


def kernel_stages(compiled: Compiled) -> Iterator[Stage]:
    """The kernels, and the PTX of each task's, or of each kernel of a phase."""
    line = our_line(LAUNCHED.passes(), "host.mlir", "gpu.mlir")
    yield Stage("gpu", "kernels", "mlir", compiled.kernels.text, line, compiled.seconds)
    tasks = compiled.kernels.tasks
    failures = by_task(compiled.failures, tuple(tasks)) | {k: v for k, v in tasks.items() if v}
    yield from _ptx_stages(by_task(compiled.ptx, tuple(tasks)), failures)


def ptx_stages(text: str, names: Sequence[str]) -> Iterator[Stage]:
    """On from kernels, in the stages that have been called so."""
    ptx, failures = compile_each(text)
    yield from _ptx_stages(by_task(ptx, names), by_task(failures, names))


def _ptx_stages(ptx: Mapping[str, str], failures: Mapping[str, str]) -> Iterator[Stage]:
    command = ptx_command()
    for name, text in ptx.items():
        line = f"{command} | python -m avial_lab.compiler.backends.nvptx {shlex.quote(name)}"
        line += f" -o {shlex.quote(f'ptx:{name}.ptx')}"
        yield Stage(f"ptx:{name}", f"PTX of {name}", "ptx", text, line)
    for name, why in failures.items():
        if name not in ptx:
            yield Stage(f"ptx:{name}", f"no PTX for {name}", "text", why, command)
