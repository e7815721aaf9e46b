"""The report of a real program: there whole or not at all, the same again, and true."""

from __future__ import annotations

import resource
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.cli.main import main
from avial_lab.core.errors import AvialError
from avial_lab.lessons.demo import deck_text
from avial_lab.program.program import Program


@pytest.fixture(scope="module")
def deck() -> Program:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=3, gpus=1, name="first light")


def test_same_program_same_bytes(deck: Program, tmp_path: Path) -> None:
    first, second = (deck.report(tmp_path / name).read_bytes() for name in ("1.html", "2.html"))
    assert first == second
    assert len(first) < 2_000_000


@contextmanager
def no_room(nbytes: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: to a writer, a full disk."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_what_was_there(deck: Program, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text("before")
    deck.report(tmp_path / "warm.html").unlink()  # what it asks of the compiler is answered
    with (
        no_room(100_000),
        pytest.raises(AvialError, match=r"cannot write .*r\.html: File too large"),
    ):
        deck.report(path)
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text() == "before"


@pytest.mark.mpi
def test_its_line_makes_it_again(
    deck: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(deck.command)
    assert words[0] == "avial-lab"
    Path(words[2]).write_text(deck.text)
    assert main([*words[1:], "--report", "again.html"]) == 0
    assert "equal to the sequential reference" in capsys.readouterr().out
    assert "avial-lab run first-light.avial -n 3 --gpus 1" in Path("again.html").read_text()


@pytest.mark.slow
def test_2000_tasks_make_a_page_one_can_open(tmp_path: Path) -> None:
    """A chain through forty arrays, four ranks: what is left out is said."""
    names = [f"a{k}" for k in range(40)]
    tasks = "\n".join(
        f"""  %t{k} = avial.task %cpu, %a{k % 40}, %a{(k * 7 + 1) % 40} {{
    scf.parallel %i = 0 to 20 {{
      %x = memref.load %a{k % 40}[%i]
      memref.store %x, %a{(k * 7 + 1) % 40}[%i]
    }}
  }}"""
        for k in range(2000)
    )
    header = ", ".join(f"%{name}" for name in names)
    text = f'avial.schedule {header} {{\n  %cpu = avial.target {{arch = "cpu"}}\n{tasks}\n}}\n'
    arrays = {name: np.arange(20, dtype=np.int32) for name in names}
    page = avial_lab.compile(text, arrays=arrays, ranks=4).report(tmp_path / "r.html").read_text()
    assert len(page.encode()) < 2_000_000
    assert 'data-view="graph"' in page
    assert "lines left out" in page
    assert "1,800 more tasks, not listed" in page
