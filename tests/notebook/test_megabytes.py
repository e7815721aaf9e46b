"""What the notebook's own process does with a text, it does with a megabyte of it too: nothing here
takes more than a step or so for each character. (A quadratic one takes an hour: pytest ends it.)
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from avial_lab.compiler.frontends.notation.header import place_of, program_names
from avial_lab.notebook.completion import complete
from avial_lab.notebook.inspection import describe
from avial_lab.notebook.surroundings import surroundings
from avial_lab.plot import svg
from avial_lab.plot.frame import framed, wrap
from avial_lab.plot.page.code import ink_runs
from avial_lab.program.edited_origins import edited_origins

MEGABYTE = 1_000_000


def texts(size: int) -> dict[str, str]:
    return {
        "a name": "%" + "n" * size,
        "a word": "w" * size + " ",
        "blanks": " " * size + "x",
        "escaped quotes": '\\"' * (size // 2),
        "quotes and a backslash": '\\"' * (size // 2) + "\\",
        "open braces": "{" * (size // 10),
        "names and braces": "%a {" * (size // 20),
        "functions": "func.func " * (size // 10),
        "functions that are open": "func.func @f() {" * (size // 16),
        "declarations": "func.func private @f()\n" * (size // 23),
        "schedules": "avial.schedule " * (size // 15),
        "schedules in functions": "func.func @f() { avial.schedule { } }\n" * (size // 38),
        "targets": "avial.target{" * (size // 13) + "}",
        "values": "%x " * (size // 3),
        "digits": "<" + "1" * size,
        "extents": "<" + "1x" * (size // 2),
        "slashes": "/" * size,
        "lines": "\n" * size,
    }


every_text = pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=f"{name} of {size}", marks=marks)
        for size, marks in ((30_000, ()), (MEGABYTE, pytest.mark.slow))
        for name, text in texts(size).items()
    ],
)


@every_text
def test_names_of_a_program(text: str) -> None:
    program_names(text)
    assert place_of(text, "nobody") is None


@every_text
def test_surroundings_and_colours(text: str) -> None:
    surroundings(text, len(text))
    assert len(ink_runs(text.split("\n"), "mlir")) == text.count("\n") + 1


@pytest.fixture
def session() -> object:
    class Magics:
        cluster = None

        def known_programs(self) -> dict[str, object]:
            return {}

    from avial_lab.notebook.completion import Session

    return Session(Magics(), {})  # type: ignore[arg-type]


@every_text
def test_completion_and_inspection(text: str, session: object) -> None:
    ask: Callable[[str], object] = lambda cell: complete(cell, len(cell), session)  # type: ignore[arg-type]  # noqa: E731
    ask(f"%%avial\n{text}")
    assert ask(text) is None
    assert describe(text, len(text), session) is None  # type: ignore[arg-type]
    describe(f"%%avial\n{text}", 9, session)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [30_000, 10**6])
@pytest.mark.parametrize("width", [3.0, 110.0, 5000.0])
def test_a_name_is_shortened(length: int, width: float) -> None:
    name = "".join(map(str, range(length // 5)))[:length]
    short = svg.shorten(name, width, 12)
    assert svg.text_width(short, 12) <= max(width, svg.text_width("0…", 12))
    head, tail = short.split("…") if short.count("…") == 1 else (short[:1], "")
    assert name.startswith(head)
    assert name.endswith(tail)


def test_as_much_as_there_is_room_for_is_kept() -> None:
    name = "update_left_halo_of_block_17"
    heads = [((keep + 1) // 2, keep) for keep in range(3, len(name))]
    cuts = [f"{name[:head]}…{name[len(name) - keep + head :]}" for head, keep in heads]
    for width in range(10, 250):
        short = svg.shorten(name, width, 12)
        fit = [cut for cut in cuts if svg.text_width(cut, 12) <= width]
        longest = max(fit, key=len, default="u…")
        assert short == (name if svg.text_width(name, 12) <= width else longest)


def test_a_picture_with_a_long_title_and_long_notes() -> None:
    name = "n" * MEGABYTE
    picture = framed("", 300, 100, title=name, summary=name, description="d", notes=["a " * 10_000])
    assert len(picture) < 3 * MEGABYTE
    assert wrap("a " * 10_000, 100, 12)


def test_lines_of_an_edited_stage() -> None:
    old = "\n".join(["{", "}"] * 50_000)
    origins = [(k,) for k in range(100_000)]
    new = old.replace("{", "(", 1).replace("}", ")", 1)
    assert edited_origins(old, origins, new) == origins
    assert edited_origins(old, origins, old) == origins
    assert edited_origins(old, origins, "") == []
    assert edited_origins("a\nb\na", [(1,), (2,), (3,)], "a") == [(1,)]
    assert (
        len(edited_origins(old, origins, "\n".join(f"x{k}\n}}" for k in range(50_000)))) == 100_000
    )
