"""What LLVM is told of a function, beside its operations."""

from __future__ import annotations

from mlir import ir

NOT_INLINED = "noinline"
"""It stays out of those that call it."""

NO_VECTORS = "noimplicitfloat"
"""No operations that the text has one by one are put together as vectors. (The flag is meant for
kernels of operating systems; it is the only one of a single function that LLVM's SLP vectorizer
heeds. Its loop vectorizer does so too.)
"""

NOT_OPTIMISED = "optnone"
"""It is as fast as it stands. (LLVM wants `NOT_INLINED` beside it.)"""

NO_MEMCPY = "no-builtin-memcpy"
"""Loops that copy stay loops."""

_FLAGS = "passthrough"


def tell_llvm(function: ir.Operation, *flags: str) -> None:
    """These, too."""
    known = flags_of(function)
    each = [ir.StringAttr.get(flag) for flag in dict.fromkeys((*known, *flags))]
    function.attributes[_FLAGS] = ir.ArrayAttr.get(each)


def flags_of(function: ir.Operation) -> tuple[str, ...]:
    if _FLAGS not in function.attributes:
        return ()
    return tuple(ir.StringAttr(flag).value for flag in ir.ArrayAttr(function.attributes[_FLAGS]))
