"""A Python function and what it is called with -> the text of a func.func.

Statements become loops, conditions and accesses to memory, each at its place in the Python source.
A variable is an SSA value; one whose value matters beyond the iteration or branch that binds it is
memory of one element there. Whatever has another meaning than Python's is refused at its place.
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, SupportsIndex, cast

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import Arithmetic, affine, constant
from avial_lab.compiler.frontends.python.arrays import Arrays, Index
from avial_lab.compiler.frontends.python.calls import Calls, Sequenced
from avial_lab.compiler.frontends.python.closures import Closures, Element
from avial_lab.compiler.frontends.python.emitter import Emitter
from avial_lab.compiler.frontends.python.exceptions import HangsOnTheIteration, error_of
from avial_lab.compiler.frontends.python.jumps import Jumps, StoppedFor
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    INT,
    INT64,
    Kind,
    joined,
    kind_of_number,
    promoted,
)
from avial_lab.compiler.frontends.python.linear import Linear, Range, least, most, number, term
from avial_lab.compiler.frontends.python.liveness import carried, is_bound, live_before
from avial_lab.compiler.frontends.python.prints import Printing, Prints
from avial_lab.compiler.frontends.python.scheduled import Scheduled
from avial_lab.compiler.frontends.python.scopes import (
    binds_in,
    with_reaches,
    without_bindings_in_tests,
)
from avial_lab.compiler.frontends.python.source import FunctionSource, source_of
from avial_lab.compiler.frontends.python.tasks import Arrangement, named_in
from avial_lab.compiler.frontends.python.values import (
    Array,
    Closure,
    Fixed,
    Held,
    Lazy,
    Listed,
    Method,
    Number,
    Operand,
    Shape,
    Value,
    memref,
    whole,
)
from avial_lab.core.errors import AvialError, VerifyError

MOST_CALLS = 40
"""Of functions within functions."""
MOST_RESTARTS = 200
MOST_FIXED = 8
"""Up to there a size is part of the program: one of coordinates or colours, say."""
MOST_UNROLLED = 64
"""Iterations of loops whose body has a meaning only where its variable is known."""


# -- what comes in and goes out --------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayArgument:
    """A size that is a word is open; those of one word are equal."""

    dtype: np.dtype
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class NumberArgument:
    """A number that is handed over when it runs."""

    kind: Kind


Argument = ArrayArgument | NumberArgument | Fixed


@dataclass(frozen=True)
class ResultNumber:
    name: str
    kind: Kind


@dataclass(frozen=True)
class ResultArray:
    """A new array; `memory` is the program's argument that it is."""

    name: str
    dtype: np.dtype
    shape: Shape


@dataclass(frozen=True)
class ResultView:
    """A part of an argument: one (offset, dim, step) for each dimension of it."""

    argument: str
    shape: Shape
    axes: tuple[tuple[Linear, int, int], ...]


@dataclass(frozen=True)
class ResultPart:
    """The first elements of a new array: along each dimension as many as the run says."""

    array: ResultArray
    counts: tuple[ResultNumber, ...]


Result = ResultNumber | ResultArray | ResultPart | ResultView | Fixed | tuple["Result", ...]


@dataclass(frozen=True, eq=False)
class Translated:
    """captured: arrays of the function's surroundings that are arguments, too. handed: the numbers
    that a run is given, as arrays of one element. apart: why it has to run in a process of its own;
    empty where nothing in it can end the process. endless: why it may take any time; empty where
    that is not so. unless: it need not run apart where there are some, and none is negative, of
    sizes and of `counts`, by what they are called there: integers among the arguments. sizes: the
    open ones by what results' shapes call them: of which argument, along which dimension. spare:
    memory to work in, as large as these say. printing: what a run puts into a log of it.
    """

    text: str
    result: Result
    captured: Mapping[str, np.ndarray]
    file: str
    handed: frozenset[str] = frozenset()
    apart: str = ""
    endless: str = ""
    unless: tuple[Linear, ...] = ()
    counts: Mapping[str, str] = field(default_factory=dict[str, str])
    sizes: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, "tuple[str, int]"])
    spare: tuple[ResultArray, ...] = ()
    printing: Printing | None = None

    def here(self, given: Mapping[str, object], sizes: Mapping[str, int]) -> Translated:
        """As it is for such a call: what its sizes and integers say of subscripts is known."""
        values = dict(sizes) | {
            symbol: operator.index(cast("SupportsIndex", given[name]))
            for symbol, name in self.counts.items()
        }
        if not self.unless or any(each.at(values) < 0 for each in self.unless):
            return self
        return replace(self, apart="")

    @property
    def is_certain(self) -> bool:
        """Whether every run comes to its end, and raises nothing."""
        return not (self.apart or self.endless or "cf.assert" in self.text)


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


ARGUMENT = "result"
_OWN = re.compile(r"%own_\d+")
_MADE = re.compile(r"(result|global)\d*_*")
"""Names of arguments that the person does not know."""


def translate(
    function: Callable[..., object],
    arguments: Mapping[str, Argument],
    *,
    overlapping: frozenset[str] = frozenset(),
    cell: str | None = None,
) -> Translated:
    """`cell`: what its file is called, where that is a notebook's cell.

    Raises ParseError or VerifyError at the place in the Python source.
    """
    source = source_of(function, cell)
    kinds: Kinds = {}
    jumps = Jumps()
    bodies: dict[int, list[ast.stmt]] = {}
    for _ in range(MOST_RESTARTS):
        scope = Translation(source, function, arguments, overlapping, kinds, jumps, bodies)
        try:
            return scope.run()
        except Restart:
            continue
    raise VerifyError(
        "the kinds of its variables do not settle",
        span=source.span(source.tree),
        hint="give each a kind of number of its own",
    )


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


