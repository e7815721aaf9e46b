"""What programs of other compilers call of MLIR's own runner libraries, to be run without them.

Module with calls of @printMemrefF32, @fillResource1DInt, @mgpuMemGetDeviceMemRef1dFloat, … and
with vector.print -> the same steps as loops, numbers that are printed, and nothing for what only
tells a GPU's runtime where memory is. (mlir/lib/ExecutionEngine: RunnerUtils, CRunnerUtils,
CudaRuntimeWrappers, VulkanRuntimeWrappers.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, linalg, memref, scf, vector
from mlir.dialects import complex as complex_dialect

from avial_lab.compiler.codegen.gpu_prints import PRINT
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.program import functions_of, has_body, symbol_of
from avial_lab.compiler.ir.views import defining
from avial_lab.core.errors import VerifyError

_MOST_AT_ONCE = 32
"""Numbers of a vector that one call of printf prints."""


def settle_library(module: ir.Module) -> None:
    r"""Calls of the libraries' functions become what these do.

    before:  call @printMemrefF32(%u) : (memref<*xf32>) -> ()     vector.print %x : f32
    after:   gpu.printf "… sizes = [%lld] …", %n  scf.for %i … { gpu.printf "%g", %e : f32 }
             gpu.printf "%g\0A", %x : f32

    gpu.printf stands for C's printf, outside of kernels too. Raises VerifyError where an array is
    printed whose rank nobody knows.
    """
    with module.context, ir.Location.unknown():
        declared = {symbol_of(each): each for each in functions_of(module) if not has_body(each)}
        meant = {name: does for name in declared if (does := _meaning(name)) is not None}
        for call in operations_named(module.operation, "func.call") if meant else ():
            name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
            if name in meant:
                with ir.InsertionPoint(call), call.location:
                    meant[name](call)
                call.erase()
        for name in meant:
            declared[name].erase()
        for op in operations_named(module.operation, "vector.print"):
            with ir.InsertionPoint(op), op.location:
                _print_vector(op)
            read = defining(op.operands[0]) if len(op.operands) else None
            op.erase()
            if read is not None and read.name == "vector.load" and not any(read.results[0].uses):
                read.erase()
        _drop_unranked(module)


def _drop_unranked(module: ir.Module) -> None:
    """What nobody asks for any more."""
    for op in reversed(operations_named(module.operation, "memref.cast")):
        is_used = any(True for _ in op.results[0].uses)
        if isinstance(op.results[0].type, ir.UnrankedMemRefType) and not is_used:
            op.erase()


_Does = Callable[[ir.Operation], None]


def _meaning(name: str) -> _Does | None:
    return next((does for form, does in _FUNCTIONS.items() if re.fullmatch(form, name)), None)


# Functions ----------------------------------------------------------------------------------------


def _print_array(call: ir.Operation) -> None:
    """As RunnerUtils.h has it; an array that is spread over memories has no base, which is `-`."""
    array = call.operands[0]
    unranked = isinstance(array.type, ir.UnrankedMemRefType)
    while isinstance(array.type, ir.UnrankedMemRefType):
        cast = defining(array)
        if cast is None or cast.name != "memref.cast":
            raise VerifyError(
                f"{ir.FlatSymbolRefAttr(call.attributes['callee']).value} of {array.type}, and its "
                "rank is not known here",
                span=span_of(call.location),
                hint="print what a memref.cast makes of an array of known rank",
            )
        array = cast.operands[0]
    kind = ir.MemRefType(array.type)
    sizes = [_extent(array, d) for d in range(kind.rank)]
    listed = ", ".join(["%lld"] * kind.rank)
    head = f"base@ = - rank = {kind.rank} offset = 0 sizes = [{listed}] strides = [{listed}]"
    begin = "Unranked Memref" if unranked else "Memref"
    together = {"no_inline": ir.UnitAttr.get()}  # one task prints it
    region = ir.Operation.create("scf.execute_region", [], [], together, regions=1)
    with ir.InsertionPoint(ir.Block.create_at_start(region.regions[0], [])):
        _printf(f"{begin} {head} data = \n", *sizes, *_strides(kind, sizes))
        _print_row(array, sizes, [])
        _printf("\n")
        scf.YieldOp([])


def _extent(array: ir.Value, dimension: int) -> ir.Value:
    index = ir.IndexType.get()
    known = ir.MemRefType(array.type).shape[dimension]
    if known == ir.ShapedType.get_dynamic_size():
        return memref.dim(array, arith.constant(index, dimension))
    return arith.constant(index, known)


def _strides(kind: ir.MemRefType, sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """Of the type where it says them; else those of an array without gaps."""
    index, dynamic = ir.IndexType.get(), ir.ShapedType.get_dynamic_stride_or_offset()
    written, _ = kind.get_strides_and_offset()
    found: list[ir.Value] = []
    step = arith.constant(index, 1)
    for size, stride in reversed(list(zip(sizes, written, strict=True))):
        found.insert(0, step if stride == dynamic else arith.constant(index, stride))
        step = arith.muli(step, size)
    return found


def _print_row(array: ir.Value, sizes: Sequence[ir.Value], at: list[ir.Value]) -> None:
    depth = len(at)
    if depth == len(sizes):
        text, numbers = _number(memref.load(array, at))
        _printf(text if depth else f"[{text}]", *numbers)
        return
    index = ir.IndexType.get()
    zero, one = arith.constant(index, 0), arith.constant(index, 1)
    _printf("[")
    loop = scf.ForOp(zero, sizes[depth], one)
    with ir.InsertionPoint(loop.body):
        behind = arith.cmpi(arith.CmpIPredicate.ne, loop.induction_variable, zero)
        branch = scf.IfOp(behind)
        with ir.InsertionPoint(branch.then_block):
            line = "\n" if depth + 1 < len(sizes) else ""
            _printf(f", {line}{' ' * (depth + 1)}")
            scf.YieldOp([])
        _print_row(array, sizes, [*at, loop.induction_variable])
        scf.YieldOp([])
    _printf("]")


def _number(value: ir.Value) -> tuple[str, list[ir.Value]]:
    """How the libraries print it: the text, and what C's printf is given."""
    if isinstance(value.type, ir.ComplexType):
        return "(%g,%g)", [complex_dialect.re(value), complex_dialect.im(value)]
    if isinstance(value.type, ir.FloatType):
        return "%g", [value]
    if isinstance(value.type, ir.IndexType):
        return "%lld", [value]
    if ir.IntegerType(value.type).is_unsigned:
        plain = ir.IntegerType.get_signless(ir.IntegerType(value.type).width)
        return "%llu", [arith.extui(ir.IntegerType.get_signless(64), _cast(plain, value))]
    return "%lld", [value]


