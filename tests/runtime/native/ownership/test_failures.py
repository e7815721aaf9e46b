"""What goes wrong in a structured program is told with the phase; the books never crash."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from avial_lab.core.buffers import Storage
from avial_lab.core.errors import RunError
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.launch import cluster as clusters
from avial_lab.runtime.native.ownership import own_error
from avial_lab.runtime.native.planned_run import plan_run
from tests.runtime.native.ownership.books import (
    READ,
    REDUCE,
    REPLICATE,
    TASK,
    UPDATE,
    WRITE,
    Access,
    Books,
    Phase,
    Range,
    Space,
)
from tests.runtime.native.ownership.cases import CASES, doubles
from tests.runtime.native.ownership.programs import PRELUDE, compiled
from tests.waiting import with_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avial_lab.runtime.launch.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A small one: several tests cost the engines, and wait for the next."""
    pytest.importorskip("ipyparallel", reason="no ipyparallel: there is no cluster to run on")
    with clusters.Cluster.start(cpu=3, gpu=0) as started:
        yield started


TWO_PHASES = """
{more}
enum {{ N = 8 }};
static void touches(const i64 *p, const i64 *r) {{
    avial_read(0, BOX(r[0] - 1, r[1])); avial_write(1, BOX(r[0], r[1]), 1);
}}
static void back(const i64 *p, const i64 *r) {{
    avial_read(1, BOX(r[0] - 1, r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}}
static void program(double *A, double *B) {{
    PHASE(0, REPLICATE, touches, 0, SPACE(1, N, N), {{
        for (i64 i = r[0]; i < r[1]; i++) B[i] = A[i-1];
    }});
    {between}
    PHASE(1, REPLICATE, back, 0, SPACE(1, N, N), {{
        for (i64 i = r[0]; i < r[1]; i++) {{ A[i] = B[i-1]; {inside} }}
    }});
}}
"""


def failing(*, between: str = "", inside: str = "", more: str = ""):
    source = TWO_PHASES.format(between=between, inside=inside, more=more)
    return doubles(source, "AB", "first second")


def arrays() -> dict[str, np.ndarray]:
    return {"A": np.arange(8.0), "B": np.zeros(8)}


@pytest.mark.mpi
def test_a_rank_that_dies_is_known_with_its_phase(cluster: Cluster) -> None:
    program = failing(inside="if (i == 6) *(volatile int *)8 = 1;")
    given = arrays()
    with pytest.raises(RunError, match=r"rank 2 of 3 died of SIGSEGV in task 'second'"):
        clusters.run(program.binary(given, 3), given, cluster)
    np.testing.assert_array_equal(given["A"], np.arange(8.0), "the arrays are as they were")


@pytest.mark.mpi
def test_a_failed_message_is_known_with_its_phase(cluster: Cluster) -> None:
    program = failing(between="avial_byte = -1;", more="extern i64 avial_byte;")
    given = arrays()
    with pytest.raises(
        RunError, match=r"failed in task 'second' on cpu\d: .*(datatype|data type)"
    ) as caught:
        clusters.run(program.binary(given, 3), given, cluster)
    assert "Traceback" not in str(caught.value)


@pytest.mark.mpi
def test_a_run_that_never_ends_names_its_phase(cluster: Cluster) -> None:
    program = failing(inside="for (volatile int go = 1; go;) {}")
    given = arrays()
    binary = program.binary(given, 2)

    def stopped(limit_s: float) -> str:
        with pytest.raises(RunError, match="did not finish") as caught:
            clusters.run(binary, given, cluster, timeout=limit_s)
        return str(caught.value)

    assert "rank 1 is in task 'second'" in with_limits(stopped, lambda told: "second" in told)


@pytest.mark.mpi
def test_to_read_what_nobody_was_given_is_an_error_not_garbage(cluster: Cluster) -> None:
    given = arrays()
    binary = failing().binary(given, 2)
    pieces = tuple(p for p in binary.manifest.inputs if (p.rank, p.storage) != (0, "A"))
    cut = replace(binary, manifest=replace(binary.manifest, inputs=pieces), key="cut")
    with pytest.raises(RunError, match=r"in task 'first' on cpu\d: .* no rank holds"):
        clusters.run(cut, given, cluster)


