"""Which arrays hang on a floating-point sum whose order is not the program's.

Structured program, the tasks that reorder sums -> storages with the number of terms; everything
else is equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from mlir import ir

from avial_lab.accesses.buffers import program_buffers
from avial_lab.accesses.views import is_memref, view_chain
from avial_lab.arrays import Binding
from avial_lab.dialects.avial import buffer_of, operand_segments
from avial_lab.dialects.program import program_function

WORK = ("avial.replicate", "avial.task")
TERMS = "avial.reordered"
"""On a replicate: where several ranks share it, it combines floating-point sums or products of so
many terms in its own order.
"""

FAR = 2**40
"""Stands for a number of terms that is not known when the program is compiled."""


def reordered_storages(
    structured: ir.Operation, binding: Binding | None, *, divided: bool, sums: Mapping[str, int]
) -> dict[str, int]:
    """The storages that such a sum reaches, through arrays and numbers between the loops.

    `divided`: several ranks share the replicates. `sums`: the tasks, or loops around tasks, in
    which the terms of a sum, so many at most, are added in another order on one rank, too. How many
    there are is not always known; then it is taken to be no more than the largest array has
    elements.
    """
    function = program_function(structured)
    roots, _ = program_buffers(function, binding)
    names = {value: buffer.storage for value, buffer in roots.items()}
    largest = max((prod(buffer.shape) for buffer in roots.values()), default=1)
    flow = _Flow(names, divided=divided, sums=sums, most=largest)
    # A loop around brings later values back to earlier operations: until nothing is new.
    while flow.walk(function):
        pass
    return flow.storages


class _Flow:
    """Terms by storage, and by value of the code between the tasks."""

    def __init__(
        self, names: Mapping[ir.Value, str], *, divided: bool, sums: Mapping[str, int], most: int
    ) -> None:
        self._names, self._divided, self._sums, self._most = names, divided, sums, most
        self.storages: dict[str, int] = {}
        self._values: dict[ir.Value, int] = {}

    def walk(self, op: ir.Operation) -> bool:
        """Follow one step further; whether anything was found."""
        before = len(self.storages), len(self._values)
        for region in op.regions:
            for block in region.blocks:
                for view in block.operations:
                    self._visit(view.operation)
        return before != (len(self.storages), len(self._values))

    def _visit(self, op: ir.Operation) -> None:
        if op.name in WORK:
            self._work(op)
            return
        self.walk(op)
        memrefs = [name for operand in op.operands if (name := self._storage(operand))]
        terms = sum(self._values.get(operand, 0) for operand in op.operands)
        terms += sum(self._values.get(v, 0) for v in _handed_on(op))
        if op.name.endswith(".load"):
            terms += sum(self.storages.get(name, 0) for name in memrefs)
        if not terms:
            return
        if op.name.endswith(".store"):
            self._reach(memrefs, terms)
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)):
            if not is_memref(value):
                self._values.setdefault(value, terms)

    def _work(self, op: ir.Operation) -> None:
        _, reads, writes, _ = operand_segments(op)
        operands = list(op.operands)
        read = [self._storage(value) for value in operands[1 : 1 + reads]]
        written = [self._storage(value) for value in operands[1 + reads : 1 + reads + writes]]
        if self._divided and TERMS in op.attributes:
            own = ir.IntegerAttr(op.attributes[TERMS]).value
            places = ir.DenseI64ArrayAttr(op.attributes["avial.reduced"])
            self._reach([self._storage(operands[place]) for place in places], own)
        terms = self._own_terms(op)
        terms += sum(self.storages.get(name, 0) for name in set(read) if name)
        terms += sum(self._values.get(value, 0) for value in set(_used_in(op)))
        if terms:
            self._reach(written, terms)

    def _own_terms(self, op: ir.Operation | None) -> int:
        """Of the sums in a task; phases that were fused later go by the name of their loop."""
        while op is not None and op.name != "avial.schedule":
            if op.name in (*WORK, "avial.converge"):
                terms = self._sums.get(ir.StringAttr(op.attributes["name"]).value, 0)
                if terms:
                    return terms
            around = op.parent
            op = around.operation if around is not None else None
        return 0

    def _reach(self, names: Sequence[str | None], terms: int) -> None:
        for name in names:
            if name is not None:
                self.storages.setdefault(name, terms if terms < FAR else self._most)

    def _storage(self, value: ir.Value) -> str | None:
        value = buffer_of(value)
        return self._names.get(view_chain(value)[-1]) if is_memref(value) else None


def _handed_on(op: ir.Operation) -> Iterator[ir.Value]:
    """What its regions yield to it."""
    for region in op.regions:
        for block in region.blocks:
            yield from block.operations[-1].operation.operands


def _used_in(op: ir.Operation) -> Iterator[ir.Value]:
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield from view.operation.operands
                yield from _used_in(view.operation)
