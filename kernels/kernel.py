"""What a kernel is: its MLIR for any sizes and element type, its inputs, its truth, its cost.

`kernel.mlir` is a `string.Template`. Its placeholders:

    ${N} ${NI} ${N+1} …   an extent in a type: `40`, or `?` with dynamic shapes
    ${extents}            defines each size that the body names: %n = arith.constant 40 : index, or,
                          with dynamic shapes, %n = memref.dim of the first array that has it
    ${T}                  the element type: f32, f64, i32, i64
    ${k}                  the letter of its arithmetic: arith.mul${k} is mulf or muli
    ${zero} ${one}        those constants: 0.0 or 0
    ${min} ${max}         minimumf, minsi; maximumf, maxsi

So bounds are values in the text (`affine.for %i = 0 to %n`), and one body serves static and dynamic
shapes; `canonicalize` turns the static ones into literal bounds. A size that no array shows (the
number of time steps) is an `index` argument in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kernels.rounding import Rounded

Sizes = Mapping[str, int]
"""How large: {"NI": 20, "NJ": 25, "NK": 30}."""

Value = np.ndarray | np.generic
"""An array, or a scalar of NumPy's (`index` as np.int64)."""

Arguments = dict[str, Any]
"""A kernel's `Value`s by name, in the function's order."""

ELEMENTS = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
}
"""The dtype of MLIR's element types, as far as kernels use them."""


class Role(Enum):
    """What a kernel does with an array of its caller."""

    IN = "read"
    OUT = "written, whatever it held"
    INOUT = "read and written"
    SCRATCH = "written, then read back: space to work in"


class Dataset(Enum):
    """PolyBench's five data sizes: from one that fits an L1 cache to one that fits none."""

    MINI = 0
    SMALL = 1
    MEDIUM = 2
    LARGE = 3
    EXTRALARGE = 4


# -- random values ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """What the values of one argument are drawn from and for."""

    rng: np.random.Generator
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sizes: Sizes


Values = Callable[[Draw], ArrayLike]
"""Random values of one argument, converted to its type afterwards."""


def uniform(draw: Draw) -> ArrayLike:
    """In (-1, 1); integers from -9 to 9."""
    if draw.dtype.kind == "f":
        return draw.rng.uniform(-1, 1, draw.shape)
    return draw.rng.integers(-9, 10, draw.shape)


def factor(draw: Draw) -> ArrayLike:
    """Away from 0 and 1: in (1.25, 1.75); an integer from 2 to 4."""
    if draw.dtype.kind == "f":
        return draw.rng.uniform(1.25, 1.75, draw.shape)
    return draw.rng.integers(2, 5, draw.shape)


def between(low: float, high: float) -> Values:
    """In [low, high), both integers where the element is one."""

    def values(draw: Draw) -> ArrayLike:
        if draw.dtype.kind == "f":
            return draw.rng.uniform(low, high, draw.shape)
        return draw.rng.integers(int(low), int(high), draw.shape)

    return values


def heavy_diagonal(draw: Draw) -> ArrayLike:
    """A square matrix in (-1, 1) with its order added along the diagonal: factors without pivoting,
    and read as symmetric from either triangle it is positive definite.
    """
    return draw.rng.uniform(-1, 1, draw.shape) + draw.shape[0] * np.eye(draw.shape[0])


