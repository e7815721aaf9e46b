"""What is offered at a place in a cell; `|` is the cursor."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter

from avial_lab.benchmarks.kernel_suite import kernel_names
from avial_lab.notebook import operations
from tests.notebook.conftest import Page, recorded_program
from tests.notebook.operations_table import TABLE, table

HEAD = """%%avial
avial.schedule %a, %b {
  %cpu = avial.target {arch = "x86_64"}
  %gpu = avial.target {arch = "sm_90"}
  %first = avial.task %cpu, %a, %b {
    scf.parallel %i = 0 to 20 {
      %inner = memref.load %a[%i]
      memref.store %inner, %b[%i]
    }
  }
"""


def offered(page: Page, marked: str) -> list[str]:
    """What IPython offers at the cursor: all matchers together, Python's too."""
    return [text for text, _ in completions(page, marked)]


def completions(page: Page, marked: str) -> list[tuple[str, str | None]]:
    """What a front end would have after taking each, up to the cursor, and its kind."""
    offset = marked.index("|")
    text = marked.replace("|", "", 1)
    assert page.shell.Completer is not None
    with provisionalcompleter():
        found = list(page.shell.Completer.completions(text, offset))
    word = max((c.start for c in found), default=0)
    assert all(c.end == offset and c.start == word for c in found)
    return [(c.text, c.type) for c in found]


@pytest.fixture
def notebook(page: Page) -> Page:
    """A page with arrays, other variables and a program."""
    page.names.update(a=np.zeros(20), b=np.zeros(20), grid=np.zeros((3, 4)), n=3, name="x")
    page.names["deck"] = recorded_program("deck")
    return page


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("%%avial\navial.ta|", ["avial.target", "avial.task"]),
        ("%%avial\navial.schedule %a { %x = avial.ta|", ["avial.target", "avial.task"]),
        ("%%avial\nscf.par|", ["scf.parallel"]),
        ("%%avial\n  thread_i|", ["gpu.thread_id"]),
        ("%%avial\nmemref.reinterpret_c|", ["memref.reinterpret_cast"]),
        ("\n \n%%avial --check\navial.conv|", ["avial.converge"]),
        (HEAD + "  %next = avial.task |", ["reads(", "writes(", "after "]),
        (HEAD + "  %next = avial.task %|", ["%gpu", "%cpu"]),
        (HEAD + "  %next = avial.task %cpu, %|", ["%b", "%a"]),
        (HEAD + "  %next = avial.task %cpu, %a, %|", ["%b"]),
        (HEAD + "  %next = avial.task %cpu, %a after %|", ["%first"]),
        (HEAD + "  %next = avial.task %cpu, %a re|", ["reads("]),
        (HEAD + '  %x = avial.target {arch = "x|', ["x86_64"]),
        (HEAD + "  %x = avial.target {a|", ["arch = "]),
        ("%%avial\navial.schedule %|", ["%a", "%b", "%grid"]),
        ("%%avial\navial.schedule %a, %|", ["%b", "%grid"]),
        ("%%avial\navial.schedule %a,\n  %g|", ["%grid"]),
        ("%%avial\nfunc.func @f(%x: f|", ["f16", "f32", "f64"]),
        ("%%avial\nfunc.func @f(%x: memref<20xf3|", ["f32"]),
        ("%%avial\nfunc.func @f(%x: f32,\n  %y: f32) {\n  %z = arith.addf %|", ["%y", "%x"]),
        ("%%avial\nscf.for %i = 0 t|", ["to", "tensor<"]),
        ("%%avial\n%b = arith.cmpi sl|", ["slt", "sle"]),
        ("%%avial\n^bb0(%p: i32):\n  %q = arith.addi %|", ["%p"]),
        ("%%avial\n%z = arith.addi %|", []),
        ("%%avial\n// impo|", []),
        ('%%avial\n"impo|', []),
        ("%%avial\n%q = impo|", []),
        ("%%avial --ra|", ["--ranks="]),
        ("%%avial --sync=|\navial.schedule", ["edges", "levels"]),
        ("%%avial --sync l|", ["levels"]),
        ("%%avial --show=dag,sta|", ["stages"]),
        ("%%avial --division cy|", ["cyclic", "cyclic(16)"]),
        ("%%avial --fn |\nfunc.func @heat(", ["heat"]),
        ("%avial sh|", ["show"]),
        ("x = 1\n%avial show |", ["deck"]),
        ("%avial stages deck p|", ["ptx"]),
        ("%avial show deck --|", ["--show="]),
        ("%avial load gem|", ["gemm", "gemver"]),
        ("%avial load gemm --size=MI|", ["MINI"]),
    ],
)  # fmt: skip
def test_offers(notebook: Page, marked: str, wanted: list[str]) -> None:
    assert offered(notebook, marked) == wanted


def test_a_body_sees_its_loops_and_no_other_bodys(notebook: Page) -> None:
    loop = "scf.parallel %k = 0 to 20 {\n      %x = memref.load %|"
    names = offered(notebook, f"{HEAD}  %next = avial.task %cpu, %a {{\n    {loop}")
    assert names[0] == "%k"
    assert set(names) == {"%k", "%first", "%gpu", "%cpu", "%b", "%a"}


def test_says_what_a_name_is(notebook: Page) -> None:
    kinds = dict(completions(notebook, HEAD + "  memref.load %|"))
    assert (kinds["%a"], kinds["%cpu"], kinds["%first"]) == ("buffer", "target", "task")


def test_nothing_typed_offers_what_programs_begin_with(notebook: Page) -> None:
    assert offered(notebook, "%%avial\n|")[:3] == ["avial.schedule", "avial.target", "avial.task"]


def test_every_kernel_is_offered(notebook: Page) -> None:
    assert set(kernel_names()) <= set(offered(notebook, "%avial load |"))


def test_options_not_given_yet(notebook: Page) -> None:
    options = offered(notebook, "%%avial --check -D n=3 --|")
    assert "--check" not in options
    assert "--define=" in options  # more than one number may be given
    assert {"--run", "--ranks=", "--quiet", "--expect-error"} <= set(options)


def test_python_is_left_alone(notebook: Page) -> None:
    assert "import" in offered(notebook, "impo|")
    assert "%%avial" in offered(notebook, "%%avia|")
    assert not any(name.startswith("memref") for name in offered(notebook, "x = mem|"))
    assert "name" in offered(notebook, "text = '%%avial'\nnam|")


def test_loading_again_offers_nothing_twice(notebook: Page) -> None:
    notebook.run("%reload_ext avial_lab")
    assert offered(notebook, "%%avial\nscf.par|") == ["scf.parallel"]


def test_table_is_the_notations() -> None:
    written = TABLE.read_text(encoding="utf-8")
    assert written == table(), "run python -m tests.notebook.operations_table"


def test_every_operation_has_words() -> None:
    for name in operations.FIRST:
        assert len(operations.describe_operation(name) or "") > 40, name
