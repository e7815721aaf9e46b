"""Where loops run changes no value."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from tests.compiler.passes.golden import assert_same, cases_of, each_case


@each_case("target_devices")
@pytest.mark.parametrize("on", ["gpu", "cpu"])
def test_the_same_bits(case: str, on: str) -> None:
    assert_same(case, f"target-devices{{on={on}}}")


def test_to_the_cpu_and_back() -> None:
    """On the CPU no GPU is asked for, by nobody."""
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(cases_of("target_devices")["to_a_gpu"])
    run_passes(module.operation, parse_passes("target-devices{on=cpu}"))
    used = [op for op in operations_in(module.operation) if op.name == "avial.replicate"]
    archs = [ir.StringAttr(op.operands[0].owner.attributes["arch"]).value for op in used]
    assert archs == ["cpu", "cpu"]
