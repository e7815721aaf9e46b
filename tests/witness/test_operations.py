"""The interpreter itself, against values that NumPy or plain Python gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind
from mlir.dialects.vector import CombiningKind

from avial_lab.compiler.ir.dialects import register
from tests.witness import Undefined, Unsupported, interpret
from tests.witness.combine import atomic_kind, vector_kind
from tests.witness.floats import fused, rounded
from tests.witness.machine import RULES
from tests.witness.maps import affine_map, affine_set
from tests.witness.values import Float

Arrays = dict[str, np.ndarray]


def test_every_kind_of_sum_is_known() -> None:
    for kind in AtomicRMWKind:
        assert atomic_kind(int(kind))
    for kind in CombiningKind:
        assert vector_kind(f"#vector.kind<{kind.name.lower()}>")


def test_every_rule_is_of_an_operation(context: ir.Context) -> None:
    register(context)
    assert [name for name in RULES if not context.is_registered_operation(name)] == []


@dataclass(frozen=True)
class Known:
    """A program and what it computes; what `wanted` leaves out is not looked at."""

    text: str
    arrays: Arrays
    wanted: Arrays
    scalars: dict[str, float] = field(default_factory=dict)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def one_function(arguments: str, body: str) -> str:
    return f"func.func @f({arguments}) {{\n{body}\n  return\n}}"


KNOWN: dict[str, Known] = {}


def _wide() -> Known:
    """The high half of a product of 128 bits, and a constant above 64."""
    x = rng().integers(-(2**62), 2**62, 6)
    body = """
  affine.for %i = 0 to 6 {
    %v = affine.load %x[%i] : memref<6xi64>
    %w = arith.extsi %v : i64 to i128
    %k = arith.constant 18446744073709551629 : i128
    %m = arith.muli %w, %k : i128
    %s = arith.constant 64 : i128
    %h = arith.shrsi %m, %s : i128
    %t = arith.trunci %h : i128 to i64
    affine.store %t, %y[%i] : memref<6xi64>
  }"""
    want = [(int(v) * 18446744073709551629) >> 64 for v in x]
    wrapped = np.array([(v + 2**63) % 2**64 - 2**63 for v in want])
    text = one_function("%x: memref<6xi64>, %y: memref<6xi64>", body)
    return Known(text, {"x": x, "y": np.zeros(6, np.int64)}, {"y": wrapped})


KNOWN["products of 128 bits"] = _wide()

_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "arith.divsi": lambda x, y: int(Fraction(x, y)),
    "arith.remsi": lambda x, y: x - y * int(Fraction(x, y)),
    "arith.floordivsi": lambda x, y: x // y,
    "arith.ceildivsi": lambda x, y: -(-x // y),
    "arith.divui": lambda x, y: (x % 128) // (y % 128),
    "arith.remui": lambda x, y: (x % 128) % (y % 128),
    "arith.ceildivui": lambda x, y: -(-(x % 128) // (y % 128)),
    "arith.maxsi": max,
    "arith.minui": lambda x, y: min(x % 128, y % 128),
    "arith.muli": lambda x, y: x * y,
    "arith.subi": lambda x, y: x - y,
    "arith.xori": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("name", _INTEGERS)
def test_integers_of_seven_bits(name: str) -> None:
    pairs = [
        (x, y) for x in range(-64, 64, 5) for y in range(-64, 64, 3) if y and (x, y) != (-64, -1)
    ]
    x, y = (np.array(column, np.int8) for column in zip(*pairs, strict=True))
    n = len(pairs)
    text = one_function(
        f"%x: memref<{n}xi8>, %y: memref<{n}xi8>, %z: memref<{n}xi8>",
        f"""
  affine.for %i = 0 to {n} {{
    %a = affine.load %x[%i] : memref<{n}xi8>
    %b = affine.load %y[%i] : memref<{n}xi8>
    %c = arith.trunci %a : i8 to i7
    %d = arith.trunci %b : i8 to i7
    %e = {name} %c, %d : i7
    %g = arith.extsi %e : i7 to i8
    affine.store %g, %z[%i] : memref<{n}xi8>
  }}""",
    )
    want = [(_INTEGERS[name](a, b) + 64) % 128 - 64 for a, b in pairs]
    got = interpret(text, {"x": x, "y": y, "z": np.zeros(n, np.int8)})
    np.testing.assert_array_equal(got["z"], want)


KNOWN["casts of an index cut it"] = Known(
    one_function(
        "%x: memref<3xindex>, %y: memref<3xindex>",
        """
  affine.for %i = 0 to 3 {
    %v = affine.load %x[%i] : memref<3xindex>
    %n = arith.index_cast %v : index to i8
    %w = arith.index_castui %n : i8 to index
    affine.store %w, %y[%i] : memref<3xindex>
  }""",
    ),
    {"x": np.array([200, -1, 2**40 + 3]), "y": np.zeros(3, np.int64)},
    {"y": np.array([200, 255, 3])},
)

KNOWN["an unsigned loop over the sign"] = Known(
    one_function(
        "%y: memref<1xi64>",
        """
  %lo = arith.constant 120 : i8
  %hi = arith.constant -120 : i8
  %st = arith.constant 7 : i8
  %z = arith.constant 0 : i64
  %s = scf.for unsigned %i = %lo to %hi step %st iter_args(%a = %z) -> (i64) : i8 {
    %w = arith.extui %i : i8 to i64
    %b = arith.addi %a, %w : i64
    scf.yield %b : i64
  }
  affine.store %s, %y[0] : memref<1xi64>""",
    ),
    {"y": np.zeros(1, np.int64)},
    {"y": np.array([120 + 127 + 134])},
)

KNOWN["a while, a switch and results that change places"] = Known(
    one_function(
        "%y: memref<4xi32>",
        """
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %9 = arith.constant 9 : i32
  %r:3 = scf.while (%a = %0, %b = %1) : (i32, i32) -> (i32, i32, i32) {
    %go = arith.cmpi slt, %a, %9 : i32
    scf.condition(%go) %b, %a, %b : i32, i32, i32
  } do {
  ^bb0(%b: i32, %a: i32, %c: i32):
    %s = arith.addi %a, %c : i32
    scf.yield %b, %s : i32, i32
  }
  %k = arith.index_cast %r#1 : i32 to index
  %w:2 = scf.index_switch %k -> i32, i32
  case 13 { scf.yield %r#0, %1 : i32, i32 }
  default { scf.yield %0, %0 : i32, i32 }
  affine.store %r#0, %y[0] : memref<4xi32>
  affine.store %r#1, %y[1] : memref<4xi32>
  affine.store %w#0, %y[2] : memref<4xi32>
  affine.store %w#1, %y[3] : memref<4xi32>""",
    ),
    {"y": np.zeros(4, np.int32)},
    {"y": np.array([21, 13, 21, 1], np.int32)},  # Fibonacci
)

