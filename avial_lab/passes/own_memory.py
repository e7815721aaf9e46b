"""Where temporary memory is allocated: inside the loops that run in parallel, outside all others.

Module -> module in which each iteration of a parallel loop has the scratch memory it works on to
itself, and memory of known size that control loops allocate again and again is allocated once.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.passes.control_level import LOOPS, ControlLevel, structured_functions, users_of
from avial_lab.passes.free_allocations import STACK_BYTES
from avial_lab.passes.operations import itemsize_of, operations_in
from avial_lab.polyhedra.nesting import holds, parent_of

_ALLOCATIONS = ("memref.alloc", "memref.alloca")


@dataclass(frozen=True)
class OwnMemory:
    """Sink what each iteration overwrites before it reads; hoist what a control loop allocates.

    before:  %sum = memref.alloca() : memref<f64>
             affine.for %i … { store %zero, %sum[]  affine.for %k … { … }  load %sum[] }
    after:   affine.for %i … { %sum = memref.alloca() : memref<f64>  store %zero, %sum[] … }

    before:  affine.for %t … { %new = memref.alloc() : memref<9xf64>  affine.for %i … { … } }
    after:   %new = memref.alloc() : memref<9xf64>
             affine.for %t … { affine.for %i … { … } }

    A memref.dealloc of memory allocated at the top of the function is dropped: what nobody frees is
    freed where its block ends (free-allocations).
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in structured_functions(module):
                _settle(function)

    def __str__(self) -> str:
        return "own-memory"


def _settle(function: ir.Operation) -> None:
    body = function.regions[0].blocks[0]
    allocations = [op for op in operations_in(function) if op.name in _ALLOCATIONS]
    if not allocations:
        return
    level = ControlLevel(function)
    for allocation in allocations:
        if allocation.block == body or allocation.name == "memref.alloca":
            _sink(allocation, level)
    control = list(level.blocks())
    for allocation in allocations:
        if allocation.block in control:
            _hoist(allocation, body)
        if allocation.block == body:
            _leave_to_be_freed(allocation)


def _sink(allocation: ir.Operation, level: ControlLevel) -> None:
    """To the start of the parallel loop's body that alone uses it; a small one further inwards."""
    if len(allocation.operands) or not users_of(allocation):
        return
    target: ir.Block | None = None
    for loop in _loops_around_all(allocation):
        private = not _carries_over(allocation, loop, level)
        if private and level.is_parallel(loop):
            target = loop.regions[0].blocks[0]
            if _nbytes(allocation) > STACK_BYTES:
                break
    if target is None:
        return
    for use in list(allocation.results[0].uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()
    allocation.move_before(target.operations[0].operation)


def _loops_around_all(allocation: ir.Operation) -> list[ir.Operation]:
    """The loops that every use stands in and the allocation does not, outermost first."""
    first, *others = users_of(allocation)
    found: list[ir.Operation] = []
    around = parent_of(first)
    while around is not None and not holds(around, allocation):
        if around.name in LOOPS and all(holds(around, user) for user in others):
            found.append(around)
        around = parent_of(around)
    return found[::-1]


def _carries_over(allocation: ir.Operation, op: ir.Operation, level: ControlLevel) -> bool:
    array = next((a for a in level.scop.arrays if a.value == allocation.results[0]), None)
    loops = level.scop.loops_of(op)
    return array is None or not loops or not all(level.is_private(array, lp) for lp in loops)


def _hoist(allocation: ir.Operation, body: ir.Block) -> None:
    if allocation.block == body or len(allocation.operands):
        return
    for use in list(allocation.results[0].uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()
    allocation.move_before(body.operations[0].operation)


def _leave_to_be_freed(allocation: ir.Operation) -> None:
    for use in list(allocation.results[0].uses):
        user = use.owner.operation
        if user.name == "memref.dealloc" and user.block == allocation.block:
            user.erase()


def _nbytes(allocation: ir.Operation) -> int:
    kind = ir.MemRefType(allocation.results[0].type)
    nbytes = itemsize_of(kind.element_type)
    for extent in kind.shape:
        nbytes *= extent
    return nbytes
