"""ONNX files: a path -> the model's protobuf and what lies outside of it, the arrays of tensors.

Whoever wrote a file may mean harm: sizes are looked at before anything is made of them, and
external data that do not lie in the model's folder are refused. They are mapped, not read.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.compiler.frontends.onnx.apart import Outside, read_apart
from avial_lab.compiler.frontends.onnx.values import Dtype, NotCovered, Proto, dtype_of
from avial_lab.core.errors import BindError, ParseError
from avial_lab.core.words import shortened

if TYPE_CHECKING:
    from types import ModuleType

MOST_BYTES = 1 << 31
"""Of a protobuf: its own limit."""

SUFFIX = ".onnx"


def onnx_package() -> ModuleType:
    try:
        import onnx
    except ImportError:
        raise BindError(
            "ONNX models are read by the package onnx, which is not installed",
            hint="pip install onnx, or avial-lab with its extra [onnx]",
        ) from None
    return onnx


def read_model(path: Path) -> tuple[Proto, Outside]:
    """The ModelProto in a file, and its large tensors; its external data stay where they are."""
    onnx = onnx_package()
    try:
        if not stat.S_ISREG((told := path.stat()).st_mode):
            raise BindError(f"cannot read {path}: it is no file")  # (nobody may write a pipe)
        if told.st_size > MOST_BYTES:
            raise ParseError(f"{path} is larger than an ONNX file can be (2 GB)")
        data, apart = read_apart(path)
    except OSError as error:
        raise BindError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise BindError(f"{str(path)!r} cannot be a file's name") from None  # a NUL
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's own, whose name differs between its releases
        raise ParseError(
            f"{path} is no ONNX model: {shortened(str(error), 80)}",
            hint="is it whole? A file that is kept by git-lfs may be a pointer",
        ) from None
    if not model.HasField("graph") or not model.opset_import:
        raise ParseError(f"{path} is no ONNX model: it has no graph, or says no opset")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise ParseError(f"{path} is no ONNX model: a name in it is no UTF-8")
    return model, Outside(path.parent, apart)


def _texts(model: Proto) -> Iterator[object]:
    """Whatever is a name: protobuf hands over bytes where it is none."""
    yield from (each.domain for each in model.opset_import)
    for function in model.functions:
        yield from _texts_of_nodes(function.node)
    yield from _texts_of_graph(model.graph)


def _texts_of_graph(graph: Proto) -> Iterator[object]:
    yield from _texts_of_nodes(graph.node)
    for info in (*graph.input, *graph.output):
        yield info.name
        yield from (dim.dim_param for dim in info.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        for entry in tensor.external_data:
            yield from (entry.key, entry.value)


def _texts_of_nodes(nodes: Sequence[Proto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.op_type, node.name, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name, attribute.t.name)
            for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                yield from _texts_of_graph(graph)


def array_of(tensor: Proto, outside: Outside) -> np.ndarray:
    """A TensorProto's values: a view of its bytes, or of the file that holds them."""
    name = shortened(tensor.name or "a constant", 60)
    shape = tuple(int(n) for n in tensor.dims)
    if any(n < 0 for n in shape):
        raise ParseError(f"tensor '{name}' has the shape {shape}")
    dtype = dtype_of(tensor.data_type)
    nbytes = math.prod(shape) * dtype.itemsize
    if math.prod(n or 1 for n in shape) * dtype.itemsize > 1 << 46:
        raise ParseError(f"tensor '{name}' of {shape} elements is larger than any machine's memory")
    if tensor.data_location == 1:
        return _external(tensor, name, shape, dtype, nbytes, outside.folder)
    if tensor.HasField("raw_data"):
        raw = outside.bytes_of(tensor.raw_data)
        if len(raw) != nbytes:
            raise ParseError(f"tensor '{name}' of {nbytes:,} bytes has {len(raw):,} of them")
        return np.frombuffer(raw, dtype).reshape(shape)
    values = _typed(tensor, dtype)
    if values.size != math.prod(shape):
        raise ParseError(
            f"tensor '{name}' of {math.prod(shape):,} elements has {values.size:,} of them"
        )
    return values.reshape(shape)


def _typed(tensor: Proto, dtype: Dtype) -> np.ndarray:
    """Values that stand in the field of their kind; 16-bit floats as the bits of integers."""
    name = dtype.name
    if name == "float32":
        return np.asarray(tensor.float_data, np.float32)
    if name == "float64":
        return np.asarray(tensor.double_data, np.float64)
    if name == "int64":
        return np.asarray(tensor.int64_data, np.int64)
    if name in ("uint32", "uint64"):
        return np.asarray(tensor.uint64_data, np.uint64).astype(dtype)
    values = np.asarray(tensor.int32_data, np.int64)
    if dtype.itemsize == 2:  # (floats of 16 bits come as their bits)
        return values.astype(np.uint16).view(dtype)
    return values.astype(dtype)


def _external(
    tensor: Proto, name: str, shape: tuple[int, ...], dtype: Dtype, nbytes: int, folder: Path | None
) -> np.ndarray:
    told = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(told.get("location", ""), name, folder)
    offset, length = (_number(told.get(key, ""), key, name) for key in ("offset", "length"))
    if length not in (0, nbytes):
        raise ParseError(f"tensor '{name}' of {nbytes:,} bytes has {length:,} of them in {path}")
    try:
        size = path.stat().st_size
        if offset + nbytes > size:
            raise ParseError(
                f"tensor '{name}' ends at byte {offset + nbytes:,} of {path}, which has {size:,}"
            )
        if not nbytes:
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, mode="r", offset=offset, shape=shape)
    except OSError as error:
        raise BindError(f"cannot read {path}: {error.strerror}") from None


def _inside(location: str, name: str, folder: Path | None) -> Path:
    """The file of external data; links that lead out of the model's folder are followed first."""
    if folder is None:
        raise ParseError(f"tensor '{name}' lies in another file, and the model in none")
    if not location or "\0" in location:
        raise ParseError(f"tensor '{name}' lies in another file, and it is not said in which")
    home = folder.resolve()
    path = (home / location).resolve()
    if Path(location).is_absolute() or not path.is_relative_to(home):
        raise ParseError(
            f"tensor '{name}' lies in '{shortened(location, 80)}', outside of the model's folder",
            hint="external data are read from beside the model alone",
        )
    if not path.is_file():
        raise BindError(f"tensor '{name}' lies in {path}, and there is no such file")
    return path


def _number(text: str, what: str, name: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ParseError(f"tensor '{name}': its {what} '{shortened(text, 30)}' is no number")
    return int(text)


def attributes_of(node: Proto, outside: Outside) -> dict[str, Any]:
    """Attributes as numbers, texts, lists and arrays; graphs are left as they are."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        kind = attribute.type
        if attribute.ref_attr_name:
            raise NotCovered(f"attribute {attribute.name} is that of a function")
        if kind == 1:
            found[attribute.name] = float(attribute.f)
        elif kind == 2:
            found[attribute.name] = int(attribute.i)
        elif kind == 3:
            found[attribute.name] = attribute.s.decode("utf-8", "replace")
        elif kind == 4:
            found[attribute.name] = array_of(attribute.t, outside)
        elif kind == 6:
            found[attribute.name] = [float(n) for n in attribute.floats]
        elif kind == 7:
            found[attribute.name] = [int(n) for n in attribute.ints]
        elif kind == 8:
            found[attribute.name] = [s.decode("utf-8", "replace") for s in attribute.strings]
        else:
            raise NotCovered(f"attribute {attribute.name} is of a kind that is not covered")
    return found
