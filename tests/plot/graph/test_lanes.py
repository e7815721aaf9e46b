"""The schedule in lanes."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from inline_snapshot import snapshot

from avial_lab.planning.schedule import Schedule, Sync
from avial_lab.plot import lanes_svg
from tests.plot.by_hand import deck_schedule, layers, machine, schedule_by_hand, words


def test_says_who_runs_what_when_and_what_arrives(deck_schedule: Schedule) -> None:
    assert "\n".join(words(lanes_svg(deck_schedule))) == snapshot("""\
Schedule
3 ranks, 2 messages, 160 B moved · policy levels, sync edges · 3 CPUs, 1 GPU (emulated) on
localhost (x86_64)
level 0
level 1
C
cpu0
rank 0
C
cpu1
rank 1
C
cpu2
rank 2
G
gpu0
rank 2, emulated
C
task1
C
task2
G
task3
c 80 B
d 80 B
received
–
2 messages
160 B
Bars: cost of a task (estimated from the bytes it touches). Dark outlines: the critical path.
C
CPU
G
GPU, emulated
message\
""")


def test_a_device_without_work_keeps_its_lane(deck_schedule: Schedule) -> None:
    idle = {"cpu2"}
    assert not idle & {placement.device for placement in deck_schedule.placements}
    assert idle <= set(words(lanes_svg(deck_schedule)))


def test_barriers_are_drawn_where_there_are_some() -> None:
    with_barriers = lanes_svg(deck_schedule(sync=Sync.LEVELS))
    assert "barrier" in words(with_barriers)
    assert "barrier" not in words(lanes_svg(deck_schedule()))


@pytest.mark.quick("4-500-200")
@pytest.mark.parametrize(("depth", "width", "ranks"), [(10, 100, 6), (2000, 5, 6), (4, 500, 200)])
def test_large_schedules_stay_small_and_say_what_is_hidden(
    depth: int, width: int, ranks: int
) -> None:
    graph = layers(depth, width)
    schedule = schedule_by_hand(graph, machine(ranks, gpus=2))
    picture = lanes_svg(schedule)
    ET.fromstring(picture)
    assert len(picture) < 1_000_000
    shown = " ".join(words(picture))
    assert ("are merged into one box" in shown) or ("Each column is" in shown)
    assert f"Of {len(schedule.transfers):,} messages not all are drawn" in shown


def test_columns_count_every_message() -> None:
    graph = layers(3, 8)
    schedule = schedule_by_hand(graph, machine(4, gpus=2))
    arriving = [int(w.split()[0]) for w in words(lanes_svg(schedule)) if w.endswith(" messages")]
    assert sum(arriving) == len(schedule.transfers)
    assert lanes_svg(schedule) == lanes_svg(schedule_by_hand(layers(3, 8), machine(4, gpus=2)))
