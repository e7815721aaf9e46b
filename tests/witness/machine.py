"""Operations become Python closures, once; a function is run by calling them one after another.

A rule for each operation (`@rule("arith.addi")`) takes an `Op` and gives a `Step`: a function of
the frame, the list of all values of the running function. The last step of a block gives what its
terminator hands on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from mlir import ir

from tests.witness.values import (
    DYNAMIC,
    INDEX_WIDTH,
    Array,
    Element,
    Integer,
    Number,
    Undefined,
    Unsupported,
    Value,
    WitnessError,
    array_of,
    element_of,
    is_shaped,
)

Frame = list[Value]
Step = Callable[[Frame], Any]
RULES: dict[str, Callable[[Op], Step]] = {}
INDEX = Integer(INDEX_WIDTH)


def rule(*names: str) -> Callable[[Callable[[Op], Step]], Callable[[Op], Step]]:
    def register(make: Callable[[Op], Step]) -> Callable[[Op], Step]:
        for name in names:
            assert name not in RULES, name
            RULES[name] = make
        return make

    return register


@dataclass(frozen=True)
class Jump:
    """What `cf.br` hands on."""

    block: int
    values: Sequence[Value]


class Region:
    """Its blocks as steps; calling it runs them and gives what the last terminator hands on."""

    def __init__(self, region: ir.Region, function: Function):
        self._blocks = list(region.blocks)
        self._function = function
        self._made: dict[int, tuple[list[int], list[tuple[Step, ir.Operation]]]] = {}

    @property
    def empty(self) -> bool:
        return not self._blocks

    @property
    def operations(self) -> Iterator[ir.Operation]:
        for block in self._blocks:
            for op in block:
                yield op.operation

    @property
    def block(self) -> ir.Block:
        return self._blocks[0]

    def __call__(self, frame: Frame, *values: Value) -> Any:
        number = 0
        while True:
            arguments, steps = self._made.get(number) or self._translated(number)
            for slot, value in zip(arguments, values, strict=True):
                frame[slot] = value
            outcome: Any = ()
            for step, op in steps:
                try:
                    outcome = step(frame)
                except WitnessError as error:
                    error.place = error.place or f"{op.name}, {op.location}"
                    raise
            if type(outcome) is not Jump:
                return outcome
            number, values = outcome.block, tuple(outcome.values)

    def _translated(self, number: int) -> tuple[list[int], list[tuple[Step, ir.Operation]]]:
        block, function = self._blocks[number], self._function
        arguments = [function.slot(argument) for argument in block.arguments]
        steps = [(step_of(Op(op.operation, function, self._blocks)), op.operation) for op in block]
        self._made[number] = arguments, steps
        return self._made[number]


def step_of(op: Op) -> Step:
    make = RULES.get(op.name)
    if make is None:
        raise Unsupported(op.name)
    return make(op)


class Function:
    """A function's body, and a slot of its frames for each of its values.

    `loops`: where the linalg operations that run now are; `threads`: the launches (block, thread,
    and how many of each).
    """

    def __init__(self, op: ir.Operation, machine: Machine):
        self.machine = machine
        self.loops: list[Sequence[int]] = []
        self.threads: list[Sequence[Sequence[int]]] = []
        self._slots: dict[ir.Value, int] = {}
        self.body = Region(op.regions[0], self)
        self.type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        self.types = list(self.type.inputs)

    def slot(self, value: ir.Value) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def __call__(self, *values: Value) -> Sequence[Value]:
        if self.body.empty:
            raise Unsupported("a function without a body")
        return self.body(_Growing(), *values)


class _Growing(list[Value]):
    """A frame; regions are translated when they first run, and may then need more slots."""

    def __setitem__(self, slot: Any, value: Value) -> None:
        if slot >= len(self):
            self.extend([None] * (slot + 1 - len(self)))
        super().__setitem__(slot, value)


class Machine:
    """A module's functions and globals."""

    def __init__(self, module: ir.Module):
        self.symbols: dict[str, ir.Operation] = {}
        self.globals: dict[str, Array] = {}
        self._functions: dict[str, Function] = {}
        for op in _nested(module):
            if "sym_name" in op.attributes:
                self.symbols[ir.StringAttr(op.attributes["sym_name"]).value] = op

    def function(self, name: str) -> Function:
        if name not in self._functions:
            self._functions[name] = Function(self.symbols[name], self)
        return self._functions[name]

    def call(self, name: str, *values: Value) -> Sequence[Value]:
        with np.errstate(all="ignore"):
            return self.function(name)(*values)


def _nested(module: ir.Module) -> Iterator[ir.Operation]:
    for view in module.body:
        op = view.operation
        if op.name == "builtin.module":
            yield from (inner.operation for inner in op.regions[0].blocks[0])
        else:
            yield op


