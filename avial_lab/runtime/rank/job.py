"""A run under plain mpiexec, as a private directory that the caller and the ranks share.

Binary, pieces -> files; files -> Outcomes.

    job.pickle          the binary and the options
    RANK.in.K.npy       parcels of the rank's input pieces
    RANK.parts          those input pieces that it reads from files itself (array_files.py)
    RANK.journal …      what the rank is doing (journal.py)
    RANK.out.K.npy      parcels of its result pieces
    RANK.outcome        the rest of its Outcome; there only once everything of that rank is there
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import Manifest
from avial_lab.runtime.rank.array_files import FilePart
from avial_lab.runtime.rank.exchange import piece_sizes
from avial_lab.runtime.rank.outcome import Outcome
from avial_lab.runtime.rank.parcels import pack, unpack
from avial_lab.runtime.rank.threads import Threads


@dataclass(frozen=True)
class Options:
    """traced: take each step's times; of a program of loops at most `most_events` are kept one by
    one, of all ranks together. poison: fill unwritten memory with NaN or 0xA5. threads: of each
    rank. device_seed: emulated devices do everything as late as they may, or in an order drawn from
    it. driver: what drives devices, of `DRIVERS`, whatever the program was made for. gpu_memory:
    bytes that it takes at most on each of them, 0 for as many as there are.
    """

    traced: bool = True
    poison: bool = False
    most_events: int = 1 << 15
    threads: Threads = field(default_factory=Threads)
    device_seed: int = 0
    driver: str = ""
    gpu_memory: int = 0


def write_job(directory: Path, binary: Binary, options: Options) -> None:
    (directory / "job.pickle").write_bytes(pickle.dumps((binary, options)))


def read_job(directory: Path) -> tuple[Binary, Options]:
    return pickle.loads((directory / "job.pickle").read_bytes())


def write_inputs(directory: Path, rank: int, pieces: Sequence[np.ndarray]) -> None:
    _write(directory, rank, "in", pack(pieces))


def write_parts(directory: Path, rank: int, parts: Mapping[int, FilePart]) -> None:
    (directory / f"{rank}.parts").write_bytes(pickle.dumps(dict(parts)))


def read_parts(directory: Path, rank: int) -> dict[int, FilePart]:
    path = directory / f"{rank}.parts"
    return pickle.loads(path.read_bytes()) if path.exists() else {}


def read_parcels(directory: Path, rank: int) -> list[np.ndarray]:
    """The rank's input parcels; copy on write, so that a whole storage is used where the page cache
    has it.
    """
    return _read(directory, rank, "in", mode="c")


def write_outcome(directory: Path, outcome: Outcome) -> None:
    _write(directory, outcome.rank, "out", pack(outcome.results))
    # Renamed into place last: a reader sees all of it or nothing.
    partial = directory / f"{outcome.rank}.partial"
    partial.write_bytes(pickle.dumps(replace(outcome, results=())))
    partial.rename(directory / f"{outcome.rank}.outcome")


def read_outcome(directory: Path, manifest: Manifest, rank: int) -> Outcome | None:
    """What the rank left; None as long as it is not done."""
    path = directory / f"{rank}.outcome"
    if not path.exists():
        return None
    outcome: Outcome = pickle.loads(path.read_bytes())
    sizes = piece_sizes(manifest, outcome.pieces)
    return replace(outcome, results=tuple(unpack(_read(directory, rank, "out", mode="r"), sizes)))


def _write(directory: Path, rank: int, way: str, parcels: Sequence[np.ndarray]) -> None:
    for k, parcel in enumerate(parcels):
        np.save(directory / f"{rank}.{way}.{k}.npy", parcel)


def _read(directory: Path, rank: int, way: str, *, mode: str) -> list[np.ndarray]:
    files = sorted(
        directory.glob(f"{rank}.{way}.*.npy"), key=lambda file: int(file.name.split(".")[2])
    )
    return [np.load(file, mmap_mode=mode) for file in files]  # type: ignore[call-overload]
