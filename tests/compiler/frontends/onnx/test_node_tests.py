"""ONNX's own node tests, from its package: those of the operators that are covered here."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx.convert import OnnxFunction, convert
from avial_lab.compiler.frontends.onnx.nodes import NeedsValue
from avial_lab.core.errors import AvialError
from tests.compiler.frontends.onnx.models import computed, onnx

OPERATORS = """
Abs Add And ArgMax AveragePool BatchNormalization Cast Clip Concat Constant
ConstantOfShape Conv CumSum Div Dropout Equal Erf Exp Expand Flatten Gather GatherND Gelu
Gemm GlobalAveragePool Greater Identity LayerNormalization Less Log LogSoftmax LRN MatMul
Max MaxPool Min Mul Neg NegativeLogLikelihoodLoss Not OneHot Pad Pow Range Reciprocal
ReduceMax ReduceMean ReduceProd ReduceSum Relu Reshape Shape Sigmoid Slice Softmax
SoftmaxCrossEntropyLoss Split Sqrt Squeeze Sub Sum Tanh Tile Transpose Trilu Unsqueeze
Where
"""
TYPES = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16))
"""Floats, integers of 8 bits and more, bool."""

REFUSED = {"test_training_dropout" + k for k in ("", "_mask", "_default", "_default_mask")}
"""What they drop is random."""


def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return collect_testcases(None)


def is_ordinary(case: Any) -> bool:
    """Whether its operators and types are those that the importer promises."""
    graph = case.model.graph
    return all(n.op_type in OPERATORS.split() and not n.domain for n in graph.node) and all(
        each.type.HasField("tensor_type") and each.type.tensor_type.elem_type in TYPES
        for each in (*graph.input, *graph.output)
    )


def array(value: Any) -> np.ndarray:
    tensor = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if tensor else np.asarray(value)


def imported(model: Any, given: dict[str, np.ndarray]) -> OnnxFunction:
    """Shapes, axes and single numbers are bound where the import needs them."""
    shapes = {name: value.shape for name, value in given.items()}
    try:
        return convert(model, shapes=shapes)
    except NeedsValue:
        short = {n: v for n, v in given.items() if v.ndim <= 1 and v.size <= 64}
        integers = {n: v for n, v in short.items() if v.dtype.kind in "iub" or not v.ndim}
        return convert(model, shapes=shapes, values=integers)


def assert_right(case: Any) -> None:
    graph = case.model.graph
    for inputs, outputs in case.data_sets:
        names = [each.name for each in graph.input]
        given = {name: array(value) for name, value in zip(names, inputs, strict=False)}
        function = imported(case.model, given)
        found = list(computed(function, given).values())
        assert len(found) == len(outputs)
        for got, want in zip(found, map(array, outputs), strict=True):
            assert got.shape == want.shape
            if want.dtype.kind in "iub":
                np.testing.assert_array_equal(got.view(want.dtype), want)
                continue
            assert got.dtype == want.dtype
            # Ours are rounded once where the reference rounds each step.
            rtol = {"bfloat16": 2e-2, "float16": 4e-3}.get(want.dtype.name, float(case.rtol))
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=float(case.atol)
            )


@pytest.mark.slow
def test_those_of_the_operators_that_are_promised() -> None:
    wrong: dict[str, str] = {}
    refused: set[str] = set()
    ordinary = [case for case in cases() if is_ordinary(case)]
    for case in ordinary:
        try:
            assert_right(case)
        except AvialError:
            refused.add(case.name)
        except AssertionError as error:
            wrong[case.name] = str(error)
    assert not wrong
    assert refused == REFUSED
    assert len(ordinary) >= 640 + len(REFUSED)


@pytest.mark.slow
def test_others_are_right_or_refused() -> None:
    wrong: dict[str, str] = {}
    for case in cases():
        inputs = [value for given, _ in case.data_sets for value in given]
        numbers = all(isinstance(v, np.ndarray | np.generic | onnx.TensorProto) for v in inputs)
        if is_ordinary(case) or not numbers:
            continue
        try:
            assert_right(case)
        except AvialError:
            continue
        except AssertionError as error:
            wrong[case.name] = str(error)
    assert not wrong
