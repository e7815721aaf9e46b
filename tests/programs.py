"""Random task programs as text, with what they compute in plain Python: the truth no compiler of
ours has touched.

A program works on a few small integer arrays, some of which overlap in the caller's memory. Each
task is drawn from a handful of body shapes; its meaning is a loop over elements, in program order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
from hypothesis import strategies as st

Index = tuple[int, ...]
Slice = tuple[tuple[int, int], ...]

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "xori": lambda x, y: x ^ y,
}


@dataclass
class RandomProgram:
    """`text` in the notation, the arrays it is bound to, and `meaning`: what it does to them, step
    by step.
    """

    text: str
    arrays: dict[str, np.ndarray]
    meaning: list[Callable[[dict[str, np.ndarray]], None]] = field(repr=False)

    def expected(self) -> dict[str, np.ndarray]:
        """The arrays after the program, computed on copies that overlap as the originals do."""
        arrays = copy_together(self.arrays)
        with np.errstate(over="ignore"):
            for step in self.meaning:
                step(arrays)
        return arrays


def copy_together(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies that share memory with each other exactly where the originals do."""
    bounds = {name: np.lib.array_utils.byte_bounds(array) for name, array in arrays.items()}
    copies: dict[str, tuple[int, bytearray]] = {}
    low, high, memory = -1, -1, bytearray()
    for name in sorted(arrays, key=bounds.__getitem__):
        start, stop = bounds[name]
        if start >= high:
            low, memory = start, bytearray()
        high = max(high, stop)
        memory += ctypes.string_at(low + len(memory), high - low - len(memory))
        copies[name] = low, memory
    result = {}
    for name, array in arrays.items():
        low, memory = copies[name]
        shift = array.__array_interface__["data"][0] - low if array.size else 0
        result[name] = np.ndarray(array.shape, array.dtype, memory, shift, array.strides)
    return result


@st.composite
def arrays_that_may_overlap(draw: st.DrawFn) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.int8, np.int32, np.int64]))

    def values(*shape: int) -> np.ndarray:
        return rng.integers(-100, 100, shape, dtype=dtype)

    kind = draw(st.sampled_from(["apart", "apart 2-D", "overlapping", "columns", "mixed"]))
    if kind == "apart":
        return {name: values(7) for name in "xyz"}
    if kind == "apart 2-D":
        return {name: values(3, 5) for name in "xyz"}
    if kind == "overlapping":
        base = values(16)
        return {"x": base[0:8], "y": base[5:13], "z": values(8)}
    if kind == "columns":
        base = values(4, 6)
        return {"x": base[:, 0:3], "y": base[:, 2:5], "z": values(4, 3)}
    base = values(9)
    return {"x": base, "y": base[::-1], "z": values(3, 4), "p": values()}


@st.composite
def programs(draw: st.DrawFn, *, most_tasks: int = 8) -> RandomProgram:
    arrays = draw(arrays_that_may_overlap())
    element = f"i{next(iter(arrays.values())).itemsize * 8}"
    lines = [f"avial.schedule {', '.join(f'%{name}' for name in arrays)} {{"]
    lines.append('  %cpu = avial.target {arch = "cpu"}')
    lines.append('  %gpu = avial.target {arch = "sm_80"}')
    meaning = []
    targets = draw(st.sampled_from([("%cpu", "%cpu", "%cpu", "%gpu"), ("%gpu",)]))
    for number in range(draw(st.integers(1, most_tasks))):
        shape_of_body = draw(st.sampled_from(_BODIES))
        buffers, body, step = shape_of_body(draw, arrays, element)
        target = draw(st.sampled_from(targets))
        after = (
            f" after %t{draw(st.integers(0, number - 1))}" if number and draw(st.booleans()) else ""
        )
        listed = ", ".join(f"%{name}" for name in dict.fromkeys(buffers))
        lines.append(f"  %t{number} = avial.task {target}, {listed}{after} {{")
        lines += [f"    {line}" for line in body]
        lines.append("  }")
        meaning.append(step)
    return RandomProgram("\n".join([*lines, "}", ""]), arrays, meaning)


# The shapes of bodies -----------------------------------------------------------------------------


