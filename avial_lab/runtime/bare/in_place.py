"""Arrays that other libraries have on the GPU, used where they lie: `python -m … FOLDER DRIVER`.

Each way to have them is a check of its own: values, addresses, copies, and the stream that wrote
them last; then what has to be refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.device_arrays import OnDevice, device_array
from avial_lab.core.errors import AvialError
from avial_lab.runtime.bare.children import tell
from avial_lab.runtime.bare.contents import Bundle
from avial_lab.runtime.bare.values import die_with_parent
from avial_lab.runtime.rank import in_place
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.threads import Threads

RUNS = 3


class Interface:
    """What an array says of itself, changed."""

    def __init__(self, array: Any, **changes: object) -> None:  # noqa: ANN401
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return self.array.__cuda_array_interface__ | self.changes


class Capsule:
    """An array by DLPack alone."""

    def __init__(self, array: Any) -> None:  # noqa: ANN401
        self.array = array

    def __dlpack__(self, **how: object) -> object:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.array.__dlpack_device__()
        return int(kind), int(number)


class Emulated:
    """Memory of this process that stands for that of an emulated GPU."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        array = self.array
        strides = None if array.flags.c_contiguous else array.strides
        data = (array.ctypes.data, not array.flags.writeable)
        return {
            "shape": array.shape, "typestr": array.dtype.str, "data": data, "strides": strides,
            "version": 3, "stream": None,
        }  # fmt: skip


Made = tuple[str, Any, Any, Callable[[Any], np.ndarray]]
"""What it is, x, y, and how to look at y."""


def ways(driver: str, size: int) -> Iterator[Made | tuple[str, str]]:
    """Arrays x = 0, 1, 2 … and y = 1; where a library is not there, its name and why."""
    if driver != "cuda":
        x, y = np.arange(size, dtype=np.float32), np.ones(size, np.float32)
        yield "emulated", Emulated(x), Emulated(y), lambda y: y.array
        return
    yield from _cupy_ways(size)
    yield from _torch_ways(size)
    yield from _numba_ways(size)
    yield from _jax_ways(size)


def _cupy_ways(size: int) -> Iterator[Made | tuple[str, str]]:
    try:
        import cupy  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        yield "CuPy", str(error)
        return
    x, y = cupy.arange(size, dtype=np.float32), cupy.ones(size, np.float32)
    yield "CuPy", x, y, cupy.asnumpy
    x, y = cupy.arange(size, dtype=np.float32), cupy.ones(size, np.float32)
    cupy.cuda.Device().synchronize()
    yield "CuPy by DLPack", Capsule(x), Capsule(y), lambda y: cupy.asnumpy(y.array)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x, y = cupy.zeros(size, np.float32), cupy.zeros(size, np.float32)
        for _ in range(200):  # some milliseconds: who does not wait sees zeros
            cupy.sin(cupy.ones(1 << 22, np.float32))
        x += cupy.arange(size, dtype=np.float32)
        y += 1
        yield "CuPy on a stream of its own", x, y, cupy.asnumpy


def _torch_ways(size: int) -> Iterator[Made | tuple[str, str]]:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        yield "PyTorch", str(error)
        return
    for name, way in (("PyTorch", lambda array: array), ("PyTorch by DLPack", Capsule)):
        x = torch.arange(size, dtype=torch.float32, device="cuda")
        y = torch.ones(size, device="cuda")
        yield name, way(x), way(y), lambda y: getattr(y, "array", y).cpu().numpy()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x, y = torch.zeros(size, device="cuda"), torch.zeros(size, device="cuda")
        for _ in range(200):
            torch.sin(torch.ones(1 << 22, device="cuda"))
        x += torch.arange(size, dtype=torch.float32, device="cuda")
        y += 1
        yield "PyTorch on a stream of its own", x, y, lambda y: y.cpu().numpy()


def _numba_ways(size: int) -> Iterator[Made | tuple[str, str]]:
    try:
        from numba import cuda  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        yield "Numba", str(error)
        return
    x = cuda.to_device(np.arange(size, dtype=np.float32))
    y = cuda.to_device(np.ones(size, np.float32))
    yield "Numba", x, y, lambda y: y.copy_to_host()


