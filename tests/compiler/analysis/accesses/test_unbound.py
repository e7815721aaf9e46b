"""Windows at places that no number says yet: what the task graph knows of them all the same."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.analysis.accesses.program import read_program
from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.core.buffers import bind_arrays
from avial_lab.planning.task_graph import Task, build_dag


def tasks_of(text: str) -> tuple[Task, ...]:
    return read_program(parse_cell(text, cell="t", context=ir.Context()))[0]


def edges(text: str) -> list[tuple[str, str]]:
    graph = build_dag(*read_program(parse_cell(text, cell="t", context=ir.Context())))
    return [(edge.before, edge.after) for edge in graph.dependencies]


def program(between: str, first: str, second: str, kind: str = "index") -> str:
    """Two tasks that write %a, with %k, %n and %c50 and what `between` makes of them."""
    return f"""
        avial.schedule %a: memref<?xi32>, %k: {kind}, %n: index {{
          %cpu = avial.target {{arch = "cpu"}}
          %zero = arith.constant 0 : i32
          %one = arith.constant 1 : index
          %c50 = arith.constant 50 : index
          {between}
          %first = avial.task %cpu, %a {{ {first} }}
          %second = avial.task %cpu, %a {{ {second} }}
        }}"""


def fill(offset: str, size: int | str = 50) -> str:
    """Writes `size` elements from %offset on, through a view."""
    return f"""
        %v = memref.subview %a[%{offset}] [{size}] [1]
          : memref<?xi32> to memref<{"?" if str(size)[0] == "%" else size}xi32,
            strided<[1], offset: ?>>
        linalg.fill ins(%zero : i32) outs(%v)"""


MORE = "%more = arith.addi %k, %c50"
TWICE = "%two = arith.addi %k, %k %shifted = arith.addi %two, %n"


@pytest.mark.parametrize(
    ("between", "first", "second"),
    [
        pytest.param(MORE, fill("k"), fill("more"), id="side by side"),
        pytest.param(MORE, fill("more"), fill("k"), id="the other way round"),
        pytest.param(MORE, fill("more", "%n"), fill("k"), id="from there on, however much"),
        pytest.param(
            f"{TWICE} %other = arith.addi %n, %k %again = arith.addi %other, %k"
            " %behind = arith.addi %c50, %again",
            fill("shifted"), fill("behind"), id="one sum in two orders",
        ),
        pytest.param(
            "%h = arith.shli %k, %one %more = arith.addi %h, %c50",
            fill("h"), fill("more"), id="counted from what no linear form follows",
        ),
        pytest.param(
            MORE,
            "scf.for %i = %k to %more { memref.store %zero, %a[%i] }",
            "memref.store %zero, %a[%more]", id="a loop from %k to %k + 50",
        ),
        pytest.param(
            MORE,
            "scf.parallel %i = 0 to 50 { %j = arith.addi %i, %k memref.store %zero, %a[%j] }",
            "affine.store %zero, %a[symbol(%k) + 50]", id="loop variables and affine maps",
        ),
    ],
)  # fmt: skip
def test_windows_of_one_number_that_share_nothing(between: str, first: str, second: str) -> None:
    assert edges(program(between, first, second)) == []


@pytest.mark.parametrize(
    ("between", "first", "second"),
    [
        pytest.param(MORE, fill("k", 51), fill("more"), id="one element in common"),
        pytest.param(MORE, fill("k", "%n"), fill("more"), id="a size that is not known"),
        pytest.param(MORE, fill("n"), fill("more"), id="two numbers"),
        pytest.param(MORE, fill("one"), fill("more"), id="a number and a place"),
        pytest.param(
            MORE,
            "scf.for %i = %k to %n { memref.store %zero, %a[%i] }", fill("more"),
            id="a loop between two numbers",
        ),
        pytest.param(
            "", fill("k"),
            f"""scf.for %i = %one to %c50 {{
                  %d = arith.muli %i, %k
                  %b = arith.addi %d, %c50 {fill("b")} }}""",
            id="a product of two that are not known",
        ),
        pytest.param(
            "%z = memref.alloc() : memref<index>",
            "memref.store %one, %z[] %j = memref.load %z[] memref.store %zero, %a[%j]",
            """%j = memref.load %z[] %j50 = arith.addi %j, %c50
               memref.store %zero, %a[%j50]""",
            id="numbers from memory",
        ),
    ],
)  # fmt: skip
def test_windows_that_may_touch(between: str, first: str, second: str) -> None:
    text = program(between, first, second)
    if "%z " in between:
        text = text.replace("%cpu, %a {", "%cpu, %a, %z {")
    assert ("first", "second") in edges(text)


def test_arithmetic_that_may_wrap_around_is_its_own_number() -> None:
    between = """%w50 = arith.constant 100 : i8
                 %sum = arith.addi %k, %w50
                 %low = arith.index_cast %k : i8 to index
                 %high = arith.index_cast %sum : i8 to index"""
    assert edges(program(between, fill("low"), fill("high"), kind="i8")) == [("first", "second")]


def test_an_access_says_what_it_counts_from() -> None:
    task = tasks_of(program(MORE, f"{fill('more')} memref.store %zero, %a[%one]", fill("k")))[0]
    at_one, window = sorted(task.writes, key=lambda access: access.anchor)
    assert (at_one.anchor, str(at_one.region[0])) == ((), "[1:2]")
    assert (window.anchor, str(window.relative[0])) == (("k",), "[50:100]")
    assert not window.exact


def test_where_numbers_are_bound_there_is_no_anchor() -> None:
    binding = bind_arrays({"a": np.zeros(200, np.int32)})
    module = parse_cell(
        program("%h = arith.shli %k, %one", fill("h"), fill("k")),
        cell="t", context=ir.Context(), binding=binding, scalars={"k": 3, "n": 4},
    )  # fmt: skip
    first, second = read_program(module, binding)[0]
    assert [access.anchor for task in (first, second) for access in task.writes] == [(), ()]
