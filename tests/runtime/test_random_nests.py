"""Random functions of loops, run on real ranks, against plain Python.

Integers exactly. Floating-point numbers exactly too, but where the compiler says that it changed
the order of a sum or product (and the function has one): then as near as its roundings allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from avial_lab.compiler.backends.host_target import has_fma
from avial_lab.compiler.requests import RunReference, Source
from avial_lab.core.buffers import bind_arrays, read_box
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Sync
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.trace import Copy
from tests.nests import MOST_STEPS, WHOLE_PROGRAMS, RandomFunction, functions
from tests.quick import examples

# A function takes half a second to analyse and build: few examples here, many in `make test-full`.
QUICK = settings(WHOLE_PROGRAMS, max_examples=examples(8))
THOROUGH = settings(QUICK, max_examples=examples(300))


def check_close(
    function: RandomFunction,
    arrays: Mapping[str, np.ndarray],
    told: Collection[str],
    *,
    strict: bool,
) -> None:
    """`told`: the arrays of which the compiler says that their roundings may be others."""
    for name, want in function.expected(fused=not strict and has_fma()).items():
        got = arrays[name]
        if name not in function.reordered or name not in told:
            np.testing.assert_array_equal(got, want, err_msg=name)
            continue
        # Factors are at most 1, and what is summed is no larger than the largest that comes out.
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(got), finite, err_msg=name)
        scale = max(1.0, float(np.abs(want[finite]).max(initial=0)))
        room = MOST_STEPS * float(np.finfo(want.dtype).eps) * scale
        np.testing.assert_allclose(got[finite], want[finite], rtol=0, atol=room, err_msg=name)


@QUICK
@given(function=functions(), strict=st.booleans())
def test_the_reference_is_what_the_text_says(function: RandomFunction, strict: bool) -> None:
    note(f"strict: {strict}, {function.scalars}, {function.arrays}\n{function.text}")
    binding = bind_arrays(function.arrays)
    data = {s.name: read_box(function.arrays, s, Box.whole(s.shape)) for s in binding.storages}
    source = Source(function.text, "random", binding, function.scalars)
    after = shared_compiler().ask(RunReference(source, data, strict=strict))
    assert after.violations == ()
    for name, want in function.expected(fused=not strict and has_fma()).items():
        np.testing.assert_array_equal(after.data[name].reshape(want.shape), want, err_msg=name)


def run_and_check(
    cluster: Cluster,
    function: RandomFunction,
    ranks: int,
    *,
    strict: bool,
    sync: Sync = Sync.EDGES,
    gpus: int = 0,
    seed: int = 0,
) -> None:
    arrays = {name: array.copy() for name, array in function.arrays.items()}
    note(f"{ranks} ranks, strict: {strict}, {sync}, {function.scalars}, {function.arrays}")
    note(function.text)
    program = compile_program(
        function.text,
        arrays=arrays,
        scalars=function.scalars,
        ranks=ranks,
        strict=strict,
        sync=sync,
        gpus=gpus,
        on="gpu" if gpus else None,
    )
    trace = program.run(cluster, device_seed=seed)
    if gpus and program.plan.complete:
        assert copied(trace.copies) == copied(program.plan.copies)
    check_close(function, arrays, program.built.reordered, strict=strict)


def copied(copies: Iterable[Copy]) -> Counter[tuple[str, str, str]]:
    """Bytes by phase and both places."""
    found: Counter[tuple[str, str, str]] = Counter()
    for each in copies:
        found[each.phase, each.source, each.dest] += each.nbytes
    return found


@pytest.mark.mpi
@QUICK
@given(
    function=functions(), ranks=st.integers(1, 3), strict=st.booleans(), sync=st.sampled_from(Sync)
)
def test_a_run_is_what_the_text_says(
    cluster: Cluster, function: RandomFunction, ranks: int, strict: bool, sync: Sync
) -> None:
    run_and_check(cluster, function, ranks, strict=strict, sync=sync)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
@THOROUGH
@given(
    function=functions(), ranks=st.integers(1, 5), strict=st.booleans(), sync=st.sampled_from(Sync)
)
def test_many_runs_are_what_the_text_says(
    wide_cluster: Cluster, function: RandomFunction, ranks: int, strict: bool, sync: Sync
) -> None:
    run_and_check(wide_cluster, function, ranks, strict=strict, sync=sync)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
@THOROUGH
@given(
    function=functions(), machine=st.sampled_from(((1, 1), (1, 2), (2, 2), (3, 3))),
    strict=st.booleans(), seed=st.sampled_from((0, 11)),
)  # fmt: skip
def test_many_runs_on_gpus(
    wide_cluster: Cluster,
    function: RandomFunction,
    machine: tuple[int, int],
    strict: bool,
    seed: int,
) -> None:
    ranks, gpus = machine
    run_and_check(wide_cluster, function, ranks, strict=strict, gpus=gpus, seed=seed)


@pytest.fixture(scope="module")
def wide_cluster() -> object:
    with Cluster.start(cpu=5) as cluster:
        yield cluster
