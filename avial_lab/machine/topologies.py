"""A machine by what a user calls it: a preset, a file, or so many ranks here.

Text or path -> Topology.
"""

from __future__ import annotations

from pathlib import Path

from avial_lab.core.errors import OptionError
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.dlti import read_module
from avial_lab.machine.measured import HERE, kept
from avial_lab.machine.presets import PRESET, PRESETS, preset
from avial_lab.machine.simgrid_platform import read_platform
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import read_topology


def topology_called(name: str | Path | Topology) -> Topology:
    """`preset:laptop`, `cluster.yaml`, `platform.xml` (SimGrid's), `module.mlir` (its
    attributes of dlti), `here` (a rank for each core of
    this machine, as it was measured), or one that is there already.
    """
    if isinstance(name, Topology):
        return name
    text = str(name)
    if text == HERE:
        return _here()
    if text.startswith(PRESET):
        return preset(text.removeprefix(PRESET))
    path = Path(text)
    if path.suffix == ".xml":
        return read_platform(path)
    if path.suffix == ".mlir":
        return read_module(path)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return read_topology(path)
    raise OptionError(
        f"'{text}' is no topology",
        hint=f"give a file (.yaml, .xml, .mlir), {HERE}, or one of: "
        f"{', '.join(PRESET + each for each in PRESETS)}",
    )


def _here() -> Topology:
    found = kept()
    if found is None:
        raise OptionError(
            "this machine was not measured yet", hint="avial-lab topology --measure, some seconds"
        )
    return found.topology(this_cpu().cores)
