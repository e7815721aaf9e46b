"""Arrays become loops on memory, and what is computed of them is fused before there is any.

Functions of ptensor operations -> affine loops. A value that is read once, or is cheap, is computed
where it is read: chains of elementwise operations, broadcasts, slices and casts are one nest with
the reduction, the product or the assignment that takes them. Nothing is contracted: the bits are
those of one operation after the other. Where all sums have few terms these are added one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from mlir import ir
from mlir.dialects import affine, arith, complex, math, memref

from avial_lab.compiler.codegen.arrays.elementwise import (
    COSTLY,
    binary,
    cast,
    is_bool,
    is_float,
    is_unsigned,
    number,
    stored,
    unary,
)
from avial_lab.compiler.ir.attributes import CONTRACTED
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import STRICT, functions_of
from avial_lab.core.array_functions import is_multiplied_in_order, is_summed_in_order
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import VerifyError

PREFIX = "ptensor."
HEAVY = 8
"""Scalar operations from which on a value is rather kept than computed again."""
MOST_FUSED = 150
"""Scalar operations of one element: MLIR and LLVM take long over more."""

NAMES = "ijklmnop"
"""Of the loops, from the outside to the inside."""

ELEMENTWISE = ("unary", "binary", "where", "cast")
SINKS = ("store", "insert", "reduce", "matmul")


@dataclass(frozen=True)
class LowerPtensor:
    """Values get memory where they are stored, reduced, multiplied as matrices, or read by several
    nests; an assignment to a part of an array is done in place, where it does not read what it
    writes.

    before:  %x = ptensor.load %a             after:  affine.for %i = 0 to 398 {
             %l = ptensor.view %x {(i)->(i)}            %l = affine.load %a[%i]
             %r = ptensor.view %x {(i)->(i + 2)}        %r = affine.load %a[%i + 2]
             %s = ptensor.binary %l, %r {op = "add"}    %s = arith.addf %l, %r
             ptensor.store %s, %b                       affine.store %s, %b[%i] }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in list(functions_of(module)):
                if not any(op.name.startswith(PREFIX) for op in operations_in(function)):
                    continue
                entry = function.regions[0].blocks[0]
                operations = [view.operation for view in entry.operations]
                if _are_sums_in_order(function):
                    module.attributes[STRICT] = ir.UnitAttr.get()
                made: list[ir.Value] = []
                _Lowering(operations, made).run()
                end = operations[-1]
                with ir.InsertionPoint(end), end.location:
                    for array in made:
                        memref.dealloc(array)
                module.attributes[CONTRACTED] = ir.BoolAttr.get(False)

    def __str__(self) -> str:
        return "lower-ptensor"


def has_ptensor(module: ir.Module | ir.Operation) -> bool:
    return any(op.name.startswith(PREFIX) for op in operations_in(module.operation))


def tensor_of(value: ir.Value) -> ir.RankedTensorType:
    """Shape and element of a ptensor: what its first parameter says."""
    text = str(value.type).removeprefix("!ptensor.ptensor<")
    depth = 0
    for at, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            return ir.RankedTensorType(ir.Type.parse(text[:at]))
    raise VerifyError(f"{value.type} is no ptensor", span=span_of(value.owner.location))


@dataclass
class _Value:
    """What is known of a value, the result of operation number `at`. reads: the arrays that
    computing it looks at; memory: where it is kept, once it is; nests: which take it, two at most.
    """

    shape: tuple[int, ...]
    element: ir.Type
    op: ir.Operation
    at: int
    cost: int = 0
    reads: frozenset[ir.Value] = frozenset()
    memory: ir.Value | None = None
    nests: frozenset[int] = frozenset()
    last_use: int = -1

    @property
    def size(self) -> int:
        return prod(self.shape)


Forms = tuple[ir.AffineExpr, ...]


