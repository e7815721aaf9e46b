"""Completion in `%%avial` cells and `%avial` lines, in every front end that asks IPython.

Cell, cursor -> words. In an %%avial cell no Python name is offered.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from avial_lab.benchmarks.kernel_suite import kernel_names
from avial_lab.compiler.options import OPTIONS
from avial_lab.core.element_types import ELEMENT_TYPES, ElementKind
from avial_lab.machine.devices import KINDS
from avial_lab.machine.devices.cpu import canonical_cpu
from avial_lab.machine.presets import PRESET, PRESETS
from avial_lab.notebook.display import PARTS
from avial_lab.notebook.magic_lines import complete_line
from avial_lab.notebook.magics import AvialMagics, line_parser
from avial_lab.notebook.operations import FIRST, operation_names, usages
from avial_lab.notebook.surroundings import Surroundings, surroundings

TYPES = (
    *(row.name for row in ELEMENT_TYPES.values() if row.kind is not ElementKind.COMPLEX),
    *("memref<", "tensor<", "vector<", "complex<"),
)
TASK_WORDS = ("reads(", "writes(", "after ")

CELL = re.compile(r"\s*%%avial(?!\S)(?P<options>[^\n]*)")
LINE = re.compile(r"(?:[\w, ]+=\s*)?%avial(?!\S)(?P<options>[^\n]*)$")
"""Of a line without the blanks that it begins with."""

_NEAR = 500
"""Characters before the cursor that are looked at for the word that is being typed."""
_ATTRIBUTE = re.compile(r'\b(arch|node)\s*=\s*"([^"\n]*)$')
_VALUE = re.compile(r"%[\w$.\-]*$")
_WORD = re.compile(r"[A-Za-z_][\w$.]*$")
_SHAPED = re.compile(r"<(?:(?:\d+|\?)x)+(\w*)$")
_TYPE_AHEAD = re.compile(r"(?:->|:|<|\bto)\s*$")
_TARGET = re.compile(r"avial\.target\s*\{[^}]*$")

Word = tuple[str, str]
"""What is inserted, and what it is: `operation`, `buffer`, `option` …"""


@dataclass(frozen=True)
class Session:
    """What can be named beside the cell's own text."""

    magics: AvialMagics
    variables: Mapping[str, Any]

    @property
    def arrays(self) -> list[str]:
        """The caller's arrays: what a schedule's buffers can be."""
        return [
            name
            for name, value in self.variables.items()
            if isinstance(value, np.ndarray) and not name.startswith("_")
        ]

    def architectures(self) -> list[str]:
        """The likeliest first; no name twice."""
        cluster = self.magics.cluster
        there = [device.arch for device in cluster.topology.devices] if cluster else []
        here = canonical_cpu(platform.machine())
        families, known = [k.family for k in KINDS], [arch for k in KINDS for arch in k.arches]
        return list(dict.fromkeys((*families, here, *there, *known)))

    def nodes(self) -> list[str]:
        cluster = self.magics.cluster
        devices = cluster.topology.devices if cluster else ()
        return sorted({device.node for device in devices})

    def values(self, name: str, before: Sequence[str], cell: str = "") -> Iterable[str]:
        """What an argument of a magic can be."""
        programs = self.magics.known_programs()
        if name == "stage":
            program = programs.get(before[-1]) if before else None
            return program.stages if program else ()
        return {
            "name": programs,
            "kernel": kernel_names(),
            "show": (*PARTS, "none"),
            **{option: how.words for option, how in OPTIONS.items()},
            "element": ("f32", "f64"),
            "topology": [PRESET + preset for preset in PRESETS],
            "fn": re.findall(r"func\.func\s+(?:private\s+)?@([\w$.]+)", cell),
        }.get(name, ())


def register_completion(shell: InteractiveShell, magics: AvialMagics) -> None:
    """Ours before all other matchers; once, however often the extension is loaded."""
    session = Session(magics, shell.user_ns)

    @context_matcher(identifier="avial", priority=100)
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")
        offset = sum(len(line) + 1 for line in lines[: context.cursor_line])
        found = complete(context.full_text, offset + context.cursor_position, session)
        if found is None:
            return SimpleMatcherResult(completions=[], suppress=False)
        fragment, words = found
        return SimpleMatcherResult(
            completions=_All(SimpleCompletion(text, type=what) for text, what in words),
            matched_fragment=fragment,
            ordered=True,
            suppress=True,
        )

    assert shell.Completer is not None
    others = [m for m in shell.Completer.custom_matchers if _name_of(m) != "avial"]
    shell.Completer.custom_matchers = [matcher, *others]


