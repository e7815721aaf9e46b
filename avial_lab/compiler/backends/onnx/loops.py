"""One loop nest on tensors (linalg.generic) as ONNX's operators.

Every value of the body is a tensor over the loops that it depends on, and over no other. A sum of
products is an Einsum of the factors, each made over its own loops; another reduction is made over
all loops, and reduced. A subscript that is no loop (of a convolution: i * 2 + k) gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from mlir import ir

from avial_lab.compiler.backends.onnx.graph import Graph, dtype_of, refused
from avial_lab.compiler.backends.onnx.scalars import constant_number, scalar
from avial_lab.compiler.ir.placements import is_tensor

Order = tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """A tensor whose dimensions are these loops, in this order; a number has none."""

    name: str
    order: Order = ()


@dataclass
class Nest:
    """`extents` of the loops. `tensor`, `number`: what values from outside are called; a tensor
    whose elements are all one number is that number (`splat`).
    """

    graph: Graph
    extents: tuple[int, ...]
    tensor: Callable[[ir.Value], str]
    splat: Callable[[ir.Value], str | None]
    number: Callable[[ir.Value], str]
    known: dict[ir.Value, Spread] = field(default_factory=dict)

    # Reading --------------------------------------------------------------------------------------

    def read(self, value: ir.Value, map_: ir.AffineMap) -> Spread:
        """An operand, as the body sees it."""
        if not is_tensor(value.type):
            return Spread(self.number(value))
        if (name := self.splat(value)) is not None:
            return Spread(name)
        name, dims = self.tensor(value), list[int]()
        for expression in map_.results:
            if isinstance(expression, ir.AffineDimExpr):
                dims.append(expression.position)
                continue
            loops = sorted(_dims_in(expression))
            points = np.indices([self.extents[loop] for loop in loops])
            places = _evaluated(expression, dict(zip(loops, points, strict=True)))
            where = np.broadcast_to(places, [self.extents[loop] for loop in loops])
            name = self.graph.node("Gather", name, self.graph.constant(where), axis=len(dims))
            dims += loops
        order = tuple(dict.fromkeys(dims))
        if len(order) < len(dims):  # a diagonal
            name = self.graph.node("Einsum", name, equation=f"{_letters(dims)}->{_letters(order)}")
        return Spread(name, order)

    def value(self, value: ir.Value) -> Spread:
        """A value of the body, or one from outside."""
        if value in self.known:
            return self.known[value]
        owner = value.owner
        parent = None if isinstance(owner, ir.Block) else owner.operation.parent
        if parent is None or parent.name != "linalg.generic":
            return Spread(self.number(value))
        self.known[value] = made = self.value_of(owner.operation)
        return made

    def value_of(self, op: ir.Operation) -> Spread:
        """What an operation on numbers makes."""
        if op.name == "arith.constant":
            return Spread(constant_number(self.graph, op))
        if op.name == "linalg.index":
            loop = ir.IntegerAttr(op.attributes["dim"]).value
            return Spread(self.graph.constant(np.arange(self.extents[loop])), (loop,))
        if op.name == "tensor.extract":
            return self._extracted(op)
        if len(op.results) != 1 or len(op.regions):
            raise refused(op)
        names, order = self.together([self.value(each) for each in op.operands])
        return Spread(scalar(self.graph, op, names), order)

    def _extracted(self, op: ir.Operation) -> Spread:
        """An element whose place is computed."""
        source, *places = op.operands
        if (name := self.splat(source)) is not None:
            return Spread(name)
        if not places:
            return Spread(self.graph.reshaped(self.tensor(source), []))
        names, order = self.together([self.value(each) for each in places])
        shape = [self.extents[loop] for loop in order]
        columns = [
            self.graph.reshaped(self.graph.expanded(each, shape), [*shape, 1]) for each in names
        ]
        where = self.graph.node("Concat", *columns, axis=-1)
        return Spread(self.graph.node("GatherND", self.tensor(source), where), order)

    # Loops of several values ----------------------------------------------------------------------

    def together(self, values: Sequence[Spread]) -> tuple[list[str], Order]:
        """Names that broadcast against each other, and the loops of what is made of them."""
        orders = dict.fromkeys(value.order for value in values if value.order)
        if len(orders) <= 1:
            return [value.name for value in values], next(iter(orders), ())
        union = tuple(sorted({loop for order in orders for loop in order}))
        return [self.over(value, union) for value in values], union

    def over(self, value: Spread, union: Order) -> str:
        """With its loops in their order, and extent 1 in place of those that it lacks."""
        if not value.order:
            return value.name
        order = tuple(loop for loop in union if loop in value.order)
        perm = [value.order.index(loop) for loop in order]
        name = self.graph.transposed(value.name, perm)
        if order == union[len(union) - len(order) :]:
            return name
        return self.graph.reshaped(name, [self.extents[d] if d in order else 1 for d in union])

    def whole(self, value: Spread, order: Order) -> str:
        """Over all of these loops, in this order."""
        shape = [self.extents[loop] for loop in order]
        if set(value.order) == set(order):
            return self.graph.transposed(value.name, [value.order.index(d) for d in order])
        union = tuple(sorted(order))
        name = self.graph.expanded(self.over(value, union), [self.extents[d] for d in union])
        return self.graph.transposed(name, [union.index(d) for d in order]) if shape else name


def nest(
    graph: Graph,
    op: ir.Operation,
    tensor: Callable[[ir.Value], str],
    splat: Callable[[ir.Value], str | None],
    number: Callable[[ir.Value], str],
) -> list[Spread]:
    """A linalg.generic's results: whole, or one number for all elements."""
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    loops = Nest(graph, _extents(op, maps), tensor, splat, number)
    block, inputs = op.regions[0].blocks[0], len(op.operands) - len(op.results)
    for argument, value, map_ in zip(block.arguments, op.operands, maps, strict=True):
        if any(True for _ in argument.uses) and argument.arg_number < inputs:
            loops.known[argument] = loops.read(value, map_)
    ends = block.operations[len(block.operations) - 1].operation.operands
    return [_result(loops, op, end, inputs + k, maps[inputs + k]) for k, end in enumerate(ends)]


