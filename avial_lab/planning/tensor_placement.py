"""Where tensors lie: meshes of devices, and what each device of one holds of a tensor.

Text as in `#distir.on<@m, "split 0, copy">` -> Mesh, Placement -> boxes of elements per device.

    mesh [[0, 1], [2, 3]], "split 0, copy" of 5 rows:    devices 0, 1: rows 0 1     2, 3: rows 2 3 4
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from avial_lab.core.errors import VerifyError
from avial_lab.core.regions import Box
from avial_lab.core.words import shortened


class Kind(enum.Enum):
    """What the devices along one axis of a mesh hold of a tensor: all of it, a block each, or
    partial results, whose combination it is.
    """

    COPY = "copy"
    SPLIT = "split"
    SUM = "sum"
    MAX = "max"
    MIN = "min"

    @property
    def is_partial(self) -> bool:
        return self in (Kind.SUM, Kind.MAX, Kind.MIN)


@dataclass(frozen=True)
class Along:
    """How a tensor lies along one axis of a mesh; `dim` is what SPLIT divides, else -1."""

    kind: Kind
    dim: int = -1

    @staticmethod
    def parse(text: str) -> Along:
        """VerifyError for anything else than `copy`, `split DIM`, `sum`, `max`, `min`.

        >>> Along.parse("split 1")
        Along(kind=<Kind.SPLIT: 'split'>, dim=1)
        """
        match = re.fullmatch(r"split (\d{1,3})", text)
        if match is not None:
            return Along(Kind.SPLIT, int(match[1]))
        if text in ("copy", "sum", "max", "min"):
            return Along(Kind(text))
        raise VerifyError(
            f"'{shortened(text, 60)}' does not say how a tensor lies along an axis of a mesh",
            hint='write copy, split DIM, sum, max or min for each axis: "split 0, copy"',
        )

    def __str__(self) -> str:
        return f"split {self.dim}" if self.kind is Kind.SPLIT else self.kind.value


COPY = Along(Kind.COPY)


def block(extent: int, parts: int, k: int) -> tuple[int, int]:
    """Of `extent` elements in that many blocks, whose sizes differ by one at most: block k.

    >>> [block(5, 3, k) for k in range(3)]
    [(0, 1), (1, 3), (3, 5)]
    """
    return extent * k // parts, extent * (k + 1) // parts


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid, row by row. A mesh with `turns` above 0 has a last axis of that length
    that is time: everything along it is on the same device.
    """

    name: str
    shape: tuple[int, ...]
    devices: tuple[int, ...]
    turns: int = 0

    @property
    def axes(self) -> tuple[int, ...]:
        """The lengths of all axes, of time, too."""
        return (*self.shape, self.turns) if self.turns else self.shape

    def is_time(self, axis: int) -> bool:
        return bool(self.turns) and axis == len(self.shape)

    def points(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every point of the mesh with its device, by turns, then device by device."""
        grid = [range(n) for n in self.shape]
        for turn in range(self.turns or 1):
            for coordinates, device in zip(product(*grid), self.devices, strict=True):
                yield ((*coordinates, turn) if self.turns else coordinates), device

    def __str__(self) -> str:
        turns = f", {self.turns} turns" if self.turns else ""
        return f"@{self.name} {'x'.join(map(str, self.shape))} of {list(self.devices)}{turns}"


@dataclass(frozen=True)
class Placement:
    """Where a tensor lies: how along each axis of `mesh`."""

    mesh: Mesh
    along: tuple[Along, ...]

    def __hash__(self) -> int:
        return hash((self.mesh.name, *[each.dim for each in self.along]))

    @staticmethod
    def copies(mesh: Mesh) -> Placement:
        return Placement(mesh, (COPY,) * len(mesh.axes))

    @property
    def text(self) -> str:
        return ", ".join(map(str, self.along))

    def __str__(self) -> str:
        return f'@{self.mesh.name} "{self.text}"'

    def check(self, rank: int) -> None:
        """VerifyError where it does not fit the mesh, or a tensor of that many dimensions."""
        if len(self.along) != len(self.mesh.axes):
            raise VerifyError(
                f"placement {self} has {len(self.along)} entries, and the mesh "
                f"{len(self.mesh.axes)} axes",
                hint="write one of copy, split DIM, sum, max, min for each axis",
            )
        for each in self.along:
            if each.kind is Kind.SPLIT and each.dim >= rank:
                raise VerifyError(
                    f"placement {self} splits dimension {each.dim}; the tensor has {rank}",
                    hint="dimensions count from 0",
                )

    def with_axis(self, axis: int, along: Along) -> Placement:
        return Placement(self.mesh, (*self.along[:axis], along, *self.along[axis + 1 :]))

    @cached_property
    def is_partial(self) -> bool:
        return any(each.kind.is_partial for each in self.along)

    def box(self, shape: Sequence[int], point: Sequence[int]) -> Box:
        """What lies at `point` of the mesh, of a tensor of that shape: blocks of blocks, where
        several axes split one dimension; the first axis makes the outer ones.
        """
        bounds = [(0, extent) for extent in shape]
        for each, parts, k in zip(self.along, self.mesh.axes, point, strict=True):
            if each.kind is Kind.SPLIT:
                low, high = bounds[each.dim]
                first, last = block(high - low, parts, k)
                bounds[each.dim] = low + first, low + last
        return Box(tuple(low for low, _ in bounds), tuple(high for _, high in bounds))

    def held_elements(self, shape: Sequence[int]) -> int:
        """The most elements that a device holds at a time, over the mesh."""
        return max(prod(self.box(shape, point).shape) for point, _ in self.mesh.points())


def divided_sums(shape: Sequence[int], placement: Placement, axis: int) -> Along:
    """How sums of the parts along an axis lie: in blocks of the first dimension that is long enough
    (else the longest) and that no later axis divides, so that the blocks of an axis make up one
    block of the others; a copy, which is on the first device, where there is none.
    """
    later = {each.dim for each in placement.along[axis + 1 :] if each.kind is Kind.SPLIT}
    free = [d for d in range(len(shape)) if d not in later and shape[d] > 1]
    if not free:
        return COPY
    long = [d for d in free if shape[d] >= placement.mesh.axes[axis]]
    return Along(Kind.SPLIT, long[0] if long else max(free, key=lambda d: shape[d]))
