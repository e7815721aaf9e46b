"""What MLIR's own affine-parallelize makes parallel is parallel here."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from mlir import ir
from mlir.passmanager import PassManager

import kernels
from avial_lab.compiler.analysis.parallelism.reductions import forbidding
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import LoopKind, Scop
from tests.compiler.analysis.polyhedral.nests import For, If, Nest, Node, affine_text, nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.quick import examples


def loops_in(op: ir.Operation) -> list[str]:
    """Names of the loops' operations, outer before inner, in textual order."""
    found: list[str] = []
    for region in op.regions:
        for body in region.blocks:
            for view in body.operations:
                inner = view.operation
                if inner.name.endswith((".for", ".parallel")):
                    found.append(inner.name)
                found += loops_in(inner)
    return found


def by_upstream(text: str) -> list[bool]:
    """For each affine.for of the text, whether affine-parallelize makes it parallel."""
    module = ir.Module.parse(text)
    before = loops_in(module.operation)
    PassManager.parse("builtin.module(func.func(affine-parallelize{parallel-reductions}))").run(
        module.operation
    )
    after = loops_in(module.operation)
    assert len(before) == len(after)
    return [a == "affine.parallel" for a, b in zip(after, before, strict=True) if b == "affine.for"]


def by_us(scop: Scop) -> list[bool]:
    known = dependences(scop)
    return [
        not forbidding(loop, scop, known) for loop in scop.loops if loop.op.name == "affine.for"
    ]


def agree(text: str) -> tuple[int, int]:
    """How many loops each finds parallel; ours must hold all of upstream's."""
    module = ir.Module.parse(text)
    function = next(op for op in module.body.operations if op.operation.name == "func.func")
    ours, theirs = by_us(read_scop(function)), by_upstream(text)
    assert len(ours) == len(theirs)
    missed = [k for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) if b and not a]
    assert missed == []
    return sum(ours), sum(theirs)


@pytest.mark.parametrize("name", kernels.names())
@pytest.mark.parametrize("sized", [False, True])
def test_kernels(name: str, sized: bool) -> None:
    kernel = kernels.load(name)
    sizes = kernel.datasets[kernels.Dataset.MINI] if sized else None
    with ir.Context():
        agree(kernel.mlir(kernel.elements[0], sizes))


@pytest.mark.parametrize("name", kernels.names())
def test_a_kernel_is_analysed_within_a_third_of_a_second(name: str) -> None:
    kernel = kernels.load(name)
    with ir.Context():
        module = ir.Module.parse(kernel.mlir(kernel.elements[0]))
        took = []
        for _ in range(2):  # the first may load a dialect's Python classes
            start = time.process_time()
            by_us(read_scop(module.body.operations[0]))
            took.append(time.process_time() - start)
    assert min(took) <= 0.3


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(nest=nests)
def test_random_nests(nest: Nest) -> None:
    with ir.Context():
        agree(affine_text(without_else(nest)))


def without_else(nodes: Nest) -> Nest:
    """Upstream takes the `else` of an affine.if to run where the condition holds.

    So it calls `affine.if (i == 5) {} else { A[0] = x }` parallel, which it is not.
    """
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, If):
            kept.append(replace(node, otherwise=()))
        elif isinstance(node, For):
            kept.append(replace(node, body=without_else(node.body)))
        else:
            kept.append(node)
    return tuple(kept)


def test_whiles_are_never_parallel() -> None:
    with ir.Context():
        module = ir.Module.parse(
            """func.func @f(%x: i1) {
              scf.while : () -> () { scf.condition(%x) } do { scf.yield }
              return }"""
        )
        scop = read_scop(module.body.operations[0])
        assert [loop.kind for loop in scop.loops] == [LoopKind.WHILE]
        (against,) = forbidding(scop.loops[0], scop)
        assert "decides after each iteration" in against.reason()
