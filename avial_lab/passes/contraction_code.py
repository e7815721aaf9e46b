"""The pieces of a contraction as code: its values for one iteration, its elements' places.

Contraction, values of its loops' variables -> copies of its operations at the insertion point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, memref, vector

from avial_lab.passes.operations import attributes_of
from avial_lab.polyhedra.contractions import Contraction
from avial_lab.polyhedra.model import Loop
from avial_lab.polyhedra.nesting import defined_in

Values = Mapping[str, ir.Value]
"""By name: of loops' variables and of parameters."""


@dataclass(frozen=True)
class ContractionCode:
    """`root` is the nest that the contraction stands in."""

    root: ir.Operation
    found: Contraction

    @property
    def row(self) -> Loop:
        return self.found.unit.loops[self.found.roles.row]

    @property
    def column(self) -> Loop:
        return self.found.unit.loops[self.found.roles.column]

    @property
    def term(self) -> Loop:
        return self.found.unit.loops[self.found.roles.term]

    @property
    def around(self) -> tuple[Loop, ...]:
        return tuple(self.found.unit.loops[k] for k in self.found.roles.around)

    @property
    def array(self) -> ir.Value:
        """What the elements are stored to."""
        return self.found.store.op.operands[1]

    def computed(self, wanted: Sequence[ir.Value], at: Values) -> list[ir.Value]:
        """Copies of what computes `wanted` in the iteration `at`."""
        inside: dict[ir.Value, ir.Value] = {}
        for loop in self.found.unit.loops:
            if loop.name in at:
                inside[loop.op.regions[0].blocks[0].arguments[loop.dimension]] = at[loop.name]

        def copy(value: ir.Value) -> ir.Value:
            if value in inside or not defined_in(self.root, value):
                return inside.get(value, value)
            op = value.owner.operation
            operands = [copy(operand) for operand in op.operands]
            with op.location:
                made = _again(op, operands)
            inside.update(zip(op.results, made.results, strict=True))
            return inside[value]

        return [copy(value) for value in wanted]

    def place(self, at: Values) -> list[ir.Value]:
        """The subscripts of the element of the iteration `at`."""
        store = self.found.store.op
        return _subscripts(store, self.computed(list(store.operands)[2:], at))

    def combined(self, known: dict[ir.Value, ir.Value], at: Values, lanes: int) -> ir.Value:
        """The inner operations on vectors of so many elements; `known` are those of their
        operands.
        """
        for op in self.found.inner:
            for operand in op.operands:
                if operand not in known:
                    known[operand] = spread(self.computed([operand], at)[0], lanes)
            made = ir.Operation.create(
                op.name,
                results=[ir.VectorType.get([lanes], result.type) for result in op.results],
                operands=[known[operand] for operand in op.operands],
                attributes=attributes_of(op),
                loc=op.location,
            )
            known.update(zip(op.results, made.results, strict=True))
        return known[self.found.stored]


def spread(value: ir.Value, lanes: int) -> ir.Value:
    """A number as a vector of it."""
    return vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result


def _again(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Operation:
    """The same operation on these operands."""
    if op.name == "affine.load":  # its subscripts would have to be variables of affine.for
        return memref.LoadOp(operands[0], _subscripts(op, operands[1:])).operation
    made = op.clone().operation
    for k, operand in enumerate(operands):
        made.operands[k] = operand
    return made


def _subscripts(op: ir.Operation, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """Of a load or store with these index operands."""
    if not op.name.startswith("affine."):
        return list(operands)
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    each = [ir.AffineMap.get(map_.n_dims, map_.n_symbols, [form]) for form in map_.results]
    return [affine.AffineApplyOp(one, operands).result for one in each]
