"""Which arithmetic a program has, in a run as in its reference."""

from __future__ import annotations

from avial_lab.compiler.backends.host_target import has_fma
from avial_lab.compiler.catalogue import ARITHMETIC, EXACT
from avial_lab.compiler.lowering.run import Pass


def settled(*, strict: bool) -> tuple[Pass, ...]:
    """What a run begins with: no operation that MLIR's rewrites have wrong, and its arithmetic."""
    return (*EXACT.passes(), *arithmetic(strict=strict))


def arithmetic(*, strict: bool) -> tuple[Pass, ...]:
    """What comes before everything else, in a run as in the reference: which operations there are.

    Where the machine has no instruction for a product and a sum, they are rounded apart, as with
    `strict`.
    """
    fused = not strict and has_fma()
    return ARITHMETIC.passes(
        {
            "strict-arithmetic": {} if strict else None,
            "contract-fma": {} if fused else None,
            "select-math": None if strict else {"fused": fused},
        }
    )
