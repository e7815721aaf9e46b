"""Accesses of vectors by their definition: one load or store of an element after the other.

Module with transfers, gathers, scatters and masked accesses -> loads and stores of memref, each of
which can be looked at, whether it is inside of its array. Vectors of very many elements, and
transfers inside of `vector.mask`, stay for MLIR's own lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.worker.reference.forms import number

MOST_ELEMENTS = 1024
"""Of a vector that is written out."""

Place = tuple[int, ...]


@dataclass(frozen=True)
class VectorAccessesByDefinition:
    """Every element by itself.

    before:  %v = vector.gather %A[%i] [%k], %mask, %pass : …, vector<4xf64>
    after:   %k0 = vector.extract %k[0]   %m0 = vector.extract %mask[0]
             %x0 = scf.if %m0 { memref.load %A[%i + %k0] } else { vector.extract %pass[0] }
             %v0 = vector.insert %x0, %pass[0] …

    A transfer that is not `in_bounds` reads its padding behind the end of the array; before the
    beginning nothing is defined.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                write = _DEFINITIONS.get(op.name)
                around = parent_of(op)
                if write is None or (around is not None and around.name == "vector.mask"):
                    continue
                with ir.InsertionPoint(op), op.location:
                    values = write(op)
                if values is None:
                    continue
                for old, new in zip(op.results, values, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()

    def __str__(self) -> str:
        return "vector-accesses-by-definition"


Values = Sequence[ir.Value] | None
"""The results, or that an operation stays."""


def _places(kind: ir.VectorType) -> Iterator[Place] | None:
    shape = list(kind.shape)
    if kind.scalable or prod(shape) > MOST_ELEMENTS:
        return None
    return product(*map(range, shape))


def _extract(vector: ir.Value, place: Place) -> ir.Value:
    return ir.Operation.create(
        "vector.extract",
        [ir.VectorType(vector.type).element_type],
        [vector],
        {"static_position": ir.DenseI64ArrayAttr.get(list(place))},
    ).result


def _insert(value: ir.Value, vector: ir.Value, place: Place) -> ir.Value:
    return ir.Operation.create(
        "vector.insert",
        [vector.type],
        [value, vector],
        {"static_position": ir.DenseI64ArrayAttr.get(list(place))},
    ).result


def _where(
    holds: Sequence[ir.Value], then: Callable[[], ir.Value], otherwise: ir.Value
) -> ir.Value:
    """The one where all conditions hold, else the other."""
    if not holds:
        return then()
    branch = scf.IfOp(_all(holds), [otherwise.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([then()])
    with ir.InsertionPoint(branch.elseRegion.blocks[0]):
        scf.YieldOp([otherwise])
    return branch.results[0]


def _when(holds: Sequence[ir.Value], then: Callable[[], None]) -> None:
    if not holds:
        then()
        return
    branch = scf.IfOp(_all(holds))
    with ir.InsertionPoint(branch.then_block):
        then()
        scf.YieldOp([])


def _all(conditions: Sequence[ir.Value]) -> ir.Value:
    result = conditions[0]
    for condition in conditions[1:]:
        result = arith.andi(result, condition)
    return result


def _plus(index: ir.Value, more: int | ir.Value) -> ir.Value:
    if isinstance(more, int):
        return arith.addi(index, number(more)) if more else index
    return arith.addi(index, more)


# -- gathers, scatters, masks ----------------------------------------------------------------------


def _index(vector: ir.Value, place: Place) -> ir.Value:
    value = _extract(vector, place)
    index = ir.IndexType.get()
    return value if value.type == index else arith.index_cast(index, value)


def _gather(op: ir.Operation) -> Values:
    array, *rest = op.operands
    *indices, offsets, mask, otherwise = rest
    places = _places(ir.VectorType(op.result.type))
    if places is None or not isinstance(array.type, ir.MemRefType):
        return None
    vector = otherwise
    for place in places:
        at = [*indices[:-1], _plus(indices[-1], _index(offsets, place))]
        held, old = [_extract(mask, place)], _extract(otherwise, place)
        vector = _insert(_where(held, lambda at=at: memref.load(array, at), old), vector, place)
    return [vector]


def _scatter(op: ir.Operation) -> Values:
    """From the first to the last: of two for one element the last holds."""
    array, *rest = op.operands
    *indices, offsets, mask, vector = rest
    places = _places(ir.VectorType(vector.type))
    if places is None or not isinstance(array.type, ir.MemRefType) or len(op.results):
        return None
    for place in places:
        at = [*indices[:-1], _plus(indices[-1], _index(offsets, place))]
        value = _extract(vector, place)
        _when([_extract(mask, place)], lambda at=at, value=value: _store(value, array, at))
    return ()


def _store(value: ir.Value, array: ir.Value, at: Sequence[ir.Value]) -> None:
    memref.StoreOp(value, array, list(at))


def _masked_load(op: ir.Operation) -> Values:
    array, *rest = op.operands
    *indices, mask, otherwise = rest
    places = _places(ir.VectorType(op.result.type))
    if places is None:
        return None
    vector = otherwise
    for place in places:
        at = _along(indices, place)
        held, old = [_extract(mask, place)], _extract(otherwise, place)
        vector = _insert(_where(held, lambda at=at: memref.load(array, at), old), vector, place)
    return [vector]


def _masked_store(op: ir.Operation) -> Values:
    array, *rest = op.operands
    *indices, mask, vector = rest
    places = _places(ir.VectorType(vector.type))
    if places is None:
        return None
    for place in places:
        at, value = _along(indices, place), _extract(vector, place)
        _when([_extract(mask, place)], lambda at=at, value=value: _store(value, array, at))
    return ()


def _along(indices: Sequence[ir.Value], place: Place) -> list[ir.Value]:
    """The element of a vector that lies along the last dimensions."""
    first = len(indices) - len(place)
    return [
        *indices[:first],
        *(_plus(index, k) for index, k in zip(indices[first:], place, strict=True)),
    ]


# -- transfers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Transfer:
    """Elements of an array, of which some dimensions are those of a vector."""

    array: ir.Value
    indices: Sequence[ir.Value]
    mask: ir.Value | None
    dimensions: tuple[int | None, ...]
    """Of the array, for each of the vector's; None: always the same element."""
    inside: tuple[bool, ...]
    """For each of the vector's dimensions, whether it is promised to end in the array."""

    def conditions(self, place: Place, at: Sequence[ir.Value]) -> list[ir.Value]:
        """Under which the element is touched."""
        held = [] if self.mask is None else [_extract(self.mask, place)]
        for dimension, promised in zip(self.dimensions, self.inside, strict=True):
            if dimension is not None and not promised:
                size = memref.dim(self.array, number(dimension))
                held.append(arith.cmpi(arith.CmpIPredicate.slt, at[dimension], size))
        return held

    def at(self, place: Place) -> list[ir.Value]:
        found = list(self.indices)
        for k, dimension in enumerate(self.dimensions):
            if dimension is not None:
                found[dimension] = _plus(found[dimension], place[k])
        return found


def _transfer(op: ir.Operation, array: int) -> _Transfer | None:
    """None for what is left to MLIR: elements that are vectors, masks of permuted transfers."""
    operands = list(op.operands)
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if not isinstance(operands[array].type, ir.MemRefType) or isinstance(
        ir.MemRefType(operands[array].type).element_type, ir.VectorType
    ):
        return None
    form = ir.AffineMapAttr(op.attributes["permutation_map"]).value
    dimensions = tuple(
        each.position if isinstance(each, ir.AffineDimExpr) else None for each in form.results
    )
    mask = operands[-1] if sizes[-1] else None
    in_order = [d for d in dimensions if d is not None] == sorted(
        d for d in dimensions if d is not None
    )
    if mask is not None and (None in dimensions or not in_order):
        return None
    first = array + 1
    indices = operands[first : first + form.n_dims]
    promises = tuple(ir.BoolAttr(each).value for each in ir.ArrayAttr(op.attributes["in_bounds"]))
    return _Transfer(operands[array], indices, mask, dimensions, promises)


def _transfer_read(op: ir.Operation) -> Values:
    found, places = _transfer(op, 0), _places(ir.VectorType(op.result.type))
    if found is None or places is None:
        return None
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    padding = op.operands[sizes[0] + sizes[1]]
    vector = ir.Operation.create("vector.broadcast", [op.result.type], [padding]).result
    for place in places:
        at = found.at(place)
        held = found.conditions(place, at)
        value = _where(held, lambda at=at: memref.load(found.array, at), padding)
        vector = _insert(value, vector, place)
    return [vector]


def _transfer_write(op: ir.Operation) -> Values:
    vector = op.operands[0]
    found, places = _transfer(op, 1), _places(ir.VectorType(vector.type))
    if found is None or places is None or len(op.results):
        return None
    for place in places:
        at, value = found.at(place), _extract(vector, place)
        held = found.conditions(place, at)
        _when(held, lambda at=at, value=value: _store(value, found.array, at))
    return ()


_DEFINITIONS: dict[str, Callable[[ir.Operation], Values]] = {
    "vector.gather": _gather,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.scatter": _scatter,
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
}
