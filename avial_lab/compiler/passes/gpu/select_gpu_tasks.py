"""Only what runs on GPUs: the part of the program that kernels are made from.

Module after tasks-to-mpi -> the functions of its GPU tasks and what they use.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in
from avial_lab.machine.devices import Backend, kind_for


@dataclass(frozen=True)
class SelectGpuTasks:
    """Drop every function that no GPU task needs.

    before:  @task1 {avial.arch = "x86_64"}  @task3 {avial.arch = "sm_90"}  @main
    after:   @task3 {avial.arch = "sm_90"}
    """

    def __call__(self, module: ir.Operation) -> None:
        functions = {
            ir.StringAttr(op.attributes["sym_name"]).value: op.operation
            for op in module.regions[0].blocks[0].operations
            if op.operation.name == "func.func"
        }
        wanted = {name for name, op in functions.items() if is_gpu_task(op)}
        waiting = list(wanted)
        while waiting:
            for op in operations_in(functions[waiting.pop()]):
                if op.name != "func.call":
                    continue
                callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                if callee not in wanted and callee in functions:
                    wanted.add(callee)
                    waiting.append(callee)
        for name, op in functions.items():
            if name not in wanted:
                op.erase()

    def __str__(self) -> str:
        return "select-gpu-tasks"


def is_gpu_task(function: ir.Operation) -> bool:
    """Whether this is the function of a task that kernels are made of."""
    if "avial.arch" not in function.attributes:
        return False
    arch = ir.StringAttr(function.attributes["avial.arch"]).value
    return kind_for(arch).backend is Backend.NVPTX
