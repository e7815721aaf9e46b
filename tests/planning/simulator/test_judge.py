"""The simulator against SimGrid's stored answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from avial_lab.cli.main import main
from avial_lab.core.errors import AvialError
from avial_lab.planning.simulator.judge import judge

STORED = Path(__file__).with_name("simgrid_cases.json")
"""18 of the 120 that SimGrid 3.32 was asked for."""


def test_makespans_are_simgrids() -> None:
    found = judge(STORED)
    assert found.good
    assert {name: len(errors) for name, errors in found.errors.items()} == {
        "full": 6,
        "islands": 6,
        "star": 6,
    }
    assert max(found.errors["full"]) < 1e-12
    assert max(found.errors["star"]) < 1e-12


def test_an_answer_that_is_off_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = json.loads(STORED.read_text())
    stored["cases"][0]["makespan_s"] *= 1 + 1e-8
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(stored))
    assert main(["plan", "--judge", str(STORED)]) == 0
    assert "BEYOND" not in capsys.readouterr().out
    assert main(["plan", "--judge", str(wrong)]) == 1
    assert "BEYOND" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"platform": "ring"}, "no platform 'ring'"),
        ({"edges": [[1, 0, 10]]}, "an edge from task 1 to 0"),
        ({"host": [9] * 20}, "every task has flops, a host and an end"),
        ({"flops": None}, "is not a case"),
    ],
)
def test_what_is_no_case_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    case = json.loads(STORED.read_text())["cases"][0] | change
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"cases": [case]}))
    with pytest.raises(AvialError, match=words):
        judge(wrong)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(AvialError, match="cannot read"):
        judge(tmp_path / "missing.json")
    (tmp_path / "half.json").write_text('{"cases": [')
    with pytest.raises(AvialError, match="is not JSON"):
        judge(tmp_path / "half.json")
    for text, words in (("[]", "holds list, not an object"), ("{}", "holds no cases")):
        (tmp_path / "empty.json").write_text(text)
        with pytest.raises(AvialError, match=words):
            judge(tmp_path / "empty.json")
