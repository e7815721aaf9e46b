"""Promises that MLIR hands on wrongly: of trunci, and of sums whose constants it merges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import numpy as np
import pytest

from tests.compiler.passes.arithmetic.scalars import check, run_and_reference
from tests.compiler.passes.golden import assert_same, each_case


@each_case("drop_promises")
def test_the_same_bits(case: str) -> None:
    """On even numbers below 128, which keep all the promises."""
    assert_same(case, "drop-promises", given={0: 2 * np.arange(9)})


def test_a_number_that_is_cut_twice() -> None:
    """Folded to one cut of all 64 bits, the promise about the middle ones would be broken."""
    given = np.array([2**32 + 5, -(2**40) + 7, 2**33, 3, 2**32 + 127, -1])
    body = """
      %y = arith.trunci %i : i64 to i32
      %z = arith.trunci %y overflow<nsw> : i32 to i8
      %b = arith.extsi %z : i8 to i64
      %c = arith.constant 100 : i64
      %r = arith.cmpi slt, %b, %c : i64
      %s = arith.extui %r : i1 to i64
      %e = arith.addi %b, %s : i64
    """
    cut = given.astype(np.int32).astype(np.int8).astype(np.int64)
    run_and_reference(body, given, cut + (cut < 100), result="%e")


CHAINS = {
    "AddIAddConstant": ("addi %x, %c", "addi %y, %d"),
    "AddISubConstantRHS": ("subi %x, %c", "addi %y, %d"),
    "AddISubConstantLHS": ("subi %c, %x", "addi %y, %d"),
    "MulIMulIConstant": ("muli %x, %c", "muli %y, %d"),
    "SubILHSAddConstant": ("addi %x, %c", "subi %d, %y"),
    "SubIRHSSubConstantRHS": ("subi %x, %c", "subi %y, %d"),
    "SubIRHSSubConstantLHS": ("subi %c, %x", "subi %y, %d"),
    "SubILHSSubConstantRHS": ("subi %x, %c", "subi %d, %y"),
    "SubILHSSubConstantLHS": ("subi %c, %x", "subi %d, %y"),
}
"""By the pattern that merges the two constants (llvm PR 189164)."""

WIDTHS: dict[int, type] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


Kept = list[tuple[int, int]]
"""Numbers, each with what comes out."""


def exact(text: str, names: dict[str, int]) -> int:
    name, left, right = text.replace(",", "").replace("%", "").split()
    a, b = names[left], names[right]
    return {"addi": a + b, "subi": a - b, "muli": a * b}[name]


def kept(pattern: str, low: int, high: int) -> dict[tuple[int, int], Kept]:
    """For pairs of constants the numbers with which both operations stay from `low` to `high`."""
    first, second = CHAINS[pattern]
    half = (high - low + 1) // 2
    near = [low, low + 1, low + 2, -5, -1, 0, 1, 2, 5, high // 2, high - 2, high - 1, high]
    constants = [low, low + half // 2, low + 3, -100, -2, 2, 3, 100, high - half // 2, high - 4]
    found: dict[tuple[int, int], Kept] = {}
    for c, d in itertools.product(constants, repeat=2):
        for x in near:
            y = exact(first, {"x": x, "c": c})
            z = exact(second, {"y": y, "d": d})
            if all(low <= number <= high for number in (x, y, z, c, d)):
                found.setdefault((c, d), []).append((x, z))
    return {pair: numbers for pair, numbers in found.items() if len(numbers) > 1}


def loop(k: int, pattern: str, pair: tuple[int, int], flag: str, kind: str, n: int) -> str:
    first, second = (
        re.sub(r"%(\w)", rf"%\g<1>{k}", operation) + f" overflow<{flag}> : {kind}"
        for operation in CHAINS[pattern]
    )
    return f"""
      %c{k} = arith.constant {pair[0]} : {kind}
      %d{k} = arith.constant {pair[1]} : {kind}
      affine.for %i = 0 to {n} {{
        %x{k} = affine.load %v{k}[%i] : memref<{n}x{kind}>
        %y{k} = arith.{first}
        %z{k} = arith.{second}
        affine.store %z{k}, %a{k}[%i] : memref<{n}x{kind}>
        %r{k} = arith.cmpi {"ult" if flag == "nuw" else "slt"}, %z{k}, %x{k} : {kind}
        %e{k} = arith.extui %r{k} : i1 to i8
        affine.store %e{k}, %b{k}[%i] : memref<{n}xi8>
      }}"""


def bits(numbers: Iterable[int], width: int) -> np.ndarray:
    return np.array([x % (1 << width) for x in numbers], np.uint64).astype(WIDTHS[width])


@pytest.mark.quick("8-nsw")
@pytest.mark.parametrize("flag", ["nsw", "nuw"])
@pytest.mark.parametrize(
    "width", [8, *(pytest.param(w, marks=pytest.mark.slow) for w in (16, 32, 64))]
)
def test_two_constants(width: int, flag: str) -> None:
    """Numbers that keep both promises; compared afterwards, as only a program that asks whether it
    wrapped tells a broken promise. For each pattern the constants that are the farthest from zero.
    """
    low, high = (-1 << width - 1, (1 << width - 1) - 1) if flag == "nsw" else (0, (1 << width) - 1)
    body, arrays, want = "", {}, {}
    for k, pattern in enumerate(CHAINS):
        chains = kept(pattern, low, high)
        pair = max(chains, key=lambda pair: sum(map(abs, pair)))
        numbers = chains[pair]
        n = len(numbers)
        arrays |= {f"v{k}": bits([x for x, _ in numbers], width)}
        arrays |= {f"a{k}": bits([0] * n, width), f"b{k}": np.zeros(n, np.int8)}
        want |= {f"a{k}": bits([z for _, z in numbers], width)}
        want |= {f"b{k}": np.array([z < x for x, z in numbers], np.int8)}
        body += loop(k, pattern, pair, flag, f"i{width}", n)
    arguments = ", ".join(
        f"%{name}: memref<{array.size}x{'i8' if name[0] == 'b' else f'i{width}'}>"
        for name, array in arrays.items()
    )
    check(f"func.func @f({arguments}) {{ {body} return }}", arrays, want)
