"""Loops and accesses that are affine say so: most of what makes loops fast asks for that.

Functions of scf.for, memref.load and memref.store -> the same values by affine.for, affine.load and
affine.store, where bounds and subscripts are sums of loop variables and sizes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir, passmanager
from mlir.dialects import arith, memref

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.operations import LOOPS
from avial_lab.compiler.analysis.polyhedral.reading import ScopReader
from avial_lab.compiler.codegen.loops.exact_forms import exact_forms
from avial_lab.compiler.codegen.loops.index_arithmetic import as_index
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import (
    attributes_of,
    operations_in,
    operations_named,
    replaced,
)
from avial_lab.compiler.ir.views import ALLOCATIONS, VIEWS, is_memref
from avial_lab.compiler.passes.tasks.control_level import structured_functions

RAISED = {"memref.load": "affine.load", "memref.store": "affine.store"}


Forms = Sequence[Affine | None]


@dataclass(frozen=True)
class _Ends:
    """The bounds of a loop: the greatest of `lows`, the least of `highs`."""

    lows: Forms
    highs: Forms
    step: int


class _NotAffine(Exception):
    """A bound or subscript has no form that affine operations take."""


@dataclass(frozen=True)
class RaiseToAffine:
    """Write loops and accesses of other dialects as those of affine.

    before:  scf.for %i = %c1 to %n step %c1 { %k = arith.addi %i, %c2  %x = memref.load %A[%k] … }
    after:   affine.for %i = 1 to %n { %x = affine.load %A[%i + 2] … }

    A loop stays that has no step or no bounds that are known so, or that counts in another type
    than index, and what depends on its variable; so does what a launch's threads do.
    So does what takes a number that is read from memory: it will be read in a task, and affine
    operations take no value from there. Where the text has such, its function is lowered first.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in structured_functions(module):
                if _has_symbols_from_memory(function):
                    _lower_affine(function)
                if operations_named(function, "scf.for", *RAISED):
                    _Raising(function).run()

    def __str__(self) -> str:
        return "raise-to-affine"


def _outside_launches(function: ir.Operation) -> list[ir.Operation]:
    """What is in it but what threads do, where barriers may be: affine loops have none."""
    launches = operations_named(function, "gpu.launch")
    of_threads = {op for launch in launches for op in operations_in(launch)}
    return [op for op in operations_in(function) if op not in of_threads]


