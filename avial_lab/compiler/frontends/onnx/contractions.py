"""Products of matrices, and convolutions: sums of products with their subscripts."""

from __future__ import annotations

from avial_lab.compiler.frontends.onnx.elementwise import same_types
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import NotCovered, Operand, broadcast
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


CONTRACTIONS: dict[str, Rule] = {"Conv": _conv, "Gemm": _gemm, "MatMul": _matmul}
