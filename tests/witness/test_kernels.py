"""The interpreter on every kernel: what its truth in NumPy says."""

from __future__ import annotations

import numpy as np
import pytest

import kernels
from kernels.kernel import ELEMENTS, Dataset
from tests.kernels.some import QUICK
from tests.witness import interpret

_QUICK = QUICK - {"floyd-warshall"}  # a million operations


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow)
        for name in kernels.names()
    ],
)
def test_kernel(name: str) -> None:
    kernel = kernels.load(name)
    element, sizes = kernel.elements[-1], kernel.datasets[Dataset.MINI]
    arguments = kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(3))
    arrays = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
    scalars = {key: value for key, value in arguments.items() if key not in arrays}
    got = interpret(kernel.mlir(element, sizes), arrays, scalars)
    bound = {} if kernel.exact else kernel.bound(arguments)
    for key, want in kernel.truth(arguments).items():
        right = (got[key] == want) | (np.isnan(got[key]) & np.isnan(want))
        if key in bound:
            right |= np.abs(got[key] - want) <= bound[key]
        assert right.all(), key