def _cast(kind: ir.Type, value: ir.Value) -> ir.Value:
    return ir.Operation.create("builtin.unrealized_conversion_cast", [kind], [value]).result


def _fill(call: ir.Operation) -> None:
    array, value = call.operands
    linalg.fill(value, outs=[array])


def _hand_back(call: ir.Operation) -> None:
    """Where an array is on a GPU: which array is where, is derived."""
    call.results[0].replace_all_uses_with(call.operands[0])


def _nothing(call: ir.Operation) -> None:
    """Told to a runtime that is not here."""


def _print_number(call: ir.Operation) -> None:
    text, numbers = _number(call.operands[0])
    _printf(text, *numbers)


def _print_text(text: str) -> _Does:
    return lambda call: _printf(text)


_FUNCTIONS: dict[str, _Does] = {
    r"printMemref(\dd)?(F16|BF16|F32|F64|I8|I16|I32|I64|Ind|C32|C64)": _print_array,
    r"print_memref_(f16|bf16|f32|f64|i8|i16|i32|i64|ind|c32|c64)": _print_array,
    r"print(F16|BF16|F32|F64|I64|U64)": _print_number,
    "printOpen": _print_text("( "),
    "printClose": _print_text(" )"),
    "printComma": _print_text(", "),
    "printNewline": _print_text("\n"),
    r"fillResource[123]D(Int|Int8|Float|Float16)": _fill,
    r"m(gpu|cu)MemGetDeviceMemRef1d(Float|Int32)": _hand_back,
    r"m(gpu|cu)MemHost(Unr|R)egister\w*": _nothing,
}
"""By their names, as patterns."""


# Vectors ------------------------------------------------------------------------------------------


def _print_vector(op: ir.Operation) -> None:
    """As CRunnerUtils has it: ( 1, 2 ), rows in rows, and what stands behind."""
    if "stringLiteral" in op.attributes:  # nothing is put behind it
        text = ir.StringAttr(op.attributes["stringLiteral"]).value
        _printf(text.replace("%", "%%"))
        return
    parts: list[str] = []
    numbers: list[ir.Value] = []
    for value in op.operands:
        _spell(value, parts, numbers)
    behind = str(op.attributes["punctuation"])
    parts.append(next((sign for name, sign in _BEHIND.items() if f"<{name}>" in behind), ""))
    _print_in_pieces(parts, numbers)


_BEHIND = {"open": "( ", "close": " )", "comma": ", ", "newline": "\n"}


def _spell(value: ir.Value, parts: list[str], numbers: list[ir.Value]) -> None:
    """Its text and its numbers, behind those that are there."""
    if not isinstance(value.type, ir.VectorType):
        text, found = _number(value)
        parts.append(text)
        numbers += found
        return
    kind = ir.VectorType(value.type)
    if kind.scalable:
        here = ir.Location.current
        assert here is not None, "who prints has a place"
        raise VerifyError(
            f"vector.print of {kind}",
            span=span_of(here),
            hint="vectors have a length that is known here",
        )
    parts.append("( ")
    for k, element in enumerate(_rows(value)):
        if k:
            parts.append(", ")
        _spell(element, parts, numbers)
    parts.append(" )")


def _rows(value: ir.Value) -> list[ir.Value]:
    """Its elements, or its rows, which are vectors. Of one that is read right there, by loads of
    elements: any rank may do those, and hand on what it got.
    """
    kind, read = ir.VectorType(value.type), defining(value)
    if read is not None and read.name == "vector.load" and kind.rank == 1:
        array, *at = list(read.operands)
        with ir.InsertionPoint(read), read.location:
            last = [
                arith.addi(at[-1], arith.constant(at[-1].type, k)) for k in range(kind.shape[0])
            ]
            return [memref.load(array, [*at[:-1], each]) for each in last]
    if not kind.rank:
        return [vector.extract(value, [], [])]
    return [vector.extract(value, [], [k]) for k in range(kind.shape[0])]


def _print_in_pieces(parts: Sequence[str], numbers: Sequence[ir.Value]) -> None:
    text, given, waiting = "", [], list(numbers)
    for part in parts:
        text += part
        given += [waiting.pop(0) for _ in range(part.replace("%%", "").count("%"))]
        if len(given) >= _MOST_AT_ONCE:
            _printf(text, *given)
            text, given = "", []
    if text:
        _printf(text, *given)


def _printf(text: str, *numbers: ir.Value) -> None:
    ir.Operation.create(PRINT, [], numbers, {"format": ir.StringAttr.get(text)})
