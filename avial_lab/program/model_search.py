"""The best division of a function on tensors: all in closed form, the best of them by events.

Text, arrays, topology -> ModelSearch, whose best is what `--parallel` then takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from avial_lab.compiler.requests import Foresee, Simulate, Source, WeighLayers
from avial_lab.core.errors import AvialError, OptionError, ScheduleError
from avial_lab.machine.constants import REACHED_OF_PEAK
from avial_lab.machine.topology import Topology
from avial_lab.planning.distir_costs import Mlp
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.model_costs import Machine
from avial_lab.planning.model_search import ModelSearch, SearchRow, over_memory, search_model
from avial_lab.planning.simulator.ranks import Resources, Ways
from avial_lab.program.compiler_client import shared_compiler

SIMULATED = 10
"""How many of the best are simulated by events."""


def machine_of(topology: Topology, *, memory_bytes: float | None = None) -> Machine:
    """One rank of it, in f32, and the slowest way between neighbours."""
    nodes = [topology.speeds.node(name) for name in topology.node_of]
    ranks_on = {name: topology.node_of.count(name) for name in topology.node_of}
    flops = min(
        2 * node.core_flops_per_s * cores * REACHED_OF_PEAK
        for node, cores in zip(nodes, topology.cores_of_rank, strict=True)
    )
    ways = Ways(topology, Resources(topology.speeds))
    pairs = [ways.between(rank, rank + 1) for rank in range(topology.ranks - 1)]
    # Where nobody has said how much memory there is, none is too much.
    room = min((node.memory_bytes or float("inf")) / ranks_on[node.name] for node in nodes)
    return Machine(
        flops,
        min((way.bytes_per_s for way in pairs), default=float("inf")),
        max((way.latency_s for way in pairs), default=0.0),
        room if memory_bytes is None else memory_bytes,
        min(
            node.stream_bytes_per_s(float("inf"), cores)
            for node, cores in zip(nodes, topology.cores_of_rank, strict=True)
        ),
        max(
            ranks_on[node.name] * cores / node.cores
            for node, cores in zip(nodes, topology.cores_of_rank, strict=True)
        ),
    )


def mlp_source(model: Mlp, rows: int) -> Source:
    """A step of training, in f32: products and max(0, x) by turns, the sum of squared errors, and
    weights that follow their gradients.
    """
    t, w = f"tensor<{rows}x{model.width}xf32>", f"tensor<{model.width}x{model.width}xf32>"
    weights = [f"w{k}" for k in range(model.layers)]
    given = ", ".join([f"%x: {t}", f"%y: {t}", *(f"%{name}: {w}" for name in weights)])
    lines = [f"%zero = arith.constant dense<0.0> : {t}"]
    last = "%x"
    for k, name in enumerate(weights):
        into = f"outs(%zero : {t}) -> {t}"
        lines.append(f"%p{k} = linalg.matmul ins({last}, %{name} : {t}, {w}) {into}")
        lines.append(f"%h{k} = arith.maximumf %p{k}, %zero : {t}")
        last = f"%h{k}"
    lines += [
        f"%e = arith.subf {last}, %y : {t}",
        f"%s = arith.mulf %e, %e : {t}",
        "%none = arith.constant dense<0.0> : tensor<f32>",
        f"%loss = linalg.reduce {{ arith.addf }} ins(%s : {t}) outs(%none : tensor<f32>) "
        "dimensions = [0, 1]",
        "return %loss : tensor<f32>",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    text = f"func.func @mlp({given}) -> tensor<f32> {{\n{body}}}\n"
    return Source(text, str(model), gradient="+".join(weights), update="sgd")


def search(
    source: Source,
    topology: Topology,
    *,
    memory_bytes: float | None = None,
    simulated: int = SIMULATED,
    progress: Callable[[str], None] | None = None,
) -> ModelSearch:
    """Everything that `planning/model_search.py` knows, for all ranks of the topology."""
    *_, found = searched(
        source, topology, memory_bytes=memory_bytes, simulated=simulated, progress=progress
    )
    return found


def searched(
    source: Source,
    topology: Topology,
    *,
    memory_bytes: float | None = None,
    simulated: int = SIMULATED,
    progress: Callable[[str], None] | None = None,
) -> Iterator[ModelSearch]:
    """The search in closed form, then again each time when one more is simulated."""
    if simulated < 0:
        raise OptionError(f"{simulated} simulated", hint="0 or more of the best are simulated")
    compiler = shared_compiler()
    machine = machine_of(topology, memory_bytes=memory_bytes)
    model = compiler.ask(WeighLayers(replace(source, parallel="")))
    found = search_model(model, topology.ranks, machine)
    told: Mapping[SearchRow, SearchRow] = {}
    yield found
    chosen = _worth_simulating(found, simulated)
    for k, row in enumerate(chosen):
        if progress is not None:
            progress(f"simulating {row.words} ({k + 1} of {len(chosen)})")
        told = {**told, row: _simulated(row, source, topology, machine)}
        yield replace(found, rows=tuple(told.get(row, row) for row in found.rows))


def _worth_simulating(found: ModelSearch, most: int) -> list[SearchRow]:
    """The best of all, half of them the best of their degrees: many differ in little else."""
    ranked = found.ranked
    degrees: dict[tuple[object, ...], SearchRow] = {}
    for row in ranked:
        given = row.configuration
        degrees.setdefault((given.d, given.h, given.p, given.inside), row)
    chosen = list(degrees.values())[: (most + 1) // 2]
    chosen += [row for row in ranked if row not in chosen][: most - len(chosen)]
    return sorted(chosen, key=ranked.index)


def _simulated(row: SearchRow, source: Source, topology: Topology, machine: Machine) -> SearchRow:
    """The row with what the tasks would take; where the transforms refuse it, with their reason."""
    try:
        facts = shared_compiler().ask(Simulate(replace(source, parallel=row.words), topology))
    except AvialError as error:
        return replace(row, reason=error.message)
    held = max(facts.held_bytes)
    over = held - machine.memory_bytes
    reason = over_memory(over) if over > 0 else ""
    return replace(
        row, reason=reason, simulated_s=facts.seconds, held_bytes=held,
        moved_bytes=facts.moved_bytes,
    )  # fmt: skip


def best_division(
    source: Source, topology: Topology, *, progress: Callable[[str], None] | None = None
) -> tuple[str, ModelSearch]:
    """What `--parallel search` stands for, and among what it was found. ScheduleError where nothing
    is feasible.
    """
    found = search(source, topology, simulated=3, progress=progress)
    if found.best is None:
        reason = next((row.reason for row in found.rows), "there is nothing to divide")
        raise ScheduleError(
            f"no division over {topology.ranks} ranks is feasible: {reason}",
            hint="avial-lab search shows all of them",
        )
    return found.best.words, found


def foresee(source: Source, parallel: str, topology: Topology) -> Foreseen:
    """What its ranks would do and hold, divided so."""
    return shared_compiler().ask(Foresee(replace(source, parallel=parallel), topology))
