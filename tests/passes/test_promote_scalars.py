"""What stays in registers, and what the vectoriser is told, changes no bit."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.passes.arrays_apart import APART
from avial_lab.passes.independent_accesses import IndependentAccesses
from avial_lab.passes.promote_scalars import PromoteScalars
from tests.passes.rewriting import check_same_bits
from tests.polyhedra.nests import Nest, near_nests
from tests.polyhedra.test_properties import SLOW


@dataclass(frozen=True)
class OnArraysApart:
    """Both passes on a function that is marked, the second on what the first made."""

    marks: bool

    def __call__(self, module: ir.Operation) -> None:
        (function,) = module.regions[0].blocks[0].operations
        function.attributes[APART] = ir.UnitAttr.get(module.context)
        PromoteScalars()(module)
        module.verify()
        if self.marks:
            IndependentAccesses()(module)
        del function.attributes[APART]


@pytest.mark.parametrize("passes", [OnArraysApart(False), OnArraysApart(True)], ids=str)
@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(several=st.lists(near_nests, min_size=6, max_size=6))
def test_the_same_bits(passes, several: list[Nest]) -> None:
    check_same_bits(several, passes)
