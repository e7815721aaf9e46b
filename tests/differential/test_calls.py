"""Tasks that call functions on parts of arrays, on several numbers of ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from avial_lab.program.compilation import compile as compile_program
from avial_lab.runtime.launch.cluster import Cluster
from tests.blocked import ALGORITHMS
from tests.calls import ARRAYS, CallProgram, Memory, call_programs
from tests.differential.cases import Case, try_case
from tests.quick import examples


@pytest.mark.quick("cholesky-3", "lu-2", "gemm-4")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_blocked_algorithms(name: str, ranks: int, cluster: Cluster) -> None:
    blocked = ALGORITHMS[name](3, 5)
    case = Case(blocked.text, blocked.arrays, blocked.meaning, rtol=1e-10)
    program = try_case(case, cluster, ranks=ranks)
    moved = [transfer.box.size for transfer in program.schedule.transfers]
    assert max(moved, default=0) <= 3 * 5 * 5  # a few blocks in a row, never all of an array
    assert bool(moved) is (ranks > 1 and name != "gemm")  # whose chains stay where they begin


_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


# No shrinking: each try is a compilation and a run.
@pytest.mark.mpi
@settings(
    max_examples=examples(8), phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW
)
@given(program=call_programs(), ranks=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_random_programs(program: CallProgram, ranks: int, seed: int, cluster: Cluster) -> None:
    rng = np.random.default_rng(seed)
    arrays = {n: rng.integers(-9, 30, shape, dtype=np.int32) for n, shape in ARRAYS.items()}
    memory = Memory([int(value) for array in arrays.values() for value in array.flat])
    for step in program.tasks.values():
        step(memory)
    compile_program(program.text, arrays=arrays, ranks=ranks).run(cluster, check=True)
    assert [int(value) for array in arrays.values() for value in array.flat] == memory.values
