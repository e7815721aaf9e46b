"""PTX of the kernels of loops: made for each program on GPUs, with the CPU's arithmetic."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import numpy as np
import pytest

import avial_lab
import kernels
from avial_lab.artifact.assembled import assemble
from avial_lab.core.toolchain import find_tool
from kernels.kernel import ELEMENTS

MOST_SPILLED = 16
"""Bytes a thread: at just 32 or 64 registers ptxas keeps one in memory, for twice the threads."""

CHIPS = ("sm_70", "sm_80", "sm_90", "sm_100", "sm_120")

CHAIN = """
func.func @chain(%A: memref<200xf32>, %B: memref<200xf32>) {
  affine.for %i = 0 to 200 {
    %a = affine.load %A[%i] : memref<200xf32>
    %b = arith.mulf %a, %a : f32
    %c = arith.addf %b, %a : f32
    %d = math.sqrt %c : f32
    %e = arith.divf %d, %a : f32
    affine.store %e, %B[%i] : memref<200xf32>
  }
  return
}"""


@pytest.mark.parametrize("strict", [False, True])
def test_the_arithmetic_is_the_cpus(strict: bool) -> None:
    """What is fused is decided before there are kernels; roots and quotients are exact."""
    arrays = {"A": np.ones(200, np.float32), "B": np.zeros(200, np.float32)}
    program = avial_lab.compile(CHAIN, arrays=arrays, ranks=1, on="gpu", strict=strict)
    ((name, text),) = program.binary.ptx.items()
    assert f".visible .entry {name}(" in text
    assert {"sqrt.rn.f32", "div.rn.f32"} <= set(re.findall(r"\S+\.rn\.f32", text))
    assert ("fma.rn.f32" in text) == (not strict)
    assert ("mul.rn.f32" in text) == strict
    assert not re.search(r"\b(add|mul|mad|div|sqrt)\.(f32|approx|full|ftz)", text)
    assert text.encode() in program.binary.shared_object, "the program carries it"
    (row,) = program.binary.manifest.kernels
    assert str(row) == f"{name}: ceil(i / 1024) blocks of 256 threads"
    assert row.arguments.count("ptr") == 2


def test_elementary_functions_are_the_projects_own() -> None:
    """In code, not calls of a library, whatever the argument; a remainder, which is none of them,
    stays on the CPU, and says so.
    """
    arrays = {"A": np.ones(200, np.float32), "B": np.zeros(200, np.float32)}
    for name in ("exp", "sin"):
        text = CHAIN.replace("math.sqrt", f"math.{name}")
        program = avial_lab.compile(text, arrays=arrays, ranks=1, on="gpu")
        (ptx,) = program.binary.ptx.values()
        assert "__nv_" not in ptx
    text = CHAIN.replace("math.sqrt %c", "arith.remf %c, %a")
    program = avial_lab.compile(text, arrays=arrays, ranks=1, on="gpu")
    assert not program.binary.ptx
    assert "runs on the CPU: a remainder is computed by the CPU's library" in str(program.explain())


FAR = """
func.func @far(%A: memref<60xELEMENT>, %B: memref<60xELEMENT>) {
  affine.for %i = 0 to 60 {
    %a = affine.load %A[%i] : memref<60xELEMENT>
    %b = math.sin %a : ELEMENT
    %c = math.cos %a : ELEMENT
    %d = math.tan %a : ELEMENT
    %e = arith.addf %b, %c : ELEMENT
    %f = arith.addf %d, %e : ELEMENT
    affine.store %f, %B[%i] : memref<60xELEMENT>
  }
  return
}"""


@pytest.mark.quick("f64")
@pytest.mark.parametrize("element", ["f64", "f32"])
def test_arguments_of_any_size_have_the_cpus_bits(element: str) -> None:
    rng, dtype = np.random.default_rng(4), ELEMENTS[element]
    most = np.log10(np.finfo(dtype).max)
    given = (10 ** rng.uniform(-3, most, 60)).astype(dtype)
    given[:4] = np.nan, np.inf, -0.0, -given[5]
    text = FAR.replace("ELEMENT", element)
    found: dict[str, np.ndarray] = {}
    for on in ("gpu", "cpu"):
        arrays = {"A": given.copy(), "B": np.zeros(60, dtype)}
        program = avial_lab.compile(text, arrays=arrays, ranks=1, on=on)
        assert bool(program.binary.ptx) == (on == "gpu")
        program.run(check=True)
        found[on] = np.asarray(program.arrays["B"])
    np.testing.assert_array_equal(found["gpu"], found["cpu"])
    assert np.isfinite(found["gpu"][3:]).all()


@cache
def all_ptx() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in kernels.names():
        kernel = kernels.load(name)
        for element in kernel.elements:
            sizes = dict.fromkeys(kernel.size_names, 100)
            given = kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(1))
            program = avial_lab.compile(
                kernel.mlir(element, sizes),
                arrays={k: v for k, v in given.items() if isinstance(v, np.ndarray)},
                scalars={k: v for k, v in given.items() if not isinstance(v, np.ndarray)},
                ranks=1, on="gpu",
            )  # fmt: skip
            stages = [stage for stage in program.stages if stage.startswith("ptx:")]
            assert len(stages) == len(program.binary.ptx), (name, element, program.stages)
            for symbol, text in program.binary.ptx.items():
                found[f"{name} {element} {symbol}"] = text
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("chip", CHIPS)
def test_nvidias_assembler_takes_all_kernels(chip: str) -> None:
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas: pip install 'avial-lab[ptxas]'")
    known = subprocess.run([str(ptxas), "--help"], capture_output=True, text=True, check=True)
    if f"'{chip}'" not in known.stdout:
        pytest.skip(f"this ptxas makes no code for {chip}")
    for name, text in all_ptx().items():
        for kernel in assemble({name: text}, chip):
            assert kernel.spilled_bytes <= MOST_SPILLED, f"{name}: {kernel}"
