"""Library code on the shards of arrays: what NumPy does with a rank's part, and what the ranks tell
each other in between.

Shards of the operands -> shards of the results. All ranks call a function together, with operands
that lie as it wants them (the client sees to that). No function raises between two exchanges, where
the other ranks would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from avial_lab.core.regions import Box
from avial_lab.runtime.rank.stores import is_written_in_turn, opened

T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """A rank's part of an array of that shape: the box that begins at `start`."""

    shape: tuple[int, ...]
    start: tuple[int, ...]
    part: np.ndarray

    @property
    def box(self) -> Box:
        ends = zip(self.start, self.part.shape, strict=True)
        return Box(self.start, tuple(low + extent for low, extent in ends))


class Peers(Protocol):
    """The ranks that call a function together. Exchanges take and give one object for each."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def allgather(self, sendobj: T, /) -> list[T]: ...
    def alltoall(self, sendobj: Sequence[T], /) -> list[T]: ...


@dataclass(frozen=True)
class Alone:
    """A rank without others."""

    rank: int = 0
    size: int = 1

    def allgather(self, sendobj: T, /) -> list[T]:
        return [sendobj]

    def alltoall(self, sendobj: Sequence[T], /) -> list[T]:
        return list(sendobj)


@dataclass
class Counted:
    """Peers whose messages with elements of arrays are counted."""

    peers: Peers
    messages: int = 0
    nbytes: int = 0
    rank: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.rank, self.size = self.peers.rank, self.peers.size

    def allgather(self, sendobj: T, /) -> list[T]:
        self._count([sendobj] * self.size)
        return self.peers.allgather(sendobj)

    def alltoall(self, sendobj: Sequence[T], /) -> list[T]:
        self._count(sendobj)
        return self.peers.alltoall(sendobj)

    def _count(self, parts: Sequence[Any]) -> None:
        for rank, part in enumerate(parts):
            nbytes = _array_bytes(part)
            if rank != self.rank and nbytes:
                self.messages += 1
                self.nbytes += nbytes


ShardFunction = Callable[..., Sequence[Shard]]
"""(shards of the operands, peers, **parameters) -> shards of the results."""


def called(
    function: ShardFunction,
    operands: Sequence[Shard],
    peers: Peers,
    parameters: Mapping[str, Any],
) -> Sequence[Shard]:
    """The function's results, where it has some on every rank; else what the first that failed
    raises, on all of them.
    """
    results: Sequence[Shard] = ()
    failure: Exception | None = None
    try:
        results = function(operands, peers, **parameters)
    except Exception as error:  # the boundary of library code: the others wait to hear of it
        failure = error
    for raised in peers.allgather(failure):
        if raised is not None:
            raise raised
    return results


def stepped_alone(
    function: ShardFunction, parts: Sequence[np.ndarray], parameters: Mapping[str, Any]
) -> list[np.ndarray]:
    """The function's results where one rank has all of the operands."""
    given = [_whole(part) for part in parts]
    made = called(function, given, Alone(), parameters)
    return [np.array(shard.part.reshape(shard.shape)) for shard in made]


def nothing(operands: Sequence[Shard], peers: Peers) -> list[Shard]:
    """For the sake of where the operands are wanted."""
    del operands, peers
    return []


# -- a function of NumPy's ------------------------------------------------------------------------


def mapped(
    operands: Sequence[Shard],
    peers: Peers,
    *,
    function: str,
    divided: int,
    places: Sequence[int],
    options: Mapping[str, Any],
    named: Sequence[str] = (),
) -> list[Shard]:
    """NumPy's function on each rank's part by itself, where it treats what is divided (dimension
    `divided` of the first operand) row by row; that is dimension `places[k]` of result k.
    """
    del peers
    first = operands[0]
    return [
        _divided(part, place, first.shape[divided], first.start[divided])
        for part, place in zip(_results(function, operands, options, named), places, strict=True)
    ]


def on_first(
    operands: Sequence[Shard],
    peers: Peers,
    *,
    function: str,
    options: Mapping[str, Any],
    named: Sequence[str] = (),
) -> list[Shard]:
    """NumPy's function on rank 0, which has all of the operands, and then the results."""
    return _by_first(peers, lambda: _results(function, operands, options, named))


@dataclass(frozen=True)
class Place:
    """Where an operand stands among the arguments."""

    number: int


