"""`avial-lab graph`: the task graph, drawn or as data."""

from __future__ import annotations

import argparse

from avial_lab import plot
from avial_lab.benchmarks.kernel_suite import is_kernel
from avial_lab.cli.question import (
    check_folders,
    compiled_program,
    is_onnx,
    question_of,
    read_text,
    writing_to,
)
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.requests import Analysis
from avial_lab.core.errors import BindError
from avial_lab.program import compilation
from avial_lab.program.inputs import parse_inputs, parse_numbers


def graph_command(options: argparse.Namespace) -> int:
    """What waits for what; where a machine or lanes are asked for also who runs what, and what is
    sent.
    """
    check_folders(options.output)
    ending = options.output.suffix.removeprefix(".") if options.output else "text"
    form = options.format or ("text" if ending == "txt" else ending)
    if form == "png" and options.output is None:
        raise BindError("a PNG is not for a terminal", hint="give -o FILE.png")
    placed = options.lanes or options.ranks is not None or options.gpus is not None
    if not placed:
        graph, schedule = _analyse(options).graph, None
    else:
        compiled = compiled_program(options, question_of(options))
        graph, schedule = compiled.graph, compiled.schedule
    picture = plot.exported(form, graph, schedule, lanes=options.lanes)
    if options.output is None:
        print(picture.decode(), end="")
        return 0
    with writing_to(options.output):
        options.output.write_bytes(picture)
    return 0


def _analyse(options: argparse.Namespace) -> Analysis:
    """Of a program with avial's operations, what its text and the arrays given say; a plain
    function is analysed for arguments like those it would be run with.
    """
    if not (is_kernel(options.program) or is_onnx(options.program)):
        text = read_text(options.program)
        if holds_schedule(text):
            arrays, scalars = parse_inputs(options.inputs, seed=options.seed)
            scalars |= parse_numbers(options.numbers)
            return compilation.analyse(
                text, arrays=arrays or None, scalars=scalars, cell=str(options.program)
            )
    question = question_of(options)
    return compilation.analyse(
        question.text,
        arrays=question.arrays,
        scalars=question.scalars,
        function=question.function,
        cell=question.cell,
    )
