"""A field of values over time as a picture that moves.

Frames (arrays of one shape) -> an animated PNG, which every browser plays without a script, and
four stills of it in a row for where nothing moves: in print, and for who wants to look closely.
The film is over within five seconds and rests on its last frame.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from avial_lab.core.errors import BindError
from avial_lab.core.table import Table
from avial_lab.core.words import brief, count
from avial_lab.plot.svg import escape

SIDE = 288
"""Pixels of the longer side, about: an element is a square of whole pixels."""

PARTS = 6
"""The table has so many rows and columns: means over parts of the field."""

LONGEST_S = 5.0
"""What moves for longer has to come with a button that stops it (WCAG 2.2.2)."""

# Darker is lower, for every kind of colour vision: seven steps of matplotlib's inferno (CC0).
_INKS = ((0, 0, 4), (51, 10, 95), (120, 28, 109), (187, 55, 84), (237, 105, 37), (252, 181, 25),
         (252, 255, 164))  # fmt: skip


@dataclass(frozen=True)
class Film:
    """`frames` one after the other, `seconds` for all; `low` and `high` are the values of the
    darkest and the brightest colour, by default the least and the greatest there is.
    """

    frames: Sequence[np.ndarray]
    title: str = "film"
    seconds: float = 4.0
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        shapes = {np.shape(frame) for frame in self.frames}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise BindError(
                "a film needs two-dimensional frames of one shape",
                hint="keep copies while the program runs: frames.append(T.copy())",
            )

    @cached_property
    def shape(self) -> tuple[int, int]:
        rows, columns = np.shape(self.frames[0])
        return rows, columns

    @cached_property
    def span(self) -> tuple[float, float]:
        """The values of the darkest and the brightest colour."""
        low = min(float(np.min(frame)) for frame in self.frames) if self.low is None else self.low
        high = max(float(np.max(f)) for f in self.frames) if self.high is None else self.high
        return low, high

    @cached_property
    def stills(self) -> tuple[int, ...]:
        """Up to four frames that summarise the film: the first, the last, and two between."""
        last = len(self.frames) - 1
        return tuple(sorted({round(last * k / 3) for k in range(4)}))

    def __str__(self) -> str:
        return film_text(self)

    def __repr__(self) -> str:
        return brief(self, film_summary(self))


def film_figure(film: Film) -> str:
    """The film, its stills, and the last frame as numbers."""
    scale = max(1, SIDE // max(film.shape))
    levels = [_levels(frame, film.span) for frame in film.frames]
    moving = film_png(levels, scale=scale, seconds=film.seconds)
    stills = " ".join(
        _image(
            film_png([levels[k]], scale=max(1, scale // 3), seconds=0),
            f"frame {k + 1} of {len(levels)}",
        )
        for k in film.stills
    )
    bar = film_png([np.tile(np.arange(256, dtype=np.uint8), (12, 1))], scale=1, seconds=0)
    low, high = (f"{value:.4g}" for value in film.span)
    colours = _image(bar, f"colours from {low}, the darkest, to {high}, the brightest")
    frames = ", ".join(str(k + 1) for k in film.stills)
    return (
        '<figure style="margin:0 0 8px 0">'
        f"<div>{_image(moving, film_summary(film))}</div>"
        f"<div>{low} {colours} {high}</div>"
        f"<figcaption>{escape(film.title)}: it plays once each time the cell is run. "
        f"Below: frames {frames} of {len(film.frames)}.</figcaption>"
        f"<div>{stills}</div>"
        "</figure><details><summary>the last frame in numbers</summary>"
        f"{film_table(film).to_html()}</details>"
    )


def film_text(film: Film) -> str:
    """The film for a terminal, or read aloud."""
    return f"{film_summary(film)}\n{film_table(film).to_text()}"


def film_summary(film: Film) -> str:
    """`plate: 24 frames of 48 × 48 values; mean 2.08 at first, 14.6 at last`."""
    rows, columns = film.shape
    first, last = (f"{float(np.mean(film.frames[k])):.4g}" for k in (0, -1))
    return (
        f"{film.title}: {count(len(film.frames), 'frame')} of {rows} × {columns} values; "
        f"mean {first} at first, {last} at last"
    )


def film_table(film: Film) -> Table:
    """The last frame, as means over its parts."""
    last = np.asarray(film.frames[-1], dtype=np.float64)
    cuts = [np.linspace(0, size, min(size, PARTS) + 1).astype(int) for size in film.shape]
    rows = tuple(
        (f"{top}–{end - 1}", *(f"{last[top:end, a:b].mean():.1f}" for a, b in pairwise(cuts[1])))
        for top, end in pairwise(cuts[0])
    )
    head = ("rows", *(f"columns {a}–{b - 1}" for a, b in pairwise(cuts[1])))
    return Table("Means over parts of the last frame", head, rows, frozenset(head[1:]))


def film_png(levels: Sequence[np.ndarray], *, scale: int, seconds: float) -> bytes:
    """Pictures of levels from 0 to 255 as one PNG, animated where there are several; each level a
    square of `scale` pixels.
    """
    height, width = (size * scale for size in levels[0].shape)
    pictures = [zlib.compress(_scanlines(level, scale), 9) for level in levels]
    chunks = [_chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 3, 0, 0, 0))]
    if len(pictures) > 1:  # one play
        chunks.append(_chunk(b"acTL", struct.pack(">2I", len(pictures), 1)))
    chunks.append(_chunk(b"PLTE", _palette().tobytes()))
    number = 0
    delay = round(1000 * min(seconds, LONGEST_S) / len(pictures))
    for k, picture in enumerate(pictures):
        if len(pictures) > 1:
            frame = struct.pack(">5I2H2B", number, width, height, 0, 0, delay, 1000, 0, 0)
            chunks.append(_chunk(b"fcTL", frame))
            number += 1
        if k == 0:
            chunks.append(_chunk(b"IDAT", picture))
            continue
        chunks.append(_chunk(b"fdAT", struct.pack(">I", number) + picture))
        number += 1
    return b"\x89PNG\r\n\x1a\n" + b"".join([*chunks, _chunk(b"IEND", b"")])


def _levels(frame: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """Each value as a level from 0 to 255; what is no number is the lowest."""
    low, high = span
    part = (np.asarray(frame, dtype=np.float64) - low) / ((high - low) or 1.0)
    return np.round(255 * np.clip(np.nan_to_num(part), 0, 1)).astype(np.uint8)


def _scanlines(level: np.ndarray, scale: int) -> bytes:
    """PNG's rows, each with the number of its filter before it: 0, none."""
    large = np.kron(level, np.ones((scale, scale), np.uint8))
    return np.pad(large, ((0, 0), (1, 0))).tobytes()


def _palette() -> np.ndarray:
    """256 colours; shape (256, 3)."""
    known = np.linspace(0, 255, len(_INKS))
    channels = [np.interp(np.arange(256), known, channel) for channel in zip(*_INKS, strict=True)]
    return np.round(np.stack(channels, axis=1)).astype(np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _image(png: bytes, alt: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{escape(alt)}">'
