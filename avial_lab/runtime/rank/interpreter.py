"""Recorded operations on small arrays, computed at once by NumPy on each rank's part.

Operations, and which box of every array a rank is to have -> which box of every value it needs for
that (`needs`); shards of the arrays -> shards of what they become (`interpreted`). What a rank
needs and others compute too it computes again: nothing is sent between two operations.

The bits are those of compiled code, which `core.array_functions` says of which functions. Where
only the values tell that NumPy's may be others, `Declined` is raised before anything is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from avial_lab.core.array_functions import BINARY, EXTREMES, REDUCTIONS, UNARY, is_blockwise
from avial_lab.core.regions import Box
from avial_lab.runtime.rank.functions import MissingFunctions, known
from avial_lab.runtime.rank.shards import Peers, Shard

Part = tuple[tuple[int, int, int], ...]
"""For each dimension of an array: offset, dimension of the view of it (-1: none), step."""


class Operation(NamedTuple):
    """One of the ptensor dialect's. operands: values, and for load, store and insert the memory.
    shape, dtype: of the result; of the memory for an insert. function: of a unary or binary one, or
    of a reduction. axes: that are reduced; of an index its only one. number: of a constant.
    """

    kind: str
    result: str
    operands: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    function: str = ""
    part: Part = ()
    axes: tuple[int, ...] = ()


REALS, INTEGERS = "reals", "integers"
"""The tables of numbers among a program's arrays."""

OF_MEMORY = ("load", "store", "insert")
"""Those whose last operand is a memory."""


class Declined(ArithmeticError):
    """Values for which NumPy and compiled code may differ."""


class Needs(NamedTuple):
    """Boxes of one rank. values: that it computes; memories: that it keeps while it does; given: of
    these what has to be there before.
    """

    values: Mapping[str, Box]
    memories: Mapping[str, Box]
    given: Mapping[str, Box]


# -- what a rank needs -----------------------------------------------------------------------------


def needs(operations: Sequence[Operation], wanted: Mapping[str, Box]) -> Needs:
    """For these boxes of arrays, at the end: backwards, each operation asks its operands."""
    shapes = shapes_of(operations)
    values: dict[str, Box] = {}
    given = {name: box for name, box in wanted.items() if not box.empty}
    memories = dict(given)
    for op in reversed(operations):
        if op.kind == "store":
            if (box := given.pop(op.operands[1], None)) is not None:
                _add(values, op.operands[0], box)
            continue
        if op.kind == "insert":
            box = given.get(op.operands[1])
            if box is not None:
                part = _placed_within(op.part, shapes[op.operands[0]], box)
                if part is not None:
                    _add(values, op.operands[0], part)
            continue
        box = values.get(op.result)
        if box is None:
            continue
        if op.kind == "load":
            _add(given, op.operands[0], box)
            _add(memories, op.operands[0], box)
            continue
        for operand, its in zip(op.operands, _asked(op, box, shapes), strict=True):
            _add(values, operand, its)
    return Needs(values, memories, given)


def shapes_of(operations: Sequence[Operation]) -> dict[str, tuple[int, ...]]:
    return {op.result: op.shape for op in operations if op.result}


def _add(boxes: dict[str, Box], name: str, box: Box) -> None:
    known = boxes.get(name)
    boxes[name] = box if known is None else known.hull(box)


def _asked(op: Operation, box: Box, shapes: Mapping[str, tuple[int, ...]]) -> list[Box]:
    """Of each operand, for that box of the result."""
    sources = [shapes[operand] for operand in op.operands]
    if op.kind == "view":
        return [looked_at(op.part, box)]
    if op.kind == "reshape":
        return [_rows_of(box, op.shape, sources[0])]
    if op.kind == "reduce":
        kept = iter(zip(*box, strict=True))
        ends = [(0, extent) if d in op.axes else next(kept) for d, extent in enumerate(sources[0])]
        return [Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))]
    if op.kind == "matmul":
        return _factors(box, op.shape, *sources)
    return [_aligned(box, op.shape, shape) for shape in sources]


