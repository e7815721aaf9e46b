"""Programs that are left to one of several ranks: the others wait, and everything comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import avial_lab
from tests.compiler.passes.placement.test_keep_on_one import both_ways, two_sweeps

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

pytestmark = pytest.mark.mpi


@pytest.mark.quick("text0-f32", "text1-f64")
@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize("text", [two_sweeps(1000, turned=True), both_ways(2000)])
def test_the_values_are_the_reference_s(text: str, element: str, cluster: Cluster) -> None:
    rng = np.random.default_rng(0)
    size = 1000 if "@sweeps" in text else 2000
    dtype = np.float64 if element == "f64" else np.float32
    names = "ABDEC" if "@sweeps" in text else "Axyz"
    arrays = {
        name: rng.random((size, size) if name.isupper() else size).astype(dtype) for name in names
    }
    text = text.replace("f64", element)
    program = avial_lab.compile(text, arrays=arrays, ranks=2, without="align-reductions")
    assert program.plan is not None
    assert {piece.rank for piece in program.plan.results} == {0}
    program.run(cluster, check=True)


def test_a_number_between_phases_is_known_to_all(
    cluster: Cluster,
) -> None:
    """Every rank goes through the loops, whose ends may be what one of them has computed."""
    rng = np.random.default_rng(0)
    text = two_sweeps(1000, turned=True)
    more = """
  %zero = arith.constant 0 : index
  %c00 = affine.load %C[%zero, 5] : memref<1000x1000xf64>
  affine.store %c00, %A[3, 4] : memref<1000x1000xf64>
  return"""
    head, _, tail = text.rpartition("\n  return")
    text = f"{head}{more}{tail}"
    arrays = {name: rng.random((1000, 1000)) for name in "ABDEC"}
    program = avial_lab.compile(text, arrays=arrays, ranks=2)
    program.run(cluster, check=True)
    assert arrays["A"][3, 4] == arrays["C"][0, 5]


@pytest.mark.parametrize(("size", "ranks"), [(1001, 2), (1301, 3)])
def test_those_that_are_shared_send_long_messages_in_pieces(
    size: int, ranks: int, cluster: Cluster
) -> None:
    """Of megabytes each, and so large that MPI takes them from where they lie."""
    rng = np.random.default_rng(size)
    arrays = {name: rng.random((size, size)) for name in "ABDEC"}
    text = two_sweeps(size, turned=True, repeats=3)
    program = avial_lab.compile(text, arrays=arrays, ranks=ranks, without="keep-on-one")
    assert program.plan is not None
    assert min(move.nbytes / move.messages for move in program.plan.moves) > 3 << 20
    program.run(cluster, check=True)
