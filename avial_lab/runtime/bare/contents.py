"""What is in a bundle, as it is packed and as it is read again.

run.py            the way in: it checks and races, or runs a program on files
job.sh            runs a program as a job of Slurm's, where that was asked for
Dockerfile        runs a program in a container
bundle.json       what it was made of, and of every case all but its arrays
cases.zip         NAME/binary.pickle, NAME/in/ARRAY.npy, NAME/out/ARRAY.npy
libdevices.so     the drivers alone
lib/              the part of avial_lab that needs no MLIR
mpi/bin, mpi/lib  MPICH; mpi/py312, mpi/py311, …: mpi4py for that Python
"""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.errors import AvialError
from avial_lab.trace import Copy

FORMAT = "avial-lab bundle"
VERSION = 1
INDEX, CASES, DEVICES, LIB, MPI = "bundle.json", "cases.zip", "libdevices.so", "lib", "mpi"


@dataclass(frozen=True)
class Case:
    """A program with inputs, and what a run leaves in its arrays.

    allowed: by array how far an element may be from the answer; 0: bit for bit. copies: by the
    plan, between which places, how many, and bytes. sent_bytes: between ranks, by the plan; None
    where only the run knows. note: why nothing goes to the device, where that is so.
    """

    name: str
    program: str
    element: str
    ranks: int
    gpus: int
    allowed: Mapping[str, float]
    copies: tuple[tuple[str, str, int, int], ...] = ()
    sent_bytes: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Packed:
    """A program to run on arrays from files; `on`: cpu, or gpu."""

    name: str
    program: str
    element: str
    ranks: int
    on: str = "cpu"

    @property
    def title(self) -> str:
        """Without the number of ranks."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True)
class Racer:
    """A program compiled for two numbers of turns, so that the difference is that of the turns
    alone; `peer` names what it is raced against. bytes: of a turn, each array once read or written.
    rehearsal: small, for the emulated device. arrays: shape and dtype by name, in order. on_device:
    whether anything of it runs on one. whole: its run is raced, with copies in and out.
    predicted_s: of a turn's kernels, by the card that the planner took for them.
    """

    name: str
    peer: str
    kind: str
    element: str
    arrays: Mapping[str, tuple[tuple[int, ...], str]]
    turns: tuple[int, int]
    bytes: int
    launches: int
    rehearsal: bool = False
    on_device: bool = True
    whole: bool = False
    predicted_s: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Made:
    """Of what, when, with what."""

    commit: str
    date: str
    version: str
    command: str
    cpu: str


@dataclass(frozen=True)
class Contents:
    made: Made
    cases: tuple[Case, ...]
    racers: tuple[Racer, ...]
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Programs that could not be packed, and why."""
    forms: tuple[Packed, ...] = ()
    """Programs without answers: for runs on files, and not for checks."""
    in_place: str = ""
    """The program whose arrays are on the GPU before and after: y = 2 x + y."""

    @property
    def packed(self) -> tuple[Packed, ...]:
        """All that can be run on files; the cases are for GPUs."""
        cases = (Packed(c.name, c.program, c.element, c.ranks, "gpu") for c in self.cases)
        return (*self.forms, *cases)


@dataclass(frozen=True)
class Bundle:
    """A bundle that is there."""

    folder: Path
    contents: Contents

    @staticmethod
    def at(folder: Path) -> Bundle:
        """Raises AvialError where there is none, or one of another version."""
        try:
            found: Any = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise AvialError(f"{folder} is no bundle: {error}") from None
        if (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise AvialError(f"{folder / INDEX} is of another version")
        return Bundle(folder, _contents(found))

    def binary(self, name: str) -> Binary:
        return pickle.loads(self._member(f"{name}/binary.pickle"))

    def arrays(self, name: str, which: str) -> dict[str, np.ndarray]:
        """`in` or `out`, in the order in which they were packed."""
        start = f"{name}/{which}/"
        with zipfile.ZipFile(self.folder / CASES) as archive:
            return {
                member.removeprefix(start).removesuffix(".npy"): np.load(
                    BytesIO(archive.read(member))
                )
                for member in archive.namelist()
                if member.startswith(start)
            }

    def _member(self, name: str) -> bytes:
        with zipfile.ZipFile(self.folder / CASES) as archive:
            return archive.read(name)


class Packing:
    """Writes cases.zip and bundle.json; `with` it, and both are there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._archive = zipfile.ZipFile(folder / CASES, "w", zipfile.ZIP_DEFLATED, compresslevel=9)

    def add_binary(self, name: str, binary: Binary) -> None:
        self._archive.writestr(f"{name}/binary.pickle", pickle.dumps(binary))

    def add_arrays(self, name: str, which: str, arrays: Mapping[str, np.ndarray]) -> None:
        for key, array in arrays.items():
            data = BytesIO()
            np.save(data, array, allow_pickle=False)
            self._archive.writestr(f"{name}/{which}/{key}.npy", data.getvalue())

    def close(self, contents: Contents) -> None:
        self._archive.close()
        index = {"format": FORMAT, "version": VERSION, **asdict(contents)}
        (self._folder / INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")


def by_places(copies: Iterable[Copy]) -> tuple[tuple[str, str, int, int], ...]:
    """From, to, number and bytes, summed over phases and in one order."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for copy in copies:
        number, nbytes = found.get((copy.source, copy.dest), (0, 0))
        found[copy.source, copy.dest] = number + copy.copies, nbytes + copy.nbytes
    return tuple((*ends, *sums) for ends, sums in sorted(found.items()))


def _contents(found: Mapping[str, Any]) -> Contents:
    return Contents(
        made=Made(**found["made"]),
        cases=tuple(
            Case(**{**case, "copies": tuple(map(tuple, case["copies"]))}) for case in found["cases"]
        ),
        racers=tuple(
            Racer(
                **{
                    **racer,
                    "turns": tuple(racer["turns"]),
                    "arrays": {
                        name: (tuple(shape), dtype)
                        for name, (shape, dtype) in racer["arrays"].items()
                    },
                }
            )
            for racer in found["racers"]
        ),
        refused=found["refused"],
        forms=tuple(Packed(**form) for form in found.get("forms", ())),
        in_place=found.get("in_place", ""),
    )
