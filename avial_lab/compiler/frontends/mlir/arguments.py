"""Bind a program's function to the caller's arrays and numbers.

Function arguments and a Binding -> arguments of the arrays' own types; numbers become constants.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.frontends.notation.elaboration import Scalar
from avial_lab.compiler.frontends.notation.source import did_you_mean
from avial_lab.compiler.frontends.notation.types import buffer_type
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.views import DYNAMIC
from avial_lab.core.buffers import Binding, Buffer, row_major
from avial_lab.core.element_types import HANDED
from avial_lab.core.errors import BindError, VerifyError


def bind_arguments(
    function: ir.Operation,
    binding: Binding | None,
    scalars: Mapping[str, Scalar],
    *,
    all_known: bool = True,
    dynamic: bool = False,
) -> frozenset[ir.Value]:
    """Every argument of the program's function gets its name, its array's type or its number.

    An argument with `?` in its type becomes static, and a memref.cast gives the body the type it
    was written for. Without `all_known`, numbers that the function never uses may be missing, and
    sizes. With `dynamic` what is `?` stays so, and what a run can be handed (`HANDED`) stays an
    argument. Returns the arguments whose arrays are read-only.
    """
    names = _names(function)
    block = function.regions[0].blocks[0]
    arguments = list(block.arguments)
    if binding is not None or scalars:
        _check_known(binding, scalars, names, function)
    keep: list[int] = []
    read_only: set[ir.Value] = set()
    for k, (argument, name) in enumerate(zip(arguments, names, strict=True)):
        if isinstance(argument.type, ir.MemRefType | ir.UnrankedMemRefType):
            keep.append(k)
            if name in scalars:
                raise BindError(
                    f"%{name} is {argument.type}, an array, but a number is given",
                    span=span_of(argument.location),
                    hint=f"pass the array {name}",
                )
            buffer = binding.buffer(name) if binding is not None else None
            if buffer is not None:
                _bind_array(argument, buffer, block, dynamic=dynamic)
                if not buffer.writable:
                    read_only.add(argument)
            elif binding is not None and all_known:
                _check_size(argument, name)
        elif name in scalars and dynamic and str(argument.type) in HANDED:
            keep.append(k)
        elif name in scalars:
            _bind_number(argument, name, scalars[name], block)
        elif not _is_number(argument.type):
            raise VerifyError(
                f"%{name} is {argument.type}, neither a memref nor a number",
                span=span_of(argument.location),
                hint="write it as a memref, %a: memref<20xf32> for example",
            )
        elif binding is not None and binding.buffer(name) is not None:
            raise BindError(
                f"%{name} is {argument.type}, a number, but an array is given",
                span=span_of(argument.location),
                hint=f"pass a number: {name}.item(), where the array has one element",
            )
        elif binding is not None and not (all_known or any(True for _ in argument.uses)):
            pass  # whatever it is
        elif binding is not None:
            raise BindError(
                f"no value for %{name} ({argument.type})",
                span=span_of(argument.location),
                hint=f"pass {name}=…",
            )
        else:
            keep.append(k)
    _set_signature(function, names, keep)
    return frozenset(read_only)


def bind_numbers(function: ir.Operation, scalars: Mapping[str, Scalar]) -> None:
    """Nobody uses arguments any more for which a number is given; there they still are."""
    block = function.regions[0].blocks[0]
    for argument, name in zip(block.arguments, _names(function), strict=True):
        if name in scalars and _is_number(argument.type):
            _bind_number(argument, name, scalars[name], block)


def _names(function: ir.Operation) -> list[str]:
    """The arguments' names: as the attribute says, else as the text calls them."""
    written = function.attributes.get("arg_attrs")
    names = []
    for k, argument in enumerate(function.regions[0].blocks[0].arguments):
        name = name_of(argument.location) or f"arg{k}"
        if written is not None and "avial.name" in written[k]:
            attribute = written[k]["avial.name"]
            if not isinstance(attribute, ir.StringAttr):
                raise VerifyError(
                    f"avial.name is {attribute}, not a string", span=span_of(argument.location)
                )
            name = attribute.value
        if name in names:
            raise VerifyError(f"two buffers are named {name}", span=span_of(argument.location))
        names.append(name)
    return names


