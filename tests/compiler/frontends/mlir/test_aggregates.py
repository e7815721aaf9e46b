"""Softmax, pack, unpack and Winograd's transforms against their definitions in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from tests.on_ranks import assert_values


def softmax(x: np.ndarray, dim: int) -> np.ndarray:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).uniform(-8, 8, shape)


@pytest.mark.quick("1")
@pytest.mark.mpi
@pytest.mark.parametrize("dim", range(3))
def test_softmax_of_a_tensor(dim: int, cluster: Any) -> None:
    kind = "tensor<4x?x5xf64>"
    text = f"""func.func @f(%x: {kind}) -> {kind} {{
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : {kind}
  %e = tensor.empty(%n) : {kind}
  %r = linalg.softmax dimension({dim}) ins(%x : {kind}) outs(%e : {kind}) -> {kind}
  return %r : {kind}
}}"""
    x = random(4, 7, 5)
    assert_values(text, {"x": x}, {"result0": softmax(x, dim), "x": x}, cluster, rtol=1e-14)


@pytest.mark.mpi
def test_softmax_in_place_in_a_loop(cluster: Any) -> None:
    text = """func.func @f(%x: tensor<3x7xf64>) -> tensor<3x7xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<3x7xf64>) {
    %q = tensor.cast %a : tensor<3x7xf64> to tensor<3x?xf64>
    %s = linalg.softmax dimension(1) ins(%q : tensor<3x?xf64>) outs(%q : tensor<3x?xf64>)
      -> tensor<3x?xf64>
    %t = tensor.cast %s : tensor<3x?xf64> to tensor<3x7xf64>
    scf.yield %t : tensor<3x7xf64>
  }
  return %r : tensor<3x7xf64>
}"""
    x = random(3, 7)
    want = softmax(softmax(softmax(x, 1), 1), 1)
    assert_values(text, {"x": x}, {"result0": want, "x": x}, cluster, rtol=1e-14)


@pytest.mark.mpi
def test_softmax_of_memory_in_tasks(cluster: Any) -> None:
    text = """avial.schedule %x, %y, %z {
  %cpu = avial.target {arch = "cpu"}
  %a = avial.task %cpu, %x, %y {
    linalg.softmax dimension(1) ins(%x : memref<3x7xf64>) outs(%y : memref<3x7xf64>)
  }
  %b = avial.task %cpu, %y, %z {
    linalg.softmax dimension(0) ins(%y : memref<3x7xf64>) outs(%z : memref<3x7xf64>)
  }
}"""
    x = random(3, 7)
    y = softmax(x, 1)
    arrays = {"x": x, "y": 0 * x, "z": 0 * x}
    assert_values(text, arrays, {"y": y, "z": softmax(y, 0)}, cluster, rtol=1e-14)


def packed(
    x: np.ndarray, cut: Sequence[int], tiles: Sequence[int], order: Sequence[int], padding: int
) -> np.ndarray:
    extents = list(x.shape)
    for dim, tile in zip(cut, tiles, strict=True):
        extents[dim] = -(-extents[dim] // tile)
    out = np.full([*(extents[dim] for dim in order), *tiles], padding, x.dtype)
    for index in product(*map(range, x.shape)):
        outer = list(index)
        for dim, tile in zip(cut, tiles, strict=True):
            outer[dim] //= tile
        inner = [index[dim] % tile for dim, tile in zip(cut, tiles, strict=True)]
        out[(*(outer[dim] for dim in order), *inner)] = x[index]
    return out


PACKED = """func.func @f(%x: $X) -> ($P, $X) {
  %t = arith.constant 3 : index
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : $X
  %m = arith.ceildivui %n, %t : index
  %z = arith.constant -7 : i32
  %e = tensor.empty($SIZES) : $P
  %p = linalg.pack %x padding_value(%z : i32) outer_dims_perm = [1, 0, 2]
    inner_dims_pos = [1, 0] inner_tiles = [4, $T] into %e : $X -> $P
  %d = tensor.empty($N) : $X
  %u = linalg.unpack %p outer_dims_perm = [1, 0, 2]
    inner_dims_pos = [1, 0] inner_tiles = [4, $T] into %d : $P -> $X
  return %p, %u : $P, $X
}"""


@pytest.mark.quick("True")
@pytest.mark.mpi
@pytest.mark.parametrize("open_", [False, True])
def test_pack_and_unpack(open_: bool, cluster: Any) -> None:
    """7 rows in tiles of 3, 10 columns in tiles of 4: the last ones are padded."""
    names = {
        "$SIZES": "%m, %t" if open_ else "",
        "$X": "tensor<?x10x2xi32>" if open_ else "tensor<7x10x2xi32>",
        "$P": "tensor<3x?x2x4x?xi32>" if open_ else "tensor<3x3x2x4x3xi32>",
        "$T": "%t" if open_ else "3",
        "$N": "%n" if open_ else "",
    }
    text = PACKED
    for name, written in names.items():
        text = text.replace(name, written)
    x = np.arange(140, dtype=np.int32).reshape(7, 10, 2)
    want = {"result0": packed(x, [1, 0], [4, 3], [1, 0, 2], -7), "result1": x}
    assert_values(text, {"x": x}, want, cluster)


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """x[n, h, w, c] with w[f, i, j, c]."""
    high, wide = x.shape[1] - w.shape[1] + 1, x.shape[2] - w.shape[2] + 1
    parts = [
        np.einsum("nhwc,fc->nhwf", x[:, i : i + high, j : j + wide], w[:, i, j])
        for i, j in product(range(w.shape[1]), range(w.shape[2]))
    ]
    return np.sum(parts, axis=0)


def winograd(fmr: str, m: int, r: int, high: int, wide: int) -> str:
    """A convolution of 2 images by 4 filters of 3 channels, of high x wide tiles of m x m, which
    adds to %o.
    """
    a = m + r - 1
    x, w = f"tensor<2x{high * m + r - 1}x{wide * m + r - 1}x3xf64>", f"tensor<4x{r}x{r}x3xf64>"
    o, tiles = f"tensor<2x{high * m}x{wide * m}x4xf64>", 2 * high * wide
    u, v, y = f"{a}x{a}x3x4", f"{a}x{a}x{high}x{wide}x2x3", f"{a}x{a}x{high}x{wide}x2x4"
    flat = {"u": f"{a * a}x3x4", "v": f"{a * a}x{tiles}x3", "y": f"{a * a}x{tiles}x4"}
    return f"""func.func @f(%x: {x}, %w: {w}, %o: {o}) -> {o} {{
  %z = arith.constant 0.0 : f64
  %e0 = tensor.empty() : tensor<{u}xf64>
  %u = linalg.winograd_filter_transform fmr({fmr}) ins(%w : {w}) outs(%e0 : tensor<{u}xf64>)
    -> tensor<{u}xf64>
  %e1 = tensor.empty() : tensor<{v}xf64>
  %v = linalg.winograd_input_transform fmr({fmr}) ins(%x : {x}) outs(%e1 : tensor<{v}xf64>)
    -> tensor<{v}xf64>
  %uu = tensor.collapse_shape %u [[0, 1], [2], [3]]
    : tensor<{u}xf64> into tensor<{flat["u"]}xf64>
  %vv = tensor.collapse_shape %v [[0, 1], [2, 3, 4], [5]]
    : tensor<{v}xf64> into tensor<{flat["v"]}xf64>
  %e2 = tensor.empty() : tensor<{flat["y"]}xf64>
  %f2 = linalg.fill ins(%z : f64) outs(%e2 : tensor<{flat["y"]}xf64>) -> tensor<{flat["y"]}xf64>
  %yy = linalg.batch_matmul ins(%vv, %uu : tensor<{flat["v"]}xf64>, tensor<{flat["u"]}xf64>)
    outs(%f2 : tensor<{flat["y"]}xf64>) -> tensor<{flat["y"]}xf64>
  %y = tensor.expand_shape %yy [[0, 1], [2, 3, 4], [5]]
    output_shape [{a}, {a}, {high}, {wide}, 2, 4]
    : tensor<{flat["y"]}xf64> into tensor<{y}xf64>
  %r = linalg.winograd_output_transform fmr({fmr}) ins(%y : tensor<{y}xf64>) outs(%o : {o}) -> {o}
  return %r : {o}
}}"""


@pytest.mark.quick("F_2_3-*")
@pytest.mark.mpi
@pytest.mark.parametrize(("fmr", "m", "r"), [("F_2_3", 2, 3), ("F_4_3", 4, 3), ("F_2_5", 2, 5)])
def test_a_convolution_by_winograd(fmr: str, m: int, r: int, cluster: Any) -> None:
    """In double precision: MLIR's own decomposition rounds 1/3 to f32, and is wrong by 1e-8."""
    high, wide = 3, 2
    x, w = random(2, high * m + r - 1, wide * m + r - 1, 3), random(4, r, r, 3)
    o = random(2, high * m, wide * m, 4)
    want = {"result0": convolved(x, w) + o, "o": o}
    arrays = {"x": x, "w": w, "o": o}
    assert_values(winograd(fmr, m, r, high, wide), arrays, want, cluster, rtol=1e-10)


