"""Long bodies of tasks in parts, each a function of its own; parts that do the same are one.

Module of task functions and the entry -> the same, in which a long body is calls of its parts.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func, linalg, memref

from avial_lab.compiler.codegen.outline_tasks import ARCH, OF_TASKS, is_gpu_task
from avial_lab.compiler.codegen.partial_sums import clone_with
from avial_lab.compiler.codegen.task_parameters import beginning_anywhere, shape_of
from avial_lab.compiler.ir.attributes import AS_WRITTEN, OF_TASK, SHARED
from avial_lab.compiler.ir.captures import used_by
from avial_lab.compiler.ir.effects import symbols_in, text_attribute
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.compiler.ir.views import VIEWS, defining, view_chain

MOST = 24
"""Operations of a body that stays whole, and of a part."""

_ALLOC = "memref.alloc"

_LIE_AS_THEIR_SOURCE = (
    "memref.assume_alignment", "memref.collapse_shape", "memref.expand_shape",
    "memref.memory_space_cast", "memref.subview", "memref.transpose",
)  # fmt: skip
"""Views whose types say where they begin as that of their source does."""


@dataclass(frozen=True)
class ShareParts:
    """Cut a body of more than `most` operations on arrays before each contraction; equal parts, of
    whatever layer and device, become one function.

    before:  func.func private @S1_on0(%x, %w, %v, %y) { matmul  tanh  matmul  tanh }
             func.func private @S1_on1(…) { the same on other blocks }
    after:   func.func private @S1_on0_part1(%a, %b, %c) { matmul  tanh }
             func.func private @S1_on0(%x, %w, %v, %y) { %t = memref.alloc()
               call @S1_on0_part1(%x, %w, %t)  call @S1_on0_part1(%t, %v, %y) }

    What the passes on loops and LLVM take grows with what is different then, not with the number of
    layers times that of devices; and some of it grows with the square of a body. No loop is fused
    over the end of a part. Left whole: bodies with anything else than operations on arrays, their
    views and memory; kernels.
    """

    most: int = MOST

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            sharing = _Sharing(module, self.most)
            for function in functions_in(module):
                if AS_WRITTEN in function.attributes and not is_gpu_task(function):
                    sharing.cut(function)
            sharing.tell()

    def __str__(self) -> str:
        return "share-parts" if self.most == MOST else f"share-parts{{most={self.most}}}"


def _is_free(op: ir.Operation) -> bool:
    """Whether a part makes it for itself."""
    return op.name in VIEWS or op.name in ("arith.constant", "memref.get_global")


def _works(function: ir.Operation, most: int) -> list[ir.Operation]:
    """The operations that write arrays; none for a body that stays whole."""
    if len(function.regions[0].blocks) != 1:
        return []
    *body, _ = [view.operation for view in function.regions[0].blocks[0].operations]
    works = [op for op in body if not _is_free(op) and op.name != _ALLOC]
    known = all(op.name.startswith("linalg.") or op.name == "memref.copy" for op in works)
    plain = not any(len(op.results) for op in works)
    return works if known and plain and len(works) > most else []


def _parts(works: Sequence[ir.Operation], most: int) -> list[list[ir.Operation]]:
    """A contraction begins one, with the fill of what it adds to."""
    parts: list[list[ir.Operation]] = [[]]
    for op in works:
        here = parts[-1]
        begun = len(here)
        while begun and here[begun - 1].name == "linalg.fill":
            begun -= 1
        if begun and (_is_contraction(op) or len(here) >= most):
            parts[-1:] = [here[:begun], here[begun:]]
        parts[-1].append(op)
    return parts


def _is_contraction(op: ir.Operation) -> bool:
    """Whether no operand runs over all of its loops: each is read many times."""
    maps = linalg.get_indexing_maps(op) if op.name.startswith("linalg.") else None
    if maps is None or len(maps) < 3:
        return False
    forms = [getattr(each, "value", each) for each in maps]
    return all(len(form.results) < form.n_dims for form in forms)


@dataclass
class _Sharing:
    module: ir.Operation
    most: int
    made: dict[object, ir.Operation] = field(default_factory=dict)
    tasks: dict[ir.Operation, dict[ir.Attribute, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken = symbols_in(self.module)

    def cut(self, function: ir.Operation) -> None:
        works = _works(function, self.most)
        parts = _parts(works, self.most)
        if len(parts) < 2:
            return
        number = {op: k for k, part in enumerate(parts) for op in part}
        block = function.regions[0].blocks[0]
        allocs = [view.operation for view in block.operations if view.operation.name == _ALLOC]
        own = {op: only for op in allocs if (only := _only_in(op, number)) is not None}
        given = _begin_anywhere(function, own)
        order = {view.operation: k for k, view in enumerate(block.operations)}
        loose = [op for op in order if _is_free(op) or op.name == _ALLOC]
        for k, part in enumerate(parts):
            uses = _Uses(given, {op for op, only in own.items() if only == k})
            for op in part:
                uses.read(op)
            self._call(function, part, uses, order)
        for op in reversed(loose):
            if not any(True for _ in op.results[0].uses):
                op.erase()
        del function.attributes[AS_WRITTEN]
        function.attributes[SHARED] = ir.UnitAttr.get()  # there is no loop in it

    def _call(
        self,
        function: ir.Operation,
        part: Sequence[ir.Operation],
        uses: _Uses,
        order: Mapping[ir.Operation, int],
    ) -> None:
        """A call in place of the part."""
        arguments = list(uses.arguments)
        body = sorted([*uses.made, *part], key=lambda op: order[op])
        shape = shape_of(arguments, _with_insides(body))
        key = (shape.facts, shape.numbers, text_attribute(function, ARCH))
        if key not in self.made:
            self.made[key] = self._outlined(function, arguments, body)
        callee = self.made[key]
        several = OF_TASKS in function.attributes
        listed = (
            list(ir.ArrayAttr(function.attributes[OF_TASKS]))
            if several
            else [function.attributes[OF_TASK]]
        )
        self.tasks.setdefault(callee, {}).update(dict.fromkeys(listed))
        with ir.InsertionPoint(part[-1]), part[-1].location:
            func.CallOp([], ir.FlatSymbolRefAttr.get(text_attribute(callee, "sym_name")), arguments)
        for op in part:
            op.erase()

    def _outlined(
        self, function: ir.Operation, arguments: Sequence[ir.Value], body: Sequence[ir.Operation]
    ) -> ir.Operation:
        base = text_attribute(function, "sym_name")
        number = 1
        while (symbol := f"{base}_part{number}") in self.taken:
            number += 1
        self.taken.add(symbol)
        with ir.InsertionPoint(function), function.location:
            made = func.FuncOp(
                symbol, ([each.type for each in arguments], []), visibility="private"
            )
            made.attributes[ARCH] = function.attributes[ARCH]
            made.attributes[OF_TASK] = ir.StringAttr.get(symbol)
            made.attributes[AS_WRITTEN] = ir.UnitAttr.get()
        block = ir.Block.create_at_start(
            made.operation.regions[0],
            [each.type for each in arguments],
            [each.location for each in arguments],
        )
        inside: dict[ir.Value, ir.Value] = dict(zip(arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in body:
                clone_with(op, inside)
            with function.location:
                func.ReturnOp([])
        return made.operation

    def tell(self) -> None:
        """Every part of the tasks that it is of."""
        for function, names in self.tasks.items():
            function.attributes[OF_TASKS] = ir.ArrayAttr.get(list(names))


def _with_insides(body: Sequence[ir.Operation]) -> Iterator[ir.Operation]:
    for op in body:
        yield op
        yield from operations_in(op)


def _begin_anywhere(function: ir.Operation, own: Container[ir.Operation | None]) -> set[ir.Value]:
    """Let nobody but a subview itself know where the part of an array begins, which differs from
    device to device; the values in their places. Views of memory that is one part's `own` stay as
    they are: the part allocates it, so a view from the caller would be of other memory.
    """
    found: set[ir.Value] = set()
    for view in list(function.regions[0].blocks[0].operations):
        op = view.operation
        if op.name != "memref.subview" or defining(view_chain(op.result)[-1]) in own:
            continue
        with ir.InsertionPoint.after(op), op.location:
            cast = memref.CastOp(beginning_anywhere(op.result.type), op.result)
        op.result.replace_all_uses_except(cast.result, cast.operation)
        _pass_on(cast.result)
        found.add(cast.result)
    return found


def _pass_on(value: ir.Value) -> None:
    """What follows for the types of its views."""
    for use in value.uses:
        op = use.owner.operation
        if op.name in _LIE_AS_THEIR_SOURCE:
            op.result.set_type(beginning_anywhere(op.result.type))
            _pass_on(op.result)


def _only_in(alloc: ir.Operation, number: Mapping[ir.Operation, int]) -> int | None:
    """The part that alone uses the memory; None where several do."""
    found: set[int] = set()
    waiting = [alloc.results[0]]
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.operation
            while user not in number and not _is_free(user):
                around = parent_of(user)
                assert around is not None, "it stands in the body of one"
                user = around
            if user in number:
                found.add(number[user])
            else:
                waiting.append(user.results[0])
    return found.pop() if len(found) == 1 else None


@dataclass
class _Uses:
    """What a part uses of others: `arguments`, and what it makes for itself; `given` are arguments
    whatever they are views of, `own` is memory that no other part uses.
    """

    given: set[ir.Value]
    own: set[ir.Operation]
    arguments: dict[ir.Value, None] = field(default_factory=dict)
    made: dict[ir.Operation, None] = field(default_factory=dict)

    def read(self, op: ir.Operation) -> None:
        for value in used_by(op):
            self._add(value)

    def _add(self, value: ir.Value) -> None:
        owner = value.owner
        if value in self.given or isinstance(owner, ir.Block):
            self.arguments[value] = None
            return
        op = owner.operation
        if not (_is_free(op) or op in self.own):
            self.arguments[value] = None
        elif op not in self.made:
            self.made[op] = None
            for operand in op.operands:
                self._add(operand)
