"""Squeezed bytes are the same bytes afterwards, and are sent only where that is faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.runtime.rank.squeeze import Gain, Squeezer, expanded, part_of, squeezed, tried

SMOOTH = np.sin(np.linspace(0, 10, 1 << 15)).view(np.uint8)
RANDOM = np.random.default_rng(0).integers(0, 256, 1 << 18).astype(np.uint8)


@given(st.binary(max_size=300), st.integers(1, 300), st.sampled_from([1, 4, 8]))
def test_the_same_bytes_come_back(some: bytes, times: int, width: int) -> None:
    data = np.frombuffer(some * times, np.uint8)
    back = expanded(memoryview(squeezed(data.data, width)), data.nbytes)
    assert back == data.tobytes()


@pytest.mark.parametrize("width", [1, 4, 8])
def test_bytes_of_any_kind(width: int) -> None:
    for data in (SMOOTH, RANDOM, RANDOM[:1001], SMOOTH[3:], np.zeros(1 << 16, np.uint8)):
        back = expanded(memoryview(squeezed(data.data, width)), data.nbytes)
        assert back == data.tobytes()


def test_numbers_are_taken_for_what_they_are() -> None:
    assert tried(SMOOTH.data).width == 8
    assert tried(SMOOTH.data).share < 0.8
    assert (
        tried(np.sin(np.linspace(0, 10, 1 << 16, dtype=np.float32)).view(np.uint8).data).width == 4
    )
    assert tried(RANDOM.data).share > 1


def test_a_slow_link_gets_fewer_bytes_and_a_fast_one_those_there_are() -> None:
    zeros = memoryview(bytes(1 << 20))
    sent = memoryview(Squeezer().part(0, zeros, 1e3))
    assert sent.nbytes < zeros.nbytes / 100
    assert part_of(sent, zeros.nbytes) == zeros
    for link in (0.0, 1e9):
        assert Squeezer().part(0, zeros, link) is zeros
    assert Squeezer().part(0, RANDOM.data, 1e3) == RANDOM.data


def test_it_is_worth_what_it_saves_on_the_way() -> None:
    assert Gain(8, 0.6, 40e6).worth(12.5e6)
    assert not Gain(8, 0.6, 40e6).worth(125e6)
    assert not Gain(8, 1.01, 1e9).worth(1.0)
