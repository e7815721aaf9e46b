"""Functions on tensors, computed as they are and divided over devices, in this process.

Text, `--parallel`'s words, arrays -> the results by both ways. The tasks run in their order on one
memory, in which what nobody has written is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from avial_lab.compiler.analysis.accesses.buffers import caller_memory
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import parse
from avial_lab.compiler.worker.reference.fresh_tensors import tensors_to_fresh_memory
from avial_lab.compiler.worker.reference.interpreter import reference
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.element_types import dtype_of_element


def results_of(
    text: str,
    arrays: Mapping[str, np.ndarray],
    parallel: str | None = None,
    gradient: str = "",
    update: str = "",
) -> dict[str, np.ndarray]:
    """The function's results; with `parallel`, of its tasks, else of the sequential function; and
    the gradients by the arguments that `gradient` names, or what the optimizer `update` makes.
    """
    binding = bind_arrays(dict(arrays))
    source = Source(
        text, "test", binding, parallel=parallel or "", gradient=gradient, update=update
    )
    if parallel is None:
        module = parse(source, to_memory=tensors_to_fresh_memory, sequential=True)
    else:
        module = parse(source)
    buffers, storages = caller_memory(program_function(module), source.binding)
    data = dict(arrays)
    kinds = {b.name: (b.shape, np.dtype(dtype_of_element(b.element))) for b in buffers}
    for name, (shape, dtype) in kinds.items():
        if name not in data:
            data[name] = np.full(shape, np.nan if dtype.kind == "f" else 77, dtype)
    found = reference(module, buffers, storages, data, bounds_checks=False).data
    return {
        name: np.ascontiguousarray(found[name]).reshape(-1).view(dtype).reshape(shape)
        for name, (shape, dtype) in kinds.items()
        if name not in arrays
    }


def assert_divided_is_the_same(
    text: str,
    arrays: Mapping[str, np.ndarray],
    parallel: str,
    *,
    terms: int = 64,
    gradient: str = "",
) -> None:
    """Integers bit for bit, floats within the bound of sums in another order."""
    want = results_of(text, arrays, gradient=gradient)
    got = results_of(text, arrays, parallel, gradient)
    assert want.keys() == got.keys()
    for name, expected in want.items():
        if expected.dtype.kind == "f":
            scale = max((np.abs(each).max(initial=1) for each in want.values()), default=1.0)
            bound = terms * np.finfo(expected.dtype).eps * scale
            np.testing.assert_allclose(got[name], expected, rtol=0, atol=bound, err_msg=name)
        else:
            np.testing.assert_array_equal(got[name], expected, err_msg=name)
