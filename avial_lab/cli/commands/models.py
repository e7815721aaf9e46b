"""`avial-lab import`: a model of another program as a function on tensors; `export`: back."""

from __future__ import annotations

import argparse

from avial_lab.cli.question import (
    check_folders,
    is_onnx,
    model_of,
    print_to_stderr,
    read_text,
    writing_to,
)
from avial_lab.compiler.requests import Source
from avial_lab.core.errors import BindError, OptionError
from avial_lab.program.export import export_onnx
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


def export_model(options: argparse.Namespace) -> int:
    """The weights of a model go with it, unless they are to be trained: they are inputs then."""
    if options.output is None:
        raise OptionError("a model in ONNX is a file", hint="-o FILE.onnx")
    check_folders(options.output)
    arrays, scalars = parse_inputs(options.inputs)
    numbers = scalars | parse_numbers(options.numbers)
    gradient = "+".join((options.gradient or "").replace(",", " ").split())
    update = options.update or ""
    if not is_onnx(options.source):
        source = Source(
            read_text(options.source), str(options.source), scalars=numbers, function=options.fn,
            gradient=gradient, update=update,
        )  # fmt: skip
        print_to_stderr(repr(export_onnx(source, options.output, weights=arrays)))
        return 0
    model = model_of(options.source, arrays, numbers)
    if gradient or update:
        source = Source(model.text, str(options.source), gradient=gradient, update=update)
        print_to_stderr(repr(export_onnx(source, options.output)))
        return 0
    print_to_stderr(repr(export_onnx(model, options.output)))
    return 0
