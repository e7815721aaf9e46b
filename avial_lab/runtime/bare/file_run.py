"""`mpiexec -n 2 python3 run.py --in a=a.npy --out b=b.npy --trace t.json`: one run of a program.

A bundle, arrays in files -> arrays in files, a trace. Each rank reads what it needs of the files
that its node sees; rank 0 writes. The ranks are those that mpiexec or srun has started.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import Manifest
from avial_lab.core.buffers import Buffer
from avial_lab.core.command_line import NearestWords
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import AvialError, BindError, ClusterError
from avial_lab.core.files import save_array
from avial_lab.core.words import count, listed
from avial_lab.runtime.bare.contents import MPI, Bundle, Packed
from avial_lab.runtime.native.loader import digest
from avial_lab.runtime.rank.copies import copies
from avial_lab.runtime.rank.engine import line_buffered, load, run
from avial_lab.runtime.rank.exchange import caller_arrays, piece_sizes
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.outcome import GRACE_S, Outcome, ranks_failed, results_of
from avial_lab.runtime.rank.threads import Threads
from avial_lab.runtime.rank.traces import trace_of

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

OPTIONS = ("--in", "--out", "--trace", "--program")
"""Who names one of them wants a run, and no check."""


@dataclass(frozen=True)
class Files:
    """inputs, outputs: files by the names of arrays."""

    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    trace: Path | None = None


def wanted(arguments: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in OPTIONS for word in arguments)


def main(folder: Path, arguments: Sequence[str], driver: str) -> int:
    """driver: of `DRIVERS`, for programs that use a GPU."""
    options = _parser(driver).parse_args(arguments)
    world = None
    try:
        world = _world(folder, options.mpi) if copies()[0] > 1 else None
        files = Files(_named(options.inputs), _named(options.outputs), options.trace)
        bundle = Bundle.at(folder)
        packed = chosen(bundle, options.program, options.on, 1 if world is None else world.size)
        how = Options(
            traced=options.trace is not None, threads=Threads(options.threads),
            driver=options.driver,
        )  # fmt: skip
        told = run_on_files(bundle.binary(packed.name), files, world, how)
        if told:
            print(f"{packed.name}: {told}")
        return 0
    except AvialError as error:
        _end(error, world)


def _parser(driver: str) -> argparse.ArgumentParser:
    parser = NearestWords(
        prog="run.py",
        description="Run a program of this bundle on the ranks that mpiexec or srun has started.",
    )
    named = {"action": "append", "default": [], "metavar": "NAME=FILE.npy"}
    parser.add_argument("--in", dest="inputs", help="an array that the program reads", **named)
    parser.add_argument("--out", dest="outputs", help="save an array after the run", **named)
    parser.add_argument("--trace", type=Path, metavar="FILE.json", help="for ui.perfetto.dev")
    parser.add_argument(
        "--program", default="", metavar="NAME", help="where the bundle has several"
    )
    parser.add_argument("--on", choices=("cpu", "gpu"), help="by default cpu where it is packed so")
    parser.add_argument("--threads", type=int, metavar="N", help="of each rank")
    parser.add_argument("--driver", choices=("cuda", "apart"), default=driver)
    parser.add_argument(
        "--mpi", choices=("bundled", "node"), default=_usual_mpi(),
        help="the MPI of this bundle (MPICH), or the one that this node's loader finds; "
        "by default the bundle's, but where Open MPI has started the ranks",
    )  # fmt: skip
    return parser


def _usual_mpi() -> str:
    return "node" if "OMPI_COMM_WORLD_SIZE" in os.environ else "bundled"


def _named(words: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in words:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise BindError(
                f"'{text}' is not NAME=FILE.npy",
                hint="for example --in a=a.npy --out b=b.npy; the checks write to -o FOLDER",
            )
        if name in found:
            raise BindError(f"'{name}' is given twice")
        found[name] = Path(file)
    return found


def chosen(bundle: Bundle, name: str, on: str | None, ranks: int) -> Packed:
    """The program of that name, or the only one; BindError where none is packed so."""
    every = bundle.contents.packed
    named = [each for each in every if each.name == name or each.title.startswith(name)]
    fits = [each for each in named if each.ranks == ranks and on in (None, each.on)]
    if on is None and any(each.on == "cpu" for each in fits):
        fits = [each for each in fits if each.on == "cpu"]
    exact = [each for each in fits if each.name == name]
    if len(exact or fits) == 1:
        return (exact or fits)[0]
    if fits:
        raise BindError(
            f"this bundle has {count(len(fits), 'program')} for {count(ranks, 'rank')}",
            hint="say which: " + ", ".join(f"--program '{each.name}'" for each in fits[:8]),
        )
    counts = sorted({each.ranks for each in named})
    if not named:
        raise BindError(
            f"this bundle has no program '{name}'",
            hint=f"it has {listed(sorted({each.title for each in every}))}",
        )
    raise BindError(
        f"no program of this bundle is for {count(ranks, 'rank')}{f' on {on}' if on else ''}; "
        f"there are some for {listed(list(map(str, counts)))}",
        hint=f"mpiexec -n {counts[-1]} python3 run.py … (or srun --mpi=pmi2 -n {counts[-1]} …); "
        f"or pack it again: avial-lab bundle PROGRAM -o DIR -n {ranks}",
    )


def run_on_files(binary: Binary, files: Files, world: Intracomm | None, options: Options) -> str:
    """On rank 0 what it did, in a line."""
    manifest, rank = binary.manifest, 0 if world is None else world.rank
    arrays = _arrays(manifest, files)
    line_buffered()
    with tempfile.TemporaryDirectory(prefix="avial-bare-") as folder:
        journal = Journal(Path(folder), rank, pid=os.getpid())
    # Gone already, so that nothing is left of a rank that is killed; what it dies of, all may read.
    faulthandler.enable(all_threads=False)
    inputs = caller_arrays(manifest, arrays).inputs_of(rank)
    program = load(binary.shared_object, digest(binary.shared_object), manifest)
    outcome = run(program, manifest, rank, inputs, journal=journal, options=options)
    if outcome.failure is not None:
        raise ranks_failed(manifest, {rank: outcome.failure}, {})
    outcomes = [outcome] if world is None else _gathered(world, manifest, outcome)
    if rank:
        return ""
    caller_arrays(manifest, arrays).write_results(results_of(outcomes))
    trace = trace_of(manifest, outcomes)
    for name, path in files.outputs.items():
        save_array(path, arrays[name])
    if files.trace is not None:
        with _writing(files.trace):
            trace.save(files.trace)
    notes = "; ".join(dict.fromkeys(each.team.note for each in outcomes if each.team.note))
    took = f", {trace.makespan_s:.3g} s" if options.traced else ""
    return f"{count(manifest.ranks, 'rank')}{took}{f' ({notes})' if notes else ''}"


def _arrays(manifest: Manifest, files: Files) -> dict[str, np.ndarray]:
    """All of the program's: of files, of which only what is touched is read and nothing written;
    zeros where nobody reads what was there before.
    """
    known = {buffer.name: buffer for buffer in manifest.buffers if not buffer.temporary}
    for name in (*files.inputs, *files.outputs):
        if name not in known:
            raise BindError(
                f"the program has no array '{name}'", hint=f"it has {listed(list(known))}"
            )
    read = {
        name
        for storage in manifest.storages
        for name in storage.buffers
        if any(piece.storage == storage.name and not piece.box.empty for piece in manifest.inputs)
    }
    missing = [name for name in known if name in read and name not in files.inputs]
    if missing:
        raise BindError(
            f"the program reads array '{missing[0]}' ({known[missing[0]].type}), and no file of it "
            "is given",
            hint=f"--in {missing[0]}=FILE.npy",
        )
    return {
        name: _read(name, files.inputs[name])
        if name in files.inputs
        else _zeros(buffer)
        for name, buffer in known.items()
    }  # fmt: skip


def _zeros(buffer: Buffer) -> np.ndarray:
    return np.zeros(buffer.shape, dtype_of_element(buffer.element))


def _read(name: str, path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except OSError as error:
        raise BindError(
            f"--in {name}: cannot read {path}: {error.strerror or error}",
            hint="every node has to see it, there",
        ) from None
    except (ValueError, EOFError):
        raise BindError(
            f"--in {name}: {path} is no .npy file", hint="numpy.save writes one"
        ) from None


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise BindError(f"cannot write {path}: {error.strerror}") from None


# MPI ----------------------------------------------------------------------------------------------


def _world(folder: Path, which: str) -> Intracomm:
    """MPI as it is started here, from the bundle or from this node."""
    tag = f"py{sys.version_info[0]}{sys.version_info[1]}"
    if (folder / MPI / tag).is_dir():
        sys.path.insert(1, str(folder / MPI / tag))
    elif importlib.util.find_spec("mpi4py") is None:
        raise ClusterError(
            f"this bundle has no mpi4py for Python {tag[2]}.{tag[3:]}, nor has this node",
            hint=f"pack it again with --pythons {tag[2]}.{tag[3:]}",
        )
    if which == "bundled":
        os.environ.setdefault("MPI4PY_MPIABI", "mpich")
        ctypes.CDLL(str(folder / MPI / "lib" / "libmpi.so.12"), ctypes.RTLD_GLOBAL)
    os.environ.setdefault("MPI4PY_RC_THREAD_LEVEL", "funneled")
    try:
        from mpi4py.MPI import COMM_WORLD
    except (ImportError, RuntimeError) as error:
        raise ClusterError(
            f"this node has no MPI library that can be loaded: {error}",
            hint="--mpi bundled takes the bundle's",
        ) from None
    started, _ = copies()
    if COMM_WORLD.size != started:
        raise ClusterError(
            f"{started} processes were started, and MPI took this one for one of {COMM_WORLD.size}",
            hint="under Slurm: srun --mpi=pmi2 …; under the mpiexec of another MPI: --mpi node",
        )
    from avial_lab.runtime.rank.world import release_shared_memory

    release_shared_memory()
    return COMM_WORLD


def _gathered(world: Intracomm, manifest: Manifest, outcome: Outcome) -> list[Outcome]:
    """On rank 0 all of them; results go as they are, piece by piece."""
    heads = world.gather(replace(outcome, results=()))
    if heads is None:
        for piece in outcome.results:
            for part in _parts(piece):
                world.Send(part, 0)
        return []
    outcomes = [outcome]
    for head in heads[1:]:
        results = [np.empty(size, np.uint8) for size in piece_sizes(manifest, head.pieces)]
        for piece in results:
            for part in _parts(piece):
                world.Recv(part, head.rank)
        outcomes.append(replace(head, results=tuple(results)))
    return outcomes


def _parts(piece: np.ndarray) -> Iterator[np.ndarray]:
    """MPI counts in ints."""
    most = 1 << 30
    for low in range(0, piece.nbytes, most):
        yield piece[low : low + most]


def _end(error: AvialError, world: Intracomm | None) -> NoReturn:
    """Of all ranks; the others would wait for this one."""
    first = world is None or world.rank == 0
    if not first:  # what all find, rank 0 tells
        time.sleep(GRACE_S)
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    if world is not None:
        time.sleep(GRACE_S / 4)  # what was said has to reach mpiexec, which drops it once it aborts
        world.Abort(1)
    sys.exit(1)
