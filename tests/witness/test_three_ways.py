"""Random programs three ways: the interpreter, the reference and the run say the same.

`run(check=True)` raises where run and reference differ; the arrays are then compared with those of
the interpreter, which shares no rewrite with either. Bit for bit: with `strict` nothing is fused.
Hypothesis makes those of `test_functions` and `test_schedules` small where they differ.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import avial_lab
from avial_lab.core.errors import AvialError
from avial_lab.runtime.launch.cluster import Cluster
from tests.quick import examples
from tests.witness import interpret
from tests.witness.drawn import Drawn, functions, schedules
from tests.witness.found import FOUND
from tests.witness.known_faults import FAULTS
from tests.witness.packed import first_difference, packed

RANKS = st.integers(1, 4)
QUICK = settings(
    max_examples=examples(12),  # of one to four bodies
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


PROGRAMS = 25
"""Of one module: 0.5 s to compile, and a twentieth more for each."""


def differs(program: Drawn, ranks: int, cluster: Cluster) -> str:
    """What it raises; "" where nothing."""
    try:
        check(program, ranks, cluster)
    except (AssertionError, AvialError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.mpi
@pytest.mark.timeout(3600)
@pytest.mark.quick("0-8")
@pytest.mark.parametrize(("part", "modules"), [(0, 8), *((part, 24) for part in range(1, 9))])
def test_many(part: int, modules: int, cluster: Cluster) -> None:
    """200 of `make test`, which are always the same, and 5,000 of `make test-full`."""
    for k in range(modules):
        ranks = k % 4 + 1
        programs = packed(f"part {part} module {k}", PROGRAMS, tasks=k % 3 == 2)
        found = first_difference(programs, partial(differs, ranks=ranks, cluster=cluster))
        assert found is None, f"{ranks} ranks\n{found[1]!r}\n{found[0]}"


@pytest.mark.mpi
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str, cluster: Cluster) -> None:
    check(FOUND[name], 1, cluster)


@pytest.mark.mpi
@pytest.mark.parametrize("name", FAULTS)
def test_a_known_fault_is_still_one(name: str, cluster: Cluster) -> None:
    """Where this fails, the fault is mended: take it out of the list."""
    program = Drawn(FAULTS[name].text, FAULTS[name].arrays)
    with pytest.raises((AssertionError, AvialError)):
        check(program, 1, cluster)
