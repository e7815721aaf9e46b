"""`avial-lab plan` and `avial-lab topology`: a run before it happens, and on what."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from avial_lab import plot
from avial_lab.benchmarks.kernel_suite import is_kernel
from avial_lab.cli.commands.search import row_facts
from avial_lab.cli.divided_model import is_mlp, source_of_file, source_of_mlp
from avial_lab.cli.question import (
    check_folders,
    compiled_program,
    is_onnx,
    print_to_stderr,
    question_of,
    read_text,
    writing_to,
)
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.requests import Source
from avial_lab.core.errors import BindError, OptionError
from avial_lab.core.files import written_whole
from avial_lab.core.words import count
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.devices import GPU_FAMILY
from avial_lab.machine.dlti import module_text
from avial_lab.machine.host import busy
from avial_lab.machine.measured import kept
from avial_lab.machine.presets import PRESET, PRESETS
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import topology_text
from avial_lab.planning.foreseen import NOT_LOWERED, Foreseen
from avial_lab.planning.imports import NOT_READ, load_graph
from avial_lab.planning.imports.workflow import Workflow
from avial_lab.planning.memory import check_memory
from avial_lab.planning.model_search import ModelSearch
from avial_lab.planning.parallelism import SEARCH
from avial_lab.planning.planned import PlannedSchedule, best_of, plan_by_each, policy_table
from avial_lab.planning.policies import Policy
from avial_lab.planning.scaling import powers
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.simulator.judge import judge
from avial_lab.program import compilation
from avial_lab.program.divisions import is_on_tensors
from avial_lab.program.inputs import parse_inputs, parse_numbers
from avial_lab.program.model_search import best_division, foresee
from avial_lab.runtime.launch.discovery import measure_hosts, measure_machine
from avial_lab.runtime.launch.hosts import Hosts

ALL = "all"
"""Every policy but the exact one, which is for few tasks and needs OR-tools."""

_OF_A_DIVISION = ("batch", "loss", "of", "gradient", "update")

_GRAPHS = (".json", ".stg", *NOT_READ)


def plan_command(options: argparse.Namespace) -> int:
    if options.judge is not None:
        verdict = judge(options.judge)
        print(verdict)
        return 0 if verdict.good else 1
    if options.program is None:
        raise BindError("nothing to plan", hint="give a program, a workflow, or --judge FILE.json")
    check_folders(options.trace, options.report)
    if options.parallel:
        return _plan_divided(options)
    given = next((name for name in _OF_A_DIVISION if getattr(options, name)), None)
    if given is not None:
        raise OptionError(f"--{given} goes with --parallel", hint="--parallel search, for example")
    if is_mlp(str(options.program)):
        raise OptionError(f"{options.program} has to be divided", hint="--parallel search")
    if _is_of_loops(options.program):
        return _plan_loops(options)
    _refuse(options, "loops", ("ranks", "trips", "report", "on"))
    topology = topology_called(options.topology)
    workflow = _graph(options, topology)
    policies = () if options.policy == ALL else (Policy(options.policy),)
    pins = dict(_pin(text) for text in options.place)
    how: dict[str, Any] = {"seed": options.seed, "budget_s": options.budget, "place": pins}
    found = plan_by_each(workflow, topology, policies, **how)
    plans = [each for each in found if isinstance(each, PlannedSchedule)]
    best = best_of(found)
    if options.trace is not None:
        with writing_to(options.trace):
            best.simulate().save(options.trace)
    if options.json:
        print(json.dumps([_facts(each) for each in plans], indent=2))
        return 0
    title = f"{workflow.name} on {topology.speeds} ({count(topology.ranks, 'rank')}), simulated"
    print(policy_table(found, title))
    if len(plans) == 1:
        print(plot.trace_text(best.simulate(), best, most=20))
    return 0


def _refuse(options: argparse.Namespace, kind: str, names: tuple[str, ...]) -> None:
    """What is for programs of the other kind, and would do nothing here."""
    for name in names:
        if getattr(options, name) not in (None, [], ALL):
            raise BindError(f"--{name} is for programs of {kind}", hint="leave it out")


def _pin(text: str) -> tuple[str, str]:
    task, _, device = text.partition("=")
    if not task or not device:
        raise BindError(f"--place takes TASK=DEVICE, not '{text}'", hint="--place task3=gpu0")
    return task, device


def _is_of_loops(path: Path) -> bool:
    """A kernel, or a text of MLIR without tasks of its own."""
    if is_kernel(path) or is_onnx(path):
        return True
    if path.suffix in _GRAPHS:
        return False
    text = read_text(path)
    return not holds_schedule(text) and not text.lstrip()[:1].isdigit()


def _plan_divided(options: argparse.Namespace) -> int:
    """A function on tensors, divided as is said or found the best, on the ranks asked for, or
    all.
    """
    _refuse(options, "tasks", ("place", "policy", "budget"))
    _refuse(options, "loops", ("trips", "report", "on"))
    machine = topology_called(options.topology)
    machine = machine.first(machine.ranks if options.ranks is None else options.ranks)
    source = _source_to_divide(options)
    words, found = options.parallel, None
    if words == SEARCH:
        words, found = best_division(source, machine, progress=print_to_stderr)
    foreseen = foresee(source, words, machine)
    check_memory(foreseen.schedule, hint="--parallel search finds what fits, if anything does")
    if options.trace is not None:
        with writing_to(options.trace):
            foreseen.trace.save(options.trace)
    if options.json:
        print(json.dumps(_facts_of_division(foreseen, words, found), indent=2))
        return 0
    if found is not None:
        print(found, end="\n\n")
    print(f"{options.program}, --parallel '{words}': {NOT_LOWERED}")
    for line in foreseen.told:
        print(line)
    print(plot.foreseen_text(foreseen))
    print(plot.trace_text(foreseen.trace, foreseen.schedule, most=20))
    return 0


def _source_to_divide(options: argparse.Namespace) -> Source:
    """OptionError for a program that is none on tensors."""
    path = options.program
    if is_mlp(str(path)):
        return source_of_mlp(str(path), options)
    others = is_kernel(path) or path.suffix in _GRAPHS
    if others or not (is_onnx(path) or is_on_tensors(read_text(path))):
        raise OptionError(
            f"--parallel divides functions on tensors, and {path} is none",
            hint="without it loops are divided by their ranks (-n), and tasks placed (--policy)",
        )
    return source_of_file(path, options, function=options.fn)


def _facts_of_division(foreseen: Foreseen, words: str, found: ModelSearch | None) -> dict[str, Any]:
    schedule = foreseen.schedule
    return {
        "machine": schedule.topology.speeds.label,
        "ranks": schedule.topology.ranks,
        "parallel": words,
        "makespan_s": foreseen.trace.makespan_s,
        "busy": foreseen.busy,
        "bytes_moved": schedule.bytes_moved,
        "fullest_rank_bytes": max(foreseen.peaks),
        "held_bytes": foreseen.peaks,
        "divided": foreseen.told,
        "placements": _placements(schedule),
        "search": found
        and {
            "configurations": len(found.rows),
            "simulated": [row_facts(row) for row in found.rows if row.simulated_s is not None],
            "left_out": found.left_out,
        },
    }


def _plan_loops(options: argparse.Namespace) -> int:
    """How it scales on the machine, and its run on the number of ranks asked for, or all."""
    _refuse(options, "tasks", ("place", "policy"))
    machine = topology_called(options.topology)
    machine = machine.first(machine.ranks if options.ranks is None else options.ranks)
    on_gpus = options.on == GPU_FAMILY
    if on_gpus and not machine.gpus:
        raise BindError(
            f"{machine.speeds.label} has no GPUs", hint="--topology preset:8-gpu-node has eight"
        )
    as_it_is = argparse.Namespace(program=options.program, on=options.on)
    local = Topology.local(1, gpus=int(on_gpus))
    program = compiled_program(as_it_is, question_of(options), topology=local)
    if not program.of_loops:
        raise BindError(
            f"{options.program} is one task, which cannot be divided among ranks",
            hint="avial-lab graph says why",
        )
    scaling = program.scaling(powers(machine.ranks, base=4), topology=machine, trips=options.trips)
    trace = scaling.last or program.simulate(machine, trips=options.trips)
    if options.trace is not None:
        with writing_to(options.trace):
            trace.save(options.trace)
    if options.report is not None:
        with writing_to(options.report):
            page = plot.prediction_html(program.name, scaling, trace)
            options.report.write_text(page, encoding="utf-8")
    if options.json:
        points = [asdict(point) for point in scaling.points]
        print(json.dumps({"machine": machine.speeds.label, "ranks": points}, indent=2))
        return 0
    print(scaling)
    print(plot.trace_text(trace, most=8))
    return 0


def _graph(options: argparse.Namespace, topology: Topology) -> Workflow:
    """Somebody's task graph, or that of a program of tasks; a program needs the compiler."""
    path = options.program
    if path.suffix in _GRAPHS:
        return load_graph(path)
    text = read_text(path)
    if not holds_schedule(text):
        if text.lstrip()[:1].isdigit():
            return load_graph(path)
        raise BindError(f"{path} is neither a program nor a workflow")
    arrays, scalars = parse_inputs(options.inputs, seed=options.seed)
    scalars |= parse_numbers(options.numbers)
    return compilation.planned_graph(
        text, arrays=arrays or None, scalars=scalars, cell=str(path), name=path.name,
        threads=topology.cores_of_rank,
    )  # fmt: skip


