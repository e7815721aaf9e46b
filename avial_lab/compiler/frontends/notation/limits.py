"""What a text may be made of at most: more would not be compiled, but end the compiler.

Source -> nothing, or a ParseError or VerifyError at the place that is too much. Far above what any
program needs, and looked at in the text alone, before MLIR sees it.
"""

from __future__ import annotations

import math
import re

from avial_lab.compiler.frontends.notation.source import STRING, Source
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.core.errors import VerifyError
from avial_lab.core.words import format_bytes

MOST_NAME = 1_000
"""Characters of a name or of a number."""

MOST_BYTES = 1 << 46
"""Of one array: more than an address space holds."""

MOST_CONSTANT, MOST_ZEROS = 1 << 24, 1 << 30
"""Bytes of a constant in the text that become part of the program's code; where they are all 0."""

MOST_LANES = 1 << 12
"""Elements of a vector, which is written out for registers of some 16."""

MOST_WIDTH = 1 << 12
"""Bits of an integer."""

MOST_TERMS = 1_000
"""Of one affine expression that divides: MLIR compares each with all others."""

_LONG = re.compile(rf"[\w$.%@#!^-]{{{MOST_NAME + 1},}}")
_SIGNS = re.compile(r"-(?:\s*-){100}")
_TYPES = re.compile(
    rf"{STRING}|//[^\n]*"
    r"|(?P<splat>\bdense<[^>\n]{1,80}>\s*:\s*)?\b(?P<kind>tensor|memref|vector)<(?P<shape>(?:(?:\d+|\?|\[\d+\])x)+)"
    r"(?P<element>[a-z]\w*)?"
    r"|\bi(?P<width>\d{4,})\b"
)
_NO_ORDER = re.compile(
    rf"{STRING}|//[^\n]*"
    r"|(?P<order>\bpermutation\s*=\s*(?:\[\s*\]|array<i64>)"
    r"|\bvector\.transpose\s+%[\w.$#-]+\s*,\s*\[\s*\])"
)
_CASES = re.compile(
    rf"{STRING}|//[^\n]*"
    r"|(?P<cases>\bcase\s+(?:0[xX][0-9a-fA-F]+|\d+)|\bcases\s*=\s*array<i64:[^>]*>)"
)
_NUMBER = re.compile(r"(?<![\w])(?:0[xX][0-9a-fA-F]+|\d+)")
GREATEST_CASE = (1 << 63) - 3
"""Of scf.index_switch: the two above are marks of the hash table that MLIR looks at them with."""
_ZERO = re.compile(r"dense<\s*(?:-?0(?:\.0*)?(?:[eE][+-]?\d+)?|false)\s*>")
_DIVISION = re.compile(r"\b(?:mod|floordiv|ceildiv)\b")


def check_limits(source: Source) -> None:
    """Refuse nesting without end, names of megabytes, arrays and constants that no machine has, and
    permutations of nothing and cases that MLIR ends at.
    """
    source.check_nesting()
    text = source.text
    if len(text) > MOST_NAME:
        _check_lengths(source)
    if "dense_resource" in text:
        _check_resources(source)
    if "transpose" in text:
        _check_orders(source)
    if "index_switch" in text:
        _check_cases(source)
    for match in _TYPES.finditer(text):
        if match["kind"]:
            _check_type(source, match)
        elif match["width"] and int(match["width"][:9]) > MOST_WIDTH:
            raise source.error(
                f"an integer of {match['width'][:20]} bits; the widest has {MOST_WIDTH:,}",
                match.start(),
                kind=VerifyError,
            )


def _check_orders(source: Source) -> None:
    """MLIR has no permutation of nothing: it ends the process."""
    for match in _NO_ORDER.finditer(source.text):
        if match["order"]:
            raise source.error(
                "a transpose without dimensions: an array of one element has none to exchange",
                match.start(),
                hint="leave it out, or write linalg.copy",
                kind=VerifyError,
            )


def _check_cases(source: Source) -> None:
    """MLIR's verifier ends the process at the two greatest numbers."""
    for match in _CASES.finditer(source.text):
        if match["cases"] is None:
            continue
        for number in _NUMBER.finditer(match["cases"]):
            if int(number[0], 0 if number[0][:2].lower() == "0x" else 10) > GREATEST_CASE:
                raise source.error(
                    f"case {number[0]}: the greatest of scf.index_switch is {GREATEST_CASE}",
                    match.start() + number.start(),
                    hint="compare it before: %is = arith.cmpi eq, %x, %c : index, then scf.if %is",
                    kind=VerifyError,
                )


