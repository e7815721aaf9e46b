"""The race on Python functions: answers are checked first, and a wrong one is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from avial_lab.benchmarks import case_race
from avial_lab.benchmarks.case_race import Times, cells_of, in_rounds
from avial_lab.benchmarks.python_cases import CASES, SIZES, Case
from avial_lab.benchmarks.python_race import Contestant, race_case
from avial_lab.benchmarks.results_page import page_of
from avial_lab.cli.main import main
from tests.compiler.frontends.python.comparing import interpreted


def _as_it_is(case: Case) -> Callable[..., Any]:
    return case.function


def _with_numpy(case: Case) -> Callable[..., Any]:
    return case.numpy or case.function


def _too_much(case: Case) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        result = case.function(*args)
        args[-2 if case is CASES["heat"] else 0][0, 0] += 1e-3
        return result

    return function


def _translated(case: Case) -> Callable[..., Any]:
    return lambda *args: interpreted(case.function, *args)


@pytest.mark.parametrize("name", sorted(CASES))
def test_both_forms_and_the_translation_agree(name: str) -> None:
    contestants = [
        Contestant("avial_lab, Python", _as_it_is),
        Contestant("avial_lab, translated", _translated),
        Contestant("numpy", _with_numpy),
    ]
    raced = race_case(CASES[name], SIZES["MINI"][name], contestants, rounds=1)
    assert [times.fault for times in raced.values()] == [""] * 3


def test_a_wrong_answer_is_told_and_not_timed() -> None:
    contestants = [Contestant("avial_lab, 1 rank", _as_it_is), Contestant("numba", _too_much)]
    raced = race_case(CASES["heat"], 12, contestants, rounds=1)
    assert raced["numba"].fault.startswith("off by")
    assert not raced["numba"].seconds
    assert cells_of({"heat": raced})[1][2].startswith("off by")


def test_each_turn_begins_when_the_threads_before_it_sleep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stat = tmp_path / "task" / "stat"
    stat.parent.mkdir()
    stat.write_text("7 (a) b) R 1 2", encoding="utf-8")
    assert case_race._state(stat.parent) == "R"
    assert case_race._state(tmp_path / "ended") == ""
    monkeypatch.setattr(case_race, "SLEEP_S", 60.0)
    states = iter(["S", "R", "R", "S"])
    tasks = {"glob": lambda self, _: [stat.parent]}
    monkeypatch.setattr(case_race, "Path", lambda _: type("Tasks", (), tasks)())
    monkeypatch.setattr(case_race, "_state", lambda _: next(states))
    in_rounds({"one": Times()}, {"one": lambda: 1.0}, 2)
    assert next(states, "all") == "all"


@pytest.mark.skipif(
    not any(Path("/proc/self/task").glob("*/children")), reason="the system does not tell"
)
def test_threads_of_processes_that_were_started_count() -> None:
    """Engines are such, and their threads wait for work like those here."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        assert str(child.pid) in set(case_race._started_by("self"))
        child.communicate()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tmp_path / "python.json"
    given = ["bench", "--python", "heat", "--against", "numpy", "--size", "MINI"]
    assert main([*given, "--json", str(told)]) == 0
    facts = json.loads(told.read_text())
    assert set(facts["ms"]["heat"]) == {"numpy", "avial_lab, 1 rank"}
    assert "geometric mean" in capsys.readouterr().out
    assert "### Python functions, MINI" in page_of(tmp_path)
    assert main([*given, "--against", "pythran,jax"]) == 0
    assert "pythran is left out: it is not raced on these functions" in capsys.readouterr().err
    assert main(["bench", "--python", "sudoku"]) != 0
    assert "there is no case 'sudoku'" in capsys.readouterr().err
