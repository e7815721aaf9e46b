"""Short words for the arithmetic of indices, loops and branches, at the insertion point.

Values of type index and numbers -> values; `with loop(…)` and `with when(…)` write their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce

from mlir import ir
from mlir.dialects import affine, arith, memref, scf, vector

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.ranges import Range
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.operations import attributes_of, constant_of, operations_in, replaced
from avial_lab.compiler.ir.views import DYNAMIC


@contextmanager
def constants_first(block: ir.Block) -> Iterator[None]:
    """What is written in this context has each constant once, at the beginning of the block."""
    token = _first.set((block, {}))
    try:
        yield
    finally:
        _first.reset(token)


_Known = tuple[ir.Block, dict[ir.Attribute, ir.Operation]]
_first: ContextVar[_Known | None] = ContextVar("constants first", default=None)
"""The block of `constants_first`, and the constants at its beginning by their values."""


def _constant(kind: ir.Type, value: ir.Attribute) -> ir.Value:
    first = _first.get()
    if first is None:
        return arith.constant(kind, value)
    block, known = first
    if value not in known:
        at = ir.InsertionPoint.at_block_begin(block)
        if known:
            at = ir.InsertionPoint.after(next(reversed(known.values())))
        known[value] = arith.constant(kind, value, ip=at).owner.operation
    return known[value].result


def number(value: ir.Value | int) -> ir.Value:
    if isinstance(value, ir.Value):
        return value
    kind = ir.IndexType.get()
    return _constant(kind, ir.IntegerAttr.get(kind, value))


def as_index(value: ir.Value) -> ir.Value:
    """A whole number as one of type index."""
    if isinstance(value.type, ir.IndexType):
        return value
    return arith.index_cast(ir.IndexType.get(), value)


def plus(value: ir.Value, other: ir.Value | int) -> ir.Value:
    return value if _is_zero(other) else arith.AddIOp(value, number(other)).result


def minus(value: ir.Value, other: ir.Value | int) -> ir.Value:
    return value if _is_zero(other) else arith.SubIOp(value, number(other)).result


def _is_zero(value: ir.Value | int) -> bool:
    return isinstance(value, int) and value == 0


def times(value: ir.Value, factor: int) -> ir.Value:
    return arith.MulIOp(value, number(factor)).result


def divided(value: ir.Value, unit: ir.Value | int) -> ir.Value:
    """Of what is not negative."""
    return arith.DivUIOp(value, number(unit)).result


def pieces(count: ir.Value, unit: ir.Value | int) -> ir.Value:
    """How many of `unit` cover so many; none where there is nothing."""
    more = unit - 1 if isinstance(unit, int) else minus(unit, 1)
    return divided(plus(most(count, 0), more), unit)


def least(value: ir.Value, *others: ir.Value | int) -> ir.Value:
    return reduce(lambda a, b: arith.MinSIOp(a, number(b)).result, others, value)


def most(value: ir.Value, *others: ir.Value | int) -> ir.Value:
    return reduce(lambda a, b: arith.MaxSIOp(a, number(b)).result, others, value)


def chosen(condition: ir.Value, value: ir.Value, other: ir.Value) -> ir.Value:
    return arith.SelectOp(condition, value, other).result


def less(value: ir.Value, other: ir.Value | int) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.slt, value, number(other)).result


def at_most(value: ir.Value, other: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.sle, value, other).result


def every(*conditions: ir.Value) -> ir.Value:
    """Bits or masks that hold in all of them."""
    return reduce(lambda a, b: arith.AndIOp(a, b).result, conditions)


def splat(kind: ir.VectorType, value: int) -> ir.Value:
    """A vector of that number alone."""
    element = kind.element_type
    if isinstance(element, ir.FloatType):
        one: ir.Attribute = ir.FloatAttr.get(element, float(value))
    else:
        one = ir.IntegerAttr.get(element, value)
    held = ir.DenseElementsAttr.get_splat(kind, one)
    return _constant(kind, held)


def lanes_between(low: ir.Value, high: ir.Value, first: ir.Value, lanes: int) -> ir.Value:
    """A mask of the numbers from `first` on that are at least `low` and less than `high`."""
    kind = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    bits = [
        vector.CreateMaskOp(kind, [least(most(minus(end, first), 0), lanes)]).result
        for end in (low, high)
    ]
    return every(arith.XOrIOp(bits[0], splat(kind, 1)).result, bits[1])


def transposed(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """n vectors of n lanes, n a power of two: each lane of all of them as a vector.

    Source: J. O. Eklundh, A fast computer method for matrix transposing, IEEE TC C-21 (1972).
    """
    found, half = list(rows), len(rows) // 2
    while half:
        for k in range(len(found)):
            if not k & half:
                found[k], found[k + half] = _exchanged(found[k], found[k + half], half)
        half //= 2
    return found


def _exchanged(a: ir.Value, b: ir.Value, half: int) -> tuple[ir.Value, ir.Value]:
    """Of every 2 · half lanes, b's first half in place of a's second, and the other way round."""
    n = ir.VectorType(a.type).shape[0]
    low = [n + (k ^ half) if k & half else k for k in range(n)]
    high = [n + k if k & half else k ^ half for k in range(n)]
    made = (
        ir.Operation.create(
            "vector.shuffle", [a.type], [a, b], {"mask": ir.DenseI64ArrayAttr.get(lanes)}
        ).result
        for lanes in (low, high)
    )
    return next(made), next(made)


def parameter_values(scop: Scop) -> dict[str, ir.Value]:
    """What the parameters stand for; sizes are asked of their arrays."""
    values = {name: value for name, value in scop.parameters.items() if value is not None}
    for name, (array, dimension) in scop.sizes.items():
        if name not in values:
            values[name] = memref.DimOp(array, number(dimension)).result
    return values


def low_of(extent: Range, values: Mapping[str, ir.Value]) -> ir.Value:
    """Where it begins, with the values of the names in it."""
    return _extreme(extent.lows, values, affine.AffineMaxOp)


def high_of(extent: Range, values: Mapping[str, ir.Value]) -> ir.Value:
    """Where it ends."""
    return _extreme(extent.highs, values, affine.AffineMinOp)


def _extreme(
    forms: Sequence[Affine], values: Mapping[str, ir.Value], of: Callable[..., ir.OpView]
) -> ir.Value:
    only = affine.AffineApplyOp if len(forms) == 1 else of
    return only(*_map_of(forms, values)).operation.results[0]


def _map_of(
    forms: Sequence[Affine], values: Mapping[str, ir.Value]
) -> tuple[ir.AffineMap, list[ir.Value]]:
    """The forms as results of one map, and its operands."""
    names = sorted({name for form in forms for name, _ in form.terms})
    dims = {name: ir.AffineDimExpr.get(k) for k, name in enumerate(names)}
    made: list[ir.AffineExpr] = []
    for form in forms:
        total: ir.AffineExpr = ir.AffineConstantExpr.get(form.constant)
        for name, factor in form.terms:
            total = total + dims[name] * factor
        made.append(total)
    return ir.AffineMap.get(len(names), 0, made), [values[name] for name in names]


@contextmanager
def loop(
    low: ir.Value | int,
    high: ir.Value | int,
    *,
    step: ir.Value | int = 1,
    parallel: bool = False,
) -> Iterator[ir.Value]:
    """An scf.for, and in it, its variable; `parallel` where its iterations may run at once."""
    made = scf.ForOp(number(low), number(high), number(step))
    if parallel:
        made.operation.attributes[PARALLEL] = ir.UnitAttr.get()
    with ir.InsertionPoint(made.body):
        yield made.induction_variable
        scf.YieldOp([])


@contextmanager
def affine_loop(extent: Range, values: Mapping[str, ir.Value], *, step: int) -> Iterator[ir.Value]:
    """An affine.for over the range, and in it, its variable."""
    low, of_low = _map_of(extent.lows, values)
    high, of_high = _map_of(extent.highs, values)
    made = affine.AffineForOp(
        low, high, step, iter_args=[], lower_bound_operands=of_low, upper_bound_operands=of_high
    ).operation
    body = made.regions[0].blocks[0]
    with ir.InsertionPoint(body):
        yield body.arguments[0]
        affine.AffineYieldOp([])


@contextmanager
def when(condition: ir.Value) -> Iterator[None]:
    with ir.InsertionPoint(scf.IfOp(condition).then_block):
        yield
        scf.YieldOp([])


def either(condition: ir.Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    branch = scf.IfOp(condition, has_else=True).operation
    for region, write in zip(branch.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(region.blocks[0]):
            write()
            scf.YieldOp([])


def open_sizes(array: ir.Value) -> list[ir.Value]:
    """The sizes of a memref that its type leaves open: what an allocation of that type takes."""
    kind = ir.MemRefType(array.type)
    return [
        memref.dim(array, arith.constant(ir.IndexType.get(), dim))
        for dim, extent in enumerate(kind.shape)
        if extent == DYNAMIC
    ]


def say_places(around: ir.Operation) -> None:
    """Steps that were written out in it become numbers of accesses' maps: neighbours are known by
    them.

    before:  affine.load %A[%j + %c2]                 after:   affine.load %A[%j + 2]
    """
    for op in operations_in(around):
        if op.name in ("affine.load", "affine.store"):
            _say_places(op)


def _say_places(access: ir.Operation) -> None:
    first = 1 + (access.name == "affine.store")
    fixed, operands = list(access.operands)[:first], list(access.operands)[first:]
    numbers = [constant_of(value) for value in operands]
    form = ir.AffineMapAttr(access.attributes["map"]).value
    if form.n_symbols or all(number is None for number in numbers):
        return
    kept = [value for value, number in zip(operands, numbers, strict=True) if number is None]
    places = iter(range(len(kept)))
    inner = [
        ir.AffineDimExpr.get(next(places)) if number is None else ir.AffineConstantExpr.get(number)
        for number in numbers
    ]
    chosen = ir.AffineMap.get(len(kept), 0, inner)
    results = [each.compose(chosen) for each in form.results]
    made = ir.AffineMapAttr.get(ir.AffineMap.get(len(kept), 0, results))
    replaced(access, access.name, [*fixed, *kept], attributes_of(access) | {"map": made})
