"""Numbers, names and ranks as people read them: what every printed text is made of.

A number, a name, some ranks -> a few words; a value and what is said of it -> its `repr`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice

MOST_ROWS, ROW_WIDTH = 9, 80
"""Of a `repr`, below its first line; in characters."""

HEAD_WIDTH, LINE_WIDTH = 160, 300
"""Of its first line, with rows below it and without."""


def printable(text: str) -> str:
    """`text` without what XML cannot hold (control characters, lone surrogates), each shown as
    U+FFFD.
    """
    return "".join(
        " "
        if char in "\t\r\n"
        else "\ufffd"
        if unicodedata.category(char) in ("Cc", "Cs")
        else char
        for char in text
    )


def escape(text: str) -> str:
    """`text`, escaped for an element or a quoted attribute.

    >>> escape('<script>"x"')
    '&lt;script&gt;&quot;x&quot;'
    """
    return printable(text).translate(_MARKUP)


_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""As `html.escape` has it, without the 2 ms that the module takes to load: every rank is here."""


def rough_seconds(seconds: float) -> str:
    """A duration that is waited for: `42 s`, `7 min`, `3.5 h`.

    >>> rough_seconds(7.39), rough_seconds(400), rough_seconds(12_600)
    ('7 s', '7 min', '3.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def count(number: int, noun: str) -> str:
    """`1 task`, `1,000 tasks`.

    >>> count(1, "task"), count(1000, "task"), count(2, "copy")
    ('1 task', '1,000 tasks', '2 copies')
    >>> count(0, "pass")
    '0 passes'
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def format_bytes(nbytes: int) -> str:
    """
    >>> format_bytes(80), format_bytes(64 * 2**20), format_bytes(1536)
    ('80 B', '64 MiB', '1.5 KiB')
    """
    value, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def format_seconds(seconds: float) -> str:
    """
    >>> format_seconds(0), format_seconds(2.5e-6), format_seconds(0.0123), format_seconds(75)
    ('0 s', '2.5 µs', '12.3 ms', '75 s')
    >>> format_seconds(0.99999), format_seconds(-9.9999e-7), format_seconds(7200)
    ('1 s', '-1 µs', '7,200 s')
    """
    rounded = float(f"{seconds:.3g}")  # (what rounds up to the next unit is given in it)
    if abs(rounded) >= 1000:
        return f"{rounded:,.0f} s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(rounded) >= scale:
            return f"{rounded / scale:.3g} {unit}"
    return f"{rounded / 1e-9:.3g} ns" if rounded else "0 s"


def sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def rank_words(ranks: Iterable[int]) -> str:
    """
    >>> rank_words([2]), rank_words([0, 1, 2, 3]), rank_words([0, 2])
    ('rank 2', 'ranks 0–3', 'ranks 0, 2')
    """
    listed = sorted(set(ranks))
    if len(listed) == 1:
        return f"rank {listed[0]}"
    if len(listed) > 2 and listed == list(range(listed[0], listed[-1] + 1)):
        return f"ranks {listed[0]}–{listed[-1]}"
    return f"ranks {', '.join(map(str, listed))}"


def names_range(names: Sequence[str]) -> str:
    """`t0 … t36`: a group's first and last name."""
    return (
        names[0]
        if len(names) == 1
        else f"{names[0]}, {names[1]}"
        if len(names) == 2
        else f"{names[0]} … {names[-1]}"
    )


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """
    >>> listed(["a", "b"]), listed([f"t{k}" for k in range(1000)], most=3)
    ('a, b', 't0, t1, t2 and 997 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


def shortened(text: str, width: int) -> str:
    """
    >>> shortened("a long name", 20), shortened("a long name", 7)
    ('a long name', 'a long…')
    """
    return text if len(text) <= width else f"{text[: width - 1]}…"


def brief(value: object, words: str, rows: Iterable[str] = (), total: int = 0) -> str:
    """The `repr` of something with a text of its own: a line of words and a few rows, at most
    1,000 characters whatever there is. `total` rows there are, where `rows` may be less than all.

    >>> print(brief([], "of 12 numbers", map(str, range(9)), total=12))
    <list of 12 numbers
      0
      1
      2
      3
      4
      5
      6
      7
      8
      … 3 more>
    """
    shown = [printable(shortened(row, ROW_WIDTH)) for row in islice(rows, MOST_ROWS)]
    first = shortened(f"{type(value).__name__} {words}", HEAD_WIDTH if shown else LINE_WIDTH)
    lines = [printable(first), *(f"  {row}" for row in shown)]
    if total > len(shown) > 0:
        lines.append(f"  … {total - len(shown):,} more")
    return f"<{chr(10).join(lines)}>"
