"""Functions as other compilers write them run on any number of ranks as they stand, and compute
what they compute in one process.
"""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.program import Program
from avial_lab.runtime.cluster import Cluster
from tests.foreign.cases import CASES, FOLDER, Inputs, inputs_of, text_of

RANKS = (1, 2, 3, 5)
EPS = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float64): 2.0**-52}

every_file = pytest.mark.parametrize("name", CASES)


def test_every_file_is_called() -> None:
    assert {path.stem for path in FOLDER.glob("*.mlir")} == set(CASES)


def compiled(name: str, inputs: Inputs, ranks: int) -> tuple[Program, dict[str, np.ndarray]]:
    arrays = inputs.copies()
    program = avial_lab.compile(
        text_of(name), arrays=arrays, scalars=inputs.scalars, ranks=ranks, name=name
    )
    return program, arrays


@pytest.fixture(scope="module")
def truth() -> dict[tuple[str, bool], dict[str, np.ndarray]]:
    """By file and size what it leaves in its arrays when it runs alone."""
    return {}


def reference_of(
    name: str, *, tiny: bool, truth: dict[tuple[str, bool], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    if (name, tiny) not in truth:
        inputs = inputs_of(name, tiny=tiny)
        program, arrays = compiled(name, inputs, 1)
        after = program.reference().data
        truth[name, tiny] = {key: after[key].reshape(array.shape) for key, array in arrays.items()}
    return truth[name, tiny]


def differing(got: np.ndarray, want: np.ndarray, terms: int) -> np.ndarray:
    """Where they are further apart than another order of that many terms explains (of none: where
    they are not equal); NaN is NaN.
    """
    if got.dtype.kind != "f":
        return np.argwhere(got != want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if terms:
        scale = max(1.0, float(np.nanmax(np.abs(want), initial=0)))
        same |= np.abs(got - want) <= terms * EPS[got.dtype] * scale
    return np.argwhere(~same)


@every_file
def test_the_reference_takes_it(
    name: str, truth: dict[tuple[str, bool], dict[str, np.ndarray]]
) -> None:
    inputs = inputs_of(name)
    after = reference_of(name, tiny=False, truth=truth)
    changed = any(
        not np.array_equal(after[key], array, equal_nan=True)
        for key, array in inputs.arrays.items()
    )
    assert changed == (name != "writes_nothing")


def check_run(
    name: str,
    ranks: int,
    cluster: Cluster,
    truth: dict[tuple[str, bool], dict[str, np.ndarray]],
    *,
    tiny: bool,
) -> None:
    want = reference_of(name, tiny=tiny, truth=truth)
    program, arrays = compiled(name, inputs_of(name, tiny=tiny), ranks)
    program.run(cluster, timeout=60)
    for key, array in arrays.items():
        terms = program.built.reordered.get(key, 0)
        wrong = differing(array, want[key], terms)
        assert not len(wrong), (
            f"{ranks} ranks: {key}{wrong[0].tolist()} is {array[tuple(wrong[0])]}, "
            f"not {want[key][tuple(wrong[0])]}"
        )


@pytest.mark.mpi
@every_file
def test_it_runs_on_three_ranks(
    name: str, cluster: Cluster, truth: dict[tuple[str, bool], dict[str, np.ndarray]]
) -> None:
    check_run(name, 3, cluster, truth, tiny=False)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("tiny", [False, True], ids=["usual", "tiny"])
@every_file
def test_it_runs_on_any_number_of_ranks(
    name: str,
    tiny: bool,
    cluster: Cluster,
    truth: dict[tuple[str, bool], dict[str, np.ndarray]],
) -> None:
    for ranks in RANKS:
        check_run(name, ranks, cluster, truth, tiny=tiny)
