"""The old home of what the catalogue of passes has now."""

from __future__ import annotations

import warnings
from typing import Any

from avial_lab.compiler import catalogue

_MOVED = ("OPTIONAL", "SIZES")


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has moved
    if name not in _MOVED:
        raise AttributeError(f"module 'avial_lab.compiler.effort' has no attribute '{name}'")
    warnings.warn(
        f"avial_lab.compiler.effort.{name} is avial_lab.compiler.catalogue.{name} now",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(catalogue, name)
