"""A function on tensors -> a model in ONNX that computes the same.

The sequential function: placements are dropped, and kept in the model's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from mlir import ir
from onnx import helper

from avial_lab.compiler.backends.onnx.graph import (
    IR_VERSION,
    OPSET,
    Graph,
    dtype_of,
    onnx_type,
    refused,
)
from avial_lab.compiler.backends.onnx.loops import Nest, nest
from avial_lab.compiler.backends.onnx.scalars import constant_number, scalar
from avial_lab.compiler.backends.onnx.shapes import MOVES
from avial_lab.compiler.frontends.mlir.tensors import run_pipeline, tosa_to_linalg
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.placements import (
    erase_placements,
    is_tensor,
    meshes_in,
    placement_of,
)
from avial_lab.compiler.ir.program import program_function, symbol_of
from avial_lab.core.errors import PassError

_GENERIC = "builtin.module(func.func(linalg-generalize-named-ops,convert-elementwise-to-linalg))"

PRODUCER = "avial_lab"


def onnx_model(module: ir.Operation, names: Mapping[str, str]) -> bytes:
    """The model of the module's function, as protobuf's bytes. `names`: what arguments, and
    results (`result0` …), are called in it where the text calls them so.

    PassError for what ONNX has no operators for, at its place.
    """
    function = program_function(module)
    told = _placements(module, function)
    erase_placements(module)
    tosa_to_linalg(module)
    run_pipeline(module, _GENERIC, "an operation could not be written as loops")
    model = _Export(function, dict(names)).run()
    helper.set_model_props(model, told)
    return model.SerializeToString()


def _placements(module: ir.Operation, function: ir.Operation) -> dict[str, str]:
    """Where arguments and results lie, by name, and the meshes."""
    meshes = meshes_in(module)
    block = function.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    named = [(_argument_name(a), a) for a in block.arguments]
    named += [(f"result{k}", value) for k, value in enumerate(end.operands)]
    found: dict[str, str] = {}
    for mesh in meshes.values():
        shape, devices = "x".join(map(str, mesh.shape)), ", ".join(map(str, mesh.devices))
        found[f"avial.mesh.{mesh.name}"] = f"{shape}: {devices}"
    for name, value in named:
        placement = placement_of(value.type, meshes, value.location)
        if placement is not None:
            found[f"avial.placement.{name}"] = f"@{placement.mesh.name}, {placement.text}"
    return found


def _argument_name(argument: ir.Value) -> str:
    return name_of(argument.location) or f"arg{argument.arg_number}"


@dataclass
class _Export:
    function: ir.Operation
    names: dict[str, str]
    graph: Graph = field(default_factory=Graph)
    tensors: dict[ir.Value, str] = field(default_factory=dict)
    numbers: dict[ir.Value, str] = field(default_factory=dict)
    splats: dict[ir.Value, str] = field(default_factory=dict)
    """Tensors whose elements are all the same number, by the name of that."""

    def run(self) -> onnx.ModelProto:
        block = self.function.regions[0].blocks[0]
        *operations, end = [view.operation for view in block.operations]
        results = [self._called(f"result{k}") for k in range(len(end.operands))]
        self.graph.taken.update(results)
        inputs = [self._input(argument) for argument in block.arguments]
        for op in operations:
            self._operation(op)
        outputs: list[onnx.ValueInfoProto] = []
        for name, value in zip(results, end.operands, strict=True):
            made = self.tensor(value) if is_tensor(value.type) else self.number(value)
            self.graph.nodes.append(helper.make_node("Identity", [made], [name]))
            outputs.append(self._info(name, value))
        graph = helper.make_graph(
            self.graph.nodes, symbol_of(self.function), inputs, outputs, self.graph.constants
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name=PRODUCER,
        )

    def _called(self, name: str) -> str:
        return self.names.get(name, name)

    def _input(self, argument: ir.Value) -> onnx.ValueInfoProto:
        name = self._called(_argument_name(argument))
        if name in self.graph.taken:
            raise PassError(f"two values are called '{name}'", span=span_of(argument.location))
        self.graph.taken.add(name)
        if is_tensor(argument.type):
            self.tensors[argument] = name
        else:
            self.numbers[argument] = name
        return self._info(name, argument)

    def _info(self, name: str, value: ir.Value) -> onnx.ValueInfoProto:
        shape = list(value.type.shape) if is_tensor(value.type) else []
        if is_tensor(value.type) and not value.type.has_static_shape:
            raise PassError(
                f"{value.type} has a size that is not known",
                span=span_of(value.location),
                hint="give it one: -D NAME=VALUE, or the array",
            )
        return helper.make_tensor_value_info(
            name, onnx_type(dtype_of(self.function, value.type)), shape
        )

    # Values ---------------------------------------------------------------------------------------

    def tensor(self, value: ir.Value) -> str:
        if value not in self.tensors:
            self.tensors[value] = self.graph.expanded(self.splats[value], value.type.shape)
        return self.tensors[value]

    def splat(self, value: ir.Value) -> str | None:
        return self.splats.get(value)

    def number(self, value: ir.Value) -> str:
        """Of numbers outside of loops."""
        if value not in self.numbers:
            op = value.owner.operation
            raise refused(op)
        return self.numbers[value]

    def _operation(self, op: ir.Operation) -> None:
        if op.name == "linalg.generic":
            made = nest(self.graph, op, self.tensor, self.splat, self.number)
            for result, value in zip(op.results, made, strict=True):
                here = self.tensors if value.order or not result.type.rank else self.splats
                here[result] = value.name
        elif op.name == "tensor.splat":
            self.splats[op.results[0]] = self.number(op.operands[0])
        elif op.name == "tensor.empty":
            dtype = dtype_of(op, op.results[0].type)
            self.splats[op.results[0]] = self.graph.constant(0, dtype)
        elif op.name == "arith.constant":
            self._constant(op)
        elif op.name == "tensor.dim":
            self._size(op)
        elif op.name in MOVES:
            self._moved(op)
        elif len(op.results) == 1 and not is_tensor(op.results[0].type) and not len(op.regions):
            self._number(op)
        else:
            raise refused(op)

    def _constant(self, op: ir.Operation) -> None:
        result = op.results[0]
        if not is_tensor(result.type):
            self.numbers[result] = constant_number(self.graph, op)
            return
        dtype = dtype_of(op, result.type)
        value = op.attributes["value"]
        if not isinstance(value, ir.DenseElementsAttr):
            raise refused(op, "has its elements elsewhere")
        if value.is_splat:
            number = value.get_splat_value().value
            self.splats[result] = self.graph.constant(number, dtype)
        else:
            if dtype.name == "bfloat16":
                raise refused(op, "of bf16 that differ cannot be read here")
            self.tensors[result] = self.graph.constant(
                np.array(value).reshape(result.type.shape), dtype
            )

    def _size(self, op: ir.Operation) -> None:
        which = self.graph.values.get(self.number(op.operands[1]))
        if which is None:
            raise refused(op, "of a dimension that only a run knows")
        self.numbers[op.results[0]] = self.graph.constant(op.operands[0].type.shape[int(which)])

    def _number(self, op: ir.Operation) -> None:
        if op.name == "tensor.extract":
            loops = Nest(self.graph, (), self.tensor, self.splat, self.number)
            self.numbers[op.results[0]] = loops.value_of(op).name
            return
        names = [self.number(each) for each in op.operands]
        self.numbers[op.results[0]] = scalar(self.graph, op, names)

    def _moved(self, op: ir.Operation) -> None:
        result = op.results[0]
        if op.name == "tensor.pad":
            end = op.regions[0].blocks[0].operations
            padded = end[len(end) - 1].operation.operands[0]
            inside = not isinstance(padded.owner, ir.Block) and padded not in self.numbers
            if inside and padded.owner.operation.name == "arith.constant":
                self.numbers[padded] = constant_number(self.graph, padded.owner.operation)
            names = [self.tensor(op.operands[0]), self.number(padded)]
        elif op.name == "tensor.from_elements":
            names = [self.number(each) for each in op.operands]
        else:
            static = [each for each in op.operands if is_tensor(each.type)]
            if op.name == "tensor.reshape":
                static = static[:1]
            first = self.splats.get(static[0])
            if first is not None and op.name in ("tensor.collapse_shape", "tensor.expand_shape"):
                self.splats[result] = first
                return
            names = [self.tensor(each) for each in static]
        self.tensors[result] = MOVES[op.name](self.graph, op, names)