def _check_lengths(source: Source) -> None:
    text = source.text
    signs = _SIGNS.search(text)
    if signs is not None:
        raise source.error("more than 100 signs one after the other", signs.start())
    # What is long enough to be too long has no blank in it: strings (weights as hexadecimals)
    # and comments may be as long as they like.
    long = _LONG.search(text)
    while long is not None:
        line = text.rfind("\n", 0, long.start()) + 1
        before = text[line : long.start()]
        if "//" not in before and '"' not in before:
            raise source.error(
                f"a name or number of more than {MOST_NAME:,} characters",
                long.start(),
                hint="give it a shorter one",
            )
        long = _LONG.search(text, long.end())
    if text.count("mod") + text.count("div") > MOST_TERMS:
        for start, line in zip(source.line_starts, text.split("\n"), strict=True):
            found = list(_DIVISION.finditer(line)) if len(line) > MOST_TERMS else []
            if len(found) > MOST_TERMS:
                raise source.error(
                    f"more than {MOST_TERMS:,} divisions in one line",
                    start + found[MOST_TERMS].start(),
                    hint="compute parts of the index by affine.apply",
                )


def _check_type(source: Source, match: re.Match[str]) -> None:
    extents = [int(each) for each in re.findall(r"\d+", match["shape"])]
    elements = math.prod(extents)
    element = match["element"] or "f64"
    nbytes = elements * ITEMSIZE.get(element, 1)
    at = match.start("kind")
    if match["kind"] == "vector":
        if elements > MOST_LANES:
            raise source.error(
                f"a vector of {elements:,} elements; the longest has {MOST_LANES:,}",
                at,
                hint="write a loop over shorter ones",
                kind=VerifyError,
            )
        return
    if nbytes > MOST_BYTES:
        raise source.error(
            f"an array of {_amount(nbytes)}, more than any machine has",
            at,
            hint="make its extents smaller",
            kind=VerifyError,
        )
    splat = match["splat"]
    most = MOST_ZEROS if splat and _ZERO.match(splat) else MOST_CONSTANT
    if splat and nbytes > most:
        raise source.error(
            f"a constant of {_amount(nbytes)}, more than the {format_bytes(most)} that may become "
            "part of the program's code",
            match.start(),
            hint="hand it over as an array, or write it by a loop (linalg.fill)",
            kind=VerifyError,
        )


def _amount(nbytes: int) -> str:
    return format_bytes(nbytes) if nbytes < 1 << 80 else f"more than {format_bytes(1 << 80)}"


_SHAPED = r"(?:tensor|memref|vector)<(?P<shape>(?:\d+x)*)(?P<element>[a-z]\w*)>"
_RESOURCE = re.compile(rf"dense_resource<(?P<name>[\w.$-]+)>\s*:\s*(?P<type>{_SHAPED}|![\w.$-]+)")
_BLOB = re.compile(r'([\w.$-]+)\s*:\s*"0x([0-9A-Fa-f]*)"')
_ALIGNMENT = 4
"""Bytes at the beginning of a blob, before its values."""


def _check_resources(source: Source) -> None:
    """Refuse `dense_resource<x>` where the text has no `x`, or one of another size than its type
    has: MLIR reads past its end.
    """
    text = source.text
    blobs = {name: len(digits) // 2 - _ALIGNMENT for name, digits in _BLOB.findall(text)}
    for match in _RESOURCE.finditer(text):
        name, kind = match["name"], match
        if match["type"].startswith("!"):
            kind = re.search(rf"{re.escape(match['type'])}\s*=\s*{_SHAPED}", text) or match
        if name not in blobs:
            raise source.error(
                f"the text has no resource '{name}'",
                match.start(),
                hint="its values stand at the end, in {-# dialect_resources: { builtin: … } #-}",
                kind=VerifyError,
            )
        if kind["element"] not in ITEMSIZE or kind["element"] == "i1":
            continue
        extents = [int(each) for each in kind["shape"].split("x") if each]
        wanted = math.prod(extents) * ITEMSIZE[kind["element"]]
        if blobs[name] != wanted:
            raise source.error(
                f"the resource '{name}' has {max(blobs[name], 0):,} bytes of values, "
                f"and its type takes {wanted:,}",
                match.start(),
                hint="4 bytes of its hexadecimals are the alignment, the others its values",
                kind=VerifyError,
            )