def complete(text: str, offset: int, session: Session) -> tuple[str, list[Word]] | None:
    """What is typed of the word at `offset`, and what it can become; None where Python is."""
    cell = CELL.match(text)
    begun = text[text.rfind("\n", 0, offset) + 1 : offset]
    if cell is None:
        line = LINE.match(begun.lstrip())
        if line is None:
            return None
        fragment, words = complete_line(line["options"].lstrip(), line_parser(), session.values)
    elif offset < cell.start("options"):
        return None  # the magic's own name
    elif offset <= cell.end():
        options = text[cell.start("options") : offset].lstrip()
        fragment, words = complete_line(
            options, session.magics.avial.parser, lambda *asked: session.values(*asked, cell=text)
        )
    else:
        return _in_program(text, cell.end(), offset, session)
    return fragment, [(word, "option" if word.startswith("-") else "value") for word in words]


def _in_program(text: str, start: int, offset: int, session: Session) -> tuple[str, list[Word]]:
    before = text[start:offset]
    near = before[-_NEAR:]
    attribute = _ATTRIBUTE.search(near)
    if attribute:
        known = session.architectures() if attribute[1] == "arch" else session.nodes()
        return _that_begin(attribute[2], known, "attribute")
    around = surroundings(before, len(before))
    if around.in_text:
        return "", []
    value = _VALUE.search(near)
    if value:
        around = surroundings(before, len(before) - len(value[0]))
        names = _values(around, session)
        return value[0], [(name, what) for name, what in names if name.startswith(value[0])]
    shaped = _SHAPED.search(near)
    if shaped:
        return _that_begin(shaped[1], TYPES, "type")
    word = _WORD.search(near)
    fragment = word[0] if word else ""
    before = before[: len(before) - len(fragment)]
    near = before[-_NEAR:]
    if _TARGET.search(near):
        return _that_begin(fragment, ("arch = ", "node = "), "keyword")
    around = surroundings(before, len(before))
    if around.op is None:
        return fragment, [(name, "operation") for name in _operations(fragment)]
    if _TYPE_AHEAD.search(near):
        return _that_begin(fragment, TYPES, "type")
    return _that_begin(fragment, _words_of(around.op), "keyword")


def _that_begin(fragment: str, words: Iterable[str], what: str) -> tuple[str, list[Word]]:
    return fragment, [(word, what) for word in words if word.startswith(fragment)]


def _operations(fragment: str) -> list[str]:
    """Those that begin so, then those whose name behind the dialect's does: `load` finds
    `memref.load`.
    """
    if fragment == "":
        return list(FIRST)
    names = operation_names()
    begin = [name for name in names if name.startswith(fragment)]
    return begin + [n for n in names if n.partition(".")[2].startswith(fragment) and n not in begin]


def _values(around: Surroundings, session: Session) -> list[Word]:
    """The values to name next: in a schedule's head the caller's arrays, first in a task its
    target, behind `after` a task, elsewhere the nearest first.
    """
    names = [(name, what) for name, what in reversed(around.names.items())]
    if around.op == "avial.schedule":
        arrays = [(f"%{name}", "buffer") for name in session.arrays]
        return [pair for pair in arrays if pair[0] not in around.operands]
    if around.op not in ("avial.task", "avial.replicate"):
        return names
    if not around.operands:
        return [pair for pair in names if pair[1] == "target"]
    wanted = "task" if around.word == "after" else "buffer"
    return [p for p in names if p[1] == wanted and p[0] not in around.operands]


def _words_of(op: str) -> list[str]:
    """The words of an operation's own syntax: `to` and `step` of a loop, the predicates of a
    comparison.
    """
    if op in ("avial.task", "avial.replicate"):
        return list(TASK_WORDS)
    plain = re.findall(r"(?<![%\w.])[a-z]\w*(?!\w*\.\w)", usages().get(op, "").replace(op, ""))
    return [*dict.fromkeys(plain), *TYPES]


class _All(list[SimpleCompletion]):
    """Counts as something also where it is empty: IPython lets a matcher suppress the others only
    then, and in our cells Python has nothing to say.
    """

    def __len__(self) -> int:
        return max(1, super().__len__())


def _name_of(matcher: object) -> str:
    return getattr(matcher, "matcher_identifier", "")
