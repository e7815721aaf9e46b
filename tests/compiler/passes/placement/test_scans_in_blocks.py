"""Running sums in parts: those of the loop, on any number of GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
import kernels
from kernels.kernel import ELEMENTS
from tests.compiler.passes.golden import assert_same, each_case


@each_case("scans_in_blocks")
def test_the_golden_cases_compute_the_same(case: str) -> None:
    assert_same(case, "scans-in-blocks{on=gpu}")


def compiled(element: str, gpus: int, *, strict: bool = False) -> avial_lab.Program:
    kernel, sizes = kernels.load("prefix-sum"), {"N": 2057}
    x = np.random.default_rng(3).uniform(-90, 90, 2057).astype(ELEMENTS[element])
    arrays = {"x": x, "sums": np.full_like(x, -7)}
    return avial_lab.compile(
        kernel.mlir(element, sizes), arrays=arrays, ranks=1, gpus=gpus, on="gpu", strict=strict
    )


@pytest.mark.quick("f32")
@pytest.mark.parametrize("element", ["f32", "f64", "i32"])
def test_any_number_of_gpus_has_the_same_bits(element: str) -> None:
    """Within the bound of a sum in another order; whole numbers to the bit."""
    found: set[bytes] = set()
    for gpus in (1, 3):
        program = compiled(element, gpus)
        program.run(check=True, device_seed=gpus)
        assert len(program.binary.manifest.kernels) == 2
        found.add(np.asarray(program.arrays["sums"]).tobytes())
    assert len(found) == 1


@pytest.mark.slow
def test_in_the_order_of_the_text_it_is_left_alone() -> None:
    assert not compiled("f32", 1, strict=True).binary.manifest.kernels
    assert compiled("i32", 1, strict=True).binary.manifest.kernels
