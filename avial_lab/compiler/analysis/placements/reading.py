"""What the operations of a function say, read once: the walks of a pass ask for the same.

Operation -> its loops, the values that it uses, whether its result may lie as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.placements.check import may_be_free
from avial_lab.compiler.analysis.placements.split_loops import KnownMaps, Loops, loops_of
from avial_lab.compiler.ir.captures import replace_captured, used_inside
from avial_lab.compiler.ir.placements import is_tensor


@dataclass
class Reading:
    """Operations are known by their first results, as the hash of an operation changes with its
    operands: none may be erased while this is in use.
    """

    _loops: dict[ir.Value, Loops] = field(default_factory=dict)
    _inside: dict[ir.Value, Sequence[ir.Value]] = field(default_factory=dict)
    _maps: KnownMaps = field(default_factory=dict)

    def loops(self, op: ir.Operation) -> Loops:
        if not len(op.results):
            return loops_of(op)
        key = op.results[0]
        found = self._loops.get(key)
        if found is None:
            found = self._loops[key] = loops_of(op, self._maps)
        return found

    def used(self, op: ir.Operation) -> tuple[ir.Value, ...]:
        """Operands, and what regions use from outside."""
        return (*op.operands, *self._used_inside(op))

    def captured(self, op: ir.Operation) -> list[ir.Value]:
        """The tensors from outside that its regions read."""
        inside = self._used_inside(op)
        return list(dict.fromkeys(v for v in inside if is_tensor(v.type))) if inside else []

    def replace_captured(self, op: ir.Operation, old: ir.Value, new: ir.Value) -> None:
        """Let the regions of an operation read another value."""
        replace_captured(op, old, new)
        self._inside.pop(op.results[0], None)

    def is_free(self, op: ir.Operation) -> bool:
        """As of `check`."""
        return may_be_free(op, self.loops(op)) and not self.captured(op)

    def _used_inside(self, op: ir.Operation) -> Sequence[ir.Value]:
        if not len(op.regions) or not len(op.results):
            return used_inside(op)
        key = op.results[0]
        found = self._inside.get(key)
        if found is None:
            found = self._inside[key] = used_inside(op)
        return found
