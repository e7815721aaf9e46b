"""Where each phase may run, and how it is divided, written on it.

Module of replicates and tasks, Topology, Division -> the same with ranks, blocks and columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.dialects.avial import ReplicateOp, TaskOp
from avial_lab.dialects.places import span_of
from avial_lab.division import Division
from avial_lab.errors import ScheduleError
from avial_lab.passes.operations import operations_in
from avial_lab.passes.phases import split_loops
from avial_lab.topology import Target, Topology


@dataclass(frozen=True)
class PlacePhases:
    """The ranks of the devices that satisfy the target, where they are not all; the division.

    before:  %gpu = avial.target {arch = "gpu"}  avial.replicate %gpu, %a {…}
    after:   avial.replicate %gpu, %a {…} {avial.ranks = array<i64: 2>, avial.block = 16}
    """

    topology: Topology
    division: Division

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                if op.name in ("avial.replicate", "avial.task"):
                    self._place(op)

    def _place(self, op: ir.Operation) -> None:
        ranks = self._ranks(op)
        if ranks != list(range(self.topology.ranks)):
            op.attributes["avial.ranks"] = ir.DenseI64ArrayAttr.get(ranks)
        if op.name != "avial.replicate":
            return
        i64 = ir.IntegerType.get_signless(64)
        if self.division.block:
            op.attributes["avial.block"] = ir.IntegerAttr.get(i64, self.division.block)
        columns = self.division.columns(len(ranks))
        if columns > 1 and split_loops(op, 1):
            op.attributes["avial.columns"] = ir.IntegerAttr.get(i64, columns)

    def _ranks(self, op: ir.Operation) -> list[int]:
        view = op.opview
        assert isinstance(view, ReplicateOp | TaskOp)
        target = Target(view.target_op.name, view.target_op.arch, view.target_op.node)
        devices = self.topology.satisfying(target)
        if not devices:
            there = "; ".join(map(str, self.topology.devices)) or "none"
            raise ScheduleError(
                f"no device satisfies target %{target.name} ({target}) of '{view.name}'",
                span=span_of(op.location),
                hint=f"the devices are: {there}",
            )
        return sorted({device.rank for device in devices})

    def __str__(self) -> str:
        return str(PlacePhasesHere(self.topology.ranks, self.topology.gpus, str(self.division)))

    @property
    def is_told(self) -> bool:
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

    def __call__(self, module: ir.Operation) -> None:
        topology = Topology.local(self.ranks, gpus=self.gpus)
        PlacePhases(topology, Division.parse(self.division))(module)

    def __str__(self) -> str:
        return f"place-phases{{ranks={self.ranks} gpus={self.gpus} division={self.division}}}"
