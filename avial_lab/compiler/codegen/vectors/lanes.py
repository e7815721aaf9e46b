"""Iterations of a loop as the lanes of vectors: its body once, with vectors in place of numbers.

A loop, the strides of its values -> operations at the insertion point.

    %x = affine.load %A[%i, %j]        %x = affine.vector_load %A[%i, %first] : vector<8xf64>
    %c = affine.load %C[%q]            the same, and %cs = vector.broadcast %c
    %t = math.fma %s, %x, %c           %t = math.fma %s, %x, %cs : vector<8xf64>
    affine.store %t, %B[%j, 2]         affine.store %t[k], %B[%first + k, 2] for each lane k
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import affine, arith, vector

from avial_lab.compiler.codegen.contractions.contraction import on_vectors, spread
from avial_lab.compiler.codegen.vectors.lane_strides import IFS, WHILE, Strides, ends_of
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.operations import attributes_of


@dataclass
class LaneCode:
    """Writes the body of a loop for `lanes` iterations at once, the first of them that of
    `variable`.

    A value is known by what it is in the first lane, where that says all of the others, or else as
    a vector.
    """

    strides: Strides
    lanes: int
    variable: ir.Value
    _first: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _vectors: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def write(self) -> None:
        block = self.strides.loop.regions[0].blocks[0]
        self._first[block.arguments[0]] = self.variable
        self._block(block)

    # -- values

    def _is_vector(self, value: ir.Value) -> bool:
        return self.strides.of(value) is None

    def _in_first(self, value: ir.Value) -> ir.Value:
        return self._first.get(value, value)

    def _vector(self, value: ir.Value) -> ir.Value:
        """Of all lanes."""
        if self._is_vector(value):
            return self._vectors[value]
        all_first = spread(self._in_first(value), self.lanes)
        stride = self.strides.of(value)
        return arith.addi(all_first, self._line(value.type, stride)) if stride else all_first

    def _line(self, kind: ir.Type, stride: int) -> ir.Value:
        """0, stride, 2 · stride, …"""
        made = ir.VectorType.get([self.lanes], kind)
        each = [ir.IntegerAttr.get(kind, lane * stride) for lane in range(self.lanes)]
        held = ir.DenseElementsAttr.get(each, made)
        return arith.ConstantOp(made, held).result  # pyright: ignore[reportArgumentType]

    def _in_lane(self, value: ir.Value, lane: int) -> ir.Value:
        if self._is_vector(value):
            return vector.ExtractOp(self._vectors[value], [], [lane]).result
        first, more = self._in_first(value), lane * (self.strides.of(value) or 0)
        if not more:
            return first
        if not isinstance(value.type, ir.IndexType):
            return arith.addi(first, arith.constant(value.type, more))
        form = ir.AffineMap.get(1, 0, [ir.AffineDimExpr.get(0) + more])
        return affine.AffineApplyOp(form, [first]).result

    def _kind(self, value: ir.Value) -> ir.Type:
        """Of what stands for it."""
        return ir.VectorType.get([self.lanes], value.type) if self._is_vector(value) else value.type

    def _as(self, value: ir.Value, like: ir.Value) -> ir.Value:
        """`value`, which becomes `like`, as that is known."""
        return self._vector(value) if self._is_vector(like) else self._in_first(value)

    def _know(self, values: Sequence[ir.Value], made: Sequence[ir.Value]) -> None:
        for value, known in zip(values, made, strict=True):
            (self._vectors if self._is_vector(value) else self._first)[value] = known

    # -- operations

    def _block(self, block: ir.Block) -> None:
        for view in list(block.operations)[:-1]:
            with view.operation.location:
                self._operation(view.operation)

    def _operation(self, op: ir.Operation) -> None:
        if op.name in FORS:
            self._loop(op)
        elif op.name == WHILE:
            self._while(op)
        elif op.name in IFS and self.strides.of(op.operands[0]) != 0:
            self._choice(op)
        elif op.name in IFS:
            self._branch(op)
        elif op.name in STORES:
            self._store(op)
        elif not self.strides.are_vectors(op):
            self._again(op)
        elif op.name in LOADS:
            self._know(op.results, [self._loaded(op)])
        elif op.name == "affine.apply":
            self._know(op.results, [self._lane_by_lane(op)])
        else:
            self._know(op.results, on_vectors(op, self._operands(op), self.lanes).results)

    def _operands(self, op: ir.Operation) -> list[ir.Value]:
        """What all lanes choose alike may stay one choice."""
        operands = list(op.operands)
        if op.name == "arith.select" and self.strides.of(operands[0]) == 0:
            return [self._in_first(operands[0]), *map(self._vector, operands[1:])]
        return [self._vector(operand) for operand in operands]

    def _again(self, op: ir.Operation) -> None:
        """The same operation in the first lane."""
        self._know(op.results, self._copy(op, map(self._in_first, op.operands)).results)

    def _copy(self, op: ir.Operation, operands: Iterable[ir.Value]) -> ir.Operation:
        copy = op.clone().operation
        for place, operand in enumerate(operands):
            copy.operands[place] = operand
        return copy

    def _lane_by_lane(self, op: ir.Operation) -> ir.Value:
        made = [
            self._copy(op, [self._in_lane(operand, lane) for operand in op.operands]).result
            for lane in range(self.lanes)
        ]
        return vector.FromElementsOp(self._kind(op.results[0]), made).result

    def _loaded(self, op: ir.Operation) -> ir.Value:
        if not self.strides.is_beside(op):
            return self._lane_by_lane(op)
        return ir.Operation.create(
            _OF_VECTORS[op.name],
            [self._kind(op.results[0])],
            list(map(self._in_first, op.operands)),
            attributes_of(op),
        ).result

    def _store(self, op: ir.Operation) -> None:
        value, *where = op.operands
        if self.strides.is_beside(op):
            operands = [self._vector(value), *map(self._in_first, where)]
            ir.Operation.create(_OF_VECTORS[op.name], [], operands, attributes_of(op))
            return
        for lane in range(self.lanes):
            self._copy(op, [self._in_lane(operand, lane) for operand in op.operands])

    # -- control

    def _loop(self, op: ir.Operation) -> None:
        """The same loop, which hands vectors on where lanes do not hand on the same."""
        count = len(op.results)
        block = op.regions[0].blocks[0]
        variable, *carried = block.arguments
        operands = list(op.operands)
        bounds, starts = operands[: len(operands) - count], operands[len(operands) - count :]
        given = [self._as(*pair) for pair in zip(starts, carried, strict=True)]
        made = ir.Operation.create(
            op.name,
            [self._kind(each) for each in carried],
            [*map(self._in_first, bounds), *given],
            attributes_of(op),
            regions=1,
        )
        inside = made.regions[0].blocks.append(
            variable.type,
            *(value.type for value in given),
            arg_locs=[each.location for each in block.arguments],
        )
        self._know([variable, *carried], list(inside.arguments))
        with ir.InsertionPoint(inside):
            self._block(block)
            end = block.operations[len(block.operations) - 1].operation
            handed = [self._as(*pair) for pair in zip(end.operands, carried, strict=True)]
            ir.Operation.create(end.name, operands=handed)
        self._know(op.results, made.results)

    def _while(self, op: ir.Operation) -> None:
        """The same loop; where lanes end at different times it goes on as long as one of them does,
        and hands what the others have on to them again, so that they end again.
        """
        before, after = (region.blocks[0] for region in op.regions)
        end = before.operations[len(before.operations) - 1].operation
        said = end.operands[0]
        alike = self.strides.of(said) == 0
        given = [self._as(*pair) for pair in zip(op.operands, before.arguments, strict=True)]
        mask = ir.VectorType.get([self.lanes], said.type)
        kept = [] if alike else [*(value.type for value in given), mask]
        kinds = [*map(self._kind, op.results), *kept]
        made = ir.Operation.create(op.name, kinds, given, attributes_of(op), regions=2)
        asked, done = (
            region.blocks.append(*each, arg_locs=[op.location] * len(each))
            for region, each in zip(
                made.regions, ([value.type for value in given], kinds), strict=True
            )
        )
        self._know(before.arguments, list(asked.arguments))
        with ir.InsertionPoint(asked):
            self._block(before)
            pairs = zip(list(end.operands)[1:], op.results, strict=True)
            handed = [self._as(*pair) for pair in pairs]
            if alike:
                ir.Operation.create(end.name, operands=[self._in_first(said), *handed])
            else:
                goes_on = self._vector(said)
                one = vector.ReductionOp(said.type, vector.CombiningKind.OR, goes_on).result
                old = list(asked.arguments)
                ir.Operation.create(end.name, operands=[one, *handed, *old, goes_on])
        inside = list(done.arguments)
        self._know(after.arguments, inside[: len(handed)])
        with ir.InsertionPoint(done):
            self._block(after)
            ends = zip(ends_of(op)[1], before.arguments, strict=True)
            new = [self._as(*pair) for pair in ends]
            if not alike:
                *old, goes_on = inside[len(handed) :]
                pairs = zip(new, old, strict=True)
                new = [arith.select(goes_on, *pair) for pair in pairs]
            ir.Operation.create("scf.yield", operands=new)
        self._know(op.results, list(made.results)[: len(op.results)])

    def _branch(self, op: ir.Operation) -> None:
        """The same branch, which all lanes take."""
        made = ir.Operation.create(
            op.name,
            [self._kind(result) for result in op.results],
            list(map(self._in_first, op.operands)),
            attributes_of(op),
            regions=len(op.regions),
        )
        for old, new in zip(op.regions, made.regions, strict=True):
            for block in old.blocks:
                end = block.operations[len(block.operations) - 1].operation
                with ir.InsertionPoint(new.blocks.append()):
                    self._block(block)
                    given = zip(end.operands, op.results, strict=True)
                    ir.Operation.create(end.name, operands=[self._as(*pair) for pair in given])
        self._know(op.results, made.results)

    def _choice(self, op: ir.Operation) -> None:
        """Both branches for all lanes, of which each takes what its own gives."""
        for region in op.regions:
            self._block(region.blocks[0])
        chosen = self._vector(op.operands[0])
        pairs = zip(*(map(self._vector, ends) for ends in ends_of(op)), strict=True)
        self._know(op.results, [arith.select(chosen, *pair) for pair in pairs])


_OF_VECTORS = {
    "affine.load": "affine.vector_load",
    "affine.store": "affine.vector_store",
    "memref.load": "vector.load",
    "memref.store": "vector.store",
}