class Op:
    """An operation as a rule sees it: operands and results by slot, attributes as Python's own."""

    def __init__(self, op: ir.Operation, function: Function, blocks: Sequence[ir.Block]):
        self.op, self.name, self.function = op, op.name, function
        self.operands: list[ir.Value] = list(op.operands)
        self.ins = [function.slot(value) for value in self.operands]
        self.outs = [function.slot(value) for value in op.results]
        self.blocks = blocks

    # types

    def element(self, operand: int | None = None) -> Element:
        """Of that operand, else of the first result."""
        value = self.op.results[0] if operand is None else self.operands[operand]
        return element_of(value.type)

    def integer(self, operand: int | None = None) -> Integer:
        element = self.element(operand)
        assert isinstance(element, Integer)
        return element

    @property
    def type(self) -> ir.Type:
        return self.op.results[0].type

    @property
    def is_tensor(self) -> bool:
        return any(isinstance(value.type, ir.RankedTensorType) for value in self.operands)

    # attributes

    def has(self, name: str) -> bool:
        return name in self.op.attributes

    def attribute(self, name: str) -> ir.Attribute:
        return self.op.attributes[name]

    def text(self, name: str) -> str:
        return str(self.op.attributes[name]) if self.has(name) else ""

    def number(self, name: str) -> int:
        return int(self.text(name).partition(" : ")[0])

    def integers(self, name: str) -> list[int]:
        """Of `array<i64: …>`, `[…]` or `dense<…>`; without that attribute none."""
        if not self.has(name):
            return []
        attribute = self.attribute(name)
        if isinstance(attribute, ir.DenseElementsAttr):
            return [INDEX.signed(k) for k in array_of(attribute).values()]
        if isinstance(attribute, ir.ArrayAttr):
            return [
                int(str(k).partition(" : ")[0].replace("true", "1").replace("false", "0"))
                for k in attribute
            ]
        return [int(k) for k in cast("ir.DenseI64ArrayAttr", attribute)]

    def groups(self, name: str) -> list[list[int]]:
        """`[[0, 1], [2]]`."""
        return [
            [ir.IntegerAttr(k).value for k in ir.ArrayAttr(group)]
            for group in ir.ArrayAttr(self.attribute(name))
        ]

    # operands

    def segments(self) -> list[list[int]]:
        """The operands' slots by group."""
        found, start = [], 0
        for size in self.integers("operandSegmentSizes"):
            found.append(self.ins[start : start + size])
            start += size
        return found

    def mixed(self, static: str, slots: Sequence[int]) -> Callable[[Frame], list[int]]:
        """Numbers that stand in attribute `static`, and where that has `?`, in `slots`."""
        numbers, rest = self.integers(static), iter(slots)
        parts = [(next(rest), 0) if number == DYNAMIC else (-1, number) for number in numbers]
        signed = INDEX.signed

        def evaluated(frame: Frame) -> list[int]:
            return [number if slot < 0 else signed(frame[slot]) for slot, number in parts]

        return evaluated

    # regions and successors

    def region(self, number: int = 0) -> Region:
        return Region(self.op.regions[number], self.function)

    @property
    def regions(self) -> list[Region]:
        return [Region(region, self.function) for region in self.op.regions]

    def successor(self, number: int) -> int:
        wanted = self.op.successors[number]
        return next(k for k, block in enumerate(self.blocks) if block == wanted)

    # the shapes that steps have

    def pure(self, compute: Callable[..., Value]) -> Step:
        """The result is `compute` of the operands' values."""
        (out,) = self.outs
        ins = self.ins
        if len(ins) == 1:
            (a,) = ins

            def one(frame: Frame) -> None:
                frame[out] = compute(frame[a])

            return one
        if len(ins) == 2:
            a, b = ins

            def two(frame: Frame) -> None:
                frame[out] = compute(frame[a], frame[b])

            return two

        def several(frame: Frame) -> None:
            frame[out] = compute(*[frame[k] for k in ins])

        return several

    def several(self, compute: Callable[..., Sequence[Value]]) -> Step:
        """The results are those of `compute`."""
        ins, outs = self.ins, self.outs

        def step(frame: Frame) -> None:
            for out, value in zip(outs, compute(*[frame[k] for k in ins]), strict=True):
                frame[out] = value

        return step

    def elementwise(self, compute: Callable[..., Number]) -> Step:
        """As `pure`, for each element where the operands are tensors or vectors."""
        if not is_shaped(self.type):
            return self.pure(compute)
        return self.pure(lambda *values: over_elements(compute, values))

    def handed_on(self) -> Step:
        """A terminator: the values of its operands."""
        ins = self.ins
        return lambda frame: [frame[k] for k in ins]


def over_elements(compute: Callable[..., Number], values: Sequence[Value]) -> Array:
    """`compute` for each element; a number goes with every element of the others."""
    sizes = next(value.sizes for value in values if isinstance(value, Array))
    if any(isinstance(value, Array) and value.sizes != sizes for value in values):
        raise Undefined("arrays of different sizes")
    rows = [v.values() if isinstance(v, Array) else [v] * len(flat(sizes)) for v in values]
    return Array.of(sizes, (compute(*numbers) for numbers in zip(*rows, strict=True)))


def flat(sizes: Sequence[int]) -> range:
    return range(int(np.prod(sizes, dtype=object)))
