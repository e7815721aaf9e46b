"""What the passes on a rank's loops may do: how machine code gets fast, and what it may not change.

Options of `compile` -> Effort.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from avial_lab.errors import ScheduleError

OPTIONAL = (
    "fuse-phases", "block-loops", "order-loops", "promote-scalars", "reorder-sums",
    "independent-accesses", "tile-time", "interleave-rows", "thread-loops",
)  # fmt: skip
"""Passes of the stages placed and loops that can be left out: slower, and the same values. (Those
of sums, with reorder-sums, only within the rounding of another order.)
"""

WITHOUT = f"leave these passes out, to see what they are worth: {', '.join(OPTIONAL)}, or all"
"""For those who ask on a command line."""


STRICT = "every product and sum rounded on its own: the same bits on every machine, and slower"
"""For those who ask on a command line."""


@dataclass(frozen=True)
class Effort:
    """`without`: the optional passes that are left out.

    `strict`: the arithmetic of the textbook, every operation rounded on its own and in the
    program's order, so that every machine computes the same bits, and NumPy does too. Without it a
    product that is only added to something is rounded once, together with the sum, where the
    machine has an instruction for that. Either way a run and its reference have the same.
    """

    without: tuple[str, ...] = ()
    strict: bool = False

    @staticmethod
    def of(without: str | Iterable[str], *, strict: bool = False) -> Effort:
        """The effort without passes of these names: a list, or text with commas; `all` is every
        one.

        >>> Effort.of("all") == Effort(OPTIONAL)
        True
        """
        names = without.split(",") if isinstance(without, str) else list(without)
        names = [name.strip() for name in names if name.strip()]
        for name in names:
            if name not in (*OPTIONAL, "all"):
                raise ScheduleError(
                    f"no optional pass is called '{name}'",
                    hint=f"there are: {', '.join(OPTIONAL)}; all",
                )
        return Effort(tuple(p for p in OPTIONAL if p in names or "all" in names), strict)

    def keeps(self, name: str) -> bool:
        """Whether the pass of that name is run."""
        return name not in self.without
