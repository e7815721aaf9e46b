"""Bodies of one task in every dialect a person may use, with their meaning in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.differential.cases import Arrays, Case, one_task

Generator = np.random.Generator

CASES: dict[str, Case] = {}


def ints(rng: Generator, *shape: int, dtype: str = "int32") -> np.ndarray:
    return rng.integers(-50, 50, shape).astype(dtype)


def floats(rng: Generator, *shape: int, dtype: str = "float64") -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def _case(
    name: str,
    body: str,
    arrays: Callable[[Generator], Arrays],
    meaning: Callable[[Arrays], object],
    *,
    arch: str = "cpu",
    rtol: float = 0.0,
) -> None:
    names = ", ".join(arrays(np.random.default_rng(0)))
    CASES[name] = Case(one_task(body, names, arch=arch), arrays, meaning, rtol=rtol)


# -- loops -----------------------------------------------------------------------------------------


def _collatz(m: Arrays) -> None:
    for k, x in enumerate(m["a"]):
        n = 0
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            n += 1
        m["c"][k] = n


_case(
    "collatz: scf.while and scf.if with results",
    """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    scf.parallel %i = 0 to 13 {
      %x = memref.load %a[%i]
      %r:2 = scf.while (%v = %x, %n = %zero) {
        %go = arith.cmpi sgt, %v, %one
        scf.condition(%go) %v, %n
      } do {
      ^bb0(%v, %n):
        %rest = arith.remsi %v, %two
        %even = arith.cmpi eq, %rest, %zero
        %next = scf.if %even {
          %h = arith.divsi %v, %two
          scf.yield %h
        } else {
          %t = arith.muli %v, %three
          %u = arith.addi %t, %one
          scf.yield %u
        }
        %m = arith.addi %n, %one
        scf.yield %next, %m
      }
      memref.store %r#1, %c[%i]
    }""",
    lambda rng: {"a": rng.integers(1, 100, 13).astype("int32"), "c": ints(rng, 13)},
    _collatz,
)


def _triangle(m: Arrays) -> None:
    for i in range(9):
        m["c"][i, : i + 1] = m["a"][i, : i + 1] * (i + 1)


_case(
    "a triangular nest",
    """
    scf.for %i = 0 to 9 {
      %one = arith.constant 1 : index
      %end = arith.addi %i, %one
      %k = arith.index_cast %end : index to i32
      scf.for %j = 0 to %end {
        %x = memref.load %a[%i, %j]
        %y = arith.muli %x, %k
        memref.store %y, %c[%i, %j]
      }
    }""",
    lambda rng: {"a": ints(rng, 9, 9), "c": ints(rng, 9, 9)},
    _triangle,
)


def _three(m: Arrays) -> None:
    m["c"][1:4:1, 0:7:3, 2:5:2] = m["a"][1:4:1, 0:7:3, 2:5:2] + 1


_case(
    "scf.parallel over three dimensions with steps",
    """
    %one = arith.constant 1 : i32
    scf.parallel %i, %j, %k = 1, 0, 2 to 4, 7, 5 step 1, 3, 2 {
      %x = memref.load %a[%i, %j, %k]
      %y = arith.addi %x, %one
      memref.store %y, %c[%i, %j, %k]
    }""",
    lambda rng: {"a": ints(rng, 5, 7, 5), "c": ints(rng, 5, 7, 5)},
    _three,
)


def _two_reductions(m: Arrays) -> None:
    m["s"][0], m["s"][1] = m["a"].sum(dtype="int64"), m["a"].max()


_case(
    "two reductions of one parallel loop",
    """
    %zero = arith.constant 0 : i64
    %low = arith.constant -1000 : i64
    %p = arith.constant 0 : index
    %q = arith.constant 1 : index
    %sum, %max = scf.parallel (%i, %j) = (0, 0) to (5, 6) init (%zero, %low) -> (i64, i64) {
      %x = memref.load %a[%i, %j]
      scf.reduce(%x, %x : i64, i64) {
      ^bb0(%l: i64, %r: i64):
        %t = arith.addi %l, %r : i64
        scf.reduce.return %t : i64
      }, {
      ^bb0(%l: i64, %r: i64):
        %t = arith.maxsi %l, %r : i64
        scf.reduce.return %t : i64
      }
    }
    memref.store %sum, %s[%p]
    memref.store %max, %s[%q]""",
    lambda rng: {"a": ints(rng, 5, 6, dtype="int64"), "s": ints(rng, 2, dtype="int64")},
    _two_reductions,
)


def _switch(m: Arrays) -> None:
    for i in range(12):
        m["c"][i] = {0: m["a"][i], 1: -m["a"][i]}.get(i % 3, 7)


_case(
    "scf.index_switch with results",
    """
    %three = arith.constant 3 : index
    %zero = arith.constant 0 : i32
    %seven = arith.constant 7 : i32
    scf.for %i = 0 to 12 {
      %k = arith.remui %i, %three
      %x = memref.load %a[%i]
      %r = scf.index_switch %k -> i32
      case 0 { scf.yield %x : i32 }
      case 1 {
        %n = arith.subi %zero, %x
        scf.yield %n : i32
      }
      default { scf.yield %seven : i32 }
      memref.store %r, %c[%i]
    }""",
    lambda rng: {"a": ints(rng, 12), "c": ints(rng, 12)},
    _switch,
)


def _affine(m: Arrays) -> None:
    for i in range(1, 10):
        for j in range(max(0, i - 3), min(11, i + 4)):
            m["c"][i, j] = m["a"][i - 1, j // 2] + m["a"][i, j % 5]


_case(
    "affine.for with max and min of maps, floordiv and mod",
    """
    affine.for %i = 1 to 10 {
      affine.for %j = max affine_map<(d0) -> (0, d0 - 3)>(%i)
                   to min affine_map<(d0) -> (11, d0 + 4)>(%i) {
        %x = affine.load %a[%i - 1, %j floordiv 2]
        %y = affine.load %a[%i, %j mod 5]
        %z = arith.addi %x, %y
        affine.store %z, %c[%i, %j]
      }
    }""",
    lambda rng: {"a": ints(rng, 10, 11), "c": ints(rng, 10, 11)},
    _affine,
)


def _affine_parallel(m: Arrays) -> None:
    for i in range(0, 12, 3):
        for j in range(2, 8):
            m["c"][i, j] = m["a"][j, i] if i + j >= 8 else 0


_case(
    "affine.parallel with a step, affine.if with an else",
    """
    %zero = arith.constant 0 : i32
    affine.parallel (%i, %j) = (0, 2) to (12, 8) step (3, 1) {
      affine.if affine_set<(d0, d1) : (d0 + d1 - 8 >= 0)>(%i, %j) {
        %x = affine.load %a[%j, %i]
        affine.store %x, %c[%i, %j]
      } else {
        affine.store %zero, %c[%i, %j]
      }
    }""",
    lambda rng: {"a": ints(rng, 12, 12), "c": ints(rng, 12, 12)},
    _affine_parallel,
)


def _prefix(m: Arrays) -> None:
    m["c"][:] = np.cumsum(m["a"], dtype="int32")


_case(
    "a prefix sum carried by the loop, through memory and iter_args",
    """
    %zero = arith.constant 0 : i32
    %last = affine.for %i = 0 to 31 iter_args(%s = %zero) -> (i32) {
      %x = affine.load %a[%i]
      %t = arith.addi %s, %x
      affine.store %t, %c[%i]
      affine.yield %t : i32
    }""",
    lambda rng: {"a": ints(rng, 31), "c": ints(rng, 31)},
    _prefix,
)


def _data_bound(m: Arrays) -> None:
    n = int(m["n"][()])
    m["c"][:n] = m["a"][:n]


_case(
    "a bound read from memory",
    """
    %n32 = memref.load %n[]
    %n0 = arith.index_cast %n32 : i32 to index
    scf.for %i = 0 to %n0 {
      %x = memref.load %a[%i]
      memref.store %x, %c[%i]
    }""",
    lambda rng: {"n": np.array(7, "int32"), "a": ints(rng, 20), "c": ints(rng, 20)},
    _data_bound,
)


def _gather(m: Arrays) -> None:
    m["c"][m["p"]] = m["a"][m["p"][::-1]]


_case(
    "indices read from memory",
    """
    %last = arith.constant 15 : index
    scf.for %i = 0 to 16 {
      %j = arith.subi %last, %i
      %p0 = memref.load %p[%i]
      %p1 = memref.load %p[%j]
      %q0 = arith.index_cast %p0 : i64 to index
      %q1 = arith.index_cast %p1 : i64 to index
      %x = memref.load %a[%q1]
      memref.store %x, %c[%q0]
    }""",
    lambda rng: {"p": rng.permutation(16), "a": ints(rng, 16), "c": ints(rng, 16)},
    _gather,
)


# -- views -----------------------------------------------------------------------------------------


def _blocks(m: Arrays) -> None:
    for i in range(0, 12, 4):
        for j in range(0, 12, 3):
            m["c"][j : j + 3, i : i + 4] = m["a"][i : i + 4, j : j + 3].T


_case(
    "dynamic subviews in a tiled transpose",
    """
    scf.for %i = 0 to 12 step 4 {
      scf.for %j = 0 to 12 step 3 {
        %s = memref.subview %a[%i, %j] [4, 3] [1, 1]
        %d = memref.subview %c[%j, %i] [3, 4] [1, 1]
        linalg.transpose ins(%s) outs(%d) permutation = [1, 0]
      }
    }""",
    lambda rng: {"a": ints(rng, 12, 12), "c": ints(rng, 12, 12)},
    _blocks,
)


def _dynamic_everything(m: Arrays) -> None:
    low, size, step = (int(x) for x in m["n"])
    m["c"][low : low + size * step : step] = m["a"][:size]


_case(
    "a subview of which nothing is known",
    """
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %l = memref.load %n[%k0]
    %s = memref.load %n[%k1]
    %t = memref.load %n[%k2]
    %low = arith.index_cast %l : i64 to index
    %size = arith.index_cast %s : i64 to index
    %step = arith.index_cast %t : i64 to index
    %v = memref.subview %c[%low] [%size] [%step]
    %u = memref.subview %a[0] [%size] [1]
    memref.copy %u, %v""",
    lambda rng: {"n": np.array([2, 5, 3]), "a": ints(rng, 20), "c": ints(rng, 20)},
    _dynamic_everything,
)


def _rank_reducing(m: Arrays) -> None:
    m["c"][:] = m["a"][3, :, 2] * 2


_case(
    "a rank-reducing subview",
    """
    %v = memref.subview %a[3, 0, 2] [1, 6, 1] [1, 1, 1]
       : memref<5x6x7xi32> to memref<6xi32, strided<[7], offset: 128>>
    scf.for %i = 0 to 6 {
      %x = memref.load %v[%i]
      %y = arith.addi %x, %x
      memref.store %y, %c[%i]
    }""",
    lambda rng: {"a": ints(rng, 5, 6, 7), "c": ints(rng, 6)},
    _rank_reducing,
)


def _reshapes(m: Arrays) -> None:
    m["c"][:] = m["a"].reshape(24)[::-1].reshape(2, 3, 4)


_case(
    "collapse_shape and expand_shape",
    """
    %flat = memref.collapse_shape %a [[0, 1]] : memref<4x6xi32> into memref<24xi32>
    %cube = memref.expand_shape %flat [[0, 1, 2]] output_shape [2, 3, 4]
          : memref<24xi32> into memref<2x3x4xi32>
    %out = memref.collapse_shape %c [[0, 1, 2]] : memref<2x3x4xi32> into memref<24xi32>
    %k23 = arith.constant 23 : index
    %k12 = arith.constant 12 : index
    %k4 = arith.constant 4 : index
    scf.for %i = 0 to 24 {
      %j = arith.subi %k23, %i
      %p = arith.divui %j, %k12
      %r = arith.remui %j, %k12
      %q = arith.divui %r, %k4
      %s = arith.remui %r, %k4
      %x = memref.load %cube[%p, %q, %s]
      memref.store %x, %out[%i]
    }""",
    lambda rng: {"a": ints(rng, 4, 6), "c": ints(rng, 2, 3, 4)},
    _reshapes,
)


def _reinterpreted(m: Arrays) -> None:
    m["c"][:] = m["a"].reshape(5, 4).T


_case(
    "reinterpret_cast and memref.transpose",
    """
    %r = memref.reinterpret_cast %a to offset: [0], sizes: [5, 4], strides: [4, 1]
       : memref<20xi32> to memref<5x4xi32, strided<[4, 1]>>
    %t = memref.transpose %r (i, j) -> (j, i)
       : memref<5x4xi32, strided<[4, 1]>> to memref<4x5xi32, strided<[1, 4]>>
    memref.copy %t, %c : memref<4x5xi32, strided<[1, 4]>> to memref<4x5xi32>""",
    lambda rng: {"a": ints(rng, 20), "c": ints(rng, 4, 5)},
    _reinterpreted,
)


def _scratch(m: Arrays) -> None:
    m["c"][:] = (m["a"] * 2)[::-1] + 1


_case(
    "alloc, alloca, cast and dealloc in a body",
    """
    %n = arith.constant 10 : index
    %t = memref.alloc(%n) : memref<?xi32>
    %one = memref.alloca() : memref<i32>
    %u = memref.cast %t : memref<?xi32> to memref<10xi32>
    %k1 = arith.constant 1 : i32
    memref.store %k1, %one[]
    scf.for %i = 0 to 10 {
      %x = memref.load %a[%i]
      %y = arith.addi %x, %x
      memref.store %y, %t[%i]
    }
    %last = arith.constant 9 : index
    scf.for %i = 0 to 10 {
      %j = arith.subi %last, %i
      %x = memref.load %u[%j]
      %o = memref.load %one[]
      %y = arith.addi %x, %o
      memref.store %y, %c[%i]
    }
    memref.dealloc %t""",
    lambda rng: {"a": ints(rng, 10), "c": ints(rng, 10)},
    _scratch,
)


# -- linalg ----------------------------------------------------------------------------------------


def _products(m: Arrays) -> None:
    m["c"] += m["a"] @ m["b"]
    m["y"] += m["a"] @ m["x"]
    m["s"] += m["x"] @ m["x"]


_case(
    "matmul, matvec and dot",
    """
    linalg.matmul ins(%a, %b) outs(%c)
    linalg.matvec ins(%a, %x) outs(%y)
    linalg.dot ins(%x, %x) outs(%s)""",
    lambda rng: {
        "a": ints(rng, 5, 7),
        "b": ints(rng, 7, 3),
        "c": ints(rng, 5, 3),
        "x": ints(rng, 7),
        "y": ints(rng, 5),
        "s": np.array(3, "int32"),
    },
    _products,
)


def _convolution(m: Arrays) -> None:
    for i in range(4):
        for j in range(5):
            m["y"][i, j] += np.sum(m["x"][i : i + 3, j : j + 3] * m["k"], dtype="int32")
            m["p"][0, i, j, 0] = max(m["p"][0, i, j, 0], m["q"][0, i : i + 2, j : j + 2, 0].max())


_case(
    "conv_2d and max pooling",
    """
    linalg.conv_2d ins(%x, %k) outs(%y)
    linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>,
                             strides = dense<1> : tensor<2xi64>}
      ins(%q, %w : memref<1x5x6x1xf32>, memref<2x2xf32>) outs(%p : memref<1x4x5x1xf32>)""",
    lambda rng: {
        "x": ints(rng, 6, 7),
        "k": ints(rng, 3, 3),
        "y": ints(rng, 4, 5),
        "q": floats(rng, 1, 5, 6, 1, dtype="float32"),
        "w": floats(rng, 2, 2, dtype="float32"),
        "p": floats(rng, 1, 4, 5, 1, dtype="float32"),
    },
    _convolution,
)


def _generic(m: Arrays) -> None:
    m["c"] += np.einsum("ij,kj->ik", m["a"], m["b"], dtype="int32")
    m["r"][:] = np.maximum(m["r"], m["a"].max(axis=1))


_case(
    "linalg.generic with a reduction, linalg.reduce",
    """
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>,
                                     affine_map<(i, j, k) -> (k, j)>,
                                     affine_map<(i, j, k) -> (i, k)>],
                    iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b) outs(%c) {
      ^bb0(%x, %y, %z):
        %p = arith.muli %x, %y
        %q = arith.addi %p, %z
        linalg.yield %q
    }
    linalg.reduce ins(%a) outs(%r) dimensions = [1] (%x, %y) {
      %z = arith.maxsi %x, %y
      linalg.yield %z
    }""",
    lambda rng: {
        "a": ints(rng, 4, 5),
        "b": ints(rng, 6, 5),
        "c": ints(rng, 4, 6),
        "r": ints(rng, 4),
    },
    _generic,
)


def _fill_copy(m: Arrays) -> None:
    m["c"][:] = m["a"]
    m["d"][:] = 2.5
    m["b"][:] = m["x"][:, None]
    m["e"][:] = m["a"] + m["d"]
    m["f"][:] = np.exp(m["a"])


_case(
    "linalg.copy, fill, broadcast, add, exp",
    """
    %h = arith.constant 2.5 : f64
    linalg.copy ins(%a) outs(%c)
    linalg.fill ins(%h) outs(%d)
    linalg.broadcast ins(%x) outs(%b) dimensions = [1]
    linalg.add ins(%a, %d) outs(%e)
    linalg.exp ins(%a) outs(%f)""",
    lambda rng: {
        "a": floats(rng, 3, 4),
        "c": floats(rng, 3, 4),
        "d": floats(rng, 3, 4),
        "x": floats(rng, 3),
        "b": floats(rng, 3, 2),
        "e": floats(rng, 3, 4),
        "f": floats(rng, 3, 4),
    },
    _fill_copy,
    rtol=4e-16,
)


def _batch(m: Arrays) -> None:
    m["c"] += np.matmul(m["a"], m["b"])


_case(
    "batch_matmul",
    "linalg.batch_matmul ins(%a, %b) outs(%c)",
    lambda rng: {"a": ints(rng, 2, 3, 4), "b": ints(rng, 2, 4, 5), "c": ints(rng, 2, 3, 5)},
    _batch,
)


# -- vectors ---------------------------------------------------------------------------------------


def _transfer_2d(m: Arrays) -> None:
    block = np.full((4, 4), 9, "int32")
    block[:3, :3] = m["a"][3:6, 4:7]
    m["c"][1:5, 1:5] = block


_case(
    "a 2-D transfer_read past both ends, padded",
    """
    %i = arith.constant 3 : index
    %j = arith.constant 4 : index
    %k = arith.constant 1 : index
    %pad = arith.constant 9 : i32
    %v = vector.transfer_read %a[%i, %j], %pad : memref<6x7xi32>, vector<4x4xi32>
    vector.transfer_write %v, %c[%k, %k] {in_bounds = [true, true]}
      : vector<4x4xi32>, memref<6x7xi32>""",
    lambda rng: {"a": ints(rng, 6, 7), "c": ints(rng, 6, 7)},
    _transfer_2d,
)


def _masked(m: Arrays) -> None:
    m["c"][0:8][:5] = (m["a"][0:8] * 3)[:5]
    m["d"][0:8][:3] = m["a"][:3]


_case(
    "masked vectors",
    """
    %k0 = arith.constant 0 : index
    %k5 = arith.constant 5 : index
    %zero = arith.constant 0 : i32
    %three = arith.constant dense<3> : vector<8xi32>
    %m = vector.create_mask %k5 : vector<8xi1>
    %v = vector.transfer_read %a[%k0], %zero, %m {in_bounds = [true]}
       : memref<8xi32>, vector<8xi32>
    %w = arith.muli %v, %three : vector<8xi32>
    vector.transfer_write %w, %c[%k0], %m {in_bounds = [true]} : vector<8xi32>, memref<9xi32>
    %n = vector.constant_mask [3] : vector<8xi1>
    %p = arith.constant dense<0> : vector<8xi32>
    %u = vector.maskedload %a[%k0], %n, %p
       : memref<8xi32>, vector<8xi1>, vector<8xi32> into vector<8xi32>
    vector.maskedstore %d[%k0], %n, %u : memref<8xi32>, vector<8xi1>, vector<8xi32>""",
    lambda rng: {"a": ints(rng, 8), "c": ints(rng, 9), "d": ints(rng, 8)},
    _masked,
)


def _vector_sum(m: Arrays) -> None:
    m["s"][()] = m["a"].astype("float32").reshape(4, 4).max(axis=0).max()


_case(
    "vector.reduction and fma",
    """
    %k0 = arith.constant 0 : index
    %v = vector.load %a[%k0, %k0] : memref<4x4xf32>, vector<4xf32>
    %best = scf.for %i = 1 to 4 iter_args(%m = %v) -> (vector<4xf32>) {
      %w = vector.load %a[%i, %k0] : memref<4x4xf32>, vector<4xf32>
      %n = arith.maximumf %m, %w : vector<4xf32>
      scf.yield %n : vector<4xf32>
    }
    %r = vector.reduction <maximumf>, %best : vector<4xf32> into f32
    memref.store %r, %s[]""",
    lambda rng: {"a": floats(rng, 4, 4, dtype="float32"), "s": np.array(0, "float32")},
    _vector_sum,
)


# -- scalars ---------------------------------------------------------------------------------------


def _integer_arithmetic(m: Arrays) -> None:
    a, b = m["a"], m["b"]
    s = b & 31
    ua, ub = a.view("uint32"), b.view("uint32")
    one = np.where(b == 0, 1, b).astype("int32")
    results = [
        np.minimum(a, b),
        np.maximum(a, b),
        np.minimum(ua, ub).view("int32"),
        np.maximum(ua, ub).view("int32"),
        a << s,
        a >> s,
        (ua >> s.view("uint32")).view("int32"),
        a & b,
        a | b,
        np.fix(a / one).astype("int32"),
        a - np.fix(a / one).astype("int32") * one,
        (ua // one.view("uint32")).view("int32"),
        (ua % one.view("uint32")).view("int32"),
        np.floor_divide(a, one),
        np.ceil(a / one).astype("int32"),
        np.where(a < b, a, -b),
        (a.astype("int64") * b.astype("int64") >> 32).astype("int32"),
    ]
    for k, result in enumerate(results):
        m["c"][k] = result


_OPERATIONS = [
    "minsi %x, %y",
    "maxsi %x, %y",
    "minui %x, %y",
    "maxui %x, %y",
    "shli %x, %s",
    "shrsi %x, %s",
    "shrui %x, %s",
    "andi %x, %y",
    "ori %x, %y",
    "divsi %x, %d",
    "remsi %x, %d",
    "divui %x, %d",
    "remui %x, %d",
    "floordivsi %x, %d",
    "ceildivsi %x, %d",
]

_case(
    "integer arithmetic",
    """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %mask = arith.constant 31 : i32
    scf.for %i = 0 to 40 {
      %x = memref.load %a[%i]
      %y = memref.load %b[%i]
      %s = arith.andi %y, %mask
      %none = arith.cmpi eq, %y, %zero
      %d = arith.select %none, %one, %y"""
    + "".join(
        f"""
      %k{k} = arith.constant {k} : index
      %v{k} = arith.{operation}
      memref.store %v{k}, %c[%k{k}, %i]"""
        for k, operation in enumerate(_OPERATIONS)
    )
    + """
      %less = arith.cmpi slt, %x, %y
      %minus = arith.subi %zero, %y
      %chosen = arith.select %less, %x, %minus
      %k15 = arith.constant 15 : index
      memref.store %chosen, %c[%k15, %i]
      %low, %high = arith.mulsi_extended %x, %y : i32
      %k16 = arith.constant 16 : index
      memref.store %high, %c[%k16, %i]
    }""",
    lambda rng: {
        "a": rng.integers(-(2**31), 2**31, 40).astype("int32"),
        "b": rng.integers(-9, 9, 40).astype("int32"),
        "c": ints(rng, 17, 40),
    },
    _integer_arithmetic,
)


def _float_arithmetic(m: Arrays) -> None:
    a, b = m["a"], m["b"]
    results = [
        np.maximum(a, b),
        np.fmin(a, b),
        -a,
        np.fmod(a, b),
        a / b,
        np.where(a < b, 1.0, 0.0),
        np.where(np.isnan(a) | np.isnan(b), 1.0, 0.0),
        np.copysign(a, b),
    ]
    for k, result in enumerate(results):
        m["c"][k] = result


_case(
    "float arithmetic with NaN, infinity and both zeros",
    """
    %one = arith.constant 1.0 : f64
    %none = arith.constant 0.0 : f64
    scf.for %i = 0 to 49 {
      %x = memref.load %a[%i]
      %y = memref.load %b[%i]
      %v0 = arith.maximumf %x, %y
      %v1 = arith.minnumf %x, %y
      %v2 = arith.negf %x
      %v3 = arith.remf %x, %y
      %v4 = arith.divf %x, %y
      %less = arith.cmpf olt, %x, %y
      %v5 = arith.select %less, %one, %none
      %nan = arith.cmpf uno, %x, %y
      %v6 = arith.select %nan, %one, %none
      %v7 = math.copysign %x, %y"""
    + "".join(
        f"""
      %k{k} = arith.constant {k} : index
      memref.store %v{k}, %c[%k{k}, %i]"""
        for k in range(8)
    )
    + """
    }""",
    lambda rng: {
        "a": np.repeat([0.0, -0.0, 1.5, -7.25, np.inf, -np.inf, np.nan], 7),
        "b": np.tile([0.0, -0.0, 2.0, -0.5, np.inf, -np.inf, np.nan], 7),
        "c": floats(rng, 8, 49),
    },
    _float_arithmetic,
)


def _functions(m: Arrays) -> None:
    a, b = m["a"], m["b"]
    vector = np.vectorize
    results = [
        np.exp(a),
        np.sin(a),
        np.cos(a),
        np.tan(a),
        np.sqrt(b),
        np.power(b, a),
        vector(math.erf)(a),
        np.log(b),
        np.log2(b),
        np.log10(b),
        np.tanh(a),
        np.arctan2(a, b),
        np.exp2(a),
        np.floor(a),
        np.ceil(a),
        np.rint(a),
        np.trunc(a),
        1 / np.sqrt(b),
        np.cbrt(b),
        np.sinh(a),
        np.cosh(a),
        np.arcsinh(a),
        np.arctan(a),
        vector(math.fma)(a, b, a) if hasattr(math, "fma") else None,
    ]
    for k, result in enumerate(results):
        if result is None:
            with np.errstate(all="ignore"):
                result = (a.astype(np.longdouble) * b + a).astype("float64")
        m["c"][k] = result


_FUNCTIONS = [
    "exp %x",
    "sin %x",
    "cos %x",
    "tan %x",
    "sqrt %y",
    "powf %y, %x",
    "erf %x",
    "log %y",
    "log2 %y",
    "log10 %y",
    "tanh %x",
    "atan2 %x, %y",
    "exp2 %x",
    "floor %x",
    "ceil %x",
    "roundeven %x",
    "trunc %x",
    "rsqrt %y",
    "cbrt %y",
    "sinh %x",
    "cosh %x",
    "asinh %x",
    "atan %x",
    "fma %x, %y, %x",
]

_case(
    "elementary functions",
    """
    affine.for %i = 0 to 29 {
      %x = affine.load %a[%i]
      %y = affine.load %b[%i]"""
    + "".join(
        f"""
      %v{k} = math.{function}
      affine.store %v{k}, %c[{k}, %i]"""
        for k, function in enumerate(_FUNCTIONS)
    )
    + """
    }""",
    lambda rng: {
        "a": floats(rng, 29) * 3,
        "b": np.abs(floats(rng, 29)) + 0.1,
        "c": floats(rng, 24, 29),
    },
    _functions,
    rtol=1e-15,
)


def _integer_functions(m: Arrays) -> None:
    for i, x in enumerate(m["a"]):
        bits = f"{int(x) & 0xFFFFFFFF:032b}"
        m["c"][:, i] = [
            abs(int(x)),
            bits.count("1"),
            32 - len(bits.lstrip("0")),
            32 - len(bits.rstrip("0")),
            np.int32(x) ** np.int32(3),
        ]


_case(
    "math on integers",
    """
    %three = arith.constant 3 : i32
    affine.for %i = 0 to 21 {
      %x = affine.load %a[%i]
      %v0 = math.absi %x
      %v1 = math.ctpop %x
      %v2 = math.ctlz %x
      %v3 = math.cttz %x
      %v4 = math.ipowi %x, %three
      affine.store %v0, %c[0, %i]
      affine.store %v1, %c[1, %i]
      affine.store %v2, %c[2, %i]
      affine.store %v3, %c[3, %i]
      affine.store %v4, %c[4, %i]
    }""",
    lambda rng: {
        "a": np.append(rng.integers(-900, 900, 20), 0).astype("int32"),
        "c": ints(rng, 5, 21),
    },
    _integer_functions,
)


def _complex(m: Arrays) -> None:
    a, b = m["a"], m["b"]
    m["c"][0], m["c"][1], m["c"][2], m["c"][3] = a + b, a - b, -a, np.conj(a)
    m["c"][4] = b.imag + 1j * a.real
    m["d"][0], m["d"][1] = np.abs(a), np.angle(b)
    m["e"][0], m["e"][1], m["e"][2] = a * b, a / b, np.exp(a)


_case(
    "complex numbers",
    """
    affine.for %i = 0 to 9 {
      %x = affine.load %a[%i]
      %y = affine.load %b[%i]
      %v0 = complex.add %x, %y
      %v1 = complex.sub %x, %y
      %v2 = complex.neg %x
      %v3 = complex.conj %x
      %re = complex.re %x
      %im = complex.im %y
      %v4 = complex.create %im, %re : complex<f64>
      %abs = complex.abs %x
      %angle = complex.angle %y
      %w0 = complex.mul %x, %y
      %w1 = complex.div %x, %y
      %w2 = complex.exp %x
      affine.store %v0, %c[0, %i]
      affine.store %v1, %c[1, %i]
      affine.store %v2, %c[2, %i]
      affine.store %v3, %c[3, %i]
      affine.store %v4, %c[4, %i]
      affine.store %abs, %d[0, %i]
      affine.store %angle, %d[1, %i]
      affine.store %w0, %e[0, %i]
      affine.store %w1, %e[1, %i]
      affine.store %w2, %e[2, %i]
    }""",
    lambda rng: {
        "a": floats(rng, 9) + 1j * floats(rng, 9),
        "b": floats(rng, 9) + 1j * floats(rng, 9),
        "c": floats(rng, 5, 9) + 0j,
        "d": floats(rng, 2, 9),
        "e": floats(rng, 3, 9) + 0j,
    },
    _complex,
    rtol=1e-14,
)


# -- kernels ---------------------------------------------------------------------------------------


def _bare(m: Arrays) -> None:
    m["c"] += m["a"]


for _extent in (1, 20, 255, 256, 257, 1000, 2049):
    _case(
        f"a bare launch over {_extent}",
        """
    gpu.launch {
      %i = gpu.thread_id x
      %x = memref.load %a[%i]
      %y = memref.load %c[%i]
      %z = arith.addi %x, %y
      memref.store %z, %c[%i]
    }""",
        lambda rng, n=_extent: {"a": ints(rng, n), "c": ints(rng, n)},
        _bare,
        arch="sm_90",
    )


def _grid(m: Arrays) -> None:
    m["c"][:] = m["a"].T * 2


_case(
    "a 2-D grid with blocks and threads",
    """
    %bx = arith.constant 3 : index
    %by = arith.constant 2 : index
    %tx = arith.constant 4 : index
    %ty = arith.constant 5 : index
    %one = arith.constant 1 : index
    gpu.launch blocks(%i, %j, %k) in (%gx = %bx, %gy = %by, %gz = %one)
               threads(%u, %v, %w) in (%sx = %tx, %sy = %ty, %sz = %one) {
      %r0 = arith.muli %i, %sx
      %r = arith.addi %r0, %u
      %c0 = arith.muli %j, %sy
      %c1 = arith.addi %c0, %v
      %x = memref.load %a[%c1, %r]
      %y = arith.addi %x, %x
      memref.store %y, %c[%r, %c1]
      gpu.terminator
    }""",
    lambda rng: {"a": ints(rng, 10, 12), "c": ints(rng, 12, 10)},
    _grid,
    arch="gpu",
)


def _grid3(m: Arrays) -> None:
    for i in range(2):
        for j in range(3):
            for k in range(4):
                m["c"][i, j, k] = i + 10 * j + 100 * k + 1000 * 2 + m["a"][i, j, k]


_case(
    "a 3-D grid by ids and dims",
    """
    %n2 = arith.constant 2 : index
    %n3 = arith.constant 3 : index
    %n4 = arith.constant 4 : index
    %one = arith.constant 1 : index
    %ten = arith.constant 10 : index
    gpu.launch blocks(%bi, %bj, %bk) in (%gx = %n2, %gy = %one, %gz = %n4)
               threads(%ti, %tj, %tk) in (%sx = %one, %sy = %n3, %sz = %one) {
      %x = gpu.block_id x
      %y = gpu.thread_id y
      %z = gpu.block_id z
      %d = gpu.grid_dim x
      %e0 = arith.muli %d, %ten
      %e1 = arith.addi %e0, %z
      %e2 = arith.muli %e1, %ten
      %e3 = arith.addi %e2, %y
      %e4 = arith.muli %e3, %ten
      %e5 = arith.addi %e4, %x
      %v = arith.index_cast %e5 : index to i32
      %u = memref.load %a[%x, %y, %z]
      %w = arith.addi %u, %v
      memref.store %w, %c[%x, %y, %z]
      gpu.terminator
    }""",
    lambda rng: {"a": ints(rng, 2, 3, 4), "c": ints(rng, 2, 3, 4)},
    _grid3,
    arch="sm_80",
)


def _workgroup(m: Arrays) -> None:
    for block in range(3):
        m["c"][block * 8 : block * 8 + 8] = m["a"][block * 8 : block * 8 + 8][::-1]


_case(
    "a barrier and workgroup memory",
    """
    %blocks = arith.constant 3 : index
    %threads = arith.constant 8 : index
    %one = arith.constant 1 : index
    %seven = arith.constant 7 : index
    gpu.launch blocks(%b, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
               threads(%t, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one)
               workgroup(%tile : memref<8xi32, #gpu.address_space<workgroup>>) {
      %base = arith.muli %b, %threads
      %i = arith.addi %base, %t
      %x = memref.load %a[%i]
      memref.store %x, %tile[%t] : memref<8xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %r = arith.subi %seven, %t
      %y = memref.load %tile[%r] : memref<8xi32, #gpu.address_space<workgroup>>
      memref.store %y, %c[%i]
      gpu.terminator
    }""",
    lambda rng: {"a": ints(rng, 24), "c": ints(rng, 24)},
    _workgroup,
    arch="gpu",
)


def _tree(m: Arrays) -> None:
    m["s"][0] = m["a"].sum(dtype="int32")


_case(
    "a tree reduction: a barrier inside a loop",
    """
    %one = arith.constant 1 : index
    %n = arith.constant 16 : index
    %two = arith.constant 2 : index
    %zero = arith.constant 0 : index
    gpu.launch blocks(%b, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%t, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one)
               workgroup(%w : memref<16xi32, 3>) {
      %x = memref.load %a[%t]
      memref.store %x, %w[%t] : memref<16xi32, 3>
      gpu.barrier
      %four = arith.constant 4 : index
      %last = scf.for %k = %zero to %four step %one iter_args(%h = %n) -> (index) {
        %half = arith.divui %h, %two
        %on = arith.cmpi ult, %t, %half
        scf.if %on {
          %o = arith.addi %t, %half
          %p = memref.load %w[%t] : memref<16xi32, 3>
          %q = memref.load %w[%o] : memref<16xi32, 3>
          %r = arith.addi %p, %q
          memref.store %r, %w[%t] : memref<16xi32, 3>
        }
        gpu.barrier
        scf.yield %half : index
      }
      %first = arith.cmpi eq, %t, %zero
      scf.if %first {
        %r = memref.load %w[%zero] : memref<16xi32, 3>
        memref.store %r, %s[%zero]
      }
      gpu.terminator
    }""",
    lambda rng: {"a": ints(rng, 16), "s": ints(rng, 1)},
    _tree,
    arch="gpu",
)


def _gpu_linalg(m: Arrays) -> None:
    m["c"] += m["a"] @ m["b"]


_case(
    "a GPU task whose body is linalg",
    "linalg.matmul ins(%a, %b) outs(%c)",
    lambda rng: {"a": ints(rng, 4, 5), "b": ints(rng, 5, 3), "c": ints(rng, 4, 3)},
    _gpu_linalg,
    arch="sm_90",
)

_case(
    "a GPU task whose body is a parallel loop",
    """
    scf.parallel %i, %j = 0, 0 to 12, 10 {
      %x = memref.load %a[%j, %i]
      %y = arith.addi %x, %x
      memref.store %y, %c[%i, %j]
    }""",
    lambda rng: {"a": ints(rng, 10, 12), "c": ints(rng, 12, 10)},
    _grid,
    arch="sm_90",
)


def _atomics(m: Arrays) -> None:
    for x in m["a"]:
        m["h"][x & 7] += 1


_case(
    "a histogram by atomics",
    """
    %one = arith.constant 1 : i32
    %seven = arith.constant 7 : i32
    gpu.launch {
      %i = gpu.thread_id x
      %x = memref.load %a[%i]
      memref.store %x, %a[%i]
      %b = arith.andi %x, %seven
      %k = arith.index_castui %b : i32 to index
      %old = memref.atomic_rmw addi %one, %h[%k] : (i32, memref<8xi32>) -> i32
    }""",
    lambda rng: {"a": ints(rng, 50), "h": ints(rng, 8)},
    _atomics,
    arch="gpu",
)
