"""Searches over transforms: what is in the space, what is not and why; formulas by hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from avial_lab.core.errors import OptionError
from avial_lab.planning import stage_degrees
from avial_lab.planning.foreseen import NOT_LOWERED
from avial_lab.planning.model_costs import (
    Configuration,
    Layer,
    Machine,
    ModelCosts,
    closed_form,
    costs_of,
    parts_of,
    seeded,
)
from avial_lab.planning.model_search import search_model
from tests.planning.test_closed_form import random_machine, random_model

Inside = tuple[tuple[int, int], ...]

LAYER = Layer("w0", 400, 10, 2000, 4000, kept_bytes=80, sent_bytes=80, result_bytes=80, columns=1,
              width=10)  # fmt: skip
LAYERS = tuple(LAYER.__class__(**{**LAYER.__dict__, "name": f"w{k}"}) for k in range(4))
MODEL = ModelCosts(8, LAYERS, trained=True, states=2)
FREE = Machine(1000.0, float("inf"), 0.0, float("inf"))
"""Messages take no time."""


def seconds(d: int, p: int, k: int, schedule: str, *, recompute: bool = False) -> float:
    given = Configuration(d, 1, p, k, schedule, recompute=recompute)
    return closed_form(MODEL, given, FREE)[0]


def test_times_without_messages() -> None:
    """24 s on one device: a pipeline of p loses p - 1 of k + p - 1 turns, with v stages a device
    (p - 1)/v where there are p micro-batches; the way forward is a third of the work.
    """
    assert seconds(1, 1, 1, "") == pytest.approx(24)
    assert seconds(4, 1, 1, "") == pytest.approx(6)
    for k in (1, 2, 4):
        assert seconds(1, 2, k, "1f1b") == pytest.approx(12 + 12 / k)
        assert seconds(1, 2, k, "interleaved 2") == pytest.approx(12 + (6 if k > 1 else 12) / k)
    assert seconds(1, 2, 2, "zero-bubble") == pytest.approx(12 + 2)
    assert seconds(1, 2, 2, "1f1b", recompute=True) == pytest.approx(16 + 4)


def test_crowded_devices_fill_bubbles_of_others() -> None:
    """Four ranks on two cores do 24 s of work in 12 at least, whatever waits for what."""
    crowded = replace(FREE, crowded=2.0)
    for d, p, k in ((4, 1, 1), (1, 4, 8), (2, 2, 4)):
        given = Configuration(d, 1, p, k, "1f1b" if p > 1 else "")
        assert closed_form(MODEL, given, crowded)[0] == pytest.approx(12)
    assert closed_form(MODEL, Configuration(1, 1, 4, 1, "1f1b"), crowded)[0] == pytest.approx(24)


def test_micro_batches_in_flight() -> None:
    """Each is a quarter of 80 bytes kept; the first of two stages has two layers, and the arrays
    that are given.
    """
    weights = 2 * 400 * (1 + 2 + 4 + 1)
    for schedule, flying in (("1f1b", 2), ("gpipe", 4), ("zero-bubble", 2)):
        held = closed_form(MODEL, Configuration(1, 1, 2, 4, schedule), FREE)[1]
        assert held == weights + (flying * 160 + 2 * 80) // 4


def test_messages() -> None:
    machine = Machine(float("inf"), 100.0, 0.5, float("inf"))
    ring = 1600 * 3 / 4 / 100 + 3 * 0.5
    for zero, times in ((-1, 2), (1, 2), (2, 2), (3, 3)):
        given = Configuration(4, 1, 1, 1, "", zero)
        assert closed_form(MODEL, given, machine)[0] == pytest.approx(times * ring)


def test_what_is_held() -> None:
    """Weights, parts and sums of gradients, both states and all of it after the step."""
    sizes = [closed_form(MODEL, Configuration(4, zero=z), FREE)[1] for z in (-1, 1, 2, 3)]
    weights, n = 1600, 4
    plain = weights * (1 + 2 + 4 + 1)
    assert sizes == [
        plain,
        plain - 4 * weights * (n - 1) // n,
        plain - 5 * weights * (n - 1) // n,
        plain - 7 * weights * (n - 1) // n,
    ]


def test_infeasible_rows_say_why() -> None:
    rows = search_model(MODEL, 12, FREE).rows
    reasons = {row.configuration.name: row.reason for row in rows}
    assert reasons["12/1/1/1"] == "12 devices for 8 rows of a batch"
    assert reasons["1/1/12/1 1f1b"] == "12 stages of 4 weights"
    assert reasons["1/12/1/1"] == "%w0 has 10 columns for 12 devices"
    small = Machine(1000.0, 1.0, 0.0, 10_000.0)
    over = {r.configuration.name: r.reason for r in search_model(MODEL, 2, small).rows}
    assert over["2/1/1/1"] == "2.73 KiB over the memory of a device"  # 12,800 bytes
    assert not over["2/1/1/1 zero 2"]
    assert search_model(MODEL, 2, small) == search_model(MODEL, 2, small)
    assert "none has rows, columns and memory enough" in str(search_model(MODEL, 1024, FREE))
    with pytest.raises(OptionError):
        search_model(MODEL, 0, FREE)


def test_no_pipeline_that_is_left_out_is_faster() -> None:
    """Stages of unequal work on 4 and 5 devices: all their divisions, one by one."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model, machine = random_model(rng), replace(random_machine(rng), memory_bytes=1e12)
        for devices in (4, 5):
            found = search_model(model, devices, machine)
            assert found.best is not None
            others = [
                closed_form(model, Configuration(p=p, k=k, schedule="gpipe", inside=each), machine)
                for p in range(2, min(devices - 1, len(model.layers)) + 1)
                for k in (1, 4, 16, 64)
                for each in divisions(model, devices, p, k)
            ]
            assert all(found.best.seconds <= seconds * (1 + 1e-12) for seconds, _ in others)
            assert len(others) == len({*others}) or found.left_out


