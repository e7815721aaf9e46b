"""Whole programs: bodies in a function, or as tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tests.witness.drawn.body import ELEMENT, Body, type_of
from tests.witness.drawn.control import statements
from tests.witness.drawn.numbers import operation, stored, subscript
from tests.witness.drawn.tensors import tensors_body
from tests.witness.drawn.views import views_body
from tests.witness.drawn.writer import Number, Range, Writer

EXTENT = 8
"""Of every array along the loops; a power of two, so that a mask makes a subscript."""


MOST_STORED = 6


@dataclass
class Drawn:
    """`text` works on `arrays`; its results, if it has any, are result0, …"""

    text: str
    arrays: dict[str, np.ndarray]

    def __repr__(self) -> str:
        listed = ", ".join(f"{k}={v.tolist()}: {v.dtype}" for k, v in self.arrays.items())
        return f"\n{self.text}\n{listed}"


# -- loops over numbers ----------------------------------------------------------------------------


def _inputs(w: Writer, name: str) -> dict[str, np.ndarray]:
    """Some arrays: small numbers, any, and those at the ends of their type."""
    found: dict[str, np.ndarray] = {}
    for k in range(w.whole(1, 2)):
        dtype = w.pick((np.int8, np.int16, np.int32, np.int64, np.int64))
        info = np.iinfo(dtype)
        rng = np.random.default_rng(w.whole(0, 2**32 - 1))
        kind = w.pick(("small", "any", "ends", "few"))
        if kind == "small":
            values = rng.integers(-4, 5, EXTENT)
        elif kind == "few":
            start = w.whole(int(info.min), int(info.max) - EXTENT)
            values = np.arange(start, start + EXTENT)
        elif kind == "any":
            values = rng.integers(info.min, info.max, EXTENT, endpoint=True)
        else:
            ends = [info.min, info.min + 1, -1, 0, 1, 2, info.max - 1, info.max]
            values = rng.permutation(np.array(ends))
        found[f"{name}x{k}"] = values.astype(dtype)
    return found


def _loads(w: Writer, index: str, inputs: dict[str, np.ndarray]) -> None:
    for name, array in inputs.items():
        if array.dtype.kind != "i" or array.shape != (EXTENT,):
            continue
        range_ = Range(int(array.min()), int(array.max()))
        w.made(
            f"memref.load %{name}[{index}] : {type_of(array)}", ELEMENT[array.dtype.name], range_
        )


def _stores(w: Writer, name: str, index: str, body: Body, *, parallel: bool) -> None:
    """The numbers that nothing uses yet, so that nothing is dead; also to a computed place."""
    used = " ".join(w.lines)
    unused = [
        x for x in w.numbers if x.type != "i1" and not re.search(rf"{x.name}\b.*{x.name}\b", used)
    ]
    count = 0
    for x in unused[-MOST_STORED:] or w.numbers[-1:]:
        for part in stored(w, x):
            dtype = np.float64 if part.type == "f64" else np.int64
            out = f"{name}o{count}"
            body.arrays[out] = np.full(EXTENT, -7, dtype)
            place = index
            if not parallel and w.whole(0, 5) == 0:
                place = subscript(w, EXTENT).name
            w.put(f"memref.store {part.name}, %{out}[{place}] : {type_of(body.arrays[out])}")
            count += 1


def numbers_body(draw: st.DrawFn, name: str) -> Body:
    """A loop of any kind over operations on numbers from memory."""
    w = Writer(draw, name)
    body = Body([], _inputs(w, name))
    index = w.fresh()
    kind = w.pick(("affine.for", "affine.for", "scf.for", "scf.parallel"))
    if kind == "affine.for":
        w.put(f"affine.for {index} = 0 to {EXTENT} {{")
    else:
        low, high, one = (w.constant("index", k).name for k in (0, EXTENT, 1))
        w.numbers.clear()
        if kind == "scf.for":
            w.put(f"scf.for {index} = {low} to {high} step {one} {{")
        else:
            w.put(f"scf.parallel ({index}) = ({low}) to ({high}) step ({one}) {{")
    with w.region(Number(index, "index", Range(0, EXTENT - 1))):
        _loads(w, index, body.arrays)
        operation(w)
        statements(w, 8)
        if w.whole(0, 3) == 0:
            _gathered(w, body)
        _stores(w, name, index, body, parallel=kind == "scf.parallel")
    w.put("}")
    body.lines = w.lines
    return body


def _gathered(w: Writer, body: Body) -> None:
    """Read at a place that was computed."""
    name, array = next(iter(body.arrays.items()))
    place = subscript(w, EXTENT)
    w.made(f"memref.load %{name}[{place.name}] : {type_of(array)}", ELEMENT[array.dtype.name])
    operation(w)


# -- programs --------------------------------------------------------------------------------------

Maker = Callable[[st.DrawFn, str], Body]
BODIES: tuple[Maker, ...] = (numbers_body, numbers_body, views_body, tensors_body)


def function_of(bodies: Sequence[Body]) -> Drawn:
    """One after another, each with arrays of its own."""
    arguments = ", ".join(f"%{n}: {body.type_of(n)}" for body in bodies for n in body.arrays)
    results = [result for body in bodies for result in body.results]
    names, types = (", ".join(part) for part in zip(*results, strict=True)) if results else ("", "")
    end = f"  return {names} : {types}" if results else "  return"
    head = f"func.func @f({arguments}){f' -> ({types})' if results else ''} {{"
    lines = [line for body in bodies for line in body.lines]
    arrays = {name: array for body in bodies for name, array in body.arrays.items()}
    return Drawn("\n".join([head, *lines, end, "}", ""]), arrays)


@st.composite
def functions(draw: st.DrawFn, *, makers: Sequence[Maker] = BODIES) -> Drawn:
    """Of one to four bodies, so that one build tries them all."""
    chosen = draw(st.lists(st.sampled_from(makers), min_size=1, max_size=4))
    return function_of([make(draw, name) for make, name in zip(chosen, "abcd", strict=False)])


@st.composite
def schedules(draw: st.DrawFn) -> Drawn:
    """One to three tasks, each with arrays of its own, and one that reads what the first wrote."""
    makers = [
        draw(st.sampled_from((numbers_body, views_body))) for _ in range(draw(st.integers(1, 3)))
    ]
    bodies = [make(draw, "abc"[k]) for k, make in enumerate(makers)]
    lines = [f'  %cpu = avial.target {{arch = "{draw(st.sampled_from(("cpu", "gpu")))}"}}']
    lines.append('  %other = avial.target {arch = "cpu"}')
    for k, body in enumerate(bodies):
        listed = ", ".join(f"%{name}" for name in body.arrays)
        lines += [f"  %t{k} = avial.task %cpu, {listed} {{", *body.lines, "  }"]
    arrays = {name: array for body in bodies for name, array in body.arrays.items()}
    last = [name for name in bodies[0].arrays if name not in bodies[0].index][-1]
    type_, arrays["copied"] = bodies[0].type_of(last), np.zeros_like(arrays[last])
    lines += [
        f"  %last = avial.task %other, %{last}, %copied {{",
        f"    memref.copy %{last}, %copied : {type_} to {type_}",
        "  }",
    ]
    typed = {name: body.type_of(name) for body in bodies for name in body.arrays}
    typed["copied"] = type_
    buffers = ", ".join(f"%{name}: {typed[name]}" for name in arrays)
    return Drawn("\n".join([f"avial.schedule {buffers} {{", *lines, "}", ""]), arrays)
