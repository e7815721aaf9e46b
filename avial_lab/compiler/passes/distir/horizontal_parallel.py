"""Horizontal parallelism: every device has some of the columns or rows of the weights.

Function on tensors -> the same on a mesh with one more axis, along which given arguments are
divided.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distir.data_parallel import check_degree, in_stage, parsed_seed
from avial_lab.compiler.passes.distir.propagate import add_axis, seeds_named
from avial_lab.compiler.passes.distir.told import tell


@dataclass(frozen=True)
class HorizontalParallel:
    """Divide the arguments that `of` names over `ranks` times as many devices.

    before:  %h = matmul %x, %w1   %r = relu %h   %y = matmul %r, %w2        (of=w1:1)
    after:   %w1 lies "split 1", so do %h and %r; %w2 is scattered to "split 0", %y is a "sum"
             of which `distir.all_reduce` makes copies

    What follows for other values follows from the loops of the operations: the column-row pairs of
    Megatron-LM (Shoeybi et al. 2019) come out of seeds on every other weight.
    """

    ranks: int = 2
    of: str = ""
    stage: int | None = None

    def __call__(self, module: ir.Operation) -> None:
        check_degree("horizontal-parallel", self.ranks)
        function = program_function(module)
        seeds = [parsed_seed(each) for each in self.of.replace("+", " ").split()]
        named = seeds_named(function, seeds)
        told = add_axis(module, function, self.ranks, named, stage=self.stage)
        tell(program_function(module), f"{self}: {told}")

    def __str__(self) -> str:
        return f"horizontal-parallel{{ranks={self.ranks} of={self.of}{in_stage(self.stage)}}}"
