"""Short notation -> full MLIR: types, constants and places are filled in.

Cell text -> Elaboration: the text of one module, and the way from its places back to the cell's.
One pass over the text, statement by statement: what `operations.py` knows is completed, everything
else is copied up to the next statement. MLIR parses (and judges) the result.

Grammar of the avial operations, `[ ]` optional, `{ }*` repeated:

    avial.schedule [%a [: type] {, %b [: type]}*] { statements }
    %t = avial.target {arch = "x86_64", node = "node07"}
    %r = avial.task %t {, %a}* [after %r1 {, %r2}*] [attributes {…}] { statements }
    %r = avial.task %t [reads(%a, …)] [writes(%b, …)] [after …] [attributes {…}] { statements }
    %r = avial.replicate …as avial.task…
    [%r =] avial.converge 100 [after …] [attributes {…}] { targets and tasks }
    [%r =] avial.converge until %error lt 1.0e-6 max 1000 [after …] [attributes {…}] { … }

`until` compares the one element of a buffer (`lt`, `le`, `gt`, `ge` or `<`, `<=`, `>`, `>=`) after
each round; `max` bounds the rounds. A buffer written `%n: index` (or any int or float type) is a
number of the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.arrays import Binding
from avial_lab.errors import AvialError, VerifyError
from avial_lab.notation import types
from avial_lab.notation.output import Output
from avial_lab.notation.source import (
    CLOSING,
    ID,
    STATEMENT,
    STRING,
    TOKEN,
    VALUE,
    Source,
    did_you_mean,
    quote,
    starts_statement,
)

Scalar = int | float | bool
Place = tuple[int, int]
"""Line and column, from 1, of the first character of a statement."""


@dataclass(frozen=True)
class Listed:
    """What the head of a task in short notation said of its buffers: name and offset of each.

    plain: the buffers stood in one list, their roles follow from the body.
    """

    plain: tuple[tuple[str, int], ...] | None
    reads: tuple[tuple[str, int], ...] = ()
    writes: tuple[tuple[str, int], ...] = ()


@dataclass
class Elaboration:
    """The cell as one MLIR module, and what MLIR cannot keep of the notation."""

    source: Source
    output: Output
    block_arguments: dict[Place, list[tuple[str, Place]]] = field(default_factory=dict)
    """Loop variables and block arguments, by the statement that owns the region, in textual order.
    """
    listed: dict[Place, Listed] = field(default_factory=dict)
    generic: bool = False
    """Whether some avial operation stands in MLIR's generic form."""
    labels: bool = False
    """Whether some block is labelled (`^bb0:`)."""


@dataclass
class Constant:
    """`%c = arith.constant 3` without a type, until a use says which."""

    output: Output
    piece: int
    literal: str
    rest: str


@dataclass(frozen=True)
class Unknown:
    """The type of result `index` of a statement this package does not know; MLIR is asked when it
    is needed.
    """

    pieces: tuple[str, ...]
    results: str
    index: int
    operands: tuple[tuple[str, str], ...]


Type = str | Constant | Unknown | None
BUFFER = "!avial.buffer_ref"


