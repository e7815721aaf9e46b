"""What sums of parts cost, counted message by message."""

from __future__ import annotations

import pytest

from avial_lab.planning.sum_algorithms import SumBy, cost_of_sum, fastest_sum, power_below


@pytest.mark.parametrize("devices", range(1, 18))
def test_doubling_reaches_everybody(devices: int) -> None:
    """Each device has every part once: rounds and messages as they are counted."""
    most, over = power_below(devices)
    have = [{n} for n in range(devices)]
    messages = rounds = 0
    for n in range(over):
        have[n] |= have[most + n]
        messages += 1
    r = 1
    while r < most:
        have[:most] = [have[n] | have[n ^ r] for n in range(most)]
        messages, rounds, r = messages + most, rounds + 1, 2 * r
    for n in range(over):
        have[most + n] = have[n]
        messages += 1
    assert all(each == set(range(devices)) for each in have)
    cost = cost_of_sum(SumBy.DOUBLING, devices, 10)
    assert (cost.rounds, cost.sent_bytes) == (rounds + (2 if over else 0), 10 * messages)


def test_the_fastest() -> None:
    """4 devices: a ring takes 6 rounds and 1.5 of the bytes, doubling 2 rounds and 2 of them."""
    assert [cost_of_sum(by, 4, 100).rounds for by in SumBy] == [6, 3, 2]
    assert [cost_of_sum(by, 4, 100).nbytes for by in SumBy] == [150, 500, 200]
    assert fastest_sum(4, 100, 1e-5, 1e9)[0].by is SumBy.DOUBLING
    assert fastest_sum(4, 10**8, 1e-5, 1e9)[0].by is SumBy.RING
    assert fastest_sum(1, 10, 1e-5, 1e9)[0].by is SumBy.RING
