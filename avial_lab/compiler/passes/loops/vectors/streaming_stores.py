"""Stores that go past the caches: of large arrays, which the phase writes once and does not read.

Functions of loops -> the same, those stores marked; `align-vectors` writes them as vectors.

Source: J. McCalpin, Memory bandwidth and machine balance in current high performance computers,
TCCA Newsletter 1995, section 3: a line that is to be written whole is loaded first, for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_and_phases
from avial_lab.compiler.codegen.vectors.streaming import remark_of, stores_past_caches
from avial_lab.compiler.ir.attributes import INDEPENDENT, STREAMED
from avial_lab.compiler.ir.operations import loops_in
from avial_lab.compiler.ir.remarks import add_remark
from avial_lab.machine.constants import LINE_BYTES, WRITE_COMBINING_STREAMS
from avial_lab.machine.cpu import this_cpu

NAME = "streaming-stores"


@dataclass(frozen=True)
class StreamingStores:
    """Mark stores that fill a large array, and that nothing in the function loads from.

    before:  affine.for %i { affine.for %j { affine.store %s, %C[%i, %j] } {avial.independent} }
    after:   affine.for %i { affine.for %j { affine.store %s, %C[%i, %j] {avial.streamed} } … }

    A store to what no cache holds loads the line around it first. These do not: of C = A + B there
    are three arrays to move in place of four.

    `cache`: bytes of the last one; 0 for this machine's.
    """

    cache: int = 0

    def __call__(self, module: ir.Operation) -> None:
        last = self.cache or this_cpu().last_bytes
        with module.context:
            for function, phase in functions_and_phases(module):
                for loop in [op for op in loops_in(function) if INDEPENDENT in op.attributes]:
                    _mark(loop, function, phase, last)

    def __str__(self) -> str:
        return f"{NAME}{{cache={self.cache}}}" if self.cache else NAME


def _mark(loop: ir.Operation, function: ir.Operation, phase: ir.Operation, last: int) -> None:
    found = stores_past_caches(loop, function, last)
    if len(found) > WRITE_COMBINING_STREAMS and this_cpu().vector_bytes < LINE_BYTES:
        return
    for op in found:
        op.attributes[STREAMED] = ir.UnitAttr.get()
    if found:
        add_remark(phase, NAME, remark_of(found))
