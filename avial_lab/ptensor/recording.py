"""What has been asked for and not been run: statements of a program in the ptensor dialect.

Operations on arrays -> text of a function whose arguments are arrays in memory. Names are numbers
in the order of recording, and numbers of the person's are elements of tables, so that the same work
gives the same text again, which is then compiled already.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

import numpy as np

from avial_lab.core.array_functions import (
    is_blockwise,
    is_exact,
    is_exact_cast,
    is_multiplied_in_order,
    is_summed_in_order,
    size,
)
from avial_lab.core.errors import AvialError
from avial_lab.ptensor.aliases import Alias
from avial_lab.ptensor.elements import memory_type, value_type
from avial_lab.ptensor.layouts import DEFAULT, attribute_of
from avial_lab.ptensor.rerolling import (
    MEMORY,
    MOST_IN_TURN,
    VALUE,
    Carried,
    Loop,
    Statement,
    rerolled,
    turn_of,
)
from avial_lab.runtime.rank.holders import Resident
from avial_lab.runtime.rank.interpreter import INTEGERS, OF_MEMORY, REALS, Operation, Part


@dataclass(eq=False)
class Memory:
    """An array's elements: on the engines, or to come.

    resident: where they are between runs. value: their name as a whole in the recording; name: that
    of the memory there. A memory without either has no element that anybody has written. line: of
    the person's that made it. dist: of the value. elements: arrays that are one of its, by `id`.
    aliases: memories that look at the same elements; looks_at: one of these, that it keeps. before:
    where it was until the recording gave it a new value. strides: in NumPy, in elements, where it
    is a view there. stays: others have its memory, so it is written where it lies.
    read_only: the caller's, which may not be written.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    resident: Resident | None = None
    value: str | None = None
    name: str | None = None
    lost: bool = False
    line: Line | None = None
    dist: str = DEFAULT
    elements: dict[int, weakref.ref[Element]] = field(default_factory=dict)
    aliases: list[Alias] = field(default_factory=list["Alias"])
    looks_at: Memory | None = None
    before: Resident | None = None
    strides: tuple[int, ...] | None = None
    stays: bool = False
    read_only: bool = False


class Element(Protocol):
    """An array of one element of a memory, whose value is its own."""

    def detach(self) -> None: ...


class Value(NamedTuple):
    """What an operation of the recording gives. dist: how it lies, as text of an attribute."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    dist: str = DEFAULT


class _Form:
    """An operation without names: all that recordings of it share, and what it takes to write it is
    done once. operation: without names. opcode, rest: around the operands in the text; given: what
    stands there in place of its operands. exact: whether whoever computes it gives the same bits.
    mark: of the text, the same in every process.
    """

    __slots__ = ("exact", "given", "mark", "opcode", "operation", "rest")

    def __init__(
        self, operation: Operation, opcode: str, rest: str, *, given: str = "", exact: bool = True
    ) -> None:
        self.operation, self.opcode, self.rest = operation, opcode, rest
        self.given, self.exact = given, exact
        text = f"{opcode}({given}){rest}".encode()
        self.mark = blake2b(text, digest_size=_MARK_BYTES).hexdigest()


class _Statement(NamedTuple):
    """An operation with its names. line: of the person's that asked for it."""

    form: _Form
    result: str
    operands: tuple[str, ...]
    line: Line | None = None

    @property
    def text(self) -> str:
        form = self.form
        operands = form.given or ", ".join(self.operands)
        made = f"{self.result} = " if self.result else ""
        return f"{made}{form.opcode}({operands}){form.rest}"

    @property
    def operation(self) -> Operation:
        return self.form.operation._replace(result=self.result, operands=self.operands)

    @property
    def defines(self) -> str | None:
        return self.result or None

    @property
    def uses(self) -> tuple[str, ...]:
        """Which values."""
        kind = self.form.operation.kind
        return self.operands[:-1] if kind in OF_MEMORY else self.operands

    @property
    def reads(self) -> str | None:
        """Which memory."""
        return self.operands[0] if self.form.operation.kind == "load" else None

    @property
    def writes(self) -> str | None:
        """Which memory."""
        return self.operands[1] if self.form.operation.kind in ("store", "insert") else None


@dataclass(frozen=True)
class Argument:
    """A memory of the recording: its array on the engines, and who still looks at it."""

    shape: tuple[int, ...]
    dtype: np.dtype
    resident: Resident | None
    memory: weakref.ref[Memory]


