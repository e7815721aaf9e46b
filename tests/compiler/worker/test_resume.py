"""`program.resume`: a stage edited by hand, the way on from there, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.core.errors import AvialError, CheckError, ParseError, ScheduleError
from avial_lab.lessons.demo import deck_text

DECK = ["avial", "placed", "mpi", "gpu", "ptx:task3", "loops", "host", "llvm", "llvmir", "object"]
LOOPS = ["source", "avial", "placed", "mpi", "loops", "host", "llvm", "llvmir", "object"]


@pytest.fixture
def deck() -> avial_lab.Program:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=2, cell="In [4]")


@pytest.fixture
def jacobi() -> avial_lab.Program:
    chosen = kernel_program("jacobi-2d", size="MINI")
    return avial_lab.compile(
        chosen.text,
        arrays=chosen.arrays,
        scalars=chosen.scalars,
        function=chosen.function,
        ranks=2,
        cell="jacobi-2d.mlir",
    )


def changed(program: avial_lab.Program, stage: str, old: str, new: str) -> avial_lab.Program:
    text = program.stages[stage].text
    assert old in text
    return program.resume(stage, text.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stages"), [("deck", DECK), pytest.param("jacobi", LOOPS, marks=pytest.mark.slow)]
)
def test_an_unchanged_text_leads_to_the_same_stages(
    name: str, stages: list[str], request: pytest.FixtureRequest
) -> None:
    program: avial_lab.Program = request.getfixturevalue(name)
    assert list(program.stages) == stages
    for stage in stages:
        again = program.resume(stage, program.stages[stage].text)
        assert list(again.stages) == stages
        for other in stages:
            made, mark = again.stages[other], again.stages[other].edited
            assert (mark == stage) == ("by hand" in made.title)
            # What is read in the user's own notation gets names from there.
            if stage != stages[0]:
                assert made.text == program.stages[other].text, (stage, other)
        assert again.binary.manifest.edited == stage
        assert again.binary.key != program.binary.key
        assert [inside.name for inside in again.inside.stages] == stages


CHANGES = [
    ("deck", "avial", "arith.muli", "arith.subi"),
    ("deck", "placed", "arith.muli", "arith.subi"),
    ("deck", "mpi", "arith.muli", "arith.subi"),
    ("deck", "loops", "arith.muli", "arith.subi"),
    ("deck", "host", "arith.muli", "arith.subi"),
    ("deck", "llvmir", " mul i32", " sub i32"),
    ("deck", "object", "pmulld", "psubd"),
    ("jacobi", "source", "arith.addf", "arith.subf"),
    ("jacobi", "avial", "arith.addf", "arith.subf"),
    ("jacobi", "placed", "arith.addf", "arith.subf"),
    ("jacobi", "mpi", "arith.addf", "arith.subf"),
    ("jacobi", "loops", "arith.addf", "arith.subf"),
    ("jacobi", "host", "arith.addf", "arith.subf"),
    ("jacobi", "llvm", "llvm.fadd", "llvm.fsub"),
    ("jacobi", "llvmir", " fadd ", " fsub "),
]


@pytest.mark.quick(
    "jacobi-source-*", "jacobi-placed-*", "jacobi-llvm-*", "deck-avial-*", "deck-object-*"
)
@pytest.mark.mpi
@pytest.mark.parametrize(("name", "stage", "old", "new"), CHANGES)
def test_an_edit_that_changes_the_meaning_is_found(
    name: str, stage: str, old: str, new: str, request: pytest.FixtureRequest
) -> None:
    program: avial_lab.Program = request.getfixturevalue(name)
    with pytest.raises(CheckError, match="differs from the sequential reference"):
        changed(program, stage, old, new).run(check=True)


MISTAKES = [
    ("avial", "arith.muli %", "arith.mulx %", "unknown operation 'arith.mulx'"),
    ("placed", "arith.muli %", "arith.mulx %", "custom op 'arith.mulx' is unknown"),
    ("mpi", "arith.muli %", "arith.mulx %", "custom op 'arith.mulx' is unknown"),
    ("mpi", "mpi.wait(%post0_1)", "mpi.wait(%post9)", "use of undeclared SSA value name"),
    ("gpu", "arith.addi %", "arith.addx %", "custom op 'arith.addx' is unknown"),
    ("host", "arith.muli %", "arith.mulx %", "custom op 'arith.mulx' is unknown"),
    ("llvm", "llvm.mul %", "llvm.mulx %", "custom op 'llvm.mulx' is unknown"),
    ("llvmir", " mul i32", " mulx i32", "expected instruction opcode"),
    ("object", "pmulld", "pmulx", "invalid instruction mnemonic"),
]


@pytest.mark.parametrize(("stage", "old", "new", "message"), MISTAKES)
def test_a_mistake_is_shown_at_its_place_in_the_stage(
    deck: avial_lab.Program, stage: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        changed(deck, stage, old, new)
    span = caught.value.span
    assert span is not None
    assert span.cell == f"stage {stage}"
    line = deck.stages[stage].text.splitlines()[span.line - 1]
    assert old in line
    assert f"stage {stage}:{span.line}:{span.column}\n" in str(caught.value)


@pytest.mark.mpi
def test_a_task_is_moved_by_hand_and_its_messages_follow(deck: avial_lab.Program) -> None:
    moved = changed(deck, "placed", 'avial.device = "cpu1"', 'avial.device = "cpu0"')
    assert (deck.schedule.messages, moved.schedule.messages) == (1, 2)
    assert moved.schedule.placement_of["task2"].reason == "by hand"
    moved.run(check=True)
    with pytest.raises(ScheduleError, match="task 'task2' cannot run on 'gpu0'"):
        changed(deck, "placed", 'avial.device = "cpu1"', 'avial.device = "gpu0"')


@pytest.mark.mpi
def test_edits_on_edits(jacobi: avial_lab.Program) -> None:
    """Each keeps its mark; going back to an earlier stage drops the later ones."""
    first = changed(jacobi, "placed", "arith.addf", "arith.subf")
    both = changed(first, "llvm", "llvm.fsub", "llvm.fadd")
    assert {name: s.edited for name, s in both.stages.items()} == {
        "source": "", "avial": "", "placed": "placed", "mpi": "placed", "loops": "placed",
        "host": "placed", "llvm": "llvm", "llvmir": "llvm", "object": "llvm",
    }  # fmt: skip
    assert both.binary.manifest.edited == "placed, llvm"
    both.run(check=True)  # the second takes the first back
    again = both.resume("placed", jacobi.stages["placed"].text)
    assert again.binary.manifest.edited == "placed"
    again.run(check=True)


def test_what_cannot_be_edited_is_told(deck: avial_lab.Program) -> None:
    with pytest.raises(AvialError, match="there is no stage 'mip' to edit") as caught:
        deck.resume("mip", "")
    assert caught.value.hint == f"there are: {', '.join(DECK)}"


def test_nothing_of_an_edited_program_is_cached(deck: avial_lab.Program) -> None:
    """The same cell again is the clean program, whatever was made of it."""
    changed(deck, "mpi", "arith.muli", "arith.subi")
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    again = avial_lab.compile(deck_text(), arrays=arrays, ranks=2, cell="In [4]")
    assert not any(stage.edited for stage in again.stages.values())
    assert again.binary.key == deck.binary.key


def test_lines_after_an_edit_are_still_the_cells(deck: avial_lab.Program) -> None:
    """A line that was put in has no origin; what stood there before keeps its own."""
    text = deck.stages["mpi"].text
    place = text.index("    scf.parallel")
    edited = text[:place] + "    %new = arith.constant 7 : i32\n" + text[place:]
    after = deck.resume("mpi", edited)
    inside = {stage.name: stage for stage in after.inside.stages}
    lines = after.stages["mpi"].text.splitlines()
    new = next(k for k, line in enumerate(lines) if "%new" in line)
    assert inside["mpi"].origins[new] == ()
    before = {stage.name: stage for stage in deck.inside.stages}
    assert [o for k, o in enumerate(inside["mpi"].origins) if k != new] == list(
        before["mpi"].origins
    )
    for stage in _sums(after, inside["llvm"].origins):
        assert stage


def _sums(program: avial_lab.Program, origins: tuple[tuple[int, ...], ...]) -> Iterator[bool]:
    cell = program.text.splitlines()
    lines = program.stages["llvm"].text.splitlines()
    for line, origin in zip(lines, origins, strict=True):
        if "llvm.mul" in line and origin:
            yield any("arith.muli" in cell[k - 1] or "memref" in cell[k - 1] for k in origin)
