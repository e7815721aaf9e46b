"""Strips of a block as code: some lines at a time, side by side in the innermost loops.

Strips, values of names -> loops at the insertion point.

    rows i of A, in columns j of the block:      T[j, i]  = A[i, j]                    copied
                                                 for j, k < j, i:  T[j, i] -= T[k, i] * A[j, k]
                                                 A[i, j]  = T[j, i]                    copied back

Lines that lie side by side in memory already (columns) need no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import islpy as isl
from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.passes.ast_loops import AstLoops
from avial_lab.passes.independent_accesses import INDEPENDENT
from avial_lab.polyhedra.affine import Affine
from avial_lab.polyhedra.model import Access, Array, Statement
from avial_lab.polyhedra.orders import stride_of
from avial_lab.polyhedra.strips import Strip, Strips

LINES = 64
"""At a time: the innermost loops are long enough, and what they touch stays in the nearest caches.
"""

ALIGNMENT = 64
IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class _Use:
    """An access of a strip; `hangs`: its element is another one for every line."""

    strip: Strip
    statement: Statement
    access: Access

    @property
    def line(self) -> str:
        return self.strip.part.unit.loops[self.strip.line].name

    @cached_property
    def forms(self) -> tuple[Affine | None, ...]:
        return self.access.forms or ()

    @cached_property
    def hangs(self) -> bool:
        fixed = (f is not None and all(n != self.line for n, _ in f.terms) for f in self.forms)
        return not (self.forms and all(fixed))

    @cached_property
    def elements(self) -> isl.Set:
        name = self.strip.part.unit.name
        relation = self.access.relation.set_tuple_name(IN, name)
        return relation.intersect_domain(self.strip.part.points).range()


@dataclass(frozen=True)
class Turned:
    """An array of which some lines are copied, side by side; `line` is its dimension that counts
    them. All other subscripts are those of the block.
    """

    array: Array
    line: int
    uses: tuple[_Use, ...]

    def elements(self, *, written: bool = False) -> isl.Set:
        each = [use.elements for use in self.uses if use.access.writes or not written]
        return reduce(isl.Set.union, each).coalesce()


@dataclass(frozen=True)
class StripCode:
    """`first` and `width` are those of the block, `low` is to be the name of the first line of
    those at a time, `lines` at most.
    """

    root: ir.Operation
    strips: Strips
    first: str
    width: int
    low: str
    lines: int

    @cached_property
    def turned(self) -> tuple[Turned, ...] | None:
        """The arrays to be copied; None where lines cannot be put side by side."""
        uses = list(self._uses())
        if any(not use.access.exact for use in uses):
            return None
        strided = dict.fromkeys(
            use.access.array for use in uses if stride_of(use.access, use.strip.line) is None
        )
        found: list[Turned] = []
        for array in strided:
            one = self._turned(array, [use for use in uses if use.access.array == array])
            if one is None:
                return None
            found.append(one)
        return tuple(found)

    @property
    def name(self) -> str:
        """Of the loop that counts lines."""
        strip = self.strips.strips[0]
        return strip.part.unit.loops[strip.line].name

    def _uses(self) -> Iterator[_Use]:
        for strip in self.strips.strips:
            for statement in (*strip.part.unit.sunk, *strip.part.unit.statements):
                for access in statement.accesses:
                    yield _Use(strip, statement, access)

    def _turned(self, array: Array, uses: list[_Use]) -> Turned | None:
        along = tuple(use for use in uses if use.hangs)
        lines = {_line_of(use) for use in along}
        if len(lines) != 1 or (line := lines.pop()) is None:
            return None
        found = Turned(array, line, along)
        others = [use.elements for use in uses if not use.hangs]
        if any(use.access.writes for use in uses if not use.hangs) or any(
            not found.elements().intersect(each).is_empty() for each in others
        ):
            return None
        return found if found.elements().is_subset(self._box(found)) else None

    def _box(self, turned: Turned) -> isl.Set:
        """Elements whose other subscripts are those of the block."""
        dims = [f"x{k}" for k in range(turned.array.rank)]
        ends = (
            f"{self.first} <= {x} < {self.first} + {self.width}"
            for k, x in enumerate(dims)
            if k != turned.line
        )
        name = turned.array.name
        return isl.Set(f"[{self.first}] -> {{ {name}[{', '.join(dims)}] : {' and '.join(ends)} }}")

    # -- writing

    def write(self, values: Mapping[str, ir.Value], known: isl.Set) -> None:
        """The lines from that of name `low` on; `known` of parameters."""
        assert self.turned is not None
        local = {turned.array: self._memory(turned) for turned in self.turned}
        for turned in self.turned:
            there = partial(self._fill, turned, local[turned.array], values)
            self._copy(turned.elements(), turned, there, values, known)
        moved = {
            use.statement.op: partial(self._moved, turned, local[turned.array], values)
            for turned in self.turned
            for use in turned.uses
        }
        parts = {strip.part.unit.name: strip.part.unit for strip in self.strips.strips}
        of_unit, last = self.strips.times(), 0
        times = isl.UnionMap("{ }")
        for strip in self.strips.strips:
            name = strip.part.unit.name
            here = self._among(len(strip.part.unit.loops), strip.line, name)
            last = of_unit[name].dim(OUT) - 1
            times = times.union(isl.UnionMap.from_map(of_unit[name].intersect_domain(here)))
        ast = isl.AstBuild.from_context(known).node_from_schedule_map(times)
        AstLoops(
            self.root, parts, dict(values), moved=moved, marked={f"c{last}": INDEPENDENT}
        ).write(ast)
        for turned in self.turned:
            back = partial(self._empty, turned, local[turned.array], values)
            self._copy(turned.elements(written=True), turned, back, values, known)
            memref.DeallocOp(local[turned.array])

    def _among(self, rank: int, line: int, name: str) -> isl.Set:
        """All whose dimension `line` is one of the lines at a time."""
        dims = [f"x{k}" for k in range(rank)]
        where = f"{self.low} <= x{line} < {self.low} + {self.lines}"
        return isl.Set(f"[{self.low}] -> {{ {name}[{', '.join(dims)}] : {where} }}")

    def _memory(self, turned: Turned) -> ir.Value:
        shape = [self.width] * (turned.array.rank - 1) + [self.lines]
        kind = ir.MemRefType.get(shape, _element_type(turned))
        return memref.AllocOp(kind, [], [], alignment=ALIGNMENT).result

    def _copy(
        self,
        elements: isl.Set,
        turned: Turned,
        leaf: Callable[..., None],
        values: Mapping[str, ir.Value],
        known: isl.Set,
    ) -> None:
        """For each of these elements of the lines at a time, in the order of the array."""
        name = turned.array.name
        here = elements.intersect(self._among(turned.array.rank, turned.line, name))
        times = isl.UnionMap.from_map(here.identity().reset_tuple_id(OUT))
        ast = isl.AstBuild.from_context(known).node_from_schedule_map(times)
        AstLoops(self.root, {}, dict(values), leaves={name: leaf}).write(ast)

    def _fill(
        self,
        turned: Turned,
        memory: ir.Value,
        values: Mapping[str, ir.Value],
        *at: ir.Value,
    ) -> None:
        value = affine.AffineLoadOp(_element_type(turned), turned.array.value, at, _same(len(at)))
        _store(value.result, memory, self._places(turned, at, values), self._map(turned))

    def _empty(
        self,
        turned: Turned,
        memory: ir.Value,
        values: Mapping[str, ir.Value],
        *at: ir.Value,
    ) -> None:
        places = self._places(turned, at, values)
        value = affine.AffineLoadOp(_element_type(turned), memory, places, self._map(turned))
        _store(value.result, turned.array.value, list(at), _same(len(at)))

    def _places(
        self, turned: Turned, at: tuple[ir.Value, ...], values: Mapping[str, ir.Value]
    ) -> list[ir.Value]:
        return [*at, values[self.first], values[self.low]]

    def _map(self, turned: Turned) -> ir.AffineMap:
        """(subscripts, first, low) -> subscripts of the copy."""
        rank = turned.array.rank
        dims = [ir.AffineDimExpr.get(k) for k in range(rank + 2)]
        return ir.AffineMap.get(rank + 2, 0, _of_copy(turned, dims[:rank], dims[rank:]))

    def _moved(
        self,
        turned: Turned,
        memory: ir.Value,
        values: Mapping[str, ir.Value],
        op: ir.Operation,
        operands: list[ir.Value],
    ) -> ir.Operation:
        """The load or store of the copy, in place of one with these operands."""
        map_ = ir.AffineMapAttr(op.attributes["map"]).value
        stored = op.name == "affine.store"
        at = operands[2 if stored else 1 :]
        dims, symbols = at[: map_.n_dims], at[map_.n_dims :]
        block = [ir.AffineDimExpr.get(map_.n_dims + k) for k in range(2)]
        forms = _of_copy(turned, list(map_.results), block)
        there = ir.AffineMap.get(map_.n_dims + 2, map_.n_symbols, forms)
        places = [*dims, values[self.first], values[self.low], *symbols]
        if stored:
            return _store(operands[0], memory, places, there)
        return affine.AffineLoadOp(_element_type(turned), memory, places, there).operation


def _of_copy(
    turned: Turned, subscripts: Sequence[ir.AffineExpr], block: Sequence[ir.AffineExpr]
) -> list[ir.AffineExpr]:
    """Counted from the block's first one, and the line last."""
    first, low = block
    others = [form - first for k, form in enumerate(subscripts) if k != turned.line]
    return [*others, subscripts[turned.line] - low]


def _line_of(use: _Use) -> int | None:
    """The subscript that is the line, where no other has to do with it, and nothing is in the way
    of another memory in the array's place.
    """
    if use.statement.op.name not in ("affine.load", "affine.store"):
        return None
    if use.access.array.value not in list(use.statement.op.operands):
        return None
    there = [
        k for k, f in enumerate(use.forms) if f is None or any(n == use.line for n, _ in f.terms)
    ]
    alone = len(there) == 1 and use.forms[there[0]] == Affine.of(use.line)
    return there[0] if alone else None


def _element_type(turned: Turned) -> ir.Type:
    assert turned.array.value is not None
    return ir.MemRefType(turned.array.value.type).element_type


def _same(rank: int) -> ir.AffineMap:
    return ir.AffineMap.get_identity(rank)


def _store(
    value: ir.Value, memory: ir.Value | None, places: list[ir.Value], at: ir.AffineMap
) -> ir.Operation:
    return ir.Operation.create(
        "affine.store",
        operands=[value, memory, *places],
        attributes={"map": ir.AffineMapAttr.get(at)},
    )
