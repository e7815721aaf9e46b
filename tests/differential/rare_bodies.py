"""Rarer bodies, one operation or two of each dialect; run by the reference alone."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from tests.differential.cases import Arrays, Case, one_task

CASES: dict[str, Case] = {}
_RNG = np.random.default_rng(5)


def _ints(*shape: int, dtype: str = "int32") -> np.ndarray:
    return _RNG.integers(-50, 50, shape).astype(dtype)


def _floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    return _RNG.standard_normal(shape).astype(dtype)


def _sets(**results: Callable[[Arrays], object]) -> Callable[[Arrays], None]:
    """Each of these arrays becomes what its function says, in this order."""

    def meaning(m: Arrays) -> None:
        for name, result in results.items():
            m[name][...] = result(m)

    return meaning


def _case(
    name: str,
    body: str,
    arrays: Arrays,
    meaning: Callable[[Arrays], object],
    *,
    arch: str = "cpu",
    rtol: float = 0.0,
) -> None:
    text = one_task(body, ", ".join(arrays), arch=arch)
    CASES[name] = Case(text, lambda _: {n: a.copy() for n, a in arrays.items()}, meaning, rtol=rtol)


_case(
    "affine.apply/min/max ops, symbolic bounds",
    """
 %n = arith.constant 17 : index
 affine.for %i = 0 to %n step 4 {
   %e = affine.min affine_map<(d0)[s0] -> (d0 + 4, s0)>(%i)[%n]
   %b = affine.max affine_map<(d0) -> (d0, 1)>(%i)
   scf.for %j = %b to %e {
     %k = affine.apply affine_map<(d0)[s0] -> (s0 - d0 - 1)>(%j)[%n]
     %x = memref.load %a[%k]
     memref.store %x, %c[%j]
   }
 }""",
    {"a": _ints(17), "c": _ints(17)},
    lambda m: m["c"].__setitem__(slice(1, 17), m["a"][::-1][1:17]),
)
_case(
    "affine delinearize",
    """
 affine.for %i = 0 to 24 {
   %p, %q, %s = affine.delinearize_index %i into (2, 3, 4) : index, index, index
   %l = affine.linearize_index [%s, %q, %p] by (4, 3, 2) : index
   %x = memref.load %a[%p, %q, %s]
   memref.store %x, %c[%l]
 }""",
    {"a": _ints(2, 3, 4), "c": _ints(24)},
    _sets(c=lambda m: m["a"].transpose(2, 1, 0).ravel()),
)
_case(
    "negative lower bound, step",
    """
 affine.for %i = -5 to 12 step 3 {
   %x = affine.load %a[%i + 5]
   affine.store %x, %c[(%i + 5) floordiv 3]
 }""",
    {"a": _ints(17), "c": _ints(6)},
    _sets(c=lambda m: m["a"][0:17:3]),
)
_case(
    "scf.for of i32",
    """
 %lo = arith.constant 2 : i32
 %hi = arith.constant 9 : i32
 %st = arith.constant 3 : i32
 scf.for %i = %lo to %hi step %st : i32 {
   %k = arith.index_cast %i : i32 to index
   memref.store %i, %c[%k]
 }""",
    {"c": _ints(10)},
    lambda m: m["c"].__setitem__([2, 5, 8], [2, 5, 8]),
)
_case(
    "memref.dim, view, metadata",
    """
 %z = arith.constant 0 : index
 %n = memref.dim %a, %z
 %raw = memref.alloca() : memref<64xi8>
 %v = memref.view %raw[%z][] : memref<64xi8> to memref<16xi32>
 scf.for %i = 0 to %n { %x = memref.load %a[%i]  memref.store %x, %v[%i] }
 %base, %off, %size, %stride = memref.extract_strided_metadata %v
    : memref<16xi32> -> memref<i32>, index, index, index
 %w = memref.reinterpret_cast %base to offset: [0], sizes: [%size], strides: [%stride]
    : memref<i32> to memref<?xi32, strided<[?]>>
 scf.for %i = 0 to %n { %x = memref.load %w[%i]  memref.store %x, %c[%i] }""",
    {"a": _ints(16), "c": _ints(16)},
    _sets(c=lambda m: m["a"]),
)
_case(
    "vector gather scatter",
    """
 %z = arith.constant 0 : index
 %iv = vector.load %p[%z] : memref<8xi32>, vector<8xi32>
 %m = arith.constant dense<[true,true,false,true,true,true,true,false]> : vector<8xi1>
 %pass = arith.constant dense<7> : vector<8xi32>
 %g = vector.gather %a[%z] [%iv], %m, %pass : memref<8xi32>, vector<8xi32>, vector<8xi1>,
    vector<8xi32> into vector<8xi32>
 vector.store %g, %c[%z] : memref<8xi32>, vector<8xi32>
 vector.scatter %d[%z] [%iv], %m, %g : memref<8xi32>, vector<8xi32>, vector<8xi1>, vector<8xi32>