KNOWN["blocks and branches"] = Known(
    one_function(
        "%n: i32, %y: memref<1xi32>",
        """
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  cf.br ^loop(%0, %1 : i32, i32)
^loop(%i: i32, %p: i32):
  %go = arith.cmpi slt, %i, %n : i32
  cf.cond_br %go, ^body, ^end
^body:
  %j = arith.addi %i, %1 : i32
  %q = arith.muli %p, %j : i32
  cf.br ^loop(%j, %q : i32, i32)
^end:
  affine.store %p, %y[0] : memref<1xi32>""",
    ),
    {"y": np.zeros(1, np.int32)},
    {"y": np.array([5040], np.int32)},
    {"n": 7},
)

KNOWN["calls that come back"] = Known(
    """
func.func private @power(%x: i64, %n: i64) -> i64 {
  %0 = arith.constant 0 : i64
  %1 = arith.constant 1 : i64
  %end = arith.cmpi eq, %n, %0 : i64
  %r = scf.if %end -> i64 {
    scf.yield %1 : i64
  } else {
    %m = arith.subi %n, %1 : i64
    %p = func.call @power(%x, %m) : (i64, i64) -> i64
    %q = arith.muli %p, %x : i64
    scf.yield %q : i64
  }
  return %r : i64
}
func.func @f(%x: i64, %n: i64) -> i64 {
  %r = call @power(%x, %n) : (i64, i64) -> i64
  return %r : i64
}""",
    {},
    {"result0": np.array(3**20)},
    {"x": 3, "n": 20},
)