@dataclass(frozen=True)
class Recorded:
    """A program to run: its text; what each of its arrays is, by name, and which it writes; its
    operations one by one, where they are few and on small arrays, and have the same bits whoever
    computes them. alone: the arrays written that hang on none that was there before.
    """

    text: str
    arrays: dict[str, Argument]
    reals: tuple[float, ...]
    integers: tuple[int, ...]
    written: frozenset[str]
    operations: tuple[Operation, ...] | None
    alone: frozenset[str]


Line = tuple[CodeType, int]
"""Of Python: the code that it is in, and its number."""

_HERE = os.path.dirname(__file__)


_OURS: dict[str, bool] = {}
"""Files that were met: whether they are of this package."""


def persons_line() -> Line | None:
    """The innermost that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    ours = _OURS
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file not in ours:
            ours[file] = file.startswith(_HERE)
        if not ours[file]:
            return code, frame.f_lineno
        frame = frame.f_back
    return None


def told(line: Line | None) -> str:
    """Where that is, in words.

    >>> told(None)
    ''
    """
    return f"{line[0].co_filename}:{line[1]}" if line is not None else ""


def warn(message: str, line: Line | None) -> None:
    """As NumPy warns of that line: by Python's filters, or by what `numpy.errstate` asked for."""
    file, number = (line[0].co_filename, line[1]) if line is not None else ("", 0)
    known = _WARNED.setdefault(file, {})
    warnings.warn_explicit(message, RuntimeWarning, file, number, registry=known)


_WARNED: dict[str, dict[str | tuple[str, type[Warning], int], int]] = {}
"""By files, what Python keeps of the warnings that it has shown."""

_DONE = {"load": "reads", "store": "makes", "insert": "writes to"}

MOST_STATEMENTS, MOST_KINDS, MOST_RESULTS = 20_000, 200, 100

MOST_WATCHES = 24
"""Truth values to be looked at: what they are of is computed, though nobody else wants it."""

MOST_OPERATIONS, MOST_ELEMENTS = 2_000, 1 << 16
"""Of a program that may be computed without compiling it: operations, and elements of a value."""


MOST_KNOWN = 512
"""Recordings whose programs are kept."""

MOST_FORMS = 1 << 15
"""Operations on operands of given types whose texts are kept."""

_MARK_BYTES = 12

_FORMS: dict[tuple[Any, ...], _Form] = {}

_IN_THE_DIALECT = {"reshape": "view"}

_REAL, _INTEGER = np.dtype(np.float64), np.dtype(np.int64)


class _Program(NamedTuple):
    """Of a recording, whatever its numbers and arrays are. arrays, tables: names of what it is
    given; operations: that are computed one by one, if they may be. alone: as of a Recorded.
    """

    text: str
    arrays: tuple[str, ...]
    tables: frozenset[str]
    written: frozenset[str]
    operations: tuple[Operation, ...] | None
    alone: frozenset[str]


@dataclass(frozen=True)
class Origin:
    """What an array was made by that hangs on no other: a recording without its arrays."""

    statements: Sequence[_Statement]
    reals: dict[float | str, int]
    integers: dict[int, int]
    count: int
    device: str
    ranks: int
    kinds: dict[str, tuple[tuple[int, ...], np.dtype]]

    def recording(self, name: str, memory: Memory) -> Recording:
        """That array is made by it, and no other."""
        gone = weakref.ref(Memory((), memory.dtype))
        memory.name = f"%{name}"
        found = {
            each: Argument(*kind, None, weakref.ref(memory) if each == memory.name else gone)
            for each, kind in self.kinds.items()
        }
        return Recording(
            list(self.statements), found, [weakref.ref(memory)], dict(self.reals),
            dict(self.integers), self.count, {memory.name}, device=self.device,
            ranks=self.ranks,
        )  # fmt: skip


