"""What every rank of a program of loops does, turn by turn, before it runs.

Walk -> Turns.
"""

from __future__ import annotations

from dataclasses import replace

from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.compiler.frontends.mlir import is_plain
from avial_lab.compiler.ir.program import is_structured
from avial_lab.compiler.requests import Build, Walk
from avial_lab.compiler.worker.build import gpus_of, graph_of, lowered, parse, split_program
from avial_lab.core.errors import AvialError
from avial_lab.machine.topology import Topology
from avial_lab.planning.turns import Turns
from avial_lab.runtime.native.ownership import LAUNCH
from avial_lab.runtime.native.planned_run import walk_run


def walked(question: Walk) -> Turns:
    """By the binary that there is, or one that is made for it."""
    if question.built is None:
        return _lowered(question.build, question.trips)
    manifest = question.built.binary.manifest
    if not isinstance(manifest, DerivedMessages):
        raise AvialError("a program of tasks has no loops of phases")
    return walk_run(
        question.built.binary.shared_object,
        manifest.storages,
        manifest.ranks,
        temporary={buffer.storage for buffer in manifest.buffers if buffer.temporary},
        phases=manifest.phases,
        entry=manifest.entry,
        numbers=manifest.numbers,
        drivers=manifest.drivers,
        homes=dict(manifest.homes),
        trips=question.trips,
    )


def _lowered(build: Build, trips: int) -> Turns:
    """Without the plan and the schedule, of which many ranks have much."""
    build = replace(build, options=replace(build.options, dynamic=False))
    module, options = parse(build.source), build.options
    if not (is_plain(module) or is_structured(module)):
        raise AvialError("a program of tasks has no loops of phases")
    split = split_program(
        module,
        build.source,
        grid=options.division.grid,
        strict=options.strict,
        on=options.on or "",
    )
    if split.whole:
        raise AvialError("the program is one task: it cannot be divided among ranks")
    graph = graph_of(split.module, build.source)
    topology = build.topology or Topology.local(options.ranks, gpus=gpus_of(build, graph))
    done = lowered(build, module, split.module, topology, meanwhile=lambda: None)
    return walk_run(
        done.code.shared_object,
        graph.storages,
        topology.ranks,
        temporary={buffer.storage for buffer in graph.buffers if buffer.temporary},
        phases=done.phases,
        drivers=topology.drivers if LAUNCH in done.code.assembly else (),
        trips=trips,
    )