@dataclass
class _Lowering:
    """One block, operation after operation. made: the arrays that it allocates, at the beginning
    of the function.
    """

    operations: list[ir.Operation]
    made: list[ir.Value]
    values: dict[ir.Value, _Value] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
    homes: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def run(self) -> None:
        self._describe()
        self._find_homes()
        self._group_stores()
        self._count_nests()
        for at, op in enumerate(self.operations):
            if op.name.startswith(PREFIX):
                with ir.InsertionPoint(op), op.location:
                    self._lower(at, op)
            elif op.name == "affine.for":
                with ir.InsertionPoint(op), op.location:
                    self._lower_loop(at, op)
        for op in reversed(self.operations):
            if op.name.startswith(PREFIX):
                op.erase()

    # -- what there is -----------------------------------------------------------------------------

    def _describe(self) -> None:
        for at, op in enumerate(self.operations):
            for inner in (op, *operations_in(op)):
                for operand in inner.operands:
                    if operand in self.values:
                        self.values[operand].last_use = at
            if op.name.startswith(PREFIX) and len(op.results):
                kind = tensor_of(op.results[0])
                shape = tuple(kind.shape)
                self.values[op.results[0]] = _Value(shape, kind.element_type, op, at)

    def _find_homes(self) -> None:
        """Results that are stored in arrays which nobody has touched before are computed there."""
        touched: set[ir.Value] = set()
        for op in self.operations:
            if op.name == "ptensor.store" and op.operands[1] not in touched:
                self.homes.setdefault(op.operands[0], op.operands[1])
            for inner in (op, *operations_in(op)):
                touched.update(o for o in inner.operands if o not in self.values)

    def _group_stores(self) -> None:
        """Stores of equal shape with no other sink between them are one nest, at the last."""
        open_: list[int] = []
        for at, op in enumerate(self.operations):
            name = op.name.removeprefix(PREFIX)
            if name not in SINKS and name not in ("load", "affine.for"):
                continue
            if name == "store":
                shape = self.values[op.operands[0]].shape
                if open_ and self.values[self.operations[open_[0]].operands[0]].shape != shape:
                    open_ = []
                open_.append(at)
                self.groups[at] = open_
            else:
                open_ = []
        for at, group in list(self.groups.items()):
            if at != group[-1]:
                del self.groups[at]

    def _count_nests(self) -> None:
        """Of each value, which nests take it: backwards, from the operations that make nests."""
        group_at = {at: last for last, group in self.groups.items() for at in group}
        for at in range(len(self.operations) - 1, -1, -1):
            op = self.operations[at]
            name = op.name.removeprefix(PREFIX)
            if op.name == "affine.for":
                for inner in operations_in(op):
                    for operand in inner.operands:
                        if operand in self.values:
                            value = self.values[operand]
                            value.nests = frozenset([*value.nests, at][:2])
                continue
            if not op.name.startswith(PREFIX):
                continue
            if name in SINKS:
                nests = frozenset({group_at.get(at, at)})
            else:
                nests = self.values[op.results[0]].nests
            for operand in op.operands:
                if operand in self.values:
                    value = self.values[operand]
                    value.nests = frozenset([*value.nests, *nests][:2])

    # -- one operation -----------------------------------------------------------------------------

    def _lower(self, at: int, op: ir.Operation) -> None:
        name = op.name.removeprefix(PREFIX)
        if name == "load":
            value = self.values[op.results[0]]
            value.memory = op.operands[0]
            value.reads = frozenset({op.operands[0]})
        elif name == "store":
            if at in self.groups:
                self._store(at, [self.operations[k] for k in self.groups[at]])
        elif name == "insert":
            self._insert(at, op)
        elif name == "reduce":
            self._reduce(op)
        elif name == "matmul":
            self._multiply(op)
        else:
            self._delay(op)

    def _lower_loop(self, at: int, loop: ir.Operation) -> None:
        """What is read in it of before, or behind it, has to be what it was before."""
        inside = list(operations_in(loop))
        written = [
            op.operands[1] for op in inside if op.name in ("ptensor.store", "ptensor.insert")
        ]
        taken = {operand for op in inside for operand in op.operands if operand in self.values}
        for value in taken:
            if self._is_open(value):
                self._keep(value)
        for value in taken:
            known = self.values[value]
            if any(array in known.reads for array in written):
                self._keep_elsewhere(known)
        self._free_arrays(at, written)
        block = loop.regions[0].blocks[0]
        operations = [view.operation for view in block.operations]
        _Lowering(operations, self.made, {value: self.values[value] for value in taken}).run()

    def _delay(self, op: ir.Operation) -> None:
        """An element is computed where it is wanted, unless that would be done too often."""
        value = self.values[op.results[0]]
        sources = [operand for operand in op.operands if operand in self.values]
        for source in sources:
            known = self.values[source]
            again = known.cost >= HEAVY and known.size < value.size
            if known.memory is None and (again or known.cost > MOST_FUSED):
                self._keep(source)
        own = 0
        if op.name.removeprefix(PREFIX) in ELEMENTWISE:
            costly = "op" in op.attributes and ir.StringAttr(op.attributes["op"]).value in COSTLY
            own = 10 if costly else 1
        value.cost = own + sum(self.values[s].cost for s in sources if self._is_open(s))
        value.reads = frozenset().union(*(self.values[s].reads for s in sources))
        if len(value.nests) > 1 and value.cost >= HEAVY:
            self._keep(op.results[0])

    def _is_in(self, value: ir.Value, array: ir.Value) -> bool:
        memory = self.values[value].memory
        return memory is not None and memory == array

    def _is_open(self, value: ir.Value) -> bool:
        return self.values[value].memory is None

    def _keep(self, value: ir.Value, into: ir.Value | None = None) -> None:
        """Give the value memory, and put it there."""
        known = self.values[value]
        if into is None:
            into = self._home(value)
        with self._nest(known.shape) as nest:
            nest.store(self._element(value, nest.forms, nest, {}), into, nest.forms)
        self._is_kept(value, into)

    def _is_kept(self, value: ir.Value, into: ir.Value) -> None:
        """From now on whoever is computed of it reads that."""
        known = self.values[value]
        known.memory, known.cost, known.reads = into, 0, frozenset({into})
        changed = {value}
        for other, its in self.values.items():
            if its.memory is not None or its.at < known.at:
                continue
            sources = [operand for operand in its.op.operands if operand in self.values]
            if any(source in changed for source in sources):
                changed.add(other)
                its.reads = frozenset().union(*(self.values[s].reads for s in sources))

    def _new(self, shape: Sequence[int], element: ir.Type) -> ir.Value:
        entry = ir.InsertionPoint.current.block
        while entry.owner.operation.name != "func.func":
            entry = entry.owner.operation.block
        with ir.InsertionPoint.at_block_begin(entry):
            array = memref.alloc(ir.MemRefType.get(list(shape), stored(element)), [], [])
        self.made.append(array)
        return array

    def _home(self, value: ir.Value) -> ir.Value:
        known = self.values[value]
        if value in self.homes:
            return self.homes[value]
        return self._new(known.shape, known.element)

    def _store(self, at: int, group: Sequence[ir.Operation]) -> None:
        """All of them in one nest; of a value that is kept elsewhere already, a copy."""
        stores = [op for op in group if not self._is_in(op.operands[0], op.operands[1])]
        if not stores:
            return
        self._free_arrays(at, [op.operands[1] for op in stores])
        shape = self.values[stores[0].operands[0]].shape
        with self._nest(shape) as nest:
            seen: dict[object, ir.Value] = {}
            elements = [self._element(op.operands[0], nest.forms, nest, seen) for op in stores]
            for op, element in zip(stores, elements, strict=True):
                nest.store(element, op.operands[1], nest.forms)
        for op in stores:
            known = self.values[op.operands[0]]
            if known.memory is None:
                self._is_kept(op.operands[0], op.operands[1])

    def _free_arrays(self, at: int, arrays: Sequence[ir.Value]) -> None:
        """Before operation `at` overwrites these: what is still to be read of them is kept."""
        for known in list(self.values.values()):
            overwritten = any(array in known.reads for array in arrays)
            if overwritten and known.at < at < known.last_use:
                self._keep_elsewhere(known)

    def _keep_elsewhere(self, known: _Value) -> None:
        self._keep(known.op.results[0], self._new(known.shape, known.element))

    def _insert(self, at: int, op: ir.Operation) -> None:
        """In place, where each element reads of the array no other than the one it goes to."""
        value, array = op.operands
        known = self.values[value]
        self._free_arrays(at, [array])
        place = tuple(ir.AffineMapAttr(op.attributes["map"]).value.results)
        if array in known.reads and not self._reads_only(value, known.shape, array, place):
            self._keep_elsewhere(known)
        with self._nest(known.shape) as nest:
            nest.store(self._element(value, nest.forms, nest, {}), array, place)

    def _reads_only(
        self, value: ir.Value, shape: Sequence[int], array: ir.Value, place: Forms
    ) -> bool:
        """Whether element d of the value looks at no element of the array but place(d)."""
        wanted = [str(form) for form in place]

        def of(value: ir.Value, forms: Forms) -> bool:
            known = self.values[value]
            if known.memory is not None:
                return known.memory != array or [str(form) for form in forms] == wanted
            if array not in known.reads:
                return True
            sources = self._sources(value, forms, len(shape))
            return all(of(source, its) for source, its in sources)

        return of(value, _dims(len(shape)))

    # -- one element -------------------------------------------------------------------------------

    def _sources(
        self, value: ir.Value, forms: Forms, dims: int
    ) -> Iterator[tuple[ir.Value, Forms]]:
        """What element `forms`, of so many dimensions, of a value that is not kept is computed
        of.
        """
        known = self.values[value]
        if known.op.name == "ptensor.view":
            through = ir.AffineMapAttr(known.op.attributes["map"]).value
            inner = ir.AffineMap.get(dims, 0, list(forms))
            results = tuple(form.compose(inner) for form in through.results)
            yield known.op.operands[0], results
            return
        for operand in known.op.operands:
            shape = self.values[operand].shape
            kept = forms[len(forms) - len(shape) :]
            zero = ir.AffineExpr.get_constant(0)
            yield (
                operand,
                tuple(
                    zero if extent == 1 and full != 1 else form
                    for form, extent, full in zip(
                        kept, shape, known.shape[len(forms) - len(shape) :], strict=True
                    )
                ),
            )

    def _element(
        self, value: ir.Value, forms: Forms, nest: _Nest, seen: dict[object, ir.Value]
    ) -> ir.Value:
        """The element at `forms` of the nest's loops; what was computed there before is taken."""
        key = (value, tuple(str(form) for form in forms))
        if key not in seen:
            seen[key] = self._computed(value, forms, nest, seen)
        return seen[key]

    def _computed(
        self, value: ir.Value, forms: Forms, nest: _Nest, seen: dict[object, ir.Value]
    ) -> ir.Value:
        known = self.values[value]
        if known.memory is not None:
            return nest.load(known.memory, forms)
        name = known.op.name.removeprefix(PREFIX)
        if name == "index":
            form = forms[ir.IntegerAttr(known.op.attributes["dim"]).value]
            index = affine.AffineApplyOp(nest.map([form]), list(nest.variables)).result
            return arith.index_cast(stored(known.element), index)
        sources = [
            self._element(source, its, nest, seen)
            for source, its in self._sources(value, forms, len(nest.variables))
        ]
        if name == "view":
            return sources[0]
        kinds = [self.values[operand].element for operand in known.op.operands]
        if name == "where":
            return arith.select(*sources)
        if name == "cast":
            return cast(sources[0], kinds[0], known.element)
        op = ir.StringAttr(known.op.attributes["op"]).value
        try:
            return (
                unary(op, kinds[0], *sources) if name == "unary" else binary(op, kinds[0], *sources)
            )
        except (KeyError, TypeError):
            raise VerifyError(
                f"there is no {op} of {kinds[0]}", span=span_of(known.op.location)
            ) from None

    # -- reductions and products -------------------------------------------------------------------

    def _reduce(self, op: ir.Operation) -> None:
        source, result = op.operands[0], op.results[0]
        known, made = self.values[source], self.values[result]
        axes = set(ir.DenseI64ArrayAttr(op.attributes["axes"]))
        name = ir.StringAttr(op.attributes["op"]).value
        into = self._home(result)
        with self._nest(made.shape) as nest:
            nest.store(_first(name, made.element), into, nest.forms)
        with self._nest(known.shape) as nest:
            kept = tuple(form for d, form in enumerate(nest.forms) if d not in axes)
            element = self._element(source, nest.forms, nest, {})
            total = _joined(name, made.element, nest.load(into, kept), element)
            nest.store(total, into, kept)
        self._is_kept(result, into)

    def _multiply(self, op: ir.Operation) -> None:
        left, right = op.operands
        for operand in (left, right):
            if self.values[operand].cost and self._is_open(operand):
                self._keep(operand)
        made = self.values[op.results[0]]
        into = self._home(op.results[0])
        with self._nest(made.shape) as nest:
            nest.store(_zero(made.element), into, nest.forms)
        first, second = self.values[left].shape, self.values[right].shape
        rows, columns = len(first) > 1, len(second) > 1
        batch = len(made.shape) - rows - columns
        inner = first[-1]
        # The order of the loops is that of the text: rows, columns, terms.
        with self._nest((*made.shape, inner)) as nest:
            dims = nest.forms
            stack, term = dims[:batch], dims[-1]
            row = dims[batch : batch + 1] if rows else ()
            column = dims[batch + rows : batch + rows + 1] if columns else ()
            x = self._element(left, (*_stacked(stack, first[:-2], made), *row, term), nest, {})
            y = self._element(right, (*_stacked(stack, second[:-2], made), term, *column), nest, {})
            total = nest.load(into, dims[:-1])
            nest.store(_plus_product(made, inner, total, x, y), into, dims[:-1])
        self._is_kept(op.results[0], into)

    # -- loops -------------------------------------------------------------------------------------

    @contextmanager
    def _nest(self, shape: Sequence[int]) -> Iterator[_Nest]:
        """Loops over all elements of that shape; what is made meanwhile is their body."""
        variables: list[ir.Value] = []
        points: list[ir.InsertionPoint] = []
        for extent in shape:
            loop = affine.AffineForOp(0, extent)
            name = NAMES[len(variables)] if len(variables) < len(NAMES) else f"i{len(variables)}"
            place = ir.Location.name(name, loop.operation.location)
            loop.induction_variable.set_location(place)
            variables.append(loop.induction_variable)
            with ir.InsertionPoint(loop.body):
                affine.AffineYieldOp([])
            point = ir.InsertionPoint(loop.body.operations[0])
            point.__enter__()
            points.append(point)
        try:
            yield _Nest(tuple(variables))
        finally:
            for point in reversed(points):
                point.__exit__(None, None, None)


