"""The race, in one process: `python -m … FOLDER DRIVER SECONDS`.

Each racer is run for two numbers of turns; what a turn takes is the difference, so that copies and
the start of a run are in neither. Its peer does as many turns between two waits for the device.
Ours and the peer's alternate, medians are told. The answers of the lesser number of turns are
compared first.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.bare.children import tell
from avial_lab.runtime.bare.contents import DEVICES, Bundle, Racer
from avial_lab.runtime.bare.peers import Turn, peer
from avial_lab.runtime.bare.values import die_with_parent, hold_context
from avial_lab.runtime.native.driver_table import Device
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank.engine import load, run
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.parcels import aligned_copy, as_bytes
from avial_lab.runtime.rank.threads import Threads

ROUNDS = 7
SLOW_S = 5.0
"""For the lesser number of turns, copies included."""

SEED = 28
GIB = 1 << 30


def main(arguments: Sequence[str]) -> None:
    folder, driver, seconds = arguments
    die_with_parent()
    end = time.monotonic() + float(seconds)
    bundle = Bundle.at(Path(folder))
    xp, note = _cupy(driver)
    if note:
        tell({"note": note})
    context = hold_context(driver)
    racers = [each for each in bundle.contents.racers if each.rehearsal == (driver != "cuda")]
    if driver == "cuda":
        try:
            _bandwidths(bundle, xp)
        except Exception as error:  # the racers are still to be run
            tell({"note": f"bandwidths: {type(error).__name__}: {error}"})
    for k, racer in enumerate(racers):
        now = time.monotonic()
        if now > end or not racer.on_device:
            tell({"left" if racer.on_device else "on_cpu": racer.name})
            continue
        tell({"began": racer.name})
        try:
            _raced(bundle, racer, driver, xp, now + (end - now) / (len(racers) - k))
        except Exception as error:  # the others are still to be run
            tell({"racer": racer.name, "failed": f"{type(error).__name__}: {error}"[:600]})
    del context


def _cupy(driver: str) -> tuple[Any, str]:
    if driver != "cuda":
        return np, "on the emulated device the peer is NumPy, and small sizes: a rehearsal"
    try:
        import cupy  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        return None, f"no CuPy, so no peer: {error}"
    return cupy, ""


# Bandwidths ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """A copy of a GiB, put into a queue `often` times, and how to wait for it. moved: bytes."""

    name: str
    copy: Callable[[], object]
    finish: Callable[[], object]
    often: int = 1
    moved: int = GIB

    def seconds(self) -> float:
        self.finish()
        began = time.perf_counter()
        for _ in range(self.often):
            self.copy()
        self.finish()
        return (time.perf_counter() - began) / self.often


def _bandwidths(bundle: Bundle, xp: Any) -> None:  # noqa: ANN401
    """Bytes a second: ours by the C driver, of NumPy's memory and pinned; CuPy's pinned. A copy
    within the device reads and writes.
    """
    device = Device(bundle.folder / DEVICES, "cuda")
    one, two = device.allocate(GIB), device.allocate(GIB)
    data, pinned = np.ones(GIB // 8), np.ones(GIB // 8)
    device.pin(pinned)
    ways = [
        _Way("ours, in", lambda: device.copy_in(one, data), device.finish),
        _Way("ours, out", lambda: device.copy_out(one, data), device.finish),
        _Way("ours, in, pinned", lambda: device.copy_in(one, pinned), device.finish),
        _Way("ours, out, pinned", lambda: device.copy_out(one, pinned), device.finish),
        _Way("ours, within", lambda: device.copy_within(one, two, GIB), device.finish, 20, 2 * GIB),
    ]
    if xp is not None:
        ways += _ways_of_cupy(xp)
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(ROUNDS):
        for way in ways:
            times[way.name].append(way.seconds())
    for way in ways:
        tell({"bandwidth": way.name, "bytes_per_s": way.moved / median(times[way.name][1:])})
    device.unpin(pinned)
    device.close()


def _ways_of_cupy(xp: Any) -> list[_Way]:  # noqa: ANN401
    pinned = np.frombuffer(xp.cuda.alloc_pinned_memory(GIB), np.float64, GIB // 8)
    pinned[:] = 1
    source, target = xp.empty(GIB // 8), xp.empty(GIB // 8)
    stream = xp.cuda.Stream(non_blocking=True)
    its = stream.synchronize

    def within() -> None:
        target.data.copy_from_device_async(source.data, GIB, stream)

    def out() -> None:
        source.get(stream=stream, out=pinned, blocking=False)

    return [
        _Way("CuPy, in, pinned", lambda: source.set(pinned, stream=stream), its),
        _Way("CuPy, out, pinned", out, its),
        _Way("CuPy, within", within, its, 20, 2 * GIB),
    ]


# Racers -------------------------------------------------------------------------------------------


@dataclass
class _Ours:
    """Both programs of a racer, and arrays that they work in."""

    arrays: dict[str, np.ndarray]
    programs: dict[int, tuple[LoadedProgram, Binary]]
    journal: Journal
    options: Options
    number: int = 0
    kept: dict[int, dict[str, np.ndarray]] = field(default_factory=dict[int, dict[str, np.ndarray]])

    def seconds(self, turns: int) -> float:
        """Of a run on the arrays as they are, in place."""
        program, binary = self.programs[turns]
        manifest = binary.manifest
        own = [storage for storage in manifest.storages if storage.name in self.arrays]
        given = tuple(Piece(0, storage.name, Box.whole(storage.shape)) for storage in own)
        # Those of the program's own are made in the first run.
        kept = self.kept.setdefault(turns, {})
        kept |= {storage.name: as_bytes(self.arrays[storage.name]) for storage in own}
        self.number += 1
        began = time.perf_counter()
        outcome = run(
            program, manifest, 0, (), journal=self.journal, number=self.number,
            options=self.options, kept=kept, resident=given,
        )  # fmt: skip
        taken = time.perf_counter() - began
        if outcome.failure is not None:
            raise RuntimeError(outcome.failure.message + outcome.failure.traceback[-400:])
        return taken


def _raced(bundle: Bundle, racer: Racer, driver: str, xp: Any, end: float) -> None:  # noqa: ANN401
    many, few = racer.turns
    with tempfile.TemporaryDirectory(prefix="avial-bare-") as folder:
        journal = Journal(Path(folder), 0, pid=os.getpid())
        ours = _ours(bundle, racer, driver, xp, journal)
        if racer.kind == "axpy":
            _whole_run(ours, racer)
        theirs = _Theirs.of(xp, racer, ours.arrays) if xp is not None else None
        slow = ours.seconds(few)
        if slow > SLOW_S:
            raise RuntimeError(f"{few} turns of ours take {slow:.1f} s: {many} are not tried")
        agree = _agree(ours.arrays, theirs, few) if theirs is not None else "not compared"
        mine: list[float] = []
        its: list[float] = []
        short: list[float] = []
        for k in range(ROUNDS):
            if racer.whole:
                mine.append(ours.seconds(many))
            else:
                short.append(ours.seconds(few))
                mine.append((ours.seconds(many) - short[-1]) / (many - few))
            if theirs is not None:
                run_s = theirs.whole_run(ours.arrays, many) if racer.whole else None
                its.append(theirs.seconds(many) / many if run_s is None else run_s)
            if k >= 2 and time.monotonic() > end:
                break
    facts: dict[str, Any] = {"shortest_run_s": median(short)} if short else {}
    facts |= {
        "racer": racer.name,
        "kind": racer.kind,
        "element": racer.element,
        "peer": racer.peer,
        "bytes": racer.bytes,
        "launches": racer.launches,
        "agree": agree,
        "rounds": len(mine),
        "ours_s": median(mine),
        "ours_all_s": mine,
        "turns": many,
        "predicted_s": dict(racer.predicted_s),
    }
    if its:
        facts |= {"peer_s": median(its), "peer_all_s": its}
    tell(facts)


def _filled(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    xp: Any,  # noqa: ANN401
) -> np.ndarray:
    """Random numbers, pinned where CuPy is: what a turn takes is a difference of runs with copies,
    and those from other memory take a time that varies.
    """
    values = rng.random(shape, dtype)
    if xp is None or xp is np:
        return aligned_copy(values)
    memory = xp.cuda.alloc_pinned_memory(values.nbytes)
    pinned = np.frombuffer(memory, dtype, values.size).reshape(shape)
    np.copyto(pinned, values)
    return pinned


def _whole_run(ours: _Ours, racer: Racer) -> None:
    """How fast a run moves arrays of NumPy's own memory in and out, all that it does included."""
    pinned = dict(ours.arrays)
    few = min(racer.turns)
    ours.arrays.update((name, aligned_copy(array)) for name, array in pinned.items())
    taken = [ours.seconds(few) for _ in range(4)]
    moved = sum(array.nbytes for array in pinned.values()) + pinned["y"].nbytes
    ours.arrays.update(pinned)
    name = f"ours, a run of axpy {racer.element} on NumPy's memory"
    tell({"bandwidth": name, "bytes_per_s": moved / median(taken[1:])})


