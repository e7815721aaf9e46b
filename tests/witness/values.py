"""What the interpreter computes with: numbers of any width, and arrays of them.

MLIR type -> `Element`; NumPy array <-> `Array`. A number is a Python int (its bits, from 0 to
2^width - 1, whatever its sign), a NumPy or ml_dtypes scalar of its own type, or POISON. Memory is a
flat list of such numbers, so that any width fits and each element may be poison by itself; a memref
is a strided view of it, a tensor or a vector a view of memory that nobody else has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
from mlir import ir

INDEX_WIDTH = 64
DYNAMIC = -(2**63)
"""How MLIR writes an extent that is known only at run time."""


class WitnessError(Exception):
    """`place` is the operation's location, as MLIR prints it."""

    place: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()}{f' at {self.place}' if self.place else ''}"


class Undefined(WitnessError):
    """The program has no meaning: out of bounds, a division by zero, an overflow that a flag rules
    out, a value that was never written.
    """


class Unsupported(WitnessError):
    """The interpreter does not know the operation; nothing is said about the program."""


class Poison:
    """A value that was never written: it may be copied, and not be looked at."""

    __array_ufunc__ = None

    def _looked_at(self, *_: object) -> NoReturn:
        raise Undefined("a value that was never written is used")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        __and__
    ) = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lt__ = __le__ = __gt__ = __ge__ = (
        __neg__
    ) = __invert__ = __bool__ = __int__ = __float__ = __index__ = __lshift__ = __rlshift__ = (
        __rshift__
    ) = __rrshift__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _looked_at  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        self._looked_at()

    def __ne__(self, other: object) -> bool:
        self._looked_at()

    __hash__ = object.__hash__


POISON = Poison()

Number = Any
Value = Any
"""A Number or an Array."""


# -- elements --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Integer:
    """Integers of `width` bits; `index` has 64."""

    width: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    @property
    def least(self) -> int:
        return -(1 << self.width - 1)

    def signed(self, bits: int) -> int:
        return bits - (1 << self.width) if bits >> self.width - 1 else bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of an array of the caller's; `object` for a width that NumPy does not have."""
        if self.width == 1:
            return np.dtype(bool)
        return np.dtype(f"i{self.width // 8}" if self.width in (8, 16, 32, 64) else object)

    def read(self, value: Any) -> Number:
        return int(value) & self.mask

    def write(self, number: Number) -> Any:
        return self.signed(number) if self.width > 1 else number


@dataclass(frozen=True)
class Float:
    """Floating-point or complex numbers of one NumPy (or ml_dtypes) type."""

    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        return self.dtype.itemsize * 8

    def read(self, value: Any) -> Number:
        return self.dtype.type(value)

    def write(self, number: Number) -> Any:
        return number


@dataclass(frozen=True)
class Compound:
    """Elements that are vectors; only moved."""

    def read(self, value: Any) -> Number:
        return value

    write = read
    dtype = np.dtype(object)


Element = Integer | Float | Compound

_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
}


@cache
def element_named(name: str) -> Element:
    """By MLIR's name: i7, index, bf16, complex<f32>."""
    if name == "index":
        return Integer(INDEX_WIDTH)
    if name in _FLOATS:
        return Float(np.dtype(_FLOATS[name]))
    if name.startswith("vector<"):
        return Compound()
    if name[0] == "i" and name[1:].isdigit():
        return Integer(int(name[1:]))
    raise Unsupported(f"numbers of type {name}")


def is_shaped(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ShapedType | ir.UnrankedMemRefType)


def element_of(type_: ir.Type) -> Element:
    """Of a number's type, or of the elements of a shaped one."""
    if isinstance(type_, ir.ShapedType):
        type_ = type_.element_type
    return element_named(str(type_))


