"""A table of text: aligned columns for a terminal, a `<table>` for a page.

Rows of cells -> text or HTML.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.core.words import brief, count, escape, printable

ROW_LIMIT = 200
"""A table shows this many rows and says how many it leaves out."""

PRINTED_ROWS = 20
"""Those of a table in what `str()` of something is."""


@dataclass(frozen=True)
class Table:
    """`numbers` are the right-aligned columns; `note` says what is not shown, empty
    where all is.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()
    note: str = ""

    def to_text(self) -> str:
        """Aligned columns.

        >>> rows = (("t1", "8 B"), ("task2", "16 B"))
        >>> print(Table("Edges", ("before", "bytes"), rows, frozenset(["bytes"])).to_text())
        Edges
          before  bytes
          t1        8 B
          task2    16 B
        """
        cells = [self.head, *(tuple(map(printable, row)) for row in self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.head))]
        lines = [
            "  ".join(
                value.rjust(width) if name in self.numbers else value.ljust(width)
                for name, value, width in zip(self.head, row, widths, strict=True)
            ).rstrip()
            for row in cells
        ]
        note = [f"  {self.note}"] if self.note else []
        return "\n".join([self.title, *(f"  {line}" for line in lines), *note])

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return brief(
            self, f"{self.title}: {count(len(self.rows), 'row')} of {', '.join(self.head)}"
        )

    def to_html(self) -> str:
        """A `<table>` with inline styles only: an untrusted notebook drops `<style>` and
        classes' rules.
        """
        style = {
            name: "text-align:right" if name in self.numbers else "text-align:left"
            for name in self.head
        }
        head = "".join(f'<th style="{style[name]}">{escape(name)}</th>' for name in self.head)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="{style[name]}">{escape(value)}</td>'
                for name, value in zip(self.head, row, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        note = f"<p><em>{escape(self.note)}</em></p>" if self.note else ""
        return (
            '<table><caption style="text-align:left;font-weight:bold">'
            f"{escape(self.title)}</caption>"
            f"<thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{note}"
        )


def left_out(total: int, noun: str, most: int = ROW_LIMIT) -> str:
    """What a table of at most so many rows does not show; empty where it shows all."""
    return f"… and {count(total - most, f'more {noun}')}, not listed." if total > most else ""
