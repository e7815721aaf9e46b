"""A module of plain functions as one program: the function that is meant, with what it calls.

Module without an avial operation, as another compiler wrote it -> the same module with one public
function: its helpers private, functions it does not need gone, attributes of dialects we do not
know gone.
"""

from __future__ import annotations

import ctypes

from mlir import ir

from avial_lab.compiler.frontends.notation.source import did_you_mean
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.program import functions_of, has_body, is_public, symbol_of
from avial_lab.core.errors import VerifyError

_OURS = ("gpu.container_module", "sym_name")
"""What is kept of a module's attributes: the others tell of the machine a front end compiled for,
which need not be this one.
"""


def one_function(module: ir.Module, name: str | None) -> ir.Operation:
    """The function `name`, or the only one that can be meant: public now, what it calls private,
    and what it does not call gone.
    """
    _drop_scripts(module.body)
    _hoist(module)
    chosen = _chosen(module, name)
    if chosen.parent != module.operation:
        raise VerifyError(
            f"@{symbol_of(chosen)} is in a nested module",
            span=span_of(chosen.location),
            hint="move the function to the top level of the file",
        )
    _keep_reachable(module, chosen)
    _check_declared(module)
    _come_back_elsewhere(module, chosen)
    private = ir.StringAttr.get("private", module.context)
    for function in functions_of(module):
        if function != chosen:
            function.attributes["sym_visibility"] = private
    if "sym_visibility" in chosen.attributes:
        del chosen.attributes["sym_visibility"]
    return chosen


def drop_foreign_attributes(module: ir.Module) -> None:
    """Attributes of dialects that this MLIR does not know, and what is said of another machine.

    Raises VerifyError at an operation of such a dialect: nobody knows what it does.
    """
    context = module.context
    unknown: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not context.is_registered_operation(op.name):
            unknown.append(op)
            return ir.WalkResult.INTERRUPT
        for key in list(op.attributes):
            if _is_foreign(key, context) or (op.name == "builtin.module" and key not in _OURS):
                del op.attributes[key]
        if op.name == "func.func":
            for key in ("arg_attrs", "res_attrs"):
                if key in op.attributes:
                    _drop_argument_attributes(op, key)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if unknown:
        raise VerifyError(
            f"unknown operation '{unknown[0].name}'", span=span_of(unknown[0].location)
        )


def _is_foreign(key: str, context: ir.Context) -> bool:
    dialect, dot, _ = key.partition(".")
    if not dot:
        return False
    try:
        context.get_dialect_descriptor(dialect)
    except ValueError:
        return True
    return False


def _drop_argument_attributes(function: ir.Operation, key: str) -> None:
    """Promises to LLVM (`llvm.noalias`) say nothing of a memref, and end its lowering."""
    kept = [
        ir.DictAttr.get(
            {
                named.name: named.attr
                for named in ir.DictAttr(each)
                if named.name.startswith("avial.")
            },
            function.context,
        )
        for each in ir.ArrayAttr(function.attributes[key])
    ]
    if any(len(each) for each in kept):
        function.attributes[key] = ir.ArrayAttr.get(kept, function.context)
    else:
        del function.attributes[key]


# Which function -----------------------------------------------------------------------------------


def _hoist(module: ir.Module) -> None:
    """A module that holds nothing but one module: its operations move up."""
    while True:
        top = [view.operation for view in module.body.operations]
        if len(top) != 1 or top[0].name != "builtin.module":
            return
        for view in list(top[0].regions[0].blocks[0].operations):
            view.operation.move_before(top[0])
        top[0].erase()


def _drop_scripts(block: ir.Block) -> None:
    """What tells mlir-opt how to transform the functions is no part of what they compute."""
    for view in list(block.operations):
        op = view.operation
        if op.name == "builtin.module":
            inside = op.regions[0].blocks[0]
            _drop_scripts(inside)
            if len(inside.operations):
                continue
        elif not op.name.startswith("transform."):
            continue
        op.erase()


def _chosen(module: ir.Module, name: str | None) -> ir.Operation:
    functions = [function for function in functions_of(module) if has_body(function)]
    names = [symbol_of(function) for function in functions]
    listed = ", ".join(f"@{known}" for known in names) or "none"
    if name is not None:
        wanted = name.removeprefix("@")
        if wanted not in names:
            raise VerifyError(
                f"the program has no function @{wanted}",
                hint=did_you_mean(wanted, names) or f"its functions: {listed}",
            )
        return functions[names.index(wanted)]
    found = [function for function in functions if is_public(function)] or functions
    if len(found) > 1:
        # A helper need not be private: compilers of C export every function that is not static.
        called = {callee for function in found for callee in _callees(function, itself=False)}
        found = [function for function in found if symbol_of(function) not in called] or found
    if len(found) > 1:
        raise VerifyError(
            f"the program has {len(found)} functions: "
            f"{', '.join(f'@{symbol_of(function)}' for function in found)}",
            span=span_of(found[1].location),
            hint=f"say which: function='{symbol_of(found[0])}' (--fn {symbol_of(found[0])})",
        )
    if not found:
        raise VerifyError(
            "the program has no function with a body",
            hint="write func.func @f(%a: memref<20xf32>) { … return }, or an avial.schedule",
        )
    return found[0]


def _callees(function: ir.Operation, *, itself: bool = True) -> set[str]:
    """Every symbol that an operation in the function names (calls, addresses, globals)."""
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        for key in op.attributes:
            attribute = op.attributes[key]
            if isinstance(attribute, ir.SymbolRefAttr):
                found.update(attribute.value)
            elif isinstance(attribute, ir.FlatSymbolRefAttr):
                found.add(attribute.value)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found if itself else found - {symbol_of(function)}


def _keep_reachable(module: ir.Module, chosen: ir.Operation) -> None:
    """Erase the functions that `chosen` does not reach by any chain of names."""
    functions = {symbol_of(function): function for function in functions_of(module)}
    waiting, kept = [symbol_of(chosen)], {symbol_of(chosen)}
    while waiting:
        for callee in _callees(functions[waiting.pop()]):
            if callee in functions and callee not in kept:
                kept.add(callee)
                waiting.append(callee)
    for symbol, function in functions.items():
        if symbol not in kept:
            function.erase()


def _check_declared(module: ir.Module) -> None:
    """What is called without a body has to be in the C library or in that of its mathematics."""
    for function in functions_of(module):
        name = symbol_of(function)
        if not has_body(function) and not hasattr(ctypes.CDLL(None), name):
            raise VerifyError(
                f"function @{name} has no body, and the C library has none of that name",
                span=span_of(function.location),
                hint="define it in the file, or leave its calls out",
            )


def _come_back_elsewhere(module: ir.Module, chosen: ir.Operation) -> None:
    """Calls that come back to the program's function go to a copy of it: the function itself is
    called once, with the caller's numbers.
    """
    name = symbol_of(chosen)
    functions = list(functions_of(module))
    if not any(name in _callees(function) for function in functions):
        return
    taken = {symbol_of(function) for function in functions}
    again = next(fresh for k in range(len(taken) + 1) if (fresh := f"{name}_{k}") not in taken)
    copy = chosen.clone(ip=ir.InsertionPoint(chosen)).operation
    with module.context:
        copy.attributes["sym_name"] = ir.StringAttr.get(again)
        target = ir.FlatSymbolRefAttr.get(again)

    def visit(op: ir.Operation) -> ir.WalkResult:
        for key in ("callee", "value"):
            if key in op.attributes and str(op.attributes[key]) == f"@{name}":
                op.attributes[key] = target
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
