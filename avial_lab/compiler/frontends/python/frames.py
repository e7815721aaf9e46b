"""What all of a translation shares: the frames of its functions and what they call, values of names
from outside, and refusals at their place in the source.
"""

from __future__ import annotations

import ast
import builtins
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import TOO_LONG, Arithmetic, constant
from avial_lab.compiler.frontends.python.arrays import Arrays
from avial_lab.compiler.frontends.python.emitter import Emitter
from avial_lab.compiler.frontends.python.exceptions import error_of
from avial_lab.compiler.frontends.python.jumps import Jumps
from avial_lab.compiler.frontends.python.kinds import Kind, kind_of_number
from avial_lab.compiler.frontends.python.linear import number
from avial_lab.compiler.frontends.python.scopes import with_reaches, without_bindings_in_tests
from avial_lab.compiler.frontends.python.signature import Argument, Result
from avial_lab.compiler.frontends.python.source import FunctionSource, source_of
from avial_lab.compiler.frontends.python.values import (
    Array,
    Closure,
    Fixed,
    Held,
    Lazy,
    Listed,
    Number,
    Shape,
    Value,
    memref,
    whole,
)
from avial_lab.core.errors import AvialError

MOST_CALLS = 40
"""Of functions within functions."""


class Restart(Exception):
    """A variable holds more kinds of numbers than was known: begin again with that."""


@dataclass(frozen=True)
class ArrayKind:
    """Of a variable that is an array from its first binding on."""

    kind: Kind
    extents: Shape


Kinds = dict[tuple[object, ...], Kind | ArrayKind]


@dataclass
class Cell:
    """A variable in memory. key: what its kind is remembered by; kind None: nobody knows yet."""

    key: tuple[object, ...]
    memory: Array | None
    kind: Kind | None


_SOURCES: dict[object, FunctionSource] = {}


@dataclass
class Frame:
    """One function's variables, the program's or one that it calls."""

    source: FunctionSource
    function: Callable[..., object]
    names: dict[str, Value | Cell] = field(default_factory=dict)
    path: tuple[object, ...] = ()
    outer: Frame | None = None
    """Of a function within: where the names are that are not its `own`."""
    own: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    """Names that are looked at after the statement of now, with the values that they had before."""
    outside: Mapping[str, Value | Cell] = field(default_factory=dict[str, "Value | Cell"])
    """What was bound when the innermost block began."""


