"""How often a loop runs, and what decides that.

A loop -> its number of iterations where it is a constant; the values its bounds are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.accesses.views import defining
from avial_lab.polyhedra.affine import Affine
from avial_lab.polyhedra.indices import evaluate
from avial_lab.polyhedra.model import Loop, LoopKind
from avial_lab.polyhedra.nesting import defined_in


@dataclass(frozen=True)
class Bounds:
    """From the greatest of `lows` to below the least of `highs`; numbers where they are constant.

    `values` are the operands they are computed from, and the step where that is one.
    """

    lows: tuple[int | None, ...]
    highs: tuple[int | None, ...]
    values: tuple[ir.Value, ...]


def trip_count(loop: Loop) -> int | None:
    """How many iterations it has, where bounds and step are constants."""
    if loop.kind is LoopKind.WHILE or loop.step is None:
        return None
    found = bounds_of(loop)
    lows = [low for low in found.lows if low is not None]
    highs = [high for high in found.highs if high is not None]
    if len(lows) < len(found.lows) or len(highs) < len(found.highs):
        return None
    return max(0, -((max(lows) - min(highs)) // loop.step))


def bounds_of(loop: Loop) -> Bounds:
    """The bounds of a loop that is not a `while`."""
    op, dim = loop.op, loop.dimension
    operands = list(op.operands)
    if op.name == "affine.for":
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        low, high = operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]
        maps = op.attributes["lowerBoundMap"].value, op.attributes["upperBoundMap"].value
        return Bounds(_results(maps[0], low), _results(maps[1], high), (*low, *high))
    if op.name == "affine.parallel":
        maps = op.attributes["lowerBoundsMap"].value, op.attributes["upperBoundsMap"].value
        low, high = operands[: maps[0].n_inputs], operands[maps[0].n_inputs :]
        return Bounds(
            _group(op, "lowerBoundsGroups", dim, _results(maps[0], low)),
            _group(op, "upperBoundsGroups", dim, _results(maps[1], high)),
            (*low, *high),
        )
    rank = (
        1 if op.name == "scf.for" else ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
    )
    low, high, step = (operands[dim + k * rank] for k in range(3))
    return Bounds((_constant(low),), (_constant(high),), (low, high, step))


def _group(
    op: ir.Operation, name: str, dimension: int, results: tuple[int | None, ...]
) -> tuple[int | None, ...]:
    sizes = [int(size) for size in ir.DenseIntElementsAttr(op.attributes[name])]
    start = sum(sizes[:dimension])
    return results[start : start + sizes[dimension]]


def _results(affine_map: ir.AffineMap, operands: Sequence[ir.Value]) -> tuple[int | None, ...]:
    known = [_constant(operand) for operand in operands]
    forms = [None if value is None else Affine(value) for value in known]
    split = affine_map.n_dims
    found = [evaluate(expr, forms[:split], forms[split:]) for expr in affine_map.results]
    return tuple(form.constant if form is not None and form.is_constant else None for form in found)


def _constant(value: ir.Value) -> int | None:
    op = defining(value)
    if op is None or op.name not in ("arith.constant", "index.constant"):
        return None
    return ir.IntegerAttr(op.attributes["value"]).value


def fixed_in(loop: Loop, nest: ir.Operation) -> bool:
    """Whether the bounds of `loop` have one value while `nest` runs."""
    return not any(defined_in(nest, value) for value in bounds_of(loop).values)


def counts_from(loop: Loop, variables: Iterable[ir.Value]) -> bool:
    """Whether its number of iterations is computed from one of `variables`, not through memory."""
    return any(value in list(variables) for value in _computed_from(bounds_of(loop).values))


def _computed_from(values: Iterable[ir.Value]) -> Iterator[ir.Value]:
    """The values and what arithmetic makes them of."""
    seen: list[ir.Value] = []
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.append(value)
        yield value
        op = defining(value)
        if (
            op is not None
            and op.name.partition(".")[0] in ("arith", "index", "affine")
            and (op.name != "affine.load")
        ):
            pending.extend(op.operands)


def variable_of(loop: Loop) -> ir.Value:
    """The block argument that holds the loop's variable."""
    return loop.op.regions[0].blocks[0].arguments[loop.dimension]
