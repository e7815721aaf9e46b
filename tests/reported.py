"""Touch functions compiled in memory and called: what they report for given parameters."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from mlir import ir
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.analysis.polyhedral.footprints import ArrayTouch, touched_boxes
from avial_lab.compiler.analysis.polyhedral.scop import Array, Loop, Scop
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.distribution.footprint_functions import (
    EVERYTHING,
    TouchFunction,
    write_touches,
)
from avial_lab.core.regions import Box

Elements = set[tuple[str, tuple[int, ...]]]

_READ = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
_WORD = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)


@dataclass(frozen=True)
class Report:
    """One call: `word` is the last argument of a write or a reduction."""

    kind: str
    array: str
    box: Box
    word: int | None = None

    def __str__(self) -> str:
        word = "" if self.word is None else f" {self.word}"
        return f"{self.kind} {self.array}{self.box}{word}"


@dataclass
class Reporter:
    """A compiled touch function; call it with a part's ends and the parameters by name."""

    arrays: Sequence[Array]
    touches: Sequence[ArrayTouch]
    names: Sequence[str]
    engine: ExecutionEngine
    entry: int
    callbacks: Sequence[object] = ()
    reports: list[Report] = field(default_factory=list)

    def __call__(self, *ends: int, **parameters: int) -> list[Report]:
        self.reports.clear()
        words = (ctypes.c_int64 * max(1, len(self.names)))(*(parameters[n] for n in self.names))
        part = (ctypes.c_int64 * 4)(*ends)
        call(self.entry, [ctypes.c_void_p(ctypes.addressof(room)) for room in (words, part)])
        return list(self.reports)

    def lines(self, *ends: int, **parameters: int) -> list[str]:
        return [str(report) for report in self(*ends, **parameters)]

    def _heard(self, kind: str, number: int, words: Sequence[int], word: int | None) -> None:
        array = self.arrays[number]
        rank = array.rank
        ends = [words[k] for k in range(2 * rank)]
        box = Box(tuple(ends[:rank]), tuple(ends[rank:]))
        if not box.empty:
            self.reports.append(Report(kind, array.name, box, word))


def call(entry: int, arguments: Sequence[ctypes.c_void_p | ctypes.c_int64]) -> None:
    """Call a compiled function, by the convention of MLIR's packed entries: a result is one more
    argument.
    """
    packed = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)(packed)


def elements(reports: Sequence[Report], reach: int = 64) -> Elements:
    """The elements in any of the boxes, as far as they lie within `reach` of the origin.

    A whole dimension, from 0 on, holds what is below 0 too: nests at random read there.
    """
    found: Elements = set()
    for report in reports:
        ends = zip(report.box.start, report.box.stop, strict=True)
        found |= {
            (report.array, index)
            for index in product(
                *(
                    range(-reach, reach) if high == EVERYTHING else range(low, high)
                    for low, high in ends
                )
            )
        }
    return found


def _names(written: TouchFunction, scop: Scop) -> list[str]:
    """What the parameters of a touch function are called in the scop."""
    known = [(value, name) for name, value in scop.parameters.items() if value is not None]
    known += [(source, name) for name, source in scop.sizes.items()]
    return [next(n for source, n in known if source == each) for each in written.parameters]


def reporter(
    function: ir.Operation,
    scop: Scop,
    *,
    loops: Sequence[Loop] = (),
    second: Sequence[Loop] = (),
    reduced: Sequence[Array] = (),
) -> Reporter:
    """The compiled touch function of what is in `scop`, a part of `function`."""
    touches = touched_boxes(scop, loops=loops, second=second, reduced=reduced)
    index = {a.value: k for k, a in enumerate(scop.arrays) if a.value is not None}
    written = write_touches(function, "part.touches", scop, touches, index)
    names = _names(written, scop)
    module = ir.Module.create(ir.Location.unknown(function.context))
    for view in list(function.block.operations):
        if view.operation != function:
            view.operation.clone(ip=ir.InsertionPoint(module.body))
            view.operation.erase()
    module.operation.verify()
    run_passes(module.operation, TO_LLVM)
    engine = ExecutionEngine(module, opt_level=0)
    made = Reporter(scop.arrays, touches, names, engine, 0)
    heard = made._heard
    made.callbacks = (
        _READ(lambda number, box: heard("read", number, box, None)),
        _WORD(lambda number, box, word: heard("write", number, box, word)),
        _WORD(lambda number, box, word: heard("reduce", number, box, word)),
    )
    for name, callback in zip(("read", "write", "reduce"), made.callbacks, strict=True):
        engine.raw_register_runtime(f"avial_{name}", ctypes.cast(callback, ctypes.c_void_p))
    made.entry = engine.raw_lookup("part.touches")
    return made
