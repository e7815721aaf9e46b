"""A pass that must not change a bit, checked on nests that compute.

Nests, a pass -> both compiled and run on the same arrays, which must come out alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from avial_lab.passes.arrays_apart import APART
from avial_lab.pipelines import Pass, run_passes
from tests.kernels.jit import Machine
from tests.polyhedra.nests import Nest, computing_text

SIZE = 5


def check_same_bits(nests: Sequence[Nest], each: Pass) -> None:
    context = ir.Context()
    texts: list[tuple[str, str]] = []
    with context:
        for k, nest in enumerate(nests):
            text = computing_text(nest)
            module = ir.Module.parse(text, context)
            module.body.operations[0].attributes[APART] = ir.UnitAttr.get()
            run_passes(module.operation, (each,))
            texts += [(f"before{k}", text), (f"after{k}", str(module.body.operations[0]))]
        machine = Machine(texts, context)
    for k, nest in enumerate(nests):
        rng = np.random.default_rng(k)
        arguments = {
            "A": rng.integers(0, 1 << 40, SIZE + 2),
            "B": rng.integers(0, 1 << 40, (SIZE + 2, SIZE + 2)),
            "n": np.int64(SIZE),
            "x": np.int64(11),
        }
        before, after = machine.call(f"before{k}", arguments), machine.call(f"after{k}", arguments)
        for name, value in before.items():
            assert value.tobytes() == after[name].tobytes(), (name, nest)