@dataclass(frozen=True)
class _Nest:
    """The variables of loops around, from the outside to the inside."""

    variables: tuple[ir.Value, ...]

    @property
    def forms(self) -> Forms:
        return _dims(len(self.variables))

    def map(self, forms: Sequence[ir.AffineExpr]) -> ir.AffineMap:
        return ir.AffineMap.get(len(self.variables), 0, list(forms))

    def load(self, array: ir.Value, forms: Forms) -> ir.Value:
        kind = ir.MemRefType(array.type)
        place = ir.AffineMapAttr.get(self.map(forms))
        return affine.AffineLoadOp(kind.element_type, array, list(self.variables), place).result

    def store(self, value: ir.Value, array: ir.Value, forms: Forms) -> None:
        place = ir.AffineMapAttr.get(self.map(forms))
        affine.AffineStoreOp(value, array, list(self.variables), place)


def _dims(count: int) -> Forms:
    return tuple(ir.AffineExpr.get_dim(d) for d in range(count))


def _stacked(stack: Forms, extents: Sequence[int], made: _Value) -> Forms:
    """The place in a stack of matrices that is broadcast to that of the result."""
    kept = stack[len(stack) - len(extents) :] if extents else ()
    full = made.shape[len(stack) - len(extents) : len(stack)]
    zero = ir.AffineExpr.get_constant(0)
    return tuple(
        zero if extent == 1 and whole != 1 else form
        for form, extent, whole in zip(kept, extents, full, strict=True)
    )


