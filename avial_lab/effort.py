"""What the passes on a rank's loops may do: how machine code gets fast, and what it may not change.

Options of `compile` -> Effort.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from avial_lab.errors import ScheduleError

OPTIONAL = (
    "normalise-tasks", "share-rows", "keep-on-one", "fuse-phases", "widen-halos", "join-phases",
    "block-loops", "block-substitutions", "expand-scalars", "join-sums", "expand-arrays",
    "order-loops", "fuse-nests", "flatten-sums", "promote-scalars", "reorder-sums",
    "independent-accesses",
    "partial-sums", "thread-sums", "tile-time", "jam-rows", "vectorise-rows", "interleave-rows",
    "reorder-extremes", "transpose-tiles",
    "thread-loops", "split-drivers", "flatten-rows", "check-distances", "near-arguments",
    "pack-rows", "share-loads", "inline-copies", "stream-stores", "whole-vectors", "split-wraps",
    "unroll-sums", "hold-rows",
)  # fmt: skip
"""Passes of the stages `placed` and `loops` that a program can do without: it is slower then, and
its values are the same; within rounding where a pass adds up sums in another order (share-rows,
block-loops, block-substitutions, join-sums, reorder-sums, partial-sums, thread-sums).
"""

WITHOUT = f"leave these passes out, to see what they are worth: {', '.join(OPTIONAL)}, or all"
"""For those who ask on a command line."""


STRICT = "every product and sum rounded on its own: the same bits on every machine, and slower"
"""For those who ask on a command line."""

DYNAMIC = "compile a function once for arrays of any size that its text leaves open (?)"
"""For those who ask on a command line."""

BLAS = (
    "products of matrices call the BLAS that is there (NumPy's, SciPy's, MKL, BLIS, OpenBLAS): "
    "within the bound of a sum in another order, which BLAS chooses"
)
"""For those who ask on a command line."""


@dataclass(frozen=True)
class Size:
    """What an option of a pass may be: a number, or `numbers` of them as in `8x16`, each from
    `least` to `most` and a multiple of `multiple`.
    """

    what: str
    least: int
    most: int
    multiple: int = 1
    numbers: tuple[int, ...] = (1,)

    def check(self, name: str, text: str) -> int | str:
        """The value in `text`; ScheduleError where it makes no sense, with the range."""
        parts = text.split("x") if self.numbers != (1,) else [text]
        right = len(parts) in self.numbers and all(
            part.isdecimal()
            and self.least <= int(part) <= self.most
            and int(part) % self.multiple == 0
            for part in parts
        )
        if not right:
            raise ScheduleError(f"{name}={text} makes no sense", hint=f"{name}: {self}")
        return text if self.numbers != (1,) else int(text)

    def __str__(self) -> str:
        each = f"from {self.least:,} to {self.most:,}"
        if self.multiple > 1:
            each += f", a multiple of {self.multiple}"
        if self.numbers == (1,):
            return f"{self.what}, {each}"
        counts = " or ".join(map(str, self.numbers))
        return f"{self.what}, {counts} numbers as in 8x16, each {each}"


_CACHE = Size("bytes of the cache that tiles are cut for", 1 << 10, 1 << 32)

SIZES: Mapping[str, Mapping[str, Size]] = {
    "normalise-tasks": {"least": Size("iterations of a body from which on it is", 1, 1 << 30)},
    "block-loops": {
        "terms": Size("terms of a sum in one block", 1, 1 << 16),
        "block": Size("rows in one block", 8, 1 << 13, multiple=8),
        "steps": Size("steps of a factorisation in one block", 16, 1 << 12),
    },
    "block-substitutions": {"rows": Size("rows in one block", 8, 1 << 13, multiple=8)},
    "tile-time": {
        "l1": _CACHE,
        "l2": _CACHE,
        "widths": Size("slabs (and lines) along each face of a tile", 1, 1 << 16, numbers=(2, 3)),
    },
    "widen-halos": {"steps": Size("steps of time between two exchanges of halos", 1, 1 << 12)},
    "jam-rows": {"rows": Size("rows at once", 2, 16)},
    "vectorise-rows": {"lanes": Size("iterations in the lanes of vectors", 2, 64)},
    "interleave-rows": {"rows": Size("rows side by side", 2, 64)},
}
"""Options of optional passes that are sizes, which otherwise follow from the machine's."""

