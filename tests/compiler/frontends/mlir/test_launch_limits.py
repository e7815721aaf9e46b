"""A launch that no GPU of the target takes is refused at its line; the largest one is not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import VerifyError

FIT = {"bx": 1, "by": 1, "bz": 1, "tx": 1, "ty": 1, "tz": 1, "tile": 4, "arch": "sm_90"}


def launch(**sizes: int | str) -> str:
    given = {**FIT, **sizes}
    constants = "".join(
        f"    %{name} = arith.constant {value} : index\n"
        for name, value in given.items() if name not in ("tile", "arch")
    )  # fmt: skip
    return f"""avial.schedule %a: memref<64xf64> {{
  %gpu = avial.target {{arch = "{given["arch"]}"}}
  %t = avial.task %gpu, %a {{
{constants}    gpu.launch blocks(%i, %j, %k) in (%gx = %bx, %gy = %by, %gz = %bz)
      threads(%u, %v, %w) in (%sx = %tx, %sy = %ty, %sz = %tz)
      workgroup(%tile : memref<{given["tile"]}xf64, #gpu.address_space<workgroup>>) {{
      %x = memref.load %a[%u] : memref<64xf64>
      memref.store %x, %tile[%v] : memref<{given["tile"]}xf64, #gpu.address_space<workgroup>>
      memref.store %x, %a[%u] : memref<64xf64>
      gpu.terminator
    }}
  }}
}}"""


def parse(text: str) -> ir.Module:
    binding = bind_arrays({"a": np.zeros(64)})
    return parse_cell(text, cell="In [1]", context=ir.Context(), binding=binding)


TOO_LARGE = {
    "a block of 2,000 threads in x; from 1 to 1,024": {"tx": 2000},
    "a block of 2,048 threads; at most 1,024": {"tx": 512, "ty": 4},
    "a block of 65 threads in z; from 1 to 64": {"tz": 65},
    "a block of 0 threads in y; from 1 to 1,024": {"ty": 0},
    "a block of -1 threads in x; from 1": {"tx": -1},
    "a grid of 65,536 blocks in y; at most 65,535": {"by": 65536},
    "a grid of 2,147,483,648 blocks in x": {"bx": 1 << 31},
    "227 KiB of shared memory in a block; sm_90 has 227 KiB": {"tile": 227 * 128 + 1},
    "64.1 KiB of shared memory in a block; sm_75 has 64 KiB": {"tile": 8200, "arch": "sm_75"},
}  # fmt: skip


@pytest.mark.parametrize("said", TOO_LARGE)
def test_it_is_refused_at_its_line(said: str) -> None:
    text = launch(**TOO_LARGE[said])
    with pytest.raises(VerifyError, match=re.escape(said)) as caught:
        parse(text)
    span = caught.value.span
    assert span is not None
    assert text.splitlines()[span.line - 1].lstrip().startswith("gpu.launch")
    assert caught.value.hint


@pytest.mark.parametrize(
    "sizes",
    [{"tx": 1024}, {"tx": 16, "ty": 64}, {"bx": (1 << 31) - 1}, {"bx": 0}, {"tile": 227 * 128},
     {"tile": 64 * 128, "arch": "sm_75"}, {"tile": 227 * 128, "arch": "gpu"}],
)  # fmt: skip
def test_the_largest_is_not(sizes: dict[str, int | str]) -> None:
    parse(launch(**sizes))
