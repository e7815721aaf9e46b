"""Each rank takes the steps of its own program, in their order."""

from __future__ import annotations

import re

from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.distribution.tasks_to_mpi import TasksToMpi
from avial_lab.compiler.passes.placement.place_tasks import PlaceTasksHere
from tests.compiler.backends import deck
from tests.compiler.passes.golden import each_case


def steps_of(module: ir.Operation) -> list[list[int]]:
    """The numbers of the steps in the order of the text, for each rank's block."""
    blocks = re.split(r"scf\.if %\w+ \{", str(module).partition("func.func @main(")[2])
    found = [[int(n) for n in re.findall(r"avial\.step = (\d+)", block)] for block in blocks]
    return [numbers for numbers in found if numbers]


@each_case("tasks_to_mpi")
def test_steps_stay_in_order(case: str) -> None:
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(case).operation
        run_passes(module, (TasksToMpi(),))
        assert not [op.name for op in operations_in(module) if op.name.startswith("avial.")]
        for numbers in steps_of(module):
            assert numbers == sorted(numbers)


def test_every_task_of_every_rank() -> None:
    for ranks in (2, 3):
        module = deck.module().operation
        run_passes(module, (PlaceTasksHere(ranks, gpus=1), TasksToMpi()))
        called = re.findall(r"call @(task\d)\(", str(module))
        assert sorted(called) == ["task1", "task2", "task3"]
        assert steps_of(module) == [sorted(numbers) for numbers in steps_of(module)]
