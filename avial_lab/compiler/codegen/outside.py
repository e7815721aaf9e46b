"""What is checked before a loop: whether an access in it will leave its array.

A `Leaving`, the values of its parameters -> a truth value and the index reached; and the call that
tells the run so (`avial_outside` of the ownership runtime, `avial.leave` of runtime_calls.mlir).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass

from mlir import ir
from mlir.dialects import arith, llvm, memref

from avial_lab.compiler.analysis.polyhedral.out_of_bounds import Leaving
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.codegen.loops.isl_values import AffineValues
from avial_lab.compiler.codegen.runtime_calls import add_runtime, call_of
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import functions_in

LEAVE_IF = "avial.leave_if"
"""Ends a task where its first operand holds; the second is the index."""

ACCESS = "avial.access_outside"
"""On such a call: the fields of an `Access`."""

WORDS = 6
"""Of a report: the access as text, dimension, index, size, line, column."""


@dataclass(frozen=True)
class Access:
    """One that may leave its array, as a report has it; line and column 0 where it has no place."""

    text: str
    dimension: int
    size: int
    line: int
    column: int

    @staticmethod
    def at(op: ir.Operation, text: str, dimension: int, size: int) -> Access:
        span = span_of(op.location)
        place = (0, 0) if span is None else (span.line, span.column)
        return Access(text, dimension, size, *place)

    @staticmethod
    def of(found: Leaving) -> Access:
        return Access.at(found.statement.op, str(found.access), found.dimension, found.size)

    @staticmethod
    def on(call: ir.Operation) -> Access:
        """As `leave_if` wrote it down."""
        text, *numbers = ir.ArrayAttr(call.attributes[ACCESS])
        return Access(ir.StringAttr(text).value, *(ir.IntegerAttr(each).value for each in numbers))

    @property
    def attribute(self) -> ir.Attribute:
        text, *numbers = astuple(self)
        i64 = ir.IntegerType.get_signless(64)
        return ir.ArrayAttr.get(
            [ir.StringAttr.get(text), *(ir.IntegerAttr.get(i64, each) for each in numbers)]
        )


@dataclass(frozen=True)
class Parameters:
    """The values of a scop's parameters as i64, where it begins."""

    scop: Scop

    def knows(self, found: Leaving) -> bool:
        """Whether all that the condition and the index hang on has a value there."""
        return all(
            self.scop.parameters.get(name) is not None or name in self.scop.sizes
            for name in found.parameters
        )

    def __call__(self, name: str) -> ir.Value:
        value = self.scop.parameters.get(name)
        if value is None:
            array, dimension = self.scop.sizes[name]
            value = memref.dim(array, arith.constant(ir.IndexType.get(), dimension))
        i64 = ir.IntegerType.get_signless(64)
        if isinstance(value.type, ir.IndexType):
            return arith.index_cast(i64, value)
        return value if value.type == i64 else arith.extsi(i64, value)


def condition_of(found: Leaving, define: Callable[[str], ir.Value]) -> tuple[ir.Value, ir.Value]:
    """Whether the access leaves its array (i1), and the index that it reaches then (i64), written
    at the insertion point; `define` gives a parameter as i64.
    """
    values = AffineValues(define)
    return values.holds(found.when), values.rounded(found.index, up=False)


def leave_if(module: ir.Operation, found: Leaving, parameters: Parameters) -> None:
    """Write the check at the insertion point, in a task."""
    declare(module, f"llvm.func @{LEAVE_IF}(i1, i64)", LEAVE_IF)
    call = call_of(LEAVE_IF, condition_of(found, parameters))
    call.attributes[ACCESS] = Access.of(found).attribute


def report(module: ir.Operation, access: Access, index: ir.Value, *, phase: int = -1) -> None:
    """Write at the insertion point the call that tells the run; -1 is the phase that runs."""
    i64, pointer = ir.IntegerType.get_signless(64), llvm.PointerType.get()
    name = ir.FlatSymbolRefAttr.get(_text(module, access.text))
    text = ir.Operation.create("llvm.mlir.addressof", [pointer], attributes={"global_name": name})
    address = ir.Operation.create("llvm.ptrtoint", [i64], [text.result]).result
    numbers = (access.dimension, index, access.size, access.line, access.column)
    room = llvm.alloca(pointer, arith.constant(i64, WORDS), i64)
    for k, number in enumerate((address, *numbers)):
        word = arith.constant(i64, number) if isinstance(number, int) else number
        llvm.store(word, llvm.getelementptr(pointer, room, [], [k], i64, 0))
    call_of(_reporter(module), [arith.constant(i64, phase), room])


def _reporter(module: ir.Operation) -> str:
    """What a rank is told by: the ownership runtime where that is linked to the program."""
    if any("avial.ranks" in op.attributes for op in functions_in(module)):
        add_runtime(module, ["avial.leave"])
        return "avial.leave"
    declare(module, "llvm.func @avial_outside(i64, !llvm.ptr)", "avial_outside")
    return "avial_outside"


def declare(module: ir.Operation, declaration: str, symbol: str) -> None:
    """`declaration` of `symbol` at the module's start, if it is not there."""
    block = module.regions[0].blocks[0]
    named = [view.operation.attributes for view in block.operations]
    if any("sym_name" in each and _string(each["sym_name"]) == symbol for each in named):
        return
    declared = ir.Module.parse(declaration, module.context)
    declared.body.operations[0].operation.clone(ip=ir.InsertionPoint.at_block_begin(block))


def _text(module: ir.Operation, text: str) -> str:
    """The name of a constant of the module that holds it, with a zero behind."""
    block = module.regions[0].blocks[0]
    value = ir.StringAttr.get(text + "\0")
    globals_there = [
        view.operation.attributes for view in block.operations if view.operation.name == _GLOBAL
    ]
    known = [each for each in globals_there if _string(each["sym_name"]).startswith(_TEXT)]
    for each in known:
        if each["value"] == value:
            return _string(each["sym_name"])
    name = f"{_TEXT}{len(known)}"
    kind = ir.Type.parse(f"!llvm.array<{len(text.encode()) + 1} x i8>")
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown(module.context):
        ir.Operation.create(
            _GLOBAL,
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "global_type": ir.TypeAttr.get(kind),
                "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "constant": ir.UnitAttr.get(),
                "value": value,
            },
            regions=1,
        )
    return name


def _string(attribute: ir.Attribute) -> str:
    return ir.StringAttr(attribute).value


_GLOBAL = "llvm.mlir.global"
_TEXT = "avial.access."
