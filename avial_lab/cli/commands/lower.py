"""`avial-lab lower`: the stages of a program."""

from __future__ import annotations

import argparse

from avial_lab.artifact.assembled import assemble
from avial_lab.artifact.kernels import table_of
from avial_lab.cli.question import check_folders, compiled_program, question_of, writing_to
from avial_lab.core.errors import BindError
from avial_lab.core.toolchain import install_hint
from avial_lab.program.program import Program


def lower_command(options: argparse.Namespace) -> int:
    check_folders(options.output)
    compiled = compiled_program(options, question_of(options))
    if options.to == "sass" or options.to.startswith("sass:"):
        return _write(options, _sass(compiled, options.to.partition(":")[2]))
    stages = [
        stage
        for name, stage in compiled.stages.items()
        if name == options.to or name.startswith(f"{options.to}:")
    ]
    if not stages:
        raise BindError(
            f"there is no stage '{options.to}'", hint=f"there are: {', '.join(compiled.stages)}"
        )
    if options.output is not None and options.to == "object":
        with writing_to(options.output):
            options.output.write_bytes(compiled.binary.shared_object)
        return 0
    head = _figures(compiled) if options.to == "ptx" or options.to.startswith("ptx:") else ()
    return _write(options, "\n".join([*head, *(stage.text for stage in stages)]))


def _write(options: argparse.Namespace, text: str) -> int:
    if options.output is None:
        print(text)
        return 0
    with writing_to(options.output):
        options.output.write_text(text, encoding="utf-8")
    return 0


def _figures(compiled: Program) -> list[str]:
    """A comment of PTX for each kernel that ptxas has made code of."""
    kernels = compiled.binary.manifest.kernels
    return [f"// {row.name}: {image}" for row in kernels for image in row.images]


def _sass(compiled: Program, chip: str) -> str:
    """What ptxas says of the program's kernels, and their machine code where it can be read."""
    if not compiled.binary.ptx:
        raise BindError("the program has no kernels for a GPU", hint="--on gpu makes some")
    kernels = assemble(compiled.binary.ptx, chip)
    code = [each.sass for each in kernels if each.sass]
    more = code or [f"machine code as text: {install_hint('nvdisasm')}"]
    return "\n".join([table_of((each.name, each.image) for each in kernels).to_text(), *more])
