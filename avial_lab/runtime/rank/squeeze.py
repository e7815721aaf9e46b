"""Bytes of arrays on a slow way: fewer of them, where making them so costs less than it saves.

Flat bytes <-> squeezed ones. Numbers of a kind differ in their low bytes, and hardly in their high
ones: the bytes are sorted by their places in a number, and each place is deflated that gains by it.

    8-byte numbers   a0…a7 b0…b7 c0…c7        places   a7 b7 c7 | … deflated      a0 b0 c0 | as is

Without NumPy: the relay, which runs on its own, reads this module too.
"""

from __future__ import annotations

import struct
import time
import zlib
from dataclasses import dataclass

FASTEST = 200e6
"""Bytes/s of a link that no compressor of ours is faster than: there nothing is tried."""

_WIDTHS = (8, 4, 1)
_LEVEL = 1
_SAMPLE = 1 << 16
_PLACE_SAMPLE = 1 << 12
_LITTLE = 0.9
"""What is not smaller than this share of itself stays as it is."""

_HEAD = struct.Struct(">B")
_PLACE = struct.Struct(">?I")


@dataclass(frozen=True)
class Gain:
    """Of squeezing numbers of `width` bytes: they become a `share` of what they were, at that
    rate.
    """

    width: int
    share: float
    bytes_per_s: float

    def worth(self, link_bytes_per_s: float) -> bool:
        """Whether a number's squeezing takes less time than its way is shorter by.

        >>> [Gain(8, 0.5, 40e6).worth(link) for link in (10e6, 30e6)]
        [True, False]
        """
        return self.bytes_per_s * (1 - self.share) > link_bytes_per_s


def tried(data: memoryview) -> Gain:
    """The best gain, on a sample from the middle of flat bytes."""
    low = max((data.nbytes - _SAMPLE) // 2, 0) // max(_WIDTHS) * max(_WIDTHS)
    sample = data[low : low + _SAMPLE]
    best = min((_gain(sample, width) for width in _WIDTHS), key=lambda gain: gain.share)
    # Again: a sample takes a millisecond, and ten where the process was put aside meanwhile.
    again = (_gain(sample, best.width) for _ in range(2))
    return max((best, *again), key=lambda gain: gain.bytes_per_s)


def _gain(sample: memoryview, width: int) -> Gain:
    began = time.perf_counter()
    share = len(squeezed(sample, width)) / max(sample.nbytes, 1)
    seconds = max(time.perf_counter() - began, 1e-9)
    return Gain(width, share, sample.nbytes / seconds)


def squeezed(data: memoryview, width: int) -> bytes:
    """`data`, flat bytes, taken for numbers of `width` bytes; what is over goes last, as it is."""
    every, whole = data.tobytes(), data.nbytes - data.nbytes % width
    parts = [_HEAD.pack(width)]
    for place in range(width):
        those = every[place:whole:width]
        middle = len(those) // 2
        sample = those[middle : middle + _PLACE_SAMPLE]
        gains = len(zlib.compress(sample, _LEVEL)) < _LITTLE * len(sample)
        kept = zlib.compress(those, _LEVEL) if gains else those
        parts += [_PLACE.pack(gains, len(kept)), kept]
    return b"".join([*parts, every[whole:]])


def expanded(data: memoryview, nbytes: int) -> bytearray:
    """What was squeezed, `nbytes` of it."""
    rest = memoryview(data.tobytes())
    (width,) = _HEAD.unpack_from(rest)
    at, whole = _HEAD.size, nbytes - nbytes % width
    made = bytearray(nbytes)
    for place in range(width):
        deflated, length = _PLACE.unpack_from(rest, at)
        at += _PLACE.size
        kept = rest[at : at + length]
        made[place:whole:width] = zlib.decompress(kept) if deflated else kept
        at += length
    made[whole:] = rest[at:]
    return made


class Squeezer:
    """Squeezes parts of parcels, by their numbers, where a sample of each says that it pays."""

    def __init__(self) -> None:
        self._gains: dict[object, Gain] = {}

    def part(self, parcel: object, data: memoryview, link_bytes_per_s: float) -> memoryview | bytes:
        """`data`, or fewer bytes that stand for it; as it is where nothing is known of the link
        (0 bytes/s).
        """
        if not 0 < link_bytes_per_s < FASTEST:
            return data
        if parcel not in self._gains:
            self._gains[parcel] = tried(data)
        gain = self._gains[parcel]
        if not gain.worth(link_bytes_per_s):
            return data
        fewer = squeezed(data, gain.width)
        return fewer if len(fewer) < data.nbytes else data


def part_of(came: memoryview, nbytes: int) -> memoryview | bytearray:
    """What `Squeezer.part` was given, so many bytes of it."""
    return came if came.nbytes == nbytes else expanded(came, nbytes)
