"""A machine as attributes of MLIR's dialect dlti on a module, and back.

    module attributes {dlti.target_system_spec = #dlti.target_system_spec<
      "n" = #dlti.target_device_spec<"count" = 4 : i64, "core_flops" = "40 GFLOP/s", …>,
      "avial.network" = #dlti.target_device_spec<"links" = [#dlti.map<"name" = "eth", …>], …>>}

Topology -> the attribute's text; text of a module -> Topology. A device is a node, or as many as
its `count` says; keys and units are those of a file in YAML, and so is what is refused. The text is
read as it stands, without MLIR; an attribute that an alias stands for is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from avial_lab.core.errors import CellSpan
from avial_lab.core.files import text_of
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import TopologyError, topology_at, topology_text

SPEC = "dlti.target_system_spec"
NETWORK = "avial.network"
"""The entry of what is not of a node."""

_TOKEN = re.compile(
    r'\s*(?://[^\n]*\s*)*(?P<token>"(?:[^"\\]|\\.)*"|[#!]?[A-Za-z_][\w.$]*|[-+]?[\d.]+(?:[eE][-+]?\d+)?'
    r"|[<>\[\]=,:{}()]|\S)"
)


@dataclass(frozen=True)
class _Mark:
    """As PyYAML's."""

    line: int
    column: int


@dataclass(frozen=True)
class _Part:
    """As a node of PyYAML: `mapping` (pairs), `sequence` (parts) or `scalar` (text)."""

    id: str
    value: Any
    start_mark: _Mark


def module_text(topology: Topology) -> str:
    """A module without anything but the machine."""
    return f"module attributes {{{SPEC} = {dlti_text(topology)}}} {{\n}}\n"


def dlti_text(topology: Topology) -> str:
    """The attribute. Raises TopologyError for what a file cannot say."""
    import yaml  # takes some 30 ms to load

    compose: Any = cast("Any", yaml).compose
    root = compose(topology_text(topology), Loader=yaml.SafeLoader)
    members = {key.value: value for key, value in root.value}
    devices: list[str] = []
    for node in members.pop("nodes").value:
        pairs = [(key.value, value) for key, value in node.value]
        name = next(value.value for key, value in pairs if key == "name")
        told = _entries((key, value) for key, value in pairs if key != "name")
        devices.append(f"{_quoted(name)} = #dlti.target_device_spec<{told}>")
    rest = _entries(members.items())
    devices.append(f'"{NETWORK}" = #dlti.target_device_spec<{rest}>')
    return f"#dlti.target_system_spec<{', '.join(devices)}>"


def _entries(pairs: Any) -> str:  # noqa: ANN401  PyYAML's nodes
    return ", ".join(f"{_quoted(str(key))} = {_attribute(value)}" for key, value in pairs)


def _attribute(node: Any) -> str:  # noqa: ANN401
    if node.id == "mapping":
        return f"#dlti.map<{_entries((key.value, value) for key, value in node.value)}>"
    if node.id == "sequence":
        return "[" + ", ".join(map(_attribute, node.value)) + "]"
    return f"{node.value} : i64" if node.value.isdecimal() else _quoted(node.value)


def _quoted(text: str) -> str:
    """As MLIR has it: bytes in hexadecimal where they are no plain letters."""
    return '"' + "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\' else _bytes(c) for c in text
    ) + '"'  # fmt: skip


