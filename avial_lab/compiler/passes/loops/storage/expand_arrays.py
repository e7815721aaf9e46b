"""Scratch arrays that each iteration of a loop makes anew get a row for each of them.

Functions of loops -> the same values, where that makes a contraction of a nest, which then goes in
blocks. (What `expand-scalars` does for single values.)

Source: P. Feautrier, Array expansion, ICS 1988.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

import islpy as isl
from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests
from avial_lab.compiler.analysis.parallelism.privatisation import is_temporary, reads_its_own
from avial_lab.compiler.analysis.polyhedral.loop_ends import FOR, extent_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Array, Scop
from avial_lab.compiler.codegen.loops.index_arithmetic import loop, number
from avial_lab.compiler.ir.nesting import defined_in, holds
from avial_lab.compiler.ir.operations import Element, operations_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.passes.loops.storage.expand_scalars import finds_contraction, most_elements

IN = isl.dim_type.in_
NAME = "expand-arrays"
LOAD, STORE = "affine.load", "affine.store"
BOUNDS = ("lowerBoundMap", "upperBoundMap")


@dataclass(frozen=True)
class ExpandArrays:
    """One more dimension, for the iterations of the loop.

    before:  affine.for %q { affine.for %p { store %zero, %sum[p]
                                             affine.for %s { %sum[p] += A[q, s] * C[s, p] } }
                             affine.for %p { A[q, p] = %sum[p] } }
    after:   affine.for %q { affine.for %p { store %zero, %sums[q, p]
                                             affine.for %s { %sums[q, p] += A[q, s] * C[s, p] } }
                             affine.for %p { A[q, p] = %sums[q, p] } }

    Who reads the array after the loop finds in it what the last iteration left.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for nest in list(free_nests(function)):
                    _expand(nest)

    def __str__(self) -> str:
        return NAME


def _expand(nest: ir.Operation) -> None:
    """The arrays of `nest`, or of the nests inside."""
    if nest.name != FOR or not _scratch_in(nest):
        for inner in list(free_nests(nest)):
            _expand(inner)
        return
    scop = read_scop(nest)
    arrays = [array for array in scop.arrays if _is_made_anew(scop, nest, array)]
    memories = [array.value for array in arrays if array.value is not None]
    if not arrays or not _Rows(scop, nest, memories).write(listed(map(str, arrays))):
        for inner in list(free_nests(nest)):
            _expand(inner)


def _scratch_in(nest: ir.Operation) -> bool:
    """Whether it works on an array of the function's own that was made before it."""
    return any(
        not isinstance(value.owner, ir.Block)
        and value.owner.operation.name in ("memref.alloc", "memref.alloca")
        and ir.MemRefType(value.type).rank
        and not defined_in(nest, value)
        for op in operations_in(nest)
        if op.name in (LOAD, STORE)
        for value in [op.operands[op.name == STORE]]
    )


def _is_made_anew(scop: Scop, nest: ir.Operation, array: Array) -> bool:
    """Whether each iteration of `nest` reads of it only what it wrote itself."""
    if not array.rank or array.loops or array.value is None or not is_temporary(array):
        return False
    users = [s for s in scop.statements if any(a.array is array for a in s.accesses)]
    inside = [op for op in _uses(array.value) if holds(nest, op)]
    if any(op.name not in (LOAD, STORE) for op in inside) or not all(s.exact for s in users):
        return False
    if any(array.value not in list(s.op.operands) for s in users):
        return False
    if not reads_its_own(array, users, {s.name: 0 for s in users}, 0):
        return False
    return len(inside) == len(_uses(array.value)) or _is_filled_at_last(scop, nest, array)


def _uses(memory: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in memory.uses]


