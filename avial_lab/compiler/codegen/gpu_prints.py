r"""What threads print: numbers as C's printf has them.

gpu.printf -> its numbers as its text asks for them; then a call of C's printf, or of the function
of devices that hands its text to the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from mlir import ir
from mlir.dialects import arith, llvm

from avial_lab.compiler.ir.effects import symbols_in
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.core.errors import VerifyError
from avial_lab.core.words import count

PRINT = "gpu.printf"

_ASKED = re.compile(r"%(?:%|([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([a-zA-Z]))")

_WHOLE, _FLOATING = "diuxXoc", "fFeEgGaA"

_LONG = ("l", "ll", "j", "z", "t")


def _asked_for(text: str) -> Iterator[tuple[str, int]]:
    """For each number that the text prints its letter, and its bits.

    >>> list(_asked_for("%5lld of %d, 100%%: %-8.3f"))
    [('d', 64), ('d', 32), ('f', 64)]
    >>> list(_asked_for("%*d"))
    [('d', 32), ('d', 32)]
    """
    for found in _ASKED.finditer(text):
        if found[0] == "%%":
            continue
        _, width, precision, size, letter = found.groups()
        yield from [("d", 32)] * [width, precision].count("*")
        yield letter, 64 if letter in _FLOATING or size in _LONG else 32


def settle_prints(module: ir.Operation) -> None:
    """Every number has the kind and the bits that the text asks for, so that a device, which reads
    them from memory, finds them where it looks.

    Raises VerifyError where there are other than as many, or something else than a number.
    """
    for op in operations_named(module, PRINT):
        text = ir.StringAttr(op.attributes["format"]).value
        asked = list(_asked_for(text))
        if len(asked) != len(op.operands):
            wants, has = count(len(asked), "number"), len(op.operands)
            raise VerifyError(
                f"the text asks for {wants}, and there are {has} behind it",
                span=span_of(op.location),
                hint="a number for each %d, %lld or %f; %% prints a percent sign",
            )
        with ir.InsertionPoint(op), op.location:
            for k, (letter, bits) in enumerate(asked):
                op.operands[k] = _as_asked(op, op.operands[k], letter, bits)


def _as_asked(op: ir.Operation, value: ir.Value, letter: str, bits: int) -> ir.Value:
    if letter in _FLOATING and isinstance(value.type, ir.FloatType):
        return _widened(value)
    is_whole = isinstance(value.type, ir.IntegerType | ir.IndexType)
    if letter not in _WHOLE or not is_whole:
        known = letter in _WHOLE + _FLOATING
        raise VerifyError(
            f"%{letter} does not print a number of type {value.type}"
            if known
            else f"%{letter} is not printed by threads",
            span=span_of(op.location),
            hint="%d prints whole numbers, %lld those of 64 bits, and %f floating ones",
        )
    kind = ir.IntegerType.get_signless(bits)
    if isinstance(value.type, ir.IndexType):
        return arith.index_cast(kind, value)
    own = ir.IntegerType(value.type).width
    if own == bits:
        return value
    if own > bits:
        return arith.trunci(kind, value)
    signed = letter in "dic" and own > 1
    return (arith.extsi if signed else arith.extui)(kind, value)


def _widened(value: ir.Value) -> ir.Value:
    f64 = ir.F64Type.get()
    width = ir.FloatType(value.type).width
    if width == f64.width:
        return value
    return (arith.extf if width < f64.width else arith.truncf)(f64, value)


def print_on_host(module: ir.Operation, prints: Sequence[ir.Operation]) -> None:
    r"""By C's printf, to where all that a rank prints goes.

    before:  gpu.printf "%d\0A", %x : i32
    after:   llvm.call @printf(%text, %x) vararg(!llvm.func<i32 (ptr, ...)>)
    """
    for op in prints:
        with op.location:
            text = _text_of(op, module)
        _declare(module, "printf", "llvm.func @printf(!llvm.ptr, ...) -> i32")
        with ir.InsertionPoint(op), op.location:
            i32 = ir.IntegerType.get_signless(32)
            operands = [text(), *op.operands]
            ir.Operation.create(
                "llvm.call",
                [i32],
                operands,
                {
                    "callee": ir.FlatSymbolRefAttr.get("printf"),
                    "var_callee_type": ir.TypeAttr.get(ir.Type.parse("!llvm.func<i32 (ptr, ...)>")),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                },
            )
        op.erase()


def print_on_device(module: ir.Operation, prints: Sequence[ir.Operation]) -> None:
    r"""By the function that NVIDIA's devices have for it, which finds the numbers in memory, each
    where its size divides its place (PTX Writer's Guide to Interoperability, 5: vprintf).

    before:  gpu.printf "%d %f\0A", %x, %y : i32, f64
    after:   %room = llvm.alloca struct<(i32, f64)>  llvm.store …  llvm.call @vprintf(%text, %room)
    """
    for op in prints:
        with op.location:
            text = _text_of(op, module)
        _declare(module, "vprintf", "llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32")
        with ir.InsertionPoint(op), op.location:
            i32, pointer = ir.IntegerType.get_signless(32), llvm.PointerType.get()
            numbers = llvm.mlir_zero(pointer)
            if len(op.operands):
                kinds = ", ".join(str(value.type) for value in op.operands)
                struct = ir.Type.parse(f"!llvm.struct<({kinds})>")
                one = llvm.mlir_constant(ir.IntegerAttr.get(i32, 1))
                numbers = llvm.alloca(pointer, one, struct, alignment=8)
                for k, value in enumerate(op.operands):
                    place = llvm.getelementptr(pointer, numbers, [], [0, k], struct, None)
                    llvm.store(value, place)
            ir.Operation.create(
                "llvm.call",
                [i32],
                [text(), numbers],
                {
                    "callee": ir.FlatSymbolRefAttr.get("vprintf"),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                },
            )
        op.erase()


def _text_of(op: ir.Operation, module: ir.Operation) -> Callable[[], ir.Value]:
    """What makes the address of the operation's text, which is in the module once."""
    words = ir.StringAttr(op.attributes["format"]).value.encode() + b"\0"
    start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
    known = operations_named(module, "llvm.mlir.global")
    value = ir.StringAttr.get(words)
    found = next((each for each in known if _holds(each, value)), None)
    if found is None:
        taken, k = symbols_in(module), 0
        while f"printed_{k}" in taken:
            k += 1
        parsed = ir.Module.parse(
            f"llvm.mlir.global private unnamed_addr constant @printed_{k}() "
            f": !llvm.array<{len(words)} x i8>"
        )
        found = parsed.body.operations[0].operation.clone(ip=start).operation
        found.attributes["value"] = value
    symbol = ir.StringAttr(found.attributes["sym_name"]).value

    def address() -> ir.Value:
        name = {"global_name": ir.FlatSymbolRefAttr.get(symbol)}
        return ir.Operation.create(
            "llvm.mlir.addressof", [llvm.PointerType.get()], attributes=name
        ).result

    return address


def _holds(each: ir.Operation, value: ir.Attribute) -> bool:
    return "value" in each.attributes and each.attributes["value"] == value


def _declare(module: ir.Operation, name: str, text: str) -> None:
    if name in symbols_in(module):
        return
    start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
    declared = ir.Module.parse(text, module.context)
    declared.body.operations[0].operation.clone(ip=start)
