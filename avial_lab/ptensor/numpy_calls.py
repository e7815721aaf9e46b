"""NumPy's own functions, called with our arrays: `np.vstack([x, y])`, `np.add.reduce(x)`.

A function of NumPy's and its arguments -> what ours of the same name makes of them, where the
arrays are. What has none of ours is a TypeError: nothing is gathered that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from avial_lab.ptensor.arrays import Array
    from avial_lab.ptensor.namespace import Namespace

HANDED_ON = frozenset(
    {"False_", "ScalarType", "True_", "bool_", "broadcast_shapes", "errstate", "euler_gamma",
     "exceptions", "get_printoptions", "geterr", "index_exp", "iscomplexobj", "isrealobj",
     "isscalar", "issubdtype", "iterable", "min_scalar_type", "ndim", "ndindex", "poly1d",
     "polynomial", "printoptions", "promote_types", "s_", "set_printoptions", "seterr", "shape",
     "size", "testing", "typing"}
    | {name for name in dir(np) if isinstance(getattr(np, name), type)
       and issubclass(getattr(np, name), np.generic | np.dtype)}
)  # fmt: skip
"""Of NumPy's names those that are about shapes, types and printing: they stay NumPy's."""

_OWNERS: Mapping[str, str] = {
    "numpy": "", "numpy.linalg": "linalg", "numpy.fft": "fft",
}  # fmt: skip
"""NumPy's modules, and where in a namespace their functions are."""

_PRINTED = ("array2string", "array_repr", "array_str", "savetxt", "save", "savez")
"""That ask for all elements, and so bring them here: a gather, which `xp.report()` counts."""


def call_function(
    xp: Namespace, function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]
) -> Any:
    """Of one that is no ufunc; `__array_function__`."""
    name, module = function.__name__, function.__module__
    if module in ("numpy", "numpy.lib.npyio") and name in _PRINTED:
        return _numpys_own(function)(*map(_here, args), **{k: _here(v) for k, v in given.items()})
    if module not in _OWNERS:
        raise _refused(f"{module}.{name}")
    if name in HANDED_ON:
        return _numpys_own(function)(*args, **given)
    path = _OWNERS[module]
    ours = getattr(getattr(xp, path) if path else xp, name, None)
    if not callable(ours):
        raise _refused(f"{module}.{name}")
    named = dict(given)
    placed = list(_by_position(function, args, named))
    return ours(*placed, **named)


def call_ufunc(
    xp: Namespace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], given: Mapping[str, Any]
) -> Any:
    """`np.add(x, y, out=z)`, `np.add.reduce(x)`; `__array_ufunc__`."""
    ours = getattr(xp, ufunc.__name__, None)
    if method == "__call__":
        if ours is not None:
            return ours(*inputs, **given)
    elif (of_it := getattr(ours, method, None)) is not None:
        named = {key: value for key, value in given.items() if value is not np._NoValue}
        return _into(named.pop("out", ()), of_it(*inputs, **named))
    raise _refused(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))


def as_ufunc(
    xp: Namespace, function: Callable[..., Any], ufunc: np.ufunc, name: str
) -> Callable[..., Any]:
    """The function with what NumPy's take beside their operands: `out`, `where`, `dtype`."""
    operands = ufunc.nin

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if not given and len(args) == operands:
            return function(*args)
        out = given.pop("out", args[operands:])
        where, kind = given.pop("where", True), given.pop("dtype", None)
        out = out if isinstance(out, tuple) else (out,)
        if len(args) < operands or given.pop("casting", "same_kind") != "same_kind" or given:
            raise TypeError(
                f"{name}({', '.join(['…'] * len(args) + list(given))}) is not supported"
            )
        if where is not True and not any(each is not None for each in out):
            raise TypeError(f"{name} with where= and without out= has undefined elements")
        if kind is not None:
            args = tuple(xp.asarray(each, dtype=kind) for each in args)
        made = function(*args[:operands])
        if where is not True:
            made = xp.where(xp.asarray(where), made, out[0])
        return _into(out, made)

    return call


def _into(out: Sequence[Array | None], made: Any) -> Any:
    """The result, or the arrays that it is written to."""
    results = made if isinstance(made, tuple) else (made,)
    if not any(each is not None for each in out):
        return made
    found: list[Any] = []
    for array, result in zip(out, results, strict=True):
        if array is not None:
            if not np.can_cast(result.dtype, array.dtype, "same_kind"):
                raise TypeError(f"{result.dtype} cannot be cast to {array.dtype} of out=")
            array[...] = result
        found.append(result if array is None else array)
    return tuple(found) if isinstance(made, tuple) else found[0]


def _refused(how: str) -> TypeError:
    return TypeError(
        f"{how} of arrays on ranks is not supported; numpy.asarray(x) brings one here first"
    )


def _numpys_own(function: Callable[..., Any]) -> Callable[..., Any]:
    """What NumPy calls where no argument is an array of others'."""
    return function._implementation  # type: ignore[attr-defined]


def _here(given: Any) -> Any:
    return np.asarray(given) if hasattr(given, "__array_namespace__") else given


def _by_position(
    function: Callable[..., Any], args: Sequence[Any], given: dict[str, Any]
) -> Iterator[Any]:
    """The arguments, and of those that are named the first ones, which are operands: NumPy's
    names of operands are not ours. What is handed over so is gone from `given`.
    """
    yield from args
    if not args:
        for name in _parameters(function):
            if name not in given:
                return
            yield given.pop(name)


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(signature(function).parameters)
    except ValueError:  # of one in C
        return ()