def _views() -> Known:
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    text = """
func.func @f(%x: memref<2x3x4x5xf32>, %y: memref<3x5x2xf32>, %n: index) {
  %v = memref.subview %x[0, 0, 2, 0] [2, %n, 1, 5] [1, 1, 1, 1]
     : memref<2x3x4x5xf32> to memref<2x?x5xf32, strided<[60, 20, 1], offset: 10>>
  %t = memref.transpose %v (a, b, c) -> (b, c, a)
     : memref<2x?x5xf32, strided<[60, 20, 1], offset: 10>>
     to memref<?x5x2xf32, strided<[20, 1, 60], offset: 10>>
  %c = memref.cast %t : memref<?x5x2xf32, strided<[20, 1, 60], offset: 10>>
     to memref<3x5x2xf32, strided<[20, 1, 60], offset: 10>>
  memref.copy %c, %y : memref<3x5x2xf32, strided<[20, 1, 60], offset: 10>> to memref<3x5x2xf32>
  %flat = memref.collapse_shape %y [[0, 1, 2]] : memref<3x5x2xf32> into memref<30xf32>
  %e = memref.expand_shape %flat [[0, 1]] output_shape [6, 5] : memref<30xf32> into memref<6x5xf32>
  %z = arith.constant -1.0 : f32
  affine.store %z, %e[5, 4] : memref<6x5xf32>
  return
}"""
    y = x[:, :, 2, :].transpose(1, 2, 0).copy()
    y[2, 4, 1] = -1
    return Known(text, {"x": x, "y": np.zeros_like(y)}, {"y": y}, {"n": 3})


KNOWN["views of views"] = _views()


def _convolution() -> Known:
    x, w = rng().integers(-5, 5, (1, 7, 9, 2)), rng().integers(-5, 5, (3, 2, 2, 3))
    y = np.zeros((1, 3, 4, 3), np.int64)
    for i in range(3):
        for j in range(4):
            window = x[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3 : 2]
            y[0, i, j] = np.einsum("abc,abcd->d", window, w)
    text = """
func.func @f(%x: tensor<1x7x9x2xi64>, %w: tensor<3x2x2x3xi64>) -> tensor<1x3x4x3xi64> {
  %0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<1x3x4x3xi64>
  %z = linalg.fill ins(%0 : i64) outs(%e : tensor<1x3x4x3xi64>) -> tensor<1x3x4x3xi64>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<[1, 2]> : tensor<2xi64>,
         strides = dense<2> : tensor<2xi64>}
       ins(%x, %w : tensor<1x7x9x2xi64>, tensor<3x2x2x3xi64>)
       outs(%z : tensor<1x3x4x3xi64>) -> tensor<1x3x4x3xi64>
  return %r : tensor<1x3x4x3xi64>
}"""
    return Known(text, {"x": x, "w": w}, {"result0": y})


KNOWN["a convolution with strides and dilations"] = _convolution()


def _named() -> Known:
    a, b = rng().integers(-5, 5, (4, 3)), rng().integers(-5, 5, (3, 5))
    text = """
func.func @f(%a: tensor<4x3xi64>, %b: tensor<3x5xi64>, %c: tensor<4x5xi64>)
    -> (tensor<4x5xi64>, tensor<5x4xi64>, tensor<4xi64>, tensor<4x5xi64>) {
  %m = linalg.matmul ins(%a, %b : tensor<4x3xi64>, tensor<3x5xi64>)
         outs(%c : tensor<4x5xi64>) -> tensor<4x5xi64>
  %e = tensor.empty() : tensor<5x4xi64>
  %t = linalg.transpose ins(%m : tensor<4x5xi64>) outs(%e : tensor<5x4xi64>) permutation = [1, 0]
  %i = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %s = linalg.reduce { arith.addi } ins(%m : tensor<4x5xi64>) outs(%i : tensor<4xi64>)
         dimensions = [1]
  %q = linalg.map ins(%m : tensor<4x5xi64>) outs(%c : tensor<4x5xi64>)
    (%x: i64, %old: i64) {
      %y = arith.subi %x, %old : i64
      linalg.yield %y : i64
    }
  return %m, %t, %s, %q : tensor<4x5xi64>, tensor<5x4xi64>, tensor<4xi64>, tensor<4x5xi64>
}"""
    c = rng().integers(-5, 5, (4, 5))
    m = a @ b + c
    results = (m, m.T, m.sum(axis=1) + np.arange(1, 5), m - c)
    return Known(
        text,
        {"a": a, "b": b, "c": c},
        {"c": c} | {f"result{k}": result for k, result in enumerate(results)},
    )


