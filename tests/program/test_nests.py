"""A plain function, compiled: what its program tells of its loops, and the page that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.artifact.explanation import Cell, Order
from avial_lab.core.errors import AvialError, RenamedWarning
from avial_lab.program.program import Program

HEAT = """
func.func @heat(%rod: memref<24xf64>, %new: memref<24xf64>) {
  affine.for %t = 0 to 6 {
    affine.for %i = 1 to 23 {
      %left = affine.load %rod[%i - 1] : memref<24xf64>
      %right = affine.load %rod[%i + 1] : memref<24xf64>
      %sum = arith.addf %left, %right : f64
      affine.store %sum, %new[%i] : memref<24xf64>
    }
    affine.for %i = 1 to 23 {
      %mean = affine.load %new[%i] : memref<24xf64>
      affine.store %mean, %rod[%i] : memref<24xf64>
    }
  }
  return
}
"""


@pytest.fixture(scope="module")
def heat() -> Program:
    arrays = {"rod": np.zeros(24), "new": np.zeros(24)}
    return avial_lab.compile(HEAT, arrays=arrays, ranks=3, cell="heat.mlir", name="heat")


def test_its_tasks_are_in_their_loop_and_its_moves_in_the_schedule(heat: Program) -> None:
    assert [(task.name, task.group) for task in heat.graph.tasks] == [
        ("S1", ("loop1",)),
        ("S2", ("loop1",)),
    ]
    assert heat.graph.groups[0].words == "6 times"
    assert heat.plan is not None
    assert heat.schedule.bytes_moved == heat.plan.bytes_moved == 2 * 2 * 5 * 8
    assert heat.schedule.messages == 20
    assert [p.rank for p in heat.schedule.placements if p.task == "S1"] == [0, 1, 2]


def test_every_report_has_its_nest(heat: Program) -> None:
    assert [nest.name for nest in heat.nests] == [each.name for each in heat.explain().reports]
    nest = heat.nest("loop1")
    assert (nest.rows, nest.columns, nest.lanes) == ("t", "i", ("S1", "S2"))
    assert (Order.FLOW, Cell(0, 1, 4), Cell(1, 0, 5)) in nest.needs
    assert nest.span is not None
    assert nest.span.excerpt().splitlines()[1] == "  affine.for %t = 0 to 6 {"
    assert not heat.nest("S1").forbidding


def test_what_reports_were_called_goes_on_working(heat: Program) -> None:
    with pytest.warns(RenamedWarning, match="called reports now"):
        before = heat.explain().verdicts
    assert before == heat.explain().reports


def test_another_name_is_an_error_with_the_neighbour(heat: Program) -> None:
    with pytest.raises(AvialError, match="did you mean 'loop1'"):
        heat.nest("loop")
    with pytest.raises(AvialError, match="there are: loop1, S1, S2"):
        heat.nest("zzz")


def test_its_notation_names_the_tasks(heat: Program) -> None:
    assert re.search(r"%loop1 = avial\.converge \{\n *affine\.for %t", heat.notation)
    assert "%S2 = avial.replicate %cpu, %new, %rod" in heat.notation


def test_its_page_has_all_of_it(heat: Program, tmp_path: Path) -> None:
    page = heat.report(tmp_path / "heat.html").read_text()
    for section in ("loops", "dependences", "graph", "schedule", "split", "messages", "stages"):
        assert f'id="{section}"' in page, section
    text = re.sub(r"<[^>]*>", "", page)
    for fact in ("↻ loop1", "divided over the ranks", "read by another rank", "160 B moved"):
        assert fact in text, fact


def test_a_program_of_tasks_has_no_nests() -> None:
    text = """avial.schedule %a {
  %cpu = avial.target {arch = "cpu"}
  %t = avial.task %cpu, %a { affine.for %i = 0 to 4 {
    %x = affine.load %a[%i]
    affine.store %x, %a[%i]
  } }
}
"""
    program = avial_lab.compile(text, arrays={"a": np.zeros(4)}, ranks=1)
    assert program.nests == ()
    with pytest.raises(AvialError, match="there are: none"):
        program.nest("t")
