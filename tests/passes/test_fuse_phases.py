"""What is erased is not asked for anything: it may be somebody else's memory by then."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from avial_lab.passes import fuse_phases
from avial_lab.passes.fuse_phases import FusePhases


def test_all_operations_are_looked_at_before_the_first_is_erased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fused converge takes what is in it with it, and MLIR's Python objects do not know."""
    fused: list[object] = []

    class Operation:
        @property
        def name(self) -> str:
            assert not fused, "it may be gone"
            return "avial.schedule"

    operations = [Operation(), Operation()]
    monkeypatch.setattr(fuse_phases, "operations_in", lambda _: iter(operations))
    monkeypatch.setattr(FusePhases, "_fuse_in", lambda _, op: fused.append(op))
    FusePhases()(SimpleNamespace(context=nullcontext()))  # type: ignore[arg-type]
    assert fused == operations
