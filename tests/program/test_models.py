"""Models in ONNX from a file to ranks: loaded, compiled, divided, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.cli.main import main
from avial_lab.core.errors import BindError, OptionError, ScheduleError
from tests.compiler.frontends.onnx.models import mlp, onnx


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "mlp.onnx"
    onnx.save(mlp(), found)
    return found


@pytest.mark.mpi
@pytest.mark.slow
def test_a_model_on_three_ranks(path: Path) -> None:
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    x = np.random.default_rng(1).uniform(-1, 1, (7, 6)).astype(np.float32)
    program = model.compile({"input": x}, ranks=3, parallel="data 3")
    program.run(check=True, oversubscribe=True)
    assert program.check_report is not None
    assert "equal to the sequential reference" in program.check_report
    want = onnx.reference.ReferenceEvaluator(str(path)).run(None, {"input": x})[0]
    np.testing.assert_allclose(model.outputs(program)["probs"], want, rtol=1e-5)


def test_what_a_model_says_of_itself(path: Path) -> None:
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    assert repr(model) == "<Model mlp: 4 weights of 368 B>"
    assert "input   input         7x6xf32  input" in str(model)
    assert not model.weights["fc1_weight"].flags.writeable
    with pytest.raises(BindError, match="the model has no input 'y'"):
        model.named({"y": np.zeros(3)})


def test_import_on_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(path), "-D", "batch=3"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("func.func @main(%input: tensor<3x6xf32>, %fc1_weight")
    assert "fc1.weight" in told.err
    assert main(["import", str(path)]) == 1
    assert "bind it: -D batch=32" in capsys.readouterr().err
    assert main(["import", str(path.with_suffix(".txt"))]) == 1
    assert "is no model" in capsys.readouterr().err


def test_export_on_the_command_line(path: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "back.onnx"
    assert main(["export", str(path), "-D", "batch=3", "-o", str(out)]) == 0
    assert "nodes" in capsys.readouterr().err
    x = np.random.default_rng(1).uniform(-1, 1, (3, 6)).astype(np.float32)
    want, got = (
        onnx.reference.ReferenceEvaluator(str(each)).run(None, {"input": x})[0]
        for each in (path, out)
    )
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert main(["export", str(path), "-D", "batch=3"]) == 1
    assert "-o FILE.onnx" in capsys.readouterr().err


def test_a_step_of_training_is_exported(path: Path, tmp_path: Path) -> None:
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    step = model.training("cross-entropy", of="logits", optimizer="momentum lr=0.1")
    exported = avial_lab.export_onnx(step, tmp_path / "step.onnx").proto
    weights = [f"{layer}.{kind}" for layer in ("fc1", "fc2") for kind in ("weight", "bias")]
    inputs = [each.name for each in exported.graph.input]
    assert inputs == ["input", "target", *weights, *(f"{name} m" for name in weights)]
    results = [each.name for each in exported.graph.output]
    assert results[:2] == ["loss", "fc1.weight after"]


@pytest.mark.mpi
@pytest.mark.slow
def test_a_run_on_the_command_line(path: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "y.npy"
    arguments = ["run", str(path), "-n", "2", "-D", "batch=5", "--parallel", "data 2", "--check"]
    assert main([*arguments, "--out", f"result0={out}", "--oversubscribe"]) == 0
    assert "equal to the sequential reference" in capsys.readouterr().out
    np.testing.assert_allclose(np.load(out).sum(1), 1, rtol=1e-6)


def trained(path: Path, optimizer: str, **options: Any) -> tuple[list[float], Any]:
    """The losses of three steps, on a ragged batch."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (7, 6)).astype(np.float32)
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    step = model.training("cross-entropy", of="logits", optimizer=optimizer, **options)
    classes = rng.integers(0, 4, 7)
    return [step(input=x, target=classes, oversubscribe=True) for _ in range(3)], step


@pytest.mark.slow
@pytest.mark.mpi
def test_a_step_on_three_ranks_is_the_sequential_one(path: Path) -> None:
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    step = model.training("mse", optimizer="momentum lr=0.2", arrays={}, ranks=3, parallel="data 3")
    before = {name: weight.copy() for name, weight in step.weights.items()}
    step(input=np.ones((7, 6)), target=np.zeros((7, 4)), check=True, oversubscribe=True)
    assert "equal to the sequential reference" in (step.program.check_report or "")
    assert all((weight != before[name]).any() for name, weight in step.weights.items())
    assert "distir.all_reduce" in str(step.program.explain())


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw lr=0.01", "sgd lr=0.5", "momentum lr=0.2"])
def test_training_on_three_ranks_is_that_on_one(path: Path, optimizer: str) -> None:
    alone, step = trained(path, optimizer, ranks=1)
    losses, divided = trained(path, optimizer, ranks=3, parallel="data 3")
    assert alone[2] < alone[0]
    np.testing.assert_allclose(losses, alone, rtol=1e-5)
    for name, weight in step.weights.items():
        np.testing.assert_allclose(divided.weights[name], weight, rtol=0, atol=1e-5, err_msg=name)


def test_trainings_that_are_none(path: Path) -> None:
    model = avial_lab.load_onnx(path, dimensions={"batch": 7})
    with pytest.raises(OptionError, match="'hinge' is no loss"):
        model.training("hinge")
    with pytest.raises(BindError, match="the model makes no 'logit'"):
        model.training("mse", of="logit")
    with pytest.raises(ScheduleError, match="weights follow gradients, and there are none"):
        avial_lab.compile(model.text, update="sgd")
