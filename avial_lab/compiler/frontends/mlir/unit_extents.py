"""Windows that drop extents of 1 say which: MLIR guesses by strides, and guesses wrong.

Module -> the same, where no memref.subview leaves out some of its extents of 1 and keeps others,
unless its strides are known and differ, which tells them apart; nor does a slice of a tensor.

MLIR 22 takes the first dimension of extent 1 as dropped whose stride could be one that is left out
(llvm/llvm-project PR 217361); an open stride could be any. Its canonicalize and expand-strided-
metadata then change which elements the window has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from mlir import ir
from mlir.dialects import memref, tensor

from avial_lab.compiler.ir.dialects.avial import operand_segments
from avial_lab.compiler.ir.operations import constant_of, operations_named
from avial_lab.compiler.ir.views import (
    DYNAMIC,
    dimensions_left,
    kept_dimensions,
    long_dimensions,
)


def collapse_unit_extents(module: ir.Operation) -> None:
    """Drop them by collapse_shape, whose groups say what stays.

    before:  %v = memref.subview %A[0, 1, 1, 1] [1, %n, 1, %m] [1, 1, 1, 1]
                    : … to memref<1x?x?xf32, strided<[?, ?, 1], offset: ?>>
    after:   %w = memref.subview %A[0, 1, 1, 1] [1, %n, 1, %m] [1, 1, 1, 1]
                    : … to memref<1x?x1x?xf32, strided<[?, ?, ?, 1], offset: ?>>
             %v = memref.collapse_shape %w [[0], [1, 2], [3]]
    """
    for op in operations_named(module, "memref.subview"):
        rank = ir.MemRefType(op.results[0].type).rank
        if rank and _is_a_guess(op, rank):
            with op.context, op.location, ir.InsertionPoint(op):
                _collapsed(op)


def drop_unit_steps(module: ir.Operation) -> None:
    """The step between the elements of a slice that has one is 1: any is right, and by another
    MLIR's bufferization does not find again which dimensions are dropped, and ends the process.

    before:  tensor.extract_slice %a[%i, 0][1, 4][2, 1] : tensor<9x4xf32> to tensor<4xf32>
    after:   tensor.extract_slice %a[%i, 0][1, 4][1, 1] : tensor<9x4xf32> to tensor<4xf32>
    """
    for op in operations_named(module, "tensor.extract_slice", "tensor.insert_slice"):
        steps = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
        alone = [
            size == 1 and step != DYNAMIC for size, step in zip(_sizes(op), steps, strict=True)
        ]
        steps = [1 if one else step for one, step in zip(alone, steps, strict=True)]
        op.attributes["static_strides"] = ir.DenseI64ArrayAttr.get(steps, op.context)


def reshape_slices(module: ir.Operation) -> None:
    """Slices of tensors that drop some extents of 1 and keep others drop them by a shape: once a
    size is a number, MLIR's canonicalize takes the first extents of 1 for the dropped ones
    (`inferCanonicalRankReducedResultType`), and then reads and writes other elements.

    before:  tensor.insert_slice %x into %a[0, %i, 3][%n, 3, 1][1, 1, 1]
                 : tensor<?x3xf32> into tensor<2x3x4xf32>
    after:   %w = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 3, 1]
             tensor.insert_slice %w into %a[0, %i, 3][%n, 3, 1][1, 1, 1]
                 : tensor<?x3x1xf32> into tensor<2x3x4xf32>
    """
    for op in operations_named(module, "tensor.extract_slice", "tensor.insert_slice"):
        inserts = op.name == "tensor.insert_slice"
        small = ir.RankedTensorType((op.operands[0] if inserts else op.results[0]).type)
        sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        dropped = len(sizes) - small.rank
        if dropped in (0, sizes.count(1) + sizes.count(DYNAMIC)):
            continue
        groups = _groups(dimensions_left(sizes, small.shape), len(sizes))
        with op.context, op.location, ir.InsertionPoint(op):
            (_insert_whole if inserts else _extract_whole)(op, sizes, small, groups)


def _insert_whole(
    op: ir.Operation, sizes: list[int], small: ir.RankedTensorType, groups: list[list[int]]
) -> None:
    fitting = ir.RankedTensorType.get(
        [sizes[long_dimensions(group, _ones(sizes))[-1]] for group in groups], small.element_type
    )
    whole = ir.RankedTensorType.get(sizes, small.element_type)
    source = op.operands[0]
    given = source if source.type == fitting else tensor.cast(fitting, source)
    op.operands[0] = tensor.expand_shape(whole, given, groups, _open_sizes(op), sizes)


def _extract_whole(
    op: ir.Operation, sizes: list[int], small: ir.RankedTensorType, groups: list[list[int]]
) -> None:
    attributes = {name: op.attributes[name] for name in op.attributes}
    kind = ir.RankedTensorType.get(sizes, small.element_type)
    whole = ir.Operation.create(op.name, [kind], list(op.operands), attributes).result
    extents = [sizes[long_dimensions(group, _ones(sizes))[-1]] for group in groups]
    collapsed = ir.RankedTensorType.get(extents, small.element_type)
    made = tensor.collapse_shape(collapsed, whole, groups)
    op.results[0].replace_all_uses_with(made if made.type == small else tensor.cast(small, made))
    op.erase()


def _ones(sizes: Sequence[int]) -> set[int]:
    return {dim for dim, size in enumerate(sizes) if size == 1}


def _open_sizes(op: ir.Operation) -> list[ir.Value]:
    """The operands of a slice that are its sizes."""
    *_, sizes, steps = operand_segments(op)
    end = len(op.operands) - steps
    return list(op.operands)[end - sizes : end]


def _sizes(op: ir.Operation) -> list[int | None]:
    """A slice's, as far as they are numbers."""
    given = iter(_open_sizes(op))
    static = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    return [constant_of(next(given)) if size == DYNAMIC else size for size in static]


