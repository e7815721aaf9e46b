"""Bodies of tasks that are equal but for arrays, offsets and constants have one function."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster

TILES = 4
SIDE = 6
N = TILES * SIDE
WHOLE = f"memref<{N}x{N}xi32>"
TILE = f"memref<{SIDE}x{SIDE}xi32, strided<[{N}, 1], offset: ?>>"

CALLED = f"""
func.func private @work(%a: {TILE}, %b: {TILE}) {{
  affine.for %i = 0 to {SIDE} {{
    affine.for %j = 0 to {SIDE} {{
      %x = affine.load %a[%i, %j] : {TILE}
      %y = affine.load %b[%j, %i] : {TILE}
      %z = arith.addi %x, %y : i32
      affine.store %z, %b[%j, %i] : {TILE}
    }}
  }}
  return
}}
"""


def affine_loops(r: int, c: int, factor: int) -> str:
    return f"""
      %f = arith.constant {factor} : i32
      affine.for %i = {r} to {r + SIDE} {{
        affine.for %j = 0 to {SIDE} {{
          %x = affine.load %A[%i, %j + {c}] : {WHOLE}
          %y = arith.muli %x, %f : i32
          affine.store %y, %B[%i, %j + {c}] : {WHOLE}
        }}
      }}"""


def scf_loops(r: int, c: int, factor: int) -> str:
    return f"""
      %f = arith.constant {factor} : i32
      scf.parallel %i, %j = {r}, {c} to {r + SIDE}, {c + SIDE} {{
        %x = memref.load %A[%i, %j]
        %y = arith.muli %x, %f : i32
        memref.store %y, %B[%i, %j]
      }}"""


def loop_upon_loop(r: int, c: int, factor: int) -> str:
    """A bound that is a constant elsewhere: equal numbers in one body may differ in another."""
    return f"""
      %f = arith.constant {factor} : i32
      %r0 = arith.constant {r} : index
      %r1 = arith.constant {r + SIDE} : index
      %one = arith.constant 1 : index
      scf.for %i = %r0 to %r1 step %one {{
        %c0 = arith.constant {c} : index
        affine.for %j = 0 to {SIDE} {{
          %k = arith.addi %j, %c0 : index
          %x = memref.load %A[%i, %k]
          %y = arith.muli %x, %f : i32
          memref.store %y, %B[%i, %k]
        }}
      }}"""


BODIES = {"affine": affine_loops, "scf": scf_loops, "mixed": loop_upon_loop}


def program_of(bodies: list[str], *, arrays: str = "%A, %B", before: str = "") -> str:
    tasks = "".join(
        f"  %t{k} = avial.task %cpu, {arrays} {{{body}\n  }}\n" for k, body in enumerate(bodies)
    )
    target = '  %cpu = avial.target {arch = "cpu"}\n'
    return f"{before}avial.schedule {arrays} {{\n{target}{tasks}}}\n"


def functions_in(program: Program) -> int:
    return len(re.findall(r"func\.func private @t\d", program.stages["mpi"].text))


@pytest.mark.quick("passes-mixed", "written-scf")
@pytest.mark.parametrize("style", BODIES)
@pytest.mark.parametrize("sizes", ["", "normalise-tasks{least=1}"], ids=["written", "passes"])
@pytest.mark.mpi
def test_tiles_share_a_function(style: str, sizes: str, cluster: Cluster) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 9, (N, N)).astype(np.int32) for _ in range(2))
    wanted, places = b.copy(), random.Random(5)
    bodies = []
    for k in range(TILES * TILES):
        # The first rows are the first columns, too: numbers that happen to be equal.
        r, c, factor = SIDE * (k // TILES), SIDE * (k % TILES), places.choice([2, 3, r_or(k)])
        bodies.append(BODIES[style](r, c, factor))
        wanted[r : r + SIDE, c : c + SIDE] = a[r : r + SIDE, c : c + SIDE] * factor
    program = compile_program(program_of(bodies), arrays={"A": a, "B": b}, ranks=2, sizes=sizes)
    assert functions_in(program) == 1
    program.run(cluster, check=True)
    np.testing.assert_array_equal(b, wanted)


def r_or(k: int) -> int:
    """A factor that is also a row."""
    return SIDE * (k // TILES)


def cut(name: str, array: str, row: int, column: int) -> str:
    offset = row * N + column
    strided = f"memref<{SIDE}x{SIDE}xi32, strided<[{N}, 1]{f', offset: {offset}' * bool(offset)}>>"
    return (
        f"\n      %{name}s = memref.subview %{array}[{row}, {column}] [{SIDE}, {SIDE}] [1, 1] :"
        f" {WHOLE} to {strided}\n      %{name} = memref.cast %{name}s : {strided} to {TILE}"
    )


def call_on(one: tuple[int, int], other: tuple[int, int]) -> str:
    call = f"\n      func.call @work(%x, %y) : ({TILE}, {TILE}) -> ()"
    return cut("x", "A", *one) + cut("y", "A", *other) + call


def test_parts_of_one_array_that_do_not_meet_are_known_to_be_different_memory() -> None:
    places = [(SIDE * (k // TILES), SIDE * (k % TILES)) for k in range(4)]
    bodies = [call_on(one, (r + SIDE, c)) for one in places for r, c in (one,)]
    a = np.arange(N * N, dtype=np.int32).reshape(N, N)
    text = program_of(bodies, arrays="%A", before=CALLED)
    program = compile_program(text, arrays={"A": a}, ranks=1, sizes="normalise-tasks{least=1}")
    (line,) = re.findall(r"func\.func private @t0\(.*", program.stages["loops"].text)
    assert "avial.no_alias" in line
    assert line.count("memref<") == 2, "the two parts and nothing else"


@pytest.mark.quick("0", "1")
@pytest.mark.mpi
@pytest.mark.parametrize("seed", range(6))
def test_calls_on_random_parts(seed: int, cluster: Cluster) -> None:
    """Overlapping or not, on one to two ranks: as in program order."""
    places = random.Random(seed)
    rng = np.random.default_rng(seed)
    a = rng.integers(-9, 9, (N, N)).astype(np.int32)
    wanted, bodies = a.copy(), []
    for _ in range(9):
        step = places.choice([1, SIDE])
        one, other = (
            tuple(step * places.randrange((N - SIDE) // step + 1) for _ in range(2))
            for _ in range(2)
        )
        bodies.append(call_on(one, other))  # pyright: ignore[reportArgumentType]
        for i in range(SIDE):
            for j in range(SIDE):
                wanted[other[0] + j, other[1] + i] += wanted[one[0] + i, one[1] + j]
    text = program_of(bodies, arrays="%A", before=CALLED)
    sizes = ("", "normalise-tasks{least=1}")[seed % 2]
    program = compile_program(text, arrays={"A": a}, ranks=1 + seed % 2, sizes=sizes)
    program.run(cluster if seed % 2 else None, check=True)
    np.testing.assert_array_equal(a, wanted)


ANY = "memref<8xi32, strided<[?], offset: ?>>"

ADDED = f"""
func.func private @add(%a: {ANY}, %b: {ANY}) {{
  affine.for %i = 0 to 8 {{
    %x = affine.load %a[%i] : {ANY}
    %y = affine.load %b[%i] : {ANY}
    %z = arith.addi %x, %y : i32
    affine.store %z, %b[%i] : {ANY}
  }}
  return
}}
"""


def every(name: str, start: int, step: int) -> str:
    """Eight elements from `start` on, `step` apart; forwards or backwards."""
    kind = f"memref<8xi32, strided<[{step}]{f', offset: {start}' * bool(start)}>>"
    return (
        f"\n      %{name}s = memref.subview %A[{start}] [8] [{step}] : memref<64xi32> to {kind}"
        f"\n      %{name} = memref.cast %{name}s : {kind} to {ANY}"
    )


@pytest.mark.quick(
    "apart-1-1", "apart--1--3", "overlapping--1-3", "overlapping-2--1", "overlapping-1--3"
)
@pytest.mark.mpi
@pytest.mark.parametrize("one", [1, -1, 3, -3])
@pytest.mark.parametrize("other", [1, -1, 2])
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "overlapping"])
def test_parts_that_run_forwards_and_backwards(one: int, other: int, apart: bool) -> None:
    a = np.random.default_rng(7).integers(-9, 9, 64).astype(np.int32)
    wanted, bodies = a.copy(), []
    for k in range(2):
        first = 3 * k + (7 * -one if one < 0 else 0)
        second = 40 + k + (7 * -other if other < 0 else 0) - (0 if apart else 38)
        call = f"\n      func.call @add(%x, %y) : ({ANY}, {ANY}) -> ()"
        bodies.append(every("x", first, one) + every("y", second, other) + call)
        for i in range(8):
            wanted[second + i * other] += wanted[first + i * one]
    text = program_of(bodies, arrays="%A", before=ADDED)
    sizes = "normalise-tasks{least=1}"
    program = compile_program(text, arrays={"A": a}, ranks=1, sizes=sizes)
    (line,) = re.findall(r"func\.func private @t0\(.*", program.stages["mpi"].text)
    assert (line.count("memref<8xi32") == 2) == apart, "parts are arguments where they do not meet"
    program.run(check=True)
    np.testing.assert_array_equal(a, wanted)
