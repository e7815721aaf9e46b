"""Which kind of device loops are for, whatever their text says.

Module of replicates and tasks -> the same with other targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.kernel_bodies import (
    first_on_host,
    has_free_loops,
    why_no_kernel,
)
from avial_lab.compiler.codegen.loops.launch_bodies import first_not_launched
from avial_lab.compiler.ir.attributes import PHASES
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.nesting import FORS, parent_of
from avial_lab.compiler.ir.operations import LOOPS, operations_in, operations_named
from avial_lab.compiler.ir.phases import reduced_arrays, touched_by
from avial_lab.compiler.ir.remarks import say_why
from avial_lab.machine.devices import CPU, DeviceKind, kind_for


@dataclass(frozen=True)
class TargetDevices:
    """Every replicate for a GPU, or every phase for the CPU.

    before:  %cpu = avial.target {arch = "cpu"}  avial.replicate %cpu, %A {…}
    after:   %gpu = avial.target {arch = "gpu"}  avial.replicate %gpu, %A {…}

    A replicate that asks for a certain GPU keeps it. One that accumulates a reduction stays on the
    CPU, and a task, which is what could not be divided, where none of its loops gives threads: both
    say so. But in a loop with phases of the GPU a task of single loops is done there, by one
    thread: its arrays would travel in every step.
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
        stays: dict[ir.Operation, str] = {}
        for op in operations_in(schedule):
            if op.name not in PHASES or _asks_for(op).family == wanted.family:
                continue
            why = "" if wanted is CPU else _stays(op)
            if why:
                stays[op] = why
            else:
                moved.append(op)
        there = list(moved)
        for op, why in stays.items():
            if why.startswith(_IN_ORDER) and _is_short(op) and _travels_each_step(op, there):
                say_why(
                    op, f"{_IN_ORDER}: by one thread of the GPU, where its arrays are in each step"
                )
                moved.append(op)
            else:
                say_why(op, f"runs on the CPU: {why}")
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


_IN_ORDER = "it is not divided, and its loops run in order"


def _travels_each_step(task: ir.Operation, there: Sequence[ir.Operation]) -> bool:
    """Whether a loop around it has others that devices run, and that touch what it touches."""
    around = set(_loops_around(task))
    own = set(touched_by([task], 1)) | set(touched_by([task], 2))
    return any(
        around & set(_loops_around(op))
        and own & (set(touched_by([op], 1)) | set(touched_by([op], 2)))
        for op in there
    )


def _is_short(task: ir.Operation) -> bool:
    """Whether it does not more than go along its arrays: more takes one thread of a GPU longer than
    a CPU and the way there and back.
    """
    loops = [op for op in operations_in(task) if op.name in LOOPS or op.name == "scf.while"]
    return not any(inner in loops for loop in loops for inner in operations_in(loop))


def _loops_around(op: ir.Operation) -> Iterator[ir.Operation]:
    around = parent_of(op)
    while around is not None:
        if around.name in (*FORS, "scf.while"):
            yield around
        around = parent_of(around)


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
            found = first_on_host([view.operation for view in block.operations][:-1], scop)
            if found is not None:
                span = span_of(found[0].location)
                line = f" (line {span.line})" if span is not None else ""
                return f"{_IN_ORDER}: {found[1]}{line}"
    if not has_free_loops(list(operations_in(task)), scop):
        return "it is not divided, and none of its loops is free of order"
    return ""