""",
    {"p": _RNG.permutation(8).astype("int32"), "a": _ints(8), "c": _ints(8), "d": _ints(8)},
    lambda m: (
        m["c"].__setitem__(slice(None), np.where([1, 1, 0, 1, 1, 1, 1, 0], m["a"][m["p"]], 7)),
        [m["d"].__setitem__(m["p"][k], m["c"][k]) for k in range(8) if k not in (2, 7)],
    ),
)
_case(
    "expandload compressstore",
    """
 %z = arith.constant 0 : index
 %m = arith.constant dense<[true,false,true,true]> : vector<4xi1>
 %p = arith.constant dense<9> : vector<4xi32>
 %v = vector.expandload %a[%z], %m, %p : memref<4xi32>, vector<4xi1>,
    vector<4xi32> into vector<4xi32>
 vector.store %v, %c[%z] : memref<4xi32>, vector<4xi32>
 %w = vector.load %a[%z] : memref<4xi32>, vector<4xi32>
 vector.compressstore %d[%z], %m, %w : memref<4xi32>, vector<4xi1>, vector<4xi32>
""",
    {"a": _ints(4), "c": _ints(4), "d": _ints(4)},
    lambda m: (
        m["c"].__setitem__(slice(None), [m["a"][0], 9, m["a"][1], m["a"][2]]),
        m["d"].__setitem__(slice(0, 3), m["a"][[0, 2, 3]]),
    ),
)
_case(
    "vector 2d ops",
    """
 %z = arith.constant 0 : index
 %f = arith.constant 0.0 : f32
 %A = vector.transfer_read %a[%z, %z], %f {in_bounds = [true, true]} : memref<4x4xf32>,
    vector<4x4xf32>
 %T = vector.transpose %A, [1, 0] : vector<4x4xf32> to vector<4x4xf32>
 %acc = arith.constant dense<0.0> : vector<4xf32>
 %R = vector.multi_reduction <maximumf>, %T, %row [1] : vector<4x4xf32> to vector<4xf32>
 vector.store %R, %c[%z] : memref<4xf32>, vector<4xf32>
""".replace("%acc = arith.constant dense<0.0>", "%row = arith.constant dense<-100.0>"),
    {"a": _floats(4, 4), "c": _floats(4)},
    _sets(c=lambda m: m["a"].max(axis=0)),
)
_case(
    "vector outerproduct shuffle broadcast",
    """
 %z = arith.constant 0 : index
 %x = vector.load %a[%z] : memref<4xf32>, vector<4xf32>
 %y = vector.shuffle %x, %x [3, 2, 5, 4] : vector<4xf32>, vector<4xf32>
 %o = vector.outerproduct %x, %y : vector<4xf32>, vector<4xf32>
 %b = vector.broadcast %y : vector<4xf32> to vector<4x4xf32>
 %s = arith.addf %o, %b : vector<4x4xf32>
 vector.transfer_write %s, %c[%z, %z] {in_bounds = [true, true]} : vector<4x4xf32>, memref<4x4xf32>
