"""Quasi-affine expressions of loop variables and parameters, in a text both isl and people read.

Integers and names -> sums of them. A term's name is a variable (`i`) or a whole subexpression that
isl understands (`floor((i + 1)/2)`, `min(N, 10)`), so that one form covers everything isl can hold.

    2*i + floor((j + 1)/2) - 1      constant -1, terms (("i", 2), ("floor((j + 1)/2)", 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LARGEST = 1 << 40
"""Constants and factors beyond this are not followed: with them 64-bit arithmetic could wrap."""


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ factor × term, the terms in the order in which they were met."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(name: str) -> Affine:
        return Affine(0, ((name, 1),))

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        terms = dict(self.terms)
        for name, factor in other.terms:
            terms[name] = terms.get(name, 0) + sign * factor
        kept = tuple((name, factor) for name, factor in terms.items() if factor)
        return Affine(self.constant + sign * other.constant, kept)

    def times(self, factor: int) -> Affine:
        terms = tuple((name, k * factor) for name, k in self.terms if factor)
        return Affine(self.constant * factor, terms)

    def floordiv(self, divisor: int) -> Affine:
        """Rounded towards minus infinity; the divisor is positive."""
        if divisor == 1:
            return self
        if self.is_constant:
            return Affine(self.constant // divisor)
        return Affine.of(f"floor(({self})/{divisor})")

    def ceildiv(self, divisor: int) -> Affine:
        return self.plus(Affine(divisor - 1)).floordiv(divisor)

    def mod(self, divisor: int) -> Affine:
        """The remainder in 0 … divisor - 1; the divisor is positive."""
        if divisor == 1:
            return Affine()
        if self.is_constant:
            return Affine(self.constant % divisor)
        return Affine.of(f"(({self}) mod {divisor})")

    @property
    def fits(self) -> bool:
        """Whether all its numbers are small enough to be followed."""
        return max([abs(self.constant), *(abs(k) for _, k in self.terms)]) <= LARGEST

    def __str__(self) -> str:
        """As people write it, and as isl reads it.

        >>> str(Affine(-1, (("i", 2), ("j", -1))))
        '2*i - j - 1'
        """
        if not self.terms:
            return str(self.constant)
        if not self.constant and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]  # most are one of these two
        parts: list[str] = []
        numbers = [(k, name) for name, k in self.terms]
        if self.constant:
            numbers.append((self.constant, ""))
        for factor, name in numbers:
            size = abs(factor)
            body = str(size) if not name else name if size == 1 else f"{size}*{name}"
            sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
            parts.append(sign + body)
        return "".join(parts)


def extreme(forms: Sequence[Affine], name: str) -> Affine:
    """`min` or `max` of several expressions.

    >>> str(extreme([Affine.of("N"), Affine(10)], "min"))
    'min(N, 10)'
    """
    distinct = list(dict.fromkeys(forms))
    if all(form.is_constant for form in distinct):
        pick = min if name == "min" else max
        return Affine(pick(form.constant for form in distinct))
    text = str(distinct[0])
    for form in distinct[1:]:
        text = f"{name}({text}, {form})"
    return distinct[0] if len(distinct) == 1 else Affine.of(text)


_KEYWORDS = {
    "and", "or", "not", "exists", "all", "mod", "floor", "ceil", "floord", "ceild", "min", "max",
    "true", "false", "infty", "nan", "int", "rat", "div", "implies", "if",
}  # fmt: skip


def identifier(name: str) -> str:
    """`name` with what isl does not take in a name replaced.

    Never one that ends in a digit and an underscore: those are ours (`x0_`, `w0_`).

    >>> identifier("arg-0"), identifier("mod"), identifier("3d"), identifier("x0_")
    ('arg_0', 'mod_', '_3d', 'x0_v')
    """
    clean = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name) or "_"
    if clean[0].isdigit():
        clean = "_" + clean
    if clean.endswith("_") and clean[-2:-1].isdigit():
        clean += "v"
    return clean + "_" if clean.lower() in _KEYWORDS else clean


class Names:
    """Hands out each name once: a second `i` becomes `i_1`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        base = name = identifier(wanted)
        number = 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def reserve(self, name: str) -> None:
        """Never hand out `name`."""
        self._taken.add(name)
