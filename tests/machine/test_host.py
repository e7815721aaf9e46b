"""What is known of a machine, from a made-up one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from avial_lab.machine.host import CacheLevel, pinned_environment, pins, this_machine


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four logical cores, two of each physical one; this process may use all but the first."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 3}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
    for cpu in range(4):
        folder = tmp_path / f"cpu{cpu}"
        (folder / "topology").mkdir(parents=True)
        (folder / "topology/thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
        for index, (level, kind, size, shared) in enumerate(
            [(1, "Data", "48K", "1,3"), (1, "Instruction", "32K", "1,3"),
             (3, "Unified", "8M", "0-3"), (2, "Unified", "2048K", "1,3")]
        ):  # fmt: skip
            cache = folder / f"cache/index{index}"
            cache.mkdir(parents=True)
            for name, text in (
                ("level", str(level)), ("type", kind), ("size", size), ("shared_cpu_list", shared),
            ):  # fmt: skip
                (cache / name).write_text(text + "\n")
    return tmp_path


def test_a_core_of_its_own_for_each_thread_as_long_as_there_are(system: Path) -> None:
    assert pins(1, system=system) == (1,)
    assert pins(2, system=system) == (1, 2)
    assert pins(3, system=system) == (1, 2, 3)
    assert pins(9, system=system) == (1, 2, 3)


def test_openmp_is_told() -> None:
    assert pinned_environment((1, 2)) == {"OMP_PROC_BIND": "true", "OMP_PLACES": "{1},{2}"}
    assert pinned_environment(()) == {}


def test_cores_and_caches(system: Path) -> None:
    machine = this_machine(system=system)
    assert (machine.cores, machine.threads) == (2, 3)
    assert machine.caches == (
        CacheLevel(1, 48 << 10, 2), CacheLevel(2, 2 << 20, 2), CacheLevel(3, 8 << 20, 4),
    )  # fmt: skip
    assert str(machine).endswith(
        "2 cores (3 threads), L1 48 KiB for 2 cores, L2 2 MiB for 2 cores, L3 8 MiB for 4 cores"
    )


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    machine = this_machine(system=tmp_path)
    assert machine.caches == ()
    assert machine.cores == machine.threads >= 1
