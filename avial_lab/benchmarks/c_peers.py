"""C as the race builds it: sources to a shared object, and a peer's function to something to call.

kernels/NAME/peer.c, element type, sizes -> C text -> shared object (cached) -> Python callable.

A peer is one function. `T` is its element type, its kernel's sizes are macros (as constant as those
that our own binary is compiled for), and its parameters are the kernel's arguments in their order:

    void kernel_gemm(T alpha, T beta, T C[restrict NI][NJ], …)

Behind it comes what we add, its clock, so that a call from Python costs it nothing:

    double seconds_kernel_gemm(T alpha, T beta, void *C, …)

The same text, built without any freedom, is the truth at sizes where NumPy takes minutes; with
`T = Rounded` (rounded.hpp) it is C++ and says how far two correct runs may be apart:

    void bound_kernel_gemm(double alpha, double beta, void *C, …)
"""

from __future__ import annotations

import ctypes
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.benchmarks.kernel_suite import Kernel
from avial_lab.core.c_compiler import CCompiler, c_compilers
from avial_lab.core.element_types import ELEMENT_TYPES, element_of_dtype
from avial_lab.core.toolchain import find_tool, run

# Before any size is a macro: a header may use the same letters.
_HEADERS = """\
#include <stdint.h>
#include <stdlib.h>
#include <tgmath.h>
#include <time.h>
"""

_CLOCK = """
double seconds_{symbol}({parameters}) {{
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  {symbol}({names});
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) * 1e-9;
}}
"""

_MPI_HEADERS = """
#include <math.h>
#include <mpi.h>
#define FIRST_ROW(extent, rank) ((long)(extent) * (rank) / ranks)
#define FIRST_OF_TRIANGLE(extent, rank) ((long)((extent) * sqrt((double)(rank) / ranks)))
"""

_MPI_CLOCK = """
double seconds_{symbol}(int64_t handle, int rank, int ranks, {parameters}) {{
  MPI_Comm comm = MPI_Comm_f2c(handle);
  MPI_Barrier(comm);
  const double start = MPI_Wtime();
  {symbol}(comm, rank, ranks, {names});
  return MPI_Wtime() - start;
}}
"""

_BOUND = """
extern "C" void bound_{symbol}({parameters}) {{ {symbol}({names}); }}
"""


def strict_compiler() -> CCompiler | None:
    """For the truth: every operation as it is written, in the order in which it is written."""
    path = shutil.which("gcc") or shutil.which("clang")
    if path is None:
        return None
    flags = ("-std=gnu11", "-O2", "-ffp-contract=off", "-fwrapv", "-fPIC", "-shared")
    return CCompiler("strict C", path, flags)


def bound_compiler() -> CCompiler | None:
    """For a peer's text as C++ with `T = Rounded`."""
    path = shutil.which("g++") or shutil.which("clang++")
    if path is None:
        return None
    flags = ("-xc++", "-std=gnu++17", "-O2", "-fPIC", "-shared", "-w")
    return CCompiler("C++", path, flags)


def peer_source(
    kernel: Kernel, element: str, sizes: Mapping[str, int], *, symbol: str, headers: bool = True
) -> str:
    """The kernel's peer for that element type and these sizes, its function called `symbol`.

    Texts of several peers may follow one another in one file, all but the first without `headers`.
    """
    text = (peer_folder(kernel) / "peer.c").read_text(encoding="utf-8")
    clock = _CLOCK.format(
        symbol=symbol,
        parameters=", ".join(f"{_parameter(a)} {name}" for name, a in kernel.arguments.items()),
        names=", ".join(kernel.arguments),
    )
    own = ELEMENT_TYPES[element].c_type
    macros = {"T": own, kernel.function: symbol, **_size_macros(sizes)}
    return f"{_HEADERS if headers else ''}{_with_macros(macros, text + clock)}"


