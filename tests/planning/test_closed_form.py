"""The closed form of a divided step against its simulation by events, device by device, on random
models, machines and configurations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from avial_lab.planning.model_costs import (
    Configuration,
    Layer,
    Machine,
    ModelCosts,
    closed_form,
    costs_of,
)
from tests.planning.step_by_events import step_by_events


def random_model(rng: np.random.Generator) -> ModelCosts:
    """Layers of any work, some without operations back, without columns, without weights."""
    trained = rng.random() < 0.8
    layers: list[Layer] = []
    for k in range(rng.integers(2, 9)):
        work = int(rng.integers(1, 1000))
        result = int(rng.integers(1, 5000))
        layers.append(
            Layer(
                f"w{k}", int(rng.integers(1, 9000)), work, 2 * work,
                int(work * rng.uniform(1, 6)) if trained else 0,
                int(rng.integers(0, 9000)), int(rng.integers(0, 9000)), result,
                int(rng.integers(-1, 2)), int(rng.integers(8, 99)),
            )
        )  # fmt: skip
    return ModelCosts(64, tuple(layers), trained, int(rng.integers(0, 3)) if trained else 0)


def random_machine(rng: np.random.Generator) -> Machine:
    flops, rate, stream = 10 ** rng.uniform(1, 4, 3)
    return Machine(flops, rate, rng.choice([0.0, 10 ** rng.uniform(-5, 1)]), 1e12, stream)


def random_configuration(rng: np.random.Generator, model: ModelCosts) -> Configuration:
    d, h = (int(n) for n in rng.integers(1, 5, 2))
    zero = int(rng.integers(-1, 4)) if model.trained and d > 1 else -1
    p = int(rng.integers(1, min(len(model.layers), 5) + 1))
    if p == 1:
        return Configuration(
            d, h, zero=zero, overlap=model.trained and d > 1 and rng.random() < 0.5
        )
    schedules = ["1f1b", "gpipe", "zero-bubble"]
    schedules += ["interleaved 2"] if 2 * p <= len(model.layers) else []
    given = Configuration(
        d, h, p, int(rng.integers(1, 12)), str(rng.choice(schedules)) if model.trained else "gpipe",
        zero, model.trained and rng.random() < 0.3,
    )  # fmt: skip
    if rng.random() < 0.3 and given.chunks == 1:
        inside = tuple((int(a), int(b)) for a, b in rng.integers(1, 4, (p, 2)))
        return replace(given, d=1, h=1, zero=-1, inside=inside)
    return given


@pytest.mark.quick("0", "1")
@pytest.mark.parametrize("number", range(12))
def test_the_closed_form_is_what_events_give(number: int) -> None:
    """Of 25 configurations each; unequal stages, every schedule, each number of micro-batches."""
    rng = np.random.default_rng(number)
    for _ in range(25):
        model, machine = random_model(rng), random_machine(rng)
        given = random_configuration(rng, model)
        seconds = step_by_events(model, given, machine)
        assert closed_form(model, given, machine)[0] == pytest.approx(seconds, rel=1e-9), given
        parts = costs_of(model, given, machine).seconds
        assert min(parts.values()) >= 0
        assert sum(parts.values()) == pytest.approx(seconds, rel=1e-9)
