"""Searches on models: what is found is a division that runs, with the bytes that were told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.cli.commands import search as command
from avial_lab.cli.main import main
from avial_lab.machine.topologies import topology_called
from avial_lab.planning.distir_costs import Mlp
from avial_lab.planning.model_search import ModelSearch, search_model
from avial_lab.program.model_search import foresee, mlp_source
from avial_lab.trace import Trace
from tests.compiler.frontends.onnx.models import mlp, onnx
from tests.planning.test_model_search import FREE, MODEL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "mlp.onnx"
    onnx.save(mlp(), found)
    return found


def test_a_search_on_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["search", str(path), "-D", "batch=7", "--devices", "2", "--loss", "cross-entropy",
            "--of", "logits", "--update", "adamw", "--simulate", "2"]  # fmt: skip
    assert main([*line, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    simulated = [row for row in facts["rows"] if row["simulated_s"] is not None]
    assert len(simulated) == 2
    assert facts["best"] in simulated
    assert {row["zero"] for row in facts["rows"]} == {None, 1, 2, 3}
    assert all(row["feasible"] or row["reason"] for row in facts["rows"])
    assert main(["search", str(path), "-D", "batch=7", "--devices", "1,2"]) == 1
    assert "--devices 1,2" in capsys.readouterr().err
    assert main(["search", str(path), "-D", "batch=7", "--devices", "2", "--batch", "7"]) == 1
    assert "a file says itself how many rows it has" in capsys.readouterr().err


def test_what_was_simulated_before_ctrl_c_is_shown(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> Iterator[ModelSearch]:
        yield search_model(MODEL, 2, FREE)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "searched", interrupted)
    assert main(["search", str(path), "-D", "batch=7", "--devices", "2"]) == 130
    told = capsys.readouterr().out
    assert "pipeline 2 x 8 zero-bubble" in told
    assert "stopped: fewer are simulated" in told


def test_a_plan_that_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On another machine: the best that is found there, and what its tasks would do."""
    trace = tmp_path / "trace.json"
    line = ["plan", "mlp:2x16", "--batch", "8", "--topology", "preset:8-gpu-node", "-n", "2"]
    assert main([*line, "--parallel", "search", "--json", "--trace", str(trace)]) == 0
    facts = json.loads(capsys.readouterr().out)
    machine = topology_called("preset:8-gpu-node").first(2)
    alone = foresee(mlp_source(Mlp(2, 16), 8), facts["parallel"], machine)
    assert facts["makespan_s"] == alone.trace.makespan_s
    assert facts["held_bytes"] == list(alone.peaks)
    assert facts["bytes_moved"] == alone.schedule.bytes_moved
    assert len(facts["placements"]) == len(alone.schedule.placements)
    rows = facts["search"]["simulated"]
    best = min(rows, key=lambda row: row["simulated_s"])
    assert (best["parallel"], best["simulated_s"]) == (facts["parallel"], facts["makespan_s"])
    assert {event.rank for event in Trace.load(trace).events} == {0, 1}


def test_a_plan_of_a_division(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plan", str(path), "-D", "batch=7", "--parallel", "data 2"]
    assert main(line) == 0
    told = capsys.readouterr().out
    assert "--parallel 'data 2'" in told
    assert "simulated on a laptop" in told
    assert "Memory by rank" in told
    assert "Where the time went" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["kernels/3mm", "--parallel", "data 2"],
         "--parallel divides functions on tensors, and kernels/3mm is none"),
        (["loops.mlir", "--parallel", "search"], "and loops.mlir is none"),
        (["graph.json", "--parallel", "search"], "and graph.json is none"),
        (["mlp:2x4"], "--parallel search"),
        (["mlp:2x4", "--parallel", "search"], "--batch 4096"),
        (["mlp:2x4", "--batch", "8", "--parallel", "search", "--policy", "heft"],
         "--policy is for programs of tasks"),
        (["kernels/3mm", "--loss", "mse"], "--loss goes with --parallel"),
    ],
)  # fmt: skip
def test_plans_that_divide_nothing(
    options: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loops.mlir").write_text("func.func @f(%x: memref<4xf32>) {\n  return\n}\n")
    assert main(["plan", *options]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_found_is_what_is_built(path: Path) -> None:
    """The same tasks and messages as those that were simulated."""
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    found = model.search(2, simulated=3)
    assert found.best is not None
    arrays = {"input": np.zeros((7, 6), np.float32)}
    program = model.compile(arrays, ranks=2, parallel=found.best.words)
    assert program.schedule.bytes_moved == found.best.moved_bytes
    searched = model.compile(arrays, ranks=2, parallel="search")
    assert searched.built.divided == program.built.divided
    assert found == model.search(2, simulated=3)
    alone = model.simulate(found.best.words)
    assert alone.trace.makespan_s == found.best.simulated_s
    assert alone.schedule.bytes_moved == found.best.moved_bytes


def test_nothing_to_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t = "tensor<4x3xf32>"
    text = f"func.func @f(%x: {t}) -> {t} {{ %y = math.tanh %x : {t} return %y : {t} }}"
    file = tmp_path / "f.mlir"
    file.write_text(text.replace(" return", "\n  return"))
    assert main(["search", str(file), "--devices", "2"]) == 1
    assert "has no weights that a search could divide" in capsys.readouterr().err


def test_a_network_by_its_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    """By our own costs: three devices, and rows that they do not share evenly, are feasible."""
    line = ["search", "mlp:3x8", "--batch", "7", "--devices", "3", "--simulate", "1", "--json"]
    assert main(line) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == "mlp:3x8"
    assert {(r["d"], r["h"], r["p"]) for r in facts["rows"] if r["feasible"]} >= {
        (3, 1, 1), (1, 3, 1), (1, 1, 3),
    }  # fmt: skip
    assert facts["best"]["simulated_s"] is not None
    assert main([*line, "--batch", "7,8"]) == 1
    assert "--costs distir takes several" in capsys.readouterr().err
    assert main([*line, "--update", "adamw"]) == 1
    assert "--update is for a model in a file" in capsys.readouterr().err
