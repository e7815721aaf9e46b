"""A function for each phase that tells the ownership runtime what a part of it touches.

Boxes with parameters (`polyhedra.touched`) -> `func.func` that computes and reports them.

    func.func private @S1.touches(%params: !llvm.ptr, %range: !llvm.ptr) {
      %lo = llvm.load %range …                        lo0, hi0, lo1, hi1: iteration values
      … low = max(lo, 1) - 1, high = min(hi, 99) …    %box: low of each dimension, then high
      call @avial_read(%array, %box)                  half-open; the runtime cuts it to the array
      call @avial_write(%array, %box, %exact)
      call @avial_reduce(%array, %box, %operation)
      return
    }
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir
from mlir.dialects import arith, func, llvm, scf

from avial_lab.compiler.analysis.polyhedral.boxes import Expression, ParametricBox
from avial_lab.compiler.analysis.polyhedral.footprints import RANGE, ArrayTouch, TouchKind
from avial_lab.compiler.analysis.polyhedral.scop import Array, Scop
from avial_lab.compiler.codegen.loops.isl_values import AffineValues
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.views import defining
from avial_lab.core.element_types import COMPANION_CODE, operation_code
from avial_lab.core.errors import InternalError, PassError

EVERYTHING = 1 << 62
"""The high end of a dimension that has none; the runtime cuts boxes to the array."""

PARAM = isl.dim_type.param

Source = ir.Value | tuple[ir.Value, int]
"""Where a parameter comes from: an integer or index, or the size of a memref in a dimension."""


@dataclass(frozen=True)
class TouchFunction:
    """`parameters[k]` is what word k of `params` has to be; narrower integers are sign-extended."""

    symbol: str
    parameters: tuple[Source, ...]


def write_touches(
    before: ir.Operation,
    symbol: str,
    scop: Scop,
    touches: Sequence[ArrayTouch],
    array_index: Mapping[ir.Value, int],
) -> TouchFunction:
    """Put the function `symbol` before `before`, an operation of the module's own.

    `array_index` has the number of every array that is touched, by its root.
    """
    sources = _sources(scop)
    used = [name for name in sources if any(_uses(touch, name) for touch in touches)]
    with before.context, before.location:
        block, report = _open(before, symbol, used, [touch.kind for touch in touches])
        with ir.InsertionPoint(block):
            report.write(touches, array_index)
            func.ReturnOp([])
    return TouchFunction(symbol, tuple(sources[name] for name in used))


def _open(
    before: ir.Operation, symbol: str, parameters: Sequence[str], kinds: Iterable[TouchKind]
) -> tuple[ir.Block, _Report]:
    """An empty function, and the runtime's functions that it calls."""
    pointer = llvm.PointerType.get()
    for kind in dict.fromkeys(kinds):
        _declare(before, kind, pointer)
    with ir.InsertionPoint(before):
        function = func.FuncOp(symbol, ([pointer, pointer], []), visibility="private")
    block = function.add_entry_block()
    return block, _Report(block, parameters)


def _sources(scop: Scop) -> dict[str, Source]:
    """Every parameter there may be, but for the part's own ends."""
    known = {name: value for name, value in scop.parameters.items() if value is not None}
    return {**scop.sizes, **known}


def _uses(touch: ArrayTouch, name: str) -> bool:
    """Whether an end or the condition of the box holds that parameter."""
    parts: list[Expression | isl.Set] = [*_expressions(touch.box)]
    if touch.box.when is not None:
        parts.append(touch.box.when)
    return any(_involves(part, name) for part in parts)


def _expressions(box: ParametricBox) -> list[Expression]:
    return [aff for end in (*box.low, *box.high) for choice in end for aff in choice]


def _involves(part: Expression | isl.Set, name: str) -> bool:
    place = part.find_dim_by_name(PARAM, name)
    return place >= 0 and part.involves_dims(PARAM, place, 1)


