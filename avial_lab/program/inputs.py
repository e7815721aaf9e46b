"""Arrays from the command line: files, shapes, scalars, and made-up ones.

`NAME=VALUE` -> arrays and scalars; a plain function's text -> random arguments; arrays -> files,
whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from avial_lab.compiler.frontends.notation.header import argument_named, program_names
from avial_lab.compiler.requests import Argument, Propose, Source
from avial_lab.core.buffers import UNBOUNDED
from avial_lab.core.cache import digest, fingerprint, made_once, spelled
from avial_lab.core.element_types import ITEMSIZE, dtype_of_element, element_in_untyped
from avial_lab.core.errors import BindError
from avial_lab.core.words import brief, listed
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.program.compiler_client import shared_compiler

Scalar = bool | int | float

_SHAPE = re.compile(r"(?P<random>random:)?(?P<dims>(?:\d+x)*)(?P<element>[a-z]\w*(?:<f\d\d>)?)")


def parse_inputs(
    inputs: Sequence[str], *, seed: int = 0, mapped: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, Scalar]]:
    """The arrays and scalars of `--in NAME=VALUE`: a .npy file, `20x30xf32` (zeros),
    `random:20xi32`, or a number. mapped: files are read when somebody looks, and never written.
    """
    arrays: dict[str, np.ndarray] = {}
    scalars: dict[str, Scalar] = {}
    rng = np.random.default_rng(seed)
    for text in inputs:
        name, value = _name_and_value(text, "--in a=a.npy")
        if name in arrays or name in scalars:
            raise BindError(f"--in {name} is given twice")
        scalar = _scalar(value)
        if scalar is not None:
            scalars[name] = scalar
            continue
        shape = _SHAPE.fullmatch(value)
        if shape is not None and shape["element"] in ITEMSIZE:
            arrays[name] = _made_up_array(name, shape, rng)
        else:
            arrays[name] = _loaded(name, Path(value), mapped=mapped)
    return arrays, scalars


def parse_numbers(definitions: Sequence[str]) -> dict[str, Scalar]:
    """The scalars of `-D NAME=VALUE`."""
    numbers: dict[str, Scalar] = {}
    for text in definitions:
        name, value = _name_and_value(text, "-D n=100")
        if name in numbers:
            raise BindError(f"-D {name} is given twice")
        number = _scalar(value)
        if number is None:
            raise BindError(f"-D {name}: '{value}' is not a number", hint="for example -D n=100")
        numbers[name] = number
    return numbers


def parse_outputs(outputs: Sequence[str]) -> dict[str, Path]:
    """Where `--out NAME=FILE.npy` wants which array."""
    return {
        name: Path(value)
        for name, value in (_name_and_value(text, "--out d=d.npy") for text in outputs)
    }


def allocate_missing(graph: TaskGraph, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`arrays`, with zeros for the buffers typed in the program that the caller does not give."""
    complete = dict(arrays)
    for buffer in graph.buffers:
        if buffer.temporary or buffer.name in complete:
            continue
        if UNBOUNDED in buffer.shape:
            raise BindError(
                f"the size of buffer '{buffer.name}' is not known",
                hint=f"pass the array (--in {buffer.name}=FILE.npy) "
                f"or its shape (--in {buffer.name}=20x{buffer.element})",
            )
        complete[buffer.name] = np.zeros(buffer.shape, dtype_of_element(buffer.element))
    return complete


# A plain function's arguments that nobody gives ---------------------------------------------------


@dataclass(frozen=True)
class RandomArguments:
    """All arguments of a plain function: those given, and random ones in place of the others.

    `drawn`: the names of the arrays made up. `note`: what was chosen, in one line; "" where all was
    given.
    """

    arrays: dict[str, np.ndarray]
    scalars: dict[str, Scalar]
    drawn: tuple[str, ...]
    note: str

    def __repr__(self) -> str:
        return brief(
            self, self.note or f"all inputs given: {listed([*self.arrays, *self.scalars])}"
        )

    @property
    def integers(self) -> tuple[str, ...]:
        """The integer arrays among those made up."""
        return tuple(name for name in self.drawn if self.arrays[name].dtype.kind in "iu")

    def draw_indices(self, seed: int) -> int | None:
        """Fill the integer arrays made up with indices into every array there is, 0 to below the
        number returned; None where there is nothing to fill.
        """
        integers = [self.arrays[name] for name in self.integers]
        extents = [extent for array in self.arrays.values() for extent in array.shape if extent]
        if not integers or not extents:
            return None
        rng = np.random.default_rng(seed)
        stop = min(extents)
        for array in integers:
            most = min(stop, int(np.iinfo(array.dtype).max))
            array[...] = rng.integers(0, most, array.shape)
        return stop


