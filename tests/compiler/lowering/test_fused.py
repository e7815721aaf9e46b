"""Phases that became one on a single rank: every view of the program says the same of them."""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.machine.cpu import this_cpu
from avial_lab.program.program import Program


def sweeps(n: int, steps: int, *, between: str = "") -> str:
    kind, rows = f"memref<{n}x{n}xf64>", []
    for source, target in ("AB", "BA"):
        rows.append(f"""
      affine.for %i = 1 to {n - 1} {{ affine.for %j = 1 to {n - 1} {{
        %up = affine.load %{source}[%i - 1, %j] : {kind}
        %down = affine.load %{source}[%i + 1, %j] : {kind}
        %left = affine.load %{source}[%i, %j - 1] : {kind}
        %s1 = arith.addf %up, %down : f64
        %s2 = arith.addf %s1, %left : f64
        %s3 = arith.mulf %s2, %third : f64
        affine.store %s3, %{target}[%i, %j] : {kind} }} }}""")
    return f"""
    func.func @sweeps(%A: {kind}, %B: {kind}, %norm: memref<f64>) {{
      %third = arith.constant 0.33 : f64
      affine.for %t = 0 to {steps} {{ {rows[0]} {between} {rows[1]} }}
      return }}"""


def large() -> int:
    """Rows of arrays that together are larger than what one core has for itself."""
    return isqrt(this_cpu().l2_bytes // 8) + 30


def in_cache() -> int:
    """Rows of arrays that together fit into that."""
    return isqrt(this_cpu().l2_bytes // 16) - 10


def compiled(n: int, steps: int = 5, *, between: str = "", **options: Any) -> Program:
    rng = np.random.default_rng(n)
    arrays = {name: rng.random((n, n)) for name in "AB"} | {"norm": np.zeros(())}
    text = sweeps(n, steps, between=between)
    given: dict[str, Any] = {"ranks": 1, **options}
    return avial_lab.compile(text, arrays=arrays, **given)


def phases(program: Program) -> list[str]:
    assert program.plan is not None
    return [phase.phase for phase in program.plan.phases]


def test_a_time_loop_is_one_phase_and_says_why() -> None:
    program = compiled(large())
    assert phases(program) == ["loop1"]
    (loop,) = (v for v in program.explain().reports if v.name == "loop1")
    assert "S1 and S2 run as one task on one rank" in loop.reasons[-1]
    assert 'avial.fused = ["S1", "S2"]' in program.stages["placed"].text
    assert "avial.fused" not in program.stages["avial"].text


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (40, {}),
        (in_cache(), {"steps": 100}),
        (large(), {"ranks": 3, "without": "widen-halos"}),
        (large(), {"without": "fuse-phases"}),
    ],
    ids=["few steps", "longer ones, in a cache", "three ranks", "left out"],
)
def test_otherwise_its_phases_stay(n: int, options: dict[str, Any]) -> None:
    assert phases(compiled(n, **options)) == ["S1", "S2"]


@pytest.mark.mpi
def test_many_short_steps_are_one_phase() -> None:
    program = compiled(7, 100)
    assert phases(program) == ["loop1"]
    (loop,) = (v for v in program.explain().reports if v.name == "loop1")
    assert loop.reasons[-1] == (
        "S1 and S2 run as one task on one rank: 100 steps over 784 bytes, "
        "each shorter than starting its phases would take"
    )
    program.run(check=True)


BETWEEN = {
    "a load": """%x = affine.load %A[3, 3] : memref<KINDxf64>
                 affine.store %x, %norm[] : memref<f64>""",
    "a store": "affine.store %third, %norm[] : memref<f64>",
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_what_the_control_flow_does_between_them_keeps_them_apart(between: str) -> None:
    n = large()
    program = compiled(n, between=between.replace("KIND", f"{n}x{n}"))
    assert "loop1" not in phases(program)


def test_an_edited_stage_goes_on_with_it() -> None:
    program = compiled(large())
    for name in ("placed", "mpi", "loops"):
        text = program.stages[name].text
        assert phases(program.resume(name, text + "\n")) == ["loop1"], name


@pytest.mark.quick("0", "3")
@pytest.mark.mpi
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 9])
def test_a_run_is_the_reference_bit_for_bit_and_drawn(steps: int, tmp_path: Path) -> None:
    program = compiled(large(), steps)
    trace = program.run(check=True)
    ran = {event.name for event in trace.events}
    assert (ran == {"loop1"}) == (steps > 1)
    page = tmp_path / "r.html"
    program.report(page)
    assert all(name in page.read_text() for name in ran)
