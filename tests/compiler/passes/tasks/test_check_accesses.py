"""What leaves its array is refused, and nothing else."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.check_accesses import CheckAccesses
from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of
from avial_lab.core.errors import VerifyError

SIZE = 10


@pytest.mark.parametrize("factor", [-2, -1, 1, 2])
@pytest.mark.parametrize("shift", [-1, 0, 4, 9, 10])
@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_every_subscript(factor: int, shift: int, count: int) -> None:
    inside = all(0 <= factor * i + shift < SIZE for i in range(count))
    text = f"""func.func @f(%A: memref<{SIZE}xf64>, %x: f64) {{
      affine.for %i = 0 to {count} {{
        affine.store %x, %A[%i * {factor} + {shift}] : memref<{SIZE}xf64>
      }}
      return
    }}"""
    with ir.Context():
        module = ir.Module.parse(text)
        with nullcontext() if inside else pytest.raises(VerifyError):
            run_passes(module.operation, (CheckAccesses(),))


BUFFERS = "%a: memref<10xf64>, %b: memref<10xf64>"
FIRST = "%zero = arith.constant 0 : index\n%x = memref.load %b[%zero] : memref<10xf64>\n"
ROWS = "memref<10xf64>"
VIEW = "memref<4xf64, strided<[1], offset: 3>>"


def check_task(body: str, *functions: str, around: str = "{}") -> None:
    """Reads a task that loads %x of %b, as `%%avial` does, and refuses what leaves its arrays."""
    task = f"%t = avial.task %cpu, %a, %b {{\n{FIRST}{body}\n}}"
    schedule = f'avial.schedule {BUFFERS} {{\n%cpu = avial.target {{arch = "cpu"}}\n'
    cell = "\n".join((*functions, schedule, around.replace("{}", task), "}"))
    graph_of(parse_cell(cell, cell="t", context=ir.Context()), Source(cell, "t"))


@pytest.mark.parametrize("factor", [-2, -1, 1, 2])
@pytest.mark.parametrize("shift", [-1, 0, 4, 9, 10])
@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_every_subscript_in_a_task(factor: int, shift: int, count: int) -> None:
    inside = all(0 <= factor * i + shift < SIZE for i in range(count))
    with nullcontext() if inside else pytest.raises(VerifyError, match=r"^a\[.*\] reaches index"):
        check_task(f"""affine.for %i = 0 to {count} {{
          affine.store %x, %a[%i * {factor} + {shift}] : {ROWS}
        }}""")


@pytest.mark.parametrize(
    "body",
    [
        f"scf.for %i = %zero to %ten step %one {{ memref.store %x, %a[%i] : {ROWS} }}",
        f"scf.parallel (%i) = (%zero) to (%ten) step (%one) {{ memref.store %x, %a[%i] : {ROWS} }}",
        f"memref.store %x, %a[%end] : {ROWS}",
        "%v = vector.load %a[%end] : memref<10xf64>, vector<4xf64>",
    ],
)
@pytest.mark.parametrize("end", [6, 7, 9, 10, 11])
def test_every_kind_of_access(body: str, end: int) -> None:
    last = end + (3 if "vector" in body else -1 if "for" in body or "parallel" in body else 0)
    numbers = f"""%one = arith.constant 1 : index
    %ten = arith.constant {end} : index
    %end = arith.constant {end} : index
    """
    with nullcontext() if last < SIZE else pytest.raises(VerifyError, match="reaches index"):
        check_task(numbers + body)


@pytest.mark.parametrize("count", [4, 5, 7, 8])
def test_a_view_is_not_left_though_its_array_goes_on(count: int) -> None:
    body = f"""%v = memref.subview %a[3] [4] [1] : {ROWS} to {VIEW}
    affine.for %i = 0 to {count} {{ affine.store %x, %v[%i] : {VIEW} }}"""
    with nullcontext() if count <= 4 else pytest.raises(VerifyError, match=r"^v\[i\] reaches"):
        check_task(body)


@pytest.mark.parametrize("count", [9, 10, 11])
def test_the_functions_that_a_task_calls(count: int) -> None:
    function = f"""func.func private @f(%to: {ROWS}, %x: f64) {{
      affine.for %i = 0 to {count} {{ affine.store %x, %to[%i] : {ROWS} }}
      return
    }}"""
    with nullcontext() if count <= SIZE else pytest.raises(VerifyError, match="reaches index 10"):
        check_task(f"func.call @f(%a, %x) : ({ROWS}, f64) -> ()", function)


def test_memory_of_the_tasks_own() -> None:
    with pytest.raises(VerifyError, match=r"^own\[i\] reaches index 4 of dimension 0.* size 4\n"):
        check_task("""%own = memref.alloc() : memref<4xf64>
        affine.for %i = 0 to 5 { affine.store %x, %own[%i] : memref<4xf64> }
        memref.store %x, %a[%zero] : memref<10xf64>""")


def test_what_may_not_happen_is_not_refused() -> None:
    """The condition hangs on data: the access is right if it never holds."""
    check_task(f"""%i = arith.fptosi %x : f64 to i64
    %k = arith.index_cast %i : i64 to index
    %ten = arith.constant 10 : index
    %some = arith.cmpi slt, %k, %ten : index
    scf.if %some {{ memref.store %x, %a[%ten] : {ROWS} }}
    memref.store %x, %a[%k] : {ROWS}""")