def called_on_first(
    operands: Sequence[Shard],
    peers: Peers,
    *,
    function: str,
    args: Sequence[Any],
    named: Mapping[str, Any],
) -> list[Shard]:
    """The same with any arguments, in which a Place stands for an operand."""

    def given(value: Any) -> Any:  # noqa: ANN401 - whatever NumPy's functions take
        if isinstance(value, Place):
            return operands[value.number].part
        if isinstance(value, list | tuple):
            return type(value)([given(each) for each in value])
        return value

    def compute() -> list[np.ndarray]:
        numpys: Any = reduce(getattr, function.split("."), np)
        placed = [given(value) for value in args]
        if function.endswith(".at"):  # it changes its first operand
            placed[0] = placed[0].copy()
        found = numpys(*placed, **{name: given(value) for name, value in named.items()})
        found = placed[0] if found is None else found
        return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]

    return _by_first(peers, compute)


def _by_first(peers: Peers, compute: Callable[[], list[np.ndarray]]) -> list[Shard]:
    """What rank 0 computes, which has it then; all raise what it raises."""
    found: Sequence[np.ndarray] = ()
    failure: Exception | None = None
    if peers.rank == 0:
        try:
            found = compute()
        except Exception as error:  # as in `called`
            failure = error
    told = peers.allgather((failure, [(part.shape, part.dtype) for part in found]))
    failure, forms = told[0]
    if failure is not None:
        raise failure
    if peers.rank == 0:
        return [_whole(part) for part in found]
    return [_nothing_of(shape, dtype) for shape, dtype in forms]


def _results(
    function: str, operands: Sequence[Shard], options: Mapping[str, Any], named: Sequence[str]
) -> list[np.ndarray]:
    """The last operands are the arguments that are `named`."""
    numpys: Any = reduce(getattr, function.split("."), np)
    parts = [operand.part for operand in operands]
    first = len(parts) - len(named)
    with np.errstate(all="ignore"):
        found = numpys(*parts[:first], **options, **dict(zip(named, parts[first:], strict=True)))
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


# -- sizes that depend on the data ----------------------------------------------------------------


def compressed(operands: Sequence[Shard], peers: Peers) -> list[Shard]:
    """The elements (rows, planes …) of an array where a mask is true, in order; both by rows."""
    array, mask = operands
    return [_in_turn(array.part[mask.part], peers)]


def nonzero(operands: Sequence[Shard], peers: Peers) -> list[Shard]:
    """The subscripts of what is not zero, one array for each dimension; by rows."""
    (array,) = operands
    found = list(np.nonzero(array.part))
    found[0] = found[0] + array.start[0]
    return [_in_turn(each, peers) for each in found]


# -- order ----------------------------------------------------------------------------------------


def sorted_flat(
    operands: Sequence[Shard], peers: Peers, *, descending: bool, order: bool
) -> list[Shard]:
    """All elements of a flat array in order, or with `order` where they came from; what is equal
    stays in its order. By regular sampling (Shi and Schaeffer 1992): each rank sorts its own, takes
    samples, and sends what lies between two of them to the rank that is to have it.
    """
    values, origin = _sorted_pieces(operands[0], peers, descending=descending)
    found = origin if order else values
    counts = peers.allgather(len(found))
    total, before = sum(counts), sum(counts[: peers.rank])
    if not descending:
        return [Shard((total,), (before,), found)]
    return [Shard((total,), (total - before - len(found),), found[::-1])]


def unique_flat(operands: Sequence[Shard], peers: Peers) -> list[Shard]:
    """The different elements of a flat array in order, and how often each is there. A NaN is not
    another NaN.
    """
    values, _ = _sorted_pieces(operands[0], peers, descending=False)
    found, counts = np.unique(values, return_counts=True, equal_nan=False)
    return [_in_turn(found, peers), _in_turn(counts, peers)]