KNOWN["named operations and a map that reads its init"] = _named()


def _slices() -> Known:
    x = np.arange(24).reshape(1, 4, 1, 6)
    text = """
func.func @f(%x: tensor<1x?x1x6xi64>, %s: tensor<2x6xi64>, %n: index)
    -> (tensor<?x3xi64>, tensor<1x?x1x6xi64>, tensor<4x8xi64>) {
  %e = tensor.extract_slice %x[0, 1, 0, 0] [1, %n, 1, 3] [1, 1, 1, 2]
     : tensor<1x?x1x6xi64> to tensor<?x3xi64>
  %i = tensor.insert_slice %s into %x[0, 2, 0, 0] [1, 2, 1, 6] [1, 1, 1, 1]
     : tensor<2x6xi64> into tensor<1x?x1x6xi64>
  %k = arith.constant 7 : i64
  %p = tensor.pad %s low[2, 1] high[0, 1] {
  ^bb0(%a: index, %b: index):
    tensor.yield %k : i64
  } : tensor<2x6xi64> to tensor<4x8xi64>
  return %e, %i, %p : tensor<?x3xi64>, tensor<1x?x1x6xi64>, tensor<4x8xi64>
}"""
    s = -np.arange(12).reshape(2, 6)
    put = x.copy()
    put[0, 2:4, 0] = s
    return Known(
        text,
        {"x": x, "s": s},
        {
            "x": x,
            "result0": x[0, 1:4, 0, 0:5:2],
            "result1": put,
            "result2": np.pad(s, ((2, 0), (1, 1)), constant_values=7),
        },
        {"n": 3},
    )


KNOWN["slices of tensors"] = _slices()


def _packed() -> Known:
    x = np.arange(35).reshape(5, 7)
    text = """
func.func @f(%x: tensor<5x7xi64>) -> (tensor<2x3x2x4xi64>, tensor<5x7xi64>) {
  %k = arith.constant -1 : i64
  %e = tensor.empty() : tensor<2x3x2x4xi64>
  %p = linalg.pack %x padding_value(%k : i64) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1]
         inner_tiles = [2, 4] into %e : tensor<5x7xi64> -> tensor<2x3x2x4xi64>
  %f = tensor.empty() : tensor<5x7xi64>
  %u = linalg.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [2, 4]
         into %f : tensor<2x3x2x4xi64> -> tensor<5x7xi64>
  return %p, %u : tensor<2x3x2x4xi64>, tensor<5x7xi64>
}"""
    padded = np.pad(x, ((0, 1), (0, 1)), constant_values=-1)
    tiles = padded.reshape(3, 2, 2, 4).transpose(2, 0, 1, 3)
    return Known(text, {"x": x}, {"result0": tiles, "result1": x})


KNOWN["packed and unpacked"] = _packed()


def _vectors() -> Known:
    x = rng().integers(-9, 9, (5, 6)).astype(np.float32)
    text = """
func.func @f(%x: memref<5x6xf32>, %y: memref<4x3xf32>, %s: memref<2xf32>) {
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %0 = arith.constant 0 : index
  %pad = arith.constant 100.0 : f32
  %v = vector.transfer_read %x[%3, %2], %pad
    {permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<5x6xf32>, vector<4x3xf32>
  vector.transfer_write %v, %y[%0, %0] : vector<4x3xf32>, memref<4x3xf32>
  %r = vector.extract %v[1] : vector<3xf32> from vector<4x3xf32>
  %t = vector.reduction <add>, %r : vector<3xf32> into f32
  memref.store %t, %s[%0] : memref<2xf32>
  %m = vector.reduction <maximumf>, %r, %pad : vector<3xf32> into f32
  %1 = arith.constant 1 : index
  memref.store %m, %s[%1] : memref<2xf32>
  return
}"""
    y = np.full((4, 3), 100, np.float32)
    y[:, :2] = x[3:5, 2:6].T
    return Known(
        text,
        {"x": x, "y": np.zeros_like(y), "s": np.zeros(2, np.float32)},
        {"y": y, "s": np.array([y[1].sum(), 100], np.float32)},
    )


