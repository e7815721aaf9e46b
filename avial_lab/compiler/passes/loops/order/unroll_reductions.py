"""Sums of a few terms for each element, written out: the loop over elements is the innermost one.
So are small triangles for each element, as factorisations of many small matrices have them.

Functions of loops -> the same operations in the same order, so the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_of_tasks, has_no_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import ends_of, free_nests, nearest_loops
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.indices import evaluate
from avial_lab.compiler.analysis.polyhedral.loop_ends import steps_of
from avial_lab.compiler.codegen.loops.index_arithmetic import say_places
from avial_lab.compiler.codegen.loops.unroll_and_jam import variable_of
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES, is_pure
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import body_of, comes_from, end_of, parent_of
from avial_lab.compiler.ir.operations import loops_in, operations_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.ir.views import may_be
from avial_lab.compiler.passes.loops.order.unroll_short import MOST_OPERATIONS, write_out

NAME = "unroll-reductions"

MOST_TERMS = 8
"""Of one loop: a point's coordinates, a window's row; longer ones are vectors by themselves."""

MOST_OF_WINDOW = 32
"""Of a window that moves with the element along a row: its vectors wait for each other less than
one element's terms do for being added up across a vector.
"""

MANY = 8
"""Times that a value is used again: it is worth to be packed for blocks."""

LEAST_ELEMENTS = 4
"""As many as a vector has."""


@dataclass(frozen=True)
class UnrollReductions:
    """Write out loops of few iterations that sum up something for each element of the loop around.

    before:  affine.for %j { %s = affine.for %q = 0 to 5 iter_args(%a = %zero) -> (f64) {
               %t = math.fma %W[%q], %A[%j + %q], %a  affine.yield %t }  affine.store %s, %B[%j] }
    after:   affine.for %j { %a = math.fma %W[0], %A[%j + 0], %zero  …
               %s = math.fma %W[4], %A[%j + 4], %d  affine.store %s, %B[%j] }

    Lanes of a vector then are elements, each of which adds up its terms in the order of the text.
    Within a loop that carries the sum on it stays: that is a longer sum.

    before:  affine.for %b { affine.for %i = 0 to 3 { affine.for %k = 0 to %i { … A[b, i, k] … } } }
    after:   affine.for %b { … A[b, 1, 0] …  … A[b, 2, 0] …  … A[b, 2, 1] … }

    A long sum of short ones has the elements inside of its own loop first: %c { %j { %q { … } } }
    of %j { %c { %q { … } } }.

    Elements whose places are known stay in registers. LLVM does that with loops whose ends are
    numbers. With `blocks`, what block-contractions makes blocks of is left to it.
    """

    blocks: bool = True

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_tasks(module):
                if has_no_aliases(function):
                    for nest in list(free_nests(function)):
                        _terms_outside(nest, self.blocks)
                for nest in list(free_nests(function)):
                    _write_out_in(nest, self.blocks)

    def __str__(self) -> str:
        return NAME if self.blocks else f"{NAME}{{blocks=false}}"


def _write_out_in(loop: ir.Operation, blocks: bool) -> None:
    """The short loops of this one, if it is one over elements; else of those inside."""
    inside = loops_in(loop)
    if not inside:
        return
    names = listed(dict.fromkeys(loop_name(each) for each in inside))
    remark = f"{names} fully unrolled in each iteration of {loop_name(loop)}"
    if _is_over_elements(loop, inside) and not (blocks and _is_contraction(loop)):
        for each in reversed(inside):  # those inside of another come after it
            steps = _terms_of(each, variable_of(loop))
            assert steps is not None
            write_out(each, steps)
    elif (small := _small_triangles(loop, inside)) is not None:
        loop.erase()
        loop = small
    else:
        for each in list(nearest_loops(loop)):
            _write_out_in(each, blocks)
        return
    add_remark(loop, NAME, remark)
    say_places(loop)


def _small_triangles(loop: ir.Operation, inside: Sequence[ir.Operation]) -> ir.Operation | None:
    """The same loop before this one with all loops in it written out, of which some have ends that
    hang on others; None where that is not little, or not known.
    """
    few = steps_of(loop, LEAST_ELEMENTS - 1) is not None
    if loop.name != "affine.for" or few or not all(map(_may_be_copied, operations_in(loop))):
        return None
    ends = [end for each in inside for end in operands_of_ends(each)]
    if len(loop.results) or not any(comes_from(e, variable_of(o)) for e in ends for o in inside):
        return None
    with ir.InsertionPoint(loop):
        trial = loop.clone().operation
    while (inner := next(nearest_loops(trial), None)) is not None:
        steps = steps_of(inner, MOST_TERMS, least=0)
        if steps is None or len(list(operations_in(trial))) > MOST_OPERATIONS:
            trial.erase()
            return None
        write_out(inner, steps)
    if len([op for op in operations_in(trial) if op.name != "arith.constant"]) > MOST_OPERATIONS:
        trial.erase()
        return None
    return trial


def _is_over_elements(loop: ir.Operation, inside: Sequence[ir.Operation]) -> bool:
    """Whether each iteration begins sums of its own, all of them short."""
    few = steps_of(loop, LEAST_ELEMENTS - 1) is not None
    if loop.name != "affine.for" or few or not all(map(_may_be_copied, operations_in(loop))):
        return False
    variable, *carried = loop.regions[0].blocks[0].arguments
    terms = {each: len(_terms_of(each, variable) or ()) for each in inside}
    if not all(terms.values()) or _written_out(loop, terms) > MOST_OPERATIONS:
        return False
    fresh = not any(start in carried for each in inside for start in each.operands)
    stores = [op for op in operations_in(loop) if op.name in STORES]
    return fresh and all(
        _moves(store, variable) and not any(_moves(store, variable_of(each)) for each in inside)
        for store in stores
    )


def _is_contraction(loop: ir.Operation) -> bool:
    """Whether loops around add more terms to the same elements, and many others use again what
    moves with the element: blocks are better then, as for a layer of convolutions.

        for o, c, i, j, p, q: y[o, i, j] += x[c, i + p, j + q] * w[o, c, p, q]
    """
    stores = [op for op in operations_in(loop) if op.name in STORES]
    loads = [op for op in operations_in(loop) if op.name in LOADS]
    more_terms = any(
        any(_moves(op, variable_of(each)) for op in loads)
        and not any(_moves(op, variable_of(each)) for op in stores)
        for each in _loops_around(loop)
        if _goes_round(each, 2)
    )
    return more_terms and _is_used_again(loop)


def _terms_outside(loop: ir.Operation, blocks: bool) -> None:
    """Let loops over elements stand inside of long ones that add up terms, where those inside of
    these are written out: a sum over channels and a window is one over the window then, for each.

        for j, c, p, q: y[j] += x[c, j + p, q] * w[c, p, q]
        for c, j, p, q: y[j] += x[c, j + p, q] * w[c, p, q]
    """
    terms = next(iter(body_of(loop)), None)
    if terms is not None and _may_go_outside(terms, loop, blocks):
        inside = body_of(terms)
        terms.move_before(loop)
        loop.move_before(end_of(terms))
        for op in inside:
            op.move_before(end_of(loop))
        add_remark(
            terms,
            NAME,
            f"{loop_name(loop)} moved into {loop_name(terms)}, which adds a term to each",
        )
        loop = terms
    for inner in list(nearest_loops(loop)):
        _terms_outside(inner, blocks)


def _may_go_outside(terms: ir.Operation, loop: ir.Operation, blocks: bool) -> bool:
    """Whether each iteration of `loop` adds up terms of its own, in the same order then."""
    if {loop.name, terms.name} != {"affine.for"} or body_of(loop) != [terms]:
        return False
    inside, variable = loops_in(terms), variable_of(loop)
    if not inside:
        return False
    few = not _goes_round(terms, MOST_TERMS + 1) or not _goes_round(loop, LEAST_ELEMENTS)
    if few or len(loop.results) or variable in operands_of_ends(terms):
        return False
    if not all(_terms_of(each, variable) for each in inside):
        return False
    if not all(map(_may_be_copied, operations_in(terms))):
        return False
    accesses = [op for op in operations_in(terms) if op.name in ACCESSES]
    stores = [op for op in accesses if op.name in STORES]
    if len(stores) != 1 or not _is_element_of(stores[0], variable):
        return False
    if any(_moves(stores[0], variable_of(each)) for each in (terms, *inside)):
        return False
    kept = blocks and _goes_round(loop, MANY) and _is_used_again(loop)
    return not kept and all(_is_apart_or_same(op, stores[0]) for op in accesses)


def _is_element_of(store: ir.Operation, variable: ir.Value) -> bool:
    """Whether it is to another element for each value of the variable, if nothing else changes."""
    if store.name != "affine.store":
        return False
    form, where = ir.AffineMapAttr(store.attributes["map"]).value, list(store.operands)[2:]
    if any(v != variable and comes_from(v, variable) for v in where):
        return False
    values = [Affine.of("element" if v == variable else f"other {k}") for k, v in enumerate(where)]
    forms = [evaluate(each, values[: form.n_dims], values[form.n_dims :]) for each in form.results]
    return any(each is not None and dict(each.terms).get("element", 0) for each in forms)


def _is_apart_or_same(access: ir.Operation, store: ir.Operation) -> bool:
    """Whether it meets the element that is stored each time, or none of that memory."""
    if access == store or not may_be(access.operands[0]) & may_be(store.operands[1]):
        return True
    return (
        access.name == "affine.load"
        and list(access.operands) == list(store.operands)[1:]
        and access.attributes["map"] == store.attributes["map"]
    )


def _is_used_again(loop: ir.Operation) -> bool:
    """Whether many iterations of a loop around use what moves with the element."""
    loads, stores = (
        [op for op in operations_in(loop) if op.name in names] for names in (LOADS, STORES)
    )
    stored = [op.operands[1] for op in stores]
    right = [op for op in loads if _moves(op, variable_of(loop)) and op.operands[0] not in stored]
    return any(
        any(_moves(op, variable_of(each)) for op in stores)
        and not all(_moves(op, variable_of(each)) for op in right)
        for each in _loops_around(loop)
        if _goes_round(each, MANY)
    )


def _goes_round(loop: ir.Operation, times: int) -> bool:
    """Whether it is known to do so as often, or its parts for ranks together."""
    low, high = ends_of(loop) or (0, None)
    return high is not None and high - low >= times


def _loops_around(loop: ir.Operation) -> Iterator[ir.Operation]:
    while (around := parent_of(loop)) is not None and around.name == "affine.for":
        yield around
        loop = around


def _terms_of(loop: ir.Operation, element: ir.Value) -> range | None:
    """The values of its variable, where they are few."""
    return steps_of(loop, MOST_OF_WINDOW if _is_window(loop, element) else MOST_TERMS)


def _is_window(loop: ir.Operation, element: ir.Value) -> bool:
    """Whether all that its terms load moves along a row as the element does, or not with that."""
    loads = [op for op in operations_in(loop) if op.name == "affine.load"]
    moving = [op for op in loads if any(comes_from(v, element) for v in list(op.operands)[1:])]
    return bool(moving) and all(_slides(op, element, variable_of(loop)) for op in moving)


def _slides(load: ir.Operation, element: ir.Value, term: ir.Value) -> bool:
    """Whether one more of either is the next element of a row."""
    form = ir.AffineMapAttr(load.attributes["map"]).value
    names = {element: "element", term: "term"}
    values = [Affine.of(names.get(v, f"other {k}")) for k, v in enumerate(load.operands) if k]
    factors: list[list[int]] = []
    for result in form.results:
        found = evaluate(result, values[: form.n_dims], values[form.n_dims :])
        if found is None:
            return False
        factors.append([dict(found.terms).get(name, 0) for name in names.values()])
    return bool(factors) and factors[-1] == [1, 1] and not any(map(any, factors[:-1]))


def _may_be_copied(op: ir.Operation) -> bool:
    return op.name in (*ACCESSES, "affine.for", "affine.yield") or is_pure(op)


def _written_out(op: ir.Operation, terms: Mapping[ir.Operation, int]) -> int:
    """Operations that come of all that is in `op`."""
    return sum(
        terms[each] * _written_out(each, terms) if each in terms else 1
        for each in (view.operation for view in op.regions[0].blocks[0].operations)
    )


def _moves(access: ir.Operation, variable: ir.Value) -> bool:
    """Whether where it loads from or stores to is computed from the variable."""
    first = 2 if access.name in STORES else 1
    return any(comes_from(index, variable) for index in list(access.operands)[first:])
