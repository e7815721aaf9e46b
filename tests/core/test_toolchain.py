"""Where tools are found, and how children end."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from avial_lab.core import toolchain
from avial_lab.core.toolchain import ToolError, find_tool, run, tool
from tests.waiting import assert_gone


@pytest.mark.parametrize("name", ["mlir-opt", "mlir-translate", "opt", "llc", "mpiexec", "cc"])
def test_every_tool_of_the_environment_is_found_without_its_path(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel started from an environment that is not activated has only the system's PATH."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = tool(name)
    assert path.is_file()
    if name != "cc":
        assert path.is_relative_to(sys.prefix)


def test_a_missing_tool_says_what_brings_it() -> None:
    assert find_tool("no-such-tool") is None
    with pytest.raises(
        ToolError, match="'no-such-tool' was not found\nHint: put no-such-tool on PATH"
    ):
        tool("no-such-tool")
    assert ".[mlir]" in toolchain.install_hint("llc")
    assert ".[mpi]" in toolchain.install_hint("mpiexec")


def test_the_compiler_is_the_one_that_cc_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mycc"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setenv("CC", str(mine))
    assert find_tool("cc") == mine
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    assert find_tool("cc") is None


def test_a_child_that_does_not_end_is_killed_with_its_children() -> None:
    outcome = run(("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; wait"), limit_s=0.5)
    assert outcome.timed_out
    assert outcome.complaint == "no answer in time"
    assert_gone(_processes(int(outcome.stdout)))


def _processes(pid: int) -> list[psutil.Process]:
    """The process of that id, unless it has ended and only waits for init to collect it."""
    try:
        process = psutil.Process(pid)
        return [] if process.status() == psutil.STATUS_ZOMBIE else [process]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo first >&2; echo second >&2; exit 1", "first"),
        ("echo Traceback >&2; echo 'KeyError: 3' >&2; exit 1", "KeyError: 3"),
        ("kill -SEGV $$", "killed by SIGSEGV: no message"),
    ],
)
def test_the_complaint_is_the_line_that_tells(script: str, complaint: str) -> None:
    assert run(("sh", "-c", script)).complaint == complaint


def test_a_program_that_is_not_there_is_an_outcome_too() -> None:
    outcome = run(("/no/such/program",))
    assert outcome.returncode == 127
    assert "No such file" in outcome.complaint


def test_the_launcher_is_the_one_that_mpiexec_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mympiexec"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setenv("MPIEXEC", str(mine))
    assert tool("mpiexec") == mine
    monkeypatch.setenv("MPIEXEC", str(tmp_path / "absent"))
    assert find_tool("mpiexec") is None
