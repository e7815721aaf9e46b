"""The least (greatest) of all and where it is, on any number of ranks and however it is written:
bit for bit what one after the other finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.runtime.launch.cluster import Cluster

SIZES = (
    pytest.param(13, (3,), id="three ranks"),
    pytest.param(2, (5,), id="empty parts"),
    pytest.param(13, (1, 2, 5), id="other ranks", marks=pytest.mark.slow),
)

Arrays = dict[str, np.ndarray]
Found = tuple[int, Any, tuple[int, ...]]
"""A candidate: for which element of best, its value, what belongs to it."""


@dataclass(frozen=True)
class Form:
    """`better`: whether the first takes the second's place; `candidates` in the program's order."""

    text: str
    element: str
    better: Callable[[Any, Any], bool]
    candidates: Callable[[Arrays], Iterator[Found]]
    companions: tuple[str, ...] = ("at",)


def less(x: Any, y: Any) -> bool:
    return bool(x < y)


def greater(x: Any, y: Any) -> bool:
    return bool(x > y)


def below(x: Any, y: Any) -> bool:
    """Without a sign."""
    unsigned = np.dtype(f"u{x.dtype}")
    return bool(x.view(unsigned) < y.view(unsigned))


def in_order(a: Arrays) -> Iterator[Found]:
    for i, x in enumerate(a["A"]):
        yield 0, x, (i,)


def in_rows(a: Arrays) -> Iterator[Found]:
    for (i, j), x in np.ndenumerate(a["M"]):
        yield 0, x, (i, j)


def in_buckets(a: Arrays) -> Iterator[Found]:
    for i, x in enumerate(a["A"]):
        yield int(a["bucket"][i]), x, (i,)


def allowed(a: Arrays) -> Iterator[Found]:
    for i, x in enumerate(a["A"]):
        if a["bucket"][i] > 2:
            yield 0, x, (i,)


HEAD = """func.func @f(%A: memref<?x$T>, %M: memref<?x7x$T>, %bucket: memref<?xi32>,
                       %best: memref<$Sx$T>, %at: memref<$Sxi64>, %row: memref<1xi32>,
                       %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
"""
STORES = """
      %k = arith.index_cast %i : index to i64
      memref.store %x, %best[%c0] : memref<1x$T>
      memref.store %k, %at[%c0] : memref<1xi64>"""

FORMS = {
    "stores under a condition": Form(
        """affine.for %i = 0 to %n {
          %x = affine.load %A[%i] : memref<?x$T>
          %old = memref.load %best[%c0] : memref<1x$T>
          %c = arith.cmpf olt, %x, %old : $T
          scf.if %c { $STORES }
        }""",
        "f64", less, in_order,
    ),
    "iter_args and selects": Form(
        """%x0 = memref.load %best[%c0] : memref<1x$T>
        %k0 = memref.load %at[%c0] : memref<1xi64>
        %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%old = %x0, %a = %k0) -> ($T, i64) {
          %x = memref.load %A[%i] : memref<?x$T>
          %c = arith.cmpf ule, %x, %old : $T
          %k = arith.index_cast %i : index to i64
          %v = arith.select %c, %old, %x : $T
          %w = arith.select %c, %a, %k : i64
          scf.yield %v, %w : $T, i64
        }
        memref.store %0#0, %best[%c0] : memref<1x$T>
        memref.store %0#1, %at[%c0] : memref<1xi64>""",
        "f32", greater, in_order,
    ),
    "without a sign": Form(
        """affine.for %i = 0 to %n {
          %x = affine.load %A[%i] : memref<?x$T>
          %old = memref.load %best[%c0] : memref<1x$T>
          %c = arith.cmpi ugt, %old, %x : $T
          %k = arith.index_cast %i : index to i64
          %a = memref.load %at[%c0] : memref<1xi64>
          %v = arith.select %c, %x, %old : $T
          %w = arith.select %c, %k, %a : i64
          memref.store %v, %best[%c0] : memref<1x$T>
          memref.store %w, %at[%c0] : memref<1xi64>
        }""",
        "i64", below, in_order,
    ),
    "only where something else holds": Form(
        """affine.for %i = 0 to %n {
          %b = affine.load %bucket[%i] : memref<?xi32>
          %two = arith.constant 2 : i32
          %d = arith.cmpi sgt, %b, %two : i32
          scf.if %d {
            %x = affine.load %A[%i] : memref<?x$T>
            %old = memref.load %best[%c0] : memref<1x$T>
            %c = arith.cmpi sge, %old, %x : $T
            scf.if %c { } else { $STORES }
          }
        }""",
        "i32", greater, allowed,
    ),
    "row and column of a nest": Form(
        """%x0 = memref.load %best[%c0] : memref<1x$T>
        %k0 = memref.load %at[%c0] : memref<1xi64>
        %r0 = memref.load %row[%c0] : memref<1xi32>
        %0:3 = scf.for %i = %c0 to %n step %c1
            iter_args(%o0 = %x0, %a0 = %k0, %s0 = %r0) -> ($T, i64, i32) {
          %1:3 = scf.for %j = %c0 to %c7 step %c1
              iter_args(%old = %o0, %a = %a0, %s = %s0) -> ($T, i64, i32) {
            %x = memref.load %M[%i, %j] : memref<?x7x$T>
            %c = arith.cmpf ogt, %x, %old : $T
            %2:3 = scf.if %c -> ($T, i64, i32) {
              %k = arith.index_cast %i : index to i64
              %r = arith.index_cast %j : index to i32
              scf.yield %x, %k, %r : $T, i64, i32
            } else { scf.yield %old, %a, %s : $T, i64, i32 }
            scf.yield %2#0, %2#1, %2#2 : $T, i64, i32
          }
          scf.yield %1#0, %1#1, %1#2 : $T, i64, i32
        }
        memref.store %0#0, %best[%c0] : memref<1x$T>
        memref.store %0#1, %at[%c0] : memref<1xi64>
        memref.store %0#2, %row[%c0] : memref<1xi32>""",
        "f64", greater, in_rows, companions=("at", "row"),
    ),
    "a value and stores of a nest": Form(
        """%x0 = memref.load %best[%c0] : memref<1x$T>
        %0 = affine.for %i = 0 to %n iter_args(%o0 = %x0) -> $T {
          %1 = affine.for %j = 0 to 7 iter_args(%old = %o0) -> $T {
            %x = affine.load %M[%i, %j] : memref<?x7x$T>
            %c = arith.cmpi slt, %x, %old : $T
            %2 = scf.if %c -> $T {
              %k = arith.index_cast %i : index to i64
              %r = arith.index_cast %j : index to i32
              memref.store %k, %at[%c0] : memref<1xi64>
              memref.store %r, %row[%c0] : memref<1xi32>
              scf.yield %x : $T
            } else { scf.yield %old : $T }
            affine.yield %2 : $T
          }
          affine.yield %1 : $T
        }
        memref.store %0, %best[%c0] : memref<1x$T>""",
        "i32", less, in_rows, companions=("at", "row"),
    ),
    "of each bucket": Form(
        """affine.for %i = 0 to %n {
          %x = affine.load %A[%i] : memref<?x$T>
          %b = affine.load %bucket[%i] : memref<?xi32>
          %p = arith.index_cast %b : i32 to index
          %old = memref.load %best[%p] : memref<5x$T>
          %c = arith.cmpf olt, %old, %x : $T
          scf.if %c {
            %k = arith.index_cast %i : index to i64
            memref.store %x, %best[%p] : memref<5x$T>
            memref.store %k, %at[%p] : memref<5xi64>
          }
        }""",
        "f32", greater, in_buckets,
    ),
    "alone": Form(
        """affine.for %i = 0 to %n {
          %x = affine.load %A[%i] : memref<?x$T>
          %old = memref.load %best[%c0] : memref<1x$T>
          %c = arith.cmpf uge, %x, %old : $T
          %v = arith.select %c, %old, %x : $T
          memref.store %v, %best[%c0] : memref<1x$T>
        }""",
        "f64", less, in_order, companions=(),
    ),
}  # fmt: skip


