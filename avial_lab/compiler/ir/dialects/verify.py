"""What the avial dialect asks of a program beyond what IRDL can say.

Module -> nothing, or VerifyError at the place of the mistake.
"""

from __future__ import annotations

import math
from difflib import get_close_matches

from mlir import ir

from avial_lab.compiler.ir.dialects.avial import SEGMENTS, buffer_of, operand_segments
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.core.errors import VerifyError
from avial_lab.core.words import listed
from avial_lab.machine.devices import KINDS
from avial_lab.machine.devices.cuda import KNOWN_CHIPS, is_of_nobody

_PARENTS = {
    "avial.target": ("avial.schedule", "avial.converge"),
    "avial.task": ("avial.schedule", "avial.converge"),
    "avial.replicate": ("avial.schedule", "avial.converge"),
    "avial.converge": ("avial.schedule",),
    "avial.schedule": ("func.func",),
}
_TARGET_WORDS = ("arch", "node", "name")
_TARGET_KEYS = (*_TARGET_WORDS, "rank")
_FAMILIES = ", ".join(
    dict.fromkeys(f'for any {kind.noun} arch = "{kind.family}"' for kind in KINDS)
)
_LOOPS = ("affine.for", "scf.for", "scf.while")
_NAMED = ("avial.task", "avial.replicate", "avial.converge")
_PREDICATES = ("lt", "le", "gt", "ge")


def verify_program(module: ir.Module, *, regions: bool = True) -> None:
    """Raise VerifyError unless avial's operations stand where they may, named and wired rightly.

    `regions=False` where it is known already that each region is one block with its terminator.
    """
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name in _PARENTS:
            found.append(op)
        return (
            ir.WalkResult.SKIP
            if name in ("avial.task", "avial.replicate")
            else ir.WalkResult.ADVANCE
        )

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    names: dict[str, ir.Operation] = {}
    for op in found:
        _check_parent(op)
        if regions:
            _check_region(op)
        if op.name in _NAMED:
            _check_name(op, names)
        if op.name in ("avial.task", "avial.replicate"):
            _check_work(op)
        elif op.name == "avial.schedule":
            if len(op.attributes):
                raise VerifyError("avial.schedule has no attributes", span=span_of(op.location))
            for handle in op.operands:
                _check_buffer(op, handle)
        elif op.name == "avial.converge":
            _check_converge(op)
        elif op.name == "avial.target":
            _check_target(op)
    if not names:
        first = next((op for op in found if op.name == "avial.schedule"), None)
        raise VerifyError(
            "the program has no task",
            span=span_of(first.location) if first is not None else None,
            hint='add one: avial.schedule %a { %cpu = avial.target {arch = "cpu"} '
            "%t = avial.task %cpu, %a { … } }",
        )


def _check_parent(op: ir.Operation) -> None:
    around = op.parent
    if op.name in ("avial.task", "avial.replicate"):  # in a loop that a converge holds
        while around is not None and around.operation.name in _LOOPS:
            around = around.operation.parent
    parent = around.operation.name if around is not None else "nothing"
    if parent not in _PARENTS[op.name]:
        raise VerifyError(
            f"{op.name} is in {parent}",
            span=span_of(op.location),
            hint=f"it belongs in {' or '.join(_PARENTS[op.name])}",
        )


def _check_region(op: ir.Operation) -> None:
    """One block that ends in omp.terminator."""
    for region in op.regions:
        blocks = list(region.blocks)
        if len(blocks) > 1:
            raise VerifyError(
                f"{op.name} has several blocks",
                span=span_of(op.location),
                hint="branch with scf.if and scf.while instead of cf.br",
            )
        last = list(blocks[0])[-1:] if blocks else []
        if not last or last[0].operation.name != "omp.terminator":
            raise VerifyError(
                f"the region of {op.name} does not end in omp.terminator", span=span_of(op.location)
            )
        if len(blocks[0].arguments):
            raise VerifyError(f"the region of {op.name} takes arguments", span=span_of(op.location))


def _check_name(op: ir.Operation, names: dict[str, ir.Operation]) -> None:
    name = ir.StringAttr(op.attributes["name"]).value
    if name in names:
        other = span_of(names[name].location)
        raise VerifyError(
            f"two tasks are named {name}"
            + (f"; the other one is in line {other.line}" if other else ""),
            span=span_of(op.location),
            hint="give one of them another name",
        )
    names[name] = op


def _defining(value: ir.Value) -> str:
    owner = value.owner
    return "" if isinstance(owner, ir.Block) else owner.operation.name