@dataclass
class Program:
    """The avial part of the function that is being read.

    buffers: the arguments that @main gets from its schedules, by name without the %: type and
    offset of the name.
    """

    in_main: bool = False
    in_schedule: bool = False
    buffers: dict[str, tuple[str, int]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    tasks: int = 0


SCHEDULE_LEVEL = frozenset({"avial.schedule", "avial.converge"})
MODULE_OPS = frozenset({
    "func.func", "module", "builtin.module", "gpu.module", "memref.global", "llvm.func",
    "llvm.mlir.global", "gpu.binary",
})  # fmt: skip
QUOTED_MODULE_OPS = frozenset(quote(name) for name in MODULE_OPS)
TERMINATORS = frozenset({
    "return", "func.return", "ub.unreachable", "cf.br", "cf.cond_br", "cf.switch", "omp.terminator",
    "llvm.unreachable", "llvm.return", '"func.return"', '"omp.terminator"', '"ub.unreachable"',
    "cf.assert",
})  # fmt: skip

_VALUE = re.compile(VALUE)
_ID = re.compile(ID)
_STRING = re.compile(STRING)
_LABEL = re.compile(r"\^[\w$.-]+")
_NO_ATTRIBUTE = re.compile(rf"{STRING}|//[^\n]*|({ID})")
"""A value, which no attribute dictionary holds; strings and comments before it are passed over."""
_SYMBOL = re.compile(rf"@(?:[\w$.-]+|{STRING})")
_ALIAS = re.compile(r"([#!][\w$.-]+)\s*=\s*")
_NUMBER = re.compile(r"-?\d[\w.+-]*|-?\.\d+")
_SCALAR = re.compile(r"index|i\d+|f16|bf16|f32|f64")


class Elaborator:
    """State of one pass over one cell. `operations.RULES` is the table of what can be completed."""

    def __init__(
        self,
        source: Source,
        context: ir.Context,
        binding: Binding | None,
        scalars: Mapping[str, Scalar],
        rules: Mapping[str, Callable[..., int]],
    ) -> None:
        self.source, self.text = source, source.text
        self.context, self.binding, self.scalars, self.rules = context, binding, scalars, rules
        self.out = Output()
        self.result = Elaboration(source, self.out)
        self.aliases = Output()
        self.type_aliases: dict[str, str] = {}
        self.values: dict[str, Type] = {}
        self.undo: list[tuple[str, Type, bool]] = []
        self.constants: dict[tuple[str, str], str] = {}
        self.handles: dict[str, str] = {}
        self.born: dict[str, int] = {}
        self.fresh = 0
        self.file = quote(source.cell)
        self._line, self._next_line = 1, self._line_end(1)
        self.last_op = ""
        self.expected: list[Type] = []
        self.yielded: list[Type] = []
        self.open_constants: list[Constant] = []
        self.program = Program()

    # -- Places

    def _line_end(self, line: int) -> int:
        starts = self.source.line_starts
        return starts[line] if line < len(starts) else len(self.text) + 1

    def place(self, offset: int) -> Place:
        """Line and column; quick when places are asked for in textual order."""
        while offset >= self._next_line:
            self._line += 1
            self._next_line = self._line_end(self._line)
        start = self.source.line_starts[self._line - 1]
        if offset < start:
            return self.source.line_and_column(offset)
        return self._line, offset - start + 1

    def loc(self, offset: int, name: str = "") -> str:
        """` loc("x"("In [4]":7:3))`, the trailing location; name is without the %."""
        line, column = self.place(offset)
        if not name:
            return f" loc({self.file}:{line}:{column})"
        shown = f'"{name}"' if name.isascii() else quote(name)
        return f" loc({shown}({self.file}:{line}:{column}))"

    def error(
        self,
        message: str,
        offset: int,
        hint: str | None = None,
        kind: type[AvialError] | None = None,
    ) -> AvialError:
        if kind is None:
            return self.source.error(message, offset, hint=hint)
        return self.source.error(message, offset, hint=hint, kind=kind)

    # -- Values and their types

    def define(self, name: str, type_: Type) -> None:
        """`%name` has that type from here to the end of the region."""
        values = self.values
        if name in values:
            self.undo.append((name, values[name], True))
        else:
            self.undo.append((name, None, False))
        values[name] = type_
        if type(type_) is str and type_.startswith("memref"):
            self.born[name] = len(self.undo)
            self.handles.pop(name, None)

    def leave(self, mark: int) -> None:
        """Forget what was defined since `len(self.undo)` was `mark`."""
        undo, values = self.undo, self.values
        while len(undo) > mark:
            name, old, existed = undo.pop()
            if existed:
                values[name] = old
            else:
                del values[name]

    def define_results(self, results: str | None, found: list[Type]) -> None:
        """The results as written (`%x`, `%x:2`, `%x, %y`) get their types."""
        if results is None:
            return
        if "," not in results and ":" not in results:
            self.define(results, found[0] if found else None)
            return
        k = 0
        for part in results.split(","):
            name, _, count = part.strip().partition(":")
            if not count:
                self.define(name, found[k] if k < len(found) else None)
                k += 1
                continue
            for j in range(min(int(count), 1000)):
                self.define(f"{name}#{j}", found[k] if k < len(found) else None)
                k += 1
            self.define(name, found[k - int(count)] if k - int(count) < len(found) else None)

    def type_of(self, name: str, offset: int, wanted: str | None = None) -> str | None:
        """The type of a value; `wanted` decides for a constant whose type is not written.

        None where it cannot be told. Raises VerifyError for a name nothing defines here.
        """
        try:
            found = self.values[name]
        except KeyError:
            raise self.unknown_value(name, offset) from None
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, Constant):
            chosen = wanted or self._default(found.literal)
            self._complete(found, chosen)
        else:
            chosen = self._ask(found)
        self.values[name] = chosen
        return chosen

    def is_open(self, name: str) -> bool:
        """Whether it is a constant that still waits for a type."""
        return isinstance(self.values.get(name), Constant)

    def common_type(self, names: list[tuple[str, int]]) -> str | None:
        """The type of operands that have one type, from those of them that already have one."""
        wanted = None
        for name, offset in names:
            if not self.is_open(name):
                wanted = self.type_of(name, offset)
                break
        for name, offset in names:
            if self.is_open(name) or name not in self.values:
                wanted = (
                    self.type_of(name, offset, wanted)
                    if wanted is None
                    else (self.type_of(name, offset, wanted) and wanted)
                )
        return wanted

    def unknown_value(self, name: str, offset: int) -> AvialError:
        later = re.compile(rf"{re.escape(name)}\s*=(?!=)").search(self.text, offset)
        hint = did_you_mean(name, self.values)
        if later:
            line, _ = self.source.line_and_column(later.start())
            hint = (
                f"{name} is defined later, in line {line}; move that up" if hint is None else hint
            )
        return self.error(f"unknown value {name}", offset, hint, VerifyError)

    @staticmethod
    def _default(literal: str) -> str:
        if literal in ("true", "false"):
            return "i1"
        return "i64" if re.fullmatch(r"-?(\d+|0x[0-9a-fA-F]+)", literal) else "f64"

    def _complete(self, constant: Constant, type_: str) -> None:
        """Give the constant its type; an integer literal becomes a float's or a vector's where that
        is wanted.
        """
        literal = constant.literal
        element = types.element_of(type_) or type_
        element = self.type_aliases.get(element, element)
        if re.fullmatch(r"b?f\d+", element) and re.fullmatch(r"-?\d+", literal):
            literal += ".0"
        if type_.startswith(("vector", "tensor")):
            literal = f"dense<{literal}>"
        if literal in ("true", "false"):
            text = f"{literal}"
        else:
            text = f"{literal} : {type_}"
        constant.output.pieces[constant.piece] += text + constant.rest

    def settle_constants(self) -> None:
        """Constants whose type no use has told are what MLIR takes them for: i64, f64."""
        for constant in self.open_constants:
            if constant.output.pieces[constant.piece][-1:] != "\n":
                self._complete(constant, self._default(constant.literal))
        self.open_constants.clear()

    def _ask(self, unknown: Unknown) -> str | None:
        """MLIR's own answer for the type of a result of one statement."""
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in unknown.operands)
        text = (
            f"{self.aliases.text}\nfunc.func private @probe({arguments}) {{\n"
            f"{''.join(unknown.pieces)}\nub.unreachable }}"
        )
        with self.context:
            try:
                module = ir.Module.parse(text)
            except ir.MLIRError:
                return None
            function = module.body.operations[0]
            block = function.operation.regions[0].blocks[0]
            results = block.operations[len(block.operations) - 2].operation.results
            return str(results[unknown.index].type) if unknown.index < len(results) else None

    def constant(self, literal: str, type_: str, offset: int) -> str:
        """The name of an integer constant, made here unless this region or one around it has it
        already.
        """
        if not re.fullmatch(r"-?\d{1,19}", literal):
            problem = "does not fit into 64 bits" if literal.isdigit() else "is no integer"
            raise self.error(f"'{literal}' {problem}", offset)
        key = (literal, type_)
        name = self.constants.get(key)
        if name is None:
            name = f"%.lit{self.fresh}"
            self.fresh += 1
            self.constants[key] = name
            self.out.put(f"{name} = arith.constant {literal} : {type_}{self.loc(offset)}\n", offset)
        return name

    def buffer_refs(self, names: list[str], offset: int) -> dict[str, str]:
        """The buffers as operands of avial's operations: casts, made where first needed.

        New ones are written in the order in which the buffers came into being, whatever the order
        of the list.
        """
        new = {name for name in names if name not in self.handles}
        for name in sorted(new, key=lambda name: self.born.get(name, 0)):
            handle = self.handles[name] = f"%.ref{self.fresh}"
            self.fresh += 1
            self.out.put(
                f"{handle} = builtin.unrealized_conversion_cast {name}"
                f" : {self.type_of(name, offset)}"
                f" to {BUFFER}{self.loc(offset)}\n",
                offset,
            )
        return {name: self.handles[name] for name in names}

    # -- Small readers

    def at(self, offset: int, word: str) -> int | None:
        """The place behind `word`, or None where something else stands at `offset`."""
        offset = self.source.skip(offset)
        return offset + len(word) if self.text.startswith(word, offset) else None

    def expect(self, offset: int, word: str, after: str, hint: str | None = None) -> int:
        end = self.at(offset, word)
        if end is None:
            raise self.expected_error(repr(word), offset, after, hint)
        return end

    def expected_error(
        self, what: str, offset: int, after: str, hint: str | None = None
    ) -> AvialError:
        place = self.source.skip(offset)
        if "\n" in self.text[offset:place] or place >= len(self.text):
            place = offset  # what is missing is missing at the end of the line before
        return self.error(f"expected {what} {after}", place, hint)

    def take(self, pattern: re.Pattern[str], offset: int) -> re.Match[str] | None:
        return pattern.match(self.text, self.source.skip(offset))

    def value(self, offset: int, after: str) -> tuple[str, int, int]:
        """A value's name, where it starts and where it ends."""
        match = self.take(_VALUE, offset)
        if match is None:
            raise self.expected_error("a value (%name)", offset, after)
        return match[0], match.start(), match.end()

    def value_list(self, offset: int, after: str) -> tuple[list[tuple[str, int]], int]:
        """`%a, %b, …` as (name, offset) pairs, and the end."""
        found: list[tuple[str, int]] = []
        while True:
            name, start, offset = self.value(offset, after)
            found.append((name, start))
            comma = self.at(offset, ",")
            if comma is None:
                return found, offset
            offset, after = comma, "after ','"

    def parens(self, offset: int, what: str) -> tuple[list[tuple[str, int]], int]:
        """`(%a, %b)`, possibly empty."""
        offset = self.expect(offset, "(", f"after {what}")
        end = self.at(offset, ")")
        if end is not None:
            return [], end
        found, offset = self.value_list(offset, f"in {what}(…)")
        return found, self.expect(offset, ")", f"at the end of {what}(…)")

    def read_type(self, offset: int) -> tuple[str, int]:
        """The type that starts at `offset`, and its end."""
        start = self.source.skip(offset)
        end = self.type_end(start)
        if end == start:
            raise self.expected_error("a type", offset, "here")
        written = self.text[start:end]
        return self.type_aliases.get(written, written), end

    _TYPE_HEAD = re.compile(r"[!#]?[A-Za-z_][\w$.]*")
    _ANGLE = re.compile(rf"{STRING}|->|>=|<=|[<>]|[(\[{{]|[)\]}}]|//[^\n]*")

    def type_end(self, start: int) -> int:
        """One past the type at `start`; `start` itself where there is none."""
        text = self.text
        head = self._TYPE_HEAD.match(text, start)
        if head is None:
            if not text.startswith("(", start):
                return start
            end = self.bracket_end(start)
            arrow = self.at(end, "->")
            return end if arrow is None else self.type_end(self.source.skip(arrow))
        end = head.end()
        if not text.startswith("<", end):
            return end
        depth = 0
        for match in self._ANGLE.finditer(text, end):
            if match[0] == "<":
                depth += 1
            elif match[0] == ">":
                depth -= 1
                if depth == 0:
                    return match.end()
        raise self.error("'<' is never closed", end)

    def bracket_end(self, start: int) -> int:
        """One past the bracket that closes the one at `start`."""
        stack = [self.text[start]]
        for match in TOKEN.finditer(self.text, start + 1):
            kind = match.lastgroup
            if kind == "open":
                stack.append(match[0])
            elif kind == "close":
                if match[0] == "}" and stack[-1] != "{":
                    raise self.error(f"'{stack[-1]}' is never closed", start)
                if match[0] != CLOSING[stack[-1]]:
                    raise self.error(
                        f"'{match[0]}' where '{CLOSING[stack[-1]]}' should close "
                        f"the '{stack[-1]}' of line {self.source.line_and_column(start)[0]}",
                        match.start(),
                    )
                stack.pop()
                if not stack:
                    return match.end()
        raise self.error(f"'{self.text[start]}' is never closed", start)

    def dictionary(self, offset: int) -> tuple[str, int] | None:
        """The text between the braces of an attribute dictionary at `offset`, and its end."""
        start = self.source.skip(offset)
        if not self.text.startswith("{", start):
            return None
        end = self.bracket_end(start)
        if any(match[1] for match in _NO_ATTRIBUTE.finditer(self.text, start, end)):
            raise self.error("'{' is never closed", start, "add the missing '}'")
        return self.text[start + 1 : end - 1].strip(), end

    # -- Regions and statements

    def region(
        self,
        offset: int,
        *,
        arguments: list[tuple[str, Type]] | None = None,
        block_types: list[Type] | None = None,
        expected: list[Type] | None = None,
        fresh_constants: bool = False,
        opened_at: int | None = None,
    ) -> int:
        """The statements from `offset` to the closing brace; the place behind the brace.

        arguments are visible inside; block_types are those of a `^bb0(%x, %y):` that leaves them
        out, expected those of what the region yields.
        """
        mark, constants, handles = len(self.undo), self.constants, self.handles
        outer, self.expected = self.expected, expected or []
        self.constants = {} if fresh_constants else dict(constants)
        self.handles = dict(handles)
        for name, type_ in arguments or ():
            self.define(name, type_)
        end = self.statements(offset, block_types=block_types, opened_at=opened_at)
        self.leave(mark)
        self.constants, self.handles, self.expected = constants, handles, outer
        return end

    def statements(
        self,
        offset: int,
        *,
        block_types: list[Type] | None = None,
        opened_at: int | None = None,
    ) -> int:
        """Statements up to a closing brace; the place behind it."""
        self.last_op = ""
        match_statement, rules, text = STATEMENT.match, self.rules, self.text
        while True:
            match = match_statement(text, offset)
            assert match is not None
            op = match["op"] or match["quoted"]
            if op is None:
                other = match["other"]
                if other == "}" and match["results"] is None:
                    return match.end()
                if other == "^" and match["results"] is None:
                    self.constants = {}
                    offset = self.label(match.start("other"), block_types)
                    continue
                if other == "" and opened_at is not None and match["results"] is None:
                    raise self.error("'{' is never closed", opened_at, "add the missing '}'")
                raise self.stray(match)
            results = match["results"]
            start = match.start("results") if results else match.start(match.lastgroup or 0)
            if results is not None:
                start = match.start("results")
            else:
                start = match.start("op") if match["op"] else match.start("quoted")
            rule = rules.get(op)
            if rule is None:
                offset = self.copied(results, op, start, match.end())
            else:
                offset = rule(self, results, op, start, match.end())
            self.last_op = op

    def stray(self, match: re.Match[str]) -> AvialError:
        """What to say where no statement begins."""
        offset = match.start("other")
        char = match["other"]
        if match["results"] is not None:
            return self.expected_error("an operation", match.end("results"), "after '='")
        if char == "":
            return self.error("the text ends in the middle", len(self.text.rstrip()))
        if char == "%":
            name = _VALUE.match(self.text, offset)
            shown = name[0] if name else "%"
            return self.error(
                f"a statement cannot begin with {shown}",
                offset,
                f"give the operation a result: {shown} = …" if name else None,
            )
        if char == "}":
            return self.error("'}' closes nothing", offset, "delete it")
        word = re.compile(r"\S+").match(self.text, offset)
        shown = (word[0] if word else char)[:40]
        return self.error(f"'{shown}' begins no statement", offset)

    def label(self, start: int, block_types: list[Type] | None) -> int:
        """`^bb0(%x: i32, %y):`, copied, with the types that were left out."""
        match = _LABEL.match(self.text, start)
        if match is None:
            raise self.error("expected a block's name after '^'", start)
        self.result.labels = True
        self.out.put(match[0], start)
        end = match.end()
        opened = self.at(end, "(")
        if opened is not None:
            pieces, end = self.block_arguments(opened, block_types)
            self.out.put("(" + ", ".join(pieces) + ")", opened - 1)
        end = self.expect(end, ":", "after the block's name")
        self.out.put(":\n", end - 1)
        return end

    def block_arguments(self, offset: int, block_types: list[Type] | None) -> tuple[list[str], int]:
        """The arguments in `(%x: i32, %y)` behind the parenthesis: their texts, and the end."""
        pieces: list[str] = []
        end = self.at(offset, ")")
        while end is None:
            name, start, offset = self.value(offset, "in the block's arguments")
            colon = self.at(offset, ":")
            if colon is not None:
                type_, offset = self.read_type(colon)
            else:
                known = (
                    block_types[len(pieces)]
                    if (block_types and len(pieces) < len(block_types))
                    else None
                )
                if not isinstance(known, str):
                    raise self.error(f"{name} needs a type here", start, f"write {name}: TYPE")
                type_ = known
            self.define(name, type_)
            self.own_argument(name, start)
            piece = f"{name}: {type_}"
            located = self.at(offset, "loc(")
            if located is not None:
                stop = self.bracket_end(located - 1)
                piece += f" loc{self.text[located - 1 : stop]}"
                offset = stop
            else:
                piece += self.loc(start, name[1:])
            pieces.append(piece)
            comma = self.at(offset, ",")
            if comma is None:
                end = self.expect(offset, ")", "after the block's arguments")
            else:
                offset = comma
        return pieces, end

    def own_argument(self, name: str, offset: int) -> None:
        """Note that `name` is the next block argument of the statement being read."""
        if self.owner is not None:
            self.result.block_arguments.setdefault(self.owner, []).append(
                (name[1:], self.source.line_and_column(offset))
            )

    owner: Place | None = None

    # -- A statement that is copied

    def copied(
        self,
        results: str | None,
        op: str,
        start: int,
        offset: int,
        *,
        found: list[Type] | None = None,
        header_type: Type = None,
        copy_from: int | None = None,
        block_types: list[Type] | None = None,
        expected: list[Type] | None = None,
    ) -> int:
        """A statement in full MLIR, up to the next one; its regions are elaborated.

        found: the types of its results, if known. header_type: of the loop variables in the
        head of a statement with a region.
        """
        if found is None:
            self.check_known(op, start if results is None else offset - len(op))
        text, out = self.text, self.out
        outer = False
        first_piece, begun = len(out.pieces), start if copy_from is None else copy_from
        stack: list[tuple[str, int]] = []
        used: list[str] = []
        header: list[tuple[str, Type, int]] = []
        located = regions = False
        arrow_end = colon = None
        previous = ""
        owner, self.owner = self.owner, self.place(start)
        generic = op.startswith('"avial.')
        if generic:
            self.result.generic = True
            outer, self.program.in_schedule = self.program.in_schedule, True
        end = offset
        position = offset
        finished = False
        while not finished:
            restart = None
            for match in TOKEN.finditer(text, position):
                kind = match.lastgroup
                if kind == "comment":
                    continue
                if (
                    not stack
                    and kind != "open"
                    and kind != "close"
                    and starts_statement(text, match)
                ):
                    finished = True
                    break
                if kind == "open":
                    if match[0] == "{" and self.is_region(match, stack, op, previous, regions):
                        opened = match.end()
                        out.put(text[begun:opened], begun)
                        out.put("\n", opened)
                        mine, self.owner = self.owner, self.place(start)
                        for name, _, where in header:
                            self.own_argument(name, where)
                        closed = self.region(
                            opened,
                            arguments=[(name, type_) for name, type_, _ in header],
                            block_types=block_types,
                            expected=expected,
                            fresh_constants=op in ISOLATED,
                            opened_at=match.start(),
                        )
                        header = []
                        self.owner = mine
                        self.implied_terminator(op, start)
                        out.put("}", closed - 1)
                        begun = restart = end = closed
                        regions = True
                        previous = "}"
                        break
                    stack.append((match[0], match.start()))
                elif kind == "close":
                    if not stack:
                        if match[0] == "}":
                            finished = True
                            break
                        raise self.error(f"'{match[0]}' closes nothing", match.start(), "delete it")
                    opener, where = stack.pop()
                    if match[0] == "}" and opener != "{":
                        raise self.error(f"'{opener}' is never closed", where)
                    if CLOSING[opener] != match[0]:
                        raise self.error(
                            f"'{match[0]}' where '{CLOSING[opener]}' should close the '{opener}' "
                            f"of line {self.source.line_and_column(where)[0]}",
                            match.start(),
                        )
                elif kind == "value":
                    if match[0] in self.values:
                        used.append(match[0])
                    elif not regions and op not in NO_HEADER:
                        header.append(self._header_value(match, header_type))
                elif kind == "arrow" and not stack:
                    arrow_end = match.end()
                elif kind == "word" and match[0] in INTEGER_LISTS and op in INTEGER_LISTS[match[0]]:
                    self.check_integers(match)
                elif kind == "word" and match[0] == "loc" and not stack:
                    located = text.startswith("(", match.end())
                elif kind == "punct":
                    if match[0] == ":" and not stack:
                        colon = match.end()
                    elif match[0] not in ",:=<>?*+-|/.":
                        raise self.error(f"stray '{match[0]}'", match.start())
                previous = match[0]
                end = match.end()
            else:
                if restart is None:
                    finished = True
            if restart is not None:
                position = restart
        if stack:
            raise self.error(f"'{stack[-1][0]}' is never closed", stack[-1][1])
        self.owner = owner
        if generic:
            self.program.in_schedule = outer
        out.put(text[begun:end], begun)
        if not located:
            out.put(self.loc(start, _first_name(results)), end)
        out.put("\n", end)
        if results is not None:
            if found is None:
                found = self._copied_types(results, first_piece, used, arrow_end, colon, end, op)
            self.define_results(results, found)
        return end

    _INTEGERS = re.compile(r"\w+\s*=\s*\[\s*(?:-?\d{1,18}(?:\s*,\s*-?\d{1,18})*)?\s*\]")

    def check_integers(self, word: re.Match[str]) -> None:
        """`dimensions = [0, 1]`: MLIR's own reader aborts the process where it is anything else."""
        if re.compile(r"\w+\s*=").match(self.text, word.start()) and not self._INTEGERS.match(
            self.text, word.start()
        ):
            raise self.error(
                f"expected a list of integers after '{word[0]} ='",
                word.end(),
                f"for example {word[0]} = [0]",
            )

    def _header_value(self, match: re.Match[str], header_type: Type) -> tuple[str, Type, int]:
        """A name that the head of a statement introduces for its region."""
        colon = self.at(match.end(), ":")
        type_ = header_type if colon is None else self.read_type(colon)[0]
        return match[0], type_, match.start()

    def _copied_types(
        self,
        results: str,
        first_piece: int,
        used: list[str],
        arrow_end: int | None,
        colon: int | None,
        end: int,
        op: str,
    ) -> list[Type]:
        """The types of the results of a copied statement: as written behind `->`, else from MLIR
        when needed.
        """
        if arrow_end is not None and (colon is not None or op in ("scf.if", "scf.for")):
            start = self.source.skip(arrow_end)
            if self.text.startswith("(", start):
                stop = self.bracket_end(start)
                return list(types.split_commas(self.text[start + 1 : stop - 1]))
            written, stop = self.read_type(start)
            types_behind = [written]
            while results.count(",") >= len(types_behind):
                comma = self.at(stop, ",")
                if comma is None:
                    break
                written, stop = self.read_type(comma)
                types_behind.append(written)
            return types_behind
        count = sum(int(part.partition(":")[2] or 1) for part in results.split(",")[:1000])
        operands: dict[str, str] = {}
        for name in used:
            type_ = self.values[name]
            if isinstance(type_, Unknown):
                type_ = self.type_of(name, end)
            base = name.partition("#")[0]
            if isinstance(type_, Constant):
                type_ = self._default(type_.literal)
            if type_ is None or base != name:
                return [None] * count
            operands[name] = type_
        if len(operands) > 50 or count > 50:
            return [None] * count
        pieces = tuple(self.out.pieces[first_piece:])
        return [Unknown(pieces, results, k, tuple(operands.items())) for k in range(count)]

    def is_region(
        self,
        match: re.Match[str],
        stack: list[tuple[str, int]],
        op: str,
        previous: str,
        regions: bool,
    ) -> bool:
        """Whether a `{` opens a region, and not a dictionary of attributes."""
        if stack and not (op[0] == '"' and len(stack) == 1 and stack[0][0] == "("):
            return False
        if previous in ("attributes", "<"):
            return False
        if op in ("linalg.map", "linalg.reduce") and previous == "":
            return False
        inside = self.source.skip(match.end())
        if self.text.startswith("}", inside):
            # An empty one: MLIR's printer leaves empty dictionaries out, a region it writes.
            return op[0] != '"' or bool(stack)
        token = TOKEN.match(self.text, inside)
        if token is None:
            return True
        if token.lastgroup in ("value", "label", "open", "close"):
            return True
        if token.lastgroup in ("word", "string"):
            following = self.source.skip(token.end())
            if self.text.startswith(("=", ",", "}"), following) and not self.text.startswith(
                "==", following
            ):
                if self.text.startswith("}", following) and (
                    token[0] in TERMINATORS or "." in token[0]
                ):
                    behind = self.source.skip(following + 1)
                    return not self.text.startswith(":", behind) and self._is_op(token[0])
                return False
            return "." in token[0] or token[0] in ("return", "call") or token.lastgroup == "string"
        return True

    def _is_op(self, name: str) -> bool:
        return name in self.rules or name == "return" or self.context.is_registered_operation(name)

    def implied_terminator(self, op: str, offset: int) -> None:
        """The terminator the notation leaves out, with the place of the statement it belongs to."""
        if op in ("scf.for", "scf.if", "scf.index_switch") and self.last_op != "scf.yield":
            if self.last_op not in TERMINATORS:
                self.out.put(f"scf.yield{self.loc(offset)}\n", offset)
        elif op == "scf.parallel" and self.last_op != "scf.reduce":
            self.out.put(f"scf.reduce{self.loc(offset)}\n", offset)
        elif (
            op in ("affine.for", "affine.if", "affine.parallel") and self.last_op != "affine.yield"
        ):
            self.out.put(f"affine.yield{self.loc(offset)}\n", offset)
        elif op == "gpu.launch" and self.last_op != "gpu.terminator":
            self.out.put(f"gpu.terminator{self.loc(offset)}\n", offset)
        elif op == "memref.alloca_scope" and self.last_op != "memref.alloca_scope.return":
            self.out.put(f"memref.alloca_scope.return{self.loc(offset)}\n", offset)

    def check_known(self, op: str, offset: int) -> None:
        """Refuse an operation no dialect has, and name its neighbour."""
        name = op[1:-1] if op[0] == '"' else op
        if op in BARE or self.context.is_registered_operation(name):
            return
        if op[0] != '"' and self.context.is_registered_operation(f"func.{name}"):
            return
        dialect = name.partition(".")[0]
        neighbours = set(self.rules) | operation_names(dialect)
        hint = did_you_mean(name, neighbours)
        raise self.error(f"unknown operation '{name}'", offset, hint)


BARE = frozenset(
    {"return", "call", "call_indirect", "constant", "module", "unrealized_conversion_cast"}
)
ISOLATED = frozenset({
    "func.func", "module", "builtin.module", "gpu.module", "gpu.func", "llvm.func",
    '"func.func"', '"builtin.module"', '"gpu.module"', '"gpu.func"', '"llvm.func"',
})  # fmt: skip
INTEGER_LISTS = {
    "dimensions": frozenset({"linalg.reduce", "linalg.broadcast"}),
    "permutation": frozenset({"linalg.transpose"}),
}
NO_HEADER = frozenset({"return", "func.return"})


def operation_names(dialect: str) -> set[str]:
    """Every operation of a dialect that MLIR's Python package knows."""
    import importlib

    if not re.fullmatch(r"[a-z]\w*", dialect):
        return set()
    try:
        module = importlib.import_module(f"mlir.dialects._{dialect}_ops_gen")
    except ImportError:
        return set()
    found = (getattr(item, "OPERATION_NAME", None) for item in vars(module).values())
    return {name for name in found if name}


def _first_name(results: str | None) -> str:
    """`%x:2, %y` -> `x`."""
    if results is None:
        return ""
    match = _ID.match(results)
    return match[0][1:] if match else ""
