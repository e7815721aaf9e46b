"""A picture that moves: a PNG as the standard has it, and the same facts in words."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import BindError
from avial_lab.plot.run.film import LONGEST_S, Film, film_figure, film_png, film_text

FRAMES = [np.full((4, 6), float(k)) for k in range(5)]


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and data of each, the checksums verified."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place = 8
    while place < len(png):
        (size,) = struct.unpack_from(">I", png, place)
        body = png[place + 4 : place + 8 + size]
        assert struct.unpack_from(">I", png, place + 8 + size) == (zlib.crc32(body),)
        yield body[:4], body[4:]
        place += 12 + size


def pictures(png: bytes) -> list[np.ndarray]:
    """The levels of every frame."""
    found = []
    width = height = 0
    for kind, data in chunks(png):
        if kind == b"IHDR":
            width, height = struct.unpack_from(">2I", data)
        if kind in (b"IDAT", b"fdAT"):
            rows = zlib.decompress(data[4 * (kind == b"fdAT") :])
            table = np.frombuffer(rows, np.uint8).reshape(height, width + 1)
            assert not table[:, 0].any()
            found.append(table[:, 1:])
    return found


def test_every_frame_is_in_it_and_it_ends_by_itself() -> None:
    levels = [np.full((4, 6), 10 * k, np.uint8) for k in range(5)]
    levels[2][1, 3] = 200
    png = film_png(levels, scale=2, seconds=2.5)
    for picture, level in zip(pictures(png), levels, strict=True):
        assert (picture[::2, ::2] == level).all()
        assert (picture[1::2, 1::2] == level).all()
    known = list(chunks(png))
    assert [data for kind, data in known if kind == b"acTL"] == [struct.pack(">2I", 5, 1)]
    numbers = [struct.unpack_from(">I", data)[0] for k, data in known if k in (b"fcTL", b"fdAT")]
    assert numbers == list(range(len(numbers)))
    delays = [struct.unpack_from(">2H", data, 20) for kind, data in known if kind == b"fcTL"]
    assert delays == [(500, 1000)] * 5
    assert max(len(data) for kind, data in known if kind == b"PLTE") == 768


def test_nothing_moves_for_long() -> None:
    png = film_png([np.zeros((1, 1), np.uint8)] * 10, scale=1, seconds=3600)
    delays = [struct.unpack_from(">2H", d, 20) for kind, d in chunks(png) if kind == b"fcTL"]
    assert sum(a / b for a, b in delays) == pytest.approx(LONGEST_S)


def test_colours_span_the_values_and_brighter_is_more() -> None:
    film = Film(FRAMES, title="a <b>")
    page = film_figure(film)
    sources = [b64decode(data) for data in re.findall(r"base64,([^\"]+)", page)]
    assert [int(p[0, 0]) for p in pictures(sources[0])] == [0, 64, 128, 191, 255]
    (palette,) = (data for kind, data in chunks(sources[0]) if kind == b"PLTE")
    red, green, blue = np.frombuffer(palette, np.uint8).reshape(256, 3).T / 255
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    assert (np.diff(luminance) > -1e-4).all()
    assert "a &lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("alt=") == page.count("<img") == 6


def test_the_facts_are_there_in_words() -> None:
    last = np.arange(24.0).reshape(4, 6)
    text = film_text(Film([*FRAMES, last], title="plate"))
    assert "plate: 6 frames of 4 × 6 values; mean 0 at first, 11.5 at last" in text
    assert re.search(r"3–3 +18\.0 +19\.0 +20\.0 +21\.0 +22\.0 +23\.0", text)
    holes = film_figure(Film([np.full((2, 2), np.nan)], low=0, high=1))
    assert "<figure" in holes


@pytest.mark.parametrize("frames", [[], [np.zeros(3)], [np.zeros((2, 2)), np.zeros((3, 2))]])
def test_what_is_no_film_is_refused(frames: list[np.ndarray]) -> None:
    with pytest.raises(BindError, match="frames of one shape"):
        avial_lab.Film(frames)
