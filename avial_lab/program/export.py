"""Functions on tensors as models in ONNX, for other programs.

Model, Program or text -> a file, with the weights as initialisers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from avial_lab.compiler.frontends.onnx import onnx_package
from avial_lab.compiler.frontends.onnx.values import Proto
from avial_lab.compiler.requests import Export, Source
from avial_lab.core.errors import BindError
from avial_lab.core.words import brief, count
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.models import Model, TrainingStep
from avial_lab.program.program import Program

MOST_BYTES = (1 << 31) - (1 << 20)
"""Of a protobuf; larger weights lie beside it, in one file."""


@dataclass(frozen=True)
class ExportedModel:
    """What was written: `proto` is the ModelProto of the package onnx."""

    path: Path
    proto: Proto = field(repr=False)

    def __repr__(self) -> str:
        return brief(self, f"{self.path}: {count(len(self.proto.graph.node), 'node')}")


def export_onnx(
    what: Model | TrainingStep | Program | str | Source,
    path: str | Path,
    *,
    weights: Mapping[str, np.ndarray] | None = None,
    function: str | None = None,
) -> ExportedModel:
    """Write the sequential function as a model in ONNX (opset 18).

    A `Model` has its own names and weights; `weights` are arrays by the names of arguments, which
    are no inputs then. A `TrainingStep` takes the weights, and what the optimizer keeps, and
    returns them behind the loss as they are after the step. What is divided is exported as the
    sequential function; the placements are in the model's metadata (`avial.placement.x`).

    Raises PassError, at its place, for what ONNX has no operators for.
    """
    source, names, held = _of(what, function)
    held = {**held, **(weights or {})}
    model = onnx_package().ModelProto()
    model.ParseFromString(shared_compiler().ask(Export(source, names)).model)
    called = {names.get(name, name): array for name, array in held.items()}
    _give(model, called)
    _write(model, Path(path))
    return ExportedModel(Path(path), model)


def _of(
    what: Model | TrainingStep | Program | str | Source, function: str | None
) -> tuple[Source, dict[str, str], Mapping[str, np.ndarray]]:
    """Its text, what ONNX calls its arguments and results, arrays of its weights."""
    if isinstance(what, Model):
        ports = (*what.inputs, *what.function.parameters, *what.results)
        return what.source(), {p.name: p.called for p in ports}, what.weights
    if isinstance(what, TrainingStep):
        ports = (*what.function.inputs, *what.function.parameters, *what.function.states)
        names = {p.name: p.called for p in ports} | {"result0": "loss"}
        names |= {f"result{k + 1}": f"{p.called} after" for k, p in enumerate(what.changed)}
        return replace(what.program.question.source, parallel=""), names, {}
    if isinstance(what, Program):
        return replace(what.question.source, parallel=""), {}, {}
    if isinstance(what, Source):
        return what, {}, {}
    return Source(what, "export", function=function), {}, {}


def _give(model: Proto, arrays: Mapping[str, np.ndarray]) -> None:
    """Arrays as initialisers of the inputs of their names."""
    onnx = onnx_package()
    inputs = {each.name: each for each in model.graph.input}
    for name, array in arrays.items():
        if name not in inputs:
            raise BindError(f"the model has no input '{name}'")
        shape = tuple(int(d.dim_value) for d in inputs[name].type.tensor_type.shape.dim)
        if shape != np.shape(array):
            raise BindError(f"input '{name}' is {shape}, and is given {np.shape(array)}")
        tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        model.graph.initializer.append(tensor)
        model.graph.input.remove(inputs[name])


def _write(model: Proto, path: Path) -> None:
    onnx = onnx_package()
    try:
        onnx.save_model(
            model,
            path,
            save_as_external_data=model.ByteSize() > MOST_BYTES,
            location=f"{path.name}.data",
        )
    except OSError as error:
        raise BindError(f"cannot write {path}: {error.strerror}") from None
