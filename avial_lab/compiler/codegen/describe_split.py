"""What is written on a replicate and its loops: how they are divided, and who owns what."""

from __future__ import annotations

import re
from collections.abc import Sequence

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.reassociation import TERMS
from avial_lab.compiler.analysis.parallelism.partition import Split
from avial_lab.compiler.analysis.parallelism.reductions import Reduction
from avial_lab.compiler.analysis.parallelism.sums import most_on_one
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Array, Loop, ReductionKind
from avial_lab.compiler.analysis.polyhedral.slice_costs import slice_weights
from avial_lab.compiler.analysis.polyhedral.trip_counts import FAR
from avial_lab.compiler.ir.attributes import DIVIDED, SPLIT
from avial_lab.compiler.ir.dialects.avial import buffer_of
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import split_dimensions
from avial_lab.compiler.ir.views import is_memref, view_chain


def describe_split(node: Split, replicate: ir.Operation, *, grid: bool = False) -> None:
    """Write on a replicate and its loops what is divided, and what each part owns."""
    i64 = ir.DenseI64ArrayAttr
    for dimension, loops in enumerate((node.loops, node.second if grid else ())):
        _mark(loops, dimension)
        outermost = dimension == 0 and len(loops) == 1 and loops[0].op == node.op
        if loops and not outermost:
            replicate.attributes[f"avial.bounds{dimension}"] = i64.get(_hull(node.op, loops))
    if node.anchor is not None:
        extent = node.anchor.array.shape[node.anchor.dimension]
        if extent is not None:
            replicate.attributes["avial.owned0"] = i64.get([node.anchor.offset, extent])
    # Parts are where ranks have them: the ends of blocks of rows, not of equal work.
    if (
        node.triangular
        and not grid
        and not any(DIVIDED in loop.op.attributes for loop in node.loops)
    ):
        replicate.attributes["avial.weights"] = i64.get(_weights(node, replicate))
    if node.reductions:
        operands = [buffer_of(operand) for operand in replicate.operands]
        # A key and its payload are combined together: one that is not listed (it gets its memory
        # within the schedule) leaves neither, and the ranks find a conflict.
        together = [{array.value for array in reduction.arrays} for reduction in node.reductions]
        arrays = set[ir.Value]().union(*(each for each in together if each <= {*operands}))
        # An array that is read and written is listed twice: the later is the write.
        places = {value: k for k, value in enumerate(operands) if value in arrays}
        replicate.attributes["avial.reduced"] = i64.get(sorted(places.values()))
        if any(reduction.reorders_rounding for reduction in node.reductions):
            replicate.attributes[TERMS] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(64), _most_terms(node)
            )
    for array in node.private:
        _copy_inside(array, replicate)
    replicate.attributes["avial.why"] = text_attributes(_how_divided(node))


def parts_wanted(node: Split) -> dict[str, ir.Attribute]:
    """What is written on the replicate of a nest whose loops are marked to be divided in blocks in
    turn, or over a grid.
    """
    marks = [loop.op.attributes.get(DIVIDED) for loop in node.loops]
    texts = {mark.value for mark in marks if isinstance(mark, ir.StringAttr)}
    if len(texts) != 1:
        return {}
    (text,) = texts
    last = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(re.split("[ x]", text)[-1]))
    if text.startswith("cyclic"):
        return {"avial.block": last}
    return {"avial.columns": last} if node.second else {}


def _most_terms(node: Split) -> int:
    """How many terms at most are combined in one element, by all the loops of the nest together;
    FAR where nobody knows.
    """
    scop = read_scop(node.op)
    statements = {statement.name: statement for statement in scop.statements}
    terms: dict[Array, int] = {}
    reduced = {array.value for reduction in node.reductions for array in reduction.arrays}
    for update in scop.updates:
        if update.array.value in reduced:
            store = statements[update.store]
            own = FAR if _comes_of_a_loop(store.op) else most_on_one(store, update.array)
            terms[update.array] = terms.get(update.array, 0) + own
    return min(FAR, max(terms.values(), default=FAR))


def _comes_of_a_loop(store: ir.Operation) -> bool:
    """Whether what is stored was added up by a loop that hands it on: its terms are none of the
    store's own iterations.
    """
    pending = [store.operands[0]]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block) or value.owner.operation.block != store.block:
            continue
        op = value.owner.operation
        if len(op.regions):
            return True
        pending += op.operands
    return False


