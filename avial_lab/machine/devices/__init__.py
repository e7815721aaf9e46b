"""The kinds of devices there are: a module for each.

Architecture of a target, name of a kind -> `DeviceKind`. To add a kind: a module like `cuda.py`,
to be joined by `hip` and `opencl`, and its place in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterable

from avial_lab.machine.devices.cpu import CPU
from avial_lab.machine.devices.cuda import CUDA
from avial_lab.machine.devices.emulated_gpu import EMULATED_GPU
from avial_lab.machine.devices.kind import Backend, DeviceKind, Engine, Look

KINDS = (CPU, CUDA, EMULATED_GPU)
"""As legends and summaries list them; of a family that which real targets ask for comes first."""

GPU_FAMILY = CUDA.family

__all__ = [
    "CPU",
    "CUDA",
    "GPU_FAMILY",
    "KINDS",
    "Backend",
    "DeviceKind",
    "Engine",
    "Look",
    "accepts",
    "devices_between",
    "guessed_kind",
    "kind_for",
    "kind_named",
    "kind_in_file",
    "label_with",
    "place_name",
    "runnable_gpu",
    "name_in_file",
]


def kind_named(name: str) -> DeviceKind:
    """By the kind's own name (`emulated-gpu`)."""
    return next(kind for kind in KINDS if kind.name == name)


def kind_in_file(text: str, *, emulated: bool) -> DeviceKind:
    """Of a device in a file: its kind by the family or the name, and whether it is emulated.

    >>> kind_in_file("gpu", emulated=True), kind_in_file("gpu", emulated=False)
    (emulated-gpu, cuda)
    """
    named = (kind for kind in KINDS if text in (kind.family, kind.name))
    found = next((kind for kind in named if kind.emulated == emulated), None)
    if found is None:
        raise ValueError(f"there is no kind of device '{text}'")
    return found


def name_in_file(kind: DeviceKind) -> str:
    """What `kind_in_file` takes for it: the family, where that suffices."""
    alone = kind_in_file(kind.family, emulated=kind.emulated) is kind
    return kind.family if alone else kind.name


def kind_for(arch: str) -> DeviceKind:
    """The kind of device that a target of that architecture asks for.

    >>> kind_for("sm_90"), kind_for("gpu"), kind_for("x86_64")
    (cuda, cuda, cpu)
    """
    return next((kind for kind in KINDS if kind.claims(arch)), CPU)


def accepts(kind: DeviceKind, own: str, wanted: str) -> bool:
    """Whether a device of that kind and of architecture `own` runs tasks for the target `wanted`.

    >>> accepts(CUDA, "sm_80", "sm_90"), accepts(EMULATED_GPU, "gpu", "sm_90")
    (False, True)
    """
    if kind_for(wanted).family != kind.family:
        return False
    return wanted == kind.family or kind.covers(own, wanted)


def runnable_gpu() -> DeviceKind:
    """The kind of GPU that every machine has."""
    return next(kind for kind in KINDS if kind.family == GPU_FAMILY and kind.emulated)


def place_name(place: int, ranks: int) -> str:
    """The device that works in that memory: places 0 … ranks - 1 are the ranks' own.

    >>> place_name(1, 2), place_name(2, 2)
    ('cpu1', 'gpu0')
    """
    kind, number = (CPU, place) if place < ranks else (CUDA, place - ranks)
    return kind.device_name(number)


def devices_between(source: int, dest: int, ranks: int) -> str:
    """The two ends of a message between places; empty where they are hosts.

    >>> devices_between(3, 2, 2), devices_between(1, 0, 2)
    ('gpu1 → gpu0', '')
    """
    if source < ranks:
        return ""
    return f"{place_name(source, ranks)} → {place_name(dest, ranks)}"


def ends_words(source: int, dest: int, devices: str) -> tuple[str, str]:
    """A message's ranks, with their devices where it goes between those.

    >>> ends_words(1, 0, "gpu1 → gpu0"), ends_words(1, 0, "")
    (('1, gpu1', '0, gpu0'), ('1', '0'))
    """
    first, _, second = devices.partition(" → ")
    return (f"{source}, {first}", f"{dest}, {second}") if devices else (str(source), str(dest))


def label_with(label: str, kinds: Iterable[DeviceKind]) -> str:
    """How a run's times came about, with what was emulated among devices of these kinds.

    >>> label_with("measured", [CPU]), label_with("measured", [CPU, EMULATED_GPU])
    ('measured', 'measured, GPU emulated')
    """
    words = dict.fromkeys(f"{kind.noun} emulated" for kind in kinds if kind.emulated)
    return ", ".join([label, *(each for each in words if each not in label)])


def guessed_kind(device: str, label: str) -> DeviceKind:
    """Of a device known by its name alone, as in traces saved before they carried their devices'
    kinds; `label` then says whether it was emulated.

    >>> guessed_kind("gpu0", "measured"), guessed_kind("gpu0", "measured, GPU emulated")
    (cuda, emulated-gpu)
    """
    emulated = "emulated" in label.lower()
    named = [kind for kind in KINDS if device.startswith(kind.family)]
    return next((kind for kind in named if kind.emulated == emulated), next(iter(named), CPU))
