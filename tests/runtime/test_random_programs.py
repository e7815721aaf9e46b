"""Random programs on real ranks against plain Python: bit for bit, any number of ranks, both ways
to synchronise.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avial_lab.compiler.requests import RunReference, Source
from avial_lab.core.buffers import bind_arrays, read_box
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Sync
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.runtime.launch.cluster import Cluster
from tests.programs import RandomProgram, programs
from tests.quick import examples

# A program takes some tenths of a second to build: few examples here, many in `make test-full`.
QUICK = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
THOROUGH = settings(QUICK, max_examples=examples(400))


@QUICK
@given(program=programs())
def test_the_reference_is_what_the_text_says(program: RandomProgram) -> None:
    expected = program.expected()
    binding = bind_arrays(program.arrays)
    data = {s.name: read_box(program.arrays, s, Box.whole(s.shape)) for s in binding.storages}
    answer = shared_compiler().ask(RunReference(Source(program.text, "random", binding), data))
    assert answer.violations == ()
    for storage in binding.storages:
        wanted = read_box(expected, storage, Box.whole(storage.shape))
        np.testing.assert_array_equal(answer.data[storage.name].reshape(wanted.shape), wanted)


def check(
    cluster: Cluster, program: RandomProgram, ranks: int, sync: Sync, *, gpus: int, seed: int
) -> None:
    """Its values; and what it moves, copies and takes of GPUs' memory is what was planned, whether
    its steps are timed or not.
    """
    expected = program.expected()
    compiled = compile_program(
        program.text, arrays=program.arrays, ranks=ranks, gpus=gpus, sync=sync
    )
    trace = compiled.run(cluster, trace=bool(seed % 2), device_seed=seed)
    assert set(trace.moves) == set(compiled.plan.moves)
    assert set(trace.copies) == set(compiled.plan.copies)
    assert trace.taken_bytes == compiled.plan.taken_bytes
    for name, array in program.arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


@pytest.mark.mpi
@QUICK
@given(
    program=programs(),
    ranks=st.integers(1, 3),
    sync=st.sampled_from(Sync),
    gpus=st.integers(1, 3),
    seed=st.integers(0, 3),
)
def test_a_run_is_what_the_text_says(
    cluster: Cluster, program: RandomProgram, ranks: int, sync: Sync, gpus: int, seed: int
) -> None:
    check(cluster, program, ranks, sync, gpus=gpus, seed=seed)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(1800)
@THOROUGH
@given(
    program=programs(most_tasks=20),
    ranks=st.integers(1, 7),
    sync=st.sampled_from(Sync),
    gpus=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_many_runs_are_what_the_text_says(
    wide_cluster: Cluster, program: RandomProgram, ranks: int, sync: Sync, gpus: int, seed: int
) -> None:
    check(wide_cluster, program, ranks, sync, gpus=gpus, seed=seed)


@pytest.fixture(scope="module")
def wide_cluster() -> object:
    with Cluster.start(cpu=6, gpu=1) as cluster:
        yield cluster
