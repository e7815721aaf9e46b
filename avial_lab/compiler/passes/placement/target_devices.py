"""Which kind of device loops are for, whatever their text says.

Module of replicates and tasks -> the same with other targets.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.kernel_bodies import (
    has_free_loops,
    is_launched_from_host,
    why_no_kernel,
)
from avial_lab.compiler.codegen.loops.launch_bodies import first_not_launched
from avial_lab.compiler.ir.attributes import PHASES
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.ir.remarks import say_why
from avial_lab.machine.devices import CPU, DeviceKind, kind_for


@dataclass(frozen=True)
class TargetDevices:
    """Every replicate for a GPU, or every phase for the CPU.

    before:  %cpu = avial.target {arch = "cpu"}  avial.replicate %cpu, %A {…}
    after:   %gpu = avial.target {arch = "gpu"}  avial.replicate %gpu, %A {…}

    A replicate that asks for a certain GPU keeps it. One that accumulates a reduction stays on the
    CPU, and a task, which is what could not be divided, where none of its loops gives threads: both
    say so.
    """

    on: str = "gpu"

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for schedule in [op for op in operations_in(module) if op.name == "avial.schedule"]:
                self._in_schedule(schedule)

    def __str__(self) -> str:
        return f"target-devices{{on={self.on}}}"

    def _in_schedule(self, schedule: ir.Operation) -> None:
        wanted = kind_for(self.on)
        moved: list[ir.Operation] = []
        for op in operations_in(schedule):
            if op.name not in PHASES or _asks_for(op).family == wanted.family:
                continue
            why = "" if wanted is CPU else _stays(op)
            if why:
                say_why(op, f"runs on the CPU: {why}")
            else:
                moved.append(op)
        if not moved:
            return
        text = ir.StringAttr.get(self.on)
        with ir.InsertionPoint.at_block_begin(schedule.regions[0].blocks[0]), schedule.location:
            target = ir.Operation.create(
                "avial.target",
                [ir.Type.parse("!avial.target_ref")],
                attributes={"name": text, "arch": text},
            ).result
        for op in moved:
            op.operands[0] = target


def stays_for(op: ir.Operation, on: str) -> str:
    """Why a replicate would not run on such a device though its sum did; "" where it would."""
    return "" if kind_for(on) is CPU else why_no_kernel(op)


def _asks_for(op: ir.Operation) -> DeviceKind:
    target = op.operands[0].owner
    return kind_for(ir.StringAttr(target.attributes["arch"]).value)


def _stays(op: ir.Operation) -> str:
    """Why it is not for a GPU; "" where it is."""
    if operations_named(op, "gpu.launch"):
        found = first_not_launched(op)
        return "" if found is None else found[1]
    if op.name != "avial.replicate":
        return why_no_kernel(op) or _why_no_threads(op)
    if reduced_arrays(op):
        return "what it accumulates is kept in the memory of the ranks"
    return why_no_kernel(op)


def _why_no_threads(task: ir.Operation) -> str:
    """What is not divided may have loops that give threads, one after the other."""
    scop = read_scop(task)
    for region in task.regions:
        for block in region.blocks:
            if not is_launched_from_host(block, scop):
                return "it is not divided, and its loops run in order"
    if not has_free_loops(list(operations_in(task)), scop):
        return "it is not divided, and none of its loops is free of order"
    return ""
