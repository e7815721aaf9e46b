"""Rarer bodies by the reference, with bounds checks, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import RunReference, Source
from avial_lab.core.buffers import bind_arrays, read_box
from avial_lab.core.errors import PassError
from avial_lab.core.regions import Box
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.compiler_client import shared_compiler
from tests.differential.cases import Case, compare, one_task, parametrised
from tests.differential.rare_bodies import CASES
from tests.programs import copy_together


@parametrised(CASES)
def test_body(case: Case) -> None:
    arrays = case.arrays(np.random.default_rng(0))
    wanted = copy_together(arrays)
    with np.errstate(all="ignore"):
        case.meaning(wanted)
    binding = bind_arrays(arrays)
    data = {s.name: read_box(arrays, s, Box.whole(s.shape)) for s in binding.storages}
    answer = shared_compiler().ask(RunReference(Source(case.text, "rare", binding), data))
    assert answer.violations == ()
    for name, array in wanted.items():
        got = answer.data[name].view(array.dtype).reshape(array.shape)
        compare(got, array, case.rtol, name)


REFUSED = {
    "bufferization.to_tensor": (
        "%t = bufferization.to_tensor %a restrict : memref<4xi32> to tensor<4xi32>\n"
        "%i = arith.constant 0 : index\n%x = tensor.extract %t[%i] : tensor<4xi32>\n"
        "memref.store %x, %a[%i]",
        5,
    ),
    # Upstream's own expansion of it is wrong (LLVM 22: min with the lower end, max with the
    # upper).
    "math.clampf": (
        "affine.for %i = 0 to 4 {\n%x = affine.load %f[%i]\n"
        "%y = math.clampf %x to [%x, %x] : f32\naffine.store %y, %f[%i]\n}",
        7,
    ),
}


@pytest.mark.parametrize("operation", REFUSED)
def test_what_has_no_lowering_is_named_where_it_stands(operation: str) -> None:
    body, line = REFUSED[operation]
    arrays = {"a": np.zeros(4, np.int32), "f": np.zeros(4, np.float32)}
    arrays = {n: a for n, a in arrays.items() if f"%{n}" in body}
    text = one_task(body, ", ".join(arrays), arch="gpu")
    with pytest.raises(PassError, match=operation.replace(".", r"\.")) as caught:
        compile_program(text, arrays=arrays, ranks=1)
    assert caught.value.span is not None
    assert caught.value.span.line == line
