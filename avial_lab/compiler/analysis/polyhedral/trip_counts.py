"""How often a loop runs, and what decides that.

A loop -> its number of iterations where it is a constant; the values its bounds are made of.
A set of iterations -> how many there are at most along one dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.indices import evaluate
from avial_lab.compiler.analysis.polyhedral.scop import Loop, LoopKind
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import integer_of
from avial_lab.compiler.ir.views import defining

FAR = 2**40
"""Stands for a number of terms that is not known when the program is compiled."""


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


def most_iterations(domain: isl.Set, place: int, step: int = 1) -> int:
    """From the least to the greatest value of one dimension, in steps."""
    return _extent(domain, place) // step + 1


def _extent(domain: isl.Set, place: int) -> int:
    """From the least to the greatest value of one dimension; FAR where nobody knows."""
    domain = domain.project_out(isl.dim_type.param, 0, domain.dim(isl.dim_type.param))
    if domain.is_empty():
        return 0
    ends = limited(lambda: [domain.dim_min_val(place), domain.dim_max_val(place)], list)
    if not ends or not all(end.is_int() for end in ends):
        return FAR
    low, high = (end.to_python() for end in ends)
    return high - low


def bounds_of(loop: Loop) -> Bounds:
    """The bounds of a loop that is not a `while`."""
    op, dim = loop.op, loop.dimension
    operands = list(op.operands)
    if op.name == "affine.for":
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        lows = _Results.of(op, "lowerBoundMap", operands[: sizes[0]])
        highs = _Results.of(op, "upperBoundMap", operands[sizes[0] : sizes[0] + sizes[1]])
        return Bounds(lows.numbers, highs.numbers, (*lows.values, *highs.values))
    if op.name == "affine.parallel":
        split = op.attributes["lowerBoundsMap"].value.n_inputs
        lows = _Results.of(op, "lowerBoundsMap", operands[:split])
        highs = _Results.of(op, "upperBoundsMap", operands[split:])
        return Bounds(
            lows.numbers[_group(op, "lowerBoundsGroups", dim)],
            highs.numbers[_group(op, "upperBoundsGroups", dim)],
            (*lows.values, *highs.values),
        )
    # An scf.parallel has initial values behind, for what it reduces.
    sizes = op.attributes.get("operandSegmentSizes")
    rank = 1 if sizes is None else ir.DenseI32ArrayAttr(sizes)[0]
    low, high, step = (operands[dim + k * rank] for k in range(3))
    return Bounds((_constant(low),), (_constant(high),), (low, high, step))


def _group(op: ir.Operation, name: str, dimension: int) -> slice:
    sizes = [int(size) for size in ir.DenseIntElementsAttr(op.attributes[name])]
    start = sum(sizes[:dimension])
    return slice(start, start + sizes[dimension])


@dataclass(frozen=True)
class _Results:
    """An affine map's results where they are numbers, and the operands they are computed from."""

    numbers: tuple[int | None, ...]
    values: tuple[ir.Value, ...]

    @staticmethod
    def of(op: ir.Operation, attribute: str, operands: Sequence[ir.Value]) -> _Results:
        affine_map = op.attributes[attribute].value
        names = [f"operand{k}_" for k in range(len(operands))]
        known = [_constant(operand) for operand in operands]
        forms = [
            Affine.of(name) if value is None else Affine(value)
            for name, value in zip(names, known, strict=True)
        ]
        split = affine_map.n_dims
        found = [evaluate(expr, forms[:split], forms[split:]) for expr in affine_map.results]
        text = " ".join(map(str, found))
        used = [
            operand
            for operand, name in zip(operands, names, strict=True)
            if None in found or name in text
        ]
        numbers = [form.constant if form and form.is_constant else None for form in found]
        return _Results(tuple(numbers), tuple(used))


def _constant(value: ir.Value) -> int | None:
    op = defining(value)
    if op is None or op.name not in ("arith.constant", "index.constant"):
        return None
    return integer_of(op.attributes["value"])


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