@dataclass
class Recording:
    """Statements in the order in which they were asked for."""

    statements: list[_Statement] = field(default_factory=list)
    arguments: dict[str, Argument] = field(default_factory=dict)
    alive: list[weakref.ref[Memory]] = field(default_factory=list)
    reals: dict[float | str, int] = field(default_factory=dict)
    integers: dict[int, int] = field(default_factory=dict)
    count: int = 0
    written: set[str] = field(default_factory=set)
    kinds: set[_Form] = field(default_factory=set)
    watched: int = 0
    fewest: int = MOST_STATEMENTS
    device: str = "default"
    ranks: int = 1
    watched_for: dict[tuple[str, Line | None], Memory] = field(
        default_factory=dict["tuple[str, Line | None]", Memory]
    )
    """What is to be said of a line if that truth value is true once all has run."""
    watches: int = 0

    def _type(self, shape: tuple[int, ...], dtype: np.dtype, dist: str = DEFAULT) -> str:
        return value_type(shape, dtype, self.device, dist)

    def _layout(self, resident: Resident | None, shape: tuple[int, ...]) -> str:
        if resident is None or self.ranks == 1:
            return DEFAULT
        pieces = resident.pieces
        if resident.layout is None or resident.layout[0] is not pieces:
            text = attribute_of(pieces, shape, self.ranks, resident.asked)
            resident.layout = pieces, text
        return resident.layout[1]

    def is_full(self, *, for_certain: bool = False) -> bool:
        """Whether it is to be run before more is recorded: a program takes as long to compile as
        it has different statements and results, and turns of a loop have the same. for_certain:
        whenever Python's collector has been here last, which is another time on each rank.
        """
        if self.watched > MOST_RESULTS:
            self.watched = 0
            if self._results() > MOST_RESULTS:
                return not for_certain or (gc.collect() >= 0 and self._results() > MOST_RESULTS)
        if len(self.kinds) > MOST_KINDS or self.watches > MOST_WATCHES:
            return True
        return len(self.statements) > MOST_STATEMENTS and self._may_end(for_certain=for_certain)

    def _may_end(self, *, for_certain: bool) -> bool:
        """Of turns of a loop, where the fewest arrays are to be kept: so recordings of the same
        turns end at the same place of one, and are the same text.
        """
        turn = turn_of([statement.form for statement in self.statements[-2 * MOST_IN_TURN :]])
        more = len(self.statements) - MOST_STATEMENTS
        if not turn or more > 2 * turn:
            return True
        if for_certain:
            gc.collect()
        results = self._results()
        if more <= turn:
            self.fewest = min(self.fewest, results)
            return False
        return results <= self.fewest

    def _results(self) -> int:
        self.alive = [each for each in self.alive if each() is not None]
        return len({id(each()) for each in self.alive})

    def _watch(self, memory: Memory) -> None:
        self.alive.append(weakref.ref(memory))
        self.watched += 1

    def fingerprint(self) -> bytes:
        """All that the program depends on: what was recorded, on which arrays, and who of them is
        still wanted.
        """
        given = [a.resident and a.resident.number for a in self.arguments.values()]
        wanted = [(m.value, m.name) for m in (each() for each in self.alive) if m is not None]
        return f"{self._marks()}{given}{list(self.reals)}{list(self.integers)}{wanted}".encode()

    def entries(self) -> list[tuple[str, str]]:
        """What was recorded, and at which line, for people; numbers of arrays say which are
        meant.
        """
        found: list[tuple[str, str]] = []
        for statement in self.statements:
            op = statement.operation
            what = op.function or op.kind
            if op.kind == "number":
                what = f"takes the number {self._number(op)}"
            elif op.kind in ("load", "store", "insert"):
                argument = self.arguments[op.operands[-1]]
                which = argument.resident and f" number {argument.resident.number}"
                what = f"{_DONE[op.kind]} the array{which or ''} of {op.dtype}, {op.shape}"
            else:
                what = f"computes {what} of {op.dtype}, {op.shape}"
            found.append((what, told(statement.line)))
        return found

    def _number(self, op: Operation) -> float:
        if op.function == REALS:
            return float(list(self.reals)[op.axes[0]])
        return list(self.integers)[op.axes[0]]

    def _add(self, form: _Form, result: str, operands: tuple[str, ...]) -> None:
        self.statements.append(_Statement(form, result, operands, persons_line()))
        self.kinds.add(form)

    def _form(
        self, key: tuple[Any, ...], make: Callable[[], _Form], operands: Sequence[Value] = ()
    ) -> _Form:
        """That of operations for which the key and the types of the operands are the same."""
        whole = (self.device, key, *[operand[1:] for operand in operands])
        form = _FORMS.get(whole)
        if form is None:
            if len(_FORMS) > MOST_FORMS:
                _FORMS.clear()
            form = _FORMS[whole] = make()
        return form

    # -- values ------------------------------------------------------------------------------------

    def operation(
        self,
        kind: str,
        operands: Sequence[Value],
        shape: tuple[int, ...],
        dtype: np.dtype,
        *,
        function: str = "",
        axes: tuple[int, ...] = (),
        part: Part = (),
    ) -> Value:
        """One of the ptensor dialect's. function: of a unary or binary one, or a reduction, along
        `axes`.
        """
        dist = DEFAULT
        if self.ranks > 1:
            dist = next((operand.dist for operand in operands if operand.shape == shape), dist)

        def make() -> _Form:
            given = ", ".join([self._type(*operand[1:]) for operand in operands])
            attributes = _attributes(kind, shape, operands, function, axes, part)
            made = self._type(shape, dtype, dist)
            rest = f"{attributes and f' {{{attributes}}}'} : ({given}) -> {made}"
            op = Operation(kind, "", (), shape, dtype, function, part, axes)
            opcode = f'"ptensor.{_IN_THE_DIALECT.get(kind, kind)}"'
            return _Form(op, opcode, rest, exact=_has_one_result(op, operands))

        form = self._form((kind, function, shape, dtype, axes, part), make, operands)
        names = tuple([operand.name for operand in operands])
        return self._defined(form, names, shape, dtype, dist)

    def _defined(
        self,
        form: _Form,
        operands: tuple[str, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
        dist: str = DEFAULT,
    ) -> Value:
        name = f"%v{self.count}"
        self.count += 1
        self._add(form, name, operands)
        return Value(name, shape, dtype, dist)

    def number(self, number: complex, dtype: np.dtype) -> Value:
        """A value without dimensions, of the table of its kind."""
        if dtype.kind == "c":
            value, single = complex(number), np.dtype(np.float64)
            real, imaginary = (self.number(part, single) for part in (value.real, value.imag))
            return self.cast(self.complex_of(real, imaginary, np.dtype(np.complex128)), dtype)
        if dtype.kind == "f":
            real_number = float(number.real)
            key: float | str = (
                real_number if real_number == real_number and real_number else repr(real_number)
            )  # -0.0 is not 0.0, and a NaN is itself
            at = self.reals.setdefault(key, len(self.reals))
            table, kind = REALS, _REAL
        else:
            wrapped = (int(number.real) + (1 << 63)) % (1 << 64) - (1 << 63)
            at = self.integers.setdefault(wrapped, len(self.integers))
            table, kind = INTEGERS, _INTEGER

        def make() -> _Form:
            # The table's size is known when all is recorded: its type stands for it.
            rest = f" {{map = affine_map<() -> ({at})>}} : ({_table_type(kind)}) -> "
            made = Operation("number", "", (), (), kind, table, axes=(at,))
            return _Form(
                made, '"ptensor.view"', rest + self._type((), kind), given=f"%{table}_values"
            )

        made = self._defined(self._form(("number", table, at), make), (), (), kind)
        return self.cast(made, dtype)

    def complex_of(self, real: Value, imaginary: Value, dtype: np.dtype) -> Value:
        """Of two values of one shape, bit for bit: -0.0 is added where a part is not theirs."""
        first, second = (self.cast(part, dtype) for part in (real, imaginary))
        shape = real.shape
        first = self.operation("unary", [first], shape, dtype, function="conj")
        second = self.operation("unary", [second], shape, dtype, function="times_i")
        return self.operation("binary", [first, second], shape, dtype, function="add")

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        if value.dtype == dtype:
            return value
        return self.operation("cast", [value], value.shape, dtype)

    def view(self, value: Value, shape: tuple[int, ...], part: Part) -> Value:
        """Element d is the element of the value that `part` says."""
        return self.operation("view", [value], shape, value.dtype, part=part)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """The elements in their order in another shape; there is at least one."""
        return self.operation("reshape", [value], shape, value.dtype)

    # -- memories ----------------------------------------------------------------------------------

    def holding(self, value: Value) -> Memory:
        """A new array of that value; it gets memory if somebody has it when all this runs."""
        line = self.statements[-1].line if self.statements else None
        memory = Memory(value.shape, value.dtype, value=value.name, line=line, dist=value.dist)
        self._watch(memory)
        return memory

    def read(self, memory: Memory) -> Value:
        """All of the array, as it is at this place of the program."""
        refuse_lost(memory)
        if memory.value is None:
            dist = self._layout(memory.resident, memory.shape)

            def make() -> _Form:
                kind = memory_type(memory.shape, memory.dtype)
                rest = f" : ({kind}) -> {self._type(memory.shape, memory.dtype, dist)}"
                made = Operation("load", "", (), memory.shape, memory.dtype)
                return _Form(made, '"ptensor.load"', rest)

            form = self._form(("load", memory.shape, memory.dtype, dist), make)
            made = self._defined(form, (self._name(memory),), memory.shape, memory.dtype, dist)
            memory.value, memory.dist = made.name, dist
            self._watch(memory)
        return Value(memory.value, memory.shape, memory.dtype, memory.dist)

    def write(self, memory: Memory, part: Part, value: Value) -> None:
        """The value to a part of the array, which has the value's shape, and to those that look at
        it.
        """
        refuse_lost(memory)
        if memory.read_only:
            raise ValueError("assignment destination is read-only")
        if 0 in value.shape:
            return
        for alias in memory.aliases:
            if alias.why_fixed and alias.source() and alias.made():
                raise TypeError(alias.why_fixed)
        self._insert(memory, part, value)
        if memory.aliases:
            self._follow(memory, None)

    def _follow(self, memory: Memory, origin: Alias | None) -> None:
        """The memory has been written to: by `origin`, if another one was."""
        memory.aliases = [each for each in memory.aliases if each.source() and each.made()]
        for alias in memory.aliases:
            source, made = alias.source(), alias.made()
            if alias is origin or source is None or made is None:
                continue
            part = self.part_of(source, alias.part, alias.shape)
            if memory is source:
                self._renew(made, alias.derive(self, part))
                self._follow(made, alias)
                continue
            value = alias.restore(self, part, self.read(made))
            if is_whole(source, alias.part, alias.shape):
                self._renew(source, value)
            else:
                self._insert(source, alias.part, value)
            self._follow(source, alias)

    def part_of(self, memory: Memory, part: Part, shape: tuple[int, ...]) -> Value:
        """As it is at this place of the program."""
        whole = self.read(memory)
        return whole if is_whole(memory, part, shape) else self.view(whole, shape, part)

    def _renew(self, memory: Memory, value: Value) -> None:
        """All of the array becomes the value: it gets other memory if anybody looks at it, unless
        it is to stay where it lies.
        """
        if memory.stays or self._layout(memory.resident, memory.shape) != DEFAULT:
            self._insert(memory, whole_part(len(memory.shape)), value)
            return
        detach_elements(memory)
        if memory.name is not None:
            nobody = weakref.ref(Memory((), memory.dtype))
            self.arguments[memory.name] = replace(self.arguments[memory.name], memory=nobody)
        if memory.before is None:
            memory.before = memory.resident
        memory.resident, memory.name = None, None
        memory.value, memory.dist = value.name, value.dist
        self._watch(memory)

    def _insert(self, memory: Memory, part: Part, value: Value) -> None:
        detach_elements(memory)
        if memory.value is not None and memory.name is None and memory.resident is None:
            self._store(memory)
        name = self._name(memory)

        def make() -> _Form:
            attributes = _map(len(value.shape), forms_of(part))
            made = Operation("insert", "", (), memory.shape, memory.dtype, part=part)
            return _Form(
                made, '"ptensor.insert"', f" {{{attributes}}} : {self._into(memory, value)}"
            )

        form = self._form(("insert", memory.shape, memory.dtype, part), make, [value])
        self._add(form, "", (value.name, name))
        self.written.add(name)
        memory.value = None

    def _name(self, memory: Memory) -> str:
        if memory.name is None:
            memory.name = f"%m{len(self.arguments)}"
            self.arguments[memory.name] = Argument(
                memory.shape, memory.dtype, memory.resident, weakref.ref(memory)
            )
            self._watch(memory)
        return memory.name

    def _store(self, memory: Memory, at: int | None = None) -> None:
        value, name = memory.value, self._name(memory)
        assert value is not None

        def make() -> _Form:
            made = Operation("store", "", (), memory.shape, memory.dtype)
            rest = self._into(memory, Value(value, memory.shape, memory.dtype, memory.dist))
            return _Form(made, '"ptensor.store"', f" : {rest}")

        form = self._form(("store", memory.shape, memory.dtype, memory.dist), make)
        self.written.add(name)
        place = len(self.statements) if at is None else at
        self.statements.insert(place, _Statement(form, "", (value, name)))

    def _into(self, memory: Memory, value: Value) -> str:
        """The type of an operation that writes the value there."""
        held = memory_type(memory.shape, memory.dtype)
        return f"({self._type(*value[1:])}, {held}) -> ()"

    def watch_for(self, message: str, flag: Value) -> None:
        """The message is about the line that records it, whenever it has a true flag."""
        key = message, persons_line()
        if (before := self.watched_for.get(key)) is not None:
            both = [self.read(before), flag]
            flag = self.operation("binary", both, (), flag.dtype, function="bitwise_or")
        self.watched_for[key] = self.holding(flag)
        self.watches += 1

    # -- to its end --------------------------------------------------------------------------------

    def finish(self, known: dict[bytes, _Program | None]) -> Recorded | None:
        """The program of all that is still wanted; None where that is nothing. The memories know
        their names in it until `settle`. known: those of recordings like this one, which grow.
        """
        self._keep_values()
        there = [(a.resident is None, a.memory() is None) for a in self.arguments.values()]
        whole = f"{there} {len(self.reals)} {len(self.integers)}\n{self._marks()}"
        key = blake2b(whole.encode(), digest_size=16).digest()
        if key not in known:
            known[key] = self._program()
            if len(known) > MOST_KNOWN:
                del known[next(iter(known))]
        program = known[key]
        if program is None:
            return None
        return Recorded(
            program.text,
            {name: self.arguments[f"%{name}"] for name in program.arrays},
            tuple(float(number) for number in self.reals) if REALS in program.tables else (),
            tuple(self.integers) if INTEGERS in program.tables else (),
            program.written,
            program.operations,
            program.alone,
        )

    def origin(self) -> Origin:
        """Of what it has made."""
        kinds = {name: (each.shape, each.dtype) for name, each in self.arguments.items()}
        return Origin(
            self.statements, self.reals, self.integers, self.count, self.device, self.ranks, kinds
        )

    def _marks(self) -> str:
        """The text, shorter: values are numbered in the order of the statements."""
        return "\n".join([" ".join([s.form.mark, *s.operands]) for s in self.statements])

    def _program(self) -> _Program | None:
        needed = self._needed()
        if not needed:
            return None
        named = {
            name
            for statement in needed
            for name in (statement.reads, statement.writes)
            if name is not None
        }
        arrays = {n[1:]: a for n, a in self.arguments.items() if n in named and _is_argument(a)}
        tables = {REALS: (np.float64, self.reals), INTEGERS: (np.int64, self.integers)}
        own = {name for name in named if name[1:] not in arrays}
        body = "\n  ".join(_lines(rerolled(needed, own)))
        used = {t: (np.dtype(kind), held) for t, (kind, held) in tables.items() if f"%{t}_" in body}
        lines: list[str] = []
        for table, (kind, held) in used.items():
            body = body.replace(_table_type(kind), self._type((len(held),), kind))
            lines.append(
                f'%{table}_values = "ptensor.load"(%{table}) : ({memory_type((len(held),), kind)})'
                f" -> {self._type((len(held),), kind)}"
            )
        mentioned = own & set(MEMORY.findall(body))
        for name, argument in self.arguments.items():
            if name in mentioned:
                lines.append(
                    f"{name} = memref.alloc() : {memory_type(argument.shape, argument.dtype)}"
                )
        given = [
            f"%{name}: {memory_type(argument.shape, argument.dtype)}"
            for name, argument in arrays.items()
        ]
        given += [f"%{t}: {memory_type((len(held),), kind)}" for t, (kind, held) in used.items()]
        head = "\n  ".join([*lines, body])
        text = f"func.func @arrays({', '.join(given)}) {{\n  {head}\n  return\n}}\n"
        written = frozenset(s.writes[1:] for s in needed if s.writes and s.writes[1:] in arrays)
        operations = tuple(s.operation for s in needed) if _are_interpreted(needed) else None
        hanging = self._hanging(needed)
        alone = frozenset(name for name in written if f"%{name}" not in hanging)
        return _Program(text, tuple(arrays), frozenset(used), written, operations, alone)

    def _hanging(self, statements: Sequence[_Statement]) -> set[str]:
        """Values, and memories as they are at the end, that hang on arrays of before."""
        found = {name for name, each in self.arguments.items() if each.resident is not None}
        for statement in statements:
            made = statement.defines or statement.writes
            used = [*statement.uses, *filter(None, [statement.reads])]
            assert made is not None
            if any(name in found for name in used):
                found.add(made)
            elif statement.form.operation.kind == "store":
                found.discard(made)
        return found

    def settle(self, after: Callable[[Memory], None]) -> None:
        """The program has run, or has failed: `after` gets every array that it was to make or look
        at.
        """
        for reference in self.alive:
            memory = reference()
            if memory is None:
                continue
            if memory.name is not None or memory.value is not None:
                after(memory)
            memory.name = memory.value = None

    def _keep_values(self) -> None:
        """Arrays that somebody has and that have no memory yet get it where they are defined."""
        wanted: dict[str, list[Memory]] = {}
        for reference in self.alive:
            memory = reference()
            if memory is None or memory.value is None:
                continue
            if memory.name is None and memory.resident is None and 0 not in memory.shape:
                wanted.setdefault(memory.value, []).append(memory)
        if not wanted:
            return
        places = {s.result: k for k, s in enumerate(self.statements) if s.result in wanted}
        for value in sorted(wanted, key=lambda name: -places[name]):
            for memory in dict.fromkeys(wanted[value]):
                self._store(memory, places[value] + 1)

    def _needed(self) -> list[_Statement]:
        """The statements that something depends on: backwards from arrays that somebody has."""
        values: set[str] = set()
        memories = {name for name, a in self.arguments.items() if a.memory() is not None}
        needed: list[_Statement] = []
        for statement in reversed(self.statements):
            if statement.writes is not None:
                if statement.writes not in memories:
                    continue
            elif statement.defines not in values:
                continue
            values.update(statement.uses)
            if statement.reads is not None:
                memories.add(statement.reads)
            needed.append(statement)
        return needed[::-1] if any(statement.writes for statement in needed) else []


@cache
def whole_part(dims: int) -> Part:
    """All of a memory of so many dimensions, as it is."""
    return tuple((0, dim, 1) for dim in range(dims))


def is_whole(memory: Memory, part: Part, shape: tuple[int, ...]) -> bool:
    """Whether that part of it is all of it, as it is."""
    return shape == memory.shape and part == whole_part(len(shape))


def detach_elements(memory: Memory) -> None:
    """Before the memory changes."""
    elements = [reference() for reference in memory.elements.values()]
    memory.elements.clear()
    for element in elements:
        if element is not None:
            element.detach()


def refuse_lost(memory: Memory) -> None:
    if memory.lost:
        raise AvialError(
            "the array is gone: the run that was to make or change it failed",
            hint="make it again",
        )


def forms_of(part: Part) -> list[str]:
    """The place in the memory as text of an affine map.

    >>> forms_of(((1, 0, 1), (5, 1, -1), (3, -1, 0)))
    ['d0 + 1', 'd1 * -1 + 5', '3']
    """
    forms: list[str] = []
    for offset, dim, step in part:
        if dim < 0:
            forms.append(str(offset))
            continue
        form = f"d{dim}" if step == 1 else f"d{dim} * {step}"
        forms.append(f"{form} + {offset}" if offset else form)
    return forms


def _attributes(
    kind: str,
    shape: tuple[int, ...],
    operands: Sequence[Value],
    function: str,
    axes: tuple[int, ...],
    part: Part,
) -> str:
    if kind == "view":
        return _map(len(shape), forms_of(part))
    if kind == "reshape":
        return _map(len(shape), _reshaping(operands[0].shape, shape))
    if kind == "index":
        return f"dim = {axes[0]} : i64"
    attributes = f'op = "{function}"' if function else ""
    if kind == "reduce":
        listed = ", ".join(map(str, axes))
        attributes += f", axes = array<i64{': ' if axes else ''}{listed}>"
    return attributes


def _reshaping(before: tuple[int, ...], shape: tuple[int, ...]) -> list[str]:
    """The place of each element in the shape that it had."""
    place = " + ".join(f"d{d} * {size(shape[d + 1 :])}" for d in range(len(shape))) or "0"
    forms: list[str] = []
    for d, extent in enumerate(before):
        below = size(before[d + 1 :])
        row = f"(({place}) floordiv {below})" if below > 1 else f"({place})"
        forms.append(row if d == 0 else f"({row} mod {extent})")
    return forms


def _map(dims: int, forms: Sequence[str]) -> str:
    names = ", ".join(f"d{d}" for d in range(dims))
    return f"map = affine_map<({names}) -> ({', '.join(forms)})>"


def _are_interpreted(statements: Sequence[_Statement]) -> bool:
    """Whether they may be computed one by one."""
    return (
        len(statements) <= MOST_OPERATIONS
        and all(s.form.exact for s in statements)
        and all(size(s.form.operation.shape) <= MOST_ELEMENTS for s in statements)
    )


def _has_one_result(op: Operation, operands: Sequence[Value]) -> bool:
    """Whether whoever computes it gets the same bits."""
    if op.kind == "unary" and op.shape and is_blockwise(op.function, operands[0].dtype):
        return True
    if op.kind in ("unary", "binary"):
        return is_exact(op.function, operands[0].dtype)
    if op.kind == "cast":
        return is_exact_cast(operands[0].dtype, op.dtype)
    if op.kind == "matmul":
        return is_multiplied_in_order(op.shape, operands[0].shape[-1], op.dtype)
    if op.kind == "reduce" and op.function in ("sum", "prod"):
        whole = op.function == "sum" or op.dtype.kind != "c"
        return whole and is_summed_in_order(operands[0].shape, op.dtype)
    return True


class _Lines:
    """The text of statements and loops; what a loop hands from turn to turn is kept in memory."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.loops = 0
        self.kept = 0

    def add(self, part: Statement | Loop) -> None:
        if isinstance(part, Loop):
            self._loop(part)
        else:
            self.lines.append(self._named(part.text))

    def _named(self, text: str, names: Mapping[str, str] | None = None) -> str:
        known = self.names if names is None else names
        return VALUE.sub(lambda m: known.get(m[0], m[0]), text) if known else text

    def _loop(self, loop: Loop) -> None:
        kept = {carried: self._kept(loop, carried) for carried in loop.carried}
        taken = {c.begin: name.replace("kept", "taken") for c, (name, _, _) in kept.items()}
        self.lines.append(f"affine.for %turn{self.loops} = 0 to {loop.turns} {{")
        self.loops += 1
        for carried, (name, kind, memory) in kept.items():
            self.lines.append(
                f'  {taken[carried.begin]} = "ptensor.load"({name}) : ({memory}) -> {kind}'
            )
        inside = self.names | taken
        self.lines += [f"  {self._named(each.text, inside)}" for each in loop.body]
        by_place = {(c.place, c.later): c for c in loop.carried}
        for carried, (name, kind, memory) in sorted(kept.items(), key=lambda each: -each[0].later):
            value = loop.body[carried.place].defines
            if carried.later > 1:
                value = taken[by_place[carried.place, carried.later - 1].begin]
            dims = kind.partition("<tensor<")[2].partition(">")[0].count("x")
            place = _map(dims, [f"d{d}" for d in range(dims)])
            self.lines.append(
                f'  "ptensor.insert"({value}, {name}) {{{place}}} : ({kind}, {memory}) -> ()'
            )
        self.lines.append("}")
        for number, (value, carried) in enumerate(loop.left.items()):
            name, kind, memory = kept[carried]
            self.names[value] = f"{name.replace('kept', 'left')}_{number}"
            self.lines.append(
                f'{self.names[value]} = "ptensor.load"({name}) : ({memory}) -> {kind}'
            )

    def _kept(self, loop: Loop, carried: Carried) -> tuple[str, str, str]:
        """Memory with what the first turn takes: its name, the value's type, and its own."""
        operation = loop.body[carried.place].operation
        kind = loop.body[carried.place].text.rpartition(" -> ")[2]
        memory = memory_type(operation.shape, operation.dtype)
        name = f"%kept{self.kept}"
        self.kept += 1
        begin = self.names.get(carried.begin, carried.begin)
        self.lines.append(f"{name} = memref.alloc() : {memory}")
        self.lines.append(f'"ptensor.store"({begin}, {name}) : ({kind}, {memory}) -> ()')
        return name, kind, memory


def _lines(parts: Sequence[Statement | Loop]) -> list[str]:
    lines = _Lines()
    for part in parts:
        lines.add(part)
    return lines.lines


def _is_argument(argument: Argument) -> bool:
    """Whether its elements were there before, or are wanted afterwards."""
    return argument.resident is not None or argument.memory() is not None


@cache
def _table_type(kind: np.dtype) -> str:
    """Stands for the type of a table whose size is not known yet."""
    return f"TABLE_{kind.name}"
