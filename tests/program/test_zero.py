"""ZeRO on real ranks: what they send in a step is what its paper says, simulated and counted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of, parse
from avial_lab.compiler.worker.placed import ranks_of_tasks, schedule_on_ranks
from avial_lab.core.buffers import bind_arrays
from avial_lab.machine.topology import Topology
from avial_lab.planning.schedule import Sync
from avial_lab.trace.events import EventKind

NAMES = ("w", "v", "w_m", "w_v", "v_m", "v_v", "step")
SHAPES = {"x": (5, 4), "t": (5, 4), "w": (4, 6), "v": (6, 4)}
SHAPES |= {f"{name}_{kept}": SHAPES[name] for name in "wv" for kept in "mv"} | {"step": ()}


def _kind(shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join([*map(str, shape), 'f32'])}>"


TEXT = f"""
func.func @loss({", ".join(f"%{name}: {_kind(shape)}" for name, shape in SHAPES.items())})
    -> tensor<f32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
  %h = linalg.matmul ins(%x, %w : tensor<5x4xf32>, tensor<4x6xf32>) outs(%i : tensor<5x6xf32>)
    -> tensor<5x6xf32>
  %a = math.tanh %h : tensor<5x6xf32>
  %f = tensor.empty() : tensor<5x4xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<5x4xf32>) -> tensor<5x4xf32>
  %y = linalg.matmul ins(%a, %v : tensor<5x6xf32>, tensor<6x4xf32>) outs(%j : tensor<5x4xf32>)
    -> tensor<5x4xf32>
  %d = arith.subf %y, %t : tensor<5x4xf32>
  %s = arith.mulf %d, %d : tensor<5x4xf32>
  %e0 = tensor.empty() : tensor<f32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.reduce ins(%s : tensor<5x4xf32>) outs(%i0 : tensor<f32>) dimensions = [0, 1]
    (%p: f32, %q: f32) {{ %c = arith.addf %p, %q : f32  linalg.yield %c : f32 }}
  return %l : tensor<f32>
}}
"""
PSI = 24
"""The elements of each weight."""


def arrays_of() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        name: (rng.uniform(-1, 1, shape) if name in "xtwv" else np.zeros(shape)).astype(np.float32)
        for name, shape in SHAPES.items()
    }


OF, RULE = "w v", "adamw lr=0.1"


def step(ranks: int, parallel: str) -> avial_lab.Program:
    return avial_lab.compile(
        TEXT, arrays=arrays_of(), ranks=ranks, parallel=parallel, gradient=OF, update=RULE
    )


@pytest.mark.quick("1", "3")
@pytest.mark.parametrize("level", range(4))
def test_what_a_rank_sends(level: int) -> None:
    ranks = 2
    source = Source(
        TEXT,
        "t",
        bind_arrays(arrays_of()),
        parallel=f"data {ranks}, zero {level}",
        gradient=OF,
        update=RULE,
    )
    module = parse(source)
    graph, topology = graph_of(module, source), Topology.local(ranks)
    schedule = schedule_on_ranks(graph, topology, ranks_of_tasks(module), sync=Sync.EDGES)
    # At level 3 each weight is gathered twice, but for the first layer's: no way back reads that.
    want = 4 * PSI * (4 if level < 3 else 5) * Fraction(ranks - 1, ranks)
    for rank in range(ranks):
        sent = [t for t in schedule.transfers if t.source == rank]
        assert sum(t.nbytes for t in sent if t.box.size > 1) == want  # the loss is a number


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "level"),
    [(2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 3)],
)
def test_three_steps_on_ranks(ranks: int, level: int) -> None:
    program = step(ranks, f"data {ranks}, zero {level}")
    alone = step(1, "data 1")
    for _ in range(3):
        program.run(check=True, oversubscribe=True)
        assert "equal to the sequential reference" in (program.check_report or "")
        alone.run()
        for one in (program, alone):
            for k, name in enumerate(NAMES):
                one.arrays[name][...] = one.arrays[f"result{k + 1}"]
    for name in NAMES:
        np.testing.assert_allclose(program.arrays[name], alone.arrays[name], rtol=1e-4, atol=1e-6)
    assert program.trace is not None
    for rank in range(ranks):
        planned = sum(t.nbytes for t in program.schedule.transfers if t.source == rank)
        sends = (e for e in program.trace.events if e.kind is EventKind.SEND and e.rank == rank)
        assert sum(event.nbytes for event in sends) == planned
