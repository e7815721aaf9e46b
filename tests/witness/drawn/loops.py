"""A loop over operations on numbers from memory."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import strategies as st

from tests.witness.drawn.body import Body
from tests.witness.drawn.control import statements
from tests.witness.drawn.numbers import operation, stored, subscript
from tests.witness.drawn.writer import Number, Range, Writer

EXTENT = 8
"""Of every array; a power of two, so that a mask makes a subscript."""

MOST_STORED = 6


def numbers_body(draw: st.DrawFn, name: str) -> Body:
    """A loop of any kind; what it computes is stored, so that nothing is dead."""
    w, body = Writer(draw, name), Body([])
    _add_inputs(w, name, body)
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
        for source in list(body.arrays):
            _load(w, body, source, index)
        operation(w)
        statements(w, 8)
        if w.whole(0, 3) == 0:
            _load(w, body, f"{name}x0", subscript(w, EXTENT).name)
            operation(w)
        _store_unused(w, name, index, body, parallel=kind == "scf.parallel")
    w.put("}")
    body.lines = w.lines
    return body


def _add_inputs(w: Writer, name: str, body: Body) -> None:
    """Some arrays: small numbers, any, neighbours, and those at the ends of their type."""
    for k in range(w.whole(1, 2)):
        dtype = w.pick((np.int8, np.int16, np.int32, np.int64, np.int64))
        info = np.iinfo(dtype)
        rng = np.random.default_rng(w.whole(0, 2**32 - 1))
        kind = w.pick(("small", "any", "neighbours", "ends"))
        if kind == "small":
            values = rng.integers(-4, 5, EXTENT)
        elif kind == "any":
            values = rng.integers(info.min, info.max, EXTENT, endpoint=True)
        elif kind == "neighbours":
            start = w.whole(int(info.min), int(info.max) - EXTENT)
            values = np.arange(start, start + EXTENT)
        else:
            ends = [info.min, info.min + 1, -1, 0, 1, 2, info.max - 1, info.max]
            values = rng.permutation(np.array(ends))
        body.arrays[f"{name}x{k}"] = values.astype(dtype)
        if dtype is np.int64 and w.flip():
            body.index += (f"{name}x{k}",)


def _load(w: Writer, body: Body, name: str, index: str) -> None:
    array = body.arrays[name]
    range_ = Range(int(array.min()), int(array.max()))
    w.made(f"memref.load %{name}[{index}] : {body.type_of(name)}", body.element(name), range_)


def _store_unused(w: Writer, name: str, index: str, body: Body, *, parallel: bool) -> None:
    """The numbers that nothing uses yet; where iterations have an order also to computed places."""
    text = " ".join(w.lines)
    unused = [
        x for x in w.numbers if x.type != "i1" and not re.search(rf"{x.name}\b.*{x.name}\b", text)
    ]
    parts = [part for x in unused[-MOST_STORED:] or w.numbers[-1:] for part in stored(w, x)]
    for k, part in enumerate(parts):
        out, dtype = f"{name}o{k}", np.float64 if part.type == "f64" else np.int64
        body.arrays[out] = np.full(EXTENT, -7, dtype)
        computed = not parallel and w.whole(0, 5) == 0
        place = subscript(w, EXTENT).name if computed else index
        w.put(f"memref.store {part.name}, %{out}[{place}] : {body.type_of(out)}")
