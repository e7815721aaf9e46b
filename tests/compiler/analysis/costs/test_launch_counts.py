"""How often a kernel is launched by the loops around it, against loops that are counted out."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.artifact.kernels import kernels_in
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.analysis.costs.launch_counts import launches_around
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.program import compilation
from avial_lab.program.turns import launches_by_phase

LOOPS = {
    "none": ("", "", 1),
    "a loop": ("affine.for %k = 2 to 30 step 4 {", "}", 7),
    "a triangle": (
        "affine.for %k = 0 to 100 { affine.for %i = affine_map<(d0) -> (d0 + 1)>(%k) to 100 {",
        "}}",
        sum(99 - k for k in range(100)),
    ),
    "a band": (
        "affine.for %k = 0 to 10 { affine.for %i = max affine_map<(d0) -> (0, d0 - 40)>(%k) "
        "to min affine_map<(d0) -> (d0 * 2 + 3, 50)>(%k) {",
        "}}",
        sum(2 * k + 3 for k in range(10)),
    ),
    "a number of the program": ("scf.for %k = %zero to %n step %one {", "}", None),
    "numbers": ("scf.for %k = %zero to %nine step %one {", "}", 9),
    "a condition": ("scf.if %c {", "}", None),
    "data": ("affine.for %k = 0 to %n {", "}", None),
}


@pytest.mark.parametrize(("before", "behind", "times"), LOOPS.values(), ids=LOOPS)
def test_loops_around_are_counted(before: str, behind: str, times: int | None) -> None:
    text = f"""func.func @f(%n: index, %c: i1) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %nine = arith.constant 9 : index
      {before} func.call @kernel() : () -> () {behind}
      return
    }}
    func.func private @kernel()"""
    module = ir.Module.parse(text, ir.Context())
    (call,) = operations_named(module.operation, "func.call")
    found = launches_around(call)
    assert found == (None if times is None else pytest.approx(times))


def test_a_kernel_of_the_manifest_says_how_often_its_phase_launches_it() -> None:
    n = 30
    made = kernel_program("trisolv", size="MINI", element="f64", numbers={"N": n}, seed=0)
    program = compilation.compile(
        made.text, arrays=made.arrays, function=made.function, ranks=1, on="gpu"
    )
    kernels = program.binary.manifest.kernels
    phases = program.binary.manifest.phases
    assert {kernel.launcher for kernel in kernels} <= set(phases)
    assert sum(launches_by_phase(kernels).values()) > n
    told = [(kernel.name, kernel.launches) for kernel in kernels_in(program.stages["gpu"].text)]
    assert told == [(kernel.name, kernel.launches) for kernel in kernels]
