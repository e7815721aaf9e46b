"""What DistIR's simulator says of a multi-layer perceptron in training, without running it.

Configurations (data, horizontal, pipeline degrees, micro-batches) -> seconds and peak bytes of
each, for all with equal (p, k) at once.

Source: microsoft/dist-ir, mlp_dhp_transform and simulator; its oddities are kept: links of one
speed, no overlap, a broadcast that costs nothing, one weight's update counted, values without a
reader never freed. It is for comparison, and used by `costs="distir"` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from avial_lab.machine.constants import (
    DISTIR_BYTES_PER_S,
    DISTIR_FLOPS_PER_S,
    DISTIR_LAUNCH_S,
    DISTIR_LINK_BYTES_PER_S,
)

Array = NDArray[np.float64]

ITEM = 2
"""Bytes of an element: f16."""


@dataclass(frozen=True)
class Mlp:
    """`layers` square weights of `width`."""

    layers: int
    width: int

    def __str__(self) -> str:
        return f"mlp:{self.layers}x{self.width}"


def elementwise_s(elements: Array, operands: int) -> Array:
    return (
        DISTIR_LAUNCH_S
        + ITEM * elements * operands / DISTIR_BYTES_PER_S
        + elements / DISTIR_FLOPS_PER_S
    )


def product_s(a: Array, b: Array, c: Array) -> Array:
    """Of a matrix a × b and one b × c."""
    return (
        DISTIR_LAUNCH_S
        + ITEM * (a * b + b * c) / DISTIR_BYTES_PER_S
        + 2 * a * b * c / DISTIR_FLOPS_PER_S
    )


def all_reduce_s(nbytes: Array, members: Array) -> Array:
    return 2 * nbytes * (members - 1) / members / DISTIR_LINK_BYTES_PER_S


@lru_cache(maxsize=256)
def steps_of(stages: int, turns: int) -> tuple[tuple[tuple[int, bool, int], ...], ...]:
    """The list schedule, step by step: (stage, whether it is a forward pass, micro-batch) of every
    device that has something to do, devices ascending.

    A pass may begin when what it reads was made in earlier steps; a device alternates between
    forward and backward passes, where it can, and takes the lowest micro-batch.
    """
    forward, backward = [0] * stages, [0] * stages  # how many each stage has done
    was_forward = [False] * stages
    steps: list[tuple[tuple[int, bool, int], ...]] = []
    while min(backward) < turns:
        taken: list[tuple[int, bool, int]] = []
        for s in range(stages):
            may_forward = forward[s] < (turns if s == 0 else forward[s - 1])
            ready = forward[s] if s == stages - 1 else backward[s + 1]
            may_backward = backward[s] < ready
            if may_forward and (not was_forward[s] or not may_backward):
                taken.append((s, True, forward[s]))
            elif may_backward:
                taken.append((s, False, backward[s]))
        for s, is_forward, _ in taken:
            (forward if is_forward else backward)[s] += 1
            was_forward[s] = is_forward
        steps.append(tuple(taken))
    return tuple(steps)


@dataclass
class _Device:
    """One stage's clock and memory; arrays over the configurations."""

    clock: Array
    live: Array
    peak: Array

    def takes(self, seconds: Array | float) -> None:
        self.clock = self.clock + seconds

    def makes(self, nbytes: Array) -> None:
        self.live = self.live + nbytes
        self.peak = np.maximum(self.peak, self.live)

    def frees(self, nbytes: Array) -> None:
        self.live = self.live - nbytes

    def repeats(self, part: _Device) -> None:
        """What `part`, which began with nothing, did."""
        self.clock = self.clock + part.clock
        self.peak = np.maximum(self.peak, self.live + part.peak)
        self.live = self.live + part.live


def evaluated(
    model: Mlp, configurations: Sequence[tuple[int, int, int]], stages: int, turns: int
) -> tuple[Array, Array]:
    """Seconds and peak bytes for each (batch, d, h); all have these stages and micro-batches, and
    divide batch, width and layers.
    """
    return _Evaluation(model, configurations, stages, turns).run()


