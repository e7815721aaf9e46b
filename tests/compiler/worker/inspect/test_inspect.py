"""`program.inside`: whose lines are whose, what each pass did, what can be counted."""

from __future__ import annotations

import re

import numpy as np
import pytest

import avial_lab
from avial_lab.artifact.stages import Stage, StageInside
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.lowering.predicted_messages import without_messages
from avial_lab.compiler.worker.inspect.debug_lines import is_instruction
from avial_lab.lessons.demo import deck_text

GLUE = ("avial.", "malloc", "memrefCopy")
"""Functions that come from no cell: the runtime's."""

THREADS = "..omp_par"
"""Functions that deal a loop out to threads: made by LLVM, of no line of the cell."""


@pytest.fixture(scope="module")
def deck() -> avial_lab.Program:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=2, cell="In [4]")


def kernel(name: str) -> avial_lab.Program:
    chosen = kernel_program(name, size="MINI")
    return avial_lab.compile(
        chosen.text,
        arrays=chosen.arrays,
        scalars=chosen.scalars,
        function=chosen.function,
        ranks=2,
        cell=f"{name}.mlir",
    )


def by_name(program: avial_lab.Program) -> dict[str, StageInside]:
    return {stage.name: stage for stage in program.inside.stages}


def coverage(stage: Stage, inside: StageInside) -> float:
    """The share of lines with an operation, outside of the runtime's functions, whose origin is
    known. (A constant that MLIR folded of several has none.)
    """
    glue = {
        k
        for part in inside.parts
        if part.name.startswith(GLUE) or THREADS in part.name
        for k in range(part.first, part.last)
    }
    lines = [
        k
        for k, line in enumerate(stage.text.splitlines())
        if k not in glue and _holds_operation(stage.language, line)
        if inside.origins[k] or ".constant" not in line
    ]
    return sum(bool(inside.origins[k]) for k in lines) / len(lines)


def _holds_operation(language: str, line: str) -> bool:
    if language in ("asm", "ptx"):
        return is_instruction(line)
    if language == "llvm":
        return line.startswith("  ")
    # Declarations and globals of the runtime are no operations of the cell.
    declared = re.match(
        r"  (llvm\.mlir\.global|(llvm|func)\.func (private )?@[\w.]+\(.*[^{]$)", line
    )
    return bool(re.match(r" +[^ }^)/#]", line)) and not declared


def check_lines(program: avial_lab.Program) -> None:
    """Every stage is there, with one entry a line, and every entry is a line of the cell."""
    count = len(program.text.splitlines())
    assert [stage.name for stage in program.inside.stages] == list(program.stages)
    for inside in program.inside.stages:
        lines = program.stages[inside.name].text.splitlines()
        assert len(inside.origins) == len(lines)
        for origin in inside.origins:
            assert list(origin) == sorted(set(origin))
            assert all(1 <= line <= count for line in origin)
        assert all(0 <= part.first < part.last <= len(lines) for part in inside.parts)


def test_the_decks_sum_is_found_in_every_stage(deck: avial_lab.Program) -> None:
    check_lines(deck)
    sums = [n for n, line in enumerate(deck.text.splitlines(), 1) if "arith.addi" in line]
    words = {
        "avial": "arith.addi", "placed": "arith.addi", "mpi": "arith.addi", "gpu": "arith.addi",
        "ptx:task3": "add.s32", "loops": "arith.addi", "host": "arith.addi", "llvm": "llvm.add",
        "llvmir": "add i32", "object": "paddd",
    }  # fmt: skip
    for name, inside in by_name(deck).items():
        lines = deck.stages[name].text.splitlines()
        found = {o for line, o in zip(lines, inside.origins, strict=True) if words[name] in line}
        assert found & {(n,) for n in sums}, name
        assert coverage(deck.stages[name], inside) >= 0.8, name


@pytest.mark.quick("gemm", "cholesky", "spmv")
@pytest.mark.parametrize(
    "name", ["gemm", "jacobi-2d", "adi", "correlation", "cholesky", "spmv", "game-of-life"]
)
def test_most_lines_of_a_kernel_know_where_they_come_from(name: str) -> None:
    program = kernel(name)
    check_lines(program)
    known = {n: coverage(program.stages[n], inside) for n, inside in by_name(program).items()}
    assert min(known.values()) >= 0.8, known


@pytest.mark.parametrize("name", ["gemm", "deck"])
def test_passes_lead_from_one_stage_to_the_next(name: str, deck: avial_lab.Program) -> None:
    program = deck if name == "deck" else kernel(name)
    before = None
    for stage in program.inside.stages:
        if stage.name.startswith(("gpu", "ptx")):
            continue
        text = before
        for step in stage.passes:
            assert (step.text is None) == (step.added == step.removed == 0)
            if step.text is not None and text is not None:
                change = len(step.text.splitlines()) - len(text.splitlines())
                assert step.added - step.removed == change, step.name
            text = step.text or text
        # What is told in comments is no pass's doing.
        before = without_messages(program.stages[stage.name].text)
        if stage.passes:
            assert text == before


def test_what_is_counted(deck: avial_lab.Program) -> None:
    inside = by_name(deck)
    assert inside["avial"].facts["integer operations (as written)"] == "60"
    assert inside["avial"].facts["bytes stored (as written)"] == "240"
    assert inside["mpi"].counts["mpi"] == 5
    assert {part.name for part in inside["mpi"].parts} == {"task1", "task2", "task3", "main"}
    assert {"task1", "task2", "task3"} <= {part.name for part in inside["avial"].parts}
    assert inside["object"].counts["instructions"] > 100
    assert "b32" in inside["ptx:task3"].facts["virtual registers"]
