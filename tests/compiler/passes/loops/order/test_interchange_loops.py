"""Loops in another order compute the same bits, and are the ones that walk memory best."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.analysis.patterns.interchange import order_among
from avial_lab.compiler.analysis.patterns.loop_sinking import keeps, schedule_of, starts_of, sunk
from avial_lab.compiler.analysis.polyhedral.units import Immovable
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order import interchange_loops
from avial_lab.compiler.passes.loops.order.interchange_loops import InterchangeLoops
from avial_lab.machine.cpu import Cpu
from tests.compiler.analysis.polyhedral.nests import Nest, near_nests, plane_sums
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.analysis.polyhedral.texts import named_module
from tests.compiler.passes.rewriting import check_same_bits
from tests.quick import examples


def loops_of(text: str, context: ir.Context) -> list[str]:
    """The nests after the pass, each as its loops from the outside: `i k j`, by their values."""
    module = named_module(text, context)
    with context:
        module.body.operations[0].attributes["avial.no_alias"] = ir.UnitAttr.get()
    run_passes(module.operation, (InterchangeLoops(Cpu()),))
    module.operation.verify()
    found: list[str] = []

    def walk(block: ir.Block, around: str) -> None:
        for op in (view.operation for view in block.operations):
            if op.name == "affine.store":
                found.append(around.strip())
            for region in op.regions:
                for inner in region.blocks:
                    name = name_of(inner.arguments[0].location) if len(inner.arguments) else ""
                    walk(inner, f"{around} {name}")

    with context:
        walk(module.body.operations[0].operation.regions[0].blocks[0], "")
    return found


ARRAYS = (
    "%A: memref<50x60xf64>, %B: memref<60x70xf64>, %C: memref<50x70xf64>, %X: memref<9x50x70xf64>"
)
MATMUL = """affine.for %i = 0 to 50 { affine.for %j = 0 to 70 {
    affine.store %x, %C[%i, %j] : memref<50x70xf64>
    affine.for %k = 0 to 60 {
      %a = affine.load %A[%i, %k] : memref<50x60xf64>
      %b = affine.load %B[%k, %j] : memref<60x70xf64>
      %c = affine.load %C[%i, %j] : memref<50x70xf64>
      %p = arith.mulf %a, %b : f64
      %s = arith.addf %c, %p : f64
      affine.store %s, %C[%i, %j] : memref<50x70xf64> } } }"""

CASES = {
    "a product of matrices": (MATMUL, ["i j", "i k j"]),
    "columns of one array": (
        """affine.for %j = 0 to 70 { affine.for %i = 0 to 50 {
          affine.store %x, %C[%i, %j] : memref<50x70xf64> } }""",
        ["i j"],
    ),
    "rows already": (
        """affine.for %i = 0 to 50 { affine.for %j = 0 to 70 {
          affine.store %x, %C[%i, %j] : memref<50x70xf64> } }""",
        ["i j"],
    ),
    "a dependence that forbids it": (  # (1, -1): the exchange would turn it round
        """affine.for %j = 1 to 70 { affine.for %i = 0 to 49 {
          %a = affine.load %C[%i + 1, %j - 1] : memref<50x70xf64>
          affine.store %a, %C[%i, %j] : memref<50x70xf64> } }""",
        ["j i"],
    ),
    "a dependence along the diagonal": (
        """affine.for %j = 1 to 70 { affine.for %i = 1 to 50 {
          %a = affine.load %C[%i - 1, %j - 1] : memref<50x70xf64>
          affine.store %a, %C[%i, %j] : memref<50x70xf64> } }""",
        ["i j"],
    ),
    "a dependence along the columns": (
        """affine.for %j = 0 to 70 { affine.for %i = 1 to 50 {
          %a = affine.load %C[%i - 1, %j] : memref<50x70xf64>
          affine.store %a, %C[%i, %j] : memref<50x70xf64> } }""",
        ["i j"],
    ),
    "a triangle": (
        """affine.for %j = 0 to 50 { affine.for %i = affine_map<(d) -> (d)>(%j) to 50 {
          affine.store %x, %C[%i, %j] : memref<50x70xf64> } }""",
        ["i j"],
    ),
    "with a value that is there before": (
        """%y = memref.load %Y[] : memref<f64>
        affine.for %j = 0 to 70 { affine.for %i = 0 to 50 {
          affine.store %y, %C[%i, %j] : memref<50x70xf64> } }""",
        ["i j"],
    ),
    # A pass of an FFT: the next %b is 32 elements on, whatever the subscript says.
    "a loop of long steps": (
        """affine.for %b = 0 to 64 step 32 { affine.for %j = 0 to 30 {
          %a = affine.load %A[0, %j * 2] : memref<50x60xf64>
          affine.store %a, %C[0, %b + %j] : memref<50x70xf64> } }""",
        ["b j"],
    ),
    "a loop of short steps": (
        """affine.for %b = 0 to 64 step 4 { affine.for %j = 0 to 4 {
          %a = affine.load %A[0, %j * 2] : memref<50x60xf64>
          affine.store %a, %C[0, %b + %j] : memref<50x70xf64> } }""",
        ["j b"],
    ),
    "a sum over planes": (
        """affine.for %t = 0 to 9 { affine.for %i = 0 to 50 { affine.for %j = 0 to 70 {
          %a = affine.load %X[%t, %i, %j] : memref<9x50x70xf64>
          %c = affine.load %C[%i, %j] : memref<50x70xf64>
          %s = arith.addf %c, %a : f64
          affine.store %s, %C[%i, %j] : memref<50x70xf64> } } }""",
        ["i t j"],
    ),
    "a sum over planes of which all are near": (
        """affine.for %t = 0 to 9 { affine.for %i = 0 to 20 { affine.for %j = 0 to 70 {
          %a = affine.load %X[%t, %i, %j] : memref<9x50x70xf64>
          %c = affine.load %C[%i, %j] : memref<50x70xf64>
          %s = arith.addf %c, %a : f64
          affine.store %s, %C[%i, %j] : memref<50x70xf64> } } }""",
        ["t i j"],
    ),
    "planes that need neighbours of the one before": (
        """affine.for %t = 0 to 9 { affine.for %i = 1 to 50 { affine.for %j = 0 to 70 {
          %a = affine.load %C[%i - 1, %j] : memref<50x70xf64>
          affine.store %a, %C[%i, %j] : memref<50x70xf64> } } }""",
        ["t i j"],
    ),
    # What it would bring less is the table; but its rows are written by different iterations.
    "rows that share a large table": (
        """affine.for %i = 0 to 20 { affine.for %t = 0 to 60 { affine.for %j = 0 to 70 {
          %b = affine.load %B[%t, %j] : memref<60x70xf64>
          %c = affine.load %C[%i, %j] : memref<50x70xf64>
          %s = arith.addf %c, %b : f64
          affine.store %s, %C[%i, %j] : memref<50x70xf64> } } }""",
        ["i t j"],
    ),
    "nothing is stored": (
        """affine.for %j = 0 to 70 { affine.for %i = 0 to 50 {
          affine.load %C[%i, %j] : memref<50x70xf64> } }""",
        [],
    ),
    "beside what never runs": (
        """affine.for %j = 0 to 70 { affine.for %i = 0 to 50 {
          affine.store %x, %C[%i, %j] : memref<50x70xf64>
          affine.if affine_set<(d) : (-d - 1 >= 0)>(%i) {
            affine.store %x, %A[%j, %i] : memref<50x60xf64> } } }""",
        ["i j"],
    ),
    "only the loops inside, where the outer one is beyond us": (
        """%n = memref.load %N[] : memref<index>
        scf.while : () -> () { %go = memref.load %G[] : memref<i1>  scf.condition(%go) } do {
          affine.for %j = 0 to 70 { affine.for %i = 0 to 50 {
            affine.store %x, %C[%i, %j] : memref<50x70xf64> } }
          scf.yield }""",
        ["i j"],
    ),
}

# Once T[i, j] has its last value, all that begins with it may be tried at once.
CHAIN = """affine.for %i = 0 to 50 {
    affine.for %j = affine_map<(d) -> (d + 1)>(%i) to 50 {
      %l = affine.load %T[%i, %j - 1] : memref<50x50xi32>
      %b = affine.load %T[%i, %j] : memref<50x50xi32>
      %m = arith.maxsi %b, %l : i32
      affine.store %m, %T[%i, %j] : memref<50x50xi32>
      affine.for %k = affine_map<(d) -> (d + 1)>(%i) to affine_map<(d) -> (d)>(%j) {
        %c = affine.load %T[%i, %j] : memref<50x50xi32>
        %h = affine.load %T[%i, %k] : memref<50x50xi32>
        %t = affine.load %U[%k + 1, %j] : memref<50x50xi32>
        %s = arith.addi %h, %t : i32
        %n = arith.maxsi %c, %s : i32
        affine.store %n, %T[%i, %j] : memref<50x50xi32> } } }"""
IN_ORDER = ["i j", "i j k"]
FREE = ["i j", "i j j"]  # the loop in the middle goes on with j of the one and k of the other

UPDATES = {
    "the greatest": (CHAIN, FREE),
    "of floats, whose zeros have signs": (
        CHAIN.replace("i32", "f64").replace("maxsi", "maximumf").replace("addi", "addf"),
        IN_ORDER,
    ),
    "the greatest and the least": (CHAIN.replace("%n = arith.maxsi", "%n = arith.minsi"), IN_ORDER),
    "what is looked at halfway": (
        CHAIN.replace("%s = arith.addi %h, %t", "%s = arith.addi %c, %t"),
        IN_ORDER,
    ),
}


@pytest.mark.parametrize(("body", "expected"), UPDATES.values(), ids=UPDATES)
def test_updates_of_integers_have_no_order(
    body: str, expected: list[str], context: ir.Context
) -> None:
    kind = "f64" if "f64" in body else "i32"
    text = f"func.func @f(%T: memref<50x50x{kind}>, %U: memref<50x50x{kind}>) {{\n{body}\nreturn }}"
    assert sorted(loops_of(text, context)) == sorted(expected)


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES)
def test_order(body: str, expected: list[str], context: ir.Context) -> None:
    more = "%x: f64, %N: memref<index>, %G: memref<i1>, %Y: memref<f64>"
    body = body.replace("{ affine.for", "{\n affine.for")  # a loop a line: their names are read so
    text = f"func.func @f({ARRAYS}, {more}) {{\n{body}\nreturn }}"
    assert sorted(loops_of(text, context)) == sorted(expected)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=SLOW)
@given(st.lists(near_nests, min_size=6, max_size=6))
def test_the_same_bits(several: list[Nest]) -> None:
    check_same_bits(several, InterchangeLoops())


@settings(max_examples=examples(6), deadline=None, suppress_health_check=SLOW)
@given(several=st.lists(plane_sums, min_size=6, max_size=6))
def test_the_same_bits_of_sums_over_planes(several: list[Nest]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        written: list[None] = []
        patch.setattr(interchange_loops, "_write", _counted(interchange_loops._write, written))
        check_same_bits(several, InterchangeLoops(Cpu()))
    event(f"{len(written)} of 6 rewritten")


@settings(max_examples=examples(6), deadline=None, suppress_health_check=SLOW)
@given(several=st.lists(near_nests, min_size=6, max_size=6))
def test_the_same_bits_of_every_order_there_is(several: list[Nest]) -> None:
    """Also where no loop walks better: whatever isl calls allowed has to be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interchange_loops, "better_order", _any_order)
        written: list[None] = []
        patch.setattr(interchange_loops, "_write", _counted(interchange_loops._write, written))
        check_same_bits(several, InterchangeLoops())
    event(f"{len(written)} of 6 rewritten")


def _any_order(scop, units, near):
    """The last of all that are allowed, two loops moved; none where nothing is stored."""
    if not units:
        return None
    ordered, best = order_among(scop, units), None
    starts = [t for t in starts_of(units) if keeps(schedule_of(units, t), ordered)]
    if not starts:
        raise Immovable("it cannot be")
    times = starts[0]
    for _ in range(2):
        for each in sunk(times):
            if keeps(schedule := schedule_of(units, each), ordered):
                times, best = each, schedule
    return best


def _counted(write, written: list[None]):
    def counting(*arguments: object) -> None:
        write(*arguments)
        written.append(None)

    return counting
