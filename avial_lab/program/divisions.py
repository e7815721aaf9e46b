"""A function on tensors that can be divided in many ways: the source to search in, and its runs.

Model or Program, topology -> Divisible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.requests import Source
from avial_lab.core.element_types import FLOATS, dtype_of_element
from avial_lab.core.errors import OptionError
from avial_lab.core.words import brief, count
from avial_lab.machine.topology import Topology
from avial_lab.program import compilation
from avial_lab.program.models import Model
from avial_lab.program.program import Program


@dataclass(frozen=True)
class Divisible:
    """`run` takes `--parallel`'s words; it compiles, runs with a check against the sequential
    function, and says how long the run took, in seconds.
    """

    name: str
    source: Source = field(repr=False)
    topology: Topology
    run: Callable[[str], float] = field(repr=False)

    def __repr__(self) -> str:
        return brief(self, f"{self.name} over {count(self.topology.ranks, 'rank')}")


def is_on_tensors(text: str) -> bool:
    """Or else a program of loops, or of tasks."""
    return "tensor<" in text and not holds_schedule(text)


def divisible_program(program: Program, topology: Topology) -> Divisible:
    """OptionError for a program of loops or tasks."""
    given = program.question.source
    if not is_on_tensors(given.text):
        raise OptionError(
            f"'{program.name}' is no function on tensors",
            hint="models of load_onnx and functions on tensors can be divided",
        )

    def run(words: str) -> float:
        bound = [buffer.name for buffer in given.binding.buffers] if given.binding else []
        made = compilation.compile(
            given.text,
            arrays={name: program.arrays[name].copy() for name in bound},
            scalars=given.scalars,
            function=given.function,
            cell=given.cell,
            ranks=topology.ranks,
            parallel=words,
            gradient=given.gradient,
            update=given.update,
        )
        return made.run(check=True, oversubscribe=True).makespan_s

    return Divisible(program.name, replace(given, parallel=""), topology, run)


def divisible_model(
    model: Model, topology: Topology, *, loss: str = "", of: str = "", optimizer: str = "sgd"
) -> Divisible:
    """With a `loss` a step of its training."""

    def run(words: str) -> float:
        if not loss:
            made = model.compile(ranks=topology.ranks, parallel=words)
            return made.run(check=True, oversubscribe=True).makespan_s
        rng = np.random.default_rng(0)
        arrays = {
            port.name: rng.uniform(-1, 1, port.shape).astype(dtype_of_element(port.element))
            for port in model.inputs
            if port.element in FLOATS
        }
        step = model.training(
            loss, of=of, optimizer=optimizer, arrays=arrays, ranks=topology.ranks, parallel=words
        )
        return step.program.run(check=True, oversubscribe=True).makespan_s

    source = model.source(loss, of=of, optimizer=optimizer)
    return Divisible(model.name, source, topology, run)
