"""Arrays that are files: which those are, and the parts of them that a rank reads itself.

Arrays of the caller -> which pieces of a rank's inputs are in which files; on a host that sees the
same file, the flat bytes of such a piece.

    client                                      host
    a ── mapped ──► /shared/a.npy ◄── the rows of this rank ── rank
"""

from __future__ import annotations

import mmap
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from itertools import product
from math import prod
from pathlib import Path

import numpy as np

from avial_lab.core.errors import ClusterError
from avial_lab.core.regions import Box
from avial_lab.core.words import count, format_bytes, listed
from avial_lab.runtime.rank.exchange import CallerArrays, pieces_of
from avial_lab.runtime.rank.parcels import SMALL, aligned_empty
from avial_lab.runtime.rank.relay import Seen, unlike


@dataclass(frozen=True)
class ArrayFile:
    """An array, row-major, whose first byte is at `start` of a file; `seen` is what the client saw
    of the file, by which others know it again.
    """

    name: str
    path: str
    start: int
    shape: tuple[int, ...]
    itemsize: int
    seen: Seen


@dataclass(frozen=True)
class FilePart:
    """The elements of `box` of an array in a file."""

    file: ArrayFile
    box: Box

    @property
    def nbytes(self) -> int:
        return self.box.size * self.file.itemsize

    def read(self) -> np.ndarray:
        """As flat bytes. ClusterError where the file is no longer what it was."""
        data = aligned_empty(self.nbytes)
        with self._open() as file:
            at = 0
            for start, stop in self._runs():
                file.seek(self.file.start + start)
                end = at + stop - start
                while at < end:  # a system reads 2 GiB at once, at most
                    done = file.readinto(data[at:end].data)
                    if not done:
                        raise EOFError
                    at += done
        why = unlike(self.file.path, self.file.seen)
        if why:
            raise self._changed(why)
        return data

    @contextmanager
    def _open(self) -> Generator[FileIO]:
        try:
            with Path(self.file.path).open("rb", buffering=0) as file:
                yield file
        except (OSError, EOFError) as error:
            raise self._changed(str(error) or "it ends too soon") from None

    def _changed(self, why: str) -> ClusterError:
        return ClusterError(
            f"array '{self.file.name}' cannot be read from {self.file.path} any more: {why}",
            hint="a file has to stay as it is while a program runs on it",
        )

    def _runs(self) -> Iterator[tuple[int, int]]:
        """Bytes of the box that lie side by side, in order."""
        shape, box = self.file.shape, self.box
        inner = len(shape)
        while inner > 0 and (box.start[inner - 1], box.stop[inner - 1]) == (0, shape[inner - 1]):
            inner -= 1
        last = max(inner - 1, 0)  # what is behind it is whole
        strides = [prod(shape[d + 1 :]) * self.file.itemsize for d in range(len(shape))]
        length = prod(box.shape[last:]) * self.file.itemsize
        ranges = (range(box.start[d], box.stop[d]) for d in range(last))
        for outer in product(*ranges):
            at = sum(k * strides[d] for d, k in enumerate(outer))
            at += box.start[last] * strides[last] if shape else 0
            yield at, at + length


# The client's side --------------------------------------------------------------------------------


def file_parts(caller: CallerArrays) -> dict[int, dict[int, FilePart]]:
    """By rank, and by their number among its input pieces, those that are worth reading from files:
    of arrays that are mapped and unchanged (`numpy.load(…, mmap_mode="c")`).
    """
    manifest, files = caller.manifest, dict[str, ArrayFile]()
    for storage in manifest.storages:
        found = None if storage.shared else _file_of(storage.name, caller.arrays)
        if found is not None and found.shape == storage.shape:
            files[storage.name] = found
    parts: dict[int, dict[int, FilePart]] = {}
    for rank in range(manifest.ranks if files else 0):
        mine = {
            k: FilePart(files[piece.storage], piece.box)
            for k, piece in enumerate(pieces_of(manifest.inputs, rank))
            if piece.storage in files
        }
        parts[rank] = {k: part for k, part in mine.items() if part.nbytes >= SMALL}
    return {rank: mine for rank, mine in parts.items() if mine}


