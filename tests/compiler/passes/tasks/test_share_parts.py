"""Long bodies of tasks in parts: the same results, and functions that do not grow with layers."""

from __future__ import annotations

import re

import pytest

from avial_lab.compiler.lowering.facts import _add_joined
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from tests.compiler.passes.distir.training_step import arrays_of, training_step
from tests.compiler.passes.golden import assert_same, each_case


@each_case("share_parts")
def test_parts_compute_what_the_body_did(case: str) -> None:
    assert_same(case, "share-parts{most=3}")


def step_of(layers: int, parallel: str, ranks: int, sizes: str = "") -> Program:
    widths = [12] * (layers + 1)
    return compile_program(
        training_step(8, widths), arrays=arrays_of(8, widths), ranks=ranks, parallel=parallel,
        sizes=sizes,
    )  # fmt: skip


def parts_in(program: Program) -> list[str]:
    text = next(each.text for each in program.built.stages if each.name == "loops")
    return re.findall(r"func\.func private @(\w+_part\d+)\(", text)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["data 2", "pipeline 2 x 2 1f1b", "horizontal 2 w0:1"])
def test_a_step_of_training_in_parts(parallel: str) -> None:
    """On two ranks, checked against the sequential function; reordered sums of parts are told, or
    the check would not allow for them.
    """
    program = step_of(3, parallel, 2, sizes="share-parts{most=3}")
    program.run(check=True, oversubscribe=True)
    assert parts_in(program)


@pytest.mark.slow
def test_functions_grow_neither_with_layers_nor_with_devices() -> None:
    few, deep, wide = (
        parts_in(step_of(layers, parallel, ranks))
        for layers, parallel, ranks in ((6, "data 2", 2), (12, "data 2", 2), (6, "data 4", 4))
    )
    assert few
    assert len(deep) <= len(few) + 2
    assert len(wide) <= len(few) + 2


def test_what_is_known_of_parts_is_known_of_their_tasks() -> None:
    """The longest sum, from which a check takes its bound; lines of all parts."""
    joined = {"t_part1": ("t", "u"), "t_part2": ("t",)}
    sums, lines = {"t_part1": 3, "t_part2": 7}, {"t_part1": ("a",), "t_part2": ("b", "a")}
    _add_joined(sums, joined, max)
    _add_joined(lines, joined, lambda known, told: tuple(dict.fromkeys((*known, *told))))
    assert sums == {"t": 7, "u": 3}
    assert lines == {"t": ("a", "b"), "u": ("a",)}
