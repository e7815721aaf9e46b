"""Passes that only other passes run, by name, so that golden files can run them alone.

Text of a pipeline -> passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from mlir import ir

from avial_lab.accesses import read_program
from avial_lab.dag import build_dag
from avial_lab.passes.carried_to_memory import CarriedToMemory
from avial_lab.passes.index_loops import IndexLoops
from avial_lab.passes.inline_calls import InlineCalls
from avial_lab.passes.normalise import ConstantGlobals, KeepPlaces, LinalgToLoops, OnlyLoops
from avial_lab.passes.one_task import OneTask
from avial_lab.passes.own_memory import OwnMemory
from avial_lab.passes.parallel_first import ParallelFirst
from avial_lab.passes.place_tasks import PlaceInOrder
from avial_lab.pipelines import OURS, Pass, parse_passes


@dataclass(frozen=True)
class PlaceInOrderHere:
    """`PlaceInOrder` with the buffers that the module itself has."""

    def __call__(self, module: ir.Operation) -> None:
        PlaceInOrder.of(build_dag(*read_program(module, None)))(module)

    def __str__(self) -> str:
        return "place-in-order"


STEPS: dict[str, type] = {
    "carried-to-memory": CarriedToMemory,
    "constant-globals": ConstantGlobals,
    "index-loops": IndexLoops,
    "inline-calls": InlineCalls,
    "keep-places": KeepPlaces,
    "linalg-to-loops": LinalgToLoops,
    "one-task": OneTask,
    "only-loops": OnlyLoops,
    "own-memory": OwnMemory,
    "parallel-first": ParallelFirst,
    "place-in-order": PlaceInOrderHere,
}


def passes_in(text: str) -> tuple[Pass | str, ...]:
    """As `parse_passes`, with the passes of `STEPS` too."""
    with pytest.MonkeyPatch.context() as patch:
        for name, each in STEPS.items():
            patch.setitem(OURS, name, each)
        return parse_passes(text)
