"""The timeline of a run."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from inline_snapshot import snapshot

from avial_lab.plot import timeline_figure, timeline_svg, trace_text
from avial_lab.plot.facts import rank_table
from avial_lab.trace import Event, EventKind, Trace
from tests.plot.by_hand import words


def test_says_what_ran_where_and_how_long(deck_trace: Trace) -> None:
    assert "\n".join(words(timeline_svg(deck_trace))) == snapshot("""\
Timeline
measured, GPU emulated: 96 µs from first start to last end, 3 tasks on 3 ranks, 160 B sent
0 s
20 µs
40 µs
60 µs
80 µs
rank 0
cpu0
task1
40 µs
rank 1
cpu1
task2
53 µs
rank 2
gpu0
wait c
wait d
task3
35 µs
task on CPU
task on GPU, emulated
send
start receiving
wait for a message
barrier\
""")


def test_emulation_is_said_wherever_times_are(deck_trace: Trace) -> None:
    for shown in (timeline_svg(deck_trace), timeline_figure(deck_trace), trace_text(deck_trace)):
        assert "emulated" in shown


def test_a_wait_is_not_work(deck_trace: Trace) -> None:
    rows = {row[0]: row[1:] for row in rank_table(deck_trace).rows}
    assert rows["2"] == snapshot(("36 %", "2 %", "60 %", "0 %", "1 %"))


def test_40000_events_stay_below_the_limit_and_short_ones_are_said() -> None:
    events = tuple(
        Event(
            EventKind.TASK if k % 3 else EventKind.WAIT,
            f"t{k}",
            k % 4,
            f"cpu{k % 4}",
            k // 4 * 1e-6,
            (k // 4 + 0.8) * 1e-6,
        )
        for k in range(40_000)
    )
    picture = timeline_svg(Trace(4, events))
    assert len(picture) < 1_000_000
    shown = " ".join(words(picture))
    assert "shorter than a pixel" in shown or "Hidden:" in shown


@pytest.mark.parametrize("ranks", [1, 200])
def test_many_ranks(ranks: int) -> None:
    trace = Trace(
        ranks,
        tuple(Event(EventKind.TASK, "t", rank, f"cpu{rank}", 0.0, 1.0) for rank in range(ranks)),
    )
    picture = timeline_svg(trace)
    ET.fromstring(picture)
    assert ("more ranks" in picture) == (ranks > 48)


def test_events_without_any_duration_are_drawn() -> None:
    trace = Trace(1, (Event(EventKind.TASK, "<t>", 0, "cpu0", 2.0, 2.0),))
    ET.fromstring(timeline_svg(trace))
    assert "no events" in timeline_svg(Trace(2, ()))
