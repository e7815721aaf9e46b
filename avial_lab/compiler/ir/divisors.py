"""What affine expressions divide by: MLIR defines `mod`, `floordiv` and `ceildiv` for positive
numbers alone, checks that nowhere, and its lowering ends the process at others.

Module -> nothing, or a VerifyError at the operation that divides by zero or a negative number.
"""

from __future__ import annotations

import re

from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import attributes_of, constant_of, operations_in
from avial_lab.core.errors import VerifyError

_DIVIDED = re.compile(r"\b(mod|floordiv|ceildiv) (?:(0|-\d+)|s(\d+))(?![\w.])")


def refuse_divisors(module: ir.Module | ir.Operation) -> None:
    """VerifyError at the first `mod 0` or `floordiv -2`, in numbers or as a symbol that is one."""
    for op in operations_in(module.operation):
        if not (op.name.startswith(("affine.", "linalg.", "memref.")) or len(op.regions)):
            continue
        for attribute in attributes_of(op).values():
            if isinstance(attribute, ir.AffineMapAttr):
                _check(op, str(attribute), attribute.value)
            elif isinstance(attribute, ir.IntegerSetAttr | ir.ArrayAttr):
                _check(op, str(attribute), None)


def _check(op: ir.Operation, text: str, form: ir.AffineMap | None) -> None:
    for word, number, symbol in _DIVIDED.findall(text):
        if symbol and (form is None or not op.name.startswith("affine.")):
            continue
        divisor = int(number) if number else _value_of(op, form, int(symbol))
        if divisor is not None and divisor <= 0:
            raise VerifyError(
                f"{word} {divisor}: the right side of {word} is a positive number",
                span=span_of(op.location),
                hint="divide by a positive number, or compute the index with arith.remsi or "
                "arith.divsi",
            )


def _value_of(op: ir.Operation, form: ir.AffineMap | None, symbol: int) -> int | None:
    """The number that the symbol is; None where it is not known, or the operation has other
    operands between.
    """
    if form is None or op.name not in _FIRST_OPERAND:
        return None
    at = _FIRST_OPERAND[op.name] + form.n_dims + symbol
    operands = list(op.operands)
    return constant_of(operands[at]) if at < len(operands) else None


_FIRST_OPERAND = {
    "affine.apply": 0,
    "affine.min": 0,
    "affine.max": 0,
    "affine.load": 1,
    "affine.store": 2,
    "affine.vector_load": 1,
    "affine.vector_store": 2,
}
"""Where the operands of the map begin."""
