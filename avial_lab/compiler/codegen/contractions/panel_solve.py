"""Strips of a block as code: some lines at a time, side by side in the innermost loops.

Strips, values of names -> loops at the insertion point.

    rows i of A, in columns j of the block:      T[j, i]  = A[i, j]                    copied
                                                 for j, k < j, i:  T[j, i] -= T[k, i] * A[j, k]
                                                 A[i, j]  = T[j, i]                    copied back

Lines that lie side by side in memory already (columns) need no copy, but for those that every
step goes through: a strip of them is far apart, row by row, on as many pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from math import prod

import islpy as isl
from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.compiler.analysis.patterns.panel_solves import Strip, Strips
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.instances import shorter, together
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, Statement
from avial_lab.compiler.analysis.polyhedral.strides import stride_of
from avial_lab.compiler.codegen.loops.isl_ast import AstLoops
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.machine.constants import LINE_BYTES

LINES = 64
"""At a time: the innermost loops are long enough, and what they touch stays in the nearest caches.
"""

IN, OUT, SET, PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set, isl.dim_type.param


@dataclass(frozen=True)
class _Use:
    """An access of a strip; `hangs`: its element is another one for every line."""

    strip: Strip
    statement: Statement
    access: Access

    @property
    def line(self) -> str:
        return self.strip.part.unit.loops[self.strip.line].name

    @property
    def step(self) -> str | None:
        part = self.strip.part
        return None if part.step is None else part.unit.loops[part.step].name

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
    them. `others` are first values and numbers of the other subscripts; the first of the block's
    where there is none. `along` are those of the line, where it is no line of a strip, but what the
    loops beside it go through.
    """

    array: Array
    line: int
    uses: tuple[_Use, ...]
    others: tuple[tuple[int | None, int], ...] = ()
    along: tuple[int, int] | None = None

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
        strided = {u.access.array for u in uses if stride_of(u.access, u.strip.line) is None}
        found: list[Turned] = []
        for array in dict.fromkeys(use.access.array for use in uses):
            of_array = [use for use in uses if use.access.array == array]
            if array in strided or _are_gone_through(of_array):
                one = self._turned(array, of_array)
                if one is not None:
                    found.append(one)
                elif array in strided:
                    return None
        return tuple(found)

    @cached_property
    def shared(self) -> tuple[Turned, ...]:
        """Arrays to be copied once for all lines, which read them in jumps at each step."""
        of: dict[Array, list[_Use]] = {}
        for use in self._uses():
            of.setdefault(use.access.array, []).append(use)
        turned = {each.array for each in self.turned or ()}
        each = (self._shared(array, uses) for array, uses in of.items() if array not in turned)
        return tuple(filter(None, each))

    def _shared(self, array: Array, uses: list[_Use]) -> Turned | None:
        places = {_gone_along(use) for use in uses}
        if len(places) != 1 or (place := places.pop()) is None or place == array.rank - 1:
            return None
        found = Turned(array, place, tuple(uses))
        box = [self._extent(found.elements(), k) for k in range(array.rank)]
        along = box.pop(place)
        if along is None or along[0] is None or any(each is None for each in box):
            return None
        others = tuple(each for each in box if each is not None)
        return replace(found, others=others, along=(along[0], along[1]))

    @property
    def line_bytes(self) -> int:
        """What a line has in the copies."""
        return sum(
            prod(n for _, n in each.others) * itemsize_of(_element_type(each))
            for each in self.turned or ()
        )

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
        elements = found.elements()
        box = [self._extent(elements, k) for k in range(array.rank) if k != line]
        if any(each is None for each in box):
            return None
        return replace(found, others=tuple(each for each in box if each is not None))

    def _extent(self, elements: isl.Set, dim: int) -> tuple[int | None, int] | None:
        """The first and the number of a subscript's values; None where nobody knows."""
        dims = [f"x{k}" for k in range(elements.dim(SET))]
        space = f"{elements.get_tuple_name()}[{', '.join(dims)}]"
        within = f"{self.first} <= {dims[dim]} < {self.first} + {self.width}"
        if elements.is_subset(isl.Set(f"[{self.first}] -> {{ {space} : {within} }}")):
            return None, self.width
        every = elements.project_out(PARAM, 0, elements.dim(PARAM))
        if not (every.dim_has_lower_bound(SET, dim) and every.dim_has_upper_bound(SET, dim)):
            return None
        low, high = every.dim_min_val(dim).to_python(), every.dim_max_val(dim).to_python()
        return low, high - low + 1

    # -- writing

    def share(self, values: Mapping[str, ir.Value], known: isl.Set) -> dict[Array, ir.Value]:
        """The memory of what is `shared`, filled; whoever wants it has to free it."""
        return self._filled(self.shared, values, known)

    def _filled(
        self, copies: Sequence[Turned], values: Mapping[str, ir.Value], known: isl.Set
    ) -> dict[Array, ir.Value]:
        local = {turned.array: self._memory(turned) for turned in copies}
        for turned in copies:
            there = partial(self._fill, turned, local[turned.array], values)
            self._copy(turned.elements(), turned, there, values, known)
        return local

    def write(
        self, values: Mapping[str, ir.Value], known: isl.Set, shared: Mapping[Array, ir.Value]
    ) -> None:
        """The lines from that of name `low` on; `known` of parameters."""
        assert self.turned is not None
        local = self._filled(self.turned, values, known)
        memory = {**shared, **local}
        moved = {
            use.statement.op: partial(self._moved, turned, memory[turned.array], values)
            for turned in (*self.turned, *self.shared)
            for use in turned.uses
        }
        parts = {strip.part.unit.name: strip.part.unit for strip in self.strips.strips}
        of_unit, count = self.strips.times(), 0
        times: list[isl.Map] = []
        for strip in self.strips.strips:
            name = strip.part.unit.name
            here = self._among(len(strip.part.unit.loops), strip.line, name)
            count = of_unit[name].dim(OUT)
            times.append(of_unit[name].intersect_domain(here))
        order, dims = shorter(together(times))
        build = isl.AstBuild.from_context(known)
        late = self.strips.late
        step = 2 * (late.part.step or 0) + 1 if late is not None else None
        if step in dims:  # the first and the last one have not all units
            names = ", ".join(f"c{k}" for k in range(len(dims)))
            place = dims.index(step)
            build = build.set_options(isl.UnionMap(f"{{ [{names}] -> separate[{place}] }}"))
        marked = {f"c{k}": INDEPENDENT for k, dim in enumerate(dims) if dim == count - 2}
        AstLoops(self.root, parts, dict(values), moved=moved, marked=marked).write(
            build.node_from_schedule_map(order)
        )
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
        lines = self.lines if turned.along is None else turned.along[1]
        shape = [*(n for _, n in turned.others), lines]
        kind = ir.MemRefType.get(shape, _element_type(turned))
        return memref.AllocOp(kind, [], [], alignment=LINE_BYTES).result

    def _copy(
        self,
        elements: isl.Set,
        turned: Turned,
        leaf: Callable[..., None],
        values: Mapping[str, ir.Value],
        known: isl.Set,
    ) -> None:
        """For each of these elements, of the lines at a time, in the order of the array."""
        name = turned.array.name
        if turned.along is None:
            elements = elements.intersect(self._among(turned.array.rank, turned.line, name))
        times = isl.UnionMap.from_map(elements.identity().reset_tuple_id(OUT))
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
        return [*at, *self._block(turned, values)]

    def _block(self, turned: Turned, values: Mapping[str, ir.Value]) -> list[ir.Value]:
        """What the subscripts of a copy are counted from."""
        return [values[self.first], values[self.low if turned.along is None else self.first]]

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
        places = [*dims, *self._block(turned, values), *symbols]
        if stored:
            return _store(operands[0], memory, places, there)
        return affine.AffineLoadOp(_element_type(turned), memory, places, there).operation


