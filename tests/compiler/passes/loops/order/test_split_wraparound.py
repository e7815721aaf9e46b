"""Loops over rings, cut where they go round, touch the same elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order.split_wraparound import SplitWraparound
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

LARGEST = 12


def ring(op: str, low: int, high: int, step: int, terms: list[tuple[int, int]]) -> str:
    """`B[i, j] = sum of (k + 1) A[(j + plus) mod period] over the terms k`."""
    kind, line = f"memref<4x{LARGEST}xi64>", f"memref<{LARGEST}xi64>"
    inside = ["%s0 = arith.constant 0 : i64"]
    for k, (plus, period) in enumerate(terms):
        sum_ = f"%plus{k}, %j" if k % 2 else f"%j, %plus{k}"
        inside.append(f"""
          %plus{k} = arith.constant {plus} : index
          %period{k} = arith.constant {period} : index
          %at{k} = arith.addi {sum_} : index
          %w{k} = arith.rem{"us"[k % 2]}i %at{k}, %period{k} : index
          %x{k} = memref.load %A[%w{k}] : {line}
          %f{k} = arith.constant {k + 1} : i64
          %m{k} = arith.muli %x{k}, %f{k} : i64
          %s{k + 1} = arith.addi %s{k}, %m{k} : i64""")
    inside.append(f"memref.store %s{len(terms)}, %B[%i, %j] : {kind}")
    body = "\n".join(inside)
    loops = {
        "scf.parallel": f"""scf.parallel (%i, %j) = (%one, %low) to (%three, %high)
          step (%one, %step) {{ {body} scf.reduce }}""",
        "scf.for": f"""scf.for %i = %one to %three step %one {{
          scf.for %j = %low to %high step %step {{ {body} }} }}""",
    }
    return f"""func.func @f(%A: {line}, %B: {kind}) attributes {{avial.no_alias}} {{
      %one = arith.constant 1 : index
      %three = arith.constant 3 : index
      %low = arith.constant {low} : index
      %high = arith.constant {high} : index
      %step = arith.constant {step} : index
      {loops[op]}
      return }}"""


terms = st.lists(st.tuples(st.integers(0, 30), st.integers(1, LARGEST)), min_size=1, max_size=3)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
@given(
    op=st.sampled_from(["scf.parallel", "scf.for"]),
    low=st.integers(0, LARGEST),
    high=st.integers(0, LARGEST),
    step=st.sampled_from([1, 1, 1, 2]),
    terms=terms,
)
def test_random_rings(
    op: str, low: int, high: int, step: int, terms: list[tuple[int, int]]
) -> None:
    text = ring(op, low, high, step, terms)
    event("cut" if check_same_bits(text) else "left alone")


def check_same_bits(text: str) -> bool:
    """Whether something was cut at all."""
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (SplitWraparound(),))
    module.operation.verify()
    with context:
        machine = Machine([("before", text), ("after", str(module))], context)
    arrays = {"A": np.arange(LARGEST) ** 3 + 1, "B": np.zeros((4, LARGEST), np.int64)}
    before, after = machine.call("before", arrays), machine.call("after", arrays)
    np.testing.assert_array_equal(after["B"], before["B"])
    return str(module) != str(ir.Module.parse(text, context))


@pytest.mark.parametrize("op", ["scf.parallel", "scf.for"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
def test_neighbours_on_a_ring(op: str, n: int) -> None:
    done = check_same_bits(ring(op, 0, n, 1, [(n - 1, n), (1, n), (0, n)]))
    assert done == (n > 1)


CASES = {
    "steps of two": ring("scf.parallel", 0, 12, 2, [(1, 12)]),
    "nothing goes round": ring("scf.for", 0, 5, 1, [(2, 7)]),
    "too often": ring("scf.for", 0, 12, 1, [(0, 2)]),
    "no iteration": ring("scf.parallel", 3, 3, 1, [(5, 6)]),
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_what_is_left_alone(text: str) -> None:
    assert not check_same_bits(text)


def test_below_zero_a_remainder_is_another() -> None:
    context = ir.Context()
    module = ir.Module.parse(ring("scf.for", 0, 5, 1, [(-3, 4)]), context)
    before = str(module)
    run_passes(module.operation, (SplitWraparound(),))
    assert str(module) == before
