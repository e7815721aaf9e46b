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


FAULTS["a switch on more than 32 bits"] = Fault(
    """func.func @f(%x: memref<4xindex>, %y: memref<4xi64>) {
  affine.for %i = 0 to 4 {
    %v = memref.load %x[%i] : memref<4xindex>
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %r = scf.index_switch %v -> i64
    case 3 { scf.yield %one : i64 }
    default { scf.yield %two : i64 }
    memref.store %r, %y[%i] : memref<4xi64>
  }
  return
}
""",
    {"x": np.array([0, 3, 2**32 + 3, -1]), "y": np.zeros(4, np.int64)},
)
