"""`avial-lab import`: a model of another program as a function on tensors."""

from __future__ import annotations

import argparse

from avial_lab.cli.question import (
    check_folders,
    is_onnx,
    model_of,
    print_to_stderr,
    writing_to,
)
from avial_lab.core.errors import BindError
from avial_lab.program.inputs import parse_inputs, parse_numbers


def import_command(options: argparse.Namespace) -> int:
    """The text goes to a file or to stdout, what its arguments are to stderr."""
    check_folders(options.output)
    if not is_onnx(options.model):
        raise BindError(f"{options.model} is no model", hint="models in ONNX are read: MODEL.onnx")
    arrays, scalars = parse_inputs(options.inputs)
    model = model_of(options.model, arrays, scalars | parse_numbers(options.numbers))
    print_to_stderr(str(model))
    if options.output is None:
        print(model.text, end="")
        return 0
    with writing_to(options.output):
        options.output.write_text(model.text, encoding="utf-8")
    return 0
