"""What is known of innermost loops, in LLVM's words.

Loops with marks -> loops with a marking operation inside, which survives on the way to LLVM's
dialect; there -> annotations of the loop and of what it loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.attributes import INDEPENDENT, ROLLED, SAFELEN
from avial_lab.compiler.ir.operations import LOOPS, operations_named

MARKS = (INDEPENDENT, SAFELEN, ROLLED)
CALL, INTRINSIC = "llvm.call_intrinsic", "llvm.sideeffect"


@dataclass(frozen=True)
class KeepIndependent:
    """Put the mark of a loop into its body, as lowerings drop what stands on loops.

    before:  affine.for %j … { … } {avial.independent}
    after:   affine.for %j … { …  llvm.call_intrinsic "llvm.sideeffect"() {avial.independent} }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            call = {"intrin": ir.StringAttr.get(INTRINSIC)} | {
                name: ir.DenseI32ArrayAttr.get(sizes)
                for name, sizes in (("operandSegmentSizes", [0, 0]), ("op_bundle_sizes", []))
            }
            for loop in operations_named(module, *LOOPS):
                mark = {n: loop.attributes[n] for n in MARKS if n in loop.attributes}
                for name in mark:
                    del loop.attributes[name]
                body = loop.regions[0].blocks[0]
                if mark:
                    with loop.location, ir.InsertionPoint(body.operations[-1]):
                        ir.Operation.create(CALL, attributes=call | mark)

    def __str__(self) -> str:
        return "keep-independent"


@dataclass(frozen=True)
class IndependentToLlvm:
    """A loop's marking operation becomes `llvm.loop.parallel_accesses`.

    before:  llvm.call_intrinsic "llvm.sideeffect"() {avial.independent}    llvm.br ^header
    after:   llvm.br ^header {loop_annotation = …}, loads and stores {access_groups = […]}
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, CALL):
                if INDEPENDENT in op.attributes:
                    _annotate(op.block)
                elif SAFELEN in op.attributes:
                    lanes = ir.IntegerAttr(op.attributes[SAFELEN]).value
                    _annotate(op.block, f"vectorize = <width = {lanes} : i32>, {_ONE_AT_A_TIME}, ")
                elif ROLLED in op.attributes:
                    _keep_rolled(op.block)
                else:
                    continue
                op.erase()

    def __str__(self) -> str:
        return "independent-to-llvm"


def _keep_rolled(latch: ir.Block) -> None:
    jump = latch.operations[-1].operation
    said = "#llvm.loop_annotation<unroll = <disable = true>>"
    jump.attributes["loop_annotation"] = ir.Attribute.parse(said)


_ONE_AT_A_TIME = "interleave = <count = 1 : i32>"
"""Several vectors at once would be as many iterations more."""


def _annotate(latch: ir.Block, more: str = "") -> None:
    """The loop whose last block that is."""
    jump = latch.operations[-1].operation
    (header,) = jump.successors
    group = "#llvm.access_group<id = distinct[0]<>>"
    loop = f"#llvm.loop_annotation<{more}parallelAccesses = {group}>"
    said = ir.DictAttr(ir.Attribute.parse(f"{{groups = [{group}], loop = {loop}}}"))
    jump.attributes["loop_annotation"] = said["loop"]
    for block in _between(header, latch):
        for view in block.operations:
            if view.operation.name in ("llvm.load", "llvm.store"):
                view.operation.attributes["access_groups"] = said["groups"]


def _between(header: ir.Block, latch: ir.Block) -> Iterator[ir.Block]:
    """The blocks of the loop: all that leads to its last one and not through its first."""
    seen, todo = {header}, [latch]
    yield header
    while todo:
        block = todo.pop()
        if block not in seen:
            seen.add(block)
            yield block
            todo += block.predecessors
