"""A namespace whose recordings run in this process, by lower-ptensor and MLIR's execution engine:
no ranks, no messages.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from avial_lab.compiler.catalogue import ARRAYS
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Topology
from avial_lab.program.reference_run import OneProcess
from avial_lab.ptensor.connection import Connection
from avial_lab.ptensor.namespace import Namespace
from avial_lab.ptensor.recording import Memory, Recorded, Recording
from avial_lab.runtime.rank.holders import rows
from avial_lab.runtime.rank.interpreter import INTEGERS, REALS, Plan, interpreted, needs, sent
from avial_lab.runtime.rank.shards import Alone, Shard
from tests.compiler.passes import golden


class LocalConnection:
    ranks = 1
    device = "default"
    cluster = OneProcess("no ranks", Topology.local(1))
    gpu = -1

    def on_gpu(self, _: Memory) -> None:
        """No array is there."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.texts: list[str] = []
        self.last = None

    def record(self) -> Recording:
        return self.recording

    def run_if_full(self) -> None:
        """Nothing here takes long to compile."""

    def run(self) -> None:
        recording, self.recording = self.recording, Recording()
        recorded = recording.finish({})
        after: dict[str, np.ndarray] = {}
        if recorded is not None:
            self.texts.append(recorded.text)
            after = self.computed(recorded)

        def settle(memory: Memory) -> None:
            if memory.name is not None and memory.name[1:] in after:
                memory.resident = after[memory.name[1:]]  # type: ignore[assignment]

        recording.settle(settle)

    def computed(self, recorded: Recorded) -> dict[str, np.ndarray]:
        given: list[Any] = [
            np.array(argument.resident)
            if argument.resident is not None
            else np.full(argument.shape, 77, argument.dtype)
            for argument in recorded.arrays.values()
        ]
        given += [np.array(t) for t in (recorded.reals, recorded.integers) if t]
        results = golden.computed(recorded.text, ARRAYS.passes(), given=dict(enumerate(given)))
        return dict(zip(recorded.arrays, results, strict=False))

    def put(self, array: np.ndarray) -> Memory:
        return Memory(array.shape, array.dtype, array.copy())  # type: ignore[arg-type]

    def take(self, memory: Memory, box: Box) -> np.ndarray:
        if memory.value is not None or memory.name is not None:
            self.run()
        return np.array(memory.resident)[(..., *box.slices)]


def local_namespace(connection: LocalConnection | None = None) -> Namespace:
    xp = Namespace.__new__(Namespace)
    xp._set_up(cast("Connection", connection or LocalConnection()))
    return xp


class InterpretedConnection(LocalConnection):
    """Every rank computes its rows of what is written, from what it needs of the arrays and nothing
    else: one after the other, here.
    """

    def __init__(self, ranks: int) -> None:
        super().__init__()
        self.ranks = ranks

    def computed(self, recorded: Recorded) -> dict[str, np.ndarray]:
        assert recorded.operations is not None
        before = {f"%{n}": a.resident for n, a in recorded.arrays.items()}
        made = {
            f"%{n}": (a.shape, [rows(a.shape, r, self.ranks) for r in range(self.ranks)])
            for n, a in recorded.arrays.items()
            if n in recorded.written
        }
        each = [
            needs(recorded.operations, {n: boxes[r] for n, (_, boxes) in made.items()})
            for r in range(self.ranks)
        ]
        after = {n: np.empty(a.shape, a.dtype) for n, a in recorded.arrays.items()}
        for rank in range(self.ranks):
            given = [n for n in each[rank].given if before[n] is not None]
            plan = Plan(
                recorded.operations, each, given, [(n, *of_it) for n, of_it in made.items()]
            )
            shards = interpreted(
                [_shard(np.asarray(before[n]), each[rank].given[n]) for n in given],
                Alone(rank, self.ranks),
                plan=sent(plan),
                numbers={REALS: recorded.reals, INTEGERS: recorded.integers},
            )
            for name, shard in zip(made, shards, strict=True):
                box = made[name][1][rank]
                if not box.empty:
                    after[name[1:]][box.slices] = shard.part
        return {n[1:]: after[n[1:]] for n in made}


def _shard(array: np.ndarray, box: Box) -> Shard:
    return Shard(array.shape, box.start, array[(..., *box.slices)].copy())
