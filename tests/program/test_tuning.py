"""Searching around the model's choice: what is tried, measured, kept, and found again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.artifact.explanation import Choice, Tried
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.options import CompileOptions
from avial_lab.core.errors import AvialError, ScheduleError
from avial_lab.program import tuned as program_tuned
from avial_lab.program import tuning
from avial_lab.program.program import Program
from avial_lab.program.tuning import (
    Candidate,
    Search,
    candidates_for,
    checked_budget,
    remember,
    remembered,
)
from avial_lab.runtime.launch.trials import Trials
from avial_lab.runtime.rank.threads import Threads

MODEL = CompileOptions()


def built_at(options: CompileOptions) -> Any:
    """As much of a Built as the search looks at, of a program with one contraction of 256 terms in
    blocks of 96; no code hangs on the pass promote-scalars.
    """
    given = {"terms": 256, "block": 96} | options.sizes_of("block-contractions")
    sizes = " ".join(f"{key}={value}" for key, value in given.items())
    blocked = (
        f"block-contractions{{{sizes}}}: C"
        if options.keeps("block-contractions")
        else "interchange-loops: C"
    )
    code = f"{blocked} {[name for name in options.without if name != 'promote-scalars']}"
    report = SimpleNamespace(done=(blocked, "promote-scalars: x", "mark-parallel: i"))
    return SimpleNamespace(
        binary=SimpleNamespace(shared_object=code, options=options), reports=(report,)
    )


@dataclass
class Track:
    """Trials whose runs take as long as `cost` says, on a clock of their own."""

    cost: Callable[[CompileOptions, int], float]
    now: float = 0.0
    entered: list[CompileOptions] = field(default_factory=list)
    closed: bool = False
    runs: int = 0

    def __call__(self, *_: object) -> Track:
        return self

    def add(self, binary: Any) -> int:
        self.entered.append(binary.options)
        return len(self.entered) - 1

    def run(self, number: int) -> float:
        self.runs += 1
        seconds = self.cost(self.entered[number], self.runs)
        self.now += seconds
        return seconds

    def close(self) -> None:
        self.closed = True


def search(monkeypatch: pytest.MonkeyPatch, track: Track, seconds: float = 1e6) -> Choice:
    monkeypatch.setattr(tuning, "Trials", track)
    found, _, _ = Search(built_at, seconds, Threads(1), clock=lambda: track.now).run(MODEL, {})
    return found


def by_terms(options: CompileOptions, _: int) -> float:
    """Best at 1024 terms; without the pass far worse."""
    if not options.keeps("block-contractions"):
        return 9.0
    return 1.0 + abs(int(options.sizes_of("block-contractions").get("terms", 256)) - 1024) / 1024


def test_the_search_climbs_to_the_best_and_says_what_it_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = search(monkeypatch, track := Track(by_terms))
    assert found.sizes == "block-contractions{terms=1024}"
    assert found.ratio == pytest.approx(1.75)
    kept = [each.what for each in found.tried if each.kept]
    assert kept == ["block-contractions{terms=512}", "block-contractions{terms=1024}"]
    assert "block-contractions{terms=1024 block=192}" in [each.what for each in found.tried]
    assert any(each.what.endswith("without block-contractions") for each in found.tried)
    # That leaves the same code: nothing to measure.
    assert not any("promote-scalars" in each.what for each in found.tried)
    assert len(set(track.entered)) == len(track.entered)
    assert f"1.75 × the model's choice, {len(found.tried)} alternatives tried" in str(found)


def test_leaving_a_pass_out_may_be_best(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(monkeypatch, Track(lambda e, _: 2.0 if e.keeps("block-contractions") else 1.0))
    assert (found.sizes, found.without) == ("", ("block-contractions",))


def test_differences_within_the_noise_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    found = search(monkeypatch, Track(lambda *_: float(rng.normal(1.0, 0.2))))
    assert (found.sizes, found.without, found.ratio) == ("", (), 1.0)
    assert found.tried
    assert "nothing is better" in str(found)
    found = search(monkeypatch, Track(lambda e, _: 1.0 if e == MODEL else 0.99))
    assert found.ratio == 1.0


@pytest.mark.parametrize("seconds", [3.0, 40.0, 200.0])
def test_the_search_stops_at_its_budget(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    search(monkeypatch, track := Track(by_terms), seconds)
    longest = 10.0  # one run of each of two: what has begun is not cut off
    assert track.now <= seconds + 2 * longest


def test_a_failure_ends_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise AvialError("it fell")

    track = Track(fail)
    with pytest.raises(AvialError, match="it fell"):
        search(monkeypatch, track)
    assert track.closed


def test_moves_stay_in_their_range() -> None:
    least = CompileOptions.of(sizes="block-contractions{terms=1 block=8}")
    assert Candidate("block-contractions", "block", 0.5)(least, built_at(least)) is None
    up = Candidate("block-contractions", "block", 1.5)(least, built_at(least))
    assert up is not None
    assert up.sizes_text == "block-contractions{terms=1 block=16}"
    assert Candidate("block-contractions")(least, built_at(least)) == CompileOptions.of(
        without="block-contractions"
    )
    assert Candidate("tile-time", "widths", 2.0)(MODEL, built_at(MODEL)) is None
    assert {candidate.name for candidate in candidates_for(built_at(MODEL))} == {
        "block-contractions",
        "promote-scalars",
    }


# -- with the real thing ---------------------------------------------------------------------------


class Compared(Trials):
    """Trials that hold what each run leaves against the first one's."""

    first: dict[str, np.ndarray] | None = None
    runs = 0

    def run(self, number: int) -> float:
        seconds = super().run(number)
        Compared.runs += 1
        left = self.left()
        if Compared.first is None:
            Compared.first = left
        for name, array in left.items():
            np.testing.assert_array_equal(array, Compared.first[name])
        return seconds


