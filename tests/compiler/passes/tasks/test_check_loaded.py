"""What a task loads is compared with its arrays' sizes, at both ends and at the ends of 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.golden import cases_of, computed, parse_passes

TOLD = """
llvm.mlir.global internal @told(0 : i64) : i64
llvm.func @avial_outside(%phase: i64, %words: !llvm.ptr) { llvm.return }
"""
LEAST, MOST = -(2**63), 2**63 - 1


def written(case: str, loaded: int) -> np.ndarray:
    """Where the case's task wrote, given that number."""
    task = cases_of("check_loaded", private=True)[case]
    text = TOLD + task.replace("func.func private", "func.func")
    array, *_ = computed(
        text,
        parse_passes("check-loaded,leave-tasks"),
        given={0: np.full(16, 7.0), 1: np.full(1, loaded, np.int64), 2: np.float64(3)},
    )
    return array == 3


@pytest.mark.parametrize("loaded", [LEAST, LEAST + 15, -1, 0, 1, 15, 16])
def test_a_loop_that_stays_inside_runs(loaded: int) -> None:
    assert np.flatnonzero(written("loaded", loaded)).tolist() == list(range(max(0, loaded)))


@pytest.mark.parametrize("loaded", [17, 18, 1 << 40, MOST - 17, MOST])
def test_a_loop_that_would_leave_does_not_begin(loaded: int) -> None:
    assert not written("loaded", loaded).any()


@pytest.mark.parametrize("loaded", [-5, -1, 0, 5, 12, 13, 16, 1 << 40, -(1 << 40)])
def test_a_window_is_inside_or_untouched(loaded: int) -> None:
    wanted = range(loaded, loaded + 4) if 0 <= loaded <= 12 else ()
    assert np.flatnonzero(written("window", loaded)).tolist() == list(wanted)
