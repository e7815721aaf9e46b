"""Operations and types as several passes need them: what lies inside, how wide an element is.

MLIR objects -> MLIR objects and numbers. Read only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir, rewrite

from avial_lab.compiler.ir.nesting import holds
from avial_lab.core.element_types import ITEMSIZE


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


def operations_in(op: ir.Operation) -> Iterator[ir.Operation]:
    """All operations inside `op`, outer before inner, in program order.

    The one that is handed out may be erased or moved: the next is known already.
    """
    for region in op.regions:
        for block in region.blocks:
            for view in list(block.operations):
                inner = view.operation
                if len(inner.regions):
                    yield from _with_all_inside(inner)
                else:
                    yield inner  # most are


def _with_all_inside(op: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    append, on = found.append, ir.WalkResult.ADVANCE  # looked up once: there are thousands

    def take(inner: ir.Operation) -> ir.WalkResult:
        append(inner)
        return on

    op.walk(take, ir.WalkOrder.PRE_ORDER)
    return found


LOOPS = ("affine.for", "affine.parallel", "scf.for", "scf.parallel")
"""Loops of which it is known when they begin how often they run."""


def loops_in(op: ir.Operation, names: Sequence[str] = LOOPS) -> list[ir.Operation]:
    """All loops inside `op`, outer before inner, in program order."""
    nests: list[list[ir.Operation]] = []
    for loop in operations_named(op, *names):
        inside: list[ir.Operation] = []
        while nests and holds(loop, nests[-1][0]):
            inside = nests.pop() + inside
        nests.append([loop, *inside])
    return [loop for nest in nests for loop in nest]


def operations_named(op: ir.Operation, *names: str) -> list[ir.Operation]:
    """All operations of these names inside `op`, inner before outer, otherwise in program order.

    MLIR looks for them by itself, many times as fast as one by one from here.
    """
    found: list[ir.Operation] = []

    def take(inner: ir.Operation, _: rewrite.PatternRewriter) -> bool:
        found.append(inner.operation)
        return True  # matches nothing: the operation stays as it is

    with op.context:
        patterns = rewrite.RewritePatternSet()
        for name in names:
            patterns.add(name, take)
        rewrite.walk_and_apply_patterns(op, patterns.freeze())
    return found


def functions_in(module: ir.Operation) -> list[ir.Operation]:
    """The functions of a module, without a look into them."""
    tops = [view.operation for view in module.regions[0].blocks[0].operations]
    return [op for op in tops if op.name == "func.func"]


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Its attributes, inherent ones too, to make another operation with."""
    return {name: op.attributes[name] for name in op.attributes}


def replaced(
    op: ir.Operation,
    name: str,
    operands: Sequence[ir.Value],
    attributes: Mapping[str, ir.Attribute],
) -> None:
    """Put an operation without regions that has the same results in its place."""
    made = ir.Operation.create(
        name,
        [result.type for result in op.results],
        operands,
        attributes=dict(attributes),
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def constant_of(value: ir.Value) -> int | None:
    """The integer that it is in the text."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    return integer_of(value.owner.operation.attributes["value"])


def condition_of(attribute: ir.Attribute) -> tuple[list[bool], ir.AffineMap]:
    """Whether each part of an affine condition is an equation (else: at least 0), and their left
    sides: read as it prints, since the bindings do not hand out the set behind the attribute.

    `affine_set<(d0) : (d0 - 1 >= 0, d0 == 0)>` -> [False, True], `(d0) -> (d0 - 1, d0)`
    """
    head, _, body = str(attribute).removeprefix("affine_set<").removesuffix(")>").partition(" : (")
    parts = [part.rsplit(maxsplit=2) for part in body.split(",")]
    text = f"affine_map<{head} -> ({', '.join(left for left, _, _ in parts)})>"
    form = ir.AffineMapAttr(ir.Attribute.parse(text, attribute.context)).value
    return [sign == "==" for _, sign, _ in parts], form


def integer_of(attribute: ir.Attribute) -> int | None:
    """The number that it holds, of any width; None where it holds none. (`IntegerAttr.value` ends
    the process at one of more than 64 bits.)
    """
    if not isinstance(attribute, ir.IntegerAttr):
        return None
    kind = attribute.type
    if isinstance(kind, ir.IntegerType) and kind.width > 64:
        return int(str(attribute).partition(" : ")[0])
    return attribute.value


def arrays_of(op: ir.Operation) -> list[ir.MemRefType]:
    """The types of the arrays that are used in it."""
    used = {value for inner in operations_in(op) for value in inner.operands}
    return [value.type for value in used if isinstance(value.type, ir.MemRefType)]


def lies_whole(kind: ir.MemRefType) -> bool:
    """Whether its elements lie side by side, from the first on, the last subscript the fastest."""
    return kind.affine_map == ir.AffineMap.get_identity(kind.rank)


def nbytes_of(kind: ir.MemRefType) -> int:
    """Of an array whose extents are known."""
    return math.prod(kind.shape) * itemsize_of(kind.element_type)


def itemsize_of(element: ir.Type) -> int:
    """Bytes of one element in memory."""
    known = ITEMSIZE.get(str(element))
    if known is not None:
        return known
    if isinstance(element, ir.VectorType):
        count = 1
        for extent in element.shape:
            count *= extent
        return count * itemsize_of(element.element_type)
    # An integer of an odd width takes the bytes of the next power of two.
    width = (element.width + 7) // 8
    return 1 << (width - 1).bit_length()


def element_of(load: ir.Operation) -> Element:
    """What an affine.load is of."""
    memory, *subscripts = load.operands
    return Element(memory, tuple(subscripts), load.attributes["map"])
