"""Devices of a place, and functions that follow their operands to where those are.

A function of a namespace -> the same of the operands' device; one namespace for each device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.core.errors import AvialError
from avial_lab.ptensor.arrays import Array
from avial_lab.ptensor.recording import told

if TYPE_CHECKING:
    from avial_lab.ptensor.namespace import Namespace

DEFAULT, GPU = "default", "cuda:0"
DEVICES = (DEFAULT, GPU)
"""The ranks' processors, and a GPU that each rank drives, emulated where there is none."""


class MixedArrays(AvialError, ValueError):
    """Operands that are in different places."""

    def __init__(self, first: Array, second: Array) -> None:
        places = [f"{_place(x)}{_made_at(x)}" for x in (first, second)]
        same = first._xp.connection.cluster is second._xp.connection.cluster
        super().__init__(
            f"the arrays are in different places: one {places[0]}, one {places[1]}",
            hint=f"x.to_device('{first.device}') brings one over"
            if same
            else "xp.asarray(numpy.asarray(x)) brings one over",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return AvialError.__reduce__(self)


def _place(x: Array) -> str:
    return f"on device '{x.device}' {x._xp.connection.place}"


def _made_at(x: Array) -> str:
    line = told(x._memory.line)
    return f" (made at {line})" if line else ""


def checked(device: Any) -> str:
    """ValueError for a device that is none."""
    if device not in DEVICES:
        raise ValueError(f"the devices are {', '.join(map(repr, DEVICES))}, not {device!r}")
    return device


def follow(xp: Namespace, owner: Any, path: str, kept: Sequence[str]) -> None:
    """From now on `owner`'s functions, which are `xp`'s at that path, are those of the device that
    is asked for, or of the operands'.
    """
    for name in dir(owner):
        function = None if name.startswith("_") or name in kept else getattr(owner, name)
        if callable(function) and not isinstance(function, type):
            setattr(owner, name, _following(xp, function, path, name))


def _following(xp: Namespace, function: Callable[..., Any], path: str, name: str) -> Any:
    operands = _operands(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(k < len(args) and type(args[k]) in _NUMPYS for k in operands):
            args = tuple(
                xp.asarray(each) if k in operands and type(each) in _NUMPYS else each
                for k, each in enumerate(args)
            )
        device = kwargs.get("device")
        if device is not None:
            there = xp.at(device)
        else:
            there = xp
            first: Array | None = None
            for each in args:
                if type(each) is Array:
                    if first is None:
                        first = each
                    elif each._xp is not first._xp:
                        raise MixedArrays(first, each)
                elif type(each) in (list, tuple):
                    first = _first_of(each, first)
            if first is not None and first._xp is not xp and first._xp.family is xp.family:
                there = first._xp
        if there is xp:
            return function(*args, **kwargs)
        owner = getattr(there, path) if path else there
        return getattr(owner, name)(*args, **kwargs)

    return call


_NUMPYS = (list, tuple, np.ndarray)
"""What a function of arrays takes, too, as NumPy's do."""


def _operands(function: Callable[..., Any]) -> tuple[int, ...]:
    """The places of arguments that are arrays and nothing else."""
    try:
        given = signature(function).parameters.values()
    except ValueError:  # of one in C
        return ()
    return tuple(k for k, each in enumerate(given) if each.annotation in ("Array", Array))


def _first_of(parts: Sequence[Any], first: Array | None) -> Array | None:
    for each in _arrays_in(parts):
        if first is None:
            first = each
        elif each._xp is not first._xp:
            raise MixedArrays(first, each)
    return first


def _arrays_in(parts: Sequence[Any]) -> Iterator[Array]:
    return (each for each in parts if type(each) is Array)
