"""Tasks that call functions on parts of arrays: what they touch, and what follows for the graph."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.analysis.accesses import calls
from avial_lab.compiler.analysis.accesses.calls import Footprint, Functions, Known
from avial_lab.compiler.analysis.accesses.program import read_program
from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.compiler.frontends.mlir.printing import print_module
from avial_lab.core.errors import PassError, VerifyError
from avial_lab.planning.task_graph import Access, TaskGraph, build_dag
from tests.blocked import ALGORITHMS
from tests.calls import CallProgram, Memory, call_programs, numbered
from tests.compiler.analysis.accesses.test_program import shown
from tests.quick import examples

ELEMENTS = numbered()
SIZE = sum(elements.size for elements in ELEMENTS.values())


def graph_of(text: str) -> TaskGraph:
    return build_dag(*read_program(parse_cell(text, cell="t", context=ir.Context())))


def elements_of(accesses: tuple[Access, ...], *, exact: bool = False) -> set[int]:
    """The numbers of the elements in their regions; of those that are exact alone."""
    return {
        int(element)
        for access in accesses
        if access.exact or not exact
        for box in access.region
        for element in ELEMENTS[access.storage][box.slices].flat
    }


@settings(max_examples=examples(60))
@given(call_programs(), st.randoms(use_true_random=False))
def test_regions_hold_what_is_touched(program: CallProgram, rng: random.Random) -> None:
    graph = graph_of(program.text)
    values = [rng.randrange(-9, 30) for _ in range(SIZE)]
    for task in graph.tasks:
        memory = Memory(values)
        program.tasks[task.name](memory)
        assert memory.read <= elements_of(task.reads)
        assert memory.written <= elements_of(task.writes)
        assert elements_of(task.writes, exact=True) <= memory.written


@settings(max_examples=examples(40))
@given(call_programs(most_tasks=8), st.randoms(use_true_random=False))
def test_any_legal_order_leaves_the_same_memory(program: CallProgram, rng: random.Random) -> None:
    graph = graph_of(program.text)
    first = [rng.randrange(-9, 30) for _ in range(SIZE)]
    expected, memory = Memory(list(first)), Memory(list(first))
    for step in program.tasks.values():
        step(expected)
    before: dict[str, set[str]] = {task.name: set() for task in graph.tasks}
    for edge in graph.dependencies:
        before[edge.after].add(edge.before)
    while before:
        name = rng.choice(sorted(name for name, waits_for in before.items() if not waits_for))
        program.tasks[name](memory)
        del before[name]
        for waits_for in before.values():
            waits_for.discard(name)
    assert memory.values == expected.values


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_blocked_algorithms_have_the_textbooks_graph(name: str, blocks: int) -> None:
    program = ALGORITHMS[name](blocks, 4)
    graph = graph_of(program.text)
    found = {(edge.before, edge.after) for edge in graph.dependencies}
    assert found == program.pairs | program.beside


@pytest.mark.parametrize(
    ("name", "tasks", "pairs"),
    # n = 5: n³ products; n (n + 1) (n + 2) / 6 and n (n + 1) (2 n + 1) / 6 tasks.
    [("gemm", 125, 100), ("cholesky", 35, 60), ("lu", 55, 110)],
)
def test_the_textbooks_graphs_have_that_many_pairs(name: str, tasks: int, pairs: int) -> None:
    program = ALGORITHMS[name](5, 4)
    assert len(graph_of(program.text).tasks) == tasks
    assert len(program.pairs - program.beside) == pairs


OPEN = "memref<?xi32, strided<[?], offset: ?>>"
LINE = "memref<24xi32>"

FUNCTIONS = f"""
func.func private @anywhere(memref<*xi32>)
func.func private @elsewhere({OPEN})
memref.global "private" @kept : memref<4xi32> = dense<0>
func.func private @head(%v: {OPEN}, %n: index) {{
  %zero = arith.constant 0 : i32
  scf.for %i = 0 to %n {{ memref.store %zero, %v[%i] : {OPEN} }}
  return
}}
func.func private @at(%v: {LINE}, %k: index) {{
  %zero = arith.constant 0 : i32
  affine.for %i = 0 to 4 {{
    %j = affine.apply affine_map<(d0)[s0] -> (d0 + s0)>(%i)[%k]
    memref.store %zero, %v[%j] : {LINE}
  }}
  return
}}
func.func private @all(%v: {OPEN}) {{
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%v : {OPEN})
  return
}}
func.func private @calls_all(%v: {OPEN}, %u: {OPEN}) {{
  func.call @all(%v) : ({OPEN}) -> ()
  memref.copy %v, %u : {OPEN} to {OPEN}
  return
}}
func.func private @beyond(%v: {OPEN}) {{
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %w = memref.reinterpret_cast %v to offset: [0], sizes: [1], strides: [1]
    : {OPEN} to memref<1xi32, strided<[1]>>
  memref.store %zero, %w[%c0] : memref<1xi32, strided<[1]>>
  return
}}
func.func private @first(%v: {OPEN}) -> memref<1xi32, strided<[1]>> {{
  %w = memref.reinterpret_cast %v to offset: [0], sizes: [1], strides: [1]
    : {OPEN} to memref<1xi32, strided<[1]>>
  return %w : memref<1xi32, strided<[1]>>
}}
func.func private @to_itself(%v: {OPEN}, %u: {OPEN}, %more: i1) {{
  scf.if %more {{
    %no = arith.constant false
    func.call @to_itself(%u, %v, %no) : ({OPEN}, {OPEN}, i1) -> ()
    func.call @beyond(%v) : ({OPEN}) -> ()
  }}
  return
}}
func.func private @counts() {{
  %c0 = arith.constant 0 : index
  %g = memref.get_global @kept : memref<4xi32>
  %x = memref.load %g[%c0] : memref<4xi32>
  memref.store %x, %g[%c0] : memref<4xi32>
  return
}}
func.func private @branches(%v: {OPEN}, %n: index) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %some = arith.cmpi sgt, %n, %c0 : index
  memref.store %zero, %v[%c0] : {OPEN}
  cf.cond_br %some, ^more, ^end
