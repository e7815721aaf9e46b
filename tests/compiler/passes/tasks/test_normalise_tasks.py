"""Bodies of tasks in the normal form of loops: what they need beside, and which are left."""

from __future__ import annotations

import re

import numpy as np
import pytest

from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program

SMALL_TOO = "normalise-tasks{least=1}"


def tables(first: float, second: float) -> str:
    """Two tasks that read a table each, which bufferisation makes a global of."""
    body = """
      %table = memref.get_global @{name} : memref<4xf64>
      affine.for %i = 0 to 4 {{
        %x = affine.load %table[%i] : memref<4xf64>
        affine.store %x, %{array}[%i] : memref<4xf64>
      }}"""
    return f"""
memref.global "private" constant @one : memref<4xf64> = dense<{first}>
memref.global "private" constant @two : memref<4xf64> = dense<{second}>
func.func @main(%a: memref<4xf64> {{avial.name = "a"}}, %b: memref<4xf64> {{avial.name = "b"}}) {{
  avial.schedule %a, %b {{
    %cpu = avial.target {{arch = "cpu"}}
    %t1 = avial.task %cpu, %a {{{body.format(name="one", array="a")}
    }}
    %t2 = avial.task %cpu, %b {{{body.format(name="two", array="b")}
    }}
  }}
  return
}}
"""


def compiled(text: str, sizes: str = SMALL_TOO, **arrays: np.ndarray) -> Program:
    return compile_program(text, arrays=arrays, ranks=1, sizes=sizes)


@pytest.mark.mpi
def test_each_body_keeps_its_own_table() -> None:
    a, b = np.zeros(4), np.zeros(4)
    compiled(tables(1.5, 2.5), a=a, b=b).run(check=True)
    assert (a == 1.5).all()
    assert (b == 2.5).all()


COUNTED = """
avial.schedule %a: memref<1024xf64> {{
  %cpu = avial.target {{arch = "cpu"}}
  %t = avial.task %cpu, %a {{
    scf.for %i = 0 to {count} {{
      %x = memref.load %a[%i]
      %y = arith.addf %x, %x
      memref.store %y, %a[%i]
    }}
  }}
}}
"""


@pytest.mark.parametrize(("count", "left"), [(255, True), (256, False)])
def test_a_body_of_few_iterations_is_left_as_it_is_written(count: int, left: bool) -> None:
    program = compiled(COUNTED.format(count=count), sizes="", a=np.zeros(1024))
    text = program.stages["loops"].text
    assert ("scf.for %i" in text) == left
    assert ("avial.shared" in text) == left


@pytest.mark.mpi
def test_a_sum_in_another_order_is_told_and_within_its_bound() -> None:
    text = """
avial.schedule %a: memref<4096xf32>, %s: memref<1xf32> {
  %cpu = avial.target {arch = "cpu"}
  %t = avial.task %cpu, %a, %s {
    %zero = arith.constant 0.0 : f32
    %0 = arith.constant 0 : index
    %sum = scf.for %i = 0 to 4096 iter_args(%old = %zero) -> (f32) {
      %x = memref.load %a[%i]
      %new = arith.addf %old, %x
      scf.yield %new : f32
    }
    memref.store %sum, %s[%0]
  }
}
"""
    a = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
    program = compiled(text, sizes="", a=a, s=np.zeros(1, np.float32))
    assert dict(program.built.reordered) == {"s": 4096}
    assert "s (a sum of 4,096 terms)" in str(program.explain())
    program.run(check=True)
    strict = compile_program(
        text, arrays={"a": a, "s": np.zeros(1, np.float32)}, ranks=1, strict=True
    )
    assert not strict.built.reordered


def test_functions_of_several_tasks_say_so() -> None:
    """What is known of the first holds for all: sums in another order, remarks."""
    body = "%k = arith.constant {}.0 : f64 linalg.fill ins(%k) outs(%{})"
    tasks = "".join(
        f"%t{k} = avial.task %cpu, %{name} {{ {body.format(k, name)} }}\n"
        for k, name in enumerate("ab")
    )
    text = f'avial.schedule %a, %b {{\n%cpu = avial.target {{arch = "cpu"}}\n{tasks}}}\n'
    program = compiled(text, a=np.zeros(9), b=np.zeros(9))
    assert re.search(r'avial\.tasks = \["t0", "t1"\]', program.stages["mpi"].text)
