"""Models in ONNX: a file -> a function on tensors in MLIR's text, and its weights as arrays.

Needs the package onnx (the extra `onnx`), and no MLIR.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from avial_lab.compiler.frontends.onnx.convert import OnnxFunction, Port, convert
from avial_lab.compiler.frontends.onnx.files import SUFFIX, onnx_package, read_model
from avial_lab.compiler.frontends.onnx.losses import Training
from avial_lab.compiler.frontends.onnx.nodes import NeedsValue
from avial_lab.compiler.frontends.onnx.values import Shape

__all__ = [
    "NeedsValue",
    "OnnxFunction",
    "Port",
    "SUFFIX",
    "Training",
    "convert",
    "onnx_package",
    "read_model",
    "read_onnx",
]


def read_onnx(
    path: Path,
    *,
    dimensions: Mapping[str, int] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> OnnxFunction:
    """The model in a file (`convert.convert`)."""
    model, outside = read_model(path)
    return convert(
        model,
        outside=outside,
        dimensions=dimensions,
        values=values,
        shapes=shapes,
    )
