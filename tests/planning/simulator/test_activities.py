"""The core: cases computed by hand, and what holds of any activities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.core.errors import ScheduleError
from avial_lab.planning.simulator.activities import Activities, ActivityList, simulate
from tests.quick import examples

INFINITE = float("inf")

# By hand ------------------------------------------------------------------------------------------


def test_alone_it_takes_its_latency_and_its_amount() -> None:
    made = ActivityList()
    made.add(8.0, cap=2.0, latency_s=0.5)
    assert simulate(made.on([])).end_s.tolist() == [4.5]


def test_a_chain_adds_up_and_a_fork_waits_for_the_longer() -> None:
    """0 (1 s) ─► 1 (2 s) ─┐
    └──► 2 (5 s) ─┴► 3 (1 s)
    """
    made = ActivityList()
    first = made.add(1.0, cap=1.0)
    short, long = made.add(2.0, cap=1.0, after=[first]), made.add(5.0, cap=1.0, after=[first])
    made.add(1.0, cap=1.0, after=[short, long])
    times = simulate(made.on([]))
    assert times.end_s.tolist() == [1.0, 3.0, 6.0, 7.0]
    assert times.ready_s.tolist() == [0.0, 1.0, 1.0, 6.0]


def test_two_flows_share_a_link_until_one_has_ended() -> None:
    """Both at half until the short one is over (2 s); 100 - 50 are left, at full rate."""
    made = ActivityList()
    made.add(50.0, uses=[0])
    made.add(100.0, uses=[0])
    assert simulate(made.on([50.0])).end_s.tolist() == [2.0, 3.0]


def test_three_flows_on_two_links() -> None:
    """a on both links, b on the first (10), c on the second (4): c and a get 2, b the other 8.

    a and b, c: 2 s: a has 4 of 20, b 16 of 16, c 4 of 4. Then a is alone, and has 4: 4 s more.
    """
    made = ActivityList()
    made.add(20.0, uses=[0, 1])
    made.add(16.0, uses=[0])
    made.add(4.0, uses=[1])
    assert simulate(made.on([10.0, 4.0])).end_s.tolist() == [6.0, 2.0, 2.0]


def test_a_capped_flow_leaves_the_rest_to_the_others() -> None:
    made = ActivityList()
    made.add(10.0, cap=1.0, uses=[0])
    made.add(90.0, uses=[0])
    assert simulate(made.on([10.0])).end_s.tolist() == [10.0, 10.0]


def test_two_tasks_that_need_all_of_the_memory_take_twice_as_long() -> None:
    """A task of 1 s that moves 8 GB of 10 GB/s: two of them want 16, and are at 10/16."""
    made = ActivityList()
    made.add(1.0, cap=1.0, uses=[(0, 8e9)])
    made.add(1.0, cap=1.0, uses=[(0, 8e9)])
    assert simulate(made.on([10e9])).end_s.tolist() == [1.6, 1.6]


def test_four_ranks_on_two_cores() -> None:
    made = ActivityList()
    for _ in range(4):
        made.add(1.0, cap=1.0, uses=[0])
    assert simulate(made.on([2.0])).end_s.tolist() == [2.0] * 4


def test_a_send_overlaps_with_an_independent_product() -> None:
    made = ActivityList()
    made.add(21.5e-3, cap=1.0, uses=[0])
    made.add(10.0e-3, cap=1.0)
    assert simulate(made.on([1.0])).makespan_s == 21.5e-3


def test_weights_share_in_proportion() -> None:
    made = ActivityList()
    made.add(30.0, uses=[0], weight=3.0)
    made.add(10.0, uses=[0])
    assert simulate(made.on([4.0])).end_s.tolist() == [10.0, 10.0]


def test_nothing_to_do_ends_when_it_may_begin() -> None:
    made = ActivityList()
    first = made.add(2.0, cap=1.0)
    made.add(0.0, after=[first], uses=[0])
    made.add(0.0, after=[first], latency_s=1.0)
    assert simulate(made.on([1.0])).end_s.tolist() == [2.0, 2.0, 3.0]
    assert simulate(ActivityList().on([])).makespan_s == 0.0


# What is refused ----------------------------------------------------------------------------------


def test_a_circle_is_told() -> None:
    made = ActivityList()
    made.add(1.0, cap=1.0, after=[1])
    made.add(1.0, cap=1.0, after=[0])
    with pytest.raises(ScheduleError, match="2 activities of 2 never end: they wait for each oth"):
        simulate(made.on([]))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("amount", -1.0, "the amount of activity 0 is -1.0"),
        ("amount", float("nan"), "the amount of activity 0 is nan"),
        ("latency_s", INFINITE, "the latency of activity 0 is inf"),
        ("cap", 0.0, "the rate cap of activity 0 is 0.0"),
        ("capacity", -2.0, "the capacity of resource 0 is -2.0"),
    ],
)
def test_numbers_that_are_none(field: str, value: float, words: str) -> None:
    made = ActivityList()
    made.add(1.0, uses=[0])
    wrong = replace(made.on([1.0]), **{field: np.array([value])})
    with pytest.raises(ScheduleError, match=words):
        simulate(wrong)


def test_a_resource_that_is_not_there() -> None:
    made = ActivityList()
    made.add(1.0, uses=[3])
    with pytest.raises(ScheduleError, match="uses resource 3, and there are 1"):
        simulate(made.on([1.0]))


# What holds of all --------------------------------------------------------------------------------


@st.composite
def activity_lists(draw: st.DrawFn) -> Activities:
    numbers = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0])
    resources = draw(st.integers(1, 4))
    made = ActivityList()
    for k in range(draw(st.integers(1, 12))):
        uses = draw(st.sets(st.integers(0, resources - 1), max_size=3))
        made.add(
            draw(st.one_of(st.just(0.0), numbers)),
            cap=draw(numbers if not uses else st.one_of(numbers, st.just(INFINITE))),
            latency_s=draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])),
            weight=draw(numbers),
            uses=[(resource, draw(numbers)) for resource in sorted(uses)],
            after=draw(st.sets(st.integers(0, k - 1), max_size=3)) if k else (),
        )
    return made.on([draw(numbers) for _ in range(resources)])


def _rates_over_time(
    made: Activities, log: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> list[tuple[float, float, np.ndarray]]:
    """(from, to, rates) of each span in which no rate changes."""
    rates, spans, last = np.zeros(len(made)), list[tuple[float, float, np.ndarray]](), 0.0
    for time, activity, rate in zip(*log, strict=True):
        if time > last:
            spans.append((last, float(time), rates.copy()))
            last = float(time)
        rates[activity] = rate
    return spans


@given(activity_lists())
@settings(max_examples=examples(80), deadline=None)
def test_rates_are_fair_and_within_all_limits(made: Activities) -> None:
    times = simulate(made, rates=10_000)
    assert times.rates is not None
    assert made.weight is not None
    use = np.zeros((made.capacity.size, len(made)))
    for k in range(len(made)):
        entries = slice(made.use_begin[k], made.use_begin[k + 1])
        assert made.use_factor is not None
        use[made.use_resource[entries], k] = made.use_factor[entries]
    done = np.zeros(len(made))
    for begin, end, rates in _rates_over_time(made, times.rates):
        done += rates * (end - begin)
        used = use @ rates
        assert (rates <= made.cap * (1 + 1e-12)).all(), "beyond its cap"
        assert (used <= made.capacity * (1 + 1e-12)).all(), "beyond the capacity"
        flowing = (times.flow_s <= begin) & (times.end_s >= end) & (made.amount > 0)
        full = used >= made.capacity * (1 - 1e-9)
        level = np.where(flowing, rates / made.weight, 0)
        for k in np.flatnonzero(flowing):
            if rates[k] >= made.cap[k] * (1 - 1e-12):
                continue
            # Max-min: on one of its resources, which is full, nobody's level is higher.
            tight = [r for r in np.flatnonzero(use[:, k]) if full[r]]
            assert any(level[use[r] > 0].max() <= level[k] * (1 + 1e-9) for r in tight)
    assert np.allclose(done, made.amount, atol=1e-9)
    for k in range(len(made)):
        waits = made.after[made.after_begin[k] : made.after_begin[k + 1]]
        assert times.ready_s[k] == max(times.end_s[waits], default=0.0)


@given(activity_lists(), st.sampled_from([2.0, 8.0, 0.25]))
@settings(max_examples=examples(30), deadline=None)
def test_all_costs_times_k_take_k_times_as_long(made: Activities, factor: float) -> None:
    longer = replace(made, amount=made.amount * factor, latency_s=made.latency_s * factor)
    assert np.array_equal(simulate(longer).end_s, simulate(made).end_s * factor)
