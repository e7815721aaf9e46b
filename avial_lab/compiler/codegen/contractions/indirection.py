"""How much further in memory each term of a sum lies than the first: worked out once for all rows.

Contraction -> tables of places, and what its loads become with them.

Terms of several loops that were made one (`join_terms`) are at places that take divisions to find,
and those would be done for every element.

Source: M. Dukhan, The indirect convolution algorithm, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode, TermPlaces
from avial_lab.compiler.codegen.loops.index_arithmetic import loop
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import lies_whole


@contextmanager
def with_places(code: ContractionCode) -> Iterator[ContractionCode]:
    """The same code, with a table for each of its values whose places take divisions.

    before:  %v = X[%i + %t floordiv 96, %j + %t floordiv 32 mod 3, %t mod 32]
    after:   table[%t] = … for all %t;  %v = flat X[%i * 960 + %j * 32 + table[%t]]
    """
    terms = _count(code.term.op)
    made: dict[ir.Value, TermPlaces] = {}
    for value in (*code.found.left, *code.found.right):
        draft = _Draft.of(code, value)
        if draft is not None and terms is not None:
            made[value] = draft.written(terms)
    yield replace(code, places=made)
    for each in made.values():
        memref.DeallocOp(each.table)


def _count(terms: ir.Operation) -> int | None:
    """Of terms from 0 on, where it is known."""
    if terms.name != "affine.for":
        return None
    lows, highs = known_ends(terms)
    return highs[0] if lows == [0] and len(highs) == 1 else None


@dataclass(frozen=True)
class _Draft:
    """A `load` whose place is the sum of what `of_term` says, and of what the others do."""

    code: ContractionCode
    load: ir.Operation
    of_term: Sequence[bool]

    @staticmethod
    def of(code: ContractionCode, value: ir.Value) -> _Draft | None:
        """None where its place takes no division, or is no such sum."""
        if not code.is_loaded(value) or value.owner.operation.name != "affine.load":
            return None
        load = value.owner.operation
        array, *where = load.operands
        kind, form = ir.MemRefType(array.type), ir.AffineMapAttr(load.attributes["map"]).value
        plain = kind.has_static_shape and lies_whole(kind)
        linear = not form.n_symbols and not _divides(form)
        if not plain or not linear or not kind.rank or defined_in(code.root, array):
            return None
        digits = [_is_digit(each, code.term.variable) for each in where]
        apart = all(
            digit or not code.hangs_on(each, code.term)
            for digit, each in zip(digits, where, strict=True)
        )
        return _Draft(code, load, digits) if apart and any(digits) else None

    def written(self, terms: int) -> TermPlaces:
        """The table, filled before the contraction."""
        array, *where = self.load.operands
        index = ir.IndexType.get()
        table = memref.AllocOp(ir.MemRefType.get([terms], index), [], []).result
        mine, others = (
            [value for value, own in zip(where, self.of_term, strict=True) if own == side]
            for side in (True, False)
        )
        with loop(0, terms) as term:
            digits = self.code.computed(mine, {self.code.term.name: term})
            place = affine.AffineApplyOp(self._linear(of_term=True), digits)
            memref.StoreOp(place, table, [term])
        return TermPlaces(_flat(array), table, self._linear(of_term=False), tuple(others))

    def _linear(self, *, of_term: bool) -> ir.AffineMap:
        """That part of how many elements it is from the array's first; the other is 0."""
        form = ir.AffineMapAttr(self.load.attributes["map"]).value
        shape = ir.MemRefType(self.load.operands[0].type).shape
        zero = ir.AffineExpr.get_constant(0)
        count = sum(own == of_term for own in self.of_term)
        dims = iter(range(count))
        inputs = [
            ir.AffineExpr.get_dim(next(dims)) if own == of_term else zero for own in self.of_term
        ]
        taken = ir.AffineMap.get(count, 0, inputs)
        nothing = ir.AffineMap.get(count, 0, [zero] * len(inputs))
        place = zero
        for k, each in enumerate(form.results):
            part = each.compose(taken)
            part = part - each.compose(nothing) if of_term else part
            place = place + part * math.prod(shape[k + 1 :])
        simple = ir.AffineExpr.simplify_affine_expr(place, count, 0)
        return ir.AffineMap.get(count, 0, [simple])


def _is_digit(value: ir.Value, term: ir.Value) -> bool:
    """Whether a division makes it of the term, and of nothing else."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "affine.apply":
        return False
    op = value.owner.operation
    return list(op.operands) == [term] and _divides(ir.AffineMapAttr(op.attributes["map"]).value)


def _divides(form: ir.AffineMap) -> bool:
    return any(word in str(form) for word in ("mod", "div"))


def _flat(array: ir.Value) -> ir.Value:
    """All of it as one row."""
    kind = ir.MemRefType(array.type)
    if kind.rank == 1:
        return array
    flat = ir.MemRefType.get(
        [math.prod(kind.shape)], kind.element_type, memory_space=kind.memory_space
    )
    return memref.CollapseShapeOp(flat, array, [list(range(kind.rank))]).result
