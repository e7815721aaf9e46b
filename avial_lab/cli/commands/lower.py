"""`avial-lab lower`: the stages of a program."""

from __future__ import annotations

import argparse

from avial_lab.cli.question import check_folders, compiled_program, question_of, writing_to
from avial_lab.core.errors import BindError


def lower_command(options: argparse.Namespace) -> int:
    check_folders(options.output)
    compiled = compiled_program(options, question_of(options))
    stages = [
        stage
        for name, stage in compiled.stages.items()
        if name == options.to or name.startswith(f"{options.to}:")
    ]
    if not stages:
        raise BindError(
            f"there is no stage '{options.to}'", hint=f"there are: {', '.join(compiled.stages)}"
        )
    text = "\n".join(stage.text for stage in stages)
    if options.output is None:
        print(text)
        return 0
    with writing_to(options.output):
        if options.to == "object":
            options.output.write_bytes(compiled.binary.shared_object)
        else:
            options.output.write_text(text, encoding="utf-8")
    return 0
