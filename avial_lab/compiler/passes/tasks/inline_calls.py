"""Calls of the module's own functions are written out: analysis does not look behind a call.

Module -> module in which no call touches memory that analysis would have to know of, but for what
`InlineCalls` names.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.effects import LOADS, text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.program import is_public
from avial_lab.compiler.ir.views import VIEWS, is_memref
from avial_lab.core.errors import PassError

MOST_DEPTH = 16
"""Calls inside calls that are followed: a function may call itself."""

MOST_OPERATIONS = 20_000
"""Of a program with its calls written out: thirty functions that call the next one twice are a few
lines, and a thousand million copies of the last.
"""


@dataclass(frozen=True)
class InlineCalls:
    """Put a copy of the body in place of the call.

    before:  func.call @row(%A, %i)   with   func.func private @row(%a, %k) { … return }
    after:   … with %a = %A, %k = %i

    What is the same for all calls of a loop (sizes) is computed before it, where it is a symbol to
    affine loops. MLIR's own inliner leaves a call in an affine loop alone where the body has a
    memref.load. A call that is given no memory touches a global or memory of its own: it is written
    out as well, and so is every call in a launch: a kernel is alone on its device.

    Left here: what has no body or several blocks, what calls itself, and affine code that would not
    be affine where the call stands. PassError where such a call writes a global, of which every
    rank has its own, and where the program would become endless.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            functions = {
                ir.StringAttr(op.attributes["sym_name"]).value: op
                for op in (view.operation for view in module.regions[0].blocks[0].operations)
                if op.name == "func.func"
            }
            _refuse_endless(functions)
            for _ in range(MOST_DEPTH):
                calls = _wanted(module, functions)
                if not calls:
                    break
                for call in calls:
                    _inline(call, _callee(call, functions))
            _refuse_hidden_writes(module, functions)

    def __str__(self) -> str:
        return "inline-calls"


def _refuse_endless(functions: dict[str, ir.Operation]) -> None:
    """PassError where the program with all calls written out has more than `MOST_OPERATIONS`."""
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = 1  # while it is looked at: one that calls itself is not written out
            inside = list(operations_in(functions[name]))
            called = map(_called, inside)
            sizes[name] = len(inside) + sum(size(each) for each in called if each in functions)
        return sizes[name]

    for name, function in functions.items():
        if not is_public(function):
            continue
        for op in operations_in(function):
            called = _called(op)
            if called in functions and size(called) > MOST_OPERATIONS:
                raise PassError(
                    f"@{name} with its calls written out has {size(name):,} operations, more than "
                    f"the {MOST_OPERATIONS:,} that are analysed",
                    span=span_of(op.location),
                    hint="call the function in a loop",
                )


def _called(op: ir.Operation) -> str:
    """The function that it calls; "" where it calls none."""
    return ir.FlatSymbolRefAttr(op.attributes["callee"]).value if op.name == "func.call" else ""


def _wanted(module: ir.Operation, functions: dict[str, ir.Operation]) -> list[ir.Operation]:
    """The calls that are written out next."""
    inlined: dict[str, bool] = {}

    def may_be(name: str) -> bool:
        if name not in inlined:
            function = functions.get(name)
            inlined[name] = (
                function is not None
                and len(function.regions[0].blocks) == 1
                and not _reaches(function, name, functions, set())
            )
        return inlined[name]

    launches = operations_named(module, "gpu.launch")
    of_threads = {call for launch in launches for call in operations_named(launch, "func.call")}
    return [
        op
        for op in operations_in(module)
        if op.name == "func.call"
        and may_be(_called(op))
        and (op in of_threads or _touches_memory(functions[_called(op)]))
        and _stays_affine(op, functions[_called(op)])
    ]


def _callee(call: ir.Operation, functions: dict[str, ir.Operation]) -> ir.Operation:
    return functions[_called(call)]


def _touches_memory(function: ir.Operation) -> bool:
    return any(is_memref(value) for op in operations_in(function) for value in op.operands)


