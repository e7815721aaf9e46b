"""What a phase reports to the ownership runtime: the compiled function against running the nest."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import islpy as isl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from mlir import ir

import kernels
from avial_lab.compiler.analysis.polyhedral.boxes import SET
from avial_lab.compiler.analysis.polyhedral.footprints import touched_boxes
from avial_lab.compiler.analysis.polyhedral.operations import LOOPS
from avial_lab.compiler.analysis.polyhedral.out_of_bounds import out_of_bounds
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind, Scop, Statement
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.passes.distribution.footprint_functions import EVERYTHING, write_touches
from avial_lab.core.errors import InternalError
from avial_lab.core.regions import Box
from tests.compiler.analysis.polyhedral.nests import (
    Event,
    For,
    If,
    Nest,
    affine_text,
    nests,
    scf_text,
    trace,
)
from tests.compiler.analysis.polyhedral.texts import scop_of, with_names
from tests.quick import examples
from tests.reported import Elements, Report, Reporter, elements, reporter

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


# -- one by one


@dataclass(frozen=True)
class Case:
    """A nest, the loops of it that are split (by number), a part, and what it reports."""

    text: str
    loops: tuple[int, ...]
    ends: tuple[int, ...]
    reports: list[str]
    parameters: dict[str, int] = field(default_factory=dict)
    second: tuple[int, ...] = ()
    reduced: Collection[str] = ""


STAR = """func.func @f(%A: memref<10x10xf64>, %B: memref<10x10xf64>) {
  affine.for %i = 1 to 9 {
    affine.for %j = 1 to 9 {
      %a = affine.load %A[%i, %j] : memref<10x10xf64>
      %n = affine.load %A[%i - 1, %j] : memref<10x10xf64>
      %s = affine.load %A[%i + 1, %j] : memref<10x10xf64>
      %w = affine.load %A[%i, %j - 1] : memref<10x10xf64>
      %e = affine.load %A[%i, %j + 1] : memref<10x10xf64>
      affine.store %a, %B[%i, %j] : memref<10x10xf64>
    }
  }
  return }"""

# The rows above and below without their ends, the rows between with them.
CASES = {
    "a five-point stencil": Case(
        STAR,
        (0,),
        (3, 5),
        snapshot(["read A[3:5, 0:10]", "read A[2:6, 1:9]", "write B[3:5, 1:9] 1"]),
    ),
    "its last rows": Case(
        STAR,
        (0,),
        (8, 20),
        snapshot(["read A[8:9, 0:10]", "read A[7:10, 1:9]", "write B[8:9, 1:9] 1"]),
    ),
    "in both dimensions": Case(
        STAR,
        (0,),
        (3, 5, 1, 4),
        snapshot(["read A[3:5, 0:5]", "read A[2:6, 1:4]", "write B[3:5, 1:4] 1"]),
        second=(1,),
    ),
    "by columns": Case(
        STAR,
        (1,),
        (3, 5),
        snapshot(["read A[1:9, 2:6]", "read A[0:10, 3:5]", "write B[1:9, 3:5] 1"]),
    ),
    "nobody's rows": Case(STAR, (0,), (9, 12), snapshot([])),
    "no rows": Case(STAR, (0,), (5, 5), snapshot([])),
    "a box stencil": Case(
        """func.func @f(%A: memref<?x?xf64>, %B: memref<?x?xf64>, %n: index, %m: index) {
          affine.for %i = 1 to affine_map<()[s0] -> (s0 - 1)>()[%n] {
            affine.for %j = 1 to affine_map<()[s0] -> (s0 - 1)>()[%m] {
              %a = affine.load %A[%i - 1, %j - 1] : memref<?x?xf64>
              %b = affine.load %A[%i - 1, %j] : memref<?x?xf64>
              %c = affine.load %A[%i - 1, %j + 1] : memref<?x?xf64>
              %d = affine.load %A[%i, %j - 1] : memref<?x?xf64>
              %e = affine.load %A[%i, %j] : memref<?x?xf64>
              %f = affine.load %A[%i, %j + 1] : memref<?x?xf64>
              %g = affine.load %A[%i + 1, %j - 1] : memref<?x?xf64>
              %h = affine.load %A[%i + 1, %j] : memref<?x?xf64>
              %k = affine.load %A[%i + 1, %j + 1] : memref<?x?xf64>
              affine.store %a, %B[%i, %j] : memref<?x?xf64>
            }
          }
          return }""",
        (0,),
        (0, 4),
        snapshot(["read A[0:5, 0:7]", "write B[1:4, 1:6] 1"]),
        {"n": 9, "m": 7},
    ),
    "a product that starts at zero": Case(
        """func.func @f(%C: memref<8x9xf64>, %A: memref<8x7xf64>, %B: memref<7x9xf64>, %z: f64) {
          affine.for %i = 0 to 8 {
            affine.for %j = 0 to 9 {
              affine.store %z, %C[%i, %j] : memref<8x9xf64>
              affine.for %k = 0 to 7 {
                %a = affine.load %A[%i, %k] : memref<8x7xf64>
                %b = affine.load %B[%k, %j] : memref<7x9xf64>
                %c = affine.load %C[%i, %j] : memref<8x9xf64>
                affine.store %c, %C[%i, %j] : memref<8x9xf64>
              }
            }
          }
          return }""",
        (0,),
        (2, 4),
        snapshot(["write C[2:4, 0:9] 1", "read A[2:4, 0:7]", "read B[0:7, 0:9]"]),
    ),
    "a product onto what was there": Case(
        """func.func @f(%C: memref<8x9xf64>, %A: memref<8x7xf64>, %B: memref<7x9xf64>) {
          linalg.matmul ins(%A, %B : memref<8x7xf64>, memref<7x9xf64>) outs(%C : memref<8x9xf64>)
          return }""",
        (),
        (),
        snapshot(
            ["read A[0:8, 0:7]", "read B[0:7, 0:9]", "read C[0:8, 0:9]", "write C[0:8, 0:9] 1"]
        ),
    ),
    "one that another loop starts": Case(
        """func.func @f(%C: memref<8x9xf64>, %z: f64) {
          scf.execute_region {
            affine.for %i = 0 to 8 {
              affine.for %j = 0 to 9 { affine.store %z, %C[%i, %j] : memref<8x9xf64> }
            }
            affine.for %k = 0 to 8 {
              affine.for %l = 0 to 9 {
                %c = affine.load %C[%k, %l] : memref<8x9xf64>
                affine.store %c, %C[%k, %l] : memref<8x9xf64>
              }
            }
            scf.yield
          }
          return }""",
        (0, 2),
        (2, 4),
        snapshot(["write C[2:4, 0:9] 1"]),
    ),
    # The loop that reads is not split: it needs what other ranks write.
    "started by others": Case(
        """func.func @f(%C: memref<8xf64>, %z: f64) {
          scf.execute_region {
            affine.for %i = 0 to 8 { affine.store %z, %C[%i] : memref<8xf64> }
            affine.for %k = 0 to 8 { %c = affine.load %C[%k] : memref<8xf64> }
            scf.yield
          }
          return }""",
        (0,),
        (2, 4),
        snapshot(["read C[0:8]", "write C[2:4] 1"]),
    ),
    # Row 2's store is no help to row 3: they may run in any order.
    "not started by another iteration": Case(
        """func.func @f(%C: memref<9xf64>, %z: f64) {
          affine.for %i = 1 to 9 {
            affine.store %z, %C[%i] : memref<9xf64>
            %c = affine.load %C[%i - 1] : memref<9xf64>
          }
          return }""",
        (0,),
        (2, 5),
        snapshot(["read C[1:4]", "write C[2:5] 1"]),
    ),
    "started only if it pays": Case(
        """func.func @f(%C: memref<9xf64>, %z: f64, %n: index) {
          affine.for %i = 0 to 9 {
            affine.if affine_set<(d0)[s0] : (d0 - s0 >= 0)>(%i)[%n] {
              affine.store %z, %C[%i] : memref<9xf64>
            }
            %c = affine.load %C[%i] : memref<9xf64>
          }
          return }""",
        (0,),
        (2, 7),
        snapshot(["read C[2:4]", "write C[4:7] 1"]),
        {"n": 4},
    ),
    "a triangle": Case(
        """func.func @f(%L: memref<9x9xf64>, %x: memref<9xf64>, %z: f64) {
          affine.for %i = 0 to 9 {
            affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
              %a = affine.load %x[%j] : memref<9xf64>
              affine.store %a, %L[%i, %j] : memref<9x9xf64>
            }
          }
          return }""",
        (0,),
        (3, 6),
        snapshot(["read x[0:5]", "write L[3:6, 0:5] 0"]),
    ),
    "steps": Case(
        """func.func @f(%A: memref<30xf64>, %B: memref<30xf64>) {
          affine.for %i = 1 to 27 step 3 {
            %a = affine.load %A[%i + 1] : memref<30xf64>
            affine.store %a, %B[2 * (%i floordiv 3)] : memref<30xf64>
          }
          return }""",
        (0,),
        (5, 14),
        snapshot(["read A[8:15]", "write B[4:9] 0"]),
    ),
    # Parts do not share B[2], unless their ends are odd.
    "two to one": Case(
        """func.func @f(%A: memref<30xf64>, %B: memref<15xf64>) {
          affine.for %i = 0 to 30 {
            %a = affine.load %A[%i] : memref<30xf64>
            affine.store %a, %B[%i floordiv 2] : memref<15xf64>
          }
          return }""",
        (0,),
        (4, 10),
        snapshot(["read A[4:10]", "write B[2:5] 1"]),
    ),
    "unrolled": Case(
        """func.func @f(%A: memref<40xf64>, %B: memref<40xf64>) {
          affine.for %i = 0 to 10 {
            %a = affine.load %A[4 * %i] : memref<40xf64>
            %b = affine.load %A[4 * %i + 2] : memref<40xf64>
            affine.store %a, %B[4 * %i] : memref<40xf64>
            affine.store %a, %B[4 * %i + 1] : memref<40xf64>
            affine.store %b, %B[4 * %i + 2] : memref<40xf64>
            affine.store %b, %B[4 * %i + 3] : memref<40xf64>
          }
          return }""",
        (0,),
        (2, 4),
        snapshot(["read A[8:13]", "read A[10:15]", "write B[8:16] 1"]),
    ),
    "where a remainder starts anew": Case(
        """func.func @f(%A: memref<8xf64>, %B: memref<8xf64>) {
          affine.for %i = 0 to 8 {
            %a = affine.load %A[(%i + 7) mod 8] : memref<8xf64>
            %b = affine.load %A[%i] : memref<8xf64>
            %c = affine.load %A[(%i + 1) mod 8] : memref<8xf64>
            affine.store %a, %B[%i] : memref<8xf64>
          }
          return }""",
        (0,),
        (5, 8),
        snapshot(["read A[4:8]", "read A[0:1]", "write B[5:8] 1"]),
    ),
    "two remainders": Case(
        """func.func @f(%A: memref<2xf64>, %n: index, %z: f64) {
          affine.for %i = 2 to 4 {
            affine.if affine_set<(d0)[s0] : (s0 - 2 * d0 + 3 == 0)>(%i)[%n] {
              affine.store %z, %A[(2 - %i) mod 2] : memref<2xf64>
            }
          }
          return }""",
        (),
        (),
        snapshot(["write A[1:2] 1"]),
        {"n": 3},
    ),
    "least and greatest": Case(
        """func.func @f(%A: memref<?xf64>, %n: index, %m: i32) {
          %k = arith.index_cast %m : i32 to index
          affine.for %i = max affine_map<()[s0] -> (2, s0)>()[%k]
              to min affine_map<()[s0] -> (20, s0 + 5)>()[%n] {
            %a = affine.load %A[%i] : memref<?xf64>
          }
          return }""",
        (0,),
        (-50, 50),
        snapshot(["read A[2:13]"]),
        {"n": 8, "m": -3},
    ),
    "as long as the array": Case(
        """func.func @f(%A: memref<?xf64>, %B: memref<?xf64>) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %n = memref.dim %A, %c0 : memref<?xf64>
          scf.for %i = %c0 to %n step %c1 {
            %a = memref.load %A[%i] : memref<?xf64>
            %k = arith.subi %n, %i : index
            memref.store %a, %B[%k] : memref<?xf64>
          }
          return }""",
        (0,),
        (4, 99),
        snapshot(["read A[4:9]", "write B[1:6] 1"]),
        {"A_0": 9},
    ),
    "indirectly": Case(
        """func.func @f(%A: memref<30xf64>, %p: memref<9xindex>, %y: memref<9xf64>) {
          affine.for %i = 0 to 9 {
            %k = affine.load %p[%i] : memref<9xindex>
            %a = memref.load %A[%k] : memref<30xf64>
            memref.store %a, %A[%k] : memref<30xf64>
            affine.store %a, %y[%i] : memref<9xf64>
          }
          return }""",
        (0,),
        (4, 6),
        snapshot(["read p[4:6]", "read A[0:30]", "write A[0:30] 0", "write y[4:6] 1"]),
    ),
    "perhaps": Case(
        """func.func @f(%A: memref<9xf64>, %z: f64) {
          affine.for %i = 0 to 9 {
            %a = affine.load %A[%i] : memref<9xf64>
            %c = arith.cmpf ogt, %a, %z : f64
            scf.if %c { memref.store %z, %A[%i] : memref<9xf64> }
          }
          return }""",
        (0,),
        (4, 6),
        snapshot(["read A[4:6]", "write A[4:6] 0"]),
    ),
    "an unknown operation": Case(
        """func.func @f(%A: memref<9xf64>, %B: memref<?xf64>, %C: memref<9xf64>, %z: f64) {
          scf.execute_region {
            func.call @g(%A, %B) : (memref<9xf64>, memref<?xf64>) -> ()
            scf.yield
          }
          return }
        func.func private @g(memref<9xf64>, memref<?xf64>)""",
        (),
        (),
        snapshot(["read A[0:9]", "write A[0:9] 0", "read B[0:7]", "write B[0:7] 0"]),
        {"B_0": 7},
    ),
    "until it stops": Case(
        """func.func @f(%A: memref<9xf64>, %s: memref<f64>, %z: f64) {
          scf.while : () -> () {
            %a = memref.load %s[] : memref<f64>
            %c = arith.cmpf ogt, %a, %z : f64
            scf.condition(%c)
          } do {
            affine.for %i = 2 to 9 { affine.store %z, %A[%i] : memref<9xf64> }
            memref.store %z, %s[] : memref<f64>
            scf.yield
          }
          return }""",
        (),
        (),
        snapshot(["read s[]", "write s[] 0", "write A[2:9] 0"]),
    ),
    "a sum, a histogram": Case(
        """func.func @f(%A: memref<9xindex>, %s: memref<index>, %h: memref<5xindex>) {
          %c1 = arith.constant 1 : index
          affine.for %i = 0 to 9 {
            %a = affine.load %A[%i] : memref<9xindex>
            %old = memref.load %s[] : memref<index>
            %new = arith.addi %old, %a : index
            memref.store %new, %s[] : memref<index>
            %n = memref.load %h[%a] : memref<5xindex>
            %more = arith.addi %n, %c1 : index
            memref.store %more, %h[%a] : memref<5xindex>
          }
          return }""",
        (0,),
        (4, 6),
        snapshot(["read A[4:6]", "reduce s[] 4", "reduce h[0:5] 4"]),
        reduced="sh",
    ),
    "memory of its own": Case(
        """func.func @f(%A: memref<9xf64>, %z: f64) {
          affine.for %i = 0 to 9 {
            %t = memref.alloc() : memref<3xf64>
            affine.store %z, %t[0] : memref<3xf64>
            %a = affine.load %t[0] : memref<3xf64>
            %g = memref.get_global @table : memref<2xf64>
            %c = affine.load %g[0] : memref<2xf64>
            affine.store %a, %A[%i] : memref<9xf64>
          }
          return }
        memref.global constant @table : memref<2xf64> = dense<1.0>""",
        (0,),
        (4, 6),
        snapshot(["write A[4:6] 1"]),
    ),
    "a window": Case(
        """func.func @f(%A: memref<9x9xf64>, %z: f64) {
          affine.for %i = 0 to 3 {
            %v = memref.subview %A[2, 0] [3, 8] [2, 1]
              : memref<9x9xf64> to memref<3x8xf64, strided<[18, 1], offset: 18>>
            affine.for %j = 0 to 8 {
              affine.store %z, %v[%i, %j] : memref<3x8xf64, strided<[18, 1], offset: 18>>
            }
          }
          return }""",
        (0,),
        (1, 3),
        snapshot(["write A[4:5, 0:8] 1", "write A[6:7, 0:8] 1"]),
    ),
    "the least with its place": Case(
        """func.func @f(%at: memref<2xi32>, %A: memref<9xi64>, %best: memref<9xi64>, %v: i32) {
          affine.for %i = 0 to 9 {
            %a = affine.load %A[%i] : memref<9xi64>
            %old = affine.load %best[3] : memref<9xi64>
            %less = arith.cmpi ult, %a, %old : i64
            scf.if %less {
              affine.store %a, %best[3] : memref<9xi64>
              affine.store %v, %at[0] : memref<2xi32>
              affine.store %v, %at[1] : memref<2xi32>
            }
          }
          return }""",
        (0,),
        (4, 6),
        # 13 * 16 + 4: argminui, of i64; 15 * 16 | 2 << 16: what follows array 1, the second.
        snapshot(["read A[4:6]", "reduce best[3:4] 212", "reduce at[0:2] 131312"]),
        reduced=("best", "at"),
    ),
    "two edges, apart": Case(
        """func.func @f(%A: memref<?x?xf64>, %z: f64, %n: index) {
          affine.for %i = 0 to %n {
            affine.store %z, %A[%i, 0] : memref<?x?xf64>
            affine.store %z, %A[%i, symbol(%n) - 1] : memref<?x?xf64>
          }
          return }""",
        (0,),
        (1, 3),
        snapshot(["write A[1:3, 0:1] 1", "write A[1:3, 8:9] 1"]),
        {"n": 9},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reports(name: str, context: ir.Context) -> None:
    case = CASES[name]
    report = reporter_of(case, context)
    assert report.lines(*case.ends, **case.parameters) == case.reports


def reporter_of(case: Case, context: ir.Context) -> Reporter:
    module = ir.Module.parse(with_names(case.text), context)
    function = module.body.operations[0].operation
    nest = next(
        view.operation
        for view in function.regions[0].blocks[0].operations
        if view.operation.name.partition(".")[0] not in ("arith", "memref")
    )
    scop = read_scop(nest)
    return reporter(
        function,
        scop,
        loops=[scop.loops[k] for k in case.loops],
        second=[scop.loops[k] for k in case.second],
        reduced=[array for array in scop.arrays if array.name in case.reduced],
    )


# -- random nests against running them


@dataclass(frozen=True)
class Split:
    """Loops of a nest, by number, that are split along each dimension."""

    nest: Nest
    first: tuple[int, ...]
    second: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{affine_text(self.nest)} {self.first} {self.second}"


@st.composite
def splits(draw: st.DrawFn) -> Split:
    nest = draw(nests)
    outer = _loops_around(nest)
    first = draw(apart(list(outer), outer))
    second = draw(apart([k for k in outer if set(first) & set(outer[k])], outer))
    return Split(nest, first, second)


@st.composite
def apart(
    draw: st.DrawFn, loops: Sequence[int], outer: dict[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """Some of the loops, none inside another."""
    chosen: list[int] = []
    for loop in draw(st.permutations(loops)):
        if all(loop not in outer[k] and k not in outer[loop] for k in chosen):
            chosen += [loop] if draw(st.booleans()) else []
    return tuple(sorted(chosen))


def _loops_around(nest: Nest) -> dict[int, tuple[int, ...]]:
    """Each loop's number, in textual order, with those around it."""
    found: dict[int, tuple[int, ...]] = {}

    def walk(nodes: Nest, outer: tuple[int, ...]) -> None:
        for node in nodes:
            if isinstance(node, For):
                number = len(found)
                found[number] = outer
                walk(node.body, (*outer, number))
            elif isinstance(node, If):
                walk(node.then, outer)
                walk(node.otherwise, outer)

    walk(nest, ())
    return found


