"""Which arrays are scratch memory: what one execution leaves in them no other ever reads.

An array, statements -> whether each read is of what was written before, for sure, at the same
value of the loops that are split; whether nothing after a nest reads what the nest left.

    %t = memref.alloca()
    for i: t[] = A[i]; B[i] = t[]      each i reads the t that it wrote: every rank has its own
    for j: t[] = B[j]; C[j] = t[]      what the first nest left in t is never read

Source: P. Tu, D. Padua, Automatic array privatization, LCPC 1993; here exact where all is affine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, ArrayKind, Statement
from avial_lab.compiler.ir.views import defining

IN, OUT = isl.dim_type.in_, isl.dim_type.out

_Placed = tuple[Statement, Access]


def is_temporary(array: Array) -> bool:
    """Whether it is the function's own memory, and every use of it is seen."""
    op = defining(array.value) if array.value is not None else None
    if array.kind is not ArrayKind.MEMORY or op is None:
        return False
    if op.name not in ("memref.alloc", "memref.alloca"):
        return False
    return not any(use.owner.operation.name == "func.return" for use in op.results[0].uses)


def reads_its_own(
    array: Array, statements: Sequence[Statement], places: Mapping[str, int], around: int
) -> bool:
    """Whether each value of the chosen loops reads of `array` only what it wrote itself before.

    `places`: the chosen loop's depth by the statement's name; `around`: the number of loops, around
    all the statements, that are at one iteration.
    """
    touching = _touching(array, statements)
    if any(statement.name not in places for statement, _ in touching):
        return False

    def order(writer: Statement, reader: Statement) -> isl.Map | None:
        pairs = _earlier(writer, reader, max(around, _shared(array, writer, reader)))
        if pairs is None:
            return None
        return pairs.equate(IN, places[writer.name], OUT, places[reader.name])

    writers = _certain(touching)
    return all(_covered(s, a, [(w, b, order(w, s)) for w, b in writers])
               for s, a in touching if not a.writes)  # fmt: skip


def is_dead_after(
    array: Array, nest: Sequence[Statement], around: int, statements: Sequence[Statement]
) -> bool:
    """Whether nobody outside the nest reads what it leaves in `array`, in any order of running.

    A read outside counts as covered where it is of what was written, for sure, after the nest ran
    and in the same iteration of the loops around both. `statements`: all there are.
    """
    names = {s.name for s in nest}
    outside = _touching(array, [s for s in statements if s.name not in names])
    writers = _certain(outside)
    for reader, access in outside:
        if access.writes:
            continue
        common = _common(nest[0], reader, around)
        after = reader.position[: common + 1] > nest[0].position[: common + 1]
        if not common and not after:
            continue  # it runs before the nest ever does
        sources = [
            (w, b, _earlier(w, reader, max(common, _shared(array, w, reader))))
            for w, b in writers
            if _common(w, reader, common) == common
            and (not after or w.position[: common + 1] > nest[0].position[: common + 1])
        ]
        if not _covered(reader, access, sources):
            return False
    return True


def _touching(array: Array, statements: Iterable[Statement]) -> list[_Placed]:
    return [(s, a) for s in statements for a in s.accesses if a.array is array]


def _certain(touching: Iterable[_Placed]) -> list[_Placed]:
    return [(s, a) for s, a in touching if s.must_write(a)]


def _common(first: Statement, second: Statement, most: int) -> int:
    """How many of their outermost loops, of the first `most`, are the same."""
    count = 0
    for x, y in zip(first.loops[:most], second.loops[:most], strict=False):
        if x is not y:
            break
        count += 1
    return count


def _shared(array: Array, first: Statement, second: Statement) -> int:
    """The loops around its allocation that both are in: each iteration has an array of its own."""
    return _common(first, second, len(array.loops))


def _earlier(writer: Statement, reader: Statement, equal: int) -> isl.Map | None:
    """{ writer[x] -> reader[y] }: x runs before y, in one iteration of the `equal` outer loops."""
    common = _common(writer, reader, len(writer.loops))
    pairs = isl.Map.from_domain_and_range(writer.domain, reader.domain)
    found: isl.Map | None = None
    for dim in range(common):
        if dim >= equal:
            before = pairs.order_lt(IN, dim, OUT, dim)
            found = before if found is None else found.union(before)
        pairs = pairs.equate(IN, dim, OUT, dim)
    if writer.position < reader.position:
        found = pairs if found is None else found.union(pairs)
    return found


def _covered(
    reader: Statement,
    access: Access,
    sources: Sequence[tuple[Statement, Access, isl.Map | None]],
) -> bool:
    """Whether each element that is read was written by one of the sources before."""

    def nothing_left() -> bool:
        left = access.relation
        for _, write, order in sources:
            if order is not None:
                left = left.subtract(order.reverse().apply_range(write.relation))
        return left.is_empty()

    return limited(nothing_left, lambda: False)
