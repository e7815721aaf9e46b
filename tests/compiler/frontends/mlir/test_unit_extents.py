"""Windows that drop extents of 1: which are written otherwise, and that upstream needs it."""

from __future__ import annotations

import pytest
from mlir import ir, passmanager

from avial_lab.compiler.frontends.mlir.unit_extents import collapse_unit_extents

OPEN = "memref<1x?x?x?xf32>"


def subview(source: str, cut: str, result: str) -> str:
    return f"""func.func @f(%A: {source}, %n: index) -> {result} {{
  %v = memref.subview %A{cut} : {source} to {result}
  return %v : {result}
}}"""


def collapsed(text: str, context: ir.Context) -> str:
    with context:
        module = ir.Module.parse(text)
        collapse_unit_extents(module.operation)
        module.operation.verify()
    return str(module)


ONE_OF_TWO = subview(
    OPEN, "[0, 1, 1, 1][1, 2, 1, 2][1, 1, 1, 1]", "memref<1x2x2xf32, strided<[?, ?, 1], offset: ?>>"
)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        (ONE_OF_TWO, "[[0], [1, 2], [3]]"),
        (
            subview(
                OPEN,
                "[0, 1, 1, 1][1, %n, 1, %n][1, 1, 1, 1]",
                "memref<1x?x?xf32, strided<[?, ?, 1], offset: ?>>",
            ),
            "[[0], [1, 2], [3]]",
        ),
        (  # an open extent may become one of 1
            subview(
                OPEN,
                "[0, 1, 1, 1][1, %n, 2, 2][1, 1, 1, 1]",
                "memref<?x2x2xf32, strided<[?, ?, 1], offset: ?>>",
            ),
            "[[0, 1], [2], [3]]",
        ),
        (  # its strides tell which of several side by side is dropped
            subview(
                "memref<?x?x?x2xf32>",
                "[0, 0, 0, 0][1, 1, 1, 1][1, 1, 1, 1]",
                "memref<1x1x1xf32, strided<[?, ?, 1]>>",
            ),
            "[[0], [1, 2], [3]]",
        ),
        (  # a step that makes one dimension's stride another's
            subview(
                "memref<?x3x1xf32>",
                "[%n, 0, 0][1, 2, 1][1, 2, 1]",
                "memref<2x1xf32, strided<[2, 1], offset: ?>>",
            ),
            "[[0, 1], [2]]",
        ),
        (  # The first goes: its group ends with an open extent, whose stride MLIR leaves open.
            subview(
                OPEN,
                "[0, 1, 1, 1][1, %n, 1, %n][1, 2, 1, 1]",
                "memref<?x1x?xf32, strided<[?, ?, 1], offset: ?>>",
            ),
            "[[0, 1], [2], [3]]",
        ),
    ],
)
def test_a_window_says_what_it_drops(text: str, groups: str, context: ir.Context) -> None:
    assert f"memref.collapse_shape %subview {groups}" in collapsed(text, context)


@pytest.mark.parametrize(
    "text",
    [
        subview(  # all of them are dropped
            OPEN,
            "[0, 1, 1, 1][1, 2, 1, 2][1, 1, 1, 1]",
            "memref<2x2xf32, strided<[?, 1], offset: ?>>",
        ),
        subview(  # none
            OPEN,
            "[0, 1, 1, 1][1, 2, 1, 2][1, 1, 1, 1]",
            "memref<1x2x1x2xf32, strided<[?, ?, ?, 1], offset: ?>>",
        ),
        subview(  # strides tell
            "memref<1x4x3x5xf32>",
            "[0, 1, 1, 1][1, 2, 1, 2][1, 1, 1, 1]",
            "memref<1x2x2xf32, strided<[60, 15, 1], offset: 21>>",
        ),
        subview(  # no extent is left
            OPEN, "[0, 1, 1, 1][1, 1, 1, 1][1, 1, 1, 1]", "memref<f32, strided<[], offset: ?>>"
        ),
    ],
)
def test_a_window_of_which_strides_tell_it_stays(text: str, context: ir.Context) -> None:
    assert "collapse_shape" not in collapsed(text, context)


def test_upstream_guesses_wrong(context: ir.Context) -> None:
    """llvm/llvm-project PR 217361. Where this fails, `collapse_unit_extents` may go."""
    with context:
        module = ir.Module.parse(
            f"""func.func @f(%a: memref<1x4x3x5xf32>) -> f32 {{
  %A = memref.cast %a : memref<1x4x3x5xf32> to {OPEN}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = memref.subview %A[0, 1, 1, 1][1, 2, 1, 2][1, 1, 1, 1]
    : {OPEN} to memref<1x2x2xf32, strided<[?, ?, 1], offset: ?>>
  %x = memref.load %v[%c0, %c1, %c0] : memref<1x2x2xf32, strided<[?, ?, 1], offset: ?>>
  return %x : f32
}}"""
        )
        passes = "builtin.module(expand-strided-metadata,canonicalize)"
        with pytest.raises(ir.MLIRError, match="with size = 2 instead of 1 in dim = 0"):
            passmanager.PassManager.parse(passes).run(module.operation)
