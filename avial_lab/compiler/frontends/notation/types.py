"""Types as MLIR writes them: what a load gives, what a subview is.

Type text -> its parts, and back. Only the types whose parts the notation has to know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from avial_lab.core.buffers import Buffer, row_major
from avial_lab.core.element_types import FLOATS

DYNAMIC = "?"
Extent = int | str
"""A size, stride or offset: a number, or `?`."""


SCALAR = re.compile("|".join((r"index|i\d+", *FLOATS)))
"""The types of numbers a caller may give."""


@dataclass(frozen=True)
class MemRef:
    """`memref<4x?xf32, LAYOUT, SPACE>`; layout and space are text, empty where not written.

    shape is None for an unranked memref.
    """

    shape: tuple[Extent, ...] | None
    element: str
    layout: str = ""
    space: str = ""

    def __str__(self) -> str:
        dims = "*x" if self.shape is None else "".join(f"{n}x" for n in self.shape)
        rest = "".join(f", {part}" for part in (self.layout, self.space) if part)
        return f"memref<{dims}{self.element}{rest}>"

    def strides(self) -> tuple[tuple[Extent, ...], Extent] | None:
        """Strides and offset in elements; None where the layout is a map."""
        if self.shape is None:
            return None
        if not self.layout:
            strides: list[Extent] = []
            step: Extent = 1
            for n in reversed(self.shape):
                strides.append(step)
                step = times(step, n)
            return tuple(reversed(strides)), 0
        match = _STRIDED.fullmatch(self.layout)
        if match is None:
            return None
        values = tuple(_extent(part) for part in match[1].split(",") if part.strip())
        return values, _extent(match[2] or "0")


def times(a: Extent, b: Extent) -> Extent:
    """The product, `?` where it is not known."""
    if 0 in (a, b):
        return 0
    return a * b if isinstance(a, int) and isinstance(b, int) else DYNAMIC


def plus(a: Extent, b: Extent) -> Extent:
    return a + b if isinstance(a, int) and isinstance(b, int) else DYNAMIC


def _extent(text: str) -> Extent:
    text = text.strip()
    return DYNAMIC if text == DYNAMIC else int(text)


_STRIDED = re.compile(r"strided<\s*\[([^\]]*)\]\s*(?:,\s*offset:\s*(\?|-?\d+)\s*)?>")
_DIM = re.compile(r"\s*(\d+|\?)\s*x\s*")
_UNRANKED = re.compile(r"\s*\*\s*x\s*")
_SHAPED = re.compile(r"(memref|vector|tensor)\s*<(.*)>\s*", re.DOTALL)


@cache
def memref(text: str) -> MemRef | None:
    """The parts of a memref type, None for any other type.

    >>> memref("memref<4x?xf32, strided<[?, 1], offset: 2>>").strides()
    (('?', 1), 2)
    """
    match = _SHAPED.fullmatch(text.strip())
    if match is None or match[1] != "memref":
        return None
    inner, shape = _dimensions(match[2])
    element, *rest = split_commas(inner) or [""]
    layout = next((p for p in rest if p.startswith(("strided", "affine_map")) or p[:1] == "#"), "")
    if layout[:1] == "#" and re.match(r"#\w+\.", layout):  # `#gpu.address_space<…>` is a space
        layout = ""
    space = next((p for p in rest if p != layout), "")
    return MemRef(shape, element, layout, space)


def _dimensions(inner: str) -> tuple[str, tuple[Extent, ...] | None]:
    """`4x?xf32, …` -> (`f32, …`, (4, ?))."""
    if match := _UNRANKED.match(inner):
        return inner[match.end() :], None
    shape: list[Extent] = []
    position = 0
    while match := _DIM.match(inner, position):
        # Not `int`: a number of a thousand digits is for MLIR to refuse.
        shape.append(int(match[1]) if match[1].isdecimal() and len(match[1]) < 19 else DYNAMIC)
        position = match.end()
    return inner[position:], tuple(shape)


def split_commas(text: str) -> list[str]:
    """The parts of `text` between commas outside brackets, stripped.

    >>> split_commas("f32, affine_map<(d0, d1) -> (d1)>, 3")
    ['f32', 'affine_map<(d0, d1) -> (d1)>', '3']
    """
    if not ({",", '"'} & set(text)):
        return [text.strip()] if text.strip() else []
    parts, depth, start = [], 0, 0
    for match in _SPLIT.finditer(text):
        char = match[0]
        if char in ("(", "[", "{", "<"):
            depth += 1
        elif char in (")", "]", "}", ">"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    parts.append(text[start:].strip())
    return parts


_SPLIT = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|>=|<=|[(\[{<>}\]),]')


@cache
def element_of(text: str) -> str | None:
    """What an element of a memref, vector or tensor is; None for other types.

    >>> element_of("memref<20xi32>"), element_of("vector<4xf32>"), element_of("i32")
    ('i32', 'f32', None)
    """
    match = _SHAPED.fullmatch(text.strip())
    if match is None:
        return None
    inner = re.sub(r"^\s*(?:(?:\[?\d+\]?|\?|\*)\s*x\s*)*", "", match[2])
    parts = split_commas(inner)
    return parts[0] if parts else None


@cache
def with_element(text: str, element: str) -> str:
    """The type of the same shape with other elements; a scalar becomes `element`.

    >>> with_element("vector<4xf32>", "i1"), with_element("f32", "i1")
    ('vector<4xi1>', 'i1')
    """
    match = _SHAPED.fullmatch(text.strip())
    if match is None or match[1] == "memref":
        return element
    dims = re.match(r"\s*(?:(?:\[?\d+\]?|\?|\*)\s*x\s*)*", match[2])
    return f"{match[1]}<{dims[0] if dims else ''}{element}>"


@cache
def vector_shape(text: str) -> tuple[str, ...] | None:
    """The dimensions of a vector type as text (`[4]` is scalable); None for other types."""
    match = _SHAPED.fullmatch(text.strip())
    if match is None or match[1] != "vector":
        return None
    dims = re.match(r"\s*(?:\[?\d+\]?\s*x\s*)*", match[2])
    return tuple(re.findall(r"\[?\d+\]?", dims[0])) if dims else ()


def buffer_type(buffer: Buffer) -> str:
    """The memref of a caller's array; row-major unless it shares memory with another.

    Offsets count from the lowest element, since MLIR takes no view that begins before its source.

    >>> buffer_type(Buffer("a", (4, 5), "f32", "a", (5, 1)))
    'memref<4x5xf32>'
    >>> buffer_type(Buffer("reversed", (8,), "f32", "a", (-1,), 28))
    'memref<8xf32, strided<[-1], offset: 7>>'
    """
    layout = ""
    if buffer.strides != row_major(buffer.shape):
        layout = f"strided<[{', '.join(map(str, buffer.strides))}]"
        layout += f", offset: {buffer.before_first}>" if buffer.before_first else ">"
    return str(MemRef(tuple(buffer.shape), buffer.element, layout))


def subview_type(
    source: MemRef, offsets: list[Extent], sizes: list[Extent], strides: list[Extent]
) -> str | None:
    """The type MLIR gives `memref.subview` with these numbers; None where it has to be written."""
    known = source.strides()
    if known is None or not len(known[0]) == len(offsets) == len(sizes) == len(strides):
        return None
    base, offset = known
    for step, start in zip(base, offsets, strict=True):
        offset = plus(offset, times(step, start))
    steps = [times(a, b) for a, b in zip(base, strides, strict=True)]
    return _strided(source, sizes, steps, offset)


def transposed_type(source: MemRef, order: list[int]) -> str | None:
    """The type MLIR gives `memref.transpose` whose dimension k is dimension `order[k]` of the
    source; None where it has to be written.

    >>> transposed_type(memref("memref<4x6xi64>"), [1, 0])
    'memref<6x4xi64, strided<[1, 6]>>'
    """
    known = source.strides()
    if known is None or source.shape is None:
        return None
    steps, offset = known
    return _strided(source, [source.shape[k] for k in order], [steps[k] for k in order], offset)


def _strided(
    source: MemRef, shape: Sequence[Extent], steps: Sequence[Extent], offset: Extent
) -> str:
    """A part of the source."""
    layout = (
        f"strided<[{', '.join(map(str, steps))}]{'' if offset == 0 else f', offset: {offset}'}>"
    )
    return str(MemRef(tuple(shape), source.element, layout, source.space))
