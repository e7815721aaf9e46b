"""What a bundle runs with: children that are ended, values that are compared, faults judged."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.runtime.bare.children import MARK, Ended, run_child
from avial_lab.runtime.bare.faults import FAULTS, Fault, judged
from avial_lab.runtime.bare.report import Report
from avial_lab.runtime.bare.table import race_rows, table
from avial_lab.runtime.bare.values import compared


def child(text: str, seconds: float = 60, patience: float = 60) -> tuple[Ended, list[Any]]:
    told: list[Any] = []
    ended = run_child(
        [sys.executable, "-c", text], seconds, told.append, os.environ, cwd=Path("/"),
        patience=patience,
    )  # fmt: skip
    return ended, told


def test_a_child_tells_facts_and_prints_the_rest() -> None:
    ended, told = child(f"print('a\\n{MARK}{{\"b\": 1}}\\nc', end='')")
    assert (ended.code, ended.late, ended.printed, told) == (0, False, "a\nc\n", [{"b": 1}])


def test_a_child_that_dies_says_of_what() -> None:
    assert child("import os; os.kill(os.getpid(), 11)")[0].words == "ended by SIGSEGV"
    assert child("raise SystemExit(3)")[0].words == "exit code 3"


@pytest.mark.parametrize(("seconds", "patience"), [(0.5, 60), (60, 0.5)])
def test_a_child_that_does_not_end_is_ended(seconds: float, patience: float) -> None:
    text = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    ended, _ = child(text, seconds, patience)
    assert ended.late
    if ended.printed:  # it had come so far
        assert not Path("/proc", ended.printed.strip()).exists()


def test_bits_are_compared_and_one_nan_is_as_good_as_another() -> None:
    want = np.array([0.0, np.nan, 1.0])
    assert compared({"a": want.copy()}, {"a": want}, {}) == ("", "bit for bit")
    other = np.array([-0.0, np.nan, 1.0])
    wrong, _ = compared({"a": other}, {"a": want}, {})
    assert "1 of 3 elements of a differ, first at [0]" in wrong
    near = want + np.array([0, 0, 1e-9])
    assert compared({"a": near}, {"a": want}, {"a": 1e-8}) == ("", "a within 1e-08")
    assert "first at [2]" in compared({"a": near}, {"a": want}, {"a": 1e-10})[0]
    assert compared({"a": np.array([1, 2])}, {"a": np.array([1, 3])}, {})[0]


def test_a_fault_that_passes_is_not_well() -> None:
    fault = Fault("x", "x", ("threads",))
    assert judged(fault, [{"refused": "2048 threads"}], late=False, words="")["ok"]
    assert not judged(fault, [{"refused": "it failed"}], late=False, words="")["ok"]
    assert not judged(fault, [], late=False, words="exit code 1")["ok"]
    endless = next(fault for fault in FAULTS if fault.endless)
    assert judged(endless, [{"launched": True}], late=True, words="")["ok"]
    assert not judged(endless, [{"launched": True}], late=False, words="")["ok"]
    assert not judged(endless, [], late=True, words="")["ok"]


def test_the_report_is_whole_after_each_fact(tmp_path: Path) -> None:
    report = Report(tmp_path, {"commit": "abc"})
    report.put("values", what="values")
    report.add("values", {"case": "a", "ok": False, "said": "no"})
    facts = json.loads(report.path.read_text())
    assert facts["parts"]["values"]["rows"] == [{"case": "a", "ok": False, "said": "no"}]
    assert "a: no" in table(facts)


def test_a_race_in_shares_of_what_is_copied() -> None:
    row = {
        "racer": "r", "kind": "axpy", "element": "f32", "peer": "p", "bytes": 3e9, "launches": 1,
        "agree": "all", "rounds": 7, "ours_s": 1e-3, "peer_s": 2e-3,
        "predicted_s": {"H100": 1e-3, "H200": 9e-4},
    }  # fmt: skip
    launch = {**row, "kind": "launch", "ours_s": 2e-6, "peer_s": 4e-6}
    rate = {"CuPy, within": 4e12}
    rows = [row, launch, {"racer": "x"}, {**row, "ours_s": -1e-9}]
    facts = {
        "parts": {"race": {"rows": rows, "bandwidth": rate}},
        "machine": {"device": {"name": "NVIDIA H200"}},
    }
    assert race_rows(facts) == [
        ("r", "1.000 ms", "3000", "0.75", "≥ 0.9", "p", "1500", "2.000 ms", "all", "0.900 ms"),
        ("r", "2.00 µs", "", "0.50 ×", "≤ 1.3 ×", "p", "", "4.00 µs", "all", ""),
        ("r", "too short", "", "", "", "p", "", "", "all", "0.900 ms"),
    ]