def is_diagonal(part: Part) -> bool:
    """Whether a dimension of the view stands for several of the array."""
    used = [dim for _, dim, _ in part if dim >= 0]
    return len(set(used)) < len(used)


def looked_at(part: Part, box: Box) -> Box:
    """The least box with all elements that a view looks at, for a box of it."""
    ends: list[tuple[int, int]] = []
    for offset, dim, step in part:
        if dim < 0:
            ends.append((offset, offset + 1))
            continue
        first, last = (offset + step * at for at in (box.start[dim], box.stop[dim] - 1))
        empty = box.start[dim] >= box.stop[dim]
        ends.append((first, first) if empty else (min(first, last), max(first, last) + 1))
    return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))


def _placed_within(part: Part, shape: Sequence[int], box: Box) -> Box | None:
    """The elements of a value of that shape that an insert places into the box, if any."""
    start, stop = [0] * len(shape), list(shape)
    for (offset, dim, step), low, high in zip(part, *box, strict=True):
        if dim < 0:
            if not low <= offset < high:
                return None
            continue
        first, last = (low, high - 1) if step > 0 else (high - 1, low)
        start[dim] = max(start[dim], -((offset - first) // step))
        stop[dim] = min(stop[dim], (last - offset) // step + 1)
    found = Box(tuple(start), tuple(stop))
    return None if found.empty else found


def _rows_of(box: Box, shape: Sequence[int], source: Sequence[int]) -> Box:
    """The rows of the source that elements of a reshaped array lie in."""
    if not source:
        return Box((), ())
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    first = sum(at * stride for at, stride in zip(box.start, strides, strict=True))
    last = sum((at - 1) * stride for at, stride in zip(box.stop, strides, strict=True))
    below = prod(source[1:])
    rows = (first // below, last // below + 1)
    return Box((rows[0], *(0,) * (len(source) - 1)), (max(rows), *source[1:]))


def _factors(
    box: Box, shape: Sequence[int], left: Sequence[int], right: Sequence[int]
) -> list[Box]:
    """Of two matrices (stacks of them), for a box of their product."""
    rows, columns = len(left) > 1, len(right) > 1
    stack = len(shape) - rows - columns
    ends = list(zip(*box, strict=True))
    inner = (0, left[-1])
    row, column = ends[stack : stack + rows], ends[stack + rows :]

    def of(extents: Sequence[int], last: list[tuple[int, int]]) -> Box:
        among = Box(box.start[:stack], box.stop[:stack])
        front = _aligned(among, shape[:stack], extents)
        return Box((*front.start, *(a for a, _ in last)), (*front.stop, *(b for _, b in last)))

    return [of(left[:-2], [*row, inner]), of(right[:-2], [inner, *column])]


def _aligned(box: Box, shape: Sequence[int], source: Sequence[int]) -> Box:
    """Of an operand that is broadcast to that shape."""
    if tuple(source) == tuple(shape):
        return box
    lost = len(shape) - len(source)
    ends = [
        (0, 1)
        if extent == 1 and shape[lost + d] != 1
        else (box.start[lost + d], box.stop[lost + d])
        for d, extent in enumerate(source)
    ]
    return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))


# -- what it computes ------------------------------------------------------------------------------


class Plan(NamedTuple):
    """For all ranks. given: the names of the operands' arrays; made: of the results, with shapes,
    and each rank's box. Numbers are no part of it.
    """

    operations: Sequence[Operation]
    each_needs: Sequence[Needs]
    given: Sequence[str]
    made: Sequence[tuple[str, tuple[int, ...], Sequence[Box]]]


Sent = tuple[bytes, bytes]
"""A Plan on its way: a key, and it. A rank reads it once, and keeps it under the key."""


def sent(plan: Plan) -> Sent:
    pickled = pickle.dumps(plan)
    return blake2b(pickled, digest_size=16).digest(), pickled


def interpreted(
    operands: Sequence[Shard], peers: Peers, *, plan: Sent, numbers: Mapping[str, Sequence[float]]
) -> list[Shard]:
    """The operations, in order. numbers: the tables."""
    known = plan[0], peers.rank
    prepared = _PREPARED.get(known)
    if prepared is None:
        if len(_PREPARED) >= MOST_PREPARED:
            del _PREPARED[next(iter(_PREPARED))]
        prepared = _PREPARED[known] = prepare(pickle.loads(plan[1]), peers.rank)
    return prepared.results(operands, numbers)


MOST_PREPARED = 512
"""Plans that a rank keeps."""

_PREPARED: dict[tuple[bytes, int], Prepared] = {}


class _Step(NamedTuple):
    """A function of what is at places, and where its result goes. done: places that nobody looks at
    afterwards, whose memory the next step may have.
    """

    function: Callable[..., np.ndarray]
    operands: tuple[int, ...]
    result: int
    done: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """What one rank does of a plan: all that does not hang on elements is decided. given: the
    operands that it looks at, and their places; numbers: places, and which number of which table
    and type; made: shape of each result, its box here, and where it is at the end (-1: no element).
    """

    places: int
    given: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, str, int, np.dtype], ...]
    steps: tuple[_Step, ...]
    made: tuple[tuple[tuple[int, ...], tuple[int, ...], int, np.ndarray], ...]

    def results(
        self, operands: Sequence[Shard], numbers: Mapping[str, Sequence[float]]
    ) -> list[Shard]:
        at: list[Any] = [None] * self.places
        for operand, place in self.given:
            at[place] = operands[operand].part
        for place, table, number, kind in self.numbers:
            at[place] = np.asarray(numbers[table][number], kind)
        with np.errstate(all="ignore"):
            for function, places, result, done in self.steps:
                at[result] = function(*[at[place] for place in places])
                for place in done:
                    at[place] = None
        return [
            Shard(shape, start, nothing if place < 0 else at[place])
            for shape, start, place, nothing in self.made
        ]


