"""The pieces of a contraction as code: its values for one iteration, its elements' places.

Contraction, values of its loops' variables -> copies of its operations at the insertion point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from mlir import ir
from mlir.dialects import affine, memref, vector

from avial_lab.compiler.analysis.patterns.contractions import (
    Contraction,
    has_rows_of_elements,
    is_elementwise,
)
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Statement
from avial_lab.compiler.analysis.polyhedral.strides import stride_of
from avial_lab.compiler.codegen.loops.index_arithmetic import minus, plus, splat
from avial_lab.compiler.codegen.loops.outlined_code import SharedCode
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import attributes_of

Values = Mapping[str, ir.Value]
"""By name: of loops' variables and of parameters."""


@dataclass(frozen=True)
class Place:
    """A subscript: the variable of that name, counted from `low`."""

    name: str
    low: ir.Value

    def at(self, values: Values) -> ir.Value:
        return minus(values[self.name], self.low)


@dataclass(frozen=True)
class Kept:
    """Where a left or right value was saved, as it was then."""

    memory: ir.Value
    term: Place
    other: Place

    def subscripts(self, at: Values) -> list[ir.Value]:
        return [self.term.at(at), self.other.at(at)]


@dataclass(frozen=True)
class TermPlaces:
    """A value's place in the row `flat`: what `base` makes of the values `others`, and beyond that
    as far as `table` says of the term.
    """

    flat: ir.Value
    table: ir.Value
    base: ir.AffineMap
    others: tuple[ir.Value, ...]


