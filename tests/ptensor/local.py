"""A namespace whose recordings run in this process, by lower-ptensor and MLIR's execution engine:
no ranks, no messages.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from avial_lab.compiler.passes.ptensor.lower_ptensor import LowerPtensor
from avial_lab.ptensor.connection import Connection
from avial_lab.ptensor.namespace import Namespace
from avial_lab.ptensor.recording import Memory, Recorded, Recording
from tests.compiler.passes.golden import computed


class LocalConnection:
    ranks = 1

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
        recorded = recording.finish()
        after: dict[str, np.ndarray] = {}
        if recorded is not None:
            self.texts.append(recorded.text)
            after = _run(recorded)

        def settle(memory: Memory) -> None:
            if memory.name is not None and memory.name[1:] in after:
                memory.resident = after[memory.name[1:]]  # type: ignore[assignment]

        recording.settle(settle)

    def put(self, array: np.ndarray) -> Memory:
        return Memory(array.shape, array.dtype, array.copy())  # type: ignore[arg-type]

    def take(self, memory: Memory) -> np.ndarray:
        if memory.value is not None or memory.name is not None:
            self.run()
        return np.array(memory.resident)


def _run(recorded: Recorded) -> dict[str, np.ndarray]:
    given: list[Any] = [
        np.array(argument.resident)
        if argument.resident is not None
        else np.full(argument.shape, 77, argument.dtype)
        for argument in recorded.arrays.values()
    ]
    given += [np.array(t) for t in (recorded.reals, recorded.integers) if t]
    results = computed(recorded.text, (LowerPtensor(),), given=dict(enumerate(given)))
    return dict(zip(recorded.arrays, results, strict=False))


def local_namespace() -> Namespace:
    xp = Namespace.__new__(Namespace)
    xp._set_up(cast("Connection", LocalConnection()))
    return xp
