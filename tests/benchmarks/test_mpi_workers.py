"""Peers on several ranks: what they compute, what a rank holds, and that none is left."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import kernels
from avial_lab.benchmarks.c_peers import mpi_compilers, mpi_source
from avial_lab.benchmarks.kernel_suite import KernelProgram, kernel_program
from avial_lab.benchmarks.mpi_builders import CallGroup, CGroup, GroupEntry, RankRunner
from avial_lab.benchmarks.mpi_workers import MpiGroup
from avial_lab.benchmarks.verification import Answer
from avial_lab.core.errors import AvialError, CheckError
from avial_lab.runtime.launch.processes import is_alive
from kernels.shares import ALL, ROWS, TRIANGLE, WITH_HALO, Share, collected, dealt

pytest.importorskip("mpi4py")

NAMES = [name for name in kernels.names() if (kernels.load(name).folder / "peer_mpi.c").is_file()]


def start_of(name: str, **numbers: int) -> KernelProgram:
    return kernel_program(name, size="MINI", numbers=numbers)


def c_group(start: KernelProgram, old: str = "", new: str = "") -> CGroup:
    compilers = mpi_compilers()
    if not compilers:
        pytest.skip("there is no mpicc")
    source = mpi_source(start.kernel, start.element, start.sizes)
    assert old in source
    folder = kernels.load(start.kernel.name).folder
    text = source.replace(old, new) if old else source
    return CGroup(folder / "peers_mpi.py", compilers[0], text, start.kernel.function)


def group_of(start: KernelProgram, entry: GroupEntry, ranks: int) -> MpiGroup:
    root = str(kernels.load(start.kernel.name).folder.parent.parent)
    return MpiGroup(entry, start.before, ranks=ranks, threads=1, places=[root], limit_s=60)


# -- what a rank holds -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", [ALL, ROWS, TRIANGLE, WITH_HALO])
@pytest.mark.parametrize(("rows", "ranks"), [(7, 1), (7, 3), (3, 3), (2, 3), (16, 4)])
def test_what_is_dealt_is_collected(share: Share, rows: int, ranks: int) -> None:
    array = np.arange(rows * 3.0).reshape(rows, 3)
    parts = [dealt({"a": share}, {"a": array, "n": 3}, rank, ranks) for rank in range(ranks)]
    assert all(part.pop("n") == 3 for part in parts)
    assert np.array_equal(collected({"a": share}, parts)["a"], array)


def test_a_halo_is_the_neighbours() -> None:
    array = np.arange(1.0, 7.0).reshape(6, 1)
    assert [WITH_HALO.of(array, rank, 2).ravel().tolist() for rank in range(2)] == [
        [0, 1, 2, 3, 4], [3, 4, 5, 6, 0],
    ]  # fmt: skip


# -- what they compute -----------------------------------------------------------------------------


def test_all_six_are_there() -> None:
    assert set(NAMES) == {"3mm", "atax", "gemm", "heat-3d", "jacobi-2d", "syr2k"}


@pytest.mark.quick("gemm", "jacobi-2d")
@pytest.mark.mpi
@pytest.mark.parametrize("name", NAMES)
def test_c_equals_the_truth(name: str) -> None:
    start = start_of(name)
    with closing(group_of(start, c_group(start), 3)) as group:
        assert group.run() > 0
        Answer(start).check(group.arrays())


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("element", ["f64", "i32"])
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_c_equals_the_truth_elsewhere(name: str, ranks: int, element: str) -> None:
    if element not in kernels.load(name).elements:
        pytest.skip(f"{name} has no {element} version")
    start = kernel_program(name, size="MINI", element=element)
    with closing(group_of(start, c_group(start), ranks)) as group:
        Answer(start).check(group.arrays())


@pytest.mark.quick("gemm", "heat-3d")
@pytest.mark.mpi
@pytest.mark.parametrize("name", NAMES)
def test_python_equals_the_truth(name: str) -> None:
    start = start_of(name)
    peers = kernels.load(name).folder / "peers_mpi.py"
    with closing(group_of(start, CallGroup(peers), 2)) as group:
        group.run()
        Answer(start).check(group.arrays())


@pytest.mark.mpi
def test_as_many_rows_as_ranks() -> None:
    start = start_of("jacobi-2d", N=3)
    with closing(group_of(start, c_group(start), 3)) as group:
        Answer(start).check(group.arrays())


@pytest.mark.mpi
def test_a_lost_halo_is_found() -> None:
    start = start_of("jacobi-2d")
    lost = c_group(start, "MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);",
                  "MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), from[0][5] = 9;")  # fmt: skip
    with closing(group_of(start, lost, 2)) as group, pytest.raises(CheckError, match="wrong: "):
        Answer(start).check(group.arrays())


# -- how they end ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded(GroupEntry):
    """Every rank tells its process and its cores, or raises, or ends."""

    ends: str = ""

    def rank_runner(self, arguments: Any, comm: Any) -> RankRunner:
        return _RecordedRankRunner(self.ends, comm)

    def seconds(self, answers: Any) -> float:
        return 1.0

    def merged(self, answers: Any, arguments: Any) -> dict[str, np.ndarray]:
        return {"recorded": np.array(answers, object)}


class _RecordedRankRunner(RankRunner):
    def __init__(self, ends: str, comm: Any) -> None:
        self.ends, self.comm = ends, comm

    def run(self) -> float:
        if self.ends == "raise" and self.comm.rank == 1:
            raise AvialError("rank 1 does not want to")
        if self.ends == "exit" and self.comm.rank == 1:
            os._exit(3)
        if self.ends:
            self.comm.Barrier()
        return 1.0

    def left(self) -> tuple[int, tuple[int, ...]]:
        return os.getpid(), tuple(sorted(os.sched_getaffinity(0)))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> str:
    """This module is found by the ranks."""
    root = str(Path(__file__).parents[2])
    monkeypatch.syspath_prepend(root)
    return root


def recorded_group(here: str, ends: str = "") -> MpiGroup:
    from tests.benchmarks import test_mpi_workers  # as the ranks will import it

    entry = test_mpi_workers.Recorded(ends)
    return MpiGroup(entry, {}, ranks=2, threads=1, places=[here], limit_s=60)


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and is_alive(psutil.Process(pid))


@pytest.mark.mpi
def test_ranks_have_cores_of_their_own_and_go(here: str) -> None:
    with closing(recorded_group(here)) as group:
        (first, own), (second, other) = group.arrays()["recorded"].tolist()
        if len(os.sched_getaffinity(0)) > 1:
            assert len(own) == len(other) == 1
            assert own != other
    assert not lives(first)
    assert not lives(second)
    assert not group.folder.exists()


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ends", "said"), [("raise", "rank 1 does not want to"), ("exit", "a rank ended")]
)
def test_a_fall_is_told(here: str, ends: str, said: str) -> None:
    """The other rank waits in a barrier, and is ended too."""
    with pytest.raises(AvialError, match=said):
        recorded_group(here, ends)


@pytest.mark.mpi
def test_fewer_rows_than_ranks_are_refused() -> None:
    start = start_of("gemm", NI=2)
    with pytest.raises(AvialError, match="C has fewer rows than there are ranks"):
        group_of(start, c_group(start), 3)
