"""Every access of an array is checked: the first one outside is recorded with its place in the
cell, and the program ends.

Module after tasks-to-mpi, with loops in place of linalg and affine -> the same module with checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, memref, scf

from avial_lab.compiler.codegen.runtime_calls import add_runtime
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.operations import constant_of, itemsize_of, operations_in
from avial_lab.compiler.ir.views import view_chain
from avial_lab.core.errors import CellSpan

#: Operations that touch memory: (position of the array, position of the first index).
_ACCESSES = {
    "memref.load": (0, 1),
    "memref.store": (1, 2),
    "memref.atomic_rmw": (1, 2),
    "memref.generic_atomic_rmw": (0, 1),
    "vector.load": (0, 1),
    "vector.store": (1, 2),
}


@dataclass(frozen=True)
class Site:
    """An access in the program: where it was written and what it says (`memref.load %a[%i]`)."""

    span: CellSpan | None
    text: str


@dataclass(frozen=True)
class CheckBounds:
    """Guard every access by a comparison of its indices with the array's extents.

    before:  %x = memref.load %a[%i] : memref<20xi32>
    after:   %inside = arith.cmpi ult, %i, %c20
             %x = scf.if %inside -> i32 { load, yield } else { call @avial.outside(site, 0, %i, 20),
             yield 0 }

    The sites are listed in the module's `avial.sites`, in the order of their numbers. A subview
    that leaves its array is recorded and put at the array's start.
    """

    def __call__(self, module: ir.Operation) -> None:
        add_runtime(module, ["avial.outside"])
        sites: list[ir.Attribute] = []
        with module.context:
            for function in list(module.regions[0].blocks[0].operations):
                attributes = function.attributes
                if function.operation.name != "func.func" or "avial.ranks" in attributes:
                    continue
                for op in list(operations_in(function.operation)):
                    if op.name in _ACCESSES or op.name in _VIEWS:
                        _check(op, sites)
            module.attributes["avial.sites"] = ir.ArrayAttr.get(sites)

    def __str__(self) -> str:
        return "check-bounds"


def sites_of(module: ir.Operation) -> tuple[Site, ...]:
    """What `CheckBounds` wrote down; the number in the record minus 1 is the position here."""
    if "avial.sites" not in module.attributes:
        return ()
    return tuple(
        Site(
            span_of(ir.Location.from_attr(facts["place"], module.context)),
            ir.StringAttr(facts["text"]).value,
        )
        for facts in ir.ArrayAttr(module.attributes["avial.sites"])
    )


@dataclass(frozen=True)
class _Bound:
    """`index` of dimension `dimension` has to be at least 0 and less than `limit`; the array's
    extent is `size`.
    """

    dimension: int
    index: ir.Value
    limit: ir.Value
    size: ir.Value


def _check(op: ir.Operation, sites: list[ir.Attribute]) -> None:
    with ir.InsertionPoint(op), op.location:
        bounds = _VIEWS.get(op.name, _access_bounds)(op)
        if not bounds:
            return
        site = len(sites)
        facts = {"text": ir.StringAttr.get(_text(op)), "place": op.location.attr}
        sites.append(ir.DictAttr.get(facts))
        inside = _all(
            [arith.cmpi(arith.CmpIPredicate.ult, bound.index, bound.limit) for bound in bounds]
        )
        if op.name in _VIEWS:
            _record(inside, site, bounds)
            _settle_view(op, inside)
        else:
            _guard(op, inside, site, bounds)


def _access_bounds(op: ir.Operation) -> list[_Bound]:
    index = ir.IndexType.get()
    array, first = _ACCESSES[op.name]
    operands = list(op.operands)
    kind = ir.MemRefType(operands[array].type)
    indices = operands[first : first + kind.rank]
    widths = _widths(op, kind.rank)
    bounds: list[_Bound] = []
    for d, (value, extent, width) in enumerate(zip(indices, kind.shape, widths, strict=True)):
        known = constant_of(value)
        fixed = extent != ir.ShapedType.get_dynamic_size()
        if fixed and known is not None and 0 <= known <= extent - width:
            continue
        size = (
            arith.constant(index, extent)
            if fixed
            else memref.dim(operands[array], arith.constant(index, d))
        )
        limit = size
        if width > 1:
            zero = arith.constant(index, 0)
            limit = arith.maxsi(arith.subi(size, arith.constant(index, width - 1)), zero)
        bounds.append(_Bound(d, value, limit, size))
    return bounds


def _widths(op: ir.Operation, rank: int) -> list[int]:
    """How many elements the access takes along each dimension."""
    if not op.name.startswith("vector."):
        return [1] * rank
    value = op.result if op.name == "vector.load" else op.operands[0]
    shape = list(ir.VectorType(value.type).shape)
    return [1] * (rank - len(shape)) + shape


def _subview_bounds(op: ir.Operation) -> list[_Bound]:
    """One bound for each dimension that is not known to fit: on the first element and on the
    last.
    """
    index = ir.IndexType.get()
    source = op.operands[0]
    kind = ir.MemRefType(source.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets, sizes, strides = _subview_operands(op)
    bounds: list[_Bound] = []
    for d, extent in enumerate(kind.shape):
        parts = (offsets[d], sizes[d], strides[d])
        if extent != dynamic and all(isinstance(part, int) for part in parts):
            continue  # MLIR's verifier has checked it
        size = (
            arith.constant(index, extent)
            if extent != dynamic
            else memref.dim(source, arith.constant(index, d))
        )
        offset, count, stride = (_value(part) for part in parts)
        bounds += _ends(d, offset, count, stride, size)
    return bounds


def _view_bounds(op: ir.Operation) -> list[_Bound]:
    """One bound on the first byte of what a memref.view makes of an array of bytes, and on the
    last.
    """
    index = ir.IndexType.get()
    source, shift, *sizes = op.operands
    kind = ir.MemRefType(op.result.type)
    nbytes = _value(itemsize_of(kind.element_type))
    dynamic = iter(sizes)
    for extent in kind.shape:
        known = extent != ir.ShapedType.get_dynamic_size()
        nbytes = arith.muli(nbytes, _value(extent) if known else next(dynamic))
    room = memref.dim(source, arith.constant(index, 0))
    return _ends(0, shift, nbytes, arith.constant(index, 1), room)


def _reinterpreted_bounds(op: ir.Operation) -> list[_Bound]:
    """One bound on the lowest element of what a memref.reinterpret_cast makes of an array, and one
    on the highest, counted from where the memory of the array begins.
    """
    index = ir.IndexType.get()
    root = view_chain(op.operands[0])[-1]
    if not isinstance(root.type, ir.MemRefType):
        return []
    _, begin, *ends = memref.extract_strided_metadata(root)
    rank = ir.MemRefType(root.type).rank
    low, high = _reach(begin, ends[:rank], ends[rank:])
    offsets, sizes, strides = _subview_operands(op)
    first, last = _reach(_value(offsets[0]), list(map(_value, sizes)), list(map(_value, strides)))
    one = arith.constant(index, 1)
    empty = arith.cmpi(arith.CmpIPredicate.slt, last, first)
    first, last = (arith.select(empty, low, each) for each in (first, last))
    room = arith.addi(arith.subi(high, low), one)
    return [_Bound(0, arith.subi(each, low), room, room) for each in (first, last)]


def _reach(
    begin: ir.Value, sizes: Sequence[ir.Value], strides: Sequence[ir.Value]
) -> tuple[ir.Value, ir.Value]:
    """The lowest and the highest element that those sizes and strides reach; of none at all the
    highest is below the lowest.
    """
    index = ir.IndexType.get()
    zero, one = arith.constant(index, 0), arith.constant(index, 1)
    low = high = begin
    for size, stride in zip(sizes, strides, strict=True):
        way = arith.muli(arith.subi(size, one), stride)
        low = arith.addi(low, arith.minsi(way, zero))
        high = arith.addi(high, arith.maxsi(way, zero))
        empty = arith.cmpi(arith.CmpIPredicate.eq, size, zero)
        high = arith.select(empty, arith.subi(low, one), high)
    return low, high


def _ends(
    dimension: int, offset: ir.Value, count: ir.Value, stride: ir.Value, size: ir.Value
) -> list[_Bound]:
    """The first and the last of `count` indices have to be inside; an empty view may start
    anywhere up to the end.
    """
    index = ir.IndexType.get()
    one = arith.constant(index, 1)
    last = arith.addi(offset, arith.muli(arith.subi(count, one), stride))
    empty = arith.cmpi(arith.CmpIPredicate.eq, count, arith.constant(index, 0))
    first = arith.select(empty, arith.constant(index, 0), offset)
    last = arith.select(empty, arith.constant(index, 0), last)
    limit = arith.select(empty, one, size)
    return [_Bound(dimension, first, limit, size), _Bound(dimension, last, limit, size)]


def _subview_operands(
    op: ir.Operation,
) -> tuple[list[ir.Value | int], list[ir.Value | int], list[ir.Value | int]]:
    """Offsets, sizes and strides, each known or a value."""
    operands = iter(list(op.operands)[1:])
    groups: list[list[ir.Value | int]] = []
    for name in ("static_offsets", "static_sizes", "static_strides"):
        fixed = list(ir.DenseI64ArrayAttr(op.attributes[name]))
        groups.append([next(operands) if _is_dynamic(value) else value for value in fixed])
    return groups[0], groups[1], groups[2]


def _is_dynamic(value: int) -> bool:
    return value == ir.ShapedType.get_dynamic_stride_or_offset()


def _settle_view(op: ir.Operation, inside: ir.Value) -> None:
    """Where it leaves its array it starts at 0, with unit strides, of size 0 where that is free."""
    segments = op.attributes.get("operandSegmentSizes")
    strides = 0 if segments is None else list(ir.DenseI32ArrayAttr(segments))[3]
    for k in range(1, len(op.operands)):
        spare = arith.constant(ir.IndexType.get(), int(k >= len(op.operands) - strides))
        op.operands[k] = arith.select(inside, op.operands[k], spare)


def _record(inside: ir.Value, site: int, bounds: Sequence[_Bound]) -> None:
    outside = arith.xori(inside, arith.constant(ir.IntegerType.get_signless(1), 1))
    branch = scf.IfOp(outside)
    with ir.InsertionPoint(branch.then_block):
        _call_outside(site, bounds)
        scf.YieldOp([])


def _guard(op: ir.Operation, inside: ir.Value, site: int, bounds: Sequence[_Bound]) -> None:
    """Move `op` into the branch where its indices are inside; elsewhere its result is 0."""
    results = [result.type for result in op.results]
    branch = scf.IfOp(inside, results, has_else=True)
    for old, new in zip(op.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    then_block, else_block = (region.blocks[0] for region in branch.operation.regions)
    with ir.InsertionPoint(then_block):
        end = scf.YieldOp(list(op.results))
    op.move_before(end)
    with ir.InsertionPoint(else_block):
        _call_outside(site, bounds)
        scf.YieldOp([_zero(kind) for kind in results])


def _call_outside(site: int, bounds: Sequence[_Bound]) -> None:
    """Report the first dimension whose index is outside."""
    i64 = ir.IntegerType.get_signless(64)
    last = bounds[-1]
    dimension = arith.constant(i64, last.dimension)
    index, size = last.index, last.size
    for bound in reversed(bounds[:-1]):
        fits = arith.cmpi(arith.CmpIPredicate.ult, bound.index, bound.limit)
        dimension = arith.select(fits, dimension, arith.constant(i64, bound.dimension))
        index = arith.select(fits, index, bound.index)
        size = arith.select(fits, size, bound.size)
    operands = [
        arith.constant(i64, site),
        dimension,
        arith.index_cast(i64, index),
        arith.index_cast(i64, size),
    ]
    llvm.CallOp(None, operands, [], [], callee=ir.FlatSymbolRefAttr.get("avial.outside"))


def _zero(kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.ComplexType):
        part = ir.FloatAttr.get(kind.element_type, 0.0)
        zero = ir.ArrayAttr.get([part, part])
        return ir.Operation.create("complex.constant", [kind], [], {"value": zero}).result
    if isinstance(kind, ir.VectorType):
        element = kind.element_type
        scalar = (
            ir.FloatAttr.get(element, 0.0) if _is_float(element) else ir.IntegerAttr.get(element, 0)
        )
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, scalar))
    return arith.constant(kind, 0.0 if _is_float(kind) else 0)


def _is_float(kind: ir.Type) -> bool:
    return isinstance(kind, ir.FloatType)


def _all(conditions: Sequence[ir.Value]) -> ir.Value:
    result = conditions[0]
    for condition in conditions[1:]:
        result = arith.andi(result, condition)
    return result


def _value(part: ir.Value | int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), part) if isinstance(part, int) else part


def _text(op: ir.Operation) -> str:
    """`memref.load %a[%i, %j]`, with the names the user gave."""
    if op.name in _VIEWS:
        return f"{op.name} {_name(op.operands[0])}"
    array, first = _ACCESSES[op.name]
    operands = list(op.operands)
    rank = ir.MemRefType(operands[array].type).rank
    indices = ", ".join(
        "%…" if _made_of(value, op) else _name(value) for value in operands[first : first + rank]
    )
    if "avial.access" in op.attributes:
        return f"{ir.StringAttr(op.attributes['avial.access']).value} {_name(operands[array])}"
    return f"{op.name} {_name(operands[array])}[{indices}]"


def _made_of(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `op` itself computed the index, as affine.load does: then it bears its name."""
    owner = value.owner
    return (
        not isinstance(owner, ir.Block)
        and owner.operation.name != "arith.constant"
        and owner.operation.location == op.location
    )


def _name(value: ir.Value) -> str:
    known = constant_of(value)
    if known is not None:
        return str(known)
    name = name_of(value.location)
    return f"%{name}" if name else "%…"


_VIEWS = {
    "memref.reinterpret_cast": _reinterpreted_bounds,
    "memref.subview": _subview_bounds,
    "memref.view": _view_bounds,
}
"""Operations that make a window of an array: what says whether it fits."""
