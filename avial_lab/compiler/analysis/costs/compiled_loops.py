"""Compiled loops as a model of a core goes through them: operations whose values are numbers.

Functions of stage `loops` -> Code. (To ask MLIR for an operand takes a microsecond, and a model
asks for it many times.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from avial_lab.compiler.ir.attributes import NEAR
from avial_lab.compiler.ir.operations import condition_of, integer_of

Numbers = dict[int, int]
"""What is known of values, by their numbers: indices, and conditions."""

Form = Callable[[Numbers], int]
"""Raises KeyError where something in it is not known, ZeroDivisionError for a division by zero."""

LOOPS = ("affine.for", "scf.for", "omp.loop_nest")
IFS = ("affine.if", "scf.if")
LOADS = ("affine.load", "memref.load", "vector.load", "vector.maskedload", "vector.gather")
STORES = ("affine.store", "memref.store", "vector.store", "vector.maskedstore", "vector.scatter")
FAR_FUNCTIONS, FAR = ("math.sin", "math.cos"), " far"
"""Of any argument, a large one too: their code branches, and no vector has it."""

INNER = (*LOOPS, "func.call", "omp.parallel", "omp.wsloop", "scf.while")
"""What an innermost loop has none of."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operation. forms: of what it computes of indices, the elements of its memory, the ends of
    a loop (lower, upper, step), a condition. nbytes: of its value, a vector's as a whole; element:
    bytes of one. data: whether it computes on what arrays hold. flags: `reassoc`, `contract`, FAR.
    strides: of the memory that it loads or stores, in bytes by index; empty where not known.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    forms: tuple[tuple[Form, ...], ...] = ()
    blocks: tuple[Code, ...] = ()
    nbytes: int = 0
    element: int = 0
    data: bool = False
    flags: str = ""
    callee: str = ""
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A block: the numbers of its arguments, and its operations."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def far(self) -> bool:
        """Whether a function of any argument is in it."""
        return any(
            step.flags.endswith(FAR) or any(code.far for code in step.blocks) for step in self.steps
        )


class Reading:
    """Functions of a module, each read when it is asked for."""

    def __init__(self, module: ir.Operation) -> None:
        tops = [view.operation for view in module.regions[0].blocks[0].operations]
        self._functions = {
            ir.StringAttr(op.attributes["sym_name"]).value: op
            for op in tops
            if op.name == "func.func" and len(op.regions[0].blocks)
        }
        self._read: dict[str, Code] = {}
        self._numbers: dict[ir.Value, int] = {}

    def function(self, name: str) -> Code | None:
        if name not in self._read and name in self._functions:
            self._read[name] = self._code(self._functions[name].regions[0].blocks[0])
        return self._read.get(name)

    def attribute(self, function: str, name: str) -> str | None:
        """The text that the function has under that name."""
        op = self._functions.get(function)
        if op is None or name not in op.attributes:
            return None
        return ir.StringAttr(op.attributes[name]).value

    def _number(self, value: ir.Value) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _code(self, block: ir.Block) -> Code:
        arguments = tuple(map(self._number, block.arguments))
        return Code(arguments, tuple(self._step(view.operation) for view in block.operations))

    def _step(self, op: ir.Operation) -> Step:
        if op.name == "scf.parallel":
            return self._nest(op)
        operands = tuple(map(self._number, op.operands))
        results = tuple(map(self._number, op.results))
        blocks = tuple(self._code(block) for region in op.regions for block in region.blocks)
        nbytes, element, data = _type_of(op)
        flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
        if op.name in FAR_FUNCTIONS and NEAR not in op.attributes:
            flags += FAR
        callee = ""
        if op.name in ("func.call", "llvm.call"):
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        elif op.name == "llvm.mlir.addressof":
            callee = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
        return Step(
            op.name, operands, results, _forms(op, operands), blocks, nbytes, element, data, flags,
            callee, _strides_of(op, element),
        )  # fmt: skip

    def _nest(self, op: ir.Operation) -> Step:
        """Parallel loops as what they become: each in the one before it, the innermost of which
        hands on what it reduces.
        """
        block = op.regions[0].blocks[0]
        code = self._code(block)
        variables, operands = code.arguments, tuple(map(self._number, op.operands))
        carried, steps = self._reduced(code.steps[-1], block)
        n = len(variables)
        ends = [
            tuple((operator.itemgetter(operands[k + n * which]),) for which in range(3))
            for k in range(n)
        ]
        body = Code((variables[-1], *carried), (*code.steps[:-1], *steps))
        for k in range(n - 1, 0, -1):
            body = Code(variables[k - 1 : k], (Step("scf.for", operands, (), ends[k], (body,)),))
        return Step("scf.for", operands, (), ends[0], (body,))

    def _reduced(self, last: Step, block: ir.Block) -> tuple[tuple[int, ...], list[Step]]:
        """What parallel loops carry, and how an iteration goes on with it."""
        carried: list[int] = []
        handed: list[int] = []
        found: list[Step] = []
        reduce = block.operations[len(block.operations) - 1].operation
        for value, region in zip(last.operands, reduce.regions, strict=True):
            combine = region.blocks[0]
            self._numbers[combine.arguments[1]] = value
            *steps, end = self._code(combine).steps
            carried.append(self._number(combine.arguments[0]))
            handed += end.operands
            found += steps
        return tuple(carried), [*found, Step("scf.yield", tuple(handed), ())]


