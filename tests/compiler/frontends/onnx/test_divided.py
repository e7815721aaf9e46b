"""Models in ONNX, divided: onnx's own evaluator says what is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import avial_lab
from tests.compiler.passes.distir.divided import results_of

ROWS, WORDS, WIDTH = 6, 5, 8


def embedding() -> onnx.ModelProto:
    """Rows of two tables, of which one is read at places that the batch says, then a product."""
    rng = np.random.default_rng(0)
    held = [
        numpy_helper.from_array(rng.standard_normal(shape).astype("f4"), name)
        for name, shape in (("table", (11, WIDTH)), ("place", (9, WIDTH)), ("w", (WIDTH, 6)))
    ]
    held.append(numpy_helper.from_array(np.arange(WORDS), "where"))
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["words"]),
        helper.make_node("Gather", ["place", "where"], ["places"]),
        helper.make_node("Add", ["words", "places"], ["both"]),
        helper.make_node("MatMul", ["both", "w"], ["y"]),
    ]
    given = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", WORDS])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", WORDS, 6])
    graph = helper.make_graph(nodes, "embedding", [given], [made], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    "parallel",
    [
        "pipeline 2 x 3 gpipe",
        pytest.param("data 3", marks=pytest.mark.slow),
        pytest.param("data 2, pipeline 2 x 2", marks=pytest.mark.slow),
    ],
)
def test_a_table_that_is_looked_up_is_a_weight(parallel: str, tmp_path: Path) -> None:
    """It is read inside of a body, at indices; a stage may have it alone."""
    model, path = embedding(), tmp_path / "embedding.onnx"
    onnx.save(model, path)
    ids = np.random.default_rng(1).integers(0, 11, (ROWS, WORDS))
    (want,) = list(ReferenceEvaluator(model).run(None, {"ids": ids}))
    loaded = avial_lab.load_onnx(path, dimensions={"batch": ROWS})
    arrays = {name: np.array(each) for name, each in loaded.weights.items()}
    got = results_of(loaded.text, arrays | loaded.named({"ids": ids}), parallel)
    np.testing.assert_allclose(got[loaded.results[0].name], np.asarray(want), rtol=1e-5, atol=1e-6)


def test_rows_of_a_batch_that_are_read_at_indices(tmp_path: Path) -> None:
    """A token of each row (a slice), some in any order, and others in each row (whole tensors)."""
    places = {
        "token": np.array(2),
        "steps": np.array([-4, 3]),
        "any": np.array([3, 0, 4]),
        "each": np.array([[1], [0], [4], [3], [2]]),
    }
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        *(helper.make_node("Gather", ["r", n], [f"y_{n}"], axis=1) for n in list(places)[:3]),
        helper.make_node("GatherElements", ["r", "each"], ["y_each"], axis=1),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WORDS])
    made = [helper.make_empty_tensor_value_info(f"y_{name}") for name in places]
    held = [numpy_helper.from_array(each, name) for name, each in places.items()]
    graph = helper.make_graph(nodes, "tokens", [given], made, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "tokens.onnx")
    x = np.random.default_rng(2).standard_normal((5, WORDS)).astype("f4")
    wanted = list(ReferenceEvaluator(model).run(None, {"x": x}))
    loaded = avial_lab.load_onnx(tmp_path / "tokens.onnx", dimensions={"batch": 5})
    got = results_of(loaded.text, loaded.named({"x": x}), "data 2")
    for port, want in zip(loaded.results, wanted, strict=True):
        np.testing.assert_array_equal(got[port.name], np.asarray(want), err_msg=port.called)
