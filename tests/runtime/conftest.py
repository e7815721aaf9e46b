"""Programs for the engines, compiled from C: an independent reading of the calling convention.

The stand-in obeys the same contract as avial_lab's compiler (globals `avial_*`, one memref
descriptor for each storage, a journal entry and two times for each step), so the runtime is tested
without the compiler, and either side's misreading of the contract shows.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.cache import spelled
from avial_lab.core.regions import Box
from avial_lab.core.toolchain import find_tool, run, tool
from avial_lab.planning.schedule import Piece, Step, StepKind, Transfer
from avial_lab.runtime.launch.processes import mpiexec_options

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

PRELUDE = """
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Handles travel as 64-bit integers, whatever type the MPI at hand gives them. */
int MPI_Comm_rank(int64_t comm, int *rank);
int MPI_Isend(const void *data, int count, int64_t type, int dest, int tag, int64_t comm, int64_t
*request); int MPI_Irecv(void *data, int count, int64_t type, int source, int tag, int64_t comm,
int64_t *request); int MPI_Wait(int64_t *request, void *status); int MPI_Barrier(int64_t comm);

int64_t avial_comm, avial_byte, avial_status_ignore, avial_error, avial_trace, avial_journal;

typedef struct { char *allocated, *aligned; int64_t offset, rest[]; } memref;
typedef struct { struct timespec start, mid; } clocks; /* the end is the start of the next */

static void enter(int64_t step) {
  *(volatile int64_t *)avial_journal = step;
  if (avial_trace) clock_gettime(CLOCK_MONOTONIC, &((clocks *)avial_trace)[step].start);
}