def prepare(plan: Plan, rank: int) -> Prepared:
    """For that rank; raises MissingFunctions, on all ranks alike."""
    missing = (
        (op.function, op.dtype.name)
        for op in plan.operations
        if op.kind == "unary" and is_blockwise(op.function, op.dtype)
    )
    unknown = tuple(name for name in dict.fromkeys(missing) if known(name) is None)
    if unknown:
        raise MissingFunctions(unknown)
    writing = _Writing(plan, plan.each_needs[rank])
    for op in plan.operations:
        writing.add(op)
    made: list[tuple[tuple[int, ...], tuple[int, ...], int, np.ndarray]] = []
    for name, shape, boxes in plan.made:
        box, kind = boxes[rank], writing.types[name]
        if len(box.start) != len(shape):  # of an array without dimensions another rank has it
            made.append((shape, (), -1, np.empty((0,), kind)))
            continue
        place = -1
        if not box.empty:
            place = writing.new(_cutting(writing.mine.memories[name], box), [writing.held(name)])
        made.append((shape, box.start, place, np.empty(box.shape, kind)))
    given = tuple(
        (k, p) for k, n in enumerate(plan.given) if (p := writing.operand.get(n)) is not None
    )
    return Prepared(
        writing.places, given, tuple(writing.numbers),
        _with_ends(writing.steps, {place for *_, place, _ in made}), tuple(made),
    )  # fmt: skip


