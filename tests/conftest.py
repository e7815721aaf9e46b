"""Fixtures that every test may use."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.dialects import register


@pytest.fixture
def context() -> ir.Context:
    """A fresh MLIR context that knows the avial dialect."""
    fresh = ir.Context()
    register(fresh)
    return fresh
