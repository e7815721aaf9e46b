"""Which functions' arrays share no memory.

Module whose entry calls functions on its arrays -> the same, those functions marked.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from itertools import combinations

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import ALLOCATIONS
from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.views import defining, is_memref, view_chain
from avial_lab.core.regions import Box, box_between


@dataclass(frozen=True)
class NoAlias:
    """Mark a private function where every call gives it arrays that the entry, or a function with
    the mark, was given as several, or made anew.

    before:  func.func private @S1(%A, %B)               call @S1(%a, %b)  call @S2(%a, %a)
    after:   func.func private @S1(%A, %B) {avial.no_alias}

    Parts of one array are different memory where they are boxes without a common element.

    Arrays of the caller that overlap are one array of the entry.
    """

    def __call__(self, module: ir.Operation) -> None:
        entry = program_function(module)
        given = set(entry.regions[0].blocks[0].arguments)
        calls: dict[str, list[ir.Operation]] = {}
        for op in operations_in(module):
            if op.name == "func.call":
                name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                calls.setdefault(name, []).append(op)
        functions = {
            text_attribute(op, "sym_name"): op
            for op in functions_in(module)
            if op != entry and len(op.regions[0].blocks)
        }
        waiting = [name for name in functions if name in calls]
        while found := [n for n in waiting if all(_are_disjoint(c, given) for c in calls[n])]:
            for name in found:  # what they call has their arrays, which are several
                functions[name].attributes[NO_ALIAS] = ir.UnitAttr.get(module.context)
                given.update(functions[name].regions[0].blocks[0].arguments)
                waiting.remove(name)

    def __str__(self) -> str:
        return "no-alias"


def _are_disjoint(call: ir.Operation, given: Set[object]) -> bool:
    parts = [_part(operand) for operand in call.operands if is_memref(operand)]
    if not all(root in given or _is_new(root) for root, _ in parts):
        return False
    return not any(_may_meet(one, other) for one, other in combinations(parts, 2))


def _part(array: ir.Value) -> tuple[ir.Value, Box | None]:
    """The array it is a part of, and that part of it, where it is a box whose text says it all."""
    root = view_chain(array)[-1]
    op = defining(array)
    while op is not None and op.name == "memref.cast":
        array, op = op.operands[0], defining(op.operands[0])
    if op is None or op.name != "memref.subview" or list(op.operands) != [root]:
        return root, None
    cut = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{word}"])) for word in _CUT)
    return root, box_between(*cut)


_CUT = ("offsets", "sizes", "strides")


def _may_meet(one: tuple[ir.Value, Box | None], other: tuple[ir.Value, Box | None]) -> bool:
    (root, box), (other_root, other_box) = one, other
    if root != other_root:
        return False
    return box is None or other_box is None or box.overlaps(other_box)


def _is_new(root: ir.Value) -> bool:
    """Whether it is memory that nobody has but through it."""
    return not isinstance(root.owner, ir.Block) and root.owner.operation.name in ALLOCATIONS
