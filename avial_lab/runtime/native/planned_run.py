"""The ownership runtime run without ranks: a plan, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from avial_lab.artifact.plan import Plan
from avial_lab.core.buffers import Number, Storage
from avial_lab.core.errors import InternalError
from avial_lab.core.regions import Box, union
from avial_lab.planning.schedule import Piece
from avial_lab.planning.turns import Turns
from avial_lab.runtime.native.loader import descriptor, digest, load_program
from avial_lab.runtime.native.ownership import Ownership, own_error


def plan_run(
    shared_object: bytes,
    storages: Sequence[Storage],
    ranks: int,
    *,
    temporary: Iterable[str] = (),
    phases: Sequence[str] = (),
    entry: str = "main",
    numbers: Sequence[Number] = (),
    drivers: tuple[int, ...] = (),
    homes: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """What the program does on `ranks` ranks and the devices that `drivers` of them drive, found by
    running its control flow in this process. homes: at which place of a device the caller has an
    array, by storage.

    Raises InternalError where the runtime failed.
    """
    ownership = _walked(
        shared_object, storages, ranks, temporary, phases, entry, numbers, drivers, homes, None
    )
    complete = ownership.complete
    inputs = ownership.inputs()
    return Plan(
        ranks=ranks,
        inputs=inputs if complete else _and_the_rest(inputs, ownership, ranks, homes),
        results=ownership.results(),
        moves=ownership.moves(ranks),
        held_bytes=ownership.held_bytes()[:ranks],
        paged_bytes=ownership.paged_bytes()[:ranks],
        phases=tuple(count for count in ownership.counts() if count.begun),
        complete=complete,
        footprints=tuple(ownership.footprints(ranks)),
        storages=ownership.storages,
        carried=ownership.carried(),
        copies=ownership.copies(ranks),
        device_bytes=ownership.held_bytes()[ranks:],
        stays=ownership.stays() if complete else (),
        launched=ownership.launched(ranks),
    )


def walk_run(
    shared_object: bytes,
    storages: Sequence[Storage],
    ranks: int,
    *,
    temporary: Iterable[str] = (),
    phases: Sequence[str] = (),
    entry: str = "main",
    numbers: Sequence[Number] = (),
    drivers: tuple[int, ...] = (),
    homes: Mapping[str, int] = MappingProxyType({}),
    trips: int = 2,
) -> Turns:
    """What every rank does, turn by turn; a loop whose end depends on data takes `trips`.

    Raises InternalError where the runtime failed.
    """
    walked = _walked(
        shared_object, storages, ranks, temporary, phases, entry, numbers, drivers, homes, trips
    )
    return walked.turns(ranks, trips)


def _walked(
    shared_object: bytes,
    storages: Sequence[Storage],
    ranks: int,
    temporary: Iterable[str],
    phases: Sequence[str],
    entry: str,
    numbers: Sequence[Number],
    drivers: tuple[int, ...],
    homes: Mapping[str, int],
    trips: int | None,
) -> Ownership:
    """The control flow run once, without bodies; with `trips` its turns are kept."""
    program = load_program(shared_object, digest(shared_object), entry=entry)
    ownership = Ownership(program, tuple(storages), frozenset(temporary), tuple(phases), drivers)
    if trips is not None:
        ownership.keep_turns(trips)
    ownership.setup(ranks, None)
    ownership.keep_at(homes)
    program.prepared_with((descriptor(0, storage.shape) for storage in storages), numbers)()
    ownership.bring_back()
    if ownership.error:
        raise InternalError(f"the run could not be planned: {own_error(ownership.error)}")
    return ownership


def default_blocks(storage: Storage, ranks: int) -> tuple[Piece, ...]:
    """Every element at one rank: the rows that a phase over all of them has there.

    >>> [str(piece.box) for piece in default_blocks(Storage("a", (5,), 8, ("a",)), 2)]
    ['[0:2]', '[2:5]']
    """
    if not storage.shape:
        return (Piece(0, storage.name, Box((), ())),)
    bounds = [r * storage.shape[0] // ranks for r in range(ranks + 1)]
    zeros, rest = (0,) * (len(storage.shape) - 1), storage.shape[1:]
    boxes = [Box((a, *zeros), (b, *rest)) for a, b in pairwise(bounds)]
    return tuple(Piece(r, storage.name, box) for r, box in enumerate(boxes) if not box.empty)


def _and_the_rest(
    inputs: Sequence[Piece], ownership: Ownership, ranks: int, homes: Mapping[str, int]
) -> tuple[Piece, ...]:
    """`inputs`, and every other element of the caller's at its default rank."""
    boxes: dict[tuple[int, str], list[Box]] = {}
    given = [
        piece
        for storage in ownership.storages
        if storage.name not in ownership.temporary and storage.name not in homes
        for piece in default_blocks(storage, ranks)
    ]
    for piece in (*inputs, *given):
        boxes.setdefault((piece.rank, piece.storage), []).append(piece.box)
    return tuple(
        Piece(rank, storage, box)
        for (rank, storage), found in sorted(boxes.items(), key=lambda item: item[0])
        for box in union(found)
    )
