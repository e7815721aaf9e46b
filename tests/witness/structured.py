"""linalg: every structured operation by its own body and maps, element by element, in the order of
its loops; softmax by its definition.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from mlir import ir
from mlir.dialects import linalg

from tests.witness.machine import RULES, Frame, Op, Step, rule
from tests.witness.maps import Map, affine_map
from tests.witness.values import Array, Undefined, Value


@rule("linalg.yield")
def _yield(op: Op) -> Step:
    return op.handed_on()


@rule("linalg.index")
def _index(op: Op) -> Step:
    dim, (out,) = op.number("dim"), op.outs
    loops = op.function.loops

    def step(frame: Frame) -> None:
        frame[out] = loops[-1][dim]

    return step


def structured(op: Op) -> Step:
    """Whatever MLIR knows to be loops around a body; of tensors, into copies of the inits."""
    maps = [affine_map(str(m)) for m in ir.ArrayAttr(linalg.get_indexing_maps(op.op))]
    body, ins, outs, loops = op.region(), op.ins, op.outs, op.function.loops
    inits = _inits(op)

    def run(frame: Frame) -> None:
        values: list[Value] = [frame[k] for k in ins]
        for k in inits:
            if op.is_tensor:
                values[k] = values[k].copy()
        for index in itertools.product(*map(range, _extents(maps, values))):
            places = [found(index) for found in maps]
            numbers = [
                value[place] if isinstance(value, Array) else value
                for value, place in zip(values, places, strict=True)
            ]
            loops.append(index)
            results = body(frame, *numbers)
            loops.pop()
            for k, result in zip(inits, results, strict=True):
                values[k][places[k]] = result
        for out, k in zip(outs, inits, strict=False):
            frame[out] = values[k]

    return run


def _inits(op: Op) -> Sequence[int]:
    """Which operands are written."""
    count = len(op.op.regions[0].blocks[0].operations[-1].operation.operands)
    return range(len(op.ins) - count, len(op.ins))


def _extents(maps: Sequence[Map], values: Sequence[Value]) -> list[int]:
    """How often each loop runs: the extent of the dimensions that it alone goes along."""
    found: dict[int, int] = {}
    for map_, value in zip(maps, values, strict=True):
        for k, position in enumerate(map_.positions):
            if position is None:
                continue
            if found.setdefault(position, value.sizes[k]) != value.sizes[k]:
                raise Undefined(f"loop {position} runs {found[position]} or {value.sizes[k]} times")
    return [found[k] for k in range(maps[0].inputs)]


for _name in (
    "generic", "map", "reduce", "broadcast", "transpose", "fill", "copy", "exp", "log", "abs",
    "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf",
    "add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf", "select", "elementwise",
    "contract", "matmul", "quantized_matmul", "mmt4d", "batch_mmt4d", "batch_matmul",
    "quantized_batch_matmul", "batch_reduce_matmul", "matvec", "vecmat", "batch_matvec",
    "batch_vecmat", "dot", "fill_rng_2d",
    "conv_1d", "conv_2d", "conv_3d", "conv_1d_nwc_wcf", "conv_1d_ncw_fcw", "conv_2d_nhwc_hwcf",
    "conv_2d_nhwc_fhwc", "conv_2d_nchw_fchw", "conv_2d_ngchw_fgchw", "conv_2d_ngchw_gfchw",
    "conv_2d_nhwgc_gfhwc", "conv_3d_ndhwc_dhwcf", "conv_3d_ncdhw_fcdhw",
    "conv_2d_nhwc_hwcf_q", "conv_2d_nchw_fchw_q", "conv_3d_ndhwc_dhwcf_q",
    "depthwise_conv_1d_nwc_wc", "depthwise_conv_1d_ncw_cw", "depthwise_conv_1d_nwc_wcm",
    "depthwise_conv_2d_nhwc_hwc", "depthwise_conv_2d_nchw_chw", "depthwise_conv_2d_nhwc_hwcm",
    "depthwise_conv_3d_ndhwc_dhwc", "depthwise_conv_3d_ncdhw_cdhw", "depthwise_conv_3d_ndhwc_dhwcm",
    "pooling_nhwc_sum", "pooling_nchw_sum", "pooling_nhwc_max", "pooling_nhwc_max_unsigned",
    "pooling_nchw_max", "pooling_nhwc_min", "pooling_nhwc_min_unsigned", "pooling_nwc_sum",
    "pooling_ncw_sum", "pooling_nwc_max", "pooling_nwc_max_unsigned", "pooling_ncw_max",
    "pooling_nwc_min", "pooling_nwc_min_unsigned", "pooling_ndhwc_sum", "pooling_ndhwc_max",
    "pooling_ndhwc_min",
):  # fmt: skip
    RULES[f"linalg.{_name}"] = structured


@rule("linalg.softmax")
def _softmax(op: Op) -> Step:
    """exp(x - max) / sum of exp(x - max), along one dimension."""
    source, target = op.ins
    dim, outs = op.number("dimension"), op.outs

    def step(frame: Frame) -> None:
        array: Array = frame[source]
        result: Array = frame[target].copy() if outs else frame[target]
        lanes = [range(n) for n in array.sizes]
        extent, lanes[dim] = lanes[dim], range(1)
        for start in itertools.product(*lanes):
            places = [(*start[:dim], k, *start[dim + 1 :]) for k in extent]
            numbers = [array[place] for place in places]
            powers = [np.exp(number - max(numbers)) for number in numbers]
            for place, power in zip(places, powers, strict=True):
                result[place] = power / sum(powers[1:], powers[0])
        for out in outs:
            frame[out] = result

    return step
