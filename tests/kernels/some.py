"""Some kernels for the quick tests, all of them for `make test-full`.

Of passes that a kernel's whole way down takes anyway (tests/kernels, all kernels, all element
types), a test over every kernel by itself is heavy and has found nothing that those did not.
"""

from __future__ import annotations

import pytest

import kernels

QUICK = frozenset(
    ["atax", "doitgen", "floyd-warshall", "gemm", "gramschmidt", "jacobi-2d", "nussinov", "symm"]
)
"""One of each shape: sums both ways, scratch, shortest paths, contractions, norms between phases,
sweeps, tables, mirrored sums.
"""


def some_kernels() -> pytest.MarkDecorator:
    """Parametrises `name`."""
    assert set(kernels.names()) >= QUICK
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
            for name in kernels.names()
        ],
    )
