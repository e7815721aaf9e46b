"""NumPy's dtypes as element types of the ptensor dialect, whose integers carry their sign."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from avial_lab.core.element_types import ELEMENT_TYPES, ElementKind

DTYPES = {
    name: ("u" if name.startswith("u") else "") + row.name
    for row in ELEMENT_TYPES.values()
    if row.kind is not ElementKind.INDEX
    for name in row.dtypes
    if hasattr(np, name)
}
"""NumPy's own, each with its element type: those that arrays on ranks hold."""


@cache
def element_of(dtype: np.dtype) -> str:
    """That of a NumPy dtype; TypeError for what no rank computes with."""
    found = DTYPES.get(dtype.name) if dtype.isnative else None
    if found is None:
        raise TypeError(
            f"arrays of {dtype} cannot be divided over ranks; they hold {', '.join(DTYPES)}"
        )
    return found


def refuse_masked(given: object) -> None:
    """TypeError for an array whose mask nobody here would look at."""
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(
            "masked arrays cannot be divided over ranks: x.filled(number) has none, and "
            "xp.where(mask, number, x) is the same of an array on ranks"
        )


@cache
def stored_dtype(dtype: np.dtype) -> np.dtype:
    """That of its elements in memory, where integers carry no sign."""
    return np.dtype(dtype.name.removeprefix("u")) if dtype.kind == "u" else dtype


@lru_cache(4096)
def value_type(shape: tuple[int, ...], dtype: np.dtype, device: str, dist: str) -> str:
    """dist: how it lies, as text of an attribute."""
    dims = "".join(f"{extent}x" for extent in shape)
    return f'!ptensor.ptensor<tensor<{dims}{element_of(dtype)}>, "{device}", {dist}>'


@lru_cache(4096)
def memory_type(shape: tuple[int, ...], dtype: np.dtype) -> str:
    dims = "".join(f"{extent}x" for extent in shape)
    return f"memref<{dims}{element_of(dtype).removeprefix('u')}>"
