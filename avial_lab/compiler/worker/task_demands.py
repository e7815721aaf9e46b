"""What the tasks of a program of tasks ask of the machine, for those who plan its runs.

Module in the avial dialect -> Demand by the task's name. Equal bodies are counted once: tasks of a
blocked algorithm differ in buffers and offsets alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlir import ir

from avial_lab.compiler.analysis.costs.demand import demand_of
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.inline_calls import InlineCalls
from avial_lab.core.errors import AvialError
from avial_lab.machine.demand import Demand

_TO_LOOPS = (InlineCalls(), "convert-linalg-to-affine-loops")

_VALUE = re.compile(r"%\w+|\^bb\d+")
_OWN = re.compile(r"(?:%\w+|\^bb\d+)(?=\[|:| =|\()")
_LOOPS = re.compile(r"parallel \(([^()]*)\) =")
"""Values that are made in a task, and memory: what stands in brackets behind it are numbers."""
_OFFSET = re.compile(r", offset: \d+|(?<=memref\.subview )%\w+\s*\[[^\]]*\]")
_NAME = re.compile(r'"name" = "[^"]*"|name = "[^"]*"')


def task_demands(module: ir.Operation) -> dict[str, Demand]:
    """Of the tasks whose iterations are known; `module` stays as it is."""
    work = module.clone().operation
    try:
        run_passes(work, _TO_LOOPS)
    except AvialError:
        work = module  # what cannot be rewritten is counted as it stands
    return dict(_demands(work))


def _demands(module: ir.Operation) -> Iterator[tuple[str, Demand]]:
    known: dict[str, Demand | None] = {}
    # Printed once: the text of one operation takes as long as that of all.
    texts = str(module).split('"avial.task"(')[1:]
    tasks = list(operations_named(module, "avial.task"))
    for task, text in zip(tasks, texts, strict=True):
        key = _shape_of(text)
        if key not in known:
            known[key] = demand_of(task)
        demand = known[key]
        if demand is not None:
            yield text_attribute(task, "name"), demand


def _shape_of(text: str) -> str:
    """The text of a task, whatever its values are called and wherever its views begin."""
    text = _OFFSET.sub("", _NAME.sub("", text.partition("omp.terminator")[0]))
    # A number from outside keeps its name, and with it its value.
    own = set(_OWN.findall(text))
    own |= {name for loops in _LOOPS.findall(text) for name in loops.split(", ")}
    names = {name: name for name in _VALUE.findall(text) if name not in own}
    return _VALUE.sub(lambda found: names.setdefault(found[0], f"%{len(names)}"), text)
