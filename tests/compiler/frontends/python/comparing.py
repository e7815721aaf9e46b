"""A function as Python runs it, beside its translation as the second witness reads it.

The witness (`tests/witness`) interprets the text and runs no pass, and takes milliseconds where a
compiler takes a second.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.python.liveness import counts_of
from avial_lab.compiler.frontends.python.signature import Translated
from avial_lab.compiler.frontends.python.source import source_of
from avial_lab.compiler.frontends.python.translate import translate
from avial_lab.core.errors import AvialError
from avial_lab.program.function_calls import (
    argument_of,
    arrays_of,
    handed_back,
    open_shapes,
    overlapping,
    own_arrays,
    print_out,
    sizes_of,
)
from tests.witness import Undefined, interpret


def translated(function: Callable[..., Any], *args: object, open_sizes: bool = False) -> Translated:
    given = _given(function, args)
    shapes = open_shapes(given) if open_sizes else None
    handed = counts_of(source_of(function)) if open_sizes else frozenset[str]()
    arguments = {
        name: argument_of(name, value, handed=name in handed and type(value) is int, shapes=shapes)
        for name, value in given.items()
    }
    return translate(function, arguments, overlapping=overlapping(given))


def interpreted(function: Callable[..., Any], *args: object, open_sizes: bool = False) -> object:
    """What the translation gives; arrays among `args` are written in place."""
    made = translated(function, *args, open_sizes=open_sizes)
    given = _given(function, args)
    sizes = sizes_of(made, given)
    own = own_arrays(made, sizes)
    arrays = arrays_of(given, made) | own
    try:
        after = interpret(made.text, arrays)
    except Undefined as error:
        if "is outside of" in str(error):  # which the compiler's own passes check
            raise IndexError(str(error)) from None
        raised = re.search(r"python:(\w+):", str(error))
        if raised is None:
            raise
        raise getattr(builtins, raised[1]) from None
    for name, array in arrays.items():
        array[...] = after[name]
    print_out(made, own)
    return handed_back(made.result, {**made.captured, **given}, own, sizes)


def _given(function: Callable[..., Any], args: tuple[object, ...]) -> dict[str, object]:
    bound = inspect.signature(function).bind(*args)
    bound.apply_defaults()
    return dict(bound.arguments)


def compare(function: Callable[..., Any], *args: object, kinds: bool = True) -> None:
    """The same results, the same arrays afterwards, bit for bit; the same exception. Without
    `kinds` a number may be of another kind: one that two branches bind has one kind for both.
    """
    theirs = deepcopy(args)
    raised: type[Exception] | None = None
    wanted: object = None
    with np.errstate(all="ignore"):
        try:
            wanted = function(*theirs)
        except Exception as error:
            raised = type(error)
    for open_sizes in (False, True):
        mine = deepcopy(args)
        if raised is not None:
            with pytest.raises(raised if not open_sizes else (raised, AvialError)):
                interpreted(function, *mine, open_sizes=open_sizes)
            continue
        try:
            found = interpreted(function, *mine, open_sizes=open_sizes)
        except AvialError:
            if not open_sizes:
                raise
            continue  # what needs its sizes is told, and compiled for each
        same(found, wanted, kinds=kinds)
        for mine_after, theirs_after in zip(mine, theirs, strict=True):
            same(mine_after, theirs_after)


def same(found: object, wanted: object, *, kinds: bool = True) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other, kinds=kinds)
        return
    if isinstance(wanted, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        return
    if kinds:
        assert type(found) is type(wanted), (found, wanted)
    np.testing.assert_array_equal(found, wanted)
