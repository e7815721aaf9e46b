"""A model that a search, or a plan, is to divide.

`mlp:LAYERSxWIDTH` or a file, and what the options say of it -> Source.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from avial_lab.cli.question import is_onnx, model_of, read_text
from avial_lab.compiler.requests import Source
from avial_lab.core.errors import OptionError
from avial_lab.planning.strategy_search import model_called
from avial_lab.program.inputs import parse_inputs, parse_numbers
from avial_lab.program.model_search import mlp_source

OF_A_FILE = ("loss", "of", "gradient", "update", "numbers", "inputs")
_FLAGS = {"numbers": "-D", "inputs": "--in"}


def is_mlp(name: str) -> bool:
    return name.startswith("mlp:")


def source_of_mlp(name: str, options: argparse.Namespace) -> Source:
    """A step of its training; its `cell` is what it is called."""
    if options.batch is None:
        raise OptionError("how many rows has a batch?", hint="--batch 4096")
    check_is_of_a_file(options, OF_A_FILE)
    rows, *more = numbers_of("--batch", options.batch)
    if more or not rows:
        raise OptionError(
            f"--batch {options.batch}", hint="one number of rows; --costs distir takes several"
        )
    return mlp_source(model_called(name), rows)


def source_of_file(
    path: Path, options: argparse.Namespace, *, function: str | None = None
) -> Source:
    """Of a model in ONNX, with a loss a step of its training; or of a function on tensors in MLIR,
    by default the only one.
    """
    if options.batch is not None:
        raise OptionError(
            "--batch is for mlp:LAYERSxWIDTH",
            hint="a file says itself how many rows it has, and -D binds dimensions",
        )
    if is_onnx(path):
        _refuse(options, ("gradient",), "a function in MLIR", "--loss says what is trained")
        if not options.loss:
            _refuse(options, ("of", "update"), "a step of training", "--loss mse, for example")
        arrays, scalars = parse_inputs(options.inputs)
        model = model_of(path, arrays, scalars | parse_numbers(options.numbers))
        how = {"optimizer": options.update} if options.update else {}
        return model.source(options.loss or "", of=options.of, **how)
    _refuse(options, ("loss", "of", "inputs"), "a model in ONNX", "--gradient 'w0 w1' trains")
    return Source(
        read_text(path),
        str(path),
        scalars=parse_numbers(options.numbers),
        function=function,
        gradient="+".join((options.gradient or "").split()),
        update=options.update or "",
    )


def check_is_of_a_file(options: argparse.Namespace, names: Sequence[str]) -> None:
    """OptionError for what mlp:LAYERSxWIDTH has not."""
    own = " on a machine of its own" if "topology" in names else ""
    hint = f"mlp:LAYERSxWIDTH is trained as microsoft/dist-ir does it{own}"
    _refuse(options, names, "a model in a file", hint)


def numbers_of(flag: str, text: str) -> list[int]:
    """`1,2,4` as numbers."""
    if not all(each.isdecimal() and len(each) < 10 for each in text.split(",")):
        raise OptionError(f"{flag} {text}", hint=f"write numbers: {flag} 16, or {flag} 1,2,4")
    return [int(each) for each in text.split(",")]


def _refuse(options: argparse.Namespace, names: Sequence[str], kind: str, hint: str) -> None:
    wrong = next((name for name in names if getattr(options, name)), None)
    if wrong is not None:
        raise OptionError(f"{_FLAGS.get(wrong, f'--{wrong}')} is for {kind}", hint=hint)