def _how_divided(node: Split) -> list[str]:
    """For people: which loop, who owns what, what is combined."""
    names = " and ".join(dict.fromkeys(loop.name for loop in node.loops))
    lines = [f"iterations of {names} are independent"]
    if node.reductions:
        lines = [f"iterations of {names} only {_aim(reduction)}: {reduction}"
                 for reduction in node.reductions]  # fmt: skip
    if node.anchor is not None:
        place = ", ".join(
            ":" if d != node.anchor.dimension else _shifted(names, node.anchor.offset)
            for d in range(node.anchor.array.rank)
        )
        verb = "owns" if node.anchor.written else "holds most of"
        lines.append(f"the rank that {verb} {node.anchor.array}[{place}] runs iteration {names}")
    lines += [f"each rank has its own {array}" for array in node.private]
    return lines


def _aim(reduction: Reduction) -> str:
    if not reduction.op.startswith("avial.arg"):
        return "add to shared sums"
    least = reduction.kind is ReductionKind.MINIMUM
    return f"look for the {'minimum' if least else 'maximum'} of all"


def _shifted(name: str, offset: int) -> str:
    return name if not offset else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"


def _mark(loops: Sequence[Loop], dimension: int) -> None:
    """Write on each loop which dimension of the grid divides it."""
    for loop in loops:
        if loop.op.name.endswith(".for"):
            i64 = ir.IntegerType.get_signless(64)
            loop.op.attributes[SPLIT] = ir.IntegerAttr.get(i64, dimension)
            continue
        marks = split_dimensions(loop.op)
        marks[loop.dimension] = dimension
        loop.op.attributes[SPLIT] = ir.DenseI64ArrayAttr.get(marks)


def _weights(node: Split, replicate: ir.Operation) -> list[int]:
    """The work in equal slices of what is owned, or of the iterations."""
    low, high, _ = _hull(node.op, node.loops)
    if "avial.owned0" in replicate.attributes:
        offset, extent = ir.DenseI64ArrayAttr(replicate.attributes["avial.owned0"])
        low, high = -offset, extent - offset
    return slice_weights(read_scop(node.op), node.loops, first=low, extent=high - low)


def _hull(nest: ir.Operation, loops: Sequence[Loop]) -> list[int]:
    """The least and one past the greatest value of the loops' variables, and the step."""
    ends: list[tuple[int, int]] = []
    for statement in read_scop(nest).statements:
        for place, loop in enumerate(statement.loops):
            if any(loop.op == each.op and loop.dimension == each.dimension for each in loops):
                domain = statement.domain
                domain = domain.project_out(isl.dim_type.param, 0, domain.dim(isl.dim_type.param))
                if domain.is_empty():
                    continue
                low, high = domain.dim_min_val(place), domain.dim_max_val(place)
                ends.append(
                    (
                        low.to_python() if low.is_int() else -FAR,
                        high.to_python() + 1 if high.is_int() else FAR,
                    )
                )
    if not ends:
        return [0, 0, 1]
    (step,) = {loop.step or 1 for loop in loops} if len(loops) == 1 else {1}
    return [min(low for low, _ in ends), max(high for _, high in ends), step]


def text_attributes(lines: Sequence[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(line) for line in lines])


def _copy_inside(array: Array, work: ir.Operation) -> None:
    """A temporary that carries nothing from one iteration to another is the phase's own, and views
    of it that were made outside are views of that.
    """
    first = work.regions[0].blocks[0].operations[0].operation
    assert array.value is not None, "an array of the function's own is an allocation"
    own: dict[ir.Value, ir.Value] = {}

    def own_view(value: ir.Value) -> ir.Value:
        if value not in own:
            sources = view_chain(value)[1:2]  # none of the array itself
            given = list(map(own_view, sources))
            made = value.owner.operation.clone(ip=ir.InsertionPoint(first)).operation
            for source, copy in zip(sources, given, strict=True):
                made.replace_uses_of_with(source, copy)
            own[value] = made.results[0]
        return own[value]

    for inner in list(operations_in(work)):
        for k, operand in enumerate(inner.operands):
            if not is_memref(operand) or defined_in(work, operand):
                continue
            if view_chain(operand)[-1] == array.value:
                inner.operands[k] = own_view(operand)
