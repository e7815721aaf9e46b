"""The right answer: what a kernel's truth leaves, and how far a run may be from it.

Kernel at one size -> Answer -> CheckError for arrays that are wrong.

The truth is the kernel's own, in NumPy. At sizes where that takes minutes it is the C peer's text,
built so that every operation stays as it is written (`native.strict_compiler`), and the bound the
same text over numbers that carry their error (`rounded.hpp`); both are held against NumPy's at
SMALL before anybody believes them.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from avial_lab.benchmarks.builders import BoundEntry, CEntry
from avial_lab.benchmarks.c_peers import (
    bound_compiler,
    bound_source,
    peer_folder,
    peer_source,
    strict_compiler,
)
from avial_lab.benchmarks.kernel_suite import Kernel, KernelProgram, kernel_program
from avial_lab.benchmarks.worker import BenchmarkWorker
from avial_lab.core.c_compiler import CCompiler
from avial_lab.core.cache import Cache, digest
from avial_lab.core.errors import AvialError, CheckError
from avial_lab.core.files import cache_folder

_TRUSTED_SIZE = "SMALL"
"""Where the C truth is held against NumPy's."""

_NUMPY_FLOPS = 50_000_000
"""Up to so much work NumPy's truth and bound take seconds."""

Arrays = dict[str, np.ndarray]


