"""Random programs three ways: the interpreter, the reference and the run say the same.

`run(check=True)` raises where run and reference differ; the arrays are then compared with those of
the interpreter, which shares no rewrite with either. Bit for bit: with `strict` nothing is fused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

import avial_lab
from avial_lab.core.errors import AvialError
from avial_lab.runtime.launch.cluster import Cluster
from tests.quick import examples
from tests.witness import interpret
from tests.witness.drawn import Drawn, functions, schedules
from tests.witness.known_faults import FAULTS

RANKS = st.integers(1, 4)
QUICK = settings(
    max_examples=examples(25),  # of one to four bodies
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                           HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip


def check(program: Drawn, ranks: int, cluster: Cluster) -> None:
    """Raises where one of the three differs from the others."""
    want = interpret(program.text, program.arrays)
    have = {name: array.copy() for name, array in program.arrays.items()}
    built = avial_lab.compile(program.text, arrays=have, ranks=ranks, strict=True)
    built.run(cluster, check=True)
    for name, array in want.items():
        np.testing.assert_array_equal(built.arrays[name], array, err_msg=name, strict=True)


@pytest.mark.mpi
@QUICK
@given(program=functions(), ranks=RANKS)
def test_functions(program: Drawn, ranks: int, cluster: Cluster) -> None:
    note(f"{ranks} ranks\n{program!r}")
    check(program, ranks, cluster)


@pytest.mark.mpi
@QUICK
@given(program=schedules(), ranks=RANKS)
def test_schedules(program: Drawn, ranks: int, cluster: Cluster) -> None:
    note(f"{ranks} ranks\n{program!r}")
    check(program, ranks, cluster)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("drawn", [functions, schedules])
def test_many(drawn: Callable[[], st.SearchStrategy[Drawn]], part: int, cluster: Cluster) -> None:
    """Some 5,000 bodies."""

    @seed(part)
    @settings(QUICK, max_examples=examples(60), database=None)
    @given(program=drawn(), ranks=RANKS)
    def run(program: Drawn, ranks: int) -> None:
        note(f"{ranks} ranks\n{program!r}")
        check(program, ranks, cluster)

    run()


@pytest.mark.mpi
@pytest.mark.parametrize("name", FAULTS)
def test_a_known_fault_is_still_one(name: str, cluster: Cluster) -> None:
    """Where this fails, the fault is mended: take it out of the list."""
    program = Drawn(FAULTS[name].text, FAULTS[name].arrays)
    with pytest.raises((AssertionError, AvialError)):
        check(program, 1, cluster)
