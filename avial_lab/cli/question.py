"""What a command is asked about: a text, arrays, a machine; and the program compiled from them."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.benchmarks.kernel_suite import KernelProgram, is_kernel, kernel_program
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.options import given
from avial_lab.core.errors import BindError, CheckError
from avial_lab.machine.topology import Topology
from avial_lab.program import compilation
from avial_lab.program.inputs import (
    RandomArguments,
    allocate_missing,
    parse_inputs,
    parse_numbers,
    random_arguments,
)
from avial_lab.program.models import SUFFIX, Model, NeedsValue, load_onnx
from avial_lab.program.program import Program

MOST_KNOWN = 64
"""Elements of an array that a model may need to know before it runs: a shape, axes."""


def check_folders(*paths: Path | None) -> None:
    """Say before the work that a file cannot be written after it."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise BindError(f"cannot write {path}: there is no folder {path.parent}")


@contextlib.contextmanager
def writing_to(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise BindError(f"cannot write {path}: {error.strerror}") from None


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BindError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BindError(f"{path} is not a text file") from None


@dataclass(frozen=True)
class _Question:
    """What a command is about: the program's text and the arguments it is given.

    kernel, made_up: where the arguments come from, if not from the command line.
    """

    text: str
    cell: str
    function: str | None
    arrays: dict[str, np.ndarray]
    scalars: dict[str, Any]
    kernel: KernelProgram | None = None
    made_up: RandomArguments | None = None


def question_of(options: argparse.Namespace, *, mapped: bool = False) -> _Question:
    """The program with all its arguments: given, or made up and reported on stderr. mapped: arrays
    in files stay there.
    """
    arrays, scalars = parse_inputs(options.inputs, seed=options.seed, mapped=mapped)
    numbers = parse_numbers(options.numbers)
    twice = next((name for name in numbers if name in arrays or name in scalars), None)
    if twice is not None:
        raise BindError(f"'{twice}' is given by --in and by -D", hint="leave one out")
    cell = str(options.program)
    if is_onnx(options.program):
        return _question_of_model(options, arrays, scalars | numbers)
    if is_kernel(options.program):
        kernel = kernel_program(
            options.program,
            size=options.size,
            element=options.element,
            numbers=numbers | scalars,
            seed=options.seed,
        )
        kernel.replace(arrays)
        print_to_stderr(kernel.note)
        return _Question(
            kernel.text, cell, kernel.function, kernel.arrays, kernel.scalars, kernel=kernel
        )
    text, scalars = read_text(options.program), scalars | numbers
    if holds_schedule(text):
        analysis = compilation.analyse(text, arrays=arrays, scalars=scalars, cell=cell)
        return _Question(text, cell, None, allocate_missing(analysis.graph, arrays), scalars)
    made_up = random_arguments(
        text, arrays=arrays, scalars=scalars, function=options.fn, cell=cell, seed=options.seed
    )
    print_to_stderr(made_up.note)
    return _Question(text, cell, options.fn, made_up.arrays, made_up.scalars, made_up=made_up)


def is_onnx(path: Path) -> bool:
    return path.suffix == SUFFIX and not path.is_dir()


def model_of(path: Path, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, object]) -> Model:
    """A model with its dimensions bound by `numbers`, and by the shapes of `arrays`. Short arrays
    become constants where it needs their values.
    """
    dimensions: dict[str, int] = {}
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise BindError(f"-D {name}={value}", hint="a dimension of a model is an integer")
        dimensions[name] = value
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        return load_onnx(path, dimensions=dimensions, shapes=shapes)
    except NeedsValue:
        known = {name: a for name, a in arrays.items() if a.ndim <= 1 and a.size <= MOST_KNOWN}
        if not known:
            raise
        return load_onnx(path, dimensions=dimensions, shapes=shapes, values=known)


def _question_of_model(
    options: argparse.Namespace, arrays: dict[str, np.ndarray], numbers: Mapping[str, object]
) -> _Question:
    model = model_of(options.program, arrays, numbers)
    inputs = {port.called for port in model.inputs}
    given = {**model.weights, **model.named({n: a for n, a in arrays.items() if n in inputs})}
    made_up = random_arguments(
        model.text, arrays=given, scalars={}, cell=str(options.program), seed=options.seed
    )
    print_to_stderr(made_up.note)
    return _Question(
        model.text, str(options.program), None, made_up.arrays, made_up.scalars, made_up=made_up
    )


def print_to_stderr(line: str) -> None:
    """What was chosen for the user, beside the result."""
    if line:
        print(line, file=sys.stderr)


def compiled_program(
    options: argparse.Namespace, question: _Question, *, topology: Topology | None = None
) -> Program:
    """For `topology`, or as many ranks as the options say."""
    chosen = given(options)
    if topology is not None:
        chosen.pop("ranks", None)
        chosen.pop("gpus", None)
    return compilation.compile(
        question.text,
        arrays=question.arrays,
        scalars=question.scalars,
        function=question.function,
        cell=question.cell,
        name=options.program.stem,
        topology=topology,
        **chosen,
    )


def make_indices_fit(compiled: Program, made_up: RandomArguments, seed: int) -> None:
    """Where the program takes integers made up for indices, and they leave its arrays, make up
    others.
    """
    if not made_up.integers:
        return
    try:
        compiled.reference()
    except CheckError:
        stop = made_up.draw_indices(seed)
        print_to_stderr(f"integers are indices here: drawn again, from 0 to {(stop or 1) - 1}")
