"""`policy`, `sync` and `division`: the same for all programs, or refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inline_snapshot import snapshot

import avial_lab
from avial_lab.core.errors import ScheduleError
from avial_lab.lessons.demo import deck_text
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Sync
from tests.compiler.lowering.test_lower import BY_HAND, HEAT

SHARED = (
    "func.func @f(%A: memref<8xf64>, %B: memref<8xf64>) {\n"
    + """
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i] : memref<8xf64>
    affine.store %a, %B[%i] : memref<8xf64>
  }
  return
}
"""
)


def deck(**options: Any) -> avial_lab.Program:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=2, **options)


def heat(**options: Any) -> avial_lab.Program:
    arrays = {name: np.ones((40, 20)) for name in "AB"}
    return avial_lab.compile(HEAT, arrays=arrays, ranks=2, **options)


def one_task(**options: Any) -> avial_lab.Program:
    """Its arrays are one, so that it cannot be divided."""
    array = np.ones(8)
    return avial_lab.compile(SHARED, arrays={"A": array, "B": array}, ranks=2, **options)


def test_a_policy_is_asked_for_of_tasks() -> None:
    assert deck().schedule.policy is Policy.LEVELS
    assert deck(policy="levels").schedule == deck().schedule
    assert one_task(policy="levels").schedule.policy is Policy.LEVELS


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_policy_asked_for_of_loops_is_refused(dynamic: bool) -> None:
    with pytest.raises(ScheduleError) as raised:
        heat(policy="levels", dynamic=dynamic)
    assert str(raised.value) == snapshot("""\
policy 'levels' places tasks, and this program has loops, which are divided over all ranks
Hint: leave the policy out; `division` selects how loops are divided\
""")


def test_a_policy_asked_for_of_replicates_is_refused() -> None:
    arrays = {"a": np.ones(30), "b": np.ones(30), "e": np.zeros(())}
    with pytest.raises(ScheduleError, match="policy 'levels' places tasks"):
        avial_lab.compile(BY_HAND, arrays=arrays, ranks=2, gpus=1, policy=Policy.LEVELS)


def test_a_division_of_tasks_is_refused() -> None:
    with pytest.raises(ScheduleError) as raised:
        deck(division="cyclic(4)")
    assert str(raised.value) == snapshot("""\
division 'cyclic(4)' applies to loops, and this program consists of tasks: each runs on one device
Hint: leave the division out, or write avial.replicate or a plain function\
""")


def test_a_function_that_is_one_task_says_that_its_division_had_no_effect() -> None:
    (report,) = one_task(division="grid").built.reports
    assert report.reasons == snapshot(
        ("its arrays share memory", "division 'grid' has no effect: the program is one task")
    )
    assert "division" not in str(one_task().explain())


def test_sync_is_what_was_asked_for() -> None:
    for make in (deck, heat, one_task):
        assert make().schedule.sync is Sync.EDGES
        assert make(sync="levels").schedule.sync is Sync.LEVELS


def test_the_file_that_builds_it_again_asks_for_the_same(tmp_path) -> None:
    for program, words in (
        (deck(policy="levels", sync="levels"), "policy='levels',\n    sync='levels',"),
        (heat(sync="levels"), "policy=None,\n    sync='levels',"),
    ):
        assert words in program.save_repro(tmp_path / "again.py").read_text()
