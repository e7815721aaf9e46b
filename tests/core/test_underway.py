"""What a process tells of its work, read while it works."""

from __future__ import annotations

from pathlib import Path

from avial_lab.core import underway


def test_what_is_told_and_what_is_not(tmp_path: Path) -> None:
    """Before the first stage is made, too: "after stage" and NULs stood there."""
    assert underway.told_in(tmp_path) == ""
    underway.tell_in(tmp_path)
    try:
        assert underway.told_in(tmp_path) == ""
        underway.tell("loading MLIR")
        assert underway.told_in(tmp_path) == "loading MLIR"
        underway.tell_done("mpi")
        assert underway.told_in(tmp_path) == "after stage mpi"
        underway.tell("pass tile-time")
        assert underway.told_in(tmp_path) == "after stage mpi, pass tile-time"
    finally:
        underway._open.clear()
