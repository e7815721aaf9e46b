"""Who races: what a worker needs to know to build and call one contestant on one kernel.

Entry, arguments -> a Runner that sets the arrays back, runs once and tells the seconds it took.
"""

from __future__ import annotations

import ctypes
import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.benchmarks.c_peers import c_argument, clocked
from avial_lab.benchmarks.own_program import OwnRank
from avial_lab.core.c_compiler import CCompiler, loaded
from avial_lab.core.errors import AvialError
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.outcome import results_of
from avial_lab.runtime.rank.parcels import aligned_copy
from avial_lab.runtime.rank.traces import trace_of

NUMBA_HINT = "pip install 'avial-lab[bench]'"


class Runner(ABC):
    """One contestant, built, with its own arrays. `note`: what is to be known of its runs."""

    note = ""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.before = arguments
        self.now = {
            name: aligned_copy(value) if isinstance(value, np.ndarray) else value
            for name, value in arguments.items()
        }

    def run(self) -> float:
        """Seconds of one run on the arguments as they were given."""
        for name, value in self.before.items():
            if isinstance(value, np.ndarray):
                np.copyto(self.now[name], value)
        return self.timed()

    @abstractmethod
    def timed(self) -> float: ...

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What the last run left."""
        return {k: v for k, v in self.now.items() if isinstance(v, np.ndarray)}


class CRunner(Runner):
    """A function in C with its own clock."""

    def __init__(self, arguments: Mapping[str, Any], library: ctypes.CDLL, symbol: str) -> None:
        super().__init__(arguments)
        self.timed_call = clocked(library, symbol, self.now)

    def timed(self) -> float:
        return self.timed_call()


class BoundRunner(Runner):
    """No contestant: it leaves in the arrays how far two correct runs may be apart."""

    def __init__(
        self, arguments: Mapping[str, Any], function: Callable[..., None], own: Sequence[str]
    ) -> None:
        super().__init__(arguments)
        self.function, self.own = function, own
        self.bounds: dict[str, np.ndarray] = {}

    def timed(self) -> float:
        start = time.perf_counter()
        lifted = {
            name: rounded_elements(value) if name in self.own else value
            for name, value in self.now.items()
        }
        self.function(*(c_argument(value, widened=True) for value in lifted.values()))
        self.bounds = {name: error_of(lifted[name], self.now[name].dtype) for name in self.own}
        return time.perf_counter() - start

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self.bounds


def rounded_elements(array: np.ndarray) -> np.ndarray:
    """As C++ has them: value, magnitude, additions, inherited; shape (…, 4)."""
    elements = np.zeros((*array.shape, 4))
    elements[..., 0] = array
    elements[..., 1] = np.abs(elements[..., 0])
    return elements


def error_of(elements: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Twice what each element may be off, for each of two runs errs; infinite where nobody knows.

    In single precision, rounded up: it is a bound.
    """
    _, magnitude, additions, inherited = np.moveaxis(elements, -1, 0)
    own = np.where(additions > 0, additions * float(np.finfo(dtype).eps) * magnitude, 0.0)
    twice = 2 * np.nan_to_num(inherited + own, nan=np.inf, posinf=np.inf)
    return np.nextafter(
        twice.astype(np.float32),
        np.float32(np.inf),
        where=twice > 0,
        out=np.zeros(twice.shape, np.float32),
    )


class CallRunner(Runner):
    """A function of Python's, timed from outside: calling it is part of what it costs."""

    def __init__(
        self, arguments: Mapping[str, Any], build: Callable[..., Callable[[], object]]
    ) -> None:
        super().__init__(arguments)
        self.call = build(self.now)

    def timed(self) -> float:
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start


class BinaryRunner(Runner):
    """Our own program on one rank, in this process; the time is what its trace says, so without
    launch and without the copies into and out of its memory.
    """

    def __init__(self, arguments: Mapping[str, Any], binary: Binary, threads: int) -> None:
        super().__init__(arguments)
        self.caller = caller_arrays(binary.manifest, super().arrays)
        self.rank = OwnRank(binary, 0, self.caller.inputs_of(0), threads)

    def run(self) -> float:
        return self.timed()  # whose memory is its own

    def timed(self) -> float:
        outcome = self.rank.run()
        self.note = self.rank.note
        return trace_of(self.rank.manifest, [outcome]).makespan_s

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        self.caller.write_results(results_of([self.rank.outcome]))
        return super().arrays


# -- what is sent to a worker ----------------------------------------------------------------------


class Entry(ABC):
    """A contestant that is still to be built; travels as a pickle. `lazy`: it is compiled at its
    first call.
    """

    lazy: ClassVar[bool] = False

    @abstractmethod
    def runner(self, arguments: Mapping[str, Any]) -> Runner: ...


@dataclass(frozen=True)
class OwnEntry(Entry):
    """Our own binary, compiled for one rank, on so many threads."""

    binary: Binary = field(repr=False)
    threads: int

    def runner(self, arguments: Mapping[str, Any]) -> Runner:
        return BinaryRunner(arguments, self.binary, self.threads)


@dataclass(frozen=True)
class CEntry(Entry):
    """A function `symbol` in C."""

    compiler: CCompiler
    source: str = field(repr=False)
    symbol: str

    def runner(self, arguments: Mapping[str, Any]) -> Runner:
        # Not from a cache: its time is reported.
        library = loaded(self.compiler.compiled(self.source))
        return CRunner(arguments, library, self.symbol)


@dataclass(frozen=True)
class BoundEntry(Entry):
    """A function `symbol` over `Rounded`; `own` are the arrays of the kernel's own element type."""

    compiler: CCompiler
    source: str = field(repr=False)
    symbol: str
    own: tuple[str, ...]

    def runner(self, arguments: Mapping[str, Any]) -> Runner:
        library = loaded(self.compiler.build(self.source))
        return BoundRunner(arguments, library[f"bound_{self.symbol}"], self.own)


@dataclass(frozen=True)
class NumbaEntry(Entry):
    """`loops` of a kernel's peers.py, compiled by Numba with threads."""

    lazy: ClassVar[bool] = True
    peers: Path
    fastmath: bool

    def runner(self, arguments: Mapping[str, Any]) -> Runner:
        try:
            import numba  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise AvialError("Numba is not installed", hint=NUMBA_HINT) from None
        # error_model: a check for a zero divisor would keep the loops from being vectors.
        options = {"parallel": True, "fastmath": self.fastmath, "error_model": "numpy"}
        compiled = numba.njit(**options)(peers_module(self.peers).loops)
        return CallRunner(arguments, lambda now: lambda: compiled(*now.values()))


@dataclass(frozen=True)
class CallEntry(Entry):
    """A function of a kernel's peers.py as it stands there: `arrays`, or with SciPy
    `scipy_arrays`.
    """

    peers: Path
    function: str

    def runner(self, arguments: Mapping[str, Any]) -> Runner:
        function = getattr(peers_module(self.peers), self.function)
        return CallRunner(arguments, lambda now: lambda: function(*now.values()))


def peers_module(path: Path) -> ModuleType:
    """The `peers.py` at `path`, by path: its folder's name is no name of Python's."""
    spec = importlib.util.spec_from_file_location(f"peers_of_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
