"""Kinds of programs that are known to go wrong, so that random ones of them are left out.

Each goes when what it names is mended; `test_three_ways.py` demands that it still fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Fault:
    """`shape`: a pattern of texts of the kind (and of others). `text` on `arrays` fails today."""

    name: str
    shape: str
    text: str
    arrays: dict[str, np.ndarray]

    def may_be_in(self, text: str) -> bool:
        return re.search(self.shape, text) is not None


FAULTS: tuple[Fault, ...] = ()


def known(text: str) -> bool:
    return any(fault.may_be_in(text) for fault in FAULTS)
