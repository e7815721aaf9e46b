"""What Shift-Tab says at a place in a cell; `|` is the cursor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from avial_lab.notebook.completion import Session
from avial_lab.notebook.inspection import describe
from tests.notebook.conftest import Page

CELL = """%%avial --ranks=3 -q
avial.schedule %a, %b {
  %cpu = avial.target {arch = "x86_64"}
  %first = avial.task %cpu, %a, %b {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %a[%i]
    }
  }
}
"""


@pytest.fixture
def session(page: Page) -> Session:
    page.names["a"] = np.zeros((20, 3), np.float32)
    magics = page.shell.magics_manager.registry["AvialMagics"]
    return Session(magics, page.shell.user_ns)


def at(session: Session, place: str, *, cell: str = CELL) -> str | None:
    """Asked behind the first letter of the first `place` of the cell."""
    return describe(cell, cell.index(place) + 1, session)


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("avial.schedule", "in program order"),
        ("avial.task", "%task1 = avial.task %cpu, %a, %b"),
        ("avial.target", "constraint on the device"),
        ("scf.parallel", "scf.parallel %i"),
        ("memref.load", "reads an element from a memref"),
        ("--ranks", "MPI ranks"),
        ("-q", "show nothing"),
        ("%%avial", "Compile the program in the cell"),
        ("%a, %b {", "20 x 3 of float32"),
        ("%cpu, %a", "target"),
        ("%i]", "argument"),
        (" 20 {", "scf.parallel %i"),
        ("arch", "the architecture a target asks for"),
    ],
)
def test_says(session: Session, place: str, wanted: str) -> None:
    assert wanted in (at(session, place) or "")


def test_line_magic(session: Session) -> None:
    assert "PolyBench" not in (at(session, "--size", cell="%avial load gemm --size=MINI") or "")
    assert "SMALL" in (at(session, "--size", cell="%avial load gemm --size=MINI") or "")
    assert "%avial show" in (at(session, "show", cell="%avial show deck") or "")


def test_python_is_left_alone(session: Session) -> None:
    assert at(session, "print", cell="print(avial.task)") is None
    assert at(session, "unknown", cell="%%avial\nunknown") is None


class Kernel:
    """As much of ipykernel's as is asked; the base of what would answer for Python."""

    def do_inspect(self, code: str, cursor_pos: int, *_: Any) -> dict[str, Any]:
        return {"status": "ok", "found": False, "data": {}, "asked": (code, cursor_pos)}

    def do_shutdown(self, restart: bool) -> None: ...


def test_kernel_asks_us_first(page: Page) -> None:
    kernel = Kernel()
    page.shell.kernel = kernel  # pyright: ignore[reportAttributeAccessIssue]
    page.run("%reload_ext avial_lab")
    answer = kernel.do_inspect(CELL, CELL.index("memref.load") + 3)
    assert answer["found"]
    assert "reads an element" in answer["data"]["text/markdown"]
    assert kernel.do_inspect("print", 2)["asked"] == ("print", 2)
