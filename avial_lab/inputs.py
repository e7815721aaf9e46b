"""Arrays from the command line: files, shapes, scalars.

`NAME=VALUE` -> arrays and scalars; arrays -> files, whole or not at all.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from avial_lab.arrays import ITEMSIZE, UNBOUNDED, dtype_of_element
from avial_lab.dag import TaskGraph
from avial_lab.errors import BindError

Scalar = bool | int | float

_SHAPE = re.compile(r"(?P<random>random:)?(?P<dims>(?:\d+x)*)(?P<element>[a-z]+\d*(?:<f\d\d>)?)")


def parse_inputs(
    inputs: Sequence[str], *, seed: int = 0
) -> tuple[dict[str, np.ndarray], dict[str, Scalar]]:
    """The arrays and scalars of `--in NAME=VALUE`: a .npy file, `20x30xf32` (zeros),
    `random:20xi32`, or a number.
    """
    arrays: dict[str, np.ndarray] = {}
    scalars: dict[str, Scalar] = {}
    rng = np.random.default_rng(seed)
    for text in inputs:
        name, value = _name_and_value(text, "--in a=a.npy")
        if name in arrays or name in scalars:
            raise BindError(f"--in {name} is given twice")
        scalar = _scalar(value)
        if scalar is not None:
            scalars[name] = scalar
            continue
        shape = _SHAPE.fullmatch(value)
        if shape is not None and shape["element"] in ITEMSIZE:
            arrays[name] = _made(name, shape, rng)
        else:
            arrays[name] = _loaded(name, Path(value))
    return arrays, scalars


def parse_outputs(outputs: Sequence[str]) -> dict[str, Path]:
    """Where `--out NAME=FILE.npy` wants which array."""
    return {
        name: Path(value)
        for name, value in (_name_and_value(text, "--out d=d.npy") for text in outputs)
    }


def allocate_missing(graph: TaskGraph, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`arrays`, with zeros for the buffers typed in the program that the caller does not give."""
    complete = dict(arrays)
    for buffer in graph.buffers:
        if buffer.temporary or buffer.name in complete:
            continue
        if UNBOUNDED in buffer.shape:
            raise BindError(
                f"the size of buffer '{buffer.name}' is not known",
                hint=f"give the array (--in {buffer.name}=FILE.npy) "
                f"or its shape (--in {buffer.name}=20x{buffer.element})",
            )
        complete[buffer.name] = np.zeros(buffer.shape, dtype_of_element(buffer.element))
    return complete


def save_array(path: Path, array: np.ndarray) -> None:
    """Write `array` as .npy, all of it or nothing."""
    partial = ""
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            np.save(file, array)
        Path(partial).replace(path)
    except OSError as error:
        if partial:
            Path(partial).unlink(missing_ok=True)
        raise BindError(f"cannot write {path}: {error.strerror}") from None


def _name_and_value(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise BindError(f"'{text}' is not NAME=VALUE", hint=f"for example {example}")
    return name.removeprefix("%"), value


def _scalar(value: str) -> Scalar | None:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None


def _made(name: str, shape: re.Match[str], rng: np.random.Generator) -> np.ndarray:
    try:
        return _values(shape, rng)
    except (MemoryError, ValueError):  # NumPy has two ways to say that it is too large
        raise BindError(f"--in {name}={shape[0]} does not fit into memory") from None


def _values(shape: re.Match[str], rng: np.random.Generator) -> np.ndarray:
    dims = tuple(int(size) for size in shape["dims"].split("x") if size)
    dtype = dtype_of_element(shape["element"])
    if not shape["random"]:
        return np.zeros(dims, dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, dims).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(-100, 100, dims).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(dtype)
    return np.asarray(rng.standard_normal(dims)).astype(dtype)


def _loaded(name: str, path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise BindError(
            f"--in {name}: there is no file {path}",
            hint=f"for zeros --in {name}=20x30xf32, for random values --in {name}=random:20x30xf32",
        ) from None
    except EOFError:
        raise BindError(f"--in {name}: {path} is empty") from None
    except OSError as error:
        raise BindError(f"--in {name}: cannot read {path}: {error.strerror or error}") from None
    except ValueError:
        raise BindError(f"--in {name}: {path} is not a .npy file of numbers") from None
    if array.dtype == np.dtype("V2"):
        # NumPy saves bfloat16 as two untyped bytes.
        return array.view(dtype_of_element("bf16"))
    return array
