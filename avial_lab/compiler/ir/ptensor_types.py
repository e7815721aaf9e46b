"""The type of arrays: shape and element, the device, and how it is divided over the ranks.

    !ptensor<10x?xf64, device="cuda:0", dist>                    as people write it
    !ptensor.ptensor<tensor<10x?xf64>, "cuda:0", unit>           as MLIR reads it

Text <-> text in the other form; a value's type -> PtensorType.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.core.errors import VerifyError

SHORT, FULL = "!ptensor<", "!ptensor.ptensor<"
DEFAULT = "default"
"""The device of an array whose type names none."""

BLOCKS, WHOLE = "unit", "false"
"""What stands for `dist`, and for none."""

_LAYOUT = re.compile(
    r'"(rows|columns|split \d+|replicated|cyclic [1-9]\d*|\d+(x\d+){0,2}|as it lies)"'
)
_GRID = re.compile(r"\d+x\d+")
_DEVICE = re.compile(r'device\s*=\s*("(?:[^"\\]|\\.)*")')
_DIST = re.compile(r"dist(?:\s*=\s*(.*))?", re.S)


@dataclass(frozen=True)
class PtensorType:
    """dist: its text as an attribute: `unit` is in blocks of the first dimension, `false` not at
    all, a string one of the layouts that creators take, `#distir.on<…>` a placement on a mesh.
    """

    tensor: ir.RankedTensorType
    device: str
    dist: str

    @staticmethod
    def of(value: ir.Value) -> PtensorType:
        """VerifyError, where the value stands, for a type that no array has."""
        parts = split_type(str(value.type), FULL)
        if parts is None or len(parts) != 3:
            raise _wrong(value, f"{value.type} is no ptensor")
        tensor, device, dist = parts
        kind = ir.Type.parse(tensor)
        if not isinstance(kind, ir.RankedTensorType):
            raise _wrong(value, f"the ptensor is of {tensor}, which is no ranked tensor")
        if not device.strip('"'):
            raise _wrong(value, 'the device of the ptensor is ""')
        known = dist in (BLOCKS, WHOLE) or dist.startswith("#distir.on<") or _LAYOUT.fullmatch(dist)
        if not known:
            raise _wrong(value, f"dist = {dist} does not say how a ptensor is divided")
        return PtensorType(kind, ir.StringAttr(ir.Attribute.parse(device)).value, dist)

    @property
    def is_replicated(self) -> bool:
        return self.dist == '"replicated"'

    @property
    def divided_dim(self) -> int | None:
        """The dimension along which each rank has a part; the first of several. None where that is
        not known.
        """
        words = self.dist.strip('"').split()
        if not self.is_divided or words[0] in ("replicated", "as") or self.dist.startswith("#"):
            return None
        if words[0] == "split":
            return int(words[1])
        return 1 if words[0] == "columns" else 0

    @property
    def in_parts(self) -> str:
        """How, where that is not one part along one dimension for each rank: "2x3", "cyclic 4"."""
        text = self.dist.strip('"')
        return text if text.startswith("cyclic") or _GRID.fullmatch(text) else ""

    @property
    def is_divided(self) -> bool:
        return self.dist != WHOLE


def _wrong(value: ir.Value, what: str) -> VerifyError:
    return VerifyError(
        what,
        span=span_of(value.location),
        hint='write !ptensor<10x?xf64, device="cuda:0", dist>; dist="columns", "replicated", '
        '"cyclic 4" or "2x3" for other divisions',
    )


def full_types(text: str) -> str:
    """The text with short types in MLIR's form; one that is not finished stays.

    >>> full_types('%x : !ptensor<10x?xf64, device="cuda:0", dist>')
    '%x : !ptensor.ptensor<tensor<10x?xf64>, "cuda:0", unit>'
    >>> full_types('!ptensor<complex<f32>, dist="cyclic 4">')
    '!ptensor.ptensor<tensor<complex<f32>>, "default", "cyclic 4">'
    """
    return _rewritten(text, SHORT, _full)


def short_types(text: str) -> str:
    """The other way round.

    >>> short_types('!ptensor.ptensor<tensor<f64>, "default", false>')
    '!ptensor<f64>'
    >>> short_types('!ptensor.ptensor<tensor<8xf64>, "default", "cyclic 4">')
    '!ptensor<8xf64, dist="cyclic 4">'
    """
    return _rewritten(text, FULL, _short)


def _full(parts: list[str]) -> str | None:
    shape, *rest = parts
    device, dist = f'"{DEFAULT}"', WHOLE
    for part in rest:
        if found := _DEVICE.fullmatch(part):
            device = found[1]
        elif found := _DIST.fullmatch(part):
            dist = found[1] or BLOCKS
        else:
            return None
    return f"{FULL}tensor<{shape}>, {device}, {dist}>"


def _short(parts: list[str]) -> str | None:
    if len(parts) != 3 or not parts[0].startswith("tensor<"):
        return None
    tensor, device, dist = parts
    shown = [tensor.removeprefix("tensor<").removesuffix(">")]
    if device != f'"{DEFAULT}"':
        shown.append(f"device={device}")
    if dist != WHOLE:
        shown.append("dist" if dist == BLOCKS else f"dist={dist}")
    return f"{SHORT}{', '.join(shown)}>"


def _rewritten(text: str, begin: str, of: Callable[[list[str]], str | None]) -> str:
    if begin not in text:
        return text
    done: list[str] = []
    at = 0
    for start, end in _types_in(text, begin):
        parts = split_type(text[start:end], begin)
        made = of(parts) if parts is not None else None
        done += [text[at:start], made or text[start:end]]
        at = end
    return "".join([*done, text[at:]])


def _types_in(text: str, begin: str) -> Iterator[tuple[int, int]]:
    """From where to where each of them goes."""
    start = text.find(begin)
    while start >= 0:
        end = _end_of(text, start + len(begin))
        if end is None:
            return
        yield start, end
        start = text.find(begin, end)


def _end_of(text: str, at: int) -> int | None:
    """Behind the bracket that closes the one before `at`; None where none does."""
    depth, quoted = 1, False
    while at < len(text):
        letter = text[at]
        if quoted and letter == "\\":
            at += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "<>" and text[at - 1] != "-":
            depth += 1 if letter == "<" else -1
            if depth == 0:
                return at + 1
        at += 1
    return None


def split_type(text: str, begin: str) -> list[str] | None:
    """What stands between the commas of a type; None where it does not begin so.

    >>> split_type('!ptensor<2x3xf64, device="a,b", dist>', "!ptensor<")
    ['2x3xf64', 'device="a,b"', 'dist']
    """
    if not text.startswith(begin) or not text.endswith(">"):
        return None
    parts: list[str] = []
    depth, quoted, start = 0, False, len(begin)
    for at in range(start, len(text) - 1):
        letter = text[at]
        if letter == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and letter in "<>":
            depth += 1 if letter == "<" else -1
        elif not quoted and letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start : len(text) - 1].strip()]