parts = st.tuples(*[st.integers(-3, 5)] * 4)


@pytest.mark.quick("affine_text")
@pytest.mark.parametrize("spelling", [affine_text, scf_text])
@settings(max_examples=examples(25), deadline=None, suppress_health_check=SLOW)
@given(split=splits(), asked=st.lists(parts, min_size=4, max_size=4))
def test_random_nests(spelling, split: Split, asked: list[tuple[int, ...]]) -> None:
    if len(trace(split.nest, 4)) > 400:
        return
    with ir.Context():
        module = ir.Module.parse(with_names(spelling(split.nest)))
        function = module.body.operations[0].operation
        scop = read_scop(function)
        first, second = ([scop.loops[k] for k in chosen] for chosen in (split.first, split.second))
        report = reporter(function, scop, loops=first, second=second)
        for n, ends in itertools.product(range(5), asked):
            check(report(*ends, n=n), split, trace(split.nest, n), ends)


def check(
    got: Sequence[Report], split: Split, events: Sequence[Event], ends: Sequence[int]
) -> None:
    empty = (split.first and ends[0] >= ends[1]) or (split.second and ends[2] >= ends[3])
    if empty:
        assert got == []
        return
    inside = [event for event in events if within(event, split, ends)]
    writes = [report for report in got if report.kind == "write"]
    written = {event.element for event in inside if event.writes}
    assert needed(inside, split) <= elements([r for r in got if r.kind == "read"])
    assert elements([r for r in writes if r.word]) <= written <= elements(writes)


