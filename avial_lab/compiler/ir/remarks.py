"""What a pass made of a phase's loops, or why it left them: lines for people, kept on the phase.

Operation in a phase -> the phase with one more line in `avial.done`; module -> the lines of each.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from avial_lab.compiler.ir.attributes import OF_TASK
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import functions_in, operations_named

SUMS = "avial.sums"
"""On a function: floating-point sums or products of so many terms are added in another order."""

DONE = "avial.done"
"""On a function that is a phase, or on a task or converge: lines, in the passes' order."""

PHASES = {"func.func": OF_TASK, "avial.converge": "name", "avial.task": "name"}
"""What lines are kept on, and where the name of its task stands."""

UNNAMED = "(unnamed)"
"""In place of the variable of a loop that a pass made."""


def add_remark(op: ir.Operation | None, who: object, what: str) -> None:
    """Keep `who: what` on the phase around `op`, once; `who` is the pass with the sizes it took."""
    phase = None if op is None else phase_of(op)
    if phase is None:
        return
    known = lines_of(phase)
    line = f"{who}: {what}"
    if line not in known:
        lines = [ir.StringAttr.get(text, phase.context) for text in (*known, line)]
        phase.attributes[DONE] = ir.ArrayAttr.get(lines, phase.context)


def phase_of(op: ir.Operation) -> ir.Operation | None:
    """What a line on `op` is kept on; to be asked before `op` is gone."""
    phase: ir.Operation | None = op
    while phase is not None and phase.name not in PHASES:
        phase = parent_of(phase)
    return phase


def lines_of(phase: ir.Operation) -> tuple[str, ...]:
    if DONE not in phase.attributes:
        return ()
    return tuple(ir.StringAttr(line).value for line in ir.ArrayAttr(phase.attributes[DONE]))


def remarks_in(module: ir.Operation) -> dict[str, tuple[str, ...]]:
    """The lines of each phase that has some, by its name."""
    return {
        text_attribute(op, PHASES[op.name]): lines_of(op)
        for op in operations_named(module, *PHASES)
        if DONE in op.attributes and PHASES[op.name] in op.attributes
    }


def loop_name(loop: ir.Operation) -> str:
    """Of its variable; of several, as in `i, j`; `(unnamed)` for one that a pass made."""
    variables = list(loop.regions[0].blocks[0].arguments)
    places = len(variables) - len(loop.results) if loop.name.endswith(".for") else len(variables)
    return ", ".join(name_of(each.location) or UNNAMED for each in variables[:places])


def listed(names: Iterable[str]) -> str:
    """
    >>> listed(["i"]), listed(["i", "j", "k"])
    ('i', 'i, j and k')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def note_terms(op: ir.Operation, terms: int) -> None:
    """Of the longest sum that is in another order, in the function that `op` is or stands in."""
    function = phase_of(op)
    assert function is not None, "loops stand in functions"
    known = ir.IntegerAttr(function.attributes[SUMS]).value if SUMS in function.attributes else 0
    if terms > known:
        function.attributes[SUMS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), terms)


def reordered_sums(module: ir.Operation) -> dict[str, int]:
    """The tasks whose sums have been reordered, with the number of terms of the longest."""
    return {
        ir.StringAttr(op.attributes[OF_TASK]).value: ir.IntegerAttr(op.attributes[SUMS]).value
        for op in functions_in(module)
        if SUMS in op.attributes
    }


def say_why(op: ir.Operation, line: str) -> None:
    """One more line of what explains where and how a task or phase runs."""
    known = list(ir.ArrayAttr(op.attributes[_WHY])) if _WHY in op.attributes else []
    op.attributes[_WHY] = ir.ArrayAttr.get([*known, ir.StringAttr.get(line)])


_WHY = "avial.why"
