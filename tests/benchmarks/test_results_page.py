"""The page of results: what is committed is what its files make, and each kind of file is shown."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from avial_lab.benchmarks import results_page, self_bench
from avial_lab.benchmarks.json_report import report_facts
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.results_page import FOLDER, PAGE, page_of, write_page
from avial_lab.benchmarks.self_bench import Figure, bench_self, self_facts
from avial_lab.benchmarks.table import Report, Result, Round
from avial_lab.benchmarks.worth_table import Race, Timed, Worth, worth_facts
from avial_lab.cli.main import main
from avial_lab.core.errors import BindError
from avial_lab.machine.host import CacheLevel, Machine
from avial_lab.runtime.bare import report

MACHINE = Machine("A processor", "x86_64", 2, 4, (CacheLevel(1, 32768, 1),))
MADE = {
    "command": "avial-lab bench gemm",
    "commit": "abc1234",
    "date": "2026-01-02",
    "versions": {"python": "3.12.1"},
}


def put(folder: Path, name: str, facts: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(facts))


def body(page: str) -> str:
    """What stands below the first section's title."""
    return page[page.index("## ") :]


def test_the_committed_page_is_made_of_the_committed_files() -> None:
    """After `avial-lab bench --page` it is."""
    assert (FOLDER / PAGE).read_text(encoding="utf-8") == page_of()


def test_no_committed_file_names_a_folder_of_its_machine() -> None:
    for file in FOLDER.glob("*.json"):
        made = json.loads(file.read_text(encoding="utf-8"))["made"]
        assert not any(word.startswith("/") for word in made.get("command", "").split())


def test_a_race(tmp_path: Path) -> None:
    results = (Result("avial", (0.001,), 0.25), Result("gcc", (0.002,)))
    raced = Round("gemm", "f64", {"N": 10}, 1, 2, 100, 100, results)
    fallen = Round("lu", "f64", {"N": 10}, 1, 2, 100, 100, (Result("avial", fault="wrong: a | b"),))
    report = Report("LARGE", (raced, fallen), (), MACHINE, ("left out: <SciPy>",))
    put(tmp_path, "race", report_facts(report, MADE))
    assert body(page_of(tmp_path)) == snapshot("""\
## The race

### 2 kernels, LARGE

[race.json](race.json); A processor, x86_64, 2 cores (4 threads), L1 32 KiB; commit abc1234; 2026-01-02; python 3.12.1.

```
avial-lab bench gemm
```

f64, 1 rank of 2 threads:

| kernel | ours, ms | best peer, ms |  | × | compile, s |
| --- | --- | --- | --- | --- | --- |
| gemm | 1 | 2 | gcc | 2.00 | 0.25 |
| lu | wrong: a \\| b | – |  | – | – |

f64, 1 × 2: geometric mean 2.00 of 1 kernel, the least gemm with 2.00.

- left out: &lt;SciPy>
""")  # noqa: E501


def test_passes(tmp_path: Path) -> None:
    timed = Timed(
        "gemm", "f64", (("jam-for-stores", 0.001),), (Race("jam-for-stores", 1.0, 2.0, 1.0, 1.5),)
    )
    report = Worth(
        "LARGE",
        1,
        2,
        MACHINE,
        ("jam-for-stores",),
        (timed,),
        ("lu",),
        ("the time limit was reached",),
    )
    put(tmp_path, "passes", worth_facts(report, MADE))
    assert body(page_of(tmp_path)) == snapshot("""\
## What each optional pass is worth

### 1 program, LARGE, 1 × 2

[passes.json](passes.json); A processor, x86_64, 2 cores (4 threads), L1 32 KiB; commit abc1234; 2026-01-02; python 3.12.1.

```
avial-lab bench gemm
```

| pass | changes | mean | least | best | of | worst | of | compile, ms | a program |  |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| jam-for-stores | 1 | 2.000 | 1.500 | 2.00 | gemm | 2.00 | gemm | 1.0 | 1.00 | serves gemm alone |

Gains are the time without the pass over that with it, of medians; least: of the fastest runs.

- the time limit was reached
- not reached: lu
""")  # noqa: E501


def test_the_lab_itself(tmp_path: Path) -> None:
    put(tmp_path, "self", self_facts([Figure("an empty task", 0.03, "µs", 1)], MADE))
    page = page_of(tmp_path)
    assert "## avial_lab itself" in page
    assert "| an empty task | 0.03 µs | 1 µs |" in page


