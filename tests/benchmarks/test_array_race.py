"""The race on arrays: answers are checked first, and a wrong one is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.benchmarks.array_cases import CASES, SIZES, Case
from avial_lab.benchmarks.array_race import Contestant, race_case
from avial_lab.benchmarks.case_race import cells_of
from avial_lab.benchmarks.results_page import page_of
from avial_lab.cli.main import main


class Wrong:
    """NumPy whose sums are one too much."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def sum(*given: Any, **options: Any) -> Any:
        return np.sum(*given, **options) + 1


def test_a_wrong_answer_is_no_time() -> None:
    contestants = [
        Contestant("numpy", np, np.asarray),
        Contestant("avial_lab, 1 rank", Wrong(), np.asarray),
        Contestant("pure", np, np.asarray, assigns=False),
    ]
    found = race_case(CASES["sumall"], 50, contestants, rounds=2)
    assert len(found["numpy"].seconds) == 2
    assert found["avial_lab, 1 rank"].fault.startswith("off by")
    assert not found["avial_lab, 1 rank"].seconds
    assert "pure" not in race_case(CASES["star"], 20, contestants, rounds=1)
    _, row, mean = cells_of({"sumall": found})
    assert row[2] == "off by 1"
    assert row[-1] == mean[-1] == "–"


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_a_program_of_numpys(name: str) -> None:
    """Whose results are numbers, of a size that is not nothing."""
    case: Case = CASES[name]
    result = case.function(np, *case.inputs(np.random.default_rng(0), SIZES["MINI"][name]))
    for part in result if isinstance(result, list | tuple) else [result]:
        assert np.size(part)
        assert np.isfinite(part).all()


@pytest.mark.mpi
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tmp_path / "arrays.json"
    given = ["bench", "--arrays", "chain20", "triad", "--size", "MINI", "--json", str(told)]
    assert main(given) == 0
    facts = json.loads(told.read_text())
    assert set(facts["ms"]["triad"]) >= {"numpy", "avial_lab, 1 rank"}
    assert facts["ms"]["chain20"]["numpy"]["least"] > 0
    assert "geometric mean" in capsys.readouterr().out
    assert "### Programs on arrays, MINI" in page_of(tmp_path)
    assert main(["bench", "--arrays", "sudoku"]) != 0
    assert "there is no case 'sudoku'" in capsys.readouterr().err