def _jax_ways(size: int) -> Iterator[Made | tuple[str, str]]:
    """Its arrays are only read."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import cupy  # pyright: ignore[reportMissingImports]
        import jax  # pyright: ignore[reportMissingImports]

        if jax.default_backend() != "gpu":
            yield "JAX", "it has no GPU here"
            return
    except Exception as error:  # it is found where it is, and may not start
        yield "JAX", f"{type(error).__name__}: {error}"
        return
    x = jax.numpy.sin(jax.numpy.ones((64, size))).sum(axis=0) * 0 + jax.numpy.arange(size)
    yield "JAX", x, cupy.ones(size, np.float32), cupy.asnumpy


def _checked(binary: Binary, made: Made, how: Options) -> str:
    """What is wrong; empty where nothing is."""
    _, x, y, look = made
    given = {name: device_array(name, array) for name, array in (("x", x), ("y", y))}
    arrays: dict[str, np.ndarray] = {name: OnDevice.of(each) for name, each in given.items()}
    copied = 0
    for _ in range(RUNS):
        trace = in_place.run(binary, arrays, options=how)
        copied += sum(copy.copies for copy in trace.copies)
    want = np.ones(given["y"].shape, np.float32)
    for _ in range(RUNS):
        want += 2 * np.arange(want.size, dtype=np.float32)
    got = look(y)
    if not np.array_equal(got, want):
        first = int(np.flatnonzero(got != want)[0])
        return f"y[{first}] is {got[first]!r} instead of {want[first]!r}"
    if device_array("y", y).address != given["y"].address:
        return "the array has another address"
    return f"{copied} copies were made" if copied else ""


def refused(binary: Binary, x: Any, y: Any, driver: str, how: Options) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """What must not be taken."""
    nowhere = (1 << 50, False)
    size = 1 << 20
    cases: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
        "strides": (lambda: Interface(x, strides=(8,)), ("strides",)),
        "another shape": (lambda: Interface(x, shape=(size // 2,)), ("compiled for",)),
        "freed memory": (lambda: Interface(x, data=nowhere), ("freed",)),
    }
    if driver == "cuda":
        cases["an array of the host"] = (
            lambda: Emulated(np.zeros(size, np.float32)), ("host", "no GPU has memory"),
        )  # fmt: skip
        cases["more than was taken"] = (
            lambda: Interface(x, data=(_last_mib(x), False)), ("beyond", "freed"),
        )  # fmt: skip
    for name, (make, words) in cases.items():
        try:
            arrays: dict[str, np.ndarray] = {
                "x": OnDevice.of(device_array("x", make())), "y": OnDevice.of(device_array("y", y))
            }  # fmt: skip
            in_place.run(binary, arrays, options=how)
            said, ok = "it was not refused", False
        except AvialError as error:
            said = str(error)
            ok = any(word in said for word in words)
        yield {"array": f"refused: {name}", "ok": ok, "said": said}


def _last_mib(x: Any) -> int:  # noqa: ANN401
    """An address in memory that CuPy has, from which the array reaches beyond it."""
    import cupy  # pyright: ignore[reportMissingImports]

    memory = cupy.cuda.memory.Memory(1 << 20)
    _KEPT.append(memory)
    return int(memory.ptr)


_KEPT: list[object] = []


def main(arguments: Sequence[str]) -> None:
    folder, driver = arguments
    die_with_parent()
    bundle = Bundle.at(Path(folder))
    binary = bundle.binary(bundle.contents.in_place)
    how = Options(traced=False, threads=Threads(1), driver=driver)
    size = binary.manifest.buffers[0].shape[0]
    last: tuple[Any, Any] | None = None  # of CuPy
    for found in ways(driver, size):
        if len(found) == 2:
            tell({"missing": f"{found[0]}: {found[1]}"})
            continue
        name, x, y, _ = found
        try:
            wrong = _checked(binary, found, how)
        except Exception as error:  # the others are still to be tried
            wrong = f"{type(error).__name__}: {error}"
        tell({"array": name, "ok": not wrong, "said": wrong or f"{RUNS} runs, no copy"})
        if last is None and hasattr(x, "__cuda_array_interface__"):
            last = x, y
    if last is not None:
        for fact in refused(binary, *last, driver, how):
            tell(fact)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
