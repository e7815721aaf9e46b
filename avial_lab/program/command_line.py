"""The line of the command line that compiles the same program."""

from __future__ import annotations

import re
from dataclasses import replace

from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.options import command_line
from avial_lab.compiler.requests import Build
from avial_lab.machine.topology import Topology


def command_line_of(name: str, question: Build, topology: Topology) -> list[str]:
    """The arguments of `avial-lab run` that ask this question."""
    source = question.source
    kind = "avial" if holds_schedule(source.text) else "mlir"
    stem = re.sub(r"[^\w.-]+", "-", name)
    options = replace(question.options, ranks=topology.ranks, gpus=topology.gpus)
    words = ["avial-lab", "run", f"{stem}.{kind}", *command_line(options)]
    if source.function is not None:
        words += ["--fn", source.function]
    for buffer in source.binding.buffers if source.binding else ():
        shape = "".join(f"{extent}x" for extent in buffer.shape)
        words += ["--in", f"{buffer.name}=random:{shape}{buffer.element}"]
    for number, value in source.scalars.items():
        words += ["-D", f"{number}={str(value).lower() if isinstance(value, bool) else value}"]
    return [*words, "--check"]