def test_what_a_gpu_did(tmp_path: Path) -> None:
    row = {
        "racer": "race/axpy f32", "kind": "axpy", "element": "f32", "peer": "ElementwiseKernel",
        "bytes": 3e9, "launches": 1, "agree": "equal", "rounds": 7, "ours_s": 1e-3, "peer_s": 2e-3,
    }  # fmt: skip
    facts = {
        "format": report.FORMAT, "version": report.VERSION, "made": {**MADE, "command": "run.py"},
        "machine": {
            "device": {"name": "Fast GPU", "driver": "cuda", "memory_bytes": 80 << 30},
            "nvidia_smi": {"driver_version": "580.1"}, "cpu": "a CPU",
        },
        "parts": {
            "values": {"what": "values", "state": "done", "rows": [{"ok": True}, {"ok": False}]},
            "race": {"what": "race", "state": "cut short", "rows": [row], "not_run": ["gemm"],
                     "bandwidth": {"CuPy, within": 4e12}},
        },
    }  # fmt: skip
    put(tmp_path, "fast", facts)
    page = page_of(tmp_path)
    assert "## GPUs\n\n### Fast GPU\n" in page
    assert "[fast.json](fast.json); Fast GPU, 80 GiB, driver 580.1, a CPU; commit" in page
    assert "| values | done | 1 of 2 |  |" in page
    assert "| race | cut short | 1 of 1 | 1 |" in page
    assert "| axpy f32 | 1.000 ms | 3000 | 0.75 | ≥ 0.9 | ElementwiseKernel | 1500 |" in page
    assert "| CuPy, within | 4000.0 |" in page


def test_the_order_is_that_of_sections_and_names(tmp_path: Path) -> None:
    for name, section in (("b", 0), ("a", -1), ("c-d", 0), ("c", 0)):
        facts = {
            "format": results_page.TRANSCRIBED, "version": 1,
            "section": results_page.SECTIONS[section], "title": f"file {name}",
            "machine": "a machine", "made": {}, "tables": [],
        }  # fmt: skip
        put(tmp_path, name, facts)
    titles = [line for line in page_of(tmp_path).splitlines() if line.startswith("#")]
    assert titles == [
        "# Results", "## The race", "### file b", "### file c", "### file c-d",
        "## Other figures", "### file a",
    ]  # fmt: skip
    assert write_page(tmp_path).read_text(encoding="utf-8") == page_of(tmp_path)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BindError, match="there are no results"):
        page_of(tmp_path)
    put(tmp_path, "other", {"format": "something"})
    with pytest.raises(BindError, match=r"other\.json is not a file of avial-lab results"):
        page_of(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(BindError, match=r"broken\.json cannot be read"):
        page_of(tmp_path)


def test_the_command_makes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(results_page, "write_page", lambda: asked.append(True))
    assert main(["bench", "--page"]) == 0
    assert asked == [True]
    assert main(["bench", "gemm", "--page"]) == 1
    assert main(["bench", "--page", "--html", "race.html"]) == 1
    assert "bench --page measures nothing" in capsys.readouterr().err


def test_a_file_says_how_it_was_made() -> None:
    made = made_by(["bench", "gemm", "--json", "/somewhere/of/mine/a b.json"])
    assert made["command"] == "avial-lab bench gemm --json 'a b.json'"
    assert set(made) == {"command", "commit", "date", "versions"}
    assert {"python", "numpy"} <= set(made["versions"])


def test_the_lab_itself_writes_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [Figure("an empty task", 0.03, "µs", 1), Figure("a message", 2.0, "×", 1.5)]
    monkeypatch.setattr(self_bench, "_figures", lambda: iter(figures))
    file = tmp_path / "self.json"
    assert main(["bench", "--self", "--json", str(file)]) == 1
    assert "MISS" in capsys.readouterr().out
    facts = json.loads(file.read_text())
    assert facts["made"]["command"] == "avial-lab bench --self --json self.json"
    assert facts["rows"] == [
        {**asdict(figure), "met": met} for figure, met in zip(figures, (True, False), strict=True)
    ]
    assert bench_self(json_to="-", given=[]) == 1
    assert json.loads(capsys.readouterr().out)["rows"] == facts["rows"]
