"""`avial-lab run`: a program compiled, run, checked and reported."""

from __future__ import annotations

import argparse
import json
from typing import Any

from avial_lab import plot
from avial_lab.cli.question import (
    check_folders,
    compiled_program,
    make_indices_fit,
    print_to_stderr,
    question_of,
    writing_to,
)
from avial_lab.core.errors import BindError
from avial_lab.core.files import save_array
from avial_lab.machine.cpu import level_for
from avial_lab.program.inputs import parse_outputs
from avial_lab.program.program import Program
from avial_lab.program.where import topology_on, where_given
from avial_lab.runtime.launch.processes import crowd_warning, local_note, refuse_copies


def run_command(options: argparse.Namespace) -> int:
    outputs = parse_outputs(options.out)
    check_folders(*outputs.values(), options.report, options.trace)
    where = where_given(options, ranks=options.ranks)
    refuse_copies()
    cpu = level_for(where.check()) if where is not None else ""  # before the work
    if where is None and local_note():
        print_to_stderr(f"{local_note()}; --slurm and --hosts start them elsewhere")
    question = question_of(options, mapped=where is not None)
    ranks, gpus = options.ranks, options.gpus or 0
    machine = where and topology_on(where, ranks or where.most, gpus=gpus, cpu=cpu)
    compiled = compiled_program(options, question, topology=machine)
    unknown = [name for name in outputs if name not in compiled.arrays]
    if unknown:
        known = ", ".join(compiled.arrays) or "none"
        raise BindError(
            f"--out {unknown[0]}: the program has no such buffer", hint=f"its buffers are: {known}"
        )
    if question.made_up is not None:
        make_indices_fit(compiled, question.made_up, options.seed)
    if options.tune is not None:
        compiled = compiled.tune(
            options.tune, threads=options.threads, oversubscribe=options.oversubscribe
        )
        print_to_stderr(str(compiled.choice))
    if where is None and (crowded := crowd_warning(compiled.binary.manifest.ranks)):
        print_to_stderr(crowded)
    try:
        trace = compiled.run(
            check=options.check,
            timeout=options.timeout,
            trace=not options.no_trace,
            threads=options.threads,
            oversubscribe=options.oversubscribe,
            where=where,
        )
    finally:
        if compiled.printed:
            print_to_stderr(f"The ranks printed:\n{compiled.printed}")
    for name, path in outputs.items():
        save_array(path, compiled.arrays[name])
    if options.trace is not None:
        with writing_to(options.trace):
            trace.save(options.trace)
    if options.check and question.kernel is not None:
        assert compiled.check_report is not None
        compiled.check_report += f"\n{question.kernel.compare(compiled.arrays)}"
    if options.report is not None:
        compiled.report(options.report)
    if options.json:
        print(json.dumps(_facts(compiled), indent=2))
        return 0
    print(plot.graph_text(compiled.graph, compiled.schedule))
    for line in compiled.built.divided:
        print(line)
    print(plot.trace_text(trace))
    if compiled.check_report is not None:
        print(compiled.check_report)
    return 0


def _facts(compiled: Program) -> dict[str, Any]:
    """What a run was and did, for another program to read."""
    schedule, trace = compiled.schedule, compiled.trace
    return {
        **plot.graph_json(compiled.graph),
        "ranks": schedule.topology.ranks,
        "placements": [
            {
                "task": p.task,
                "device": p.device,
                "rank": p.rank,
                "level": p.level,
                "reason": p.reason,
            }
            for p in schedule.placements
        ],
        "transfers": [
            {
                "buffer": t.storage,
                "box": str(t.box),
                "from": t.source,
                "to": t.dest,
                "devices": t.devices(schedule.topology.ranks),
                "producer": t.producer,
                "consumer": t.consumer,
                "bytes": t.nbytes,
            }
            for t in schedule.transfers
        ],
        "seconds": dict(compiled.seconds),
        "makespan_s": trace.makespan_s if trace is not None else None,
        "check": compiled.check_report,
    }
