"""A neighbour on the cores, and a clock that drops, are told."""

from __future__ import annotations

import pytest

from avial_lab.machine.steadiness import LEAST_PACE, LEAST_SHARE, Probe, Watch, doubts, probe

QUIET = Probe(100.0, 1.0)


def test_a_steady_machine_is_not_doubted() -> None:
    assert doubts([QUIET, Probe(100 * LEAST_PACE, LEAST_SHARE)], usual=103) == ()
    assert doubts([]) == ()


@pytest.mark.parametrize(
    ("probes", "usual", "words"),
    [
        ([QUIET, Probe(100, 0.6), QUIET], 0, "others had up to 40 % of the cores' time"),
        ([QUIET, Probe(70, 1.0)], 0, "cores became 30 % slower"),
        ([QUIET, QUIET], 125, "cores are 20 % slower than when this machine was measured"),
    ],
)
def test_what_is_not_steady_is_told_once(probes: list[Probe], usual: float, words: str) -> None:
    (told,) = doubts(probes, usual)
    assert words in told


def test_a_probe_is_of_this_machine() -> None:
    watch = Watch()
    watch.look()
    (found,) = watch.probes
    assert found.pace > 0
    assert 0 < found.share < 1.1
    assert probe(1e-4).pace > 0
