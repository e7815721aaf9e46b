"""The memory a program works on: its arguments, and what it allocates between tasks.

Function -> its buffers by the value that stands for each, and the storages they lie in.
"""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.program import schedule_operations, top_operations
from avial_lab.compiler.ir.views import DYNAMIC
from avial_lab.core.buffers import UNBOUNDED, Binding, Buffer, Storage, row_major
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.core.errors import BindError, PassError


def program_buffers(
    function: ir.Operation, binding: Binding | None
) -> tuple[dict[ir.Value, Buffer], tuple[Storage, ...]]:
    """The function's memref arguments and the memory it allocates between tasks, with their
    storages.
    """
    bound = {buffer.name: buffer for buffer in binding.buffers} if binding is not None else {}
    shared = (
        {storage.name: storage for storage in binding.storages if storage.shared} if binding else {}
    )
    roots: dict[ir.Value, Buffer] = {}
    arg_attrs = function.attributes.get("arg_attrs")
    for k, argument in enumerate(function.regions[0].blocks[0].arguments):
        if not isinstance(argument.type, ir.MemRefType):
            continue
        name = argument_name(arg_attrs, k) or name_of(argument.location) or f"arg{k}"
        roots[argument] = bound.get(name) or _unbound(name, argument.type)
    taken = {buffer.name for buffer in roots.values()}
    for op in (*top_operations(function), *schedule_operations(function)):
        if op.name in ("memref.alloc", "memref.alloca"):
            result = op.results[0]
            name = fresh_name(name_of(op.location) or "temporary", taken)
            taken.add(name)
            roots[result] = replace(_unbound(name, result.type), temporary=True)
    storages: dict[str, Storage] = {}
    for buffer in roots.values():
        own = Storage(buffer.name, buffer.shape, buffer.itemsize, (buffer.name,))
        storages.setdefault(buffer.storage, shared.get(buffer.storage, own))
    return roots, tuple(storages.values())


def caller_memory(
    function: ir.Operation, binding: Binding | None
) -> tuple[tuple[Buffer, ...], tuple[Storage, ...]]:
    """The arrays behind the function's memref arguments, in their order, and their storages.

    Raises BindError where no array says how long one is, or no value what a number is.
    """
    for argument in function.regions[0].blocks[0].arguments:
        if not isinstance(argument.type, ir.MemRefType) or not argument.type.has_static_shape:
            name = name_of(argument.location)
            raise BindError(
                f"no array or number is given for %{name}, which is {argument.type}",
                span=span_of(argument.location),
                hint=f"pass {name}",
            )
    roots, storages = program_buffers(function, binding)
    buffers = tuple(buffer for buffer in roots.values() if not buffer.temporary)
    kept = {buffer.storage for buffer in buffers}
    return buffers, tuple(storage for storage in storages if storage.name in kept)


def argument_name(arg_attrs: ir.Attribute | None, position: int) -> str | None:
    """What the attributes of a function's arguments call the one at `position`."""
    if arg_attrs is None:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(arg_attrs)[position])
    return ir.StringAttr(attributes["avial.name"]).value if "avial.name" in attributes else None


def fresh_name(name: str, taken: set[str]) -> str:
    """`name`, or with a number behind it where it is taken."""
    return (
        name
        if name not in taken
        else next(fresh for k in range(len(taken) + 1) if (fresh := f"{name}_{k}") not in taken)
    )


def _unbound(name: str, memref: ir.Type) -> Buffer:
    """The buffer of that type where no array is bound; a size that is not known counts as
    unbounded.
    """
    memref = ir.MemRefType(memref)
    shape = tuple(UNBOUNDED if size == DYNAMIC else size for size in memref.shape)
    element = str(memref.element_type)
    if element not in ITEMSIZE:
        raise PassError(
            f"buffer '{name}' has elements of type {element}, which no NumPy array holds"
        )
    return Buffer(name, shape, element, name, row_major(shape))
