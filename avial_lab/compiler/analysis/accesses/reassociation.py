"""Which arrays hang on a floating-point sum whose order is not the program's.

Structured program, the tasks that reorder sums -> storages with the number of terms; everything
else is equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from mlir import ir

from avial_lab.compiler.analysis.accesses.buffers import program_buffers
from avial_lab.compiler.analysis.polyhedral.trip_counts import FAR
from avial_lab.compiler.ir.dialects.avial import buffer_of, operand_segments
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.views import defining, is_memref, view_chain
from avial_lab.core.buffers import Binding

WORK = ("avial.replicate", "avial.task")
TERMS = "avial.reordered"
"""On a replicate: it combines floating-point sums or products of so many terms in its own order;
one that is `avial.reduced` where several ranks share it.
"""


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


Sums = frozenset[str]
"""Names of the tasks whose sums something hangs on."""


class _Flow:
    """Sums by storage, and by value of the code between the tasks; the terms of each."""

    def __init__(
        self, names: Mapping[ir.Value, str], *, divided: bool, sums: Mapping[str, int], most: int
    ) -> None:
        self._names, self._divided, self._sums, self._most = names, divided, sums, most
        self._terms: dict[str, int] = {}
        self._storages: dict[str, Sums] = {}
        self._values: dict[ir.Value, Sums] = {}

    @property
    def storages(self) -> dict[str, int]:
        """The terms of all the sums that each storage hangs on."""
        found = {name: sum(map(self._terms.__getitem__, s)) for name, s in self._storages.items()}
        return {name: terms if terms < FAR else self._most for name, terms in found.items()}

    def walk(self, op: ir.Operation) -> bool:
        """Follow one step further; whether anything was found."""
        before = self._known()
        for region in op.regions:
            for block in region.blocks:
                for view in block.operations:
                    self._visit(view.operation)
        return before != self._known()

    def _known(self) -> int:
        return sum(map(len, self._storages.values())) + sum(map(len, self._values.values()))

    def _visit(self, op: ir.Operation) -> None:
        if op.name in WORK:
            self._work(op)
            return
        self.walk(op)
        memrefs = [name for operand in op.operands if (name := self._storage(operand))]
        sums = self._of_values((*op.operands, *_handed_on(op)))
        if op.name.endswith(".load"):
            sums |= self._of_storages(memrefs)
        if not sums:
            return
        if op.name.endswith(".store"):
            self._reach(memrefs, sums)
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)):
            if not is_memref(value):
                self._values[value] = self._values.get(value, _NONE) | sums

    def _uses(self, op: ir.Operation) -> tuple[set[str], set[str]]:
        """What a task reads and what it writes."""
        _, reads, writes, _ = operand_segments(op)
        operands = list(op.operands)[1:]
        each = (operands[:reads], operands[reads : reads + writes])
        read, written = ({n for v in values if (n := self._storage(v))} for values in each)
        # Memory made between the tasks is no operand of theirs.
        used = (v for v in _used_in(op) if is_memref(v) and defining(view_chain(v)[-1]) is not None)
        own = {n for v in used if (n := self._storage(v))} - read - written
        return read | own, written | own

    def _work(self, op: ir.Operation) -> None:
        read, written = self._uses(op)
        given = self._of_storages(read) | self._of_values(_used_in(op))
        again = self._repeats(op, read & written)
        own = self._own_terms(op) * again
        if own:
            self._reach(written, self._sum_of(op, own))
        shared = "avial.reduced" in op.attributes
        if TERMS in op.attributes and (self._divided or not shared):
            combined = max(own, ir.IntegerAttr(op.attributes[TERMS]).value * again)
            reduced = (
                [self._storage(buffer) for buffer in reduced_arrays(op)] if shared else written
            )
            self._reach(reduced, self._sum_of(op, combined))
        self._reach(written, given)

    def _repeats(self, op: ir.Operation, own: set[str]) -> int:
        """How often the loops around a task may have it add to what it added to before, which is
        `own`; nobody begins that anew there. FAR where nobody knows how often.
        """
        times = 1
        around = _parent(op) if own else None
        while around is not None and around.name != "func.func":
            if around.name in _LOOPS:
                if any(self._begins_anew(each, own) for each in _steps_in(around) if each != op):
                    break
                times *= _trips(around)
            around = _parent(around)
        return min(times, FAR)

    def _begins_anew(self, op: ir.Operation, own: set[str]) -> bool:
        """Whether a task, or a store between them, writes some of it without a look at what was
        there.
        """
        if op.name not in WORK:
            return any(self._storage(value) in own for value in op.operands)
        read, written = self._uses(op)
        return bool((written - read) & own)

    def _sum_of(self, op: ir.Operation, terms: int) -> Sums:
        name = ir.StringAttr(op.attributes["name"]).value
        self._terms[name] = max(terms, self._terms.get(name, 0))
        return frozenset([name])

    def _of_storages(self, names: Iterable[str | None]) -> Sums:
        return _NONE.union(*(self._storages.get(name, _NONE) for name in names if name))

    def _of_values(self, values: Iterable[ir.Value]) -> Sums:
        return _NONE.union(*(self._values.get(value, _NONE) for value in values))

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

    def _reach(self, names: Iterable[str | None], sums: Sums) -> None:
        for name in names:
            if name is not None and sums:
                self._storages[name] = self._storages.get(name, _NONE) | sums

    def _storage(self, value: ir.Value) -> str | None:
        value = buffer_of(value)
        return self._names.get(view_chain(value)[-1]) if is_memref(value) else None


_NONE: Sums = frozenset()
_LOOPS = ("affine.for", "scf.for", "scf.while")


def _parent(op: ir.Operation) -> ir.Operation | None:
    return op.parent.operation if op.parent is not None else None


def _steps_in(op: ir.Operation) -> Iterator[ir.Operation]:
    """The tasks in it, and the stores between them."""
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if inner.name in WORK or inner.name.endswith(".store"):
                    yield inner
                else:
                    yield from _steps_in(inner)


def _trips(loop: ir.Operation) -> int:
    """How often it goes round, where its text says so; else FAR."""
    if loop.name != "affine.for":
        return FAR
    forms = (ir.AffineMapAttr(loop.attributes[name]).value for name in _BOUNDS)
    ends = [each for form in forms for each in form.results]
    if len(ends) != 2 or not all(isinstance(each, ir.AffineConstantExpr) for each in ends):
        return FAR
    low, high = (ir.AffineConstantExpr(each).value for each in ends)
    return max(0, -(-(high - low) // ir.IntegerAttr(loop.attributes["step"]).value))


_BOUNDS = ("lowerBoundMap", "upperBoundMap")


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
