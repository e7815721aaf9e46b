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

from avial_lab.arrays import Binding
from avial_lab.errors import AvialError
from avial_lab.notation import types
from avial_lab.notation.elaboration import (
    Constant,
    Elaboration,
    Place,
    Program,
    Scalar,
    Type,
    Unknown,
)
from avial_lab.notation.scope import Scope
from avial_lab.notation.source import (
    CLOSING,
    STATEMENT,
    TOKEN,
    VALUE,
    Source,
    did_you_mean,
    first_name,
    starts_statement,
)
from avial_lab.notation.vocabulary import (
    BARE,
    INTEGER_LISTS,
    ISOLATED,
    NO_HEADER,
    TERMINATORS,
    operation_names,
)

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
                    raise self.error("'{' is never closed", opened_at, "add the missing '}'")
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
            out.put(self.loc(start, first_name(results)), end)
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
            types_behind: list[Type] = [written]
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
