"""Elements that lie apart are loaded from a table, and are the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.vectors.align_vectors import AlignVectors
from avial_lab.compiler.passes.loops.vectors.pack_operands import PackOperands
from tests.compiler.passes.rewriting import KINDS, assert_same_bits, random_array

ROWS, COLUMNS = 40, 18


def packed(text: str) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), PackOperands()))
        return str(module)


def rows(loads: list[str], kind: str = "f64", *, count: int = ROWS) -> str:
    """B[i, j] += the sum of `loads`."""
    array, far = f"memref<{ROWS}x{COLUMNS}x{kind}>", f"memref<64x5x{kind}>"
    add = f"arith.add{kind[0]}"
    lines = ["%s0 = affine.load %B[%i, %j] : " + array]
    for k, load in enumerate(loads):
        lines += [f"%x{k} = affine.load {load} : {far}",
                  f"%s{k + 1} = {add} %s{k}, %x{k} : {kind}"]  # fmt: skip
    lines.append(f"affine.store %s{len(loads)}, %B[%i, %j] : {array}")
    body = "\n".join(lines)
    return f"""
    func.func @f(%A: {far}, %B: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to {count} {{
        affine.for %j = 1 to {COLUMNS - 1} {{
          {body}
        }}
      }}
      return
    }}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "loads",
    [
        ["%A[%j, 0]"],
        ["%A[%j, 0]", "%A[%j, 1]", "%A[%j, 0]", "%A[%j + 2, 4]"],
        ["%A[-%j + 60, 2]", "%A[2 * %j + 1, 3]", "%A[3 * %j, 0]"],
    ],
)
def test_what_lies_apart(loads: list[str], kind: str) -> None:
    text = rows(loads, kind)
    after = packed(text)
    assert f"{{alignment = 64 : i64}} : memref<{len(set(loads))}x16x{kind}>" in after
    rng = np.random.default_rng(2)
    shapes = {"A": (64, 5), "B": (ROWS, COLUMNS)}
    arrays = {name: random_array(rng, shape, kind) for name, shape in shapes.items()}
    with ir.Context():
        module = ir.Module.parse(after)
        run_passes(module.operation, (AlignVectors(8),))
        assert "vector.store" in str(module)
        assert_same_bits([text, text], [after, str(module)], arrays)


@pytest.mark.parametrize(
    ("load", "count", "why"),
    [
        ("%A[%j, 0]", 15, "too few rows"),
        ("%A[%i, %j - 1]", ROWS, "out of the array in a column, and maybe not executed"),
        ("%A[%j, %i mod 5]", ROWS, "another one in each row"),
        ("%A[%j * 4, 0]", ROWS, "outside of the array"),
        ("%A[-%j, 0]", ROWS, "outside of the array"),
        ("%A[(%j floordiv 2), 0]", ROWS, "on no line"),
    ],
)
def test_what_stays(load: str, count: int, why: str) -> None:
    assert "alloca" not in packed(rows([load], count=count)), why


def test_of_an_array_that_is_written() -> None:
    store = "%z = arith.constant 0.0 : f64\naffine.store %z, %A[0, 0] : memref<64x5xf64>\n"
    text = rows(["%A[%j, 0]"]).replace("return", f"{store}return")
    assert "alloca" not in packed(text)
