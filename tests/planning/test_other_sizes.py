"""What a program took at one size, told for another."""

from __future__ import annotations

from pathlib import Path

import pytest

import avial_lab
from avial_lab.core.cache import Cache
from avial_lab.machine.constants import FIRST_TIME_S
from avial_lab.planning.costs import CostSource
from avial_lab.planning.other_sizes import OtherSizes
from avial_lab.planning.phase_costs import PhaseCosts
from avial_lab.program.tuned import family_key_of, without_sizes

S, T = ("S", "cpu0"), ("T", "cpu0")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherSizes, "_store", staticmethod(lambda: Cache(tmp_path)))


def test_the_model_is_off_as_it_was_at_the_nearest_size() -> None:
    known = OtherSizes("f")
    first_s = FIRST_TIME_S  # in each run, once
    known.remember("small", {S: 3e-3 + first_s, T: 1.0}, {S: 1e-3})
    known.remember("large", {S: 5.0 + first_s}, {S: 1.0})
    assert known.seconds("mine", {S: 2e-3, T: 1.0}) == {S: pytest.approx(6e-3 + first_s)}
    assert known.seconds("mine", {S: 0.8}) == {S: pytest.approx(4.0 + first_s)}
    assert known.seconds("large", {S: 0.8}) == {S: pytest.approx(2.4 + first_s)}
    assert OtherSizes("another").seconds("mine", {S: 0.8}) == {}


@pytest.mark.parametrize(("taken", "seconds"), [(8e-6, 1e-3 + 6e-6), (1e-6, 0.5e-3)])
def test_what_a_small_size_takes_for_its_first_time_does_not_grow(
    taken: float, seconds: float
) -> None:
    known = OtherSizes("f")
    known.remember("small", {S: taken}, {S: 2e-6})
    assert known.seconds("mine", {S: 1e-3}) == {S: pytest.approx(seconds)}


@pytest.mark.parametrize("entry", [b"", b"[1]", b'{"a": 1}', b'{"a": [["S", "cpu0", 1]]}'])
def test_an_entry_of_another_form_is_none(entry: bytes) -> None:
    OtherSizes._store().put("f", entry)
    assert OtherSizes("f").seconds("mine", {S: 1.0}) == {}


def test_phases_say_that_they_are_scaled() -> None:
    assert PhaseCosts(profile={S: 1.0}, other_size=True).source("S") is CostSource.SCALED
    assert PhaseCosts(profile={S: 1.0}).source("S") is CostSource.PROFILE


SCALE = """
func.func @scale(%A: memref<{n}x4xf64>) {{
  affine.for %i = 0 to {n} {{
    affine.for %j = 0 to 4 {{
      %f = arith.constant {factor} : f64
      %a = affine.load %A[%i, %j] : memref<{n}x4xf64>
      %b = arith.mulf %a, %f : f64
      affine.store %b, %A[%i, %j] : memref<{n}x4xf64>
    }}
  }}
  return
}}
"""


def test_programs_of_a_family_differ_in_sizes_alone() -> None:
    made = [
        avial_lab.compile(SCALE.format(n=n, factor=factor), ranks=1)
        for n, factor in ((100, "2.0"), (300, "2.0"), (100, "3.0"))
    ]
    keys = [family_key_of(each.question, each.schedule, None) for each in made]
    assert keys[0] == keys[1] != keys[2]
    assert without_sizes("memref<20x8xf64>, 20, 3, %8") == "memref<#x#xf64>, #, 3, %8"


def test_a_run_at_one_size_tells_another() -> None:
    small, large = (avial_lab.compile(SCALE.format(n=n, factor="2.0"), ranks=1) for n in (64, 6400))
    before = large.simulate().makespan_s
    walked = small._walked(None, None)
    modelled = walked.costs.seconds(walked.turns, walked.topology)
    size, known = small._sizes(None)
    known.remember(size, {place: 1e6 * s for place, s in modelled.items()}, modelled)
    (phase,) = large._sources()
    assert large._sources()[phase] == "another size"
    assert large.simulate().makespan_s > 100 * before
