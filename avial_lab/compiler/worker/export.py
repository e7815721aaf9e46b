"""A function on tensors as a model in ONNX.

Export -> Exported. Needs the package onnx.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.frontends.mlir.tensors import has_tensors
from avial_lab.compiler.frontends.onnx import onnx_package
from avial_lab.compiler.requests import Export, Exported
from avial_lab.compiler.worker.build import parse_source, to_tensors, with_text
from avial_lab.core.errors import AvialError, PassError


class _Written(Exception):
    """The model is made: the function need not become one on memory."""

    def __init__(self, model: bytes) -> None:
        super().__init__()
        self.model = model


def exported(question: Export) -> Exported:
    """PassError for a program without tensors, and for what ONNX has no operators for."""
    onnx_package()
    from avial_lab.compiler.backends.onnx.model import onnx_model

    source = question.source

    def written(module: ir.Module) -> bool:
        if has_tensors(module):
            to_tensors(module, source)
            raise _Written(onnx_model(module.operation, question.names))
        return False

    try:
        parse_source(source, written)
    except _Written as done:
        return Exported(done.model)
    except AvialError as error:
        error.span = with_text(error.span, source)
        raise
    raise PassError(
        "the program is no function on tensors",
        hint="models in ONNX are tensors and operators on them; loops on memory are not exported",
    )
