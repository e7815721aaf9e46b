"""A stage edited by hand, and the way on from there.

The program as it was built, a stage's new text -> Built with that stage and all that follow from it
marked. What is wrong with the text is told at its place in it (`stage mpi:12:7`).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mlir import ir

from avial_lab.artifact.binary import MachineCode
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.llvm import (
    assemble_command,
    assembled,
    binary_of,
    compile_llvm_ir,
    verify_command,
)
from avial_lab.compiler.frontends.mlir.foreign import name_printed
from avial_lab.compiler.frontends.notation.source import Source as Text
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.dialects.verify import verify_program
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.program import PROGRAMS, scheduled_function, tasks_of
from avial_lab.compiler.lowering import facts, lower, machine_code, run
from avial_lab.compiler.lowering import stages as lowering_stages
from avial_lab.compiler.lowering.facts import finished_phases
from avial_lab.compiler.lowering.gpu import ptx_stages
from avial_lab.compiler.lowering.run import Stages, Watch
from avial_lab.compiler.lowering.stages import (
    finished,
    in_reading_order,
    kernels_of_stages,
    ptx_in,
)
from avial_lab.compiler.passes.placement.place_tasks import PlaceTasks
from avial_lab.compiler.requests import Build, Built, Resume
from avial_lab.compiler.worker.build import (
    Stopwatch,
    build_program,
    build_split,
    graph_of,
    with_code,
)
from avial_lab.core.errors import AvialError, CellSpan, ParseError
from avial_lab.core.toolchain import find_tool, tool
from avial_lab.machine.devices.cuda import chip_in_ptx
from avial_lab.planning.placement import schedule_by_hand
from avial_lab.planning.schedule import Schedule

_BEFORE = {
    "dist": "ptensor",
    "source": "dist",
    "avial": "source",
    "placed": "avial",
    "mpi": "placed",
    "gpu": "host",
    "ptx": "gpu",
    "loops": "mpi",
    "host": "loops",
    "llvm": "host",
    "llvmir": "llvm",
    "object": "llvmir",
}
"""Which stage each is made of."""

ARRAYS = ("ptensor", "dist")
"""Stages of programs of arrays, before these are loops."""

_MARK = re.compile(r", (?:edited by hand|after \S+ was edited by hand).*$")
_COMPLAINT = re.compile(r":(\d+):(\d+): error: (.*)")
_TO_READ = " (not what runs: the program keeps the kernels that it had)"


def resumed(question: Resume) -> Built:
    """The program with `question.text` in place of what its stage was.

    Raises ParseError or VerifyError for a text that is none, AvialError for a stage that there is
    not, and whatever the passes from there on find.
    """
    name, built = question.stage, question.built
    if built.dynamic:
        raise AvialError(
            "stages of a program compiled for any sizes cannot be edited",
            hint="compile it for fixed sizes",
        )
    known = {stage.name: stage for stage in built.stages}
    if name not in known or known[name].language == "text":
        listed = ", ".join(s.name for s in built.stages if s.language != "text")
        raise AvialError(f"there is no stage '{name}' to edit", hint=f"there are: {listed}")
    if is_program(question):
        made = build_program(edited_build(question))
        before = (stage for stage in built.stages if not follows(stage.name, name))
        kept = tuple(stage for stage in before if stage.name in ARRAYS and stage.name != name)
        return _marked(question, replace(made, stages=(*kept, *made.stages)))
    if name == "avial":
        module = read_stage(question)
        return _marked(question, build_split(edited_build(question), module, module, Stopwatch()))
    if _places_tasks(question):
        return _placed_by_hand(question)
    if name in ("gpu", "object") or name.startswith("ptx:"):
        return _marked(question, _end_edited(question))
    return _marked(question, _lowered_again(question))


def is_program(question: Resume) -> bool:
    """Whether the edited stage is the program itself, or can be read as one."""
    first = question.built.stages[0].name
    return question.stage == first or (first in ARRAYS and question.stage in (*ARRAYS, "source"))


def _places_tasks(question: Resume) -> bool:
    """Whether the edited stage is that of tasks on their devices."""
    text = next(stage.text for stage in question.built.stages if stage.name == question.stage)
    return question.stage == "placed" and PROGRAMS in text


def edited_build(question: Resume) -> Build:
    """The question that the edited program would have been the answer to."""
    return replace(
        question.build,
        source=question.source,
        topology=question.built.schedule.topology,
        options=replace(question.build.options, dynamic=False),
    )


# -- reading ---------------------------------------------------------------------------------------


def read_stage(question: Resume) -> ir.Operation:
    """The edited module, verified; its values keep their names, its places are lines of the
    stage.
    """
    context = ir.Context()
    register(context)
    source = question.source
    try:
        with context:
            module = ir.Module.parse(source.text)
            name_printed(module, Text(source.text, source.cell))
            if _places_tasks(question):
                verify_program(module)  # (what passes made of loops has forms that no one types)
    except ir.MLIRError as error:
        if not error.error_diagnostics:
            raise ParseError(str(error)) from None
        first = error.error_diagnostics[0]
        place = (first.location.start_line, first.location.start_col)
        raise _mistake(question, first.message, *place) from None
    return module.operation


def _mistake(question: Resume, message: str, line: int, column: int) -> ParseError:
    span = CellSpan(question.source.cell, question.text, line, column)
    return ParseError(message, span=span, hint="nothing was built; the program is unchanged")


def _check_with(command: Iterable[str], question: Resume) -> None:
    """ParseError at the first thing that a tool complains of."""
    program, *arguments = command
    done = subprocess.run(
        [str(tool(program)), *arguments, "-"],
        input=question.text,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return
    found = _COMPLAINT.search(done.stderr)
    if found is None:
        said = done.stderr.strip().splitlines()
        raise ParseError(said[0] if said else f"{program} does not accept it")
    raise _mistake(question, found[3], int(found[1]), int(found[2]))


def _check_ptx(question: Resume) -> None:
    """By NVIDIA's assembler, where it is installed: nothing else here reads PTX."""
    ptxas = find_tool("ptxas")
    chip = chip_in_ptx(question.text)
    if chip is None:
        raise ParseError("PTX begins with .version, .target sm_… and .address_size")
    if ptxas is None:
        return
    command = [str(ptxas), f"--gpu-name={chip}", "-", "-o", "/dev/null"]
    done = subprocess.run(
        command, input=question.text, capture_output=True, encoding="utf-8", check=False
    )
    found = re.search(r"line (\d+); (?:error|fatal)\s*: (.*)", done.stderr + done.stdout)
    if done.returncode != 0 and found is not None:
        raise _mistake(question, found[2], int(found[1]), 1)


