"""`program.save_repro`: one file that builds the program again and finds what is different."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import AvialError
from avial_lab.lessons.demo import deck_text


def deck() -> avial_lab.Program:
    memory = np.arange(30, dtype=np.int32)
    arrays = {"a": memory[:20], "b": memory[10:], "c": np.zeros(20, np.int32)}
    arrays["d"] = np.zeros(20, np.int32)
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=2, cell='In ["""4]', name="deck")


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)


def test_the_file_does_it_again(tmp_path: Path) -> None:
    program = deck()
    text = program.stages["mpi"].text
    edited = program.resume("mpi", text.replace("arith.muli", "arith.subi"))
    path = edited.save_repro(tmp_path / "deck.py", stage="host")
    done = run(path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the stage host is reproduced\n"
    written = path.read_text()
    assert "numpy " in written
    assert "mpi: edited by hand" in written
    assert "launch-on-devices,mpi-to-llvm,leave-tasks loops.mlir -o host.mlir" in written
    # Without the edit it is another program.
    path.write_text(written.replace("program.resume(", "(lambda *_: program)("))
    done = run(path)
    assert done.returncode == 1
    assert "the stage host differs from what it was" in done.stderr
    assert "arith.muli" in done.stdout


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    program = deck()
    text = program.save_repro(tmp_path / "deck.py").read_text()
    path = tmp_path / "arrays.py"
    path.write_text(text.partition("program = avial_lab")[0])
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy, sys; a = runpy.run_path({str(path)!r})['arrays']\n"
         "a['a'][15] = 99; print(*a['b'], *a['c'].shape)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [*map(str, (*range(10, 15), 99, *range(16, 30))), "20"]


def test_a_stage_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(AvialError, match="there is no stage 'x86'"):
        deck().save_repro(tmp_path / "deck.py", stage="x86")
    assert not list(tmp_path.iterdir())
