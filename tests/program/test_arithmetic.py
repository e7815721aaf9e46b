"""Which arithmetic a program has: contracted as its reference is, sums within their bound, or
strict as NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.backends.host_target import has_fma
from avial_lab.machine.cpu import this_cpu
from avial_lab.program.program import Program
from tests.fused import fma

MULTIPLY_ADD = """
func.func @f(%a: memref<{n}x{t}>, %b: memref<{n}x{t}>, %c: memref<{n}x{t}>, %d: memref<{n}x{t}>) {{
  affine.for %i = 0 to {n} {{
    %x = affine.load %a[%i] : memref<{n}x{t}>
    %y = affine.load %b[%i] : memref<{n}x{t}>
    %z = affine.load %c[%i] : memref<{n}x{t}>
    %p = arith.mulf %x, %y : {t}
    %s = arith.subf %z, %p : {t}
    affine.store %s, %d[%i] : memref<{n}x{t}>
  }}
  return
}}
"""
DOT = """
func.func @f(%a: memref<{n}x{t}>, %b: memref<{n}x{t}>, %s: memref<{t}>) {{
  affine.for %i = 0 to {n} {{
    %x = affine.load %a[%i] : memref<{n}x{t}>
    %y = affine.load %b[%i] : memref<{n}x{t}>
    %old = affine.load %s[] : memref<{t}>
    %p = arith.mulf %x, %y : {t}
    %new = arith.addf %old, %p : {t}
    affine.store %new, %s[] : memref<{t}>
  }}
  return
}}
"""
KINDS = {"f32": np.float32, "f64": np.float64}
every_kind = pytest.mark.parametrize("element", KINDS)
either = pytest.mark.parametrize("strict", [False, True])


def compiled(text: str, element: str, arrays: dict[str, np.ndarray], **options: Any) -> Program:
    size = next(iter(arrays.values())).size
    return avial_lab.compile(text.format(n=size, t=element), arrays=arrays, **options)


def delicate(element: str, rng: np.random.Generator, size: int) -> np.ndarray:
    """Random numbers, and among them subnormal ones, zeros of both signs, infinities, NaN, and
    products that overflow though their sum does not.
    """
    kind = KINDS[element]
    limits = np.finfo(kind)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.smallest_subnormal, limits.tiny / 3,
               limits.max, -limits.max, np.sqrt(limits.max) * 1.25, 1 + limits.eps]  # fmt: skip
    values = rng.normal(size=size).astype(kind)
    places = rng.random(size) < 0.5
    values[places] = rng.choice(np.array(special, kind), int(places.sum()))
    return values


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.quick("f64-True-3", "f32-False-1", "f64-False-3")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3])
@either
@every_kind
def test_delicate_numbers(
    element: str, ranks: int, rng: np.random.Generator, *, strict: bool
) -> None:
    """Bit for bit: textbook arithmetic is NumPy's, the other is fused, whatever the numbers."""
    a, b, c = (delicate(element, rng, 131) for _ in range(3))
    arrays = {"a": a, "b": b, "c": c, "d": np.full_like(a, 7)}
    program = compiled(MULTIPLY_ADD, element, arrays, ranks=ranks, strict=strict)
    program.run(check=True)
    assert program.check_report is not None
    assert "bit for bit (131 elements)" in program.check_report
    with np.errstate(all="ignore"):
        want = c - a * b
    if has_fma() and not strict:
        want = np.array([fma(-x, y, z) for x, y, z in zip(a, b, c, strict=True)])
    got = arrays["d"]
    bits = {4: np.uint32, 8: np.uint64}[got.itemsize]
    assert ((got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.quick("f64-2", "f32-1")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
@every_kind
def test_a_strict_sum_has_the_order_of_the_text(
    element: str, ranks: int, rng: np.random.Generator
) -> None:
    a, b = (rng.normal(size=1003).astype(KINDS[element]) for _ in range(2))
    arrays = {"a": a, "b": b, "s": np.array(0.5, KINDS[element])}
    want = arrays["s"][()]
    for x, y in zip(a, b, strict=True):
        want += x * y
    program = compiled(DOT, element, arrays, ranks=ranks, strict=True)
    assert program.built.reordered == {}
    program.run(check=True)
    assert arrays["s"] == want


@pytest.mark.quick("7", "65")
@pytest.mark.mpi
@pytest.mark.parametrize("size", [2, 7, 63, 64, 65, 1003])
def test_a_sum_of_its_own_order_is_within_its_bound(size: int, rng: np.random.Generator) -> None:
    a, b = (rng.normal(size=size).astype(np.float32) for _ in range(2))
    arrays = {"a": a, "b": b, "s": np.array(0.5, np.float32)}
    exact = 0.5 + np.dot(a.astype(np.float64), b.astype(np.float64))
    program = compiled(DOT, "f32", arrays, ranks=1)
    fills_a_vector = size >= this_cpu().lanes(4)  # fewer terms stay in the program's order
    assert program.built.reordered == ({"s": size} if fills_a_vector else {})
    program.run(check=True)
    room = size * np.finfo(np.float32).eps * (0.5 + np.abs(a * b).sum())
    assert abs(arrays["s"] - exact) <= room
    assert program.check_report is not None


LOOPS_OF_SUMS = {
    "of two loops": (
        """affine.for %t = 0 to 30 {
             affine.for %i = 0 to 500 { ADD } }""",
        30 * 500,
    ),
    "of two loops, by a value": (
        """affine.for %t = 0 to 30 {
             %v = affine.load %s[] : memref<f32>
             %w = affine.for %i = 0 to 500 iter_args(%o = %v) -> f32 {
               %x = affine.load %a[%i] : memref<500xf32>
               %n = arith.addf %o, %x : f32
               affine.yield %n : f32 }
             affine.store %w, %s[] : memref<f32> }""",
        30 * 500,
    ),
    "that begins anew": (
        """affine.for %t = 0 to 30 {
             affine.store %zero, %s[] : memref<f32>
             affine.for %i = 0 to 500 { ADD }
             %v = affine.load %s[] : memref<f32>
             affine.store %v, %b[%t] : memref<500xf32> }""",
        500,
    ),
    "that begins anew between phases": (
        """affine.for %t = 0 to 30 {
             %v = affine.for %i = 0 to 500 iter_args(%o = %zero) -> f32 {
               %x = affine.load %a[%i] : memref<500xf32>
               %n = arith.addf %o, %x : f32
               affine.yield %n : f32 }
             affine.for %i = 0 to 500 {
               %x = affine.load %a[%i] : memref<500xf32>
               %n = arith.subf %v, %x : f32
               affine.store %n, %a[%i] : memref<500xf32> }
             affine.store %v, %s[] : memref<f32> }""",
        500,
    ),
    "that goes on from phase to phase": (
        """affine.for %t = 0 to 30 {
             affine.for %i = 0 to 500 { ADD }
             affine.for %i = 0 to 500 {
               %x = affine.load %a[%i] : memref<500xf32>
               %n = arith.negf %x : f32
               affine.store %n, %a[%i] : memref<500xf32> } }""",
        30 * 500,
    ),
}
ADD = """%x = affine.load %a[%i] : memref<500xf32>
         %o = affine.load %s[] : memref<f32>
         %n = arith.addf %o, %x : f32
         affine.store %n, %s[] : memref<f32>"""


@pytest.mark.quick("that goes on*", "of two loops, by a value")
@pytest.mark.mpi
@pytest.mark.parametrize("what", LOOPS_OF_SUMS)
def test_terms_of_all_loops_are_counted(what: str, rng: np.random.Generator) -> None:
    text, terms = LOOPS_OF_SUMS[what]
    arrays = {name: rng.normal(size=500).astype(np.float32) for name in "ab"}
    arrays["s"] = np.array(0.5, np.float32)
    program = avial_lab.compile(
        f"""func.func @f(%a: memref<500xf32>, %b: memref<500xf32>, %s: memref<f32>) {{
          %zero = arith.constant 0.0 : f32
          {text.replace("ADD", ADD)}
          return }}""",
        arrays=arrays,
        ranks=1,
    )
    assert program.built.reordered["s"] == terms
    program.run(check=True)


@pytest.mark.mpi
def test_a_sum_of_what_cancels_is_as_near_as_its_terms_allow(rng: np.random.Generator) -> None:
    """The greatest number that is left says nothing of what there was."""
    a = rng.normal(size=2000).astype(np.float32) * 1000
    a[1000:] = -a[:1000]
    arrays = {"a": a, "b": np.ones(2000, np.float32), "s": np.array(0.5, np.float32)}
    tiny = """func.func @f(%a: memref<2000xf32>, %b: memref<2000xf32>, %s: memref<f32>) {
      %zero = arith.constant 0.0 : f32
      affine.for %i = 0 to 2000 {
        %x = affine.load %a[%i] : memref<2000xf32>
        %y = affine.load %s[] : memref<f32>
        %z = arith.addf %x, %y : f32
        affine.store %z, %s[] : memref<f32>
      }
      affine.for %i = 0 to 2000 {
        affine.store %zero, %a[%i] : memref<2000xf32>
      }
      return
    }"""
    program = avial_lab.compile(tiny, arrays=arrays, ranks=1)
    program.run(check=True)
    assert program.check_report is not None


@pytest.mark.mpi
def test_a_sum_that_no_pass_reorders_is_the_references(rng: np.random.Generator) -> None:
    arrays = {name: rng.normal(size=1003).astype(np.float32) for name in "ab"}
    arrays["s"] = np.array(0.5, np.float32)
    program = compiled(DOT, "f32", arrays, ranks=1, without="reassociate-sums")
    assert program.built.reordered == {}
    program.run(check=True)
    assert program.check_report is not None
    assert "within" not in program.check_report


@pytest.mark.quick("-0.0", "nan")
@pytest.mark.mpi
@pytest.mark.parametrize("value", [-0.0, np.inf, np.nan, 5e-324])
def test_sums_of_what_is_no_common_number(value: float) -> None:
    """Vector lanes begin at a zero that changes nothing; NaN and infinity are reckoned with."""
    arrays = {"a": np.full(100, value), "b": np.ones(100), "s": np.array(-0.0)}
    compiled(DOT, "f64", arrays, ranks=1).run(check=True)
    want = value if value == 0 else value * 100
    np.testing.assert_array_equal(arrays["s"], want)
    assert np.signbit(arrays["s"]) == np.signbit(want)


@pytest.mark.quick("1-*")
@pytest.mark.mpi
@either
@pytest.mark.parametrize("shift", [0, 1, 2])
def test_misaligned_and_overlapping_arrays(
    shift: int, rng: np.random.Generator, *, strict: bool
) -> None:
    """Slices of one array, an odd number of elements into it: each write may be read later on."""
    memory = rng.normal(size=400)
    arrays = {"a": memory[1:120], "b": memory[150:269], "c": memory[271:390]}
    arrays["d"] = memory[1 + shift : 120 + shift]
    want = memory.copy()
    a, b, c, d = (
        want[x.ctypes.data // 8 - memory.ctypes.data // 8 :][:119] for x in arrays.values()
    )
    fused = has_fma() and not strict
    for i in range(119):
        d[i] = fma(-a[i], b[i], c[i]) if fused else c[i] - a[i] * b[i]
    program = compiled(MULTIPLY_ADD, "f64", arrays, ranks=1, strict=strict)
    program.run(check=True)
    np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize(
    ("strict", "told"),
    [
        (True, "arithmetic  strict: every operation is rounded separately, in the program's order"),
        (False, "s (a sum of 50 terms) in another order"),
    ],
)
def test_it_tells_how_it_rounds(told: str, *, strict: bool) -> None:
    arrays = {"a": np.zeros(50), "b": np.zeros(50), "s": np.zeros(())}
    program = compiled(DOT, "f64", arrays, ranks=1, strict=strict)
    assert str(program.explain()).endswith(told)
    assert ("--strict" in program.command) == strict
    if not strict and has_fma():
        assert "a product that is only added is fused with the sum" in str(program.explain())