def files_of(parts: Mapping[int, FilePart]) -> list[ArrayFile]:
    """Each of them once."""
    return list(dict.fromkeys(part.file for part in parts.values()))


def readable(parts: Mapping[int, FilePart], reasons: Mapping[str, str]) -> dict[int, FilePart]:
    """Those whose files, by their paths, are not refused with a reason."""
    return {k: part for k, part in parts.items() if not reasons.get(part.file.path)}


def told(
    parts: Mapping[int, Mapping[int, FilePart]],
    reasons: Mapping[int, Mapping[str, str]],
    nodes: Sequence[str],
) -> list[str]:
    """What of which file the ranks read themselves, and why others got theirs sent; `nodes` are
    where the ranks are.
    """
    lines: list[str] = []
    for file in dict.fromkeys(file for mine in parts.values() for file in files_of(mine)):
        nbytes = Counter[str]()  # by why it is sent
        at: dict[str, list[str]] = {}
        for rank, mine in parts.items():
            why = reasons.get(rank, {}).get(file.path, "")
            nbytes[why] += sum(part.nbytes for part in mine.values() if part.file == file)
            at.setdefault(why, []).append(nodes[rank])
        for why, where in at.items():
            hosts = listed(list(dict.fromkeys(where)))
            size = format_bytes(nbytes[why])
            if why:
                lines.append(f"{size} of '{file.name}' sent to {hosts}: there {file.path} {why}")
            else:
                ranks = count(len(where), "rank")
                lines.append(f"{size} of '{file.name}' read by {ranks} from {file.path}")
    return lines


def _file_of(name: str, arrays: Mapping[str, np.ndarray]) -> ArrayFile | None:
    """The file that the array is; None where its values may be others."""
    array = memory = arrays[name]
    while isinstance(memory, np.ndarray) and not isinstance(memory, np.memmap):
        memory = memory.base
    if not isinstance(memory, np.memmap) or not array.flags.c_contiguous:
        return None
    path, mode, mapped = memory.filename, memory.mode, getattr(memory, "_mmap", None)
    if path is None or mapped is None or mode not in ("r", "c"):
        return None
    low = np.frombuffer(mapped, np.uint8).ctypes.data
    if mode == "c" and _written(low, low + len(mapped)):
        return None
    # NumPy maps from the page that its first element is in.
    start = memory.offset - memory.offset % mmap.ALLOCATIONGRANULARITY + array.ctypes.data - low
    with suppress(OSError):
        seen = Seen.of(str(path))
        return ArrayFile(name, str(path), start, array.shape, array.itemsize, seen)
    return None


def _written(low: int, high: int) -> bool:
    """Whether a page of copy-on-write memory is no longer the file's; True where nobody can say
    (other systems than Linux).
    """
    if sys.platform != "linux":
        return True
    inside, known = False, 0
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            bounds = [int(word, 16) for word in first.split("-")]
            inside = bounds[0] < high and low < bounds[1]
        elif inside and first in ("Anonymous:", "Swap:"):
            known += 1
            if int(rest.split()[0]):
                return True
    return not known


# The rank's side ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sees:
    """Asks an engine which of those files it cannot read as the client does. -> why, by path."""

    files: tuple[ArrayFile, ...]

    def __call__(self, *_: np.ndarray) -> dict[str, str]:
        return {file.path: unlike(file.path, file.seen) for file in self.files}


def joined(pieces: Sequence[np.ndarray], parts: Mapping[int, FilePart]) -> list[np.ndarray]:
    """A rank's input pieces: those that were sent, and in their places those in files."""
    every = list(pieces)
    for k in sorted(parts):
        every.insert(k, parts[k].read())
    return every
