"""Remarks on a program's phases once they are lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlir import ir

from avial_lab.artifact.binary import MachineCode
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.codegen.outline_tasks import tasks_by_function
from avial_lab.compiler.ir.phases import alone_in, fused_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.remarks import remarks_in, reordered_sums
from avial_lab.compiler.lowering.run import Stages
from avial_lab.compiler.lowering.stages import finished
from avial_lab.compiler.passes.placement.align_reductions import shared_sums
from avial_lab.compiler.passes.placement.join_phases import joined_in

Told = TypeVar("Told")


@dataclass(frozen=True)
class Finished:
    """All stages and the machine code; the names of the phases by their numbers, where a stage had
    them; for each task that was several phases why; the tasks whose sums are added in another
    order, with the most terms of one; the passes' remarks on the phases; why it is `alone` on one
    of several ranks.
    """

    stages: list[Stage]
    code: MachineCode
    phases: tuple[str, ...]
    fused: dict[str, tuple[str, ...]]
    sums: dict[str, int]
    remarks: dict[str, tuple[str, ...]]
    alone: str | None = None


def finished_phases(stages: Stages) -> Finished:
    """Run to the end, with what is only known on the way."""
    phases: tuple[str, ...] = ()
    fused: dict[str, tuple[str, ...]] = {}
    sums: dict[str, int] = {}
    shared: dict[str, int] = {}
    remarks: dict[str, tuple[str, ...]] = {}
    joined: dict[str, tuple[str, ...]] = {}
    alone: str | None = None

    def hear(module: ir.Operation) -> None:
        for name, lines in remarks_in(module).items():
            remarks[name] = (*remarks.get(name, ()), *lines)

    def watched() -> Stages:
        nonlocal phases, sums, shared, alone
        for stage, module in stages:
            if stage.name == "placed" and isinstance(module, ir.Operation):
                fused.update(fused_in(module))
                joined.update(joined_in(module))
                alone = alone_in(module)
                shared = {} if alone else shared_sums(module)
                hear(module)
            if stage.name == "mpi" and isinstance(module, ir.Operation):
                phases = phases_in(module)
            if stage.name == "loops" and isinstance(module, ir.Operation):
                joined.update(tasks_by_function(module))
                sums = reordered_sums(module)
                hear(module)
            yield stage, module

    made, code = finished(watched())
    _add_joined(fused, joined, lambda _, told: told)
    _add_joined(sums, joined, max)
    for name, terms in shared.items():
        sums[name] = max(terms, sums.get(name, 0))
    _add_joined(remarks, joined, lambda known, told: tuple(dict.fromkeys((*known, *told))))
    return Finished(made, code, phases, fused, sums, remarks, alone)


def _add_joined(
    known: dict[str, Told],
    joined: Mapping[str, Sequence[str]],
    both: Callable[[Told, Told], Told],
) -> None:
    """What is known of a task holds for all the phases that it is, what is known of a part for all
    the tasks that it is of, as `both` says where they have several.
    """
    for name, others in joined.items():
        if name not in known:
            continue
        told = known[name] if name in others else known.pop(name)
        for other in others:
            known[other] = both(known[other], told) if other in known else told


def phases_in(module: ir.Operation) -> tuple[str, ...]:
    """The names of the phases by their numbers, from what every rank runs."""
    attributes = program_function(module).attributes
    if "avial.phases" not in attributes:
        return ()
    return tuple(ir.StringAttr(name).value for name in ir.ArrayAttr(attributes["avial.phases"]))
