"""Sums whose terms stand in pieces in several places of a nest, and together fill a box.

Scop -> PiecedSum: what the elements start from, and one sum over all of the terms.

    for i, j:           T[i, j] = 0
    for i, j, k < i:    T[i, j] += A[i, k] * B[k, j]                 a triangle of A, in a temporary
    for i, j:           C[i, j] = b * C[i, j] + a * A[i, i] * B[i, j] + a * T[i, j]
    for i, j, k < i:    C[k, j] += a * A[i, k] * B[i, j]             its mirror image

    for i, j:           C[i, j] = b * C[i, j]
    for i, j, k:        C[i, j] += a * A[max(i, k), min(i, k)] * B[k, j]

Each piece is mirrored by elements and terms and not by its loops: a product, where it is added, and
which elements of which arrays its factors are. Pieces of the same factors are one, where for each
factor one subscript serves them all.

Source: K. Goto, R. van de Geijn, High-performance implementation of the level-3 BLAS, TOMS 35
(2008), section 4: symmetric matrices are packed whole, and multiplied as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations
from itertools import product as combinations
from math import prod

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.parallelism.privatisation import is_temporary
from avial_lab.compiler.analysis.patterns.contractions import moves
from avial_lab.compiler.analysis.patterns.interchange import OPERATIONS
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.ranges import Range, range_of
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.units import Immovable, Unit, units_of
from avial_lab.compiler.ir.effects import LOADS
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import integer_of

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set

MOST_PRODUCTS = 8
"""Added in one statement."""

MOST_WAYS = 64
"""In which the factors of some products may be those of others."""


@dataclass(frozen=True)
class Subscript:
    """One of these variables, by their places, or the `greater` or lesser of two."""

    of: tuple[int, ...]
    greater: bool = False


@dataclass(frozen=True)
class Placed:
    """An element of an array, by the variables of a box."""

    array: ir.Value
    subscripts: tuple[Subscript, ...]

    @property
    def is_mirrored(self) -> bool:
        return any(len(each.of) > 1 for each in self.subscripts)


@dataclass(frozen=True)
class Term:
    """A product: numbers that are the same everywhere, and elements."""

    negative: bool
    numbers: tuple[ir.Value, ...]
    elements: tuple[Placed, ...]


@dataclass(frozen=True)
class Start:
    """Of the elements in a box: the sum of these terms, which may have the element as it was."""

    box: tuple[Range, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class PiecedSum:
    """`term` is added to the elements of `array` for all of `box`, whose last dimension is that of
    the terms, the others those of the elements; `start` is None where they start as they are.

    `mirrored` are the pieces' factors that are mirrored, as written; the variables of the box are
    like those of `loops`; `temporary` is an array that is not used any more.
    """

    array: ir.Value
    box: tuple[Range, ...]
    term: Term
    start: Start | None
    loops: tuple[Loop | None, ...]
    mirrored: tuple[str, ...]
    where: isl.Set
    temporary: ir.Value | None


def pieced_sum_in(scop: Scop) -> PiecedSum | None:
    """The scop as such a sum, where it is nothing else."""
    try:
        units = units_of(scop, apart=True)
    except Immovable:
        return None
    return limited(lambda: _pieced_sum(scop, units), lambda: None, limit=OPERATIONS)


def _pieced_sum(scop: Scop, units: Sequence[Unit]) -> PiecedSum | None:
    parts = [_part_of(scop, unit) for unit in units]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    arrays = list(dict.fromkeys(part.array for part in known))
    for array in arrays:
        own = [part for part in known if part.array == array]
        rest = [part for part in known if part.array != array]
        found = _Sum(scop, units, own, rest).found()
        if found is not None:
            return found
    return None


# -- what is added ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Product:
    """`numbers` are not of the nest, `loads` are results of loads."""

    negative: bool = False
    numbers: tuple[ir.Value, ...] = ()
    loads: tuple[ir.Value, ...] = ()

    def times(self, other: _Product) -> _Product:
        return _Product(
            self.negative ^ other.negative,
            (*self.numbers, *other.numbers),
            (*self.loads, *other.loads),
        )

    @property
    def negated(self) -> _Product:
        return replace(self, negative=not self.negative)


def _added_up(root: ir.Operation, value: ir.Value) -> tuple[_Product, ...] | None:
    """The products whose sum it is, sums multiplied out; None where it is something else."""
    if not defined_in(root, value):
        return (_Product(numbers=(value,)),)
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    if op.name == "arith.constant":
        return (_Product(numbers=(value,)),)
    if op.name in LOADS:
        return (_Product(loads=(value,)),)
    if op.name not in _SUMS:
        return None
    each = [_added_up(root, operand) for operand in op.operands]
    known = [found for found in each if found is not None]
    if len(known) < len(each):
        return None
    made = _SUMS[op.name](*known)
    return made if len(made) <= MOST_PRODUCTS else None


_Products = tuple[_Product, ...]


def _plus(a: _Products, b: _Products) -> _Products:
    return (*a, *b)


def _minus(a: _Products, b: _Products) -> _Products:
    return (*a, *_negated(b))


def _negated(a: _Products) -> _Products:
    return tuple(each.negated for each in a)


def _times(a: _Products, b: _Products) -> _Products:
    return tuple(left.times(right) for left in a for right in b)


def _fused(a: _Products, b: _Products, c: _Products) -> _Products:
    return (*c, *_times(a, b))


_SUMS = {
    "arith.addf": _plus,
    "arith.addi": _plus,
    "arith.subf": _minus,
    "arith.subi": _minus,
    "arith.negf": _negated,
    "arith.mulf": _times,
    "arith.muli": _times,
    "math.fma": _fused,
}


def _is_zero(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    number = value.owner.operation.attributes["value"]
    return number.value == 0 if isinstance(number, ir.FloatAttr) else integer_of(number) == 0


# -- where it is added -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """What a unit adds to elements of `array`, or, without a loop of terms, stores to them.

    `at`: { [loops] -> [element, term] }, one to one; without a term { [loops] -> [element] }.
    """

    unit: Unit
    array: Array
    store: Statement
    term: Loop | None
    products: _Products
    at: isl.Map


def _part_of(scop: Scop, unit: Unit) -> _Part | None:
    stores = [s for s in unit.statements if any(access.writes for access in s.accesses)]
    if len(stores) != 1 or not stores[0].op.name.endswith(".store"):
        return None
    (store,), access = stores, stores[0].accesses[0]
    if any(loop.step != 1 for loop in unit.loops) or not _is_whole(store.op.operands[1], access):
        return None
    still = [k for k in range(len(unit.loops)) if not moves(access, k)]
    stored = store.op.operands[0]
    products = () if _is_zero(stored) else _added_up(scop.op, stored)
    if len(still) > 1 or products is None:
        return None
    at = access.relation.reset_tuple_id(IN).reset_tuple_id(OUT)
    if still:
        own = [p for p in products if _is_own(p, unit, store)]
        if len(own) != 1:
            return None
        products = tuple(p for p in products if p is not own[0])
        dims = ", ".join(f"x{k}" for k in range(len(unit.loops)))
        at = at.flat_range_product(isl.Map(f"{{ [{dims}] -> [x{still[0]}] }}"))
    if not at.is_injective():
        return None
    term = unit.loops[still[0]] if still else None
    return _Part(unit, access.array, store, term, products, at)


def _is_whole(memory: ir.Value, access: Access) -> bool:
    """Whether it is the array itself, and no view of it."""
    return access.array.value is not None and access.array.value == memory


def _is_own(product: _Product, unit: Unit, store: Statement) -> bool:
    """Whether it is the element as it was, and nothing else."""
    if product.negative or product.numbers or len(product.loads) != 1:
        return False
    load = _statement(product.loads[0], unit)
    return _same(load, store)


def _same(load: Statement, store: Statement) -> bool:
    """Whether it loads in each iteration the element that is stored to."""
    mine, other = load.accesses[0], store.accesses[0]
    return mine.array == other.array and bool(
        mine.relation.reset_tuple_id(IN).is_equal(other.relation.reset_tuple_id(IN))
    )


def _statement(load: ir.Value, unit: Unit) -> Statement:
    op = load.owner.operation
    return next(s for s in (*unit.statements, *unit.sunk) if s.op == op)


@dataclass(frozen=True)
class _Piece:
    """A product for each element and term in `where`: the memory of each of its loads, and
    { [element, term] -> what is loaded }.
    """

    part: _Part
    product: _Product
    where: isl.Set
    memories: tuple[ir.Value, ...]
    maps: tuple[isl.Map, ...]

    def permuted(self, order: Sequence[int]) -> _Piece:
        return replace(
            self,
            product=replace(self.product, loads=tuple(self.product.loads[k] for k in order)),
            memories=tuple(self.memories[k] for k in order),
            maps=tuple(self.maps[k] for k in order),
        )

    def like(self, other: _Piece) -> Iterator[_Piece]:
        """The same with its factors in all orders that are those of the other."""
        mine, its = self.product, other.product
        if mine.negative != its.negative or not _same_numbers(mine.numbers, its.numbers):
            return
        for order in permutations(range(len(self.memories))):
            made = self.permuted(order)
            if made.memories == other.memories:
                yield made


def _same_numbers(a: Sequence[ir.Value], b: Sequence[ir.Value]) -> bool:
    rest = list(b)
    for value in a:
        if value not in rest:
            return False
        rest.remove(value)
    return not rest


# -- one sum ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sum:
    """`own` are the parts of an array, `rest` all others of the nest."""

    scop: Scop
    units: Sequence[Unit]
    own: Sequence[_Part]
    rest: Sequence[_Part]

    def found(self) -> PiecedSum | None:
        bases = [part for part in self.own if part.term is None]
        sums = [part for part in self.own if part.term is not None]
        if len(bases) > 1 or not sums:
            return None
        base = bases[0] if bases else None
        handed = self._handed_on(base) if self.rest else ()
        if handed is None or not self._in_order(base, sums):
            return None
        if not self._reads_nothing_else(base):
            return None
        pieces = [*handed, *(p for part in sums for p in self._pieces(part, part.at))]
        return self._joined(base, pieces) if len(pieces) > 1 else None

    # -- what comes first

    def _edges(self) -> set[tuple[str, str]]:
        of = {s.name: unit.name for unit in self.units for s in unit.statements}
        found = {(of.get(d.source.name), of.get(d.target.name)) for d in dependences(self.scop)}
        return {(a, b) for a, b in found if a is not None and b is not None}

    def _in_order(self, base: _Part | None, sums: Sequence[_Part]) -> bool:
        """Whether every element is set before something is added to it, and what is handed on
        through another array is complete before.
        """
        edges = self._edges()
        starts = [part for part in self.rest if part.term is None]
        others = [part for part in self.rest if part.term is not None]
        order = [starts, others, [] if base is None else [base], sums]
        return not any(
            (late.unit.name, early.unit.name) in edges
            for k, earlier in enumerate(order)
            for later in order[k + 1 :]
            for early in earlier
            for late in later
        )

    def _reads_nothing_else(self, base: _Part | None) -> bool:
        """Whether what is stored is read for itself and, from another array, by the base alone."""
        written = {part.array for part in (*self.own, *self.rest)}
        for part in (*self.own, *self.rest):
            for product in part.products:
                for load in (_statement(value, part.unit) for value in product.loads):
                    array = load.accesses[0].array
                    if array in written and not (
                        part is base and (_same(load, part.store) or array != part.array)
                    ):
                        return False
        return True

    # -- a sum in another array, that becomes part of the elements

    def _handed_on(self, base: _Part | None) -> list[_Piece] | None:
        """The pieces of the other array's sums, as they reach the elements of this one."""
        arrays = {part.array for part in self.rest}
        starts = [part for part in self.rest if part.term is None]
        if base is None or len(arrays) != 1 or len(starts) != 1 or starts[0].products:
            return None
        (array,) = arrays
        uses = [(p, load) for p in base.products for load in self._of(array, base, p)]
        if len(uses) != 1 or not is_temporary(array) or not self._is_inside(array):
            return None
        product, load = uses[0]
        if len(product.loads) != 1:
            return None
        to_own = _by(base.at, load, base.unit)
        to_own = to_own.reverse()  # { [its element] -> [element] }
        sums = [part for part in self.rest if part.term is not None]
        filled, needed = starts[0].at.range(), to_own.domain()
        if not to_own.is_bijective() or not needed.is_subset(filled):
            return None
        both = to_own.flat_product(isl.Map("{ [t] -> [t] }"))
        found: list[_Piece] = []
        for part in sums:
            if not part.at.range().is_subset(both.domain()):
                return None
            times = replace(product, loads=())
            found += self._pieces(part, part.at.apply_range(both), times)
        return found

    def _of(self, array: Array, part: _Part, product: _Product) -> list[Statement]:
        loads = (_statement(value, part.unit) for value in product.loads)
        return [load for load in loads if load.accesses[0].array == array]

    def _is_inside(self, array: Array) -> bool:
        """Whether nobody outside the nest uses it."""
        assert array.value is not None
        users = [use.owner.operation for use in array.value.uses]
        known = {s.op for unit in self.units for s in unit.statements}
        return all(op in known or op.name == "memref.dealloc" for op in users)

    def _pieces(self, part: _Part, at: isl.Map, times: _Product | None = None) -> Iterator[_Piece]:
        for product in part.products:
            made = product if times is None else times.times(product)
            yield _piece(part, made, at)

    # -- pieces as one

    def _joined(self, base: _Part | None, pieces: Sequence[_Piece]) -> PiecedSum | None:
        """The pieces, and what of the base is one more, as terms of one sum."""
        first, *others = pieces
        if len(first.memories) < 2 or not all(_is_of_whole_arrays(p) for p in pieces):
            return None
        rank = first.where.dim(SET) - 1
        apart = [] if base is None else list(self._with_term_as_subscript(base, rank, first))
        ways = [list(each.like(first)) for each in others]
        if prod(map(len, ways)) > MOST_WAYS:
            return None
        for product, more in ((None, []), *((product, [piece]) for product, piece in apart)):
            for chosen in combinations(*ways):
                found = self._one(base, [first, *chosen, *more], product)
                if found is not None:
                    return found
        return None

    def _with_term_as_subscript(
        self, base: _Part, rank: int, first: _Piece
    ) -> Iterator[tuple[_Product, _Piece]]:
        """Products of the base as the term that has the same value as a subscript."""
        for product in base.products:
            if len(product.loads) < 2:
                continue
            piece = _piece(base, product, base.at)
            if not _is_of_whole_arrays(piece):
                continue
            for place in range(rank):
                dims = ", ".join(f"x{k}" for k in range(rank + 1))
                here = isl.Set(f"{{ [{dims}] : x{rank} = x{place} }}")
                where = piece.where.insert_dims(SET, rank, 1).intersect(here)
                maps = [m.insert_dims(IN, rank, 1).intersect_domain(where) for m in piece.maps]
                lifted = replace(piece, where=where, maps=tuple(maps))
                yield from ((product, each) for each in lifted.like(first))

    def _one(
        self, base: _Part | None, pieces: Sequence[_Piece], left: _Product | None
    ) -> PiecedSum | None:
        """These pieces as one; `left`: the product that the base is left without."""
        where = pieces[0].where
        for piece in pieces[1:]:
            if not where.is_disjoint(piece.where):
                return None
            where = where.union(piece.where)
        first, names = pieces[0], _names(where.dim(SET))
        box = _box_of(where)
        if box is None:
            return None
        maps = (reduce(isl.Map.union, each) for each in zip(*(p.maps for p in pieces), strict=True))
        elements = [
            _placed(memory, each, where) for memory, each in zip(first.memories, maps, strict=True)
        ]
        known = tuple(each for each in elements if each is not None)
        if len(known) < len(elements) or not any(each.is_mirrored for each in known):
            return None
        start = None if base is None else self._start(base, left)
        if base is not None and start is None:
            return None
        assert len(names) == len(box)
        array = self.own[0].array.value
        assert array is not None
        term = Term(first.product.negative, first.product.numbers, known)
        temporary = self.rest[0].array.value if self.rest else None
        loops, mirrored = self._loops(base), self._mirrored(pieces, known)
        return PiecedSum(array, box, term, start, loops, mirrored, where, temporary)

    def _start(self, base: _Part, left: _Product | None) -> Start | None:
        """What the elements start from: the base without that product, and sums of other arrays."""
        where = base.at.range()
        box = _box_of(where)
        others = {part.array for part in self.rest}
        terms: list[Term] = []
        for product in base.products:
            arrays = {_statement(v, base.unit).accesses[0].array for v in product.loads}
            if product is left or arrays & others:
                continue
            piece = _piece(base, product, base.at)
            if not _is_of_whole_arrays(piece):
                return None
            both = zip(piece.memories, piece.maps, strict=True)
            elements = [_placed(memory, each, where) for memory, each in both]
            known = tuple(each for each in elements if each is not None)
            if len(known) < len(elements):
                return None
            terms.append(Term(product.negative, product.numbers, known))
        return None if box is None else Start(box, tuple(terms))

    def _loops(self, base: _Part | None) -> tuple[Loop | None, ...]:
        """Those whose variables are the subscripts, as far as they are, and one of terms."""
        part = next(p for p in (*self.rest, *self.own) if p.term is not None)
        shown = base if base is not None else part
        loops = {loop.name: loop for loop in shown.unit.loops if loop != shown.term}
        written = shown.store.accesses[0].subscripts or ()
        return (*(loops.get(name) for name in written), part.term)

    def _mirrored(self, pieces: Sequence[_Piece], known: Sequence[Placed]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for piece in pieces:
            for load, placed in zip(piece.product.loads, known, strict=True):
                if placed.is_mirrored:
                    found[str(_statement(load, piece.part.unit).accesses[0])] = None
        return tuple(found)


def _piece(part: _Part, product: _Product, at: isl.Map) -> _Piece:
    loads = [_statement(value, part.unit) for value in product.loads]
    memories = tuple(load.op.operands[0] for load in loads)
    return _Piece(part, product, at.range(), memories, tuple(_by(at, s, part.unit) for s in loads))


def _by(at: isl.Map, load: Statement, unit: Unit) -> isl.Map:
    """{ [element, term] -> what is loaded }: `at` tells them of the unit's loops."""
    more = len(unit.loops) - len(load.loops)
    relation = load.accesses[0].relation.reset_tuple_id(IN).reset_tuple_id(OUT)
    return at.reverse().apply_range(relation.insert_dims(IN, len(load.loops), more))


def _is_of_whole_arrays(piece: _Piece) -> bool:
    loads = (_statement(value, piece.part.unit) for value in piece.product.loads)
    return all(_is_whole(load.op.operands[0], load.accesses[0]) for load in loads)


def _names(count: int) -> list[str]:
    return [f"x{k}" for k in range(count)]


def _box_of(where: isl.Set) -> tuple[Range, ...] | None:
    """The range of each dimension, if it does not hang on another."""
    names = _names(where.dim(SET))
    found: list[Range] = []
    box = isl.Set(f"{{ [{', '.join(names)}] }}")
    for k in range(len(names)):
        of_one = where.project_out(SET, k + 1, len(names) - k - 1).project_out(SET, 0, k)
        extent = range_of(of_one, 0, ["x"])
        if extent is None:
            return None
        found.append(extent)
        of_all = of_one.insert_dims(SET, 0, k).insert_dims(SET, k + 1, len(names) - k - 1)
        box = box.intersect(of_all)
    return tuple(found) if box.is_equal(where) else None


def _placed(memory: ir.Value, elements: isl.Map, where: isl.Set) -> Placed | None:
    """What is loaded, if subscripts can say it."""
    count = elements.dim(OUT)
    each: list[Subscript] = []
    for place in range(count):
        one = elements.project_out(OUT, place + 1, count - place - 1).project_out(OUT, 0, place)
        subscript = _subscript(one, where)
        if subscript is None:
            return None
        each.append(subscript)
    return Placed(memory, tuple(each))


def _subscript(values: isl.Map, where: isl.Set) -> Subscript | None:
    """The variable that it always is, or which of a variable and the term."""
    names = _names(where.dim(SET))
    head, term = ", ".join(names), len(names) - 1
    tried = [(name, Subscript((k,))) for k, name in enumerate(names)]
    for k in range(term):
        for word in ("max", "min"):
            form = f"{word}({names[k]}, {names[term]})"
            tried.append((form, Subscript((k, term), word == "max")))
    for form, subscript in tried:
        said = isl.Map(f"{{ [{head}] -> [{form}] }}").intersect_domain(where)
        if said.is_equal(values):
            return subscript
    return None
