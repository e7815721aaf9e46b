"""What random programs leave out as long as it goes wrong.

Each entry goes when its fault is mended: `test_three_ways.py` demands that it still fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Fault:
    """`text` on `arrays` fails today; the generators ask `avoided` and leave its kind out."""

    text: str
    arrays: dict[str, np.ndarray]


FAULTS: dict[str, Fault] = {}


def avoided(name: str) -> bool:
    return name in FAULTS