def _is_filled_at_last(scop: Scop, nest: ir.Operation, array: Array) -> bool:
    """Whether the last iteration surely writes every element."""
    extent = _constant_extent(scop, nest)
    if extent is None or None in array.shape:
        return False
    first, size = extent
    dims = [f"x{k}" for k in range(array.rank)]
    within = [f"0 <= {dim} < {n}" for dim, n in zip(dims, array.shape, strict=True)]
    missing = isl.Set(f"{{ [{', '.join(dims)}] : {' and '.join(within)} }}")
    for statement in scop.statements:
        for access in statement.accesses:
            if access.array is array and statement.must_write(access):
                last = access.relation.fix_val(IN, 0, first + size - 1)
                missing = missing.subtract(last.range().reset_tuple_id())
    return bool(missing.is_empty())


def _constant_extent(scop: Scop, nest: ir.Operation) -> tuple[int, int] | None:
    """The first value of its variable, and how many there are, where nothing changes that."""
    maps = [ir.AffineMapAttr(nest.attributes[name]).value for name in BOUNDS]
    fixed = all(not each.n_inputs and len(each.results) == 1 for each in maps)
    return extent_of(scop, nest) if fixed else None


@dataclass
class _Rows:
    """Memories of `nest` with a row for each of its iterations."""

    scop: Scop
    nest: ir.Operation
    memories: Sequence[ir.Value]

    def write(self, names: str) -> bool:
        """Whether that makes a contraction; then it is done, else all is as it was."""
        extent = extent_of(self.scop, self.nest)
        shapes = [ir.MemRefType(memory.type).shape for memory in self.memories]
        if extent is None or any(ir.ShapedType.get_dynamic_size() in shape for shape in shapes):
            return False
        self.first, self.size = extent
        most = most_elements(self.scop)
        if self.size < 1 or any(self.size * prod(shape) > most for shape in shapes):
            return False
        with self.nest.location, ir.InsertionPoint(self.nest):
            self.trial = self.nest.clone().operation
            made = [self._expanded(memory) for memory in self.memories]
            if not finds_contraction(self.trial):
                self.trial.erase()
                for rows in made:
                    rows.owner.operation.erase()
                return False
            for memory, rows in zip(self.memories, made, strict=True):
                self._leave(memory, rows)
                memref.DeallocOp(rows)
        add_remark(self.nest, NAME, f"{names} expanded: one row for each {loop_name(self.nest)}")
        self.nest.erase()
        return True

    def _expanded(self, memory: ir.Value) -> ir.Value:
        """Rows in its place in the copy."""
        kind = ir.MemRefType(memory.type)
        with ir.InsertionPoint(self.trial):
            wide = ir.MemRefType.get([self.size, *kind.shape], kind.element_type)
            rows = memref.alloc(wide, [], [], alignment=64)
        variable = self.trial.regions[0].blocks[0].arguments[0]
        for op in [op for op in _uses(memory) if holds(self.trial, op)]:
            places = list(op.operands)[1 + (op.name == STORE) :]
            map_ = ir.AffineMapAttr(op.attributes["map"]).value
            element = _in_row(rows, variable, self.first, map_, places)
            with op.location, ir.InsertionPoint(op):
                if op.name == LOAD:
                    op.results[0].replace_all_uses_with(element.load())
                else:
                    element.store(op.operands[0])
            op.erase()
        return rows

    def _leave(self, memory: ir.Value, rows: ir.Value) -> None:
        """The row of the last iteration where it was, if anyone looks there."""
        if all(holds(self.nest, op) for op in _uses(memory)):
            return
        with ExitStack() as stack:
            extents = ir.MemRefType(memory.type).shape
            at = [stack.enter_context(loop(0, extent)) for extent in extents]
            value = memref.LoadOp(rows, [number(self.size - 1), *at]).result
            memref.StoreOp(value, memory, at)


def _in_row(
    rows: ir.Value,
    variable: ir.Value,
    first: int,
    map_: ir.AffineMap,
    places: Sequence[ir.Value],
) -> Element:
    """The element that was at `map_` of `places`, in the row of an iteration."""
    dims, symbols = map_.n_dims, map_.n_symbols
    row = ir.AffineDimExpr.get(dims) - first
    form = ir.AffineMap.get(dims + 1, symbols, [row, *map_.results])
    operands = (*places[:dims], variable, *places[dims:])
    return Element(rows, operands, ir.AffineMapAttr.get(form))
