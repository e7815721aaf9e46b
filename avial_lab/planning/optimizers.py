"""How weights follow their gradients, as a user says it.

`adamw lr=0.001 decay=0.01` -> Optimizer: its numbers, and the tensors that it keeps beside each
weight.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from avial_lab.core.errors import OptionError
from avial_lab.core.words import shortened

DEFAULTS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "sgd": {"lr": 0.01, "decay": 0.0},
        "momentum": {"lr": 0.01, "momentum": 0.9, "decay": 0.0},
        "adamw": {"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decay": 0.01},
    }
)
"""By its name, its numbers and what they are where they are not given."""

KEPT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"sgd": (), "momentum": ("m",), "adamw": ("m", "v")}
)
"""Endings of the names of what it keeps for a weight: %w_m, %w_v."""

STEP = "step"
"""The argument that counts the steps, a number of f32; adamw's alone."""

_USAGE = "write for example: sgd lr=0.01, momentum lr=0.01 momentum=0.9, adamw lr=0.001 decay=0.01"


@dataclass(frozen=True)
class Optimizer:
    """sgd: w - lr g. momentum: m' = momentum m + g, w - lr m'. adamw: Loshchilov, Hutter, Decoupled
    Weight Decay Regularization, 2019, algorithm 2. `decay` is decoupled from the gradient in all.
    """

    kind: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    @staticmethod
    def parse(text: str) -> Optimizer:
        """OptionError for what is none.

        >>> str(Optimizer.parse("sgd lr=0.1"))
        'sgd lr=0.1 decay=0.0'
        """
        kind, *given = re.findall(r"[^\s,+]+", text) or [""]
        if kind not in DEFAULTS:
            raise OptionError(f"'{shortened(text, 60)}' is no optimizer", hint=_USAGE)
        numbers = dict(DEFAULTS[kind])
        for each in given:
            match = re.fullmatch(r"(\w+)[=:](\d*\.?\d+(?:[eE]-?\d{1,3})?)", each)
            if match is None or match[1] not in numbers:
                told = ", ".join(numbers)
                raise OptionError(
                    f"'{shortened(each, 60)}' is no number of {kind}; it has {told}", hint=_USAGE
                )
            numbers[match[1]] = float(match[2])
        return Optimizer(kind, numbers)

    @property
    def kept(self) -> tuple[str, ...]:
        return KEPT[self.kind]

    @property
    def counts(self) -> bool:
        """Whether it has to know how many steps there were."""
        return self.kind == "adamw"

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"{name}={value!r}" for name, value in self.numbers.items())])