@dataclass
class Translation:
    """The work of one `translate`."""

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
        self.arrays = Arrays(self.e, self.a, self.refused, self.overlapping)
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

    # -- the whole ---------------------------------------------------------------------------------

    def run(self) -> Translated:
        self.calls, self.prints = Calls(self), Prints(self)
        self.closures = Closures(self)
        self.e.node = self.source.tree
        self.open = self._open_sizes()
        for parameter in self._parameters():
            self._argument(parameter.arg, parameter)
        if self.arrangement.has_tasks(self.source.tree):
            self._with_tasks()
        else:
            value = self.block_with_result(self._body_of(self.source))
            with self.e.at(self.returned or self.source.tree):
                self.told = self.result_of(value)
        lines = [*self.e.entry, *self.e.lines]
        made = [line for line in self.e.entry if " = memref.alloc() : " in line]
        freed = [line.split(" = ")[0].strip() for line in made]
        types = {
            n: line.split(" : ")[1].split(" loc(")[0] for n, line in zip(freed, made, strict=True)
        }
        lines += [
            f"  memref.dealloc {name} : {types[name]}{self.e.place}"
            for name in freed
            if name not in self.result_arrays
        ]
        lines = [self._as_results(line) for line in lines]
        spare = self._spare(lines)
        if self.prints.log is not None:
            self.head.append(f"{self.prints.log.memory}: {self.prints.log.type}{self.e.place}")
        given = ", ".join([*self.head, *self.results])
        self.e.node = self.source.tree
        place = self.e.place
        name = self.source.name if self.source.name.isascii() else "program"
        text = "\n".join(
            [
                f"func.func @{name}({given}) attributes {{avial.contracted = false}} {{",
                *[line for line in lines if line],
                f"  return{place}",
                f"}}{place}",
                "",
            ]
        )
        handed = frozenset(n for n, a in self.arguments.items() if isinstance(a, NumberArgument))
        return Translated(
            text,
            self.told,
            self.captured,
            self.source.place,
            handed,
            self.e.apart,
            self.e.endless,
            tuple(self.e.unless or ()),
            self.e.counts,
            self.sizes,
            spare,
            self.prints.told,
        )

    def _spare(self, lines: Sequence[str]) -> tuple[ResultArray, ...]:
        """Arguments for the memory that is used, but for results, which have theirs."""
        found: list[ResultArray] = []
        used = {name for line in lines for name in _OWN.findall(line)}
        for name, array in self.arrays.spare.items():
            if name in used:
                self.head.append(f"{name}: {array.type}{self.e.place}")
                found.append(ResultArray(name[1:], array.kind.dtype, array.extents))
        return tuple(found)

    def _with_tasks(self) -> None:
        key = id(self.source.tree.body)
        if key not in self.bodies:
            self.bodies[key] = self.arrangement.arranged(self._body_of(self.source))
        self.e.plain = False
        scheduled = Scheduled(self)
        lines = scheduled.function(self.bodies[key])
        given = [part.split(":")[0] for part in (*self.head, *self.results)]
        own = [line.split(" = ")[0].strip() for line in self.e.entry]
        log = [] if self.prints.log is None else [self.prints.log.memory]
        buffers = [*given, *log, *(name for name in own if name not in self.result_arrays)]
        self.e.lines += [*scheduled.head(buffers), *lines, f"  }}{self.e.place}"]

    @property
    def arrangement(self) -> Arrangement:
        function = self.function
        assert isinstance(function, types.FunctionType)
        return Arrangement(lambda node: named_in(function, node), self.refused)

    def _as_results(self, line: str) -> str:
        """Memory that is handed back is the caller's."""
        for own, name in self.result_arrays.items():
            if line.lstrip().startswith(f"{own} = memref.alloc()"):
                return ""
            line = _renamed(line, own, name)
        return line

    def _parameters(self) -> list[ast.arg]:
        spec = self.source.tree.args
        if spec.vararg is not None or spec.kwarg is not None:
            raise self.refused(
                "*args and **kwargs are not there", "name each parameter", node=self.source.tree
            )
        return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]

    def _open_sizes(self) -> dict[str, Linear]:
        """By the arguments' words for them: symbols of affine loops."""
        found: dict[str, Linear] = {}
        for name, given in self.arguments.items():
            if not isinstance(given, ArrayArgument):
                continue
            for dim, word in enumerate(given.shape):
                if isinstance(word, int) or word in found:
                    continue
                at = self.e.value(f"arith.constant {dim} : index")
                extents = [n if isinstance(n, int) else term(n) for n in given.shape]
                kind = memref(extents, Kind(given.dtype))
                size = self.e.value(f"memref.dim %{name}, {at} : {kind}", "size")
                self.sizes[size] = name, dim
                self.e.ranges[size] = Range(number(MOST_FIXED + 1), None)
                found[word] = term(size)
        self.e.sizes = frozenset(self.sizes)
        self.e.symbols |= self.e.sizes
        return found

    def _argument(self, name: str, node: ast.AST) -> None:
        given = self.arguments[name]
        with self.e.at(node):
            match given:
                case ArrayArgument(dtype, shape):
                    kind = Kind(dtype)
                    extents = [n if isinstance(n, int) else self.open[n] for n in shape]
                    self.head.append(f"%{name}: {memref(extents, kind)}{self.e.place}")
                    self.frame.names[name] = whole(f"%{name}", kind, extents)
                case NumberArgument(kind) if kind.is_int:
                    self.frame.names[name] = self._count(name, kind)
                case NumberArgument(kind):
                    self.head.append(f"%{name}: {memref((), kind)}{self.e.place}")
                    self.frame.names[name] = Fixed(
                        Held(whole(f"%{name}", Kind(kind.dtype), ()), kind)
                    )
                case Fixed(value):
                    self.frame.names[name] = self.constant(value)

    def _count(self, name: str, kind: Kind) -> Number:
        """An integer that the run is given, as a symbol of affine loops."""
        cell = whole(f"%{name}", Kind(kind.dtype), ())
        self.head.append(f"%{name}: {cell.type}{self.e.place}")
        given = self.a.value(self.arrays.load(cell, []), Kind(np.dtype(np.int64)))
        symbol = self.e.value(f"arith.index_cast {given} : i64 to index", "n")
        self.e.symbols |= {symbol}
        self.e.counts[symbol] = name
        return self.a.cast(affine(term(symbol)), kind)

    def _body_of(self, source: FunctionSource) -> list[ast.stmt]:
        key = id(source.tree)
        if key not in self.bodies:
            self.bodies[key] = self.plain_body(with_reaches(source.tree.body))
        return self.bodies[key]

    def plain_body(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Without jumps, and without names that a loop's test binds."""
        return self.jumps.without(without_bindings_in_tests(body))

    # -- results -----------------------------------------------------------------------------------

    def result_of(self, value: Value | None) -> Result:
        match value:
            case None:
                return Fixed(None)
            case Number():
                if value.known is not None and value.kind.weak:
                    return Fixed(value.known)
                name = self._new_result()
                cell = whole(f"%{name}", Kind(value.kind.dtype), ())
                self.results.append(f"%{name}: {cell.type}{self.e.place}")
                self.arrays.store(value, cell, [])
                return ResultNumber(name, value.kind)
            case Array():
                return self._result_array(value)
            case Lazy():
                return self._result_array(self.arrays.materialised(value))
            case Fixed(inner):
                if isinstance(inner, Held):
                    return self.result_of(self.loaded(inner))
                return value
            case tuple():
                return tuple(self.result_of(each) for each in value)
            case Listed():
                raise self.refused("a list is not handed back", "return np.array([…])")
            case _:
                raise self.refused("this cannot be handed back", "return numbers and arrays")

    def _new_result(self) -> str:
        name = f"{ARGUMENT}{len(self.results)}"
        while name in self.arguments:
            name += "_"
        return name

    def _result_array(self, value: Array) -> Result:
        if not self._sized(value):
            return self._result_part(value)
        if value.own and value.memory not in self.result_arrays and value.is_whole:
            name = self._new_result()
            self.results.append(f"%{name}: {value.type}{self.e.place}")
            self.result_arrays[value.memory] = f"%{name}"
            return ResultArray(name, value.kind.dtype, value.shape)
        if value.own:
            return self._result_array(self.arrays.materialised(value))
        axes = tuple((axis.offset, axis.dim, axis.step) for axis in value.axes)
        if any(not offset.terms.keys() <= self.e.sizes for offset, _, _ in axes):
            return self._result_array(self.arrays.materialised(value))
        return ResultView(value.memory[1:], value.shape, axes)

    def _result_part(self, value: Array) -> ResultPart:
        plain = whole(value.memory, value.kind, value.extents)
        if not value.own or value.memory in self.result_arrays or value.axes != plain.axes:
            value = self.arrays.materialised(value)
        name = self._new_result()
        self.results.append(f"%{name}: {value.type}{self.e.place}")
        self.result_arrays[value.memory] = f"%{name}"
        array = ResultArray(name, value.kind.dtype, value.extents)
        counts = [self.result_of(self.a.cast(affine(n), INT64)) for n in value.shape]
        return ResultPart(array, tuple(n for n in counts if isinstance(n, ResultNumber)))

    def _sized(self, value: Array) -> bool:
        """Whether the sizes of arguments say how large it is."""
        return all(extent.terms.keys() <= self.e.sizes for extent in value.shape)

    # -- errors ------------------------------------------------------------------------------------

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
        return self.refused(f"{what} is not there", hint, node=node)

    # -- statements --------------------------------------------------------------------------------

    def block_with_result(self, body: Sequence[ast.stmt]) -> Value | None:
        """A function's body; what it returns."""
        key = (*self.frame.path, "returned")
        before, self.after = self.after, [frozenset()]
        try:
            return self._returning(list(body), key)
        finally:
            self.after = before

    def _returning(self, body: list[ast.stmt], key: tuple[object, ...]) -> Value | None:
        """The last statement returns, or both branches of it do, or none."""
        last = body[-1] if body else None
        if isinstance(last, ast.Return):
            self.block(body[:-1], live_before([last], frozenset()))
            if self.frame.path == ():
                self.returned = last
            with self.e.at(last):
                return None if last.value is None else self.expression(last.value)
        if isinstance(last, ast.If) and _returns(last):
            self.block(body[:-1], live_before([last], frozenset()))
            return self._returning_if(last, key)
        self.block(body, frozenset())
        return None

    def _returning_if(self, node: ast.If, key: tuple[object, ...]) -> Value | None:
        """Results of two branches: what they return is put into the same cells."""
        with self.e.at(node):
            condition = self.condition(node.test)
            if condition.known is not None:
                return self._returning(
                    list(node.body if condition.known else node.orelse), (*key, id(node))
                )
            cells = _ReturnCells(self, (*key, id(node)))
            names = dict(self.frame.names)
            head = f"scf.if {condition.ssa} {{"
            with self.e.block(head, end=""):
                self._refine(node.test, holds=True)
                cells.put(self._returning(list(node.body), (*key, id(node), 0)))
            self.frame.names = dict(names)
            with self.e.block("} else {"):
                self._refine(node.test, holds=False)
                cells.put(self._returning(list(node.orelse), (*key, id(node), 1)))
            self.frame.names = names
            return cells.get()

    def block(self, body: Sequence[ast.stmt], after: frozenset[str]) -> None:
        for at, statement in enumerate(body):
            live = live_before(body[at + 1 :], after)
            with self.e.at(statement):
                self.statement(statement, live)

    def statement(self, node: ast.stmt, live: frozenset[str]) -> None:
        match node:
            case ast.Assign(targets, value):
                self._assign(targets, value)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self._assign([target], value)
            case ast.AugAssign(target, op, value):
                self._augmented(target, op, value)
            case ast.For():
                self._for(node, live)
            case ast.While():
                self._while(node, live)
            case ast.If():
                self._if(node, live)
            case Element(value):
                self._told_element(value)
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.expression(value)
            case ast.Assert(test, message):
                self._assert(test, message)
            case ast.Raise():
                self._raise(node)
            case ast.With():
                self._with(node, live)
            case ast.Global() | ast.Nonlocal():
                raise self.refused(
                    "a global variable cannot be changed", "hand it over, and hand it back"
                )
            case ast.Try():
                raise self.not_there("try", node, "test for what may go wrong with if")
            case ast.FunctionDef(name):
                self.bind_name(name, self.closures.made(node))
            case ast.Import() | ast.ImportFrom():
                raise self.not_there("import", node, "import outside of the function")
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.frame.names.pop(target.id, None)
            case ast.Return():
                raise self.refused("a return is at the end of the function here", "")
            case _:
                what = type(node).__name__.lower()
                raise self.not_there(f"'{what}'", node, "write it with for, while and if")

    def _assert(self, test: ast.expr, message: ast.expr | None) -> None:
        condition = self.condition(test)
        words = ""
        if message is not None:
            if not isinstance(message, ast.Constant) or not isinstance(message.value, str):
                raise self.refused("the text of an assert is a constant here", "", node=message)
            words = message.value
        if condition.known:
            return
        if condition.known is None:
            self.a.raise_unless(self.a.value(condition, BOOL), "AssertionError", words)
        else:
            self._raise_here(AssertionError, words)

    def _raise(self, node: ast.Raise) -> None:
        match node.exc:
            case ast.Call(ast.Name(kind), [ast.Constant(str(words))], []):
                pass
            case ast.Call(ast.Name(kind), [], []) | ast.Name(kind):
                words = ""
            case _:
                raise self.refused("an exception with a constant text is raised here", "")
        found = getattr(builtins, kind, None)
        if not (isinstance(found, type) and issubclass(found, Exception)):
            raise self.refused(f"{kind} is no exception of Python's own", "raise ValueError(…)")
        self._raise_here(found, words)

    def _raise_here(self, kind: type[Exception], words: str) -> None:
        """What every run does needs no run: all arrays are as they were after one."""
        if self.e.is_certain and self.e.plain:
            raise self.refused(words or kind.__name__, "", kind)
        self.a.raise_unless(self.a.value(constant(False), BOOL), kind.__name__, words)

    def _with(self, node: ast.With, live: frozenset[str]) -> None:
        raise self.not_there("with", node, "leave it out")

    # -- assignment --------------------------------------------------------------------------------

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        found = self.expression(value)
        if len(targets) > 1 and isinstance(found, Lazy):
            found = self._kept(found)
        for target in targets:
            self._bind(target, found)

    def _bind(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self.bind_name(name, value)
            case ast.Tuple(elts) | ast.List(elts):
                parts = self._parts(value, len(elts), target)
                for each, part in zip(elts, parts, strict=True):
                    self._bind(each, part)
            case ast.Subscript():
                self._store(target, value)
            case _:
                raise self.refused(
                    "this cannot be assigned to", "assign to names and elements", node=target
                )

    def _parts(self, value: Value, count: int, node: ast.AST) -> list[Value]:
        """Of something that is unpacked."""
        match value:
            case tuple():
                found = list(value)
            case Array() if value.shape and value.shape[0].known is not None:
                found = [self.item(value, [affine(number(k))]) for k in range(value.shape[0].known)]
            case Fixed(inner) if isinstance(inner, tuple | list):
                found = [self.constant(each) for each in inner]
            case _:
                raise self.refused("this cannot be unpacked", "", TypeError, node=node)
        if len(found) != count:
            raise self.refused(
                f"{count} values are wanted, and there are {len(found)}", "", ValueError, node=node
            )
        # All are evaluated before any is bound: a, b = b, a.
        return [self._kept(each) if isinstance(each, Lazy) else each for each in found]

    def bind_name(self, name: str, value: Value) -> None:
        if isinstance(value, Fixed) and isinstance(value.value, Held):
            value = self.loaded(value.value)
        if isinstance(value, Method):
            raise self.refused("a method is called where it is named", "")
        if isinstance(value, Lazy):
            value = self._kept(value)
        if isinstance(value, Lazy):
            self.frame.names[name] = value
            return
        cell = self.frame.names.get(name)
        if not isinstance(cell, Cell):
            if isinstance(value, Number) and value.linear is None and value.known is not None:
                value = Number(value.kind, constant=value.known)
            self.frame.names[name] = value
            return
        if cell.memory is not None and cell.memory.shape:
            self._into_array(cell, name, value)
            return
        if isinstance(value, Array) and value.own and cell.memory is None and self._sized(value):
            self.kinds[cell.key] = ArrayKind(Kind(value.kind.dtype), value.extents)
            raise Restart
        if not isinstance(value, Number):
            raise self.refused(
                f"'{name}' becomes {_word(value)} in a loop or a branch, and is used after it",
                "give it another name there, or assign to its elements: name[:] = …",
                HangsOnTheIteration,
            )
        self._store_cell(cell, value)

    def _kept(self, value: Lazy) -> Array | Lazy:
        """In memory, so that it stays what it is now."""
        if value.mask is None:
            return self.arrays.materialised(value)
        return self.arrays.frozen(value)

    def _into_array(self, cell: Cell, name: str, value: Value) -> None:
        """A name of an array that a loop binds again: its elements change."""
        assert cell.memory is not None
        if isinstance(value, Array) and not value.own:
            raise self.refused(
                f"'{name}' names another array in each iteration",
                f"copy the elements: {name}[:] = …",
                HangsOnTheIteration,
            )
        if (
            not isinstance(value, Array)
            or value.shape != cell.memory.shape
            or value.kind.dtype != cell.memory.kind.dtype
        ):
            raise self.refused(
                f"'{name}' becomes an array of another kind in a loop or a branch",
                "give it another name there",
                HangsOnTheIteration,
            )
        self.arrays.assign(cell.memory, value)

    def _store_cell(self, cell: Cell, value: Number) -> None:
        kind = value.kind if cell.kind is None else joined(cell.kind, value.kind)
        if kind != cell.kind:
            self.kinds[cell.key] = kind
            raise Restart
        assert cell.memory is not None
        self.arrays.store(value, cell.memory, [])

    def _augmented(self, target: ast.expr, op: ast.operator, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                before = self.name(name, target)
                if isinstance(before, Array):  # in place, as NumPy
                    self._update(before, op, self.expression(value))
                    return
                after = self.binary(op, before, self.expression(value))
                self.bind_name(name, after)
            case ast.Subscript(base, index):
                array = self._array(self.expression(base), base)
                places = self.indices(index, array)
                if _is_picked(places):
                    old = self._picked(array, places, index)
                    new = self.operand(self.binary(op, old, self.expression(value)))
                    self._put(array, places, new)
                    return
                part = self.subscripted(array, places)
                if not part.shape:
                    given = self.expression(value)
                    old = self.arrays.load(part, [])
                    new = self.number(self.binary(op, old, given), value)
                    self._store_number(new, part, target)
                else:
                    self._update(part, op, self.expression(value))
            case _:
                raise self.refused("this cannot be assigned to", "", node=target)

    def _update(self, part: Array, op: ast.operator, value: Value) -> None:
        result = self.binary(op, part, value)
        kind = result.kind if isinstance(result, Array | Lazy | Number) else part.kind
        if not np.can_cast(kind.dtype, part.kind.dtype, "same_kind"):
            raise self.refused(
                f"an array of {part.kind} cannot take {kind} in place", "", TypeError
            )
        if not isinstance(result, Array | Lazy | Number):
            raise self.refused("this cannot be added to an array", "")
        self.arrays.assign(part, result)

    def _store(self, target: ast.Subscript, value: Value) -> None:
        base = self.expression(target.value)
        array = self._array(base, target.value)
        if isinstance(value, Listed):
            value = value.array
        with self.e.at(target):
            places = self.indices(target.slice, array)
            if _is_picked(places):
                self._put(array, places, self.operand(value))
                return
            part = self.subscripted(array, places)
            if isinstance(value, Fixed) and isinstance(value.value, Held):
                value = self.loaded(value.value)
            if not isinstance(value, Number | Array | Lazy):
                raise self.refused("only numbers and arrays are elements", "", TypeError)
            if not part.shape:
                self._store_number(self.number(value, target), part, target)
            else:
                self.arrays.assign(part, value)

    def _put(self, array: Array, places: Sequence[Any], value: Operand) -> None:
        """Assignment under a mask, or to places that arrays name."""
        if _is_mask(places[0]):
            self.arrays.assign_masked(array, places[0], value)
        else:
            self.arrays.scatter(array, places, value)

    def _picked(self, array: Array, places: Sequence[Any], node: ast.expr) -> Lazy:
        """The elements under a mask, or at places that arrays name."""
        if _is_mask(places[0]):
            if len(places) > 1:
                raise self.refused("a mask is the only subscript here", "write it as a loop")
            return self.arrays.masked(array, places[0], ast.dump(node))
        return self.arrays.gathered(array, places)

    def _store_number(self, value: Number, part: Array, node: ast.AST) -> None:
        if value.kind.is_complex and not part.kind.is_complex:
            raise self.refused(
                "a complex number is no real one", "take its .real", TypeError, node=node
            )
        self.arrays.store(value, part, [])

    # -- conditions --------------------------------------------------------------------------------

    def condition(self, node: ast.expr) -> Number:
        value = self.expression(node)
        if isinstance(value, Fixed) and not isinstance(value.value, Held):
            return Number(BOOL, constant=bool(value.value))
        return self.a.truth(self.number(value, node))

    def _if(self, node: ast.If, live: frozenset[str]) -> None:
        condition = self.condition(node.test)
        if condition.known is not None:
            self.block(node.body if condition.known else node.orelse, live)
            return
        cells = self.cells_of(node, live)
        with self.e.block(f"scf.if {condition.ssa} {{", end="" if node.orelse else "}"):
            self._refine(node.test, holds=True)
            self._scoped(node.body, live)
        if node.orelse:
            with self.e.block("} else {"):
                self._refine(node.test, holds=False)
                self._scoped(node.orelse, live)
        self._settle(cells, live)

    def _scoped(self, body: Sequence[ast.stmt], live: frozenset[str]) -> None:
        """What is bound in there is gone afterwards, but for cells."""
        names = dict(self.frame.names)
        self.block(body, live)
        self.frame.names = names

    def _refine(self, test: ast.expr, *, holds: bool) -> None:
        """What a comparison says of a loop's variable, in the branch."""
        match test:
            case ast.BoolOp(ast.And(), values) if holds:
                for each in values:
                    self._refine(each, holds=True)
            case ast.BoolOp(ast.Or(), values) if not holds:
                for each in values:
                    self._refine(each, holds=False)
            case ast.UnaryOp(ast.Not(), inner):
                self._refine(inner, holds=not holds)
            case ast.Compare(left, [op], [right]):
                with self.e.aside():
                    x, y = self._linear_of(left), self._linear_of(right)
                if x is not None and y is not None:
                    self._narrow(x - y, type(op) if holds else _OPPOSITE.get(type(op), ast.Is))

    def _linear_of(self, node: ast.expr) -> Linear | None:
        if not isinstance(node, ast.Name | ast.Constant | ast.BinOp | ast.Subscript):
            return None
        if any(isinstance(each, _NOT_AGAIN) for each in ast.walk(node)):
            return None
        try:
            value = self.expression(node)
        except AvialError:
            return None
        return value.linear if isinstance(value, Number) else None

    def _narrow(self, apart: Linear, op: type[ast.cmpop]) -> None:
        """`apart` compared with 0 holds."""
        for name, factor in apart.terms.items():
            if abs(factor) != 1 or name not in self.e.ranges:
                continue
            rest = apart - term(name).scaled(factor)
            # name * factor + rest op 0
            end = (-rest).scaled(factor)
            if any(_defined_after(other, name, self.e.ranges) for other in rest.terms):
                continue
            up = op in (ast.Gt, ast.GtE) if factor > 0 else op in (ast.Lt, ast.LtE)
            down = op in (ast.Lt, ast.LtE) if factor > 0 else op in (ast.Gt, ast.GtE)
            by = number(1 if op in (ast.Gt, ast.Lt) else 0)
            old = self.e.ranges[name]
            if (up or op is ast.Eq) and _is_better(end, old.least, self.e.ranges, up=True):
                old = replace(old, least=end + (by if up else number(0)))
            if (down or op is ast.Eq) and _is_better(end, old.most, self.e.ranges, up=False):
                old = replace(old, most=end - (by if down else number(0)))
            self.e.ranges[name] = old

    # -- variables that are handed on --------------------------------------------------------------

    def cells_of(self, node: ast.If | ast.For | ast.While, live: frozenset[str]) -> dict[str, Cell]:
        """Memory for the variables that the statement hands on; those in memory already stay."""
        made: dict[str, Cell] = {}
        for name in carried(node, live):
            before = self.frame.names.get(name)
            if isinstance(before, Cell):
                continue
            if isinstance(before, Array) and not is_bound(node, name):
                continue  # a += b changes its elements
            if isinstance(before, Fixed) and isinstance(before.value, Held):
                before = self.loaded(before.value)
            key = (*self.frame.path, id(node), name)
            made[name] = self._cell(key, before, name)
        for name, cell in made.items():
            self.frame.names[name] = cell
        return made

    def _cell(self, key: tuple[object, ...], before: Value | None, name: str) -> Cell:
        if isinstance(before, Array | Lazy):
            array = self.arrays.in_memory(before)
            if isinstance(before, Array) and not before.own:
                raise self.refused(
                    f"'{name}' is an array of the caller's and is bound to another in a loop or "
                    "a branch",
                    f"copy the elements: {name}[:] = …, or {name} = {name}.copy() before",
                    HangsOnTheIteration,
                )
            return Cell(key, array, array.kind)
        kind = self.kinds.get(key)
        if isinstance(kind, ArrayKind):
            return Cell(key, self.arrays.fresh(kind.kind, kind.extents), kind.kind)
        if isinstance(before, Number):
            kind = before.kind if kind is None else joined(before.kind, kind)
            return Cell(key, self.arrays.cell(kind, before), kind)
        if before is not None and not isinstance(before, Fixed):
            raise self.refused(
                f"'{name}' is {_word(before)} and is bound again in a loop or a branch",
                "give it another name there",
            )
        return Cell(key, None if kind is None else self.arrays.cell(kind), kind)

    def _settle(self, cells: Mapping[str, Cell], live: frozenset[str]) -> None:
        """After the statement: values again."""
        for name, cell in cells.items():
            if cell.memory is None or name not in live:
                self.frame.names.pop(name, None)
            elif cell.memory.shape:
                self.frame.names[name] = cell.memory
            else:
                self.frame.names[name] = self._read_cell(cell)

    def _read_cell(self, cell: Cell) -> Number:
        assert cell.memory is not None
        assert cell.kind is not None
        return replace(self.arrays.load(cell.memory, []), kind=cell.kind)

    # -- loops -------------------------------------------------------------------------------------

    def _for(self, node: ast.For, live: frozenset[str]) -> None:
        sequence = self.calls.iterated(node.iter)
        if sequence.items is not None:
            self._unrolled(node, sequence.items, live)
            return
        if isinstance(node, StoppedFor):
            self._stopped(node, sequence, node.flag, live)
            return
        before = self._here()
        try:
            self._rolled(node, sequence, live)
        except HangsOnTheIteration:
            turns = _known_turns(sequence)
            self.unrolled += 1 if turns is None else len(turns)
            if turns is None or self.unrolled > MOST_UNROLLED:
                raise
            # Sizes that hang on the loop's variable are known in each iteration by itself.
            self._back_to(before)
            self._unrolled(node, [sequence.element(number(turn)) for turn in turns], live)

    def _here(self) -> _Point:
        e = self.e
        names = dict(self.frame.names)
        return _Point(len(e.lines), len(e.entry), dict(e.ranges), e.dims, names, list(self.head))

    def _back_to(self, point: _Point) -> None:
        """Everything since then is undone."""
        del self.e.lines[point.lines :], self.e.entry[point.entry :]
        self.e.ranges, self.e.dims = dict(point.ranges), point.dims
        self.frame.names, self.head = dict(point.names), list(point.head)

    def _rolled(self, node: ast.For, sequence: Sequenced, live: frozenset[str]) -> None:
        cells = self.cells_of(node, live)
        names = dict(self.frame.names)
        low, high, step = sequence.low, sequence.high, sequence.step
        word = node.target.id if isinstance(node.target, ast.Name) else "i"
        if not (word.isascii() and word.isidentifier()) or _MADE.fullmatch(word):
            word = "i"
        known = step.known
        affine_ends = self.e.is_affine(low) and self.e.is_affine(high)
        if known is not None and known > 0 and affine_ends:
            with self.e.loop(low, high, known, word) as at:
                self._turn(node, sequence.element(at), live, cells)
        elif known is not None and known < 0:
            self._downwards(node, sequence, -known, live, cells)
        else:
            if known is None:
                one = self.e.value("arith.constant 1 : index")
                ok = self.e.value(f"arith.cmpi sge, {self.e.index(step)}, {one} : index")
                self.a.raise_unless(
                    ok, "ValueError", "the step of this range is not positive (not there yet)"
                )
            with self.arrays.plain_loop(low, high, step) as at:
                self._turn(node, sequence.element(at), live, cells)
        self.frame.names = {**names, **cells}
        self._settle(cells, live)

    def _downwards(
        self,
        node: ast.For,
        sequence: Sequenced,
        by: int,
        live: frozenset[str],
        cells: Mapping[str, Cell],
    ) -> None:
        """range(low, high, -by), counted upwards."""
        low, high = sequence.low, sequence.high
        turns = low - high
        if by != 1:
            turns = self.rounded_up(turns, by)
        if self.e.is_affine(turns):
            with self.e.loop(number(0), turns) as at:
                self._turn(node, sequence.element(low - at.scaled(by)), live, cells)
        else:
            with self.arrays.plain_loop(number(0), turns, number(1)) as at:
                self._turn(node, sequence.element(low - at.scaled(by)), live, cells)

    def rounded_up(self, count: Linear, by: int) -> Linear:
        """Divided by that."""
        up = count + number(by - 1)
        if up.known is not None:
            return number(up.known // by)
        divided = self.a.binary(ast.FloorDiv(), affine(up), affine(number(by)))
        if divided.linear is not None:
            return divided.linear
        name = self.e.value(f"arith.index_cast {self.a.value(divided)} : i64 to index")
        return term(name)

    def _turn(
        self, node: ast.For, value: Value, live: frozenset[str], cells: Mapping[str, Cell]
    ) -> None:
        self._bind(node.target, value)
        at_end = live | live_before([node], live)
        self.block(node.body, at_end)

    def _unrolled(self, node: ast.For, items: Sequence[Value], live: frozenset[str]) -> None:
        """Over a tuple."""
        for value in items:
            self._bind(node.target, value)
            self.block(node.body, live | live_before([node], live))

    def _stopped(self, node: ast.For, sequence: Sequenced, stop: str, live: frozenset[str]) -> None:
        """A loop with a break: while it has not come."""
        if sequence.step.known is None:
            raise self.refused("the step of a range with a break is a number here", "")
        step = sequence.step.known
        cells = self.cells_of(node, live)
        names = dict(self.frame.names)
        turn = self.arrays.cell(INT, affine(sequence.low))
        compare = ast.Lt() if step > 0 else ast.Gt()
        self.e.may_not_end("how long the loop runs depends on data")
        self.e.bare("scf.while : () -> () {")
        with self.e.block("", end=""):
            now = replace(self.arrays.load(turn, []), kind=INT)
            more = self.a.compared(compare, now, affine(sequence.high))
            going = self.a.negation(self.a.truth(self.number(self.name(stop, node), node)))
            both = self.e.value(
                f"arith.andi {self.a.value(more, BOOL)}, {self.a.value(going, BOOL)} : i1"
            )
            self.e.line(f"scf.condition({both})")
        with self.e.block("} do {"):
            now = replace(self.arrays.load(turn, []), kind=INT)
            name = self.e.value(f"arith.index_cast {self.a.value(now)} : i64 to index")
            ends = (sequence.low, sequence.high - number(1))
            if step < 0:
                ends = (sequence.high + number(1), sequence.low)
            self.e.ranges[name] = Range(*ends)
            self._turn(node, sequence.element(term(name)), live, cells)
            after = self.a.binary(ast.Add(), now, constant(step))
            self.arrays.store(after, turn, [])
            self.e.line("scf.yield")
        self.frame.names = {**names, **cells}
        self._settle(cells, live)

    def _while(self, node: ast.While, live: frozenset[str]) -> None:
        cells = self.cells_of(node, live)
        names = dict(self.frame.names)
        self.e.may_not_end("how long the loop runs depends on data")
        self.e.bare("scf.while : () -> () {")
        with self.e.block("", end=""):
            condition = self.condition(node.test)
            self.e.line(f"scf.condition({self.a.value(condition, BOOL)})")
        with self.e.block("} do {"):
            self.block(node.body, live | live_before([node], live))
            self.e.line("scf.yield")
        self.frame.names = {**names, **cells}
        self._settle(cells, live)

    # -- expressions -------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Value:
        with self.e.at(node):
            return self._expression(node)

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value):
                return self.constant(value)
            case ast.Name(name):
                found = self.name(name, node)
                if isinstance(found, Fixed) and isinstance(found.value, Held):
                    return self.loaded(found.value)
                return found
            case ast.BinOp(ast.Mult() as op, left, right) if isinstance(left, ast.List):
                raise self.not_there("a list", node, "make an array: np.zeros(…), np.full(…)")
            case ast.BinOp(left, op, right):
                x, y = self.expression(left), self.expression(right)
                return self.binary(op, x, y)
            case ast.UnaryOp(op, operand):
                return self._unary(op, self.expression(operand), operand)
            case ast.BoolOp(op, values):
                return self._boolean(op, values)
            case ast.Compare(left, ops, comparators):
                return self._compare(left, ops, comparators)
            case ast.IfExp(test, body, orelse):
                return self._conditional(test, body, orelse)
            case ast.Subscript(value, index):
                return self._subscript(value, index)
            case ast.Attribute(value, name):
                return self.calls.attribute(self.expression(value), name)
            case ast.Call():
                return self.calls.call(node)
            case ast.Tuple(elts) | ast.List(elts):
                return tuple(self.expression(each) for each in elts)
            case ast.JoinedStr():
                raise self.not_there("an f-string", node, "print(f'…') is, and numbers are")
            case ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp():
                raise self.not_there("a dictionary or a set", node, "use arrays")
            case ast.ListComp():
                return self.closures.listed(node)
            case ast.GeneratorExp():
                raise self.not_there(
                    "a generator", node, "sum, max, min, any and all take one; or make a list"
                )
            case ast.Lambda():
                return self.closures.made(node)
            case ast.NamedExpr(ast.Name(name), value):
                found = self.expression(value)
                self.bind_name(name, found)
                return self.name(name, node)
            case _:
                what = type(node).__name__.lower()
                raise self.not_there(f"'{what}'", node, "write it with arithmetic and arrays")

    def constant(self, value: object) -> Value:
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and not -(1 << 63) <= value < 1 << 63
        ):
            raise self.refused(f"{value} does not fit into 64 bits", "use a float", OverflowError)
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

    def name(self, name: str, node: ast.AST) -> Value:
        found = self.frame.names.get(name)
        if isinstance(found, Cell):
            if found.memory is None:
                if found.kind is None and found.key in self.kinds:
                    raise Restart
                raise self.refused(f"'{name}' is used before it is bound", "", NameError, node=node)
            return found.memory if found.memory.shape else self._read_cell(found)
        if found is not None:
            return found
        if self.frame.outer is not None and name not in self.frame.own:
            inner, self.frame = self.frame, self.frame.outer
            try:
                return self.name(name, node)
            finally:
                self.frame = inner
        code = self.frame.function.__code__
        if name in self.frame.own or name in (*code.co_varnames, *code.co_cellvars):
            raise self.refused(
                f"'{name}' may be used before it is bound",
                "bind it before the loop or branch",
                UnboundLocalError,
                node=node,
            )
        return self.constant(self._outside(name, node))

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

    def binary(self, op: ast.operator, x: Value, y: Value) -> Value:
        if isinstance(op, ast.MatMult):
            return self._matmul(x, y)
        if isinstance(x, tuple) and isinstance(y, tuple) and isinstance(op, ast.Add):
            return (*x, *y)
        if isinstance(x, Number) and isinstance(y, Number):
            return self.a.binary(op, x, y)
        self._refuse_lists(x, y)
        x, y = self.operand(x), self.operand(y)
        kind = self.result_kind(lambda a, b: self.a.binary(op, a, b), x, y)
        return self.calls.elementwise(kind, lambda a, b: self.a.binary(op, a, b), x, y)

    def _refuse_lists(self, *values: Value) -> None:
        """Their operators are those of lists."""
        if any(isinstance(each, Listed) for each in values):
            raise self.refused("a list is no array", "make it one: np.array([…])", TypeError)

    def result_kind(self, compute: Callable[..., Number], *operands: Value) -> Kind:
        """Of one element, found by trying."""
        with self.e.aside():
            tried = [
                each if isinstance(each, Number) else Number(each.kind, ssa="%tried")
                for each in operands
                if isinstance(each, Number | Array | Lazy)
            ]
            return compute(*tried).kind

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

    def _matmul(self, x: Value, y: Value) -> Value:
        left, right = self.operand(x), self.operand(y)
        if isinstance(left, Number) or isinstance(right, Number):
            raise self.refused("@ multiplies arrays", "use *", TypeError)
        return self.arrays.product(left, right)

    def _unary(self, op: ast.unaryop, x: Value, node: ast.expr) -> Value:
        if isinstance(x, Fixed) and isinstance(op, ast.Not):
            return constant(not x.value)
        self._refuse_lists(x)
        x = self.operand(x)
        if isinstance(x, Number):
            return self.a.unary(op, x)
        if isinstance(op, ast.Not):
            return self.a.unary(op, self.number(x, node))
        kind = self.result_kind(lambda a: self.a.unary(op, a), x)
        return self.calls.elementwise(kind, lambda a: self.a.unary(op, a), x)

    def _boolean(self, op: ast.boolop, values: Sequence[ast.expr]) -> Value:
        """The second is looked at only where the first does not decide."""
        self._refuse_bindings(*values[1:])
        stops = isinstance(op, ast.Or)
        found = self.condition(values[0])
        for node in values[1:]:
            if found.known is not None:
                if bool(found.known) == stops:
                    return found
                found = self.condition(node)
                continue
            with self.e.aside() as lines:
                ranges = dict(self.e.ranges)
                self._refine(values[0], holds=not stops)
                second = self.condition(node)
                ssa = self.a.value(second, BOOL)
                self.e.ranges = ranges
            if not any("load" in line or "assert" in line for line in lines):
                self.e.lines += lines
                name = "ori" if stops else "andi"
                found = Number(BOOL, ssa=self.e.value(f"arith.{name} {found.ssa}, {ssa} : i1"))
                continue
            name = self.e.fresh()
            with self.e.block(f"{name} = scf.if {found.ssa} -> (i1) {{", end=""):
                if stops:
                    true = self.e.value("arith.constant true")
                    self.e.line(f"scf.yield {true} : i1")
                else:
                    self.e.lines += [f"  {line}" for line in lines]
                    self.e.line(f"scf.yield {ssa} : i1")
            with self.e.block("} else {"):
                if stops:
                    self.e.lines += [f"  {line}" for line in lines]
                    self.e.line(f"scf.yield {ssa} : i1")
                else:
                    false = self.e.value("arith.constant false")
                    self.e.line(f"scf.yield {false} : i1")
            found = Number(BOOL, ssa=name)
        return found

    def _refuse_bindings(self, *nodes: ast.expr) -> None:
        """Of what may not be computed."""
        for node in nodes:
            if binds_in(node):
                raise self.refused(
                    "':=' is where it is always computed here", "bind it before", node=node
                )

    def _compare(
        self, left: ast.expr, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr]
    ) -> Value:
        self._refuse_bindings(*comparators[1:])
        x = self.expression(left)
        found: Value | None = None
        for op, node in zip(ops, comparators, strict=True):
            y = self.expression(node)
            told = self._compared(op, x, y)
            if found is None:
                found = told
            elif isinstance(found, Number) and isinstance(told, Number):
                found = self._both_hold(found, told)
            else:
                raise self.refused("arrays are compared two at a time", "use (a < b) & (b < c)")
            x = y
        assert found is not None
        return found

    def _both_hold(self, x: Number, y: Number) -> Number:
        for one, other in ((x, y), (y, x)):
            if one.known is not None:
                return other if one.known else one
        ssa = self.e.value(f"arith.andi {x.ssa}, {y.ssa} : i1")
        return Number(BOOL, ssa=ssa)

    def _compared(self, op: ast.cmpop, x: Value, y: Value) -> Value:
        if isinstance(op, ast.Is | ast.IsNot):
            same = self._is_same(x, y)
            return constant(same if isinstance(op, ast.Is) else not same)
        if isinstance(x, Fixed) and isinstance(y, Fixed):
            equal = x.value == y.value
            if isinstance(op, ast.Eq | ast.NotEq):
                return constant(bool(equal) if isinstance(op, ast.Eq) else not equal)
        if isinstance(op, ast.In | ast.NotIn):
            return self._contained(op, x, y)
        self._refuse_lists(x, y)
        if isinstance(x, tuple) and isinstance(y, tuple) and isinstance(op, ast.Eq | ast.NotEq):
            equal = len(x) == len(y) and all(
                self.number(self._compared(ast.Eq(), a, b), ast.Pass()).known is True
                for a, b in zip(x, y, strict=True)
            )
            return constant(equal if isinstance(op, ast.Eq) else not equal)
        x, y = self.operand(x), self.operand(y)
        if isinstance(x, Number) and isinstance(y, Number):
            return self.a.compared(op, x, y)
        kind = Kind(np.dtype(np.bool_))
        return self.calls.elementwise(kind, lambda a, b: self.a.compared(op, a, b), x, y)

    def _contained(self, op: ast.cmpop, x: Value, y: Value) -> Value:
        """In a tuple; in an array, any of it."""
        if isinstance(y, Fixed) and isinstance(y.value, range | tuple | list | set | frozenset):
            y = tuple(self.constant(each) for each in y.value)
        if not isinstance(y, tuple) or not isinstance(x, Number | Fixed):
            raise self.refused("'in' asks for a number in a tuple here", "compare in a loop")
        found = Number(BOOL, constant=False)
        for each in y:
            equal = self.number(self._compared(ast.Eq(), x, each), ast.Pass())
            found = self._either_holds(found, self.a.truth(equal))
        return found if isinstance(op, ast.In) else self.a.negation(found)

    def _either_holds(self, x: Number, y: Number) -> Number:
        for one, other in ((x, y), (y, x)):
            if one.known is not None:
                return one if one.known else other
        return Number(BOOL, ssa=self.e.value(f"arith.ori {x.ssa}, {y.ssa} : i1"))

    def _is_same(self, x: Value, y: Value) -> bool:
        if isinstance(x, Fixed) and isinstance(y, Fixed):
            return x.value is y.value
        return x is y

    def _conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        self._refuse_bindings(body, orelse)
        condition = self.condition(test)
        if condition.known is not None:
            return self.expression(body if condition.known else orelse)
        ranges = dict(self.e.ranges)
        with self.e.aside() as first:
            self._refine(test, holds=True)
            x = self.expression(body)
            self.e.ranges = dict(ranges)
        with self.e.aside() as second:
            self._refine(test, holds=False)
            y = self.expression(orelse)
            self.e.ranges = dict(ranges)
        if not isinstance(x, Number) or not isinstance(y, Number):
            raise self.refused("both sides of a condition are numbers here", "use if … else …")
        kind = promoted(x.kind, y.kind)
        with self.e.aside() as first_end:
            left = self.a.value(x, kind)
        with self.e.aside() as second_end:
            right = self.a.value(y, kind)
        first, second = [*first, *first_end], [*second, *second_end]
        if not any("load" in line or "assert" in line for line in (*first, *second)):
            self.e.lines += [*first, *second]
            text = f"arith.select {condition.ssa}, {left}, {right} : {kind.mlir}"
            return Number(kind, ssa=self.e.value(text))
        name = self.e.fresh()
        with self.e.block(f"{name} = scf.if {condition.ssa} -> ({kind.mlir}) {{", end=""):
            self.e.lines += [f"  {line}" for line in first]
            self.e.line(f"scf.yield {left} : {kind.mlir}")
        with self.e.block("} else {"):
            self.e.lines += [f"  {line}" for line in second]
            self.e.line(f"scf.yield {right} : {kind.mlir}")
        return Number(kind, ssa=name)

    # -- subscripts --------------------------------------------------------------------------------

    def _subscript(self, value: ast.expr, index: ast.expr) -> Value:
        base = self.expression(value)
        if isinstance(base, tuple):
            at = self.expression(index) if not isinstance(index, ast.Slice) else None
            if at is None:
                return base[self._known_slice(index)]
            known = self.number(at, index).known
            if not isinstance(known, int):
                raise self.refused("the index of a tuple is a constant here", "", node=index)
            if not -len(base) <= known < len(base):
                raise self.refused("tuple index out of range", "", IndexError, node=index)
            return base[known]
        if isinstance(base, Listed):
            return self._of_list(base, index)
        if isinstance(base, Lazy):
            base = self.arrays.materialised(base)
        if isinstance(base, Fixed) and base.value is np.mgrid:
            return self.calls.grid(index)
        array = self._array(base, value)
        places = self.indices(index, array)
        if _is_picked(places):
            return self._picked(array, places, index)
        return self.item_at(array, places)

    def _of_list(self, of: Listed, index: ast.expr) -> Value:
        if isinstance(index, ast.Tuple):
            raise self.refused("list indices must be integers or slices", "", TypeError)
        places = self.indices(index, of.array)
        if _is_picked(places) or None in places:
            raise self.refused("list indices must be integers or slices", "", TypeError)
        return self.list_item(of, places)

    def list_item(self, of: Listed, index: Sequence[Index]) -> Value:
        found = self.item(of.array, index)
        if isinstance(found, Number):
            return replace(found, kind=of.kind)
        assert isinstance(found, Array)
        return Listed(found, of.kind)

    def _told_element(self, node: ast.expr) -> None:
        """What a list holds."""
        value, key = self.expression(node), self.list_kinds[-1]
        if isinstance(value, tuple):
            value = self.calls.array_of(value)
        if isinstance(value, Number):
            self.kinds[key] = value.kind
        elif isinstance(value, Array | Lazy | Listed):
            shape = value.array.shape if isinstance(value, Listed) else value.shape
            if any(not extent.terms.keys() <= self.e.sizes for extent in shape):
                raise self.refused(
                    "the elements of this list differ in length, or may",
                    "make an array, np.empty(…), and fill it in a loop",
                )
            self.kinds[key] = ArrayKind(value.kind, shape)
        else:
            raise self.refused(f"a list of numbers or arrays, not of {_word(value)}", "")
        raise Restart

    def _known_slice(self, node: ast.expr) -> slice:
        assert isinstance(node, ast.Slice)
        ends: list[int | None] = []
        for each in (node.lower, node.upper, node.step):
            known = None if each is None else self.number(self.expression(each), each).known
            ends.append(known if isinstance(known, int) else None)
        return slice(*ends)

    def item(self, array: Array, index: Sequence[Index]) -> Value:
        part = self.arrays.view(array, index)
        return part if part.shape or not array.shape else self.arrays.load(part, [])

    def item_at(self, array: Array, index: Sequence[Any]) -> Value:
        part = self.subscripted(array, index)
        if part.shape:
            return part
        return self.arrays.load(part, [])

    def subscripted(self, array: Array, index: Sequence[Any]) -> Array:
        return self.arrays.view(array, index)

    def indices(self, node: ast.expr, array: Array) -> list[Any]:
        """What stands between the brackets."""
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Slice):
                ends = [
                    None if end is None else self._slice_end(end)
                    for end in (each.lower, each.upper, each.step)
                ]
                found.append(slice(*ends))
                continue
            value = self.expression(each)
            if isinstance(value, Fixed) and value.value is None:
                found.append(None)
            elif isinstance(value, Fixed) and value.value is Ellipsis:
                found.append(Ellipsis)
            elif isinstance(value, tuple):
                found += list(value)
            elif isinstance(value, Array | Lazy) and value.shape:
                found.append(value)
            else:
                found.append(self.number(value, each))
        if Ellipsis in [each for each in found if each is Ellipsis]:
            at = next(k for k, each in enumerate(found) if each is Ellipsis)
            used = sum(each is not None and each is not Ellipsis for each in found)
            found[at : at + 1] = [slice(None)] * (len(array.shape) - used)
        return found

    def _slice_end(self, node: ast.expr) -> Number | None:
        value = self.expression(node)
        if isinstance(value, Fixed) and value.value is None:
            return None
        return self.number(value, node)

    # -- calls of other functions ------------------------------------------------------------------

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


