"""What a block of steps does to all that is left: in as few contractions as there are forms."""

from __future__ import annotations

import pytest

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from tests.compiler.analysis.patterns.test_panel_solves import eliminated
from tests.compiler.passes.loops.contractions.test_block_contractions import (
    LU,
    WIDE,
    check,
    factorisation,
)

UPDATE = "%new = math.fma %m, %u, %a : f64"


def test_both_sides_of_a_diagonal_are_one_square() -> None:
    (update,) = eliminated(LU).updates
    space = update.contraction.space
    beyond = (Affine.of("first").plus(Affine(16)),)
    assert (space.rows.lows, space.columns.lows) == (beyond, beyond)
    assert space.columns_of_row.lows == beyond  # every row has all columns
    assert update.firsts is None


@pytest.mark.parametrize(
    ("above", "sizes"),
    [
        ("%n = arith.mulf %m, %u : f64\n %new = arith.addf %n, %a : f64", (65, 33)),
        ("%new = math.fma %m, %u, %a fastmath<nsz> : f64", (65,)),
        ("%v = arith.addf %u, %x : f64\n %new = math.fma %m, %v, %a : f64", (37,)),
        ("%o = arith.constant 2.0 : f64\n %v = arith.mulf %u, %o : f64\n"
         "%new = math.fma %m, %v, %a : f64", (65,)),
    ],
    ids=["rounded twice", "another promise", "another value", "another number"],
)  # fmt: skip
def test_sides_that_are_computed_otherwise_stay_two(above: str, sizes: tuple[int, ...]) -> None:
    before, _, after = LU.rpartition(UPDATE)
    body = before + above + after
    assert len(eliminated(body).updates) == 2
    texts = [(factorisation(body, n), BlockContractions(steps=16, cpu=WIDE)) for n in sizes]
    assert check(texts, "f64", special=True) == len(texts)


def test_sides_of_two_arrays_stay_two() -> None:
    """The one above the diagonal takes its factors from a copy that nobody changes."""
    before, _, after = LU.rpartition("affine.load %C[%i, %k]")
    assert len(eliminated(before + "affine.load %A[%i, %k]" + after).updates) == 2
