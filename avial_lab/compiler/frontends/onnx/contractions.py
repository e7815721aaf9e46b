"""Products of matrices, and convolutions: sums of products with their subscripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from avial_lab.compiler.frontends.onnx.elementwise import same_types
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import NotCovered, Operand, broadcast, constant
from avial_lab.compiler.frontends.onnx.windows import windows_of
from avial_lab.compiler.frontends.onnx.writer import Writer


def matmul(w: Writer, a: Operand, b: Operand) -> Operand:
    """As NumPy's: leading dimensions broadcast, a vector is a row or a column."""
    if not a.shape or not b.shape:
        raise NotCovered("it takes vectors and matrices")
    row, column = len(a.shape) == 1, len(b.shape) == 1
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    inner, other = a.shape[-1], b.shape[0] if column else b.shape[-2]
    if inner != other:
        raise NotCovered(f"{a.shape} and {b.shape} are no matrices of a product")
    rows, columns = ([] if row else [a.shape[-2]]), ([] if column else [b.shape[-1]])
    extents = (*lead, *rows, *columns, inner)
    last = len(extents) - 1
    row_dim, column_dim = len(lead), len(lead) + len(rows)
    ins = (
        _placed(w, a, lead, [*([] if row else [row_dim]), last]),
        _placed(w, b, lead, [last, *([] if column else [column_dim])]),
    )
    return w.contract(extents, *ins, range(last))


def _placed(
    w: Writer, x: Operand, lead: tuple[int, ...], own: list[int]
) -> tuple[Operand, list[str]]:
    """A batch of matrices with its subscripts; dimensions that broadcast are none."""
    batch = x.shape[: len(x.shape) - len(own)]
    first = len(lead) - len(batch)
    kept = [(first + k, n) for k, n in enumerate(batch) if not (n == 1 and lead[first + k] != 1)]
    shape = (*(n for _, n in kept), *x.shape[len(batch) :])
    return w.reshape(x, shape), [f"d{d}" for d in (*(d for d, _ in kept), *own)]


def _matmul(node: Node, w: Writer) -> Made:
    same_types(node)
    return matmul(w, node.input(0), node.input(1))


def gemm(
    w: Writer, a: Operand, b: Operand, *, alpha: float = 1.0, left: bool = False,
    right: bool = False,
) -> Operand:  # fmt: skip
    """alpha times the product of matrices, of which `left` and `right` are transposed."""
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise NotCovered("it takes matrices")
    (m, k), (j, n) = a.shape[:: -1 if left else 1], b.shape[:: -1 if right else 1]
    if k != j:
        raise NotCovered(f"{a.shape} and {b.shape} are no matrices of a product")
    found = w.contract(
        (m, n, k),
        (a, ["d2", "d0"] if left else ["d0", "d2"]),
        (b, ["d1", "d2"] if right else ["d2", "d1"]),
        (0, 1),
    )
    return scaled(w, found, alpha)


def scaled(w: Writer, x: Operand, by: float) -> Operand:
    if by == 1:
        return x
    return w.elementwise([x], x.dtype, lambda b, v: b.mul(v, b.like(by, v)))


def _gemm(node: Node, w: Writer) -> Made:
    same_types(node)
    found = gemm(
        w, node.input(0), node.input(1),
        alpha=float(node.attribute("alpha", 1.0)),
        left=bool(node.attribute("transA", 0)), right=bool(node.attribute("transB", 0)),
    )  # fmt: skip
    beta = float(node.attribute("beta", 1.0))
    if not node.has(2) or beta == 0:
        return found

    def add(b: Body, x: Scalar, c: Scalar) -> Scalar:
        return b.add(x, c if beta == 1 else b.mul(b.like(beta, c), c))

    return w.elementwise([found, node.input(2)], found.dtype, add, shape=found.shape)


