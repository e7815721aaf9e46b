"""What a Python function is called with, and what it hands back, as a program has both.

Arguments by name -> what the translation has to know of them; a key that is equal for calls of one
kind; the program's arrays. The program's arrays after a run -> what the function returns.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from avial_lab.compiler.frontends.python.kinds import kind_of_number
from avial_lab.compiler.frontends.python.signature import (
    MOST_FIXED,
    Argument,
    ArrayArgument,
    NumberArgument,
    Result,
    ResultArray,
    ResultNumber,
    ResultPart,
    ResultView,
    Translated,
)
from avial_lab.compiler.frontends.python.values import Fixed, Shape
from avial_lab.core.aliasing import checked_array
from avial_lab.core.device_arrays import OnDevice
from avial_lab.core.errors import OptionError
from avial_lab.core.stand_ins import StandIn

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]
"""The open sizes of a call, by `Translated.sizes`."""


Shapes = Mapping[str, tuple[int | str, ...]]
"""Of arrays by name; a size that is a word is open, and those of one word are equal."""


def argument_of(
    name: str, value: object, *, handed: bool = False, shapes: Shapes | None = None
) -> Argument:
    """`handed`: of an integer, that it is a number of the run and no constant of the program."""
    if isinstance(value, np.ndarray):
        checked = checked_array(name, cast("object", value))
        return ArrayArgument(checked.dtype, checked.shape if shapes is None else shapes[name])
    kind = kind_of_number(value)
    if kind is not None and (kind.dtype.kind in "fc" or handed):
        return NumberArgument(kind)
    if isinstance(value, list):
        raise OptionError(
            f"'{name}' is a list", hint=f"pass an array: numpy.array({name}), or a tuple"
        )
    return Fixed(value)


def surroundings(function: types.FunctionType, seen: frozenset[object] = frozenset()) -> object:
    """The numbers and arrays that the function takes from outside, and those that functions take
    which it names: constants of the program.
    """
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in closure}
    names = names_of(function.__code__)
    found |= {name: function.__globals__[name] for name in names if name in function.__globals__}
    parts: list[object] = []
    for name, value in cast("dict[str, object]", found).items():
        plain: object = getattr(value, "py_func", value)
        if isinstance(plain, types.FunctionType):
            if plain not in seen and plain.__globals__ is function.__globals__:
                parts.append(surroundings(plain, seen | {function}))
            parts.append((name, plain))
        elif isinstance(value, np.ndarray):
            parts.append((name, id(cast("object", value))))
        elif kind_of_number(value) is not None:
            parts.append((name, type(value), value))
    return tuple(parts)


def names_of(code: types.CodeType) -> tuple[str, ...]:
    """What it names that is not its own, in functions within, too.

    >>> names_of((lambda x: sum(v * K for v in x)).__code__)
    ('sum', 'K')
    """
    inner = (names_of(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(name for names in inner for name in names))))


def open_shapes(given: Mapping[str, object]) -> Shapes:
    """With every size open that a program need not know; `MOST_FIXED` are part of it.

    >>> open_shapes({"a": np.zeros((20, 3)), "b": np.zeros(20), "c": np.zeros(30)})
    {'a': ('n0', 3), 'b': ('n0',), 'c': ('n1',)}
    """
    words: dict[int, str] = {}
    found: dict[str, tuple[int | str, ...]] = {}
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            shape = cast("Array", value).shape
            found[name] = tuple(
                n if n <= MOST_FIXED else words.setdefault(n, f"n{len(words)}") for n in shape
            )
    return found


def call_key(
    given: Mapping[str, object],
    handed: frozenset[str] = frozenset(),
    shapes: Shapes | None = None,
) -> object:
    """Equal for calls that one compiled version serves, which is given the numbers `handed` when it
    runs, and arrays of these shapes.
    """
    parts: list[object] = []
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            array = cast("Array", value)
            shape = array.shape if shapes is None else shapes[name]
            gpu = array.given.number if isinstance(array, OnDevice) else None
            parts.append((array.dtype.str, shape, array.flags.writeable, gpu))
            continue
        kind = kind_of_number(value)
        if kind is not None and (kind.dtype.kind in "fc" or name in handed):
            parts.append(kind)
        else:
            parts.append((type(value), _hashable(value)))
    return (*parts, _shared(given))


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _shared(given: Mapping[str, object]) -> tuple[tuple[object, ...], ...]:
    """How the arrays overlap in memory of the host; elsewhere they must not."""
    arrays = [
        (name, cast("Array", value))
        for name, value in given.items()
        if isinstance(value, np.ndarray) and not isinstance(value, StandIn)
    ]
    found: list[tuple[object, ...]] = []
    for k, (name, one) in enumerate(arrays):
        for other_name, other in arrays[k + 1 :]:
            if np.may_share_memory(one, other):
                apart = one.ctypes.data - other.ctypes.data
                found.append((name, other_name, apart, one.strides, other.strides))
    return tuple(found)


def overlapping(given: Mapping[str, object]) -> frozenset[str]:
    names: set[str] = set()
    for name, other, *_ in _shared(given):
        names |= {f"%{name}", f"%{other}"}
    return frozenset(names)


def arrays_of(given: Mapping[str, object], translated: Translated) -> dict[str, Array]:
    """By the program's names: the caller's, and numbers that are handed over as arrays of one
    element.
    """
    arrays: dict[str, Array] = {}
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            arrays[name] = cast("Array", value)
            continue
        kind = kind_of_number(value)
        if kind is not None and name in translated.handed:
            arrays[name] = np.array(value, kind.dtype)
    return arrays | dict(translated.captured)


def sizes_of(translated: Translated, given: Mapping[str, object]) -> Sizes:
    """What the open sizes are in a call."""
    return {
        word: cast("Array", given[name]).shape[dim]
        for word, (name, dim) in translated.sizes.items()
    }


def new_results(result: Result, sizes: Sizes) -> dict[str, Array]:
    match result:
        case ResultNumber(name, kind):
            return {name: np.zeros((), kind.dtype)}
        case ResultArray(name, dtype, shape):
            return {name: np.zeros(_sized(shape, sizes), dtype)}
        case ResultPart(array, counts):
            return new_results((array, *counts), sizes)
        case tuple():
            return {n: made for each in result for n, made in new_results(each, sizes).items()}
        case _:
            return {}


def own_arrays(translated: Translated, sizes: Sizes) -> dict[str, Array]:
    """What the program is handed besides its arguments: memory for its results, memory of anything
    to work in, and the log of its prints.
    """
    own = new_results(translated.result, sizes)
    for each in translated.spare:
        own[each.name] = np.empty(_sized(each.shape, sizes), each.dtype)
    if translated.printing is not None:
        own[translated.printing.log] = translated.printing.new_log()
    return own


def print_out(translated: Translated, arrays: Mapping[str, Array]) -> None:
    """What a run has printed."""
    if translated.printing is not None:
        sys.stdout.write(translated.printing.text(arrays[translated.printing.log]))


def _sized(shape: Shape, sizes: Sizes) -> tuple[int, ...]:
    return tuple(max(extent.at(sizes), 0) for extent in shape)


def handed_back(
    result: Result, given: Mapping[str, object], own: Mapping[str, Array], sizes: Sizes
) -> object:
    match result:
        case ResultNumber(name, kind):
            return own[name].item() if kind.weak else own[name][()]
        case ResultArray(name):
            return own[name]
        case ResultPart(array, counts):
            part = tuple(slice(int(own[each.name][()])) for each in counts)
            return own[array.name][part].copy()
        case ResultView(argument, shape, axes):
            at = tuple((offset.at(sizes), dim, step) for offset, dim, step in axes)
            return _part_of(given[argument], _sized(shape, sizes), at)
        case Fixed(value):
            return value
        case tuple():
            return tuple(handed_back(each, given, own, sizes) for each in result)


def _part_of(
    whole: object, shape: tuple[int, ...], axes: tuple[tuple[int, int, int], ...]
) -> object:
    array = cast("Array", whole)
    plain = tuple((0, d, 1) for d in range(array.ndim))
    if axes == plain and array.shape == shape:
        return array.given.owner if isinstance(array, StandIn) else array
    first = array[tuple(slice(offset, None) for offset, _, _ in axes)]
    strides = [0] * len(shape)
    for (_, dim, step), stride in zip(axes, array.strides, strict=True):
        if dim >= 0:
            strides[dim] += step * stride  # of a diagonal two go along
    return np.lib.stride_tricks.as_strided(first, shape, strides)
