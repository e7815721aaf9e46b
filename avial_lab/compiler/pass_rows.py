"""A row of the catalogue of passes: a pass where it stands, with what is to be known of it; and a
pipeline: rows that are run one after the other.

Rows, options -> passes; nothing is loaded before it is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from avial_lab.core.errors import InternalError, ScheduleError
from avial_lab.core.words import MOST_ROWS, brief, count, shortened


@dataclass(frozen=True)
class Size:
    """What an option of a pass may be: a number, or `numbers` of them as in `8x16`, each from
    `least` to `most` and a multiple of `multiple`.
    """

    what: str
    least: int
    most: int
    multiple: int = 1
    numbers: tuple[int, ...] = (1,)

    def check(self, name: str, text: str) -> int | str:
        """The value in `text`; ScheduleError, with the range, where it is not in it."""
        parts = text.split("x") if self.numbers != (1,) else [text]
        right = len(parts) in self.numbers and all(
            part.isdecimal()
            and len(part) <= 12
            and self.least <= int(part) <= self.most
            and int(part) % self.multiple == 0
            for part in parts
        )
        if not right:
            shown = shortened(text, 60)
            raise ScheduleError(f"invalid value {name}={shown}", hint=f"expected {name}: {self}")
        return text if self.numbers != (1,) else int(text)

    def __str__(self) -> str:
        each = f"from {self.least:,} to {self.most:,}"
        if self.multiple > 1:
            each += f", a multiple of {self.multiple}"
        if self.numbers == (1,):
            return f"{self.what}, {each}"
        counts = " or ".join(map(str, self.numbers))
        return f"{self.what}, {counts} numbers as in 8x16, each {each}"

    def __repr__(self) -> str:
        return brief(self, str(self))


Sizes = tuple[tuple[str, tuple[tuple[str, int | str], ...]], ...]
"""For each pass, its options and their values."""

Given = Mapping[str, Mapping[str, Any] | None]
"""For passes by name what their options are; None where a condition leaves a pass out."""

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Row:
    """A pass where it stands: what it does, and why it does so there.

    `at` is its class, as in `avial_lab.compiler.passes.loops.jam.jam_for_stores:JamForStores`; none
    for one of MLIR's. On a command line its name may stand for another class, `by_name`, that text
    can describe. `optional`: a program can do without it; `sizes` are those of its options that can
    be chosen. `when`: under which condition it is run at all, for people; the code that runs the
    pipeline has it again, as `Given`. `on`, `options`: of MLIR's, the operations it runs on, and
    how.
    """

    name: str
    what: str
    why: str
    at: str = ""
    by_name: str = ""
    optional: bool = False
    sizes: Mapping[str, Size] = field(default_factory=dict[str, Size])
    when: str = ""
    on: str = ""
    options: str = ""

    @property
    def is_ours(self) -> bool:
        return bool(self.at)

    @property
    def module(self) -> str:
        return self.at.partition(":")[0]

    def load(self, *, by_name: bool = False) -> type:
        """The class, or the one that its name stands for on a command line."""
        module, _, name = ((by_name and self.by_name) or self.at).partition(":")
        return getattr(import_module(module), name)

    def made(self, options: Mapping[str, Any] = _NONE) -> Any:  # noqa: ANN401 - a pass, or a name
        """The pass with these options: an object of ours; of MLIR's its name, as MLIR takes it."""
        if self.is_ours:
            return self.load()(**options)
        given = " ".join(filter(None, [self.options, *(f"{k}={v}" for k, v in options.items())]))
        return f"{self.name}{{{given}}}" if given else self.name

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {self.what}")


@dataclass(frozen=True)
class Pipeline:
    """Passes that are run one after the other on the way to a stage."""

    stage: str
    title: str
    rows: tuple[Row, ...]

    def passes(
        self,
        given: Given = _NONE,
        *,
        without: Collection[str] = (),
        sizes: Sizes = (),
    ) -> tuple[Any, ...]:
        """The passes in their order, with the options `given`, and `sizes` of some; but for the
        optional ones that are to be left out (`without`), and for those that are given None.

        MLIR's passes on the same kind of operation, one after the other, are one: it runs them for
        several operations at once.
        """
        self._check(given)
        options = {name: dict(values) for name, values in sizes}
        left_out = {name for name, values in given.items() if values is None}
        made = [
            (row.on, row.made({**options.get(row.name, {}), **(given.get(row.name) or {})}))
            for row in self.rows
            if row.name not in left_out and not (row.optional and row.name in without)
        ]
        return tuple(
            item
            for on, group in groupby(made, key=lambda each: each[0])
            for item in _together(on, [item for _, item in group])
        )

    def _check(self, given: Given) -> None:
        """InternalError where the code and the rows say different things."""
        conditional = {row.name: bool(row.when) for row in self.rows}
        for name, options in given.items():
            if name not in conditional:
                raise InternalError(f"no pass '{name}' is in the pipeline '{self.title}'")
            if options is None and not conditional[name]:
                raise InternalError(f"'{name}' is left out, and its row has no `when`")

    def __repr__(self) -> str:
        rows = (f"{row.name}: {row.what}" for row in self.rows[:MOST_ROWS])
        words = f"{self.stage} ({self.title}): {count(len(self.rows), 'pass')}"
        return brief(self, words, rows, len(self.rows))


def _together(on: str, items: list[Any]) -> list[Any]:
    return [f"{on}({','.join(items)})"] if on else items


@dataclass(frozen=True)
class Documented:
    """What a pass's source says of it: what comes in and goes out, what it does with the IR before
    and after, and whatever else is to be known.
    """

    module: str
    cls: str

    def __repr__(self) -> str:
        return brief(self, self.module.partition("\n")[0])


@cache
def documentation(at: str) -> Documented:
    """The docstrings of the module and the class of a pass, read and not run: it needs no MLIR."""
    module, _, name = at.partition(":")
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise InternalError(f"the pass {at} has no source")
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    return Documented(ast.get_docstring(tree) or "", ast.get_docstring(classes[name]) or "")
