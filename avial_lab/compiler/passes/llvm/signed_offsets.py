"""Offsets into arrays that run backwards: upstream's promise that they never wrap is taken back.

Module in the LLVM dialect -> the same without `nuw`, `nsw` and `inbounds`.

    x ──► 0 1 2 3 4 5 6 7          y = x[::-1] is memref<8xi32, strided<[-1], offset: 7>>
          7 6 5 4 3 2 1 0 ◄── y    y[i] lies -i elements from y[0]: as an unsigned number, 2^64 - i
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in

_PROMISING = {"llvm.add", "llvm.sub", "llvm.mul", "llvm.shl", "llvm.getelementptr"}
_STRIDES = re.compile(r"strided<\[[^\]]*[-?]")


@dataclass(frozen=True)
class SignedOffsets:
    """Upstream takes every stride for positive; with a negative one, `nuw` allows any result.

    before:  %k = llvm.mul %i, %stride overflow<nsw, nuw>
             %p = llvm.getelementptr inbounds|nuw %y[%k]
    after:   %k = llvm.mul %i, %stride
             %p = llvm.getelementptr %y[%k]
    """

    def __call__(self, module: ir.Operation) -> None:
        for op in operations_in(module):
            if op.name in _PROMISING:
                _replace_by_plain(op)

    def __str__(self) -> str:
        return "signed-offsets"


def _replace_by_plain(op: ir.Operation) -> None:
    """The flags are properties, which Python cannot set: the operation is made anew without."""
    attributes = dict(op.attributes.items())
    types = [result.type for result in op.results]
    with ir.InsertionPoint(op), op.location:
        plain = ir.Operation.create(op.name, types, list(op.operands), attributes)
    op.result.replace_all_uses_with(plain.result)
    op.erase()


def may_run_backwards(text: str) -> bool:
    """Whether a memref in a module's text has a stride that is negative, or not known before a run.

    >>> may_run_backwards("memref<8xi32, strided<[-1], offset: 7>>")
    True
    >>> may_run_backwards("memref<8x?xi32, strided<[16, 1], offset: ?>>")
    False
    """
    return _STRIDES.search(text) is not None
