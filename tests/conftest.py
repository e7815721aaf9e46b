"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from mlir import ir

from avial_lab.dialects import register

# An example that stood still while others had the machine is not wrong: as in hypothesis's own
# profile for CI. What hangs, pytest's time limit finds.
settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests build into a cache of their own, and find nothing that was built before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def context() -> ir.Context:
    """A fresh MLIR context that knows the avial dialect."""
    fresh = ir.Context()
    register(fresh)
    return fresh
