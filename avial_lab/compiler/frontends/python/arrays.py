"""Whole-array operations as loops: views, assignment, reductions, products of matrices.

Arrays, Lazy values -> lines of MLIR. What is computed element by element becomes one nest, with the
assignment or the reduction that takes it; an assignment that would overwrite what it still reads
goes by memory of its own.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import Arithmetic, affine, constant
from avial_lab.compiler.frontends.python.emitter import Emitter
from avial_lab.compiler.frontends.python.exceptions import HangsOnTheIteration
from avial_lab.compiler.frontends.python.kinds import BOOL, INT64, NP_BOOL, Kind, promoted
from avial_lab.compiler.frontends.python.linear import (
    Linear,
    Range,
    ends,
    least,
    most,
    most_of,
    number,
)
from avial_lab.compiler.frontends.python.values import (
    Array,
    Axis,
    Lazy,
    Number,
    Shape,
    memref,
    whole,
)


class FrozenMask:
    """What says that two masks are the same memory."""


HEAVY = 12
"""Operations of an element from which on a value is kept where it would be computed again."""

ALL = slice(None)
Index = Number | slice | None
"""A subscript: an element, a stretch (of Numbers or None), or a new axis."""


@dataclass
class Arrays:
    """Writes with `emitter` and `arithmetic`. `overlapping` names memories of the caller that share
    elements.
    """

    e: Emitter
    a: Arithmetic
    refuse: Callable[..., Exception]
    overlapping: frozenset[str] = frozenset()
    shared: bool = False
    """Whether new cells are for several tasks."""
    from_end: bool = True
    """Whether a negative index counts from there; else there is no such element."""
    spare: dict[str, Array] = field(default_factory=dict[str, "Array"])
    """Memory that the program is handed, as large as its arguments' sizes say."""
    views: set[str] = field(default_factory=set[str])
    """Names under which memory is seen in another shape."""

    # -- memory ------------------------------------------------------------------------------------

    def fresh(self, kind: Kind, shape: Shape) -> Array:
        """Memory of the program's own, for as many elements as there may be. What hangs on the
        arguments' sizes is for whoever calls to make.
        """
        extents: list[Linear] = []
        for extent in shape:
            high = most_of(extent, self.e.ranges, self.e.sizes)
            if high is None:
                raise self.refuse(
                    "how large this array is, is known only when it runs",
                    "make it before the loop, as large as it gets, and work on a part of it",
                    HangsOnTheIteration,
                )
            extents.append(high if high.known is None else number(max(high.known, 0)))
        kind = Kind(kind.dtype)
        name = self.e.fresh("own")
        made = whole(name, kind, extents, own=True)
        if self.e.sizes and any(extent.known is None for extent in extents):
            self.spare[name] = made
        else:
            self.e.entry.append(f"  {name} = memref.alloc() : {made.type}{self.e.place}")
        return replace(made, shape=tuple(shape))

    def seen_as(self, array: Array, sizes: Sequence[int]) -> Array:
        """The same memory in another shape of as many elements."""

        def reshaped(how: str, memory: str, before: Array, after: Array) -> None:
            groups = list(range(max(len(before.extents), len(after.extents))))
            sized = f" output_shape {[*sizes]}" if how == "expand" else ""
            text = (
                f"memref.{how}_shape {memory} [{groups}]{sized} : {before.type} into {after.type}"
            )
            self.e.line(f"{after.memory} = {text}")

        total = number(math.prod(sizes))
        flat = whole(self.e.fresh("flat"), array.kind, (total,), own=array.own)
        if len(array.extents) > 1:
            reshaped("collapse", array.memory, array, flat)
        else:
            flat = array
        made = flat
        if len(sizes) > 1:
            made = whole(self.e.fresh("seen"), array.kind, sizes, own=array.own)
            reshaped("expand", flat.memory, flat, made)
        self.views.add(made.memory)
        self.overlapping |= {array.memory, made.memory}
        return made

    def load(self, array: Array, index: Sequence[Linear]) -> Number:
        place = array.place(index)
        kind = Kind(array.kind.dtype)
        return Number(kind, ssa=self.e.value(f"{self._access('load', array, place)}"))

    def store(self, value: Number, array: Array, index: Sequence[Linear]) -> None:
        if array.copied:
            raise self.refuse(
                "this is a copy of a part in another shape, which NumPy may write through",
                "write to the part itself, or to a copy: ….copy()",
            )
        ssa = self.a.value(value, array.kind)
        place = array.place(index)
        self.e.line(self._access(f"store {ssa},", array, place))

    def _access(self, what: str, array: Array, place: Sequence[Linear]) -> str:
        self._prove(array, place, reads=what == "load")
        if all(map(self.e.is_affine, place)):
            at = ", ".join(index.text(symbols=self.e.symbols) for index in place)
            return f"affine.{what} {array.memory}[{at}] : {array.type}"
        for index, extent in zip(place, array.extents, strict=True):
            if self.e.is_affine(index):  # others have been checked
                self._inside(index, extent)
        at = ", ".join(self.e.index(index) for index in place)
        return f"memref.{what} {array.memory}[{at}] : {array.type}"

    def _prove(self, array: Array, place: Sequence[Linear], *, reads: bool) -> None:
        """What the loops' ends do not say, the run finds out: before a loop, not in it. That is of
        accesses; a read that decides nothing is none, and raises all the same.
        """
        for index, extent in zip(place, array.extents, strict=True):
            if not self.e.is_affine(index):
                continue  # checked where it was computed
            low, over = least(index, self.e.ranges), most(index - extent, self.e.ranges)
            if low is not None and low >= 0 and over is not None and over < 0:
                continue
            high = most_of(index, self.e.ranges, self.e.sizes)
            if reads and low is not None and low >= 0 and high is not None:
                self._inside(index, extent)
            # (What runs is within these ends; where no iteration does, they say nothing.)
            low_end, _ = ends(index, self.e.ranges, self.e.given)
            _, over_end = ends(index - extent, self.e.ranges, self.e.given)
            room = None if over_end is None else -over_end - number(1)
            if self.e.guards and _not_by_sizes(low_end, room):
                self._within(index, extent)  # where it is certain, the compiler tells
                continue
            why = "what a subscript reaches is known only when it runs"
            self.e.keep_apart(why, low_end, room)

    def _within(self, index: Linear, extent: Linear) -> None:
        """Checked where it is used."""
        at, size = self.e.index(index), self.e.index(extent)
        ok = self.e.value(f"arith.cmpi ult, {at}, {size} : index")
        self.a.raise_unless(ok, "IndexError", f"index is out of bounds, size {extent.text()}")

    # -- subscripts --------------------------------------------------------------------------------

    def view(self, array: Array, index: Sequence[Index]) -> Array:
        """The part of an array; with an index for each dimension it has none left."""
        used = sum(each is not None for each in index)
        if used > len(array.shape):
            raise self.refuse(
                f"too many indices: the array has {len(array.shape)} dimensions, and {used} "
                "are indexed",
                "leave some out",
            )
        index = [*index, *[ALL] * (len(array.shape) - used)]
        shape: list[Linear] = []
        parts: list[tuple[Linear, int, int]] = []  # of the old view's dims: offset, new dim, step
        for each in index:
            if each is None:
                shape.append(number(1))
                continue
            extent = array.shape[len(parts)]
            if isinstance(each, Number):
                at = self.position(each, extent)
                if not array.is_whole and self.e.is_affine(at):
                    self._inside(at, extent)  # beyond the part there may be more of its memory
                parts.append((at, -1, 0))
            else:
                start, count, step = self._stretch(each, extent)
                parts.append((start, len(shape), step))
                shape.append(count)
        axes = tuple(
            axis
            if axis.dim < 0
            else Axis(
                axis.offset + parts[axis.dim][0].scaled(axis.step),
                parts[axis.dim][1],
                axis.step * parts[axis.dim][2],
            )
            for axis in array.axes
        )
        return replace(array, shape=tuple(shape), axes=axes)

    def position(self, index: Number, extent: Linear) -> Linear:
        """Where the element is: counted from the end where it is negative."""
        if not index.kind.is_int:
            raise self.refuse(f"an index is an integer, not {index.kind}", "convert it with int(…)")
        if index.linear is None:
            if index.known is not None:
                return self.position(affine(number(int(index.known.real))), extent)
            return self._checked(index, extent)
        at = index.linear
        low, high = least(at, self.e.ranges), most(at, self.e.ranges)
        if low is not None and low >= 0:
            pass
        elif high is not None and high < 0:
            at = at + extent if self.from_end else at
        else:
            return self._wrapped(at, extent)
        beyond = least(at - extent, self.e.ranges)
        under = most(at, self.e.ranges)
        if (beyond is not None and beyond >= 0) or (under is not None and under < 0):
            no = self.a.value(constant(False))
            told = index.linear.known
            size = extent.known if extent.known is not None else "its size"
            words = f"index {told if told is not None else ''} is out of bounds, size {size}"
            self.a.raise_unless(no, "IndexError", words)
            return number(0)
        if not self.e.is_affine(at):
            return self._inside(at, extent)
        return at

    def _inside(self, at: Linear, extent: Linear, compared: str = "slt") -> Linear:
        """An index that no loop's ends bound, checked where it is used."""
        high = most(at - extent, self.e.ranges)
        if high is not None and high < 0 and compared == "slt":
            return at
        index, size = self.e.index(at), self.e.index(extent)
        ok = self.e.value(f"arith.cmpi {compared}, {index}, {size} : index")
        self.a.raise_unless(ok, "IndexError", f"index is out of bounds, size {extent.text()}")
        return at

    def _wrapped(self, at: Linear, extent: Linear) -> Linear:
        """From the end where it is negative, which only the run knows."""
        if not self.from_end:
            return self._inside(at, extent, "ult")
        if not self.e.is_affine(at):
            return self._looked_up(at, extent)
        zero = self.e.value("arith.constant 0 : index")
        index, size = self.e.index(at), self.e.index(extent)
        below = self.e.value(f"arith.cmpi slt, {index}, {zero} : index")
        moved = self.e.value(f"arith.addi {index}, {size} : index")
        chosen = self.e.value(f"arith.select {below}, {moved}, {index} : index")
        high, low = most(at - extent, self.e.ranges), least(at + extent, self.e.ranges)
        if not (high is not None and high < 0 and low is not None and low >= 0):
            ok = self.e.value(f"arith.cmpi ult, {chosen}, {size} : index")
            self.a.raise_unless(ok, "IndexError", f"index is out of bounds, size {extent.text()}")
        return Linear({chosen: 1})

    def _looked_up(self, at: Linear, extent: Linear) -> Linear:
        """The same of one that data decide: as a rule one comparison; the rest is a branch."""
        index, size = self.e.index(at), self.e.index(extent)
        inside = self.e.value(f"arith.cmpi ult, {index}, {size} : index")
        name = self.e.fresh()
        with self.e.block(f"{name} = scf.if {inside} -> (index) {{", end=""):
            self.e.line(f"scf.yield {index} : index")
        with self.e.block("} else {"):
            moved = self.e.value(f"arith.addi {index}, {size} : index")
            ok = self.e.value(f"arith.cmpi ult, {moved}, {size} : index")
            self.a.raise_unless(ok, "IndexError", f"index is out of bounds, size {extent.text()}")
            self.e.line(f"scf.yield {moved} : index")
        return Linear({name: 1})

    def _checked(self, index: Number, extent: Linear) -> Linear:
        whole_index = self.a.value(index, INT64)
        name = self.e.value(f"arith.index_cast {whole_index} : i64 to index")
        return self._wrapped(Linear({name: 1}), extent)

    def _stretch(self, part: slice, extent: Linear) -> tuple[Linear, Linear, int]:
        """First element, number of elements, step."""
        step = 1 if part.step is None else self._known_step(part.step)
        ends = [None if end is None else self._end(end) for end in (part.start, part.stop)]
        if extent.known is not None and all(end is None or end.known is not None for end in ends):
            numbers = [None if end is None else end.known for end in ends]
            chosen = range(*slice(numbers[0], numbers[1], step).indices(extent.known))
            return number(chosen.start), number(len(chosen)), step
        if step == -1 and ends == [None, None]:
            return extent - number(1), extent, -1
        if step != 1:
            raise self.refuse(
                "a slice with a step has ends that are numbers here",
                "write it as a loop",
                HangsOnTheIteration,
            )
        first = number(0) if ends[0] is None else self._clamped(ends[0], extent)
        last = extent if ends[1] is None else self._clamped(ends[1], extent)
        count = last - first
        low = least(count, self.e.ranges)
        if low is None or low < 0:
            # (Loops of it run no time where it is negative.)
            loops = self.e.is_affine(count) and not count.terms.keys() <= self.e.sizes
            count = count if loops else self._at_least_zero(count, extent)
        return first, count, step

    def _end(self, end: Number) -> Linear:
        if not end.kind.is_int:
            raise self.refuse(f"a slice ends at integers, not at {end.kind}", "use int(…)")
        if end.linear is not None:
            return end.linear
        if end.known is not None:
            return number(int(end.known.real))
        index = self.e.value(f"arith.index_cast {self.a.value(end, INT64)} : i64 to index")
        return Linear({index: 1})

    def _known_step(self, step: Number) -> int:
        if not isinstance(step.known, int) or step.known == 0:
            raise self.refuse("the step of a slice is a number other than 0", "write it as a loop")
        return step.known

    def _clamped(self, end: Linear, extent: Linear) -> Linear:
        """As Python takes the end of a slice: from the array's end where negative, and never
        outside.
        """
        low, high = least(end, self.e.ranges), most(end, self.e.ranges)
        if low is not None and low >= 0:
            pass
        elif high is not None and high < 0:
            end = end + extent
        else:
            zero = self.e.value("arith.constant 0 : index")
            index, size = self.e.index(end), self.e.index(extent)
            below = self.e.value(f"arith.cmpi slt, {index}, {zero} : index")
            moved = self.e.value(f"arith.addi {index}, {size} : index")
            chosen = self.e.value(f"arith.select {below}, {moved}, {index} : index")
            end = self._counted(f"arith.maxsi {chosen}, {zero} : index", None)
        over = most(end - extent, self.e.ranges)
        if over is not None and over <= 0:
            return end
        index, size = self.e.index(end), self.e.index(extent)
        return self._counted(f"arith.minsi {index}, {size} : index", extent)

    def _counted(self, text: str, high: Linear | None) -> Linear:
        """A number of elements, which is not negative, and not above that."""
        name = self.e.value(text)
        self.e.ranges[name] = Range(number(0), high)
        return Linear({name: 1})

    def _at_least_zero(self, count: Linear, extent: Linear | None) -> Linear:
        zero = self.e.value("arith.constant 0 : index")
        return self._counted(f"arith.maxsi {self.e.index(count)}, {zero} : index", extent)

    def not_negative(self, count: Linear) -> Linear:
        """A number of elements; none where it is negative."""
        low = least(count, self.e.ranges)
        if low is not None and low >= 0:
            return count
        return self._at_least_zero(count, most_of(count, self.e.ranges, self.e.sizes))

    def transposed(self, array: Array, order: Sequence[int]) -> Array:
        shape = tuple(array.shape[d] for d in order)
        where = {old: new for new, old in enumerate(order)}
        axes = tuple(
            axis if axis.dim < 0 else replace(axis, dim=where[axis.dim]) for axis in array.axes
        )
        return replace(array, shape=shape, axes=axes)

    # -- element by element ------------------------------------------------------------------------

    def lazy(self, value: Array | Lazy | Number) -> Lazy:
        match value:
            case Lazy():
                return value
            case Number():
                return Lazy(value.kind, (), lambda _: value, (), 0)
            case Array():
                return Lazy(value.kind, value.shape, lambda at: self.load(value, at), (value,))

    def mapped(
        self, kind: Kind, compute: Callable[..., Number], *operands: Array | Lazy | Number
    ) -> Lazy:
        """One of `compute` for each element, of the operands' elements, which are broadcast."""
        given = [self.lazy(self._kept(operand)) for operand in operands]
        shape = self.broadcast(*(each.shape for each in given))
        masked = [each for each in given if each.mask is not None]
        if len({each.mask_key for each in given if each.shape}) > 1 and masked:
            given = [self.lazy(self.compacted(x)) if x.mask is not None else x for x in given]
            masked, shape = [], self.broadcast(*(each.shape for each in given))

        def element(at: Sequence[Linear]) -> Number:
            return compute(*(each.element(self._own_index(each, at)) for each in given))

        reads = tuple(array for each in given for array in each.reads)
        cost = 1 + sum(each.cost for each in given)
        if not masked:
            return Lazy(kind, shape, element, reads, cost)
        return Lazy(kind, shape, element, reads, cost, masked[0].mask, masked[0].mask_key)

    def compacted(self, value: Lazy) -> Array:
        """What the mask leaves, in memory, one after the other."""
        assert value.mask is not None
        total = value.shape[0]
        for extent in value.shape[1:]:
            if total.known is None or extent.known is None:
                raise self.refuse(
                    "how many elements the mask leaves is known only when it runs",
                    "reduce them, assign them under the same mask, or use np.where",
                    HangsOnTheIteration,
                )
            total = number(total.known * extent.known)
        made, count = self.fresh(value.kind, (total,)), self.cell(INT64, constant(0))
        with self.nest(value.shape) as at:
            holds = self.a.truth(value.mask(at))
            with self.e.block(f"scf.if {self.a.value(holds, BOOL)} {{"):
                place = self._read_index(count)
                self.store(value.element(at), made, [place])
                more = self.a.binary(ast.Add(), self.load(count, []), constant(1))
                self.store(more, count, [])
        found = self._read_index(count)
        self.e.ranges[next(iter(found.terms))] = Range(number(0), total)
        return replace(made, shape=(found,))

    def _read_index(self, cell: Array) -> Linear:
        ssa = self.a.value(self.load(cell, []), INT64)
        return Linear({self.e.value(f"arith.index_cast {ssa} : i64 to index"): 1})

    def masked(self, array: Array | Lazy, mask: Array | Lazy, key: object) -> Lazy:
        """The elements where the mask holds."""
        source, test = self.lazy(array), self.lazy(mask)
        if source.mask is not None:
            source = self.lazy(self.compacted(source))
        if test.mask is not None:
            test = self.lazy(self.compacted(test))
        if len(source.shape) != len(test.shape):
            raise self.refuse("a mask has the shape of its array here", "write it as a loop")
        shape = self.broadcast(source.shape, test.shape)
        reads = (*source.reads, *test.reads)
        cost = source.cost + test.cost
        return Lazy(source.kind, shape, source.element, reads, cost, test.element, key)

    def assign_masked(
        self, target: Array, mask: Array | Lazy, value: Array | Lazy | Number
    ) -> None:
        """Elements of the target get the value's where the mask holds; of a mask of its first
        dimensions, what is there.
        """
        source, test = self.lazy(value), self.lazy(mask)
        masked = len(test.shape)
        within = target.shape[masked:]
        if masked > len(target.shape) or (within and source.mask is not None):
            raise self.refuse("a mask has the shape of its array here", "write it as a loop")
        like = within if within else target.shape
        if source.shape and source.mask is None and source.shape != like:
            raise self.refuse("what is assigned under a mask has that mask, or is a number", "")
        if any(self._disturbs(target, array) for array in (*source.reads, *test.reads)):
            test = self.lazy(self.materialised(test))
            if source.shape:
                source = self.lazy(self.materialised(replace(source, mask=None)))
        with self.nest(target.shape) as at:
            holds = self.a.truth(test.element(at[:masked]))
            if holds.known is False:
                return
            from_ = at[-len(like) :] if source.shape else []
            with self.e.block(f"scf.if {self.a.value(holds)} {{"):
                self.store(source.element(from_), target, at)

    def gathered(self, array: Array, index: Sequence[Any]) -> Lazy:
        """Elements whose subscripts are in integer arrays, which are broadcast."""
        if len(index) > len(array.shape) or any(each is None for each in index):
            raise self.refuse("integer arrays index dimensions, one each", "write it as a loop")
        index = [*index, *[ALL] * (len(array.shape) - len(index))]
        picked = [d for d, each in enumerate(index) if not isinstance(each, slice)]
        if picked != list(range(picked[0], picked[-1] + 1)):
            raise self.refuse("integer arrays index neighbouring dimensions here", "use a loop")
        kept = [each if isinstance(each, slice) else ALL for each in index]
        inner = self.view(array, kept)
        wholes = {d: self.lazy(index[d]) for d in picked}
        shape = self.broadcast(*(each.shape for each in wholes.values()))
        first = picked[0]
        before, after = inner.shape[:first], inner.shape[picked[-1] + 1 :]

        def element(at: Sequence[Linear]) -> Number:
            own = at[first : first + len(shape)]
            where = [
                self.position(each.element(self._own_index(each, own)), inner.shape[d])
                for d, each in wholes.items()
            ]
            return self.load(inner, [*at[:first], *where, *at[first + len(shape) :]])

        reads = (array, *(r for each in wholes.values() for r in each.reads))
        kind = Kind(array.kind.dtype)
        return Lazy(kind, (*before, *shape, *after), element, reads, 4)

    def scatter(self, array: Array, index: Sequence[Any], value: Array | Lazy | Number) -> None:
        """The last of those that go to one place stays."""
        index = [*index, *[ALL] * (len(array.shape) - len(index))]
        if any(isinstance(each, slice) for each in index):
            raise self.refuse("integer arrays index all dimensions here", "write it as a loop")
        wholes = [self.lazy(each) for each in index]
        source = self.lazy(value)
        shape = self.broadcast(source.shape, *(each.shape for each in wholes))
        # One place may be named twice: what was there is read before anything is written.
        if any(each.memory == array.memory or self._disturbs(array, each) for each in source.reads):
            source = self.lazy(self.materialised(source))
        with self.nest(shape) as at:
            where = [
                self.position(each.element(self._own_index(each, at)), extent)
                for each, extent in zip(wholes, array.shape, strict=True)
            ]
            self.store(source.element(self._own_index(source, at)), array, where)

    def _kept(self, value: Array | Lazy | Number) -> Array | Lazy | Number:
        if isinstance(value, Lazy) and value.cost > HEAVY * 8:
            return self.materialised(value)
        return value

    def _own_index(self, value: Lazy, at: Sequence[Linear]) -> list[Linear]:
        """The operand's index, its broadcast dimensions at 0."""
        last = at[len(at) - len(value.shape) :]
        return [
            number(0) if extent.known == 1 else index
            for extent, index in zip(value.shape, last, strict=True)
        ]

    def broadcast(self, *shapes: Shape) -> Shape:
        rank = max(map(len, shapes))
        found: list[Linear] = []
        for d in range(rank):
            extent = number(1)
            for shape in shapes:
                at = d - (rank - len(shape))
                if at >= 0 and shape[at].known != 1:
                    extent = self._same(extent, shape[at], shapes)
            found.append(extent)
        return tuple(found)

    def _same(self, x: Linear, y: Linear, shapes: Sequence[Shape]) -> Linear:
        if x.known == 1:
            return y
        apart = x - y
        if apart.known == 0:
            return x
        words = " ".join(f"({', '.join(e.text() for e in shape)})" for shape in shapes)
        if apart.known is not None:
            raise self.refuse(
                f"operands could not be broadcast together with shapes {words}", "", ValueError
            )
        one, other = self.e.index(x), self.e.index(y)
        ok = self.e.value(f"arith.cmpi eq, {one}, {other} : index")
        self.a.raise_unless(ok, "ValueError", "operands could not be broadcast together")
        return x

    @contextmanager
    def nest(self, shape: Shape, words: str = "ijklmn") -> Generator[list[Linear]]:
        """Loops over all indices."""
        with ExitStack() as stack:
            index: list[Linear] = []
            for d, extent in enumerate(shape):
                if extent.known == 1:
                    index.append(number(0))
                elif self.e.is_affine(extent):
                    loop = self.e.loop(number(0), extent, word=words[d % len(words)])
                    index.append(stack.enter_context(loop))
                else:
                    loop = self.plain_loop(number(0), extent, number(1))
                    index.append(stack.enter_context(loop))
            yield index

    @contextmanager
    def plain_loop(self, low: Linear, high: Linear, step: Linear) -> Generator[Linear]:
        """scf.for, whose ends may be anything."""
        name = self.e.fresh("i")
        if most_of(high - low, self.e.ranges, self.e.sizes) is None:
            self.e.may_not_end("how long the loop runs depends on data")
        ends = [self.e.index(each) for each in (low, high, step)]
        head = f"scf.for {name} = {ends[0]} to {ends[1]} step {ends[2]} {{"
        with self.e.block(head):
            self.e.ranges[name] = Range(low, high - number(1))
            yield Linear({name: 1})

    def assign(self, target: Array, value: Array | Lazy | Number) -> None:
        """Every element of `target` gets the value's, which is broadcast."""
        source = self.lazy(value)
        if source.mask is not None:
            source = self.lazy(self.compacted(source))
        while len(source.shape) > len(target.shape) and source.shape[0].known == 1:
            inner = source
            source = replace(
                inner,
                shape=inner.shape[1:],
                element=lambda at, inner=inner: inner.element([number(0), *at]),
            )
        shape = self.broadcast(target.shape, source.shape)
        if len(shape) != len(target.shape) or any(
            (a - b).known != 0 for a, b in zip(shape, target.shape, strict=True)
        ):
            raise self.refuse(
                f"could not broadcast the value into shape "
                f"({', '.join(extent.text() for extent in target.shape)})",
                "",
                ValueError,
            )
        if any(self._disturbs(target, array) for array in source.reads):
            source = self.lazy(self.materialised(source))
        with self.nest(target.shape) as at:
            self.store(source.element(self._own_index(source, at)), target, at)

    def _disturbs(self, target: Array, array: Array) -> bool:
        """Whether writing the one element by element may change another element of the other."""
        if target.memory != array.memory:
            return {target.memory, array.memory} <= self.overlapping
        return target.axes != array.axes

    def materialised(self, value: Array | Lazy | Number) -> Array:
        """Computed, in memory of its own."""
        source = self.lazy(value)
        if source.mask is not None:
            return self.compacted(source)
        made = self.fresh(source.kind, source.shape)
        with self.nest(source.shape) as at:
            self.store(source.element(at), made, at)
        return made

    def frozen(self, value: Lazy) -> Lazy:
        """The same values under the same mask, both as they are now."""
        assert value.mask is not None
        plain = self.lazy(self.materialised(replace(value, mask=None)))
        test = Lazy(NP_BOOL, value.shape, value.mask, ())
        mask = self.lazy(self.materialised(test))
        # What it was computed from may change; of what is frozen nothing does.
        key = value.mask_key if isinstance(value.mask_key, FrozenMask) else FrozenMask()
        return replace(plain, mask=mask.element, mask_key=key, reads=(*plain.reads, *mask.reads))

    def in_memory(self, value: Array | Lazy) -> Array:
        return value if isinstance(value, Array) else self.materialised(value)

    # -- reductions --------------------------------------------------------------------------------

    def cell(self, kind: Kind, first: Number | None = None) -> Array:
        """Memory of one number, of the block that it is made in."""
        if self.shared:
            made = replace(self.fresh(kind, ()), kind=kind)
        else:
            name = self.e.fresh("cell")
            line = f"{name} = memref.alloca() : {memref((), kind)}"
            if self.e.depth == 1 and self.e.plain:
                # All of the function's stand before its first statement, so that the cells which
                # one loop combines (the greatest, and where it is) are in one place.
                self.e.entry.append(f"  {line}{self.e.place}")
            else:
                self.e.line(line)
            made = whole(name, kind, (), own=True)
        if first is not None:
            self.store(first, made, [])
        return made

    def reduced(
        self,
        value: Array | Lazy,
        kind: Kind,
        first: Callable[[Sequence[Linear]], Number],
        step: Callable[[Number, Number], Number],
        *,
        axes: Sequence[int],
        keep: bool = False,
    ) -> Number | Array:
        """`step` of what there is and each element, from `first` on, along the axes. `first` is
        given the index of an element whose coordinates along the axes are 0.
        """
        source = self.lazy(value)
        rank = len(source.shape)
        kept = [d for d in range(rank) if d not in axes]
        shape = tuple(source.shape[d] for d in kept)
        target = self.fresh(kind, shape) if kept else self.cell(kind)
        with self.nest(shape) as at:
            where = dict(zip(kept, at, strict=True))
            begin = [where.get(d, number(0)) for d in range(rank)]
            self.store(first(begin), target, at)
            inner = tuple(source.shape[d] for d in axes)
            with self.nest(inner, "rstuvw") as along:
                full = where | dict(zip(axes, along, strict=True))
                place = [full[d] for d in range(rank)]
                element = self.a.cast(source.element(place), kind)
                old = self.load(target, at)
                new = step(old, element)
                if source.mask is not None:
                    new = self.a.select(self.a.truth(source.mask(place)), new, old)
                self.store(new, target, at)
        if not kept and not keep:
            return self.load(target, [])
        if keep:
            return self.view(target, [ALL if d in kept else None for d in range(rank)])
        return target

    def product(self, x: Array | Lazy, y: Array | Lazy) -> Number | Array:
        """As numpy.matmul of one or two dimensions."""
        kind = promoted(x.kind, y.kind)
        if len(x.shape) == 1 and len(y.shape) == 1:
            return self._inner(x, y, kind)
        left, right = self.in_memory(x), self.in_memory(y)
        if len(left.shape) > 2:
            return self._stacked(left, right, kind)
        rows, columns = left.shape[:-1], right.shape[-1:] if len(right.shape) == 2 else ()
        if not (1 <= len(left.shape) <= 2 and 1 <= len(right.shape) <= 2):
            raise self.refuse(
                "products of matrices have one or two dimensions here", "write the loops"
            )
        sizes = list(right.shape)
        inner = sizes[-2] if len(sizes) == 2 else sizes[0]
        terms = self._same([*left.shape][-1], inner, (left.shape, right.shape))
        if [*left.shape][-1].known == 1 and terms.known != 1:
            raise self.refuse("the sizes of the product do not match", "", ValueError)
        shape = (*rows, *columns)
        target = self.fresh(kind, shape) if shape else self.cell(kind)
        zero = self.a.cast(constant(0), kind)
        with self.nest(shape) as at:
            self.store(zero, target, at)
        with self.nest(shape) as at, self.nest((terms,), "r") as (k,):
            row, column = at[: len(rows)], at[len(rows) :]
            a = self.a.cast(self.load(left, [*row, k]), kind)
            b = self.a.cast(self.load(right, [k, *column]), kind)
            term = self._times(a, b)
            self.store(self._plus(self.load(target, at), term), target, at)
        return target if shape else self.load(target, [])

    def _inner(self, x: Array | Lazy, y: Array | Lazy, kind: Kind) -> Number | Array:
        """Of two rows."""
        terms = self._same(x.shape[0], y.shape[0], (x.shape, y.shape))
        if x.shape[0].known == 1 and terms.known != 1:
            raise self.refuse("the sizes of the product do not match", "", ValueError)
        product = self.mapped(kind, self._times, x, y)
        zero = self.a.cast(constant(0), Kind(kind.dtype))
        return self.reduced(product, Kind(kind.dtype), lambda _: zero, self._plus, axes=[0])

    def _stacked(self, left: Array, right: Array, kind: Kind) -> Array:
        """A stack of matrices by one, or by a stack."""
        stack = left.shape[:-2]
        if len(right.shape) > 2:
            stack = self.broadcast(left.shape[:-2], right.shape[:-2])
        rows, inner = list(left.shape)[-2:]
        other, columns = list(right.shape)[-2:]
        terms = self._same(inner, other, (left.shape, right.shape))
        shape = (*stack, rows, columns)
        target = self.fresh(kind, shape)
        zero = self.a.cast(constant(0), Kind(kind.dtype))
        whole_left, whole_right = self.lazy(left), self.lazy(right)
        with self.nest(shape) as at:
            self.store(zero, target, at)
            with self.nest((terms,), "r") as (k,):
                row = self._own_index(whole_left, [*at[:-1], k])
                column = self._own_index(whole_right, [*at[:-2], k, at[-1]])
                a = self.a.cast(self.load(left, row), Kind(kind.dtype))
                b = self.a.cast(self.load(right, column), Kind(kind.dtype))
                self.store(self._plus(self.load(target, at), self._times(a, b)), target, at)
        return target

    def _times(self, x: Number, y: Number) -> Number:
        return self.a.binary(ast.Mult(), x, y)

    def _plus(self, x: Number, y: Number) -> Number:
        return self.a.binary(ast.Add(), x, y)


def _not_by_sizes(*ends: Linear | None) -> bool:
    """Whether sizes and integers of the call do not say it: a check has to."""
    return any(end is None or (end.known is not None and end.known < 0) for end in ends)


def sum_kind(kind: Kind) -> Kind:
    """Of NumPy's sum and product: small integers are added as 64-bit ones."""
    if kind.dtype.kind in "bi":
        return INT64
    return Kind(np.dtype(np.uint64)) if kind.dtype.kind == "u" else Kind(kind.dtype)


def truth_kind(kind: Kind) -> Kind:
    return BOOL if kind.weak else NP_BOOL