static void leave(int64_t step, int code) {
  if (code && !avial_error) avial_error = code | step << 32;
  if (avial_trace) clock_gettime(CLOCK_MONOTONIC, &((clocks *)avial_trace)[step + 1].start);
}
"""

Build = Callable[..., Binary]


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    if find_tool("cc") is None:
        pytest.skip("no C compiler: the stand-in programs cannot be built")
    pytest.importorskip("mpi4py", reason="no mpi4py: there are no ranks to run on")
    if find_tool("mpiexec") is None:
        pytest.skip("no mpiexec: ranks cannot be started")
    command = [str(tool("mpiexec")), "-n", "2", *mpiexec_options()]
    tried = run([*command, sys.executable, "-c", "from mpi4py import MPI"], limit_s=60)
    if tried.returncode != 0:
        pytest.skip(f"MPI cannot start two ranks: {tried.complaint}")


@pytest.fixture(scope="session")
def build() -> Build:
    """`build(arrays, tasks=…, programs=…, …) -> Binary`."""
    return stand_in


def stand_in(
    arrays: Mapping[str, np.ndarray],
    *,
    tasks: Mapping[str, str],
    programs: Sequence[str],
    transfers: Sequence[tuple[str, Box, int, int]] = (),
    inputs: Sequence[tuple[int, str]] = (),
    results: Sequence[tuple[int, str]] = (),
    uses_mpi: bool = True,
) -> Binary:
    """A program on `arrays` with one rank for each of `programs`.

    tasks: the C body of each; every storage is in scope under its name, as `char *`.
    programs: what each rank does, as `run t1; send 0; sent 0`.
    transfers: (storage, contiguous box, source, dest).
    inputs, results: (rank, storage), or (rank, storage, box).
    """
    binding = bind_arrays(arrays)
    storages = {storage.name: storage for storage in binding.storages}

    def piece(rank: int, name: str, box: Box | None = None) -> Piece:
        return Piece(rank, name, Box.whole(storages[name].shape) if box is None else box)

    moved = tuple(
        Transfer(
            k, name, box, source, dest, "producer", "consumer", box.size * storages[name].itemsize
        )
        for k, (name, box, source, dest) in enumerate(transfers)
    )
    steps = tuple(
        tuple(_step(text) for text in program.split(";") if text.strip()) for program in programs
    )
    manifest = KnownMessages(
        entry="main",
        ranks=len(programs),
        buffers=binding.buffers,
        storages=binding.storages,
        programs=steps,
        transfers=moved,
        inputs=tuple(piece(*row) for row in inputs),
        results=tuple(piece(*row) for row in results),
        devices={step.task: f"cpu{r}" for r, own in enumerate(steps) for step in own if step.task},
        uses_mpi=uses_mpi,
    )
    shared_object = _compile(_source(manifest, tasks))
    key = hashlib.sha256(shared_object + spelled(manifest).encode()).hexdigest()
    return Binary(key, shared_object, {}, manifest)


@cache
def _compile(source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.c")
        path.write_text(source)
        made = path.with_suffix(".so")
        subprocess.run([tool("cc"), "-shared", "-fPIC", "-O1", "-o", made, path], check=True)
        return made.read_bytes()


def _step(text: str) -> Step:
    word, _, name = text.strip().partition(" ")
    kind = StepKind(word)
    if kind is StepKind.RUN:
        return Step(kind, task=name)
    return Step(kind) if kind is StepKind.BARRIER else Step(kind, transfer=int(name))


def _source(manifest: KnownMessages, tasks: Mapping[str, str]) -> str:
    names = [storage.name for storage in manifest.storages]
    scope = ", ".join(f"char *{name}" for name in names) or "void"
    bodies = [f"static void task_{name}({scope}) {{ {body} }}" for name, body in tasks.items()]
    ranks = [
        f"if (rank == {rank}) {{ "
        + " ".join(_call(manifest, k, step) for k, step in enumerate(steps))
        + " }"
        for rank, steps in enumerate(manifest.programs)
    ]
    main = [
        "void _mlir_ciface_main(" + (", ".join(f"memref *{n}_" for n in names) or "void") + ") {",
        *(f"char *{name} = {name}_->aligned;" for name in names),
        f"int64_t requests[{len(manifest.transfers) + 1}]; int rank = 0;",
        "MPI_Comm_rank(avial_comm, &rank);" if manifest.uses_mpi else "",
        *ranks,
        "}",
    ]
    return "\n".join([PRELUDE, *bodies, *main, ""])


def _call(manifest: KnownMessages, number: int, step: Step) -> str:
    return f"enter({number}); {_body(manifest, number, step)} leave({number}, code{number});"


def _body(manifest: KnownMessages, number: int, step: Step) -> str:
    code = f"int code{number} ="
    if step.kind is StepKind.RUN:
        names = ", ".join(storage.name for storage in manifest.storages)
        return f"{code} 0; task_{step.task}({names});"
    if step.kind is StepKind.BARRIER:
        return f"{code} MPI_Barrier(avial_comm);"
    if step.kind in (StepKind.WAIT_RECEIVED, StepKind.WAIT_SENT):
        return f"{code} MPI_Wait(&requests[{step.transfer}], (void *)avial_status_ignore);"
    transfer = manifest.transfers[step.transfer]
    storage = next(s for s in manifest.storages if s.name == transfer.storage)
    start = (
        transfer.box.start[0] * (storage.nbytes // max(storage.shape[0], 1)) if storage.shape else 0
    )
    call, peer = (
        ("Isend", transfer.dest) if step.kind is StepKind.SEND else ("Irecv", transfer.source)
    )
    return (
        f"{code} MPI_{call}({storage.name} + {start}, {transfer.nbytes}, avial_byte, {peer}, "
        f"{transfer.index}, avial_comm, &requests[{transfer.index}]);"
    )


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three engines for the whole session; a test may cost them, the next one gets fresh ones."""
    pytest.importorskip("ipyparallel", reason="no ipyparallel: there is no cluster to run on")
    from avial_lab.runtime.launch.cluster import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # It would hide what C keeps back of what it prints.
        patch.delenv("PYTHONUNBUFFERED", raising=False)
        with Cluster.start(cpu=2, gpu=1) as started:
            yield started
