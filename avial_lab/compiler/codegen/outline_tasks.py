"""Task bodies as functions: a body moves into a function of its own, equal bodies into one.

Tasks in a program's function -> `func.func private` for each different body, and which arrays each
task passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations

from mlir import ir
from mlir.dialects import func

from avial_lab.compiler.codegen.task_parameters import (
    Cut,
    Offsets,
    Shape,
    Site,
    beginning_anywhere,
    shape_of,
)
from avial_lab.compiler.ir.attributes import AS_WRITTEN, OF_TASK
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.effects import is_pure, text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.compiler.ir.program import tasks_of
from avial_lab.core.errors import PassError
from avial_lab.machine.devices import GPU_FAMILY, Backend, kind_for


@dataclass(frozen=True)
class ArrayPart:
    """A part of an array."""

    array: ir.Value
    cut: Cut


@dataclass(frozen=True)
class TaskFunction:
    """How to run a task: call `symbol` with these arrays (values of the program's function) and
    parts of them, and then these numbers.
    """

    symbol: str
    arguments: tuple[ir.Value | ArrayPart, ...]
    numbers: tuple[ir.Attribute, ...] = ()


def outline_tasks(module: ir.Operation, function: ir.Operation) -> dict[str, TaskFunction]:
    """Move every task's body into a function before `function`; the tasks are left empty.

    What a body captures is passed in where it is an array, and repeated inside where it is a pure
    operation (a constant, a subview). Bodies that are equal but for their arrays and numbers have
    one function, which takes the numbers that differ.
    """
    taken = {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.regions[0].blocks[0].operations
        if "sym_name" in op.attributes and op.operation != function
    }
    taken.add("main")
    calls: dict[str, TaskFunction] = {}
    for bodies in _alike(function):
        first = bodies[0]
        # Assemblers take no symbol that begins with a digit, and `%3` is a name of MLIR's own.
        symbol = f"task{first.name}" if first.name[0].isdigit() else first.name
        while symbol in taken:
            symbol += "_"
        taken.add(symbol)
        made = _outline(first, function, symbol)
        if len(bodies) > 1:
            names = [ir.StringAttr.get(body.name) for body in bodies]
            made.attributes[OF_TASKS] = ir.ArrayAttr.get(names)
        served = _open_up(made, bodies)
        calls |= {body.name: each for body, each in zip(bodies, served, strict=True)}
    return calls


def _alike(function: ir.Operation) -> list[list[_Body]]:
    """The tasks' bodies, in program order; those together that one function can serve."""
    found: dict[object, list[_Body]] = {}
    for task in tasks_of(function):
        body = _Body.of(task)
        # A kernel's text is shown for each task, with its numbers.
        numbers = body.shape.numbers if kind_for(body.arch).family == GPU_FAMILY else ()
        found.setdefault((body.arch, body.shape.facts, numbers), []).append(body)
    return list(found.values())


def _open_up(made: ir.Operation, bodies: Sequence[_Body]) -> list[TaskFunction]:
    """Let the function of the first body serve all of them: it takes every number that is not the
    same in all; how each task calls it. Numbers that are equal in every body are one.
    """
    symbol = text_attribute(made, "sym_name")
    arrays = [tuple(body.captured.arrays) for body in bodies]
    if len(bodies) == 1:
        return [TaskFunction(symbol, each) for each in arrays]
    block = made.regions[0].blocks[0]
    sites = shape_of(list(block.arguments), operations_in(made)).sites
    numbers = [list(_by_site(sites, body.shape.numbers)) for body in bodies]
    parts = _take_parts(block, sites, numbers)
    places: dict[tuple[ir.Attribute, ...], ir.Value] = {}
    for place, (site, columns) in enumerate(zip(sites, zip(*numbers, strict=True), strict=True)):
        if place in parts.taken:
            continue
        parameters: list[ir.Value | None] = []
        for column in zip(*columns, strict=True):
            if any(number != column[0] for number in column) and column not in places:
                name = ir.Location.name(f"n{len(places)}", made.location)
                places[column] = block.add_argument(column[0].type, name)
            parameters.append(places.get(column))
        site.take(parameters)
    kinds = [argument.type for argument in block.arguments]
    made.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
    given = zip(*places, strict=True) if places else [()] * len(bodies)
    return [
        TaskFunction(symbol, parts.arguments(k, each), values)
        for k, (each, values) in enumerate(zip(arrays, given, strict=True))
    ]


def _by_site(
    sites: Sequence[Site], numbers: Sequence[ir.Attribute]
) -> Iterator[tuple[ir.Attribute, ...]]:
    waiting = iter(numbers)
    for site in sites:
        yield tuple(next(waiting) for _ in site.numbers)


@dataclass(frozen=True)
class _Parts:
    """The sites, by number, of the subviews that a function takes as arguments; the numbers of the
    arrays that it still takes, and for each body and part the number of the array and the part.
    """

    taken: Set[int]
    kept: tuple[int, ...]
    cuts: Sequence[Sequence[tuple[int, Cut]]]

    def arguments(self, body: int, arrays: Sequence[ir.Value]) -> tuple[ir.Value | ArrayPart, ...]:
        parts = (ArrayPart(arrays[k], cut) for k, cut in self.cuts[body])
        return (*(arrays[k] for k in self.kept), *parts)


def _take_parts(
    block: ir.Block, sites: Sequence[Site], numbers: Sequence[Sequence[tuple[ir.Attribute, ...]]]
) -> _Parts:
    """Of an array that a body uses through several parts of it alone, which are different memory in
    every body, the function takes those parts: it is known then that they are.
    """
    arguments = list(block.arguments)
    found: dict[int, list[tuple[int, Offsets]]] = {}
    for place, site in enumerate(sites):
        if isinstance(site, Offsets) and site.is_known and site.op.operands[0] in arguments:
            found.setdefault(arguments.index(site.op.operands[0]), []).append((place, site))
    taken: set[int] = set()
    gone: set[int] = set()
    cuts: list[list[tuple[int, Cut]]] = [[] for _ in numbers]
    for k, subviews in found.items():
        if len(subviews) != len(list(arguments[k].uses)) or len(subviews) < 2:
            continue
        of_bodies = [[site.cut(each[place]) for place, site in subviews] for each in numbers]
        if any(a.box.overlaps(b.box) for own in of_bodies for a, b in combinations(own, 2)):
            continue
        for own, more in zip(cuts, of_bodies, strict=True):
            own += [(k, cut) for cut in more]
        for place, site in subviews:
            part = block.add_argument(beginning_anywhere(site.op.result.type), site.op.location)
            site.op.result.replace_all_uses_with(part)
            site.op.erase()
            taken.add(place)
        gone.add(k)
    for k in sorted(gone, reverse=True):
        block.erase_argument(k)
    return _Parts(taken, tuple(k for k in range(len(arguments)) if k not in gone), cuts)


ARCH = "avial.arch"
"""On the function of a task: what its target asks for."""


def is_gpu_task(function: ir.Operation) -> bool:
    """Whether this is the function of a task that kernels are made of."""
    if ARCH not in function.attributes:
        return False
    return kind_for(text_attribute(function, ARCH)).backend is Backend.NVPTX


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


@dataclass(frozen=True)
class _Body:
    """What a task does, where, and on what."""

    name: str
    arch: str
    captured: _Captured
    shape: Shape

    @staticmethod
    def of(task: ir.Operation) -> _Body:
        captured = _Captured.by(task)
        shape = shape_of(captured.arrays, (*captured.chain, *operations_in(task)))
        return _Body(text_attribute(task, "name"), _arch(task), captured, shape)


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


def _outline(first: _Body, before: ir.Operation, symbol: str) -> ir.Operation:
    """The function `symbol`, with the task's own body moved into it."""
    captured = first.captured
    task = captured.task
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
    function.attributes[ARCH] = ir.StringAttr.get(first.arch)
    function.attributes[OF_TASK] = task.attributes["name"]
    function.attributes[AS_WRITTEN] = ir.UnitAttr.get()
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
