"""Models that other programs wrote: an ONNX file -> a function on tensors, compiled as any.

model = avial_lab.load_onnx("mlp.onnx", dimensions={"batch": 32})
program = model.compile(arrays={"x": x}, ranks=2, parallel="data 2")
program.run(check=True)
model.outputs(program)["y"]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from avial_lab.compiler.frontends.onnx import (
    SUFFIX,
    NeedsValue,
    OnnxFunction,
    Port,
    Training,
    convert,
    read_model,
)
from avial_lab.compiler.options import Keywords, takes_options
from avial_lab.compiler.requests import Source
from avial_lab.core.element_types import FLOATS, dtype_of_element
from avial_lab.core.errors import BindError
from avial_lab.core.table import Table
from avial_lab.core.words import brief, count, format_bytes, listed
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.model_search import ModelSearch
from avial_lab.planning.optimizers import STEP, Optimizer
from avial_lab.planning.parallelism import devices_of
from avial_lab.program import compilation
from avial_lab.program.inputs import random_arguments
from avial_lab.program.model_search import SIMULATED, foresee, search
from avial_lab.program.program import Program

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster

__all__ = ["SUFFIX", "Model", "NeedsValue", "TrainingStep", "load_onnx"]


@dataclass(frozen=True)
class Model:
    """A function on tensors and its weights. `text`: MLIR that `compile` and everything else takes;
    its arguments are `inputs`, then `weights`.
    """

    name: str
    function: OnnxFunction = field(repr=False)
    read: Callable[[Training], OnnxFunction] = field(repr=False)
    """The function that is the model's loss."""

    @property
    def text(self) -> str:
        return self.function.text

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self.function.inputs

    @property
    def results(self) -> tuple[Port, ...]:
        return self.function.results

    @property
    def weights(self) -> Mapping[str, np.ndarray]:
        """By their names in the text; views of the file, which nobody writes."""
        return self.function.weights

    def named(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays by the text's names, given by these or by the model's own."""
        ports = (*self.function.inputs, *self.function.parameters)
        names = {port.name: port.name for port in ports} | {p.called: p.name for p in ports}
        return {_name_in_text(name, names, self.inputs): array for name, array in arrays.items()}

    @takes_options
    def compile(
        self,
        arrays: Mapping[str, np.ndarray] | None = None,
        *,
        seed: int = 0,
        **options: Unpack[Keywords],
    ) -> Program:
        """The program; inputs (and weights) that are not given are random, resp. the file's."""
        given = {**self.weights, **self.named(arrays or {})}
        made_up = random_arguments(self.text, arrays=given, scalars={}, cell=self.name, seed=seed)
        return compilation.compile(
            self.text, arrays=made_up.arrays, cell=self.name, name=self.name, **options
        )

    @takes_options
    def training(
        self,
        loss: str,
        *,
        of: str = "",
        optimizer: str = "sgd lr=0.01",
        arrays: Mapping[str, np.ndarray] | None = None,
        **options: Unpack[Keywords],
    ) -> TrainingStep:
        """A step of training, compiled: forward, backward, update. The weights begin as the file
        has them, or as `arrays` says.

        loss: `mse`, or `cross-entropy` of logits and classes, `of` the value that the model calls
        so (by default its first result). optimizer: `sgd lr=0.01`, `momentum lr=0.01 momentum=0.9`,
        `adamw lr=0.001 decay=0.01`.
        """
        rule = Optimizer.parse(optimizer)
        function = self.read(Training(loss, of, rule.kept, rule.counts))
        ports = [p for p in function.parameters if p.element in FLOATS]
        given = {
            **{n: np.array(w) for n, w in function.weights.items()},
            **{p.name: np.zeros(p.shape, dtype_of_element(p.element)) for p in function.states},
            **{p.name: np.zeros(p.shape, dtype_of_element(p.element)) for p in function.inputs},
        }
        for name, array in self.named(arrays or {}).items():
            given[name] = np.array(array)
        program = compilation.compile(
            function.text,
            arrays=given,
            cell=self.name,
            name=self.name,
            **{**options, "gradient": [p.name for p in ports], "update": str(rule)},
        )
        kept = [p for p in function.states if p.name != STEP]
        ordered = sorted(kept, key=lambda p: _order(p, ports, rule.kept))
        changed = [*ports, *ordered, *(p for p in function.states if p.name == STEP)]
        return TrainingStep(program, function, tuple(changed))

    def source(self, loss: str = "", *, of: str = "", optimizer: str = "sgd") -> Source:
        """The model as the compiler takes it; with a `loss` a step of its training."""
        if not loss:
            return Source(self.text, self.name)
        rule = Optimizer.parse(optimizer)
        function = self.read(Training(loss, of, rule.kept, rule.counts))
        names = "+".join(p.name for p in function.parameters if p.element in FLOATS)
        return Source(function.text, self.name, gradient=names, update=str(rule))

    def simulate(
        self,
        parallel: str,
        topology: Topology | str | Path | None = None,
        *,
        loss: str = "",
        of: str = "",
        optimizer: str = "sgd",
    ) -> Foreseen:
        """What the ranks of `topology` (by default so many as it takes, here) would do and hold,
        divided so; nothing is built. With a `loss` of a step of training. It is the cores of the
        ranks that compute.
        """
        local = Topology.local(devices_of(parallel)) if topology is None else topology
        source = self.source(loss, of=of, optimizer=optimizer)
        return foresee(source, parallel, topology_called(local))

    def search(
        self,
        devices: int | None = None,
        *,
        loss: str = "",
        of: str = "",
        optimizer: str = "sgd",
        topology: Topology | None = None,
        memory_bytes: float | None = None,
        simulated: int = SIMULATED,
        progress: Callable[[str], None] | None = None,
    ) -> ModelSearch:
        """Which transforms divide it best over so many ranks of this machine, or of `topology`: all
        configurations in closed form, the best by events. With a `loss` of a step of training.

        `search.best.words` is what `parallel=` takes.
        """
        there = topology or Topology.local(1 if devices is None else devices)
        there = there if devices is None else there.first(devices)
        source = self.source(loss, of=of, optimizer=optimizer)
        return search(
            source, there, memory_bytes=memory_bytes, simulated=simulated, progress=progress
        )

    def outputs(self, program: Program) -> dict[str, np.ndarray]:
        """What a program of this model computed, by the model's names."""
        return {port.called: program.arrays[port.name] for port in self.results}

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {self._summary}")

    @property
    def _summary(self) -> str:
        held = sum(w.nbytes for w in self.weights.values())
        return f"{count(len(self.weights), 'weight')} of {format_bytes(held)}"

    def __str__(self) -> str:
        rows = [("input", p.called, _type(p), p.name) for p in self.inputs]
        rows += [("weight", p.called, _type(p), p.name) for p in self.function.parameters]
        rows += [("result", p.called, _type(p), p.name) for p in self.results]
        columns = ("", "in the model", "type", "in the text")
        return Table(f"{self.name}: {self._summary}", columns, tuple(rows)).to_text()


def _name_in_text(name: str, names: Mapping[str, str], inputs: Sequence[Port]) -> str:
    if name in names:
        return names[name]
    raise BindError(
        f"the model has no input '{name}'",
        hint=f"its inputs are: {listed([port.called for port in inputs])}",
    )


def _order(state: Port, weights: list[Port], endings: tuple[str, ...]) -> tuple[int, int]:
    """Where what is kept stands among the results: weight by weight."""
    name, _, ending = state.name.rpartition("_")
    return [p.name for p in weights].index(name), endings.index(ending)


@dataclass(frozen=True)
class TrainingStep:
    """A step that is taken at each call; weights, and what the optimizer keeps, are those of the
    last step that came to its end.

        step = model.training("cross-entropy", of="logits", optimizer="adamw lr=0.01", ranks=3,
                              parallel="data 3")
        loss = step(input=x, target=classes)
    """

    program: Program
    function: OnnxFunction = field(repr=False)
    changed: tuple[Port, ...] = field(repr=False)

    def __call__(
        self,
        cluster: Cluster | OneProcess | None = None,
        *,
        check: bool = False,
        oversubscribe: bool = False,
        **inputs: np.ndarray,
    ) -> float:
        """The loss before the step, which is taken on a cluster as `Program.run` chooses it; inputs
        that are not given are those of the last step.
        """
        arrays = self.program.arrays
        ports = {p.called: p.name for p in self.function.inputs}
        ports |= {p.name: p.name for p in self.function.inputs}
        for name, value in inputs.items():
            array = arrays[_name_in_text(name, ports, self.function.inputs)]
            if np.shape(value) != array.shape:
                raise BindError(
                    f"'{name}' has the shape {np.shape(value)}; the step was compiled for "
                    f"{array.shape}"
                )
            array[...] = value
        self.program.run(cluster, check=check, oversubscribe=oversubscribe)
        loss = float(arrays["result0"])
        for k, port in enumerate(self.changed):
            arrays[port.name][...] = arrays[f"result{k + 1}"]
        return loss

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """As they are now, by the model's names; writing into one changes it."""
        return {p.called: self.program.arrays[p.name] for p in self.function.parameters}

    def __repr__(self) -> str:
        return brief(self, f"{self.program.name}: {count(len(self.weights), 'weight')}")


def _type(port: Port) -> str:
    return "x".join([*map(str, port.shape), port.element])


def load_onnx(
    path: str | Path,
    *,
    dimensions: Mapping[str, int] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Model:
    """The model in an ONNX file, of opsets 7 to 28.

    `dimensions` gives numbers to those that the file leaves open by name (`{"batch": 32}`),
    `shapes` those of whole inputs, `values` inputs that are known before a run (shapes, axes): they
    become constants. Weights stay where they are: in the file that was read, or in external data
    beside it, which are mapped.

    Raises ParseError for what is no model, and for nodes that are not covered, all of them at once;
    BindError for dimensions that are open, and where the package onnx is missing.
    """
    path = Path(path)

    proto, outside = read_model(path)

    def read(training: Training | None = None) -> OnnxFunction:
        return convert(
            proto,
            outside=outside,
            dimensions=dimensions,
            values=values,
            shapes=shapes,
            training=training,
        )

    return Model(path.stem, read(), read)