def _facts(planned: PlannedSchedule) -> dict[str, Any]:
    return {
        "policy": planned.policy.value,
        "makespan_s": planned.makespan_s,
        "busy": planned.busy,
        "bytes_moved": planned.bytes_moved,
        "fullest_rank_bytes": planned.held_bytes,
        "planning_s": planned.planning_s,
        "placements": _placements(planned),
    }


def _placements(schedule: Schedule) -> list[dict[str, Any]]:
    return [
        {"task": p.task, "device": p.device, "rank": p.rank, "reason": p.reason}
        for p in schedule.placements
    ]


def topology_command(options: argparse.Namespace) -> int:
    """What is known of a machine, or is found out about this one."""
    check_folders(options.output)
    if options.measure:
        return _measure(options)
    if options.hosts is not None or options.ppn is not None:
        raise BindError("--hosts and --ppn say what is measured", hint="add --measure")
    if options.name is None:
        if options.output is not None:
            raise BindError("-o takes a machine to write", hint="name it, or add --measure")
        print("presets: " + ", ".join(PRESET + name for name in PRESETS))
        known = kept()
        print(Topology.local(1).speeds if known is None else known)
        return 0
    topology = topology_called(options.name)
    print(topology)
    print(topology.speeds)
    _write(topology, options.output)
    return 0


def _write(topology: Topology, path: Path | None) -> None:
    """As a picture or a file to be edited, as its suffix says."""
    if path is None:
        return
    written = {".svg": plot.topology_svg, ".mlir": module_text}
    text = written.get(path.suffix, topology_text)(topology)
    with writing_to(path), written_whole(path) as file:
        file.write(text)


def _measure(options: argparse.Namespace) -> int:
    if options.name is not None:
        raise BindError(
            "only this machine, or hosts, can be measured",
            hint=f"leave out {options.name}, or write --measure --hosts A,B",
        )
    if options.hosts is not None:
        there = measure_hosts(Hosts.parse(options.hosts, ppn=options.ppn or 2), print_to_stderr)
        print(there)
        _write(there.topology(), options.output)
        return 0
    for why in busy():
        print_to_stderr(why)
    found = measure_machine(print_to_stderr)
    print(found)
    _write(found.topology(this_cpu().cores), options.output)
    return 0
