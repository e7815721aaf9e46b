"""What lower-ptensor makes of recorded programs, on one rank, in this process; on several ranks:
`tests/ptensor`.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.ptensor.dist_to_runtime import DistToRuntime
from avial_lab.compiler.passes.ptensor.lower_ptensor import LowerPtensor
from tests.compiler.passes.golden import cases_of, computed


def test_a_sum_of_products_of_neighbours() -> None:
    given = np.arange(1.0, 10.0)
    _, total = computed(cases_of("lower_ptensor")["fused"], (LowerPtensor(),), given={0: given})
    assert total == (given[:-1] * given[1:]).sum()


def test_an_array_that_is_moved_within_itself() -> None:
    given = np.arange(1.0, 10.0)
    passes = LowerPtensor(), DistToRuntime()
    (moved,) = computed(cases_of("lower_ptensor")["assigned"], passes, given={0: given})
    want = np.concatenate([given[:1], given[:-1]])
    np.testing.assert_array_equal(moved, want + want)


@pytest.mark.parametrize("dist", ["unit", "false"])
def test_what_is_ignored_changes_no_value(dist: str) -> None:
    """Rows of very different size: another order of the sum would show."""
    text = cases_of("lower_ptensor")["summed"].replace('"default", false', f'"cuda:0", {dist}')
    rng = np.random.default_rng(0)
    given = rng.standard_normal((128, 40)) * 10.0 ** rng.integers(-8, 8, (128, 1))
    found = [
        computed(text, (LowerPtensor(*ignored), DistToRuntime()), given={0: given.copy()})[1]
        for ignored in product((False, True), repeat=2)
    ]
    assert len({each.tobytes() for each in found}) == 1
    total = np.zeros(40)
    for k in range(12):
        block = np.zeros(40)
        for row in given[k * 128 // 12 : (k + 1) * 128 // 12]:
            block += row
        total = block if k == 0 else total + block
    np.testing.assert_array_equal(found[0], total)


def test_the_place_of_the_least_is_that_of_numpy() -> None:
    """Of equals the first; a NaN before all others."""
    rng = np.random.default_rng(0)
    points, centres = rng.integers(-2, 3, (40, 2)).astype(float), rng.random((5, 2)).round()
    points[3], points[5], centres[2] = np.nan, np.inf, centres[1]
    sizes = np.array([1.0, 2.0, 2.0, np.nan, 0.0])
    for least in ({}, {4: sizes}):
        of_centres = least.get(4, np.zeros(5))
        found = computed(
            cases_of("lower_ptensor")["nearest"],
            (LowerPtensor(),),
            given={0: points, 1: centres, 2: of_centres},
        )[3]
        with np.errstate(invalid="ignore"):
            apart = of_centres - (points[:, :1] * centres[:, 0] + points[:, 1:] * centres[:, 1])
        np.testing.assert_array_equal(found, np.argmin(apart, axis=1))


def test_a_sum_that_is_asked_for_twice() -> None:
    given = np.arange(9.0)
    texts = cases_of("lower_ptensor")["twice"]
    total, mean = computed(texts, (LowerPtensor(),), given={0: given, 1: np.array(9.0)})[2:]
    assert (total, mean) == (36.0, 4.0)


def test_what_an_element_takes_several_times_is_one_operation() -> None:
    """As a tree twelve doublings are 4,095 operations, of which some would go through memory."""
    kind = '!ptensor.ptensor<tensor<9xf64>, "default", unit>'
    doublings = "".join(
        f'%x{k + 1} = "ptensor.binary"(%x{k}, %x{k}) {{op = "add"}} : ({kind}, {kind}) -> {kind}\n'
        for k in range(12)
    )
    text = f"""func.func @doubled(%A: memref<9xf64>, %B: memref<9xf64>) {{
      %x0 = "ptensor.load"(%A) : (memref<9xf64>) -> {kind}
      {doublings}
      "ptensor.store"(%x12, %B) : ({kind}, memref<9xf64>) -> ()
      return
    }}"""
    context = ir.Context()
    register(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        run_passes(module.operation, (LowerPtensor(),))
        names = [op.name for op in operations_in(module.operation)]
    assert names.count("arith.addf") == 12
    assert names.count("affine.for") == 1
