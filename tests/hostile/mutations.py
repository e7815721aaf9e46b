"""Programs that somebody broke: valid ones with tokens deleted, doubled and exchanged, numbers at
the ends, deep nesting, megabyte lines and names, odd characters, wrong options.

A seed -> a mutant: the same for ever, so that one that was answered badly can be tried again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import nbformat
import numpy as np

import kernels
from kernels.kernel import ELEMENTS
from tests.differential.bodies import CASES as BODIES
from tests.foreign import cases as foreign
from tests.notebooks.course import NOTEBOOKS

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Program:
    """A text with what it is compiled with; `arrays` by name, of which nobody writes one here."""

    name: str
    text: str
    arrays: dict[str, np.ndarray]
    scalars: dict[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        return f"<{self.name}>"


# Valid programs -----------------------------------------------------------------------------------


@cache
def valid_programs() -> tuple[Program, ...]:
    """The kernels, functions of other compilers, bodies of one task, the lessons' cells."""
    return (*_kernels(), *_foreign(), *_bodies(), *_lessons())


def _kernels() -> list[Program]:
    found: list[Program] = []
    rng = np.random.default_rng(0)
    for name in kernels.names():
        kernel = kernels.load(name)
        sizes = kernel.datasets[kernels.Dataset.MINI]
        element = kernel.elements[0]
        given = kernel.inputs(sizes, ELEMENTS[element], rng)
        arrays = {key: np.asarray(value) for key, value in given.items() if np.ndim(value)}
        scalars = {key: value.item() for key, value in given.items() if not np.ndim(value)}
        found.append(Program(name, kernel.mlir(element, sizes), arrays, scalars))
    return found


def _foreign() -> list[Program]:
    inputs = {name: foreign.inputs_of(name) for name in foreign.CASES}
    return [
        Program(name, foreign.text_of(name), each.arrays, dict(each.scalars))
        for name, each in inputs.items()
    ]


def _bodies() -> list[Program]:
    rng = np.random.default_rng(0)
    return [Program(name, case.text, case.arrays(rng)) for name, case in BODIES.items()]


def _lessons() -> list[Program]:
    cells = [
        cell.source.partition("\n")[2]
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        if cell.source.startswith("%%avial") and "%" in cell.source.partition("\n")[2]
    ]
    programs: list[Program] = []
    for k, text in enumerate(cells):
        names = set(re.findall(r"%([a-e]|[x-z])\b", text))
        arrays = {name: np.arange(20, dtype=np.int32) for name in names}
        programs.append(Program(f"lesson {k}", text, arrays if "avial.schedule" in text else {}))
    return programs


# Mutations of text --------------------------------------------------------------------------------

_TOKEN = re.compile(r'"[^"\n]*"|//[^\n]*|->|[%#@!^]?[\w$.]+|\S')
_NUMBER = re.compile(r"(?<![\w%#@$.])-?\d[\w.+]*")

ENDS = (
    "-1", "0", "1", "2147483647", "2147483648", "-2147483649", "4294967296", "1099511627776",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551616",
    "1" + "0" * 40, "1e400", "-1e-400", "0x7FF0000000000000", "0xFFFFFFFFFFFFFFFFFF", "1.5", "nan",
)  # fmt: skip

Mutation = Callable[[Random, Program], str]


def _tokens(random: Random, text: str, count: int) -> list[re.Match[str]]:
    """Some tokens of the text, in its order."""
    found = list(_TOKEN.finditer(text))
    chosen = random.sample(range(len(found)), min(count, len(found)))
    return [found[k] for k in sorted(chosen)]


def _delete_token(random: Random, program: Program) -> str:
    text = program.text
    for token in reversed(_tokens(random, text, random.choice((1, 1, 2, 5)))):
        text = text[: token.start()] + text[token.end() :]
    return text


def _double_token(random: Random, program: Program) -> str:
    text = program.text
    for token in reversed(_tokens(random, text, random.choice((1, 1, 3)))):
        text = f"{text[: token.end()]} {token[0]}{text[token.end() :]}"
    return text


def _exchange_tokens(random: Random, program: Program) -> str:
    text = program.text
    first, second = _tokens(random, text, 2)
    return (
        text[: first.start()] + second[0] + text[first.end() : second.start()]
        + first[0] + text[second.end() :]
    )  # fmt: skip


def _kind(token: str) -> str:
    return token[0] if token[0] in "%#@!^" else "w" if token[0].isalpha() else "other"


