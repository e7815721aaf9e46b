"""Cycles of compiled loops against what is worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlir import ir

from avial_lab.compiler.analysis.costs.core_time import core_times, core_times_of_tasks
from avial_lab.compiler.ir.dialects import register
from avial_lab.machine.constants import (
    ADD_LATENCY_CYCLES,
    BRANCH_MISS_CYCLES,
    CALL_CYCLES,
    DIVISION_CYCLES,
    DIVISION_LATENCY_CYCLES,
    FAR_FUNCTION_CYCLES,
    LOAD_ACROSS_LINES_CYCLES,
    LOADS_PER_CYCLE,
    STORE_ACROSS_LINES_CYCLES,
    STORE_TO_LOAD_CYCLES,
    VECTOR_UNITS,
)
from avial_lab.machine.cpu import Cpu
from avial_lab.machine.demand import CoreTime

CPU = Cpu(vector_bytes=32)
LANES = 4
N = 10_000
ADD, DIVIDE, FORWARD = ADD_LATENCY_CYCLES, DIVISION_LATENCY_CYCLES, STORE_TO_LOAD_CYCLES


def _times(
    body: str, *, more: str = "", call: str = "", threads: int = 1, cpu: Cpu = CPU
) -> dict[str, CoreTime]:
    """Of phase S, which `main` calls, in the loop over %t that `call` begins."""
    array = f"memref<{N}xf64>"
    text = f"""
    llvm.mlir.global external @avial_threads(1 : i64) {{addr_space = 0 : i32}} : i64
    func.func private @S(%A: {array}, %B: {array}, %c: f64, %t: index)
        attributes {{avial.task = "S"}} {{
      {body}
      return
    }}
    {more}
    func.func @main(%A: {array}, %B: {array}, %c: f64) {{
      {call or "%t = arith.constant 0 : index"}
      func.call @S(%A, %B, %c, %t) : ({array}, {array}, f64, index) -> ()
      {"}" if call else ""}
      return
    }}"""
    context = ir.Context()
    register(context)
    with context:
        return core_times(ir.Module.parse(text).operation, "main", threads, cpu)


def _each(body: str, cpu: Cpu = CPU) -> float:
    """Cycles of an iteration of `for %i = 4 to N`: the first vector of an array is left out."""
    loop = f"affine.for %i = {LANES} to {N} {{ {body} }}"
    return (_times(loop, cpu=cpu)["S"].cycles - BRANCH_MISS_CYCLES) / (N - LANES)


LOAD = f"affine.load %{{}}[%i{{}}] : memref<{N}xf64>"
A_BEFORE, A_HERE, B_HERE = (LOAD.format(*each) for each in (("A", " - 1"), ("A", ""), ("B", "")))
STORE = f"affine.store %z, %A[%i] : memref<{N}xf64>"


@pytest.mark.parametrize(
    ("body", "cycles"),
    [
        (  # A[i] = (A[i - 1] + B[i]) / c: a chain, through a register
            f"%x = {A_BEFORE}  %b = {B_HERE}  %y = arith.addf %x, %b : f64\n"
            f"%z = arith.divf %y, %c : f64  {STORE}",
            ADD + DIVIDE,
        ),
        (  # A[i] = c, A[i] = A[i] / c: the first store is none, and nothing is loaded
            f"affine.store %c, %A[%i] : memref<{N}xf64>  %x = {A_HERE}\n"
            f"%z = arith.addf %x, %c : f64  {STORE}",
            1 / LANES,
        ),
        (  # A[i] = B[i] + B[i + 1]: half of the latter's vectors lie across two lines
            f"%x = {B_HERE}  %b = affine.load %B[%i + 1] : memref<{N}xf64>\n"
            f"%z = arith.addf %x, %b : f64  {STORE}",
            (2 / LOADS_PER_CYCLE + LOAD_ACROSS_LINES_CYCLES / 2) / LANES,
        ),
        (  # A[i - 1] = B[i]: half of the stores do
            f"%z = {B_HERE}  affine.store %z, %A[%i - 1] : memref<{N}xf64>",
            (1 + STORE_ACROSS_LINES_CYCLES / 2) / LANES,
        ),
        (  # A[i] = A[i - 2] / c: two such at once, through memory
            f"%x = affine.load %A[%i - 2] : memref<{N}xf64>\n%z = arith.divf %x, %c : f64  {STORE}",
            (DIVIDE + FORWARD) / 2,
        ),
        (  # A[i] = B[i] / c: the divider, on vectors
            f"%x = {B_HERE}  %z = arith.divf %x, %c : f64  {STORE}",
            DIVISION_CYCLES / LANES,
        ),
        (  # A[i] = A[i] + B[i]: two loads a cycle, on vectors
            f"%x = {A_HERE}  %b = {B_HERE}  %z = arith.addf %x, %b : f64  {STORE}",
            2 / LOADS_PER_CYCLE / LANES,
        ),
        (  # A[i] = √(c + …), eight times: the adders
            f"%x = {B_HERE}  "
            + "  ".join(
                f"%s{k} = arith.addf %{f's{k - 1}' if k else 'x'}, %c : f64" for k in range(8)
            )
            + f"  %z = arith.addf %s7, %x : f64  {STORE}",
            9 / VECTOR_UNITS / LANES,
        ),
        (  # A[i] = B[N - i - 1]: a vector is turned around; none of these begins at one
            f"%z = affine.load %B[{N - 1} - %i] : memref<{N}xf64>  {STORE}",
            1 / LANES,
        ),
        (  # A[2 i - 1] = B[i]: no vectors of what does not lie side by side
            f"%z = {B_HERE}  affine.store %z, %A[%i * 2 - 1] : memref<{N}xf64>",
            1.0,
        ),
    ],
)
def test_an_iteration_takes_what_its_longest_chain_or_its_busiest_unit_does(
    body: str, cycles: float
) -> None:
    assert _each(body) == pytest.approx(cycles, rel=0.01)


@pytest.mark.parametrize(("flags", "cycles"), [("", ADD), ("fastmath<reassoc>", 0.5 / LANES)])
def test_a_sum_is_a_chain_where_it_keeps_its_order(flags: str, cycles: float) -> None:
    loop = (
        f"%s = affine.for %i = 0 to {N} iter_args(%a = %c) -> (f64) {{\n"
        f"%b = {B_HERE}\n%n = arith.addf %a, %b {flags} : f64\naffine.yield %n : f64 }}"
    )
    each = (_times(loop)["S"].cycles - BRANCH_MISS_CYCLES) / N
    assert each == pytest.approx(cycles, rel=0.01)


@pytest.mark.parametrize(("apart", "cycles"), [(1, 8 / LANES), (2, 8)])
def test_rows_that_are_computed_together_are_lanes_where_they_lie_side_by_side(
    apart: int, cycles: float
) -> None:
    body = "\n".join(
        f"%x{k} = affine.load %B[%i + {k * apart}] : memref<{N}xf64>\n"
        f"%z{k} = arith.divf %x{k}, %c : f64\n"
        f"affine.store %z{k}, %A[%i + {k * apart}] : memref<{N}xf64>"
        for k in range(8)
    )
    loop = f"affine.for %i = 0 to {N - 16} step 16 {{ {body} }}"
    each = (_times(loop)["S"].cycles - BRANCH_MISS_CYCLES) / ((N - 16) / 16)
    assert each == pytest.approx(cycles * DIVISION_CYCLES, rel=0.01)


def test_sums_have_units_of_their_own_where_the_cpu_says_so() -> None:
    """Four sums, three products and a fused one: 8 / 2 cycles, or 4 / 2 in each of two."""
    body = f"%x = {B_HERE}\n" + "\n".join(
        f"%s{k} = arith.addf %x, %c : f64  %p{k} = arith.mulf %s{k}, %c : f64" for k in range(3)
    )
    body += (
        "%s3 = arith.addf %p0, %p1 : f64  %p3 = arith.mulf %p2, %c fastmath<contract> : f64\n"
        f"%z = arith.addf %p3, %s3 fastmath<contract> : f64  {STORE}"
    )
    assert _each(body) == pytest.approx(8 / VECTOR_UNITS / LANES, rel=0.01)
    assert _each(body, replace(CPU, own_adders=True)) == pytest.approx(
        4 / VECTOR_UNITS / LANES, rel=0.01
    )


WIDE = f"memref<{N}xf64>, vector<4xf64>"
ANY = "%w = memref.load %n[%i] : memref<8xi64>  %k = arith.index_cast %w : i64 to index"


@pytest.mark.parametrize(
    ("index", "loads", "across"),
    [
        ("%k = affine.apply affine_map<(d) -> (d)>(%i)", 1, 0),
        ("%k = affine.apply affine_map<(d) -> (d + 1)>(%i)", 1, 1 / 2),
        (ANY, 2, 3 / 8),  # it may begin at any element
    ],
)
def test_vectors_lie_across_lines_where_their_index_says(
    index: str, loads: int, across: float
) -> None:
    loop = f"affine.for %i = 0 to {N} step 4 {{ {index}  %v = vector.load %B[%k] : {WIDE} }}"
    cycles = _times(f"%n = memref.alloc() : memref<8xi64>\n{loop}")["S"].cycles
    each = loads / LOADS_PER_CYCLE + across * LOAD_ACROSS_LINES_CYCLES
    assert (cycles - BRANCH_MISS_CYCLES) / (N / 4) == pytest.approx(each, rel=0.01)


WORK = f"%x = {A_BEFORE}  %z = arith.divf %x, %c : f64  {STORE}"
EACH = DIVIDE


def test_loops_that_others_end_are_as_long_as_in_the_mean() -> None:
    inner = f"affine.for %i = 1 to affine_map<(d) -> (d + 1)>(%k) {{ {WORK} }}"
    triangle = f"affine.for %k = 0 to 999 {{ {inner} }}"
    whole = 999 * 998 / 2 * EACH + 999 * BRANCH_MISS_CYCLES
    assert _times(triangle)["S"].cycles == pytest.approx(whole, rel=0.01)


def test_a_turn_is_the_mean_of_those_of_the_loops_around() -> None:
    loop = f"affine.for %i = 1 to affine_map<(d) -> (d + 1)>(%t) {{ {WORK} }}"
    turn = _times(loop, call="affine.for %t = 0 to 3001 {")["S"]
    assert turn.cycles == pytest.approx(1500 * EACH + BRANCH_MISS_CYCLES, rel=0.01)


def test_a_branch_is_taken_where_its_condition_holds() -> None:
    often = "affine.if affine_set<(d) : (d - 5000 >= 0)>(%i)"
    once = "affine.if affine_set<(d) : (d - 9999 >= 0)>(%i)"
    half, never = (_each(f"{test} {{ {WORK} }}") for test in (often, once))
    assert half == pytest.approx((2 * EACH + 1) / 3, rel=0.05)  # two of the three places looked at
    assert never <= 1.01


PARTS = f"""
    func.func private @part(%low: index, %high: index, %A: memref<{N}xf64>, %c: f64) {{
      affine.for %i = %low to %high {{ {WORK} }}
      return
    }}"""


@pytest.mark.parametrize(("threads", "parts", "share"), [(1, 4, 1), (2, 4, 1 / 2), (3, 4, 1 / 2)])
def test_threads_share_a_loop_and_the_last_of_them_counts(
    threads: int, parts: int, share: float
) -> None:
    body = f"""
      %n = arith.constant 4 : i32
      %0 = arith.constant 0 : index  %end = arith.constant {N} : index
      %step = arith.constant {N // parts} : index
      omp.parallel num_threads(%n : i32) {{
        omp.wsloop {{
          omp.loop_nest (%from) : index = (%0) to (%end) step (%step) {{
            %to = arith.addi %from, %step : index
            func.call @part(%from, %to, %A, %c) : (index, index, memref<{N}xf64>, f64) -> ()
            omp.yield
          }}
        }}
        omp.terminator
      }}"""
    turn = _times(body, more=PARTS, threads=threads)["S"]
    part = N / parts * EACH + BRANCH_MISS_CYCLES + CALL_CYCLES
    assert turn.cycles == pytest.approx(share * parts * part, rel=0.01)
    assert turn.teams == 1


def test_what_hangs_on_data_is_not_told() -> None:
    body = f"""
      %n = memref.load %A[%t] : memref<{N}xf64>
      %m = arith.fptosi %n : f64 to i64
      %end = arith.index_cast %m : i64 to index
      %one = arith.constant 1 : index
      scf.for %i = %t to %end step %one {{ memref.store %c, %A[%i] : memref<{N}xf64> }}"""
    assert _times(body) == {}


def test_parallel_loops_are_loops_in_each_other() -> None:
    inner = f"%b = memref.load %B[%j] : memref<{N}xf64>  %z = arith.divf %b, %c : f64"
    store = f"memref.store %z, %A[%j] : memref<{N}xf64>"
    ends = "%l = arith.constant 0 : index  %u = arith.constant 800 : index"
    step = "%s = arith.constant 1 : index"
    both = f"scf.parallel (%i, %j) = (%l, %l) to (%u, %u) step (%s, %s) {{ {inner} {store} }}"
    inside = f"scf.for %j = %l to %u step %s {{ {inner} {store} }}"
    nested = f"scf.for %i = %l to %u step %s {{ {inside} }}"
    one, other = (_times(f"{ends} {step} {each}")["S"] for each in (both, nested))
    assert one == other
    assert one.cycles > 800 * 800 * DIVISION_CYCLES / LANES


def test_what_parallel_loops_reduce_is_a_chain() -> None:
    sum_up = """scf.reduce(%b : f64) { ^bb0(%x: f64, %y: f64):
        %s2 = arith.addf %x, %y : f64  scf.reduce.return %s2 : f64 }"""
    body = f"""%l = arith.constant 0 : index  %u = arith.constant {N} : index
      %s = arith.constant 1 : index  %zero = arith.constant 0.0 : f64
      %r = scf.parallel (%i) = (%l) to (%u) step (%s) init (%zero) -> f64 {{
        %b = memref.load %B[%i] : memref<{N}xf64>
        {sum_up} }}"""
    assert (_times(body)["S"].cycles - BRANCH_MISS_CYCLES) / N == pytest.approx(ADD, rel=1e-3)


def test_tasks_of_one_function_take_what_their_own_numbers_make_them_take() -> None:
    array = "memref<?xf64>"
    text = f"""
    func.func private @a(%A: {array}, %n: index)
        attributes {{avial.task = "a", avial.tasks = ["a", "b"]}} {{
      %one = arith.constant 1 : index
      scf.for %i = %one to %n step %one {{
        %p = arith.subi %i, %one : index
        %x = memref.load %A[%p] : {array}  %y = arith.divf %x, %x : f64
        memref.store %y, %A[%i] : {array}
      }}
      return
    }}
    func.func @main(%A: {array}) {{
      %few = arith.constant 101 : index  %many = arith.constant 10001 : index
      func.call @a(%A, %many) : ({array}, index) -> ()
      func.call @a(%A, %few) : ({array}, index) -> ()
      return
    }}"""
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(text).operation
    found = core_times_of_tasks(module, "main", {"a": ["b", "a"]}, 1, CPU)
    each = {name: (time.cycles - BRANCH_MISS_CYCLES) for name, time in found.items()}
    assert each["b"] / 10_000 == pytest.approx(EACH, rel=1e-2)
    assert each["b"] / each["a"] == pytest.approx(100, rel=1e-2)


def test_a_sine_of_a_large_argument_is_in_no_vector() -> None:
    """Of two versions, the question of which hangs on data, the nearer one is taken."""
    loop = f"""affine.for %i = 1 to {N} {{ %b = affine.load %B[%i] : memref<{N}xf64>
      %z = math.sin %b {{near}} : f64  {STORE} }}"""
    far, near = loop.replace("{near}", ""), loop.replace("{near}", "{avial.near}")
    question = "%q = arith.cmpf ogt, %c, %c : f64  scf.if %q"
    versions = far, near, f"{question} {{ {far} }} else {{ {near} }}"
    cycles = [(_times(each)["S"].cycles - BRANCH_MISS_CYCLES) / (N - 1) for each in versions]
    assert cycles[0] == pytest.approx(FAR_FUNCTION_CYCLES)
    assert cycles[1] == pytest.approx(16 / VECTOR_UNITS / LANES, rel=1e-2)
    assert cycles[2] == pytest.approx(cycles[1], rel=0.1)