def mpi_source(kernel: Kernel, element: str, sizes: Mapping[str, int]) -> str:
    """The kernel's peer for several ranks, `peer_mpi.c`: its function has the communicator, the
    rank and the number of ranks before the kernel's arguments, and this rank's part of the arrays.
    """
    text = (peer_folder(kernel) / "peer_mpi.c").read_text(encoding="utf-8")
    clock = _MPI_CLOCK.format(
        symbol=kernel.function,
        parameters=", ".join(f"{_parameter(a)} {name}" for name, a in kernel.arguments.items()),
        names=", ".join(kernel.arguments),
    )
    own = ELEMENT_TYPES[element]
    macros = {"T": own.c_type, "MPI_T": own.mpi_type, **_size_macros(sizes)}
    return f"{_HEADERS}{_MPI_HEADERS}{_with_macros(macros, text + clock)}"


def mpi_compilers(*, integers: bool = False) -> tuple[CCompiler, ...]:
    """`c_compilers` with what the MPI at hand needs; none where its `mpicc` does not say."""
    command = find_tool("mpicc")
    shown = run([str(command), "-show"]) if command is not None else None
    if shown is None or shown.returncode:
        return ()
    flags = tuple(shlex.split(shown.stdout)[1:])
    return tuple(
        CCompiler(compiler.name.replace("-fast", "") + "-mpi" + "-fast" * compiler.is_fast,
                  compiler.path, (*compiler.flags, *flags))
        for compiler in c_compilers(integers=integers)
    )  # fmt: skip


def bound_source(kernel: Kernel, element: str, sizes: Mapping[str, int], *, symbol: str) -> str:
    """The kernel's peer as C++ over `Rounded`: `bound_SYMBOL` takes arrays of Rounded where they
    have the kernel's own element type, which is a float, and scalars as doubles.
    """
    header = (Path(__file__).with_name("rounded.hpp")).read_text(encoding="utf-8")
    text = (peer_folder(kernel) / "peer.c").read_text(encoding="utf-8")
    entry = _BOUND.format(
        symbol=symbol,
        parameters=", ".join(
            f"{_parameter(a, own='double')} {name}" for name, a in kernel.arguments.items()
        ),
        names=", ".join(
            f"Address{{{name}}}" if hasattr(a, "extents") else name
            for name, a in kernel.arguments.items()
        ),
    )
    # C++ has no restrict; the headers a peer includes come before any size is a macro.
    macros = {"T": "Rounded", "restrict": "", kernel.function: symbol, **_size_macros(sizes)}
    top = f"typedef {ELEMENT_TYPES[element].c_type} Element;\n{header}"
    return top + _with_macros(macros, text.replace("#include <tgmath.h>\n", "") + entry)


def _size_macros(sizes: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{value}L" for name, value in sizes.items()}


def _with_macros(macros: Mapping[str, str], text: str) -> str:
    defines = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    undefines = "".join(f"#undef {name}\n" for name in macros)
    return f"{defines}{text}{undefines}"


def _parameter(argument: object, *, own: str = "T") -> str:
    """The C type of an argument of the clock, where the shape of an array does not matter; `own` is
    that of the kernel's own elements.
    """
    if hasattr(argument, "extents"):
        return "void *"
    element: str | None = getattr(argument, "element", None)
    return own if element is None else ELEMENT_TYPES[element].c_type


def peer_folder(kernel: Kernel) -> Path:
    """Where the kernel's peers stand, beside its `kernel.mlir`."""
    folder: Path = kernel.folder  # pyright: ignore[reportAttributeAccessIssue]
    return folder


def clocked(library: ctypes.CDLL, symbol: str, arguments: Mapping[str, Any]) -> Callable[[], float]:
    """A call of the peer `symbol` on these arguments, converted once; it returns its seconds.

    The arrays are the caller's, and have to live as long as the call.
    """
    converted = [c_argument(value) for value in arguments.values()]
    function = library[f"seconds_{symbol}"]
    function.restype = ctypes.c_double
    return lambda: function(*converted)


def c_argument(value: np.ndarray | np.generic, *, widened: bool = False) -> object:
    """How a C function takes it: an address, or a number, floats as doubles where `widened`."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if widened and value.dtype.kind == "f":
        return ctypes.c_double(value.item())
    element = element_of_dtype(value.dtype)
    assert element is not None, "a kernel's scalars have a type"
    return element.ctype(value.item())
