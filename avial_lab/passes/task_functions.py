"""Task bodies as functions: a body moves into a function of its own, equal bodies into one.

Tasks in a program's function -> `func.func private` for each different body, and which arrays each
task passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func

from avial_lab.dialects.places import span_of
from avial_lab.dialects.program import tasks_of
from avial_lab.errors import PassError
from avial_lab.passes.operations import functions_in, operations_in
from avial_lab.passes.phases import OF_TASK, remap
from avial_lab.passes.program import is_pure, text_attribute


@dataclass(frozen=True)
class TaskFunction:
    """How to run a task: call `symbol` with these arrays (values of the program's function)."""

    symbol: str
    arguments: tuple[ir.Value, ...]


def outline_tasks(
    module: ir.Operation, function: ir.Operation, *, share: bool
) -> dict[str, TaskFunction]:
    """Move every task's body into a function before `function`; the tasks are left empty.

    What a body captures is passed in where it is an array, and repeated inside where it is a pure
    operation (a constant, a subview).
    """
    taken = {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.regions[0].blocks[0].operations
        if "sym_name" in op.attributes and op.operation != function
    }
    taken.add("main")
    known: dict[object, str] = {}
    calls: dict[str, TaskFunction] = {}
    functions: dict[str, ir.Operation] = {}
    served: dict[str, list[str]] = {}
    for task in tasks_of(function):
        name = text_attribute(task, "name")
        arch = _arch(task)
        captured = _Captured.by(task)
        key = (arch, captured.fingerprint()) if share else name
        symbol = known.get(key)
        if symbol is None:
            # Assemblers take no symbol that begins with a digit, and `%3` is a name of MLIR's own.
            symbol = f"task{name}" if name[0].isdigit() else name
            while symbol in taken:
                symbol += "_"
            taken.add(symbol)
            known[key] = symbol
            functions[symbol] = _outline(task, function, symbol, arch, captured)
        calls[name] = TaskFunction(symbol, tuple(captured.arrays))
        served.setdefault(symbol, []).append(name)
    for symbol, names in served.items():
        if len(names) > 1:
            listed = [ir.StringAttr.get(name) for name in names]
            functions[symbol].attributes[OF_TASKS] = ir.ArrayAttr.get(listed)
    return calls


ARCH = "avial.arch"
"""On the function of a task: what its target asks for."""

OF_TASKS = "avial.tasks"
"""On a function that several tasks call: the names of all of them."""


def tasks_by_function(module: ir.Operation) -> dict[str, tuple[str, ...]]:
    """For the first task of each function that several call: the names of all of them."""
    return {
        text_attribute(op, OF_TASK): tuple(
            ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes[OF_TASKS])
        )
        for op in functions_in(module)
        if OF_TASKS in op.attributes
    }


def _arch(task: ir.Operation) -> str:
    target = task.operands[0].owner
    if "arch" not in target.attributes:
        return "cpu"
    return ir.StringAttr(target.attributes["arch"]).value


@dataclass
class _Captured:
    """What a task's body uses from outside: `arrays` in order of first use, and the pure `chain`
    between.
    """

    task: ir.Operation
    arrays: list[ir.Value] = field(default_factory=list)
    chain: list[ir.Operation] = field(default_factory=list)

    @staticmethod
    def by(task: ir.Operation) -> _Captured:
        captured = _Captured(task)
        inside: set[ir.Value] = set()
        seen: set[ir.Value] = set()
        for op in operations_in(task):
            for region in op.regions:
                for block in region.blocks:
                    inside.update(block.arguments)
            for operand in op.operands:
                if operand not in inside and operand not in seen:
                    captured._add(operand, seen, op)
            inside.update(op.results)
        return captured

    def _add(self, value: ir.Value, seen: set[ir.Value], user: ir.Operation) -> None:
        """Put `value` among the arrays, or what defines it into the chain, after what it needs."""
        if value in seen:
            return
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            self._add_array(value, user)
            return
        owner = value.owner.operation
        if owner.name == "memref.alloc":
            self._add_array(value, user)
            return
        if not is_pure(owner):
            raise PassError(
                f"{owner.name} between tasks is not yet lowered", span=span_of(owner.location)
            )
        for operand in owner.operands:
            self._add(operand, seen, user)
        if owner not in self.chain:
            self.chain.append(owner)

    def _add_array(self, value: ir.Value, user: ir.Operation) -> None:
        if not isinstance(value.type, ir.MemRefType):
            raise PassError(
                f"a task uses an argument of type {value.type}; only arrays are passed to tasks",
                span=span_of(user.location),
                hint="give the scalar a value when the program is compiled",
            )
        self.arrays.append(value)

    def fingerprint(self) -> tuple[object, ...]:
        """Equal for two tasks exactly when one function can serve both: names and places do not
        count.
        """
        numbers: dict[ir.Value, int] = {}
        facts: list[object] = []
        for array in self.arrays:
            numbers[array] = len(numbers)
            facts.append(array.type)
        for op in [*self.chain, *operations_in(self.task)]:
            facts.append(op.name)
            facts.extend((named.name, named.attr) for named in _attributes(op))
            facts.extend(numbers[operand] for operand in op.operands)
            for result in op.results:
                numbers[result] = len(numbers)
                facts.append(result.type)
            for region in op.regions:
                facts.append(len(region.blocks))
                for block in region.blocks:
                    # A block is numbered before its operations, so that branches can name it.
                    facts.append(len(block.operations))
                    for argument in block.arguments:
                        numbers[argument] = len(numbers)
                        facts.append(argument.type)
            facts.extend(_successor_number(op, block) for block in op.successors)
        return tuple(facts)


def _attributes(op: ir.Operation) -> Iterator[ir.NamedAttribute]:
    attributes = op.attributes
    for k in range(len(attributes)):
        yield attributes[k]


def _successor_number(op: ir.Operation, successor: ir.Block) -> int:
    return list(op.block.region.blocks).index(successor)


def _outline(
    task: ir.Operation, before: ir.Operation, symbol: str, arch: str, captured: _Captured
) -> ir.Operation:
    """The function `symbol`, with the task's own body moved into it."""
    region = task.regions[0]
    if len(region.blocks) != 1:
        raise PassError(
            "a task of several blocks is not yet lowered",
            span=span_of(task.location),
            hint="use scf.if and scf.for in place of branches",
        )
    with ir.InsertionPoint(before), task.location:
        function = func.FuncOp(
            symbol, ([array.type for array in captured.arrays], []), visibility="private"
        )
    function.attributes[ARCH] = ir.StringAttr.get(arch)
    function.attributes[OF_TASK] = task.attributes["name"]
    body = region.blocks[0]
    body.append_to(function.regions[0])
    inside: dict[ir.Value, ir.Value] = {}
    for array in captured.arrays:
        inside[array] = body.add_argument(array.type, array.location)
    start = ir.InsertionPoint.at_block_begin(body)
    for op in captured.chain:
        copy = op.clone(ip=start)
        remap(copy, inside)
        inside.update(zip(op.results, copy.results, strict=True))
    for op in body.operations:
        remap(op.operation, inside)
        for inner in operations_in(op.operation):
            remap(inner, inside)
    last = body.operations[len(body.operations) - 1]
    with ir.InsertionPoint(last), last.location:
        func.ReturnOp([])
    last.operation.erase()
    # The empty task keeps its place until the whole function goes.
    with ir.InsertionPoint(ir.Block.create_at_start(region, [])), task.location:
        ir.Operation.create("omp.terminator")
    return function.operation
