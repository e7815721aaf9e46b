"""The least and the greatest that vectors look for are those of the loop, to the bit: with NaN,
infinities and zeros of both signs anywhere; and what else such a loop does is the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.host.ieee_min_max import IeeeMinMax
from avial_lab.compiler.passes.loops.reductions import vectorise_extremes
from avial_lab.compiler.passes.loops.reductions.reassociate_sums import ReassociateSums
from avial_lab.compiler.passes.loops.reductions.vectorise_extremes import VectoriseExtremes
from avial_lab.compiler.passes.loops.storage.promote_scalars import PromoteScalars
from tests.kernels.jit import Machine

LANES = 8


@pytest.fixture(autouse=True)
def some_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code on every machine."""

    class Lanes:
        def lanes(self, _: int) -> int:
            return LANES

    monkeypatch.setattr(vectorise_extremes, "this_cpu", Lanes)


def loop(body: str, kind: str = "f64", ends: str = "0 to %n") -> str:
    return f"""
    func.func @f(%A: memref<?x{kind}>, %B: memref<?x{kind}>, %s: memref<3x{kind}>, %n: index)
        attributes {{avial.no_alias, avial.task = "f"}} {{
      affine.for %i = {ends} {{
        %a = affine.load %A[%i] : memref<?x{kind}>
        {body.replace("T", kind)}
      }}
      return
    }}"""


def taken(choice: str, number: int = 0, what: str = "%a") -> str:
    """It, or the element of s."""
    s = "memref<3xT>\n"
    x, y, c = (f"%{name}{number}" for name in "xyc")
    picked = f"{y} = arith.select {c}, {what}, {x} : T"
    made = {
        "greater": f"{c} = arith.cmpf ogt, {what}, {x} : T\n{picked}",
        "less": f"{c} = arith.cmpf olt, {what}, {x} : T\n{picked}",
        "old on the left": f"{c} = arith.cmpf olt, {x}, {what} : T\n{picked}",
        "sum": f"{y} = arith.addf {x}, {what} : T",
    }
    plain = f"{y} = arith.{choice} {x}, {what} : T"
    return f"""{x} = affine.load %s[{number}] : {s}
        {made.get(choice, plain)}
        affine.store {y}, %s[{number}] : {s}"""


CHOICES = ("greater", "less", "old on the left", "maxnumf", "minnumf", "maximumf", "minimumf")


def rewritten(text: str, *more: IeeeMinMax) -> ir.Module:
    return after(text, PromoteScalars(), ReassociateSums(), VectoriseExtremes(), *more)


def after(text: str, *passes: Pass) -> ir.Module:
    """In a context of its own."""
    with ir.Context():
        module = ir.Module.parse(text)
    run_passes(module.operation, passes)
    assert module.operation.verify()
    return module


def in_vectors(module: ir.Module) -> bool:
    return bool(operations_named(module.operation, "vector.load"))


def check(text: str, kind: str, rng: np.random.Generator, *, some: np.ndarray) -> None:
    # What else would become of IEEE's maximum takes either of two zeros.
    before, vectors = after(text, IeeeMinMax()), rewritten(text, IeeeMinMax())
    machine = Machine([("before", str(before)), ("after", str(vectors))], ir.Context())
    dtype = f"f{int(kind[1:]) // 8}"
    for n in (0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 150):
        a, started = (rng.choice(some, size).astype(dtype) for size in (150, 3))
        known = {"A": a, "B": np.zeros(150, dtype), "s": started, "n": np.int64(n)}
        want, got = (machine.call(f, known) for f in ("before", "after"))
        for name in ("s", "B"):
            np.testing.assert_array_equal(got[name], want[name])
            np.testing.assert_array_equal(np.signbit(got[name]), np.signbit(want[name]))


NUMBERS = {
    "zeros": np.array([0.0, -0.0]),
    "no zeros": np.array([1.0, -1.0, 2.0, -3.0, np.inf, -np.inf]),
    "all": np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]),
    "zeros and less": np.array([0.0, -0.0, -1.0, -np.inf]),
    "zeros and more": np.array([0.0, -0.0, 1.0, np.inf]),
    "only NaN": np.array([np.nan]),
    "denormals": np.array([0.0, -0.0, 5e-324, -5e-324, 1e-310]),
}


@pytest.mark.quick("*-f64-*")
@pytest.mark.parametrize("some", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("choice", CHOICES)
def test_the_same_to_the_bit(choice: str, kind: str, some: np.ndarray) -> None:
    if choice in ("maxnumf", "minnumf"):
        some = some[some != 0]  # of two zeros they may take either
        if not len(some):
            return
    text = loop(taken(choice), kind)
    assert in_vectors(rewritten(text))
    check(text, kind, np.random.default_rng(1), some=some)


ANY = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 3.0, np.nan])
STORED = "affine.store %a, %B[%i] : memref<?xT>"

WITH = {
    "the least and the greatest": taken("greater") + taken("less", 1),
    "and a sum of whole numbers": taken("greater") + taken("less", 1) + taken("sum", 2),
    "of what is computed": "%q = arith.mulf %a, %a : T\n" + taken("greater", what="%q"),
    "two one after the other": (
        "%b = arith.negf %a : T\n%x0 = affine.load %s[0] : memref<3xT>\n"
        "%c = arith.cmpf ogt, %a, %x0 : T\n%m = arith.select %c, %a, %x0 : T\n"
        "%d = arith.cmpf ogt, %b, %m : T\n%y = arith.select %d, %b, %m : T\n"
        "affine.store %y, %s[0] : memref<3xT>"
    ),
    "where a condition holds": (
        "%zero = arith.constant 0.5 : T\n%k = arith.cmpf ogt, %a, %zero : T\n"
        + taken("less").replace(
            "affine.store %y0", "%z = arith.select %k, %y0, %x0 : T\naffine.store %z"
        )
    ),
    "what is stored elsewhere": STORED + taken("less"),
}  # fmt: skip


@pytest.mark.parametrize("body", WITH.values(), ids=WITH)
def test_what_a_loop_does_besides(body: str) -> None:
    text = loop(body)
    assert in_vectors(rewritten(text))
    for some in (ANY, ANY[2:6]):
        finite = some if "addf" not in body else some[np.isfinite(some)]
        check(text, "f64", np.random.default_rng(2), some=finite)


STAYS = {
    "only a sum": loop(taken("sum")),
    "too few": loop(taken("greater"), ends="0 to 31"),
    "the last of equals": loop(taken("greater").replace("ogt", "oge")),
    "what was the greatest so far is stored": loop(
        taken("greater") + "affine.store %y0, %B[%i] : memref<?xT>"
    ),
    "what it loads is stored": loop(taken("greater") + STORED.replace("%B", "%A")),
    "elements that do not lie side by side": loop(taken("greater")).replace("%A[%i]", "%A[%i * 2]"),
    "integers, which LLVM knows": loop(taken("maxsi"), "i64"),
    "elements of 16 bits": loop(taken("greater"), "f16"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays(text: str) -> None:
    assert not in_vectors(rewritten(text))


def test_a_sum_that_has_an_order_keeps_it() -> None:
    text = f"module attributes {{avial.strict}} {{ {loop(taken('greater') + taken('sum', 1))} }}"
    assert not in_vectors(rewritten(text))
    assert in_vectors(rewritten(text.replace(taken("sum", 1).replace("T", "f64"), "")))


def test_what_has_no_order_is_looked_for_once() -> None:
    for choice, again in (("maximumf", 0), ("greater", 1)):
        module = rewritten(loop(taken(choice), ends="0 to 100"))
        assert len(operations_named(module.operation, "scf.if")) == again
