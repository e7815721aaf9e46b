"""The types of buffers: as written, as known here, or as the caller's arrays have them.

Name of a buffer -> its memref (or number's) type, or an error that says how to give it one.
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.source import did_you_mean
from avial_lab.compiler.frontends.notation.types import SCALAR
from avial_lab.core.element_types import ELEMENT_TYPES
from avial_lab.core.errors import AvialError, BindError, VerifyError


def buffer_type_of(
    e: Elaborator, name: str, where: int, written: str | None, undefined: list[tuple[str, str]]
) -> str:
    """The type of a schedule's buffer; one nothing defines becomes an argument of @main."""
    key = name[1:]
    if name in e.values:
        known = e.type_of(name, where)
        if (
            known is not None
            and written is not None
            and _without_blanks(written) != _without_blanks(known)
        ):
            raise e.error(f"{name} is {known}, not {written}", where, kind=VerifyError)
        if known is None and written is None:
            raise e.error(
                f"the type of {name} cannot be inferred here", where, f"write {name}: TYPE"
            )
        return known or written or ""
    if not e.program.in_main:
        raise e.unknown_value(name, where)
    if written is not None:
        check_written(e, name, written, where)
    type_ = written or bound_type(e, key)
    if type_ is None:
        raise no_array(e, name, where)
    if SCALAR.fullmatch(type_) is None and types.memref(type_) is None:
        raise e.error(
            f"{name} is {type_}; a buffer is a memref or a number", where,
            "memref<20xi32>, for example",
            VerifyError,
        )  # fmt: skip
    e.program.buffers[key] = (type_, where)
    undefined.append((name, type_))
    return type_


def _without_blanks(type_: str) -> str:
    return re.sub(r"\s+", "", type_)


def bound_type(e: Elaborator, name: str) -> str | None:
    """The type of the caller's array or number of that name."""
    buffer = e.binding.buffer(name) if e.binding is not None else None
    if buffer is not None:
        return types.buffer_type(buffer)
    if name in e.scalars:
        number = e.scalars[name]
        if isinstance(number, bool):
            return "i1"
        return "index" if isinstance(number, int) else "f64"
    return None


def check_written(e: Elaborator, name: str, written: str, where: int) -> None:
    """The element type and the sizes that a buffer is written with have to be those of the caller's
    array.
    """
    buffer = e.binding.buffer(name[1:]) if e.binding is not None else None
    known = types.memref(written)
    if buffer is None or known is None or known.shape is None:
        return
    malformed = re.match(r"-?\d|i\d+\D|f\d+\D", known.element)
    if malformed and known.element not in ELEMENT_TYPES:
        raise e.error(f"{written} is not a type: {known.element} is not an element type", where)
    if known.element != buffer.element and (known.element, buffer.element) != ("index", "i64"):
        problem = f"holds {buffer.element}"
    elif len(known.shape) != len(buffer.shape):
        dims = len(buffer.shape)
        problem = f"has {dims} dimension{'' if dims == 1 else 's'}"
    elif any(n not in (types.DYNAMIC, m) for n, m in zip(known.shape, buffer.shape, strict=True)):
        problem = f"has shape {buffer.shape}"
    else:
        return
    raise e.error(
        f"{name} is written {written}, but the array '{buffer.name}' {problem}",
        where,
        f"write {name}: {types.buffer_type(buffer)}, or leave the type out",
        BindError,
    )


def no_array(e: Elaborator, name: str, where: int) -> AvialError:
    known = [f"%{b.name}" for b in e.binding.buffers] if e.binding is not None else []
    hint = did_you_mean(name, known)
    hint = f"{hint} Or pass" if hint else "pass"
    return e.error(
        f"buffer {name} has no type and no array of the caller is named '{name[1:]}'",
        where,
        f"{hint} the array {name[1:]}, or write its type: {name}: memref<20xf32>",
        BindError,
    )
