"""Tensors become memory: what frontends for neural networks write.

Module whose functions work on tensors (linalg, tensor, tosa) -> the same on memrefs, by MLIR's own
passes. A tensor
argument is an array of the caller's that nobody writes; a tensor result is memory of the function.
"""

from __future__ import annotations

from mlir import ir, passmanager

from avial_lab.compiler.frontends.mlir.tosa_control import tosa_control_to_scf
from avial_lab.compiler.frontends.mlir.unit_extents import drop_unit_steps, reshape_slices
from avial_lab.compiler.ir.attributes import UPDATES
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.placements import erase_placements
from avial_lab.compiler.ir.program import functions_of, has_body
from avial_lab.compiler.upstream import spelled
from avial_lab.core.errors import VerifyError

_BUFFERIZE = (
    "builtin.module(func.func(convert-elementwise-to-linalg),"
    "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
    "function-boundary-type-conversion=identity-layout-map})"
)


_NAMED = (
    "tosa-optional-decompositions",
    "tosa-infer-shapes",
    "tosa-to-scf",
    "tosa-make-broadcastable",
    "tosa-to-linalg-named",
)
_UNNAMED = ("tosa-to-linalg", "tosa-to-arith{include-apply-rescale}", "tosa-to-tensor")
"""What MLIR's own pipeline from tosa to linalg has, in its order but for tosa-to-scf, which is its
last: tosa-to-linalg fails at a tosa.scatter that is still there.
"""


def tensors_to_memory(module: ir.Module) -> bool:
    """Whether there was a tensor; there is none any more. Where they lie is not looked at.

    Raises VerifyError where MLIR finds no memory for one.
    """
    erase_placements(module.operation)
    if not prepare_tensors(module):
        return False
    _reading_maps_to_generics(module)
    tosa_to_linalg(module, between=("canonicalize",))
    run_pipeline(module, _BUFFERIZE, "a tensor could not be bufferized")
    return True


def prepare_tensors(module: ir.Module) -> bool:
    """Whether there is a tensor; then what the caller may see is marked, before anything moves,
    and slices are as MLIR reads them rightly.
    """
    if not has_tensors(module):
        return False
    for function in functions_of(module):
        if has_body(function):
            protect_arguments(function)
    mark_updates(module)
    drop_unit_steps(module.operation)
    return True


def tosa_to_linalg(module: ir.Module | ir.Operation, *, between: tuple[str, ...] = ()) -> None:
    """Operations of tosa as linalg, arith, scf and tensor; `between` are passes that run before the
    operations without a name in linalg are lowered.
    """
    if not has_tosa(module):
        return
    tosa_control_to_scf(module.operation)
    if "canonicalize" in between:
        reshape_slices(module.operation)
    passes = ",".join((*_NAMED, *between, *_UNNAMED))
    pipeline = f"builtin.module(func.func({passes}))"
    run_pipeline(module, pipeline, "an operation of tosa could not be lowered to loops")


def mark_updates(module: ir.Module) -> None:
    """Say of sums which element of a tensor they update, before that is one in memory: by it is
    decided how they are rounded (`contract-fma`).

    before:  %x = tensor.extract %t[%i]   %y = arith.addf %x, %p   tensor.insert %y into %t[%i]
    after:   %x = tensor.extract %t[%i]   %y = arith.addf %x, %p {avial.updates = 0}   …
    """
    for insert in operations_named(module.operation, "tensor.insert"):
        value, *element = insert.operands
        total = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if total is None or total.name not in ("arith.addf", "arith.subf"):
            continue
        for k, side in enumerate(total.operands):
            load = None if isinstance(side.owner, ir.Block) else side.owner.operation
            if (
                load is not None
                and load.name == "tensor.extract"
                and list(load.operands) == element
            ):
                kind = ir.IntegerType.get_signless(64, module.context)
                total.attributes[UPDATES] = ir.IntegerAttr.get(kind, k)


def run_pipeline(module: ir.Module | ir.Operation, pipeline: str, failure: str) -> None:
    """Run MLIR's passes; VerifyError with `failure` and what MLIR says where one fails."""
    try:
        passmanager.PassManager.parse(spelled(pipeline)).run(module.operation)
    except ir.MLIRError as error:
        first = error.error_diagnostics[0] if error.error_diagnostics else None
        raise VerifyError(
            failure + (f": {first.message}" if first else ""),
            span=span_of(first.location) if first else None,
        ) from None


def _reading_maps_to_generics(module: ir.Module) -> None:
    """Maps that read what they write become generics: one-shot-bufferize takes the init of a
    linalg.map as never read, and gives it memory without values (llvm/llvm-project#213241).

    before:  linalg.map ins(%x) outs(%init) (%a, %old) { … %old … }
    after:   linalg.generic {…} ins(%x) outs(%init) { ^bb0(%a, %old): … %old … }
    """
    for op in operations_named(module.operation, "linalg.map"):
        init = op.regions[0].blocks[0].arguments[len(op.operands) - 1]
        if len(op.results) and any(True for _ in init.uses):
            _to_generic(op)


def _to_generic(op: ir.Operation) -> None:
    with op.context, op.location:
        rank = ir.RankedTensorType(op.results[0].type).rank
        same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        count = len(op.operands)
        generic = ir.Operation.create(
            "linalg.generic",
            [result.type for result in op.results],
            list(op.operands),
            attributes={
                "indexing_maps": ir.ArrayAttr.get([same] * count),
                "iterator_types": ir.ArrayAttr.get([parallel] * rank),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([count - 1, 1]),
            },
            regions=1,
            ip=ir.InsertionPoint(op),
        )
    op.regions[0].blocks[0].append_to(generic.regions[0])
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()


def has_tosa(module: ir.Module | ir.Operation) -> bool:
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or op.name.startswith("tosa.")
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def has_tensors(module: ir.Module) -> bool:
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        blocks = (block for region in op.regions for block in region.blocks)
        values = (*op.results, *(argument for block in blocks for argument in block.arguments))
        found = found or any(
            isinstance(value.type, ir.RankedTensorType | ir.UnrankedTensorType) for value in values
        )
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def protect_arguments(function: ir.Operation) -> None:
    """A tensor is a value: the array behind it keeps what it holds."""
    block = function.regions[0].blocks[0]
    if not len(block.arguments):
        return
    old = (
        list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        if "arg_attrs" in function.attributes
        else [ir.DictAttr.get({})] * len(block.arguments)
    )
    never = {"bufferization.writable": ir.BoolAttr.get(False)}
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get({named.name: named.attr for named in ir.DictAttr(each)} | never)
            if isinstance(argument.type, ir.RankedTensorType)
            else each
            for each, argument in zip(old, block.arguments, strict=True)
        ]
    )
