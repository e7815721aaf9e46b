"""On any number of threads a rank computes the bits that it computes on one; what makes no sense is
refused with the range; and where the OpenMP runtime is missing there is one thread and a note.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import kernels
from avial_lab.artifact.binary import Binary
from avial_lab.core.errors import ClusterError, RunError
from avial_lab.core.toolchain import run, tool
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.cluster import run as run_on_cluster
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank import engine, threads
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.threads import MISSING, MOST, Masks, Threads
from kernels.kernel import ELEMENTS
from tests.nests import RandomFunction, functions
from tests.runtime.test_random_nests import QUICK

needs_openmp = pytest.mark.skipif(threads.openmp() is None, reason="no OpenMP runtime is here")
COUNTS = (1, 2, 3, 5)
SIZES = (67, 131, 5, 13, 3)
"""Dealt to a kernel's sizes in order: primes, one of them with rows for several threads."""

SEQUENTIAL = (
    "cholesky", "durbin", "lu", "ludcmp", "nussinov", "prefix-sum", "seidel-2d", "seidel-9pt",
    "trisolv",
)  # fmt: skip
"""What they have of parallel loops are rows, each between others, at sizes below two blocks."""


def always(count: int | None) -> Options:
    """Every marked loop is divided, however little there is to do."""
    return Options(threads=Threads(count, oversubscribe=True, worth=0), poison=True)


def loaded(program: Program) -> LoadedProgram:
    """In this process."""
    binary = program.binary
    return engine.load(binary.shared_object, digest(binary.shared_object), binary.manifest)


# -- the same bits ---------------------------------------------------------------------------------


@pytest.mark.quick(
    "heat-3d",
    "correlation",
    "gramschmidt",
    "ludcmp",
    "game-of-life",
    "nussinov",
    "gemm",
    "spmv",
    "histogram",
    "prefix-sum",
)
@needs_openmp
@pytest.mark.mpi
@pytest.mark.parametrize("name", kernels.names())
def test_every_kernel(name: str, cluster: Cluster) -> None:
    kernel = kernels.load(name)
    numbers = {
        key: 3 if key == "TSTEPS" else size
        for key, size in zip(kernel.size_names, SIZES, strict=False)
    }
    element = kernel.elements[-1]
    arguments = kernel.inputs(numbers, ELEMENTS[element], np.random.default_rng(7))
    before = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
    arrays = {key: value.copy() for key, value in before.items()}
    scalars: dict[str, Any] = {k: v for k, v in arguments.items() if k not in before}
    text = kernel.mlir(element, numbers)
    program = compile_program(text, arrays=arrays, scalars=scalars, ranks=1, name=name)
    assert name in SEQUENTIAL or "omp.parallel" in program.stages["loops"].text
    check_counts(program.binary, arrays, before, cluster, COUNTS)


def check_counts(
    binary: Binary,
    arrays: dict[str, np.ndarray],
    before: Mapping[str, np.ndarray],
    cluster: Cluster,
    counts: Sequence[int],
) -> None:
    """The same bits on each of these numbers of threads."""
    outcomes: list[dict[str, bytes]] = []
    for count in counts:
        for name, array in before.items():
            arrays[name][...] = array
        run_on_cluster(binary, arrays, cluster, options=always(count))
        outcomes.append({name: array.tobytes() for name, array in arrays.items()})
    assert outcomes[1:] == outcomes[:1] * (len(counts) - 1)


@needs_openmp
@pytest.mark.mpi
@QUICK
@given(function=functions(), ranks=st.integers(1, 2), count=st.sampled_from(COUNTS))
def test_random_functions(
    cluster: Cluster, function: RandomFunction, ranks: int, count: int
) -> None:
    """What one thread computes is compared with plain Python elsewhere."""
    note(f"{ranks} ranks of {count} threads, {function.scalars}\n{function.text}")
    arrays = {name: array.copy() for name, array in function.arrays.items()}
    program = compile_program(function.text, arrays=arrays, scalars=function.scalars, ranks=ranks)
    check_counts(program.binary, arrays, function.arrays, cluster, (1, count))


# -- how many --------------------------------------------------------------------------------------

