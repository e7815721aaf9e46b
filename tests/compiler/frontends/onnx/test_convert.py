"""ONNX graphs as functions on tensors: values against ONNX's own reference, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx.convert import convert
from avial_lab.compiler.frontends.onnx.nodes import NeedsValue
from avial_lab.core.errors import BindError, ParseError
from tests.compiler.frontends.onnx.models import computed, mlp, model, node, onnx

F, I64 = np.float32, np.int64


def many() -> tuple[Any, dict[str, np.ndarray]]:
    """One graph with an operator of each kind, and its inputs."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.uniform(-1, 1, (6, 5)).astype(F),
        "bias": rng.uniform(-1, 1, 5).astype(F),
        "kernel": rng.uniform(-1, 1, (4, 1, 3, 2)).astype(F),
        "table": rng.uniform(-1, 1, (7, 3)).astype(F),
        "scale": rng.uniform(0.5, 1, 4).astype(F),
        "two": np.array(2, F),
        "shape": np.array([0, -1], I64),
        "axes": np.array([1], I64),
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 2], I64),
        "none": np.array(0, I64),
        "first": np.array([-1], I64),
        "last": np.array([-1000], I64),
        "back": np.array([-2], I64),
    }
    nodes = [
        node("Gemm", "x w bias", "gemm", alpha=0.5, beta=2.0),
        node("Relu", "gemm", "relu"),
        node("Softmax", "gemm", "softmax", axis=0),
        node("Pow", "relu two", "pow"),
        node("ReduceMean", "gemm", "mean", axes=[1], keepdims=0),
        node("ReduceSum", "gemm axes", "sum"),
        node("ArgMax", "gemm", "argmax", axis=1, keepdims=0),
        node("Unsqueeze", "mean axes", "mean_"),
        node("Sub", "gemm mean_", "centred"),
        node("Conv", "image kernel", "conv", group=2, pads=[1, 0, 1, 1], strides=[2, 1]),
        node("BatchNormalization", "conv scale scale scale scale", "norm"),
        node("MaxPool", "norm", "pool places", kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]),
        node("AveragePool", "conv", "average", kernel_shape=[2, 3], pads=[0, 1, 1, 1]),
        node("Reshape", "pool shape", "flat"),
        node("Pad", "image pads two", "padded"),
        node("Slice", "gemm first last axes back", "sliced"),
        node("Gather", "table ids", "rows"),
        node("Constant", "", "scale3", value_floats=[1.0, 2.0, 0.5]),
        node("LayerNormalization", "rows scale3", "layer"),
        node("Transpose", "layer", "turned", perm=[2, 0, 1]),
        node("Transpose", "layer", "turned_", perm=[0, 2, 1]),
        node("MatMul", "layer turned_", "scores"),
        node("Concat", "rows layer", "both", axis=-1),
        node("Split", "both", "s1 s2", axis=2),
        node("Greater", "s1 s2", "on"),
        node("Where", "on s1 s2", "where"),
        node("Erf", "where", "erf"),
        node("Shape", "scores", "sizes"),
        node("Cast", "ids", "half", to=10),
        node("Exp", "half", "exp"),
        node("Trilu", "scores", "lower", upper=0),
        node("CumSum", "gemm none", "sofar", exclusive=1),
        node("SoftmaxCrossEntropyLoss", "gemm classes", "loss"),
    ]
    results = [o for n in nodes for o in n.output if o not in ("turned_", "mean_", "scale3")]
    inputs = {
        "x": rng.uniform(-1, 1, (4, 6)).astype(F),
        "image": rng.uniform(-1, 1, (2, 2, 5, 6)).astype(F),
        "ids": np.array([[1, -1, 0], [6, 2, -7]], I64),
        "classes": np.array([0, 4, 2, 2], I64),
    }
    shapes: Any = {name: (array.dtype, array.shape) for name, array in inputs.items()}
    return model(nodes, shapes, results, weights), inputs


def test_many_operators() -> None:
    proto, inputs = many()
    found = computed(convert(proto), inputs)
    wanted = onnx.reference.ReferenceEvaluator(proto).run(None, inputs)
    for name, want in zip(found, wanted, strict=True):
        bound = 1e-3 if want.dtype == np.float16 else 2e-6
        np.testing.assert_allclose(found[name], want, rtol=bound, atol=bound, err_msg=name)
        assert found[name].dtype == want.dtype, name


