"""Every kernel's peers compute what its truth does: in C, for Numba and for NumPy."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kernels
from avial_lab.benchmarks import Answer
from avial_lab.benchmarks.builders import NumbaEntry, peers_module
from avial_lab.benchmarks.c_peers import clocked, peer_source
from avial_lab.benchmarks.kernel_suite import KernelProgram, kernel_program
from avial_lab.core.c_compiler import any_compiler, loaded

KERNELS = [kernels.load(name) for name in kernels.names()]
CASES = [(kernel, element) for kernel in KERNELS for element in kernel.elements]

AWKWARD = ((7, 11, 5, 13, 3), (5, 3, 17, 2, 11), (1, 1, 1, 1, 1), (2, 4, 3, 1, 2))
"""Primes, another way round, ones, fewer than a stencil is wide: dealt to the sizes in order."""


def small(kernel: kernels.Kernel, element: str, row: tuple[int, ...]) -> KernelProgram:
    sizes = dict(zip(kernel.size_names, row, strict=False))
    return kernel_program(kernel.name, element=element, numbers=sizes)


def sizes_of(start: KernelProgram) -> dict[str, int]:
    """The sizes, as `told` has them."""
    return {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", start.note)}


def copies(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() for name, value in arguments.items()}


def peers(kernel: kernels.Kernel) -> ModuleType:
    return peers_module(kernel.folder / "peers.py")


# -- in C ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def starts() -> dict[str, list[KernelProgram]]:
    """MINI as the kernel is raced, and awkward sizes in every element type."""
    return {
        f"{kernel.function}_{element}": [
            *([kernel_program(kernel.name, size="MINI")] if element == kernel.elements[0] else []),
            *(small(kernel, element, row) for row in AWKWARD[:: 3 if element == "i32" else 1]),
        ]
        for kernel, element in CASES
    }


@pytest.fixture(scope="module")
def library(starts: dict[str, list[KernelProgram]]) -> ctypes.CDLL:
    """Every peer for every start in one file: one call of the compiler."""
    parts: list[str] = []
    for (_, element), (name, cases) in zip(CASES, starts.items(), strict=True):
        for number, start in enumerate(cases):
            symbol = f"{name}_{number}"
            parts.append(
                peer_source(
                    start.kernel, element, sizes_of(start), symbol=symbol, headers=not parts
                )
            )
    # Not as fast as in a race: what is looked at is the peers, not the compiler.
    return loaded(any_compiler(extra=["-O0", "-fwrapv"]).build("".join(parts)))


@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_c_equals_the_truth(
    kernel: kernels.Kernel, starts: dict[str, list[KernelProgram]], library: ctypes.CDLL
) -> None:
    for element in kernel.elements:
        name = f"{kernel.function}_{element}"
        for number, start in enumerate(starts[name]):
            arguments = copies(start.before)
            seconds = clocked(library, f"{name}_{number}", arguments)()
            assert seconds >= 0
            Answer(start).check(arguments)


# -- for Numba and NumPy ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_python_equals_the_truth(kernel: kernels.Kernel) -> None:
    """`loops` as plain Python, which is what Numba compiles; NumPy; SciPy where it is there."""
    module = peers(kernel)
    versions: list[Callable[..., None]] = [module.loops]
    if hasattr(module, "arrays"):
        versions.append(module.arrays)
    if hasattr(module, "scipy_arrays") and find_spec("scipy") is not None:
        versions.append(module.scipy_arrays)
    for element in kernel.elements:
        for row in AWKWARD:
            start = small(kernel, element, row)
            answer = Answer(start)
            for version in versions:
                if version.__name__ == "scipy_arrays" and element.startswith("i"):
                    continue  # BLAS has no integers
                arguments = copies(start.before)
                with np.errstate(all="ignore"):
                    version(**arguments)
                answer.check(arguments)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # where Numba finds no parallel loop, it says so
@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_numba_equals_the_truth(kernel: kernels.Kernel) -> None:
    pytest.importorskip("numba")
    start = kernel_program(kernel.name, size="MINI")
    runner = NumbaEntry(kernel.folder / "peers.py", fastmath=False).runner(start.before)
    runner.run()
    Answer(start).check(runner.arrays)


# -- that they are what they are called ------------------------------------------------------------


def test_parallel_peers_have_pragmas() -> None:
    """Those that have none are sequential as written."""
    without = {
        kernel.name
        for kernel in KERNELS
        if "#pragma omp parallel" not in (kernel.folder / "peer.c").read_text()
    }
    assert without == {"durbin", "nussinov", "prefix-sum", "trisolv"}


def test_a_wrong_peer_is_found() -> None:
    start = kernel_program("gemm", size="MINI")
    arguments = copies(start.before)
    peers(kernels.load("gemm")).loops(**arguments)
    Answer(start).check(arguments)
    arguments["C"][3, 4] = np.nextafter(arguments["C"][3, 4] * np.float32(1.001), np.float32(9))
    with pytest.raises(Exception, match=r"wrong: C\[3, 4\]"):
        Answer(start).check(arguments)
