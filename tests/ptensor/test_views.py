"""Views as NumPy has them: what is written to one is seen in all others, and only there."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from avial_lab.ptensor.namespace import Namespace
from tests.ptensor.local import InterpretedConnection, LocalConnection, local_namespace

SHAPES = [(4, 6), (12,), (2, 3, 4), (3, 3), (5, 5)]
KINDS = ["f8", "i8", "c16", "f4"]


def _slice(lib: Any, x: Any, draw: random.Random) -> Any:
    d = draw.randrange(x.ndim)
    part = slice(draw.randint(0, 2), draw.choice([None, -1, 3]), draw.choice([1, 1, 2, -1]))
    return x[(slice(None),) * d + (part,)]


def _reshape(lib: Any, x: Any, draw: random.Random) -> Any:
    shape = draw.choice([(-1,), (2, -1), (-1, 2), (3, -1), (2, 2, -1), (1, -1), (-1, 1)])
    return x.reshape(shape, order=draw.choice("CCF"))


VIEWS = {
    "reshape": _reshape,
    "slice": _slice,
    "ravel": lambda lib, x, draw: x.ravel(),
    "T": lambda lib, x, draw: x.T,
    "squeeze": lambda lib, x, draw: x.squeeze(),
    "expand_dims": lambda lib, x, draw: lib.expand_dims(x, axis=0),
    "swapaxes": lambda lib, x, draw: x.swapaxes(0, -1),
    "moveaxis": lambda lib, x, draw: lib.moveaxis(x, 0, -1),
    "real": lambda lib, x, draw: x.real,
    "imag": lambda lib, x, draw: x.imag,
    "diagonal": lambda lib, x, draw: x.diagonal(draw.randint(-1, 1)),
    "broadcast_to": lambda lib, x, draw: lib.broadcast_to(x, (2, *x.shape)),
    "view": lambda lib, x, draw: x.view(),
    "bits": lambda lib, x, draw: x.view({"f8": "i8", "i8": "u8", "f4": "i4"}[x.dtype.str[1:]]),
    "flip": lambda lib, x, draw: lib.flip(x),
    "rot90": lambda lib, x, draw: lib.rot90(x, draw.randint(1, 3)),
    "copy": lambda lib, x, draw: x.copy(),
}


def _add_one(x: Any, draw: random.Random) -> None:
    x += 1


def _write_all(x: Any, draw: random.Random) -> None:
    x[...] = draw.randint(-50, 50)


def _write_one(x: Any, draw: random.Random) -> None:
    place = np.unravel_index(draw.randrange(max(x.size, 1)), x.shape)
    x[tuple(int(k) for k in place)] = draw.randint(100, 200)


def _write_row(x: Any, draw: random.Random) -> None:
    x[draw.randrange(x.shape[0])] = draw.randint(100, 200)


def _write_flat(x: Any, draw: random.Random) -> None:
    x.flat[draw.randrange(max(x.size, 1))] = 7


def _set_shape(x: Any, draw: random.Random) -> None:
    x.shape = draw.choice([(-1,), (2, -1), (1, -1)])


WRITES = [_add_one, _write_all, _write_one, _write_row, _write_flat, _set_shape]


def views_and_writes(
    lib: Any, seed: int, sync: Any, kinds: list[str]
) -> tuple[list[str], list[Any]]:
    """What was done, in words, and the arrays at its end."""
    draw = random.Random(seed)
    shape = draw.choice(SHAPES)
    base = np.arange(np.prod(shape)).reshape(shape).astype(draw.choice(kinds))
    arrays, told = [lib.asarray(base * (1 + 1j) if base.dtype.kind == "c" else base)], list[str]()
    for _ in range(draw.randint(3, 14)):
        k, kind = draw.randrange(len(arrays)), draw.random()
        name = draw.choice(list(VIEWS))
        write = draw.choice(WRITES)
        told.append(f"{k}: {name if kind < 0.5 else write.__name__}")
        try:
            if kind < 0.5:
                arrays.append(VIEWS[name](lib, arrays[k], draw))
            elif kind < 0.95:
                write(arrays[k], draw)
            elif len(arrays) > 1:
                del arrays[k]
        except (ValueError, AttributeError, IndexError, KeyError, OverflowError) as error:
            told.append(type(error).__name__)
        if draw.random() < 0.15:
            sync()
    return told, arrays


def _compare(xp: Namespace, seeds: range, kinds: list[str] = KINDS) -> None:
    for seed in seeds:
        told, want = views_and_writes(np, seed, lambda: None, kinds)
        ours, got = views_and_writes(xp, seed, xp.connection.run, kinds)
        assert ours == told, seed
        for x, y in zip(got, want, strict=True):
            assert x.shape == y.shape, (seed, told)
            if y.size:
                np.testing.assert_array_equal(np.asarray(x), y, str((seed, told)))


def test_views_and_writes_on_three_ranks() -> None:
    _compare(local_namespace(InterpretedConnection(3)), range(30))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_views_and_writes(ranks: int) -> None:
    _compare(local_namespace(InterpretedConnection(ranks)), range(1000, 1200))


@pytest.mark.slow
def test_views_and_writes_compiled() -> None:
    _compare(local_namespace(LocalConnection()), range(2000, 2060), ["f8", "i8", "f4"])


def test_what_nobody_looks_at_is_not_kept() -> None:
    """A reshaped array that is the only one left is one like any other."""
    connection = LocalConnection()
    xp = local_namespace(connection)
    x = xp.arange(12.0).reshape(3, 4)
    x[0] = 1.0
    connection.recording.finish({})
    assert [a.shape for a in connection.recording.arguments.values()] == [(3, 4)]


def test_windows_are_for_reading() -> None:
    """They see no later write, so there is none while they are there."""
    xp = local_namespace(InterpretedConnection(2))
    x, windows = xp.zeros(6), xp.zeros((4, 3))
    xp._looked_at(x, windows, "windows of the array are looked at")
    with pytest.raises(TypeError, match="windows of the array"):
        x[0] = 1.0
    del windows
    x[0] = 1.0
    with pytest.raises(TypeError, match="of another kind of bits"):
        x.view(np.complex128)


def test_what_nobody_may_write_to() -> None:
    xp = local_namespace(InterpretedConnection(2))
    x = xp.zeros((3, 3))
    for fixed in (x.diagonal(), xp.broadcast_to(x, (2, 3, 3)), xp.diag(x)[1:], xp.imag(x)):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            fixed[...] = 1.0
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    assert not x.T.flags.writeable
    assert x.T.flags.f_contiguous