def _box(draw: st.DrawFn, shape: Index, size: Index | None = None) -> Slice:
    """A box inside `shape`, of `size` where that is given."""
    if size is not None:
        starts = [draw(st.integers(0, n - k)) for n, k in zip(shape, size, strict=True)]
        return tuple((a, a + k) for a, k in zip(starts, size, strict=True))
    ends = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in shape]
    return tuple((low, high) for low, high in ends)


def _loops(box: Slice, style: str) -> tuple[list[str], list[str]]:
    """The opening lines of loops over the offsets 0 … size of `box`, and the closing ones."""
    opening, closing = [], []
    if style == "scf.parallel" and box:
        names = ", ".join(f"%i{d}" for d in range(len(box)))
        zeros = ", ".join("0" for _ in box)
        sizes = ", ".join(str(high - low) for low, high in box)
        return [f"scf.parallel {names} = {zeros} to {sizes} {{"], ["}"]
    for d, (low, high) in enumerate(box):
        opening.append(f"{style} %i{d} = 0 to {high - low} {{")
        closing.append("}")
    return opening, closing


def _indices(box: Slice, name: str) -> tuple[list[str], str]:
    """Lines that compute `%<name>d = low + %id`, and the index list."""
    lines = []
    for d, (low, _) in enumerate(box):
        lines.append(f"%{name}l{d} = arith.constant {low} : index")
        lines.append(f"%{name}{d} = arith.addi %i{d}, %{name}l{d}")
    return lines, ", ".join(f"%{name}{d}" for d in range(len(box)))


def _offsets(box: Slice) -> Iterator[Index]:
    return product(*(range(high - low) for low, high in box))


def _at(box: Slice, offset: Index) -> Index:
    return tuple(low + k for (low, _), k in zip(box, offset, strict=True))


def _elementwise(
    draw: st.DrawFn, arrays: dict[str, np.ndarray], element: str
) -> tuple[list[str], list[str], Callable[[dict[str, np.ndarray]], None]]:
    """dest[box] = left[box'] op right[box''], element by element in ascending order."""
    dest = draw(st.sampled_from(sorted(arrays)))
    same_rank = [name for name in sorted(arrays) if arrays[name].ndim == arrays[dest].ndim]
    left, right = draw(st.sampled_from(same_rank)), draw(st.sampled_from(same_rank))
    limit = tuple(map(min, arrays[dest].shape, arrays[left].shape, arrays[right].shape))
    size = tuple(high - low for low, high in _box(draw, limit))
    boxes = {
        role: _box(draw, arrays[name].shape, size)
        for role, name in (("d", dest), ("l", left), ("r", right))
    }
    operation = draw(st.sampled_from(sorted(_OPERATIONS)))
    guarded = draw(st.booleans())
    style = draw(st.sampled_from(["scf.for", "affine.for", "scf.parallel"]))
    if style == "scf.parallel" and any(
        np.may_share_memory(arrays[dest], arrays[name]) for name in (left, right)
    ):
        style = "scf.for"  # the iterations of a parallel loop must not depend on each other
    opening, closing = _loops(boxes["d"], style)
    body = list(opening)
    index = {}
    for role in "dlr":
        lines, index[role] = _indices(boxes[role], role)
        body += lines
    body += [
        f"%u = memref.load %{left}[{index['l']}]",
        f"%w = memref.load %{right}[{index['r']}]",
        f"%v = arith.{operation} %u, %w",
    ]
    store = f"memref.store %v, %{dest}[{index['d']}]"
    body += ["%big = arith.cmpi sgt, %u, %w", f"scf.if %big {{ {store} }}"] if guarded else [store]
    body += closing

    def step(memory: dict[str, np.ndarray]) -> None:
        for offset in _offsets(boxes["d"]):
            x = memory[left][_at(boxes["l"], offset)]
            y = memory[right][_at(boxes["r"], offset)]
            if not guarded or x > y:
                value = _OPERATIONS[operation](int(x), int(y))
                memory[dest][_at(boxes["d"], offset)] = np.array(value).astype(memory[dest].dtype)

    return [left, right, dest], body, step


