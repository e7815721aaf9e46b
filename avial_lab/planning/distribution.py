"""How the iterations of a replicate are divided over its ranks.

`block`, `cyclic(32)`, `grid`, `auto` -> Division.

    block       000111222        neighbours together: halos are small
    cyclic(1)   012012012        every rank has some of each part: a shrinking loop stays balanced
    grid        0011 / 2233      two loops at once: shorter halos on many ranks
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isqrt

from avial_lab.core.errors import ScheduleError
from avial_lab.core.words import shortened

_MOST_DIGITS = 12

CYCLIC = 16
"""Iterations in one block of `cyclic`, where it does not say."""


@dataclass(frozen=True)
class Division:
    """`block`: iterations of one block of a block-cyclic division, 0 for one block a rank. `grid`:
    a second loop is divided too, where there is one. `auto`: whichever of these is predicted to be
    the fastest (`program/predicted_division.py`).
    """

    block: int = 0
    grid: bool = False
    auto: bool = False

    @staticmethod
    def parse(text: str) -> Division:
        """The division of that name.

        >>> Division.parse("cyclic(8)")
        Division(block=8, grid=False, auto=False)
        """
        match = re.fullmatch(r"(block|grid|auto|cyclic)(?:\((\d+)\))?", text.replace(" ", ""))
        if match is None or (match[2] and match[1] != "cyclic") or match[2] in ("", "0"):
            raise ScheduleError(
                f"unknown division '{shortened(text, 60)}'",
                hint="there are: block, cyclic, cyclic(N), grid, auto",
            )
        if match[1] == "cyclic":
            if len(match[2] or "") > _MOST_DIGITS:
                raise ScheduleError(f"cyclic({match[2][:9]}…) is more than any loop has iterations")
            return Division(block=int(match[2] or CYCLIC))
        return Division(grid=match[1] == "grid", auto=match[1] == "auto")

    def columns(self, ranks: int) -> int:
        """Of a grid of that many ranks: its columns, as near to its rows as the number allows.

        >>> [Division(grid=True).columns(ranks) for ranks in (1, 4, 6, 7, 12)]
        [1, 2, 2, 1, 3]
        """
        if not self.grid:
            return 0
        return next(n for n in range(isqrt(ranks), 0, -1) if ranks % n == 0)

    def refuse_for_tasks(self) -> None:
        """ScheduleError where it was asked for, of a program that has nothing to divide."""
        if self != Division():
            raise ScheduleError(
                f"division '{self}' applies to loops, and this program consists of tasks: "
                "each runs on one device",
                hint="leave the division out, or write avial.replicate or a plain function",
            )

    def __str__(self) -> str:
        if self.auto:
            return "auto"
        return f"cyclic({self.block})" if self.block else "grid" if self.grid else "block"
