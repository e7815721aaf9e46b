"""Convolutions: sums over several loops become one, in the same order, and then blocks."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.cpu import Cpu
from avial_lab.passes.block_loops import BlockLoops
from avial_lab.pipelines import run_passes
from tests.kernels.jit import Machine

CPU = Cpu(vector_bytes=64, vector_registers=32)


def convolution(
    sizes: tuple[int, ...],
    *,
    first: int = 0,
    weight: str = "%o, %c, %p, %q",
    order: str = "ojcpq",
) -> str:
    """Y[o, j] += F[o, c, p, q] * X[c, p, j + q]."""
    o, j, c, p, q = sizes
    loops = {
        name: f"affine.for %{name} = 0 to {n} {{" for name, n in zip("ojcpq", sizes, strict=True)
    }
    loops["q"] = f"affine.for %q = {first} to {q} {{"
    f = f"memref<{o}x{c}x{p}x{q}xf64>"
    x, y = f"memref<{c}x{p}x{j + q}xf64>", f"memref<{o}x{j}xf64>"
    return f"""
      func.func @f(%F: {f}, %X: {x}, %Y: {y}) attributes {{avial.apart}} {{
          {" ".join(loops[name] for name in order)}
            %a = affine.load %F[{weight}] : {f}
            %b = affine.load %X[%c, %p, %j + %q] : {x}
            %old = affine.load %Y[%o, %j] : {y}
            %new = math.fma %a, %b, %old : f64
            affine.store %new, %Y[%o, %j] : {y} }} }} }} }} }}
        return }}"""


def blocked(text: str) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (BlockLoops(cpu=CPU),))
        return str(module)


def assert_same_bits(sizes: tuple[int, ...], before: str, after: str) -> None:
    o, j, c, p, q = sizes
    rng = np.random.default_rng(sum(sizes))
    arrays = {
        "F": rng.normal(size=(o, c, p, q)),
        "X": rng.normal(size=(c, p, j + q)),
        "Y": rng.normal(size=(o, j)),
    }
    context = ir.Context()
    machine = Machine([("before", before), ("after", after)], context)
    want, got = (machine.call(name, arrays)["Y"] for name in ("before", "after"))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "sizes", [(40, 800, 3, 3, 1), (9, 1100, 3, 3, 3), (33, 57, 16, 3, 3), (81, 95, 1, 5, 7)]
)
def test_a_convolution_is_a_product_of_matrices(sizes):
    text = convolution(sizes)
    after = blocked(text)
    assert "avial.parallel" in after
    assert "memref.collapse_shape" in after, "weights lie one after another"
    assert_same_bits(sizes, text, after)


@pytest.mark.parametrize(
    "form", [{"first": 1}, {"weight": "%o, %c, %p, %q mod 2"}, {"weight": "%o, %c, %q, %p"}]
)
def test_weights_in_another_order(form):
    sizes = (67, 191, 5, 3, 3)
    text = convolution(sizes, **form)
    after = blocked(text)
    assert "avial.parallel" in after
    assert "memref.collapse_shape" not in after
    assert_same_bits(sizes, text, after)


@pytest.mark.parametrize("order", ["cpqoj", "cojpq", "cpqjo", "ocpqj"])
def test_terms_outside(order: str) -> None:
    """Those of one loop in the other are joined, also where the outermost is the whole nest."""
    sizes = (33, 67, 4, 3, 3)
    text = convolution(sizes, order=order)
    after = blocked(text)
    assert "avial.parallel" in after or order == "cojpq"
    assert_same_bits(sizes, text, after)


def test_loops_that_are_no_box_stay_loops():
    """Only the innermost is summed then, and has too few terms."""
    sizes = (9, 20, 5, 3, 3)
    upto = "affine_map<(d) -> (d + 1)>(%p)"
    text = convolution(sizes).replace("%q = 0 to 3", f"%q = 0 to {upto}")
    assert "avial.parallel" not in blocked(text)


@pytest.mark.parametrize("thin", [0, 1])
def test_few_rows_or_columns_stay_loops(thin):
    sizes = [900, 900, 16, 3, 3]
    sizes[thin] = 7
    assert "avial.parallel" not in blocked(convolution(tuple(sizes)))


@pytest.mark.parametrize(("columns", "blocks"), [(64, False), (65, True)])
def test_few_products_of_one_loop_stay_loops(columns, blocks):
    """32 x 64 x 128: their arrays stay in a core's caches."""
    product = f"""
    func.func @f(%A: memref<32x128xf64>, %B: memref<128x{columns}xf64>,
                 %C: memref<32x{columns}xf64>) attributes {{avial.apart}} {{
      affine.for %i = 0 to 32 {{ affine.for %j = 0 to {columns} {{ affine.for %k = 0 to 128 {{
        %a = affine.load %A[%i, %k] : memref<32x128xf64>
        %b = affine.load %B[%k, %j] : memref<128x{columns}xf64>
        %old = affine.load %C[%i, %j] : memref<32x{columns}xf64>
        %new = math.fma %a, %b, %old : f64
        affine.store %new, %C[%i, %j] : memref<32x{columns}xf64> }} }} }}
      return }}"""
    assert ("avial.parallel" in blocked(product)) == blocks
    assert "avial.parallel" in blocked(convolution((32, 8, 8, 4, 4)))
