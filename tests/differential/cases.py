"""A program with what it means in NumPy, and the one way all of them are tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from tests.programs import copy_together

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """`text` works on `arrays(rng)`; `meaning` does the same to them with NumPy.

    `rtol` is for elementary functions and sums in another order; without it, bit for bit.
    """

    text: str
    arrays: Callable[[np.random.Generator], Arrays]
    meaning: Callable[[Arrays], object]
    scalars: Mapping[str, float] = field(default_factory=dict)
    rtol: float = 0.0


def one_task(body: str, buffers: str, *, arch: str = "cpu") -> str:
    """A program of one task with that body; `buffers` names them with commas between."""
    listed = ", ".join(f"%{name.strip()}" for name in buffers.split(","))
    return f"""
avial.schedule {listed} {{
  %target = avial.target {{arch = "{arch}"}}
  %task = avial.task %target, {listed} {{
{body}
  }}
}}
"""


SMALL_TOO = "normalise-tasks{least=1}"
"""Sizes with which the loop passes take small bodies, too."""


def try_case(
    case: Case,
    cluster: Cluster | None,
    *,
    ranks: int,
    sync: str = "edges",
    sizes: str = "",
    gpus: int | None = None,
    device_seed: int = 0,
) -> Program:
    """Run it on so many ranks; its arrays have to be what NumPy says and the reference says, and of
    tasks what goes to GPUs and comes back what the plan says, of all what is taken there.
    """
    arrays = case.arrays(np.random.default_rng(11))
    wanted = copy_together(arrays)
    with np.errstate(all="ignore"):
        case.meaning(wanted)
    # NumPy rounds every product and every sum: where no bit may differ from it, so do we.
    program = compile_program(
        case.text,
        arrays=arrays,
        ranks=ranks,
        sync=sync,
        scalars=case.scalars,
        sizes=sizes,
        strict=case.rtol == 0.0,
        gpus=gpus,
    )
    trace = program.run(cluster, check=True, device_seed=device_seed)
    if not program.of_loops:
        assert set(trace.copies) == set(program.plan.copies)
        assert set(trace.moves) == set(program.plan.moves)
    if program.plan.complete:
        assert trace.taken_bytes == program.plan.taken_bytes
    for name, array in arrays.items():
        compare(array, wanted[name], case.rtol, name)
    return program


def compare(got: np.ndarray, wanted: np.ndarray, rtol: float, name: str) -> None:
    if got.dtype.kind not in "biufc":  # bfloat16: NumPy does not know its NaN
        assert got.dtype == wanted.dtype
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    if rtol == 0.0 or got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, wanted, err_msg=name, strict=True)
        return
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=0, err_msg=name)


def parametrised(cases: Mapping[str, Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in cases.items()])
