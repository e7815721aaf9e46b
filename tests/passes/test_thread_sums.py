"""Sums in parts for threads: integers come out the same, floating-point numbers where sums are
exact; and what is no such sum stays as it is.
"""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.passes import thread_sums
from avial_lab.passes.mark_parallel import PARALLEL
from avial_lab.passes.operations import operations_in
from avial_lab.passes.promote_scalars import PromoteScalars
from avial_lab.passes.reorder_sums import SUMS, ReorderSums
from avial_lab.passes.thread_sums import ThreadSums
from avial_lab.pipelines import run_passes
from tests.kernels.jit import Machine

LEAST = 8
"""Terms of a part, so that few are enough for some parts."""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_sums, "LEAST", LEAST)


def sums(kind: str, low: str, high: str, more: str = "") -> str:
    """Of A into s[0], and of A * B into s[1]."""
    add, mul = ("arith.addf", "arith.mulf") if kind[0] == "f" else ("arith.addi", "arith.muli")
    return f"""
    func.func @f(%A: memref<?x{kind}>, %B: memref<?x{kind}>, %s: memref<2x{kind}>, %low: index,
        %high: index) attributes {{avial.apart, avial.task = "f"}} {{
      %c0 = arith.constant 0 : index
      %n = memref.dim %A, %c0 : memref<?x{kind}>
      affine.for %i = {low} to {high} {{
        %a = affine.load %A[%i] : memref<?x{kind}>
        %b = affine.load %B[%i] : memref<?x{kind}>
        %p = {mul} %a, %b : {kind}
        %x = affine.load %s[0] : memref<2x{kind}>
        %y = {add} %x, %a : {kind}
        affine.store %y, %s[0] : memref<2x{kind}>
        %u = affine.load %s[1] : memref<2x{kind}>
        %v = {add} %u, %p : {kind}
        affine.store %v, %s[1] : memref<2x{kind}>
        {more}
      }}
      return
    }}"""


def in_parts(text: str) -> ir.Module:
    """In a context of its own."""
    with ir.Context():
        module = ir.Module.parse(text)
    run_passes(module.operation, (PromoteScalars(), ReorderSums(), ThreadSums()))
    assert module.operation.verify()
    return module


def parts_in(module: ir.Module) -> int:
    return sum(PARALLEL in op.attributes for op in operations_in(module.operation))


# Of all iterations, of those a rank has, and of as many as the array is long.
BOUNDS = {
    "all": ("0", "70"),
    "from one on": ("1", "70"),
    "a part": (
        "max affine_map<()[s0] -> (0, s0)>()[%low]", "min affine_map<()[s0] -> (70, s0)>()[%high]",
    ),
    "as long as it is": ("0", "%n"),
}  # fmt: skip


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("kind", ["i64", "i32", "f64", "f32"])
def test_the_same_sums(kind: str, bounds: tuple[str, str]) -> None:
    text = sums(kind, *bounds)
    module = in_parts(text)
    assert parts_in(module) == 1
    machine = Machine([("before", text), ("after", str(module))], ir.Context())
    rng = np.random.default_rng(3)
    dtype = np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")
    for low, high in ((0, 70), (0, 0), (5, 5), (9, 40), (64, 70), (3, 7), (70, 10)):
        # Small whole numbers: sums of them are exact in any order.
        arrays = {name: rng.integers(-9, 9, 70).astype(dtype) for name in "AB"}
        arrays |= {"s": rng.integers(-9, 9, 2).astype(dtype)}
        known = arrays | {"low": np.int64(low), "high": np.int64(high)}
        want, got = (machine.call(f, known) for f in ("before", "after"))
        np.testing.assert_array_equal(got["s"], want["s"])


def test_it_says_how_many_terms_are_in_another_order() -> None:
    module = in_parts(sums("f64", "0", "70"))
    with module.context:
        function = module.body.operations[0]
        assert ir.IntegerAttr(function.attributes[SUMS]).value == 70
        assert "in parts of 8 terms, then of those" in str(module)


def test_nothing_is_added_to_a_sum_of_nothing() -> None:
    """−0.0 stays what it is."""
    machine = Machine([("after", str(in_parts(sums("f64", "0", "70"))))], ir.Context())
    arrays = {"A": np.full(70, -0.0), "B": np.full(70, 1.0), "s": np.full(2, -0.0)}
    got = machine.call("after", arrays | {"low": np.int64(0), "high": np.int64(70)})
    assert np.signbit(got["s"]).all()


STAYS = {
    "too few": sums("f64", "0", "15"),
    "what was added up so far is stored": sums(
        "f64", "0", "70", "affine.store %y, %B[%i] : memref<?xf64>"
    ),
    "terms need one another": sums(
        "f64", "1", "70", "affine.store %p, %A[%i] : memref<?xf64>"
    ).replace("affine.load %A[%i]", "affine.load %A[%i - 1]"),
    "another factor than one": sums("f64", "0", "70").replace(
        "%y = arith.addf %x, %a : f64", "%h = arith.addf %x, %a : f64\n%y = arith.mulf %h, %a : f64"
    ),
    "the greatest": sums("i64", "0", "70").replace("%y = arith.addi", "%y = arith.maxsi"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays(text: str) -> None:
    assert parts_in(in_parts(text)) == 0


def test_a_strict_program_keeps_its_order() -> None:
    text = f"module attributes {{avial.strict}} {{ {sums('f64', '0', '70')} }}"
    assert parts_in(in_parts(text)) == 0


def test_a_part_may_store_what_is_its_own() -> None:
    text = sums("f64", "0", "70", "affine.store %p, %B[%i] : memref<?xf64>")
    assert parts_in(in_parts(text)) == 1


def test_sums_of_vectors_stay() -> None:
    kind = "vector<4xf64>"
    text = f"""
    func.func @f(%A: memref<70x{kind}>, %s: memref<1x{kind}>)
        attributes {{avial.apart, avial.task = "f"}} {{
      affine.for %i = 0 to 70 {{
        %a = affine.load %A[%i] : memref<70x{kind}>
        %x = affine.load %s[0] : memref<1x{kind}>
        %y = arith.addf %x, %a : {kind}
        affine.store %y, %s[0] : memref<1x{kind}>
      }}
      return
    }}"""
    assert parts_in(in_parts(text)) == 0