@pytest.mark.mpi
def test_what_another_rank_was_given_is_fetched_from_it(cluster: Cluster) -> None:
    given, want = arrays(), arrays()
    binary = failing().binary(given, 2)
    pieces = (Piece(1, "A", Box((0,), (8,))), Piece(1, "B", Box((0,), (8,))))
    other = replace(binary, manifest=replace(binary.manifest, inputs=pieces), key="other")
    trace = clusters.run(other, given, cluster)
    want["B"][1:] = want["A"][:-1]
    want["A"][1:] = want["B"][:-1]
    np.testing.assert_array_equal(given["A"], want["A"])
    np.testing.assert_array_equal(given["B"], want["B"])
    assert {(m.phase, m.source, m.dest, m.nbytes) for m in trace.moves} == {
        ("first", 1, 0, 4 * 8),
        ("second", 1, 0, 8),  # B[0], which nobody wrote
        ("second", 0, 1, 8),
    }


FAILING_ALLOCATION = """
#include <stddef.h>
#include <stdlib.h>
long avial_allocations_left = -1;
static int spent(void) { return avial_allocations_left >= 0 && avial_allocations_left-- == 0; }
void *test_malloc(size_t n) { return spent() ? NULL : malloc(n); }
void *test_calloc(size_t n, size_t size) { return spent() ? NULL : calloc(n, size); }
void *test_realloc(void *p, size_t n) { return spent() ? NULL : realloc(p, n); }
void _mlir_ciface_main(void) {}
"""


def test_no_failed_allocation_is_a_crash() -> None:
    """Every allocation of a few phases fails once."""
    flags = ("-Dmalloc=test_malloc", "-Dcalloc=test_calloc", "-Drealloc=test_realloc",
             "-fno-builtin")  # fmt: skip
    storages = (Storage("a", (30, 30), 8, ("a",)), Storage("b", (30,), 8, ("b",)))
    books = Books(storages, 70, flags=flags, source=PRELUDE + FAILING_ALLOCATION)
    left = ctypes.c_long.in_dll(books.library, "avial_allocations_left")
    failed = allowed = 0
    for allowed in range(1000):
        left.value = allowed
        books.ownership.setup(70, None)
        for phase in _phases() * 2:
            books.run(phase)
        error = books.ownership.error
        for what in range(7):
            books.library.avial_table(ctypes.c_int64(what), None, ctypes.c_int64(0))
        if not error:
            break
        assert own_error(error) == "out of memory for a phase's ownership directory"
        failed += 1
    left.value = -1
    assert failed > 30
    assert allowed < 999, "at last none fails"
    books.ownership.setup(70, None)
    for phase in _phases():
        books.run(phase)
    assert not books.ownership.error, "the next run is a fresh one"


def _phases() -> list[Phase]:
    def rows(low: int, high: int, columns: int = 30):
        return lambda part: Box((part[0] + low, 0), (part[1] + high, columns))

    def rows_of_b(_: Range):
        return Box((0,), (9,))

    space = Space(0, 30, extent=30)
    return [
        Phase(0, REPLICATE, (Access(0, READ, rows(-1, 1)), Access(0, WRITE, rows(0, 0))), space),
        Phase(1, REPLICATE, (Access(0, UPDATE, rows(0, 0, 5)),), space, block=2, weights=(1, 2)),
        Phase(2, REPLICATE, (Access(1, REDUCE, lambda _: Box((0,), (30,)), 8),), space),
        Phase(2, TASK, (Access(0, READ, rows(0, 0)), Access(1, WRITE, rows_of_b)), space),
    ]


def test_an_array_of_too_many_dimensions_is_told() -> None:
    deep = (Storage("a", (1,) * 33, 8, ("a",)),)
    books = Books(deep, 2)
    assert own_error(books.ownership.error) == "an array has more than 32 dimensions"


def test_plans_of_a_program_know_nothing_of_each_other() -> None:
    case = CASES["stencil_in_two_dimensions"]
    shared_object = compiled(case.program.text())
    storages = tuple(Storage(name, (20, 20), 8, (name,)) for name in "AB")
    first = plan_run(shared_object, storages, 3)
    assert plan_run(shared_object, storages, 5) != first
    assert plan_run(shared_object, storages, 3) == first
