"""Several rows at once where neighbours load the same elements: those are loaded once for all.

Functions of loops -> the same operations on every element of memory.

Source: S. Carr, K. Kennedy, Improving the ratio of memory operations to floating-point operations
in loops, TOPLAS 16 (1994), unroll-and-jam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_and_phases
from avial_lab.compiler.analysis.parallelism.marked_loops import loops_over_columns
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.unroll_and_jam import put_side_by_side, variable_of
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import nbytes_of
from avial_lab.compiler.ir.remarks import add_remark, loop_name
from avial_lab.machine.constants import LINE_BYTES, PAGE_BYTES
from avial_lab.machine.cpu import Cpu, this_cpu

NAME = "jam-for-loads"

ROWS = 4
"""At once."""

MOST_LOADS = 9
"""Of a row: those of four rows, and what is computed of them, are about as many as registers."""

FEWEST_LOADS = 6
"""Of a row along memory, where a vector is as long as a line: vectors that are not aligned then
take two lines each, and aligned stores (align-vectors, of rows by themselves) are worth more than a
few loads less.
"""

SHARED = 0.3
"""Of all loads, that rows have to have in common: where it was less, stores decided."""


@dataclass(frozen=True)
class JamForLoads:
    """Unroll a loop over rows, and make one loop over columns of those inside.

    before:  affine.for %i { affine.for %j { B[i, j] = A[i - 1, j] + A[i, j] + A[i + 1, j] } }
    after:   affine.for %i step 4 { affine.for %j {      (six loads in place of twelve)
               B[i, j] = …  B[i + 1, j] = …  B[i + 2, j] = …  B[i + 3, j] = … } }

    Only where iterations of both loops meet nowhere, and where rows have a good part of what they
    load in common; and neither short rows of arrays that are in no cache of a core's own, nor rows
    of a few loads where vectors are as long as lines. Rows that are left over run one by one.
    """

    cpu: Cpu = field(default_factory=this_cpu, repr=False)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function, phase in functions_and_phases(module):
                self._share_in(function, phase)

    def __str__(self) -> str:
        return NAME

    def _share_in(self, op: ir.Operation, phase: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    if inner.name != "affine.for" or not _share(inner, phase, self.cpu):
                        self._share_in(inner, phase)


def _share(loop: ir.Operation, phase: ir.Operation, cpu: Cpu) -> bool:
    """Whether its rows run side by side now."""
    columns = loops_over_columns(loop)
    if not columns or not all(INDEPENDENT in op.attributes for op in columns):
        return False
    if not all(_is_worth_it(loop, each, cpu) for each in columns) or not _meet_nowhere(loop):
        return False
    accesses = [
        op for each in columns for op in body_of(each) if op.name in ("affine.load", "affine.store")
    ]
    if any(_share_pages(op, variable_of(loop), cpu.l2_bytes) for op in accesses):
        return False
    add_remark(phase, NAME, f"{ROWS} rows of {loop_name(loop)} jammed: they load the same elements")
    put_side_by_side(loop, ROWS)
    return True


def _meet_nowhere(loop: ir.Operation) -> bool:
    scop = read_scop(loop)
    (own,) = scop.loops_of(loop)
    return not carried_among(own, scop.statements)


def _is_worth_it(loop: ir.Operation, columns: ir.Operation, cpu: Cpu) -> bool:
    """Whether several rows load a good part less than each by itself."""
    loads = [op for op in body_of(columns) if op.name == "affine.load"]
    if len(columns.results) or any(_map(op).n_symbols for op in loads):
        return False
    each = _elements(loads, loop, 1)
    fewest = 1
    if cpu.vector_bytes >= LINE_BYTES and all(_is_along(op, columns) for op in loads):
        fewest = FEWEST_LOADS
    many = fewest <= each <= MOST_LOADS
    return many and _elements(loads, loop, ROWS) <= (1 - SHARED) * ROWS * each


def _is_along(load: ir.Operation, columns: ir.Operation) -> bool:
    """Whether the last subscript changes with the column."""
    form = _map(load)
    last = len(form.results) - 1
    return last in _changed_by(variable_of(columns), form, list(load.operands)[1:])


def _share_pages(access: ir.Operation, row: ir.Value, room: int) -> bool:
    """Whether rows of an array of more than `room` bytes lie on the same page, and not in the same
    lines.
    """
    array, *where = list(access.operands)[access.name == "affine.store" :]
    kind = ir.MemRefType(array.type)
    if not kind.has_static_shape or nbytes_of(kind) <= room:
        return False
    moved = _changed_by(row, _map(access), where)
    apart = nbytes_of(kind) // prod(kind.shape[: moved[-1] + 1]) if moved else PAGE_BYTES
    # The prefetcher sees no stream where several rows begin on one page, but for those that share
    # their lines.
    return LINE_BYTES <= apart < PAGE_BYTES


def _changed_by(variable: ir.Value, form: ir.AffineMap, operands: Sequence[ir.Value]) -> list[int]:
    """The subscripts that are others in the variable's next iteration."""
    dims = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims)]
    symbols = [ir.AffineExpr.get_symbol(k) for k in range(form.n_symbols)]
    following = [
        each + (value == variable) for each, value in zip([*dims, *symbols], operands, strict=True)
    ]
    after = ir.AffineMap.get(form.n_dims, form.n_symbols, following)
    return [k for k, each in enumerate(form.results) if each.compose(after) != each]


def _map(load: ir.Operation) -> ir.AffineMap:
    return ir.AffineMapAttr(load.attributes["map"]).value


def _elements(loads: Sequence[ir.Operation], loop: ir.Operation, rows: int) -> int:
    """That one column of so many rows loads."""
    row = loop.regions[0].blocks[0].arguments[0]
    operands = list(dict.fromkeys([row, *(v for op in loads for v in list(op.operands)[1:])]))
    dims = [ir.AffineExpr.get_dim(k) for k in range(len(operands))]
    found: set[tuple[ir.Value, str]] = set()
    for op in loads:
        form = _map(op)
        own = [operands.index(value) for value in list(op.operands)[1:]]
        for k in range(rows):
            moved = [dims[0] + k, *dims[1:]]
            taken = ir.AffineMap.get(len(operands), 0, [moved[each] for each in own])
            places = [each.compose(taken) for each in form.results]
            plain = [ir.AffineExpr.simplify_affine_expr(each, len(dims), 0) for each in places]
            found.add((op.operands[0], ", ".join(map(str, plain))))
    return len(found)
