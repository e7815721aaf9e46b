"""Where temporary memory is allocated: inside the loops that run in parallel, outside all others.

Module -> module in which each iteration of a parallel loop has the scratch memory it works on to
itself, and memory of known size that control loops allocate again and again is allocated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.analysis.polyhedral.scop import Array
from avial_lab.compiler.ir.allocations import STACK_BYTES, uses_of
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import holds, parent_of
from avial_lab.compiler.ir.operations import nbytes_of, operations_in
from avial_lab.compiler.ir.views import defining
from avial_lab.compiler.passes.tasks.control_level import (
    ALLOCATIONS,
    LOOPS,
    ControlLevel,
    structured_functions,
)

_ELEMENT_ACCESSES = (*LOADS, *STORES)


@dataclass(frozen=True)
class PlaceAllocations:
    """Sink what each iteration overwrites before it reads; hoist what a control loop allocates.

    before:  %sum = memref.alloca() : memref<f64>      // a front end's one variable for many loops
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
        return "place-allocations"


def _settle(function: ir.Operation) -> None:
    body = function.regions[0].blocks[0]
    allocations = [op for op in operations_in(function) if op.name in ALLOCATIONS]
    if not allocations:
        return
    for allocation in allocations:
        _drop_undefined(allocation)
    level = ControlLevel(function)
    control = list(level.blocks())
    unread: list[ir.Operation] = []
    freed: list[ir.Operation] = []
    for allocation in allocations:
        in_control = allocation.block in control
        sunk = _sink(allocation, level)
        if _is_unread(allocation):
            unread.append(allocation)
        elif not sunk and in_control:
            freed += _hoist(allocation, body)
    # Not before: what is known of the function speaks of these too.
    for op in freed:
        op.erase()
    for allocation in unread:
        _drop(allocation)
    for view in list(body.operations):
        if view.operation.name in ALLOCATIONS:
            _leave_to_be_freed(view.operation)


def _drop_undefined(allocation: ir.Operation) -> None:
    """A front end marks a variable without a value by storing one that is not defined."""
    for use in list(allocation.results[0].uses):
        user = use.owner.operation
        if user.name in STORES and use.operand_number == 1:
            value = defining(user.operands[0])
            if value is not None and value.name in ("llvm.mlir.undef", "ub.poison"):
                user.erase()


def _sink(allocation: ir.Operation, level: ControlLevel) -> bool:
    """Give the loops that may have the memory to themselves a piece each; whether any did."""
    array = next(
        (a for a in level.scop.arrays if a.value is not None and a.value == allocation.results[0]),
        None,
    )
    if array is None or len(allocation.operands):
        return False
    users = _users(allocation)
    owners: dict[ir.Operation, list[ir.Operation]] = {}
    for user, owner in zip(users, _owners(users, array, allocation, level), strict=True):
        if owner is not None:
            owners.setdefault(owner, []).append(user)
    for loop, inside in owners.items():
        _allocate_in(loop, inside, allocation)
    return bool(owners)


def _owners(
    users: Sequence[ir.Operation], array: Array, allocation: ir.Operation, level: ControlLevel
) -> list[ir.Operation | None]:
    """For each user the loop whose iterations get memory of their own, or none."""

    def private(loop: ir.Operation) -> bool:
        # What a control loop allocates, its phases share: it has to be outside.
        if level.is_control(loop):
            return False
        loops = level.scop.loops_of(loop)
        return bool(loops) and all(level.is_private(array, each) for each in loops)

    def owner(around: Sequence[ir.Operation]) -> ir.Operation | None:
        """A small one goes as far inwards as it can: two loops may share it no more. A large one
        goes where that lets a loop run in parallel, and no further.
        """
        found = [loop for loop in around if private(loop)]
        if nbytes_of(ir.MemRefType(allocation.results[0].type)) > STACK_BYTES:
            return next((loop for loop in found if level.is_parallel(loop)), None)
        return found[-1] if found else None

    nests = [_loops_around(user, allocation) for user in users]
    if all(user.name in _ELEMENT_ACCESSES for user in users):
        return [owner(nest) for nest in nests]
    # By views, who touches what is not seen from the users: they stay together.
    shared = [loop for loop in (nests[0] if nests else ()) if all(loop in n for n in nests)]
    return [owner(shared)] * len(users)


def _loops_around(op: ir.Operation, allocation: ir.Operation) -> list[ir.Operation]:
    """The loops that `op` stands in and the allocation does not, outermost first."""
    found: list[ir.Operation] = []
    around = parent_of(op)
    while around is not None and not holds(around, allocation):
        if around.name in LOOPS:
            found.append(around)
        around = parent_of(around)
    return found[::-1]


def _allocate_in(
    loop: ir.Operation, users: Sequence[ir.Operation], allocation: ir.Operation
) -> None:
    old = allocation.results[0]
    make = memref.alloc if nbytes_of(ir.MemRefType(old.type)) > STACK_BYTES else memref.alloca
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), allocation.location:
        fresh = make(old.type, [], [])
    for user in users:
        user.replace_uses_of_with(old, fresh)


def _is_unread(allocation: ir.Operation) -> bool:
    """Whether it is only written, and freed."""
    users = [use.owner.operation for use in allocation.results[0].uses]
    return all(user.name in (*STORES, "memref.dealloc") for user in users)


def _drop(allocation: ir.Operation) -> None:
    for use in list(allocation.results[0].uses):
        use.owner.operation.erase()
    allocation.erase()


def _users(allocation: ir.Operation) -> list[ir.Operation]:
    """Who uses the memory, but for what frees it."""
    users = [use.owner.operation for use in allocation.results[0].uses]
    return [user for user in users if user.name != "memref.dealloc"]


def _hoist(allocation: ir.Operation, body: ir.Block) -> list[ir.Operation]:
    """Put it where the function begins; what frees it in a loop, and has to go. Memory that a loop
    hands on stays: the next iteration reads it while it writes what it allocates itself.
    """
    _, leaves = uses_of(allocation.results[0])
    if allocation.block == body or len(allocation.operands) or leaves:
        return []
    allocation.move_before(body.operations[0].operation)
    users = [use.owner.operation for use in allocation.results[0].uses]
    return [user for user in users if user.name == "memref.dealloc"]


def _leave_to_be_freed(allocation: ir.Operation) -> None:
    for use in list(allocation.results[0].uses):
        user = use.owner.operation
        if user.name == "memref.dealloc" and user.block == allocation.block:
            user.erase()