def _declare(before: ir.Operation, kind: TouchKind, pointer: ir.Type) -> None:
    """The runtime's function, once in the module."""
    name = f"avial_{kind.value}"
    for view in before.block.operations:
        attributes = view.operation.attributes
        if "sym_name" in attributes and text_attribute(view.operation, "sym_name") == name:
            return
    i64 = ir.IntegerType.get_signless(64)
    inputs = [i64, pointer] if kind is TouchKind.READ else [i64, pointer, i64]
    with ir.InsertionPoint(before):
        func.FuncOp(name, (inputs, []), visibility="private")


class _Report:
    """Writes the body of one function: nothing is reported of an empty part."""

    def __init__(self, block: ir.Block, parameters: Sequence[str]) -> None:
        self.i64 = ir.IntegerType.get_signless(64)
        self.pointer = llvm.PointerType.get()
        ours = [name for pair in RANGE for name in pair]
        self._places = {name: (block.arguments[0], k) for k, name in enumerate(parameters)}
        self._places |= {name: (block.arguments[1], k) for k, name in enumerate(ours)}
        self.values = AffineValues(self._load)

    def _load(self, name: str) -> ir.Value:
        table, place = self._places[name]
        return llvm.load(self.i64, self._word(table, place))

    def write(self, touches: Sequence[ArrayTouch], array_index: Mapping[ir.Value, int]) -> None:
        if not touches:
            return
        box = self.room(max(2 * touch.array.rank for touch in touches))
        nonempty = [
            arith.cmpi(arith.CmpIPredicate.slt, *map(self.values.parameter, pair))
            for pair in RANGE
            if any(touch.box.elements.find_dim_by_name(PARAM, pair[0]) >= 0 for touch in touches)
        ]
        if not nonempty:
            self._report(touches, array_index, box)
            return
        branch = scf.IfOp(functools.reduce(arith.andi, nonempty))
        with ir.InsertionPoint(branch.then_block):
            self._report(touches, array_index, box)
            scf.YieldOp([])

    def _report(
        self, touches: Sequence[ArrayTouch], array_index: Mapping[ir.Value, int], box: ir.Value
    ) -> None:
        for touch in touches:
            number = _number(touch.array, array_index)
            lows, highs = self.values.ends(touch.box, most=EVERYTHING)
            more: list[int] = []
            if touch.kind is TouchKind.WRITE:
                more.append(int(touch.exact))
            elif touch.kind is TouchKind.REDUCE:
                more.append(_combined(touch, array_index))
            if touch.box.when is None:
                self.call(touch.kind, box, [*lows, *highs], number, more)
                continue
            branch = scf.IfOp(self.values.holds(touch.box.when))
            with ir.InsertionPoint(branch.then_block):
                self.call(touch.kind, box, [*lows, *highs], number, more)
                scf.YieldOp([])

    def call(
        self,
        kind: TouchKind,
        box: ir.Value,
        ends: Sequence[ir.Value],
        number: int,
        more: Sequence[int],
    ) -> None:
        """Put the ends into `box`, and tell the runtime."""
        for place, end in enumerate(ends):
            llvm.StoreOp(end, self._word(box, place))
        words = [arith.constant(self.i64, word) for word in (number, *more)]
        func.CallOp([], f"avial_{kind.value}", [words[0], box, *words[1:]])

    def room(self, words: int) -> ir.Value:
        return llvm.alloca(self.pointer, self.values.constant(max(words, 1)), self.i64)

    def _word(self, table: ir.Value, place: int) -> ir.Value:
        if not place:
            return table
        return llvm.getelementptr(self.pointer, table, [], [place], self.i64, None)


def _number(array: Array, array_index: Mapping[ir.Value, int]) -> int:
    if array.value is None or array.value not in array_index:
        root = None if array.value is None else defining(array.value)
        if root is not None and root.name == "memref.get_global":
            # Then it is one task: ranks have tables of their own, which nobody exchanges.
            raise PassError(
                f"{array} is not an argument, and is written", span=span_of(root.location)
            )
        raise InternalError(f"array {array} is accessed, but has no index")
    return array_index[array.value]


def _combined(touch: ArrayTouch, array_index: Mapping[ir.Value, int]) -> int:
    """How partial results are combined; of a payload, with what array."""
    if touch.key is None:
        return operation_code(touch.operation or "", touch.array.element_type)
    return COMPANION_CODE | (_number(touch.key, array_index) + 1) << 16
