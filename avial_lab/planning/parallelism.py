"""How a function on tensors is divided over devices, as a user says it.

`data 2, horizontal 2 w1:1, pipeline 2 x 8 1f1b` -> Strategies, in the order in which they are
applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from avial_lab.core.errors import ScheduleError
from avial_lab.core.words import shortened
from avial_lab.planning.sum_algorithms import SumBy

KINDS = ("data", "zero", "horizontal", "pipeline", "recompute", "overlap", "collectives", "fuse")
_USAGE = (
    "write for example: data 2, zero 1, horizontal 2 w1:1 w3:1, pipeline 2 x 8 1f1b "
    "(8 micro-batches; 1f1b, gpipe, interleaved 2, zero-bubble), behind it data 2 in 1 (of stage 1 "
    "alone; horizontal, too), recompute (w1, or 2MB at most that are kept), overlap (4MB: buckets "
    "of gradients), collectives (ring, tree or doubling for all), fuse"
)
_MOST = 1 << 20

SEARCH = "search"
"""In place of transforms: whichever are found to be the best."""

_UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_SIZE = r"(\d{1,9}(?:\.\d{1,6})?)(B|kB|MB|GB)"


@dataclass(frozen=True)
class Strategy:
    """One transform: over `degree` times as many devices (the level of ZeRO, which takes none).
    `microbatches`, `schedule`, `chunks` (stages a device has) and `flight` (the most micro-batches
    that are in it on one, 0: as the schedule says) are a pipeline's, `dimensions` (NAME:DIMENSION)
    what data or horizontal parallelism divides, or what recompute says: weights, or most memory;
    overlap's is the size of a bucket. `stage`: of a pipeline, which alone is divided.
    """

    kind: str
    degree: int
    microbatches: int = 1
    schedule: str = "1f1b"
    dimensions: tuple[str, ...] = ()
    chunks: int = 1
    flight: int = 0
    stage: int | None = None

    @staticmethod
    def parse(text: str) -> Strategy:
        """ScheduleError for what is none.

        >>> str(Strategy.parse("pipeline 2 x 8 gpipe"))
        'pipeline 2 x 8 gpipe'
        """
        first, *words = text.split() or [""]
        if first == "recompute":
            return Strategy._recompute(words)
        if first == "overlap":
            return Strategy._overlap(words)
        if first == "collectives":
            return Strategy._collectives(words)
        if first == "fuse":
            if words:
                raise ScheduleError(f"'{shortened(text.strip(), 60)}'", hint="fuse takes nothing")
            return Strategy(first, 1)
        match = re.fullmatch(
            r"\s*(\w+)\s+(\d{1,9})(?:\s*[x×]\s*(\d{1,9}))?((?:\s+[^\s,]+)*)\s*", text
        )
        kind = match[1] if match is not None else ""
        if match is None or kind not in KINDS:
            raise ScheduleError(f"'{shortened(text.strip(), 60)}' is no strategy", hint=_USAGE)
        degree, turns, words = int(match[2]), int(match[3] or 1), tuple(match[4].split())
        if kind == "zero":
            if degree > 3 or match[3] or words:
                raise ScheduleError(
                    f"'{shortened(text.strip(), 60)}' is no level of ZeRO", hint="there are: 0 to 3"
                )
            return Strategy(kind, degree)
        if not (1 <= degree <= _MOST and 1 <= turns <= _MOST):
            raise ScheduleError(
                f"'{shortened(text.strip(), 60)}' divides by no such number", hint=_USAGE
            )
        if match[3] and kind != "pipeline":
            raise ScheduleError(f"{kind} parallelism has no micro-batches", hint=_USAGE)
        if kind == "pipeline":
            return Strategy._pipeline(degree, turns, match[4])
        stage = None
        if words[:1] == ("in",) and len(words) > 1 and re.fullmatch(r"\d{1,4}", words[1]):
            stage, words = int(words[1]), words[2:]
        wrong = next(
            (word for word in words if not re.fullmatch(r"%?[\w$.-]+:\d{1,3}", word)), None
        )
        if wrong is not None or (kind == "data" and len(words) > 1):
            raise ScheduleError(
                f"'{shortened(' '.join(words), 60)}' names no dimension to divide", hint=_USAGE
            )
        return Strategy(kind, degree, dimensions=words, stage=stage)

    @staticmethod
    def _pipeline(degree: int, turns: int, words: str) -> Strategy:
        """`interleaved 2`, `1f1b most 2`."""
        match = re.fullmatch(
            r"\s*(1f1b|gpipe|zero-bubble|interleaved\s+([2-9]|1\d))?(?:\s+most\s+(\d{1,6}))?\s*",
            words,
        )
        if match is None:
            raise ScheduleError(
                f"'{shortened(words.strip(), 60)}' is no schedule of a pipeline",
                hint="there are: 1f1b, gpipe, interleaved 2 (stages a device), zero-bubble; behind "
                "them: most 2 (micro-batches in flight)",
            )
        schedule = (match[1] or "1f1b").split()[0]
        return Strategy("pipeline", degree, turns, schedule, chunks=int(match[2] or 1),
                        flight=int(match[3] or 0))  # fmt: skip

    @staticmethod
    def _recompute(words: Sequence[str]) -> Strategy:
        """All, what is computed with some weights, or so that little is kept: 2MB."""
        sizes = [word for word in words if re.fullmatch(_SIZE, word)]
        names = [word for word in words if re.fullmatch(r"%?[A-Za-z_$][\w$.-]*", word)]
        if len(sizes) + len(names) < len(words) or (sizes and len(words) > 1):
            raise ScheduleError(
                f"'recompute {shortened(' '.join(words), 60)}' says nothing to recompute",
                hint="write recompute, recompute w0 w1 or recompute 2MB",
            )
        return Strategy("recompute", 1, dimensions=tuple(words))

    @staticmethod
    def _overlap(words: Sequence[str]) -> Strategy:
        """Each gradient by itself, or in buckets: 4MB."""
        if len(words) > 1 or not all(re.fullmatch(_SIZE, word) for word in words):
            raise ScheduleError(
                f"'overlap {shortened(' '.join(words), 60)}' says no size of a bucket",
                hint="write overlap or overlap 4MB",
            )
        return Strategy("overlap", 1, dimensions=tuple(words))

    @staticmethod
    def _collectives(words: Sequence[str]) -> Strategy:
        """Each sum as is fastest, or one way for all."""
        known = [by.value for by in SumBy]
        if len(words) > 1 or not all(word in known for word in words):
            raise ScheduleError(
                f"'collectives {shortened(' '.join(words), 60)}' says no way to sum",
                hint=f"write collectives, or collectives {known[0]}; there are: {', '.join(known)}",
            )
        return Strategy("collectives", 1, dimensions=tuple(words))

    @property
    def most_bytes(self) -> int:
        """Of what recompute keeps, and of a bucket; 0 where it is not told so."""
        match = re.fullmatch(_SIZE, self.dimensions[0]) if self.dimensions else None
        return int(float(match[1]) * _UNITS[match[2]]) if match is not None else 0

    def __str__(self) -> str:
        if self.kind in ("recompute", "overlap", "collectives", "fuse"):
            return " ".join((self.kind, *self.dimensions))
        if self.kind == "pipeline":
            chunks = f" {self.chunks}" if self.chunks > 1 else ""
            most = f" most {self.flight}" if self.flight else ""
            return f"pipeline {self.degree} x {self.microbatches} {self.schedule}{chunks}{most}"
        inside = () if self.stage is None else ("in", str(self.stage))
        return " ".join((self.kind, str(self.degree), *inside, *self.dimensions))


def strategies(text: str) -> tuple[Strategy, ...]:
    """All of a text, apart by commas."""
    return tuple(Strategy.parse(each) for each in text.split(",") if each.strip())


def spelled(given: str | Iterable[str | Strategy]) -> str:
    """What a caller gives, as one text that `strategies` reads.

    >>> spelled(["data 2", "pipeline 2 x 4"])
    'data 2, pipeline 2 x 4 1f1b'
    """
    parts = [given] if isinstance(given, str) else [str(each) for each in given]
    return ", ".join(str(each) for part in parts for each in strategies(part))


def devices_of(text: str) -> int:
    """How many devices all of it takes.

    >>> devices_of("data 2, pipeline 2 x 4"), devices_of("pipeline 3 x 4, data 2 in 1")
    (4, 4)
    """
    stages = [1]
    for each in strategies(text):
        if each.kind == "pipeline":
            stages = stages * each.degree
        elif each.stage is not None:
            stages[each.stage % len(stages)] *= each.degree  # interleaved ones go round
        elif each.kind != "zero":
            stages = [devices * each.degree for devices in stages]
    return sum(stages)