def _token_from_elsewhere(random: Random, program: Program) -> str:
    """Another token of the same kind in its place, of this program or another: what is still
    nearly right gets furthest.
    """
    (token,) = _tokens(random, program.text, 1)
    source = program if random.random() < 0.6 else random.choice(valid_programs())
    others = [t for t in _TOKEN.findall(source.text) if _kind(t) == _kind(token[0])]
    if not others:
        return _delete_token(random, program)
    return program.text[: token.start()] + random.choice(others) + program.text[token.end() :]


def _number_at_the_end(random: Random, program: Program) -> str:
    text = program.text
    numbers = list(_NUMBER.finditer(text))
    for number in sorted(
        random.sample(numbers, min(len(numbers), random.choice((1, 1, 1, 2)))),
        key=lambda match: match.start(),
        reverse=True,
    ):
        text = text[: number.start()] + random.choice(ENDS) + text[number.end() :]
    return text


def _extent_at_the_end(random: Random, program: Program) -> str:
    """An extent or a width in a type."""
    places = list(re.finditer(r"(?<=[<x])\d+(?=x)|(?<=[ xi<]i)\d+\b", program.text))
    if not places:
        return _number_at_the_end(random, program)
    place = random.choice(places)
    number = random.choice((*ENDS[1:9], "?", "7", "65", "128", "16777215", "16777216"))
    return program.text[: place.start()] + number.lstrip("-") + program.text[place.end() :]


def _lines(random: Random, program: Program) -> str:
    lines = program.text.splitlines()
    k, j = random.randrange(len(lines)), random.randrange(len(lines))
    how = random.randrange(3)
    if how == 0:
        del lines[k]
    elif how == 1:
        lines.insert(j, lines[k])
    else:
        lines[k], lines[j] = lines[j], lines[k]
    return "\n".join(lines)


def _cut_off(random: Random, program: Program) -> str:
    return program.text[: random.randrange(len(program.text))]


def _odd_character(random: Random, program: Program) -> str:
    k = random.randrange(len(program.text) + 1)
    odd = random.choice("\x00\x1b\x7f\u2028\ud800é漢\U0001f600\ufeff\"'\\{}()<>%#@")
    return program.text[:k] + odd * random.choice((1, 1, 300)) + program.text[k:]


def _deep(random: Random, program: Program) -> str:
    """A statement with a value of a name of its own, inside of many others."""
    depth = random.choice((20, 60, 120, 500, 5000))
    opened, closed = random.choice(
        (
            ("affine.for %q = 0 to 1 {\n", "}\n"),
            ("scf.execute_region {\n", "scf.yield\n}\n"),
            ("{", "}"),
            ("(", ")"),
            ("<", ">"),
            ("[", "]"),
            ("%q = affine.apply affine_map<() -> (" + "(" * 40, ")" * 40 + ")>()\n"),
            ("tensor<", ">"),
        )
    )
    if opened.startswith("affine.for"):
        opened_all = "".join(opened.replace("%q", f"%q{k}") for k in range(depth))
    else:
        opened_all = opened * depth
    nested = opened_all + closed * depth
    lines = program.text.splitlines(keepends=True)
    k = random.randrange(len(lines) + 1)
    return "".join([*lines[:k], nested, *lines[k:]])