class _Writing:
    """The steps of one rank, as they come to be. mine: what it needs. values, memories: where they
    are.
    """

    def __init__(self, plan: Plan, mine: Needs) -> None:
        self.mine = mine
        self.shapes = shapes_of(plan.operations)
        self.types = {op.operands[-1]: op.dtype for op in plan.operations if op.kind in OF_MEMORY}
        self.places = 0
        self.steps: list[_Step] = []
        self.numbers: list[tuple[int, str, int, np.dtype]] = []
        self.values: dict[str, int] = {}
        self.memories: dict[str, int] = {}
        self.operand = {name: self.place() for name in plan.given if name in mine.given}

    def place(self) -> int:
        self.places += 1
        return self.places - 1

    def new(self, function: Callable[..., np.ndarray], operands: Sequence[int]) -> int:
        """Where the function's result is."""
        made = self.place()
        self.steps.append(_Step(function, tuple(operands), made))
        return made

    def held(self, name: str) -> int:
        """Where the memory is: at first what was given, and no number elsewhere."""
        if name not in self.memories:
            box, given = self.mine.memories[name], self.operand.get(name)
            if given is not None and self.mine.given[name] == box:
                self.memories[name] = given
            else:
                place = None if given is None else _within(self.mine.given[name], box.start)
                fill = partial(_filled, box.shape, self.types[name], place)
                self.memories[name] = self.new(fill, () if given is None else (given,))
        return self.memories[name]

    def add(self, op: Operation) -> None:
        if op.kind in ("store", "insert"):
            self._write(op)
            return
        box = self.mine.values.get(op.result)
        if box is None:
            return
        if op.kind == "number":
            place = self.place()
            self.numbers.append((place, op.function, op.axes[0], op.dtype))
        elif op.kind == "load":
            (name,) = op.operands
            place = self.new(_cutting(self.mine.memories[name], box), [self.held(name)])
        else:
            shapes = [self.shapes[operand] for operand in op.operands]
            boxes = [self.mine.values[operand] for operand in op.operands]
            compute = _computing(op, box, shapes, boxes)
            place = self.new(compute, [self.values[operand] for operand in op.operands])
        self.values[op.result] = place

    def _write(self, op: Operation) -> None:
        """The memory is another one afterwards, since values are parts of what was there."""
        value, name = op.operands
        if name not in self.mine.memories or value not in self.values:
            return
        held, box = self.mine.memories[name], self.mine.values[value]
        if op.kind == "store" and box.contains(held):
            self.memories[name] = self.new(_cutting(box, held), [self.values[value]])
            return
        write = _inserting(op, self.shapes[value], box, held)
        if write is not None:
            self.memories[name] = self.new(write, [self.held(name), self.values[value]])


def _with_ends(steps: Sequence[_Step], kept: Set[int]) -> tuple[_Step, ...]:
    """What nobody looks at behind a step is done there."""
    seen = set(kept)
    found: list[_Step] = []
    for step in reversed(steps):
        done = tuple(dict.fromkeys(p for p in (*step.operands, step.result) if p not in seen))
        seen.update(done)
        found.append(step._replace(done=done))
    return tuple(reversed(found))


def _filled(
    shape: tuple[int, ...], kind: np.dtype, place: tuple[Any, ...] | None, *given: np.ndarray
) -> np.ndarray:
    """Zeros, and what is given at its place."""
    made = np.zeros(shape, kind)
    for part in given:
        made[place] = part
    return made


