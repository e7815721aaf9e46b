"""Memory of a task's body: none is left behind, and none can overflow the stack.

Module -> module in which every memref.alloc is freed and every memref.alloca stands where its
function begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir, passmanager
from mlir.dialects import memref

from avial_lab.compiler.ir.allocations import STACK_BYTES, uses_of
from avial_lab.compiler.ir.attributes import WORKGROUP
from avial_lab.compiler.ir.operations import nbytes_of, operations_named
from avial_lab.compiler.ir.views import is_memref


@dataclass(frozen=True)
class FreeAllocations:
    """Free what a body allocates, at the end of the block that allocates it; keep allocas off
    loops.

    before:  scf.for … { %t = memref.alloca() : memref<4xf32>  %s = memref.alloc(%n) : memref<?xf32>
    … }
    after:   %t = memref.alloca() : memref<4xf32>
             scf.for … { %s = memref.alloc(%n) : memref<?xf32> …  memref.dealloc %s }

    A buffer that the program frees itself stays as it is. What the first of several blocks
    allocates for others is freed where the last ones end.

    Where a buffer leaves its block (yielded by a loop, by a branch), who has to free it is known
    when the program runs: beside each such buffer goes whether it is the program's own, and MLIR's
    `ownership-based-buffer-deallocation` does so for all buffers of the function. Where that has no
    answer, in functions that free some themselves and in those that return buffers or call such,
    it is freed by nobody.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "memref.alloca"):
                if WORKGROUP not in op.attributes:
                    _settle(op)
            for function in operations_named(module, "func.func", "gpu.func"):
                _free_in(function)
            for op in operations_named(module, "memref.alloca_scope"):
                _dissolve(op)

    def __str__(self) -> str:
        return "free-allocations"


def _settle(alloca: ir.Operation) -> None:
    """A small alloca of known size moves to the function's entry; any other one goes to the
    heap.
    """
    kind = ir.MemRefType(alloca.result.type)
    if kind.has_static_shape and nbytes_of(kind) <= STACK_BYTES and not len(alloca.operands):
        function = _function_of(alloca)
        if function is None:
            return
        block = function.regions[0].blocks[0]
        if alloca.block != block:
            alloca.move_before(block.operations[0].operation)
        return
    _, leaves = uses_of(alloca.result)
    if leaves:
        return
    with ir.InsertionPoint(alloca), alloca.location:
        sizes = list(alloca.operands)
        fresh = memref.alloc(kind, sizes, [])
    alloca.result.replace_all_uses_with(fresh)
    alloca.erase()


def _function_of(op: ir.Operation) -> ir.Operation | None:
    """The function around `op`; None inside a kernel, whose threads have stacks of their own."""
    parent = op.parent
    while parent is not None and parent.operation.name != "func.func":
        if parent.operation.name in ("gpu.launch", "gpu.func"):
            return None
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def _dissolve(scope: ir.Operation) -> None:
    """An alloca_scope has nothing left to end: its operations take its place."""
    blocks = scope.regions[0].blocks
    if len(blocks) != 1:
        return
    *body, end = [op.operation for op in blocks[0].operations]
    for op in body:
        op.move_before(scope)
    for old, new in zip(scope.results, list(end.operands), strict=True):
        old.replace_all_uses_with(new)
    scope.erase()


def _free_in(function: ir.Operation) -> None:
    allocations = operations_named(function, "memref.alloc")
    hands_on = any(uses_of(alloc.result)[1] for alloc in allocations)
    if hands_on and _free_by_owner(function):
        return
    for alloc in allocations:
        _free(alloc)


def _free_by_owner(function: ir.Operation) -> bool:
    """Whether MLIR could; the function is another one then."""
    if function.name != "func.func" or operations_named(function, "memref.dealloc"):
        return False
    # It takes every buffer that a call returns for the caller's, and clones what it returns itself.
    ends = operations_named(function, "func.call", "func.return")
    if any(is_memref(value) for op in ends if op.name == "func.call" for value in op.results):
        return False
    if any(is_memref(value) for op in ends if op.name == "func.return" for value in op.operands):
        return False
    name = ir.StringAttr(function.attributes["sym_name"])
    made = function.clone(ip=ir.InsertionPoint(function)).operation
    function.attributes["sym_name"] = ir.StringAttr.get(f"{name.value} before")
    manager = passmanager.PassManager("func.func")
    for each in _BY_OWNER:
        manager.add(each)
    try:
        manager.run(made)
    except ir.MLIRError:
        made.erase()
        function.attributes["sym_name"] = name
        return False
    function.erase()
    return True


_BY_OWNER = (
    "ownership-based-buffer-deallocation",
    "buffer-deallocation-simplification",
    "bufferization-lower-deallocations",
)


def _free(alloc: ir.Operation) -> None:
    uses, leaves = uses_of(alloc.result)
    if leaves or any(user.name == "memref.dealloc" for user in uses):
        return
    ends = [alloc.block]
    if any(_around(user, alloc.block.region) != alloc.block for user in uses):
        blocks = list(alloc.block.region.blocks)
        if alloc.block != blocks[0]:
            return  # jumps may lead there again and again, and nobody knows from where
        ends = [block for block in blocks if not len(block.successors)]
    for block in ends:
        last = block.operations[len(block.operations) - 1]
        with ir.InsertionPoint(last), alloc.location:
            memref.DeallocOp(alloc.result)


def _around(op: ir.Operation, region: ir.Region) -> ir.Block:
    """The block of `region` that `op` stands in, however deep."""
    while op.block.region != region:
        assert op.parent is not None, "a use stands where the value is known"
        op = op.parent.operation
    return op.block