def _is_a_guess(op: ir.Operation, kept: int) -> bool:
    """Whether strides have to tell which dimensions of extent 1 are dropped, and do not, since that
    of an open extent, which may turn out to be 1, is the same. Those of the source are looked at,
    so that a step between elements hides them, also one of a dimension that is no candidate: its
    stride is taken for another's.
    """
    sizes, steps = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("sizes", "strides")
    )
    dropped = len(sizes) - kept
    if dropped in (0, sizes.count(1) + sizes.count(DYNAMIC)):
        return False
    strides, _ = ir.MemRefType(op.operands[0].type).get_strides_and_offset()
    ones, open_ = (
        {stride for size, stride in zip(sizes, strides, strict=True) if size == extent}
        for extent in (1, DYNAMIC)
    )
    return bool(ones & open_) or DYNAMIC in strides or any(step != 1 for step in steps)


def _collapsed(op: ir.Operation) -> None:
    """As long as its type allows it."""
    wanted, kind = ir.MemRefType(op.results[0].type), _type_with_all_dimensions(op)
    choices = list(_choices(op, kind))
    fitting = (
        groups
        for whole in (True, False)
        for groups in choices
        if _may_be_cast(_collapsed_type(kind, groups), wanted, whole=whole)
    )
    groups = next(fitting, None)
    if groups is None:
        return
    attributes = {name: op.attributes[name] for name in op.attributes}
    whole = ir.Operation.create(op.name, [kind], list(op.operands), attributes).result
    collapsed = memref.collapse_shape(_collapsed_type(kind, groups), whole, groups)
    if collapsed.type != wanted:
        # By way of open strides: MLIR casts no stride to another, along one element neither.
        open_ = ir.StridedLayoutAttr.get(DYNAMIC, [DYNAMIC] * wanted.rank)
        shape, element = list(wanted.shape), wanted.element_type
        between = ir.MemRefType.get(shape, element, open_, wanted.memory_space)
        collapsed = memref.cast(wanted, memref.cast(between, collapsed))
    op.results[0].replace_all_uses_with(collapsed)
    op.erase()


def _choices(op: ir.Operation, kind: ir.MemRefType) -> Iterator[list[list[int]]]:
    """Groups that leave the extents of the window: of extents of 1 side by side any may be the ones
    that are dropped, which has the same elements; the strides of its type may tell.
    """
    shape, kept = list(kind.shape), kept_dimensions(op)
    yield _groups(kept, kind.rank)
    left = [shape[dim] for dim in kept]
    for each in combinations(range(kind.rank), len(kept)):
        rest = [shape[dim] for dim in range(kind.rank) if dim not in each]
        if [shape[dim] for dim in each] == left and set(rest) == {1}:
            yield _groups(each, kind.rank)


def _may_be_cast(given: ir.MemRefType, wanted: ir.MemRefType, *, whole: bool) -> bool:
    """Whether they are the same elements: with the same strides, or (not `whole`) with any along a
    single element.
    """
    (strides, offset), (others, other) = (kind.get_strides_and_offset() for kind in (given, wanted))
    return all(
        (size == 1 and not whole) or a == b or DYNAMIC in (a, b)
        for size, a, b in zip([*wanted.shape, 0], [*strides, offset], [*others, other], strict=True)
    )


def _type_with_all_dimensions(op: ir.Operation) -> ir.MemRefType:
    """The type of the same window with its extents of 1."""
    source = ir.MemRefType(op.operands[0].type)
    sizes, steps, starts = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("sizes", "strides", "offsets")
    )
    strides, offset = source.get_strides_and_offset()
    for start, stride in zip(starts, strides, strict=True):
        offset = _plus(offset, _times(start, stride))
    steps = [_times(step, stride) for step, stride in zip(steps, strides, strict=True)]
    layout = ir.StridedLayoutAttr.get(offset, steps)
    return ir.MemRefType.get(sizes, source.element_type, layout, source.memory_space)


def _groups(kept: Sequence[int], rank: int) -> list[list[int]]:
    """Each dimension that stays with the dropped ones behind it; the first with those before it."""
    firsts = [0, *kept[1:]]
    return [list(range(*ends)) for ends in zip(firsts, [*firsts[1:], rank], strict=True)]


def _collapsed_type(whole: ir.MemRefType, groups: Sequence[Sequence[int]]) -> ir.MemRefType:
    """The type that MLIR infers: where the last of several is open, its stride is, too."""
    shape, (strides, offset) = list(whole.shape), whole.get_strides_and_offset()
    ones = {dim for dim, size in enumerate(shape) if size == 1}
    long = [long_dimensions(group, ones)[-1] for group in groups]
    open_ = [
        shape[dim] == DYNAMIC and dim != group[0] for dim, group in zip(long, groups, strict=True)
    ]
    steps = [DYNAMIC if o else strides[dim] for o, dim in zip(open_, long, strict=True)]
    layout = ir.StridedLayoutAttr.get(offset, steps)
    extents = [shape[dim] for dim in long]
    return ir.MemRefType.get(extents, whole.element_type, layout, whole.memory_space)


def _times(a: int, b: int) -> int:
    if 0 in (a, b):
        return 0
    return DYNAMIC if DYNAMIC in (a, b) else a * b


def _plus(a: int, b: int) -> int:
    return DYNAMIC if DYNAMIC in (a, b) else a + b
