"""Pieces of code that stand in functions of their own: what is written twice is compiled once.

Code at the insertion point -> a call of a function that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func, memref

from avial_lab.compiler.analysis.accesses.no_alias import has_no_aliases
from avial_lab.compiler.codegen.loops.index_arithmetic import constants_first
from avial_lab.compiler.ir.attributes import NO_ALIAS, SHARED
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.llvm_attributes import NOT_INLINED, tell_llvm
from avial_lab.compiler.ir.operations import lies_whole, operations_in
from avial_lab.compiler.ir.views import is_memref, view_chain

WORK = "avial.work"
"""On a call of one: elements that it loads, stores or computes in each of its steps, which its
first two operands are the ends of.
"""


@dataclass
class SharedCode:
    """The functions of a module that were written so far, by their text."""

    _symbols: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def function(self, name: str, work: int, steps: tuple[ir.Value, ir.Value]) -> Iterator[None]:
        """What is written in this context goes to a function, and a call of it here; it does
        `work` in each of `steps`.

        All that it uses of what stands around becomes an argument, apart from constants; arrays
        are of any size.

        before:  %x = arith.addi %a, %c1   memref.store %v, %A[%x]
        after:   func.func private @name(%a, %v, %A) { …addi, store… }    call @name(%a, %v, %A)
        """
        around = _function_around(ir.InsertionPoint.current.block)
        with ir.InsertionPoint(around):
            made = func.FuncOp("code", ([], []), visibility="private").operation
        block = made.regions[0].blocks.append()
        with ir.InsertionPoint(block), constants_first(block):
            yield
            func.ReturnOp([])
        given = _take_in(made, block, steps)
        tell_llvm(made, NOT_INLINED)
        made.attributes[SHARED] = ir.UnitAttr.get()
        if _do_not_alias(around, given):
            made.attributes[NO_ALIAS] = ir.UnitAttr.get()
        symbol = self._one_of(made, f"{text_attribute(around, 'sym_name')}.{name}")
        call = func.CallOp([], symbol, [_cast(value) for value in given]).operation
        call.attributes[WORK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), work)

    def _one_of(self, made: ir.Operation, name: str) -> str:
        """The name of the function like `made`, which may be another one."""
        # Alone, without the module's numbering: what stands around it is not finished yet.
        text = str(made.get_asm(assume_verified=True, use_local_scope=True))
        known = self._symbols.get(text)
        if known is not None:
            made.erase()
            return known
        symbol = f"{name}{len(self._symbols) or ''}"
        made.attributes["sym_name"] = ir.StringAttr.get(symbol)
        return self._symbols.setdefault(text, symbol)


def _function_around(block: ir.Block) -> ir.Operation:
    op = block.owner.operation
    while op.name != "func.func":
        assert op.parent is not None
        op = op.parent.operation
    return op


def _take_in(made: ir.Operation, block: ir.Block, first: tuple[ir.Value, ...]) -> list[ir.Value]:
    """Make arguments of what is used from outside, `first` of them first; what they stand for."""
    inside: dict[ir.Value, ir.Value] = {}
    given: list[ir.Value] = []
    own: set[ir.Value] = set()

    def take(value: ir.Value) -> ir.Value:
        owner = value.owner
        if isinstance(owner, ir.Operation | ir.OpView) and owner.operation.name == "arith.constant":
            copy = owner.operation.clone(ip=ir.InsertionPoint.at_block_begin(block)).operation
            return copy.results[0]
        given.append(value)
        return block.add_argument(_of_any_size(value.type), value.location)

    ops = list(operations_in(made))
    for value in first:
        inside[value] = block.add_argument(value.type, value.location)
    given += first
    for op in ops:  # what it uses comes before it
        operands = op.operands
        for place, value in enumerate(operands):
            if value in own:
                continue
            if value not in inside:
                inside[value] = take(value)
            operands[place] = inside[value]
        own.update(op.results)
        if len(op.regions):
            own.update(a for region in op.regions for each in region.blocks for a in each.arguments)
    kinds = [argument.type for argument in block.arguments]
    made.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
    return given


def _of_any_size(kind: ir.Type) -> ir.Type:
    """The type of arrays of other extents too; code for one is that for all."""
    if not isinstance(kind, ir.MemRefType) or not lies_whole(kind):
        return kind
    extents = [ir.ShapedType.get_dynamic_size()] * kind.rank
    return ir.MemRefType.get(extents, kind.element_type, memory_space=kind.memory_space)


def _cast(value: ir.Value) -> ir.Value:
    kind = _of_any_size(value.type)
    return value if kind == value.type else memref.CastOp(kind, value).result


def _do_not_alias(around: ir.Operation, given: list[ir.Value]) -> bool:
    """Whether no two of these arrays share memory, used in a function where its own do not."""
    arrays = [value for value in given if is_memref(value)]
    return has_no_aliases(around) and len({view_chain(a)[-1] for a in arrays}) == len(arrays)
