"""Data parallelism: every device computes on some of the rows.

Function on tensors -> the same on a mesh with one more axis, along which batches are divided.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.placements.dimension_classes import DimensionClasses
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.placements import is_tensor
from avial_lab.compiler.ir.program import program_function, symbol_of
from avial_lab.compiler.passes.distir.propagate import add_axis, seeds_named
from avial_lab.compiler.passes.distir.told import tell
from avial_lab.core.errors import ScheduleError, VerifyError


@dataclass(frozen=True)
class DataParallel:
    """Divide the batch over `ranks` times as many devices.

    before:  func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) …
    after:   "distir.mesh"() {sym_name = "m", devices = dense<[0, 1]> : tensor<2xi64>}
             func.func @f(%x: tensor<8x4xf32, #distir.on<@m, "split 0">>,
                          %w: tensor<4x2xf32, #distir.on<@m, "copy">>) …

    The batch is dimension 0 of the first argument, or that of `of` ("x:1"), and what runs with it
    in the same loops. Sums over it are partial, and added up where they are read. With a `stage`
    those of one stage of a pipeline alone are more, and what comes to it is divided there.
    """

    ranks: int = 2
    of: str = ""
    stage: int | None = None

    def __call__(self, module: ir.Operation) -> None:
        check_degree("data-parallel", self.ranks)
        function = program_function(module)
        classes = DimensionClasses.of(function)
        batch = batch_of(function, self.of, classes=classes)
        rows = ", ".join(f"%{name_of(v.location) or 'arg'}:{dim}" for v, dim in batch.items())
        told = add_axis(
            module, function, self.ranks, batch, stage=self.stage, reading=classes.reading
        )
        tell(program_function(module), f"{self} divides {rows}: {told}")

    def __str__(self) -> str:
        of = f" of={self.of}" if self.of else ""
        return f"data-parallel{{ranks={self.ranks}{of}{in_stage(self.stage)}}}"


def in_stage(stage: int | None) -> str:
    return "" if stage is None else f" stage={stage}"


def check_degree(name: str, degree: int) -> None:
    if degree < 1:
        raise ScheduleError(f"{name} over {degree} devices", hint="it takes one at least")


def batch_of(
    function: ir.Operation, of: str = "", *, classes: DimensionClasses | None = None
) -> dict[ir.Value, int]:
    """The arguments with the batch's dimension, and which that is; `classes`: the function's."""
    arguments = [a for a in function.regions[0].blocks[0].arguments if is_tensor(a.type)]
    first = next((a for a in arguments if a.type.rank), None)
    if first is None:
        raise VerifyError(
            f"@{symbol_of(function)} has no tensor whose rows could be divided",
            span=span_of(function.location),
        )
    dimension = (first, 0)
    if of:
        dimension = next(iter(seeds_named(function, [parsed_seed(of)]).items()))
    classes = classes or DimensionClasses.of(function)
    return classes.dimensions_like(dimension, arguments) or dict([dimension])


def parsed_seed(text: str) -> tuple[str, int]:
    """`x:1` -> ("x", 1)."""
    name, colon, dim = text.partition(":")
    if not (name and (not colon or (dim.isdecimal() and len(dim) < 9))):
        raise ScheduleError(
            f"'{text}' names no dimension of a tensor",
            hint="write NAME:DIMENSION, w1:1 for example",
        )
    return name, int(dim or 0)