class Answer:
    """What the results are and how far a run may be from them; computed at the first use.

    Scratch is not looked at: what is left there is nobody's result. `note`: what went another way
    than expected.
    """

    def __init__(self, start: KernelProgram) -> None:
        self.start = start
        self.note = ""
        self._known: tuple[Arrays, Arrays] | None = None

    def check(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Raises CheckError for the first array that is wrong."""
        if self._known is None:
            self._known = self._computed()
        _compare(self.start.kernel, arrays, *self._known)

    def _computed(self) -> tuple[Arrays, Arrays]:
        start = self.start
        flops: int = start.kernel.flops(start.sizes)  # pyright: ignore[reportAttributeAccessIssue]
        if flops > _NUMPY_FLOPS:
            try:
                return _trusted(start)
            except AvialError as error:
                reason = str(error).splitlines()[0]
                self.note = (
                    f"{start.kernel.name}: the reference is NumPy's, which is slow: {reason}"
                )
        return _by_numpy(start)


def results(kernel: Kernel) -> tuple[str, ...]:
    """The arrays that a caller of the kernel looks at."""
    return tuple(name for name in kernel.outputs if kernel.arguments[name].role.name != "SCRATCH")


def _compare(
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    truth: Mapping[str, np.ndarray],
    bound: Mapping[str, np.ndarray],
) -> None:
    for name in results(kernel):
        got, want = arrays[name], truth[name]
        with np.errstate(all="ignore"):
            right = (got == want) | (np.isnan(got) & np.isnan(want))
            right |= np.abs(got - want) <= bound[name]
        if not right.all():
            at = tuple(np.argwhere(~right)[0].tolist())
            raise CheckError(
                f"wrong: {name}{list(at)} is {got[at]}, not {want[at]} ± {bound[name][at]:.2g}"
            )


def _by_numpy(start: KernelProgram) -> tuple[Arrays, Arrays]:
    return start.kernel.truth(start.before), start.kernel.bound(start.before)


# -- the truth in C --------------------------------------------------------------------------------


def _trusted(start: KernelProgram) -> tuple[Arrays, Arrays]:
    """Truth and bound from C, where C is right at SMALL; AvialError where it is not."""
    small = kernel_program(start.kernel.name, size=_TRUSTED_SIZE, element=start.element)
    cache = _cache()
    key = digest("trusted", _native_key(small), *_numpy_texts(start.kernel))
    if cache.get(key) is None:
        _hold_against_numpy(small)
        cache.put(key, b"")
    return native_answer(start)


def _hold_against_numpy(small: KernelProgram) -> None:
    truth, bound = native_answer(small)
    known_truth, known_bound = _by_numpy(small)
    _compare(small.kernel, truth, known_truth, known_bound)
    for name in results(small.kernel):
        # A bound that is far below NumPy's would refuse what is right, far above it let wrong pass.
        if not _alike(bound[name], known_bound[name]):
            raise CheckError(f"the bound on {name} is not NumPy's")


def _numpy_texts(kernel: Kernel) -> list[bytes]:
    """What NumPy's truth and bound are made of."""
    folder = peer_folder(kernel)
    files = (folder / "kernel.py", folder.parent / "kernel.py", folder.parent / "rounding.py")
    return [file.read_bytes() for file in files]


def _alike(bound: np.ndarray, known: np.ndarray) -> bool:
    finite = np.isfinite(known)
    slack = np.finfo(np.float32).tiny + 1e-6 * known[finite]
    return bool(
        (known[finite] / 4 <= bound[finite] + slack).all()
        and (bound[finite] <= 4 * known[finite] + slack).all()
    )


def native_answer(start: KernelProgram) -> tuple[Arrays, Arrays]:
    """Truth and bound of the results, by the C peer's text alone; kept on disk by content."""
    cache, key = _cache(), _native_key(start)
    known = cache.get(key)
    if known is not None:
        return _unpacked(known)
    answer = _natively(start)
    cache.put(key, _packed(*answer))
    return answer


def _native_key(start: KernelProgram) -> str:
    """Everything the native answer is made from."""
    strict, checked = _compilers()
    inputs = [
        part
        for key, value in start.before.items()
        for part in (key, str(value.dtype), str(value.shape), value.tobytes())
    ]
    text, rounded = _texts(start)
    # A tolerance is the kernel's own, in Python.
    own = _numpy_texts(start.kernel) if not rounded else ()
    return digest(strict.identity, checked.identity, text, rounded, *own, *inputs)


def _cache() -> Cache:
    return Cache(cache_folder() / "truths")


def _compilers() -> tuple[CCompiler, CCompiler]:
    strict, checked = strict_compiler(), bound_compiler()
    if strict is None or checked is None:
        raise AvialError("there is no compiler for C and C++")
    return strict, checked


def _texts(start: KernelProgram) -> tuple[str, str]:
    """The peer as it is, and over `Rounded`: empty where the bound comes from elsewhere."""
    kernel, symbol = start.kernel, start.kernel.function
    text = peer_source(kernel, start.element, start.sizes, symbol=symbol)
    if start.element.startswith("i") or _tolerance(kernel) is not None:
        return text, ""
    return text, bound_source(kernel, start.element, start.sizes, symbol=symbol)


def _natively(start: KernelProgram) -> tuple[Arrays, Arrays]:
    (strict, checked), (text, rounded) = _compilers(), _texts(start)
    kernel, name = start.kernel, start.kernel.function
    truth = _left_by(CEntry(strict, text, name), start)
    tolerance = _tolerance(kernel)
    if tolerance is not None:
        bound = tolerance(start.before, truth)
    elif rounded:
        own = tuple(k for k, item in kernel.arguments.items() if _is_own_array(item))
        bound = _left_by(BoundEntry(checked, rounded, name, own), start)
    else:
        bound = {}  # of integers
    kept = results(kernel)
    return (
        {k: truth[k] for k in kept},
        {k: bound.get(k, np.zeros(truth[k].shape, np.int8)) for k in kept},
    )


def _left_by(entry: CEntry | BoundEntry, start: KernelProgram) -> Arrays:
    root = str(peer_folder(start.kernel).parent.parent)
    worker = BenchmarkWorker(entry, start.before, threads=1, places=[root])
    try:
        return worker.arrays()
    finally:
        worker.close()


def _tolerance(kernel: Kernel) -> Any:  # noqa: ANN401 - a function of kernels/, which we do not import
    return kernel.tolerance  # pyright: ignore[reportAttributeAccessIssue]


def _is_own_array(argument: object) -> bool:
    """Whether it is an array of the kernel's own element type."""
    return hasattr(argument, "extents") and getattr(argument, "element", None) is None


def _packed(truth: Arrays, bound: Arrays) -> bytes:
    file = io.BytesIO()
    parts = {"truth": truth, "bound": bound}
    named = {f"{what}_{k}": v for what, arrays in parts.items() for k, v in arrays.items()}
    np.savez(file, **named)  # pyright: ignore[reportArgumentType]
    return file.getvalue()


def _unpacked(data: bytes) -> tuple[Arrays, Arrays]:
    with np.load(io.BytesIO(data)) as file:
        truth = {k[6:]: file[k] for k in file.files if k.startswith("truth_")}
        bound = {k[6:]: file[k] for k in file.files if k.startswith("bound_")}
    return truth, bound
