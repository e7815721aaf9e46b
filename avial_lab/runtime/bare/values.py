"""Cases run by ranks that stay, one after the other: `python -m … FOLDER DRIVER SEED NAME,NAME…`.

Each rank runs every case; rank 0 puts the results together, compares, and tells.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.errors import AvialError
from avial_lab.runtime.bare.children import tell
from avial_lab.runtime.bare.contents import Bundle, Case, by_places
from avial_lab.runtime.native.loader import digest
from avial_lab.runtime.rank.engine import load, run
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.outcome import Outcome, results_of
from avial_lab.runtime.rank.threads import Threads


def main(arguments: Sequence[str]) -> None:
    folder, driver, seed, names = arguments
    die_with_parent()
    bundle = Bundle.at(Path(folder))
    cases = {case.name: case for case in bundle.contents.cases}
    chosen = [cases[name] for name in names.split(",")]
    ranks = chosen[0].ranks
    comm = _world(ranks)
    rank = 0 if comm is None else comm.rank
    context = hold_context(driver)
    options = Options(traced=False, threads=Threads(1), driver=driver, device_seed=int(seed))
    with tempfile.TemporaryDirectory(prefix="avial-bare-") as journals:
        journal = Journal(Path(journals), rank, pid=os.getpid())
        for number, case in enumerate(chosen, 1):
            if rank == 0:
                tell({"began": case.name})
            found = _run(bundle, case, rank, comm, journal, number, options)
            if rank == 0:
                tell({"case": case.name, **found})
            if comm is not None:
                found = comm.bcast(found)
            if _is_sticky(found.get("said", "")):
                return  # the driver says the same to whatever comes next
    del context


def _is_sticky(said: str) -> bool:
    """Whether a context is good for nothing any more: an error of a kernel that ran."""
    found = re.search(r"CUDA error (\d+)", said)
    return found is not None and int(found[1]) in range(700, 800)


def die_with_parent() -> None:
    """A rank whose mpiexec was killed goes too, without a word to the device."""
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG, Linux
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)


def hold_context(driver: str) -> object:
    """Keeps the first GPU's primary context, which programs retain and release in each run, and
    which takes a quarter of a second to make.
    """
    if driver != "cuda":
        return None
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None  # the program will say so
    context = ctypes.c_void_p()
    if cuda.cuInit(0) == 0:
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    return cuda, context


def _world(ranks: int) -> Any:  # noqa: ANN401 (mpi4py's, which must not be loaded for one rank)
    if ranks == 1:
        return None
    from mpi4py import MPI

    from avial_lab.runtime.rank.world import release_shared_memory

    if MPI.COMM_WORLD.size != ranks:
        raise AvialError(f"{ranks} ranks were asked for, and MPI has {MPI.COMM_WORLD.size}")
    release_shared_memory()
    return MPI.COMM_WORLD


def _run(
    bundle: Bundle,
    case: Case,
    rank: int,
    comm: Any,  # noqa: ANN401
    journal: Journal,
    number: int,
    options: Options,
) -> dict[str, Any]:
    """What rank 0 has to say of a case."""
    binary = bundle.binary(case.name)
    arrays = bundle.arrays(case.name, "in")
    began = time.monotonic()
    outcome = ran(binary, arrays, rank, journal, number, options)
    outcomes = [outcome] if comm is None else comm.gather(outcome)
    seconds = time.monotonic() - began
    if rank:
        return {}
    failures = [
        f"rank {each.rank}: {each.failure.message}{_last(each.failure.traceback)}"
        for each in outcomes
        if each.failure is not None
    ]
    if failures:
        return {"ok": False, "said": "; ".join(dict.fromkeys(failures)), "seconds": seconds}
    caller_arrays(binary.manifest, arrays).write_results(results_of(outcomes))
    wrong, told = compared(arrays, bundle.arrays(case.name, "out"), case.allowed)
    copied = by_places(copy for each in outcomes for copy in each.copies)
    moves = [move for each in outcomes for move in each.moves]
    sent = sum(move.nbytes for move in moves)
    return {
        "way": outcome.way if any(move.devices for move in moves) else "",
        "ok": not wrong,
        "said": wrong or told,
        "seconds": seconds,
        "copies": copied,
        "copies_as_planned": copied == case.copies,
        "sent_bytes": sent,
        "sent_as_planned": case.sent_bytes is None or sent == case.sent_bytes,
    }


def ran(
    binary: Binary,
    arrays: Mapping[str, np.ndarray],
    rank: int,
    journal: Journal,
    number: int,
    options: Options,
) -> Outcome:
    """This rank's run of it."""
    manifest = binary.manifest
    program = load(binary.shared_object, digest(binary.shared_object), manifest)
    inputs = [data.copy() for data in caller_arrays(manifest, arrays).inputs_of(rank)]
    return run(program, manifest, rank, inputs, journal=journal, number=number, options=options)


def compared(
    got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], allowed: Mapping[str, float]
) -> tuple[str, str]:
    """What is wrong, or empty and how they agree. One NaN is as good as another."""
    near: list[str] = []
    for name, answer in want.items():
        mine, bound = got[name], allowed.get(name, 0.0)
        with np.errstate(all="ignore"):
            equal = _same_bits(mine, answer)
            far = ~equal if not bound else ~(equal | (np.abs(mine - answer) <= bound))
        if far.any():
            first = np.unravel_index(int(np.flatnonzero(far)[0]), far.shape)
            at = [int(k) for k in first]
            return (
                f"{int(far.sum()):,} of {far.size:,} elements of {name} differ, first at {at}: "
                f"{mine[first]!r} instead of {answer[first]!r}",
                "",
            )
        if not equal.all():
            near.append(f"{name} within {bound:.2g}")
    return "", "; ".join(near) or "bit for bit"


def _same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind not in "fc":
        return a == b
    word = np.dtype(f"u{a.dtype.itemsize}")
    return (a.view(word) == b.view(word)) | (np.isnan(a) & np.isnan(b))


def _last(traceback: str) -> str:
    lines = traceback.strip().splitlines()
    return f" ({lines[-3].strip()})" if len(lines) > 2 else ""


if __name__ == "__main__":
    main(sys.argv[1:])
