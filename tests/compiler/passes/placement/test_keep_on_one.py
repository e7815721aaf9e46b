"""Which programs are left to one of several ranks; by what is sent, not by a clock."""

from __future__ import annotations

import re

import pytest
from mlir import ir

import avial_lab
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.phases import alone_in
from avial_lab.compiler.lowering.lower import split_into_tasks
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.placement import keep_on_one
from avial_lab.compiler.passes.placement.keep_on_one import KeepOnOne
from avial_lab.compiler.passes.placement.place_phases import PlacePhasesHere
from avial_lab.machine.cpu import Cpu

CPU = Cpu(64, 32, True, 32 << 10, 1 << 20, 32 << 20)
"""So that the answers are those of one machine."""


NAMES = ("B", "D", "E")


def two_sweeps(n: int | str, *, turned: bool, repeats: int = 1) -> str:
    """Three arrays by rows from A, then C by rows from them, which are `turned` over or not."""
    kind = f"memref<{n}x{n}xf64>"
    size = "%n" if n == "?" else str(n)
    place = "%j, %i" if turned else "%i, %j"
    # Sums along the rows keep the nests from being divided by the other loop.
    makes = "".join(
        f"""
        %last{b} = affine.load %{b}[%i, %j - 1] : {kind}
        %sum{b} = arith.addf %a, %last{b} : f64
        affine.store %sum{b}, %{b}[%i, %j] : {kind}"""
        for b in NAMES
    )
    takes = "".join(
        f"""
        %{b.lower()} = affine.load %{b}[{place}] : {kind}
        %c{b} = arith.addf %c{before}, %{b.lower()} : f64"""
        for before, b in zip(("", *NAMES), NAMES, strict=False)
    )
    arrays = ", ".join(f"%{name}: {kind}" for name in ("A", *NAMES, "C"))
    return f"""
func.func @sweeps({arrays}{", %n: index" if n == "?" else ""}) {{
  affine.for %t = 0 to {repeats} {{
    affine.for %i = 0 to {size} {{
      affine.for %j = 1 to {size} {{
        %a = affine.load %A[%i, %j] : {kind}{makes}
      }}
    }}
    affine.for %i = 0 to {size} {{
      affine.for %j = 1 to {size} {{
        %c = affine.load %C[%i, %j - 1] : {kind}{takes}
        affine.store %c{NAMES[-1]}, %C[%i, %j] : {kind}
      }}
    }}
  }}
  return
}}"""


def lying(text: str) -> str:
    """Its arrays lie in rows on the ranks before."""
    return re.sub(r"(%[A-E]: memref<\w+>)", r"\1 {avial.lies = 0 : i64}", text)


def product(n: int) -> str:
    """B from A by rows, then C += A * (B turned over)."""
    kind = f"memref<{n}x{n}xf64>"
    return f"""
func.func @product(%A: {kind}, %B: {kind}, %C: {kind}) {{
  affine.for %i = 0 to {n} {{
    affine.for %j = 0 to {n} {{
      %a = affine.load %A[%i, %j] : {kind}
      %b = arith.addf %a, %a : f64
      affine.store %b, %B[%i, %j] : {kind}
    }}
  }}
  affine.for %i = 0 to {n} {{
    affine.for %j = 0 to {n} {{
      affine.for %k = 0 to {n} {{
        %a = affine.load %A[%i, %k] : {kind}
        %b = affine.load %B[%j, %k] : {kind}
        %ab = arith.mulf %a, %b : f64
        %c = affine.load %C[%i, %j] : {kind}
        %sum = arith.addf %c, %ab : f64
        affine.store %sum, %C[%i, %j] : {kind}
      }}
    }}
  }}
  return
}}"""


def both_ways(n: int) -> str:
    """x += A y and z += (A turned over) y: one rank goes over A once, each of several twice over
    its part.
    """
    matrix, vector = f"memref<{n}x{n}xf64>", f"memref<{n}xf64>"
    nests = "".join(
        f"""
  affine.for %i = 0 to {n} {{
    affine.for %j = 0 to {n} {{
      %a = affine.load %A[{place}] : {matrix}
      %b = affine.load %y[%j] : {vector}
      %ab = arith.mulf %a, %b : f64
      %c = affine.load {into}[%i] : {vector}
      %sum = arith.addf %c, %ab : f64
      affine.store %sum, {into}[%i] : {vector}
    }}
  }}"""
        for place, into in (("%i, %j", "%x"), ("%j, %i", "%z"))
    )
    return f"""
func.func @both(%A: {matrix}, %x: {vector}, %y: {vector}, %z: {vector}) {{{nests}
  return
}}"""


