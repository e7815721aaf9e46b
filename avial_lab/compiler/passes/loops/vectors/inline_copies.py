"""Copies from one short array to another stay loops, which are vectors, in place of calls.

Functions of loops -> the same, some of them told to LLVM.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.llvm_attributes import NO_MEMCPY, tell_llvm
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import loops_in, nbytes_of
from avial_lab.machine.cpu import this_cpu

NAME = "inline-copies"


@dataclass(frozen=True)
class InlineCopies:
    """Tell LLVM that a function's copies are no calls of memcpy, where their arrays fit the first
    cache together.

    LLVM makes a call of every loop that only copies. It begins by asking how long the copy is and
    which way is best for that, and takes 1.1 to 1.7 times as long as the loop up to 16 KB. For
    what is larger it is as fast, or faster.

    `cache`: bytes of the first one; 0 for this machine's.
    """

    cache: int = 0

    def __call__(self, module: ir.Operation) -> None:
        first = self.cache or this_cpu().l1_bytes
        with module.context:
            for function in functions_without_aliases(module):
                loops = [op for op in loops_in(function) if INDEPENDENT in op.attributes]
                copied = [arrays for loop in loops if (arrays := _copied(loop))]
                if copied and all(_fit(arrays, first) for arrays in copied):
                    tell_llvm(function, NO_MEMCPY)

    def __str__(self) -> str:
        return f"{NAME}{{cache={self.cache}}}" if self.cache else NAME


def _copied(loop: ir.Operation) -> list[ir.MemRefType]:
    """The two arrays of a loop that only copies; none for any other."""
    loads = [op for op in body_of(loop) if op.name == "affine.load"]
    stores = [op for op in body_of(loop) if op.name == "affine.store"]
    if len(loads) != 1 or [op.operands[0] for op in stores] != [loads[0].result]:
        return []
    return [ir.MemRefType(each.type) for each in (loads[0].operands[0], stores[0].operands[1])]


def _fit(arrays: list[ir.MemRefType], nbytes: int) -> bool:
    known = all(kind.has_static_shape for kind in arrays)
    return known and sum(map(nbytes_of, arrays)) <= nbytes
