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
from avial_lab.dialects.places import name_of
from avial_lab.polyhedra import Loop, read_scop
from avial_lab.polyhedra.bounds import trip_count
from avial_lab.polyhedra.partition import Around, Node, Scalar, Sequential, Split, partition
from tests.polyhedra.nests import (
    Event,
    Nest,
    affine_text,
    near_nests,
    nests,
    scf_text,
    trace,
)
from tests.polyhedra.test_properties import SLOW, named
from tests.polyhedra.test_upstream import by_upstream, without_else
from tests.polyhedra.texts import named_module


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
    "durbin": snapshot(["sequential k: carried is handed from one iteration of k to the next"]),
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
        ["sequential step: table[-step + 2500, j] is written by the iteration of step before"]
    ),
    "prefix-sum": snapshot(["sequential i: sums[i - 1] is written by the iteration of i before"]),
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
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
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


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
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
                assert isinstance(node, Split) or "written nowhere" in node.reasons[0]