@dataclass(frozen=True)
class ContractionCode:
    """`root` is the nest that the contraction stands in; values that are `kept` are taken from
    there. `shared` holds the pieces that other contractions may have as well; `known` are values
    in whose place others may stand, where the code is for.
    """

    root: ir.Operation
    found: Contraction
    shared: SharedCode
    kept: Mapping[ir.Value, Kept] = field(default_factory=dict[ir.Value, Kept])
    places: Mapping[ir.Value, TermPlaces] = field(default_factory=dict[ir.Value, TermPlaces])
    known: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])

    @property
    def row(self) -> Loop:
        return self.found.unit.loops[self.found.roles.row]

    @property
    def column(self) -> Loop:
        return self.found.unit.loops[self.found.roles.column]

    @property
    def term(self) -> Loop:
        return self.found.unit.loops[self.found.roles.term]

    @property
    def around(self) -> tuple[Loop, ...]:
        return tuple(self.found.unit.loops[k] for k in self.found.roles.around)

    @property
    def array(self) -> ir.Value:
        """What the elements are stored to."""
        return self.found.store.op.operands[1]

    def keep(self, values: Sequence[ir.Value], term: ir.Value, other: ir.Value) -> None:
        """Save these left or right values of a term, as they are now."""
        for value in values:
            kept = self.kept[value]
            at = {kept.term.name: term, kept.other.name: other}
            (now,) = self.computed([value], at, keeping=True)
            memref.StoreOp(now, kept.memory, kept.subscripts(at))

    def computed(
        self, wanted: Sequence[ir.Value], at: Values, *, keeping: bool = False
    ) -> list[ir.Value]:
        """Copies of what computes `wanted` in the iteration `at`; `keeping`: from the arrays."""
        inside: dict[ir.Value, ir.Value] = {}
        for loop in self.found.unit.loops:
            if loop.name in at:
                inside[loop.variable] = at[loop.name]

        def copy(value: ir.Value) -> ir.Value:
            value = self.known.get(value, value)
            if value in self.kept and not keeping:
                kept = self.kept[value]
                return memref.LoadOp(kept.memory, kept.subscripts(at)).result
            if value in self.places:
                return memref.LoadOp(*self._by_table(value, at)).result
            if value in inside or not defined_in(self.root, value):
                return inside.get(value, value)
            op = value.owner.operation
            operands = [copy(operand) for operand in op.operands]
            with op.location:
                made = _again(op, operands)
            inside.update(zip(op.results, made.results, strict=True))
            return inside[value]

        return [copy(value) for value in wanted]

    def walks(self, wanted: Sequence[ir.Value], along: Loop) -> bool:
        """Whether vectors can hold them for several values of one loop's variable: what is loaded
        then lies side by side.
        """
        return all(self._walks(value, along) for value in wanted)

    def is_loaded(self, value: ir.Value) -> bool:
        """Whether it is an element of an array, as it stands there."""
        op = None if isinstance(value.owner, ir.Block) else value.owner.operation
        return op in self._loads and value not in self.kept

    def _walks(self, value: ir.Value, along: Loop) -> bool:
        if not self.hangs_on(value, along):
            return True
        if value in self.kept:
            return along.name == self.kept[value].other.name
        op = value.owner.operation if not isinstance(value.owner, ir.Block) else None
        if op is None:
            return False
        load = self._loads.get(op)
        if load is None:
            return is_elementwise(op) and all(self._walks(each, along) for each in op.operands)
        if not has_rows_of_elements(op.operands[0]):
            return False
        if stride_of(load.accesses[0], load.loops.index(along)) == 1:
            return True
        # The same said of a view, where the array itself is met at every so many elements of a row.
        hanging = [each for each in list(op.operands)[1:] if self.hangs_on(each, along)]
        hanging = [self.known.get(each, each) for each in hanging]
        variable = along.variable
        return hanging == [variable] and self._is_last_subscript(op, variable)

    def _is_last_subscript(self, load: ir.Operation, variable: ir.Value) -> bool:
        """Whether the value is the last subscript, and in no other."""
        if load.name != "affine.load":
            last = load.operands[-1]
            return self.known.get(last, last) == variable
        *others, last = ir.AffineMapAttr(load.attributes["map"]).value.results
        own = ir.AffineExpr.get_dim(list(load.operands)[1:].index(variable))
        return last == own and not any(re.search(rf"\b{own}\b", str(each)) for each in others)

    def beside(self, wanted: Sequence[ir.Value], other: Loop) -> tuple[ContractionCode, ...]:
        """The code where the term comes before that loop's variable, and where it comes after it:
        which of both is the greater, in what `wanted` are computed from. None where nobody asks.

        A[max(i, k), min(i, k)]          A[i, k] where k < i, A[k, i] where k > i
        """
        both = [other.variable, self.term.variable]
        extremes = [op for op in self._behind(wanted) if _is_extreme(op, both)]
        if not extremes:
            return ()
        found: list[ContractionCode] = []
        for greater, lesser in (both, both[::-1]):
            known = {
                op.results[0]: greater if op.name.endswith("max") else lesser for op in extremes
            }
            found.append(replace(self, known=known))
        return tuple(found)

    def _behind(self, wanted: Sequence[ir.Value]) -> Iterator[ir.Operation]:
        """The operations of the nest that they are computed by."""
        todo, seen = list(wanted), set[ir.Operation]()
        while todo:
            value = todo.pop()
            if isinstance(value.owner, ir.Block) or not defined_in(self.root, value):
                continue
            op = value.owner.operation
            if op not in seen and value not in self.kept:
                seen.add(op)
                todo += list(op.operands)
                yield op

    @cached_property
    def _loads(self) -> dict[ir.Operation, Statement]:
        return {s.op: s for s in (*self.found.unit.statements, *self.found.unit.sunk)}

    def hangs_on(self, value: ir.Value, along: Loop) -> bool:
        value = self.known.get(value, value)
        if value == along.variable:
            return True
        if isinstance(value.owner, ir.Block) or not defined_in(self.root, value):
            return False
        return any(self.hangs_on(each, along) for each in value.owner.operation.operands)

    def vectors(
        self, wanted: Sequence[ir.Value], at: Values, along: Loop, mask: ir.Value
    ) -> list[ir.Value]:
        """Vectors of `wanted` for the values of a loop's variable from `at` on, one for each bit of
        the mask; where it is 0 nothing is loaded.
        """
        lanes = ir.VectorType(mask.type).shape[0]
        made: dict[ir.Value, ir.Value] = {}

        def copy(value: ir.Value) -> ir.Value:
            if value in made:
                return made[value]
            kind = ir.VectorType.get([lanes], value.type)
            if not self.hangs_on(value, along):
                made[value] = spread(self.computed([value], at)[0], lanes)
                return made[value]
            op = value.owner.operation
            if value in self.kept or op in self._loads:
                array, places = self.loaded_from(value, at)
                made[value] = vector.MaskedLoadOp(kind, array, places, mask, splat(kind, 0)).result
                return made[value]
            again = on_vectors(op, [copy(operand) for operand in op.operands], lanes)
            made.update(zip(op.results, again.results, strict=True))
            return made[value]

        return [copy(value) for value in wanted]

    def loaded_from(self, value: ir.Value, at: Values) -> tuple[ir.Value, list[ir.Value]]:
        """The array and the subscripts of a value, saved or not, in the iteration `at`."""
        if value in self.kept:
            return self.kept[value].memory, self.kept[value].subscripts(at)
        if value in self.places:
            return self._by_table(value, at)
        op = value.owner.operation
        array, *operands = self.computed(list(op.operands), at)
        return array, _subscripts(op, operands)

    def prefetch(self, wanted: Sequence[ir.Value], at: Values) -> None:
        """Ask memory for those of `wanted` that are loaded in the iteration `at`, soon."""
        for value in wanted:
            if self.is_loaded(value):
                memref.PrefetchOp(*self.loaded_from(value, at), False, 2, True)

    def _by_table(self, value: ir.Value, at: Values) -> tuple[ir.Value, list[ir.Value]]:
        known = self.places[value]
        base = affine.AffineApplyOp(known.base, self.computed(known.others, at)).result
        further = memref.LoadOp(known.table, [at[self.term.name]]).result
        return known.flat, [plus(base, further)]

    def place(self, at: Values) -> list[ir.Value]:
        """The subscripts of the element of the iteration `at`."""
        store = self.found.store.op
        return _subscripts(store, self.computed(list(store.operands)[2:], at))

    @cached_property
    def stages(self) -> tuple[tuple[ir.Operation, ...], ...]:
        """The inner operations in parts, each of which needs nothing of the parts before but what
        the last operation of them made of the element: a tile's elements go through one part
        after the other, with the left and right values of that in registers alone.

        x += a * b + c * d, in two operations on x: two parts
        """
        inner, parts = self.found.inner, [0]
        own = {*self.found.element.op.results, *(v for op in inner for v in op.results)}
        for end in range(1, len(inner) + 1):
            later = {operand for op in inner[end:] for operand in op.operands}
            made = own.difference(*(op.results for op in inner[end:]))
            if made & later <= set(inner[end - 1].results):
                parts.append(end)
        return tuple(inner[a:b] for a, b in pairwise(parts))

    def combined(
        self, ops: Sequence[ir.Operation], known: dict[ir.Value, ir.Value], at: Values, lanes: int
    ) -> ir.Value:
        """Inner operations on vectors of so many elements; `known` are those of their operands."""
        for op in ops:
            for operand in op.operands:
                if operand not in known:
                    known[operand] = spread(self.computed([operand], at)[0], lanes)
            made = on_vectors(op, [known[operand] for operand in op.operands], lanes)
            known.update(zip(op.results, made.results, strict=True))
        return known[ops[-1].results[0]]