KNOWN["transfers and reductions of vectors"] = _vectors()

KNOWN["parallel loops with reductions"] = Known(
    one_function(
        "%x: memref<4x5xi64>, %y: memref<3xi64>",
        """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %z = arith.constant 10 : i64
  %s = scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c5) step (%c1, %c1) init (%z) -> i64 {
    %v = memref.load %x[%i, %j] : memref<4x5xi64>
    scf.reduce(%v : i64) {
    ^bb0(%a: i64, %b: i64):
      %c = arith.addi %a, %b : i64
      scf.reduce.return %c : i64
    }
  }
  %m = affine.parallel (%i, %j) = (0, 1) to (4, min(5, 4)) reduce ("addi") -> i64 {
    %v = affine.load %x[%i, %j] : memref<4x5xi64>
    affine.yield %v : i64
  }
  affine.store %s, %y[0] : memref<3xi64>
  affine.store %m, %y[1] : memref<3xi64>
  affine.for %i = 0 to 10 {
    affine.if affine_set<(d0) : (d0 mod 4 - 3 == 0, 6 - d0 >= 0)>(%i) {
      %k = affine.apply affine_map<(d0) -> (-((-d0) floordiv 2) * 10 + d0 ceildiv 2)>(%i)
      %n = arith.index_cast %k : index to i64
      affine.store %n, %y[2] : memref<3xi64>
    }
  }""",
    ),
    {"x": np.arange(20).reshape(4, 5) - 30, "y": np.zeros(3, np.int64)},
    {"y": np.array([10 + 190 - 600, int((np.arange(20).reshape(4, 5) - 30)[:, 1:4].sum()), 22])},
)

KNOWN["tasks, and rounds until a number is small"] = Known(
    """
avial.schedule %a, %e {
  %cpu = avial.target {arch = "cpu"}
  avial.converge until %e lt 0.3 max 100 {
    %half = avial.task %cpu, %a, %e {
      %z = arith.constant 0 : index
      %h = arith.constant 0.5 : f64
      scf.parallel %i = 0 to 4 {
        %x = memref.load %a[%i]
        %y = arith.mulf %x, %h
        memref.store %y, %a[%i]
      }
      %x = memref.load %a[%z]
      memref.store %x, %e[%z]
    }
  }
  %launched = avial.task %cpu, %a {
    gpu.launch {
      %t = gpu.thread_id x
      %x = memref.load %a[%t]
      %y = arith.addf %x, %x
      memref.store %y, %a[%t]
    }
  }
}
""",
    {"a": np.array([4.0, 8.0, 16.0, 24.0]), "e": np.ones(1)},
    {"a": np.array([0.5, 1.0, 2.0, 3.0]), "e": np.array([0.25])},
)


@pytest.mark.parametrize("known", [pytest.param(k, id=name) for name, k in KNOWN.items()])
def test_known(known: Known) -> None:
    got = interpret(known.text, known.arrays, known.scalars)
    for name, want in known.wanted.items():
        np.testing.assert_array_equal(got[name], want, err_msg=name)


# -- floats ----------------------------------------------------------------------------------------


@given(st.fractions(-1000, 1000))
def test_rounded_is_the_nearest(exact: Fraction) -> None:
    for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16):
        kind = Float(np.dtype(dtype))
        got = rounded(exact, kind)
        bits = np.array([got], dtype).view(f"u{kind.dtype.itemsize}")[0]
        for other in (int(bits) - 1, int(bits) + 1):
            if 0 <= other < 2**kind.width:
                near = np.array([other], f"u{kind.dtype.itemsize}").view(dtype)[0]
                if np.isfinite(near):
                    off, further = (abs(Fraction(float(x)) - exact) for x in (got, near))
                    assert off < further or (off == further and int(bits) % 2 == 0)


