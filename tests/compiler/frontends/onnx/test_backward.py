"""Training graphs of ONNX Runtime: their gradients are those that it computed, and NumPy's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx import convert, read_model
from avial_lab.compiler.frontends.onnx.values import NotCovered
from avial_lab.core.errors import ParseError
from tests.compiler.frontends.onnx.models import computed, model, node

GRAPHS = Path(__file__).parent / "graphs"


@pytest.mark.quick("mlp-True")
@pytest.mark.parametrize("overwrites", [True, False])
@pytest.mark.parametrize("name", ["mlp", "gpt_tiny"])
def test_gradients_are_those_of_onnx_runtime(name: str, overwrites: bool) -> None:
    """They end in buffers, overwriting what was there or added to it."""
    golden = np.load(GRAPHS / f"{name}.npz")
    proto, _ = read_model(GRAPHS / f"{name}.training.onnx")
    given = {key[3:]: golden[key] for key in golden if key.startswith("in:")}
    given["lazy_reset_grad"] = np.array([overwrites])
    for each in proto.graph.input:
        if each.name.endswith(".buffer"):
            shape = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
            given[each.name] = np.full(shape, np.float32(3))
    function = convert(proto, shapes={key: value.shape for key, value in given.items()})
    found = computed(function, given)
    loss, *gradients = function.results
    np.testing.assert_allclose(found[loss.called], golden["out:loss"], rtol=1e-6)
    assert len(gradients) == sum(key.startswith("out:") for key in golden) - 1
    for each in gradients:
        want = golden["out:" + each.called.removesuffix(".accumulation.out")]
        got = found[each.called] - (0 if overwrites else np.float32(3))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6, err_msg=each.called)


def mnist() -> tuple[Any, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    shapes = {"X": (6, 784), "W1": (784, 128), "B1": (128,), "W2": (128, 32), "B2": (32,),
              "W3": (32, 10), "B3": (10,)}  # fmt: skip
    given = {k: (rng.standard_normal(s) / 10).astype(np.float32) for k, s in shapes.items()}
    given["labels"] = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 6)]
    given["Learning_Rate"] = np.array([0.5], np.float32)
    return read_model(GRAPHS / "mnist_backward.onnx")[0], given


def test_names_that_nobody_makes_mean_something() -> None:
    """loss_grad, ZeroConstant, Gemm_Grad/Shape_B1; a batch of 0 rows is any. By NumPy, in f64."""
    proto, given = mnist()
    found = computed(convert(proto, shapes={k: v.shape for k, v in given.items()}), given)
    at = {name: value.astype(np.float64) for name, value in given.items()}
    values, before = at["X"], []
    for k in (1, 2, 3):
        before.append(values)
        values = values @ at[f"W{k}"] + at[f"B{k}"]
        values = np.maximum(values, 0) if k < 3 else values
    logs = values - np.log(np.exp(values).sum(1, keepdims=True))
    np.testing.assert_allclose(found["predictions"], values, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["loss"], -(logs * at["labels"]).sum() / 6, rtol=1e-5)
    gradient = (np.exp(logs) - at["labels"]) / 6
    for k in (3, 2, 1):
        for name, change in ((f"W{k}", before[k - 1].T @ gradient), (f"B{k}", gradient.sum(0))):
            want = at[name] - 0.5 * change
            np.testing.assert_allclose(found[f"{name}_SGD_out"], want, rtol=1e-4, atol=1e-6)
        gradient = (gradient @ at[f"W{k}"].T) * (before[k - 1] > 0)


def test_other_names_that_nobody_makes_are_refused() -> None:
    proto, given = mnist()
    proto.graph.node[0].input[0] = "XX"
    with pytest.raises(ParseError, match="reads 'XX', which nobody makes"):
        convert(proto, shapes={k: v.shape for k, v in given.items()})


def test_gather_grad_of_negative_indices() -> None:
    """Rows of one index are added up, along any axis."""
    made = model(
        [node("GatherGrad", "shape at dy", "dx", axis=1)],
        {"at": (np.int64, (2, 2)), "dy": (np.float32, (2, 2, 2, 3))},
        ["dx"],
        {"shape": np.array([2, 4, 3])},
    )
    made.graph.node[0].domain = "com.microsoft"
    rng = np.random.default_rng(1)
    at, dy = np.array([[1, -1], [1, 0]]), rng.uniform(-1, 1, (2, 2, 2, 3)).astype(np.float32)
    want = np.zeros((2, 4, 3), np.float32)
    for i in range(2):
        for j in range(2):
            want[:, at[i, j]] += dy[:, i, j]
    found = computed(convert(made), {"at": at, "dy": dy})
    np.testing.assert_allclose(found["dx"], want, rtol=1e-6)


def test_what_is_not_covered_is_named() -> None:
    made = model([node("AdamWOptimizer", "x", "y")], {"x": (np.float32, (2,))}, ["y"])
    made.graph.node[0].domain = "com.microsoft"
    with pytest.raises(NotCovered, match=r"com\.microsoft\.AdamWOptimizer is not covered"):
        convert(made)
