"""ZeRO: the same steps at every level, on ragged batches; what is held is what the paper says."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import parse
from avial_lab.compiler.worker.placed import told_of_division
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import ScheduleError
from tests.compiler.passes.distir.divided import results_of

# Half the squared distance of x w from t; rows of 5, which 2 and 3 replicas do not divide.
TEXT = """
func.func @loss(%x: tensor<5x6xf64>, %t: tensor<5x4xf64>, %w: tensor<6x4xf64>{more})
    -> tensor<f64> {{
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<5x4xf64>
  %i = linalg.fill ins(%zero : f64) outs(%e : tensor<5x4xf64>) -> tensor<5x4xf64>
  %y = linalg.matmul ins(%x, %w : tensor<5x6xf64>, tensor<6x4xf64>) outs(%i : tensor<5x4xf64>)
    -> tensor<5x4xf64>
  %d = arith.subf %y, %t : tensor<5x4xf64>
  %s = arith.mulf %d, %d : tensor<5x4xf64>
  %e0 = tensor.empty() : tensor<f64>
  %i0 = linalg.fill ins(%zero : f64) outs(%e0 : tensor<f64>) -> tensor<f64>
  %l = linalg.reduce ins(%s : tensor<5x4xf64>) outs(%i0 : tensor<f64>) dimensions = [0, 1]
    (%a: f64, %b: f64) {{ %c = arith.addf %a, %b : f64  linalg.yield %c : f64 }}
  return %l : tensor<f64>
}}
"""
KEPT = {"sgd": (), "momentum": ("w_m",), "adamw": ("w_m", "w_v", "step")}


def step_of(kind: str) -> tuple[str, dict[str, np.ndarray]]:
    more = [f", %{name}: tensor<{'f32' if name == 'step' else '6x4xf64'}>" for name in KEPT[kind]]
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {
        "x": rng.uniform(-1, 1, (5, 6)),
        "t": rng.uniform(-1, 1, (5, 4)),
    }
    arrays["w"] = rng.uniform(-1, 1, (6, 4))
    for name in KEPT[kind]:
        arrays[name] = np.zeros((), np.float32) if name == "step" else np.zeros((6, 4))
    return TEXT.format(more="".join(more)), arrays


def three_steps(rule: str, parallel: str | None) -> dict[str, np.ndarray]:
    kind = rule.split()[0]
    text, arrays = step_of(kind)
    for _ in range(3):
        found = results_of(text, arrays, parallel, "w", rule)
        arrays |= {name: found[f"result{k + 1}"] for k, name in enumerate(("w", *KEPT[kind]))}
    return arrays


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("rule", "parallel"),
    [
        ("adamw lr=0.1", "data 3, zero 3"),
        pytest.param("adamw lr=0.1", "data 2, zero 1", marks=slow),
        pytest.param("adamw lr=0.1", "data 3, zero 0", marks=slow),
        pytest.param("adamw lr=0.1", "data 3, zero 2", marks=slow),
        pytest.param("sgd lr=0.1", "data 2, zero 3", marks=slow),
        pytest.param("momentum lr=0.1", "data 2, zero 2", marks=slow),
        pytest.param("momentum lr=0.1", "data 7, zero 3", marks=slow),
        pytest.param("adamw lr=0.1", "horizontal 2 w:1, data 3, zero 2", marks=slow),
        pytest.param("adamw lr=0.1", "data 3, zero 1, horizontal 2 w:1", marks=slow),
        pytest.param("adamw lr=0.1", "data 2, zero 2, pipeline 1 x 2", marks=slow),
        pytest.param("adamw lr=0.1", "data 3, collectives doubling, zero 1, fuse", marks=slow),
        pytest.param("adamw lr=0.1", "data 3, zero 3, fuse, collectives tree", marks=slow),
        pytest.param("momentum lr=0.1", "data 5, zero 0, collectives doubling", marks=slow),
        pytest.param("adamw lr=0.1", "data 4, zero 2, overlap, collectives", marks=slow),
    ],
)
def test_three_steps_are_the_sequential_ones(rule: str, parallel: str) -> None:
    want, got = three_steps(rule, None), three_steps(rule, parallel)
    for name, expected in want.items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)


def told(rule: str, parallel: str) -> list[str]:
    text, arrays = step_of(rule)
    source = Source(
        text, "t", bind_arrays(arrays), parallel=parallel, gradient="w", update=rule
    )  # fmt: skip
    return list(told_of_division(parse(source).operation))


@pytest.mark.parametrize(
    ("level", "weights", "gradients", "state"),
    [(0, 192, 192, 388), (1, 192, 192, 132), (2, 192, 64, 132), (3, 64, 64, 132)],
)
def test_what_is_held(level: int, weights: int, gradients: int, state: int) -> None:
    """24 weights of 8 bytes and their state on 3 devices; 4 bytes count the steps."""
    lines = told("adamw", f"data 3, zero {level}")
    for device in range(3):
        assert (
            f"device {device} holds {weights} B of weights, {gradients} B of gradients, "
            f"{state} B of state of the optimizer" in lines
        )


def test_what_zero_cannot_divide() -> None:
    text, arrays = step_of("sgd")
    with pytest.raises(ScheduleError, match="no argument of the function follows a gradient"):
        results_of(text, arrays, "data 2, zero 1")
    for parallel in ("zero 1", "zero 1, data 2", "pipeline 1 x 2, zero 1"):
        with pytest.raises(ScheduleError, match="what replicas hold, and there are none"):
            results_of(text, arrays, parallel, "w", "sgd")
    with pytest.raises(ScheduleError, match="'zero 4' is no level of ZeRO"):
        results_of(text, arrays, "data 2, zero 4")