def _check_known(
    binding: Binding | None,
    scalars: Mapping[str, Scalar],
    names: list[str],
    function: ir.Operation,
) -> None:
    arrays = [buffer.name for buffer in binding.buffers] if binding is not None else []
    for name in (*arrays, *scalars):
        if name not in names:
            what = "array" if name in arrays else "number"
            buffers = ", ".join(f"%{known}" for known in names) or "none"
            raise BindError(
                f"{what} '{name}' is not a buffer of the program",
                span=span_of(function.location),
                hint=did_you_mean(name, names) or f"its buffers: {buffers}",
            )


def _bind_array(
    argument: ir.BlockArgument, buffer: Buffer, block: ir.Block, *, dynamic: bool
) -> None:
    written = argument.type
    if str(written.element_type) == "index" and buffer.element == "i64":
        buffer = replace(buffer, element="index")  # NumPy has no other integers of that size
    if isinstance(written, ir.MemRefType) and len(written.shape) == len(buffer.shape):
        buffer = replace(buffer, strides=_steps_as_written(written, buffer))
    wanted = ir.Type.parse(buffer_type(buffer))
    if dynamic:
        with argument.location:
            wanted = _as_open(written, ir.MemRefType(wanted))
    if written == wanted:
        return
    if isinstance(written, ir.MemRefType):
        _check_fit(argument, written, ir.MemRefType(wanted), buffer)
        if written.has_static_shape and written.layout == wanted.layout:
            return
    elif str(written.element_type) != buffer.element:
        raise BindError(
            f"%{buffer.name} is {written}, but the array '{buffer.name}' holds {buffer.element}",
            span=span_of(argument.location),
        )
    location = argument.location
    argument.set_type(wanted)
    with ir.InsertionPoint.at_block_begin(block), location:
        cast = memref.CastOp(written, argument)
    argument.replace_all_uses_except(cast.result, cast.operation)


def _steps_as_written(written: ir.MemRefType, buffer: Buffer) -> tuple[int, ...]:
    """The array's strides, but along a single element, and in an array of none, those that are
    written: any are right there, and MLIR casts a memref to no others.
    """
    empty = 0 in buffer.shape
    return tuple(
        step if (empty or extent == 1) and step != DYNAMIC else stride
        for step, stride, extent in zip(
            _steps(written, buffer), buffer.strides, buffer.shape, strict=True
        )
    )


def _steps(written: ir.MemRefType, buffer: Buffer) -> Sequence[int]:
    """The strides that the type asks of the array. Without a layout they are those of an array
    without gaps, whatever its sizes: `memref.collapse_shape` counts on it.
    """
    if _is_identity(written):
        return row_major(buffer.shape)
    return written.get_strides_and_offset()[0]


def _is_identity(type_: ir.MemRefType) -> bool:
    return type_.affine_map == ir.AffineMap.get_identity(type_.rank, type_.context)


def _as_open(written: ir.Type, bound: ir.MemRefType) -> ir.MemRefType:
    """The row-major memref with `?` where it is `written`, and elsewhere the array's sizes."""
    open_ = (
        [size == DYNAMIC for size in written.shape]
        if isinstance(written, ir.MemRefType) and len(written.shape) == len(bound.shape)
        else [True] * len(bound.shape)
    )
    shape = [DYNAMIC if o else size for o, size in zip(open_, bound.shape, strict=True)]
    return ir.MemRefType.get(shape, bound.element_type)


