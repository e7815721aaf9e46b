"""Work in slices of a split loop, against counting."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.slice_costs import slice_weights
from avial_lab.compiler.ir.dialects import register

LOWER = "affine.for %i = 0 to 12 { affine.for %j = 0 to affine_map<(d) -> (d + 1)>(%i) { BODY } }"
UPPER = "affine.for %i = 0 to 12 { affine.for %j = affine_map<(d) -> (d)>(%i) to 12 { BODY } }"
LATER = "affine.for %i = 4 to 12 { affine.for %j = 0 to affine_map<(d) -> (d - 3)>(%i) { BODY } }"
PYRAMID = (
    "affine.for %i = 0 to 12 { affine.for %j = 0 to affine_map<(d) -> (d)>(%i) {"
    " affine.for %k = 0 to affine_map<(d) -> (d)>(%j) { BODY } } }"
)


def weights(nest: str, slices: int, extent: int = 12) -> list[int]:
    text = "func.func @f(%A: memref<12x12xf64>) {\n%z = arith.constant 0.0 : f64\n" + nest.replace(
        "BODY", "affine.store %z, %A[%i, %j] : memref<12x12xf64>"
    ) + "\nreturn\n}"  # fmt: skip
    context = ir.Context()
    register(context)
    module = ir.Module.parse(text, context)
    scop = read_scop(module.body.operations[0])
    return slice_weights(scop, scop.loops[:1], first=0, extent=extent, slices=slices)


@pytest.mark.parametrize(
    ("nest", "expected"),
    [
        (LOWER, [2, 5, 8, 11]),
        (UPPER, [11, 8, 5, 2]),
        (LATER, [0, 1, 4, 7]),
    ],
)
def test_the_middle_of_each_slice_counts(nest: str, expected: list[int]) -> None:
    assert weights(nest, 4) == expected


def test_every_value_is_a_slice_of_its_own_where_there_are_as_many() -> None:
    assert weights(LOWER, 12) == [i + 1 for i in range(12)]


def test_a_pyramid_weighs_as_the_box_around_it() -> None:
    # j from 1 (k = 0 has to exist) to i - 1, k from 0 to i - 2; a store and nothing else.
    assert weights(PYRAMID, 12)[2:] == [(i - 1) * (i - 1) for i in range(2, 12)]


def test_no_more_slices_than_values() -> None:
    assert len(weights(LOWER, 100)) == 12


def test_weights_of_arrays_of_any_size_are_in_proportion() -> None:
    """2⁴⁰ stands for an end that is not known, and its square for two loops of them."""
    far = 1 << 40
    line = weights(LOWER.replace("12", str(far)), 4, far)
    assert [round(7 * k / line[-1]) for k in line] == [1, 3, 5, 7]
    square = weights(PYRAMID.replace("12", str(far)), 4, far)
    assert [round(49 * k / square[-1]) for k in square] == [1, 9, 25, 49]
    assert sum(square) < 1 << 63