def random_arguments(
    text: str,
    *,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, Scalar],
    function: str | None = None,
    cell: str = "<program>",
    seed: int = 0,
) -> RandomArguments:
    """What a plain function needs besides `arrays` and `scalars`, as large as its accesses allow.

    Floats lie in [-1, 1), integers are small and not 0, float scalars lie in [0.5, 1.5). The same
    seed gives the same values. Raises what parsing the text raises.
    """
    known = program_names(text, function=function)
    named = {argument_named(name, known): array for name, array in arrays.items()}
    numbers = {argument_named(name, known): value for name, value in scalars.items()}
    given = {name: array.shape for name, array in named.items()}
    source = Source(text, cell, None, {k: v for k, v in numbers.items() if k in known}, function)
    # Its lines are known to errors alone, which are not kept.
    key = digest(repr(fingerprint()), spelled(Propose(replace(source, cell=""), given)))
    proposal = made_once("proposals", key, lambda: shared_compiler().ask(Propose(source, given)))
    rng = np.random.default_rng(seed)
    chosen: list[str] = []
    drawn: list[str] = []
    for argument in proposal.arguments:
        if argument.name in named or argument.name in numbers:
            continue
        if argument.shape is None:
            number = _number(argument, rng)
            numbers[argument.name] = number
            chosen.append(f"{argument.name} = {number:.4g}")
            continue
        named[argument.name] = _random_array(argument, rng)
        drawn.append(argument.name)
        chosen.append(f"{argument.name} = {_dimensions(argument.shape)}{argument.element}")
    return RandomArguments(
        named, numbers, tuple(drawn), _inputs_note(chosen, seed, nothing=not (arrays or scalars))
    )


def _number(argument: Argument, rng: np.random.Generator) -> Scalar:
    if argument.value is not None:
        return argument.value
    return float(dtype_of_element(argument.element).type(rng.uniform(0.5, 1.5)))


def _random_array(argument: Argument, rng: np.random.Generator) -> np.ndarray:
    assert argument.shape is not None
    dtype, shape = dtype_of_element(argument.element), argument.shape
    try:
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            signed = rng.integers(1, 10, shape) * rng.choice([-1, 1], shape)
            return np.asarray(signed).astype(dtype)
        if dtype.kind == "c":
            parts = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
            return np.asarray(parts).astype(dtype)
        return np.asarray(rng.uniform(-1, 1, shape)).astype(dtype)
    except (MemoryError, ValueError):
        raise BindError(
            f"{argument.name} = {_dimensions(shape)}{argument.element} does not fit into memory",
            hint="give smaller numbers: -D n=100",
        ) from None


def _dimensions(shape: tuple[int, ...]) -> str:
    """`20x30x`, as in MLIR's types."""
    return "".join(f"{extent}x" for extent in shape)


_MOST_TOLD = 8


def _inputs_note(chosen: Sequence[str], seed: int, *, nothing: bool) -> str:
    if not chosen:
        return ""
    listed = ", ".join(chosen[:_MOST_TOLD]) + (", …" if len(chosen) > _MOST_TOLD else "")
    head = "no inputs given" if nothing else "not all inputs given"
    return f"{head}: random {listed}, seed {seed}; set your own with --seed, -D NAME=…, --in NAME=…"


def _name_and_value(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise BindError(f"'{text}' is not NAME=VALUE", hint=f"for example {example}")
    return name.removeprefix("%"), value


def _scalar(value: str) -> Scalar | None:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None


def _made_up_array(name: str, shape: re.Match[str], rng: np.random.Generator) -> np.ndarray:
    try:
        return _values(shape, rng)
    except (MemoryError, ValueError):  # NumPy has two ways to say that it is too large
        raise BindError(f"--in {name}={shape[0]} does not fit into memory") from None


def _values(shape: re.Match[str], rng: np.random.Generator) -> np.ndarray:
    dims = tuple(int(size) for size in shape["dims"].split("x") if size)
    dtype = dtype_of_element(shape["element"])
    if not shape["random"]:
        return np.zeros(dims, dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, dims).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(-100, 100, dims).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(dtype)
    return np.asarray(rng.standard_normal(dims)).astype(dtype)


def _loaded(name: str, path: Path, *, mapped: bool) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False, mmap_mode="c" if mapped else None)
    except FileNotFoundError:
        raise BindError(
            f"--in {name}: there is no file {path}",
            hint=f"for zeros --in {name}=20x30xf32, for random values --in {name}=random:20x30xf32",
        ) from None
    except EOFError:
        raise BindError(f"--in {name}: {path} is empty") from None
    except OSError as error:
        raise BindError(f"--in {name}: cannot read {path}: {error.strerror or error}") from None
    except ValueError:
        if mapped:  # nothing to map, perhaps
            return _loaded(name, path, mapped=False)
        raise BindError(f"--in {name}: {path} is not a .npy file of numbers") from None
    if array.dtype.kind == "V" and array.dtype.names is None:
        # As NumPy saves bfloat16.
        element = element_in_untyped(array.dtype.itemsize)
        return array if element is None else array.view(element.dtype)
    return array
