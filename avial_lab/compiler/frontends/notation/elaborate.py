"""Short notation -> full MLIR: types, constants and places are filled in.

Cell text -> Elaboration: the text of one module, and the way from its places back to the cell's.
One pass over the text, statement by statement: what `RULES` knows is completed, everything
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

from mlir import ir

from avial_lab.compiler.frontends.notation.copied import Copy
from avial_lab.compiler.frontends.notation.elaboration import (
    Elaboration,
    Place,
    Program,
    Scalar,
    Type,
)
from avial_lab.compiler.frontends.notation.hints import (
    WHAT_A_CELL_TAKES,
    language_hint,
    nearest_operation,
)
from avial_lab.compiler.frontends.notation.scope import Scope
from avial_lab.compiler.frontends.notation.source import STATEMENT, VALUE, Source
from avial_lab.compiler.frontends.notation.vocabulary import (
    BARE,
    IMPLIED_TERMINATORS,
    TERMINATORS,
    operation_names,
)
from avial_lab.core.buffers import Binding
from avial_lab.core.errors import AvialError

_VALUE = re.compile(VALUE)
_LABEL = re.compile(r"\^[\w$.-]+")


class Elaborator(Scope):
    """State of one pass over one cell. `rules.RULES` is the table of what can be completed."""

    def __init__(
        self,
        source: Source,
        context: ir.Context,
        binding: Binding | None,
        scalars: Mapping[str, Scalar],
        rules: Mapping[str, Callable[..., int]],
    ) -> None:
        super().__init__(source, context)
        self.binding, self.scalars, self.rules = binding, scalars, rules
        self.result = Elaboration(source, self.out)
        self.program = Program()
        self.owner: Place | None = None
        self.last_op = ""
        self.expected: list[Type] = []
        self.yielded: list[Type] = []

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
                    where = self.unclosed(opened_at)
                    raise self.error("'{' is never closed", where, "add the missing '}'")
                raise self.stray(match)
            results = match["results"]
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
        hint = language_hint(self.text, offset)
        return self.error(f"'{shown}' is not a statement", offset, hint)

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
        begun = start if copy_from is None else copy_from
        copy = Copy(self, results, op, start, begun, header_type, block_types, expected)
        end = copy.run(offset)
        if results is not None:
            self.define_results(results, copy.result_types() if found is None else found)
        return end

    def is_op(self, name: str) -> bool:
        """Whether some operation has that name."""
        return name in self.rules or name == "return" or self.context.is_registered_operation(name)

    def implied_terminator(self, op: str, offset: int) -> None:
        """The terminator the notation leaves out, with the place of the statement it belongs to."""
        terminator = IMPLIED_TERMINATORS.get(op)
        if terminator is None or self.last_op == terminator:
            return
        if terminator == "scf.yield" and self.last_op in TERMINATORS:
            return
        self.out.put(f"{terminator}{self.loc(offset)}\n", offset)

    def _first_operand(self, offset: int) -> str | None:
        """The type of the first value behind `offset` in its line, where it has one."""
        value = re.compile(rf"[^%\n]*({VALUE})").match(self.text, offset)
        found = self.values.get(value[1]) if value else None
        return found if isinstance(found, str) else None

    def check_known(self, op: str, offset: int) -> None:
        """Refuse an operation no dialect has, and name its neighbour."""
        name = op[1:-1] if op[0] == '"' else op
        if op in BARE or self.context.is_registered_operation(name):
            return
        if op[0] != '"' and self.context.is_registered_operation(f"func.{name}"):
            return
        dialect = name.partition(".")[0]
        others = operation_names(dialect)
        neighbours = set(self.rules) | others
        hint = None if others else language_hint(self.text, offset)
        hint = hint or nearest_operation(name, neighbours, self._first_operand(offset))
        if hint is None and not self.text[:offset].strip():
            hint = WHAT_A_CELL_TAKES
        raise self.error(f"unknown operation '{name}'", offset, hint)
