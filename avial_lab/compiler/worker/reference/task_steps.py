"""Tasks one after the other, each a step of its own: the sequential meaning of a schedule.

Module of `avial.task` -> the same with a function for each body and calls in program order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, memref

from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import scheduled_function, schedules_of, tasks_of, top_operations
from avial_lab.compiler.passes.tasks.unwrap_tasks import UnwrapTasks
from avial_lab.compiler.worker.reference.linalg_loops import extent_of, nest


@dataclass(frozen=True)
class TaskSteps:
    """The program's function is the entry; what it allocates between tasks begins at zero.

    before:  func.func @p(%a) { avial.schedule { avial.task %cpu, %a { … }  avial.task … } }
    after:   func.func private @step0(%a) { … }
             func.func @main(%a) attributes {avial.ranks = 1} {
               call @step0(%a) {avial.step = 0}  call @step1(%a) {avial.step = 1}  return }
    """

    def __call__(self, module: ir.Operation) -> None:
        function = scheduled_function(module)
        with module.context:
            for number, task in enumerate(list(tasks_of(function))):
                _outline(task, f"step {number}", number, function)
            _zero_temporaries(function)
            UnwrapTasks()(module)
            function.attributes["sym_name"] = ir.StringAttr.get("main")
            function.attributes["avial.ranks"] = _integer(1, 32)

    def __str__(self) -> str:
        return "task-steps"


def _outline(task: ir.Operation, symbol: str, number: int, before: ir.Operation) -> None:
    """The task's body in a function of its own; a call of it stands there instead."""
    operations = body_of(task)
    captured = Captured.by([each for op in operations for each in (op, *operations_in(op))])
    with ir.InsertionPoint(before), task.location:
        kinds = [value.type for value in captured.arguments]
        function = func.FuncOp(symbol, (kinds, []), visibility="private")
    block = function.add_entry_block([value.location for value in captured.arguments])
    inside = dict(zip(captured.arguments, block.arguments, strict=True))
    with ir.InsertionPoint(task.regions[0].blocks[0].operations[0]), task.location:
        call = func.CallOp([], symbol, captured.arguments)
        call.operation.attributes["avial.step"] = _integer(number, 64)
    point = ir.InsertionPoint(block)
    for op in captured.chain:
        copy = op.clone(ip=point).operation
        remap(copy, inside)
        inside.update(zip(op.results, copy.results, strict=True))
    for op in operations:
        op.detach_from_parent()
        point.insert(op)
        for each in (op, *operations_in(op)):
            remap(each, inside)
    with point, task.location:
        func.ReturnOp([])


def _zero_temporaries(function: ir.Operation) -> None:
    schedules = [op for s in schedules_of(function) for op in s.regions[0].blocks[0].operations]
    for view in (*top_operations(function), *schedules):
        op = view.operation
        if op.name in ("memref.alloc", "memref.alloca"):
            with ir.InsertionPoint.after(op), op.location:
                _fill_with_zero(op.results[0])


def _fill_with_zero(array: ir.Value) -> None:
    kind = ir.MemRefType(array.type)
    zero = zero_of(kind.element_type)

    def store(places: Sequence[ir.Value]) -> None:
        memref.StoreOp(zero, array, list(places))

    nest([extent_of(array, k) for k in range(kind.rank)], store)


def zero_of(kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.ComplexType):
        part = ir.FloatAttr.get(kind.element_type, 0.0)
        value = ir.ArrayAttr.get([part, part])
        return ir.Operation.create("complex.constant", [kind], [], {"value": value}).result
    return arith.constant(kind, 0.0 if isinstance(kind, ir.FloatType) else 0)


def _integer(value: int, width: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(width), value)