def _copy(
    draw: st.DrawFn, arrays: dict[str, np.ndarray], element: str
) -> tuple[list[str], list[str], Callable[[dict[str, np.ndarray]], None]]:
    """A box of one array to a box of another that shares no memory with it, by subview and
    memref.copy.
    """
    pairs = [
        (a, b)
        for a in sorted(arrays)
        for b in sorted(arrays)
        if arrays[a].ndim == arrays[b].ndim and not np.may_share_memory(arrays[a], arrays[b])
    ]
    if not pairs:
        return _elementwise(draw, arrays, element)
    source, dest = draw(st.sampled_from(pairs))
    size = tuple(
        high - low
        for low, high in _box(draw, tuple(map(min, arrays[source].shape, arrays[dest].shape)))
    )
    boxes = {name: _box(draw, arrays[name].shape, size) for name in (source, dest)}
    if 0 in size or not size:  # MLIR refuses an empty subview at an array's end
        return _elementwise(draw, arrays, element)
    body = []
    types = {}
    for name in (source, dest):
        low = ", ".join(str(a) for a, _ in boxes[name])
        sizes = ", ".join(map(str, size))
        ones = ", ".join("1" for _ in size)
        body.append(f"%{name}v = memref.subview %{name}[{low}] [{sizes}] [{ones}]")
        types[name] = name
    body.append(f"memref.copy %{source}v, %{dest}v")

    def step(memory: dict[str, np.ndarray]) -> None:
        for offset in _offsets(boxes[dest]):
            memory[dest][_at(boxes[dest], offset)] = memory[source][_at(boxes[source], offset)]

    return [source, dest], body, step


def _launch(
    draw: st.DrawFn, arrays: dict[str, np.ndarray], element: str
) -> tuple[list[str], list[str], Callable[[dict[str, np.ndarray]], None]]:
    """A bare launch over the first dimension of what it writes, adding a constant in place."""
    flat = [name for name in sorted(arrays) if arrays[name].ndim == 1]
    if not flat:
        return _elementwise(draw, arrays, element)
    dest = draw(st.sampled_from(flat))
    constant = draw(st.integers(-50, 50))
    body = [
        "gpu.launch {",
        "  %tid = gpu.thread_id x",
        f"  %k = arith.constant {constant} : {element}",
        f"  %u = memref.load %{dest}[%tid]",
        "  %v = arith.addi %u, %k",
        f"  memref.store %v, %{dest}[%tid]",
        "}",
    ]

    def step(memory: dict[str, np.ndarray]) -> None:
        for k in range(memory[dest].shape[0]):
            memory[dest][k] = np.array(int(memory[dest][k]) + constant).astype(memory[dest].dtype)

    return [dest], body, step


def _reduction(
    draw: st.DrawFn, arrays: dict[str, np.ndarray], element: str
) -> tuple[list[str], list[str], Callable[[dict[str, np.ndarray]], None]]:
    """The sum of a box into one element, with the sum carried by the loop."""
    flat = [name for name in sorted(arrays) if arrays[name].ndim == 1]
    dests = sorted(arrays)
    if not flat:
        return _elementwise(draw, arrays, element)
    source, dest = draw(st.sampled_from(flat)), draw(st.sampled_from(dests))
    ((low, high),) = _box(draw, arrays[source].shape)
    where = tuple(draw(st.integers(0, n - 1)) for n in arrays[dest].shape)
    index = ", ".join(f"%w{d}" for d in range(len(where)))
    body = [
        f"%zero = arith.constant 0 : {element}",
        *(f"%w{d} = arith.constant {k} : index" for d, k in enumerate(where)),
        f"%sum = scf.for %i = {low} to {high} iter_args(%acc = %zero) {{",
        f"  %u = memref.load %{source}[%i]",
        "  %next = arith.addi %acc, %u",
        "  scf.yield %next",
        "}",
        f"memref.store %sum, %{dest}[{index}]",
    ]

    def step(memory: dict[str, np.ndarray]) -> None:
        total = sum(int(x) for x in memory[source][low:high])
        memory[dest][where] = np.array(total).astype(memory[dest].dtype)

    return [source, dest], body, step


_BODIES = (_elementwise, _elementwise, _copy, _launch, _reduction)


def total_bytes(arrays: dict[str, np.ndarray]) -> int:
    return sum(prod(array.shape) * array.itemsize for array in arrays.values())
