"""Which of the caller's arrays a nest only scratches on: each iteration may have its own.

A nest that cannot be split as it is -> the arrays that alone forbid it, and that each iteration of
its outermost loop overwrites before it reads, the last one all that any of them wrote.

    for r                                   sum forbids r: every r writes sum[p]. But each r reads
      for p: sum[p] = …                     what it wrote itself, and the last r leaves in it what
      for p: A[r, p] = sum[p]               all of them together leave: s may be private to r

Source: P. Tu, D. Padua, Automatic array privatization, LCPC 1993 ("last value assignment").
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from avial_lab.compiler.analysis.parallelism.privatisation import reads_its_own
from avial_lab.compiler.analysis.parallelism.splits import FEW, LoopNest, Splitter
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Array, ArrayKind, Statement
from avial_lab.compiler.analysis.polyhedral.trip_counts import trip_count
from avial_lab.compiler.ir.nesting import defined_in

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


@dataclass(frozen=True)
class Scratch:
    """`array` may be private to the iterations of a nest's loop, with what the last one leaves in
    its own handed on. `whole`: that is every element; otherwise the last one keeps the rest.
    """

    array: Array
    whole: bool


def scratch(nest: LoopNest, splitter: Splitter) -> tuple[Scratch, ...]:
    """What to make private so that the nest's own loop can be split; none where that is not all."""
    loop = nest.loops[0]
    count = trip_count(loop)
    iterations = splitter.scop.iterations.get(loop)
    if nest.op.name not in ("affine.for", "scf.for") or len(nest.op.results):
        return ()
    if iterations is None or (count is not None and count < FEW):
        return ()
    last = limited(lambda: _last(iterations), lambda: None)
    found: list[Scratch] = []
    for array in dict.fromkeys(conflict.array for conflict in splitter.conflicts(nest)):
        whole = None if last is None else _handed_on(array, nest, last)
        if whole is None or not _replaceable(array, nest):
            return ()
        found.append(Scratch(array, whole))
    return tuple(found)


def _replaceable(array: Array, nest: LoopNest) -> bool:
    """Whether all the nest does with the array it does to the memref itself, not to a view."""
    if array.kind is not ArrayKind.MEMORY or array.value is None:
        return False
    if defined_in(nest.op, array.value):
        return False
    places = {s.name: nest.around for s in nest.statements}
    return all(
        array.value in list(s.op.operands)
        for s in nest.statements
        if any(access.array is array for access in s.accesses)
    ) and reads_its_own(array, nest.statements, places, nest.around)


def _last(iterations: isl.Set) -> isl.Set:
    """Those of the loop's iterations after which, with the loops around as they are, none comes."""
    own = iterations.dim(SET) - 1
    pairs = isl.Map.from_domain_and_range(iterations, iterations)
    for dim in range(own):
        pairs = pairs.equate(IN, dim, OUT, dim)
    return iterations.subtract(pairs.order_lt(IN, own, OUT, own).domain())


def _handed_on(array: Array, nest: LoopNest, last: isl.Set) -> bool | None:
    """Whether the last iteration leaves all elements written; None where it may leave out one that
    another iteration wrote.
    """

    def compute() -> bool | None:
        any_writes: isl.Map | None = None
        last_writes: isl.Map | None = None
        for statement in nest.statements:
            for access in statement.accesses:
                if access.array is not array or not access.writes:
                    continue
                written = _by_turn(access.relation, statement, nest)
                any_writes = _both(any_writes, written)
                if statement.must_write(access):
                    last_writes = _both(last_writes, written.intersect_domain(last))
        if any_writes is None or last_writes is None:
            return None
        own = last.dim(SET) - 1
        left, all_of_it = (each.project_out(IN, own, 1) for each in (last_writes, any_writes))
        if not all_of_it.is_subset(left):
            return None
        return _fills(array, left, last.project_out(SET, own, 1))

    return limited(compute, lambda: None)


def _by_turn(relation: isl.Map, statement: Statement, nest: LoopNest) -> isl.Map:
    """{ [outer…, v] -> array element } of an access, for all iterations of its inner loops."""
    inner = len(statement.loops) - nest.around - 1
    projected = relation.project_out(IN, nest.around + 1, inner)
    return projected.reset_tuple_id(IN)


def _both(first: isl.Map | None, second: isl.Map) -> isl.Map:
    return second if first is None else first.union(second)


def _fills(array: Array, left: isl.Map, turns: isl.Set) -> bool:
    """Whether every element is among those left, at every turn of the loops around."""
    if None in array.sizes:
        return False
    dims = [f"x{k}_" for k in range(array.rank)]
    bounds = [f"0 <= {dim} < {size}" for dim, size in zip(dims, array.sizes, strict=True)]
    count = left.dim(isl.dim_type.param)
    parameters = [str(left.get_dim_name(isl.dim_type.param, k)) for k in range(count)]
    text = f"{{ {array.name}[{', '.join(dims)}] : {' and '.join(bounds) or 'true'} }}"
    elements = isl.Set(f"[{', '.join(parameters)}] -> {text}")
    return isl.Map.from_domain_and_range(turns, elements).is_subset(left)