def _is_extreme(op: ir.Operation, both: Sequence[ir.Value]) -> bool:
    """Whether it is the greater or the lesser of these two."""
    if op.name not in ("affine.max", "affine.min"):
        return False
    form = ir.AffineMapAttr(op.attributes["map"]).value
    mine = list(op.operands)
    return form == ir.AffineMap.get_identity(2) and mine in (list(both), list(both)[::-1])


def on_vectors(op: ir.Operation, operands: Sequence[ir.Value], lanes: int) -> ir.Operation:
    return ir.Operation.create(
        op.name,
        results=[ir.VectorType.get([lanes], result.type) for result in op.results],
        operands=list(operands),
        attributes=attributes_of(op),
        loc=op.location,
    )


def spread(value: ir.Value, lanes: int) -> ir.Value:
    """A number as a vector of it."""
    return vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result


def _again(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Operation:
    """The same operation on these operands."""
    if op.name == "affine.load":  # its subscripts would have to be variables of affine.for
        return memref.LoadOp(operands[0], _subscripts(op, operands[1:])).operation
    made = op.clone().operation
    for k, operand in enumerate(operands):
        made.operands[k] = operand
    return made


def _subscripts(op: ir.Operation, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """Of a load or store with these index operands."""
    if not op.name.startswith("affine."):
        return list(operands)
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    each = [ir.AffineMap.get(map_.n_dims, map_.n_symbols, [form]) for form in map_.results]
    return [affine.AffineApplyOp(one, operands).result for one in each]