def _sorted_pieces(
    shard: Shard, peers: Peers, *, descending: bool
) -> tuple[np.ndarray, np.ndarray]:
    """This rank's stretch of the ascending order and where its elements were; all equal elements
    are on one rank. With `descending` the last of equal elements comes first.
    """
    turn = slice(None, None, -1) if descending else slice(None)
    mine = shard.part[turn]
    origin = (shard.start[0] + np.arange(len(mine)))[turn]
    order = np.argsort(mine, kind="stable")
    mine, origin = mine[order], origin[order]
    places = np.linspace(0, len(mine) - 1, peers.size).astype(int) if len(mine) else []
    samples = np.sort(np.concatenate(peers.allgather(mine[places])))
    at = [len(samples) * k // peers.size for k in range(1, peers.size)] if len(samples) else []
    cuts = np.searchsorted(mine, samples[at], side="left")
    if not len(samples):
        cuts = np.zeros(peers.size - 1, int)
    parts = list(zip(np.split(mine, cuts), np.split(origin, cuts), strict=True))
    # Of equal elements those that came first have to be met first.
    taken = peers.alltoall(parts)[turn]
    values = np.concatenate([value for value, _ in taken])
    origin = np.concatenate([where for _, where in taken])
    order = np.argsort(values, kind="stable")
    return values[order], origin[order]


def looked_up(operands: Sequence[Shard], peers: Peers, *, side: str) -> list[Shard]:
    """Where values, divided, would go in a sorted array that every rank has."""
    del peers
    array, values = operands
    found = np.searchsorted(array.part, values.part, side="left" if side == "left" else "right")
    return [Shard(values.shape, values.start, found)]


def extreme_place(
    operands: Sequence[Shard], peers: Peers, *, function: str, flat: bool
) -> list[Shard]:
    """Where the greatest (argmax) or least (argmin) element is, the first of them: along dimension
    0, which is divided, or of all elements.
    """
    (shard,) = operands
    part, first = shard.part, shard.start[0] if shard.start else 0
    if flat:
        first *= int(np.prod(shard.shape[1:], dtype=np.int64))
        part = part.reshape(-1)
    find = getattr(np, function)
    mine: tuple[np.ndarray, np.ndarray] | None = None
    if len(part):
        place = np.asarray(find(part, axis=0))
        mine = np.take_along_axis(part, place[None], axis=0)[0], place + first
    told = [each for each in peers.allgather(mine) if each is not None]
    values, places = (np.stack([each[k] for each in told]) for k in range(2))
    chosen = np.asarray(find(values, axis=0))
    found = np.take_along_axis(places, chosen[None], axis=0)[0]
    return [_whole(np.asarray(found)) if peers.rank == 0 else _nothing_of(found.shape, found.dtype)]


# -- one after the other --------------------------------------------------------------------------


def cumulated(
    operands: Sequence[Shard], peers: Peers, *, function: str, dtype: np.dtype
) -> list[Shard]:
    """Sums (add) or products (multiply) of all elements up to each, along dimension 0, which is
    divided: each rank's by itself, and then what the ranks before it have in all.
    """
    (shard,) = operands
    ufunc: np.ufunc = getattr(np, function)
    with np.errstate(all="ignore"):
        mine = ufunc.accumulate(shard.part, axis=0, dtype=dtype)
        before = [each for each in peers.allgather(mine[-1:])[: peers.rank] if len(each)]
        if before:
            mine = ufunc(reduce(ufunc, before), mine)
    return [Shard(shard.shape, shard.start, mine)]


# -- by subscripts --------------------------------------------------------------------------------


def taken_rows(operands: Sequence[Shard], peers: Peers) -> list[Shard]:
    """Rows of an array by their numbers, which every rank has: each rank takes an equal share of
    them from the ranks that have the rows.
    """
    array, numbers = operands
    wanted = _within(numbers.part, array.shape[0])
    low, high = (len(wanted) * r // peers.size for r in (peers.rank, peers.rank + 1))
    wanted = wanted[low:high]
    starts = np.array(peers.allgather(array.start[0] if len(array.part) else array.shape[0]))
    # A rank without rows has no number that is asked for: the next one that has some begins later.
    having = [r for r in range(peers.size) if starts[r] < array.shape[0]]
    owner = np.array(having, int)[
        np.searchsorted(starts[having], wanted, side="right") - 1
    ] if having else np.zeros(0, int)  # fmt: skip
    asked = peers.alltoall([wanted[owner == r] for r in range(peers.size)])
    given = peers.alltoall([array.part[rows - array.start[0]] for rows in asked])
    part = np.empty((len(wanted), *array.shape[1:]), array.part.dtype)
    for r in range(peers.size):
        part[owner == r] = given[r]
    return [Shard((len(numbers.part), *array.shape[1:]), (low, *array.start[1:]), part)]


def put_rows(operands: Sequence[Shard], peers: Peers) -> list[Shard]:
    """The array, by rows, with some of them replaced: their numbers and what they are to be, which
    every rank has. Of two for one row the later one counts.
    """
    del peers
    array, numbers, values = operands
    places = _within(numbers.part, array.shape[0])
    first, last = array.start[0], array.start[0] + len(array.part)
    mine = (first <= places) & (places < last)
    part = array.part.copy()
    part[places[mine] - first] = values.part[mine]
    return [Shard(array.shape, array.start, part)]


def _within(numbers: np.ndarray, extent: int) -> np.ndarray:
    """None of them negative; IndexError as NumPy's where one is out of bounds."""
    wrong = (numbers < -extent) | (numbers >= extent)
    if wrong.any():
        first = numbers[wrong][0]
        raise IndexError(f"index {first} is out of bounds for axis 0 with size {extent}")
    return np.where(numbers < 0, numbers + extent, numbers)


# -- made where it lies ---------------------------------------------------------------------------


def uniform(
    operands: Sequence[Shard],
    peers: Peers,
    *,
    generator: str,
    state: Mapping[str, Any],
    shape: tuple[int, ...],
) -> list[Shard]:
    """What a generator of NumPy's in that state gives as `random(shape)`: each rank makes its own
    rows, since it can begin anywhere (Philox: Salmon et al. 2011; PCG64: O'Neill 2014).
    """
    del operands
    rows = shape[0]
    each = int(np.prod(shape[1:], dtype=np.int64))
    low, high = (rows * r // peers.size for r in (peers.rank, peers.rank + 1))
    bits = getattr(np.random, generator)(0)
    bits.state = state
    pass_over(bits, low * each)
    part = np.random.Generator(bits).random((high - low) * each)
    return [Shard(shape, (low, *(0,) * (len(shape) - 1)), part.reshape(high - low, *shape[1:]))]


ADVANCING = ("PCG64", "PCG64DXSM", "Philox")
"""NumPy's generators of words of 64 bits that can begin anywhere."""

_PHILOX_WORDS = 4
"""Words for one value of its counter."""


def pass_over(bits: Any, words: int) -> None:  # noqa: ANN401 - NumPy's have no common `advance`
    """Leave so many words of 64 bits out; half of one that is kept for later stays."""
    before = bits.state
    if "buffer_pos" in before:  # Philox begins a block anew where it advances
        left = _PHILOX_WORDS - before["buffer_pos"]
        if words > left:
            words -= left
            bits.advance(words // _PHILOX_WORDS)
            words %= _PHILOX_WORDS
        bits.random_raw(words)
    else:
        bits.advance(words)
    kept = {name: before[name] for name in ("has_uint32", "uinteger")}
    bits.state = {**bits.state, **kept}


def loaded(
    operands: Sequence[Shard],
    peers: Peers,
    *,
    path: str,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> list[Shard]:
    """Rows of an array in a file, which each rank reads for itself, as elements of that type."""
    del operands
    low, high = (shape[0] * r // peers.size for r in (peers.rank, peers.rank + 1))
    with opened(path, name) as whole:
        if tuple(whole.shape) != shape:
            raise ValueError(f"{path} has become an array of shape {whole.shape}")
        part = np.array(whole[low:high], dtype)
    return [Shard(shape, (low, *(0,) * (len(shape) - 1)), part)]


def saved(operands: Sequence[Shard], peers: Peers, *, path: str, name: str) -> list[Shard]:
    """Writes to an array in a file that is there and has its size: each rank its rows."""
    (shard,) = operands
    failure: Exception | None = None
    in_turn = is_written_in_turn(path)
    for rank in range(peers.size if in_turn else 1):
        if shard.part.size and (rank == peers.rank or not in_turn):
            try:
                with opened(path, name, to_write=True) as whole:
                    low = shard.start[0]
                    whole[low : low + len(shard.part)] = shard.part
            except Exception as error:  # as in `called`: the others wait for their turn
                failure = error
        if in_turn:
            peers.allgather(None)
    if failure is not None:
        raise failure
    return []


# -- shards ---------------------------------------------------------------------------------------


def _whole(part: np.ndarray) -> Shard:
    return Shard(part.shape, (0,) * part.ndim, part)


def _nothing_of(shape: tuple[int, ...], dtype: np.dtype) -> Shard:
    """No element of an array."""
    return Shard(shape, (0,) * len(shape), np.empty((0,) * max(len(shape), 1), dtype))


def _divided(part: np.ndarray, place: int, extent: int, start: int) -> Shard:
    shape = (*part.shape[:place], extent, *part.shape[place + 1 :])
    return Shard(shape, tuple(start if d == place else 0 for d in range(part.ndim)), part)


def _in_turn(part: np.ndarray, peers: Peers) -> Shard:
    """Parts that follow on each other along dimension 0 in the order of the ranks."""
    counts = peers.allgather(len(part))
    start = sum(counts[: peers.rank])
    return Shard((sum(counts), *part.shape[1:]), (start, *(0,) * (part.ndim - 1)), part)


def _array_bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(_array_bytes(each) for each in value)
    return 0