def _extents(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> tuple[int, ...]:
    found = [-1] * maps[0].n_dims
    for value, map_ in zip(op.operands, maps, strict=True):
        for dim, expression in enumerate(map_.results):
            if isinstance(expression, ir.AffineDimExpr):
                found[expression.position] = value.type.shape[dim]
    if min(found, default=0) < 0:
        raise refused(op, "has a loop whose end no operand says")
    return tuple(found)


def _result(loops: Nest, op: ir.Operation, end: ir.Value, k: int, map_: ir.AffineMap) -> Spread:
    """What begins with operand k."""
    kept = [each.position for each in map_.results if isinstance(each, ir.AffineDimExpr)]
    if len(set(kept)) < len(list(map_.results)):
        raise refused(op, "writes where a subscript is no loop")
    init = op.regions[0].blocks[0].arguments[k]
    over = tuple(d for d in range(len(loops.extents)) if d not in kept)
    used = any(True for _ in init.uses)
    if used and not over:
        loops.known[init] = loops.read(op.operands[k], map_)
    value = _reduced(loops, op, end, init, k, map_, over) if used and over else loops.value(end)
    if set(value.order) & set(over):
        raise refused(op, "keeps what its last iteration yields, which ONNX cannot say")
    if not value.order:
        return value
    return Spread(loops.whole(value, tuple(kept)), tuple(kept))


# Reductions ---------------------------------------------------------------------------------------

_REDUCES = {
    "arith.addf": "ReduceSum", "arith.addi": "ReduceSum", "arith.mulf": "ReduceProd",
    "arith.muli": "ReduceProd", "arith.maximumf": "ReduceMax", "arith.maxnumf": "ReduceMax",
    "arith.maxsi": "ReduceMax", "arith.minimumf": "ReduceMin", "arith.minnumf": "ReduceMin",
    "arith.minsi": "ReduceMin", "arith.ori": "ReduceMax", "arith.andi": "ReduceMin",
    "arith.maxui": "ReduceMax", "arith.minui": "ReduceMin",
}  # fmt: skip


def _reduced(
    loops: Nest, op: ir.Operation, end: ir.Value, init: ir.Value, k: int, map_: ir.AffineMap,
    over: Order,
) -> Spread:  # fmt: skip
    """What the body adds up (multiplies, …), and what it begins with."""
    combines, where = _combiner(op, end, init)
    term = next(each for each in combines.operands if each != init)
    dtype = dtype_of(combines, term.type)
    unsigned = combines.name in ("arith.maxui", "arith.minui")
    bitwise = combines.name in ("arith.ori", "arith.andi")
    if dtype.kind != "b" and (bitwise or (unsigned and dtype.itemsize == 8)):
        raise refused(combines, "of a whole loop has no operator in ONNX here")
    kind = _REDUCES[combines.name]
    products = kind == "ReduceSum" and where is None and _einsum_takes(dtype)
    factors = _factors(term) if products else [term]
    total = _sum_of_products(loops, [loops.value(f) for f in factors], over, dtype)
    if total is None:
        value = loops.value(term)
        if where is not None:
            value = _masked(loops, value, loops.value(where), kind, dtype)
        total = _over_axes(loops, value, over, kind, dtype, unsigned=unsigned)
    begun = loops.read(op.operands[k], map_)
    if _is_neutral(loops.graph.values.get(begun.name), kind):
        return total
    names, order = loops.together([begun, total])
    return Spread(scalar(loops.graph, combines, names), order)


def _combiner(
    op: ir.Operation, end: ir.Value, init: ir.Value
) -> tuple[ir.Operation, ir.Value | None]:
    """What combines init and a term; the condition under which it does so, None for always."""
    users = [use.owner.operation for use in init.uses]
    last = None if isinstance(end.owner, ir.Block) else end.owner.operation
    where: ir.Value | None = None
    if last is not None and last.name == "arith.select" and last.operands[2] == init:
        users.remove(last)
        where, combined = last.operands[0], last.operands[1]
        last = None if isinstance(combined.owner, ir.Block) else combined.owner.operation
    if last is None or last.name not in _REDUCES or users != [last]:
        raise refused(op, "is a reduction that is no sum, product, minimum or maximum")
    return last, where


def _masked(loops: Nest, value: Spread, where: Spread, kind: str, dtype: np.dtype[Any]) -> Spread:
    """With what changes nothing where the condition is false."""
    if dtype.kind == "f":
        least, most = -np.inf, np.inf
    elif dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    else:
        least, most = False, True
    neutral = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": least, "ReduceMin": most}[kind]
    other = Spread(loops.graph.constant(neutral, dtype))
    (condition, yes, no), order = loops.together([where, value, other])
    if dtype.kind != "b":
        return Spread(loops.graph.node("Where", condition, yes, no), order)
    if kind == "ReduceMax":
        return Spread(loops.graph.node("And", condition, yes), order)
    return Spread(loops.graph.node("Or", loops.graph.node("Not", condition), yes), order)


def _einsum_takes(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fi" and dtype.itemsize >= 4


def _factors(value: ir.Value) -> list[ir.Value]:
    """Of a product, those that are none."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.name not in ("arith.mulf", "arith.muli"):
        return [value]
    return [factor for each in op.operands for factor in _factors(each)]


def _sum_of_products(
    loops: Nest, factors: Sequence[Spread], over: Order, dtype: np.dtype[Any]
) -> Spread | None:
    """None where there are no two factors with loops: the sum of one is a reduction."""
    graph = loops.graph
    wide = [each for each in factors if each.order]
    if len(wide) < 2:
        return None
    there = {loop for each in wide for loop in each.order}
    order = tuple(sorted(there - set(over)))
    terms = ",".join(_letters(each.order) for each in wide)
    name = graph.node(
        "Einsum", *(each.name for each in wide), equation=f"{terms}->{_letters(order)}"
    )
    again = prod(loops.extents[loop] for loop in over if loop not in there)
    if again != 1:
        name = graph.node("Mul", name, graph.constant(again, dtype))
    for each in factors:
        name = name if each.order else graph.node("Mul", name, each.name)
    return Spread(name, order)


def _over_axes(
    loops: Nest,
    value: Spread,
    over: Order,
    kind: str,
    dtype: np.dtype[Any],
    *,
    unsigned: bool = False,
) -> Spread:
    """A whole value, reduced. Truth values by how many there are, which is right of none, too."""
    graph = loops.graph
    union = tuple(sorted({*value.order, *over}))
    name = loops.whole(value, union)
    axes = graph.constant([union.index(loop) for loop in over])
    if dtype.kind == "b":
        every = kind == "ReduceMin"
        counted = graph.cast(graph.node("Not", name) if every else name, "int32")
        number = graph.node("ReduceSum", counted, axes, keepdims=0)
        name = graph.node("Greater", number, graph.constant(0, "int32"))
        name = graph.node("Not", name) if every else name
    elif unsigned:
        name = graph.cast(graph.cast(name, f"uint{8 * dtype.itemsize}"), "int64")
        name = graph.cast(graph.node(kind, name, axes, keepdims=0), dtype)
    elif dtype.kind in "iu" and dtype.itemsize < 4:
        name = graph.node(kind, graph.cast(name, "int32"), axes, keepdims=0)
        name = graph.cast(name, dtype)
    else:
        name = graph.node(kind, name, axes, keepdims=0)
    return Spread(name, tuple(loop for loop in union if loop not in over))


def _is_neutral(begun: np.ndarray | None, kind: str) -> bool:
    """Whether a reduction may begin without it."""
    if begun is None or begun.size != 1:
        return False
    value = begun.reshape(())
    if begun.dtype.kind == "b" or kind in ("ReduceSum", "ReduceProd"):
        neutral: Any = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": False, "ReduceMin": True}
        return bool(value == neutral[kind])
    sign = -1 if kind == "ReduceMax" else 1
    return begun.dtype.kind == "f" and bool(value == sign * np.inf)


# Subscripts ---------------------------------------------------------------------------------------


def _letters(loops: Sequence[int]) -> str:
    return "".join(chr(ord("a") + d) if d < 26 else chr(ord("A") + d - 26) for d in loops)


def _sides(expression: ir.AffineExpr) -> tuple[ir.AffineExpr, ir.AffineExpr]:
    both = ir.AffineBinaryExpr(expression)
    return both.lhs, both.rhs


def _dims_in(expression: ir.AffineExpr) -> set[int]:
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position}
    if isinstance(expression, ir.AffineConstantExpr):
        return set()
    return {loop for side in _sides(expression) for loop in _dims_in(side)}


def _evaluated(expression: ir.AffineExpr, loops: dict[int, np.ndarray]) -> np.ndarray:
    """At all points of the loops."""
    if isinstance(expression, ir.AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return np.asarray(expression.value)
    a, b = (_evaluated(side, loops) for side in _sides(expression))
    if isinstance(expression, ir.AffineAddExpr):
        return a + b
    if isinstance(expression, ir.AffineMulExpr):
        return a * b
    if isinstance(expression, ir.AffineModExpr):
        return a % b
    if isinstance(expression, ir.AffineFloorDivExpr):
        return a // b
    return -(-a // b)
