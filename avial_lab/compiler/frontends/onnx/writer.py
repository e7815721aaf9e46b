"""The function that is written: loops on tensors, reshapes, slices, as MLIR's text.

Operands -> lines of linalg and tensor, and the operands that these make. Broadcast dimensions stand
in indexing maps, and never in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    I64,
    Deferred,
    Dtype,
    NotCovered,
    Number,
    Operand,
    Shape,
    axis_of,
    broadcast,
    constant,
    element,
    number_text,
    tensor_type,
    wide,
)

MOST_WRITTEN = 1024
"""Elements of a constant that is written into the text; larger ones are handed over as arrays."""

MOST_DEFERRED = 8
"""Elementwise loops that another one computes itself."""

MOST_ELEMENTS = 1 << 40
"""Of one tensor."""

Make = Callable[..., Scalar]
Dims = Sequence[int]


def _check_fits(value: Operand, subs: Sequence[str], extents: Shape) -> None:
    """Whether each subscript that is a loop runs over the whole of its dimension."""
    fits = len(subs) == len(value.shape) and all(
        not each[1:].isdecimal() or extents[int(each[1:])] == n
        for each, n in zip(subs, value.shape, strict=True)
    )
    if not fits:
        raise NotCovered(f"a tensor {value.shape} does not fit loops of {extents}")


@dataclass
class Writer:
    """`weights`: arrays that the function takes besides its inputs, by their names in the text."""

    lines: list[str] = field(default_factory=list)
    weights: dict[str, Operand] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Names of arguments."""
    numbers: Iterator[int] = field(default_factory=count)
    known: dict[tuple[object, ...], Operand] = field(default_factory=dict)
    """Constants that are written already."""
    scalars: dict[tuple[str, str], Scalar] = field(default_factory=dict)
    made: dict[Deferred, Operand] = field(default_factory=dict)
    """Loops that were deferred, and are written."""
    reshaped: dict[str, Operand] = field(default_factory=dict)
    """What values were before they were given another shape."""

    def name(self) -> str:
        return f"%v{next(self.numbers)}"

    def make(self, text: str, shape: Shape, dtype: Dtype) -> Operand:
        if math.prod(shape) > MOST_ELEMENTS:
            raise NotCovered(f"a tensor of {'x'.join(map(str, shape))} elements fits no machine")
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return Operand(shape, dtype, name)

    # Constants ------------------------------------------------------------------------------------

    def tensor(self, operand: Operand) -> Operand:
        """The same with a name in the text."""
        if operand.name:
            return operand
        if operand.deferred is not None:
            return self._written(operand, operand.deferred)
        value = operand.known
        assert value is not None
        splat = splat_of(value)
        if splat is None and value.size > MOST_WRITTEN:
            return self.weight(operand)
        bits = (value if splat is None else np.asarray(splat)).tobytes()
        key = (operand.shape, value.dtype.name, bits)
        if key not in self.known:
            values = number_text(splat, value.dtype) if splat is not None else _dense_text(value)
            found = self.make(
                f"arith.constant dense<{values}> : {operand.type}", operand.shape, operand.dtype
            )
            self.known[key] = Operand(found.shape, found.dtype, found.name, value)
        return self.known[key]

    def _written(self, operand: Operand, deferred: Deferred) -> Operand:
        if deferred not in self.made:
            ins = [(value, [f"d{d}" for d in dims]) for value, dims in deferred.ins]
            self.made[deferred] = self.loops(
                operand.shape, ins, range(len(operand.shape)), operand.dtype, deferred.body
            )
        return self.made[deferred]

    def weight(self, operand: Operand) -> Operand:
        """An array that is handed over."""
        name = self.argument(operand.called or "constant")
        made = Operand(operand.shape, operand.dtype, name, operand.known, operand.called)
        self.weights[made.name] = made
        return made

    def argument(self, called: str) -> str:
        """A name that MLIR reads, made of one that may be anything; each time another."""
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in called)[:60] or "x"
        # What the writer calls its own values, and numbers alone, are no names.
        if not plain[0].isalpha() or (plain[0] in "avs" and plain[1:].isdigit()):
            plain = f"_{plain}"
        name, number = plain, 1
        while name in self.taken:
            number += 1
            name = f"{plain}_{number}"
        self.taken.add(name)
        return f"%{name}"

    def empty(self, shape: Shape, dtype: Dtype) -> Operand:
        return self.make(f"tensor.empty() : {tensor_type(shape, dtype)}", shape, dtype)

    def filled(self, shape: Shape, value: Scalar | Number, dtype: Dtype) -> Operand:
        if not isinstance(value, Scalar):
            value = self.scalar(value, dtype)
        begun = self.empty(shape, dtype)
        return self.make(
            f"linalg.fill ins({value.name} : {value.type}) outs({begun.name} : {begun.type}) "
            f"-> {begun.type}",
            shape,
            dtype,
        )

    def scalar(self, value: Number, dtype: Dtype) -> Scalar:
        """A number outside of any loop, written once."""
        kind, text = element(dtype), number_text(value, dtype)
        if (text, dtype.name) not in self.scalars:
            name = self.name()
            self.lines.append(
                f"{name} = arith.constant {text}" + ("" if kind == "i1" else f" : {kind}")
            )
            self.scalars[text, dtype.name] = Scalar(name, dtype)
        return self.scalars[text, dtype.name]

    def number(self, operand: Operand) -> Scalar:
        """The one element of a tensor, outside of any loop."""
        value = self.reshape(self.tensor(operand), ())
        made = self.make(f"tensor.extract {value.name}[] : {value.type}", (), operand.dtype)
        return Scalar(made.name, operand.dtype)

    # Loops ----------------------------------------------------------------------------------------

    def loops(
        self,
        extents: Shape,
        ins: Sequence[tuple[Operand, Sequence[str]]],
        out: Dims,
        dtype: Dtype,
        body: Callable[..., Scalar],
        *,
        begun: Operand | None = None,
    ) -> Operand:
        """One linalg.generic: `ins` with their subscripts in d0, d1 …; the result's dimensions are
        the loops `out`, others are reductions, which begin with `begun`. `body` is given the
        Body, a scalar for each input, and the total where there is a reduction.
        """
        shape = tuple(extents[d] for d in out)
        for value, subs in ins:
            _check_fits(value, subs, extents)
        inputs: list[tuple[Operand, Sequence[str]]] = []
        plans = [self._plan(value, subs, math.prod(extents), inputs) for value, subs in ins]
        init = begun or self.empty(shape, dtype)
        inner = Body(self.numbers)
        arguments = [Scalar(f"%a{next(self.numbers)}", value.dtype) for value, _ in inputs]
        total = Scalar(f"%a{next(self.numbers)}", dtype)
        reduces = len(out) < len(extents)
        given = [plan(inner, arguments) for plan in plans]
        result = body(inner, *given, *([total] if reduces else []))
        dims = ", ".join(f"d{d}" for d in range(len(extents)))
        forms = [*(subs for _, subs in inputs), [f"d{d}" for d in out]]
        maps = ", ".join(f"affine_map<({dims}) -> ({', '.join(form)})>" for form in forms)
        kinds = ", ".join('"parallel"' if d in out else '"reduction"' for d in range(len(extents)))
        named, types = (", ".join(each) for each in (
            [v.name for v, _ in inputs], [v.type for v, _ in inputs]
        ))  # fmt: skip
        heads = ", ".join(f"{a.name}: {a.type}" for a in (*arguments, total))
        kind = tensor_type(shape, dtype)
        name = self.name()
        ins_text = f" ins({named} : {types})" if inputs else ""
        self.lines += [
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
            f"{ins_text} outs({init.name} : {kind}) {{",
            f"^bb0({heads}):",
            *(f"  {line}" for line in inner.lines),
            f"  linalg.yield {result.name} : {element(dtype)}",
            f"}} -> {kind}",
        ]
        return Operand(shape, dtype, name)

    def _plan(
        self,
        value: Operand,
        subs: Sequence[str],
        iterations: int,
        inputs: list[tuple[Operand, Sequence[str]]],
    ) -> Callable[[Body, list[Scalar]], Scalar]:
        """How a loop gets a value: it reads it as one of its inputs, or computes what is deferred,
        where it comes by each element once.
        """
        deferred = value.deferred if value.deferred not in self.made else None
        once = value.size == iterations and all(s[1:].isdecimal() for s in subs)
        if deferred is None or not once or deferred.weight > MOST_DEFERRED:
            source = self.tensor(value)
            known = [(each.name, list(form)) for each, form in inputs]
            if (source.name, list(subs)) not in known:
                inputs.append((source, subs))
                known.append((source.name, list(subs)))
            at = known.index((source.name, list(subs)))
            return lambda _, arguments: arguments[at]
        loops = [int(s[1:]) for s in subs]
        plans = [
            self._plan(each, [f"d{loops[d]}" for d in dims], iterations, inputs)
            for each, dims in deferred.ins
        ]
        return lambda b, arguments: deferred.body(
            b.within(loops), *(plan(b, arguments) for plan in plans)
        )

    def elementwise(
        self,
        inputs: Sequence[Operand | tuple[Operand, Dims]],
        dtype: Dtype,
        body: Callable[..., Scalar],
        *,
        shape: Shape | None = None,
    ) -> Operand:
        """A loop over a broadcast shape. An input with dimensions beside it lies along those of the
        result. Constants of one value stand in the body.
        """
        placed = [each if isinstance(each, tuple) else (each, None) for each in inputs]
        wanted = (
            shape
            if shape is not None
            else broadcast(*(value.shape for value, dims in placed if dims is None))
        )
        ins: list[tuple[Operand, tuple[int, ...]]] = []
        where: list[int | Operand] = []
        for value, dims in placed:
            splat = splat_of(value.known) if value.is_constant and value.known is not None else None
            if splat is not None:
                where.append(constant(splat, value.dtype))
                continue
            along = dims if dims is not None else range(len(wanted) - len(value.shape), len(wanted))
            if len(value.shape) != len(along) or any(
                n not in (1, wanted[d]) for d, n in zip(along, value.shape, strict=True)
            ):
                raise NotCovered(f"a tensor {value.shape} does not fit one {wanted}")
            kept = [
                (d, n)
                for d, n in zip(along, value.shape, strict=True)
                if not (n == 1 and wanted[d] != 1)
            ]
            where.append(len(ins))
            reshaped = self.reshape(value, tuple(n for _, n in kept))
            ins.append((reshaped, tuple(d for d, _ in kept)))

        def inside(b: Body, *scalars: Scalar) -> Scalar:
            given = [
                scalars[each]
                if isinstance(each, int)
                else b.number(np.asarray(each.known), each.dtype)
                for each in where
            ]
            return body(b, *given)

        weight = 1 + sum(
            v.deferred.weight for v, _ in ins if v.deferred and v.deferred not in self.made
        )
        element(dtype)
        return Operand(wanted, dtype, deferred=Deferred(tuple(ins), inside, weight))

    def reduce(
        self,
        value: Operand,
        axes: Sequence[int],
        start: Number,
        combine: Callable[[Body, Scalar, Scalar], Scalar],
        *,
        keep: bool = False,
        dtype: Dtype | None = None,
        each: Callable[[Body, Scalar], Scalar] | None = None,
    ) -> Operand:
        """Over these axes, of what `each` makes of the elements."""
        dtype = dtype or value.dtype
        out = [d for d in range(len(value.shape)) if d not in axes]
        shape = tuple(value.shape[d] for d in out)
        begun = self.filled(shape, start, dtype)
        if axes:
            found = self.loops(
                value.shape,
                [(value, [f"d{d}" for d in range(len(value.shape))])],
                out,
                dtype,
                lambda b, x, total: combine(b, total, each(b, x) if each else x),
                begun=begun,
            )
        else:
            found = self.elementwise([value], dtype, lambda b, x: each(b, x) if each else x)
        kept = tuple(1 if d in axes else n for d, n in enumerate(value.shape))
        return self.reshape(found, kept) if keep else found

    def total(
        self,
        value: Operand,
        axes: Sequence[int],
        *,
        keep: bool = False,
        each: Callable[[Body, Scalar], Scalar] | None = None,
    ) -> Operand:
        """Sums; of f16 and bf16 in f32, and rounded once."""
        dtype = wide(value.dtype)

        def term(b: Body, x: Scalar) -> Scalar:
            x = b.cast(x, dtype)
            return each(b, x) if each else x

        found = self.reduce(
            value, axes, 0, lambda b, t, x: b.add(t, x), keep=keep, dtype=dtype, each=term
        )
        return self.cast(found, value.dtype)

    def contract(
        self,
        extents: Shape,
        a: tuple[Operand, Sequence[str]],
        b: tuple[Operand, Sequence[str]],
        out: Dims,
    ) -> Operand:
        """Sums of products; of f16 and bf16 in f32, and rounded once."""
        dtype = a[0].dtype
        inner = wide(dtype)
        begun = self.filled(tuple(extents[d] for d in out), 0, inner)

        def body(s: Body, x: Scalar, y: Scalar, *total: Scalar) -> Scalar:
            product = s.mul(s.cast(x, inner), s.cast(y, inner))
            return s.add(total[0], product) if total else product

        return self.cast(self.loops(extents, [a, b], out, inner, body, begun=begun), dtype)

    def cast(self, value: Operand, dtype: Dtype) -> Operand:
        if value.dtype == dtype:
            return value
        return self.elementwise([value], dtype, lambda b, x: b.cast(x, dtype))

    # Shapes ---------------------------------------------------------------------------------------

    def reshape(self, value: Operand, shape: Shape) -> Operand:
        """The same elements in the same order."""
        if value.shape == shape:
            return value
        if math.prod(shape) != value.size:
            raise NotCovered(
                f"{'x'.join(map(str, value.shape)) or 'a number'} has not as many elements as "
                f"{'x'.join(map(str, shape)) or 'a number'}"
            )
        if value.is_constant and value.known is not None:
            return constant(value.known.reshape(shape))
        value = self.tensor(value)
        base = self.reshaped.get(value.name, value)
        if base.shape == shape:
            return base
        made = self._regrouped(base, shape)
        self.reshaped[made.name] = base
        return made

    def _regrouped(self, value: Operand, shape: Shape) -> Operand:
        if not value.size:
            return self.empty(shape, value.dtype)
        groups = _groups(value.shape, shape)
        if all(len(new) <= 1 for _, new in groups):
            return self._collapsed(value, [old for old, _ in groups], shape)
        if all(len(old) <= 1 for old, _ in groups):
            return self._expanded(value, [new for _, new in groups], shape)
        between = tuple(math.prod(value.shape[d] for d in old) for old, _ in groups)
        flat = self._collapsed(value, [old for old, _ in groups], between)
        return self._expanded(flat, [new for _, new in groups], shape)

    def _collapsed(self, value: Operand, groups: Sequence[Dims], shape: Shape) -> Operand:
        kind = tensor_type(shape, value.dtype)
        text = f"tensor.collapse_shape {value.name} {_group_text(groups if shape else [])}"
        return self.make(f"{text} : {value.type} into {kind}", shape, value.dtype)

    def _expanded(self, value: Operand, groups: Sequence[Dims], shape: Shape) -> Operand:
        kind = tensor_type(shape, value.dtype)
        sizes = ", ".join(map(str, shape))
        text = f"tensor.expand_shape {value.name} {_group_text(groups if value.shape else [])}"
        return self.make(
            f"{text} output_shape [{sizes}] : {value.type} into {kind}", shape, value.dtype
        )

    def transpose(self, value: Operand, order: Sequence[int]) -> Operand:
        if list(order) == list(range(len(order))):
            return value
        shape = tuple(value.shape[d] for d in order)
        subs = [f"d{list(order).index(d)}" for d in range(len(order))]
        return self.loops(shape, [(value, subs)], range(len(shape)), value.dtype, lambda _, x: x)

    def expand(self, value: Operand, shape: Shape) -> Operand:
        if value.shape == shape:
            return value
        return self.elementwise([value], value.dtype, lambda _, x: x, shape=shape)

    def slice(self, value: Operand, starts: Dims, sizes: Shape, steps: Dims) -> Operand:
        """Steps forward."""
        if sizes == value.shape:
            return value
        if not math.prod(sizes):
            return self.empty(sizes, value.dtype)
        value = self.tensor(value)
        texts = (f"[{', '.join(map(str, each))}]" for each in (starts, sizes, steps))
        kind = tensor_type(sizes, value.dtype)
        return self.make(
            f"tensor.extract_slice {value.name}{''.join(f'{t} ' for t in texts)}: "
            f"{value.type} to {kind}",
            sizes,
            value.dtype,
        )

    def insert(self, part: Operand, whole: Operand, starts: Dims) -> Operand:
        if not part.size:
            return whole
        part, whole = self.tensor(part), self.tensor(whole)
        ones = ", ".join(["1"] * len(starts))
        where = f"[{', '.join(map(str, starts))}] [{', '.join(map(str, part.shape))}] [{ones}]"
        return self.make(
            f"tensor.insert_slice {part.name} into {whole.name}{where} : "
            f"{part.type} into {whole.type}",
            whole.shape,
            whole.dtype,
        )

    def concat(self, parts: Sequence[Operand], axis: int) -> Operand:
        parts = [each for each in parts if each.size] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(each.shape[axis] for each in parts)
        whole = self.empty(tuple(shape), parts[0].dtype)
        at = 0
        for part in parts:
            starts = [at if d == axis else 0 for d in range(len(shape))]
            whole = self.insert(part, whole, starts)
            at += part.shape[axis]
        return whole

    def pad(self, value: Operand, before: Dims, after: Dims, fill: Scalar | Number) -> Operand:
        """What is not there has this value."""
        if not any(before) and not any(after):
            return value
        shape = tuple(a + n + b for a, n, b in zip(before, value.shape, after, strict=True))
        return self.insert(value, self.filled(shape, fill, value.dtype), before)

    def take(self, value: Operand, axis: int, indices: Operand) -> Operand:
        """Along an axis, at indices that count from the end where they are negative."""
        axis = axis_of(axis, len(value.shape))
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        extent = value.shape[axis]
        row = _progression(indices, extent)
        if row is not None:  # a slice, whose other dimensions may be divided
            starts, steps, sizes = [0] * len(value.shape), [1] * len(value.shape), [*value.shape]
            starts[axis], steps[axis], sizes[axis] = row
            return self.reshape(self.slice(value, starts, tuple(sizes), steps), shape)
        source, rank = self.tensor(value), len(indices.shape)

        def body(b: Body, at: Scalar) -> Scalar:
            loops = [b.index(d) for d in range(len(shape)) if not axis <= d < axis + rank]
            loops.insert(axis, wrapped(b, at, extent))
            return b.extract(source, loops)

        return self.elementwise(
            [(indices, range(axis, axis + rank))], value.dtype, body, shape=shape
        )