def _check_work(op: ir.Operation) -> None:
    if SEGMENTS not in op.attributes:
        raise VerifyError(f"{op.name} has no {SEGMENTS}", span=span_of(op.location))
    sizes = operand_segments(op)
    operands = op.operands
    if _defining(operands[0]) != "avial.target":
        raise VerifyError(
            f"the first operand of {op.name} is not an avial.target", span=span_of(op.location)
        )
    for k in range(1, 1 + sizes[1] + sizes[2]):
        _check_buffer(op, operands[k])
    for k in range(1 + sizes[1] + sizes[2], len(operands)):
        _check_waits(op, operands[k])


def _check_buffer(op: ir.Operation, handle: ir.Value) -> None:
    if not isinstance(buffer_of(handle).type, ir.MemRefType | ir.UnrankedMemRefType):
        raise VerifyError(
            f"{op.name} lists a value that is not a memref",
            span=span_of(op.location),
            hint="%ref = builtin.unrealized_conversion_cast %a : memref<…> to !avial.buffer_ref",
        )


def _check_waits(op: ir.Operation, value: ir.Value) -> None:
    if _defining(value) not in _NAMED:
        raise VerifyError(f"{op.name} can wait only for tasks", span=span_of(op.location))


def _check_converge(op: ir.Operation) -> None:
    sizes = operand_segments(op)
    attributes, span = op.attributes, span_of(op.location)
    if bool(sizes[0]) != ("predicate" in attributes) or bool(sizes[0]) != (
        "threshold" in attributes
    ):
        raise VerifyError("avial.converge needs until, predicate and threshold together", span=span)
    if "max" not in attributes:
        _check_one_loop(op)
    else:
        rounds = ir.IntegerAttr(attributes["max"])
        if str(rounds.type) != "i64" or rounds.value < 1:
            raise VerifyError(f"max of avial.converge is {rounds}, not an i64 above 0", span=span)
    if sizes[0]:
        threshold = attributes["threshold"]
        if str(threshold.type) != "f64" or not math.isfinite(ir.FloatAttr(threshold).value):
            raise VerifyError(f"threshold of avial.converge is {threshold}, not an f64", span=span)
    if "predicate" in attributes and str(attributes["predicate"]).strip('"') not in _PREDICATES:
        raise VerifyError(f"the predicate is one of {', '.join(_PREDICATES)}", span=span)
    if not any(inner.name in _NAMED for inner in operations_in(op) if inner != op):
        raise VerifyError("avial.converge has no task", span=span)
    for value in list(op.operands)[sizes[0] :]:
        _check_waits(op, value)


def _check_one_loop(op: ir.Operation) -> None:
    """Without a number of rounds a loop says how many there are."""
    loops = [view.operation for view in op.regions[0].blocks[0] if len(view.operation.regions)]
    if [loop.name in _LOOPS for loop in loops] != [True]:
        raise VerifyError(
            "avial.converge without a number of rounds holds one loop",
            span=span_of(op.location),
            hint=f"around its tasks: {listed(_LOOPS)}",
        )


def _is_rank(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.IntegerAttr) and attribute.value >= 0


def _check_target(op: ir.Operation) -> None:
    for key in op.attributes:
        if key not in _TARGET_KEYS:
            near = get_close_matches(key, _TARGET_KEYS, n=1)
            raise VerifyError(
                f"avial.target has no attribute '{key}'",
                span=span_of(op.location),
                hint=f"did you mean {near[0]}?" if near else f"it has {', '.join(_TARGET_KEYS)}",
            )
    if "arch" in op.attributes and str(op.attributes["arch"]) == '""':
        raise VerifyError(
            "arch of avial.target is empty",
            span=span_of(op.location),
            hint=_FAMILIES,
        )
    if "rank" in op.attributes and not _is_rank(op.attributes["rank"]):
        raise VerifyError(
            f"rank of avial.target is {op.attributes['rank']}, not the number of a rank",
            span=span_of(op.location),
            hint="rank = 0",
        )
    for key in _TARGET_WORDS:
        if key in op.attributes and not isinstance(op.attributes[key], ir.StringAttr):
            raise VerifyError(
                f"{key} of avial.target is {op.attributes[key]}, not a string",
                span=span_of(op.location),
                hint=f'{key} = "…"',
            )
    arch = ir.StringAttr(op.attributes["arch"]).value if "arch" in op.attributes else ""
    if is_of_nobody(arch):
        near = get_close_matches(arch, KNOWN_CHIPS, n=1)
        raise VerifyError(
            f"no GPU has the compute capability {arch}",
            span=span_of(op.location),
            hint=f"did you mean {near[0]}?" if near else f"there are {', '.join(KNOWN_CHIPS)}",
        )
