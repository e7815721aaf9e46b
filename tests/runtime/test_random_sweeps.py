"""Random products, stencils, sums and sweeps in small tiles, on threads and ranks, against the
reference: every pass on loops has something to do in one of them.
"""

from __future__ import annotations

import warnings

import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from avial_lab.core.errors import FaultWarning
from avial_lab.program.compilation import compile as compile_program
from avial_lab.runtime.launch.cluster import Cluster
from tests.nests import WHOLE_PROGRAMS
from tests.nests.sweeps import Sweeps, sweeps, tiles
from tests.quick import examples

QUICK = settings(WHOLE_PROGRAMS, max_examples=examples(9))
THOROUGH = settings(QUICK, max_examples=examples(400))

DEVICES = st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)])
"""Ranks, and threads of each."""


def check(
    cluster: Cluster, function: Sweeps, sizes: str, devices: tuple[int, int], *, strict: bool
) -> None:
    ranks, threads = devices
    note(f"{function.scalars}, {sizes}, {ranks} × {threads}, strict: {strict}\n{function.text}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FaultWarning)
        program = compile_program(
            function.text,
            arrays=function.arrays,
            scalars=function.scalars,
            ranks=ranks,
            sizes=sizes,
            strict=strict,
            dynamic=bool(function.scalars),
        )
    for line in {line for report in program.built.reports for line in report.done}:
        event(line.partition(":")[0].partition("{")[0])
    program.run(cluster, check=True, threads=threads, oversubscribe=True)


@pytest.mark.mpi
@QUICK
@given(function=sweeps(), sizes=tiles(), devices=DEVICES, strict=st.booleans())
def test_a_run_is_what_the_reference_says(
    cluster: Cluster, function: Sweeps, sizes: str, devices: tuple[int, int], strict: bool
) -> None:
    check(cluster, function, sizes, devices, strict=strict)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
@THOROUGH
@given(function=sweeps(), sizes=tiles(), devices=DEVICES, strict=st.booleans())
def test_many_runs_are_what_the_reference_says(
    cluster: Cluster, function: Sweeps, sizes: str, devices: tuple[int, int], strict: bool
) -> None:
    check(cluster, function, sizes, devices, strict=strict)