def wrapped(b: Body, at: Scalar, extent: int) -> Scalar:
    """An index that counts from the end where it is negative."""
    if at.dtype is not None and at.dtype.kind == "u":
        return b.as_index(at)
    at = b.cast(at, I64)
    ends = b.compare("lt", at, b.number(0, I64))
    return b.as_index(b.select(ends, b.add(at, b.number(extent, I64)), at))


def _progression(indices: Operand, extent: int) -> tuple[int, int, int] | None:
    """First, step and number of known indices that go forward in equal steps."""
    if indices.known is None or not indices.size:
        return None
    places = indices.known.reshape(-1).astype(np.int64)
    if not all(-extent <= n < extent for n in places):
        raise NotCovered(f"an index outside of the {extent} elements of a dimension")
    places = np.where(places < 0, places + extent, places)
    step = int(places[1] - places[0]) if places.size > 1 else 1
    if step < 1 or (np.diff(places) != step).any():
        return None
    return int(places[0]), step, int(places.size)


def splat_of(value: np.ndarray) -> Number | None:
    """The one number that a constant is made of; None where there are several, or none."""
    if not value.size:
        return None
    first = (
        value.reshape(-1)[:1] if value.flags.c_contiguous else value[(slice(0, 1),) * value.ndim]
    )
    first = first.reshape(())
    if value.size == 1 or not any(value.strides):
        return first
    same = value.view(f"u{value.itemsize}") == first.view(f"u{value.itemsize}")
    return first if bool(same.all()) else None


def _dense_text(value: np.ndarray) -> str:
    if not value.size:
        return ""
    if value.ndim == 0:
        return number_text(value, value.dtype)
    if value.size > 16 and value.dtype.kind != "b":
        return f'"0x{np.ascontiguousarray(value).tobytes().hex().upper()}"'
    return f"[{', '.join(_dense_text(each) for each in value)}]"


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of both with equal products, as short as can be."""
    found: list[tuple[list[int], list[int]]] = []
    a = b = 0
    while a < len(old) and b < len(new):
        group, others = [a], [b]
        m, n = old[a], new[b]
        a, b = a + 1, b + 1
        while m != n:
            if m < n:
                m *= old[a]
                group.append(a)
                a += 1
            else:
                n *= new[b]
                others.append(b)
                b += 1
        found.append((group, others))
    rest = (list(range(a, len(old))), list(range(b, len(new))))
    if found:
        found[-1][0].extend(rest[0])
        found[-1][1].extend(rest[1])
    elif rest[0] or rest[1]:
        found.append(rest)
    return found


def _group_text(groups: Sequence[Dims]) -> str:
    return f"[{', '.join('[' + ', '.join(map(str, group)) + ']' for group in groups)}]"
