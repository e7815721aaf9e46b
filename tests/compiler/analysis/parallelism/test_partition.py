"""Which parts of a function are split, which run around them, which on one rank, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from mlir import ir
from mlir.passmanager import PassManager

import kernels
from avial_lab.compiler.analysis.parallelism.partition import (
    Around,
    Node,
    Scalar,
    Sequential,
    Split,
    partition,
)
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Loop
from avial_lab.compiler.analysis.polyhedral.trip_counts import trip_count
from avial_lab.compiler.ir.locations import name_of
from tests.compiler.analysis.polyhedral.nests import (
    Event,
    Nest,
    affine_text,
    near_nests,
    nests,
    scf_text,
    trace,
)
from tests.compiler.analysis.polyhedral.test_properties import SLOW, named
from tests.compiler.analysis.polyhedral.test_upstream import by_upstream, without_else
from tests.compiler.analysis.polyhedral.texts import named_module
from tests.quick import examples


def outline(nodes: Sequence[Node], depth: int = 0) -> Iterator[str]:
    """One line for each node but the scalar ones, indented as they stand in each other."""
    for node in nodes:
        indent = "  " * depth
        if isinstance(node, Split):
            yield indent + _split(node)
        elif isinstance(node, Around):
            yield f"{indent}around {_name(node.op)}"
            yield from outline(node.children, depth + 1)
        elif isinstance(node, Sequential):
            yield f"{indent}sequential {_name(node.op)}: {node.reasons[0].partition(': line')[0]}"


def _split(node: Split) -> str:
    parts = [f"split {' '.join(map(str, node.loops))}"]
    parts += [f"in {_name(node.op)}"] if node.loops[0].op != node.op else []
    parts += [f"grid {' '.join(map(str, node.second))}"] if node.second else []
    parts += [f"with {', '.join(map(str, node.reductions))}"] if node.reductions else []
    parts += [f"private {', '.join(map(str, node.private))}"] if node.private else []
    parts += ["triangular"] if node.triangular else []
    parts += [f"at {node.anchor}"] if node.anchor is not None else ["anywhere"]
    return ", ".join(parts)


def _name(op: ir.Operation) -> str:
    """A loop's variable, else the operation's name."""
    arguments = op.regions[0].blocks[0].arguments if len(op.regions) else []
    return (name_of(arguments[0].location) if len(arguments) else None) or op.name


def of_kernel(name: str) -> list[str]:
    kernel = kernels.load(name)
    sizes = kernel.datasets[kernels.Dataset.LARGE]
    element = "f64" if "f64" in kernel.elements else kernel.elements[0]
    context = ir.Context()
    with context:
        module = named_module(kernel.mlir(element, sizes), context)
        PassManager.parse("builtin.module(func.func(convert-linalg-to-loops,canonicalize))").run(
            module.operation
        )
        return outline_of(module)


def outline_of(module: ir.Module) -> list[str]:
    """The nodes of the module's first function."""
    return list(outline(partition(module.body.operations[0])))