def _poison(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """What no result is: an element that was not written, or read too early, shows."""
    return np.full(shape, np.nan if dtype.kind == "f" else np.iinfo(dtype).min, dtype)


# -- arguments -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """An array argument: extents are names of sizes, as in "NI NJ" or "N+1", or numbers.

    `element` is MLIR's type where it is not the kernel's own.
    """

    extents: str
    role: Role = Role.IN
    element: str | None = None
    values: Values = uniform

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(_extent(term, sizes) for term in self.extents.split())


@dataclass(frozen=True)
class Scalar:
    """A scalar argument; `element` is MLIR's type where it is not the kernel's own."""

    element: str | None = None
    values: Values = factor


def size(name: str) -> Scalar:
    """The size `name` handed over as an index."""
    return Scalar("index", lambda draw: draw.sizes[name])


def _extent(term: str, sizes: Sizes) -> int:
    if term.isdigit():
        return int(term)
    name, _, extra = term.partition("+")
    return sizes[name] + int(extra or 0)


def datasets(names: str, *rows: tuple[int, ...]) -> dict[Dataset, dict[str, int]]:
    """The five data sizes, MINI first: `datasets("M N", (20, 30), …)`."""
    keys = names.split()
    return {
        which: dict(zip(keys, row, strict=True)) for which, row in zip(Dataset, rows, strict=True)
    }


# -- bounds ----------------------------------------------------------------------------------------


def stable(
    roundings: Callable[[Arguments], float],
) -> Callable[[Arguments, Arguments], dict[str, np.ndarray]]:
    """The tolerance of a scheme that is linear and stable: it does not amplify what each step
    rounds, which a bound from step to step cannot see (0.25 · a = a - 0.75 · a, but not its error).

    `roundings`: how many of the largest value a run may add up, estimated from its arguments.
    """

    def tolerance(arguments: Arguments, after: Arguments) -> dict[str, np.ndarray]:
        before = [item for item in arguments.values() if isinstance(item, np.ndarray)]
        largest = max(
            float(np.abs(array[~np.isnan(array)]).max(initial=0))
            for array in (*before, *after.values())
        )
        return {
            name: np.full(
                array.shape, 2 * float(np.finfo(array.dtype).eps) * roundings(arguments) * largest
            )
            for name, array in after.items()
        }

    return tolerance


# -- the kernel ------------------------------------------------------------------------------------


class _Text(Template):
    braceidpattern = r"[A-Za-z][A-Za-z0-9]*(?:\+\d+)?"


@dataclass(frozen=True, eq=False)
class Kernel:
    """One kernel, for any sizes.

    arguments    in the function's order, by the names in the MLIR
    compute      the independent reading in NumPy; changes the arrays it is given in place
    flops        additions, multiplications, divisions, comparisons of values and calls of
                 elementary functions in loops, one each; index arithmetic is not counted
    dependences  what may run in parallel and what forbids the rest
    exact        `compute` rounds as the MLIR does, operation by operation, so that the sequential
                 run equals it bit for bit; else it is within `bound`
    sweep        how many elements it reads and writes when nothing stays in a cache from one sweep
                 over the arrays to the next; without it, the least there is (see `bytes`)
    tolerance    replaces the bound that follows from `compute`: arguments, results -> errors
    """

    name: str
    arguments: Mapping[str, Array | Scalar]
    datasets: Mapping[Dataset, Sizes]
    compute: Callable[..., None]
    flops: Callable[[Sizes], int]
    dependences: str
    exact: bool = True
    elements: tuple[str, ...] = ("f32", "f64")
    sweep: Callable[[Sizes], int] | None = None
    tolerance: Callable[[Arguments, Arguments], dict[str, np.ndarray]] | None = None

    @property
    def function(self) -> str:
        """The MLIR function's name: kernel_2mm, kernel_jacobi_2d."""
        return "kernel_" + self.name.replace("-", "_")

    @property
    def folder(self) -> Path:
        return Path(__file__).parent / self.name

    @property
    def source(self) -> str:
        """The template, as it is in the file."""
        return (self.folder / "kernel.mlir").read_text()

    @property
    def size_names(self) -> tuple[str, ...]:
        return tuple(self.datasets[Dataset.MINI])

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that the kernel changes."""
        return tuple(name for name, array in self._arrays().items() if array.role is not Role.IN)

    def mlir(self, element: str, sizes: Sizes | None = None) -> str:
        """The function for elements of that type and these sizes; without sizes, for any."""
        if element not in self.elements:
            raise ValueError(f"{self.name} has no {element} version, only {self.elements}")
        if sizes is not None:
            self._check(sizes)
        real = element.startswith("f")
        kind = "f" if real else "i"
        words = {
            "T": element,
            "k": kind,
            "zero": "0.0" if real else "0",
            "one": "1.0" if real else "1",
            "min": "minimumf" if real else "minsi",
            "max": "maximumf" if real else "maxsi",
        }
        terms = {term for array in self._arrays().values() for term in array.extents.split()}
        for term in terms:
            words[term] = "?" if sizes is None else str(_extent(term, sizes))
        lines = [
            line for name in self.size_names for line in self._extent_lines(name, sizes, element)
        ]
        words["extents"] = "\n  ".join(lines)
        return _Text(self.source).substitute(words)

    def inputs(self, sizes: Sizes, dtype: DTypeLike, rng: np.random.Generator) -> Arguments:
        """Random, well-conditioned arguments; what the kernel only writes is poisoned with NaN
        (integers: the least there is).
        """
        self._check(sizes)
        return {
            name: self._values(argument, sizes, np.dtype(dtype), rng)
            for name, argument in self.arguments.items()
        }

    def truth(self, arguments: Arguments) -> Arguments:
        """What the arrays in `arguments`, left as they are, hold after the kernel."""
        after = {name: value.copy() for name, value in arguments.items()}
        with np.errstate(all="ignore"):
            self.compute(**after)
        return {name: value for name, value in after.items() if isinstance(value, np.ndarray)}

    def bound(self, arguments: Arguments) -> dict[str, np.ndarray]:
        """How far two correct runs may be apart, element by element of what the kernel writes.

        Either run may add in any order and may contract a product and a sum; each errs by at most
        k · eps · Σ|terms| (`rounding.Rounded`). Where that is infinite the inputs are too
        ill-conditioned to say. Integers: 0.
        """
        if self.tolerance is not None:
            errors = self.tolerance(arguments, self.truth(arguments))
            return {name: errors[name] for name in self.outputs}
        after = {name: _rounded(value) for name, value in arguments.items()}
        with np.errstate(all="ignore"):
            self.compute(**after)
        return {
            name: 2 * np.nan_to_num(after[name].error(), nan=np.inf, posinf=np.inf)
            if isinstance(after[name], Rounded)
            else np.zeros(after[name].shape)
            for name in self.outputs
        }

    def bytes(self, sizes: Sizes, dtype: DTypeLike) -> int:
        """The least traffic with memory: inputs in once, results out once, scratch never."""
        times = {Role.IN: 1, Role.OUT: 1, Role.INOUT: 2, Role.SCRATCH: 0}
        return sum(
            times[array.role] * prod(array.shape(sizes)) * self._dtype(array, dtype).itemsize
            for array in self._arrays().values()
        )

    def swept_bytes(self, sizes: Sizes, dtype: DTypeLike) -> int:
        """The traffic when each sweep over the arrays reads and writes memory; a roofline for code
        without time tiling.
        """
        if self.sweep is None:
            return self.bytes(sizes, dtype)
        return self.sweep(sizes) * np.dtype(dtype).itemsize

    def _arrays(self) -> dict[str, Array]:
        return {name: item for name, item in self.arguments.items() if isinstance(item, Array)}

    def _dtype(self, argument: Array | Scalar, dtype: DTypeLike) -> np.dtype[Any]:
        return np.dtype(dtype) if argument.element is None else ELEMENTS[argument.element]

    def _values(
        self, argument: Array | Scalar, sizes: Sizes, dtype: np.dtype[Any], rng: np.random.Generator
    ) -> Value:
        dtype = self._dtype(argument, dtype)
        if isinstance(argument, Scalar):
            result: np.generic = dtype.type(argument.values(Draw(rng, (), dtype, sizes)))
            return result
        shape = argument.shape(sizes)
        if argument.role in (Role.OUT, Role.SCRATCH):
            return _poison(shape, dtype)
        return np.ascontiguousarray(argument.values(Draw(rng, shape, dtype, sizes)), dtype)

    def _extent_lines(self, name: str, sizes: Sizes | None, element: str) -> list[str]:
        """The lines that define the size `name` as a value, where the body needs it."""
        value = name.lower()
        if f"%{value}: index" in self.source or not re.search(rf"%{value}\b", self.source):
            return []
        if sizes is not None:
            return [f"%{value} = arith.constant {sizes[name]} : index"]
        shows = next(key for key, array in self._arrays().items() if name in array.extents.split())
        array = self._arrays()[shows]
        extents = array.extents.split()
        dims = "".join(f"{term if term.isdigit() else '?'}x" for term in extents)
        kind = f"memref<{dims}{array.element or element}>"
        return [
            f"%{value}_dim = arith.constant {extents.index(name)} : index",
            f"%{value} = memref.dim %{shows}, %{value}_dim : {kind}",
        ]

    def _check(self, sizes: Sizes) -> None:
        if set(sizes) != set(self.size_names):
            raise ValueError(f"{self.name} has the sizes {self.size_names}, not {tuple(sizes)}")
        if min(sizes.values()) < 1:
            raise ValueError(f"the sizes of {self.name} are at least 1, not {dict(sizes)}")


def _rounded(value: Value) -> Value | Rounded:
    if not isinstance(value, np.ndarray):
        return value
    return Rounded.of(value, dtype=value.dtype) if value.dtype.kind == "f" else value.copy()
