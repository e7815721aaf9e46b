"""A Python function and what it is called with -> the text of a func.func.

Statements become loops, conditions and accesses to memory, each at its place in the Python source.
A variable is an SSA value; one whose value matters beyond the iteration or branch that binds it is
memory of one element there. Whatever has another meaning than Python's is refused at its place.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import affine
from avial_lab.compiler.frontends.python.calls import Calls
from avial_lab.compiler.frontends.python.closures import Closures
from avial_lab.compiler.frontends.python.frames import Kinds, Restart
from avial_lab.compiler.frontends.python.jumps import Jumps
from avial_lab.compiler.frontends.python.kinds import INT64, Kind
from avial_lab.compiler.frontends.python.linear import Linear, Range, number, term
from avial_lab.compiler.frontends.python.prints import Prints
from avial_lab.compiler.frontends.python.scheduled import Scheduled
from avial_lab.compiler.frontends.python.signature import (
    MOST_FIXED,
    Argument,
    ArrayArgument,
    NumberArgument,
    Result,
    ResultArray,
    ResultNumber,
    ResultPart,
    ResultView,
    Translated,
)
from avial_lab.compiler.frontends.python.source import source_of
from avial_lab.compiler.frontends.python.statements import Statements
from avial_lab.compiler.frontends.python.tasks import Arrangement, named_in
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Held,
    Lazy,
    Listed,
    Number,
    Value,
    memref,
    whole,
)
from avial_lab.core.errors import VerifyError

MOST_RESTARTS = 200


ARGUMENT = "result"


_OWN = re.compile(r"%own_\d+")


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
class Translation(Statements):
    """The work of one `translate`."""

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
                "*args and **kwargs are not supported", "name each parameter", node=self.source.tree
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
        if value.memory in self.arrays.views:
            return self._result_array(self.arrays.materialised(value))
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


def _renamed(line: str, old: str, new: str) -> str:
    if old not in line:
        return line
    return re.sub(rf"{re.escape(old)}(?![\w$.-])", new, line)