def test_arithmetic_on_shapes_is_done_before() -> None:
    """A flatten as PyTorch wrote it: nothing of it is left."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "rows"),
        node("Unsqueeze", "rows", "rows1", axes=[0]),
        node("Concat", "rows1 rest", "to", axis=0),
        node("Reshape", "x to", "y"),
    ]
    weights = {"zero": np.array(0, I64), "rest": np.array([-1], I64)}
    proto = model(nodes, {"x": (F, ["n", 2, 3])}, ["y"], weights, opset=12)
    function = convert(proto, dimensions={"n": 4})
    lines = [line for line in function.text.splitlines() if " = " in line]
    assert len(lines) == 1
    assert "tensor.collapse_shape %x [[0], [1, 2]]" in lines[0]
    assert not function.weights


def test_names_that_are_no_names() -> None:
    """Names of models may be anything; none gets into the text as it is."""
    evil = "x\n} func.func @g() {"
    nodes = [node("Relu", "a b", "y", name=evil)]
    nodes[0].input[:] = [evil]
    function = convert(model(nodes, {evil: (F, [2])}, ["y"]))
    assert function.inputs[0].called == evil
    assert function.text.count("func.func") == 1
    assert np.array_equal(
        computed(function, {evil: np.array([-1, 2], F)})["y"], np.array([0, 2], F)
    )


def test_dimensions() -> None:
    assert convert(mlp(), dimensions={"batch": 3}).results[0].shape == (3, 4)
    assert convert(mlp(), shapes={"input": (5, 6)}).results[0].shape == (5, 4)
    with pytest.raises(BindError, match="dimension 0 of input 'input' is open: 'batch'") as found:
        convert(mlp())
    assert found.value.hint == "bind it: -D batch=32"
    with pytest.raises(BindError, match="dimension 1 of input 'input' is 6, and it is given 7"):
        convert(mlp(), shapes={"input": (5, 7)})
    with pytest.raises(BindError, match="'batch' = 3, and it is given 5"):
        convert(mlp(), dimensions={"batch": 3}, shapes={"input": (5, 6)})
    with pytest.raises(BindError, match="no dimension 'bacth'"):
        convert(mlp(), dimensions={"batch": 3, "bacth": 4})


def test_all_that_is_not_covered_at_once() -> None:
    nodes = [
        node("NonZero", "x", "a", name="n1"),
        node("Relu", "a", "b"),
        node("NonZero", "b", "c", name="n2"),
        node("LSTM", "x x x", "d"),
    ]
    with pytest.raises(ParseError) as found:
        convert(model(nodes, {"x": (F, [2])}, ["c", "d"]))
    assert str(found.value) == (
        "3 nodes cannot be imported:\n"
        "  node 'n1' (NonZero): operator NonZero is not covered (2 nodes)\n"
        "  node of 'd' (LSTM): operator LSTM is not covered\n"
        "Hint: onnx.utils.extract_model cuts out the part of the model before or behind it"
    )


def test_a_value_that_only_a_run_knows() -> None:
    proto = model([node("Reshape", "x to", "y")], {"x": (F, [6]), "to": (I64, [2])}, ["y"])
    with pytest.raises(NeedsValue, match="needs the value of 'to' when it is imported") as found:
        convert(proto)
    assert "values={'to': …}" in (found.value.hint or "")
    function = convert(proto, values={"to": np.array([2, -1])})
    assert function.results[0].shape == (2, 3)
    assert [port.called for port in function.inputs] == ["x"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Relu", "b", "a"), node("Relu", "a", "b")], "waits for itself: the graph has a cyc"),
        ([node("Relu", "q", "b")], "reads 'q', which nobody makes"),
        ([node("Relu", "x", "b"), node("Neg", "x", "b")], "makes 'b' a second time"),
        ([node("Neg", "x", "c")], "result 'b' is made by no node"),
        ([node("Reshape", "x w", "b")], "elements cannot be laid out as"),
        ([node("Flatten", "x", "b", axis=9)], "there is no axis 9 in a tensor of rank 1"),
        ([node("Gemm", "x x", "b")], "it takes matrices"),
        ([node("Softmax", "x", "b", axis="one")], "attribute axis is str"),
        ([node("Cast", "x", "b", to=99)], "elements of ONNX's type 99 are not covered"),
        ([node("ConstantOfShape", "huge", "b")], "is no shape"),
        ([node("Expand", "x huge", "b")], "fits no machine"),
    ],
)
def test_graphs_that_are_none(nodes: list[Any], message: str) -> None:
    weights = {"w": np.array([-1, 4], I64), "huge": np.array([1 << 40, 6], I64)}
    proto = model(nodes, {"x": (F, [6])}, ["b"], weights)
    with pytest.raises(ParseError, match=message):
        convert(proto)


def test_what_nobody_reads_is_left_out() -> None:
    nodes = [node("NonZero", "x", "a"), node("Relu", "x", "b"), node("Exp", "w", "c")]
    function = convert(model(nodes, {"x": (F, [2])}, ["b"], {"w": np.ones(9, F)}))
    assert function.text.count("linalg.generic") == 1
    assert not function.weights


def test_opsets() -> None:
    proto = mlp()
    proto.opset_import[0].version = 99
    with pytest.raises(ParseError, match="the model is of opset 99; operators are covered up to"):
        convert(proto, dimensions={"batch": 2})


@pytest.mark.parametrize("opset", [12, 13])
def test_softmax_of_old_opsets_is_over_all_the_rest(opset: int) -> None:
    proto = model([node("Softmax", "x", "y", axis=1)], {"x": (F, [2, 3, 4])}, ["y"], opset=opset)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4)).astype(F)
    powers = np.exp(x)
    axes = (1, 2) if opset < 13 else (1,)
    want = powers / powers.sum(axes, keepdims=True)
    np.testing.assert_allclose(computed(convert(proto), {"x": x})["y"], want, rtol=1e-6)
