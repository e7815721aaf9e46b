"""Placements in the IR: meshes, the encodings of tensor types, and the moves between placements.

Module -> its Meshes; a tensor's type <-> its Placement.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import functions_of
from avial_lab.core.errors import VerifyError
from avial_lab.planning.tensor_placement import Along, Mesh, Placement

MESH = "distir.mesh"
RESHARD = "distir.reshard"
MOVES = tuple(
    f"distir.{name}"
    for name in (
        "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "scatter", "send",
        "broadcast", "gather", "reduce", "reshard",
    )
)  # fmt: skip
_ON = "#distir.on<"


def meshes_in(module: ir.Operation) -> dict[str, Mesh]:
    """The meshes of the module by name; VerifyError for one that no devices could be."""
    found: dict[str, Mesh] = {}
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == MESH:
            mesh = _mesh(op)
            if mesh.name in found:
                raise VerifyError(f"two meshes are named @{mesh.name}", span=span_of(op.location))
            found[mesh.name] = mesh
    return found


def _mesh(op: ir.Operation) -> Mesh:
    name = ir.StringAttr(op.attributes["sym_name"]).value
    dense = ir.DenseIntElementsAttr(op.attributes["devices"])
    shape = tuple(ir.RankedTensorType(dense.type).shape)
    devices = tuple(int(device) for device in dense)
    turns = op.attributes["turns"].value if "turns" in op.attributes else 0
    what = ""
    if not devices:
        what = "has no device"
    elif len(set(devices)) < len(devices):
        twice = next(d for k, d in enumerate(devices) if d in devices[:k])
        what = f"names device {twice} twice"
    elif min(devices) < 0:
        what = f"names device {min(devices)}; they are numbered from 0"
    elif "turns" in op.attributes and turns < 1:
        what = f"has {turns} turns"
    if what:
        raise VerifyError(
            f"mesh @{name} {what}",
            span=span_of(op.location),
            hint="write each device once: devices = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
        )
    return Mesh(name, shape, devices, turns)


def write_mesh(module: ir.Operation, mesh: Mesh) -> None:
    """`mesh` in place of the one of its name, or before all else."""
    with module.context, ir.Location.unknown(module.context):
        block = module.regions[0].blocks[0]
        for view in block.operations:
            op = view.operation
            if op.name == MESH and ir.StringAttr(op.attributes["sym_name"]).value == mesh.name:
                op.erase()
                break
        grid: Any = np.array(mesh.devices, "i8").reshape(mesh.shape)
        attributes: dict[str, ir.Attribute] = {
            "sym_name": ir.StringAttr.get(mesh.name),
            "devices": ir.DenseElementsAttr.get(grid),
        }
        if mesh.turns:
            i64 = ir.IntegerType.get_signless(64)
            attributes["turns"] = ir.IntegerAttr.get(i64, mesh.turns)
        ir.Operation.create(MESH, [], [], attributes, ip=ir.InsertionPoint.at_block_begin(block))


def is_tensor(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType)


def placement_of(
    type_: ir.Type, meshes: Mapping[str, Mesh], location: ir.Location | None = None
) -> Placement | None:
    """Where a tensor of that type lies; None where its type does not say. VerifyError, at
    `location`, for a placement of no mesh, or one that does not fit mesh or shape.
    """
    if not is_tensor(type_):
        return None
    text = str(type_.encoding) if type_.encoding is not None else ""
    if not text.startswith(_ON):
        return None
    symbol, _, axes = text[len(_ON) : -1].partition(", ")
    name = symbol.removeprefix("@").strip('"')
    try:
        if name not in meshes:
            known = ", ".join(f"@{each}" for each in meshes) or "none"
            raise VerifyError(f"there is no mesh @{name}", hint=f"the meshes are: {known}")
        placement = Placement(meshes[name], _entries(axes))
        placement.check(type_.rank)
    except VerifyError as error:
        if error.span is None and location is not None:
            error.span = span_of(location)
        raise
    return placement


@lru_cache(maxsize=1024)  # the same few, for each value of a program
def _entries(quoted: str) -> tuple[Along, ...]:
    listed = [each.strip() for each in ast.literal_eval(quoted).split(",")]
    return tuple(Along.parse(each) for each in listed if each)


def with_placement(type_: ir.Type, placement: Placement | None) -> ir.Type:
    """The same tensor type, lying so; None: its type says nothing of it."""
    with type_.context, ir.Location.unknown(type_.context):
        encoding = (
            ir.Attribute.parse(f'{_ON}@{placement.mesh.name}, "{placement.text}">')
            if placement is not None
            else None
        )
        return ir.RankedTensorType.get(list(type_.shape), type_.element_type, encoding)


class PlacedTypes:
    """The types that one pass meets, with placements on the same meshes: few, each read and made
    once, as a placement is text in the IR.
    """

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._read: dict[ir.Type, Placement | None] = {}
        self._made: dict[tuple[ir.Type, Placement], ir.Type] = {}

    def placement_of(self, value: ir.Value) -> Placement | None:
        kind = value.type
        if kind not in self._read:
            self._read[kind] = placement_of(kind, self._meshes, value.location)
        return self._read[kind]

    def place_as(
        self, values: Iterable[ir.Value], lies: Callable[[Placement | None], Placement | None]
    ) -> None:
        """Each tensor lies as that says of where it lay; None: it stays."""
        became: dict[ir.Type, ir.Type | None] = {}
        for value in values:
            kind = value.type
            if kind not in became:
                placement = lies(self.placement_of(value)) if is_tensor(kind) else None
                became[kind] = with_placement(kind, placement) if placement is not None else None
            if (other := became[kind]) is not None:
                _set_type(value, other)

    def place(self, value: ir.Value, placement: Placement) -> None:
        key = value.type, placement
        if key not in self._made:
            self._made[key] = with_placement(*key)
        _set_type(value, self._made[key])


def place(value: ir.Value, placement: Placement | None) -> None:
    """The value lies so."""
    _set_type(value, with_placement(value.type, placement))


def _set_type(value: ir.Value, kind: ir.Type) -> None:
    """A constant says it of its number, too."""
    value.set_type(kind)
    if not isinstance(value.owner, ir.Block) and value.owner.operation.name == "arith.constant":
        fit_constant(value.owner.operation)


def fit_constant(op: ir.Operation) -> None:
    """The number of a constant tensor gets the type of its result."""
    dense, kind = ir.DenseElementsAttr(op.attributes["value"]), op.results[0].type
    if dense.is_splat:
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, dense.get_splat_value())
    else:
        numbers: Any = np.array(dense)
        with ir.Location.unknown(op.context):
            op.attributes["value"] = ir.DenseElementsAttr.get(numbers, type=kind)


def values_in(op: ir.Operation) -> Iterator[ir.Value]:
    """Every value inside: results and arguments of blocks; not the numbers in bodies of linalg."""
    yield from op.results
    if not len(op.regions) or op.name.startswith("linalg."):
        return
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments
            for view in block.operations:
                yield from values_in(view.operation)


def has_placements(module: ir.Operation) -> bool:
    """Whether anything of the dialect stands in the module."""
    if any(view.operation.name == MESH for view in module.regions[0].blocks[0].operations):
        return True
    return any(
        is_tensor(value.type) and str(value.type.encoding).startswith(_ON)
        for value in values_in(module)
    )


def settle_signature(function: ir.Operation) -> None:
    """The function's type, after its block's arguments and what it returns."""
    block = function.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1].operation
    with function.context:
        kind = ir.FunctionType.get(
            [a.type for a in block.arguments], [v.type for v in last.operands]
        )
        function.attributes["function_type"] = ir.TypeAttr.get(kind)


def erase_placements(module: ir.Operation) -> None:
    """The sequential program: no mesh, no move, no placement in a type."""
    if not has_placements(module):
        return
    for op in list(operations_in(module)):
        if op.name in MOVES:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        elif op.name == MESH:
            op.erase()
    for value in list(values_in(module)):
        if is_tensor(value.type) and value.type.encoding is not None:
            place(value, None)
    for function in functions_of(module):
        if len(function.regions[0].blocks) == 1:
            settle_signature(function)
