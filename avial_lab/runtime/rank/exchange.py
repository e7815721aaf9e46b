"""The caller's arrays at both ends of a run: what each rank gets, what comes back into them.

Manifest, arrays -> pieces for a rank; pieces of all ranks -> the arrays, written in place.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from avial_lab.artifact.manifest import Manifest
from avial_lab.core.buffers import Storage, bind_arrays, read_box, write_box
from avial_lab.core.errors import BindError
from avial_lab.core.regions import Box, difference
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.rank.parcels import as_bytes


@dataclass(frozen=True)
class CallerArrays:
    """The arrays of one run, checked to be what the program was compiled for."""

    manifest: Manifest
    arrays: Mapping[str, np.ndarray]

    def inputs_of(self, rank: int, *, without: Collection[int] = ()) -> list[np.ndarray]:
        """The pieces `rank` reads, as flat bytes, in the manifest's order; but those numbers."""
        storages = storage_table(self.manifest)
        return [
            as_bytes(read_box(self.arrays, storages[piece.storage], piece.box))
            for k, piece in enumerate(pieces_of(self.manifest.inputs, rank))
            if k not in without
        ]

    def write_results(self, results: Iterable[tuple[Piece, np.ndarray]]) -> None:
        """Put the flat bytes of every rank's result pieces where they belong."""
        storages = storage_table(self.manifest)
        with _interrupts_later():
            for piece, data in results:
                write_box(self.arrays, storages[piece.storage], piece.box, data)


def caller_arrays(manifest: Manifest, arrays: Mapping[str, np.ndarray]) -> CallerArrays:
    """`arrays` as the program's, or BindError before anything has run.

    They must be there, have the shape, element type and overlaps the program was compiled for, and
    be writable where results come back.
    """
    wanted = {buffer.name: buffer for buffer in manifest.buffers if not buffer.temporary}
    # In the order of the storages: the first of the arrays in one memory gives it its name.
    needed = [name for s in manifest.storages for name in s.buffers if name in wanted]
    missing = [name for name in needed if name not in arrays]
    if missing:
        name, want = missing[0], wanted[missing[0]]
        raise BindError(
            f"the program needs the array '{name}', which was not passed",
            hint=f"it is {want.type}: pass one of that name"
            + ("".join(f", or did you mean '{n}'?" for n in get_close_matches(name, arrays, n=1))),
        )
    given = bind_arrays({name: arrays[name] for name in needed})
    for buffer in given.buffers:
        want = wanted[buffer.name]
        element = "i64" if want.element == "index" else want.element  # to NumPy they are the same
        if (buffer.shape, buffer.element) != (want.shape, element):
            raise BindError(
                f"array '{buffer.name}' is {_shape(buffer.shape)}{buffer.element}, "
                f"and the program was compiled for {_shape(want.shape)}{want.element}",
                hint="compile again with these arrays, or pass arrays of that shape and dtype",
            )
        if buffer.gpu != want.gpu:
            raise BindError(
                f"array '{buffer.name}' is {_where(buffer.gpu)}, "
                f"and the program was compiled for one {_where(want.gpu)}",
                hint="compile again with these arrays",
            )
        here = (buffer.storage, buffer.offset_bytes, buffer.strides)
        if here != (want.storage, want.offset_bytes, want.strides):
            raise BindError(
                f"array '{buffer.name}' does not share memory with the other arrays "
                "in the way it did when the program was compiled",
                hint="compile again with these arrays, or pass copies",
            )
    _refuse_read_only(manifest, arrays)
    return CallerArrays(manifest, arrays)


def pieces_of(pieces: Sequence[Piece], rank: int) -> list[Piece]:
    """Those of `pieces` that belong to `rank`, in order."""
    return [piece for piece in pieces if piece.rank == rank]


def piece_sizes(
    manifest: Manifest, pieces: Sequence[Piece], *, without: Collection[int] = ()
) -> list[int]:
    """Bytes of each piece; but of those numbers."""
    storages = storage_table(manifest)
    return [
        piece.box.size * storages[piece.storage].itemsize
        for k, piece in enumerate(pieces)
        if k not in without
    ]


def holders_of(pieces: Sequence[Piece]) -> dict[int, tuple[Box, ...]]:
    """Of pieces of one array, each element by one rank: the first in order that holds it."""
    chosen: dict[int, list[Box]] = {}
    seen: dict[Box, None] = {}
    for piece in pieces:
        if piece.box in seen:
            continue
        others = [box for box in seen if box.overlaps(piece.box)]
        seen[piece.box] = None
        rest = difference((piece.box,), others) if others else (piece.box,)
        if rest:
            chosen.setdefault(piece.rank, []).extend(rest)
    return {rank: tuple(boxes) for rank, boxes in chosen.items()}


def storage_table(manifest: Manifest) -> dict[str, Storage]:
    return {storage.name: storage for storage in manifest.storages}


@contextmanager
def _interrupts_later() -> Generator[None]:
    """A Ctrl-C meanwhile is raised afterwards: the arrays are written all or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python interrupts the main thread alone
        return
    came: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt


def _refuse_read_only(manifest: Manifest, arrays: Mapping[str, np.ndarray]) -> None:
    storages = storage_table(manifest)
    written = dict.fromkeys(piece.storage for piece in manifest.results if not piece.box.empty)
    for name in written:
        buffers = storages[name].buffers
        if not any(arrays[buffer].flags.writeable for buffer in buffers):
            raise BindError(
                f"the program writes array '{buffers[0]}', which is read-only",
                hint=f"pass a copy: {buffers[0]}.copy()",
            )


def _where(gpu: int | None) -> str:
    return "in the host's memory" if gpu is None else f"on GPU {gpu}"


def _shape(shape: tuple[int, ...]) -> str:
    return "".join(f"{size}x" for size in shape)
