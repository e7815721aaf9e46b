"""Optimizers against their formulas in NumPy, several steps long; divided, they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.core.errors import OptionError, VerifyError
from avial_lab.planning.optimizers import Optimizer
from tests.compiler.passes.distir.divided import results_of

TEXT = """
func.func @loss(%x: tensor<5xf64>, %w: tensor<5xf64>{more}) -> tensor<f64> {{
  %zero = arith.constant 0.0 : f64
  %d = arith.subf %w, %x : tensor<5xf64>
  %s = arith.mulf %d, %d : tensor<5xf64>
  %e = tensor.empty() : tensor<f64>
  %i = linalg.fill ins(%zero : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %l = linalg.reduce ins(%s : tensor<5xf64>) outs(%i : tensor<f64>) dimensions = [0]
    (%a: f64, %b: f64) {{ %c = arith.addf %a, %b : f64  linalg.yield %c : f64 }}
  return %l : tensor<f64>
}}
"""
KEPT = {"sgd": (), "momentum": ("w_m",), "adamw": ("w_m", "w_v", "step")}


def text_for(kind: str) -> str:
    more = [f", %{name}: tensor<{'f32' if name == 'step' else '5xf64'}>" for name in KEPT[kind]]
    return TEXT.format(more="".join(more))


def by_hand(rule: str, w: np.ndarray, x: np.ndarray, steps: int) -> np.ndarray:
    n = Optimizer.parse(rule).numbers
    m, v = np.zeros_like(w), np.zeros_like(w)
    for step in range(1, steps + 1):
        g = 2 * (w - x)
        by = g
        if "momentum" in n:
            by = m = n["momentum"] * m + g
        if "beta1" in n:
            m = n["beta1"] * m + (1 - n["beta1"]) * g
            v = n["beta2"] * v + (1 - n["beta2"]) * g * g
            by = (m / (1 - n["beta1"] ** step)) / (np.sqrt(v / (1 - n["beta2"] ** step)) + n["eps"])
        w = w - n["lr"] * n["decay"] * w - n["lr"] * by
    return w


@pytest.mark.quick("adamw*", "sgd*-None", "momentum*-None")
@pytest.mark.parametrize("parallel", [None, "horizontal 3 w:0"])
@pytest.mark.parametrize("rule", ["sgd lr=0.1 decay=0.5", "momentum lr=0.05", "adamw lr=0.1"])
def test_three_steps(rule: str, parallel: str | None) -> None:
    kind = rule.split()[0]
    rng = np.random.default_rng(0)
    arrays = {"x": rng.uniform(-1, 1, 5), "w": rng.uniform(-1, 1, 5)}
    arrays |= {n: np.zeros((), np.float32) if n == "step" else np.zeros(5) for n in KEPT[kind]}
    want = by_hand(rule, arrays["w"], arrays["x"], 3)
    losses: list[float] = []
    for _ in range(3):
        found = results_of(text_for(kind), arrays, parallel, "w", rule)
        losses.append(float(found["result0"]))
        arrays |= {name: found[f"result{k + 1}"] for k, name in enumerate(("w", *KEPT[kind]))}
    # What adamw corrects by is a number of f32.
    np.testing.assert_allclose(arrays["w"], want, rtol=2e-4 if kind == "adamw" else 1e-12)
    assert losses[2] < losses[0]


def test_what_an_optimizer_keeps_has_to_be_there() -> None:
    arrays = {"x": np.zeros(5), "w": np.zeros(5)}
    with pytest.raises(VerifyError, match="there is no argument %w_m"):
        results_of(text_for("sgd"), arrays, None, "w", "momentum")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adam", "'adam' is no optimizer"),
        ("", "'' is no optimizer"),
        ("sgd 0.1", "'0.1' is no number of sgd; it has lr, decay"),
        ("sgd beta1=0.1", "'beta1=0.1' is no number of sgd"),
        ("sgd lr=-1", "is no number of sgd"),
    ],
)
def test_what_is_no_optimizer(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Optimizer.parse(text)
