"""A pass that must not change a bit, checked on functions that compute.

Functions before and after, or nests and a pass -> both compiled and run on the same arrays, which
must come out alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.lowering.run import Pass, run_passes
from tests.compiler.analysis.polyhedral.nests import Nest, computing_text
from tests.kernels.jit import Machine

SIZE = 5
KINDS = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def assert_same_bits(
    befores: Sequence[str],
    afters: Sequence[str],
    arrays: Mapping[str, np.ndarray],
    *placed: Mapping[str, int],
) -> None:
    """Of all `arrays`, which every function takes; once for each of `placed`, which says how many
    elements behind a line of the cache some of them begin.
    """
    assert len(befores) == len(afters)
    functions = [(f"before{k}", text) for k, text in enumerate(befores)]
    functions += [(f"after{k}", text) for k, text in enumerate(afters)]
    machine = Machine(functions, ir.Context())
    for k, behind in product(range(len(befores)), placed or ({},)):
        want, got = (
            machine.call(f"{when}{k}", dict(arrays), behind) for when in ("before", "after")
        )
        for name in arrays:
            np.testing.assert_array_equal(got[name].view(np.uint8), want[name].view(np.uint8))


def random_array(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Of one of `KINDS`; some floats are NaN, and some -0."""
    values = rng.normal(size=shape) * 1000
    if kind.startswith("f"):
        values[rng.random(shape) < 0.03] = np.nan
        values[rng.random(shape) < 0.03] = -0.0
    return values.astype(KINDS[kind])


def check_same_bits(nests: Sequence[Nest], each: Pass) -> None:
    context = ir.Context()
    texts: list[tuple[str, str]] = []
    with context:
        for k, nest in enumerate(nests):
            text = computing_text(nest)
            module = ir.Module.parse(text, context)
            module.body.operations[0].attributes[NO_ALIAS] = ir.UnitAttr.get()
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
