"""Values from outside that a region uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.views import VIEWS


@dataclass
class Captured:
    """What a part of a program uses from outside: `arguments` in order of first use, and a `chain`
    of constants, views and index arithmetic that is repeated inside.
    """

    arguments: list[ir.Value] = field(default_factory=list)
    chain: list[ir.Operation] = field(default_factory=list)
    _seen: set[ir.Value] = field(default_factory=set)

    @staticmethod
    def by(operations: Iterable[ir.Operation]) -> Captured:
        """What these, an operation before those in it, use of others."""
        captured = Captured()
        inside: set[ir.Value] = set()
        for inner in operations:
            for region in inner.regions:
                for block in region.blocks:
                    inside.update(block.arguments)
            for operand in inner.operands:
                if operand not in inside:
                    captured._add(operand)
            inside.update(inner.results)
        return captured

    def _add(self, value: ir.Value) -> None:
        if value in self._seen:
            return
        self._seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block) or not _repeated(owner.operation):
            self.arguments.append(value)
            return
        for operand in owner.operation.operands:
            self._add(operand)
        if owner.operation not in self.chain:
            self.chain.append(owner.operation)


def _repeated(op: ir.Operation) -> bool:
    """Whether it costs nothing, or says how numbers that are passed hang together."""
    return op.name in VIEWS or op.name in (
        "affine.apply",
        "affine.max",
        "affine.min",
        "arith.constant",
        "complex.constant",
        "memref.dim",
        "memref.get_global",
        "ub.poison",
    )


def used_by(op: ir.Operation) -> Iterator[ir.Value]:
    """Operands, and what regions use from outside."""
    yield from op.operands
    yield from used_inside(op)


def used_inside(op: ir.Operation) -> list[ir.Value]:
    """What regions use from outside."""
    if not len(op.regions):
        return []
    inside: set[ir.Value] = set(op.results)
    used: list[ir.Value] = []
    _read_regions(op, inside, used)
    return [value for value in used if value not in inside]


def _read_regions(op: ir.Operation, inside: set[ir.Value], used: list[ir.Value]) -> None:
    """Outer before inner, in program order: what is made there, and what is used."""
    for region in op.regions:
        for block in region.blocks:
            inside.update(block.arguments)
            for view in block.operations:
                inner = view.operation
                used += inner.operands
                inside.update(inner.results)
                if len(inner.regions):
                    _read_regions(inner, inside, used)


def tensors_captured(op: ir.Operation) -> list[ir.Value]:
    """The tensors from outside that regions of an operation read, element by element: a gather's
    table.
    """
    tensors = (v for v in used_inside(op) if isinstance(v.type, ir.RankedTensorType))
    return list(dict.fromkeys(tensors))


def replace_captured(op: ir.Operation, old: ir.Value, new: ir.Value) -> None:
    """Let the regions of an operation read another value."""
    for inner in operations_in(op):
        remap(inner, {old: new})


def remap(op: ir.Operation, inside: dict[ir.Value, ir.Value]) -> None:
    for k, operand in enumerate(op.operands):
        replacement = inside.get(operand)
        if replacement is not None:
            op.operands[k] = replacement
