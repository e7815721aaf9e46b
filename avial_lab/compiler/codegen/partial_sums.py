"""What sums of many threads are made of: partial results, and replicates that write and read them.

The operation that a sum is made by -> how two partial results are combined, and what changes none;
a replicate or task -> memory beside it, and others before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS
from avial_lab.compiler.ir.effects import STORES
from avial_lab.compiler.ir.nesting import holds, parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.views import is_memref, view_chain

COMBINED_BY = {
    "arith.addf": "arith.addf",
    "arith.subf": "arith.addf",
    "math.fma": "arith.addf",
    "arith.mulf": "arith.mulf",
    "arith.minimumf": "arith.minimumf",
    "arith.maximumf": "arith.maximumf",
    "arith.addi": "arith.addi",
    "arith.subi": "arith.addi",
    "arith.muli": "arith.muli",
    "arith.minsi": "arith.minsi",
    "arith.maxsi": "arith.maxsi",
}
"""By what two partial results are combined of what adds its terms one by one."""

_SO_FAR = {"math.fma": 2, "arith.subf": 0, "arith.subi": 0}
"""Which operand is the sum so far, where it matters."""

_BEGINS_WITH = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.minimumf": float("inf"),
    "arith.maximumf": float("-inf"),
}


def adds_to(load: ir.Operation, step: ir.Operation) -> bool:
    """Whether the step combines what was loaded with a term, and nobody else sees either."""
    at = [k for k, operand in enumerate(step.operands) if operand == load.result]
    used = [sum(1 for _ in op.result.uses) for op in (load, step)]
    if step.name not in COMBINED_BY or used != [1, 1] or len(at) != 1:
        return False
    if _SO_FAR.get(step.name, at[0]) != at[0]:
        return False
    return isinstance(load.result.type, ir.F32Type | ir.F64Type | ir.IntegerType)


def is_alone(
    replicate: ir.Operation, loops: Sequence[ir.Operation], sums: Sequence[ir.Operation]
) -> bool:
    """Whether no iteration of any of the loops, of which the first holds the others, waits for
    another but for these stores of sums.
    """
    if all(op in sums for op in operations_in(loops[0]) if op.name in STORES):
        return True
    scop = read_scop(replicate)
    own = {loop for each in loops for loop in scop.loops_of(each)}
    arrays = {view_chain(op.operands[1])[-1] for op in sums}
    rest = [
        s for s in scop.statements
        if holds(loops[0], s.op) and not any(
            is_memref(v) and view_chain(v)[-1] in arrays for v in s.op.operands
        )
    ]  # fmt: skip
    return limited(
        lambda: not any(found.carrier in own for found in dependences(rest)), lambda: False
    )


def known_ends(loop: ir.Operation) -> tuple[int, int] | None:
    """Where an affine.for of step 1 begins and ends; None where that is not in the text."""
    if len(loop.results) or ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return None
    found: list[int] = []
    for name in ("lowerBoundMap", "upperBoundMap"):
        form = ir.AffineMapAttr(loop.attributes[name]).value
        known = form.results[0].maybe_downcast() if len(form.results) == 1 else None
        if not isinstance(known, ir.AffineConstantExpr):
            return None
        found.append(known.value)
    return found[0], found[1]


def begins_with(combine: str, kind: ir.Type) -> ir.Value:
    """What changes nothing that it is combined with, the sign of zero and NaN included."""
    if isinstance(kind, ir.IntegerType):
        most = (1 << (kind.width - 1)) - 1
        whole = {"arith.addi": 0, "arith.muli": 1, "arith.minsi": most, "arith.maxsi": ~most}
        return arith.constant(kind, whole[combine])
    return arith.constant(kind, _BEGINS_WITH[combine])


def combined(combine: str, one: ir.Value, other: ir.Value) -> ir.Value:
    return ir.Operation.create(combine, [one.type], [one, other]).result


def memory_beside(replicate: ir.Operation, kind: ir.MemRefType, name: str) -> ir.Value:
    """Memory of the function's own."""
    function = replicate
    while function.name != "func.func":
        around = parent_of(function)
        assert around is not None, "replicates stand in a function"
        function = around
    start = ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
    with start, ir.Location.name(name, replicate.location):
        return memref.alloc(kind, [], [])


def handle_of(array: ir.Value) -> ir.Value:
    with ir.InsertionPoint.after(array.owner.operation), array.location:
        reference = ir.Type.parse("!avial.buffer_ref")
        return ir.Operation.create(CAST, [reference], [array]).result


def work_before(
    work: ir.Operation,
    name: str,
    reads: Sequence[ir.Value],
    writes: Sequence[ir.Value],
    why: str,
    *,
    kind: str = "avial.replicate",
) -> ir.Operation:
    """An empty replicate, or task, for the same target, called like the other with `name`
    behind.
    """
    whole = ir.StringAttr(work.attributes["name"]).value
    made = ir.Operation.create(
        kind,
        [ir.Type.parse("!avial.task_ref")],
        [work.operands[0], *reads, *writes],
        attributes={
            "name": ir.StringAttr.get(f"{whole}_{name}"),
            "avial.why": ir.ArrayAttr.get([ir.StringAttr.get(why)]),
            SEGMENTS: ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), 0]),
        },
        regions=1,
        loc=work.location,
        ip=ir.InsertionPoint(work),
    )
    with ir.InsertionPoint(ir.Block.create_at_start(made.regions[0], [])), work.location:
        ir.Operation.create("omp.terminator")
    return made


def clone_with(op: ir.Operation, inside: dict[ir.Value, ir.Value]) -> None:
    """A copy at the insertion point that uses what `inside` has in place of values, and adds to
    it.
    """
    copy = op.clone().operation
    for each in (copy, *operations_in(copy)):
        remap(each, inside)
    inside.update(zip(op.results, copy.results, strict=True))


def load_at(
    array: ir.Value, operands: Sequence[ir.Value], form: ir.AffineMap | None = None
) -> ir.Value:
    """The element that `form` says of the operands; of none, that with them as subscripts."""
    kind = ir.MemRefType(array.type).element_type
    attributes = {"map": _form(operands, form)}
    return ir.Operation.create("affine.load", [kind], [array, *operands], attributes).result


def store_at(
    value: ir.Value,
    array: ir.Value,
    operands: Sequence[ir.Value],
    form: ir.AffineMap | None = None,
) -> None:
    """Into the element that `load_at` loads."""
    attributes = {"map": _form(operands, form)}
    ir.Operation.create("affine.store", [], [value, array, *operands], attributes)


def _form(operands: Sequence[ir.Value], form: ir.AffineMap | None) -> ir.Attribute:
    return ir.AffineMapAttr.get(form or ir.AffineMap.get_identity(len(operands)))
