"""Kinds of devices: what satisfies which target, and that only `devices` tells one from another."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import avial_lab
from avial_lab.core.cache import spelled
from avial_lab.machine.devices import (
    CPU,
    CUDA,
    EMULATED_GPU,
    KINDS,
    DeviceKind,
    accepts,
    guessed_kind,
    kind_for,
    kind_in_file,
    kind_named,
    label_with,
    name_in_file,
    runnable_gpu,
)
from avial_lab.machine.devices.cuda import capability, chip_in_ptx, chip_of
from avial_lab.machine.topology import Device, Target, Topology
from avial_lab.trace import Event, EventKind, Trace

PACKAGE = Path(avial_lab.__file__).parent


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_there_is_one_object_of_each_kind(kind: DeviceKind) -> None:
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert kind_named(kind.name) is kind
    device = Device(kind.device_name(3), kind, 0, kind.family)
    assert pickle.loads(pickle.dumps(device)) == device
    assert spelled(device) == spelled(pickle.loads(pickle.dumps(device)))
    assert kind.name in spelled(device)  # real and emulated ones are built for apart


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_any_device_of_a_family_satisfies_its_general_target(kind: DeviceKind) -> None:
    assert accepts(kind, kind.family, kind.family)
    others = {other.family for other in KINDS} - {kind.family}
    assert not any(accepts(kind, kind.family, other) for other in others)
    assert kind_for(kind.family).family == kind.family


@pytest.mark.parametrize(
    ("kind", "own", "wanted", "fits"),
    [
        (CPU, "x86_64", "amd64", True),
        (CPU, "x86_64", "aarch64", False),
        (CPU, "x86_64", "riscv64", False),
        (CPU, "x86_64", "sm_90", False),
        (CUDA, "sm_90", "sm_80", True),
        (CUDA, "sm_90a", "sm_90", True),
        (CUDA, "sm_80", "sm_90", False),
        (CUDA, "sm_80", "cuda", True),
        (CUDA, "sm_80", "nvptx64", True),
        (CUDA, "sm_80", "x86_64", False),
        (EMULATED_GPU, "gpu", "sm_120", True),
        (EMULATED_GPU, "gpu", "cpu", False),
    ],
)
def test_what_satisfies_a_target(kind: DeviceKind, own: str, wanted: str, fits: bool) -> None:
    device = Device("d0", kind, 0, own)
    assert accepts(kind, own, wanted) == fits
    assert device.satisfies(Target("t", wanted)) == fits
    assert not device.satisfies(Target("t", wanted, "elsewhere"))


def test_the_gpu_that_ranks_drive() -> None:
    topology = Topology.local(3, gpus=2, arch="x86_64")
    assert runnable_gpu() is EMULATED_GPU
    assert [(d.name, d.rank, d.kind) for d in topology.devices[3:]] == [
        ("gpu0", 1, EMULATED_GPU),
        ("gpu1", 2, EMULATED_GPU),
    ]
    assert topology.gpus == 2


def test_compute_capabilities_are_read_in_one_place() -> None:
    assert capability("sm_90a") == 90
    assert chip_of("gpu") is None
    assert chip_of("sm_90a") == "sm_90a"
    assert chip_in_ptx(".version 8.4\n.target sm_90a, debug") == "sm_90a"
    assert chip_in_ptx("ret;") is None


def test_a_trace_knows_its_devices_and_keeps_them(tmp_path: Path) -> None:
    events = (Event(EventKind.TASK, "x", 0, "gpu0", 0.0, 1.0),)
    trace = Trace(1, events, kinds=(("gpu0", "emulated-gpu"),))
    assert trace.kind_of("gpu0") is EMULATED_GPU
    assert Trace.load(trace.save(tmp_path / "t.json")).kind_of("gpu0") is EMULATED_GPU


def test_of_a_trace_without_kinds_names_and_label_tell() -> None:
    assert Trace(1, ()).kind_of("gpu0") is CUDA
    assert Trace(1, (), "measured, GPU emulated").kind_of("gpu0") is EMULATED_GPU
    assert guessed_kind("cpu7", "measured, GPU emulated") is CPU
    assert guessed_kind("", "measured") is CPU


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_files_tell_kinds(kind: DeviceKind) -> None:
    assert kind_in_file(name_in_file(kind), emulated=kind.emulated) is kind


def test_files_tell_kinds_as_they_always_did() -> None:
    told = [(name_in_file(kind), kind.emulated) for kind in (CPU, CUDA, EMULATED_GPU)]
    assert told == [("cpu", False), ("gpu", False), ("gpu", True)]


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of device 'fpga'"):
        kind_in_file("fpga", emulated=False)


def test_what_is_emulated_is_said_once() -> None:
    kinds = [CPU, EMULATED_GPU, EMULATED_GPU]
    assert label_with("measured, GPU emulated", kinds) == "measured, GPU emulated"
    assert label_with("predicted", kinds) == "predicted, GPU emulated"


FORBIDDEN = {
    "a device's name says its kind": r"""\.startswith\(\(?["'](cpu|gpu|cuda|hip)["']""",
    "a name of a device is put together": r"""f["'](cpu|gpu)\{(?!.*topology|.*cache)""",
    "a compute capability is taken apart": r"""\bsm_\(?\[?\\|["']sm_["']|["']sm_\{""",
    "a kind's number or name stands for it": r"""look\s*===|=== "(emulated|gpu|cpu)\"""",
    "a list of kinds": r"""\[\s*["']CPU["'],\s*["']GPU""",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_else_tells_kinds_of_devices_apart(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix in (".py", ".js") and "devices" not in path.parts
        for line in path.read_text().splitlines()
        if pattern.search(line)
    ]
    assert found == []