TWO, FOUR = ((0,), (1,)), ((4,), (5,), (6,), (7,))
SMT = ((0, 4), (1, 5), (2, 6), (3, 7))
"""Four cores of two hardware threads each."""


@pytest.mark.parametrize(
    ("masks", "place", "expected"),
    [
        ([FOUR], 0, 4),
        ([FOUR] * 2, 1, 2),
        ([FOUR] * 3, 2, 1),
        ([TWO] * 5, 4, 1),
        ([SMT], 0, 4),  # a second thread of a core shares its vector units
        ([SMT] * 2, 1, 2),
        ([((0,),), ((1,),)], 1, 1),  # whoever started them has divided the cores
    ],
)
def test_by_default_the_share_of_the_cores(masks: Masks, place: int, expected: int) -> None:
    assert Threads().on(masks, place) == expected


def test_ranks_of_a_machine_share_no_core() -> None:
    eight = tuple((core, core + 8) for core in range(8))
    for ranks in range(1, 9):
        shares = [threads.share_of([eight] * ranks, place) for place in range(ranks)]
        cores = [core for share in shares for core in share]
        assert len(cores) == len(set(cores)), shares
        assert set(cores) <= set(eight)
        assert len({len(share) for share in shares}) == 1


@pytest.mark.parametrize("count", [0, -1, 3, 10_000])
def test_what_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(ClusterError, match=f"{count} threads") as caught:
        Threads(count).on([FOUR] * 2, 0)
    assert caught.value.hint == f"expected 1 to 2; up to {MOST} with oversubscribe"


def test_a_core_may_run_several_threads_where_they_are_asked_for() -> None:
    assert Threads(8).on([SMT], 0) == 8
    with pytest.raises(
        ClusterError, match=r"invalid value: 4 cores \(8 hardware threads\)"
    ) as caught:
        Threads(9).on([SMT], 0)
    assert caught.value.hint == f"expected 1 to 8; up to {MOST} with oversubscribe"


@pytest.mark.parametrize("count", [0, MOST + 1])
def test_and_also_where_more_than_the_cores_are_asked_for(count: int) -> None:
    assert Threads(MOST, oversubscribe=True).on([TWO], 0) == MOST
    with pytest.raises(ClusterError) as caught:
        Threads(count, oversubscribe=True).on([TWO], 0)
    assert caught.value.hint == f"expected 1 to {MOST}"


@pytest.fixture
def doubling() -> Program:
    text = """func.func @twice(%A: memref<?xf64>) {
      %n = arith.constant 0 : index
      %size = memref.dim %A, %n : memref<?xf64>
      affine.for %i = 0 to %size {
        %a = affine.load %A[%i] : memref<?xf64>
        %b = arith.addf %a, %a : f64
        affine.store %b, %A[%i] : memref<?xf64>
      }
      return
    }"""
    return compile_program(text, arrays={"A": np.ones(1000)}, ranks=1)


def test_a_refusal_leaves_the_arrays_alone(doubling: Program) -> None:
    with pytest.raises(ClusterError, match="invalid value"):
        doubling.run(threads=-1)
    assert (doubling.arrays["A"] == 1).all()


@pytest.mark.mpi
def test_a_refusal_costs_no_engines(doubling: Program, cluster: Cluster) -> None:
    before = [fact.pid for fact in cluster.status.facts]
    with pytest.raises(ClusterError, match="10000 threads"):
        doubling.run(cluster, threads=10_000)
    doubling.run(cluster)
    assert [fact.pid for fact in cluster.status.facts] == before
    assert (doubling.arrays["A"] == 2).all()


# -- the library, the cores ------------------------------------------------------------------------


def test_without_the_library(doubling: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "openmp", lambda: None)
    program = loaded(doubling)
    with threads.team(program, Threads(3, oversubscribe=True), [TWO], 0) as team:
        assert (team.count, team.note) == (1, MISSING)
        assert program.get_global("avial_threads") == 1


def test_a_library_that_is_none_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libomp.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(threads, "mapped_files", lambda _: [broken, tmp_path / "libiomp5.so"])
    monkeypatch.setattr(threads, "_installed", list)
    assert threads.openmp.__wrapped__() is None


