"""The nine networks that the package onnx ships, without weights: they are read; with random ones,
those that are small compute what ONNX Runtime does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx.convert import convert
from tests.compiler.frontends.onnx.models import computed, onnx

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
         "squeezenet", "vgg19", "zfnet512")  # fmt: skip


def light(name: str) -> Any:
    return onnx.load(FOLDER / f"light_{name}.onnx")


def with_random_weights(name: str) -> Any:
    """What makes all weights alike is replaced by numbers that differ."""
    model, rng = light(name), np.random.default_rng(0)
    graph = model.graph
    known = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    nodes: list[Any] = []
    made: list[Any] = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = tuple(int(n) for n in known[node.input[0]])
        fan = np.prod(shape[1:], initial=1)
        value = rng.standard_normal(shape) * np.sqrt(2 / fan)
        value = value if len(shape) > 1 else rng.uniform(0.5, 1, shape)
        made.append(onnx.numpy_helper.from_array(value.astype(np.float32), node.output[0]))
    read = {name for node in nodes for name in node.input}
    kept = [each for each in (*graph.initializer, *made) if each.name in read]
    inputs = [each for each in graph.input if each.name in read and each.name not in known]
    for old, new in ((graph.node, nodes), (graph.initializer, kept), (graph.input, inputs)):
        del old[:]
        old.extend(new)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_is_read(name: str) -> None:
    function = convert(light(name))
    assert [port.shape for port in function.inputs if len(port.shape) == 4] == [(1, 3, 224, 224)]
    assert np.prod(function.results[0].shape) == 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_it_computes_what_onnx_runtime_does(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = with_random_weights(name)
    function = convert(model)
    x = np.random.default_rng(1).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)
    given = {port.called: x for port in function.inputs}
    found = computed(function, given)[function.results[0].called]
    session = runtime.InferenceSession(model.SerializeToString())
    (want,) = session.run(None, given)
    # Sums of some thousand terms in other orders.
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-5 * np.abs(want).max())