_SOURCES: dict[object, FunctionSource] = {}

_NOT_AGAIN = (ast.Call, ast.NamedExpr, ast.ListComp)
"""What is computed once."""


@dataclass(frozen=True)
class _Point:
    """How far a translation has come."""

    lines: int
    entry: int
    ranges: Mapping[str, Range]
    dims: frozenset[str]
    names: Mapping[str, Value | Cell]
    head: list[str]


def _known_turns(sequence: Sequenced) -> range | None:
    """The few values that a loop's variable takes, where they are known."""
    low, high, step = (each.known for each in (sequence.low, sequence.high, sequence.step))
    if low is None or high is None or not step:
        return None
    turns = range(low, high, step)
    return turns if len(turns) <= MOST_UNROLLED else None


@dataclass
class _ReturnCells:
    """What two branches return, in memory of one element each."""

    t: Translation
    key: tuple[object, ...]

    def __post_init__(self) -> None:
        self.cells: list[Cell] = []
        self.is_tuple: bool | None = None
        k = 0
        while (kind := self.t.kinds.get((*self.key, "result", k))) is not None:
            assert isinstance(kind, Kind)
            self.cells.append(Cell((*self.key, "result", k), self.t.arrays.cell(kind), kind))
            k += 1

    def put(self, value: Value | None) -> None:
        parts = list(value) if isinstance(value, tuple) else [] if value is None else [value]
        if self.is_tuple not in (None, isinstance(value, tuple)):
            raise self.t.refused(
                "the branches return different things", "return as many everywhere"
            )
        self.is_tuple = isinstance(value, tuple)
        missing = False
        for k, part in enumerate(parts):
            if not isinstance(part, Number):
                if isinstance(part, Fixed) and part.value is None and not self.cells:
                    return
                raise self.t.refused(
                    "branches that return arrays are not there", "fill one array in both branches"
                )
            if k >= len(self.cells):
                self.t.kinds[(*self.key, "result", k)] = part.kind
                missing = True
                continue
            self.t._store_cell(self.cells[k], part)
        if missing:
            raise Restart

    def get(self) -> Value | None:
        found = tuple(self.t._read_cell(cell) for cell in self.cells)
        if not found:
            return None
        return found if self.is_tuple else found[0]


def _is_picked(places: Sequence[Any]) -> bool:
    """Whether arrays are among the subscripts."""
    return any(isinstance(each, Array | Lazy) for each in places)


def _is_mask(place: object) -> bool:
    return isinstance(place, Array | Lazy) and place.kind.is_bool


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
}


def _defined_after(other: str, name: str, ranges: Mapping[str, Range]) -> bool:
    order = list(ranges)
    return other not in ranges or order.index(other) > order.index(name)


def _is_better(end: Linear, old: Linear | None, ranges: Mapping[str, Range], *, up: bool) -> bool:
    if old is None:
        return True
    apart = end - old
    if up:
        low = least(apart, ranges)
        return low is not None and low >= 0
    high = most(apart, ranges)
    return high is not None and high <= 0


def _returns(node: ast.If) -> bool:
    def ends(body: Sequence[ast.stmt]) -> bool:
        if not body:
            return False
        last = body[-1]
        return isinstance(last, ast.Return) or (isinstance(last, ast.If) and _returns(last))

    return ends(node.body) or ends(node.orelse)


def _renamed(line: str, old: str, new: str) -> str:
    if old not in line:
        return line
    return re.sub(rf"{re.escape(old)}(?![\w$.-])", new, line)


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
