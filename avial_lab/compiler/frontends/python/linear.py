"""Integers that are affine in loop variables, and how small and large they get.

i * 2 + n - 1    {"%i": 2, "%n": 1}, -1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Linear:
    """Sum of `terms`, factors of values of type index by name, and a constant."""

    terms: Mapping[str, int] = field(default_factory=dict)
    constant: int = 0

    @property
    def known(self) -> int | None:
        """Its value where it is a number."""
        return None if self.terms else self.constant

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + factor
        kept = {name: factor for name, factor in terms.items() if factor}
        return Linear(kept, self.constant + other.constant)

    def __neg__(self) -> Linear:
        return self.scaled(-1)

    def __sub__(self, other: Linear) -> Linear:
        return self + -other

    def scaled(self, factor: int) -> Linear:
        if not factor:
            return Linear()
        terms = {name: own * factor for name, own in self.terms.items()}
        return Linear(terms, self.constant * factor)

    def substituted(self, name: str, by: Linear) -> Linear:
        """With another in place of one of its terms.

        >>> (term("%n") + term("%i").scaled(2)).substituted("%i", term("%n") - number(1)).text()
        '%n * 3 - 2'
        """
        terms = dict(self.terms)
        factor = terms.pop(name)
        for each, own in by.terms.items():
            terms[each] = terms.get(each, 0) + own * factor
        kept = {each: own for each, own in terms.items() if own}
        return Linear(kept, self.constant + by.constant * factor)

    def at(self, values: Mapping[str, int]) -> int:
        """Where its terms have these values.

        >>> (term("%n") - number(1)).at({"%n": 8})
        7
        """
        return self.constant + sum(values[name] * factor for name, factor in self.terms.items())

    def text(self, *, symbols: frozenset[str] = frozenset()) -> str:
        """As in an affine access: `%i * 2 + symbol(%n) - 1`."""
        parts: list[str] = []
        for name, factor in self.terms.items():
            word = f"symbol({name})" if name in symbols else name
            sign = "-" if factor < 0 else "+"
            size = word if abs(factor) == 1 else f"{word} * {abs(factor)}"
            parts.append(f"{sign} {size}" if parts else _first(factor, word))
        if self.constant or not parts:
            sign = "-" if self.constant < 0 else "+"
            size = f"{sign} {abs(self.constant)}" if parts else str(self.constant)
            parts.append(size)
        return " ".join(parts)


def _first(factor: int, word: str) -> str:
    return word if factor == 1 else f"{word} * {factor}"


def number(value: int) -> Linear:
    return Linear({}, value)


def term(name: str) -> Linear:
    return Linear({name: 1})


@dataclass(frozen=True)
class Range:
    """Of a value: the least and the greatest that it takes, both in terms of values defined before
    it; None where nothing is known.
    """

    least: Linear | None
    most: Linear | None


Ranges = Mapping[str, Range]
"""In the order in which the values were defined."""


def least(value: Linear, ranges: Ranges) -> int | None:
    """No smaller than this, where that is known: the value defined last gives way first."""
    return _extreme(value, ranges, largest=False)


def most(value: Linear, ranges: Ranges) -> int | None:
    """No greater than this, where that is known."""
    return _extreme(value, ranges, largest=True)


def most_of(value: Linear, ranges: Ranges, sizes: frozenset[str]) -> Linear | None:
    """No greater than this, in terms of `sizes` alone."""
    return _end(value, ranges, largest=True, kept=sizes)


def ends(
    value: Linear, ranges: Ranges, kept: frozenset[str]
) -> tuple[Linear | None, Linear | None]:
    """No smaller and no greater than these, in terms of `kept` alone.

    >>> ranges = {"%n": Range(None, None), "%i": Range(number(1), term("%n") - number(1))}
    >>> low, high = ends(term("%i") + number(1), ranges, frozenset({"%n"}))
    >>> low.text(), high.text()
    ('2', '%n')
    """
    return (
        _end(value, ranges, largest=False, kept=kept),
        _end(value, ranges, largest=True, kept=kept),
    )


def _extreme(value: Linear, ranges: Ranges, *, largest: bool) -> int | None:
    end = _end(value, ranges, largest=largest, kept=frozenset())
    return None if end is None else end.known


def _end(value: Linear, ranges: Ranges, *, largest: bool, kept: frozenset[str]) -> Linear | None:
    if not value.terms:
        return value
    for name in reversed(list(ranges)):
        factor = value.terms.get(name, 0)
        if not factor or name in kept:
            continue
        end = ranges[name].most if (factor > 0) == largest else ranges[name].least
        if end is None:
            return None
        value = value.substituted(name, end)
    return value if value.terms.keys() <= kept else None
