"""Views in short notation and in MLIR's own: their types follow, and so do those of what loads."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell, print_module
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import VerifyError

TURNED = "memref<6x4xi64, strided<[1, 6]>>"
OPEN = "memref<?x?xi64, strided<[?, ?], offset: ?>>"

VIEWS = {
    "transpose": "%v = memref.transpose %a (i, j) -> (j, i)",
    "transpose, typed": f"%v = memref.transpose %a (i, j) -> (j, i) : memref<4x6xi64> to {TURNED}",
    "transpose, in lines": f"""%v = memref.transpose %a (d0, d1)
        -> (d1, d0)
        : memref<4x6xi64> to {TURNED}""",
    "transpose of a window": """%s = memref.subview %a[0, 0][4, 6][1, 1]
      %v = memref.transpose %s (i, j) -> (j, i)""",
    "cast": f"""%c = memref.cast %a : memref<4x6xi64> to {OPEN}
      %v = memref.transpose %c (i, j) -> (j, i)""",
    "reinterpret_cast": "%v = memref.reinterpret_cast %a to offset: [0], sizes: [6, 4], "
    f"strides: [1, 6] : memref<4x6xi64> to {TURNED}",
    "metadata": f"""%m, %o, %n:2, %s:2 = memref.extract_strided_metadata %a
        : memref<4x6xi64> -> memref<i64>, index, index, index, index, index
      %v = memref.reinterpret_cast %m to offset: [%o], sizes: [%n#1, %n#0],
        strides: [%s#1, %s#0] : memref<i64> to {OPEN}""",
    "collapse_shape and expand_shape": """
      %f = memref.collapse_shape %a [[0, 1]] : memref<4x6xi64> into memref<24xi64>
      %v = memref.expand_shape %f [[0, 1]] output_shape [6, 4]
        : memref<24xi64> into memref<6x4xi64>""",
    "assume_alignment": """%q = memref.assume_alignment %a, 8 : memref<4x6xi64>
      %v = memref.transpose %q (i, j) -> (j, i)""",
}


def text_of(view: str) -> str:
    return f"""avial.schedule %a, %b {{
  %cpu = avial.target {{arch = "x86_64"}}
  %t = avial.task %cpu, %a, %b {{
      {view}
    affine.for %i = 0 to 6 {{
      affine.for %j = 0 to 4 {{
        %x = affine.load %v[%i, %j]
        affine.store %x, %b[%i, %j]
      }}
    }}
  }}
}}"""


BINDING = bind_arrays({"a": np.zeros((4, 6), np.int64), "b": np.zeros((6, 4), np.int64)})


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_in_a_task(view: str) -> None:
    text = text_of(VIEWS[view])
    module = parse_cell(text, cell="c", context=ir.Context(), binding=BINDING)
    again = print_module(module)
    assert print_module(parse_cell(again, cell="c", context=ir.Context())) == again


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("%v = memref.transpose %a (i, j, k) -> (k, j, i)", "names 3 dimensions of a buffer of 2"),
        ("%v = memref.transpose %a (i, i) -> (i, i)", "names 2 dimensions of a buffer of 2"),
        ("%v = memref.transpose %a (i, j) -> (j, k)", "do not follow"),
    ],
)
def test_a_transpose_of_other_dimensions(view: str, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        parse_cell(text_of(view), cell="c", context=ir.Context(), binding=BINDING)
