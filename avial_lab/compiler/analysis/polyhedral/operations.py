"""What each kind of operation is to the walk: a loop, a condition, an access, or nothing.

One function for each kind, by the operation's name in HANDLERS; they call the reader back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.indices import Condition
from avial_lab.compiler.analysis.polyhedral.statements import LoopBounds, PreAccess
from avial_lab.compiler.analysis.polyhedral.updates import combination, declared
from avial_lab.compiler.analysis.polyhedral.views import Window, block, element
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.views import is_memref

if TYPE_CHECKING:
    from avial_lab.compiler.analysis.polyhedral.reading import ScopReader


# -- loops


def _scf_for(reader: ScopReader, op: ir.Operation) -> None:
    body = op.regions[0].blocks[0]
    low, high, step = (reader.indices.of(op.operands[k]) for k in range(3))
    if "unsignedCmp" in op.attributes:
        low, high = reader.indices.non_negative(low), reader.indices.non_negative(high)
    arguments = list(body.arguments)
    _enter_for(reader, op, LoopBounds(arguments[0], [low], [high], step), arguments[1:])


def _affine_for(reader: ScopReader, op: ir.Operation) -> None:
    segments = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    lows = reader.indices.apply(op.attributes["lowerBoundMap"].value, operands[: segments[0]])
    highs = reader.indices.apply(
        op.attributes["upperBoundMap"].value, operands[segments[0] : segments[0] + segments[1]]
    )
    step = Affine(ir.IntegerAttr(op.attributes["step"]).value)
    arguments = list(op.regions[0].blocks[0].arguments)
    _enter_for(reader, op, LoopBounds(arguments[0], lows, highs, step), arguments[1:])


def _enter_for(
    reader: ScopReader, op: ir.Operation, values: LoopBounds, carried: Sequence[ir.Value]
) -> None:
    def body() -> None:
        finish = reader.carry_values(op, carried)
        reader.read_block(op.regions[0].blocks[0])
        finish()

    reader.enter(op, [values], body)


def _scf_parallel(reader: ScopReader, op: ir.Operation) -> None:
    rank = op.attributes["operandSegmentSizes"][0]
    forms = [reader.indices.of(op.operands[k]) for k in range(3 * rank)]
    arguments = list(op.regions[0].blocks[0].arguments)
    ranges = [
        LoopBounds(arguments[k], [forms[k]], [forms[rank + k]], forms[2 * rank + k])
        for k in range(rank)
    ]
    reader.enter(op, ranges, lambda: reader.read_block(op.regions[0].blocks[0]))


def _scf_reduce(reader: ScopReader, op: ir.Operation) -> None:
    loop = parent_of(op)
    for region in op.regions:
        body = region.blocks[0]
        found = combination(body.arguments[0], body.operations[-1].operation.operands[0])
        if loop is not None:
            reader.declared_reduction(op, loop, str(body.arguments[0].type), found)


def _affine_parallel(reader: ScopReader, op: ir.Operation) -> None:
    lower_map, upper_map = (
        op.attributes[name].value for name in ("lowerBoundsMap", "upperBoundsMap")
    )
    operands = list(op.operands)
    split = lower_map.n_inputs
    lows = _grouped(op, "lowerBoundsGroups", reader.indices.apply(lower_map, operands[:split]))
    highs = _grouped(op, "upperBoundsGroups", reader.indices.apply(upper_map, operands[split:]))
    steps = [Affine(ir.IntegerAttr(step).value) for step in ir.ArrayAttr(op.attributes["steps"])]
    arguments = list(op.regions[0].blocks[0].arguments)
    ranges = [
        LoopBounds(argument, low, high, step)
        for argument, low, high, step in zip(arguments, lows, highs, steps, strict=True)
    ]

    def body() -> None:
        reader.read_block(op.regions[0].blocks[0])
        for result, kind in zip(op.results, ir.ArrayAttr(op.attributes["reductions"]), strict=True):
            found = declared(ir.IntegerAttr(kind).value)
            reader.declared_reduction(op, op, str(result.type), found)

    reader.enter(op, ranges, body)


def _grouped(op: ir.Operation, name: str, forms: list[Affine | None]) -> list[list[Affine | None]]:
    groups: list[list[Affine | None]] = []
    for size in ir.DenseIntElementsAttr(op.attributes[name]):
        groups.append(forms[: int(size)])
        forms = forms[int(size) :]
    return groups


def _while(reader: ScopReader, op: ir.Operation) -> None:
    if reader.straight(op):
        reader.enter_while(op)
    else:
        reader.opaque(op)


# -- conditions and regions that run once


def _scf_if(reader: ScopReader, op: ir.Operation) -> None:
    _branches(reader, op, reader.indices.condition(op.operands[0]))


def _affine_if(reader: ScopReader, op: ir.Operation) -> None:
    condition = reader.indices.integer_set(op.attributes["condition"], list(op.operands))
    _branches(reader, op, condition)


def _branches(reader: ScopReader, op: ir.Operation, condition: Condition | None) -> None:
    why = "depends on data"
    reader.branch(op, op.regions[0], condition, why)
    reader.branch(op, op.regions[1], condition.negated() if condition else None, why)


def _switch(reader: ScopReader, op: ir.Operation) -> None:
    for region in op.regions:
        reader.branch(op, region, None, "may take any of its cases")


def _once(reader: ScopReader, op: ir.Operation) -> None:
    if reader.straight(op):
        reader.read_regions(op)
    else:
        reader.opaque(op, "branches between blocks")


# -- operations that touch memory


def _element(
    reader: ScopReader,
    memref: ir.Value,
    subscripts: Sequence[Affine | None],
    shown: Sequence[str],
    *,
    writes: bool,
) -> list[PreAccess]:
    def window() -> Window:
        return element(reader.indices, memref, tuple(subscripts))

    return reader.touches(memref, window, writes=writes, subscripts=tuple(shown))


def _load(reader: ScopReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    _access(reader, op, operands[0], operands[1:], (False,))


def _store(reader: ScopReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    _access(reader, op, operands[1], operands[2:], (True,))


def _access(
    reader: ScopReader,
    op: ir.Operation,
    memref: ir.Value,
    operands: Sequence[ir.Value],
    directions: Sequence[bool],
) -> None:
    if op.name.startswith("affine."):
        forms = reader.indices.apply(op.attributes["map"].value, operands)
        shown = ["?" if form is None else str(form) for form in forms]
    else:
        forms = [reader.indices.of(operand) for operand in operands]
        shown = [reader.shown(operand) for operand in operands]
    touches = [
        touch
        for writes in directions
        for touch in _element(reader, memref, forms, shown, writes=writes)
    ]
    reader.statement(op, touches)


def _atomic(reader: ScopReader, op: ir.Operation) -> None:
    first = 1 if op.name == "memref.atomic_rmw" else 0
    operands = list(op.operands)
    _access(reader, op, operands[first], operands[first + 1 :], (False, True))


def _vector(reader: ScopReader, op: ir.Operation) -> None:
    store = op.name.endswith("store")
    operands = list(op.operands)
    first = 1 if store else 0
    memref, rest = operands[first], operands[first + 1 :]
    vector = ir.VectorType(operands[0].type if store else op.results[0].type)
    if op.name.startswith("affine."):
        forms = reader.indices.apply(op.attributes["map"].value, rest)
    else:
        forms = [reader.indices.of(operand) for operand in rest]
    extents = [Affine(1)] * (len(forms) - len(vector.shape)) + [Affine(k) for k in vector.shape]

    def window() -> Window:
        return block(reader.indices, memref, tuple(forms), extents)

    shown = tuple("?" if form is None else str(form) for form in forms)
    reader.statement(op, reader.touches(memref, window, writes=store, subscripts=shown))


def _copy(reader: ScopReader, op: ir.Operation) -> None:
    source, target = op.operands[0], op.operands[1]
    touches = reader.touch_whole(source, writes=False) + reader.touch_whole(target, writes=True)
    reader.statement(op, touches)


def _free(reader: ScopReader, op: ir.Operation) -> None:
    """After it the array is gone: no access may move past it."""
    reader.statement(op, reader.touch_whole(op.operands[0], writes=True, exact=False))


def linalg(reader: ScopReader, op: ir.Operation) -> None:
    """Inputs are read; an output is written, and read too where the body uses its old value."""
    operands = list(op.operands)
    body = op.regions[0].blocks[0] if len(op.regions) else None
    if body is None or len(body.arguments) != len(operands):
        reader.opaque(op)
        return
    segments = op.attributes.get("operandSegmentSizes")
    # broadcast and transpose have one of each.
    inputs = len(operands) - 1 if segments is None else ir.DenseI32ArrayAttr(segments)[0]
    everywhere = _covers_outputs(op, inputs)
    touches: list[PreAccess] = []
    for k, operand in enumerate(operands):
        if not is_memref(operand):
            continue
        if k < inputs or any(True for _ in body.arguments[k].uses):
            touches += reader.touch_whole(operand, writes=False)
        if k >= inputs:
            touches += reader.touch_whole(operand, writes=True, exact=everywhere)
    if any(True for _ in _memory_operations(body)):
        reader.opaque(op, "accesses memory in its body")
        return
    reader.statement(op, touches)


def _memory_operations(body: ir.Block) -> Iterable[ir.Operation]:
    for view in body.operations:
        if any(is_memref(operand) for operand in view.operation.operands):
            yield view.operation
        for region in view.operation.regions:
            for inner in region.blocks:
                yield from _memory_operations(inner)


def _covers_outputs(op: ir.Operation, inputs: int) -> bool:
    """Whether each element of the outputs is written: maps that leave out no index of theirs."""
    if op.name != "linalg.generic":
        return True
    maps = [ir.AffineMapAttr(item).value for item in ir.ArrayAttr(op.attributes["indexing_maps"])]
    return all(m.is_projected_permutation for m in maps[inputs:])


def _call(reader: ScopReader, op: ir.Operation) -> None:
    if not _pure_callee(op):
        reader.opaque(op, "may have any effect on its operands")


def _pure_callee(op: ir.Operation) -> bool:
    """Whether the called function only computes: a function of libm, or one whose body shows it."""
    callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    if any(is_memref(operand) for operand in op.operands):
        return False
    module = op
    while module.parent is not None:
        module = module.parent.operation
    for region in module.regions:
        for body in region.blocks:
            for view in body.operations:
                function = view.operation
                named = function.name == "func.func" and (
                    ir.StringAttr(function.attributes["sym_name"]).value == callee
                )
                if named and len(function.regions[0].blocks):
                    return all(
                        _computes(inner.operation)
                        for block_ in function.regions[0].blocks
                        for inner in block_.operations
                    )
    return callee in _LIBM or (callee.endswith("f") and callee[:-1] in _LIBM)


def _computes(op: ir.Operation) -> bool:
    dialect = op.name.partition(".")[0]
    return op.name == "func.return" or (dialect in ("arith", "math", "index") and not op.regions)


def _nothing(_reader: ScopReader, _op: ir.Operation) -> None:
    """Touches no memory."""


_LIBM = {
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "atan2", "sinh", "cosh", "tanh", "pow", "ceil", "floor", "round", "trunc",
    "fabs", "fmin", "fmax", "fmod", "cbrt", "erf", "hypot", "fma",
}  # fmt: skip
LOOPS = {
    "scf.for", "scf.parallel", "scf.while", "affine.for", "affine.parallel", "avial.converge",
}  # fmt: skip
COMPUTING_DIALECTS = {
    "arith", "math", "index", "complex", "ub", "vector", "memref", "affine", "scf", "avial",
    "linalg",
}  # fmt: skip
# Terminators, views and questions about a memref.
SILENT = {
    "func.return", "omp.terminator", "gpu.terminator", "scf.yield", "affine.yield",
    "scf.condition", "scf.reduce.return", "linalg.yield", "memref.alloca_scope.return",
    "memref.dim", "memref.rank", "memref.alloc", "memref.alloca", "memref.get_global",
    "memref.subview", "memref.cast", "memref.collapse_shape", "memref.expand_shape",
    "memref.reinterpret_cast", "memref.transpose", "memref.view", "memref.reshape",
    "memref.memory_space_cast", "memref.extract_strided_metadata", "memref.assume_alignment",
    "memref.prefetch", "affine.prefetch", "cf.assert", "builtin.unrealized_conversion_cast",
    "arith.select", "avial.target", "gpu.barrier",
}  # fmt: skip
HANDLERS: dict[str, Callable[[ScopReader, ir.Operation], None]] = {
    "func.func": _once,
    "avial.schedule": _once,
    "avial.task": _once,
    "avial.replicate": _once,
    "avial.converge": _while,
    "scf.execute_region": _once,
    "memref.alloca_scope": _once,
    "scf.for": _scf_for,
    "scf.parallel": _scf_parallel,
    "scf.reduce": _scf_reduce,
    "scf.while": _while,
    "scf.if": _scf_if,
    "scf.index_switch": _switch,
    "affine.for": _affine_for,
    "affine.parallel": _affine_parallel,
    "affine.if": _affine_if,
    "memref.load": _load,
    "memref.store": _store,
    "affine.load": _load,
    "affine.store": _store,
    "memref.atomic_rmw": _atomic,
    "memref.generic_atomic_rmw": _atomic,
    "vector.load": _vector,
    "vector.store": _vector,
    "affine.vector_load": _vector,
    "affine.vector_store": _vector,
    "memref.copy": _copy,
    "memref.dealloc": _free,
    "func.call": _call,
    "memref.global": _nothing,
    "builtin.module": _once,
}
