"""Tests that all ranks run draw the same."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from avial_lab.runtime.rank.copies import copies
from avial_lab.runtime.rank.same_draws import pytest_runtest_setup


@dataclass
class Named:
    nodeid: str


@pytest.mark.parametrize("number", [1, 3])
def test_only_where_there_are_several(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", str(number))
    assert copies()[0] == number
    before = random.getstate()
    drawn: list[float] = []
    for begun in (1, 2):
        random.seed(begun)
        pytest_runtest_setup(Named("a.py::test"))
        drawn.append(random.random())
    random.setstate(before)
    assert (drawn[0] == drawn[1]) == (number > 1)
