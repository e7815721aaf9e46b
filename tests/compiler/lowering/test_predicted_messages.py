"""Stage "mpi" of a program of loops tells what the ranks will send each other."""

from __future__ import annotations

import numpy as np
from inline_snapshot import snapshot
from mlir import ir

import avial_lab
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.predicted_messages import TABLE, with_messages, without_messages
from tests.compiler.lowering.test_lower import BY_HAND, HEAT
from tests.plot import by_hand


def compiled(ranks: int) -> avial_lab.Program:
    rng = np.random.default_rng(3)
    arrays = {name: rng.random((40, 20)) for name in "AB"}
    return avial_lab.compile(HEAT, arrays=arrays, ranks=ranks, without="widen-halos")


def told(text: str) -> list[str]:
    comments = (line.partition("// ") for line in text.splitlines())
    return [part for *_, comment in comments for part in comment.split("; ") if part]


def test_calls_and_a_table_tell_the_messages() -> None:
    program = compiled(3)
    text = program.stages["mpi"].text
    assert told(text) == snapshot(
        [
            "ownership runtime, S1: 0 -> 1: A, 3 messages of 144 bytes",
            "1 -> 2: A, 3 messages of 144 bytes",
            "ownership runtime, S2: no messages",
            "What the ranks send each other through the ownership runtime, as planned:",
            "  phase  from  to  what  messages  bytes in all",
            "  S1     0     1   A     3         432",
            "  S1     1     2   A     3         432",
        ]
    )
    context = ir.Context()
    register(context)
    parsed = ir.Module.parse(text, context)
    assert "//" not in str(parsed)
    assert str(parsed) == str(ir.Module.parse(without_messages(text), context))


def test_one_rank_sends_nothing() -> None:
    assert told(compiled(1).stages["mpi"].text) == snapshot(
        ["ownership runtime, S1: no messages", "ownership runtime, S2: no messages"]
    )


def test_where_control_depends_on_data_it_is_a_sample() -> None:
    arrays = {"a": np.ones(30), "b": np.ones(30), "e": np.zeros(())}
    program = avial_lab.compile(BY_HAND, arrays=arrays, ranks=2, gpus=1)
    text = program.stages["mpi"].text
    assert f"{TABLE}, a sample: control depends on data:" in text


def test_the_line_numbers_stay_and_so_does_the_text_around() -> None:
    text = compiled(3).stages["mpi"].text
    bare = without_messages(text)
    assert len(text.splitlines()) > len(bare.splitlines())
    for with_comment, without in zip(text.splitlines(), bare.splitlines(), strict=False):
        assert with_comment.startswith(without)


def test_many_pairs_are_told_in_the_table() -> None:
    plan = by_hand.neighbours(40)
    plan = plan.__class__(**{**plan.__dict__, "carried": (("A", "B"),) * len(plan.moves)})
    phases = [count.phase for count in plan.phases]
    text = "\n".join(f"  %{k} = llvm.call @avial_begin(…)" for k in range(len(phases)))
    lines = with_messages(text, plan, phases).splitlines()
    assert any(line.endswith("more pairs") for line in lines[: len(phases)])
    assert sum(line.startswith("//   ") for line in lines) == 1 + len(plan.moves)
    assert with_messages("\n".join(lines), plan, phases).splitlines() == lines


def test_an_edited_text_stays_and_what_is_made_anew_is_told_anew() -> None:
    program = compiled(3)
    text = program.stages["mpi"].text.replace("A, 3 messages", "whatever")
    assert program.resume("mpi", text).stages["mpi"].text == text
    again = program.resume("placed", program.stages["placed"].text)
    assert again.stages["mpi"].text == program.stages["mpi"].text
    lines = len(again.stages["mpi"].text.splitlines())
    inside = {stage.name: stage for stage in again.inside.stages}
    assert len(inside["mpi"].origins) == lines