MODEL = "model"
"""In place of sizes: those that follow from the machine, whatever tuning found."""

SIZES_HELP = (
    "sizes that passes take in place of those that follow from the machine, as stages print them: "
    "'block-loops{terms=128 block=48},tile-time{widths=32x64}'; model: those that follow from it, "
    "also where --tune found others"
)
"""For those who ask on a command line."""

Sizes = tuple[tuple[str, tuple[tuple[str, int | str], ...]], ...]
"""For each pass, its options and their values."""


@dataclass(frozen=True)
class Effort:
    """`without`: the optional passes that are left out. `sizes` of those that are not, where they
    are not to follow from the machine.

    `strict`: the arithmetic of the textbook, every operation rounded on its own and in the
    program's order, so that every machine computes the same bits, and NumPy does too. Without it a
    product that is only added to something is rounded once, together with the sum, where the
    machine has an instruction for that; several that are added to one element of an array are added
    to it one after the other. Either way a run and its reference have the same.

    `blas`: products of matrices call the BLAS that a machine has, which adds their terms in an
    order of its own; that may be another one for another number of threads.
    """

    without: tuple[str, ...] = ()
    strict: bool = False
    sizes: Sizes = ()
    blas: bool = False

    @staticmethod
    def of(
        without: str | Iterable[str], *, strict: bool = False, sizes: str = "", blas: bool = False
    ) -> Effort:
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
        left_out = tuple(p for p in OPTIONAL if p in names or "all" in names)
        if blas:
            _check_blas(left_out, strict=strict)
        return Effort(left_out, strict, _sizes(sizes, left_out), blas)

    def keeps(self, name: str) -> bool:
        """Whether the pass of that name is run."""
        return name not in self.without

    def options(self, name: str) -> dict[str, Any]:
        """The sizes of the pass of that name that do not follow from the machine."""
        return dict(dict(self.sizes).get(name, ()))

    @property
    def told(self) -> str:
        """The sizes as they are given.

        >>> Effort.of("", sizes="block-loops{block=48  terms=128}").told
        'block-loops{terms=128 block=48}'
        """
        passes = ((name, " ".join(f"{k}={v}" for k, v in given)) for name, given in self.sizes)
        return ",".join(f"{name}{{{given}}}" for name, given in passes)


def _check_blas(without: tuple[str, ...], *, strict: bool) -> None:
    if strict:
        raise ScheduleError(
            "a BLAS adds in an order of its own, and a strict program keeps its order",
            hint="choose one of strict and blas",
        )
    if "block-loops" in without:
        raise ScheduleError(
            "what a BLAS could compute is found by block-loops, which is left out",
            hint="keep block-loops, or do without blas",
        )


def _sizes(text: str, without: tuple[str, ...]) -> Sizes:
    """What `sizes` says, in the order of the passes and their options."""
    form = r"\s*([\w-]+)\{([^{}]*)\}\s*"
    if text.strip() and not re.fullmatch(f"{form}(,{form})*", text):
        raise ScheduleError(
            f"sizes are not written as '{text}'", hint="as in block-loops{terms=128 block=48}"
        )
    found: dict[str, dict[str, int | str]] = {}
    for name, options in re.findall(form, text):
        if name not in SIZES:
            raise ScheduleError(
                f"the pass '{name}' has no sizes", hint=f"there are: {', '.join(SIZES)}"
            )
        if name in without:
            raise ScheduleError(f"{name} is left out, and given sizes", hint="choose one of both")
        known = found.setdefault(name, {})
        for option in options.split():
            key, _, value = option.partition("=")
            if key not in SIZES[name]:
                raise ScheduleError(
                    f"{name} has no size '{key}'", hint=f"it has: {', '.join(SIZES[name])}"
                )
            known[key] = SIZES[name][key].check(key, value)
    return tuple(
        (name, tuple((key, found[name][key]) for key in SIZES[name] if key in found[name]))
        for name in SIZES
        if found.get(name)
    )
