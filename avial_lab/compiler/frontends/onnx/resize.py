"""Images of other sizes: Resize and its forerunner Upsample, dimension by dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from avial_lab.compiler.frontends.onnx.elementwise import check_float
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import NotCovered, Operand, axis_of, constant
from avial_lab.compiler.frontends.onnx.writer import Writer

MOST = 1 << 20
"""Of an image, along a dimension."""

Coordinates = Callable[[np.ndarray, float, int, int], np.ndarray]
"""Places of a new dimension, its scale, the old and the new extent -> places in the old one."""

_FROM: Mapping[str, Coordinates] = {
    "half_pixel": lambda x, s, _n, _m: (x + 0.5) / s - 0.5,
    "pytorch_half_pixel": lambda x, s, _n, m: (x + 0.5) / s - 0.5 if m > 1 else x * 0,
    "asymmetric": lambda x, s, _n, _m: x / s,
    "align_corners": lambda x, _s, n, m: x * (n - 1) / (m - 1) if m > 1 else x * 0,
    "half_pixel_symmetric": lambda x, s, n, m: n / 2 * (1 - m / (s * n)) + (x + 0.5) / s - 0.5,
}

_NEAREST: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _chosen(node: Node, name: str, default: str, known: Mapping[str, object]) -> str:
    value = node.attribute(name, default)
    if value not in known:
        raise NotCovered(f"{name} '{value}' is not covered; {', '.join(known)} are")
    return value


def _resize(node: Node, w: Writer) -> Made:
    x, old = node.input(0), node.version < 11
    for name, usual in (("antialias", 0), ("exclude_outside", 0)):
        if node.attribute(name, usual) != usual:
            raise NotCovered(f"{name} is not covered")
    if node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NotCovered("keep_aspect_ratio_policy is covered as 'stretch'")
    first = "asymmetric" if old else "half_pixel"
    coordinates = _FROM[_chosen(node, "coordinate_transformation_mode", first, _FROM)]
    rounding = _NEAREST[
        _chosen(node, "nearest_mode", "floor" if old else "round_prefer_floor", _NEAREST)
    ]
    linear = _chosen(node, "mode", "nearest", {"nearest": 0, "linear": 0}) == "linear"
    axes = node.numbers("axes") or list(range(len(x.shape)))
    axes = [axis_of(axis, len(x.shape)) for axis in axes]
    for axis, (size, scale) in zip(axes, _sizes(node, x, axes, old=old), strict=True):
        if size > MOST or not x.shape[axis]:
            raise NotCovered(f"{size:,} elements of {x.shape[axis]} along dimension {axis}")
        if size != x.shape[axis] or scale != 1:
            places = coordinates(np.arange(size, dtype=np.float64), scale, x.shape[axis], size)
            x = _between(w, x, axis, places) if linear else _at(w, x, axis, rounding(places))
    return x


def _sizes(node: Node, x: Operand, axes: Sequence[int], *, old: bool) -> list[tuple[int, float]]:
    """The new extent along each axis, and by what the old one is multiplied."""
    k = 1 if old else 2
    extents = [x.shape[axis] for axis in axes]
    if "scales" in node.attributes:
        scales = [float(s) for s in node.attribute("scales", list[float]())]
    elif node.has(k) and node.input(k).size:
        scales = [float(s) for s in node.value(k).reshape(-1)]
    else:
        sizes = [int(n) for n in node.value(k + 1).reshape(-1)]
        if len(sizes) != len(axes) or min(sizes, default=1) < 0:
            raise NotCovered(f"sizes {sizes} for {len(axes)} dimensions")
        return [(n, n / e if e else 1.0) for n, e in zip(sizes, extents, strict=True)]
    if len(scales) != len(axes) or not all(math.isfinite(s) and s > 0 for s in scales):
        raise NotCovered(f"scales {scales} for {len(axes)} dimensions")
    return [(math.floor(e * s), s) for e, s in zip(extents, scales, strict=True)]


def _at(w: Writer, x: Operand, axis: int, places: np.ndarray) -> Operand:
    inside = np.clip(places, 0, x.shape[axis] - 1).astype(np.int64)
    return w.take(x, axis, constant(inside))


def _between(w: Writer, x: Operand, axis: int, places: np.ndarray) -> Operand:
    """Of the two next elements the mean that is weighed by how near they are."""
    check_float(x)
    low = np.floor(places)
    shape = [1] * len(x.shape)
    shape[axis] = len(places)
    share = constant((places - low).reshape(shape), x.dtype)

    def body(b: Body, left: Scalar, right: Scalar, far: Scalar) -> Scalar:
        near = b.sub(b.like(1, far), far)
        return b.add(b.mul(left, near), b.mul(right, far))

    both = [_at(w, x, axis, low), _at(w, x, axis, low + 1)]
    return w.elementwise([*both, share], x.dtype, body)


RESIZE: Mapping[str, Rule] = {"Resize": _resize, "Upsample": _resize}