def _conv(node: Node, w: Writer) -> Made:
    x, weight = node.input(0), node.input(1)
    groups, rank = node.attribute("group", 1), len(x.shape) - 2
    if rank < 1 or len(weight.shape) != rank + 2 or x.dtype != weight.dtype:
        raise NotCovered(f"a kernel {weight.shape} for {x.shape}")
    rows, channels, maps = x.shape[0], x.shape[1], weight.shape[0]
    if groups < 1 or channels != weight.shape[1] * groups or maps % groups:
        raise NotCovered(f"{groups} groups of {channels} channels for a kernel {weight.shape}")
    found = windows_of(node, x.shape[2:], tuple(weight.shape[2:]))
    x = w.pad(x, [0, 0, *found.before], [0, 0, *found.after], 0)
    grouped = groups > 1
    if grouped:
        x = w.reshape(x, (rows, groups, channels // groups, *x.shape[2:]))
        weight = w.reshape(weight, (groups, maps // groups, *weight.shape[1:]))
    # Loops: n, (g), m, outputs …, c, kernel …
    lead = (rows, groups, maps // groups) if grouped else (rows, maps)
    first = len(lead)
    channel = first + rank
    extents = (*lead, *found.outputs, weight.shape[-rank - 1], *found.kernel)
    at = found.subscripts(first, channel + 1)
    group = ["d1"] if grouped else []
    made = w.contract(
        extents,
        (x, ["d0", *group, f"d{channel}", *at]),
        (
            weight,
            [*group, f"d{first - 1}", f"d{channel}", *(f"d{channel + 1 + k}" for k in range(rank))],
        ),
        range(channel),
    )
    if grouped:
        made = w.reshape(made, (rows, maps, *found.outputs))
    if not node.has(2):
        return made
    bias = (node.input(2), (1,))
    return w.elementwise(
        [(made, range(len(made.shape))), bias], made.dtype, Body.add, shape=made.shape
    )


def _conv_transpose(node: Node, w: Writer) -> Made:
    """A convolution of the image with zeros between its elements, by the mirrored kernel."""
    x, weight = node.input(0), node.input(1)
    same_types(node)
    rank, groups = len(x.shape) - 2, node.attribute("group", 1)
    if rank < 1 or len(weight.shape) != rank + 2 or groups < 1 or x.shape[1] % groups:
        raise NotCovered(f"a kernel {weight.shape} for {x.shape}")
    if node.numbers("output_shape") or node.attribute("auto_pad", "NOTSET") != "NOTSET":
        raise NotCovered("output_shape and auto_pad are not covered; pads are")
    ones, zeros = [1] * rank, [0] * rank
    strides, dilations = (node.numbers(name) or ones for name in ("strides", "dilations"))
    pads, more = node.numbers("pads") or zeros * 2, node.numbers("output_padding") or zeros
    reach = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
    around = [r - p for r, p in zip(reach * 2, pads, strict=True)]
    around[rank:] = [a + m for a, m in zip(around[rank:], more, strict=True)]
    if min(around) < 0:
        raise NotCovered(f"pads {pads} are more than the kernel reaches")
    image = _spread(w, x, strides)
    maps = weight.shape[1]
    kernel = w.reshape(weight, (groups, x.shape[1] // groups, *weight.shape[1:]))
    kernel = w.transpose(kernel, [0, 2, 1, *range(3, 3 + rank)])
    kernel = w.reshape(kernel, (groups * maps, x.shape[1] // groups, *weight.shape[2:]))
    for axis, extent in enumerate(weight.shape[2:], 2):
        kernel = w.take(kernel, axis, constant(np.arange(extent)[::-1].copy()))
    attributes = {"group": groups, "dilations": dilations, "pads": around}
    inputs = (image, kernel, *node.inputs[2:])
    return _conv(replace(node, kind="Conv", inputs=inputs, attributes=attributes), w)


def _spread(w: Writer, x: Operand, strides: Sequence[int]) -> Operand:
    """Zeros between the elements of an image, so that they lie `strides` apart."""
    extents = x.shape[2:]
    if min(strides) < 1 or all(s == 1 for s in strides) or not x.size:
        return x
    apart = w.reshape(x, (*x.shape[:2], *chain.from_iterable((n, 1) for n in extents)))
    after = [0, 0, *chain.from_iterable((0, s - 1) for s in strides)]
    apart = w.pad(apart, [0] * len(after), after, 0)
    wide = (*x.shape[:2], *(n * s for n, s in zip(extents, strides, strict=True)))
    kept = (*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(extents, strides, strict=True)))
    flat = w.reshape(apart, wide)
    return w.slice(flat, [0] * len(wide), kept, [1] * len(wide))


def _einsum(node: Node, w: Writer) -> Made:
    """Of one or two tensors, each subscript once in each."""
    equation = node.attribute("equation", "").replace(" ", "")
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        letters = sorted(c for c in set(left) if c != ",")
        out = "".join(c for c in letters if left.count(c) == 1)
    inputs = [node.input(k) for k in range(len(node.inputs))]
    extents: dict[str, int] = {}
    for term, operand in zip(terms, inputs, strict=True):
        fits = len(set(term)) == len(term) == len(operand.shape)
        if not fits or not (term + out).isalpha():
            raise NotCovered(f"equation '{equation}' is not covered")
        for letter, extent in zip(term, operand.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise NotCovered(f"'{letter}' is {extents[letter]} and {extent}")
    if len(inputs) > 2 or not set(out) <= extents.keys() or len(set(out)) < len(out):
        raise NotCovered(f"equation '{equation}' is not covered")
    order = [*out, *(letter for letter in extents if letter not in out)]
    placed = [
        (x, [f"d{order.index(letter)}" for letter in term])
        for x, term in zip(inputs, terms, strict=True)
    ]
    if len(placed) == 1:
        placed.append((w.filled((), 1, inputs[0].dtype), []))
    same_types(node)
    first, second = placed
    return w.contract(tuple(extents[c] for c in order), first, second, range(len(out)))


CONTRACTIONS: dict[str, Rule] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
