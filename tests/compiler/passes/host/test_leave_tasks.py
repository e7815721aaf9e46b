"""Behind a check that holds nothing of the function runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.golden import cases_of, computed, parse_passes

DEFINED = "llvm.func @avial_outside(%phase: i64, %words: !llvm.ptr) { llvm.return }\n"


@pytest.mark.parametrize("outside", [False, True])
def test_what_is_behind_runs_or_does_not(outside: bool) -> None:
    array, *_ = computed(
        DEFINED + cases_of("leave_tasks")["t"],
        parse_passes("leave-tasks"),
        given={0: np.bool_(outside), 1: np.int64(16), 2: np.zeros(16), 3: np.float64(3)},
    )
    assert array.tolist() == [0.0 if outside else 3.0] + [0.0] * 15