def test_where_too_many_are_left_their_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one division: no other is below the bound that is said of the rest."""
    monkeypatch.setattr(stage_degrees, "MOST_EVALUATED", 1)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model, machine = random_model(rng), random_machine(rng)
        space = stage_degrees.DividedStages(model, 5, machine, float("inf"))
        assert sum(map(len, space.batches((1, 4)))) == 1
        assert space.is_cut
        least = min(
            closed_form(model, Configuration(p=p, k=k, schedule=schedule, inside=each), machine)[0]
            for p in range(2, min(4, len(model.layers)) + 1)
            for k in (1, 4)
            for each in divisions(model, 5, p, k)
            for schedule in ("gpipe", "zero-bubble")
        )
        assert space.least_s <= least * (1 + 1e-12)


def test_what_could_be_faster_is_given() -> None:
    """With half of all divisions to beat, by any schedule: those that do are among the given."""
    for seed in range(4, 8):
        rng = np.random.default_rng(seed)
        model, machine = random_model(rng), replace(random_machine(rng), memory_bytes=1e12)
        seconds = {
            (p, k, each): min(
                closed_form(model, Configuration(p=p, k=k, schedule=way, inside=each), machine)[0]
                for way in ("gpipe", "1f1b", "zero-bubble")
            )
            for p in range(2, min(4, len(model.layers)) + 1)
            for k in (1, 4)
            for each in divisions(model, 5, p, k)
            if len({*each}) > 1
        }
        to_beat = float(np.median([*seconds.values()]))
        space = stage_degrees.DividedStages(model, 5, machine, to_beat)
        given = {(c.p, c.k, c.inside) for batch in space.batches((1, 4)) for c in batch}
        assert {each for each, s in seconds.items() if s < to_beat * (1 - 1e-12)} <= given
        assert len(given) < len(seconds)


def divisions(model: ModelCosts, devices: int, p: int, k: int) -> Iterator[Inside]:
    """(d, h) of each stage, where its rows and columns suffice."""
    some = [(d, h) for d in range(1, devices) for h in range(1, devices) if d * h < devices]
    for found in itertools.product(some, repeat=p):
        parts = zip(parts_of(model, p), found, strict=True)
        if sum(d * h for d, h in found) == devices and all(
            (d == 1 or d * k <= model.rows)
            and (h == 1 or (seeded(part) and all(each.width >= h for each in seeded(part))))
            for part, (d, h) in parts
        ):
            yield found


def test_stages_divided_each_by_itself() -> None:
    """One layer has two thirds of the work, the other one a weight that is better not summed."""
    first = replace(LAYER, work=20, forward=4000, backward=8000, sent_bytes=0, columns=-1)
    second = replace(first, name="w1", weight_bytes=1_000_000, work=10, forward=2000, backward=4000)
    model = ModelCosts(8, (first, second), trained=True)
    found = search_model(model, 3, replace(FREE, bytes_per_s=1e5))
    assert found.best is not None
    assert found.best.words == "pipeline 2 x 4 zero-bubble, data 2 in 0"
    assert found.best.configuration.name == "2x1+1x1/2/4 zero-bubble"
    assert "pipelines whose stages are divided each by itself: what their stages" in str(found)
    assert found.explain("2x1+1x1/2/4 zero-bubble", "data 3")


def test_sums_that_overlap() -> None:
    """Four layers of 400 bytes, 4 s back each on one of two devices at the half: two of three sums
    of 2 s are hidden, the last one is not, and copies go round behind it.
    """
    machine = Machine(1000.0, 100.0, 0.0, float("inf"))
    alone = costs_of(MODEL, Configuration(2), machine).seconds
    late = costs_of(MODEL, Configuration(2, overlap=True), machine).seconds
    assert alone["sums of gradients"] == pytest.approx(2 * 8)
    assert late["sums of gradients"] == pytest.approx(2 + 8)
    rows = {row.words: row for row in search_model(MODEL, 2, machine).rows}
    assert rows["data 2, overlap"].seconds == pytest.approx(rows["data 2"].seconds - 6)
    assert "data 2, zero 1, overlap" in rows


MACHINE = Machine(1000.0, 200.0, 0.01, 10_000.0)


def test_what_costs_are_made_of() -> None:
    for row in search_model(MODEL, 4, MACHINE).rows:
        if row.predicted_s is not None:
            found = costs_of(MODEL, row.configuration, MACHINE)
            assert sum(found.seconds.values()) == pytest.approx(row.predicted_s, rel=1e-12)
            assert int(sum(found.held.values())) == row.predicted_bytes


def test_why_one_beats_another() -> None:
    """One micro-batch takes 24 s and six messages of 0.41 s; of eight each device computes 6 s, and
    waits for the bubble of 2.25 s and for messages.
    """
    found = search_model(MODEL, 4, MACHINE)
    told = found.explain("pipeline 4 x 8 1f1b", "pipeline 4 x 1 1f1b")
    assert "pipeline 4 x 8 1f1b is 2.87 times as fast as pipeline 4 x 1 1f1b" in told
    assert "most of it: waiting in the pipeline, 17.3 s less" in told
    assert found.best is not None
    assert found.best.words in found.explain("pipeline 4 x 1 1f1b")
    with pytest.raises(OptionError, match="'data 3' is no configuration of this search"):
        found.explain("data 3")
    with pytest.raises(OptionError) as refused:
        found.explain("pipeline 2 x 2 1f1b")
    assert refused.value.hint == "it takes 2 devices, and all here take 4"


def test_what_one_lacks() -> None:
    """12,800 bytes of 10,000; ZeRO 2 is enough."""
    told = search_model(MODEL, 2, MACHINE).explain("data 2")
    assert "data 2 cannot be: 2.73 KiB over the memory of a device" in told
    assert "a device would hold 12.5 KiB of 9.77 KiB: state of the optimizer 6.25 KiB" in told
    assert "with zero 1 it is 9.38 KiB: it fits" in told
    assert "the least that would do: " in told
    nothing = str(search_model(MODEL, 2, replace(MACHINE, memory_bytes=100.0)))
    assert nothing.splitlines()[0].endswith("infeasible")
    assert "the least that would do: " in nothing
    assert "12 stages of 4 weights" in search_model(MODEL, 12, MACHINE).explain("1/1/12/1 1f1b")


def test_a_table_says_that_simulated_tasks_are_not_compiled() -> None:
    found = search_model(MODEL, 2, FREE)
    rows = tuple(replace(row, simulated_s=1.0) for row in found.rows[:1])
    assert NOT_LOWERED not in str(found)
    assert NOT_LOWERED in str(replace(found, rows=rows))