def affinities() -> Iterator[str]:
    for task in Path("/proc/self/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("Cpus_allowed_list:"):
                yield line.split()[1]


@needs_openmp
@pytest.mark.skipif(len(threads.cores()) < 2, reason="there is one core: nothing to tell apart")
def test_the_team_stays_on_its_cores(doubling: Program) -> None:
    program = loaded(doubling)
    before, masks = os.sched_getaffinity(0), [threads.cores()] * 2
    (core,) = map(str, threads.share_of(masks, 1)[0])
    others = list(affinities()).count(core)
    with threads.team(program, Threads(3, oversubscribe=True), masks, 1) as team:
        assert team.count == 3
        assert list(affinities()).count(core) - others >= 3
    assert os.sched_getaffinity(0) == before, "Python's own thread is free again"


RECORDER = """
#include "threads.c"
#include <stdio.h>

int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *mask)
{
    printf("%d", (int)pid);
    for (size_t core = 0; core < 8 * bytes; core++)
        if (CPU_ISSET_S(core, bytes, mask))
            printf(" %zu", core);
    puts("");
    return 0;
}

static int32_t this_thread(ident_t *place) { return 0; }
static int32_t threads;
static void push(ident_t *place, int32_t thread, int32_t count) { threads = count; }
static void fork_call(ident_t *place, int32_t count, body_t body, ...)
{
    va_list given;
    va_start(given, body);
    void *captured = va_arg(given, void *);
    for (int32_t thread = 0; thread < threads; thread++)
        body(&thread, &thread, captured);
    va_end(given);
}

static ident_t here;
static void body(int32_t *global_thread, int32_t *bound_thread, ...) {}
static void program_divides_a_loop(void) { __kmpc_fork_call(&here, 0, body); }

int main(void)
{
    int32_t cores[] = {5, 3, 70};
    avial_omp_global_thread_num = this_thread;
    avial_omp_push_num_threads = push;
    avial_omp_fork_call = fork_call;
    avial_omp_bind(4, 3, cores);
    avial_omp_bind_later(4, 3, cores);
    if (avial_omp_bind_later(0, 0, 0)) return 1;
    avial_omp_bind_later(4, 3, cores);
    program_divides_a_loop();
    return !avial_omp_bind_later(0, 0, 0);
}
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads are not placed here")
def test_each_thread_begins_on_a_core_of_its_own_and_is_free_then(tmp_path: Path) -> None:
    (tmp_path / "recorder.c").write_text(RECORDER)
    home = str(resources.files("avial_lab.runtime.native"))
    program = str(tmp_path / "recorder")
    built = run([str(tool("cc")), "-I", home, "-o", program, f"{program}.c"])
    assert built.returncode == 0, built.stderr
    done = run([program])
    assert done.returncode == 0, "a run that divides a loop, and no other, is put on its cores"
    said = done.stdout.splitlines()
    assert said[1::2] == ["0 3 5 70"] * 8
    assert said[::2] == ["0 5", "0 3", "0 70", "0 5"] * 2, "more threads than cores share them"


# -- mistakes --------------------------------------------------------------------------------------


@needs_openmp
@pytest.mark.mpi
def test_a_crash_in_a_thread_is_the_ranks() -> None:
    text = """func.func @far(%A: memref<100xf64>, %P: memref<100xindex>) {
      %one = arith.constant 1.0 : f64
      %zero = arith.constant 0 : index
      %step = arith.constant 1 : index
      %n = arith.constant 100 : index
      scf.parallel (%i) = (%zero) to (%n) step (%step) {
        %p = memref.load %P[%i] : memref<100xindex>
        memref.store %one, %A[%p] : memref<100xf64>
      }
      return
    }"""
    places = np.arange(100)
    places[99] = 1 << 50  # the last part is not that of the thread that began
    program = compile_program(text, arrays={"A": np.zeros(100), "P": places}, ranks=1)
    with pytest.raises(RunError, match="SIGSEGV"):
        mpiexec.run(program.binary, program.arrays, options=always(2))
    assert not program.arrays["A"].any()
