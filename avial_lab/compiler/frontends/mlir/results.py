"""What a plain function returns, as arrays of the caller.

func.func with results -> the same without, with an argument in place of each.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.frontends.mlir.tensors import run_pipeline
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.program import program_function, symbol_of
from avial_lab.compiler.ir.views import defining, is_memref
from avial_lab.core.errors import VerifyError

RESULT = "avial.result"


def results_to_arguments(function: ir.Operation, *, handed_back: bool = False) -> None:
    """What the function returns becomes arguments behind its own, named result0, result1, ….

    before:  func.func @f(%a: memref<8xf32>) -> (f32, memref<8xf32>) { … return %sum, %own }
    after:   func.func @f(%a: memref<8xf32>, %result0: memref<f32>, %result1: memref<8xf32>) {
               … memref.store %sum, %result0[]  return }      with %result1 in place of %own

    They are marked `avial.result`. An array of the caller's that is handed back is no result, the
    caller has it; with `handed_back` it is, as a copy. Raises VerifyError for what is neither a
    memref nor a number.
    """
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    if not len(kind.results):
        return
    returns = [
        op
        for block in function.regions[0].blocks
        for op in [block.operations[len(block.operations) - 1].operation]
        if op.name == "func.return"
    ]
    entry = function.regions[0].blocks[0]
    given = {argument for argument in entry.arguments if is_memref(argument)}
    for k, result in enumerate(kind.results):
        values = [op.operands[k] for op in returns]
        if not handed_back and all(_behind_casts(value) in given for value in values):
            continue
        place = ir.Location.name(_fresh(f"result{k}", entry), function.location)
        with place:
            argument = entry.add_argument(_argument_type(result, function), place)
        own = defining(values[0])
        if len(returns) == 1 and own is not None and _becomes(own, argument):
            own.results[0].replace_all_uses_with(argument)
            own.erase()
            continue
        for op, value in zip(returns, values, strict=True):
            with ir.InsertionPoint(op), op.location:
                if isinstance(result, ir.MemRefType):
                    memref.CopyOp(value, argument)
                else:
                    memref.StoreOp(value, argument, [])
    for op in returns:
        with ir.InsertionPoint(op), op.location:
            ir.Operation.create("func.return", [], [])
        op.erase()
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    _settle(function, len(kind.inputs))


def _fresh(name: str, entry: ir.Block) -> str:
    """`name`, with underscores behind it while an argument is called so."""
    taken = {name_of(argument.location) for argument in entry.arguments}
    while name in taken:
        name += "_"
    return name


def _becomes(own: ir.Operation, argument: ir.BlockArgument) -> bool:
    """Whether the memory the function allocates and hands back may be the caller's instead."""
    return (
        own.name == "memref.alloc"
        and own.results[0].type == argument.type
        and ir.MemRefType(argument.type).has_static_shape
        and own.block == argument.owner
        and all(use.owner.operation.name != "memref.dealloc" for use in own.results[0].uses)
    )


def _behind_casts(value: ir.Value) -> ir.Value:
    """The memref that is only cast to another type, not another part of it."""
    while (op := defining(value)) is not None and op.name == "memref.cast":
        value = op.operands[0]
    return value


def _argument_type(result: ir.Type, function: ir.Operation) -> ir.Type:
    if isinstance(result, ir.MemRefType):
        return ir.MemRefType.get(list(result.shape), result.element_type)
    if isinstance(result, ir.IntegerType | ir.IndexType | ir.FloatType):
        return ir.MemRefType.get([], result)
    raise VerifyError(
        f"@{symbol_of(function)} returns {result}, neither a memref nor a number",
        span=span_of(function.location),
        hint="write what it computes into a memref argument",
    )


def _settle(function: ir.Operation, count: int) -> None:
    """The function's type after its block; arguments from `count` on are results."""
    block = function.regions[0].blocks[0]
    types = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    old = [ir.DictAttr.get({})] * count
    if "arg_attrs" in function.attributes:
        old = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    new = [ir.DictAttr.get({RESULT: ir.UnitAttr.get()})] * (len(types) - count)
    if len(types):
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*old, *new])


def is_result(function: ir.Operation, position: int) -> bool:
    """Whether the argument at `position` is a result of the function as it was written."""
    if "arg_attrs" not in function.attributes:
        return False
    return RESULT in ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[position])


def settle_open_results(module: ir.Module, function: ir.Operation) -> ir.Operation:
    """Results whose sizes the text leaves open get those that follow from the arguments' sizes.

    before:  %own = memref.alloc(%n)  …  memref.copy %own, %result0 : … to memref<?xf32>
    after:   the same with %result0: memref<20xf32>, where %n is 20 by now

    One whose size depends on data stays as it is. The sizes are found in a copy of the module,
    which MLIR folds: the program itself stays as it was read.
    """
    if not any(True for _ in _open_results(function)):
        return function
    folded = module.operation.clone()
    run_pipeline(folded, "builtin.module(canonicalize)", "the arrays do not fit together")
    copied = {a.arg_number: _copied_to(a) for a in _open_results(program_function(folded))}
    block = function.regions[0].blocks[0]
    for argument in list(_open_results(function)):
        known = copied[argument.arg_number]
        if len(known) != 1 or not ir.MemRefType(*known).has_static_shape:
            continue
        shape = list(ir.MemRefType(*known).shape)
        written = argument.type
        with argument.location:
            argument.set_type(ir.MemRefType.get(shape, written.element_type))
        with ir.InsertionPoint.at_block_begin(block), argument.location:
            cast = memref.CastOp(written, argument)
        argument.replace_all_uses_except(cast.result, cast.operation)
    kind = ir.FunctionType.get([argument.type for argument in block.arguments], [])
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    return function


def _copied_to(argument: ir.BlockArgument) -> set[ir.Type]:
    """The types of what is copied to it."""
    return {
        _behind_casts(use.owner.operation.operands[0]).type
        for use in argument.uses
        if use.owner.operation.name == "memref.copy"
    }


def _open_results(function: ir.Operation) -> Iterator[ir.BlockArgument]:
    for k, argument in enumerate(function.regions[0].blocks[0].arguments):
        if is_result(function, k) and not argument.type.has_static_shape:
            yield argument
