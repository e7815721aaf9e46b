"""Control level: the code that every rank runs alike, around the nests that are divided.

A function -> its blocks at control level and which loops end it there.

    affine.for %t … {            sequential, with parallel loops inside: its body is control level
      affine.for %i … { … }      parallel: what stands inside belongs to one phase
      affine.for %k … { … }      sequential, nothing in it is parallel: one phase, on one rank
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.parallelism.reductions import forbidding
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import (
    Access,
    Array,
    ArrayKind,
    Loop,
    Scop,
    Statement,
)
from avial_lab.compiler.ir.operations import operations_named

LOOPS = frozenset({"affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.while"})
ALLOCATIONS = ("memref.alloc", "memref.alloca")
CONDITIONS = frozenset({"affine.if", "scf.if", "scf.index_switch", "scf.execute_region"})
_DECLARED_PARALLEL = frozenset({"affine.parallel", "scf.parallel"})


def structured_functions(module: ir.Operation) -> list[ir.Operation]:
    """Functions whose control flow is that of loops and conditions; not those that jump."""
    return [
        op
        for op in (view.operation for view in module.regions[0].blocks[0].operations)
        if op.name == "func.func" and len(op.regions[0].blocks) == 1
    ]


class ControlLevel:
    """What is known of a function's loops; nothing is analysed before it is asked for."""

    def __init__(self, function: ir.Operation) -> None:
        self._function = function
        self._parallel: dict[ir.Operation, bool] = {}
        self._accesses: dict[str, list[tuple[Statement, Access]]] = {}
        self._covered: dict[object, bool] = {}

    @cached_property
    def scop(self) -> Scop:
        return read_scop(self._function)

    @cached_property
    def _dependences(self) -> tuple:
        return dependences(self.scop)

    def is_parallel(self, loop: ir.Operation) -> bool:
        """Whether its iterations may run at the same time, reductions and private memory apart."""
        if loop not in self._parallel:
            self._parallel[loop] = loop.name in _DECLARED_PARALLEL or self._proved(loop)
        return self._parallel[loop]

    def _proved(self, op: ir.Operation) -> bool:
        loops = self.scop.loops_of(op)
        return bool(loops) and all(
            self.is_private(dependence.array, loop)
            for loop in loops
            for dependence in forbidding(loop, self.scop, self._dependences)
        )

    def is_control(self, loop: ir.Operation) -> bool:
        """Whether every rank runs the loop itself: it is sequential, around something parallel, or
        around launches of kernels.
        """
        if self.is_parallel(loop):
            return False
        inside = operations_named(loop, *LOOPS, "gpu.launch")
        return any(op.name == "gpu.launch" or self.is_parallel(op) for op in inside)

    def blocks(self) -> Iterator[ir.Block]:
        """The function's body, and those of control loops and of conditions, outer before inner."""
        pending = [block for region in self._function.regions for block in region.blocks]
        while pending:
            block = pending.pop(0)
            yield block
            for view in block.operations:
                op = view.operation
                if op.name in CONDITIONS or (op.name in LOOPS and self.is_control(op)):
                    pending += [inner for region in op.regions for inner in region.blocks]

    # -- private memory

    def is_private(self, array: Array, loop: Loop) -> bool:
        """Whether each iteration of `loop` may have that array to itself.

        It reads of it only what it wrote itself before, and nobody else reads what it wrote: each
        read elsewhere finds what an iteration of a loop of its own wrote.
        """
        if not _is_own(array):
            return False
        chain = _loops_down_to(loop, self.scop)
        reads = [(s, a) for s, a in self._touches(array) if not a.writes]
        return all(
            self._is_covered(reader, access, loop)
            if loop in reader.loops
            else any(
                self._is_covered(reader, access, around)
                for around in reader.loops
                if around not in chain
            )
            for reader, access in reads
        )

    def _touches(self, array: Array) -> list[tuple[Statement, Access]]:
        if array.name not in self._accesses:
            self._accesses[array.name] = [
                (s, a)
                for s in self.scop.statements
                if s.op.name != "memref.dealloc"
                for a in s.accesses
                if a.array == array
            ]
        return self._accesses[array.name]

    def _is_covered(self, reader: Statement, access: Access, loop: Loop) -> bool:
        """Whether each element it reads was written before in the same iteration of `loop`."""
        key = (reader.name, access.array.name, loop.op, loop.dimension)
        if key not in self._covered:
            writes = [
                (s, a)
                for s, a in self._touches(access.array)
                if s.must_write(a) and loop in s.loops
            ]
            self._covered[key] = limited(
                lambda: _covered(reader, access, writes, loop), lambda: False
            )
        return self._covered[key]


def _is_own(array: Array) -> bool:
    """Whether it is memory that the function allocates."""
    if array.kind is not ArrayKind.MEMORY or array.value is None:
        return False
    op = array.value.owner
    return not isinstance(op, ir.Block) and op.operation.name in ALLOCATIONS


def _loops_down_to(loop: Loop, scop: Scop) -> tuple[Loop, ...]:
    """The loops around `loop`, outermost first, and itself."""
    for statement in scop.within(loop):
        return statement.loops[: loop.depth + 1]
    return (loop,)


def _covered(
    reader: Statement, access: Access, writes: Iterable[tuple[Statement, Access]], loop: Loop
) -> bool:
    left = access.relation
    for writer, write in writes:
        order = _before(writer, reader, loop)
        if order is not None:
            left = left.subtract(order.reverse().apply_range(write.relation))
    return left.is_empty()


def _before(first: Statement, second: Statement, within: Loop) -> isl.Map | None:
    """{ first[x] -> second[y] }, x before y in one iteration of the loop `within`."""
    pairs = isl.Map.from_domain_and_range(first.domain, second.domain)
    depth = within.depth + 1
    common = depth
    for a, b in zip(first.loops[depth:], second.loops[depth:], strict=False):
        if a != b:
            break
        common += 1
    for dim in range(depth):
        pairs = pairs.equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
    found: isl.Map | None = None
    for dim in range(depth, common):
        earlier = pairs.order_lt(isl.dim_type.in_, dim, isl.dim_type.out, dim)
        found = earlier if found is None else found.union(earlier)
        pairs = pairs.equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
    if first.position < second.position:
        found = pairs if found is None else found.union(pairs)
    return found
