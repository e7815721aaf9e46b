"""What isl is asked depends on the question alone, and not on what was asked before."""

from __future__ import annotations

from itertools import count

import islpy as isl

from avial_lab.polyhedra.budget import forget, limited, remembered

TEXT = "{ [i, j, k] : 0 <= i < 50 and i <= 3j <= 2k <= 70 and (exists e: k = 7e + i) }"


def holes() -> bool:
    return isl.Set(TEXT).subtract(isl.Set(TEXT.replace("70", "60"))).coalesce().is_empty()


def test_an_answer_that_is_remembered_leaves_as_much_for_the_next_question() -> None:
    @remembered
    def asked(_: str) -> bool:
        return holes()

    least = next(
        n for n in count(50, 50) if limited(lambda: holes() or True, lambda: False, limit=n)
    )
    outcomes = [
        limited(lambda: (holes(), asked("once"), holes()), lambda: None, limit=least + least // 2)
        for _ in range(3)
    ]
    assert outcomes == [(False, False, False)] * 3
    forget()