def _bytes(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


# Read ---------------------------------------------------------------------------------------------


def read_module(path: Path) -> Topology:
    """The machine of the module in that file."""
    return topology_in_module(text_of(path, TopologyError), str(path))


def topology_in_module(text: str, name: str) -> Topology:
    """`name` is what errors call it. Raises TopologyError with the place of what is wrong."""
    found = re.search(rf"\b{re.escape(SPEC)}\s*=", text)
    if found is None:
        raise TopologyError(
            f"{name} has no attribute {SPEC}", hint="avial-lab topology … -o FILE.mlir"
        )
    spec = _Text(text, name).attribute(found.end())
    at = spec.start_mark
    if spec.id != "mapping":
        span = CellSpan(name, text, at.line + 1, at.column + 1)
        raise TopologyError(f"{SPEC} has a device for each node", span=span)
    nodes: list[_Part] = []
    members: list[tuple[_Part, _Part]] = []
    for key, value in spec.value:
        if key.value == NETWORK:
            members += value.value
        elif value.id == "mapping":
            named = _Part("scalar", "name", key.start_mark), key
            nodes.append(_Part("mapping", [named, *value.value], key.start_mark))
    listed = _Part("scalar", "nodes", at), _Part("sequence", nodes, at)
    return topology_at(_Part("mapping", [*members, listed], at), text, name)


class _Text:
    """A recursive descent over the attributes that dlti, and a machine, are made of."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._at = 0

    def attribute(self, at: int) -> _Part:
        """The one that begins there."""
        self._at = at
        return self._attribute(0)

    def _next(self) -> tuple[str, int]:
        """The next token, and where it is."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._error("the attribute ends too early", len(self._text))
        return match["token"], match.start("token")

    def _take(self, *expected: str) -> tuple[str, int]:
        token, at = self._next()
        if expected and token not in expected:
            raise self._error(f"expected {' or '.join(expected)}, not {token}", at)
        self._at = at + len(token)
        return token, at

    def _attribute(self, depth: int) -> _Part:
        token, at = self._take()
        if depth > MOST_DEPTH:
            raise self._error("attributes nest too deep", at)
        if token == "[":
            return _Part("sequence", list(self._several("]", depth)), self._mark(at))
        if token.startswith("#dlti."):
            self._take("<")
            return _Part("mapping", list(self._pairs(depth)), self._mark(at))
        if token.startswith("#"):
            return self._alias(token, at, depth)
        value = _unquoted(token) if token.startswith('"') else token
        if self._next()[0] == ":":  # its type
            self._take(":")
            self._take()
        return _Part("scalar", value, self._mark(at))

    def _several(self, end: str, depth: int) -> Iterator[_Part]:
        if self._next()[0] == end:
            self._take(end)
            return
        while True:
            yield self._attribute(depth + 1)
            if self._take(",", end)[0] == end:
                return

    def _pairs(self, depth: int) -> Iterator[tuple[_Part, _Part]]:
        if self._next()[0] == ">":
            self._take(">")
            return
        while True:
            token, at = self._take()
            self._take("=")
            key = _Part("scalar", _unquoted(token), self._mark(at))
            yield key, self._attribute(depth + 1)
            if self._take(",", ">")[0] == ">":
                return

    def _alias(self, name: str, at: int, depth: int) -> _Part:
        defined = re.search(rf"^\s*{re.escape(name)}\s*=", self._text, re.MULTILINE)
        if defined is None:
            raise self._error(f"{name} is not known here", at)
        back, self._at = self._at, defined.end()
        found = self._attribute(depth + 1)
        self._at = back
        return found

    def _mark(self, at: int) -> _Mark:
        span = CellSpan.at(at, self._text, self._name)
        return _Mark(span.line - 1, span.column - 1)

    def _error(self, message: str, at: int) -> TopologyError:
        return TopologyError(message, span=CellSpan.at(at, self._text, self._name))


MOST_DEPTH = 16
"""Of attributes in each other; a machine has four."""


def _unquoted(token: str) -> str:
    r"""The text in quotes.

    >>> _unquoted('"a\\22b\\C3\\A9"')
    'a"bé'
    """
    plain = token[1:-1] if token.startswith('"') else token
    raw = re.sub(
        rb"\\([0-9A-Fa-f]{2}|.)",
        lambda m: bytes.fromhex(m[1].decode()) if len(m[1]) == 2 else m[1],
        plain.encode(),
    )
    return raw.decode(errors="replace")