# -- the way on ------------------------------------------------------------------------------------


def stages_on(question: Resume, module: ir.Operation, *, watch: Watch | None = None) -> Stages:
    """The stages after an edited one of MLIR, whose module is changed on the way."""
    name, cpu = question.stage, question.build.options.cpu_target
    if name == "llvm":
        yield from machine_code.lower_llvm(module, cpu=cpu)
    elif name == "host":
        yield from lower.lower_host(module, question.text, watch=watch, cpu=cpu)
    elif name == "loops":
        yield from lower.lower_loops(module, watch=watch, cpu=cpu)
    else:
        on = lower.lower_mpi if name == "mpi" else lower.lower_placed
        yield from on(module, question.build.options, watch=watch)


def watched_stages(question: Resume, watch: Watch) -> Stages:
    """The edited stage, where it is one of MLIR before machine code, and those after it."""
    edited = next(stage for stage in question.built.stages if stage.name == question.stage)
    if _places_tasks(question):
        module, _ = placed_by_hand(question)
    else:
        module = read_stage(question)
    yield replace(edited, text=question.text), module
    if question.stage == "avial":
        build, built = edited_build(question), question.built
        on = lower.lower_structured(
            module,
            module,
            built.schedule.topology,
            build.options.division,
            build.options,
            watch=watch,
        )
        yield from (item for item in on if item[0].name not in ("source", "avial"))
    else:
        yield from stages_on(question, module, watch=watch)


def _lowered_again(question: Resume) -> Built:
    """From a stage between the program and machine code."""
    phases = _names(question)
    if question.stage == "llvmir":
        _check_with(verify_command(), question)
        machine = compile_llvm_ir(question.text, cpu=question.build.options.cpu_target)
        made, code = finished(iter([lowering_stages.object_stage(machine)]))
    else:
        module = read_stage(question)
        edited = facts.phases_in(module) if question.stage == "mpi" else ()
        on = finished_phases(stages_on(question, module))
        made, code = on.stages, on.code
        phases = edited or on.phases or phases
    return _with_code(question, made, code, phases)


def _with_code(
    question: Resume, made: Iterable[Stage], code: MachineCode, phases: tuple[str, ...]
) -> Built:
    """`built` with these stages and machine code; the plan of a program of loops is made anew."""
    return with_code(question.built, code, _replaced(question, made), phases)


