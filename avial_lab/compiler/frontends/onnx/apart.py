"""Large tensors of an ONNX file, apart from its message: a file is in memory once, not as bytes and
as what protobuf copies of them.

File -> the ModelProto's bytes, in which a token stands for each large tensor's `raw_data`, and the
memory of these. Encoding: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

LEAST = 4096
"""Bytes of what is kept apart."""

_TOKEN = 24
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_TENSOR = {9: None}
_FIELDS: Mapping[int, object] = {  # model -> graph -> initializer, and node -> attribute -> t
    7: {5: _TENSOR, 1: {5: {5: _TENSOR}}}
}
"""By the numbers of onnx.proto, the messages on the way to what is kept apart (None)."""


@dataclass(frozen=True)
class Outside:
    """Where values lie that a message does not hold: `folder` is that of external data, `apart`
    has bytes by the token that stands for them.
    """

    folder: Path | None = None
    apart: Mapping[bytes, np.ndarray] = field(default_factory=dict[bytes, np.ndarray], repr=False)

    def bytes_of(self, raw: bytes) -> bytes | np.ndarray:
        """What `raw_data` stands for."""
        return self.apart.get(raw, raw) if len(raw) == _TOKEN else raw


NOWHERE = Outside()
"""Of a model that was read from no file."""


class _Unusual(Exception):
    """Something that protobuf itself may read, or refuse."""


def read_apart(path: Path) -> tuple[bytes, Mapping[bytes, np.ndarray]]:
    """A message that protobuf can parse, and what its tokens stand for. What is no message is
    returned as it is.
    """
    with path.open("rb") as file:
        walk = _Walk(file, secrets.token_bytes(_TOKEN - 8))
        try:
            return walk.message(_FIELDS, path.stat().st_size), walk.apart
        except _Unusual:
            file.seek(0)
            return file.read(), {}


@dataclass
class _Walk:
    file: BinaryIO
    name: bytes
    """In all of its tokens, and known to no file."""
    at: int = 0
    apart: dict[bytes, np.ndarray] = field(default_factory=dict[bytes, np.ndarray])

    def message(self, fields: Mapping[int, object], end: int) -> bytes:
        """The message that ends at byte `end`, whose fields of these numbers are looked into."""
        parts: list[bytes] = []
        while self.at < end:
            tag = self._number()
            number, kind = tag >> 3, tag & 7
            parts.append(_varint(tag))
            if kind != _LENGTH:
                parts.append(self._scalar(kind))
                continue
            size = self._number()
            if self.at + size > end:
                raise _Unusual
            inner = fields.get(number, _VARINT) if size >= LEAST else _VARINT
            if inner is None:
                body = self._kept(size)
            elif isinstance(inner, Mapping):
                body = self.message(inner, self.at + size)
            else:
                body = self._taken(size)
            parts += [_varint(len(body)), body]
        if self.at != end:
            raise _Unusual
        return b"".join(parts)

    def _kept(self, size: int) -> bytes:
        memory = np.empty(size, np.uint8)
        if self.file.readinto(memory.data) != size:
            raise _Unusual
        self.at += size
        memory.flags.writeable = False
        token = self.name + len(self.apart).to_bytes(8, "little")
        self.apart[token] = memory
        return token

    def _taken(self, size: int) -> bytes:
        found = self.file.read(size)
        if len(found) != size:
            raise _Unusual
        self.at += size
        return found

    def _number(self, bits: int = 32) -> int:
        """A tag or a size; with 64 bits what a field holds."""
        value = byte = 0
        for shift in range(0, bits, 7):
            byte = self._taken(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
        if byte > 127 or value >> bits:
            raise _Unusual
        return value

    def _scalar(self, kind: int) -> bytes:
        if kind == _VARINT:
            return _varint(self._number(64))
        if kind in (_FIXED64, _FIXED32):
            return self._taken(8 if kind == _FIXED64 else 4)
        raise _Unusual


def _varint(number: int) -> bytes:
    """
    >>> _varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))
