"""What the passes on a rank's loops tell of what they did, as `explain()` has it."""

from __future__ import annotations

import pytest

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.program.program import Program


def of_kernel(name: str, *, without: str = "", sizes: str = "") -> Program:
    kernel = kernel_program(name)
    return avial_lab.compile(
        kernel.text,
        arrays=kernel.arrays,
        scalars=kernel.scalars,
        ranks=1,
        without=without,
        sizes=sizes,
    )


def told_of(program: Program) -> dict[str, tuple[str, ...]]:
    return {report.name: report.done for report in program.explain().reports}


@pytest.mark.parametrize(
    ("kernel", "phase", "lines"),
    [
        (
            "gemm",
            "S1",
            [
                "C[i, j], summed over k from A[i, k] with B[k, j], in register tiles of",
                "thread-loops: loop (unnamed) divided among threads, where that pays",
            ],
        ),
        (
            "jacobi-2d",
            "loop1",
            ["tile-time: loop t is not tiled: its arrays (64,800 bytes) fit in a cache of"],
        ),
        (
            "jacobi-2d",
            "S1",
            [
                "interchange-loops: no other order of i and j has better strides",
                "independent-accesses: iterations of j are independent and may be vectorised",
                "thread-loops: loop i divided among threads, where that pays, in equal parts",
            ],
        ),
        (
            "atax",
            "S2",
            [
                "promote-scalars: tmp[i] kept in a register in loop j",
                "reassociate-sums: sums over j are reassociated, as vectors",
                "rows of i each, then combined",
                "mark-parallel: parts of j may run in parallel, each with all of part",
                "4 rows of i jammed: they share y_parts",
            ],
        ),
        ("lu", "S1", ["interchange-loops: loops of A[i, j]: i k j instead of i j k"]),
    ],
)
def test_each_pass_tells_what_it_did_or_why_it_left_the_loops(
    kernel: str, phase: str, lines: list[str]
) -> None:
    told = told_of(of_kernel(kernel))[phase]
    for line in lines:
        assert any(line in each for each in told), (line, told)


def test_what_is_left_out_tells_nothing_and_sizes_are_told_as_they_are() -> None:
    (told,) = told_of(of_kernel("gemm", without="block-contractions")).values()
    assert not any(line.startswith("block-contractions") for line in told)
    assert any(line.startswith("interchange-loops: ") for line in told)
    program = of_kernel("gemm", sizes="block-contractions{terms=16 block=24}")
    assert "blocks of 16 terms" in str(program.explain())
    assert "and 24 rows" in str(program.explain())
    assert "'block-contractions{terms=16 block=24}'" in program.command
    assert "block-contractions{terms=16 block=24}" in program.stages["loops"].command


@pytest.mark.slow
def test_values_are_the_same_with_other_sizes() -> None:
    for sizes in ("block-contractions{terms=1 block=8}", "block-contractions{terms=7 block=64}"):
        program = of_kernel("gemm", sizes=sizes)
        program.run(check=True)
        assert "bit for bit" in str(program.check_report)
    for sizes in ("tile-time{widths=1x1}", "tile-time{widths=5x7}"):
        program = of_kernel("jacobi-2d", sizes=sizes)
        assert any("one part of the arrays" in line for line in told_of(program)["loop1"])
        program.run(check=True)
        assert "bit for bit" in str(program.check_report)