def _zero(kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.ComplexType):
        zero = number(kind.element_type, 0)
        return complex.create_(kind, zero, zero)
    return number(kind, 0)


def _first(name: str, kind: ir.Type) -> ir.Value:
    """What a reduction of nothing gives."""
    if name in ("sum", "any"):
        return _zero(kind)
    if name == "all":
        return arith.constant(stored(kind), -1)
    if name == "prod":
        if isinstance(kind, ir.ComplexType):
            one = number(kind.element_type, 1)
            return complex.create_(kind, one, number(kind.element_type, 0))
        return arith.constant(stored(kind), -1) if is_bool(kind) else number(kind, 1)
    if is_float(kind):
        return number(kind, float("inf") if name == "min" else float("-inf"))
    if is_unsigned(kind) or is_bool(kind):
        return arith.constant(stored(kind), -1 if name == "min" else 0)
    half = 1 << (kind.width - 1)
    return number(kind, half - 1 if name == "min" else -half)


_JOINS = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum",
          "any": "bitwise_or", "all": "bitwise_and"}  # fmt: skip


def _joined(name: str, kind: ir.Type, total: ir.Value, element: ir.Value) -> ir.Value:
    return binary(_JOINS[name], kind, total, element)


def _are_sums_in_order(function: ir.Operation) -> bool:
    """Whether there are sums or products of floating-point numbers, and all have few terms."""
    found: list[bool] = []
    for op in operations_in(function):
        if op.name not in ("ptensor.reduce", "ptensor.matmul"):
            continue
        made, source = tensor_of(op.results[0]), tensor_of(op.operands[0])
        if not isinstance(made.element_type, ir.FloatType | ir.ComplexType):
            continue
        kind = dtype_of_element(str(made.element_type))
        if op.name == "ptensor.matmul":
            found.append(is_multiplied_in_order(made.shape, source.shape[-1], kind))
        elif ir.StringAttr(op.attributes["op"]).value in ("sum", "prod"):
            found.append(is_summed_in_order(source.shape, kind))
    return bool(found) and all(found)


def _plus_product(made: _Value, terms: int, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Rounded once where there are many and the machine does so, as BLAS has it."""
    kind = made.element
    if isinstance(kind, ir.F32Type | ir.F64Type) and not is_multiplied_in_order(
        made.shape, terms, dtype_of_element(str(kind))
    ):
        return math.fma(x, y, total)
    if is_bool(kind):
        return arith.ori(total, arith.andi(x, y))
    return binary("add", kind, total, binary("multiply", kind, x, y))
