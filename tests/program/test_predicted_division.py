"""Loops divided in the way that is predicted to be the fastest."""

from __future__ import annotations

import re

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import AvialError, BindError, ScheduleError

EVEN = """
func.func @even(%A: memref<4096xf64>, %B: memref<4096xf64>) {
  affine.for %i = 1 to 4095 {
    %l = affine.load %A[%i - 1] : memref<4096xf64>
    %r = affine.load %A[%i + 1] : memref<4096xf64>
    %s = arith.addf %l, %r : f64
    affine.store %s, %B[%i] : memref<4096xf64>
  }
  return
}
"""

TRIANGLE = """
func.func @triangle(%A: memref<512x512xf64>, %y: memref<512xf64>) {
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to affine_map<(d) -> (d)>(%i) {
      %a = affine.load %A[%i, %j] : memref<512x512xf64>
      %b = math.exp %a : f64
      %c = math.exp %b : f64
      %s = affine.load %y[%i] : memref<512xf64>
      %t = arith.addf %s, %c : f64
      affine.store %t, %y[%i] : memref<512xf64>
    }
  }
  return
}
"""

OPEN = """
func.func @any(%A: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf64>
  affine.for %i = 0 to %n {
    %a = affine.load %A[%i] : memref<?xf64>
    %b = arith.addf %a, %a : f64
    affine.store %b, %A[%i] : memref<?xf64>
  }
  return
}
"""


@pytest.mark.parametrize(("text", "best"), [(EVEN, "block"), (TRIANGLE, "cyclic(16)")])
def test_the_shortest_prediction_is_taken(text: str, best: str) -> None:
    program = avial_lab.compile(text, ranks=2, division="auto")
    assert str(program.question.options.division) == best
    told = str(program.explain())
    line = re.search(r"division    (\S+): (.*) predicted; (\S+) (.*)", told)
    assert line is not None, told
    assert line[1] == best
    for division in ("block", "cyclic"):
        alone = avial_lab.compile(text, ranks=2, division=division)
        assert program.simulate().makespan_s <= alone.simulate().makespan_s
        assert "division  " not in str(alone.explain())


def test_a_grid_is_looked_at_where_there_is_one() -> None:
    told = str(avial_lab.compile(TRIANGLE, ranks=4, division="auto").explain())
    assert "grid" in told
    one = avial_lab.compile(EVEN, ranks=1, division="auto")
    assert re.search(r"division    block: [^;]* predicted$", str(one.explain()), re.M)


def test_it_runs_as_any_other() -> None:
    arrays = {"A": np.random.default_rng(1).random((512, 512)), "y": np.zeros(512)}
    program = avial_lab.compile(TRIANGLE, ranks=2, division="auto", arrays=arrays)
    program.run(check=True)
    assert program.check_report is not None
    want = np.tril(np.exp(np.exp(arrays["A"])), -1).sum(1)
    np.testing.assert_allclose(arrays["y"], want, rtol=1e-12)


def test_tasks_are_not_divided() -> None:
    text = (
        'avial.schedule %a {\n  %cpu = avial.target {arch = "cpu"}\n'
        "  %t = avial.task %cpu, %a {\n  }\n}"
    )
    with pytest.raises(ScheduleError, match="division 'auto' applies to loops"):
        avial_lab.compile(text, arrays={"a": np.zeros(4)}, division="auto")


@pytest.mark.parametrize("division", ["auto(2)", "Auto", "automatic"])
def test_other_words_are_refused(division: str) -> None:
    with pytest.raises(AvialError, match="unknown division"):
        avial_lab.compile(EVEN, division=division)


def test_nothing_is_predicted_of_unknown_sizes() -> None:
    with pytest.raises(BindError, match="the size of 'A' is not known"):
        avial_lab.compile(OPEN, ranks=2, division="auto")
    with pytest.raises(BindError, match="the size of 'A' is not known"):
        avial_lab.compile(OPEN, ranks=2).simulate()
    with pytest.raises(BindError, match="the array 'A'") as refused:
        avial_lab.compile(OPEN, ranks=1).run()
    assert refused.value.hint == "it is ?xf64: pass one of that name"
