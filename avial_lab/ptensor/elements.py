"""NumPy's dtypes as element types of the ptensor dialect."""

from __future__ import annotations

import numpy as np

_ELEMENTS = {
    "bool": "i1",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


def element_of(dtype: np.dtype) -> str:
    """`ui8` for uint8; TypeError for what no rank computes with."""
    found = _ELEMENTS.get(dtype.name) if dtype.isnative else None
    if found is None:
        known = ", ".join(_ELEMENTS)
        raise TypeError(f"arrays of {dtype} cannot be divided over ranks; they hold {known}")
    return found


def stored_dtype(dtype: np.dtype) -> np.dtype:
    """That of its elements in memory, where integers carry no sign: int8 for uint8."""
    return np.dtype(dtype.name.removeprefix("u")) if dtype.kind == "u" else dtype


def value_type(shape: tuple[int, ...], dtype: np.dtype) -> str:
    dims = "".join(f"{extent}x" for extent in shape)
    return f'!ptensor.ptensor<tensor<{dims}{element_of(dtype)}>, "default", unit>'


def memory_type(shape: tuple[int, ...], dtype: np.dtype) -> str:
    dims = "".join(f"{extent}x" for extent in shape)
    return f"memref<{dims}{element_of(dtype).removeprefix('u')}>"
