"""Every element type and rank through the compiler and back, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from avial_lab.compiler.backends.host_target import has_fma
from avial_lab.core.element_types import ELEMENT_OF_DTYPE
from tests.compiler.worker.reference.bodies import run, type_of
from tests.fused import fma

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
SHAPES = [
    (),
    (1,),
    (0,),
    (7,),
    (2, 3),
    (3, 0, 2),
    (2, 3, 5),
    (1,) * 5,
    (2, 1, 3, 1, 2, 1),
    (2,) * 8,
]


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _random(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        return rng.integers(0, 100, shape).astype(name)
    if name in COMPLEX:
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(name)
    return rng.normal(size=shape).astype(_dtype(name))


def _operations(name: str) -> tuple[str, str]:
    if name in COMPLEX:
        return "complex.add", "complex.mul"
    return ("arith.addf", "arith.mulf") if name in FLOATS else ("arith.addi", "arith.muli")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("name", ELEMENT_OF_DTYPE)
def test_arithmetic_in_every_type(name: str, rng: np.random.Generator) -> None:
    a, b = _random(name, (17,), rng), _random(name, (17,), rng)
    add, multiply = _operations(name)
    element = ELEMENT_OF_DTYPE[name]
    arrays = {"a": a, "b": b, "c": _poison(a), "d": _poison(a)}
    result = run(
        f"""
      affine.for %i = 0 to 17 {{
        %x = affine.load %a[%i] : {type_of(a)}
        %y = affine.load %b[%i] : {type_of(b)}
        %z = {add} %x, %y : {element}
        %w = {multiply} %x, %y : {element}
        affine.store %z, %c[%i] : {type_of(a)}
        affine.store %w, %d[%i] : {type_of(a)}
      }}""",
        arrays,
    )
    # An i1 sum is modulo 2.
    total = a ^ b if name == "bool" else a + b
    np.testing.assert_array_equal(result.data["c"], total)
    if name in COMPLEX:
        np.testing.assert_allclose(
            result.data["d"], a * b, rtol=4 * float(np.finfo(name).eps), atol=1e-6
        )
    else:
        np.testing.assert_array_equal(result.data["d"], a * b)


def _poison(array: np.ndarray) -> np.ndarray:
    """Of the same kind, with values that no result here has."""
    if array.dtype.name == "bool":
        return np.ones_like(array)
    return np.full_like(array, 77 if array.dtype.kind in "iu" else np.nan)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bounds_checks", [False, True])
def test_every_rank(shape: tuple[int, ...], bounds_checks: bool, rng: np.random.Generator) -> None:
    a = rng.normal(size=shape)
    dims = ", ".join(f"d{k}" for k in range(len(shape)))
    identity = f"affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join('"parallel"' for _ in shape)
    result = run(
        f"""
      linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{kinds}]}}
        ins(%a : {type_of(a)}) outs(%c : {type_of(a)}) {{
        ^bb0(%x: f64, %y: f64):
          %z = arith.addf %x, %x : f64
          linalg.yield %z : f64
      }}
      memref.copy %c, %d : {type_of(a)} to {type_of(a)}""",
        {"a": a, "c": np.full(shape, np.nan), "d": np.full(shape, np.nan)},
        bounds_checks=bounds_checks,
    )
    np.testing.assert_array_equal(result.data["c"], 2 * a)
    np.testing.assert_array_equal(result.data["d"], 2 * a)
    assert result.data["d"].shape == shape
    assert result.violations == ()


@pytest.mark.parametrize("name", FLOATS)
def test_elementary_functions(name: str, rng: np.random.Generator) -> None:
    functions = {
        "exp": np.exp,
        "sin": np.sin,
        "cos": np.cos,
        "tanh": np.tanh,
        "log": np.log,
        "sqrt": np.sqrt,
        "atan": np.arctan,
        "expm1": np.expm1,
        "log1p": np.log1p,
        "cbrt": np.cbrt,
        "floor": np.floor,
        "absf": np.abs,
    }
    a = (rng.random(9) * 0.9 + 0.05).astype(_dtype(name))
    element = ELEMENT_OF_DTYPE[name]
    arrays = {"a": a} | {f"to_{function}": np.full_like(a, np.nan) for function in functions}
    body = "\n".join(
        f"""
        %v_{function} = math.{function} %x : {element}
        memref.store %v_{function}, %to_{function}[%i] : {type_of(a)}"""
        for function in functions
    )
    result = run(
        f"""
      affine.for %i = 0 to 9 {{
        %x = memref.load %a[%i] : {type_of(a)}
        {body}
      }}""",
        arrays,
    )
    epsilon = float(ml_dtypes.finfo(_dtype(name)).eps)
    for function, truth in functions.items():
        wanted = truth(a.astype(np.float64))
        got = result.data[f"to_{function}"].astype(np.float64)
        np.testing.assert_allclose(got, wanted, rtol=2 * epsilon, err_msg=function)


@pytest.mark.parametrize("strict", [False, True])
def test_a_multiplication_is_fused_with_its_addition(
    rng: np.random.Generator, *, strict: bool
) -> None:
    """Where the machine can, and never where it was asked not to."""
    a, b, c = (rng.normal(size=1000).astype(np.float32) for _ in range(3))
    result = run(
        """
      affine.for %i = 0 to 1000 {
        %x = affine.load %a[%i] : memref<1000xf32>
        %y = affine.load %b[%i] : memref<1000xf32>
        %z = affine.load %c[%i] : memref<1000xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %p, %z : f32
        affine.store %s, %d[%i] : memref<1000xf32>
      }""",
        {"a": a, "b": b, "c": c, "d": np.full_like(a, np.nan)},
        strict=strict,
    )
    fused = [fma(*each) for each in zip(a, b, c, strict=True)]
    apart = a * b + c
    assert (fused != apart).any()
    np.testing.assert_array_equal(result.data["d"], apart if strict or not has_fma() else fused)
