"""The timeline of a run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from avial_lab.planning.schedule import Schedule
from avial_lab.plot import timeline_figure, timeline_svg, trace_text
from avial_lab.plot.run.timeline import GUTTER, WIDTH
from avial_lab.trace import Event, EventKind, Trace
from avial_lab.trace.run_facts import event_table, rank_table
from tests.plot import by_hand
from tests.plot.by_hand import words


def test_says_what_ran_where_and_how_long(deck_trace: Trace, deck_schedule: Schedule) -> None:
    assert "\n".join(words(timeline_svg(deck_trace, deck_schedule))) == snapshot("""\
Timeline
measured, GPU emulated: 96 µs from first start to last end, 3 tasks on 3 ranks, 160 B sent
rank 0
cpu0
rank 1
cpu1
rank 2
gpu0
0 s
20 µs
40 µs
60 µs
80 µs
task1
40 µs
task2
53 µs
wait for c from rank 0
wait for d from rank 1
task3
35 µs
task1 on CPU
task2 on CPU
task3 on GPU, emulated
send
start receiving
wait for a message
barrier
message\
""")


def test_messages_are_named_by_what_they_carry(deck_trace: Trace, deck_schedule: Schedule) -> None:
    assert [row[3] for row in event_table(deck_trace, deck_schedule).rows] == snapshot(
        [
            "task1",
            "task2",
            "ready to receive c from rank 0",
            "ready to receive d from rank 1",
            "wait for c from rank 0",
            "send c to rank 2",
            "send d to rank 2",
            "wait for d from rank 1",
            "task3",
            "barrier",
        ]
    )


def test_the_schedule_knows_what_is_emulated(deck_trace: Trace, deck_schedule: Schedule) -> None:
    measured = replace(deck_trace, label="measured")
    assert "emulated" not in timeline_svg(measured)
    assert "emulated" in timeline_svg(measured, deck_schedule)
    assert trace_text(measured, deck_schedule).count("emulated") == 4


def test_a_short_task_has_its_name_beside_it() -> None:
    """Names never cover one another, nor another task."""
    events = [Event(EventKind.TASK, "short", 0, "cpu0", 0.5, 0.5001)]
    events.append(Event(EventKind.TASK, "long", 1, "cpu0", 0.0, 1.0))
    assert "short" in words(timeline_svg(Trace(2, tuple(events))))
    crowd = tuple(
        Event(EventKind.TASK, f"name{k}", 0, "cpu0", k / 400, k / 400 + 0.001) for k in range(400)
    )
    assert sum(word.startswith("name") for word in words(timeline_svg(Trace(1, crowd)))) < 30


def test_emulation_is_said_wherever_times_are(deck_trace: Trace) -> None:
    for shown in (timeline_svg(deck_trace), timeline_figure(deck_trace), trace_text(deck_trace)):
        assert "emulated" in shown


def test_a_wait_is_not_work(deck_trace: Trace) -> None:
    rows = {row[0]: row[1:] for row in rank_table(deck_trace).rows}
    assert rows["2"] == snapshot(("37 %", "2 %", "60 %", "0 %", "0 %", "1 %"))


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
    assert "40,000 events too short to be drawn separately are merged" in shown
    assert "Hidden:" not in shown
    rectangles = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect")
    ends = [float(r.get("x", 0)) + float(r.get("width", 0)) for r in rectangles]
    assert sum(end > GUTTER + WIDTH - 20 for end in ends) > 4, "no row ends early"


def test_how_high_a_colour_stands_is_its_share() -> None:
    """A hundred times 3 ns of a task and 1 ns of a wait, and a long task that sets the scale."""
    short = [
        Event(EventKind.TASK if k % 2 == 0 else EventKind.WAIT, "s", 0, "cpu0" * (k % 2 == 0),
              (k // 2 * 4 + k % 2 * 3) * 1e-9, (k // 2 * 4 + 3 + k % 2) * 1e-9)
        for k in range(200)
    ]  # fmt: skip
    long = Event(EventKind.TASK, "long", 0, "cpu0", 1e-3, 2e-3)
    picture = timeline_svg(Trace(1, (*short, long)))
    assert "200 events, task 75 %, wait for a message 25 %" in picture


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


def of_messages(number: int) -> Trace:
    """Rank 0 sends as often to rank 1; times in microseconds."""
    events: list[Event] = []
    for k in range(number):
        start = 10e-6 * k
        events.append(Event(EventKind.SEND, "s", 0, "", start, start + 1e-6, 80, 1, k))
        events.append(Event(EventKind.WAIT, "w", 1, "", start, start + 5e-6, 80, 0, k))
    return Trace(2, tuple(events))


def test_messages_are_arrows_from_lane_to_lane() -> None:
    picture = timeline_svg(of_messages(3))
    assert picture.count('data-kind="message"') == 3
    assert "rank 0 to rank 1, 80 B" in picture
    assert "message" in words(picture)


def test_too_many_arrows_are_left_out_openly() -> None:
    picture = timeline_svg(of_messages(251))
    assert 'data-kind="message"' not in picture
    assert any("251 messages are too many" in line for line in words(picture))


def test_a_message_without_its_other_end_is_no_arrow() -> None:
    alone = replace(of_messages(1), events=of_messages(1).events[:1])
    assert 'data-kind="message"' not in timeline_svg(alone)


def test_a_message_and_a_task_drawn_together_have_the_tasks_colour() -> None:
    """A message comes first and has no device."""
    send = Event(EventKind.SEND, "send to rank 2", 0, "", 0.0, 1e-9, 80)
    task = Event(EventKind.TASK, "task1", 0, "cpu0", 2e-9, 4e-9)
    late = Event(EventKind.TASK, "task2", 1, "cpu1", 0.9, 1.0)
    picture = timeline_svg(Trace(3, (send, task, late)), by_hand.deck_schedule())
    assert "2 events, task 50 %, send 25 %" in picture