def _ours(bundle: Bundle, racer: Racer, driver: str, xp: Any, journal: Journal) -> _Ours:  # noqa: ANN401
    programs: dict[int, tuple[LoadedProgram, Binary]] = {}
    for turns in racer.turns:
        binary = bundle.binary(f"{racer.name}/{turns}")
        key = digest(binary.shared_object)
        programs[turns] = load(binary.shared_object, key, binary.manifest), binary
    options = Options(traced=False, threads=Threads(1), driver=driver)
    rng = np.random.default_rng(SEED)
    arrays = {
        name: _filled(rng, shape, np.dtype(dtype), xp)
        for name, (shape, dtype) in racer.arrays.items()
    }
    return _Ours(arrays, programs, journal, options)


@dataclass
class _Theirs:
    """The peer on arrays of its own, which begin as ours."""

    xp: Any
    arrays: dict[str, Any]
    turn: Turn

    @staticmethod
    def of(xp: Any, racer: Racer, arrays: Mapping[str, np.ndarray]) -> _Theirs:  # noqa: ANN401
        own = {name: xp.array(array) for name, array in arrays.items()}
        return _Theirs(xp, own, peer(racer.kind, xp, own, racer.element))

    def seconds(self, turns: int) -> float:
        self.finish()
        began = time.perf_counter()
        for _ in range(turns):
            self.turn()
        self.finish()
        return time.perf_counter() - began

    def whole_run(self, host: Mapping[str, np.ndarray], turns: int) -> float:
        """Seconds with the copies of all arrays in and out again."""
        began = time.perf_counter()
        for name, array in host.items():
            self.put(name, array)
        for _ in range(turns):
            self.turn()
        for name, array in host.items():
            self.take(name, array)
        return time.perf_counter() - began

    def put(self, name: str, array: np.ndarray) -> None:
        if self.xp is np:
            np.copyto(self.arrays[name], array)
        else:
            self.arrays[name].set(array)

    def take(self, name: str, into: np.ndarray) -> None:
        if self.xp is np:
            np.copyto(into, self.arrays[name])
        else:
            self.arrays[name].get(out=into)

    def finish(self) -> None:
        if self.xp is not np:
            self.xp.cuda.Device().synchronize()

    def got(self, name: str) -> np.ndarray:
        array = self.arrays[name]
        return array if self.xp is np else self.xp.asnumpy(array)


def _agree(mine: Mapping[str, np.ndarray], theirs: _Theirs, turns: int) -> str:
    """How far both are apart after as many turns, of the largest value there is; raises
    RuntimeError where that is more than roundings.
    """
    theirs.seconds(turns)
    worst, equal, size = 0.0, 0, 0
    for name, array in mine.items():
        other = theirs.got(name)
        scale = float(np.abs(other).max()) or 1.0
        worst = max(worst, float(np.abs(array - other).max()) / scale)
        equal += int((array == other).sum())
        size += array.size
    bound = {4: 3e-4, 8: 1e-12}[next(iter(mine.values())).itemsize]
    if not worst <= bound:
        raise RuntimeError(f"answers differ by {worst:.2g} of the largest value")
    if equal == size:
        return "equal"
    return f"{equal / size:.2%} equal, the others within {worst:.1e} of the largest"


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
