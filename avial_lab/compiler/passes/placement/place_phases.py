"""Where each phase may run, how it is divided, and when all ranks meet, written on it.

Module of replicates and tasks, Topology, Division, Sync -> the same with ranks, blocks, columns and
levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.program import read_groups, read_program
from avial_lab.compiler.ir.attributes import LEVEL, PHASES, PLACES, SYNC
from avial_lab.compiler.ir.dialects.avial import ReplicateOp, TaskOp
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import reduced_arrays, split_loops
from avial_lab.core.errors import ScheduleError
from avial_lab.machine.topology import Device, Target, Topology
from avial_lab.planning.distribution import Division
from avial_lab.planning.schedule import Sync, phase_levels
from avial_lab.planning.task_graph import build_dag


@dataclass(frozen=True)
class PlacePhases:
    """The ranks of the devices that satisfy the target, where they are not all; the division.

    before:  %gpu = avial.target {arch = "gpu"}  avial.replicate %gpu, %a {…}
    after:   avial.replicate %gpu, %a {…} {avial.ranks = array<i64: 2>, avial.block = 16,
             avial.places = array<i64: 3>}

    What runs on devices with memory of their own has the numbers of those memories as its places.
    What is reduced is accumulated in memory of the ranks that drive them, for now.

    Where several ranks are to wait for each other after each level of phases, `avial.sync` on the
    schedule says so, and `avial.level` on the phases which they are.
    """

    topology: Topology
    division: Division
    sync: Sync = Sync.EDGES

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            phases = [op for op in operations_in(module) if op.name in PHASES]
            if self.sync is Sync.LEVELS and self.topology.ranks > 1:
                _write_levels(module, phases)
            for op in phases:
                self._place(op)

    def _place(self, op: ir.Operation) -> None:
        devices = self._devices(op)
        ranks = sorted({device.rank for device in devices})
        parts = len(ranks)
        if all(device.kind.apart for device in devices) and not reduced_arrays(op):
            places = [self.topology.place_of(device.name) for device in devices]
            op.attributes[PLACES] = ir.DenseI64ArrayAttr.get(places)
            parts = len(places)
        if ranks != list(range(self.topology.ranks)):
            op.attributes["avial.ranks"] = ir.DenseI64ArrayAttr.get(ranks)
        if op.name != "avial.replicate":
            return
        i64 = ir.IntegerType.get_signless(64)
        if self.division.block:
            op.attributes["avial.block"] = ir.IntegerAttr.get(i64, self.division.block)
        columns = self.division.columns(parts)
        if columns > 1 and split_loops(op, 1):
            op.attributes["avial.columns"] = ir.IntegerAttr.get(i64, columns)

    def _devices(self, op: ir.Operation) -> tuple[Device, ...]:
        view = op.opview
        assert isinstance(view, ReplicateOp | TaskOp)
        asked = view.target_op
        target = Target(asked.name, asked.arch, asked.node, rank=asked.rank)
        devices = self.topology.satisfying(target)
        if not devices:
            there = "; ".join(map(str, self.topology.devices)) or "none"
            raise ScheduleError(
                f"no device satisfies target %{target.name} ({target}) of '{view.name}'",
                span=span_of(op.location),
                hint=f"the devices are: {there}",
            )
        return devices

    def __str__(self) -> str:
        topology = self.topology
        return str(
            PlacePhasesHere(topology.ranks, topology.gpus, str(self.division), self.sync.value)
        )

    @property
    def has_command_line(self) -> bool:
        """Whether its text says all of it: the devices are those of this machine."""
        topology = self.topology
        return topology == Topology.local(topology.ranks, gpus=topology.gpus)


@dataclass(frozen=True)
class PlacePhasesHere:
    """On ranks of this machine, the last `gpus` of which drive a GPU each: what `place-phases` is
    on a command line.

    before, after:  as PlacePhases
    """

    ranks: int = 1
    gpus: int = 0
    division: str = "block"
    sync: str = Sync.EDGES.value

    def __call__(self, module: ir.Operation) -> None:
        topology = Topology.local(self.ranks, gpus=self.gpus)
        PlacePhases(topology, Division.parse(self.division), Sync(self.sync))(module)

    def __str__(self) -> str:
        options = f"ranks={self.ranks} gpus={self.gpus} division={self.division}"
        more = "" if self.sync == Sync.EDGES.value else f" sync={self.sync}"
        return f"place-phases{{{options}{more}}}"


def _write_levels(module: ir.Operation, phases: Sequence[ir.Operation]) -> None:
    graph = build_dag(*read_program(module, None), read_groups(module))
    levels = phase_levels(graph)
    i64 = ir.IntegerType.get_signless(64)
    for op in phases:
        level = levels[text_attribute(op, "name")]
        op.attributes[LEVEL] = ir.IntegerAttr.get(i64, level)
    for op in operations_in(module):
        if op.name == "avial.schedule":
            op.attributes[SYNC] = ir.StringAttr.get(Sync.LEVELS.value)
