"""A pass that only the reference runs, by name, so that its golden file can run it alone.

Text of a pipeline -> passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from mlir import ir

from avial_lab.compiler.analysis.accesses.program import read_program
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.pipelines import OURS
from avial_lab.compiler.lowering.run import Pass
from avial_lab.compiler.passes.placement.place_tasks import PlaceInOrder
from avial_lab.planning.task_graph import build_dag


@dataclass(frozen=True)
class PlaceInOrderHere:
    """`PlaceInOrder` with the buffers that the module itself has."""

    def __call__(self, module: ir.Operation) -> None:
        PlaceInOrder.of(build_dag(*read_program(module, None)))(module)

    def __str__(self) -> str:
        return "place-in-order"


def passes_in(text: str) -> tuple[Pass | str, ...]:
    """As `parse_passes`, with a `place-in-order` that needs to be told nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OURS, "place-in-order", PlaceInOrderHere)
        return parse_passes(text)