def text_of(form: Form) -> str:
    size = "5" if "5x" in form.text else "1"
    body = form.text.replace("$STORES", STORES)
    return (HEAD + body + "\nreturn }").replace("$S", size).replace("$T", form.element)


def inputs(form: Form, n: int, seed: int) -> Arrays:
    """Few different values, so that many are alike; the extreme ones among them."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype({"f": "float", "i": "int"}[form.element[0]] + form.element[1:])
    if dtype.kind == "f":
        values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2], dtype)
    else:
        limits = np.iinfo(dtype)
        values = np.array([limits.min, limits.max, 0, -1, 1, 5, -7], dtype)
    values = rng.choice(values, 4, replace=False)
    size = 5 if "5x" in form.text else 1
    return {
        "A": rng.choice(values, n),
        "M": rng.choice(values, (n, 7)),
        "bucket": rng.integers(0, 5, n).astype(np.int32),
        "best": rng.choice(values, size),
        "at": rng.integers(100, 999, size),
        "row": rng.integers(100, 999, 1).astype(np.int32),
    }


def expected(form: Form, before: Arrays) -> Arrays:
    after = {name: array.copy() for name, array in before.items()}
    for element, x, belonging in form.candidates(after):
        if form.better(x, after["best"][element]):
            after["best"][element] = x
            for name, value in zip(form.companions, belonging, strict=False):
                after[name][element] = value
    return after


@pytest.mark.quick("*-three ranks")
@pytest.mark.mpi
@pytest.mark.parametrize(("n", "numbers"), SIZES)
@pytest.mark.parametrize("name", FORMS)
def test_it_finds_the_first(name: str, n: int, numbers: tuple[int, ...], cluster: Cluster) -> None:
    form = FORMS[name]
    for ranks in numbers:
        arrays = inputs(form, n, seed=17 * n + ranks)
        program = avial_lab.compile(
            text_of(form), arrays=arrays, scalars={"n": n}, ranks=ranks, name="leaders"
        )
        for seed in range(4):
            for key, array in inputs(form, n, seed).items():
                arrays[key][...] = array
            want = expected(form, arrays)
            program.run(cluster)
            for key, array in arrays.items():
                assert array.tobytes() == want[key].tobytes(), (ranks, seed, key, array, want[key])
        assert "avial.reduced" in program.stages["avial"].text
        assert program.plan is not None
        assert not any(phase.whole for phase in program.plan.phases)


MEMORY = {
    "b": "%b = memref.alloca() : memref<f64>",
    "p": "%p = memref.alloca() : memref<index>",
    "B": "memref.store %m, %b[] : memref<f64>",
    "P": "memref.store %none, %p[] : memref<index>",
}


@pytest.mark.parametrize("order", ["pPbB", "bBpP", "pbPB", "bpBP"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_wherever_their_memory_is_taken(order: str, ranks: int) -> None:
    """Also after the first store of the function: within the schedule, unknown to the ranks."""
    taken = "\n".join(MEMORY[each] for each in order)
    text = f"""
    func.func @f(%A: memref<17xf64>, %at: memref<1xindex>) {{
      %none = arith.constant 99 : index
      %m = arith.constant -1.0 : f64
      {taken}
      affine.for %i = 0 to 17 {{
        %v = affine.load %A[%i] : memref<17xf64>
        %w = memref.load %b[] : memref<f64>
        %c = arith.cmpf ogt, %v, %w : f64
        scf.if %c {{
          memref.store %v, %b[] : memref<f64>
          memref.store %i, %p[] : memref<index>
        }}
      }}
      %q = memref.load %p[] : memref<index>
      affine.store %q, %at[0] : memref<1xindex>
      return
    }}"""
    arrays = {"A": np.random.default_rng(5).random(17), "at": np.zeros(1, np.int64)}
    avial_lab.compile(text, arrays=arrays, ranks=ranks).run(check=True)
    assert arrays["at"][0] == arrays["A"].argmax()
