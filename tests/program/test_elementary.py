"""Programs with elementary functions: a run has the bits of its reference, strict ones libm's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.program.program import Program

KINDS = {"f32": np.float32, "f64": np.float64}
PLAIN = """
func.func @f(%a: memref<{n}x{t}>, %b: memref<{n}x{t}>) {{
  affine.for %i = 0 to {n} {{
    %x = affine.load %a[%i] : memref<{n}x{t}>
    %v1 = math.exp %x : {t}
    %v2 = math.log %v1 : {t}
    %v3 = math.erf %v2 : {t}
    %v4 = math.exp2 %v3 : {t}
    %v5 = math.log2 %v4 : {t}
    %v6 = math.expm1 %v5 : {t}
    %v7 = math.log1p %v6 : {t}
    %v8 = math.tanh %v7 : {t}
    %v9 = arith.divf %x, %v8 : {t}
    %v10 = math.log10 %v9 : {t}
    %v11 = math.sin %x : {t}
    %v12 = math.cos %v11 : {t}
    %v13 = arith.addf %v10, %v12 : {t}
    %v14 = math.powf %v12, %x : {t}
    %v15 = arith.addf %v13, %v14 : {t}
    %v16 = math.tan %x : {t}
    %v17 = math.atan2 %v12, %x : {t}
    %v18 = math.sinh %v17 : {t}
    %v19 = math.cbrt %v18 : {t}
    %v20 = math.cosh %v19 : {t}
    %v21 = math.asin %v11 : {t}
    %v22 = math.acos %v16 : {t}
    %v23 = math.atan %v22 : {t}
    %v24 = arith.addf %v20, %v21 : {t}
    %v25 = arith.mulf %v23, %v24 : {t}
    %v26 = arith.minnumf %v15, %v25 : {t}
    affine.store %v26, %b[%i] : memref<{n}x{t}>
  }}
  return
}}
"""
OF_THE_INDEX = """
func.func @f(%a: memref<40x{t}>, %b: memref<{n}x{t}>) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant {n} : index
  %more = arith.constant 1.75 : {t}
  scf.for %i = %zero to %n step %one {{
    %k = arith.index_cast %i : index to i32
    %x = arith.sitofp %k : i32 to {t}
    %v = arith.addf %x, %more : {t}
    %y = math.exp %v : {t}
    memref.store %y, %b[%i] : memref<{n}x{t}>
  }}
  affine.for %i = 0 to 40 {{
    affine.store %more, %a[%i] : memref<40x{t}>
  }}
  return
}}
"""
TASKS = """
avial.schedule %a, %b {{
  %cpu = avial.target {{arch = "{arch}"}}
  %task = avial.task %cpu, %a, %b {{
    scf.parallel %i = 0 to {n} {{
      %x = memref.load %a[%i]
      %y = math.exp %x
      %s = math.sin %x
      %c = math.cos %s
      %p = arith.mulf %y, %c
      %z = math.erf %p
      memref.store %z, %b[%i]
    }}
  }}
}}
"""
every_kind = pytest.mark.parametrize("element", KINDS)
every_size = pytest.mark.parametrize("size", [1, 2, 3, 17, 1009])


def compiled(text: str, element: str, arrays: dict[str, np.ndarray], **options: Any) -> Program:
    size = arrays["b"].size
    return avial_lab.compile(
        text.format(n=size, t=element, arch=options.pop("arch", "cpu")), arrays=arrays, **options
    )


def inputs(element: str, size: int) -> dict[str, np.ndarray]:
    rng, dtype = np.random.default_rng(7), KINDS[element]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -745, 89, 1e-40, 0.84375, 1e7], dtype)
    values = rng.normal(size=size).astype(dtype)
    places = rng.random(size) < 0.3
    values[places] = rng.choice(special, int(places.sum()))
    return {"a": values, "b": np.full(size, 7, dtype)}


@pytest.mark.quick("1-f32-2", "17-f64-1", "1009-f32-1", "1009-f64-2")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
@every_kind
@every_size
def test_a_run_has_the_bits_of_its_reference(element: str, size: int, ranks: int) -> None:
    arrays = inputs(element, size)
    program = compiled(PLAIN, element, arrays, ranks=ranks)
    program.run(check=True)
    assert "bit for bit" in str(program.check_report)


@pytest.mark.quick("1-f64", "17-f32")
@pytest.mark.mpi
@every_kind
@every_size
def test_what_may_be_known_when_it_is_compiled(element: str, size: int) -> None:
    """Loops of one iteration vanish, and with them what hangs on their variable alone. (libm has
    other last digits for 1.75.)
    """
    arrays = {"a": np.zeros(40, KINDS[element]), "b": np.full(size, 7, KINDS[element])}
    program = compiled(OF_THE_INDEX, element, arrays, ranks=1)
    program.run(check=True)
    assert "bit for bit" in str(program.check_report)


@pytest.mark.quick("f32-gpu", "f64-cpu")
@pytest.mark.mpi
@pytest.mark.parametrize("arch", ["cpu", "gpu"])
@every_kind
def test_tasks(element: str, arch: str) -> None:
    arrays = inputs(element, 1009)
    program = compiled(TASKS, element, arrays, ranks=2, arch=arch)
    program.run(check=True)
    assert "bit for bit" in str(program.check_report)


def test_it_tells_whose_functions_they_are() -> None:
    arrays = inputs("f64", 50)
    told = str(compiled(PLAIN, "f64", arrays, ranks=1).explain())
    assert told.endswith(
        "log1p, log2, powf, sin, sinh, tan, tanh in loops are vector code in place of libm"
    )
    strict = compiled(PLAIN, "f64", arrays, ranks=1, strict=True)
    assert "vector code" not in str(strict.explain())
    assert "avial.exp" not in strict.stages["host"].text
    tasks = compiled(TASKS, "f64", arrays, ranks=1)
    assert str(tasks.explain()).endswith(
        "cos, erf, exp, sin in loops are vector code in place of libm"
    )
