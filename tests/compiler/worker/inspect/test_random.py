"""Random programs of tasks: what is told of their lines holds, and going on from any stage with its
own text is the same program.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import avial_lab
from tests.compiler.worker.inspect.test_inspect import check_lines
from tests.programs import RandomProgram, copy_together, programs
from tests.quick import examples

few = settings(
    max_examples=examples(6),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.generate],
)


def built(program: RandomProgram) -> avial_lab.Program:
    arrays = copy_together(program.arrays)
    return avial_lab.compile(program.text, arrays=arrays, ranks=2, cell="In [1]")


@pytest.mark.slow
@few
@given(programs(most_tasks=4))
def test_lines_are_the_cells(program: RandomProgram) -> None:
    compiled = built(program)
    check_lines(compiled)
    inside = {stage.name: stage for stage in compiled.inside.stages}
    cell = program.text.splitlines()
    for line, origin in zip(
        compiled.stages["avial"].text.splitlines(), inside["avial"].origins, strict=True
    ):
        # What a task does stands in the cell as it stands here.
        for word in ("memref.store", "arith.muli", "arith.xori"):
            if f"{word} " in line:
                assert any(word in cell[k - 1] for k in origin), line
    for stage in inside.values():
        assert "lines" not in stage.facts, stage.name


@pytest.mark.slow
@few
@given(programs(most_tasks=3), st.data())
def test_going_on_from_a_stages_own_text(program: RandomProgram, data: st.DataObject) -> None:
    compiled = built(program)
    stage = data.draw(st.sampled_from([s for s in compiled.stages if s != "avial"]))
    if compiled.stages[stage].language == "text":
        return
    again = compiled.resume(stage, compiled.stages[stage].text)
    assert again.stages["object"].text == compiled.stages["object"].text
    assert again.binary.manifest.programs == compiled.binary.manifest.programs
    assert again.binary.ptx == compiled.binary.ptx


@pytest.mark.slow
@few
@given(programs(most_tasks=2))
def test_the_program_itself_edited(program: RandomProgram) -> None:
    """Its text as MLIR prints it is the same program."""
    compiled = built(program)
    again = compiled.resume("avial", compiled.stages["avial"].text)
    was, now = compiled.binary.manifest, again.binary.manifest
    assert (now.programs, now.transfers, now.inputs) == (was.programs, was.transfers, was.inputs)
    assert now.results == was.results
