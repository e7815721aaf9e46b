"""Each phase is a function with its number, and nothing of the dialect is left."""

from __future__ import annotations

import re

from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.facts import phases_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.distribution.replicate_to_mpi import ReplicateToMpi
from tests.compiler.passes.golden import each_case


@each_case("replicate_to_mpi")
def test_all_phases(case: str) -> None:
    names = re.findall(r'name = "(S\d+)"', case)
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(case).operation
        run_passes(module, (ReplicateToMpi(),))
        assert set(names) <= set(phases_in(module))
        assert not [op.name for op in operations_in(module) if op.name.startswith("avial.")]
        text = str(module)
    for name in names:
        assert f"func.func private @{name}(" in text
