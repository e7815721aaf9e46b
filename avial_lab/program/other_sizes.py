"""A program for arrays of any size, on arrays of other sizes than it was compiled with.

Program of one rank, arrays -> Program. Its code takes the sizes from the arrays; what the manifest
says of them is written anew here, without asking the compiler. What a person is told (graph, plan,
explanations) stays that of the first sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.core.buffers import Buffer, row_major
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.program.program import Program


def for_sizes(
    program: Program, arrays: Mapping[str, np.ndarray[Any, Any]], spare: Collection[str]
) -> Program | None:
    """With `arrays`, each in memory of its own; None where only the compiler can tell. `spare` are
    those whose elements are nobody's before and after a run.
    """
    manifest = program.binary.manifest
    if (
        not isinstance(manifest, DerivedMessages)
        or manifest.ranks != 1
        or not program.built.dynamic
    ):
        return None
    if any(storage.shared for storage in manifest.storages):
        return None
    own = {buffer.name: buffer.shape for buffer in manifest.buffers if buffer.temporary}
    shapes = own | {name: array.shape for name, array in arrays.items()}
    storages = tuple(replace(each, shape=shapes[each.name]) for each in manifest.storages)
    written = {access.storage for task in program.graph.tasks for access in task.writes}
    temporary = {*own, *spare}
    wholes = {
        s.name: Piece(0, s.name, Box.whole(s.shape)) for s in storages if s.name not in temporary
    }
    resized = replace(
        manifest,
        storages=storages,
        buffers=tuple(
            _resized(each, shapes[each.name], temporary=each.name in temporary)
            for each in manifest.buffers
        ),
        inputs=tuple(wholes.values()),
        results=tuple(piece for name, piece in wholes.items() if name in written),
        rounds=(),
        planned=None,
    )
    key = f"{program.binary.key}:{sorted(shapes.items())}"
    binary = replace(program.binary, key=key, manifest=resized)
    return replace(program, arrays=dict(arrays), built=replace(program.built, binary=binary))


def _resized(buffer: Buffer, shape: tuple[int, ...], *, temporary: bool) -> Buffer:
    return replace(buffer, shape=shape, strides=row_major(shape), temporary=temporary)
