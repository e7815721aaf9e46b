"""Passes that had another name before November 2026: their names go on working for one
release, with a warning that says the new one.

A name that a caller gives -> the name of the catalogue.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType

from avial_lab.core.errors import RenamedWarning

RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "apart-to-llvm": "no-alias-to-llvm",
        "arrays-apart": "no-alias",
        "block-loops": "block-contractions",
        "block-substitutions": "block-triangular-solves",
        "carried-to-memory": "iter-args-to-memory",
        "check-distances": "version-by-distance",
        "contract-products": "contract-fma",
        "cut-loops": "split-index-sets",
        "empty-loops": "remove-empty-loops",
        "extremes-to-llvm": "ieee-min-max",
        "flatten-rows": "coalesce-loops",
        "flatten-sums": "coalesce-reductions",
        "fuse-nests": "fuse-loops",
        "hold-rows": "jam-in-registers",
        "interleave-rows": "jam-for-latency",
        "jam-rows": "jam-for-stores",
        "join-sums": "merge-split-reductions",
        "keep-memory": "pool-allocations",
        "mark-math": "select-math",
        "near-arguments": "version-by-argument",
        "order-loops": "interchange-loops",
        "own-memory": "place-allocations",
        "pack-rows": "pack-operands",
        "partial-sums": "privatise-array-sums",
        "raise-loops": "raise-to-affine",
        "reorder-extremes": "vectorise-extremes",
        "reorder-sums": "reassociate-sums",
        "scratch-per-iteration": "privatise-scratch",
        "share-loads": "jam-for-loads",
        "share-rows": "align-reductions",
        "split-drivers": "outline-drivers",
        "split-wraps": "split-wraparound",
        "stream-stores": "streaming-stores",
        "thread-sums": "privatise-scalar-sums",
        "transpose-tiles": "transpose-in-registers",
        "unroll-sums": "unroll-reductions",
        "vectorise-rows": "vectorise-outer",
        "whole-vectors": "align-vectors",
    }
)
"""The name until then, and the name now."""


def name_now(name: str) -> str:
    """The pass of that name as it is called now. Warns with RenamedWarning where it was renamed, at
    the line outside of avial_lab that gave the name.
    """
    if name not in RENAMED:
        return name
    now = RENAMED[name]
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("avial_lab."):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"the pass {name} is called {now} now", RenamedWarning, stacklevel=level)
    return now
