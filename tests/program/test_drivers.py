"""Which GPUs a program is for: this machine's where it has some, emulated ones where it has not."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import RunError, ScheduleError
from avial_lab.lessons.demo import deck_text
from avial_lab.machine import real_gpus
from avial_lab.machine.devices import CUDA, EMULATED_GPU
from avial_lab.machine.topology import Topology, with_real_gpus
from avial_lab.program import cached_build
from tests.runtime.native.builds import built, write_sources
from tests.runtime.native.devices.test_devices import SOURCES

TWO = """
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetName(char *name, int room, int device) { name[0] = 0; return room < device; }
int cuDeviceTotalMem_v2(long *nbytes, int device) { *nbytes = device; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = number + 5; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? (device == 5 ? 9 : 12) : 0;
    return 0;
}
"""


@pytest.fixture
def own_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a driver's library may be put; what was found before is forgotten."""
    path = tmp_path / "libcuda.so.1"
    monkeypatch.setattr(real_gpus, "LIBRARY", str(path))
    real_gpus.gpus_here.cache_clear()
    yield path
    real_gpus.gpus_here.cache_clear()


def test_the_driver_is_asked(own_library: Path) -> None:
    (own_library.parent / "two.c").write_text(TWO)
    assert built(["-shared", "-fPIC", "-o", own_library.name, "two.c"], own_library.parent) == ""
    assert real_gpus.chips_here() == ("sm_90", "sm_120")


def test_without_a_driver_there_are_none(own_library: Path) -> None:
    assert not own_library.exists()
    assert real_gpus.chips_here() == ()
    with pytest.raises(OSError, match="libcuda"):
        ctypes.CDLL(str(own_library))


def test_real_ones_take_the_places_of_emulated_ones() -> None:
    found = with_real_gpus(Topology.local(3, gpus=3), ["sm_90", "sm_80"]).accelerators
    assert [(d.arch, d.kind, d.rank) for d in found] == [
        ("sm_90", CUDA, 0), ("sm_80", CUDA, 1), ("sm_90", CUDA, 2)
    ]  # fmt: skip
    other = Topology.local(1, gpus=1, node="elsewhere")
    assert with_real_gpus(other, ["sm_90"]).accelerators[0].kind is EMULATED_GPU


def deck(**how: object) -> avial_lab.Program:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=1, **how)  # type: ignore[arg-type]


def test_a_gpu_of_this_machine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_build, "chips_here", lambda: ("sm_90",))
    program = deck()
    assert program.binary.manifest.driver == "cuda"
    assert "emulated" not in program.schedule.topology.kinds
    assert deck(driver="apart").binary.manifest.driver == "apart"
    if find_library("cuda") is None:  # it was only said that there is one
        before = np.array(program.arrays["d"])
        with pytest.raises(RunError, match="there is no NVIDIA driver"):
            program.run()
        np.testing.assert_array_equal(np.asarray(program.arrays["d"]), before)
    monkeypatch.setattr(cached_build, "chips_here", lambda: ("sm_80",))
    with pytest.raises(ScheduleError, match="sm_90"):
        deck()  # which an older one does not run


FAULT = """
import numpy as np, avial_lab
from avial_lab.core.errors import RunError
from tests.program.test_on_device import DOUBLE, TASKS
for text in (DOUBLE, TASKS):
    arrays = {name: np.full(1000, 7, np.float32) for name in "xyz"}
    arrays.pop("z") if text is DOUBLE else None
    how = {"on": "gpu"} if text is DOUBLE else {}
    try:
        avial_lab.compile(text, arrays=arrays, ranks=1, gpus=1, **how).run()
    except RunError as error:
        print(error)
    assert all((array == 7).all() for array in arrays.values())
"""


@pytest.mark.slow
def test_a_kernel_that_takes_the_gpu_down_is_told_at_its_line(tmp_path: Path) -> None:
    """A stand-in for NVIDIA's driver, whose context is lost with the first launch."""
    fake = SOURCES / "fake_cuda.c"
    flags = ["-shared", "-I", ".", "-o", "libcuda.so.1", str(fake)]
    assert built(flags, write_sources(tmp_path)) == ""
    told = subprocess.run(
        [sys.executable, "-c", FAULT], capture_output=True, text=True, check=True,
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "FAKE_FAULT": "719"},
    ).stdout  # fmt: skip
    loops, tasks = told.split("rank 0 of 1 failed ")[1:]
    assert "(CUDA error 719); found when the results came back" in loops
    assert loops.startswith("in task 'S1' on gpu0:")
    assert "<program>:3:3\n  affine.for" in loops
    assert tasks.startswith("copying y[0:100] from gpu0 to cpu0 (for task 't2')")
    assert "<program>:4:3\n  %t1 = avial.task" in tasks
    assert told.count("Hint: what was on the GPU is lost, and nothing else") == 2


def test_emulated_ones_say_so() -> None:
    program = deck(driver="apart")
    assert program.schedule.topology.kinds == "1 CPU, 1 GPU (emulated)"
    assert "GPU emulated" in str(program.run(check=True))


def test_what_is_not_there_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_build, "chips_here", tuple)
    assert deck().binary.manifest.driver == "apart"
    with pytest.raises(ScheduleError, match="no GPU of NVIDIA's was found"):
        deck(driver="cuda")
    with pytest.raises(ScheduleError, match="GPUs are not driven by 'rocm'"):
        deck(driver="rocm")
