"""What goes from rank to rank, and what each holds."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from avial_lab.artifact.plan import Plan
from avial_lab.artifact.plan_facts import agreement_words, moves_summary, moves_table
from avial_lab.plot import held_svg, messages_figure, messages_svg, plan_text
from tests.plot.by_hand import buffers, neighbours, words

STORAGES = buffers("ab")[1]


def count(picture: str, kind: str) -> int:
    return picture.count(f'data-kind="{kind}"')


def test_says_who_sends_how_much_to_whom() -> None:
    assert words(messages_svg(neighbours(3, phases=1))) == snapshot(
        [
            "Messages",
            "3 ranks, 10 messages, 80 B moved, planned before the run",
            "S1, 5×",
            "10 messages, 80 B",
            "to 0",
            "from 0",
            "to 1",
            "from 1",
            "to 2",
            "from 2",
            "40 B",
            "5×",
            "40 B",
            "5×",
            "bytes, and messages",
        ]
    )


def test_all_phases_together_come_first_and_add_up() -> None:
    shown = words(messages_svg(neighbours(3)))
    assert shown[2:4] == ["all phases", "20 messages, 160 B"]
    assert [word for word in shown if word.startswith("S")] == ["S1, 5×", "S2, 5×"]
    assert shown.count("80 B") == 2  # each pair over both phases
    assert shown.count("40 B") == 4


def test_what_is_planned_and_counted_is_compared() -> None:
    plan = neighbours(3)
    assert moves_summary(plan) == snapshot(
        "3 ranks, 20 messages, 160 B moved, planned before the run"
    )
    assert moves_summary(plan, plan.moves) == snapshot(
        "3 ranks, 20 messages, 160 B moved, counted in the run and as planned"
    )
    assert moves_summary(plan, plan.moves[1:]) == snapshot(
        "3 ranks, 15 messages, 120 B moved, counted in the run; planned were 20 and 160 B"
    )
    assert agreement_words(neighbours(3, complete=False), plan.moves) == snapshot(
        "counted in the run (the plan is a sample: a loop's iteration count depends on data)"
    )


def test_the_table_has_both_numbers() -> None:
    plan = neighbours(2, phases=1)
    assert moves_table(plan).rows == (("S1", "0", "1", "5", "40 B"),)
    run = (replace(plan.moves[0], messages=4, nbytes=32), replace(plan.moves[0], source=1, dest=0))
    assert moves_table(plan, run).rows == (
        ("S1", "0", "1", "5", "40 B", "4", "32 B"),
        ("S1", "1", "0", "–", "–", "5", "40 B"),
    )


@pytest.mark.parametrize("ranks", [2, 6, 7, 16, 17, 100])
def test_every_pair_is_in_the_picture(ranks: int) -> None:
    picture = messages_svg(neighbours(ranks, phases=1))
    ET.fromstring(picture)
    if ranks <= 6:
        assert count(picture, "moves") == ranks - 1
    else:
        (squares,) = re.findall(r'data-kind="squares"><path d="([^"]*)"', picture)
        pairs = (
            {(k // 4, (k + 1) // 4) for k in range(ranks - 1)} if ranks > 32 else range(ranks - 1)
        )
        assert squares.count("z") == len(pairs)
    assert ("neighbouring ranks share a row" in picture) == (ranks > 32)
    assert f"{5 * (ranks - 1)} messages" in " ".join(words(picture))


def test_sixteen_ranks_and_thirty_phases_fit() -> None:
    picture = messages_svg(neighbours(16, phases=30))
    assert len(picture) < 200_000
    assert any(line.startswith("Hidden: 19 more phases") for line in words(picture))


def test_nothing_to_send_is_said() -> None:
    alone = Plan(1, (), (), (), (160,), (), complete=True)
    assert "no messages between ranks" in words(messages_svg(alone))


def test_memory_is_compared_with_an_equal_share() -> None:
    picture = held_svg(neighbours(2), STORAGES)
    assert words(picture) == snapshot(
        [
            "Memory of each rank",
            "the fullest rank holds 161 B; all arrays divided by 2 ranks are 80 B",
            "rank 0",
            "160 B, 2.00× its share",
            "rank 1",
            "161 B, 2.01× its share",
            "elements that a rank holds at any time, each counted once",
            "all arrays (160 B) / 2 ranks",
        ]
    )
    assert count(picture, "held") == 2


@pytest.mark.parametrize("ranks", [1, 16, 200])
def test_memory_of_many_ranks(ranks: int) -> None:
    picture = held_svg(neighbours(ranks), STORAGES)
    ET.fromstring(picture)
    assert ("more ranks" in picture) == (ranks > 64)


def test_hostile_names_stay_text() -> None:
    plan = neighbours(2, phases=1)
    plan = replace(plan, moves=(replace(plan.moves[0], phase='<script>&"'),))
    picture = messages_svg(plan)
    ET.fromstring(picture)
    assert "<script" not in picture + messages_figure(plan)


def test_text_and_figure_state_the_same_facts() -> None:
    plan = neighbours(3)
    text, html = plan_text(plan, storages=STORAGES), messages_figure(plan)
    for fact in ("S2", "40 B", "times not divided"):
        assert fact in text, fact
        assert fact in html, fact
    assert "all arrays divided by 3 ranks" in text
