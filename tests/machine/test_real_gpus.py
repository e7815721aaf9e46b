"""What a driver says of its GPUs, by one that has none behind it, and what is said without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from avial_lab.machine import real_gpus
from avial_lab.machine.real_gpus import chips_here, gpus_here, why_no_kernel
from tests.runtime.native.builds import built, write_sources

FAKE = Path(__file__).parents[1] / "runtime" / "native" / "devices" / "c" / "fake_cuda.c"


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    gpus_here.cache_clear()
    yield
    gpus_here.cache_clear()


def test_name_memory_and_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sources(tmp_path)
    library = tmp_path / "libfakecuda.so"
    assert (
        built(["-shared", "-fPIC", "-I", str(tmp_path), "-o", str(library), str(FAKE)], tmp_path)
        == ""
    )
    monkeypatch.setattr(real_gpus, "LIBRARY", str(library))
    gpu = "Fake GPU (sm_90, 80 GiB)"
    assert str(gpus_here()) == f"{gpu}, {gpu}; driver for CUDA 13.0"
    assert chips_here() == ("sm_90", "sm_90")
    assert why_no_kernel() == ""


def test_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_gpus, "LIBRARY", "libnobody.so.1")
    assert str(gpus_here()).startswith("there is no NVIDIA driver (libnobody.so.1")
    assert chips_here() == ()
