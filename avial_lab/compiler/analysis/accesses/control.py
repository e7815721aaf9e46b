"""Operations with regions: how often their bodies run, and what is known inside.

Loop, branch or launch -> the reader walks its regions, with the ranges of their variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlir import ir

from avial_lab.compiler.analysis.accesses.linear import Guard, Linear, Variable, unknown
from avial_lab.compiler.ir.dialects.avial import operand_segments
from avial_lab.compiler.ir.views import defining

if TYPE_CHECKING:
    from avial_lab.compiler.analysis.accesses.footprints import BodyReader
    from avial_lab.compiler.analysis.accesses.index_forms import IndexForms


def _scf_for(reader: BodyReader, op: ir.Operation) -> None:
    low, high, step = (reader.forms.of(op.operands[k]) for k in range(3))
    _enter_loop(reader, op, [(low, high, step)])


def _scf_parallel(reader: BodyReader, op: ir.Operation) -> None:
    rank = operand_segments(op)[0]
    forms = [reader.forms.of(op.operands[k]) for k in range(3 * rank)]
    _enter_loop(reader, op, [(forms[k], forms[rank + k], forms[2 * rank + k]) for k in range(rank)])


def _affine_for(reader: BodyReader, op: ir.Operation) -> None:
    lower_map = op.attributes["lowerBoundMap"].value
    upper_map = op.attributes["upperBoundMap"].value
    step = op.attributes["step"].value
    operands = [reader.forms.of(operand) for operand in op.operands]
    split = lower_map.n_inputs
    lows = reader.forms.apply(lower_map, operands[:split])
    highs = reader.forms.apply(upper_map, operands[split : split + upper_map.n_inputs])
    low, high = reader.forms.extreme(lows, max), reader.forms.extreme(highs, min)
    _enter_loop(reader, op, [(low, high, Linear(step))])


def _affine_parallel(reader: BodyReader, op: ir.Operation) -> None:
    lower_map = op.attributes["lowerBoundsMap"].value
    upper_map = op.attributes["upperBoundsMap"].value
    steps = [ir.IntegerAttr(step).value for step in ir.ArrayAttr(op.attributes["steps"])]
    forms = reader.forms
    operands = [forms.of(operand) for operand in op.operands]
    split = lower_map.n_inputs
    lows, highs = forms.apply(lower_map, operands[:split]), forms.apply(upper_map, operands[split:])
    lows = _grouped(forms, op, "lowerBoundsGroups", lows, max)
    highs = _grouped(forms, op, "upperBoundsGroups", highs, min)
    ranges = [(low, high, Linear(step)) for low, high, step in zip(lows, highs, steps, strict=True)]
    _enter_loop(reader, op, ranges)


def _grouped(
    forms: IndexForms, op: ir.Operation, name: str, bounds: list[Linear], pick: Callable[..., int]
) -> list[Linear]:
    sizes = [int(size) for size in ir.DenseIntElementsAttr(op.attributes[name])]
    result = []
    for size in sizes:
        result.append(forms.extreme(bounds[:size], pick))
        bounds = bounds[size:]
    return result


def _enter_loop(
    reader: BodyReader, op: ir.Operation, ranges: list[tuple[Linear, Linear, Linear]]
) -> None:
    """Read a loop's body with its variables' ranges; what stands in a loop that never runs reaches
    no element.
    """
    certain, unreached = True, reader.unreached
    arguments = list(op.regions[0].blocks[0].arguments)
    for argument, (low, high, step) in zip(arguments, ranges, strict=False):
        first, last = low.bounds(), high.bounds()
        origin = Linear(0)
        if first is None or last is None:
            origin, low, high = _common_origin(low, high)
            first, last = low.bounds(), high.bounds()
        stride = step.constant if not step.terms and step.constant > 0 else None
        if first is None or last is None or stride is None:
            certain = False
            reader.forms.lose(low, high, step)
            reader.forms[argument] = unknown()
            continue
        if first[0] >= last[1]:
            reader.unreached = True
            reader.forms[argument] = unknown()
            continue
        fixed = not low.terms and not high.terms
        certain = certain and fixed
        variable = Variable(first[0], last[1], stride if fixed else 1, full=fixed)
        reader.forms[argument] = Linear(0, (*origin.terms, (variable, 1)))
    reader.read_regions(op, certain=certain)
    reader.unreached = unreached


def _common_origin(low: Linear, high: Linear) -> tuple[Linear, Linear, Linear]:
    """What both bounds of a loop count from, and the bounds counted from there."""
    (origin, from_low), (other, from_high) = low.split(), high.split()
    if origin.symbols() != other.symbols():
        return Linear(0), low, high
    return origin, from_low, from_high


def _scf_if(reader: BodyReader, op: ir.Operation) -> None:
    guard = _guard(reader, op.operands[0])
    before = reader.certain, reader.guards
    for k, region in enumerate(op.regions):
        narrowed = guard is not None and k == 0
        reader.certain = before[0] and narrowed
        reader.guards = (*before[1], guard) if narrowed and guard is not None else before[1]
        for block in region.blocks:
            reader.read_block(block)
    reader.certain, reader.guards = before


# arith.cmpi's predicates by number, as bounds on the left side against a constant on the right:
# (low, high).
_BOUNDS_OF_PREDICATE: dict[int, Callable[[int], tuple[int | None, int | None]]] = {
    0: lambda k: (k, k),  # eq
    2: lambda k: (None, k - 1),  # slt
    3: lambda k: (None, k),  # sle
    4: lambda k: (k + 1, None),  # sgt
    5: lambda k: (k, None),  # sge
    6: lambda k: (0, k - 1),  # ult
    7: lambda k: (0, k),  # ule
}


def _guard(reader: BodyReader, condition: ir.Value) -> Guard | None:
    """`form < constant` and its kin as a guard; None for any other condition."""
    op = defining(condition)
    if op is None or op.name != "arith.cmpi":
        return None
    predicate = op.attributes["predicate"].value
    form, limit = reader.forms.of(op.operands[0]), reader.forms.of(op.operands[1])
    bounds = form.bounds()
    if limit.terms or not form.terms or bounds is None or predicate not in _BOUNDS_OF_PREDICATE:
        reader.forms.lose(form, limit)
        return None
    if predicate in (6, 7) and (bounds[0] < 0 or limit.constant < 0):
        return None
    return Guard(form, *_BOUNDS_OF_PREDICATE[predicate](limit.constant))


def _gpu_launch(reader: BodyReader, op: ir.Operation) -> None:
    """Block arguments: block ids, thread ids, grid sizes, block sizes, x y z each."""
    first = operand_segments(op)[0]
    sizes = [reader.forms.of(op.operands[first + k]) for k in range(6)]
    arguments = list(op.regions[0].blocks[0].arguments)
    ids_before = reader.forms.launch_ids
    launch_ids: dict[tuple[str, str], Linear] = {}
    certain = True
    for k, size in enumerate(sizes):
        known = not size.terms
        certain = certain and known and size.constant > 0
        variable = Variable(0, size.constant, full=True) if known else Variable(None)
        form = Linear(0, ((variable, 1),))
        ids, extents = ("block_id", "grid_dim") if k < 3 else ("thread_id", "block_dim")
        axis = "xyz"[k % 3]
        launch_ids[ids, axis] = reader.forms[arguments[k]] = form
        launch_ids[extents, axis] = reader.forms[arguments[6 + k]] = size
    reader.forms.launch_ids = launch_ids
    reader.read_regions(op, certain=certain)
    reader.forms.launch_ids = ids_before


def _certain_regions(reader: BodyReader, op: ir.Operation) -> None:
    reader.read_regions(op, certain=True)


def _uncertain_regions(reader: BodyReader, op: ir.Operation) -> None:
    reader.read_regions(op, certain=False)


CONTROL: dict[str, Callable[[BodyReader, ir.Operation], None]] = {
    "scf.for": _scf_for,
    "scf.parallel": _scf_parallel,
    "scf.if": _scf_if,
    "scf.while": _uncertain_regions,
    "scf.execute_region": _certain_regions,
    "scf.index_switch": _uncertain_regions,
    "scf.reduce": _certain_regions,
    "memref.alloca_scope": _certain_regions,
    "affine.for": _affine_for,
    "affine.parallel": _affine_parallel,
    "affine.if": _uncertain_regions,
    "gpu.launch": _gpu_launch,
    "avial.task": _certain_regions,
    "avial.replicate": _certain_regions,
    "avial.converge": _uncertain_regions,
}