@pytest.mark.mpi
def test_along_one_dimension_alone(cluster: Any) -> None:
    text = """func.func @f(%x: tensor<2x1x6x3xf64>, %w: tensor<4x1x3x3xf64>)
    -> (tensor<1x4x3x4xf64>, tensor<1x4x1x2x2x3xf64>) {
  %e0 = tensor.empty() : tensor<1x4x3x4xf64>
  %u = linalg.winograd_filter_transform fmr(F_2_3) ins(%w : tensor<4x1x3x3xf64>)
    outs(%e0 : tensor<1x4x3x4xf64>) -> tensor<1x4x3x4xf64>
  %e1 = tensor.empty() : tensor<1x4x1x2x2x3xf64>
  %v = linalg.winograd_input_transform fmr(F_2_3) ins(%x : tensor<2x1x6x3xf64>)
    outs(%e1 : tensor<1x4x1x2x2x3xf64>) -> tensor<1x4x1x2x2x3xf64>
  return %u, %v : tensor<1x4x3x4xf64>, tensor<1x4x1x2x2x3xf64>
}"""
    g = np.array([[-1, 0, 0], [0.5, -0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 1]])
    b = np.array([[-1, 0, 1, 0], [0, -1, 1, 0], [0, 1, 1, 0], [0, -1, 0, 1.0]])
    x, w = random(2, 1, 6, 3), random(4, 1, 3, 3)
    u, v = np.einsum("as,fhsc->hacf", g, w), np.zeros((1, 4, 1, 2, 2, 3))
    for tile in range(2):
        v[0, :, 0, tile] = np.einsum("as,nsc->anc", b, x[:, 0, 2 * tile : 2 * tile + 4])
    assert_values(text, {"x": x, "w": w}, {"result0": u, "result1": v}, cluster, rtol=1e-14)


def test_loops_are_affine_where_sizes_are_known(context: ir.Context) -> None:
    """So they are analysed, and divided, as any others are."""
    text = """func.func @f(%x: memref<3x7xf64>, %o: memref<3x7xf64>) {
  linalg.softmax dimension(1) ins(%x : memref<3x7xf64>) outs(%o : memref<3x7xf64>)
  return
}"""
    told = str(parse_cell(text, cell="f.mlir", context=context))
    assert "linalg" not in told
    assert told.count("affine.for") == 4
