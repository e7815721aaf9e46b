"""Models in ONNX that tests write, and what ONNX itself computes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx.convert import OnnxFunction
from tests.compiler.passes.distir.divided import results_of

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnx.reference")

Shaped = Mapping[str, tuple[Any, Sequence[int | str] | None]]


def info(name: str, dtype: Any, shape: Sequence[int | str] | None) -> Any:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[Any],
    inputs: Shaped,
    results: Sequence[str],
    weights: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
) -> Any:
    """Nodes, (dtype, shape) of inputs -> a ModelProto; what results are nobody says."""
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
        [onnx.helper.make_empty_tensor_value_info(name) for name in results],
        [onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """Names with blanks between; `-` is an input that is left out."""
    given = ["" if each == "-" else each for each in inputs.split()]
    return onnx.helper.make_node(kind, given, outputs.split(), **attributes)


def computed(function: OnnxFunction, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the text computes, by the model's names."""
    arrays = {port.name: np.array(given[port.called], order="C") for port in function.inputs}
    arrays |= {name: np.array(array, order="C") for name, array in function.weights.items()}
    found = results_of(function.text, arrays)
    return {port.called: found[port.name] for port in function.results}


def mlp(rows: int | str = "batch", seed: int = 0) -> Any:
    """Two layers with ReLU between them, and softmax behind them."""
    rng = np.random.default_rng(seed)
    shapes = {"fc1.weight": (6, 8), "fc1.bias": (8,), "fc2.weight": (8, 4), "fc2.bias": (4,)}
    weights = {n: rng.uniform(-1, 1, s).astype(np.float32) for n, s in shapes.items()}
    nodes = [
        node("Gemm", "input fc1.weight fc1.bias", "h", name="/fc1/Gemm"),
        node("Relu", "h", "a"),
        node("MatMul", "a fc2.weight", "b"),
        node("Add", "b fc2.bias", "logits"),
        node("Softmax", "logits", "probs"),
    ]
    return model(nodes, {"input": (np.float32, [rows, 6])}, ["probs"], weights)
