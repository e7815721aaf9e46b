"""Operations on memrefs: loads, stores, views, copies, atomics.

%x = memref.load %a[%i]       memref.store %x, %a[%i]       %v = memref.subview %a[%k][4][1]
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.copied import written_target
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.rules import (
    NAME,
    ONE,
    TWO,
    finish,
    names_in,
    no_type,
    rule,
)
from avial_lab.compiler.frontends.notation.source import VALUE
from avial_lab.compiler.frontends.notation.types import DYNAMIC, Extent
from avial_lab.core.errors import VerifyError

LOAD = re.compile(rf"\s*({VALUE})\s*\[([^\[\]\n]*)\]")


STORE = re.compile(rf"\s*({VALUE})\s*,\s*({VALUE})\s*\[([^\[\]\n]*)\]")


def memref_of(e: Elaborator, name: str, offset: int, op: str) -> tuple[str, str] | None:
    """The memref type of `name` and its element; None where it cannot be told."""
    type_ = e.type_of(name, offset)
    if type_ is None:
        return None
    element = types.element_of(type_)
    if element is None or not type_.startswith("memref"):
        if type_.startswith(("!", "#")):
            return None
        raise e.error(
            f"{name} is {type_}, not a memref; {op} cannot index it", offset, kind=VerifyError
        )
    return type_, element


def check_indices(
    e: Elaborator, op: str, type_: str, inside: str, offset: int, rank_exact: bool
) -> None:
    """Check how many indices there are, and that each exists."""
    known = types.memref(type_)
    if "(" not in inside and known is not None and known.shape is not None and rank_exact:
        count = inside.count(",") + 1 if inside.strip() else 0
        if count != len(known.shape):
            raise e.error(
                f"{op} has {count} {'index' if count == 1 else 'indices'} "
                f"for a buffer of {len(known.shape)} "
                f"dimension{'' if len(known.shape) == 1 else 's'} ({type_})",
                offset,
                kind=VerifyError,
            )
    if not inside:
        return
    values = e.values
    if inside in values and values[inside] == "index":
        return
    found = False
    for m in NAME.finditer(inside):
        found = True
        where = offset + m.start()
        type_of_index = e.type_of(m[0], where, "index")
        if type_of_index is not None and type_of_index != "index" and rank_exact:
            raise e.error(
                f"{m[0]} indexes a buffer but is {type_of_index}, not index",
                where,
                f"convert it: %k = arith.index_cast {m[0]} to index",
                VerifyError,
            )
    if not found and rank_exact and inside.strip() and not op.startswith("affine"):
        raise e.error(
            f"{op} takes values as indices, not literals",
            offset,
            f"%k = arith.constant {inside.split(',')[0].strip()}",
            VerifyError,
        )


@rule("memref.load affine.load", "%x = OP %a[%i]")
def _load(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = LOAD.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    found = memref_of(e, match[1], match.start(1), op)
    if found is None:
        return finish(e, results, op, start, match.end(), None, [None])
    check_indices(e, op, found[0], match[2], match.start(2), rank_exact=True)
    return finish(e, results, op, start, match.end(), f" : {found[0]}", [found[1]])


@rule("memref.store affine.store", "OP %x, %a[%i]")
def _store(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = STORE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset, found=[])
    found = memref_of(e, match[2], match.start(2), op)
    if found is None:
        return finish(e, results, op, start, match.end(), None, [])
    value = e.type_of(match[1], match.start(1), found[1])
    check_indices(e, op, found[0], match[3], match.start(3), rank_exact=True)
    if value is not None and value != found[1] and "!" not in value + found[1]:
        raise e.error(
            f"{match[1]} is {value} but {match[2]} holds {found[1]}",
            match.start(1),
            "convert the value before it is stored",
            VerifyError,
        )
    return finish(e, results, op, start, match.end(), f" : {found[0]}", [])


@rule("memref.dim", "%n = OP %a, %dimension")
def _dim(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = TWO.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset, found=["index"])
    e.type_of(match[2], match.start(2), "index")
    type_ = e.type_of(match[1], match.start(1))
    return finish(e, results, op, start, match.end(), type_ and f" : {type_}", ["index"])


@rule("memref.rank", "%n = OP %a")
@rule("memref.extract_aligned_pointer_as_index")
def _rank(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = ONE.match(e.text, offset)
    if match is None or op != "memref.rank":
        return e.copied(results, op, start, offset, found=["index"])
    type_ = e.type_of(match[1], match.start(1))
    return finish(e, results, op, start, match.end(), type_ and f" : {type_}", ["index"])


@rule("memref.dealloc", "OP %a")
def _dealloc(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = ONE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.type_of(match[1], match.start(1))
    return finish(e, results, op, start, match.end(), type_ and f" : {type_}", [])


@rule("memref.copy", "OP %from, %to")
def _copy(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = TWO.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    a = e.type_of(match[1], match.start(1))
    b = e.type_of(match[2], match.start(2))
    suffix = None if a is None or b is None else f" : {a} to {b}"
    return finish(e, results, op, start, match.end(), suffix, [])


@rule("memref.alloc memref.alloca", "%t = OP() : memref<20xf32>")
def _alloc(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = re.compile(r"\s*\([^()]*\)\s*(?:\[[^\[\]]*\]\s*)?(?:\{[^{}]*\}\s*)?:").match(
        e.text, offset
    )
    if match is None:
        return e.copied(results, op, start, offset)
    for m in NAME.finditer(match[0]):
        e.type_of(m[0], match.start() + m.start(), "index")
    type_, _ = e.read_type(match.end())
    return e.copied(results, op, start, match.end(), found=[type_])


_TRIPLE = re.compile(rf"\s*({VALUE})\s*\[([^\[\]]*)\]\s*\[([^\[\]]*)\]\s*\[([^\[\]]*)\]")


@rule("memref.subview", "%v = OP %a[%offset][4][1]")
def _subview(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _TRIPLE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    for group in (2, 3, 4):
        for name, where in names_in(match, group):
            e.type_of(name, where, "index")
    if e.at(match.end(), ":") is not None:
        return e.copied(results, op, start, offset, found=[written_target(e, match.end())])
    type_ = e.type_of(match[1], match.start(1))
    source = types.memref(type_) if type_ else None
    if source is None:
        raise no_type(e, op, start)
    lists = [_extents(e, match, group) for group in (2, 3, 4)]
    rank = len(source.shape) if source.shape is not None else None
    if any(len(numbers) != rank for numbers in lists):
        raise e.error(
            f"{op} has {', '.join(str(len(numbers)) for numbers in lists)} offsets, sizes, strides "
            f"for a buffer of {rank} dimensions ({type_})",
            match.start(2),
            kind=VerifyError,
        )
    found = types.subview_type(source, *lists)
    if found is None:
        raise no_type(e, op, start)
    return finish(e, results, op, start, match.end(), f" : {type_} to {found}", [found])


_PERMUTATION = re.compile(rf"\s*({VALUE})\s*\(([\w\s,]*)\)\s*->\s*\(([\w\s,]*)\)")


@rule("memref.transpose", "%t = OP %a (i, j) -> (j, i)")
def _transpose(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _PERMUTATION.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    if e.at(match.end(), ":") is not None:
        return e.copied(results, op, start, offset, found=[written_target(e, match.end())])
    type_ = e.type_of(match[1], match.start(1))
    source = types.memref(type_) if type_ else None
    before, after = ([name.strip() for name in match[k].split(",")] for k in (2, 3))
    if source is None or source.shape is None or sorted(before) != sorted(after):
        raise no_type(e, op, start)
    if len(before) != len(source.shape) or len(set(before)) < len(before):
        raise e.error(
            f"{op} names {len(before)} dimensions of a buffer of {len(source.shape)} ({type_})",
            match.start(2),
            kind=VerifyError,
        )
    found = types.transposed_type(source, [before.index(name) for name in after])
    if found is None:
        raise no_type(e, op, start)
    return finish(e, results, op, start, match.end(), f" : {type_} to {found}", [found])


def _extents(e: Elaborator, match: re.Match[str], group: int) -> list[Extent]:
    parts = [part.strip() for part in match[group].split(",") if part.strip()]
    for part in parts:
        if not part.startswith("%") and not re.fullmatch(r"-?\d{1,18}", part):
            raise e.error(f"'{part[:20]}' is neither a value nor an integer", match.start(group))
    return [DYNAMIC if part.startswith("%") else int(part) for part in parts]


_ATOMIC = re.compile(rf"\s*\w+\s+({VALUE})\s*,\s*({VALUE})\s*\[([^\[\]]*)\]")


@rule("memref.atomic_rmw", "%old = OP addf %x, %a[%i]")
def _atomic(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _ATOMIC.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    found = memref_of(e, match[2], match.start(2), op)
    if found is None:
        return finish(e, results, op, start, match.end(), None, [None])
    e.type_of(match[1], match.start(1), found[1])
    check_indices(e, op, found[0], match[3], match.start(3), rank_exact=True)
    suffix = f" : ({found[1]}, {found[0]}) -> {found[1]}"
    return finish(e, results, op, start, match.end(), suffix, [found[1]])


@rule("memref.generic_atomic_rmw", "%old = OP %a[%i] { ^bb0(%x): … memref.atomic_yield %y }")
def _generic_atomic(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = LOAD.match(e.text, offset)
    found = match and memref_of(e, match[1], match.start(1), op)
    if not match or not found:
        return e.copied(results, op, start, offset)
    check_indices(e, op, found[0], match[2], match.start(2), rank_exact=True)
    if e.at(match.end(), "{") is None:
        return e.copied(results, op, start, offset, found=[found[1]], block_types=[found[1]])
    e.out.put(f"{e.text[start : match.end()]} : {found[0]}", start)
    begin = e.source.skip(match.end())
    return e.copied(
        results, op, start, begin, copy_from=begin, found=[found[1]], block_types=[found[1]]
    )
