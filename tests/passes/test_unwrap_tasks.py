"""The sequential meaning: what tasks do, one after the other in the order of the text."""

from __future__ import annotations

import numpy as np

from avial_lab.passes.unwrap_tasks import UnwrapTasks
from tests.passes.golden import cases_of, computed


def test_one_after_the_other() -> None:
    a, b = computed(cases_of("unwrap_tasks")["both"], (UnwrapTasks(),))
    assert not a.any()
    assert not b.any()


def test_the_order_of_the_text() -> None:
    """The copy first: it has what was there before."""
    text = cases_of("unwrap_tasks")["both"]
    zero = "affine.store %zero, %a[%i]"
    one = text.replace("0.0 : f64", "1.0 : f64")
    given = {0: np.full(20, 5.0)}
    assert zero in one
    a, b = computed(one, (UnwrapTasks(),), given=given)
    assert a.tolist() == b.tolist() == [1.0] * 20
