"""What is known of a kind of device: which targets it satisfies, how its tasks are lowered and run,
and how it looks in pictures.

A module of this package declares one `DeviceKind`; `machine/devices/__init__.py` lists them.
Nothing else asks what kind a device is by its name, or keeps a list of kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Backend(Enum):
    """What the tasks of a target are lowered to."""

    HOST = "functions in the machine code of the rank that drives the device"
    NVPTX = "besides that, kernels in NVIDIA's PTX"


class Engine(Enum):
    """What runs tasks on a device."""

    RANK = "the process of the rank that drives it calls them"


@dataclass(frozen=True)
class Look:
    """`name` is what legends and tables say. The `letter` and the outline (round or cut corners,
    dashes where a device is emulated) repeat what `colour` says; `tint` is what boxes are filled
    with. Colours are Okabe and Ito's.
    """

    name: str
    letter: str
    colour: str
    tint: str
    cut_corners: bool = False
    dash: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class DeviceKind:
    """One kind of device. There is one object of each, also on the other side of a pickle.

    name: of the kind, as manifests and traces carry it.
    family: what a target writes for any device of its family, `cpu` or `gpu`; devices are called
    `cpu0`, `cpu1` … after it.
    noun: one of them, in sentences.
    claims: whether an architecture of a target (`sm_90`) asks for this kind.
    covers: whether a device of the first architecture runs what was asked for the second.
    backend: what tasks that ask for this kind are lowered to. engine: what runs tasks on devices of
    this kind; None where no engine of this version drives them.
    apart: it has memory of its own, and data is copied there.
    option: on a command line, what adds one to a run.
    arches: architectures to offer where somebody writes a target, the likeliest first.
    """

    name: str
    family: str
    noun: str
    look: Look
    claims: Callable[[str], bool]
    covers: Callable[[str, str], bool]
    backend: Backend = Backend.HOST
    engine: Engine | None = Engine.RANK
    emulated: bool = False
    apart: bool = False
    option: str = ""
    arches: tuple[str, ...] = ()

    one_by_name: ClassVar[bool] = True  # for keys (`core/cache.py`)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], DeviceKind], tuple[str]]:
        from avial_lab.machine.devices import (
            kind_named,  # which lists what is in modules like ours
        )

        return kind_named, (self.name,)

    def device_name(self, number: int) -> str:
        """Of the device of that number in its family."""
        return f"{self.family}{number}"
