"""What each operation reads and writes, through loops, views, guards and launches."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.analysis.accesses.program import read_program
from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.regions import format_region
from avial_lab.planning.task_graph import Access, Task

TYPES = {
    "a": "memref<20xi32>",
    "c": "memref<20x30xi32>",
    "f": "memref<8x8xf32>",
    "g": "memref<8x8xf32>",
    "n": "memref<i32>",
}


def only_task(body: str, *buffers: str) -> Task:
    listed = ", ".join(f"%{name}" for name in buffers)
    typed = ", ".join(f"%{name}: {TYPES[name]}" for name in buffers)
    text = f"""
        avial.schedule {typed} {{
          %cpu = avial.target {{arch = "cpu"}}
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %zero = arith.constant 0 : i32
          %t = avial.task %cpu, {listed} {{
            {body}
          }}
        }}"""
    tasks, _, _ = read_program(parse_cell(text, cell="t", context=ir.Context()))
    return tasks[0]


def shown(accesses: tuple[Access, ...]) -> dict[str, str]:
    """Buffer -> region, with `~` before one that is not written for sure."""
    found: dict[str, str] = {}
    for access in accesses:
        text = ("" if access.exact else "~") + format_region(access.region)
        found[access.buffer] = (
            f"{found[access.buffer]} and {text}" if access.buffer in found else text
        )
    return found


@pytest.mark.parametrize(
    ("body", "buffers", "reads", "writes"),
    [
        pytest.param(
            "scf.parallel %i, %j = 0, 0 to 20, 30 { memref.store %zero, %c[%i, %j] }",
            "c", {}, {"c": "[0:20, 0:30]"}, id="a loop that fills",
        ),
        pytest.param(
            "scf.for %i = 2 to 20 step 3 { memref.store %zero, %a[%i] }",
            "a", {}, {"a": "~[2:18]"}, id="a step leaves gaps",
        ),
        pytest.param(
            """scf.for %i = 0 to 20 step 5 { scf.for %j = 0 to 5 {
                 %k = arith.addi %i, %j
                 memref.store %zero, %a[%k] } }""",
            "a", {}, {"a": "[0:20]"}, id="two loops tile",
        ),
        pytest.param(
            "scf.for %i = 0 to 20 { memref.store %zero, %c[%i, %i] }",
            "c", {}, {"c": "~[0:20, 0:20]"}, id="a diagonal is not its box",
        ),
        pytest.param(
            """scf.for %i = 0 to 20 {
                 %x = memref.load %a[%i]
                 %odd = arith.cmpi sgt, %x, %zero
                 scf.if %odd { memref.store %zero, %a[%i] } }""",
            "a", {"a": "[0:20]"}, {"a": "~[0:20]"}, id="a condition on data",
        ),
        pytest.param(
            """%ten = arith.constant 10 : index
               scf.for %i = 0 to 20 {
                 %low = arith.cmpi slt, %i, %ten
                 scf.if %low { memref.store %zero, %a[%i] } }""",
            "a", {}, {"a": "[0:10]"}, id="a condition on the index",
        ),
        pytest.param(
            "scf.for %i = 0 to 0 { memref.store %zero, %a[%i] }",
            "a", {}, {}, id="a loop that does not run",
        ),
        pytest.param(
            """affine.for %i = 1 to 19 {
                 %x = affine.load %a[%i - 1]
                 %y = affine.load %a[%i + 1]
                 %s = arith.addi %x, %y
                 affine.store %s, %c[%i, 2 * %i mod 7] }""",
            "ac", {"a": "[0:20]"}, {"c": "~[1:19, 0:7]"}, id="affine maps",
        ),
        pytest.param(
            """%v = memref.subview %c[5, 2] [1, 20] [1, 1]
                 : memref<20x30xi32> to memref<20xi32, strided<[1], offset: 152>>
               memref.copy %a, %v : memref<20xi32> to memref<20xi32, strided<[1], offset: 152>>""",
            "ac", {"a": "[0:20]"}, {"c": "[5:6, 2:22]"}, id="a row by subview and copy",
        ),
        pytest.param(
            "gpu.launch { %t0 = gpu.thread_id x \n memref.store %zero, %a[%t0] }",
            "a", {}, {"a": "[0:20]"}, id="a bare launch",
        ),
        pytest.param(
            "linalg.matmul ins(%f, %f) outs(%g)",
            "fg", {"f": "[0:8, 0:8]", "g": "[0:8, 0:8]"}, {"g": "[0:8, 0:8]"},
            id="matmul adds to its output",
        ),
        pytest.param(
            "linalg.fill ins(%zero : i32) outs(%c : memref<20x30xi32>)",
            "c", {}, {"c": "[0:20, 0:30]"}, id="fill only writes",
        ),
        pytest.param(
            """%w = vector.load %a[%c0] : memref<20xi32>, vector<4xi32>
               scf.for %i = 4 to 20 step 4 {
                 vector.store %w, %a[%i] : memref<20xi32>, vector<4xi32> }""",
            "a", {"a": "[0:4]"}, {"a": "[4:20]"}, id="vectors",
        ),
        pytest.param(
            """%k = memref.load %n[]
               %i = arith.index_cast %k : i32 to index
               memref.store %zero, %a[%i]""",
            "an", {"n": "[]"}, {"a": "~[0:20]"}, id="an index from memory",
        ),
        pytest.param(
            """%x = memref.load %n[]
               %p = arith.cmpi sgt, %x, %zero
               %s = arith.select %p, %f, %g : memref<8x8xf32>
               %v = memref.load %s[%c0, %c0]
               memref.store %v, %s[%c0, %c1]""",
            "fgn",
            {"f": "[0:8, 0:8]", "g": "[0:8, 0:8]", "n": "[]"},
            {"f": "~[0:8, 0:8]", "g": "~[0:8, 0:8]"},
            id="a select may be either",
        ),
    ],
)  # fmt: skip
def test_regions(body: str, buffers: str, reads: dict[str, str], writes: dict[str, str]) -> None:
    task = only_task(body, *buffers)
    assert (shown(task.reads), shown(task.writes)) == (reads, writes)


@pytest.mark.parametrize(
    ("body", "in_bounds"),
    [
        ("affine.for %i = 0 to 20 { affine.store %zero, %a[%i] : memref<20xi32> }", True),
        ("affine.for %i = 0 to 21 { affine.store %zero, %a[%i] : memref<20xi32> }", False),
        ("affine.for %i = 0 to 20 { affine.store %zero, %a[%i - 1] : memref<20xi32> }", False),
        ("affine.for %i = 9 to 9 { affine.store %zero, %a[%i + 90] : memref<20xi32> }", True),
    ],
)
def test_what_lies_beyond_the_array_is_not_exact(body: str, in_bounds: bool) -> None:
    task = only_task(body, "a")
    assert task.in_bounds == in_bounds
    assert all(access.exact == in_bounds for access in task.writes)


def test_overlapping_arrays_are_counted_in_their_common_bytes() -> None:
    x = np.zeros(15, np.int32)
    binding = bind_arrays({"a": x[0:10], "b": x[5:15]})
    text = """avial.schedule %a, %b {
      %cpu = avial.target {arch = "cpu"}
      %t = avial.task %cpu, %a, %b {
        memref.copy %a, %b : memref<10xi32> to memref<10xi32>
      }
    }"""
    module = parse_cell(text, cell="t", context=ir.Context(), binding=binding)
    (task,), _, _ = read_program(module, binding)
    assert (shown(task.reads), shown(task.writes)) == ({"a": "[0:40]"}, {"b": "[20:60]"})


def test_columns_of_a_shared_array_are_rows_of_bytes() -> None:
    x = np.zeros((3, 4), np.int8)
    binding = bind_arrays({"a": x[:, 0:2], "b": x[:, 1:3]})
    text = """avial.schedule %a, %b {
      %cpu = avial.target {arch = "cpu"}
      %z = arith.constant 0 : i8
      %t = avial.task %cpu, %b {
        scf.parallel %i, %j = 0, 0 to 3, 2 { memref.store %z, %b[%i, %j] }
      }
    }"""
    module = parse_cell(text, cell="t", context=ir.Context(), binding=binding)
    (task,), _, _ = read_program(module, binding)
    assert shown(task.writes) == {"b": "[1:3] ∪ [5:7] ∪ [9:11]"}


@pytest.mark.parametrize(
    "body",
    [
        "linalg.transpose ins(%f : memref<8x8xf32>) outs(%g : memref<8x8xf32>) "
        "permutation = [1, 0]",
        "linalg.map { arith.negf } ins(%f : memref<8x8xf32>) outs(%g : memref<8x8xf32>)",
        "linalg.broadcast ins(%s : memref<8xf32>) outs(%g : memref<8x8xf32>) dimensions = [0]",
    ],
)
def test_named_operations_write_their_outputs_alone(body: str) -> None:
    kind = "strided<[8]>"
    view = (
        f"%s = memref.subview %f[0, 0] [8, 1] [1, 1] : memref<8x8xf32> to memref<8xf32, {kind}>\n"
    ) * ("%s" in body)
    task = only_task(view + body.replace("memref<8xf32>", f"memref<8xf32, {kind}>"), "f", "g")
    assert [access.buffer for access in task.reads] == ["f"]
    assert shown(task.writes) == {"g": "[0:8, 0:8]"}
