"""What is rewritten while a text is read is the same for a run and its reference, so that `--check`
cannot see it wrong; this reading shares none of it.
"""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import cells
from avial_lab.compiler.ir.operations import operations_in, replaced
from avial_lab.compiler.requests import Referenced, RunReference, Source
from avial_lab.compiler.worker.answers import answer
from avial_lab.core.buffers import bind_arrays
from tests.witness.reading import interpret

BODY = """
    %x = memref.load %a[%i] : memref<4xf32>
    %y = memref.load %b[%i] : memref<4xf32>
    %z = arith.subf %x, %y : f32
    memref.store %z, %a[%i] : memref<4xf32>"""

OPEN = "memref<1x?x?xf32, strided<[?, ?, 1], offset: ?>>"
ROW = "memref<1x4xf32, strided<[?, 1], offset: ?>>"

SHARED = {
    "collapse_unit_extents": f"""
      %three = memref.expand_shape %a [[0, 1, 2]] output_shape [1, 1, 4]
        : memref<4xf32> into memref<1x1x4xf32>
      %open = memref.cast %three : memref<1x1x4xf32> to {OPEN}
      %row = memref.subview %open[0, 0, 0] [1, 1, 4] [1, 1, 1] : {OPEN} to {ROW}
      affine.for %i = 0 to 4 {{
        %zero = arith.constant 0 : index
        %x = memref.load %row[%zero, %i] : {ROW}
        %y = memref.load %b[%i] : memref<4xf32>
        %z = arith.subf %x, %y : f32
        memref.store %z, %row[%zero, %i] : {ROW}
      }}""",
    "count_unsigned_in_index": f"""
      %first = arith.constant 252 : i8
      %last = arith.constant 255 : i8
      %step = arith.constant 1 : i8
      scf.for unsigned %k = %first to %last step %step : i8 {{
        %down = arith.subi %k, %first : i8
        %i = arith.index_castui %down : i8 to index
        {BODY}
      }}""",
    "aggregates_to_loops": f"""
      linalg.softmax dimension(0) ins(%b : memref<4xf32>) outs(%b : memref<4xf32>)
      affine.for %i = 0 to 4 {{ {BODY} }}""",
}
"""Programs for the rewrites of parsing, by the names of these."""


def read_and_run(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What the arrays hold after the reference, and after the interpreter."""
    text = f"func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {{{SHARED[name]}\nreturn\n}}"
    arrays = {key: np.arange(4, dtype=np.float32) + k for k, key in enumerate("ab")}
    source = Source(text, "t", binding=bind_arrays(arrays))
    found = answer(RunReference(source, {key: array.copy() for key, array in arrays.items()}))
    assert isinstance(found, Referenced), found
    typed = {key: found.data[key].view(np.float32) for key in arrays}
    return typed, interpret(text, arrays)


@pytest.mark.parametrize("name", SHARED)
def test_right_they_agree(name: str) -> None:
    reference, witness = read_and_run(name)
    for key, array in witness.items():
        np.testing.assert_allclose(reference[key], array, rtol=1e-6)


@pytest.mark.parametrize("name", SHARED)
def test_a_broken_one_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(cells, name)

    def wrong(module: ir.Operation) -> None:
        before = str(module)
        right(module)
        assert str(module) != before, "it has nothing to do here"
        with module.context:
            for op in operations_in(module):
                if op.name == "arith.subf":
                    replaced(op, "arith.addf", list(op.operands), {})

    monkeypatch.setattr(cells, name, wrong)
    reference, witness = read_and_run(name)
    assert not np.allclose(reference["a"], witness["a"], rtol=1e-6)
