"""What is known before a run is computed before it: arithmetic on shapes, mostly.

Node whose inputs are all constants -> its results, by ONNX's own reference, or None where it has to
be left to the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from avial_lab.compiler.frontends.onnx.files import onnx_package
from avial_lab.compiler.frontends.onnx.nodes import Node
from avial_lab.compiler.frontends.onnx.values import Operand, Proto

MOST = 1 << 16
"""Elements of constants that are computed with here."""

_LEFT = ("Constant", "ConstantOfShape", "Shape", "Size", "Range", "EyeLike", "Dropout")
"""These have rules that make constants, or must not be evaluated."""


def folded(node: Node, proto: Proto) -> list[Operand] | None:
    inputs = [each for each in node.inputs if each is not None]
    if node.kind in _LEFT or node.domain or not inputs:
        return None
    if any(each.known is None or each.name or each.size > MOST for each in inputs):
        return None
    if any(n > MOST for n in _sizes(node)):
        return None
    results = _evaluated(node, proto)
    if results is None:
        return None
    if any(not isinstance(r, np.ndarray | np.generic) for r in results):
        return None
    arrays = [np.asarray(r) for r in results]
    return [
        Operand(a.shape, a.dtype, known=a, called=name)
        for a, name in zip(arrays, node.outputs, strict=True)
    ]


def _sizes(node: Node) -> list[int]:
    """Numbers of elements that integers among the inputs may ask for."""
    if node.kind not in ("Expand", "Tile", "OneHot", "Pad"):
        return []
    return [
        abs(int(n))
        for each in node.inputs
        if each is not None and each.known is not None and each.dtype.kind in "iu"
        for n in each.known.reshape(-1)
    ]


def _evaluated(node: Node, proto: Proto) -> list[Any] | None:
    onnx_package()
    import onnx
    from onnx.reference import ReferenceEvaluator

    named = [
        (name, operand)
        for name, operand in zip(proto.input, node.inputs, strict=False)
        if operand is not None
    ]
    given = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(operand.dtype), operand.shape
        )
        for name, operand in named
    ]
    wanted = [onnx.helper.make_empty_tensor_value_info(name) for name in proto.output if name]
    graph = onnx.helper.make_graph([proto], "folded", given, wanted)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", node.version)]
    )
    try:
        with np.errstate(all="ignore"):
            found: Any = ReferenceEvaluator(model).run(
                None, {name: operand.known for name, operand in named}
            )
    except Exception:  # what the reference cannot do, our rule may, or says why not
        return None
    return list(found) if len(found) == len(node.outputs) else None
