"""Scratch arrays of the caller become memory of each iteration, where they alone keep a loop whole.

Function of loops -> the same values, with loops whose iterations do not share what they scratch on.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.analysis.parallelism.partition import unsplit
from avial_lab.compiler.analysis.parallelism.scratch import Scratch, scratch
from avial_lab.compiler.codegen.loops.index_arithmetic import open_sizes
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.passes.host.copies_to_loops import CopiesToLoops

MOST = 64
"""Loops of one function that are treated at most."""


@dataclass(frozen=True)
class PrivatiseScratch:
    """The last iteration leaves in the caller's array what it would have left there.

    before:  affine.for %r = 0 to %n { … store %x, %sum[%p] … load %sum[%p] … }
    after:   affine.for %r = 0 to %n {
               %own = memref.alloca() : memref<8xf64>
               … store %x, %own[%p] … load %own[%p] …
               scf.if (%r + 1 >= %n) { %own copied to %sum }
             }

    Where the last iteration does not write every element, it copies the array to its own first.
    """

    def __call__(self, module: ir.Operation) -> None:
        changed = False
        with module.context:
            for op in [op for op in operations_in(module) if op.name == "func.func"]:
                if [len(region.blocks) for region in op.regions] == [1]:
                    changed |= _all_of(op)
            if changed:
                CopiesToLoops()(module)

    def __str__(self) -> str:
        return "privatise-scratch"


def _all_of(function: ir.Operation) -> bool:
    count = 0
    while count < MOST and _one_of(function):
        count += 1
    return count > 0


def _one_of(function: ir.Operation) -> bool:
    """Treat the first loop that has scratch arrays; whether there was one."""
    for nest, splitter in unsplit(function):
        arrays = scratch(nest, splitter)
        if arrays:
            _privatise(nest.op, arrays)
            return True
    return False


def _privatise(loop: ir.Operation, arrays: tuple[Scratch, ...]) -> None:
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop), loop.location:
        past = _upper_bound(loop)
    inside = list(operations_in(loop))
    with ir.InsertionPoint.at_block_begin(body), loop.location:
        is_last = _is_last(loop, past)
        owns = [_own(each, is_last) for each in arrays]
    for each, own in zip(arrays, owns, strict=True):
        for op in inside:
            for k, operand in enumerate(op.operands):
                if operand == each.array.value:
                    op.operands[k] = own
    with ir.InsertionPoint.at_block_terminator(body), loop.location:
        branch = scf.IfOp(is_last)
        with ir.InsertionPoint(branch.then_block):
            for each, own in zip(arrays, owns, strict=True):
                memref.copy(own, each.array.value)
            scf.YieldOp([])


def _upper_bound(loop: ir.Operation) -> ir.Value:
    if loop.name == "scf.for":
        return loop.operands[1]
    form = loop.attributes["upperBoundMap"]
    sizes = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])
    operands = list(loop.operands)[sizes[0] : sizes[0] + sizes[1]]
    name = "affine.apply" if len(form.value.results) == 1 else "affine.min"
    return ir.Operation.create(
        name, [ir.IndexType.get()], operands, attributes={"map": form}
    ).result


def _is_last(loop: ir.Operation, past: ir.Value) -> ir.Value:
    """Whether the next value of the loop's variable would be past its end."""
    variable = loop.regions[0].blocks[0].arguments[0]
    if loop.name == "scf.for":
        step = loop.operands[2]
    else:
        step = arith.constant(ir.IndexType.get(), ir.IntegerAttr(loop.attributes["step"]).value)
    following = arith.addi(variable, step)
    return arith.cmpi(arith.CmpIPredicate.sge, following, past)


def _own(each: Scratch, is_last: ir.Value) -> ir.Value:
    """Memory like the array, for one iteration."""
    array = each.array.value
    assert array is not None
    kind = ir.MemRefType(array.type)
    # It is settled later where it stands best: on the stack, or on the heap.
    own = memref.alloca(ir.MemRefType.get(kind.shape, kind.element_type), open_sizes(array), [])
    if not each.whole:
        branch = scf.IfOp(is_last)
        with ir.InsertionPoint(branch.then_block):
            memref.copy(array, own)
            scf.YieldOp([])
    return own