^more:
  linalg.fill ins(%zero : i32) outs(%v : {OPEN})
  cf.br ^end
^end:
  return
}}
func.func private @from_table(%v: {OPEN}) {{
  %c0 = arith.constant 0 : index
  %n = memref.load %v[%c0] : {OPEN}
  %k = arith.index_cast %n : i32 to index
  %x = memref.load %v[%k] : {OPEN}
  return
}}
"""

WINDOW = f"""
%v = memref.subview %x[4] [8] [2] : {LINE} to memref<8xi32, strided<[2], offset: 4>>
%w = memref.cast %v : memref<8xi32, strided<[2], offset: 4>> to {OPEN}"""
BEHIND = f"""
%b = memref.subview %y[16] [8] [1] : {LINE} to memref<8xi32, strided<[1], offset: 16>>
%u = memref.cast %b : memref<8xi32, strided<[1], offset: 16>> to {OPEN}"""
UNKNOWN = """
%seen = memref.load %y[%c0] : memref<24xi32>
%wide = arith.index_cast %seen : i32 to index"""
RANGED = f"""{UNKNOWN}
%more = arith.cmpi sgt, %wide, %c5 : index
%some = arith.select %more, %c5, %c0 : index"""


def only_task(body: str, listed: str = "%x, %y") -> tuple[dict[str, str], dict[str, str]]:
    text = f"""{FUNCTIONS}
      func.func @program(%x: {LINE}, %y: {LINE}) {{
        avial.schedule %x, %y {{
          %cpu = avial.target {{arch = "cpu"}}
          %c0 = arith.constant 0 : index
          %c5 = arith.constant 5 : index
          %t = avial.task %cpu, {listed} {{
            {body}
          }}
        }}
        return
      }}"""
    (task,) = graph_of(text).tasks
    return shown(task.reads), shown(task.writes)


@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        pytest.param(
            f"{BEHIND} func.call @all(%u) : ({OPEN}) -> ()",
            {}, {"y": "[16:24]"}, id="a view is written, all of it",
        ),
        pytest.param(
            f"{WINDOW} func.call @all(%w) : ({OPEN}) -> ()",
            {}, {"x": "~[4:19]"}, id="every other element",
        ),
        pytest.param(
            f"{WINDOW} {BEHIND} func.call @calls_all(%w, %u) : ({OPEN}, {OPEN}) -> ()",
            {"x": "[4:19]"}, {"x": "~[4:19]", "y": "[16:24]"}, id="a call in a call",
        ),
        pytest.param(
            f"{BEHIND} func.call @head(%u, %c5) : ({OPEN}, index) -> ()",
            {}, {"y": "[16:21]"}, id="a loop up to a number of the call",
        ),
        pytest.param(
            f"{BEHIND} {UNKNOWN} func.call @head(%u, %wide) : ({OPEN}, index) -> ()",
            {"y": "[0:1]"}, {"y": "~[16:24]"}, id="a loop up to a number from memory",
        ),
        pytest.param(
            f"{BEHIND} {RANGED} func.call @head(%u, %some) : ({OPEN}, index) -> ()",
            {"y": "[0:1]"}, {"y": "~[16:21]"}, id="a loop up to one of two numbers",
        ),
        pytest.param(
            f"func.call @at(%x, %c5) : ({LINE}, index) -> ()",
            {}, {"x": "[5:9]"}, id="from a number of the call on",
        ),
        pytest.param(
            f"scf.for %i = 0 to 4 {{ %k = arith.muli %i, %c5 : index "
            f"func.call @at(%x, %k) : ({LINE}, index) -> () }}",
            {}, {"x": "~[0:19]"}, id="calls in a loop, apart",
        ),
        pytest.param(
            f"""scf.for %i = 2 to 6 {{
              %s = memref.subview %y[%i] [1] [1] : {LINE} to memref<1xi32, strided<[1], offset: ?>>
              %w = memref.cast %s : memref<1xi32, strided<[1], offset: ?>> to {OPEN}
              func.call @all(%w) : ({OPEN}) -> () }}""",
            {}, {"y": "[2:6]"}, id="a window that goes along with a loop",
        ),
        pytest.param(
            f"{BEHIND} func.call @elsewhere(%u) : ({OPEN}) -> ()",
            {"y": "[16:24]"}, {"y": "~[16:24]"}, id="nobody knows what it does",
        ),
        pytest.param(
            f"{BEHIND} %r = memref.cast %u : {OPEN} to memref<*xi32> "
            "func.call @anywhere(%r) : (memref<*xi32>) -> ()",
            {"y": "[16:24]"}, {"y": "~[16:24]"}, id="nor of how many dimensions",
        ),
        pytest.param(
            f"{BEHIND} func.call @beyond(%u) : ({OPEN}) -> ()",
            {}, {"y": "~[0:24]"}, id="it reaches behind its view",
        ),
        pytest.param(
            f"{BEHIND} %f = func.call @first(%u) : ({OPEN}) -> memref<1xi32, strided<[1]>> "
            "%one = arith.constant 1 : i32 "
            "memref.store %one, %f[%c0] : memref<1xi32, strided<[1]>>",
            {}, {"y": "~[0:24]"}, id="it hands back what is before its view",
        ),
        pytest.param(
            f"{WINDOW} {BEHIND} %yes = arith.constant true "
            f"func.call @to_itself(%w, %u, %yes) : ({OPEN}, {OPEN}, i1) -> ()",
            {"x": "[0:24]", "y": "[0:24]"}, {"x": "~[0:24]", "y": "~[0:24]"},
            id="it calls itself, with operands that change places",
        ),
        pytest.param(
            f"{BEHIND} func.call @from_table(%u) : ({OPEN}) -> ()",
            {"y": "[16:24]"}, {}, id="an index from memory leaves no view",
        ),
        pytest.param(
            f"{BEHIND} func.call @branches(%u, %c5) : ({OPEN}, index) -> ()",
            {}, {"y": "[16:17] and ~[16:24]"}, id="a branch decides what is written",
        ),
        pytest.param(
            f"""%s = memref.subview %x[19] [6] [-1]
              : {LINE} to memref<6xi32, strided<[-1], offset: 19>>
            %w = memref.cast %s : memref<6xi32, strided<[-1], offset: 19>> to {OPEN}
            func.call @head(%w, %c5) : ({OPEN}, index) -> ()""",
            {}, {"x": "[15:20]"}, id="backwards",
        ),
        pytest.param(
            f"{RANGED} %s = memref.subview %x[2] [%some] [1] "
            f": {LINE} to memref<?xi32, strided<[1], offset: 2>> "
            "linalg.fill ins(%seen : i32) outs(%s : memref<?xi32, strided<[1], offset: 2>>)",
            {"y": "[0:1]"}, {"x": "~[2:7]"}, id="a window that may be smaller",
        ),
        pytest.param(
            f"{RANGED} %s = memref.subview %x[2] [%some] [1] "
            f": {LINE} to memref<?xi32, strided<[1], offset: 2>> "
            f"%w = memref.cast %s : memref<?xi32, strided<[1], offset: 2>> to {OPEN} "
            f"func.call @all(%w) : ({OPEN}) -> ()",
            {"y": "[0:1]"}, {"x": "~[2:7]"}, id="a call on one",
        ),
        pytest.param(
            f"""%r = memref.reinterpret_cast %x to offset: [6], sizes: [2, 6], strides: [6, 1]
              : {LINE} to memref<2x6xi32, strided<[6, 1], offset: 6>>
            %f = memref.collapse_shape %r [[0, 1]]
              : memref<2x6xi32, strided<[6, 1], offset: 6>>
              into memref<12xi32, strided<[1], offset: 6>>
            %w = memref.cast %f : memref<12xi32, strided<[1], offset: 6>> to {OPEN}
            func.call @all(%w) : ({OPEN}) -> ()""",
            {}, {"x": "[6:18]"}, id="other shapes of the same elements",
        ),
        pytest.param(
            f"""%e = memref.expand_shape %x [[0, 1]] output_shape [4, 6]
              : {LINE} into memref<4x6xi32>
            %s = memref.subview %e[1, 2] [1, 3] [1, 1]
              : memref<4x6xi32> to memref<3xi32, strided<[1], offset: 8>>
            %w = memref.cast %s : memref<3xi32, strided<[1], offset: 8>> to {OPEN}
            func.call @all(%w) : ({OPEN}) -> ()""",
            {}, {"x": "[8:11]"}, id="a part of a row of a longer row",
        ),
        pytest.param(
            f"""%s = memref.subview %x[3] [1] [1]
              : {LINE} to memref<1xi32, strided<[1], offset: 3>>
            %n = memref.collapse_shape %s []
              : memref<1xi32, strided<[1], offset: 3>> into memref<i32, strided<[], offset: 3>>
            %v = memref.load %n[] : memref<i32, strided<[], offset: 3>>
            memref.store %v, %y[%c5] : {LINE}""",
            {"x": "[3:4]"}, {"y": "[5:6]"}, id="one element as a number",
        ),
    ],
)  # fmt: skip
def test_regions_of_calls(body: str, reads: dict[str, str], writes: dict[str, str]) -> None:
    listed = ", ".join(name for name in ("%x", "%y") if f"{name}[" in body or f"{name} " in body
                       or f"{name}," in body)  # fmt: skip
    assert only_task(body, listed) == (reads, writes)


def test_a_function_may_not_write_a_global() -> None:
    with pytest.raises(PassError, match=r"a task writes a memref\.global"):
        only_task(
            f"{BEHIND} func.call @all(%u) : ({OPEN}) -> () func.call @counts() : () -> ()", "%y"
        )


def test_what_a_function_leaves_alone_may_be_listed_or_not() -> None:
    body = f"{BEHIND} func.call @calls_all(%u, %u) : ({OPEN}, {OPEN}) -> ()"
    assert only_task(body, "%y") == only_task(body, "reads(%y) writes(%y)")
    sizes = f"{WINDOW} {BEHIND} func.call @head(%u, %c5) : ({OPEN}, index) -> ()"
    with pytest.raises(VerifyError, match="lists %x, but its body never touches it"):
        only_task(sizes, "%x, %y")


def test_a_part_that_is_said_to_be_read_is_that_part() -> None:
    """As it was written when a call counted as reading and writing all it is given."""
    body = f"{BEHIND} func.call @all(%u) : ({OPEN}) -> ()"
    assert only_task(body, "reads(%y) writes(%y)") == ({"y": "[16:24]"}, {"y": "[16:24]"})
    body = f"{BEHIND} func.call @from_table(%u) : ({OPEN}) -> ()"
    assert only_task(body, "reads(%y) writes(%y)") == ({"y": "[16:24]"}, {})


def test_a_program_with_calls_prints_as_it_was_read() -> None:
    text = ALGORITHMS["lu"](2, 3).text
    first = print_module(parse_cell(text, cell="t", context=ir.Context()))
    assert print_module(parse_cell(first, cell="t", context=ir.Context())) == first
    assert "reads(" not in first


def test_a_function_is_read_once_for_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    reading = calls._read

    def counted(functions: Functions, function: ir.Operation, known: Known) -> Footprint:
        read.append(str(function.attributes["sym_name"]))
        return reading(functions, function, known)

    monkeypatch.setattr(calls, "_read", counted)
    module = parse_cell(ALGORITHMS["gemm"](5, 4).text, cell="t", context=ir.Context())
    assert read == ['"gemm"']
    read_program(module)
    assert read == ['"gemm"'] * 2
