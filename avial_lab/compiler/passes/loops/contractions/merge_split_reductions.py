"""Sums that stand in pieces, a triangle of a matrix and its mirror image, as one over the whole.

Functions of loops -> the same values, within the bound of sums in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, math, memref

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests
from avial_lab.compiler.analysis.patterns.split_reductions import (
    PiecedSum,
    Placed,
    Start,
    Term,
    pieced_sum_in,
)
from avial_lab.compiler.analysis.polyhedral.ranges import Range
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.codegen.loops.index_arithmetic import affine_loop, parameter_values
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import Element, operations_in
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import add_remark, listed, note_terms
from avial_lab.compiler.passes.loops.contractions.block_contractions import (
    FEW_PRODUCTS,
    FEWEST_OF_EACH,
)

NAME = "merge-split-reductions"


@dataclass(frozen=True)
class MergeSplitReductions:
    """One sum in place of its pieces, so that block-contractions finds one contraction of a
    rectangle, and mirrors the triangle as it packs it.

    before:  affine.for %i { affine.for %j {
               store %zero, T[i, j]
               affine.for %k = 0 to %i { T[i, j] += A[i, k] * B[k, j]
                                         C[k, j] += alpha * B[i, j] * A[i, k] }
               C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * T[i, j] } }
    after:   affine.for %i { affine.for %j { C[i, j] = beta * C[i, j] } }
             affine.for %i { affine.for %j { affine.for %k {
               C[i, j] += A[max(i, k), min(i, k)] * (alpha * B[k, j]) } } }

    Only where that is more than `least` products, and not in a strict module: the order in which
    an element's terms are added is another. And a factor of their sum is one of each term here:
    where it is infinite, a term of 0 makes NaN of what the text has infinite.
    """

    least: int = FEW_PRODUCTS

    def __call__(self, module: ir.Operation) -> None:
        if is_strict(module):
            return
        with module.context:
            for function in functions_without_aliases(module):
                for nest in list(free_nests(function)):
                    self._join(nest)

    def __str__(self) -> str:
        return NAME if self.least == FEW_PRODUCTS else f"{NAME}{{least={self.least}}}"

    def _join(self, nest: ir.Operation) -> None:
        """The nest, or else those inside."""
        if not _may_have_pieces(nest):
            return
        scop = read_scop(nest)
        found = pieced_sum_in(scop)
        if found is None:
            for inner in list(free_nests(nest)):
                self._join(inner)
        elif self._is_worth_it(found):
            _Writer(nest, scop, found).write()

    def _is_worth_it(self, found: PiecedSum) -> bool:
        product = 1
        for place in range(len(found.box)):
            count = most_iterations(found.where, place)
            product *= count
            if self.least and count < FEWEST_OF_EACH:
                return False
        return product > self.least


def _may_have_pieces(nest: ir.Operation) -> bool:
    """Whether one array is stored to in several places, and another, which never is, is loaded in
    several: a look at the text, before isl is asked.
    """
    loaded, stored = _met(nest, LOADS, 0), _met(nest, STORES, 1)
    read_alone = [array for array in loaded if array not in stored]
    several = (
        len(each) < len(where)
        for each, where in ((set(stored), stored), (set(read_alone), read_alone))
    )
    return all(several)


def _met(nest: ir.Operation, names: Collection[str], place: int) -> list[ir.Value]:
    return [op.operands[place] for op in operations_in(nest) if op.name in names]


@dataclass(frozen=True)
class _Writer:
    """Puts a sum in front of the nest whose it is, and takes that away."""

    nest: ir.Operation
    scop: Scop
    found: PiecedSum

    def write(self) -> None:
        found = self.found
        with self.nest.location, ir.InsertionPoint(self.nest):
            values = parameter_values(self.scop)
            if found.start is not None:
                self._write_start(found.start, values)
            with self._loops(found.box, values) as at:
                element = _element(found.array, at[:-1])
                element.store(self._plus_product(element.load(), at))
        terms = most_iterations(found.where, len(found.box) - 1)
        if isinstance(ir.MemRefType(found.array.type).element_type, ir.FloatType):
            # A factor is one more rounding, that stands elsewhere in the program's order.
            note_terms(self.nest, terms + len(found.term.numbers) + 1)
        self._tell()
        self.nest.erase()
        if found.temporary is not None:
            for use in [use.owner.operation for use in found.temporary.uses]:
                use.erase()
            found.temporary.owner.operation.erase()

    def _tell(self) -> None:
        term, pieces = self.found.loops[-1], listed(self.found.mirrored)
        remark = f"merged the sums over {term} from {pieces}: a triangle and its mirror image"
        add_remark(self.nest, NAME, remark)

    @contextmanager
    def _loops(self, box: Sequence[Range], values: dict[str, ir.Value]) -> Iterator[list[ir.Value]]:
        """Loops over a box; in them their variables."""
        with ExitStack() as opened:
            at: list[ir.Value] = []
            for extent, loop in zip(box, self.found.loops, strict=False):
                at.append(opened.enter_context(affine_loop(extent, values, step=1)))
                if loop is not None:
                    at[-1].set_location(loop.variable.location)
            yield at

    def _write_start(self, start: Start, values: dict[str, ir.Value]) -> None:
        with self._loops(start.box, values) as at:
            element, total = _element(self.found.array, at), None
            for term in start.terms:
                value = self._product(term, at)
                total = value if total is None else _add(total, value)
            element.store(self._zero() if total is None else total)

    def _zero(self) -> ir.Value:
        kind = ir.MemRefType(self.found.array.type).element_type
        return arith.ConstantOp(kind, 0.0 if _is_real(kind) else 0).result

    # -- products

    def _plus_product(self, old: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
        """What is mirrored times all of the rest, which is the same for more of the loops."""
        term = self.found.term
        last = next(each for each in term.elements if each.is_mirrored)
        others = [each for each in term.elements if each is not last]
        rest = self._product(Term(term.negative, term.numbers, tuple(others)), at)
        left = self._load(last, at)
        if any(op.name == "math.fma" for op in operations_in(self.nest)):
            return math.fma(left, rest, old)
        return _add(old, _times(left, rest))

    def _product(self, term: Term, at: Sequence[ir.Value]) -> ir.Value:
        factors = [self._number(value) for value in term.numbers]
        factors += [self._load(each, at) for each in term.elements]
        product, *rest = factors
        for factor in rest:
            product = _times(product, factor)
        return _negated(product) if term.negative else product

    def _number(self, value: ir.Value) -> ir.Value:
        """It, or a copy of a constant that stands in the nest."""
        if not defined_in(self.nest, value):
            return value
        return value.owner.operation.clone().operation.results[0]

    def _load(self, placed: Placed, at: Sequence[ir.Value]) -> ir.Value:
        if not placed.is_mirrored:
            return _element(placed.array, [at[s.of[0]] for s in placed.subscripts]).load()
        both = ir.AffineMap.get_identity(2)
        subscripts: list[ir.Value] = []
        for each in placed.subscripts:
            values = [at[k] for k in each.of]
            if len(values) > 1:
                extreme = affine.AffineMaxOp if each.greater else affine.AffineMinOp
                values = [extreme(both, values).result]
            subscripts += values
        return memref.LoadOp(placed.array, subscripts).result


def _element(array: ir.Value, at: Sequence[ir.Value]) -> Element:
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(at)))
    return Element(array, tuple(at), identity)


def _is_real(kind: ir.Type) -> bool:
    return isinstance(kind, ir.FloatType)


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.addf(a, b) if _is_real(a.type) else arith.addi(a, b)


def _times(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.mulf(a, b) if _is_real(a.type) else arith.muli(a, b)


def _negated(value: ir.Value) -> ir.Value:
    if _is_real(value.type):
        return arith.negf(value)
    return arith.subi(arith.ConstantOp(value.type, 0).result, value)
