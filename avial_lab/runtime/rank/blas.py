"""The BLAS that a rank has already: found, and handed to a program that calls one.

A loaded program, a number of threads -> the program with the library's functions in its globals
(`runtime/native/blas.c`); ClusterError where there is no such library. Nothing is installed, and
nothing that is not asked for is loaded.

In this order: what $AVIAL_BLAS names; what the process has loaded, as it would be there anyway
(NumPy's); what comes in NumPy's and SciPy's wheels; the libraries of the environment (conda's MKL,
BLIS, OpenBLAS) and of the system.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from avial_lab.core.errors import ClusterError
from avial_lab.runtime.native.loader import LoadedProgram, mapped_files

VARIABLE = "AVIAL_BLAS"
"""Of the environment: the file of the library to take, and no other."""

BITS = "avial_blas_bits"
"""A global of programs that call a BLAS."""

NAMES = ("mkl_rt", "openblas64_", "openblas64", "openblas", "blis", "cblas", "blas")
"""Of libraries that have C's interface, or may have it."""

_LIBRARIES = re.compile(
    r"/lib(scipy_openblas|openblas|mkl_rt|blis|cblas|blas)[^/]*\.(so|dylib)[.\d]*$"
)

_PREFIXES, _ENDINGS = ("", "scipy_"), ("64_", "_64", "")
"""Around the names of functions: SciPy's own builds have the first; an ending says that integers
have 64 bits.
"""


@dataclass(frozen=True)
class Blas:
    """A library that has the products of matrices: the addresses of its cblas_dgemm and
    cblas_sgemm, and of how many bits their integers are.

    `threads` sets how many it computes with from now on and says how many it had; None where nobody
    can tell it.
    """

    name: str
    path: str
    dgemm: int
    sgemm: int
    bits: int
    threads: Callable[[int], int] | None

    def __str__(self) -> str:
        unknown = "" if self.threads is not None else ", number of threads unknown"
        return f"{self.name}, {self.bits}-bit integers{unknown} ({self.path})"


@contextmanager
def products(program: LoadedProgram, threads: int) -> Generator[None]:
    """As long as this lasts `program` may call the BLAS, which then has that many threads."""
    if not program.exports(BITS):  # it has no product to compute
        yield
        return
    blas = needed()
    program.set_globals(
        {"avial_blas_dgemm": blas.dgemm, "avial_blas_sgemm": blas.sgemm, BITS: blas.bits}
    )
    before = None if blas.threads is None else blas.threads(threads)
    try:
        yield
    finally:
        if blas.threads is not None and before is not None:
            blas.threads(before)


def needed() -> Blas:
    """The one that programs call here; raises ClusterError where there is none."""
    found = blas_here()
    if found is not None:
        return found
    chosen = os.environ.get(VARIABLE)
    if chosen:
        raise ClusterError(
            f"{VARIABLE} names {chosen}, which is not a BLAS with cblas_dgemm",
            hint=f"name another library in {VARIABLE}, or none",
        )
    raise ClusterError(
        "the program calls a BLAS, and none was found on this machine",
        hint=f"pip install scipy, name a library in the variable {VARIABLE} of the environment, or "
        "compile without blas",
    )


def blas_here() -> Blas | None:
    """The one that programs would call, loaded into this process."""
    return _first(os.environ.get(VARIABLE, ""))


def blas_of_numpy() -> Blas | None:
    """The one that NumPy computes products of matrices with; None where that is not found."""
    return next(
        (found for path in mapped_files(_LIBRARIES) if (found := _loaded(path)) is not None), None
    )


@cache
def _first(chosen: str) -> Blas | None:
    paths = iter([chosen]) if chosen else candidates()
    return next((found for path in paths if (found := _loaded(path)) is not None), None)


def candidates() -> Iterator[str]:
    """Files that may be one, or names that the loader knows; the best first."""
    yield from mapped_files(_LIBRARIES)
    for package in ("numpy", "scipy"):
        yield from _in_wheel(package)
    for name in NAMES:
        for path in sorted((Path(sys.prefix) / "lib").glob(f"lib{name}.*")):
            if _LIBRARIES.search(str(path)):
                yield str(path)
    for name in NAMES:
        found = ctypes.util.find_library(name)
        if found is not None:
            yield found


def _in_wheel(package: str) -> list[str]:
    """The libraries that a package's wheel brings along; finding is not importing."""
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations or ()) if spec is not None else ()
    folders = [
        folder
        for place in map(Path, places)
        for folder in (place.with_name(f"{package}.libs"), place / ".dylibs")
    ]
    files = [str(path) for folder in folders if folder.is_dir() for path in folder.iterdir()]
    return sorted(path for path in files if _LIBRARIES.search(path))


def _loaded(path: str) -> Blas | None:
    """The library, if it can be loaded and has what is called."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for prefix in _PREFIXES:
        for ending in _ENDINGS:
            dgemm, sgemm = (_address(library, f"{prefix}cblas_{x}gemm{ending}") for x in "ds")
            if dgemm and sgemm:
                name, bits, threads = _kind(library, prefix, ending)
                return Blas(name, path, dgemm, sgemm, bits, threads)
    return None


def _address(library: ctypes.CDLL, name: str) -> int:
    """0 where there is none."""
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _kind(
    library: ctypes.CDLL, prefix: str, ending: str
) -> tuple[str, int, Callable[[int], int] | None]:
    """What it calls itself, the bits of its integers, and how its threads are set."""
    bits = 64 if ending else 32
    config = f"{prefix}openblas_get_config{ending}"
    if _address(library, config):
        told = library[config]
        told.restype = ctypes.c_char_p
        words = (told() or b"OpenBLAS").decode(errors="replace").split()
        get = library[f"{prefix}openblas_get_num_threads{ending}"]
        put = library[f"{prefix}openblas_set_num_threads{ending}"]
        wide = 64 if "USE64BITINT" in words else bits
        name = " ".join(words[:2]) + _core_told(library, f"{prefix}openblas_get_corename{ending}")
        return name, wide, _exchange(get, put)
    if _address(library, "MKL_Set_Num_Threads_Local"):
        # It answers with what it was before, 0 for what holds for all threads, and takes that back.
        return "MKL", bits, library["MKL_Set_Num_Threads_Local"]
    if _address(library, "bli_thread_set_num_threads"):
        get, put = library["bli_thread_get_num_threads"], library["bli_thread_set_num_threads"]
        wide = library["bli_info_get_blas_int_type_size"]
        for each in (get, wide):
            each.restype = ctypes.c_int64
        put.argtypes = [ctypes.c_int64]
        return "BLIS", wide(), _exchange(get, put)
    return "a BLAS", bits, None


def _core_told(library: ctypes.CDLL, function: str) -> str:
    """For which processor the code is that it has chosen; "" where it does not say."""
    if not _address(library, function):
        return ""
    told = library[function]
    told.restype = ctypes.c_char_p
    return f" for {(told() or b'any').decode(errors='replace')}"


def _exchange(get: Callable[[], int], put: Callable[[int], object]) -> Callable[[int], int]:
    def exchanged(count: int) -> int:
        before = get()
        put(count)
        return before

    return exchanged
