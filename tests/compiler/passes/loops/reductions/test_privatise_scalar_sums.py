"""Sums in parts for threads: integers come out the same, floating-point numbers where sums are
exact, the least and the greatest always; and what is no such sum stays as it is.
"""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.trip_counts import FAR
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import SUMS
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.reductions import privatise_scalar_sums
from avial_lab.compiler.passes.loops.reductions.privatise_scalar_sums import PrivatiseScalarSums
from avial_lab.compiler.passes.loops.reductions.reassociate_sums import ReassociateSums
from avial_lab.compiler.passes.loops.storage.promote_scalars import PromoteScalars
from tests.kernels.jit import Machine

LEAST = 8
"""Terms of a part, so that few are enough for some parts."""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privatise_scalar_sums, "LEAST", LEAST)


def sums(kind: str, low: str, high: str, more: str = "") -> str:
    """Of A into s[0], and of A * B into s[1]."""
    add, mul = ("arith.addf", "arith.mulf") if kind[0] == "f" else ("arith.addi", "arith.muli")
    return f"""
    func.func @f(%A: memref<?x{kind}>, %B: memref<?x{kind}>, %s: memref<2x{kind}>, %low: index,
        %high: index) attributes {{avial.no_alias, avial.task = "f"}} {{
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
    run_passes(module.operation, (PromoteScalars(), ReassociateSums(), PrivatiseScalarSums()))
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
        assert "parts of 8 iterations, then combined" in str(module)


def test_nothing_is_added_to_a_sum_of_nothing() -> None:
    """−0.0 stays what it is."""
    machine = Machine([("after", str(in_parts(sums("f64", "0", "70"))))], ir.Context())
    arrays = {"A": np.full(70, -0.0), "B": np.full(70, 1.0), "s": np.full(2, -0.0)}
    got = machine.call("after", arrays | {"low": np.int64(0), "high": np.int64(70)})
    assert np.signbit(got["s"]).all()


CHOOSE = {
    "maximumf": "%y = arith.maximumf %x, %a : f64",
    "minimumf": "%y = arith.minimumf %a, %x : f64",
    "greater": "%c = arith.cmpf ogt, %a, %x : f64\n%y = arith.select %c, %a, %x : f64",
    "less": "%c = arith.cmpf olt, %a, %x : f64\n%y = arith.select %c, %a, %x : f64",
}


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("choice", CHOOSE.values(), ids=CHOOSE)
def test_the_least_and_the_greatest_to_the_bit(choice: str, bounds: tuple[str, str]) -> None:
    """Of NaN, infinities and zeros of both signs, too."""
    text = sums("f64", *bounds).replace("%y = arith.addf %x, %a : f64", choice)
    module = in_parts(text)
    assert parts_in(module) == 1
    machine = Machine([("before", text), ("after", str(module))], ir.Context())
    rng = np.random.default_rng(4)
    some = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
    for few in ([0, 1], [0, 1, 6], [0, 1, 2, 3], [2, 3, 4, 5], range(7), [6]):
        for low, high in ((0, 70), (0, 0), (9, 40), (64, 70), (70, 10)):
            arrays = {
                "A": rng.choice(some[few], 70),
                "B": np.ones(70),
                "s": rng.choice(some[few], 2),
            }
            known = arrays | {"low": np.int64(low), "high": np.int64(high)}
            want, got = (machine.call(f, known)["s"][:1] for f in ("before", "after"))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("kind", ["maxsi", "minsi", "maxui", "minui"])
def test_the_least_and_the_greatest_of_integers(kind: str) -> None:
    text = sums("i32", "0", "70").replace("%y = arith.addi", f"%y = arith.{kind}")
    module = in_parts(text)
    assert parts_in(module) == 1
    machine = Machine([("before", text), ("after", str(module))], ir.Context())
    rng = np.random.default_rng(5)
    arrays = {
        name: rng.integers(-9, 9, n).astype("i4") for name, n in (("A", 70), ("B", 70), ("s", 2))
    }
    known = arrays | {"low": np.int64(0), "high": np.int64(0)}
    want, got = (machine.call(f, known)["s"] for f in ("before", "after"))
    np.testing.assert_array_equal(got, want)


def nest(inside: str, *loops: str) -> str:
    """Of rows of A, in these loops."""
    return f"""
    func.func @f(%A: memref<40x9xf64>, %B: memref<40x9xf64>, %s: memref<2xf64>, %n: index)
        attributes {{avial.no_alias, avial.task = "f"}} {{
      {"".join(f"affine.for {each} {{" for each in loops)}
        {inside}
      {"}" * len(loops)}
      return
    }}"""


ROW = """affine.for %j = 0 to {columns} {{
  %a = affine.load %A[%i, %j] : memref<40x9xf64>
  %x = affine.load %s[0] : memref<2xf64>
  %y = arith.addf %x, %a : f64
  affine.store %y, %s[0] : memref<2xf64>
  {more}
}}"""
STORED = "affine.store %a, %B[%i, %j] : memref<40x9xf64>"

ROWS, AGAIN = "%i = 0 to 40", "%r = 0 to 3"

NESTS = {
    "a row for each": (nest(ROW.format(columns=9, more=""), ROWS), 1),
    "rows whose length is known when it runs": (nest(ROW.format(columns="%n", more=""), ROWS), 1),
    "what is its own is stored": (nest(ROW.format(columns=9, more=STORED), ROWS), 1),
    "again and again": (nest(ROW.format(columns=9, more=""), AGAIN, ROWS), 1),
    "few rows again and again": (nest(ROW.format(columns=9, more=""), AGAIN, "%i = 0 to 2"), 1),
    "rows of few elements": (nest(ROW.format(columns=1, more=""), "%i = 0 to 15"), 0),
}


@pytest.mark.parametrize(("text", "parts"), NESTS.values(), ids=NESTS)
def test_nests_that_add_up(text: str, parts: int) -> None:
    module = in_parts(text)
    assert parts_in(module) == parts
    machine = Machine([("before", text), ("after", str(module))], ir.Context())
    rng = np.random.default_rng(6)
    for columns in (0, 1, 9):
        shapes = (("A", (40, 9)), ("B", (40, 9)), ("s", 2))
        arrays = {name: rng.integers(-9, 9, shape).astype("f8") for name, shape in shapes}
        known = arrays | {"n": np.int64(columns)}
        want, got = (machine.call(f, known) for f in ("before", "after"))
        for name in arrays:
            np.testing.assert_array_equal(got[name], want[name])


def test_terms_of_a_nest_are_those_of_all_its_loops() -> None:
    for columns, terms in ((9, 40 * 9 * 3), ("%n", FAR)):
        module = in_parts(nest(ROW.format(columns=columns, more=""), AGAIN, ROWS))
        with module.context:
            noted = ir.IntegerAttr(module.body.operations[0].attributes[SUMS]).value
        assert noted == terms


def test_sums_of_rows_that_threads_divide_stay() -> None:
    """One element for each row: rows are parts already."""
    row = ROW.format(columns=9, more="")
    text = nest(row.replace("%s[0] : memref<2xf64>", "%B[%i, 0] : memref<40x9xf64>"), ROWS)
    assert parts_in(in_parts(text)) == 0


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
    "a product": sums("i64", "0", "70").replace("%y = arith.addi", "%y = arith.muli"),
    "of zeros either": sums("f64", "0", "70").replace("%y = arith.addf", "%y = arith.maxnumf"),
    "the last of equals": sums("f64", "0", "70").replace(
        "%y = arith.addf %x, %a : f64",
        "%c = arith.cmpf oge, %a, %x : f64\n%y = arith.select %c, %a, %x : f64",
    ),
    "the place of the greatest": nest(
        """%a = affine.load %A[%i, 0] : memref<40x9xf64>
        %x = affine.load %s[0] : memref<2xf64>
        %p = affine.load %s[1] : memref<2xf64>
        %c = arith.cmpf ogt, %a, %x : f64
        %k = arith.index_cast %i : index to i64
        %at = arith.sitofp %k : i64 to f64
        %y = arith.select %c, %a, %x : f64
        %q = arith.select %c, %at, %p : f64
        affine.store %y, %s[0] : memref<2xf64>
        affine.store %q, %s[1] : memref<2xf64>""",
        ROWS,
    ),
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
        attributes {{avial.no_alias, avial.task = "f"}} {{
      affine.for %i = 0 to 70 {{
        %a = affine.load %A[%i] : memref<70x{kind}>
        %x = affine.load %s[0] : memref<1x{kind}>
        %y = arith.addf %x, %a : {kind}
        affine.store %y, %s[0] : memref<1x{kind}>
      }}
      return
    }}"""
    assert parts_in(in_parts(text)) == 0