""",
    {"a": _floats(4), "c": _floats(4, 4)},
    _sets(c=lambda m: np.outer(m["a"], m["a"][[3, 2, 1, 0]]) + m["a"][[3, 2, 1, 0]]),
)
_case(
    "vector.contract",
    """
 %z = arith.constant 0 : index
 %f = arith.constant 0 : i32
 %A = vector.transfer_read %a[%z, %z], %f {in_bounds = [true, true]} : memref<3x4xi32>,
    vector<3x4xi32>
 %B = vector.transfer_read %b[%z, %z], %f {in_bounds = [true, true]} : memref<4x5xi32>,
    vector<4x5xi32>
 %C = vector.transfer_read %c[%z, %z], %f {in_bounds = [true, true]} : memref<3x5xi32>,
    vector<3x5xi32>
 %D = vector.contract {indexing_maps = [affine_map<(i,j,k)->(i,k)>,
    affine_map<(i,j,k)->(k,j)>, affine_map<(i,j,k)->(i,j)>],
    iterator_types = ["parallel","parallel","reduction"], kind = #vector.kind<add>} %A, %B,
    %C : vector<3x4xi32>, vector<4x5xi32> into vector<3x5xi32>
 vector.transfer_write %D, %c[%z, %z] {in_bounds = [true, true]} : vector<3x5xi32>, memref<3x5xi32>
""",
    {"a": _ints(3, 4), "b": _ints(4, 5), "c": _ints(3, 5)},
    lambda m: m["c"].__iadd__(m["a"] @ m["b"]),
)
_case(
    "casts",
    """
 affine.for %i = 0 to 11 {
  %x = affine.load %a[%i]
  %i8_ = arith.fptosi %x : f64 to i8
  %u = arith.extui %i8_ : i8 to i64
  %f = arith.uitofp %u : i64 to f32
  %h = arith.truncf %f : f32 to f16
  %e = arith.extf %h : f16 to f64
  affine.store %e, %c[%i]
  %b = arith.bitcast %x : f64 to i64
  affine.store %b, %d[%i]
  %t = arith.trunci %b : i64 to i16
  affine.store %t, %s[%i]
 }""",
    {
        "a": _floats(11, dtype="float64") * 50,
        "c": _floats(11, dtype="float64"),
        "d": _ints(11, dtype="int64"),
        "s": _ints(11, dtype="int16"),
    },
    _sets(
        c=lambda m: (
            np.trunc(m["a"]).astype("int8").astype("uint8").astype("float16").astype("float64")
        ),
        d=lambda m: m["a"].view("int64"),
        s=lambda m: m["a"].view("int64").astype("int16"),
    ),
)
_case(
    "bool arithmetic and cmps",
    """
 affine.for %i = 0 to 12 {
  %x = affine.load %a[%i]
  %y = affine.load %b[%i]
  %l = arith.andi %x, %y
  %o = arith.xori %l, %x
  %e = arith.cmpi ult, %x, %y
  %q = arith.ori %o, %e
  affine.store %q, %c[%i]
  %n = arith.extui %q : i1 to i8
  affine.store %n, %d[%i]
 }""",
    {
        "a": _RNG.integers(0, 2, 12).astype(bool),
        "b": _RNG.integers(0, 2, 12).astype(bool),
        "c": _RNG.integers(0, 2, 12).astype(bool),
        "d": _ints(12, dtype="uint8"),
    },
    _sets(
        c=lambda m: ((m["a"] & m["b"]) ^ m["a"]) | (~m["a"] & m["b"]),
        d=lambda m: m["c"].astype("uint8"),
    ),
)
_case(
    "odd widths",
    """
 affine.for %i = 0 to 12 {
  %x = affine.load %a[%i]
  %t = arith.trunci %x : i32 to i7
  %y = arith.addi %t, %t : i7
  %s = arith.extsi %y : i7 to i32
  %w = arith.extsi %x : i32 to i128
  %p = arith.muli %w, %w : i128
  %k = arith.constant 5 : i128
  %q = arith.shrsi %p, %k : i128
  %v = arith.trunci %q : i128 to i32
  %z = arith.addi %s, %v
  affine.store %z, %c[%i]
 }""",
    {"a": _ints(12) * 1000, "c": _ints(12)},
    _sets(
        c=lambda m: np.array(
            [(((2 * int(x) + 64) % 128) - 64 + ((int(x) ** 2) >> 5)) for x in m["a"]]
        ).astype("int32")
    ),
)
_case(
    "linalg.index, map",
    """
 linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>],
    iterator_types=["parallel","parallel"]} outs(%c) {
  ^bb0(%o):
   %i = linalg.index 0 : index
   %j = linalg.index 1 : index
   %k = arith.muli %i, %j
   %v = arith.index_cast %k : index to i32
   %w = arith.addi %v, %o
   linalg.yield %w
 }
 linalg.map ins(%c, %a) outs(%d) (%x, %y, %o) { %z = arith.subi %x, %y  linalg.yield %z }