def _reaches(
    function: ir.Operation, name: str, functions: dict[str, ir.Operation], seen: set[str]
) -> bool:
    """Whether it calls `name`, by itself or through others."""
    for op in operations_in(function):
        called = _called(op)
        if called and called == name:
            return True
        if called in functions and called not in seen:
            seen.add(called)
            if _reaches(functions[called], name, functions, seen):
                return True
    return False


def _stays_affine(call: ir.Operation, function: ir.Operation) -> bool:
    """Whether the operands of its affine operations are symbols where the call stands too.

    They are where they can be computed at the top of the calling function.
    """
    given: dict[ir.Value, ir.Value] = dict(
        zip(function.regions[0].blocks[0].arguments, call.operands, strict=True)
    )
    return all(
        _is_fixed(operand, given)
        for op in operations_in(function)
        if op.name.startswith("affine.")
        for operand in op.operands
        if isinstance(operand.type, ir.IndexType) and not _counts_affine_loop(operand)
    )


def _counts_affine_loop(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation.name.startswith("affine.")
    # Whatever it applies is among the operands that are looked at.
    return owner.operation.name == "affine.apply"


def _is_fixed(value: ir.Value, given: dict[ir.Value, ir.Value]) -> bool:
    """Whether a value of the called function is the same wherever it is called from there."""
    if value in given:
        return _at_top(given[value])
    op = value.owner
    if isinstance(op, ir.Block) or not _is_pure(op.operation):
        return False
    return all(_is_fixed(operand, given) for operand in op.operation.operands)


def _at_top(value: ir.Value) -> bool:
    owner = value.owner
    around = owner.owner.operation if isinstance(owner, ir.Block) else parent_of(owner.operation)
    return around is not None and around.name == "func.func"


def _is_pure(op: ir.Operation) -> bool:
    """Whether it may be computed where it was not asked for: no division, which ends by zero."""
    dialect, _, name = op.name.partition(".")
    if dialect in ("arith", "index"):
        return not any(word in name for word in ("div", "rem")) or name in ("divf", "remf")
    return op.name in ("memref.dim", "affine.apply")


def _refuse_hidden_writes(module: ir.Operation, functions: dict[str, ir.Operation]) -> None:
    seen: set[str] = set()
    shared = [
        ir.FlatSymbolRefAttr.get(text_attribute(view.operation, "sym_name"))
        for view in module.regions[0].blocks[0].operations
        if view.operation.name == "memref.global" and "constant" not in view.operation.attributes
    ]
    programs = [function for function in functions.values() if is_public(function)]
    waiting = [op for f in programs for op in operations_in(f) if op.name == "func.call"]
    while waiting:
        call = waiting.pop()
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        if name in seen or name not in functions:
            continue
        seen.add(name)
        inside = list(operations_in(functions[name]))
        if any(
            op.name == "memref.get_global"
            and op.attributes["name"] in shared
            and _may_be_written(op.results[0])
            for op in inside
        ):
            raise PassError(
                f"@{name}, whose calls are not inlined, uses a memref.global, which other "
                "ranks cannot see",
                span=span_of(call.location),
                hint="make it an argument of the function",
            )
        waiting += [op for op in inside if op.name == "func.call"]


def _may_be_written(memory: ir.Value) -> bool:
    """Whether anything but loads is done with it, or with a view of it."""
    return any(
        op.name not in (*LOADS, "vector.load", "affine.vector_load", "memref.dim")
        and (op.name not in VIEWS or any(map(_may_be_written, op.results)))
        for op in (use.owner.operation for use in memory.uses)
    )


def _inline(call: ir.Operation, function: ir.Operation) -> None:
    copy = function.clone(ir.InsertionPoint(function)).operation
    block = copy.regions[0].blocks[0]
    for argument, given in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(given)
    top = _top_around(call)
    *body, end = [view.operation for view in block.operations]
    for op in body:
        fixed = _is_pure(op) and all(_at_top(operand) for operand in op.operands)
        op.move_before(top if fixed else call)
    for result, value in zip(call.results, list(end.operands), strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    copy.erase()


def _top_around(op: ir.Operation) -> ir.Operation:
    """The operation of the function's own block that `op` stands in."""
    while (around := parent_of(op)) is not None and around.name != "func.func":
        op = around
    return op