def of_kernel(name: str, ranks: int = 1, **options: Any) -> Program:
    kernel = kernel_program(name, element="f64")
    return avial_lab.compile(
        kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, ranks=ranks, **options
    )


def test_tuned_programs_are_found_again_and_are_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tuning, "Trials", Compared)
    # So that something is kept, whatever this machine thinks of it.
    monkeypatch.setattr(tuning.Comparison, "is_gain", property(lambda _: True))
    program = of_kernel("gemm")
    before = {name: array.copy() for name, array in program.arrays.items()}
    tuned = program.tune(8.0, threads=1)
    for name, array in program.arrays.items():
        np.testing.assert_array_equal(array, before[name])
    assert Compared.runs > 10
    assert tuned.choice is not None
    assert tuned.choice.tried
    assert tuned.choice.sizes
    again = of_kernel("gemm")
    assert again.choice == tuned.choice
    assert again.question.options == tuned.question.options
    assert again.question.options.sizes_text == tuned.choice.sizes
    assert "tuned on" in str(again.explain())
    assert "--sizes" in again.command
    again.run(check=True)
    assert "bit for bit" in str(again.check_report)
    assert of_kernel("gemm", sizes="model").choice is None
    assert of_kernel("gemm", without="interchange-loops").choice is None
    assert of_kernel("gemm", strict=True).choice is None
    assert of_kernel("gemm", ranks=2).choice == tuned.choice
    assert of_kernel("syrk").choice is None
    monkeypatch.setattr(program_tuned, "fingerprint", lambda: ("another CPU",))
    assert of_kernel("gemm").choice is None


def test_what_is_remembered_is_whole_or_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tried = (Tried("block-contractions{terms=64}", 0.1, 1.2, 0.01, True),)
    choice = Choice(
        "2026-11-22", None, 1.2, "block-contractions{terms=64}", ("interchange-loops",), tried
    )
    assert remembered("a") is None
    remember("a", choice)
    assert remembered("a") == choice
    for wrong in (b"{", b"[]", b'{"tried": []}', b'{"tried": 1, "without": []}'):
        tuning._kept().put("b", wrong)
        assert remembered("b") is None
    remember(
        "c", Choice("2026-11-22", None, 1.2, "block-contractions{terms=0}")
    )  # of another version
    assert remembered("c") is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_budget_that_makes_no_sense_is_refused_with_the_range(seconds: float) -> None:
    with pytest.raises(ScheduleError, match="invalid tuning time") as raised:
        checked_budget(seconds)
    assert "up to 86,400 s" in str(raised.value)


def test_what_cannot_be_tuned_says_why() -> None:
    with pytest.raises(AvialError, match="was given sizes"):
        of_kernel("gemm", sizes="block-contractions{terms=16}").tune(1.0)
    program = of_kernel("gemm")
    with pytest.raises(AvialError, match="edited by hand"):
        program.resume("mpi", program.stages["mpi"].text).tune(1.0)
    a = np.zeros(4, np.int32)
    tasks = avial_lab.compile(
        "avial.schedule %a {\n  %cpu = avial.target {arch = \"cpu\"}\n"
        "  %t = avial.task %cpu, %a { scf.parallel %i = 0 to 4 { %x = memref.load %a[%i]\n"
        "    memref.store %x, %a[%i] } }\n}",
        arrays={"a": a},
        ranks=1,
    )  # fmt: skip
    with pytest.raises(AvialError, match="only programs of loops on CPUs"):
        tasks.tune(1.0)