""",
    {"a": _ints(3, 4), "c": _ints(3, 4), "d": _ints(3, 4)},
    _sets(c=lambda m: m["c"] + np.outer(range(3), range(4)), d=lambda m: m["c"] - m["a"]),
)
_case(
    "linalg mixed types",
    """
 linalg.matmul ins(%a, %b) outs(%c)
 linalg.matmul indexing_maps = [affine_map<(i,j,k)->(k,i)>, affine_map<(i,j,k)->(k,j)>,
    affine_map<(i,j,k)->(i,j)>] ins(%e, %b : memref<4x3xi8>, memref<4x5xi8>) outs(%c
    : memref<3x5xi32>)
""",
    {
        "a": _ints(3, 4, dtype="int8"),
        "b": _ints(4, 5, dtype="int8"),
        "c": _ints(3, 5),
        "e": _ints(4, 3, dtype="int8"),
    },
    _sets(
        c=lambda m: (
            m["c"]
            + m["a"].astype(int) @ m["b"].astype(int)
            + m["e"].T.astype(int) @ m["b"].astype(int)
        )
    ),
)
_case(
    "linalg conv nhwc, pooling sum, vecmat",
    """
 linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2>
    : tensor<2xi64>} ins(%x, %k) outs(%y)
 linalg.vecmat ins(%v, %m) outs(%w)
