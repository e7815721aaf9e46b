"""Elements of arrays as affine operations name them: memory, subscripts and their map."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir


@dataclass(frozen=True)
class Element:
    """A place in memory, as affine operations name it."""

    memory: ir.Value
    subscripts: tuple[ir.Value, ...]
    form: ir.Attribute

    def load(self) -> ir.Value:
        kind = ir.MemRefType(self.memory.type).element_type
        operands = [self.memory, *self.subscripts]
        return ir.Operation.create("affine.load", [kind], operands, {"map": self.form}).result

    def store(self, value: ir.Value) -> None:
        operands = [value, self.memory, *self.subscripts]
        ir.Operation.create("affine.store", [], operands, {"map": self.form})


def element_of(load: ir.Operation) -> Element:
    """What an affine.load is of."""
    memory, *subscripts = load.operands
    return Element(memory, tuple(subscripts), load.attributes["map"])