KERNELS: dict[str, list[str]] = {
    "2mm": snapshot(
        [
            "split i, grid j, at tmp dimension 0 offset +0",
            "split i, grid j, at D dimension 0 offset +0",
        ]
    ),
    "3mm": snapshot(
        [
            "split i, grid j, at E dimension 0 offset +0",
            "split i, grid j, at F dimension 0 offset +0",
            "split i, grid j, at G dimension 0 offset +0",
        ]
    ),
    "adi": snapshot(
        [
            "around t",
            "  split i, at v dimension 1 offset +0",
            "  split i, at u dimension 0 offset +0",
        ]
    ),
    "atax": snapshot(
        [
            "split i, at y dimension 0 offset +0",
            "split i, with sum of y over i, at tmp dimension 0 offset +0",
        ]
    ),
    "bicg": snapshot(
        [
            "split i, at s dimension 0 offset +0",
            "split i, with sum of s over i, at q dimension 0 offset +0",
        ]
    ),
    "black-scholes": snapshot(["split i, at call dimension 0 offset +0"]),
    "cholesky": snapshot(["sequential i: A[j, k] is written by an earlier iteration of i"]),
    "correlation": snapshot(
        [
            "split j, at mean dimension 0 offset +0",
            "split j, at stddev dimension 0 offset +0",
            "split i, grid j, at data dimension 0 offset +0",
            "split i, triangular, at corr dimension 0 offset +0",
        ]
    ),
    "covariance": snapshot(
        [
            "split j, at mean dimension 0 offset +0",
            "split i, grid j, at data dimension 0 offset +0",
            "split i, triangular, at cov dimension 0 offset +0",
        ]
    ),
    "deriche": snapshot(
        [
            "split i, at y1 dimension 0 offset +0",
            "split i, at y2 dimension 0 offset +0",
            "split i, grid j, at imgOut dimension 0 offset +0",
            "split j, at y1 dimension 1 offset +0",
            "split j, at y2 dimension 1 offset +0",
            "split i, grid j, at imgOut dimension 0 offset +0",
        ]
    ),
    "doitgen": snapshot(
        [
            "around r",
            "  around q",
            "    split p, at sum dimension 0 offset +0",
            "    split p, at A dimension 2 offset +0",
        ]
    ),
    "durbin": snapshot(["sequential k: carried is passed from one iteration of k to the next"]),
    "fdtd-2d": snapshot(
        [
            "around t",
            "  split j, at ey dimension 1 offset +0",
            "  split i, grid j, at ey dimension 0 offset +0",
            "  split i, grid j, at ex dimension 0 offset +0",
            "  split i, grid j, at hz dimension 0 offset +0",
        ]
    ),
    "floyd-warshall": snapshot(
        ["sequential k: path[i, k] is written by an earlier iteration of k"]
    ),
    "game-of-life": snapshot(
        [
            "around t",
            "  split i, grid j, at B dimension 0 offset +0",
            "  split i, grid j, at A dimension 0 offset +0",
        ]
    ),
    "gemm": snapshot(["split i, grid j j, at C dimension 0 offset +0"]),
    "gemver": snapshot(
        [
            "split i, grid j, at A dimension 0 offset +0",
            "split i, at x dimension 0 offset +0",
            "split i, at x dimension 0 offset +0",
            "split i, at w dimension 0 offset +0",
        ]
    ),
    "gesummv": snapshot(["split i, at tmp dimension 0 offset +0"]),
    "gramschmidt": snapshot(
        [
            "around k",
            "  sequential i: a value that affine.for computes is used after it",
            "  split i, at Q dimension 0 offset +0",
            "  split j, at R dimension 1 offset +0",
        ]
    ),
    "heat-3d": snapshot(
        [
            "around t",
            "  split i, grid j, at B dimension 0 offset +0",
            "  split i, grid j, at A dimension 0 offset +0",
        ]
    ),
    "histogram": snapshot(
        [
            "split b, at counts dimension 0 offset +0",
            "split i, with sum of counts over i, at data dimension 0 offset +0",
        ]
    ),
    "jacobi-1d": snapshot(
        [
            "around t",
            "  split i, at B dimension 0 offset +0",
            "  split i, at A dimension 0 offset +0",
        ]
    ),
    "jacobi-2d": snapshot(
        [
            "around t",
            "  split i, grid j, at B dimension 0 offset +0",
            "  split i, grid j, at A dimension 0 offset +0",
        ]
    ),
    "lu": snapshot(["sequential i: A[k, j] is written by an earlier iteration of i"]),
    "ludcmp": snapshot(
        [
            "sequential i: A[k, j] is written by an earlier iteration of i",
            "sequential i: y[j] is written by an earlier iteration of i",
            "sequential step: x[j] is written by an earlier iteration of step",
        ]
    ),
    "mlp": snapshot(
        [
            "split i, grid j, at h dimension 0 offset +0",
            "split i, grid j, at h dimension 0 offset +0",
            "split i, grid j, at h dimension 0 offset +0",
            "split i, grid j, at y dimension 0 offset +0",
            "split i, grid j, at y dimension 0 offset +0",
        ]
    ),
    "mvt": snapshot(
        ["split i, at x1 dimension 0 offset +0", "split i, at x2 dimension 0 offset +0"]
    ),
    "n-body": snapshot(
        [
            "around t",
            "  split i, at velocity dimension 0 offset +0",
            "  split i, at position dimension 0 offset +0",
        ]
    ),
    "nussinov": snapshot(
        ["sequential step: table[-step + 2500, j] is written by the previous iteration of step"]
    ),
    "prefix-sum": snapshot(["sequential i: sums[i - 1] is written by the previous iteration of i"]),
    "seidel-2d": snapshot(
        ["sequential t: A[i - 1, j - 1] is written by an earlier iteration of t"]
    ),
    "seidel-9pt": snapshot(
        ["sequential t: A[i + p - 1, j + q - 1] is written by an earlier iteration of t"]
    ),
    "spmv": snapshot(["split i, at y dimension 0 offset +0"]),
    "stencil-3d-27pt": snapshot(["split i, grid j, at B dimension 0 offset +0"]),
    "stencil-3d-7pt": snapshot(
        [
            "around t",
            "  split i, grid j, at B dimension 0 offset +0",
            "  split i, grid j, at A dimension 0 offset +0",
        ]
    ),
    "symm": snapshot(["split j, in i, at C dimension 1 offset +0"]),
    "syr2k": snapshot(["split i, triangular, at C dimension 0 offset +0"]),
    "syrk": snapshot(["split i, triangular, at C dimension 0 offset +0"]),
    "trisolv": snapshot(["sequential i: x[j] is written by an earlier iteration of i"]),
    "trmm": snapshot(["split j, in i, at B dimension 1 offset +0"]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    assert of_kernel(name) == KERNELS[name]


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_partitioned_within_a_third_of_a_second(name: str) -> None:
    kernel = kernels.load(name)
    with ir.Context():
        module = ir.Module.parse(kernel.mlir(kernel.elements[0]))
        took = []
        for _ in range(2):  # the first may load a dialect's Python classes
            start = time.process_time()
            partition(module.body.operations[0])
            took.append(time.process_time() - start)
    assert min(took) <= 0.3


CASES = {
    "temporaries at the function's top, as Polygeist puts them": (
        """%t = memref.alloca() : memref<1xf64>
        affine.for %i = 0 to 100 {
          %a = affine.load %A[%i] : memref<100xf64>
          affine.store %a, %t[0] : memref<1xf64>
          %b = affine.load %t[0] : memref<1xf64>
          affine.store %b, %B[%i, 0] : memref<100x100xf64>
        }
        affine.for %i = 0 to 100 {
          %a = affine.load %B[%i, 0] : memref<100x100xf64>
          affine.store %a, %t[0] : memref<1xf64>
          %b = affine.load %t[0] : memref<1xf64>
          affine.store %b, %A[%i] : memref<100xf64>
        }""",
        snapshot(
            [
                "split i, private tmp, at B dimension 0 offset +0",
                "split i, private tmp, at A dimension 0 offset +0",
            ]
        ),
    ),
    "a temporary whose last value counts": (
        """%t = memref.alloca() : memref<1xf64>
        affine.for %i = 0 to 100 {
          %a = affine.load %A[%i] : memref<100xf64>
          affine.store %a, %t[0] : memref<1xf64>
          %b = affine.load %t[0] : memref<1xf64>
          affine.store %b, %B[%i, 0] : memref<100x100xf64>
        }
        %last = affine.load %t[0] : memref<1xf64>
        affine.store %last, %A[0] : memref<100xf64>""",
        snapshot(["sequential i: tmp[0] is written by an earlier iteration of i"]),
    ),
    "a temporary that only some iterations write": (
        """%t = memref.alloca() : memref<1xf64>
        affine.for %i = 0 to 100 {
          affine.if affine_set<(i) : (i mod 2 == 0)>(%i) {
            %a = affine.load %A[%i] : memref<100xf64>
            affine.store %a, %t[0] : memref<1xf64>
          }
          %b = affine.load %t[0] : memref<1xf64>
          affine.store %b, %B[%i, 0] : memref<100x100xf64>
        }""",
        snapshot(["sequential i: tmp[0] is written by an earlier iteration of i"]),
    ),
    "a temporary row, handed on from step to step": (
        """%t = memref.alloc() : memref<100xf64>
        affine.for %s = 0 to 9 {
          affine.for %i = 1 to 100 {
            affine.for %j = 0 to 100 {
              %a = affine.load %t[%j] : memref<100xf64>
              affine.store %a, %B[%i, %j] : memref<100x100xf64>
            }
          }
          affine.for %i = 0 to 50 {
            affine.for %j = 0 to 100 {
              %b = affine.load %B[0, %j] : memref<100x100xf64>
              affine.store %b, %t[%j] : memref<100xf64>
            }
          }
        }""",
        snapshot(["split j j, in s, at B dimension 1 offset +0"]),
    ),
    "numbers that are read outside of the loops that are split": (
        """affine.for %k = 0 to 100 {
          %a = affine.load %A[%k] : memref<100xf64>
          affine.for %i = 0 to 100 {
            %b = affine.load %B[%i, %k] : memref<100x100xf64>
            %c = arith.mulf %a, %b : f64
            affine.store %c, %B[%i, %k] : memref<100x100xf64>
          }
          affine.for %i = 1 to 100 {
            %b = affine.load %B[%i, 0] : memref<100x100xf64>
            %c = arith.addf %a, %b : f64
            affine.store %c, %B[%i, 0] : memref<100x100xf64>
          }
        }""",
        snapshot(["split i i, in k, at B dimension 0 offset +0"]),
    ),
    "numbers that the nest writes": (
        """affine.for %k = 0 to 100 {
          %a = affine.load %B[0, %k] : memref<100x100xf64>
          affine.for %i = 0 to 100 {
            %b = affine.load %B[%i, 0] : memref<100x100xf64>
            %c = arith.addf %a, %b : f64
            affine.store %c, %B[%i, 0] : memref<100x100xf64>
          }
        }""",
        snapshot(["around k", "  split i, at B dimension 0 offset +0"]),
    ),
    "a short loop around a long one": (
        """affine.for %c = 0 to 3 {
          affine.for %i = 0 to 100 { affine.store %x, %B[%c, %i] : memref<100x100xf64> }
        }""",
        snapshot(["split i, in c, at B dimension 1 offset +0"]),
    ),
    "a long loop around a short one": (
        """affine.for %i = 0 to 100 {
          affine.for %c = 0 to 3 { affine.store %x, %B[%i, %c] : memref<100x100xf64> }
        }""",
        snapshot(["split i, at B dimension 0 offset +0"]),
    ),
    "an inner loop with a step may start anywhere": (
        """affine.for %i = 0 to 100 {
          affine.for %j = affine_map<(i) -> (i)>(%i) to 100 step 2 {
            %b = affine.load %A[%j] : memref<100xf64>
            affine.store %b, %A[%j] : memref<100xf64>
          }
        }""",
        snapshot(["around i", "  split j, at A dimension 0 offset +0"]),
    ),
    "dimensions of a parallel loop": (
        """%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
          %a = memref.load %B[%c0, %j] : memref<100x100xf64>
          memref.store %a, %B[%i, %j] : memref<100x100xf64>
        }""",
        snapshot(["split j, at B dimension 1 offset +0"]),
    ),
    "a dot product in memory": (
        """%s = memref.alloc() : memref<f64>
        affine.store %x, %s[] : memref<f64>
        affine.for %i = 3 to 100 {
          %o = affine.load %s[] : memref<f64>
          %a = affine.load %A[%i] : memref<100xf64>
          %v = arith.addf %o, %a : f64
          affine.store %v, %s[] : memref<f64>
        }""",
        snapshot(["split i, with sum of tmp over i, at A dimension 0 offset +0"]),
    ),
    "a dot product in a register": (
        """%s = affine.for %i = 0 to 100 iter_args(%o = %x) -> f64 {
          %a = affine.load %A[%i] : memref<100xf64>
          %v = arith.addf %o, %a : f64
          affine.yield %v : f64
        }
        affine.store %s, %A[0] : memref<100xf64>""",
        snapshot(["sequential i: a value that affine.for computes is used after it"]),
    ),
    "half a float cannot be summed up in parts": (
        """%s = memref.alloc() : memref<f16>
        %h = memref.alloc() : memref<100xf16>
        affine.for %i = 0 to 100 {
          %o = affine.load %s[] : memref<f16>
          %a = affine.load %h[%i] : memref<100xf16>
          %v = arith.addf %o, %a : f16
          affine.store %v, %s[] : memref<f16>
        }""",
        snapshot(["sequential i: partial results of tmp cannot be combined as f16"]),
    ),
    "a sum that is looked at on the way": (
        """affine.for %i = 1 to 100 {
          %o = affine.load %B[0, 0] : memref<100x100xf64>
          %a = affine.load %A[%i] : memref<100xf64>
          %v = arith.addf %o, %a : f64
          affine.store %v, %B[0, 0] : memref<100x100xf64>
          affine.store %x, %B[%i, 1] : memref<100x100xf64>
        }""",
        snapshot(["sequential i: B, which is reduced, is also written as B[i, 1]"]),
    ),
    "a maximum, by comparison": (
        """affine.for %i = 0 to 100 {
          %o = affine.load %B[0, 0] : memref<100x100xf64>
          %a = affine.load %A[%i] : memref<100xf64>
          %c = arith.cmpf ogt, %a, %o : f64
          %v = arith.select %c, %a, %o : f64
          affine.store %v, %B[0, 0] : memref<100x100xf64>
        }""",
        snapshot(["split i, with maximum of B over i, at A dimension 0 offset +0"]),
    ),
    "a maximum that a NaN makes start again": (
        """affine.for %i = 0 to 100 {
          %o = affine.load %B[0, 0] : memref<100x100xf64>
          %a = affine.load %A[%i] : memref<100xf64>
          %c = arith.cmpf ogt, %o, %a : f64
          %v = arith.select %c, %o, %a : f64
          affine.store %v, %B[0, 0] : memref<100x100xf64>
        }""",
        snapshot(["sequential i: B[0, 0] is written by an earlier iteration of i"]),
    ),
    "until it says so": (
        """scf.while : () -> () {
          %e = affine.load %A[0] : memref<100xf64>
          %c = arith.cmpf ogt, %e, %x : f64
          scf.condition(%c)
        } do {
          affine.for %i = 0 to 100 { affine.store %x, %B[%i, 0] : memref<100x100xf64> }
          scf.yield
        }""",
        snapshot(["around scf.while", "  split i, at B dimension 0 offset +0"]),
    ),
    "on a condition": (
        """%e = affine.load %A[0] : memref<100xf64>
        %c = arith.cmpf ogt, %e, %x : f64
        scf.if %c {
          affine.for %i = 0 to 100 { affine.store %x, %B[%i, 0] : memref<100x100xf64> }
        } else {
          affine.store %x, %A[1] : memref<100xf64>
        }""",
        snapshot(["around scf.if", "  split i, at B dimension 0 offset +0"]),
    ),
    "a call between nests": (
        """affine.for %t = 0 to 9 {
          affine.for %i = 0 to 100 { affine.store %x, %B[%i, 0] : memref<100x100xf64> }
          func.call @g(%B) : (memref<100x100xf64>) -> ()
        }""",
        snapshot(
            [
                "around t",
                "  split i, at B dimension 0 offset +0",
                "  sequential func.call: the effects of func.call are not known",
            ]
        ),
    ),
    "a call in a nest": (
        """affine.for %i = 0 to 100 {
          func.call @g(%B) : (memref<100x100xf64>) -> ()
        }""",
        snapshot(["sequential i: B[…] may be written by an earlier iteration of i"]),
    ),
    "a copy in one piece": (
        """%s = memref.alloc() : memref<100xf64>
        memref.copy %A, %s : memref<100xf64> to memref<100xf64>""",
        snapshot(["sequential memref.copy: memref.copy is not a loop that can be divided"]),
    ),
    "an indirect write": (
        """affine.for %i = 0 to 100 {
          %k = affine.load %p[%i] : memref<100xindex>
          memref.store %x, %A[%k] : memref<100xf64>
        }""",
        snapshot(["sequential i: A[p[i]] may be written again by a later iteration of i"]),
    ),
    "a loop with one iteration": (
        """affine.for %i = 0 to 1 {
          affine.for %j = 0 to 100 { affine.store %x, %B[%i, %j] : memref<100x100xf64> }
        }""",
        snapshot(["split j, in i, at B dimension 1 offset +0"]),
    ),
    "nothing is written": (
        """affine.for %i = 0 to 100 { %a = affine.load %A[%i] : memref<100xf64> }""",
        snapshot(["sequential i: affine.for writes no array"]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, context: ir.Context) -> None:
    body, expected = CASES[name]
    arguments = "%A: memref<100xf64>, %B: memref<100x100xf64>, %p: memref<100xindex>, "
    text = f"""func.func @f({arguments}%x: f64, %n: index) {{
      {body}
      return }}
    func.func private @g(memref<100x100xf64>)"""
    assert outline_of(named_module(text, context)) == expected


# -- against running


@dataclass(frozen=True)
class Divided:
    """A split by the numbers of its loops in the text."""

    nest: int
    loops: frozenset[int]
    private: frozenset[str]

    def turn(self, event: Event) -> tuple[int, ...] | None:
        """The iteration of the loops around the nest; None for what is not in the nest."""
        if self.nest not in event.loops:
            return None
        return event.iteration[: event.loops.index(self.nest)]

    def value(self, event: Event) -> int | None:
        """That of the chosen loop; None where the event is in none of them."""
        values = [v for k, v in zip(event.loops, event.iteration, strict=True) if k in self.loops]
        assert len(values) <= 1
        return values[0] if values else None


def divisions(function: ir.OpView) -> list[Divided]:
    numbers = {loop.op: k for k, loop in enumerate(read_scop(function).loops)}

    def number(loops: Sequence[Loop]) -> frozenset[int]:
        return frozenset(numbers[loop.op] for loop in loops)

    return [
        Divided(numbers[node.op], number(loops), frozenset(array.name for array in node.private))
        for node in splits_in(partition(function))
        for loops in (node.loops, node.second)
        if loops
    ]


def splits_in(nodes: Sequence[Node]) -> Iterator[Split]:
    for node in nodes:
        if isinstance(node, Split):
            yield node
        elif isinstance(node, Around):
            yield from splits_in(node.children)


def check(divided: Divided, events: Sequence[Event]) -> None:
    """No two events at different values meet, but in private arrays, of which each value reads
    only what it wrote.
    """
    touched: dict[object, list[tuple[Event, int | None]]] = {}
    last: dict[object, tuple[object, int | None]] = {}
    for event in events:
        turn, value = divided.turn(event), divided.value(event)
        array = event.element[0]
        if array in divided.private:
            writer = last.get(event.element)
            if event.writes:
                last[event.element] = turn, value
            elif turn is not None:
                assert writer == (turn, value), (divided, event)
            else:
                assert writer is None or writer[0] is None, (divided, event)
        elif turn is not None:
            for other, theirs in touched.setdefault((turn, event.element), []):
                if other.writes or event.writes:
                    assert theirs == value, (divided, other, event)
                    assert value is not None, (divided, other, event)
            touched[turn, event.element].append((event, value))


@pytest.mark.parametrize("spelling", [affine_text, scf_text])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(nest=nests | near_nests | near_nests, n=st.integers(0, 5), own=st.booleans())
def test_parts_do_not_meet(spelling: Callable[[Nest], str], nest: Nest, n: int, own: bool) -> None:
    events = trace(nest, n)
    with ir.Context():
        text = spelling(nest)
        module = named(with_own_arrays(text) if own else text)
        for divided in divisions(module.body.operations[0]):
            check(divided, events)


def with_own_arrays(text: str) -> str:
    """The arrays allocated by the function instead of given to it."""
    head = text.replace("%A: memref<?xf32>, %B: memref<?x?xf32>, ", "", 1)
    signature, brace, body = head.partition(" {\n")
    allocations = """
      %A = memref.alloc(%n) : memref<?xf32> loc("A")
      %B = memref.alloc(%n, %n) : memref<?x?xf32> loc("B")
    """
    return signature + brace + allocations + body


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(nest=nests)
def test_what_upstream_finds_parallel_is_split(nest: Nest) -> None:
    text = affine_text(without_else(nest))
    with ir.Context():
        theirs = by_upstream(text)
        module = ir.Module.parse(text)
        function = module.body.operations[0]
        outermost = [
            (loop, parallel)
            for loop, parallel in zip(read_scop(function).loops, theirs, strict=True)
            if loop.depth == 0 and any(loop in s.loops for s in read_scop(function).statements)
        ]
        nodes = {n.op: n for n in partition(function) if not isinstance(n, Scalar)}
        for loop, parallel in outermost:
            if parallel and trip_count(loop) not in (0, 1):
                node = nodes[loop.op]
                assert isinstance(node, Split) or "writes no array" in node.reasons[0]
