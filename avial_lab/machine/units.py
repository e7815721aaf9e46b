"""Numbers with units, as people write them: `12.5 GB/s`, `25 Gbit/s`, `2 us`, `64 GiB`.

Text -> a number in bytes, seconds, bytes a second or operations a second.
"""

from __future__ import annotations

import enum
import re
from difflib import get_close_matches

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


class Quantity(enum.Enum):
    """What a number is of, with an example."""

    BYTES = "64 GiB"
    SECONDS = "2 us"
    BYTES_PER_S = "12.5 GB/s"
    FLOPS = "40 GFLOP/s"


def _units() -> dict[Quantity, dict[str, float]]:
    size = {**_DECIMAL, **_BINARY}
    return {
        Quantity.BYTES: {f"{prefix}B": factor for prefix, factor in size.items()},
        Quantity.SECONDS: _TIME,
        Quantity.BYTES_PER_S: {
            **{f"{prefix}B/s": factor for prefix, factor in size.items()},
            **{f"{prefix}Bps": factor for prefix, factor in size.items()},
            **{f"{prefix}bit/s": factor / 8 for prefix, factor in size.items()},
            **{f"{prefix}bps": factor / 8 for prefix, factor in size.items()},
        },
        Quantity.FLOPS: {
            f"{prefix}{unit}": factor
            for prefix, factor in _DECIMAL.items()
            for unit in ("FLOP/s", "FLOPS", "flops", "f")
        },
    }


UNITS = _units()


class UnitError(ValueError):
    """What is wrong with a number, for the reader of a file to say where."""


def parsed(text: str, quantity: Quantity) -> float:
    """In bytes, seconds, bytes a second, operations a second; more than 0.

    >>> parsed("25 Gbit/s", Quantity.BYTES_PER_S), parsed("2 us", Quantity.SECONDS)
    (3125000000.0, 2e-06)
    >>> parsed("10", Quantity.SECONDS)
    Traceback (most recent call last):
      ...
    avial_lab.machine.units.UnitError: '10' has no unit; write for example '2 us'
    """
    found = re.fullmatch(r"\s*([\d.]+(?:[eE][+-]?\d+)?)\s*(\S*)\s*", text)
    if found is None:
        raise UnitError(f"'{text}' is not a number with a unit, like '{quantity.value}'")
    unit = found[2]
    if not unit:
        raise UnitError(f"'{text.strip()}' has no unit; write for example '{quantity.value}'")
    known = UNITS[quantity]
    if unit not in known:
        near = get_close_matches(unit, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"write for example '{quantity.value}'"
        raise UnitError(f"'{unit}' is not a unit for this; {hint}")
    try:
        value = float(found[1]) * known[unit]
    except ValueError:
        raise UnitError(f"'{found[1]}' is not a number") from None
    if not 0 < value < float("inf"):
        raise UnitError(f"'{text.strip()}' is not more than 0")
    return value


_STEPS = {
    Quantity.BYTES: ("B", ("Ti", "Gi", "Mi", "Ki", "")),
    Quantity.BYTES_PER_S: ("B/s", ("T", "G", "M", "k", "")),
    Quantity.FLOPS: ("FLOP/s", ("P", "T", "G", "M", "k", "")),
}


def written(value: float, quantity: Quantity) -> str:
    """As `parsed` reads it, in few digits and the largest unit that leaves 1 or more.

    >>> written(12.5e9, Quantity.BYTES_PER_S), written(2e-6, Quantity.SECONDS)
    ('12.5 GB/s', '2 us')
    >>> written(64 * 2**30, Quantity.BYTES)
    '64 GiB'
    """
    if quantity is Quantity.SECONDS:
        units = {name: factor for name, factor in _TIME.items() if name != "µs"}
    else:
        unit, prefixes = _STEPS[quantity]
        units = {f"{prefix}{unit}": UNITS[quantity][f"{prefix}{unit}"] for prefix in prefixes}
    name, factor = next(
        ((name, factor) for name, factor in units.items() if value >= factor),
        list(units.items())[-1],
    )
    return f"{value / factor:.6g} {name}"
