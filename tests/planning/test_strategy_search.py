"""The search over degrees, and DistIR's own numbers."""

from __future__ import annotations

import json

import pytest

from avial_lab.cli.main import main
from avial_lab.core.errors import OptionError
from avial_lab.planning.distir_costs import Mlp, steps_of
from avial_lab.planning.strategy_search import StrategyRow, model_called, search_strategies

XS, SMALL = Mlp(8, 512), Mlp(16, 8192)

# What microsoft/dist-ir @7cfa1b0 simulates: (model, batch, d/h/p/k, seconds, peak bytes).
SIMULATED = [
    (XS, 4096, "1/1/1/1", 0.004394900953396826, 88080388),
    (XS, 4096, "1/2/1/1", 0.013220522766222225, 69206020),
    (XS, 4096, "2/1/1/1", 0.0037598799989841257, 46137348),
    (XS, 4096, "1/1/2/2", 0.006427192273269842, 39845888),
    (XS, 4096, "2/2/2/4", 0.006986635660190469, 13631488),
    (XS, 4096, "8/1/2/2", 0.0026556100368253983, 8126468),
    (SMALL, 8192, "2/1/8/32", 0.5223635567014597, 1000341504),
    (SMALL, 8192, "4/4/1/1", 0.755815239048128, 1342177284),
    (SMALL, 8192, "1/1/16/128", 0.5469675088944764, 806354948),
]


def row_of(model: Mlp, batch: int, name: str) -> StrategyRow:
    d, h, p, _ = map(int, name.split("/"))
    found = search_strategies(model, [batch], [d * h * p])
    return next(row for row in found.rows if row.name == name)


@pytest.mark.parametrize(("model", "batch", "name", "seconds", "peak"), SIMULATED)
def test_distirs_own_numbers(model: Mlp, batch: int, name: str, seconds: float, peak: int) -> None:
    row = row_of(model, batch, name)
    assert row.latency_s == pytest.approx(seconds, rel=1e-9)
    assert row.peak_bytes == peak


def test_both_grids_and_their_best() -> None:
    xs = search_strategies(XS, [4096], [1, 2, 4, 8, 16])
    small = search_strategies(SMALL, [8192], [16])
    assert (len(xs.rows), len(small.rows)) == (155, 75)
    assert len(xs.ranked) + len(small.ranked) == 223
    of_16 = search_strategies(XS, [4096], [16]).best
    assert of_16 is not None
    assert of_16.name == "8/1/2/2"
    assert small.best is not None
    assert small.best.name == "2/1/8/32"


def test_what_cannot_be_says_why() -> None:
    rows = {row.name: row for row in search_strategies(XS, [4098], [6]).rows}
    assert rows["3/1/2/2"].reason == "DistIR has no all-reduce of 3 devices"
    assert rows["1/1/6/2"].reason == "8 layers do not make 6 equal stages"
    over = search_strategies(XS, [4096], [1], memory_bytes=88e6)
    assert over.rows[0].reason == "78.5 KiB over the memory of a device"
    assert "infeasible: 78.5 KiB over the memory of a device" in str(over)
    assert "the least that would do: 84 MiB, 1/1/1/1" in str(over)
    assert over.explain("1/1/1/1").startswith("1/1/1/1 cannot be: 78.5 KiB over")
    assert over.best is None
    assert search_strategies(XS, [3], [2]).rows[-1].reason == (
        "a batch of 3 rows is not divisible by 2 x 1"
    )
    narrow = {row.name: row for row in search_strategies(Mlp(8, 9), [4], [2]).rows}
    assert narrow["1/2/1/1"].reason == "a width of 9 is not divisible by 2"


def test_why_one_is_faster() -> None:
    found = search_strategies(XS, [4096], [16])
    assert found.explain("2/4/2/4", "8/1/2/2") == (
        "8/1/2/2 takes 2.66 ms, 2/4/2/4 8.19 ms: 3.08 times as long; 2/4/2/4 holds 10.5 MiB, "
        "8/1/2/2 holds 7.75 MiB"
    )
    assert found.explain("2/4/2/4").startswith("8/1/2/2 takes")
    with pytest.raises(OptionError, match="'3/3/3/3' is no configuration of this search"):
        found.explain("3/3/3/3")


def test_the_front_has_no_dominated_row() -> None:
    found = search_strategies(SMALL, [8192], [16])
    for row in found.front:
        assert row.latency_s is not None
        assert row.peak_bytes is not None
        for other in found.ranked:
            assert other.latency_s is not None
            assert other.peak_bytes is not None
            assert other.latency_s >= row.latency_s or other.peak_bytes > row.peak_bytes


@pytest.mark.parametrize(("stages", "turns"), [(1, 1), (2, 3), (4, 8)])
def test_a_schedule_does_every_pass_after_what_it_reads(stages: int, turns: int) -> None:
    done: set[tuple[int, bool, int]] = set()
    for step in steps_of(stages, turns):
        for stage, is_forward, turn in step:
            if is_forward and stage:
                assert (stage - 1, True, turn) in done
            if not is_forward:
                assert (stage, True, turn) in done
                assert stage == stages - 1 or (stage + 1, False, turn) in done
        done.update(step)
    assert len(done) == 2 * stages * turns


def test_batches_at_once_are_those_apart() -> None:
    both = search_strategies(XS, [2048, 4096], [4])
    apart = [row for batch in (2048, 4096) for row in search_strategies(XS, [batch], [4]).rows]
    assert [(r.name, r.latency_s, r.peak_bytes) for r in both.rows] == [
        (r.name, r.latency_s, r.peak_bytes) for r in apart
    ]


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["search", "mlp:8x512", "--batch", "4096", "--devices", "16", "--costs", "distir"]
    assert main([*line, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["best"]["d"], facts["best"]["p"]) == (8, 2)
    assert len(facts["rows"]) == 75
    assert set(facts["rows"][0]) == {
        "batch", "d", "h", "p", "k", "feasible", "reason", "latency_s", "peak_bytes",
    }  # fmt: skip
    assert main(line) == 0
    assert "75 configurations, 7 infeasible" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["mlp:0x4", "mlp:8", "gpt2", "mlp:8x512x3"])
def test_models_that_are_not_there(name: str) -> None:
    with pytest.raises(OptionError, match="there is no model"):
        model_called(name)


@pytest.mark.parametrize(("batch", "devices"), [([0], [1]), ([4], [0]), ([4], [])])
def test_numbers_that_cannot_be(batch: list[int], devices: list[int]) -> None:
    with pytest.raises(OptionError):
        search_strategies(XS, batch, devices)