@dataclass
class Frames(ABC):
    """The work of one `translate`: its bottom layer."""

    source: FunctionSource
    function: Callable[..., object]
    arguments: Mapping[str, Argument]
    overlapping: frozenset[str]
    kinds: Kinds
    jumps: Jumps
    bodies: dict[int, list[ast.stmt]]

    def __post_init__(self) -> None:
        self.e = Emitter(self.source.place)
        self.e.taken = frozenset(f"%{name}" for name in self.arguments)
        self.a = Arithmetic(self.e, self.refused)
        self.arrays = Arrays(
            self.e, self.a, self.refused, self.overlapping, from_end=self.source.from_end
        )
        self.frame = Frame(self.source, self.function)
        self.head: list[str] = []
        self.captured: dict[str, np.ndarray] = {}
        self.results: list[str] = []
        self.unrolled = 0
        self.result_arrays: dict[str, str] = {}
        self.after: list[frozenset[str]] = []
        self.told: Result = Fixed(None)
        self.sizes: dict[str, tuple[str, int]] = {}
        self.pinned: tuple[FunctionSource, ast.AST] | None = None
        self.returned: ast.Return | None = None
        self.list_kinds: list[tuple[object, ...]] = []
        self.otherwise: dict[int, frozenset[str]] = {}
        self.changed: dict[int, frozenset[str]] = {}

    def _body_of(self, source: FunctionSource) -> list[ast.stmt]:
        key = id(source.tree)
        if key not in self.bodies:
            self.bodies[key] = self.plain_body(with_reaches(source.tree.body))
        return self.bodies[key]

    def plain_body(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Without jumps, and without names that a loop's test binds."""
        return self.jumps.without(without_bindings_in_tests(body))

    def refused(
        self,
        words: str,
        hint: str = "",
        kind: type[Exception] | None = None,
        *,
        node: ast.AST | None = None,
    ) -> AvialError:
        """The error for what the source says there."""
        error = error_of(kind)
        if self.pinned is not None:
            source, call = self.pinned
            return error(words, span=source.span(call), hint=hint or None)
        where = node if node is not None else self.e.node
        if where is None or not hasattr(where, "lineno"):
            where = self.frame.source.tree
        return error(words, span=self.frame.source.span(where), hint=hint or None)

    def not_there(self, what: str, node: ast.AST, hint: str) -> AvialError:
        return self.refused(f"{what} is not supported", hint, node=node)

    def constant(self, value: object) -> Value:
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and not -(1 << 63) <= value < 1 << 63
        ):
            raise self.refused(f"{value} {TOO_LONG}", "use a float", OverflowError)
        if kind_of_number(value) is not None:
            return constant(value)  # pyright: ignore[reportArgumentType]
        if isinstance(value, np.ndarray):
            return self._capture(value)
        if isinstance(value, tuple):
            return tuple(self.constant(each) for each in value)
        return Fixed(value)

    def _capture(self, array: np.ndarray) -> Array:
        """An array of the surroundings is an argument, too."""
        for name, held in self.captured.items():
            if held is array:
                return whole(f"%{name}", Kind(array.dtype), array.shape)
        name = f"global{len(self.captured)}"
        self.captured[name] = array
        kind = Kind(array.dtype)
        self.head.append(f"%{name}: {memref(array.shape, kind)}{self.e.place}")
        return whole(f"%{name}", kind, array.shape)

    def loaded(self, held: Held) -> Number:
        return replace(self.arrays.load(held.memory, []), kind=held.kind)

    def _outside(self, name: str, node: ast.AST) -> object:
        function = self.frame.function
        closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if name in closure:
            return closure[name].cell_contents
        if name in function.__globals__:
            return function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise self.refused(f"name '{name}' is not defined", "", NameError, node=node)

    def number(self, value: Value | None, node: ast.AST) -> Number:
        match value:
            case Number():
                return value
            case Array() if not value.shape:
                return self.arrays.load(value, [])
            case Array() if all(extent.known == 1 for extent in value.shape):
                return self.arrays.load(value, [number(0)] * len(value.shape))
            case Lazy() if not value.shape:
                return value.element([])
            case _:
                raise self.refused(
                    f"a number is wanted, not {_word(value)}", "", TypeError, node=node
                )

    def _array(self, value: Value, node: ast.AST) -> Array:
        match value:
            case Array():
                return value
            case Lazy():
                return self.arrays.materialised(value)
            case Listed():
                raise self.refused(
                    "the elements of a list are not assigned to here",
                    "make it an array: np.array([…])",
                    node=node,
                )
            case _:
                raise self.refused(
                    f"an array is wanted, not {_word(value)}", "", TypeError, node=node
                )

    def operand(self, value: Value | None) -> Number | Array | Lazy:
        match value:
            case Number() | Array() | Lazy():
                return value
            case Fixed(Held()):
                return self.loaded(value.value)  # pyright: ignore[reportArgumentType]
            case tuple():
                return self.calls.array_of(value)
            case Listed():
                return value.array
            case _:
                raise self.refused(f"{_word(value)} is no number and no array", "", TypeError)

    def result_kind(self, compute: Callable[..., Number], *operands: Value) -> Kind:
        """Of one element, found by trying."""
        with self.e.aside():
            tried = [
                each if isinstance(each, Number) else Number(each.kind, ssa="%tried")
                for each in operands
                if isinstance(each, Number | Array | Lazy)
            ]
            return compute(*tried).kind

    def _sized(self, value: Array) -> bool:
        """Whether the sizes of arguments say how large it is."""
        return all(extent.terms.keys() <= self.e.sizes for extent in value.shape)

    def inlined(
        self, function: Callable[..., object], given: Mapping[str, Value], node: ast.AST
    ) -> Value:
        """Another Python function's body, in place of its call."""
        source = self._source_of(function)
        frame = Frame(source, function, dict(given), (*self.frame.path, id(node)))
        return self._in_frame(frame, self._body_of(source), source.tree)

    def written(
        self, function: types.FunctionType, given: Mapping[str, Value], node: ast.AST
    ) -> Value:
        """A function of NumPy's that is written in Python here: all of it stands at its call."""
        if self.pinned is not None:
            return self.inlined(function, given, node)
        where = self.e.node if self.e.node is not None else node
        self.pinned, self.e.pinned = (self.frame.source, where), True
        try:
            return self.inlined(function, given, node)
        finally:
            self.pinned, self.e.pinned = None, False

    def within(
        self,
        outer: Frame,
        body: list[ast.stmt],
        own: frozenset[str],
        given: Mapping[str, Value],
        node: ast.AST,
    ) -> Value:
        """A function's body that is defined in the frame `outer`, in place of its call."""
        path = (*self.frame.path, id(node))
        frame = Frame(outer.source, outer.function, dict(given), path, outer, own)
        return self._in_frame(frame, body, node)

    def _in_frame(self, frame: Frame, body: list[ast.stmt], node: ast.AST) -> Value:
        if len(frame.path) > MOST_CALLS:
            raise self.refused(
                "the function calls itself without a bound that is known here",
                "write it as a loop",
                RecursionError,
            )
        outer, self.frame = self.frame, frame
        file = self.e.file
        if not self.e.pinned:
            self.e.file = frame.source.place
        try:
            with self.e.at(node):
                result = self.block_with_result(body)
        finally:
            self.frame, self.e.file = outer, file
        return Fixed(None) if result is None else result

    def _source_of(self, function: Callable[..., object]) -> FunctionSource:
        key = ("source", function)
        known = _SOURCES.get(key)
        if known is None:
            known = _SOURCES[key] = source_of(function)
        return known

    # -- what the layers above do ------------------------------------------------------------------

    @abstractmethod
    def expression(self, node: ast.expr) -> Value: ...

    @abstractmethod
    def block(self, body: Sequence[ast.stmt], after: frozenset[str]) -> None: ...

    @abstractmethod
    def block_with_result(self, body: Sequence[ast.stmt]) -> Value | None: ...

    @abstractmethod
    def name(self, name: str, node: ast.AST) -> Value: ...

    @abstractmethod
    def condition(self, node: ast.expr) -> Number: ...

    @abstractmethod
    def _compared(self, op: ast.cmpop, x: Value, y: Value) -> Value: ...

    @abstractmethod
    def _unary(self, op: ast.unaryop, x: Value, node: ast.expr) -> Value: ...

    @abstractmethod
    def binary(self, op: ast.operator, x: Value, y: Value) -> Value: ...

    @abstractmethod
    def bind_name(self, name: str, value: Value) -> None: ...


def _word(value: object) -> str:
    match value:
        case Number(kind):
            return f"a number ({kind})"
        case Array() | Lazy():
            return f"an array of {len(value.shape)} dimensions"
        case tuple():
            return "a tuple"
        case Fixed(inner):
            return f"{inner!r:.40}"
        case Closure():
            return "a function"
        case Listed():
            return "a list"
        case _:
            return "a method"
