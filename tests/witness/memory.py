"""memref: memory, and views of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mlir import ir

from tests.witness.combine import atomic_kind
from tests.witness.machine import INDEX, Frame, Op, Step, rule
from tests.witness.maps import affine_map
from tests.witness.values import DYNAMIC, Array, Undefined, Value, array_of
from tests.witness.views import (
    collapsed,
    copied,
    expanded,
    fitting,
    permuted,
    slice_of,
    without_units,
)

signed = INDEX.signed


def shape_of(type_: ir.Type) -> tuple[int, ...]:
    return tuple(cast("ir.ShapedType", type_).shape)


def sizes_of(shape: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """`shape` with `numbers`, in order, where it is open."""
    rest = iter(numbers)
    return [signed(next(rest)) if extent == DYNAMIC else extent for extent in shape]


@rule("memref.alloc", "memref.alloca", "tensor.empty", "bufferization.alloc_tensor")
def _alloc(op: Op) -> Step:
    shape, (out,) = shape_of(op.type), op.outs
    groups = op.segments() or [op.ins]

    def step(frame: Frame) -> None:
        sizes = sizes_of(shape, [frame[k] for k in groups[0]])
        frame[out] = Array.of(sizes)
        if op.name == "bufferization.alloc_tensor" and groups[1]:
            frame[out] = frame[groups[1][0]].copy()

    return step


@rule("memref.dealloc", "memref.prefetch", "memref.assume_alignment")
def _nothing(op: Op) -> Step:
    """What has a result hands its operand on."""
    ins, outs = op.ins, op.outs

    def step(frame: Frame) -> None:
        for out in outs:
            frame[out] = frame[ins[0]]

    return step


@rule("memref.load", "tensor.extract")
def _load(op: Op) -> Step:
    memory, *index = op.ins
    (out,) = op.outs

    def step(frame: Frame) -> None:
        frame[out] = frame[memory][[signed(frame[k]) for k in index]]

    return step


@rule("memref.store")
def _store(op: Op) -> Step:
    value, memory, *index = op.ins

    def step(frame: Frame) -> None:
        frame[memory][[signed(frame[k]) for k in index]] = frame[value]

    return step


@rule("memref.copy")
def _copy(op: Op) -> Step:
    source, target = op.ins
    return lambda frame: copied(frame[source], frame[target])


@rule("memref.dim", "tensor.dim")
def _dim(op: Op) -> Step:
    def extent(array: Array, number: int) -> int:
        if not number < array.rank:
            raise Undefined(f"dimension {signed(number)} of {array.rank}")
        return array.sizes[number]

    return op.pure(extent)


@rule("memref.rank", "tensor.rank")
def _rank(op: Op) -> Step:
    return op.pure(lambda array: array.rank)


# -- views -----------------------------------------------------------------------------------------


@rule("memref.subview")
def _subview(op: Op) -> Step:
    (source,), *slots = op.segments()
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, strides = (op.mixed(n, s) for n, s in zip(names, slots, strict=True))
    static, shape, (out,) = op.integers("static_sizes"), shape_of(op.type), op.outs

    def step(frame: Frame) -> None:
        view = slice_of(frame[source], offsets(frame), sizes(frame), strides(frame))
        frame[out] = without_units(view, static, shape)

    return step


@rule("memref.reinterpret_cast")
def _reinterpret(op: Op) -> Step:
    (source,), *slots = op.segments()
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, strides = (op.mixed(n, s) for n, s in zip(names, slots, strict=True))
    (out,) = op.outs

    def step(frame: Frame) -> None:
        (offset,) = offsets(frame)
        memory = frame[source].memory
        frame[out] = Array(memory, offset, tuple(sizes(frame)), tuple(strides(frame)))

    return step


@rule("memref.transpose")
def _transpose(op: Op) -> Step:
    found = affine_map(op.text("permutation"))
    permutation = [cast("int", k) for k in found.positions]
    return op.pure(lambda array: permuted(array, permutation))


@rule("memref.collapse_shape")
def _collapse(op: Op) -> Step:
    groups = op.groups("reassociation")
    return op.pure(lambda array: collapsed(array, groups))


@rule("memref.expand_shape")
def _expand(op: Op) -> Step:
    source, *dynamic = op.ins
    groups, sizes = op.groups("reassociation"), op.mixed("static_output_shape", dynamic)
    (out,) = op.outs

    def step(frame: Frame) -> None:
        frame[out] = expanded(frame[source], groups, sizes(frame))

    return step


@rule("memref.cast", "tensor.cast")
def _cast(op: Op) -> Step:
    """Also to and from types without a rank."""
    if not isinstance(op.type, ir.MemRefType | ir.RankedTensorType):
        return op.pure(lambda array: array)
    shape = shape_of(op.type)
    return op.pure(lambda array: fitting(array, shape))


@rule("memref.memory_space_cast", "memref.distinct_objects", "builtin.unrealized_conversion_cast")
def _same(op: Op) -> Step:
    return op.several(lambda *values: values)


@rule("memref.reshape", "tensor.reshape")
def _reshape(op: Op) -> Step:
    def reshaped(array: Array, sizes: Array) -> Array:
        wanted = [signed(n) if n >= 0 else n for n in sizes.values()]
        flat = collapsed(array, [range(array.rank)])
        return expanded(flat, [range(len(wanted))], wanted)

    return op.pure(reshaped)


@rule("memref.extract_strided_metadata")
def _metadata(op: Op) -> Step:
    def parts(array: Array) -> Sequence[Value]:
        base = Array(array.memory, 0, (), ())
        numbers = [array.offset, *array.sizes, *array.strides]
        return [base, *(n & INDEX.mask for n in numbers)]

    return op.several(parts)


# -- globals and single steps ----------------------------------------------------------------------


@rule("memref.get_global")
def _global(op: Op) -> Step:
    machine, (out,) = op.function.machine, op.outs
    name = ir.FlatSymbolRefAttr(op.attribute("name")).value

    def step(frame: Frame) -> None:
        if name not in machine.globals:
            machine.globals[name] = _initial(machine.symbols[name])
        frame[out] = machine.globals[name]

    return step


def _initial(op: ir.Operation) -> Array:
    attributes = op.attributes
    if "initial_value" in attributes and str(attributes["initial_value"]) != "unit":
        return array_of(attributes["initial_value"])
    return Array.of(shape_of(ir.TypeAttr(attributes["type"]).value))


@rule("memref.atomic_rmw")
def _atomic(op: Op) -> Step:
    value, memory, *index = op.ins
    (out,) = op.outs
    combine = atomic_kind(op.number("kind")).of(op.element())

    def step(frame: Frame) -> None:
        place = [signed(frame[k]) for k in index]
        frame[memory][place] = combine(frame[memory][place], frame[value])
        frame[out] = frame[memory][place]

    return step


@rule("memref.generic_atomic_rmw")
def _generic_atomic(op: Op) -> Step:
    memory, *index = op.ins
    (out,), body = op.outs, op.region()

    def step(frame: Frame) -> None:
        place = [signed(frame[k]) for k in index]
        (frame[memory][place],) = body(frame, frame[memory][place])
        frame[out] = frame[memory][place]

    return step


@rule("memref.atomic_yield")
def _atomic_yield(op: Op) -> Step:
    return op.handed_on()
