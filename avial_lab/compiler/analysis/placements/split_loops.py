"""The loops of an operation on tensors, and which dimension of each operand and result they run
over: all that is needed to know what it may do with operands that are divided.

Operation -> Loops. From indexing maps and iterators, whatever the operation is called:

    linalg.matmul    x: (m, k)   w: (k, n)   out: (m, n)     k is in no result: a reduction
    arith.addf       all: (i, j)
    tensor.collapse_shape 4x6x5 to 24x5:    from: (-, -, l)   to: (-, l)     4 and 6 stay together
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import linalg

from avial_lab.compiler.ir.placements import is_tensor
from avial_lab.compiler.ir.views import DYNAMIC
from avial_lab.planning.tensor_placement import Kind

Dims = tuple[int | None, ...]
"""For each dimension of a tensor the loop that runs over it; None where it has to stay whole."""


@dataclass(frozen=True)
class Loops:
    """`operands` and `results` in the operation's order, `()` for numbers. `inits`: the operands
    that results begin with. `combined`: for each result how partial ones are, None where they
    cannot be.
    """

    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    inits: tuple[int, ...] = ()
    combined: tuple[Kind | None, ...] = ()

    def is_reduction(self, loop: int) -> bool:
        return not any(loop in dims for dims in self.results)

    def kind_of(self, result: int) -> Kind | None:
        return self.combined[result] if self.combined else None


_COMBINED = {
    "arith.addf": Kind.SUM, "arith.addi": Kind.SUM,
    "arith.maximumf": Kind.MAX, "arith.maxnumf": Kind.MAX, "arith.maxsi": Kind.MAX,
    "arith.minimumf": Kind.MIN, "arith.minnumf": Kind.MIN, "arith.minsi": Kind.MIN,
}  # fmt: skip


KnownMaps = dict[ir.Attribute, tuple[Dims, ...]]
"""What indexing maps say: operations have the same few."""


def loops_of(op: ir.Operation, known: KnownMaps | None = None) -> Loops:
    """The loops of any operation; one that is not known has none, and takes whole tensors. Maps
    that are `known` are not read again.
    """
    maps = linalg.get_indexing_maps(op) if op.name.startswith("linalg.") else None
    if maps is not None:
        known = {} if known is None else known
        if maps not in known:
            known[maps] = _dims_of(maps)
        return _of_dims(op, known[maps])
    if op.name in _TENSOR:
        return _TENSOR[op.name](op)
    if op.name in ("tensor.empty", "tensor.splat") or _is_splat(op):
        return Loops(tuple(() for _ in op.operands), tuple(_identity(r) for r in op.results))
    if _is_elementwise(op):
        return Loops(
            tuple(_identity(each) for each in op.operands),
            tuple(_identity(each) for each in op.results),
        )
    return _whole(op)


def _whole(op: ir.Operation) -> Loops:
    def dims(value: ir.Value) -> Dims:
        return (None,) * value.type.rank if is_tensor(value.type) else ()

    return Loops(tuple(map(dims, op.operands)), tuple(map(dims, op.results)))


def _identity(value: ir.Value) -> Dims:
    return tuple(range(value.type.rank)) if is_tensor(value.type) else ()


def _is_splat(op: ir.Operation) -> bool:
    if op.name != "arith.constant" or not is_tensor(op.results[0].type):
        return False
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat


def _is_elementwise(op: ir.Operation) -> bool:
    """arith and math work element by element on tensors of one shape."""
    if op.name.partition(".")[0] not in ("arith", "math") or op.name == "arith.constant":
        return False
    shapes = {
        tuple(value.type.shape) for value in (*op.operands, *op.results) if is_tensor(value.type)
    }
    return len(shapes) == 1


def _dims_of(maps: Sequence[ir.AffineMap]) -> tuple[Dims, ...]:
    values = [getattr(each, "value", each) for each in maps]
    each_dims = tuple(
        tuple(
            form.position if isinstance(form, ir.AffineDimExpr) else None for form in map_.results
        )
        for map_ in values
    )
    # A loop that some subscript mixes with others (a window) reaches over the ends of blocks.
    mixed = {
        loop
        for map_ in values
        for form in map_.results
        if not isinstance(form, ir.AffineDimExpr)
        for loop in _dims_in(form)
    }
    return tuple(tuple(None if d in mixed else d for d in each) for each in each_dims)


def _of_dims(op: ir.Operation, dims: tuple[Dims, ...]) -> Loops:
    count = len(op.results)
    inits = tuple(range(len(op.operands) - count, len(op.operands)))
    block = op.regions[0].blocks[0]
    yielded = block.operations[len(block.operations) - 1].operation.operands
    first = len(block.arguments) - count
    combined = tuple(
        _combiner(value, block.arguments[first + k]) for k, value in enumerate(yielded)
    )
    return Loops(dims, dims[len(dims) - count :], inits, combined)


def _dims_in(form: ir.AffineExpr) -> set[int]:
    if isinstance(form, ir.AffineDimExpr):
        return {form.position}
    if isinstance(form, ir.AffineBinaryExpr):
        return _dims_in(form.lhs) | _dims_in(form.rhs)
    return set()


def _combiner(value: ir.Value, total: ir.Value) -> Kind | None:
    """How what a loop adds up is combined: one operation that takes the total once, at its end."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    if op.name not in _COMBINED or len(list(total.uses)) != 1 or total not in list(op.operands):
        return None
    return _COMBINED[op.name]


