"""The sequential meaning: what tasks do, one after the other in the order of the text."""

from __future__ import annotations

import numpy as np

from avial_lab.compiler.passes.tasks.unwrap_tasks import UnwrapTasks
from tests.compiler.passes.golden import cases_of, computed


def test_one_after_the_other() -> None:
    a, b = computed(cases_of("unwrap_tasks")["both"], (UnwrapTasks(),))
    assert not a.any()
    assert not b.any()


def test_the_order_of_the_text() -> None:
    """The copy first: it has what was there before."""
    task = """    %{name} = "avial.task"(%cpu, %ref) ({{
      {body}
      omp.terminator
    }}) {{name = "{name}", operandSegmentSizes = array<i32: 1, 0, 1, 0>}}
      : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref"""
    copy = task.format(name="s", body="memref.copy %a, %b : memref<3xf64> to memref<3xf64>")
    fill = task.format(name="t", body="linalg.fill ins(%x : f64) outs(%a : memref<3xf64>)")
    text = """func.func @f(%a: memref<3xf64>, %b: memref<3xf64>, %x: f64) {
      %ref = builtin.unrealized_conversion_cast %a : memref<3xf64> to !avial.buffer_ref
      "avial.schedule"(%ref) ({
        %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
        TASKS
        omp.terminator
      }) : (!avial.buffer_ref) -> ()
      return
    }"""
    given = {0: np.full(3, 5.0), 2: np.float64(7.0)}
    for tasks, wanted in (((copy, fill), 5.0), ((fill, copy), 7.0)):
        program = text.replace("TASKS", "\n".join(tasks))
        a, b = computed(program, (UnwrapTasks(),), given=given)
        assert a.tolist() == [7.0] * 3
        assert b.tolist() == [wanted] * 3