def within(event: Event, split: Split, ends: Sequence[int]) -> bool:
    """Whether it is in the part."""
    values = dict(zip(event.loops, event.iteration, strict=True))
    return all(ends[0] <= values[loop] < ends[1] for loop in split.first if loop in values) and all(
        ends[2] <= values[loop] < ends[3] for loop in split.second if loop in values
    )


def needed(events: Sequence[Event], split: Split) -> Elements:
    """What is read before it is written, in an order of the split loops' iterations that nobody
    knows: a write in another iteration of them does not count.
    """
    found: Elements = set()
    written: dict[object, list[Event]] = {}
    for event in events:
        if event.writes:
            written.setdefault(event.element, []).append(event)
        elif not any(comes_before(write, event, split) for write in written.get(event.element, [])):
            found.add(event.element)
    return found


def comes_before(write: Event, read: Event, split: Split) -> bool:
    """Whether a write earlier in the text's order is one in every order."""
    for chosen in (split.first, split.second):
        here = [v for k, v in zip(read.loops, read.iteration, strict=True) if k in chosen]
        there = [v for k, v in zip(write.loops, write.iteration, strict=True) if k in chosen]
        if there and here != there:
            return False
    return True


# -- the rest


def test_what_isl_finds_too_hard_is_a_hull_or_all(
    context: ir.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("avial_lab.compiler.analysis.polyhedral.footprints.OPERATIONS", 3)
    report = reporter_of(CASES["a five-point stencil"], context)
    whole = f"[0:{EVERYTHING}, 0:{EVERYTHING}]"
    assert report.lines(3, 5) == [f"read A{whole}", f"write B{whole} 0"]


def test_an_array_without_a_number_is_our_fault(context: ir.Context) -> None:
    module = ir.Module.parse(STAR, context)
    function = module.body.operations[0].operation
    scop = read_scop(function)
    with pytest.raises(InternalError, match="array arg0 is accessed, but has no index"):
        write_touches(function, "f.touches", scop, touched_boxes(scop), {})


OUTSIDE = {
    "one beyond": (
        """func.func @f(%A: memref<10xf64>, %n: index) {
          affine.for %i = 0 to 10 { %a = affine.load %A[%i + 1] : memref<10xf64> }
          return }""",
        snapshot(["A[i + 1] reaches index 10 of dimension 0, which has size 10"]),
    ),
    "one before": (
        """func.func @f(%A: memref<9x10xf64>, %z: f64) {
          affine.for %i = 0 to 10 {
            affine.for %j = 0 to 9 { affine.store %z, %A[%j, 2 * %i - 4] : memref<9x10xf64> }
          }
          return }""",
        snapshot(["A[j, 2*i - 4] reaches index -4 of dimension 1, which has size 10"]),
    ),
    "whatever n is": (
        """func.func @f(%A: memref<10xf64>, %n: index) {
          %a = affine.load %A[(symbol(%n) mod 7) + 12] : memref<10xf64>
          return }""",
        snapshot(["A[((n) mod 7) + 12] reaches index 18 of dimension 0, which has size 10"]),
    ),
    "only where n is great": (
        """func.func @f(%A: memref<10xf64>, %n: index) {
          affine.for %i = 0 to %n { %a = affine.load %A[%i] : memref<10xf64> }
          return }""",
        snapshot([]),
    ),
    "in no iteration": (
        """func.func @f(%A: memref<10xf64>, %n: index) {
          affine.for %i = 10 to 10 { %a = affine.load %A[%i] : memref<10xf64> }
          return }""",
        snapshot([]),
    ),
    "perhaps": (
        """func.func @f(%A: memref<10xf64>, %p: memref<i1>) {
          %c = memref.load %p[] : memref<i1>
          scf.if %c { %a = affine.load %A[10] : memref<10xf64> }
          return }""",
        snapshot([]),
    ),
    "size unknown": (
        """func.func @f(%A: memref<?xf64>) {
          %a = affine.load %A[10] : memref<?xf64>
          return }""",
        snapshot([]),
    ),
    "through a window": (
        """func.func @f(%A: memref<10xf64>) {
          %v = memref.subview %A[4] [6] [1]
            : memref<10xf64> to memref<6xf64, strided<[1], offset: 4>>
          affine.for %i = 0 to 7 {
            %a = affine.load %v[%i] : memref<6xf64, strided<[1], offset: 4>>
          }
          return }""",
        snapshot(["A[i] reaches index 10 of dimension 0, which has size 10"]),
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_out_of_bounds(name: str, context: ir.Context) -> None:
    text, expected = OUTSIDE[name]
    assert [str(each) for each in out_of_bounds(scop_of(text, context))] == expected


KERNELS = [pytest.param(name, id=name) for name in kernels.names()]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, context: ir.Context) -> None:
    """Every loop of every kernel: what isl says at those numbers, taken apart in another way."""
    kernel = kernels.load(name)
    sizes = {size: 5 + k for k, size in enumerate(kernel.size_names)}
    module = ir.Module.parse(kernel.mlir(kernel.elements[0], sizes), context)
    function = module.body.operations[0].operation
    for nest in list(loops_in(function)):
        scop = read_scop(nest)
        (loop, *_) = scop.loops_of(nest)
        report = reporter(function, scop, loops=[loop])
        symbols = dict.fromkeys(report.names, 2)
        for low, high in ((0, 3), (2, 9), (4, 5)):
            got = report(low, high, **symbols)
            values = {**symbols, **dict.fromkeys(scop.parameters, 2)}
            agree(got, touched(scop, low, high, values))


@dataclass(frozen=True)
class Touched:
    """Elements that a part reads, writes, and writes for sure; `around` is one box around each
    access that reads, None where they have no end.
    """

    read: Elements
    written: Elements
    sure: Elements
    around: Sequence[Report] | None


def touched(scop: Scop, low: int, high: int, values: dict[str, int]) -> dict[str, Touched]:
    """What each array's accesses touch in those iterations of the outermost loop."""
    found: dict[str, list[tuple[Statement, Access, isl.Set]]] = defaultdict(list)
    for statement in scop.statements:
        part = statement.domain.lower_bound_val(SET, 0, low).upper_bound_val(SET, 0, high - 1)
        for access in statement.accesses:
            if access.array.kind is ArrayKind.MEMORY:
                elements = at(access.relation.intersect_domain(part).range(), values)
                found[access.array.name].append((statement, access, elements))
    return {name: _touched(name, each) for name, each in found.items()}


def _touched(name: str, each: Sequence[tuple[Statement, Access, isl.Set]]) -> Touched:
    reads = [elements for _, access, elements in each if not access.writes]
    writes = [elements for _, access, elements in each if access.writes]
    sure = [elements for statement, access, elements in each if statement.must_write(access)]
    read, written, surely = (
        {(name, index) for elements in sets for index in points(elements)}
        for sets in (reads, writes, sure)
    )
    bounded = all(elements.is_bounded() for elements in reads)
    boxes = [Report("read", name, box) for e in reads if (box := around(e)) is not None]
    return Touched(read, written, surely, boxes if bounded else None)


def at(elements: isl.Set, values: dict[str, int]) -> isl.Set:
    """The set at those values of its parameters."""
    for name, value in values.items():
        place = elements.find_dim_by_name(isl.dim_type.param, name)
        if place >= 0:
            elements = elements.fix_val(isl.dim_type.param, place, value)
    return elements.project_out(isl.dim_type.param, 0, elements.dim(isl.dim_type.param))


def points(elements: isl.Set, reach: int = 64) -> set[tuple[int, ...]]:
    """Those of its elements that lie within `reach` of the origin."""
    for dim in range(elements.dim(SET)):
        elements = elements.lower_bound_val(SET, dim, -reach).upper_bound_val(SET, dim, reach - 1)
    found: set[tuple[int, ...]] = set()

    def add(point: isl.Point) -> None:
        place = (point.get_coordinate_val(SET, k).to_python() for k in range(elements.dim(SET)))
        found.add(tuple(place))

    elements.foreach_point(add)
    return found


def around(elements: isl.Set) -> Box | None:
    """The smallest box that holds them, None where there are none."""
    if elements.is_empty() or not elements.is_bounded():
        return None
    dims = range(elements.dim(SET))
    low = (elements.dim_min_val(dim).to_python() for dim in dims)
    high = (elements.dim_max_val(dim).to_python() + 1 for dim in dims)
    return Box(tuple(low), tuple(high))


def loops_in(op: ir.Operation) -> Iterator[ir.Operation]:
    return (inner for inner in operations_in(op) if inner.name in LOOPS)


def agree(got: Sequence[Report], parts: dict[str, Touched]) -> None:
    """The reports of each array hold what the part touches; exact writes are written for sure."""
    for name, part in parts.items():
        mine = [report for report in got if report.array == name]
        writes = [report for report in mine if report.kind == "write"]
        assert part.written <= elements(writes)
        assert elements([r for r in writes if r.word]) <= part.sure
        # What is read but not reported, the part has written itself.
        reported = elements([report for report in mine if report.kind == "read"])
        assert part.read - reported <= part.sure
        if not part.sure and part.around is not None:
            assert reported <= elements(part.around)