def _names(question: Resume) -> tuple[str, ...]:
    """Of the phases (or tasks) as the program was, by number."""
    return tuple(name for name, _ in question.built.binary.manifest.tasks)


def _end_edited(question: Resume) -> Built:
    """From a stage that nothing of MLIR comes after."""
    built, name = question.built, question.stage
    as_it_was = MachineCode(built.binary.shared_object, "")
    phases = _names(question)
    if name == "object":
        _check_with(assemble_command(), question)
        llvm_ir = next(stage.text for stage in built.stages if stage.name == "llvmir")
        return _with_code(question, (), assembled(question.text, llvm_ir), phases)
    made: list[Stage] = []
    if name.startswith("ptx:"):
        _check_ptx(question)
    if name == "gpu":
        read_stage(question)
        names = [s.name.partition(":")[2] for s in built.stages if s.name.startswith("ptx:")]
        made = list(ptx_stages(question.text, names))
    return _with_code(question, made, as_it_was, phases)


def _placed_by_hand(question: Resume) -> Built:
    """The tasks go where the text says; what has to be sent for it is found anew."""
    module, schedule = placed_by_hand(question)
    text = lowering_stages.text_of(module)
    made, code = finished(lower.lower_placed(module, question.build.options))
    stages = _replaced(replace(question, text=text), made)
    manifest = KnownMessages.of(schedule, kernels_of_stages(stages, schedule.topology))
    binary = binary_of(code, manifest, ptx=ptx_in(stages))
    built = replace(question.built, schedule=schedule, stages=stages, binary=binary)
    return _marked(replace(question, text=text), built)


def placed_by_hand(question: Resume) -> tuple[ir.Operation, Schedule]:
    """The edited tasks under a schedule that puts each on its `avial.device`."""
    module = read_stage(question)
    old = question.built.schedule
    graph = graph_of(module, question.source)
    devices: dict[str, str] = {}
    for task in tasks_of(scheduled_function(module)):
        name = text_attribute(task, "name")
        devices[name] = text_attribute(task, "avial.device")
    schedule = schedule_by_hand(graph, old.topology, devices, sync=old.sync)
    run.run_passes(module, (PlaceTasks(schedule),))
    return module, schedule


# -- the marks -------------------------------------------------------------------------------------


def _replaced(question: Resume, made: Iterable[Stage]) -> tuple[Stage, ...]:
    """The old stages with the edited one and those made from it in their places."""
    name = question.stage
    old = {stage.name: stage for stage in question.built.stages}
    edited = replace(old[name], text=question.text, command="", seconds=0.0, edited=name)
    new = {name: edited} | {stage.name: stage for stage in made if stage.name != name}
    kept = {stage: old[stage] for stage in old if not follows(stage, name)}
    return in_reading_order((kept | new).values())


def follows(stage: str, edited: str) -> bool:
    """Whether `stage` is made from the edited one."""
    if edited.startswith("ptx:"):
        return False
    above = _BEFORE.get(stage.partition(":")[0])
    while above is not None and above != edited:
        above = _BEFORE.get(above)
    return above == edited


def _marked(question: Resume, built: Built) -> Built:
    """`built` with every stage that is not the compiler's alone saying so."""
    name = question.stage
    old: Mapping[str, Stage] = {stage.name: stage for stage in question.built.stages}
    stages: list[Stage] = []
    for stage in built.stages:
        plain = _MARK.sub("", stage.title)
        if stage.name == name:
            note = _TO_READ if name == "gpu" or name.startswith("ptx:") else ""
            stages.append(replace(stage, title=f"{plain}, edited by hand{note}", edited=name))
        elif follows(stage.name, name):
            title = f"{plain}, after {name} was edited by hand"
            stages.append(replace(stage, title=title, edited=name))
        else:
            stages.append(old.get(stage.name, stage))
    hands = ", ".join(stage.name for stage in stages if stage.edited == stage.name)
    manifest = replace(built.binary.manifest, edited=hands)
    if name in ("llvm", "llvmir", "object") or name.startswith("ptx:"):  # it may be another's now
        plain_rows = tuple(replace(row, images=()) for row in manifest.kernels)
        manifest = replace(manifest, kernels=plain_rows)
    code = MachineCode(built.binary.shared_object, "")
    binary = binary_of(code, manifest, ptx=built.binary.ptx)
    return replace(built, stages=tuple(stages), binary=binary)
