"""What transforms say of what they did, on the function that they did it to.

Line -> an attribute, which `lower-placements` hands on to `explain()`.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.ir.attributes import TOLD


def tell(function: ir.Operation, line: str) -> None:
    lines = told_by_transforms(function)
    with function.context:
        texts = [ir.StringAttr.get(each) for each in (*lines, line)]
        function.attributes[TOLD] = ir.ArrayAttr.get(texts)


def told_by_transforms(function: ir.Operation) -> tuple[str, ...]:
    if TOLD not in function.attributes:
        return ()
    return tuple(ir.StringAttr(each).value for each in ir.ArrayAttr(function.attributes[TOLD]))
