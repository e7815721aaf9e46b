"""`%%avial` on a Python function."""

from __future__ import annotations

import numpy as np

from avial_lab.core.errors import BindError, VerifyError
from avial_lab.notebook.stepper import Stepping
from avial_lab.program.functions import FunctionProgram
from tests.notebook.conftest import Page

CELL = """%%avial -n 1 -q -o p
def shifted(u, v, by):
    for i in range(len(u)):
        v[i] = u[i - by]
"""


def test_a_function_is_compiled_for_the_variables_of_its_parameters(page: Page) -> None:
    page.shell.user_ns.update(u=np.arange(5.0), v=np.zeros(5), by=2)
    assert page.run(CELL) is None
    function, program = page.shell.user_ns["shifted"], page.shell.user_ns["p"]
    assert isinstance(function, FunctionProgram)
    assert program is not None
    assert 'loc("notebook cell":4:' in program.text
    stepped = Stepping(program).data(inside=True)
    assert "def shifted" in str(stepped)
    lines = [line for stage in program.inside.stages for line in stage.origins]
    assert {2, 3, 4} <= {n for numbers in lines for n in numbers}
    report = function.explain().reports[0]
    assert report.span is not None
    assert report.span.line == 3


def test_mistakes_are_told_in_the_cell(page: Page) -> None:
    page.shell.user_ns.update(u=np.arange(5.0))
    error = page.run("%%avial -n 1 -q\ndef f(u):\n    return {}\n")
    assert isinstance(error, VerifyError)
    assert error.span is not None
    assert (error.span.cell, error.span.line, error.span.column) == ("In [1]", 3, 12)
    missing = page.run("%%avial -n 1 -q\ndef g(w):\n    return w[0]\n")
    assert isinstance(missing, BindError)
    assert "no variable has that name" in missing.message
    assert page.shell.user_ns["g"](np.ones(2)) == 1.0, "it is defined all the same"


IN_C = """%%avial -n 1 -q -o c_program --run --lang=c
#define SHIFT 2.0
void added(int n, const double u[n], double v[n]) {
  for (int i = 0; i < n; i++)
    v[i] = u[i] + SHIFT;
}
"""


def test_a_function_in_c(page: Page) -> None:
    v = np.zeros(5)
    page.shell.user_ns.update(u=np.arange(5.0), v=v, n=5)
    assert page.run(IN_C) is None
    np.testing.assert_array_equal(v, np.arange(5.0) + 2)
    report = page.shell.user_ns["c_program"].built.reports[0]
    assert report.span is not None
    assert report.span.line == 4
    error = page.run("%%avial -n 1 -q --lang=c\nvoid f(double u[5]) {\n  u[0] = foo(1);\n}\n")
    assert isinstance(error, VerifyError)
    assert error.span is not None
    assert (error.span.cell, error.span.line) == ("In [1]", 3)
    added = page.shell.user_ns["added"]
    assert isinstance(added, FunctionProgram)
    added(5, np.ones(5), v)
    np.testing.assert_array_equal(v, np.ones(5) + 2)
