"""Files that are none, or mean harm; data that lie beside them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx import read_onnx
from avial_lab.core.errors import AvialError, BindError, ParseError
from tests.compiler.frontends.onnx.models import computed, mlp, model, node, onnx


def written(folder: Path, proto: Any) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def with_data_outside(folder: Path, **told: str) -> Path:
    """The perceptron with its first weights in a file."""
    proto = mlp(3)
    tensor = next(each for each in proto.graph.initializer if each.name == "fc1.weight")
    (folder / "weights.bin").write_bytes(bytes(64) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", "offset": "64", **told}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return written(folder, proto)


def test_data_outside_are_mapped(tmp_path: Path) -> None:
    function = read_onnx(with_data_outside(tmp_path))
    assert isinstance(function.weights["fc1_weight"], np.memmap)
    given = {"input": np.ones((3, 6), np.float32)}
    want = computed(read_onnx(written(tmp_path, mlp(3))), given)
    np.testing.assert_array_equal(computed(function, given)["probs"], want["probs"])


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"location": "../weights.bin"}, "outside of the model's folder"),
        ({"location": "/etc/passwd"}, "outside of the model's folder"),
        ({"location": "link"}, "outside of the model's folder"),
        ({"location": ""}, "it is not said in which"),
        ({"location": "other.bin"}, "there is no such file"),
        ({"location": "."}, "there is no such file"),
        ({"offset": "65"}, "ends at byte 257 of"),
        ({"offset": "-1"}, "its offset '-1' is no number"),
        ({"length": "8"}, "of 192 bytes has 8 of them"),
        ({"offset": "9" * 18}, "ends at byte"),
    ],
)
def test_data_that_are_not_where_they_may_be(
    tmp_path: Path, told: dict[str, str], message: str
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(512))
    (folder / "link").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(AvialError, match=message):
        read_onnx(with_data_outside(folder, **told))


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(BindError, match="cannot read"):
        read_onnx(path)
    for data in (b"", b"version https://git-lfs.github.com/spec/v1\n", b"\xff" * 100):
        path.write_bytes(data)
        with pytest.raises(ParseError, match="is no ONNX model"):
            read_onnx(path)


def test_every_truncated_file_is_refused(tmp_path: Path) -> None:
    whole = mlp(3).SerializeToString()
    path = tmp_path / "model.onnx"
    for size in range(0, len(whole) - 1, 37):
        path.write_bytes(whole[:size])
        with pytest.raises(AvialError):
            read_onnx(path)


def test_files_with_a_byte_changed(tmp_path: Path) -> None:
    """A model, or an error of ours."""
    whole = bytearray(mlp(3).SerializeToString())
    rng = np.random.default_rng(0)
    path = tmp_path / "model.onnx"
    for at in rng.integers(0, len(whole), 150):
        changed = bytearray(whole)
        changed[at] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            read_onnx(path)
        except AvialError:
            continue


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.dims.append(1 << 60), "larger than any machine"),
        (lambda t: t.dims.extend([1 << 62, 0]), "larger than any machine"),
        (lambda t: t.dims.append(7), "of 1,344 bytes has 192 of them"),
        (lambda t: t.dims.append(-7), "has the shape"),
        (lambda t: setattr(t, "data_type", 8), "type 8 are not covered"),
    ],
)
def test_weights_that_are_not_what_they_say(tmp_path: Path, change: Any, message: str) -> None:
    proto = mlp(3)
    change(next(each for each in proto.graph.initializer if each.name == "fc1.weight"))
    with pytest.raises(ParseError, match=message):
        read_onnx(written(tmp_path, proto))


def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe, which nobody writes into, is not waited for."""
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(BindError, match="it is no file"):
        read_onnx(tmp_path / "model.onnx")


def test_operands_that_do_not_fit_are_told_with_their_node(tmp_path: Path) -> None:
    """A scale of two dimensions, and one of the wrong size, for what has one of each channel."""
    weights = {"two": np.ones((2, 2), np.float32), "three": np.ones(3, np.float32)}
    for scale in weights:
        norm = node("InstanceNormalization", f"x {scale} {scale}", "y", name="/norm")
        proto = model([norm], {"x": (np.float32, (1, 4, 5))}, ["y"], weights)
        with pytest.raises(ParseError, match=r"node '/norm'.*: a tensor .* does not fit"):
            read_onnx(written(tmp_path, proto))
