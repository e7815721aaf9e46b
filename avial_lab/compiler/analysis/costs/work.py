"""How much a nest computes, as a number or as a form of its sizes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.costs.weights import weight_of
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.trip_counts import trip_count
from avial_lab.core.element_types import ITEMSIZE

PARAM = isl.dim_type.param


class Unknown(Exception):
    """How much is done or touched is only known when the program runs."""


@dataclass(frozen=True)
class Use:
    """One way in which a phase reads or writes an array: `elements` of the `total` there are.

    follows: dimensions in which a rank's part of the iterations touches its own part of the array;
    none where each touches what may be anywhere. near: also a few elements beside its part.
    """

    array: ir.Value
    writes: bool
    elements: int
    total: int
    itemsize: int
    follows: frozenset[int]
    near: bool

    @property
    def nbytes(self) -> int:
        return self.elements * self.itemsize


def trips_of(scop: Scop) -> dict[Loop, int]:
    """How often each loop runs; half as often as it can where that changes."""
    found: dict[Loop, int] = {}
    for statement in scop.statements:
        for place, loop in enumerate(statement.loops):
            if loop in found:
                continue
            count = trip_count(loop)
            found[loop] = _half_extent(statement, place) if count is None else count
    return found


def _half_extent(statement: Statement, place: int) -> int:
    def ends() -> tuple[int, int] | None:
        domain = statement.domain
        domain = domain.project_out(PARAM, 0, domain.dim(PARAM))
        if domain.is_empty():
            return 0, 0
        low, high = domain.dim_min_val(place), domain.dim_max_val(place)
        return (low.to_python(), high.to_python()) if low.is_int() and high.is_int() else None

    found = limited(ends, lambda: None)
    if found is None:
        raise Unknown
    return -(-(found[1] - found[0] + 1) // 2)


def use(access: Access, trips: Mapping[Loop, int], count: int, divided: Collection[Loop]) -> Use:
    array = access.array
    assert array.value is not None, "memory has a value"
    shape = [extent for extent in array.shape if extent is not None]
    if len(shape) < array.rank:
        raise Unknown
    by_name = {loop.name: trips[loop] for loop in trips}
    chosen = {loop.name for loop in divided}
    elements, follows, near = 1, set[int](), False
    for dim, extent in enumerate(shape):
        form = access.forms[dim] if access.forms is not None else None
        if form is None:
            elements *= extent
            continue
        if len(form.terms) == 1 and form.terms[0][0] in chosen and form.terms[0][1] == 1:
            follows.add(dim)
            near |= form.constant != 0
        touched = 1 + sum(abs(f) * (by_name.get(name, 1) - 1) for name, f in form.terms)
        elements *= max(0, min(extent, touched))
    elements = min(elements, max(count, 1))
    itemsize = ITEMSIZE.get(array.element_type, 8)
    total = math.prod(shape)
    return Use(array.value, access.writes, elements, total, itemsize, frozenset(follows), near)


def flops(block: ir.Block) -> int:
    """Of one run through the block, without what stands in loops inside."""
    return sum(_weight(view.operation) for view in block.operations)


def _weight(op: ir.Operation) -> int:
    if not len(op.results) or not isinstance(op.results[0].type, ir.F32Type | ir.F64Type):
        return 0
    if not op.name.startswith(("arith.", "math.")):
        return 0
    return weight_of(op.name).in_flops_of_peak
