"""The loops around tasks: a structured program's tasks in order, each with the groups it is in.

Function -> targets, tasks and replicates in textual order with the names of the loops and
conditions around them, and those as Groups.

    avial.converge { affine.for %t = 0 to 20 {       Group("loop1", "20 times")
      avial.replicate …                              S1 in ("loop1",)
      scf.if %c { avial.task … } } }                 S2 in ("loop1", "if1")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.accesses.index_forms import IndexForms
from avial_lab.compiler.analysis.accesses.linear import Linear, apply_map, extreme
from avial_lab.compiler.ir.dialects.avial import buffer_of, operand_segments
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.program import schedules_of
from avial_lab.core.regions import iterations
from avial_lab.planning.task_graph import Group

ROUNDS = "avial.rounds"
"""On a converge whose loop is written out: how often it goes round, in words."""

_PLACED = ("avial.target", "avial.task", "avial.replicate")
_LOOPS = ("affine.for", "scf.for", "scf.while", "affine.parallel", "scf.parallel")
_CONDITIONS = ("affine.if", "scf.if", "scf.index_switch")


@dataclass
class Grouped:
    """What stands in the schedules of a function; `groups` is complete after one walk."""

    function: ir.Operation
    groups: list[Group] = field(default_factory=list[Group])

    def operations(self) -> Iterator[tuple[ir.Operation, tuple[str, ...]]]:
        """Targets, tasks and replicates, with the names of the groups around each."""
        for schedule in schedules_of(self.function):
            yield from self._inside(schedule, ())

    def _inside(
        self, op: ir.Operation, around: tuple[str, ...]
    ) -> Iterator[tuple[ir.Operation, tuple[str, ...]]]:
        for view in (view for region in op.regions for block in region for view in block):
            inner = view.operation
            if inner.name in _PLACED:
                yield inner, around
            elif self._is_group(inner, op):
                group = self._group(inner, around)
                self.groups.append(group)
                yield from self._inside(inner, (*around, group.name))
            else:
                yield from self._inside(inner, around)

    def _is_group(self, op: ir.Operation, parent: ir.Operation) -> bool:
        """A converge, with the loop it holds; another loop or condition around tasks."""
        if op.name == "avial.converge":
            return True
        held = op.name in _LOOPS and parent.name == "avial.converge"
        return op.name in (*_LOOPS, *_CONDITIONS) and not held and _holds_tasks(op)

    def _group(self, op: ir.Operation, around: tuple[str, ...]) -> Group:
        loop = op.name not in _CONDITIONS
        name = name_of(op.location) if op.name == "avial.converge" else None
        if "name" in op.attributes:
            name = ir.StringAttr(op.attributes["name"]).value
        taken = sum(group.loop is loop for group in self.groups)
        name = name or f"{'loop' if loop else 'if'} {taken + 1}"
        return Group(name, _words(op), loop, around, span_of(op.location))


def _holds_tasks(op: ir.Operation) -> bool:
    return any(
        view.operation.name in _PLACED or _holds_tasks(view.operation)
        for region in op.regions
        for block in region
        for view in block
    )


def _words(op: ir.Operation) -> str:
    """How often it runs, as far as that is known."""
    if op.name in _CONDITIONS:
        return "if its condition holds"
    if op.name == "avial.converge":
        if "max" in op.attributes:
            return rounds_of(op)
        if ROUNDS in op.attributes:
            return ir.StringAttr(op.attributes[ROUNDS]).value
        held = [v.operation for v in op.regions[0].blocks[0] if v.operation.name in _LOOPS]
        return _words(held[0]) if len(held) == 1 else "in order"
    count = _rounds(op)
    if count is None:
        return "until a condition on data ends it" if op.name == "scf.while" else "in order"
    return _times(count)


def rounds_of(op: ir.Operation) -> str:
    """How often a converge as people write it goes round: `until e < 0.001, at most 200 times`."""
    times = _times(ir.IntegerAttr(op.attributes["max"]).value)
    if not operand_segments(op)[0]:
        return times
    sign = _SIGNS[ir.StringAttr(op.attributes["predicate"]).value]
    threshold = ir.FloatAttr(op.attributes["threshold"]).value
    name = name_of(buffer_of(op.operands[0]).location) or "its value"
    return f"until {name} {sign} {threshold:g}, at most {times}"


_SIGNS = {"lt": "<", "le": "≤", "gt": ">", "ge": "≥"}


def _times(count: int) -> str:
    return f"{count:,} time{'s' if count != 1 else ''}"


def _rounds(op: ir.Operation) -> int | None:
    """How often the loop goes round, where its bounds are constants."""
    forms = IndexForms()
    if op.name == "scf.for":
        low, high, step = (forms.of(op.operands[k]) for k in range(3))
    elif op.name == "affine.for":
        lower, upper = (op.attributes[f"{end}BoundMap"].value for end in ("lower", "upper"))
        operands = [forms.of(operand) for operand in op.operands]
        low = extreme(apply_map(lower, operands[: lower.n_inputs]), max)
        high = extreme(apply_map(upper, operands[lower.n_inputs :][: upper.n_inputs]), min)
        step = Linear(op.attributes["step"].value)
    else:
        return None
    if low.terms or high.terms or step.terms or step.constant <= 0:
        return None
    return iterations(low.constant, high.constant, step.constant)
