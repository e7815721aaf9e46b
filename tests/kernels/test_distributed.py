"""Every kernel on every number of ranks: the bits of the sequential run, within the bound of the
NumPy truth, and no byte more than has to travel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import avial_lab
import kernels
from avial_lab.artifact.plan import Plan
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from kernels.kernel import ELEMENTS, Arguments, Dataset, Kernel, Role

KERNELS = [kernels.load(name) for name in kernels.names()]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])

RANKS = (1, 2, 3, 4, 7)
SIZES = {
    "dividing": (12, 24, 12, 24, 12),
    "primes": (7, 11, 5, 13, 3),
    "smaller than the ranks": (3, 2, 4, 1, 2),
}
"""Dealt to a kernel's sizes in order; steps of time are few whatever stands here."""

MOST_TIME_STEPS = 3


# -- one kernel at one size ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A kernel's text and arguments, with what they come to."""

    kernel: Kernel
    text: str
    arguments: Arguments
    reference: dict[str, np.ndarray]

    @property
    def scalars(self) -> dict[str, Any]:
        return {k: v for k, v in self.arguments.items() if not isinstance(v, np.ndarray)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies: what a kernel only writes is poisoned."""
        return {k: v.copy() for k, v in self.arguments.items() if isinstance(v, np.ndarray)}


def sizes_of(kernel: Kernel, numbers: tuple[int, ...]) -> dict[str, int]:
    sizes = dict(zip(kernel.size_names, numbers, strict=False))
    return {k: min(v, MOST_TIME_STEPS) if k == "TSTEPS" else v for k, v in sizes.items()}


@cache
def case_of(name: str, element: str, sizes: str) -> Case:
    kernel = kernels.load(name)
    numbers = sizes_of(kernel, SIZES[sizes])
    rng = np.random.default_rng(len(name))
    arguments = kernel.inputs(numbers, ELEMENTS[element], rng)
    case = Case(kernel, kernel.mlir(element, numbers), arguments, {})
    arrays = case.arrays()
    after = compiled(case, arrays, 1).reference().data
    case.reference.update({key: after[key].reshape(value.shape) for key, value in arrays.items()})
    return case


def compiled(case: Case, arrays: dict[str, np.ndarray], ranks: int, without: str = "") -> Program:
    return avial_lab.compile(
        case.text, arrays=arrays, scalars=case.scalars, ranks=ranks, without=without
    )


def differing(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where the bits are others; a NaN is as good as another."""
    if got.dtype.kind != "f":
        return got != want
    bits = {4: np.uint32, 8: np.uint64}[got.itemsize]
    return (got.view(bits) != want.view(bits)) & ~(np.isnan(got) & np.isnan(want))


def check_run(cluster: Cluster, name: str, element: str, sizes: str, ranks: int) -> None:
    case = case_of(name, element, sizes)
    arrays = case.arrays()
    program = compiled(case, arrays, ranks)
    program.run(cluster)
    reordered = program.built.reordered
    truth, bound = case.kernel.truth(case.arguments), case.kernel.bound(case.arguments)
    for key, got in arrays.items():
        wrong = differing(got, case.reference[key])
        if key in reordered:
            wrong &= ~(np.abs(got - case.reference[key]) <= bound[key])
        assert not wrong.any(), (
            f"{ranks} ranks, {sizes}: {key}{np.argwhere(wrong)[0].tolist()} "
            f"is {got[wrong][0]}, not {case.reference[key][wrong][0]}"
        )
        if key in case.kernel.outputs:
            off = differing(got, truth[key]) & ~(np.abs(got - truth[key]) <= bound[key])
            assert not off.any(), f"{key}{np.argwhere(off)[0].tolist()} is not the truth"
        else:
            assert not differing(got, case.arguments[key]).any(), f"{key} is only read"


@pytest.mark.mpi
@every_kernel
def test_on_three_ranks(kernel: Kernel, cluster: Cluster) -> None:
    check_run(cluster, kernel.name, kernel.elements[-1], "primes", 3)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sizes", SIZES)
@every_kernel
def test_on_every_number_of_ranks(kernel: Kernel, sizes: str, cluster: Cluster) -> None:
    for element in kernel.elements:
        for ranks in RANKS:
            check_run(cluster, kernel.name, element, sizes, ranks)


# -- what travels ----------------------------------------------------------------------------------


def planned(name: str, ranks: int, **sizes: int) -> Plan:
    """What the kernel moves in double precision, to the byte, if stencils exchange their halos in
    every step; nothing runs.
    """
    kernel = kernels.load(name)
    arguments = kernel.inputs(sizes, np.float64, np.random.default_rng(0))
    case = Case(kernel, kernel.mlir("f64", sizes), arguments, {})
    plan = compiled(case, case.arrays(), ranks, "widen-halos").plan
    assert plan is not None
    assert plan.complete
    return plan


def moved(plan: Plan) -> Counter[tuple[int, int]]:
    """Bytes by source and destination."""
    found: Counter[tuple[int, int]] = Counter()
    for move in plan.moves:
        found[move.source, move.dest] += move.nbytes
    return found


def given(plan: Plan, name: str) -> list[int]:
    """Elements of that array that each rank is given at the beginning."""
    found = [0] * plan.ranks
    for piece in plan.inputs:
        if piece.storage == name:
            found[piece.rank] += piece.box.size
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_jacobi_exchanges_two_rows_for_each_neighbours_pair_and_sweep(ranks: int) -> None:
    n, steps = 64, 10
    plan = planned("jacobi-2d", ranks, TSTEPS=steps, N=n)
    # Of each row the inner columns; before the first sweep the halo was given with the rest.
    row = (n - 2) * 8
    pairs = {(r, r + 1) for r in range(ranks - 1)} | {(r + 1, r) for r in range(ranks - 1)}
    assert moved(plan) == dict.fromkeys(pairs, (2 * steps - 1) * row)
    assert sum(move.messages for move in plan.moves) == len(pairs) * (2 * steps - 1)


def test_jacobi_holds_on_each_rank_its_rows_and_two_more() -> None:
    n = 64
    for ranks in (1, 2, 4, 7):
        plan = planned("jacobi-2d", ranks, TSTEPS=3, N=n)
        rows = -(-n // ranks) + 2 * (ranks > 1)
        assert max(plan.held_bytes) <= 2 * rows * n * 8
        assert sum(plan.held_bytes) <= 2 * (n + 2 * (ranks - 1)) * n * 8


def test_heat_exchanges_faces_alone() -> None:
    n, steps, ranks = 20, 4, 4
    plan = planned("heat-3d", ranks, TSTEPS=steps, N=n)
    face = (n - 2) ** 2 * 8
    for (source, dest), nbytes in moved(plan).items():
        assert abs(source - dest) == 1
        assert nbytes == (2 * steps - 1) * face
    assert plan.bytes_moved == 2 * (ranks - 1) * (2 * steps - 1) * face


@pytest.mark.parametrize("sizes", [(24, 24, 24), (40, 8, 16), (8, 40, 16)])
def test_gemm_is_given_all_and_moves_nothing(sizes: tuple[int, int, int]) -> None:
    ranks, (ni, nj, nk) = 4, sizes
    plan = planned("gemm", ranks, NI=ni, NJ=nj, NK=nk)
    assert plan.bytes_moved == 0
    assert sum(given(plan, "C")) == ni * nj
    a, b = given(plan, "A"), given(plan, "B")
    by_rows = (sum(a), sum(b)) == (ni * nk, ranks * nk * nj)
    by_columns = (sum(a), sum(b)) == (ranks * ni * nk, nk * nj)
    assert by_rows or by_columns
    # What goes to every rank is the smaller one.
    assert sum(a) + sum(b) <= min(ni * nk + ranks * nk * nj, ranks * ni * nk + nk * nj)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_3mm_sends_one_product_to_every_rank_once(ranks: int) -> None:
    sizes = {"NI": 20, "NJ": 14, "NK": 16, "NL": 18, "NM": 12}
    plan = planned("3mm", ranks, **sizes)
    left, right = sizes["NI"] * sizes["NJ"] * 8, sizes["NJ"] * sizes["NL"] * 8
    assert plan.bytes_moved == (ranks - 1) * min(left, right)
    assert {move.phase for move in plan.moves} == {plan.phases[-1].phase}


@pytest.mark.parametrize("name", ["mvt", "atax", "bicg", "gesummv"])
def test_of_matrix_times_vector_only_vectors_travel(name: str) -> None:
    n, ranks = 60, 4
    kernel = kernels.load(name)
    plan = planned(name, ranks, **dict.fromkeys(kernel.size_names, n))
    # A vector at most to every rank, and from every rank partial sums of one.
    assert plan.bytes_moved <= 2 * ranks * (ranks - 1) * n * 8
    sweeps = 2 if name == "mvt" else 1  # by rows, then by columns: the corners are the same
    assert sum(given(plan, "A")) <= sweeps * n * n


@every_kernel
def test_plans_give_what_is_read_and_take_back_what_is_written(kernel: Kernel) -> None:
    sizes = sizes_of(kernel, SIZES["primes"])
    element = kernel.elements[-1]
    arguments = kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(0))
    case = Case(kernel, kernel.mlir(element, sizes), arguments, {})
    plan = compiled(case, case.arrays(), 3).plan
    assert plan is not None
    written = {piece.storage for piece in plan.results}
    assert written <= set(kernel.outputs)
    boxes = [piece for piece in plan.results if not piece.box.empty]
    for k, piece in enumerate(boxes):
        assert not any(
            other.storage == piece.storage and other.box.overlaps(piece.box) for other in boxes[:k]
        ), "two ranks return one element"
    if plan.complete:
        for name in kernel.outputs:
            if getattr(kernel.arguments[name], "role", None) is Role.OUT:
                # Halos of what is only written are given where some of it is not written at all.
                assert name in written


@pytest.mark.quick("gemm", "jacobi-2d")
@pytest.mark.parametrize("name", ["gemm", "jacobi-2d", "heat-3d", "mvt", "fdtd-2d", "2mm", "syrk"])
def test_most_kernels_hold_less_the_more_ranks_there_are(name: str) -> None:
    kernel = kernels.load(name)
    sizes = {k: min(v, 40) for k, v in kernel.datasets[Dataset.MINI].items()}
    one, four = (max(planned(name, ranks, **sizes).held_bytes) for ranks in (1, 4))
    assert four < 0.8 * one
