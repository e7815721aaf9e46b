"""Where each line of a module's text comes from.

A module's text with its locations, the cell -> the text without them and, for each of its lines,
the cell's lines behind it.

    %x = memref.load %a[%i] : memref<20xi32> loc(#loc7)       ─►  (7,)
    #loc7 = loc("x"(#loc3))   #loc3 = loc("In [4]":7:3)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from avial_lab.artifact.stages import Lines

_STRING = r'"(?:[^"\\]|\\.)*"'


def _nested(depth: int) -> str:
    """What stands between parentheses, these nested up to `depth`; strings count as one."""
    inner = rf"|\({_nested(depth - 1)}\)" if depth else ""
    return rf'(?:[^()"]|{_STRING}{inner})*'


_LOCATION = re.compile(rf"{_STRING}| loc\(({_nested(5)})\)")
_ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)")
_PLACE = re.compile(rf"({_STRING})(?::(\d+):\d+)?|#loc\d*")
_INDENT = re.compile(r" *")
_INSIDE = ("}", "]", ")", "^", "case ", "default ")
"""What a line begins with that goes on with, or ends, the operation above it at its indent."""


@dataclass(frozen=True)
class LocatedText:
    """A module as MLIR prints it with debug information and aliases for its locations."""

    text: str
    cell: str

    @cached_property
    def _read(self) -> tuple[list[str], list[str | None], list[list[str]]]:
        """The clean lines; of each the location at its end, and those of arguments within."""
        clean: list[str] = []
        ends: list[str | None] = []
        within: list[list[str]] = []
        for line in self.text.splitlines():
            if _ALIAS.fullmatch(line):
                continue
            found = [match for match in _LOCATION.finditer(line) if match[1] is not None]
            last = found[-1] if found and found[-1].end() == len(line) else None
            clean.append(_LOCATION.sub(lambda m: m[0] if m[1] is None else "", line))
            ends.append(last and last[1])
            within.append([match[1] for match in found if match is not last])
        return clean, ends, within

    @property
    def lines(self) -> list[str]:
        """The text without its locations."""
        return self._read[0]

    @cached_property
    def origins(self) -> tuple[Lines, ...]:
        """Of each line the cell's lines; an operation with regions has its place at its end."""
        clean, ends, within = self._read
        result: list[Lines] = [()] * len(clean)
        opened: dict[int, list[int]] = {}
        for number, (line, end) in enumerate(zip(clean, ends, strict=True)):
            indent = len(_INDENT.match(line)[0])  # type: ignore[index]
            goes_on = line.startswith(_INSIDE, indent)
            if end is None:
                if not goes_on:
                    opened[indent] = []
                if line.startswith("^", indent):
                    result[number] = self._lines_of(within[number])
                else:
                    opened.setdefault(indent, []).append(number)
                continue
            lines = self._lines_of([end])
            for part in (*(opened.pop(indent, ()) if goes_on else ()), number):
                result[part] = lines
        return tuple(result)

    def _lines_of(self, locations: Sequence[str]) -> Lines:
        return tuple(sorted({line for body in locations for line in self._places(body)}))

    def _places(self, body: str) -> frozenset[int]:
        """The cell's lines in the text of a location: fused ones, call sites and names taken
        apart.
        """
        known = self._known
        if body not in known:
            known[body] = frozenset()  # a location cannot hold itself
            found: set[int] = set()
            for match in _PLACE.finditer(body):
                if match[0].startswith("#"):
                    found |= self._places(self.aliases.get(match[0], ""))
                elif match[2] is not None and match[1] == self._quoted_cell:
                    found.add(int(match[2]))
            known[body] = frozenset(found - {0})
        return known[body]

    @cached_property
    def _known(self) -> dict[str, frozenset[int]]:
        return {}

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """`#loc7` -> what stands for it."""
        found = (_ALIAS.fullmatch(line) for line in self.text.splitlines())
        return {match[1]: match[2] for match in found if match}

    @cached_property
    def _quoted_cell(self) -> str:
        """As MLIR writes a string: bytes that are no plain ASCII as a backslash and two digits."""
        plain = (
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
            for byte in self.cell.encode()
        )
        return '"' + "".join(plain).replace("\\5C", "\\\\") + '"'

    def numbered(self) -> tuple[str, list[Lines]]:
        """The text with a number for a line in each location, and what the numbers stand for: line
        k is entry k of the table. So debug information, which knows single lines, carries many.
        """
        table: list[Lines] = [(), ()]  # from 1; line 1 is what is not known

        def number(body: str) -> str:
            lines = tuple(sorted(self._places(body)))
            if not lines:
                return 'loc("avial":1:1)'
            if lines not in index:
                index[lines] = len(table)
                table.append(lines)
            return f'loc("avial":{index[lines]}:1)'

        index: dict[Lines, int] = {}
        text = []
        for line in self.text.splitlines():
            alias = _ALIAS.fullmatch(line)
            if alias:
                text.append(f"{alias[1]} = {number(alias[2])}")
            elif " loc(" in line:
                text.append(
                    _LOCATION.sub(lambda m: m[0] if m[1] is None else f" {number(m[1])}", line)
                )
            else:
                text.append(line)
        return "\n".join(text) + "\n", table
