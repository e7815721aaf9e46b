"""Which dimensions of a function's tensors are the same loop: batches, features, hidden units.

Function -> classes of (value, dimension): two are in one where an operation runs one loop over
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.placements.reading import Reading
from avial_lab.compiler.ir.placements import MOVES, is_tensor

Dimension = tuple[ir.Value, int]


@dataclass
class DimensionClasses:
    """Union-find (Tarjan 1975, without ranks: there are few); what it read for that."""

    parents: dict[Dimension, Dimension] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)

    @staticmethod
    def of(function: ir.Operation) -> DimensionClasses:
        classes = DimensionClasses()
        for view in function.regions[0].blocks[0].operations:
            classes._read(view.operation)
        return classes

    def _read(self, op: ir.Operation) -> None:
        if op.name in MOVES:
            for d in range(op.operands[0].type.rank):
                self._join((op.operands[0], d), (op.results[0], d))
            return
        loops = self.reading.loops(op)
        first: dict[int, Dimension] = {}
        pairs = (
            *zip(op.operands, loops.operands, strict=True),
            *zip(op.results, loops.results, strict=True),
        )
        for value, dims in pairs:
            for d, loop in enumerate(dims) if is_tensor(value.type) else ():
                if loop is not None:
                    self._join(first.setdefault(loop, (value, d)), (value, d))

    def root(self, dimension: Dimension) -> Dimension:
        while (parent := self.parents.get(dimension, dimension)) != dimension:
            dimension = parent
        return dimension

    def _join(self, a: Dimension, b: Dimension) -> None:
        a, b = self.root(a), self.root(b)
        if a != b:
            self.parents[b] = a

    def dimensions_like(
        self, dimension: Dimension, values: Sequence[ir.Value]
    ) -> dict[ir.Value, int]:
        """Those of `values` with a dimension in the same class, and the first such dimension."""
        root = self.root(dimension)
        found: dict[ir.Value, int] = {}
        for value in values:
            for d in range(value.type.rank) if is_tensor(value.type) else ():
                if value not in found and self.root((value, d)) == root:
                    found[value] = d
        return found
