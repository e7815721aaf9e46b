"""Programs of loops in short notation: those written by hand come back equal, plain functions are
shown as the tasks they become.
"""

from __future__ import annotations

import numpy as np
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell, print_module
from avial_lab.compiler.requests import PrintBack, Printed, Source
from avial_lab.compiler.worker.answers import answer
from avial_lab.core.buffers import bind_arrays

BY_HAND = """\
avial.schedule %a: memref<100xf64>, %b: memref<100xf64>, %e: memref<f64> {
  %cpu = avial.target {arch = "cpu"}
  %loop = avial.converge until %e lt 0.001 max 200 {
    %s = avial.replicate %cpu, %a, %b {
      affine.for %i = 1 to 99 {
        %l = affine.load %a[%i - 1] : memref<100xf64>
        affine.store %l, %b[%i] : memref<100xf64>
      }
    }
    %n = avial.task %cpu, %b, %e {
      %zero = arith.constant 0 : index
      %x = memref.load %b[%zero] : memref<100xf64>
      memref.store %x, %e[] : memref<f64>
    }
  }
  %last = avial.converge 3 after %loop {
    %c = avial.replicate %cpu, %b, %a {
      affine.for %i = 1 to 99 {
        %y = affine.load %b[%i] : memref<100xf64>
        affine.store %y, %a[%i] : memref<100xf64>
      }
    }
  }
}
"""


def printed(text: str, **arrays: np.ndarray) -> str:
    source = Source(text, "test", bind_arrays(arrays) if arrays else None)
    result = answer(PrintBack(source))
    assert isinstance(result, Printed), result
    return result.text


def test_loops_written_by_hand_come_back(context: ir.Context) -> None:
    assert printed(BY_HAND) == BY_HAND
    module = parse_cell(BY_HAND, cell="x", context=context)
    assert str(parse_cell(print_module(module), cell="x", context=context)) == str(module)


PLAIN = """
func.func @heat(%A: memref<20xf64>, %B: memref<20xf64>) {
  affine.for %t = 0 to 5 {
    affine.for %i = 1 to 19 {
      %l = affine.load %A[%i - 1] : memref<20xf64>
      affine.store %l, %B[%i] : memref<20xf64>
    }
    affine.for %i = 1 to 19 {
      %x = affine.load %B[%i] : memref<20xf64>
      affine.store %x, %A[%i] : memref<20xf64>
    }
  }
  return
}
"""


def test_a_plain_function_is_shown_as_its_tasks_with_the_reasons_above() -> None:
    text = printed(PLAIN, A=np.zeros(20), B=np.zeros(20))
    lines = [line.strip() for line in text.splitlines()]
    loop = lines.index("%loop1 = avial.converge {")
    above = [line for line in lines[loop - 3 : loop] if line.startswith("// ")]
    assert any(line.startswith("// A[i - 1] is written by") for line in above)
    assert lines[loop + 1] == "affine.for %t = 0 to 5 {"
    assert any(line.startswith("%S1 = avial.replicate %cpu, %A, %B") for line in lines)
    assert "// iterations of i are independent" in lines
    assert "avial.why" not in text
    assert '"avial.' not in text


def test_a_plain_function_that_cannot_be_taken_apart_is_one_task() -> None:
    memory = np.zeros(20)
    text = printed(PLAIN, A=memory, B=memory)
    assert "// its arrays share memory" in text
    assert "avial.replicate" not in text