def _check_fit(
    argument: ir.BlockArgument, written: ir.MemRefType, wanted: ir.MemRefType, buffer: Buffer
) -> None:
    """Whether the array of type `wanted` is what the program wrote."""

    def mismatch(what: str, hint: str | None = None) -> BindError:
        return BindError(
            f"%{buffer.name} is written {written}, but {what}",
            span=span_of(argument.location),
            hint=hint or f"write %{buffer.name}: {wanted}, or leave the type out",
        )

    if str(written.element_type) != buffer.element:
        raise mismatch(f"the array '{buffer.name}' holds {buffer.element}")
    shape = list(written.shape)
    if len(shape) != len(buffer.shape):
        raise mismatch(
            f"the array '{buffer.name}' has {len(buffer.shape)} "
            f"dimension{'' if len(buffer.shape) == 1 else 's'}"
        )
    if any(size not in (DYNAMIC, n) for size, n in zip(shape, buffer.shape, strict=True)):
        raise mismatch(f"the array '{buffer.name}' has shape {buffer.shape}")
    if written.memory_space is not None:
        raise mismatch("a caller's array lies in the default memory space")
    _, offset = written.get_strides_and_offset()
    fits = all(
        step in (DYNAMIC, stride)
        for step, stride in zip(_steps(written, buffer), buffer.strides, strict=True)
    )
    if not fits or offset not in (buffer.before_first, DYNAMIC):
        raise mismatch(
            f"the array '{buffer.name}' shares memory with another array "
            f"and has strides {buffer.strides}"
            if _is_identity(written)
            else f"the array '{buffer.name}' has strides {buffer.strides}",
            f"write {wanted}, leave the type out, or pass a copy: {buffer.name}.copy()",
        )


def _is_number(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType | ir.IndexType | ir.FloatType)


def _bind_number(argument: ir.BlockArgument, name: str, number: Scalar, block: ir.Block) -> None:
    type_ = argument.type
    span = span_of(argument.location)
    if not _is_number(type_):
        raise BindError(f"%{name} is {type_}, not a number", span=span)
    value: int | float
    if isinstance(type_, ir.FloatType):
        value = float(number)
        stored = ir.FloatAttr.get(type_, value, loc=argument.location).value
        if math.isfinite(value) and not math.isfinite(stored):
            raise BindError(f"{name}={number} does not fit into {type_}", span=span)
    else:
        if not isinstance(number, int):
            raise BindError(
                f"{name}={number} is not an integer, but %{name} is {type_}", span=span,
                hint=f"pass int({name})",
            )  # fmt: skip
        width = 64 if isinstance(type_, ir.IndexType) else ir.IntegerType(type_).width
        if width > 64:
            raise BindError(
                f"%{name} is {type_}; numbers are passed in 64 bits at most", span=span,
                hint="take an i64, and extend it with arith.extsi",
            )  # fmt: skip
        if not -(2 ** (width - 1)) <= int(number) < 2**width:
            raise BindError(f"{name}={number} does not fit into {type_}", span=span)
        value = int(number) - 2**width if int(number) >= 2 ** (width - 1) else int(number)
    with ir.InsertionPoint.at_block_begin(block), argument.location:
        constant = arith.ConstantOp(type_, value)
    argument.replace_all_uses_with(constant.result)


def check_sizes(function: ir.Operation, *, but: Collection[str] = ()) -> None:
    """BindError where an array's size is not known; those called as in `but` are not looked at."""
    for argument, name in zip(
        function.regions[0].blocks[0].arguments, _names(function), strict=True
    ):
        if name not in but:
            _check_size(argument, name)


def _check_size(argument: ir.BlockArgument, name: str) -> None:
    if not isinstance(argument.type, ir.MemRefType) or not argument.type.has_static_shape:
        raise BindError(
            f"buffer %{name} is {argument.type}, and no array gives its size",
            span=span_of(argument.location),
            hint=f"pass the array {name}",
        )


def _set_signature(function: ir.Operation, names: list[str], keep: list[int]) -> None:
    """Drop the arguments not in `keep`, and write types and names down in the function's
    attributes.
    """
    block = function.regions[0].blocks[0]
    attributes = function.attributes
    old = attributes.get("arg_attrs")
    for k in reversed(range(len(names))):
        if k not in keep:
            block.erase_argument(k)
    written = []
    for k in keep:
        known = {item.name: item.attr for item in old[k]} if old is not None else {}
        written.append(ir.DictAttr.get(known | {"avial.name": ir.StringAttr.get(names[k])}))
    results = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value).results
    type_ = ir.FunctionType.get([a.type for a in block.arguments], results)
    attributes["function_type"] = ir.TypeAttr.get(type_)
    if written:
        attributes["arg_attrs"] = ir.ArrayAttr.get(written)
    elif old is not None:
        del attributes["arg_attrs"]
