"""Programs from bodies: MLIR text for tests that run one task after the other and look at the
arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.worker.reference.interpreter import ReferenceResult, reference
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.element_types import ELEMENT_OF_DTYPE


def type_of(array: np.ndarray) -> str:
    extents = "".join(f"{extent}x" for extent in array.shape)
    return f"memref<{extents}{ELEMENT_OF_DTYPE[array.dtype.name]}>"


def module_text(
    bodies: Sequence[tuple[str, str]],
    arrays: Mapping[str, np.ndarray],
    *,
    before: str = "",
    between: str = "",
) -> str:
    """A program of one task for each (arch, body), named task0, task1, …, over all arrays.

    `before` stands before the function, `between` before the first task.
    """
    arguments = ", ".join(
        f'%{name}: {type_of(array)} {{avial.name = "{name}"}}' for name, array in arrays.items()
    )
    tasks = "\n".join(
        f"""
    %target{k} = "avial.target"() {{arch = "{arch}", name = "target{k}"}} : () -> !avial.target_ref
    %task{k} = "avial.task"(%target{k}) ({{
{body}
      omp.terminator
    }}) {{name = "task{k}", operandSegmentSizes = array<i32: 1, 0, 0, 0>}}
      : (!avial.target_ref) -> !avial.task_ref"""
        for k, (arch, body) in enumerate(bodies)
    )
    return f"""
{before}
func.func @main({arguments}) {{
  "avial.schedule"() ({{
{between}
{tasks}
    omp.terminator
  }}) : () -> ()
  return
}}
"""


def parse(text: str) -> ir.Module:
    context = ir.Context()
    register(context)
    return ir.Module.parse(text, context)


def run(
    body: str,
    arrays: Mapping[str, np.ndarray],
    *,
    arch: str = "cpu",
    before: str = "",
    between: str = "",
    bounds_checks: bool = False,
    strict: bool = False,
) -> ReferenceResult:
    """What one task with that body does to the arrays."""
    text = module_text([(arch, body)], arrays, before=before, between=between)
    bound = bind_arrays(arrays)
    return reference(
        parse(text),
        bound.buffers,
        bound.storages,
        arrays,
        bounds_checks=bounds_checks,
        strict=strict,
    )
