"""Memory spaces go: on a CPU there is one.

Module whose memrefs are spread over numbered spaces (`memref<8xf32, 1>`) -> the same in the default
space. Programs with GPU kernels mean something by them, and stay.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.codegen.gpu_prints import PRINT


def drop_memory_spaces(module: ir.Module) -> None:
    """Every type of a value, function or global without its space, and no cast between spaces."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if any(op.name.startswith("gpu.") and op.name != PRINT for op in found):
        return
    with ir.Location.unknown(module.context):
        _drop(found)


def _drop(found: list[ir.Operation]) -> None:
    for op in found:
        values = [*op.results, *(a for region in op.regions for b in region for a in b.arguments)]
        for value in values:
            if isinstance(value.type, ir.MemRefType | ir.UnrankedMemRefType):
                value.set_type(_in_default_space(value.type))
        for key in list(op.attributes):
            attribute = op.attributes[key]
            if isinstance(attribute, ir.TypeAttr):
                op.attributes[key] = ir.TypeAttr.get(_in_default_space(attribute.value))
    for op in found:
        if op.name == "memref.memory_space_cast":
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _in_default_space(kind: ir.Type) -> ir.Type:
    if isinstance(kind, ir.MemRefType) and isinstance(kind.memory_space, ir.IntegerAttr):
        return ir.MemRefType.get(kind.shape, kind.element_type, kind.layout)
    if isinstance(kind, ir.UnrankedMemRefType) and isinstance(kind.memory_space, ir.IntegerAttr):
        return ir.UnrankedMemRefType.get(kind.element_type, None)
    if isinstance(kind, ir.FunctionType):
        return ir.FunctionType.get(
            [*map(_in_default_space, kind.inputs)], [*map(_in_default_space, kind.results)]
        )
    return kind