class _Evaluation:
    def __init__(
        self, model: Mlp, configurations: Sequence[tuple[int, int, int]], stages: int, turns: int
    ) -> None:
        self.model, self.stages, self.turns = model, stages, turns
        batch, self.d, self.h = np.array(configurations, float).reshape(-1, 3).T
        self.width = float(model.width)
        self.rows = batch / self.d / turns
        self.per_stage = model.layers // stages
        whole = ITEM * batch / self.d * self.width
        weights = ITEM * self.width * self.width / self.h * self.per_stage
        zero = np.zeros_like(self.d)
        self.devices: list[_Device] = []
        for s in range(stages):
            held = weights + (whole if s == 0 else zero)
            held = held + (whole + 4 if s == stages - 1 else zero)
            self.devices.append(_Device(zero, held, held))
        self.passes: dict[tuple[int, bool, bool], tuple[_Device, ...]] = {}
        self.parts: list[_Device] = []

    def outs(self, layer: int) -> Array:
        """The columns of a layer's weight that a device has; `ins` are its rows."""
        return self.width / self.h if layer % 2 == 0 else np.full_like(self.h, self.width)

    def ins(self, layer: int) -> Array:
        return self.width / self.h if layer % 2 else np.full_like(self.h, self.width)

    def bytes_of(self, columns: Array) -> Array:
        return ITEM * self.rows * columns

    @property
    def weight_bytes(self) -> Array:
        return ITEM * self.width * self.width / self.h

    def run(self) -> tuple[Array, Array]:
        for step in steps_of(self.stages, self.turns):
            for stage, is_forward, turn in step:
                self._pass(stage, is_forward, turn)
            for stage, is_forward, _ in step:
                self._send(stage, is_forward)
        return self._end()

    def _pass(self, stage: int, is_forward: bool, turn: int) -> None:
        """Passes are alike but for what is concatenated of micro-batches, which grows: they are
        computed once, in parts between which that is done.
        """
        device = self.devices[stage]
        key = (stage, is_forward, turn > 0)
        if key not in self.passes:
            self.parts = [self._nothing()]
            (self._forward if is_forward else self._backward)(stage, turn)
            self.passes[key] = tuple(self.parts)
        first, *others = self.passes[key]
        device.repeats(first)
        for part in others:
            self._concatenate(device, is_forward, turn)
            device.repeats(part)

    def _nothing(self) -> _Device:
        zero = np.zeros_like(self.d)
        return _Device(zero, zero, zero)

    def _concatenate(self, device: _Device, is_forward: bool, turn: int) -> None:
        """The losses of micro-batches, or the gradients of their inputs, become one value."""
        columns = self.outs(self.model.layers - 1) if is_forward else self.ins(0)
        new = self.bytes_of(columns)
        device.makes((turn + 1) * new)
        device.frees((turn + 1) * new)
        device.takes(DISTIR_LAUNCH_S if turn else 0.0)

    def _layers(self, stage: int) -> range:
        return range(stage * self.per_stage, (stage + 1) * self.per_stage)

    def _forward(self, stage: int, turn: int) -> None:
        device = self.parts[-1]
        for layer in self._layers(stage):
            rows, ins, outs = self.rows, self.ins(layer), self.outs(layer)
            device.takes(product_s(rows, ins, outs))
            device.makes(self.bytes_of(outs))
            if layer % 2:
                self._reduced(device, outs)
            device.takes(elementwise_s(rows * outs, 1))
            device.makes(self.bytes_of(outs))
        if stage == self.stages - 1:
            self._loss()

    def _reduced(self, device: _Device, columns: Array) -> None:
        """An all-reduce of the horizontal members, where there are any."""
        nbytes = self.bytes_of(columns)
        some = self.h > 1
        device.takes(np.where(some, all_reduce_s(nbytes, self.h), 0.0))
        device.makes(np.where(some, nbytes, 0.0))
        device.frees(np.where(some, nbytes, 0.0))

    def _loss(self) -> None:
        device = self.parts[-1]
        outs = self.outs(self.model.layers - 1)
        nbytes = self.bytes_of(outs)
        device.takes(elementwise_s(self.rows * outs, 1))
        device.makes(nbytes)
        device = self._after_concatenation(device)
        device.takes(elementwise_s(self.rows * outs, 1))
        device.makes(nbytes)
        device.frees(nbytes)  # what the last layer made

    def _after_concatenation(self, device: _Device) -> _Device:
        if self.turns == 1:
            return device
        self.parts.append(self._nothing())
        return self.parts[-1]

    def _backward(self, stage: int, turn: int) -> None:
        device = self.parts[-1]
        for layer in reversed(self._layers(stage)):
            rows, ins, outs = self.rows, self.ins(layer), self.outs(layer)
            before, after = self.bytes_of(ins), self.bytes_of(outs)
            device.takes(elementwise_s(rows * outs, 2))
            device.makes(after)
            device.frees(2 * after)  # the product, and the gradient from above
            device.takes(product_s(rows, outs, ins) + product_s(ins, rows, outs))
            device.makes(before + self.weight_bytes)
            device.frees(after + (before if layer else 0.0))  # the input of layer 0 stays
            if layer % 2 == 0:
                self._reduced(device, ins)
            if layer == 0:
                device = self._after_concatenation(device)
            self._added(device, turn)

    def _added(self, device: _Device, turn: int) -> None:
        """The gradient of a weight, added to that of earlier micro-batches."""
        if self.turns == 1:
            return
        device.makes(self.weight_bytes)
        if not turn:
            device.frees(self.weight_bytes)
            return
        device.takes(elementwise_s(self.weight_bytes / ITEM, 2))
        device.frees(2 * self.weight_bytes)

    def _send(self, stage: int, is_forward: bool) -> None:
        """Both wait for each other."""
        to = stage + 1 if is_forward else stage - 1
        if not 0 <= to < self.stages:
            return
        first, second = self.devices[stage], self.devices[to]
        layers = self._layers(stage)
        columns = self.outs(layers[-1]) if is_forward else self.ins(layers[0])
        nbytes = self.bytes_of(columns)
        met = np.maximum(first.clock, second.clock) + nbytes / DISTIR_LINK_BYTES_PER_S
        first.clock = second.clock = met
        second.makes(nbytes)
        first.frees(nbytes)

    def _end(self) -> tuple[Array, Array]:
        """Gradients are added over the data-parallel members, and one weight's update counts."""
        some = self.d > 1
        for device in self.devices:
            for _ in range(self.per_stage):
                device.takes(np.where(some, all_reduce_s(self.weight_bytes, self.d), 0.0))
                device.makes(np.where(some, self.weight_bytes, 0.0))
                device.frees(np.where(some, self.weight_bytes, 0.0))
            device.takes(elementwise_s(self.weight_bytes / ITEM, 2))
        seconds = np.max([device.clock for device in self.devices], axis=0)
        return seconds, np.max([device.peak for device in self.devices], axis=0)