def _megabyte(random: Random, program: Program) -> str:
    """A name, a number, a string, a comment, a line or an expression of a megabyte."""
    how = random.randrange(8)
    text = program.text
    if how == 0:
        names = re.findall(r"%[a-zA-Z]\w*", text)
        name = random.choice(names or ["%x"])
        return re.sub(rf"{name}\b", "%" + "n" * MEGABYTE, text, count=random.choice((0, 1)))
    if how == 1:
        return _NUMBER.sub("7" * MEGABYTE, text, count=1)
    if how == 2:
        return re.sub(r'"[^"\n]*"', f'"{"s" * MEGABYTE}"', text, count=1)
    lines = text.splitlines(keepends=True)
    k = random.randrange(len(lines) + 1)
    extra = (
        "// " + "x" * MEGABYTE + "\n",
        " " * MEGABYTE,
        "\n" * MEGABYTE,
        "%q = affine.apply affine_map<() -> (" + "1 + " * (MEGABYTE // 4) + "1)>()\n",
        "".join(f"%q{k} = arith.constant {k} : index\n" for k in range(MEGABYTE // 33)),
    )[how - 3]
    return "".join([*lines[:k], extra, *lines[k:]])


def _two_programs(random: Random, program: Program) -> str:
    other = random.choice(valid_programs()).text
    return (
        program.text[: random.randrange(len(program.text))] + other[random.randrange(len(other)) :]
    )


OF_TEXT: tuple[Mutation, ...] = (
    _delete_token, _double_token, _exchange_tokens, _token_from_elsewhere, _token_from_elsewhere,
    _token_from_elsewhere, _number_at_the_end, _number_at_the_end, _number_at_the_end,
    _extent_at_the_end, _extent_at_the_end, _lines, _lines, _cut_off, _odd_character, _deep,
    _megabyte, _two_programs,
)  # fmt: skip


# Mutations of what comes with it ------------------------------------------------------------------

WRONG: dict[str, tuple[object, ...]] = {
    "ranks": ("two", 2.5, -1, 0, 10**30, "3", [2], True, np.int64(2), float("nan")),
    "gpus": ("one", 1.5, -1, 99, [1]),
    "policy": ("nothing", 7, [1], b"levels", ""),
    "sync": ("edge", 3, ("edges",)),
    "division": ("blocks", 4, "cyclic(0)", "cyclic(x)", "cyclic(" + "9" * 5000 + ")", ["block"]),
    "without": ([1], 3, "nothing", [None], {"all": 1}, [["all"]], "x" * 100_000),
    "sizes": ("x{", 5, "block-contractions{terms=-1}",
              "block-contractions{terms=" + "9" * 5000 + "}",
              "block-contractions{terms=1e9}", ["model"], "(" * 50_000),
    "strict": ("no", 2, [1], None),
    "blas": ("yes",),
    "dynamic": ("maybe",),
    "function": (3, "nobody", "f" * 100_000, ["f"]),
    "cell": (4, "c" * MEGABYTE, None),
    "name": (None, 5),
    "timeout": ("soon", -1, float("nan")),
    "scalars": ({"n": "x"}, {3: 4}, [1], {"n": 10**40}, {"n": float("nan")}, {"n": [1]}, 5),
    "arrays": ([1], {"a": 3}, {"a": [1, 2]}, {3: np.zeros(3)}, {"a": np.zeros(3, object)},
               {"a": np.zeros(3, "U5")}, {"a": np.zeros((1,) * 32)}, {"a" * MEGABYTE: np.zeros(3)},
               {f"x{k}": np.zeros(2) for k in range(2000)}, {"a": np.zeros((0, 3))},
               {"a": np.ma.zeros(3)}, {"a": np.zeros(4, ">i4")}, {"a": np.zeros(6)[::-2]},
               {"": np.zeros(3)}, {"a\x00b": np.zeros(3)}, {"a": np.zeros(3, "M8[s]")}),
    "topology": ("two", 3, []),
    "nosuch": (1,),
}  # fmt: skip


def _with_wrong(random: Random, program: Program) -> Program:
    key = random.choice(list(WRONG))
    wrong = random.choice(WRONG[key])
    if key in ("arrays", "scalars"):
        parts = {"arrays": program.arrays, "scalars": program.scalars} | {key: wrong}
        return Program(program.name, program.text, **parts, options={})  # type: ignore[arg-type]
    return Program(program.name, program.text, program.arrays, program.scalars, {key: wrong})


def _many_arrays(random: Random, program: Program) -> Program:
    count = random.choice((300, 2000))
    names = [f"a{k}" for k in range(count)]
    body = "\n".join(f"  affine.store %v, %{name}[0] : memref<2xf64>" for name in names)
    arguments = ", ".join(f"%{name}: memref<2xf64>" for name in names)
    text = f"func.func @f({arguments}) {{\n  %v = arith.constant 1.0 : f64\n{body}\n  return\n}}\n"
    return Program("many arrays", text, {name: np.zeros(2) for name in names})


def mutant(seed: int) -> Program:
    random = Random(seed)
    program = random.choice(valid_programs())
    what = random.randrange(100)
    if what == 0:
        return _many_arrays(random, program)
    if what < 9:
        return _with_wrong(random, program)
    mutation = random.choice(OF_TEXT)
    text = mutation(random, program)
    if random.random() < 0.15:
        text = random.choice(OF_TEXT[:12])(random, Program("", text, {})) if text.strip() else text
    name = f"{seed}: {program.name},{mutation.__name__.replace('_', ' ')}"
    options: dict[str, Any] = {"ranks": random.choice((1, 2, 3))}
    if random.random() < 0.1:
        options["dynamic"] = True
    return Program(name, text, program.arrays, program.scalars, options)
