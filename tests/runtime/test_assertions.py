"""Assertions that do not hold: told with their words and their line, wherever they stand; neither
the compiler nor, where it can be helped, a rank ends of them.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import RunError
from avial_lab.runtime.launch.cluster import Cluster

LOOP = """
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf64>
    BODY
    affine.store %x, %b[%i] : memref<8xf64>
  }"""
HELPER = """
func.func private @positive(%x: f64) -> f64 {
  %zero = arith.constant 0.0 : f64
  %fine = arith.cmpf ogt, %x, %zero : f64
  cf.assert %fine, "told"
  return %x : f64
}"""
ABOVE = """%low = arith.constant 0.5 : f64
    %fine = arith.cmpf ogt, %x, %low : f64
    cf.assert %fine, "told" """
NEVER = """
  %never = arith.constant false
  cf.assert %never, "told" """
OF_DATA = """
  %zero = arith.constant 0 : index
  %first = memref.load %a[%zero] : memref<8xf64>
  %low = arith.constant 0.5 : f64
  %fine = arith.cmpf ogt, %first, %low : f64
  cf.assert %fine, "told" """


def function(*parts: str) -> str:
    body = "".join(parts)
    return f"func.func @f(%a: memref<8xf64>, %b: memref<8xf64>) {{{body}\n  return\n}}"


PLAIN = LOOP.replace("BODY", "")
FORMS = {
    "never": function(PLAIN, NEVER, PLAIN),
    "first": function(NEVER, PLAIN),
    "of-data-before-never": function(
        PLAIN, OF_DATA, NEVER.replace("told", "not reached").replace("never", "other"), PLAIN
    ),
    "in a branch": function(PLAIN, "\n  %yes = arith.constant true\n  scf.if %yes {", NEVER, "}"),
    "in a loop": function(LOOP.replace("BODY", ABOVE)),
    "in a function that the control flow calls": HELPER
    + function(
        PLAIN,
        "\n  %minus = arith.constant -1.0 : f64\n  %y = func.call @positive(%minus) : (f64) -> f64",
        PLAIN,
    ),
    "in a function that a loop calls": HELPER
    + function(LOOP.replace("BODY", "%y = func.call @positive(%x) : (f64) -> f64")),
    "in a task": "avial.schedule %a: memref<8xf64>, %b: memref<8xf64> {\n"
    '  %cpu = avial.target {arch = "cpu"}\n  %t = avial.task %cpu, %a, %b {'
    + LOOP.replace("BODY", ABOVE)
    + "\n  }\n  %u = avial.task %cpu, %b {\n    memref.copy %b, %b : memref<8xf64> to memref<8xf64>"
    "\n  }\n}",
}


QUICK = ("of-data-before-never", "in a function that a loop calls")


@pytest.mark.mpi
@pytest.mark.parametrize(
    "form",
    [form if form in QUICK else pytest.param(form, marks=pytest.mark.slow) for form in FORMS],
)
def test_it_is_told_with_its_line(form: str, cluster: Cluster) -> None:
    text = FORMS[form]
    arrays = {"a": np.arange(8.0), "b": np.full(8, 7.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fault of ours would be one
        program = avial_lab.compile(text, arrays=arrays, ranks=2)
    with pytest.raises(RunError, match="an assertion does not hold: told\n") as caught:
        program.run(cluster)
    assert caught.value.span is not None
    assert '"told"' in text.splitlines()[caught.value.span.line - 1]
    # No task is named that it does not stand in.
    assert ("in task '" in str(caught.value)) == (form in ("in a loop", "in a task"))
    np.testing.assert_array_equal(arrays["b"], 7.0)
