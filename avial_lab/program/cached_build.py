"""The answer to a question for a binary: from the disk where it was asked before; and where one of
our passes fails, without those that could be.

Build -> Built.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from avial_lab.artifact.explanation import LoopReport
from avial_lab.compiler.catalogue import OPTIONAL
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.requests import Build, Built, Source
from avial_lab.core.cache import digest, fingerprint, made_once, spelled
from avial_lab.core.errors import (
    AvialError,
    CompilerCrash,
    CompilerTimeout,
    FaultWarning,
    InternalError,
    ScheduleError,
)
from avial_lab.machine.real_gpus import chips_here, gpus_here
from avial_lab.planning.task_graph import Group, Task
from avial_lab.program.compiler_client import save_reproducer, shared_compiler


def build(
    question: Build, timeout: float | None, progress: Callable[[str], None] | None = None
) -> Built:
    """The answer to `question`, whatever its cell was when it was asked before: one that runs again
    has another number. How much a run may take of a GPU's memory changes nothing of it, either.

    Raises what prevents it. An internal fault in passes that a program can do without is a
    FaultWarning at whoever called `build`'s caller, and a slower program.
    """
    question = replace(question, chips=_chips_for(question))
    anywhere = replace(
        question,
        source=replace(question.source, cell=""),
        options=replace(question.options.settled, gpu_memory=None),
    )
    key = digest(repr(fingerprint()), spelled(anywhere))
    try:
        built = made_once("programs", key, lambda: _asked(question, timeout, progress))
    except CompilerTimeout:
        raise
    except CompilerCrash as crash:  # which may not come again: the answer is not kept
        built = _asked_plainer(question, crash, timeout)
    if built.fault:
        warnings.warn(built.fault, FaultWarning, stacklevel=3)
    return _in_cell(built, question.source)


_NAMES_GPUS = re.compile(r"gpu|cuda|sm_")


def _chips_for(question: Build) -> tuple[str, ...]:
    """Of the GPUs here that the program may run on; its text or an option asks for them."""
    options = question.options
    if options.driver == "apart":
        return ()
    asks = options.driver or options.on or options.gpus or _NAMES_GPUS.search(question.source.text)
    found = chips_here() if asks else ()
    if options.driver == "cuda" and not found:
        raise ScheduleError(
            f"no GPU of NVIDIA's was found on this machine: {gpus_here().missing}",
            hint="leave out --driver cuda: an emulated GPU runs the same kernels",
        )
    return found


def _asked(question: Build, timeout: float | None, progress: Callable[[str], None] | None) -> Built:
    try:
        return shared_compiler().ask(question, timeout_s=timeout, progress=progress)
    except InternalError as fault:
        return _asked_plainer(question, fault, timeout)


def _asked_plainer(question: Build, fault: AvialError, timeout: float | None) -> Built:
    """The answer to the first plainer question that has one; else the fault is raised."""
    for plainer, what in _plainer(question, fault):
        try:
            built: Built = shared_compiler().ask(plainer, timeout_s=timeout)
        except AvialError:
            continue
        return replace(built, fault=_fault_words(question, fault, what))
    raise fault


def _plainer(question: Build, fault: AvialError) -> Iterator[tuple[Build, str]]:
    """The question again with less for our passes to do, and what that costs."""
    fixed = replace(question, options=replace(question.options, dynamic=False))
    if fixed != question:
        yield fixed, "for these sizes and numbers only"
    left_out = replace(fixed, options=replace(fixed.options, without=OPTIONAL, sizes=()))
    if left_out != fixed:
        yield left_out, "without optional loop passes, and runs slower"
    if not holds_schedule(question.source.text):
        whole = f"a fault in avial_lab: {_first_line(fault)}"
        yield replace(left_out, whole=whole), "as one task on one rank"


def _fault_words(question: Build, fault: AvialError, what: str) -> str:
    first = _first_line(fault)
    return (
        f"a fault in avial_lab ({first}): the program was compiled {what}{_saved(question, fault)}"
    )


def _saved(question: Build, fault: AvialError) -> str:
    """Where the program lies for whoever looks for the fault; a crash has saved it already."""
    if isinstance(fault, CompilerCrash):
        return f"; {(fault.hint or '').partition(';')[0]}"
    where = save_reproducer(question, "a fault in avial_lab", str(fault))
    return f"; a reproducer is in {where}" if where is not None else ""


def _first_line(fault: AvialError) -> str:
    return fault.message.partition("\n")[0]


# Places -------------------------------------------------------------------------------------------

Placed = TypeVar("Placed", Task, Group, LoopReport)


def _in_cell(built: Built, source: Source) -> Built:
    """The same with its places in the cell of that name; those in other files (an MLIR text may
    say that it was made of one) stay.
    """
    schedule = built.schedule
    graph = replace(
        schedule.graph,
        tasks=tuple(_placed(task, source) for task in schedule.graph.tasks),
        groups=tuple(_placed(group, source) for group in schedule.graph.groups),
    )
    reports = tuple(_placed(report, source) for report in built.reports)
    return replace(built, schedule=replace(schedule, graph=graph), reports=reports)


def _placed(item: Placed, source: Source) -> Placed:
    span = item.span
    if span is None or span.text != source.shown:
        return item
    return replace(item, span=replace(span, cell=source.cell))
