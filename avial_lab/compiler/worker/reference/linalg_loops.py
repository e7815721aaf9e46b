"""Linear algebra by its definition: every operation is a nest of loops around its body.

Module of linalg on memory -> the same as linalg.generic; then as scf.for over memref.load and
memref.store. No iterator is moved: they run from the first to the last, the last one the fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, linalg, memref, scf

from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.worker.reference.forms import extreme, number, value_of
from avial_lab.core.errors import PassError

SEGMENTS = "operandSegmentSizes"

Values = dict[ir.Value, ir.Value]
"""What stands for a value of the body."""


@dataclass(frozen=True)
class NamedToGeneric:
    """A named operation of linear algebra is its indexing maps and its body, written out.

    before:  linalg.matmul ins(%A, %B : …) outs(%C : …)
    after:   linalg.generic {indexing_maps = […], iterator_types = ["parallel", "parallel",
             "reduction"]} ins(%A, %B : …) outs(%C : …) { ^bb0(%a, %b, %c): … }

    All its operands have a value in the body, those too that MLIR holds for unread there.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                if op.name.startswith("linalg.") and op.name != "linalg.generic" and _has_body(op):
                    _write_generic(op)

    def __str__(self) -> str:
        return "named-to-generic"


@dataclass(frozen=True)
class LinalgByDefinition:
    """A loop for each iterator, around loads of all operands, the body, and stores.

    before:  linalg.generic {…} ins(%A : memref<4x8xf32>) outs(%y : memref<4xf32>) {
               ^bb0(%a, %s): %t = arith.addf %s, %a  linalg.yield %t }
    after:   scf.for %i = 0 to 4 { scf.for %j = 0 to 8 {
               %a = memref.load %A[%i, %j]  %s = memref.load %y[%i]
               %t = arith.addf %s, %a       memref.store %t, %y[%i] } }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                if op.name == "linalg.generic":
                    with ir.InsertionPoint(op), op.location:
                        _write_loops(op)
                    op.erase()

    def __str__(self) -> str:
        return "linalg-by-definition"


def _has_body(op: ir.Operation) -> bool:
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    operations = list(op.regions[0].blocks[0].operations)
    return bool(operations) and operations[-1].operation.name == "linalg.yield"


def _write_generic(op: ir.Operation) -> None:
    maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
    count = _outputs(op)
    written = {k for form in maps[len(maps) - count :] for k in _plain_dims(form)}
    kinds = ["parallel" if k in written else "reduction" for k in range(maps[0].n_dims)]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    inputs = len(op.operands) - count
    made = ir.Operation.create(
        "linalg.generic",
        results=[result.type for result in op.results],
        operands=list(op.operands),
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(form) for form in maps]),
            "iterator_types": ir.ArrayAttr.get(iterators),
            SEGMENTS: ir.DenseI32ArrayAttr.get([inputs, count]),
        },
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    old = op.regions[0].blocks[0]
    kinds = [_element(operand.type) for operand in op.operands]
    block = made.regions[0].blocks.append(*kinds, arg_locs=[op.location] * len(kinds))
    _copy_body(old, list(block.arguments)[: len(old.arguments)], block, op.location)
    for before, after in zip(op.results, made.results, strict=True):
        before.replace_all_uses_with(after)
    op.erase()


def _outputs(op: ir.Operation) -> int:
    if SEGMENTS in op.attributes:
        return list(ir.DenseI32ArrayAttr(op.attributes[SEGMENTS]))[-1]
    return 1 if not len(op.results) else len(op.results)


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def _plain_dims(form: ir.AffineMap) -> set[int]:
    return {each.position for each in form.results if isinstance(each, ir.AffineDimExpr)}


def _copy_body(
    old: ir.Block, values: Sequence[ir.Value], into: ir.Block, place: ir.Location
) -> None:
    """The operations of `old` at the end of `into`, with `values` for its arguments."""
    inside: Values = dict(zip(old.arguments, values, strict=True))
    with ir.InsertionPoint(into):
        for view in old.operations:
            clone_into(view.operation, inside, place)


def clone_into(op: ir.Operation, inside: Values, place: ir.Location) -> None:
    """A copy at the insertion point, of the values that `inside` has for its operands."""
    copy = op.clone().operation
    if copy.location == ir.Location.unknown(copy.context):
        copy.location = place
    for each in (copy, *operations_in(copy)):
        for k, operand in enumerate(each.operands):
            if operand in inside:
                each.operands[k] = inside[operand]
    inside.update(zip(op.results, copy.results, strict=True))


# -- loops -----------------------------------------------------------------------------------------


def _write_loops(op: ir.Operation) -> None:
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    arrays = list(op.operands)
    extents = [_extent(op, arrays, maps, k) for k in range(maps[0].n_dims)]
    block = op.regions[0].blocks[0]
    outputs = list(zip(arrays, maps, strict=True))[len(arrays) - _outputs(op) :]

    def body(places: list[ir.Value]) -> None:
        values = [_element_at(a, form, places) for a, form in zip(arrays, maps, strict=True)]
        inside: Values = dict(zip(block.arguments, values, strict=True))
        *operations, end = [view.operation for view in block.operations]
        for inner in operations:
            if inner.name == "linalg.index":
                inside[inner.results[0]] = places[ir.IntegerAttr(inner.attributes["dim"]).value]
            else:
                _settle_indices(_cloned(inner, inside, op.location), places)
        for value, (array, form) in zip(end.operands, outputs, strict=True):
            at = [value_of(each, places) for each in form.results]
            memref.StoreOp(inside.get(value, value), array, at)

    nest(extents, body)


def _cloned(op: ir.Operation, inside: Values, place: ir.Location) -> ir.Operation:
    clone_into(op, inside, place)
    block = ir.InsertionPoint.current.block
    return list(block.operations)[-1].operation


def _settle_indices(op: ir.Operation, places: Sequence[ir.Value]) -> None:
    """`linalg.index` inside of a branch of the body."""
    for inner in operations_in(op):
        if inner.name == "linalg.index":
            place = places[ir.IntegerAttr(inner.attributes["dim"]).value]
            inner.results[0].replace_all_uses_with(place)
            inner.erase()


def _element_at(array: ir.Value, form: ir.AffineMap, places: Sequence[ir.Value]) -> ir.Value:
    if not isinstance(array.type, ir.MemRefType):
        return array  # a number, which is the same everywhere
    return memref.LoadOp(array, [value_of(each, places) for each in form.results]).result


def _extent(
    op: ir.Operation, arrays: Sequence[ir.Value], maps: Sequence[ir.AffineMap], dim: int
) -> ir.Value:
    """How often iterator `dim` runs: the extent of the operands that it is a subscript of. Where
    they disagree, which only the run knows, the largest: that leaves the others, which is told.
    """
    found = [
        (array, position)
        for array, form in zip(arrays, maps, strict=True)
        for position, each in enumerate(form.results)
        if isinstance(each, ir.AffineDimExpr) and each.position == dim
    ]
    if not found:
        raise PassError(f"nothing says how often iterator {dim} of {op.name} runs")
    if all(_is_known(*each) for each in found):
        return extent_of(*found[0])
    return extreme([extent_of(*each) for each in found], largest=True)


def _is_known(array: ir.Value, position: int) -> bool:
    return ir.MemRefType(array.type).shape[position] != ir.ShapedType.get_dynamic_size()


def extent_of(array: ir.Value, position: int) -> ir.Value:
    size = ir.MemRefType(array.type).shape[position]
    if size == ir.ShapedType.get_dynamic_size():
        return memref.dim(array, number(position))
    return number(size)


def nest(extents: Sequence[ir.Value], body: Callable[[list[ir.Value]], None]) -> None:
    """`body` within a loop from 0 for each of `extents`, the last one innermost."""

    def level(places: list[ir.Value]) -> None:
        if len(places) == len(extents):
            body(places)
            return
        zero, one = (arith.constant(ir.IndexType.get(), k) for k in (0, 1))
        loop = scf.ForOp(zero, extents[len(places)], one)
        with ir.InsertionPoint(loop.body):
            level([*places, loop.induction_variable])
            scf.YieldOp([])

    level([])
