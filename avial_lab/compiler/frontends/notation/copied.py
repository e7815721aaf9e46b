"""Statements in full MLIR: copied up to where the next one begins, their regions elaborated.

Place of a statement -> its text with a location, the place behind it, and its results' types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.elaboration import Constant, Type, Unknown
from avial_lab.compiler.frontends.notation.source import TOKEN, first_name, starts_statement
from avial_lab.compiler.frontends.notation.vocabulary import (
    INTEGER_LISTS,
    ISOLATED,
    NO_HEADER,
    TERMINATORS,
)

if TYPE_CHECKING:
    from avial_lab.compiler.frontends.notation.elaborate import Elaborator

_MOST = 50
"""Operands or results of a statement whose types MLIR is asked for."""


class Copy:
    """One statement while it is copied.

    header_type: of the loop variables in its head; block_types: of the arguments of its regions
    that leave them out; expected: of what its regions yield.
    """

    def __init__(
        self,
        e: Elaborator,
        results: str | None,
        op: str,
        start: int,
        begun: int,
        header_type: Type,
        block_types: list[Type] | None,
        expected: list[Type] | None,
    ) -> None:
        self.e, self.results, self.op, self.start, self.begun = e, results, op, start, begun
        self.header_type, self.block_types, self.expected = header_type, block_types, expected
        self.first_piece = len(e.out.pieces)
        self.end = begun
        self.stack: list[tuple[str, int]] = []
        self.used: list[str] = []
        self.header: list[tuple[str, Type, int]] = []
        self.located = self.regions = False
        self.arrow_end: int | None = None
        self.colons: list[int] = []
        self.previous = ""

    def run(self, offset: int) -> int:
        """Copy from `offset`, where the operation's name ends; the place behind the statement."""
        e, start = self.e, self.start
        owner, e.owner = e.owner, e.place(start)
        in_schedule = e.program.in_schedule
        if self.op.startswith('"avial.'):
            e.result.generic = e.program.in_schedule = True
        self.end = offset
        position: int | None = offset
        while position is not None:
            position = self._tokens(position)
        if self.stack:
            raise e.error(f"'{self.stack[-1][0]}' is never closed", self.stack[-1][1])
        e.owner, e.program.in_schedule = owner, in_schedule
        e.out.put(e.text[self.begun : self.end], self.begun)
        if not self.located:
            e.out.put(e.loc(start, first_name(self.results)), self.end)
        e.out.put("\n", self.end)
        return self.end

    def _tokens(self, position: int) -> int | None:
        """Read to the end of the statement (None), or through its next region: the place behind."""
        text, stack = self.e.text, self.stack
        for match in TOKEN.finditer(text, position):
            kind = match.lastgroup
            if kind == "comment":
                continue
            if kind == "open":
                if match[0] == "{" and self._is_region(match):
                    return self._region(match)
                stack.append((match[0], match.start()))
            elif kind == "close":
                if match[0] == "}" and not stack:
                    return None
                self._close(match)
            elif not stack and starts_statement(text, match):
                return None
            else:
                self._note(kind, match)
            self.previous = match[0]
            self.end = match.end()
        return None

    def _region(self, brace: re.Match[str]) -> int:
        """The region behind the brace, elaborated; the place behind it."""
        e, opened = self.e, brace.end()
        e.out.put(e.text[self.begun : opened], self.begun)
        e.out.put("\n", opened)
        for name, _, where in self.header:
            e.own_argument(name, where)
        closed = e.region(
            opened,
            arguments=[(name, type_) for name, type_, _ in self.header],
            block_types=self.block_types,
            expected=self.expected,
            fresh_constants=self.op in ISOLATED,
            opened_at=brace.start(),
        )
        self.header = []
        e.implied_terminator(self.op, self.start)
        e.out.put("}", closed - 1)
        self.begun = self.end = closed
        self.regions = True
        self.previous = "}"
        return closed

    def _close(self, match: re.Match[str]) -> None:
        if not self.stack:
            raise self.e.error(f"'{match[0]}' closes nothing", match.start(), "delete it")
        opener, where = self.stack.pop()
        self.e.check_pair(opener, where, match)

    def _note(self, kind: str | None, match: re.Match[str]) -> None:
        """What a token that is no bracket tells of the statement."""
        e, word = self.e, match[0]
        if kind == "value":
            if word in e.values:
                self.used.append(word)
            elif not self.regions and self.op not in NO_HEADER:
                self.header.append(self._header_value(match))
        elif kind == "arrow":
            if not self.stack:
                self.arrow_end = match.end()
        elif kind == "word":
            if word in INTEGER_LISTS and self.op in INTEGER_LISTS[word]:
                check_integers(e, match)
            elif word == "loc" and not self.stack:
                self.located = e.text.startswith("(", match.end())
        elif kind == "punct":
            if word == ":" and not self.stack:
                self.colons.append(match.start())
            elif word not in ",:=<>?*+-|/.":
                raise e.error(f"stray '{word}'", match.start())

    def _header_value(self, match: re.Match[str]) -> tuple[str, Type, int]:
        """A name that the head of a statement introduces for its region."""
        colon = self.e.at(match.end(), ":")
        type_ = self.header_type if colon is None else self.e.read_type(colon)[0]
        return match[0], type_, match.start()

    def _is_region(self, match: re.Match[str]) -> bool:
        """Whether a `{` opens a region, and not a dictionary of attributes."""
        e, op, stack, previous = self.e, self.op, self.stack, self.previous
        if stack and not (op[0] == '"' and len(stack) == 1 and stack[0][0] == "("):
            return False
        if previous in ("attributes", "<"):
            return False
        if op in ("linalg.map", "linalg.reduce") and previous == "":
            return False
        inside = e.source.skip(match.end())
        if e.text.startswith("}", inside):
            # An empty one: MLIR's printer leaves empty dictionaries out, a region it writes.
            return op[0] != '"' or bool(stack)
        token = TOKEN.match(e.text, inside)
        if token is None:
            return True
        if token.lastgroup in ("value", "label", "open", "close"):
            return True
        if token.lastgroup in ("word", "string"):
            following = e.source.skip(token.end())
            if e.text.startswith(("=", ",", "}"), following) and not e.text.startswith(
                "==", following
            ):
                if e.text.startswith("}", following) and (
                    token[0] in TERMINATORS or "." in token[0]
                ):
                    behind = e.source.skip(following + 1)
                    return not e.text.startswith(":", behind) and e.is_op(token[0])
                return False
            return "." in token[0] or token[0] in ("return", "call") or token.lastgroup == "string"
        return True

    def result_types(self) -> list[Type]:
        """The types of the results: as written behind `->`, else from MLIR when needed."""
        if self.arrow_end is not None and self._is_before_types(self.arrow_end):
            return self._written_types(self.arrow_end)
        results = self.results or ""
        count = sum(int(part.partition(":")[2] or 1) for part in results.split(",")[:1000])
        targets = (written_target(self.e, colon) for colon in self.colons)
        target = next((found for found in targets if found is not None), None)
        if target is not None and count == 1:
            return [target]
        operands = self._operand_types()
        if operands is None or len(operands) > _MOST or count > _MOST:
            return [None] * count
        pieces = tuple(self.e.out.pieces[self.first_piece :])
        return [Unknown(pieces, results, k, tuple(operands.items())) for k in range(count)]

    def _is_before_types(self, arrow_end: int) -> bool:
        """Not so in `memref.transpose %a (i, j) -> (j, i) : T to T`."""
        known = bool(self.colons) and arrow_end > self.colons[0]
        return known or self.op in ("scf.if", "scf.for")

    def _written_types(self, offset: int) -> list[Type]:
        """`(T, U)`, or as many types between commas as there are results."""
        e = self.e
        start = e.source.skip(offset)
        if e.text.startswith("(", start):
            return list(types.split_commas(e.text[start + 1 : e.bracket_end(start) - 1]))
        written, stop = e.read_type(start)
        found: list[Type] = [written]
        while (self.results or "").count(",") >= len(found):
            comma = e.at(stop, ",")
            if comma is None:
                break
            written, stop = e.read_type(comma)
            found.append(written)
        return found

    def _operand_types(self) -> dict[str, str] | None:
        """The types of the values the statement uses; None where one cannot be told."""
        found: dict[str, str] = {}
        for name in self.used:
            type_ = self.e.values[name]
            if isinstance(type_, Unknown):
                type_ = self.e.type_of(name, self.end)
            if isinstance(type_, Constant):
                type_ = self.e.default_type(type_.literal)
            if type_ is None or "#" in name:
                return None
            found[name] = type_
        return found


def written_target(e: Elaborator, offset: int) -> Type:
    """U of the `: T to U` or `: T into U` at that place; None where there is none."""
    colon = e.at(offset, ":")
    if colon is None:
        return None
    start = e.source.skip(colon)
    end = e.type_end(start)
    behind = (e.at(end, "into") or e.at(end, "to")) if end > start else None
    return None if behind is None else e.read_type(behind)[0]


_EQUALS = re.compile(r"\w+\s*=")
_INTEGERS = re.compile(r"\w+\s*=\s*\[\s*(?:-?\d{1,18}(?:\s*,\s*-?\d{1,18})*)?\s*\]")


def check_integers(e: Elaborator, word: re.Match[str]) -> None:
    """`dimensions = [0, 1]`: MLIR's own reader aborts the process where it is anything else."""
    at = word.start()
    if _EQUALS.match(e.text, at) and not _INTEGERS.match(e.text, at):
        raise e.error(
            f"expected a list of integers after '{word[0]} ='",
            word.end(),
            f"for example {word[0]} = [0]",
        )
