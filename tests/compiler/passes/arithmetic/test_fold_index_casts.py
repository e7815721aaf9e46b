"""Casts of an index to fewer bits and back: cut where they cut, in values and in subscripts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.arithmetic.scalars import ENDS, check
from tests.compiler.passes.golden import assert_same, each_case


@each_case("fold_index_casts")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "fold-index-casts")


def cut(values: np.ndarray, width: int, *, signed: bool) -> np.ndarray:
    if width >= 64:
        return values
    low = values.astype(object) % (1 << width)
    if signed:
        low = np.array([x - (1 << width) if x >> width - 1 else x for x in low], object)
    return np.array([int(x) for x in low])


GIVEN = np.concatenate([ENDS, np.array([127, 128, 200, 255, 256, 65535, 65536, 2**31, 2**32 + 5])])


WIDTHS = (1, 4, 8, 13, 16, 32, 33, 63, 64, 65, 128)


@pytest.mark.quick("index_cast-index_castui", "index_castui-index_cast")
@pytest.mark.parametrize("back", ["index_cast", "index_castui"])
@pytest.mark.parametrize("to", ["index_cast", "index_castui"])
def test_narrow_and_back(to: str, back: str) -> None:
    """llvm#90296 (index_cast) and llvm#90238 (index_castui), of every kind of width."""
    n = GIVEN.size
    body = "".join(
        f"""
        %to{width} = arith.{to} %x : index to i{width}
        %back{width} = arith.{back} %to{width} : i{width} to index
        %e{width} = arith.index_cast %back{width} : index to i64
        affine.store %e{width}, %b[{k}, %k] : memref<{len(WIDTHS)}x{n}xi64>"""
        for k, width in enumerate(WIDTHS)
    )
    want = np.array([cut(GIVEN, width, signed=back == "index_cast") for width in WIDTHS])
    text = f"""
    func.func @f(%a: memref<{n}xi64>, %b: memref<{len(WIDTHS)}x{n}xi64>) {{
      affine.for %k = 0 to {n} {{
        %i = affine.load %a[%k] : memref<{n}xi64>
        %x = arith.index_cast %i : i64 to index {body}
      }}
      return
    }}
    """
    check(text, {"a": GIVEN, "b": np.zeros_like(want)}, {"b": want})


@pytest.mark.quick("index_castui-3", "index_cast-1")
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("back", ["index_cast", "index_castui"])
def test_a_subscript_that_is_cut(ranks: int, back: str) -> None:
    text = f"""
    func.func @f(%a: memref<600xi64>, %b: memref<600xi64>) {{
      affine.for %i = 0 to 600 {{
        %0 = arith.{back.replace("castui", "cast")} %i : index to i8
        %1 = arith.index_castui %0 : i8 to index
        %v = memref.load %a[%1] : memref<600xi64>
        affine.store %v, %b[%i] : memref<600xi64>
      }}
      return
    }}
    """
    a = np.arange(600) * 3 + 1
    check(text, {"a": a, "b": np.zeros(600, np.int64)}, {"b": a[np.arange(600) % 256]}, ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 3])
def test_in_a_task(ranks: int) -> None:
    text = """
    avial.schedule %a, %b {
      %cpu = avial.target {arch = "cpu"}
      %t = avial.task %cpu, %a, %b {
        affine.for %i = 0 to 600 {
          %0 = arith.index_cast %i : index to i8
          %1 = arith.index_castui %0 : i8 to index
          %v = memref.load %a[%1] : memref<600xi64>
          affine.store %v, %b[%i] : memref<600xi64>
        }
      }
    }
    """
    a = np.arange(600) * 3 + 1
    check(text, {"a": a, "b": np.zeros(600, np.int64)}, {"b": a[np.arange(600) % 256]}, ranks=ranks)


def test_a_hash_in_a_function_that_is_called() -> None:
    text = """
    func.func private @hash(%i: index) -> index {
      %m = arith.constant 2654435761 : index
      %p = arith.muli %i, %m : index
      %h = arith.index_cast %p : index to i32
      %k = arith.index_cast %h : i32 to index
      return %k : index
    }
    func.func @f(%o: memref<100xi64>) {
      affine.for %i = 0 to 100 {
        %k = func.call @hash(%i) : (index) -> index
        %r = arith.index_cast %k : index to i64
        affine.store %r, %o[%i] : memref<100xi64>
      }
      return
    }
    """
    want = (np.arange(100) * 2654435761).astype(np.int32).astype(np.int64)
    check(text, {"o": np.zeros(100, np.int64)}, {"o": want}, ranks=2)
