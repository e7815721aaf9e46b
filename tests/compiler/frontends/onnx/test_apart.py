"""Large tensors beside their message; the witness is protobuf's own reading of the whole file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx import read_onnx
from avial_lab.compiler.frontends.onnx.apart import LEAST, Outside, read_apart
from tests.compiler.frontends.onnx.models import onnx
from tests.quick import examples

protobuf = pytest.importorskip("google.protobuf.message")


def large() -> Any:
    """y = x w + c, of which the weights are an initialiser and a Constant's, and a large text."""
    rng = np.random.default_rng(0)
    w = onnx.numpy_helper.from_array(rng.standard_normal((64, 32)).astype("f4"), "w")
    c = onnx.numpy_helper.from_array(rng.standard_normal((64, 32)).astype("f4"))
    small = onnx.numpy_helper.from_array(np.zeros(6, "f4"), "small")  # as long as a token
    nodes = [
        onnx.helper.make_node("Constant", [], ["c"], value=c, doc_string="x" * LEAST),
        onnx.helper.make_node("MatMul", ["x", "w"], ["p"]),
        onnx.helper.make_node("Add", ["p", "c"], ["y"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, 1, [64, k]) for n, k in (("x", 64), ("y", 32))]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [w, small])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def parsed(data: bytes) -> Any:
    """None for what protobuf refuses."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except protobuf.DecodeError:
        return None
    return model


def read_back(path: Path) -> Any:
    """The whole message, with what was apart in its place."""
    data, apart = read_apart(path)
    model, outside = parsed(data), Outside(None, apart)
    if model is None:
        return None
    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute)]
    for tensor in tensors:
        if tensor.HasField("raw_data"):
            tensor.raw_data = bytes(outside.bytes_of(tensor.raw_data))
    return model


def test_large_tensors_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(large().SerializeToString())
    data, apart = read_apart(path)
    assert [memory.nbytes for memory in apart.values()] == [8192, 8192]
    assert len(data) < path.stat().st_size - 2 * 8192 + 100
    assert read_back(path) == large()
    (weight,) = (w for name, w in read_onnx(path).weights.items() if name == "w")
    assert not weight.flags.writeable
    assert weight.base is not None
    np.testing.assert_array_equal(weight, onnx.numpy_helper.to_array(large().graph.initializer[0]))


def varint(number: int) -> bytes:
    low = number & 127
    return bytes([low]) if number < 128 else bytes([low | 128]) + varint(number >> 7)


def chunk(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


@pytest.mark.parametrize("kind", ["two graphs", "twice", "unknown", "group", "fixed", "long"])
def test_other_spellings_of_a_message(tmp_path: Path, kind: str) -> None:
    """What protobuf reads, however it is written."""
    model = large()
    graph, rest = model.graph.SerializeToString(), parsed(model.SerializeToString())
    rest.ClearField("graph")
    head, raw = rest.SerializeToString(), bytes(range(256)) * 32
    tensor = chunk(5, chunk(9, raw) + b"\x08\x40\x08\x20\x10\x01" + chunk(8, b"v"))
    body = {
        "two graphs": chunk(7, graph) + chunk(7, tensor),
        "twice": chunk(7, graph + chunk(5, chunk(9, raw) + chunk(9, raw[::-1]))),
        "unknown": chunk(7, graph + chunk(900, raw)) + chunk(901, raw),
        "group": chunk(7, graph) + varint(902 << 3 | 3) + varint(902 << 3 | 4),
        "fixed": chunk(7, graph)
        + varint(903 << 3 | 5)
        + bytes(4)
        + varint(904 << 3 | 1)
        + bytes(8),
        "long": chunk(7, graph) + b"\x08\x89\x80\x80\x80\x00",
    }[kind]
    path = tmp_path / "model.onnx"
    path.write_bytes(head + body)
    want = parsed(head + body)
    assert want is not None
    assert read_back(path) == want


def test_changed_and_truncated_files(tmp_path: Path) -> None:
    """They are what protobuf takes them for."""
    whole = large().SerializeToString()
    rng = np.random.default_rng(1)
    ends = [0, len(whole) - 8192, len(whole)]
    path = tmp_path / "model.onnx"
    heads = np.flatnonzero(np.frombuffer(whole, np.uint8) == 0)  # (values are seldom 0)
    for _ in range(examples(400)):
        data = bytearray(whole)
        for at in rng.choice(heads, int(rng.integers(1, 3))) + rng.integers(-12, 12):
            data[max(0, min(at, len(data) - 1))] = int(rng.integers(0, 256))
        if rng.random() < 0.3:
            del data[int(rng.choice(ends)) + int(rng.integers(-40, 40)) :]
        path.write_bytes(data)
        assert read_back(path) == parsed(bytes(data))
