"""Files and folders with arrays: .npy, Zarr, HDF5, each read and written by parts.

Path, name of an array in it -> what has a shape, a dtype and subscripts. Zarr and HDF5 need their
packages, which are loaded where such a path is met.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from avial_lab.core.errors import AvialError
from avial_lab.core.words import listed

NPY, ZARR, HDF5 = "npy", "zarr", "h5py"


def format_of(path: str) -> str:
    """By its ending; Zarr's also by that of a folder on the way: "all.zarr/group/x".

    >>> format_of("runs/all.zarr/x"), format_of("a.hdf5"), format_of("a")
    ('zarr', 'h5py', 'npy')
    """
    if path.lower().endswith((".h5", ".hdf5")):
        return HDF5
    return ZARR if any(part.lower().endswith(".zarr") for part in path.split(os.sep)) else NPY


@contextmanager
def opened(path: str, name: str = "", *, to_write: bool = False) -> Iterator[Any]:
    """The array `name` of that file, or its only one."""
    form, mode = format_of(path), "r+" if to_write else "r"
    if form == NPY:
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
        yield array
        if to_write:
            array.flush()
    elif form == ZARR:
        yield _array_of(path, name, _package(ZARR, path).open(path, mode=mode))
    else:
        with _package(HDF5, path).File(path, mode) as file:
            yield _array_of(path, name, file)


def create(
    path: str, name: str, shape: Sequence[int], dtype: np.dtype, options: Mapping[str, Any]
) -> int:
    """A new array there, in the place of one of that name; options: of Zarr's or h5py's function
    that creates one (chunks, compression, …). -> how many rows have to be written at once.
    """
    if format_of(path) == NPY:
        np.lib.format.open_memmap(path, "w+", dtype, tuple(shape)).flush()
        return 1
    if format_of(path) == ZARR:
        zarr = _package(ZARR, path)
        whole = zarr.open_array(path, path=name, mode="w", shape=shape, dtype=dtype, **options)
        chunks = getattr(whole, "shards", None) or whole.chunks
        return chunks[0] if chunks else 1
    with _package(HDF5, path).File(path, "a") as file:
        if name in file:
            del file[name]
        file.create_dataset(name, shape, dtype, **options)
    return 1


def is_written_in_turn(path: str) -> bool:
    """Whether one process at a time may write to it."""
    return format_of(path) == HDF5


def _array_of(path: str, name: str, opened: Any) -> Any:  # noqa: ANN401 - of either package
    """Of a file or group the array of that name; AvialError with the names that are there."""
    if name:
        if name not in opened:
            raise AvialError(f"{path} has no array '{name}'", hint=_names(opened))
        opened = opened[name]
    if hasattr(opened, "dtype"):
        return opened
    arrays = [key for key in opened if hasattr(opened[key], "dtype")]
    if len(arrays) != 1:
        raise AvialError(
            f"{path} holds {len(arrays)} arrays: name= says which", hint=_names(opened)
        )
    return opened[arrays[0]]


def _names(opened: Any) -> str:  # noqa: ANN401 - of either package
    return f"there are {listed(sorted(opened)) or 'none'}" if hasattr(opened, "keys") else ""


def _package(name: str, path: str) -> Any:  # noqa: ANN401 - a module without types
    try:
        return importlib.import_module(name)
    except ImportError:
        raise AvialError(
            f"{path} is read and written by the package {name}, which is not here",
            hint=f"pip install {name}",
        ) from None