@pytest.mark.parametrize(
    ("text", "ranks", "alone"),
    [
        pytest.param(two_sweeps(1000, turned=True), 2, True, id="half of an array is sent"),
        pytest.param(two_sweeps(1000, turned=False), 2, False, id="every part stays"),
        pytest.param(two_sweeps(300, turned=True), 2, False, id="too little to matter"),
        pytest.param(two_sweeps(300, turned=True, repeats=50), 2, True, id="little, often"),
        pytest.param(two_sweeps("?", turned=True), 2, False, id="nobody knows how much"),
        pytest.param(lying(two_sweeps(1000, turned=True)), 2, False, id="more would move to one"),
        pytest.param(lying(two_sweeps(300, turned=True, repeats=50)), 2, True, id="less would"),
        pytest.param(product(1000), 2, False, id="much is computed with what is sent"),
        pytest.param(both_ways(2000), 2, True, id="one rank goes over it once"),
        pytest.param(both_ways(2000), 4, False, id="four quarters twice are half of it"),
    ],
)
def test_one_rank_has_what_several_would_wait_for(
    monkeypatch: pytest.MonkeyPatch, text: str, ranks: int, alone: bool
) -> None:
    monkeypatch.setattr(keep_on_one, "this_cpu", lambda: CPU)
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context))
        passes = (PlacePhasesHere(ranks), KeepOnOne(ranks))
        assert [str(each) for each in parse_passes(",".join(map(str, passes)))] == [
            str(each) for each in passes
        ]
        run_passes(placed, passes)
        assert (alone_in(placed) is not None) == alone


def test_what_is_sent_is_what_the_plan_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    text = two_sweeps(1000, turned=True)
    monkeypatch.setattr(keep_on_one, "this_cpu", lambda: CPU)
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context))
        run_passes(placed, (PlacePhasesHere(2), KeepOnOne(2)))
        why = alone_in(placed)
    assert why is not None
    assert why.endswith("wait for 5.99 MB in 1 phase")
    plan = avial_lab.compile(text, ranks=2, without="keep-on-one").plan
    assert plan is not None
    to_one = {move.dest: move.nbytes for move in plan.moves}
    # The first column is as it was given, and of the first row nothing is read.
    assert to_one == dict.fromkeys(range(2), len(NAMES) * 500 * 499 * 8)


def test_the_plan_of_a_program_that_is_left_to_one_rank() -> None:
    program = avial_lab.compile(two_sweeps(1500, turned=True), ranks=2)
    assert program.plan is not None
    assert not program.plan.moves
    assert program.plan.held_bytes[0] > 0
    assert program.plan.held_bytes[1] == 0
    assert {piece.rank for piece in program.plan.results} == {0}
    told = str(program.explain())
    assert "all of the program runs on one rank" in told
    assert " MB in 1 phase" in told


def test_who_chooses_a_division_gets_it() -> None:
    text = two_sweeps(1500, turned=True)
    for program in (
        avial_lab.compile(text, ranks=2, division="cyclic(100)"),
        avial_lab.compile(text, ranks=2, without="keep-on-one"),
    ):
        assert program.plan is not None
        assert program.plan.moves


def rotations(n: int) -> str:
    """Pairs of rows and of columns are turned, where an element of theirs is not small."""
    kind = f"memref<{n}x{n}xf64>"
    turn = """
          affine.for %k = 0 to $N {
            %x = affine.load %A[$P] : $T
            %y = affine.load %A[$Q] : $T
            %u = arith.addf %x, %y : f64
            %v = arith.subf %x, %y : f64
            affine.store %u, %A[$P] : $T
            affine.store %v, %A[$Q] : $T
          }"""
    rows = turn.replace("$P", "%p, %k").replace("$Q", "%q, %k")
    columns = turn.replace("$P", "%k, %p").replace("$Q", "%k, %q")
    return f"""
func.func @turned(%A: $T) {{
  %small = arith.constant 1.0e-3 : f64
  affine.for %p = 0 to {n - 1} {{
    affine.for %q = affine_map<(d) -> (d + 1)>(%p) to {n} {{
      %a = affine.load %A[%p, %q] : $T
      %c = arith.cmpf ogt, %a, %small : f64
      scf.if %c {{{rows}{columns}
      }}
    }}
  }}
  return
}}""".replace("$T", kind).replace("$N", str(n))


@pytest.mark.parametrize(("n", "alone"), [(6, False), (90, True)])
def test_thousands_of_messages_for_little_work_are_none(
    n: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_on_one, "this_cpu", lambda: CPU)
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(rotations(n), context))
        run_passes(placed, (PlacePhasesHere(3), KeepOnOne(3)))
        assert (alone_in(placed) is not None) == alone