# Operations on tensors that are no loops ----------------------------------------------------------


def _paired(op: ir.Operation, pairs: Sequence[tuple[int, int]]) -> Loops:
    """One operand, one result; loop k runs over dimension `pairs[k]` of both."""
    source, result = op.operands[0].type.rank, op.results[0].type.rank
    first: list[int | None] = [None] * source
    second: list[int | None] = [None] * result
    for loop, (a, b) in enumerate(pairs):
        first[a], second[b] = loop, loop
    rest = tuple(
        (None,) * value.type.rank if is_tensor(value.type) else () for value in op.operands[1:]
    )
    return Loops((tuple(first), *rest), (tuple(second),))


def _groups(op: ir.Operation) -> list[list[int]]:
    return [
        [ir.IntegerAttr(each).value for each in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(op.attributes["reassociation"])
    ]


def _main_dims(op: ir.Operation, shape: Sequence[int]) -> list[tuple[int, int]]:
    """Of each group, by its number, the dimension that is all of it: the others are 1."""
    found: list[tuple[int, int]] = []
    for k, group in enumerate(_groups(op)):
        long = [d for d in group if shape[d] != 1] or group[:1]
        if len(long) == 1:
            found.append((k, long[0]))
    return found


def _collapse(op: ir.Operation) -> Loops:
    return _paired(op, [(d, k) for k, d in _main_dims(op, op.operands[0].type.shape)])


def _expand(op: ir.Operation) -> Loops:
    return _paired(op, _main_dims(op, op.results[0].type.shape))


def _statics(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _slice(op: ir.Operation) -> Loops:
    """Dimensions that are taken as they are may be divided, where none is dropped."""
    shape, result = list(op.operands[0].type.shape), list(op.results[0].type.shape)
    if len(shape) != len(result):
        return _whole(op)
    whole = [
        (d, d)
        for d, (offset, size, step) in enumerate(
            zip(
                _statics(op, "static_offsets"),
                _statics(op, "static_sizes"),
                _statics(op, "static_strides"),
                strict=True,
            )
        )
        if offset == 0 and step == 1 and size == shape[d] != DYNAMIC
    ]
    return _paired(op, whole)


def _insert(op: ir.Operation) -> Loops:
    """Dimensions that are covered from end to end may be divided: those that a padding leaves
    alone.
    """
    source, whole = op.operands[0].type, op.operands[1].type
    if source.rank != whole.rank or len(op.operands) > 2:
        return _whole(op)
    dims: Dims = tuple(
        d if offset == 0 and step == 1 and size == n == m != DYNAMIC else None
        for d, (offset, size, step, n, m) in enumerate(
            zip(
                _statics(op, "static_offsets"),
                _statics(op, "static_sizes"),
                _statics(op, "static_strides"),
                source.shape,
                whole.shape,
                strict=True,
            )
        )
    )
    return Loops((dims, dims), (dims,))


_TENSOR = {
    "tensor.collapse_shape": _collapse,
    "tensor.expand_shape": _expand,
    "tensor.extract_slice": _slice,
    "tensor.insert_slice": _insert,
}