def _of_copy(
    turned: Turned, subscripts: Sequence[ir.AffineExpr], block: Sequence[ir.AffineExpr]
) -> list[ir.AffineExpr]:
    """Counted from the first one of each, and the line last."""
    first, low = block
    if turned.along is not None:
        low = ir.AffineConstantExpr.get(turned.along[0])
    others = [form for k, form in enumerate(subscripts) if k != turned.line]
    lows = [first if at is None else ir.AffineConstantExpr.get(at) for at, _ in turned.others]
    moved = (form - at for form, at in zip(others, lows, strict=True))
    return [*moved, subscripts[turned.line] - low]


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


def _gone_along(use: _Use) -> int | None:
    """The subscript of a load that is the innermost loop beside the lines."""
    loops = [k for k in range(len(use.strip.part.unit.loops)) if k != use.strip.line]
    if use.hangs or use.access.writes or use.statement.op.name != "affine.load":
        return None
    if loops[-1] == use.strip.part.step:
        return None
    along = Affine.of(use.strip.part.unit.loops[loops[-1]].name)
    return use.forms.index(along) if along in use.forms else None


def _are_gone_through(uses: Sequence[_Use]) -> bool:
    """Whether every step has the same elements of a line, and more than one."""
    return uses[0].access.array.rank > 1 and not any(
        form is None or any(name == use.step for name, _ in form.terms)
        for use in uses
        for form in use.forms or (None,)
    )


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