""",
    {
        "x": _ints(1, 7, 7, 2),
        "k": _ints(3, 3, 2, 4),
        "y": _ints(1, 3, 3, 4),
        "v": _ints(3),
        "m": _ints(3, 5),
        "w": _ints(5),
    },
    _sets(
        y=lambda m: (
            m["y"]
            + np.array(
                [
                    [
                        [
                            [
                                (
                                    m["x"][0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3, :]
                                    * m["k"][:, :, :, f]
                                ).sum()
                                for f in range(4)
                            ]
                            for j in range(3)
                        ]
                        for i in range(3)
                    ]
                ]
            )
        ),
        w=lambda m: m["w"] + m["v"] @ m["m"],
    ),
)
_case(
    "index dialect",
    """
 %three = index.constant 3
 scf.for %i = 0 to 13 {
  %q = index.ceildivs %i, %three
  %m = index.maxu %q, %three
  %c = index.cmp slt(%i, %three)
  %s = arith.select %c, %i, %m : index
  %v = index.casts %s : index to i32
  memref.store %v, %c_[%i]
 }""",
    {"c_": _ints(13)},
    _sets(c_=lambda m: [i if i < 3 else max(-(-i // 3), 3) for i in range(13)]),
)
_case(
    "gpu loops and two launches",
    """
 %one = arith.constant 1 : index
 %n = arith.constant 10 : index
 scf.for %k = 0 to 3 {
  gpu.launch blocks(%b,%b1,%b2) in (%g0=%n,%g1=%one,%g2=%one) threads(%t,%t1,%t2)
    in (%s0=%one,%s1=%one,%s2=%one) {
    %x = memref.load %a[%b]
    %y = arith.addi %x, %x
    memref.store %y, %a[%b]
    gpu.terminator
  }
 }
 gpu.launch {
   %i = gpu.thread_id x
   %x = memref.load %a[%i]
   memref.store %x, %c[%i]
 }""",
    {"a": _ints(10), "c": _ints(10)},
    _sets(a=lambda m: m["a"] * 8, c=lambda m: m["a"]),
    arch="gpu",
)
_case(
    "gpu global_id, private memory, block dims",
    """
 %b = arith.constant 4 : index
 %t = arith.constant 5 : index
 %one = arith.constant 1 : index
 gpu.launch blocks(%bx,%by,%bz) in (%gx=%b,%gy=%one,%gz=%one) threads(%tx,%ty,%tz)
    in (%sx=%t,%sy=%one,%sz=%one) private(%p : memref<2xi32, #gpu.address_space<private>>) {
   %i = gpu.global_id x
   %z = arith.constant 0 : index
   %x = memref.load %a[%i]
   memref.store %x, %p[%z] : memref<2xi32, #gpu.address_space<private>>
   gpu.barrier
   %y = memref.load %p[%z] : memref<2xi32, #gpu.address_space<private>>
   %d = gpu.block_dim x
   %dd = arith.index_cast %d : index to i32
   %w = arith.muli %y, %dd
   memref.store %w, %c[%i]
   gpu.terminator
 }""",
    {"a": _ints(20), "c": _ints(20)},
    _sets(c=lambda m: m["a"] * 5),
    arch="gpu",
)
_case(
    "barrier in if uniform and while",
    """
 %t = arith.constant 6 : index
 %one = arith.constant 1 : index
 gpu.launch blocks(%bx,%by,%bz) in (%gx=%one,%gy=%one,%gz=%one) threads(%tx,%ty,%tz)
    in (%sx=%t,%sy=%one,%sz=%one) workgroup(%w : memref<6xi32, 3>) {
   %x = memref.load %a[%tx]
   memref.store %x, %w[%tx] : memref<6xi32, 3>
   gpu.barrier
   %five = arith.constant 5 : index
   %n = arith.addi %tx, %one
   %k = arith.remui %n, %t
   %y = memref.load %w[%k] : memref<6xi32, 3>
   gpu.barrier
   memref.store %y, %w[%tx] : memref<6xi32, 3>
   gpu.barrier
   %q = arith.subi %five, %tx
   %z = memref.load %w[%q] : memref<6xi32, 3>
   memref.store %z, %c[%tx]
   gpu.terminator
 }""",
    {"a": _ints(6), "c": _ints(6)},
    _sets(c=lambda m: np.roll(m["a"], -1)[::-1]),
    arch="gpu",
)
_case(
    "complex funcs",
    """
 affine.for %i = 0 to 6 {
  %x = affine.load %a[%i]
  %l = complex.log %x
  %s = complex.sqrt %x
  %p = complex.pow %x, %l
  %t = complex.tanh %x
  affine.store %l, %c[0, %i]
  affine.store %s, %c[1, %i]
  affine.store %p, %c[2, %i]
  affine.store %t, %c[3, %i]
 }""",
    {
        "a": _floats(6, dtype="float64") + 1j * _floats(6, dtype="float64"),
        "c": _floats(4, 6, dtype="float64") + 0j,
    },
    lambda m: (
        m["c"].__setitem__(0, np.log(m["a"])),
        m["c"].__setitem__(1, np.sqrt(m["a"])),
        m["c"].__setitem__(2, m["a"] ** np.log(m["a"])),
        m["c"].__setitem__(3, np.tanh(m["a"])),
    ),
    rtol=1e-13,
)
_case(
    "complex64 in loops",
    """
 %z = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
 %s = scf.for %i = 0 to 6 iter_args(%t = %z) -> (complex<f32>) {
  %x = memref.load %a[%i]
  %u = complex.add %t, %x : complex<f32>
  scf.yield %u : complex<f32>
 }
 memref.store %s, %c[]""",
    {"a": (_floats(6) + 1j * _floats(6)).astype("complex64"), "c": np.array(0, "complex64")},
    lambda m: m["c"].__setitem__((), np.cumsum(m["a"])[-1]),
)
_case(
    "bf16 f16 arithmetic",
    """
 affine.for %i = 0 to 20 {
  %x = affine.load %a[%i]
  %y = affine.load %b[%i]
  %p = arith.mulf %x, %y
  %q = arith.addf %p, %x
  %m = arith.maximumf %q, %y
  affine.store %m, %c[%i]
  %h = affine.load %g[%i]
  %k = arith.divf %h, %h
  %e = arith.subf %k, %h
  affine.store %e, %d[%i]
 }""",
    {
        "a": _floats(20).astype(ml_dtypes.bfloat16),
        "b": _floats(20).astype(ml_dtypes.bfloat16),
        "c": _floats(20).astype(ml_dtypes.bfloat16),
        "g": _floats(20, dtype="float16"),
        "d": _floats(20, dtype="float16"),
    },
    _sets(
        c=lambda m: np.maximum(m["a"] * m["b"] + m["a"], m["b"]),
        d=lambda m: m["g"] / m["g"] - m["g"],
    ),
)
_case(
    "cf.assert holds",
    """
 %t = arith.constant true
 cf.assert %t, "no"
 %k = arith.constant 1 : i32
 linalg.fill ins(%k) outs(%c)""",
    {"c": _ints(5)},
    _sets(c=lambda m: 1),
)
_case(
    "scf.while with do-part memory",
    """
 %z = arith.constant 0 : index
 %lim = arith.constant 1000 : i32
 scf.while : () -> () {
   %v = memref.load %c[%z]
   %go = arith.cmpi slt, %v, %lim : i32
   scf.condition(%go)
 } do {
   %v = memref.load %c[%z]
   %two = arith.constant 2 : i32
   %w = arith.muli %v, %two
   memref.store %w, %c[%z]
   scf.yield
 }""",
    {"c": np.array([3], "int32")},
    _sets(c=lambda m: 1536),
)
_case(
    "select between buffers",
    """
 %z = arith.constant 0 : index
 %x = memref.load %n[]
 %zero = arith.constant 0 : i32
 %p = arith.cmpi sgt, %x, %zero : i32
 %s = arith.select %p, %a, %b : memref<6xi32>
 memref.copy %s, %c
 %five = arith.constant 5 : i32
 memref.store %five, %s[%z]""",
    {"n": np.array(-2, "int32"), "a": _ints(6), "b": _ints(6), "c": _ints(6)},
    lambda m: (m["c"].__setitem__(slice(None), m["b"]), m["b"].__setitem__(0, 5)),
)
_case(
    "scf.if yields a memref",
    """
 %z = arith.constant 0 : index
 %x = memref.load %n[]
 %zero = arith.constant 0 : i32
 %p = arith.cmpi sgt, %x, %zero : i32
 %s = scf.if %p -> (memref<6xi32>) { scf.yield %a : memref<6xi32> } else { scf.yield %b
    : memref<6xi32> }
 memref.copy %s, %c
 """,
    {"n": np.array(2, "int32"), "a": _ints(6), "b": _ints(6), "c": _ints(6)},
    _sets(c=lambda m: m["a"]),
)
_case(
    "memref as iter_arg ping-pong",
    """
 %r:2 = scf.for %k = 0 to 3 iter_args(%p = %a, %q = %b) -> (memref<6xi32>, memref<6xi32>) {
   scf.for %i = 0 to 6 {
     %x = memref.load %p[%i] : memref<6xi32>
     %y = arith.addi %x, %x : i32
     memref.store %y, %q[%i] : memref<6xi32>
   }
   scf.yield %q, %p : memref<6xi32>, memref<6xi32>
 }""",
    {"a": _ints(6), "b": _ints(6)},
    lambda m: (
        m["b"].__setitem__(slice(None), m["a"] * 2),
        m["a"].__setitem__(slice(None), m["b"] * 2),
        m["b"].__setitem__(slice(None), m["a"] * 2),
    ),
)
_case(
    "alloc result of if, dynamic tile with affine.min",
    """
 %n = arith.constant 10 : index
 %four = arith.constant 4 : index
 scf.for %i = 0 to 10 step 4 {
   %sz = affine.min affine_map<(d0) -> (4, 10 - d0)>(%i)
   %t = memref.alloc(%sz) : memref<?xi32>
   %s = memref.subview %a[%i] [%sz] [1]
   %d = memref.subview %c[%i] [%sz] [1]
   memref.copy %s, %t
   linalg.copy ins(%t) outs(%d)
   memref.dealloc %t
 }""",
    {"a": _ints(10), "c": _ints(10)},
    _sets(c=lambda m: m["a"]),
)
_case(
    "vector.mask",
    """
 %z = arith.constant 0 : index
 %m = vector.constant_mask [3] : vector<4xi1>
 %x = vector.load %a[%z] : memref<4xi32>, vector<4xi32>
 vector.mask %m { vector.transfer_write %x, %c[%z] {in_bounds=[true]} : vector<4xi32>,
    memref<4xi32> } : vector<4xi1>
 %s = vector.mask %m { vector.reduction <add>, %x : vector<4xi32> into i32 } : vector<4xi1> -> i32
 memref.store %s, %d[]""",
    {"a": _ints(4), "c": _ints(4), "d": np.array(0, "int32")},
    lambda m: (
        m["c"].__setitem__(slice(0, 3), m["a"][:3]),
        m["d"].__setitem__((), m["a"][:3].sum()),
    ),
)
_case(
    "gpu tasks vector",
    """
 %z = arith.constant 0 : index
 %x = vector.load %a[%z] : memref<4xi32>, vector<4xi32>
 vector.store %x, %c[%z] : memref<4xi32>, vector<4xi32>""",
    {"a": _ints(4), "c": _ints(4)},
    _sets(c=lambda m: m["a"]),
    arch="gpu",
)
_case(
    "gpu.memcpy memset",
    """
 gpu.memcpy %c, %a : memref<4xi32>, memref<4xi32>""",
    {"a": _ints(4), "c": _ints(4)},
    _sets(c=lambda m: m["a"]),
    arch="gpu",
)
_case(
    "llvm intrinsics and ub",
    """
 affine.for %i = 0 to 4 {
  %x = affine.load %a[%i]
  %y = llvm.intr.sadd.sat(%x, %x) : (i32, i32) -> i32
  affine.store %y, %c[%i]
 }""",
    {"a": _ints(4), "c": _ints(4)},
    _sets(c=lambda m: m["a"] * 2),
)
_case(
    "unranked",
    """
 %u = memref.cast %a : memref<4xi32> to memref<*xi32>
 %r = memref.cast %u : memref<*xi32> to memref<?xi32>
 memref.copy %r, %c : memref<?xi32> to memref<4xi32>
 """,
    {"a": _ints(4), "c": _ints(4)},
    _sets(c=lambda m: m["a"]),
)
_case(
    "memref.reshape",
    """
 %s = memref.alloca() : memref<2xindex>
 %z = arith.constant 0 : index
 %o = arith.constant 1 : index
 %two = arith.constant 2 : index
 memref.store %two, %s[%z]
 memref.store %two, %s[%o]
 %r = memref.reshape %a(%s) : (memref<4xi32>, memref<2xindex>) -> memref<?x?xi32>
 memref.copy %r, %c : memref<?x?xi32> to memref<2x2xi32>
 """,
    {"a": _ints(4), "c": _ints(2, 2)},
    _sets(c=lambda m: m["a"].reshape(2, 2)),
)
_case(
    "linalg.pack? mmt4d",
    """
 linalg.mmt4d ins(%a, %b) outs(%c)
 """,
    {"a": _ints(2, 3, 4, 2), "b": _ints(5, 3, 6, 2), "c": _ints(2, 5, 4, 6)},
    lambda m: m["c"].__iadd__(np.einsum("mkab,nkcb->mnac", m["a"], m["b"]).astype("int32")),
)
_case(
    "scf.parallel nested, forall 2d",
    """
 scf.parallel %i = 0 to 3 {
  scf.parallel %j = 0 to 4 {
   %x = memref.load %a[%i, %j]
   memref.store %x, %c[%i, %j]
  }
 }
 scf.forall (%i, %j) = (0, 1) to (3, 4) step (2, 1) {
   %k = arith.constant 99 : i32
   memref.store %k, %c[%i, %j]
 }""",
    {"a": _ints(3, 4), "c": _ints(3, 4)},
    lambda m: (
        m["c"].__setitem__(..., m["a"]),
        m["c"].__setitem__((slice(0, 3, 2), slice(1, 4)), 99),
    ),
)
_case(
    "alloc with alignment, alloca dynamic",
    """
 %n = arith.constant 6 : index
 %t = memref.alloca(%n) {alignment = 64 : i64} : memref<?xi32>
 %al = memref.assume_alignment %t, 64 : memref<?xi32>
 scf.for %i = 0 to %n { %x = memref.load %a[%i] : memref<6xi32>
   memref.store %x, %al[%i] : memref<?xi32> }
 memref.prefetch %a[%n], read, locality<3>, data : memref<6xi32>
 %u = memref.cast %al : memref<?xi32> to memref<6xi32>
 memref.copy %u, %c""",
    {"a": _ints(6), "c": _ints(6)},
    _sets(c=lambda m: m["a"]),
)