def _inserting(
    op: Operation, shape: tuple[int, ...], box: Box, held: Box
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """A value of that shape, of which there is a box, into a memory; None where it has no place in
    what is held of that.
    """
    part = op.part or tuple((0, d, 1) for d in range(len(shape)))
    wanted = _placed_within(part, shape, held)
    wanted = None if wanted is None else wanted.intersection(box)
    if wanted is None:
        return None
    used = [dim for _, dim, _ in part if dim >= 0]
    # Of a dimension that has no place in the memory there is one element.
    taken = enumerate(zip(*wanted, box.start, strict=True))
    source = (..., *(slice(a - s, b - s) if d in used else a - s for d, (a, b, s) in taken))
    if is_diagonal(part):
        diagonal = _places(part, wanted, held, sorted(set(used)))

        def write_diagonal(before: np.ndarray, value: np.ndarray) -> np.ndarray:
            after = before.copy()
            after[diagonal] = value[source]
            return after

        return write_diagonal
    order = np.argsort(np.argsort(used)) if used != sorted(used) else None
    target = tuple(
        offset - low
        if dim < 0
        else _span(offset + step * wanted.start[dim] - low, wanted.shape[dim], step)
        for (offset, dim, step), low in zip(part, held.start, strict=True)
    )

    def write(before: np.ndarray, value: np.ndarray) -> np.ndarray:
        after = before.copy()
        given = value[source]
        after[target] = given if order is None else given.transpose(order)
        return after

    return write


def _places(part: Part, box: Box, held: Box, dims: Sequence[int]) -> tuple[np.ndarray | int, ...]:
    """Subscripts of what is held for a box of a view, one for each of its `dims`."""
    return tuple(
        offset - low
        if dim < 0
        else (offset - low + step * np.arange(box.start[dim], box.stop[dim])).reshape(
            [-1 if d == dim else 1 for d in dims]
        )
        for (offset, dim, step), low in zip(part, held.start, strict=True)
    )


def _within(box: Box, start: Sequence[int]) -> tuple[Any, ...]:
    """The box in a part that begins there: an array, where there is one element, too."""
    spans = (slice(low - first, high - first) for low, high, first in zip(*box, start, strict=True))
    return (..., *spans)


def _span(first: int, count: int, step: int) -> slice:
    stop = first + step * count
    return slice(first, stop if stop >= 0 else None, step) if count else slice(0, 0)


def _cutting(held: Box, box: Box) -> Callable[[np.ndarray], np.ndarray]:
    """Of a part, the box."""
    if held == box:
        return _same
    return itemgetter(_within(box, held.start))


def _same(part: np.ndarray) -> np.ndarray:
    return part


def _computing(
    op: Operation, box: Box, shapes: Sequence[tuple[int, ...]], boxes: Sequence[Box]
) -> Callable[..., np.ndarray]:
    """That box of the result, of parts that lie at those boxes of operands of those shapes."""
    if op.kind == "index":
        (dim,) = op.axes
        along = np.arange(box.start[dim], box.stop[dim])
        line = along.reshape(tuple(-1 if d == dim else 1 for d in range(len(op.shape))))
        places = np.broadcast_to(line, box.shape)
        return lambda: places
    if op.kind == "view":
        return _viewing(op.part, boxes[0], box)
    if op.kind == "reshape":
        return _reshaping(shapes[0], boxes[0], op.shape, box)
    asked = _asked(op, box, dict(zip(op.operands, shapes, strict=True)))
    if op.kind == "reduce":
        compute: Callable[..., np.ndarray] = partial(_reduced, op, box)
    elif op.kind == "matmul":
        compute = partial(_multiplied, op, box)
    elif op.kind == "cast":
        compute = partial(_cast, kind=op.dtype)
    else:
        compute = _elementwise(op)
    if all(held == its for held, its in zip(boxes, asked, strict=True)):
        return compute
    cuts = [_cutting(held, its) for held, its in zip(boxes, asked, strict=True)]
    return lambda *parts: compute(*[cut(part) for cut, part in zip(cuts, parts, strict=True)])


def _elementwise(op: Operation) -> Callable[..., np.ndarray]:
    if op.kind == "where":
        return np.where
    names = UNARY if op.kind == "unary" else BINARY
    kind = op.dtype
    if op.kind == "unary" and is_blockwise(op.function, kind):
        function = known((op.function, kind.name))
        assert function is not None, op.function
        return function
    if op.function == "bits":
        return lambda x: x.view(kind)
    function = _SPECIAL.get(op.function) or getattr(np, names[op.function])

    def compute(*parts: np.ndarray) -> np.ndarray:
        found = np.asarray(function(*parts))
        return found if found.dtype == kind else found.astype(kind)

    return compute


def _viewing(part: Part, held: Box, box: Box) -> Callable[[np.ndarray], np.ndarray]:
    if is_diagonal(part):
        diagonal = _places(part, box, held, range(len(box.start)))
        return lambda held: np.broadcast_to(held[diagonal], box.shape)
    used = [dim for _, dim, _ in part if dim >= 0]
    places = (
        offset - low
        if dim < 0
        else _span(offset + step * box.start[dim] - low, box.shape[dim], step)
        for (offset, dim, step), low in zip(part, held.start, strict=True)
    )
    index = (..., *places)
    order = np.argsort(used) if used != sorted(used) else None
    shape = box.shape
    spread = tuple(n if d in used else 1 for d, n in enumerate(shape))

    def view(held: np.ndarray) -> np.ndarray:
        taken = held[index]
        if order is not None:
            taken = taken.transpose(order)
        return (
            taken if taken.shape == box.shape else np.broadcast_to(taken.reshape(spread), box.shape)
        )

    return view


def _reshaping(
    before: tuple[int, ...], held: Box, shape: tuple[int, ...], box: Box
) -> Callable[[np.ndarray], np.ndarray]:
    if held.shape == before and box.shape == shape:
        return lambda part: part.reshape(shape)
    places = np.asarray(-held.start[0] * prod(before[1:]) if before else 0)
    for d in range(len(shape)):
        along = np.arange(box.start[d], box.stop[d]) * prod(shape[d + 1 :])
        places = places[..., None] + along
    return lambda part: part.reshape(-1)[places]


# -- the bits of compiled code ---------------------------------------------------------------------


def _cast(x: np.ndarray, kind: np.dtype) -> np.ndarray:
    if x.dtype.kind == "f" and kind.kind in "iu":
        limits = np.iinfo(kind)
        if not ((x > float(limits.min) - 1) & (x < float(limits.max) + 1)).all():
            raise Declined("a number does not fit")
    return x.astype(kind)


def _extreme(ufunc: np.ufunc, sign: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """IEEE 754's maximum and minimum order zeros by their signs; NumPy's take any."""

    def extreme(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        found = ufunc(x, y)
        if x.dtype.kind != "f":
            return found
        zeros = (x == 0) & (y == 0)
        return np.where(zeros, sign * ((sign * x) + (sign * y)), found) if zeros.any() else found

    return extreme


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of complex numbers in four products, each rounded."""
    if x.dtype.kind != "c":
        return np.multiply(x, y)
    real = x.real * y.real - x.imag * y.imag
    imag = x.imag * y.real + x.real * y.imag
    if not (np.isfinite(real).all() and np.isfinite(imag).all()):
        raise Declined("a product is not finite")
    found = np.empty(real.shape, x.dtype)
    found.real, found.imag = real, imag
    return found


def _turned(x: np.ndarray) -> np.ndarray:
    found = np.empty(x.shape, x.dtype)
    found.real, found.imag = -x.imag, x.real
    return found


_SPECIAL: dict[str, Callable[..., np.ndarray]] = {
    "maximum": _extreme(np.maximum, 1),
    "minimum": _extreme(np.minimum, -1),
    "multiply": _product,
    "square": lambda x: _product(x, x),
    "real": np.real,
    "imag": np.imag,
    "times_i": _turned,
}


def _reduced(op: Operation, box: Box, x: np.ndarray) -> np.ndarray:
    """Floating-point numbers are added one by one, from 0 on."""
    kept = [d for d in range(x.ndim) if d not in op.axes]
    terms = prod(x.shape[d] for d in op.axes)
    rows = x.transpose((*op.axes, *kept)).reshape(terms, prod(x.shape[d] for d in kept))
    if op.function in EXTREMES:
        return getattr(np, op.function)(rows, axis=0).reshape(box.shape)
    ufunc: np.ufunc = getattr(np, REDUCTIONS[op.function])
    if op.function in ("sum", "prod") and op.dtype.kind in "fc":
        total = np.full(rows.shape[1:], ufunc.identity, op.dtype)
        found = ufunc.accumulate(np.concatenate([total[None], rows]), axis=0)[-1]
    elif op.function in ("min", "max") and op.dtype.kind == "f":
        found = ufunc.reduce(rows, axis=0)
        negative = ((rows == 0) & np.signbit(rows)).any(axis=0)
        positive = ((rows == 0) & ~np.signbit(rows)).any(axis=0)
        if ((found == 0) & negative & positive).any():
            raise Declined("zeros of both signs")
    else:
        found = ufunc.reduce(rows, axis=0, dtype=op.dtype)
    return found.reshape(box.shape)


def _multiplied(op: Operation, box: Box, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The terms of every element one by one, each rounded and added: as no BLAS does it."""
    if op.dtype.kind not in "fc":
        return np.matmul(x, y)
    left = x if x.ndim > 1 else x[None]
    right = y if y.ndim > 1 else y[:, None]
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*stack, left.shape[-2], right.shape[-1]), op.dtype)
    for k in range(left.shape[-1]):
        total = total + _product(left[..., :, k, None], right[..., k, None, :])
    return total.reshape(box.shape)