def _type_of(op: ir.Operation) -> tuple[int, int, bool]:
    """Of its result, or of what it stores."""
    values = list(op.operands)[:1] if op.name in STORES else list(op.results)[:1]
    if op.name in ("vector.maskedstore", "vector.scatter"):
        values = list(op.operands)[-1:]
    if not values:
        return 0, 0, False
    kind, lanes = values[0].type, 1
    if isinstance(kind, ir.VectorType):
        for extent in kind.shape:
            lanes *= extent
        kind = kind.element_type
    if isinstance(kind, ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type | ir.IntegerType):
        width = max(1, kind.width // 8)
        return lanes * width, width, not (isinstance(kind, ir.IntegerType) and kind.width == 1)
    return 0, 0, False


def memory_of(name: str) -> int:
    """Which operand of a load or a store its memory is."""
    return int(name in ("affine.store", "memref.store", "vector.store"))


def _strides_of(op: ir.Operation, element: int) -> tuple[int, ...]:
    """(What begins within another memory has no known place in a line.)"""
    if op.name not in LOADS and op.name not in STORES:
        return ()
    kind = op.operands[memory_of(op.name)].type
    if not isinstance(kind, ir.MemRefType) or isinstance(kind.element_type, ir.VectorType):
        return ()
    try:
        strides, offset = kind.get_strides_and_offset()
    except (RuntimeError, ValueError):  # a layout that is none of strides
        return ()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return () if unknown in (*strides, offset) else tuple(each * element for each in strides)


# Forms --------------------------------------------------------------------------------------------


def _forms(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    reader = _READERS.get(op.name)
    return () if reader is None else reader(op, operands)


def _mapped(op: ir.Operation, name: str, operands: Sequence[int]) -> tuple[Form, ...]:
    form = ir.AffineMapAttr(op.attributes[name]).value
    return tuple(_affine(result, operands, form.n_dims) for result in form.results)


def _affine(form: ir.AffineExpr, operands: Sequence[int], dims: int) -> Form:
    """Of a map's or a set's dimensions, and then its symbols."""
    if isinstance(form, ir.AffineConstantExpr):
        value = form.value
        return lambda _: value
    if isinstance(form, ir.AffineDimExpr | ir.AffineSymbolExpr):
        shift = dims if isinstance(form, ir.AffineSymbolExpr) else 0
        return operator.itemgetter(operands[form.position + shift])
    binary = ir.AffineBinaryExpr(form)
    left, right = _affine(binary.lhs, operands, dims), _affine(binary.rhs, operands, dims)
    combine = next(f for kind, f in _AFFINE if isinstance(form, kind))
    return lambda known: combine(left(known), right(known))


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


_AFFINE: tuple[tuple[type, Callable[[int, int], int]], ...] = (
    (ir.AffineAddExpr, operator.add),
    (ir.AffineMulExpr, operator.mul),
    (ir.AffineModExpr, operator.mod),
    (ir.AffineFloorDivExpr, operator.floordiv),
    (ir.AffineCeilDivExpr, _ceildiv),
)

_TWO: Mapping[str, Callable[[int, int], int]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul,
    "minsi": min, "minui": min, "maxsi": max, "maxui": max,
    "divsi": operator.floordiv, "divui": operator.floordiv, "floordivsi": operator.floordiv,
    "ceildivsi": _ceildiv, "ceildivui": _ceildiv,
    "remsi": operator.mod, "remui": operator.mod,
    "andi": operator.and_, "ori": operator.or_, "xori": operator.xor,
    "shli": operator.lshift, "shrsi": operator.rshift, "shrui": operator.rshift,
}  # fmt: skip
"""Of arith, as indices need it: those are not negative where that matters."""

_SAME = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
"""What hands a number on."""

_COMPARED = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip
"""By the number of the predicate of `arith.cmpi`."""


def _pair(combine: Callable[[int, int], int]) -> _Reader:
    def read(_: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
        a, b = operands
        return ((lambda known: int(combine(known[a], known[b])),),)

    return read


def _compared(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    return _pair(_COMPARED[predicate])(op, operands)


def _selected(_: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    test, yes, no = operands
    return ((lambda known: known[yes] if known[test] else known[no],),)


def _constant(op: ir.Operation, _: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    value = integer_of(op.attributes["value"])
    return () if value is None else ((lambda _: value,),)


def _applied(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    return (_mapped(op, "map", operands),)


def _extreme(pick: Callable[..., int]) -> _Reader:
    def read(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
        forms = _mapped(op, "map", operands)
        return ((lambda known: pick(form(known) for form in forms),),)

    return read


def _affine_for(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    lows, highs, *_ = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    low = _mapped(op, "lowerBoundMap", operands[:lows])
    high = _mapped(op, "upperBoundMap", operands[lows : lows + highs])
    step = ir.IntegerAttr(op.attributes["step"]).value
    return (
        (lambda known: max(form(known) for form in low),),
        (lambda known: min(form(known) for form in high),),
        (lambda _: step,),
    )


def _three(_: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    """The ends of a loop that are its operands."""
    return tuple((operator.itemgetter(each),) for each in operands[:3])


def _affine_if(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    equal, form = condition_of(op.attributes["condition"])
    tests = [_affine(result, operands, form.n_dims) for result in form.results]

    def holds(known: Numbers) -> int:
        values = [test(known) for test in tests]
        return int(all(v == 0 if eq else v >= 0 for v, eq in zip(values, equal, strict=True)))

    return ((holds,),)


def _first(_: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
    return ((operator.itemgetter(operands[0]),),)


def _element(skip: int, masks: int = 0) -> _Reader:
    """Of operands that are indices from the `skip`-th on, but for as many at the end."""

    def read(_: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
        indices = operands[skip : len(operands) - masks]
        return (tuple(operator.itemgetter(each) for each in indices),)

    return read


def _affine_element(skip: int) -> _Reader:
    def read(op: ir.Operation, operands: Sequence[int]) -> tuple[tuple[Form, ...], ...]:
        return (_mapped(op, "map", operands[skip:]),)

    return read


_Reader = Callable[[ir.Operation, Sequence[int]], tuple[tuple[Form, ...], ...]]

_READERS: Mapping[str, Any] = {
    **{f"arith.{name}": _pair(combine) for name, combine in _TWO.items()},
    **dict.fromkeys(_SAME, _first),
    "arith.cmpi": _compared,
    "arith.select": _selected,
    "arith.constant": _constant,
    "affine.apply": _applied,
    "affine.min": _extreme(min),
    "affine.max": _extreme(max),
    "affine.for": _affine_for,
    "scf.for": _three,
    "omp.loop_nest": _three,
    "affine.if": _affine_if,
    "scf.if": _first,
    "affine.load": _affine_element(1),
    "affine.store": _affine_element(2),
    "memref.load": _element(1),
    "memref.store": _element(2),
    "vector.load": _element(1),
    "vector.store": _element(2),
    "vector.maskedload": _element(1, 2),
    "vector.maskedstore": _element(1, 2),
}