class _Raising:
    """`indices` has the form of every value; what names stand for in it is known here."""

    def __init__(self, function: ir.Operation) -> None:
        reader = ScopReader(function)
        reader.read(function)
        self.function, self.indices = function, reader.indices
        self.top = function.regions[0].blocks[0]
        self.names = {
            loop.op.regions[0].blocks[0].arguments[loop.dimension]: loop.name
            for loop in reader.all_loops
            if loop.op.name in ("scf.for", "affine.for", "affine.parallel")
        }
        # Results of loops are none of these: they will be those of other operations.
        self.given = {
            name: value
            for name, value in reader.indices.parameters.items()
            if value is not None and _is_given(value)
        }
        self.sizes = {
            name: (array, dimension)
            for name, (array, dimension) in reader.indices.sizes.items()
            if _is_given(array)
            and (isinstance(array.owner, ir.Block) or array.owner.operation.name != "scf.for")
        }
        self.symbols: dict[str, ir.Value] = {}

    def run(self) -> None:
        """Outer before inner. What is asked of values is asked first: one that is made may lie
        where another was erased.
        """
        inside = _outside_launches(self.function)
        loops = [(op, self._ends_of(op)) for op in inside if op.name == "scf.for"]
        accesses = [
            (op, self._forms_of(_subscripts(op)))
            for op in inside
            if op.name in RAISED and _is_repeated(op)
        ]
        for loop, ends in loops:
            with contextlib.suppress(_NotAffine):
                self._loop(loop, ends)
        for access, forms in accesses:
            with contextlib.suppress(_NotAffine):
                self._access(access, forms)

    def _ends_of(self, loop: ir.Operation) -> _Ends | None:
        low, high, step, *_ = loop.operands
        by = self.indices.constant(step)
        counted = isinstance(low.type, ir.IndexType)
        if by is None or by < 1 or "unsignedCmp" in loop.attributes or not counted:
            return None
        lows = self._forms_of(list(_sides(low, "arith.maxsi")))
        highs = self._forms_of(list(_sides(high, "arith.minsi")))
        return _Ends(lows, highs, by)

    def _forms_of(self, values: Sequence[ir.Value]) -> Forms:
        return [self.indices.of(value) for value in values]

    # -- operations

    def _loop(self, loop: ir.Operation, ends: _Ends | None) -> None:
        if ends is None:
            raise _NotAffine
        starts = list(loop.operands)[3:]
        lows, low_operands = self._map(loop, ends.lows)
        highs, high_operands = self._map(loop, ends.highs)
        sizes = [len(low_operands), len(high_operands), len(starts)]
        made = ir.Operation.create(
            "affine.for",
            [result.type for result in loop.results],
            [*low_operands, *high_operands, *starts],
            attributes=attributes_of(loop)
            | {
                "lowerBoundMap": lows,
                "upperBoundMap": highs,
                "step": ir.IntegerAttr.get(ir.IndexType.get(), ends.step),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes),
            },
            regions=1,
            loc=loop.location,
            ip=ir.InsertionPoint(loop),
        )
        block = loop.regions[0].blocks[0]
        block.append_to(made.regions[0])
        end = block.operations[len(block.operations) - 1].operation
        ir.Operation.create(
            "affine.yield", [], list(end.operands), loc=end.location, ip=ir.InsertionPoint(end)
        )
        end.erase()
        for old, new in zip(loop.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        loop.erase()

    def _access(self, op: ir.Operation, forms: Forms) -> None:
        if not forms:
            return
        where, operands = self._map(op, forms)
        fixed = list(op.operands)[: len(op.operands) - len(forms)]
        replaced(op, RAISED[op.name], [*fixed, *operands], {"map": where})

    # -- values

    def _map(self, user: ir.Operation, forms: Forms) -> tuple[ir.AffineMapAttr, list[ir.Value]]:
        """The forms as results of one map, and its operands, where `user` stands."""
        around = self._around(user)
        dims: dict[str, ir.Value] = {}
        symbols: dict[str, ir.Value] = {}
        for form in forms:
            if form is None:
                raise _NotAffine
            for name, _ in form.terms:
                if name in around:
                    dims[name] = around[name]
                else:
                    symbols[name] = self._symbol(name)
        places = {name: ir.AffineDimExpr.get(k) for k, name in enumerate(dims)}
        places |= {name: ir.AffineSymbolExpr.get(k) for k, name in enumerate(symbols)}
        results = [_expression(form, places) for form in forms if form is not None]
        made = ir.AffineMap.get(len(dims), len(symbols), results)
        return ir.AffineMapAttr.get(made), [*dims.values(), *symbols.values()]

    def _around(self, op: ir.Operation) -> dict[str, ir.Value]:
        """The variables of affine loops around, by name."""
        found: dict[str, ir.Value] = {}
        while (around := parent_of(op)) is not None and around != self.function:
            if around.name in ("affine.for", "affine.parallel"):
                for argument in around.regions[0].blocks[0].arguments:
                    if argument in self.names:
                        found[self.names[argument]] = argument
            op = around
        return found

    def _symbol(self, name: str) -> ir.Value:
        """A number that is known at the top of the function, as an index."""
        if name not in self.symbols:
            self.symbols[name] = self._made_symbol(name)
        return self.symbols[name]

    def _made_symbol(self, name: str) -> ir.Value:
        index = ir.IndexType.get()
        if name in self.sizes:
            array, dimension = self.sizes[name]
            behind = self._behind(array)
            with ir.InsertionPoint(behind), behind.location:
                return memref.dim(array, arith.constant(index, dimension))
        if name not in self.given:
            raise _NotAffine
        value = self.given[name]
        behind = self._behind(value)
        with ir.InsertionPoint(behind), behind.location:
            return as_index(value)

    def _behind(self, value: ir.Value) -> ir.Operation:
        """What stands right behind `value`, which has to be known at the top."""
        owner = value.owner
        block = owner if isinstance(owner, ir.Block) else owner.operation.block
        if block != self.top:
            raise _NotAffine
        operations = [view.operation for view in self.top.operations]
        return operations[0 if owner == block else operations.index(owner.operation) + 1]


def _has_symbols_from_memory(function: ir.Operation) -> bool:
    return any(
        not (is_memref(value) or _is_variable(value) or _is_given(value))
        for op in operations_in(function)
        if op.name.startswith("affine.") and op.name != "affine.yield"
        for value in op.operands
        if isinstance(value.type, ir.IndexType)
    )


def _is_variable(value: ir.Value) -> bool:
    """Whether it counts a loop, or is computed from what does by affine operations."""
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.operation.name.startswith("affine.")


def _lower_affine(function: ir.Operation) -> None:
    exact_forms(function)
    manager = passmanager.PassManager("func.func")
    manager.add("lower-affine")
    manager.run(function)


def _is_given(value: ir.Value) -> bool:
    """Whether it is computed of the function's arguments: what is read from memory will stand in a
    task, where it is no symbol. Nor is the extent of a window that has it from there, or of what a
    branch or a loop handed on.
    """
    if isinstance(value.owner, ir.Block):
        return True
    op = value.owner.operation
    if is_memref(value) and op.name not in (*VIEWS, *ALLOCATIONS):
        return op.name == "memref.get_global"
    stands = is_memref(value) or is_pure(op) or op.name == "memref.dim"
    return stands and all(_is_given(each) for each in op.operands)


def _is_repeated(op: ir.Operation) -> bool:
    """Whether it stands in a loop; what does not may be what names stand for, and stays."""
    around = parent_of(op)
    while around is not None and around.name not in LOOPS:
        around = parent_of(around)
    return around is not None


def _subscripts(access: ir.Operation) -> list[ir.Value]:
    return list(access.operands)[1 + (access.name == "memref.store") :]


def _sides(value: ir.Value, name: str) -> Iterator[ir.Value]:
    """What a bound is the greatest or the least of."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != name:
        yield value
        return
    for operand in value.owner.operation.operands:
        yield from _sides(operand, name)


def _expression(form: Affine, places: Mapping[str, ir.AffineExpr]) -> ir.AffineExpr:
    found = ir.AffineConstantExpr.get(form.constant)
    for name, factor in form.terms:
        found = found + places[name] * factor
    return found
