"""Passes by name on a file, as `mlir-opt` runs its own:
`python -m avial_lab.compiler.lowering.opt`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from mlir import ir

from avial_lab.compiler.frontends.mlir.foreign import name_printed
from avial_lab.compiler.frontends.notation.source import Source
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.ptensor_types import full_types
from avial_lab.compiler.lowering.pipelines import OURS
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.lowering.stages import text_of
from avial_lab.core.command_line import NearestWords
from avial_lab.core.errors import AvialError, PassError

# -- the command line ------------------------------------------------------------------------------

_PASS = r"\s*[\w-]+(\{[^{}]*\})?\s*"


def parse_passes(text: str) -> tuple[Pass | str, ...]:
    """Passes from their printed form, one after the other; what is none of ours is MLIR's.
    PassError where one is not written as a pass: MLIR's nested pipelines are for mlir-opt.

    >>> [str(item) for item in parse_passes("jam-for-stores{rows=4},lower-affine,mpi-to-llvm")]
    ['jam-for-stores{rows=4}', 'lower-affine', 'mpi-to-llvm']
    """
    if not re.fullmatch(rf"{_PASS}(,{_PASS})*", text):
        raise PassError(
            f"{text!r} is not a list of passes",
            hint="write name,name{option=value},… as --help lists them",
        )
    result: list[Pass | str] = []
    for name, options in re.findall(r"([\w-]+)(?:\{([^}]*)\})?", text):
        if name not in OURS:
            result.append(f"{name}{{{options}}}" if options else name)
            continue
        given = dict(option.split("=", 1) for option in options.split())
        known = {field.name.replace("_", "-"): field.name for field in fields(OURS[name])}
        if unknown := given.keys() - known.keys():
            raise PassError(f"{name} has no option {', '.join(sorted(unknown))}")
        values = {known[key]: _option(value) for key, value in given.items()}
        if missing := [each for each in _required(OURS[name]) if each not in values]:
            raise PassError(f"{name} needs {', '.join(missing)}")
        result.append(OURS[name](**values))
    return tuple(result)


def _required(kind: type) -> list[str]:
    """Fields without a default."""
    without = (MISSING, MISSING)
    return [f.name for f in fields(kind) if (f.default, f.default_factory) == without]


def _option(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run our passes on a file."""
    parser = NearestWords(
        prog="python -m avial_lab.compiler.lowering.opt", description=main.__doc__
    )
    parser.add_argument(
        "-p",
        dest="passes",
        required=True,
        help=f"comma-separated; MLIR's own, and ours (see avial-lab passes): {', '.join(OURS)}",
    )
    parser.add_argument("file", help="- reads standard input")
    parser.add_argument("-o", dest="output", default="-")
    options = parser.parse_args(arguments)
    context = ir.Context()
    register(context)
    try:
        source = (
            sys.stdin.read()
            if options.file == "-"
            else Path(options.file).read_text(encoding="utf-8")
        )
        with context:
            parsed = ir.Module.parse(full_types(source))
            name_printed(parsed, Source(source, options.file))
        module = parsed.operation
        run_passes(module, parse_passes(options.passes))
    except (AvialError, ir.MLIRError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if options.output == "-":
        sys.stdout.write(text_of(module))
    else:
        Path(options.output).write_text(text_of(module), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
