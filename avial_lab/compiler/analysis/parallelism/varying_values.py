"""Which values may differ between the threads of a block.

Launch -> values in it. The others are the same for all: what decides by them is decided alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.operations import operations_in


def varying_values(launch: ir.Operation, threads: Sequence[ir.Value]) -> set[ir.Value]:
    """What may differ between threads: their numbers, what they load or exchange, and what comes of
    such values or is handed on where such a value decides.
    """
    found, waiting = set(threads), list(threads)
    goes_to: dict[ir.Value, list[ir.Value]] = {}
    for op in operations_in(launch):
        for sources, targets in _flows(op):
            for source in sources:
                goes_to.setdefault(source, []).extend(targets)
        if op.name not in _FLOWS and op.name not in _OF_ALL and not is_pure(op):
            own = [
                argument for r in op.regions for block in r.blocks for argument in block.arguments
            ]
            waiting += [value for value in (*op.results, *own) if value not in found]
            found.update(waiting)
    while waiting:
        fresh = [value for value in goes_to.get(waiting.pop(), ()) if value not in found]
        found.update(fresh)
        waiting += fresh
    return found


_FLOWS = ("scf.if", "scf.for", "scf.while")

_OF_ALL = ("nvvm.barrier",)
"""Of what all threads have, the same for all."""

_Flow = tuple[Sequence[ir.Value], Sequence[ir.Value]]


def _flows(op: ir.Operation) -> Iterator[_Flow]:
    """What in an operation makes what else differ, if it does."""
    if op.name not in _FLOWS:
        if is_pure(op):
            yield op.operands, op.results
        return
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    ends = [list(list(block.operations)[-1].operation.operands) for block in blocks]
    if op.name == "scf.if":
        yield op.operands, op.results
        handed = [(end, op.results) for end in ends]
    elif op.name == "scf.for":
        counter, *carried = blocks[0].arguments
        yield list(op.operands)[:3], [counter, *carried, *op.results]
        handed = [(values, to) for values in (list(op.operands)[3:], ends[0])
                  for to in (carried, op.results)]  # fmt: skip
    else:
        goes_on, *passed = ends[0]
        before, after = (block.arguments for block in blocks)
        yield [goes_on], [*before, *after, *op.results]
        handed = [(op.operands, before), (ends[1], before), (passed, after), (passed, op.results)]
    for values, to in handed:
        yield from (([value], [target]) for value, target in zip(values, to, strict=True))
