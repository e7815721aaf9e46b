"""Orders that come from a nest's own by moving one loop after another inside all that it is around.

Units in textual order -> their times, as { unit[iteration] -> time } in lexicographic order.

    j: { S0; k: S1; S2 }    ->    { j: S0; k: j: S1; j: S2 }

Nothing has to be searched for: whether an order keeps all dependences is one question to isl.

Source: R. Allen, K. Kennedy, Optimizing compilers for modern architectures (2001), sections 2.4.2
and 5.2 (loop distribution, interchange).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.scop import Statement
from avial_lab.compiler.analysis.polyhedral.units import Unit

IN = isl.dim_type.in_

Times = Mapping[str, tuple[int | ir.Operation, ...]]
"""Of each unit what its time is made of, outermost first: places in the text, and loops."""

MOST_ALONG = 2
"""Units that run along with another loop at once, where it is not all of them."""


def starts_of(units: Sequence[Unit]) -> Iterator[Times]:
    """As the text has it, each unit as a whole where its last statement stands, or its first."""
    for which in (-1, 0):
        yield {unit.name: _time_of(unit.statements[which]) for unit in units}


def _time_of(statement: Statement) -> tuple[int | ir.Operation, ...]:
    items: list[int | ir.Operation] = [statement.position[0]]
    for loop, place in zip(statement.loops, statement.position[1:], strict=True):
        items += [loop.op, place]
    return tuple(items)


def sunk(times: Times) -> Iterator[Times]:
    """Every order in which one loop has moved inside all that it is around.

    What has no loop inside may also run along with one: with its iteration of the same number,
    before what stands in it.

        j: { k < j: S1; S2 }    ->    k: { S2 where j = k; j > k: S1 }
    """
    for loop in _all_loops(times):
        moved = {name: _with_last(time, loop) for name, time in times.items()}
        if all(loops_at(moved[name]) == loops_at(time) for name, time in times.items()):
            continue
        yield moved
        alone = [name for name, time in times.items() if loops_at(time)[-1:] == [loop]]
        for inner in dict.fromkeys(filter(None, (_after(time, loop) for time in times.values()))):
            host = next(time for time in moved.values() if inner in time)
            along = (*host[: host.index(inner)], loop, -1)
            # Loops moved before may have left others around `inner` than these units have.
            fit = [name for name in alone if set(loops_at(along)) == set(loops_at(times[name]))]
            counts = [*range(1, min(len(fit), MOST_ALONG) + 1), len(fit)]
            for count in dict.fromkeys(filter(None, counts)):
                for chosen in combinations(fit, count):
                    yield moved | {name: (*along, k) for k, name in enumerate(chosen)}


def _all_loops(times: Times) -> list[ir.Operation]:
    return list(dict.fromkeys(loop for time in times.values() for loop in loops_at(time)))


def _after(time: Sequence[int | ir.Operation], loop: ir.Operation) -> ir.Operation | None:
    """The next loop inside `loop`."""
    inner = loops_at(time)
    place = inner.index(loop) + 1 if loop in inner else len(inner)
    return inner[place] if place < len(inner) else None


def _with_last(
    time: tuple[int | ir.Operation, ...], loop: ir.Operation
) -> tuple[int | ir.Operation, ...]:
    if loop not in time:
        return time
    return (*(item for item in time if item != loop), loop)


def loops_at(time: Sequence[int | ir.Operation]) -> list[ir.Operation]:
    return [item for item in time if isinstance(item, ir.Operation)]


def innermost(unit: Unit, times: Times) -> int | None:
    """Which of the unit's loops is innermost."""
    inner = loops_at(times[unit.name])
    return next(k for k, x in enumerate(unit.loops) if x.op == inner[-1]) if inner else None


def schedule_of(units: Sequence[Unit], times: Times) -> isl.UnionMap:
    """The times of all iterations."""
    length = max(map(len, times.values()))
    found = isl.UnionMap("{ }")
    for unit in units:
        place = {loop.op: k for k, loop in enumerate(unit.loops)}
        domain = unit.domain
        space = domain.get_space().map_from_domain_and_range(
            isl.Space.alloc(isl.DEFAULT_CONTEXT, 0, 0, length)
            .range()
            .align_params(domain.get_space())
        )
        time = isl.Map.universe(space)
        for k, item in enumerate((*times[unit.name], *([0] * length))[:length]):
            if isinstance(item, int):
                time = time.fix_val(isl.dim_type.out, k, isl.Val(item))
            else:
                time = time.equate(IN, place[item], isl.dim_type.out, k)
        found = found.union(isl.UnionMap.from_map(time.intersect_domain(domain)))
    return found


def keeps(times: isl.UnionMap, ordered: isl.UnionMap) -> bool:
    """Whether all that is ordered runs in that order."""
    pairs = ordered.apply_domain(times).apply_range(times)
    if pairs.is_empty():
        return True
    steps = isl.Map.from_union_map(pairs)
    return steps.is_disjoint(isl.Map.lex_ge(steps.get_space().range()))