# -- arrays ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """A strided view: element [i, j, …] is `memory[offset + i * strides[0] + …]`."""

    memory: list[Number]
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(sizes: Sequence[int], numbers: Iterable[Number] | None = None) -> Array:
        """In fresh memory, row by row; without `numbers`, poison."""
        if any(size < 0 for size in sizes):
            raise Undefined(f"a negative extent in {list(sizes)}")
        memory = [POISON] * prod(sizes) if numbers is None else list(numbers)
        assert len(memory) == prod(sizes)
        return Array(memory, 0, tuple(sizes), row_major(sizes))

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def place(self, index: Sequence[int]) -> int:
        """Where the element is in memory; `index` is signed."""
        at = self.offset
        for k, size, stride in zip(index, self.sizes, self.strides, strict=True):
            if not 0 <= k < size:
                raise Undefined(f"[{', '.join(map(str, index))}] is outside of {list(self.sizes)}")
            at += k * stride
        if not 0 <= at < len(self.memory):
            raise Undefined(f"a view reaches to {at} in memory of {len(self.memory)} elements")
        return at

    def indices(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.sizes))

    def values(self) -> list[Number]:
        """Row by row."""
        return [self.memory[self.place(index)] for index in self.indices()]

    def __getitem__(self, index: Sequence[int]) -> Number:
        return self.memory[self.place(index)]

    def __setitem__(self, index: Sequence[int], number: Number) -> None:
        self.memory[self.place(index)] = number

    def fill(self, numbers: Iterable[Number]) -> None:
        for index, number in zip(self.indices(), numbers, strict=True):
            self[index] = number

    def copy(self) -> Array:
        return Array.of(self.sizes, self.values())

    def reshaped(self, sizes: Sequence[int]) -> Array:
        """The same elements row by row, in fresh memory."""
        return Array.of(sizes, self.values())


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(sizes[k + 1 :]) for k in range(len(sizes)))


def from_numpy(array: np.ndarray, element: Element) -> Array:
    return Array.of(
        array.shape,
        map(element.read, array.ravel().tolist() if array.dtype.kind in "biu" else array.ravel()),
    )


def to_numpy(array: Array, element: Element) -> np.ndarray:
    """Undefined where it holds what was never written."""
    flat = np.empty(prod(array.sizes), element.dtype)
    for k, number in enumerate(array.values()):
        if number is POISON:
            raise Undefined("a result was never written")
        flat[k] = element.write(number)
    return flat.reshape(array.sizes)


# -- constants -------------------------------------------------------------------------------------


def number_of(attribute: ir.Attribute) -> Number:
    """`3 : i66`, `true`, `0x7FC00000 : f32`."""
    text, _, type_ = str(attribute).partition(" : ")
    if text in ("true", "false"):
        return int(text == "true")
    return parsed(text, element_named(type_ or "f64"))


def parsed(text: str, element: Element) -> Number:
    """A number as MLIR prints it; of a float in hexadecimal, its bits."""
    if isinstance(element, Integer):
        return {"true": 1, "false": 0}[text] if text[0] in "tf" else int(text) & element.mask
    if isinstance(element, Compound):
        raise Unsupported(f"the constant {text}")
    if text.startswith("0x"):
        bits = np.array([int(text, 16)], f"u{element.dtype.itemsize}")
        return bits.view(element.dtype)[0]
    if element.dtype.kind == "c":
        real, imaginary = text.strip("()").split(",")
        return element.dtype.type(complex(float(real), float(imaginary)))
    return element.dtype.type(float(text))


def array_of(attribute: ir.Attribute) -> Array:
    """`dense<…>` of a tensor or vector type, of any element."""
    shaped = ir.ShapedType(ir.DenseElementsAttr(attribute).type)
    sizes, element = tuple(shaped.shape), element_of(shaped)
    text = str(attribute)
    body = text[text.index("<") + 1 : text.rindex("> : ")]
    if body.startswith('"0x'):
        return Array.of(sizes, _from_bytes(bytes.fromhex(body[3:-1]), prod(sizes), element))
    pairs = isinstance(element, Float) and element.dtype.kind == "c"
    texts = _texts(body, pairs=pairs)
    if len(texts) == 1:
        texts *= prod(sizes)
    return Array.of(sizes, (parsed(t, element) for t in texts))


def _texts(body: str, *, pairs: bool) -> list[str]:
    flat = body.replace("[", " ").replace("]", " ")
    if pairs:
        return [f"({part.partition(')')[0]})" for part in flat.split("(")[1:]]
    return [part.strip() for part in flat.split(",") if part.strip()]


def _from_bytes(raw: bytes, count: int, element: Element) -> list[Number]:
    if isinstance(element, Integer) and element.width not in (8, 16, 32, 64):
        raise Unsupported("a long constant of such integers")
    values = np.frombuffer(raw, element.dtype)
    return [
        element.read(value) for value in (values if len(values) == count else values[[0] * count])
    ]
