"""What each phase asks of the machine: operations, and bytes that have to come and go once.

Program of tasks -> Demand by the phase's name; from the exact iterations of its loops.

    for i < n, j < i, k < n: C[i, j] += A[i, k] * B[j, k]     2 · n²(n - 1)/2 flops
                                                              elements of A, B, C (twice) in bytes
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import islpy as isl
import numpy as np
from mlir import ir

from avial_lab.compiler.analysis.costs.operation_counts import constant_bound, own_counts
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Scop, Statement
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.remarks import loop_name
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.machine.demand import Demand

SET, PARAM = isl.dim_type.set, isl.dim_type.param
PHASES = ("avial.replicate", "avial.task")

NODES = 17
"""Where the number of iterations inside is looked at, if it is no polynomial of the loop."""
MOST = 1 << 20
"""Places of a longer loop whose mean stands for all."""


def demands_in(structured: ir.Operation) -> dict[str, Demand]:
    """Of one execution of each phase, in the middle of the loops around. A phase whose iterations
    are not known is not in it.
    """
    phases = [op for op in operations_in(program_function(structured)) if op.name in PHASES]
    found = {text_attribute(op, "name"): demand_of(op) for op in phases}
    return {name: demand for name, demand in found.items() if demand is not None}


def runs_in(structured: ir.Operation) -> dict[str, float]:
    """How often each phase is run, in the mean where a loop around begins or ends with another;
    without those in a loop whose end is not known.
    """
    found: dict[str, float] = {}
    for op in operations_in(program_function(structured)):
        runs = _runs(op) if op.name in PHASES else None
        if runs is not None:
            found[text_attribute(op, "name")] = runs
    return found


def _runs(phase: ir.Operation) -> float | None:
    runs, around = 1.0, parent_of(phase)
    while around is not None:
        if around.name == "affine.for":
            trips = _trips(around)
            if trips is None:
                return None
            runs *= trips
        elif around.name in ("scf.for", "scf.while", "scf.if", "affine.if"):
            return None
        around = parent_of(around)
    return runs


def _trips(loop: ir.Operation) -> float | None:
    """Of a loop whose bounds are numbers; of others nothing is said here."""
    low, high = (
        constant_bound(loop.attributes[name]) for name in ("lowerBoundMap", "upperBoundMap")
    )
    if low is None or high is None:
        return None
    step = ir.IntegerAttr(loop.attributes["step"]).value
    return max(0, -(-(high - low) // step))


def demand_of(phase: ir.Operation) -> Demand | None:
    """Of one execution of a phase or a task; None where its iterations are not known."""
    scop = read_scop(phase)
    if any(a.array.kind is ArrayKind.EFFECT for s in scop.statements for a in s.accesses):
        return None
    middle = dict(_middles(phase))
    return limited(lambda: _counted(scop, middle), lambda: None)


def _middles(phase: ir.Operation) -> Iterator[tuple[str, int]]:
    """Of each loop around whose bounds are numbers, by the name of its variable."""
    around = parent_of(phase)
    while around is not None:
        if around.name == "affine.for":
            low, high = (
                constant_bound(around.attributes[name])
                for name in ("lowerBoundMap", "upperBoundMap")
            )
            if low is not None and high is not None:
                yield loop_name(around), (low + high) // 2
        around = parent_of(around)


def _counted(scop: Scop, middle: Mapping[str, int]) -> Demand | None:
    flops = 0
    for statements in _blocks(scop):
        each = sum(_flops(view.operation) for view in statements[0].op.block.operations)
        count = points(_around(statements[0]), middle) if each else 0
        if count is None:
            return None
        flops += each * count
    nbytes, widest = 0, 0
    for elements, itemsize in _touched(scop):
        count = points(elements, middle)
        if count is None:
            return None
        nbytes += count * itemsize
        widest = max(widest, itemsize)
    loaded = _loaded_bytes(scop, middle)
    return Demand(flops, nbytes, "f32" if widest <= 4 else "f64", loaded)


def _loaded_bytes(scop: Scop, middle: Mapping[str, int]) -> int:
    """Of all loads, each once for all iterations of the innermost loops that do not change it: what
    a thread holds in a register.
    """
    total = 0
    for statement in scop.statements:
        for access in statement.accesses:
            if access.writes or access.array.kind is not ArrayKind.MEMORY or access.array.loops:
                continue
            domain = access.relation.domain()
            form = access.relation.affine_hull().get_constraints()
            for place in reversed(range(domain.dim(SET))):
                if any(
                    c.is_equality() and c.involves_dims(isl.dim_type.in_, place, 1) for c in form
                ):
                    break
                domain = domain.project_out(SET, place, 1)
            total += (points(domain, middle) or 0) * ITEMSIZE.get(access.array.element_type, 8)
    return total


def _flops(op: ir.Operation) -> int:
    """A sign that is turned costs nothing: there is an instruction that subtracts a product."""
    return 0 if op.name == "arith.negf" else own_counts(op).flops


def _around(statement: Statement) -> isl.Set:
    """How often its block runs: without its own loop, where a loop that hands values on is one."""
    domain = statement.domain
    for place in reversed(range(len(statement.loops))):
        if statement.loops[place].op == statement.op:
            domain = domain.project_out(SET, place, 1)
    return domain


def _blocks(scop: Scop) -> Iterable[list[Statement]]:
    """The statements, by the block they stand in."""
    found: dict[ir.Block, list[Statement]] = {}
    for statement in scop.statements:
        found.setdefault(statement.op.block, []).append(statement)
    return found.values()


def _touched(scop: Scop) -> Iterator[tuple[isl.Set, int]]:
    """The elements of each array that are read, and those that are written, with their bytes."""
    found: dict[tuple[str, bool], tuple[isl.Set, int]] = {}
    for access in (access for s in scop.statements for access in s.accesses):
        if access.array.kind is not ArrayKind.MEMORY or access.array.loops:
            continue  # what is handed on in registers, and small arrays of an iteration's own
        key = access.array.name, access.writes
        elements = _inside(access.relation.range(), access.array.shape)
        if key in found:
            elements = elements.union(found[key][0]).coalesce()
        found[key] = elements, ITEMSIZE.get(access.array.element_type, 8)
    yield from found.values()


def _inside(elements: isl.Set, shape: Sequence[int | None]) -> isl.Set:
    """Those that the array has: of what depends on data all are known to be, and nothing more."""
    for dimension, size in enumerate(shape):
        if size is not None:
            elements = elements.lower_bound_val(SET, dimension, 0)
            elements = elements.upper_bound_val(SET, dimension, size - 1)
    return elements


# Points -------------------------------------------------------------------------------------------


def points(domain: isl.Set, fixed: Mapping[str, int] = MappingProxyType({})) -> int | None:
    """How many a set has, with these values of parameters; None where it has no end.

    The sides of a box are multiplied. Else a loop is looked at for some of its values, and the
    polynomial through them summed up: exact for triangles and pyramids, near where bounds change
    their form; holes are not seen.

    >>> points(isl.Set("{ [i, j] : 0 <= i < 100 and 0 <= j <= i }"))
    5050
    >>> points(isl.Set("{ [i] : i >= 0 }")) is None
    True
    """
    for place in range(domain.dim(PARAM)):
        value = fixed.get(domain.get_dim_name(PARAM, place) or "")
        if value is not None:
            domain = domain.fix_val(PARAM, place, isl.Val(value))
    plain = domain.project_out(PARAM, 0, domain.dim(PARAM)).reset_tuple_id()
    if plain.is_empty():
        return 0
    if plain.is_box():
        return math.prod(_extent(plain, dim) for dim in range(plain.dim(SET)))
    try:
        return round(_points(plain, 0))
    except _Endless:
        return None


def _extent(box: isl.Set, dim: int) -> int:
    return box.dim_max_val(dim).to_python() - box.dim_min_val(dim).to_python() + 1


class _Endless(Exception):
    pass


def _points(points_left: isl.Set, dim: int) -> float:
    """Those of the dimensions from `dim` on; the ones before are fixed."""
    rank = points_left.dim(SET)
    if dim == rank:
        return 1.0
    if points_left.is_empty():
        return 0.0
    low, high = points_left.dim_min_val(dim), points_left.dim_max_val(dim)
    if not (low.is_int() and high.is_int()):
        raise _Endless
    first, last = low.to_python(), high.to_python()
    if dim == rank - 1:
        return last - first + 1

    def at(value: int) -> float:
        return _points(points_left.fix_val(SET, dim, isl.Val(value)), dim + 1)

    degree = rank - dim - 1
    if last - first <= degree + 1:
        return sum(map(at, range(first, last + 1)))
    total = last - first + 1
    every = np.linspace(-1, 1, min(total, MOST))
    places, counts = _looked_at(at, first, total, degree + 2)
    form = np.polynomial.Polynomial.fit(places, counts, degree, domain=[-1, 1])
    if np.allclose(form(places), counts, rtol=1e-9):
        return float(form(every).mean()) * total
    places, counts = _looked_at(at, first, total, NODES)
    return float(np.interp(every, places, counts).mean()) * total


def _looked_at(
    at: Callable[[int], float], first: int, total: int, nodes: int
) -> tuple[list[float], list[float]]:
    """Evenly spaced values of a loop as places of [-1, 1], and what is `at` them."""
    steps = sorted({(total - 1) * node // (nodes - 1) for node in range(nodes)})
    return [2 * step / (total - 1) - 1 for step in steps], [at(first + step) for step in steps]