@np.errstate(over="ignore")
def test_rounded_once() -> None:
    """To a single by way of a double these would be rounded twice, and wrong."""
    single = Float(np.dtype(np.float32))
    just_above = 2**24 + 1 + Fraction(1, 2**60)
    assert rounded(just_above, single) == 2**24 + 2
    assert rounded(2**80 + 2**56 + 1, single) == np.float32(2.0**80 + 2.0**57)
    assert rounded(Fraction(10**400), single) == np.inf
    assert fused(np.float32(3e38), np.float32(10), np.float32(-np.inf), single) == -np.inf
    assert np.signbit(fused(np.float32(-0.0), np.float32(1), np.float32(-0.0), single))
    tiny = np.float32(2**-12)
    assert fused(1 + tiny, 1 + tiny, np.float32(-1) - 2 * tiny, single) == tiny**2


def test_floats_of_eight_and_sixteen_bits() -> None:
    x = np.array([1.0, 240.0, 0.001, 3.3], ml_dtypes.bfloat16)
    text = one_function(
        "%x: memref<4xbf16>, %y: memref<4xbf16>",
        """
  affine.for %i = 0 to 4 {
    %a = affine.load %x[%i] : memref<4xbf16>
    %b = arith.addf %a, %a : bf16
    %c = arith.truncf %b : bf16 to f8E4M3FN
    %d = arith.extf %c : f8E4M3FN to bf16
    affine.store %d, %y[%i] : memref<4xbf16>
  }""",
    )
    got = interpret(text, {"x": x, "y": np.zeros_like(x)})["y"]
    want = (2 * x.astype(np.float32)).astype(ml_dtypes.float8_e4m3fn).astype(ml_dtypes.bfloat16)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


# -- maps ------------------------------------------------------------------------------------------


@given(st.integers(-100, 100), st.integers(-100, 100), st.integers(1, 9))
def test_maps(d: int, e: int, s: int) -> None:
    found = affine_map(
        "affine_map<(d0, d1)[s0] -> (d1, -d0 floordiv 3 + d1 * 2, (d0 - d1) mod s0)>"
    )
    assert found([d, e, s]) == [e, -d // 3 + e * 2, (d - e) % s]
    assert found.positions == (1, None, None)
    holds = affine_set("affine_set<(d0, d1)[s0] : (d0 - d1 >= 0, d0 mod 2 == 0)>")
    assert holds([d, e, s]) == (d >= e and d % 2 == 0)


# -- what has no meaning ---------------------------------------------------------------------------

_HEAD = "%x: memref<4xi32>, %i: index, %v: i32, %w: i32"
UNDEFINED = {
    "behind the end": "%a = memref.load %x[%i] : memref<4xi32>",
    "a division by zero": "%a = arith.divsi %w, %v : i32",
    "a division that overflows": """%m = arith.constant -1 : i32
      %l = arith.constant -2147483648 : i32
      %a = arith.divsi %l, %m : i32""",
    "shifted too far": """%m = arith.constant 32 : i32
      %a = arith.shli %w, %m : i32""",
    "nsw": """%m = arith.constant 2147483647 : i32
      %a = arith.addi %m, %w overflow<nsw> : i32""",
    "nuw": "%a = arith.subi %v, %w overflow<nuw> : i32",
    "exact": """%m = arith.constant 2 : i32
      %a = arith.divui %w, %m exact : i32""",
    "never written": """%m = memref.alloc() : memref<2xi32>
      %a = affine.load %m[1] : memref<2xi32>
      %b = arith.addi %a, %a : i32""",
    "a view behind the end": """%a = memref.subview %x[%i] [1] [1]
        : memref<4xi32> to memref<1xi32, strided<[1], offset: ?>>""",
    "a step of nothing": """%z = arith.constant 0 : index
      scf.for %k = %z to %i step %z { }""",
    "affine arithmetic that overflows": """%m = arith.constant 9223372036854775807 : index
      %a = affine.apply affine_map<(d0) -> (d0 + 1)>(%m)""",
    "an assertion": """%m = arith.cmpi eq, %v, %w : i32
      cf.assert %m, "never" """,
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined(name: str) -> None:
    text = one_function(_HEAD, UNDEFINED[name])
    with pytest.raises(Undefined, match=r" at \w+\.\w+, loc\("):
        interpret(text, {"x": np.zeros(4, np.int32)}, {"i": 4, "v": 0, "w": 1})


def test_what_it_does_not_know() -> None:
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tosa.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    with pytest.raises(Unsupported, match=r"tosa\.add"):
        interpret(text, {"x": np.zeros(4, np.float32)})
