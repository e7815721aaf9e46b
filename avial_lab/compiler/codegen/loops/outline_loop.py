"""A loop in a function of its own, which is told what the loop uses from around.

A loop in a function -> a function before that one with a copy of it, and what to call it with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import func

from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.llvm_attributes import NOT_INLINED, flags_of, tell_llvm
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.views import is_memref, view_chain

Cut = Callable[[ir.Operation, Sequence[ir.Value]], ir.Operation]
"""Changes the copy of a loop by numbers that its function is given; the loop afterwards."""


def outline(
    loop: ir.Operation, function: ir.Operation, symbol: str, numbers: Sequence[str], cut: Cut
) -> list[ir.Value]:
    """A function `symbol` before `function` that takes `numbers`, by these names, and then what is
    returned here; it hands on what the loop does. `loop` stays.

    Arrays are arguments and do not go through memory, as LLVM's own outlining would have it: what
    is known of them (`avial.no_alias`) stays known.
    """
    location, index = loop.location, ir.IndexType.get()
    with ir.InsertionPoint(function), location:
        made = func.FuncOp(symbol, ([index] * len(numbers), []), visibility="private").operation
    names = [ir.Location.name(name, location) for name in numbers]
    block = made.regions[0].blocks.append(*[index] * len(numbers), arg_locs=names)
    own = list(block.arguments)
    with ir.InsertionPoint(block), location:
        copy = cut(loop.clone().operation, own)
        func.ReturnOp(list(copy.results))
    captured = Captured.by((copy, *operations_in(copy)))
    arguments = [value for value in captured.arguments if value not in own]
    inside: dict[ir.Value, ir.Value] = {}
    for value in arguments:
        inside[value] = block.add_argument(value.type, value.location)
    start = ir.InsertionPoint.at_block_begin(block)
    for op in captured.chain:
        fixed = op.clone(ip=start).operation
        remap(fixed, inside)
        inside.update(zip(op.results, fixed.results, strict=True))
    for op in (copy, *operations_in(copy)):
        remap(op, inside)
    kinds = [argument.type for argument in block.arguments]
    results = [result.type for result in copy.results]
    made.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, results))
    tell_llvm(made, *flags_of(function), NOT_INLINED)
    if _do_not_alias(captured, function):
        made.attributes[NO_ALIAS] = ir.UnitAttr.get()
    return arguments


def _do_not_alias(captured: Captured, function: ir.Operation) -> bool:
    """Whether no two of the arrays share memory: different ones of a function whose arrays do not,
    or that it allocates.
    """
    arrays = [value for value in captured.arguments if is_memref(value)]
    views = [op for op in captured.chain if any(map(is_memref, op.results))]
    roots = {view_chain(array)[-1] for array in arrays}
    return NO_ALIAS in function.attributes and len(roots) == len(arrays) and not views
