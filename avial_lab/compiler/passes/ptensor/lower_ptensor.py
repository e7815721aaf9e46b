"""Arrays become loops on memory, and what is computed of them is fused before there is any.

Functions of ptensor operations -> affine loops. A value that is read once, or is cheap, is computed
where it is read: chains of elementwise operations, broadcasts, slices and casts are one nest with
the reduction, the product or the assignment that takes them. Nothing is contracted: the bits are
those of one operation after the other. Where all sums have few terms these are added one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

import numpy as np
from mlir import ir
from mlir.dialects import affine, arith, math

from avial_lab.compiler.codegen.arrays.elementwise import (
    COSTLY,
    binary,
    bits,
    cast,
    is_bool,
    stored,
    unary,
)
from avial_lab.compiler.codegen.arrays.nests import (
    Forms,
    Nest,
    dims,
    nest,
    nest_in_parts,
    nest_in_turns,
    nest_of_rows,
)
from avial_lab.compiler.codegen.arrays.reductions import (
    IN_TURN,
    first,
    joined,
    place_of_extreme,
    zero,
)
from avial_lab.compiler.ir.attributes import CONTRACTED, ON
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import attributes_of, itemsize_of, operations_in
from avial_lab.compiler.ir.program import STRICT, functions_of
from avial_lab.compiler.ir.ptensor_types import DEFAULT, PtensorType
from avial_lab.compiler.passes.ptensor.arrays import Arrays, line_of
from avial_lab.core.array_functions import (
    EXTREMES,
    MOST_SUMMED,
    is_multiplied_in_order,
    is_summed_in_order,
)
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import VerifyError
from avial_lab.machine.devices import GPU_FAMILY

PREFIX = "ptensor."
HEAVY = 8
"""Scalar operations from which on a value is rather kept than computed again."""
MOST_FUSED = 150
"""Scalar operations of one element: MLIR and LLVM take long over more."""

DEVICES = (DEFAULT, "cuda:0")

LEAST_ROWS = (24, 24, 8, 8)
"""Of a block, by how many there are (`IN_TURN`): partial results are no more than an eighth of what
they are of, and less of much.
"""

MOST_OF_ROWS = 1 << 10
"""Elements of a product of many terms whose rows are added up in registers."""

MOST_TERMS = 8
"""Of a product that is not kept: a point's coordinates."""

ELEMENTWISE = ("unary", "binary", "where", "cast")
SINKS = ("store", "insert", "reduce", "matmul")


@dataclass(frozen=True)
class LowerPtensor:
    """Values get memory where they are stored, reduced, multiplied as matrices, or read by several
    nests; an assignment to a part of an array is done in place, where it does not read what it
    writes. A sum over rows is one of blocks of rows, whose partial results are combined at its end.

    before:  %x = ptensor.load %a             after:  affine.for %i = 0 to 398 {
             %l = ptensor.view %x {(i)->(i)}            %l = affine.load %a[%i]
             %r = ptensor.view %x {(i)->(i + 2)}        %r = affine.load %a[%i + 2]
             %s = ptensor.binary %l, %r {op = "add"}    %s = arith.addf %l, %r
             ptensor.store %s, %b                       affine.store %s, %b[%i] }

    Arrays whose type says `dist` are the dist dialect's, so is what is done with them as a whole
    (copies of parts, combining partial results), unless it is to `ignore_dist`. Where a type names
    a GPU the program is to run there, unless it is to `ignore_device`.
    """

    ignore_dist: bool = False
    ignore_device: bool = False

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in list(functions_of(module)):
                if not any(op.name.startswith(PREFIX) for op in operations_in(function)):
                    continue
                entry = function.regions[0].blocks[0]
                _compute_once(entry)
                operations = [view.operation for view in entry.operations]
                if _are_sums_in_order(function):
                    module.attributes[STRICT] = ir.UnitAttr.get()
                on_cpu = _device_of(function) == DEFAULT or self.ignore_device
                if not on_cpu:
                    module.attributes[ON] = ir.StringAttr.get(GPU_FAMILY)
                arrays = Arrays(entry, not self.ignore_dist, on_cpu)
                _Lowering(operations, arrays).run()
                end = operations[-1]
                with ir.InsertionPoint(end), end.location:
                    arrays.free()
                arrays.tell(function)
                module.attributes[CONTRACTED] = ir.BoolAttr.get(False)

    def __str__(self) -> str:
        names = ("ignore-dist", "ignore-device")
        given = zip(names, (self.ignore_dist, self.ignore_device), strict=True)
        options = " ".join(f"{name}=true" for name, value in given if value)
        return f"lower-ptensor{{{options}}}" if options else "lower-ptensor"


EVERYWHERE = -1
"""In place of a dimension by which an array lies: every rank has it."""


def _lying_by(value: ir.Value) -> int | None:
    """None where it lies anyhow; VerifyError where the array has not that dimension."""
    kind = PtensorType.of(value)
    dims = len(kind.tensor.shape)
    if not dims or not kind.is_divided:
        return None
    if kind.is_replicated:
        return EVERYWHERE
    dim = kind.divided_dim
    if dim is not None and dim >= dims:
        raise VerifyError(
            f"dist = {kind.dist} divides dimension {dim}, and the array has {dims}",
            span=span_of(value.location),
        )
    return dim


def has_ptensor(module: ir.Module | ir.Operation) -> bool:
    return any(op.name.startswith(PREFIX) for op in operations_in(module.operation))


def _compute_once(block: ir.Block) -> None:
    """What several operations compute of the same values, the first one does."""
    first: dict[tuple[object, ...], ir.Operation] = {}
    for op in [view.operation for view in block.operations]:
        for region in op.regions:
            for inner in region.blocks:
                _compute_once(inner)
        name = op.name.removeprefix(PREFIX)
        if name == op.name or name in ("load", "store", "insert"):
            continue
        attributes = {key: str(value) for key, value in attributes_of(op).items()}
        key = (name, *op.operands, *sorted(attributes.items()), str(op.results[0].type))
        same = first.setdefault(key, op)
        if same is not op:
            op.results[0].replace_all_uses_with(same.results[0])
            op.erase()


def _device_of(function: ir.Operation) -> str:
    """Where all its arrays are; VerifyError where they are in different places."""
    operations = [op for op in operations_in(function) if op.name.startswith(PREFIX)]
    values = [value for op in operations for value in op.results]
    if not values:
        return DEFAULT
    place, device = span_of(values[0].location), PtensorType.of(values[0]).device
    if device not in DEVICES:
        raise VerifyError(
            f"there is no device '{device}'",
            span=place,
            hint=f"the devices are {', '.join(DEVICES)}",
        )
    for value in values:
        other = PtensorType.of(value).device
        if other != device:
            line = f" (line {place.line})" if place is not None else ""
            raise VerifyError(
                f"the arrays are in different places: one is on device '{other}', one on "
                f"'{device}'{line}",
                span=span_of(value.location),
            )
    return device


@dataclass
class _Value:
    """What is known of a value, the result of operation number `at`. work: what each operation that
    one element takes costs, by its number and how it is looked at; reads: the arrays that computing
    it looks at; memory: where it is kept, once it is; nests: which take it, two at most.
    """

    shape: tuple[int, ...]
    element: ir.Type
    divided: bool
    op: ir.Operation
    at: int
    work: Mapping[tuple[int, str], int] = field(default_factory=dict)
    reads: frozenset[ir.Value] = frozenset()
    memory: ir.Value | None = None
    nests: frozenset[int] = frozenset()
    last_use: int = -1

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def cost(self) -> int:
        """Scalar operations of one element."""
        return sum(self.work.values())


@dataclass
class _Lowering:
    """One block, operation after operation. arrays: what it allocates, at the beginning of the
    function.
    """

    operations: list[ir.Operation]
    arrays: Arrays
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
                kind = PtensorType.of(op.results[0])
                shape, element = tuple(kind.tensor.shape), kind.tensor.element_type
                self.values[op.results[0]] = _Value(shape, element, kind.is_divided, op, at)

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
            dim = _lying_by(op.results[0])
            if dim is not None:
                self.arrays.lies.setdefault(op.operands[0], dim)
                self.arrays.in_parts[op.operands[0]] = PtensorType.of(op.results[0]).in_parts
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
        _Lowering(operations, self.arrays, {value: self.values[value] for value in taken}).run()

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
        view = str(op.attributes["map"]) if op.name == "ptensor.view" else ""
        value.work = {(value.at, ""): own} | {
            (at, view + place): cost
            for source in sources
            if self._is_open(source)
            for (at, place), cost in self.values[source].work.items()
        }
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
        with self._nest([(value, dims(len(known.shape)))], known.shape, [into]) as loops:
            loops.store(self._element(value, loops.forms, loops, {}), into, loops.forms)
        self._is_kept(value, into)

    def _is_kept(self, value: ir.Value, into: ir.Value) -> None:
        """From now on whoever is computed of it reads that."""
        known = self.values[value]
        known.memory, known.work, known.reads = into, {}, frozenset({into})
        changed = {value}
        for other, its in self.values.items():
            if its.memory is not None or its.at < known.at:
                continue
            sources = [operand for operand in its.op.operands if operand in self.values]
            if any(source in changed for source in sources):
                changed.add(other)
                its.reads = frozenset().union(*(self.values[s].reads for s in sources))

    def _new(self, known: _Value, shape: Sequence[int] | None = None) -> ir.Value:
        """Memory for it; of another shape where that is given."""
        shape = known.shape if shape is None else shape
        return self.arrays.new(shape, stored(known.element), divided=known.divided)

    def _home(self, value: ir.Value) -> ir.Value:
        known = self.values[value]
        if value in self.homes:
            return self.homes[value]
        return self._new(known)

    def _store(self, at: int, group: Sequence[ir.Operation]) -> None:
        """All of them in one nest; of a value that is kept elsewhere already, a copy."""
        stores = [op for op in group if not self._is_in(op.operands[0], op.operands[1])]
        if not stores:
            return
        self._free_arrays(at, [op.operands[1] for op in stores])
        shape = self.values[stores[0].operands[0]].shape
        if len(stores) > 1 or not self._copy(stores[0], dims(len(shape))):
            stored = [(op.operands[0], dims(len(shape))) for op in stores]
            with self._nest(stored, shape, [op.operands[1] for op in stores]) as loops:
                seen: dict[object, ir.Value] = {}
                forms = loops.forms
                elements = [self._element(op.operands[0], forms, loops, seen) for op in stores]
                for op, element in zip(stores, elements, strict=True):
                    loops.store(element, op.operands[1], forms)
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
        self._keep(known.op.results[0], self._new(known))

    def _insert(self, at: int, op: ir.Operation) -> None:
        """In place, where each element reads of the array no other than the one it goes to."""
        value, array = op.operands
        known = self.values[value]
        self._free_arrays(at, [array])
        place = tuple(ir.AffineMapAttr(op.attributes["map"]).value.results)
        if array in known.reads and not self._reads_only(value, known.shape, array, place):
            self._keep_elsewhere(known)
        if self._copy(op, place):
            return
        read = [(value, dims(len(known.shape)))]
        with self._nest(read, known.shape, [], (array, place)) as loops:
            loops.store(self._element(value, loops.forms, loops, {}), array, place)

    def _copy(self, op: ir.Operation, place: Forms) -> bool:
        """The store or insert as a copy of a part of another array, where that is all it is."""
        value, array = op.operands
        known = self.values[value]
        if not known.divided or not known.shape:
            return False
        forms = dims(len(known.shape))
        source, its = value, forms
        while self.values[source].memory is None:
            if self.values[source].op.name != "ptensor.view":
                return False
            source, its = next(self._sources(source, its, len(forms)))
        memory = self.values[source].memory
        assert memory is not None
        return memory != array and self.arrays.copy((memory, its), (array, place), known.shape)

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

        return of(value, dims(len(shape)))

    # -- where it is computed ----------------------------------------------------------------------

    @contextmanager
    def _nest(
        self,
        read: Sequence[tuple[ir.Value, Forms]],
        shape: Sequence[int],
        whole: Sequence[ir.Value],
        part: tuple[ir.Value, Forms] | None = None,
        inside: Sequence[int] = (),
    ) -> Iterator[Nest]:
        """Loops that compute these elements of values where most of what they read lies, for the
        `whole` arrays, or a part of one. inside: extents of loops that their body has.
        """
        read_over = (*shape, *inside)
        first = self._following(read, read_over, part)
        first = first if first < len(shape) else 0
        in_parts = self._in_parts(self._all_places(read, read_over, part), first)
        for array in whole:
            if shape and array not in self.arrays.lies:
                self.arrays.lies[array], self.arrays.in_parts[array] = first, in_parts
        with nest(shape, first=first, in_parts=in_parts) as loops:
            yield loops

    def _all_places(
        self,
        read: Sequence[tuple[ir.Value, Forms]],
        shape: Sequence[int],
        part: tuple[ir.Value, Forms] | None,
    ) -> list[tuple[ir.Value, Forms]]:
        places = [each for value, forms in read for each in self._places(value, forms, len(shape))]
        return [*places, *([part] if part is not None else [])]

    def _in_parts(self, places: Sequence[tuple[ir.Value, Forms]], first: int) -> str:
        """How the loops are divided where all that lies by the first of them lies so: in blocks in
        turn, or over a grid; in one part for each rank if not.
        """
        found: set[str] = set()
        for array, forms in places:
            dim = self.arrays.lies.get(array, EVERYWHERE)
            if dim == EVERYWHERE or line_of(forms[dim], first) is None:
                continue
            text = self.arrays.in_parts.get(array, "")
            if "x" in text and (first or len(forms) < 2 or line_of(forms[1], 1) is None):
                text = ""
            found.add(text)
        return found.pop() if len(found) == 1 else ""

    def _following(
        self,
        read: Sequence[tuple[ir.Value, Forms]],
        shape: Sequence[int],
        part: tuple[ir.Value, Forms] | None = None,
    ) -> int:
        """The dimension of loops over `shape` that the most bytes of what is read lie by, and of
        the part that is written.
        """
        nbytes = [0] * len(shape)
        for array, forms in dict.fromkeys(self._all_places(read, shape, part)):
            dim = self.arrays.lies.get(array, EVERYWHERE)
            if dim == EVERYWHERE:
                continue
            kind = ir.MemRefType(array.type)
            size = min(prod(kind.shape), prod(shape)) * itemsize_of(kind.element_type)
            for d in range(len(shape)):
                if line_of(forms[dim], d) is not None:
                    nbytes[d] += size
        return nbytes.index(max(nbytes)) if nbytes else 0

    # -- one element -------------------------------------------------------------------------------

    def _sources(
        self, value: ir.Value, forms: Forms, dims: int
    ) -> Iterator[tuple[ir.Value, Forms]]:
        """What element `forms`, of so many dimensions, of a value that is not kept is computed
        of: of a product the factors of its terms, one after the other.
        """
        known = self.values[value]
        if known.op.name == "ptensor.matmul":
            for k in range(self._terms(known)):
                places = self._factors(known, (*forms, ir.AffineExpr.get_constant(k)))
                yield from zip(known.op.operands, places, strict=True)
            return
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
        self, value: ir.Value, forms: Forms, loops: Nest, seen: dict[object, ir.Value]
    ) -> ir.Value:
        """The element at `forms` of the nest's loops; what was computed there before is taken."""
        key = (value, tuple(str(form) for form in forms))
        if key not in seen:
            seen[key] = self._computed(value, forms, loops, seen)
        return seen[key]

    def _computed(
        self, value: ir.Value, forms: Forms, loops: Nest, seen: dict[object, ir.Value]
    ) -> ir.Value:
        known = self.values[value]
        if known.memory is not None:
            return loops.load(known.memory, forms)
        name = known.op.name.removeprefix(PREFIX)
        if name == "index":
            form = forms[ir.IntegerAttr(known.op.attributes["dim"]).value]
            index = affine.AffineApplyOp(loops.map([form]), list(loops.variables)).result
            return arith.index_cast(stored(known.element), index)
        sources = [
            self._element(source, its, loops, seen)
            for source, its in self._sources(value, forms, len(loops.variables))
        ]
        if name == "view":
            return sources[0]
        if name == "matmul":
            total = zero(known.element)
            for x, y in zip(sources[::2], sources[1::2], strict=True):
                total = _plus_product(known, self._terms(known), total, x, y)
            return total
        kinds = [self.values[operand].element for operand in known.op.operands]
        if name == "where":
            return arith.select(*sources)
        if name == "cast":
            return cast(sources[0], kinds[0], known.element)
        op = ir.StringAttr(known.op.attributes["op"]).value
        if op == "bits":
            return bits(sources[0], known.element)
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
        axes = list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
        name = ir.StringAttr(op.attributes["op"]).value
        if name in EXTREMES:
            self._find_extreme(name, source, result, axes[0])
            return
        along = self._following([(source, dims(len(known.shape)))], known.shape)
        way = _way(name, known, axes, made, along)
        way = way if self.arrays.on_cpu or way.parts > 1 else _Way(0)
        total = self._total(name, result, way, at_once=True)
        with total.over(known.shape) as (loops, forms, part):
            kept = tuple(form for d, form in enumerate(forms) if d not in axes)
            element = self._element(source, forms, loops, {})
            before = loops.load(total.array, (*part, *kept))
            after = joined(name, made.element, before, element)
            loops.store(after, total.array, (*part, *kept))
        self._finish(name, result, total)

    def _find_extreme(self, name: str, source: ir.Value, result: ir.Value, axis: int) -> None:
        """The place of the first of the least or greatest along that axis, row by row."""
        known, into = self.values[source], self._home(result)
        extent = known.shape[axis]
        kept = [n for d, n in enumerate(known.shape) if d != axis]
        *rows, column = dims(len(known.shape))
        forms = (*rows[:axis], column, *rows[axis:])

        def element(loops: Nest) -> ir.Value:
            return self._element(source, forms, loops, {})

        with self._nest([(source, forms)], kept, [into], inside=[extent]) as loops:
            place = place_of_extreme(name, known.element, loops, extent, element)
            loops.store(place, into, tuple(rows))
        self._is_kept(result, into)

    def _multiply(self, op: ir.Operation) -> None:
        made = self.values[op.results[0]]
        way = self._way_of_product(made)
        for operand in op.operands:
            cost = self.values[operand].cost
            if cost and self._is_open(operand) and not (way.by_rows and cost < HEAVY):
                self._keep(self._under_views(operand))
                way = self._way_of_product(made)
        inner = self._terms(made)
        if self._is_written_out(made, inner):
            made.work = {(made.at, ""): 2 * inner}
            made.reads = frozenset().union(*(self.values[each].reads for each in op.operands))
            return
        # The order of the loops is that of the text: rows, columns, terms.
        whole = (*made.shape, inner)
        total = self._total("sum", op.results[0], way, at_once=way.by_rows)
        with total.over(whole) as (loops, forms, part):
            x, y = (
                self._element(operand, its, loops, {})
                for operand, its in zip(op.operands, self._factors(made, forms), strict=True)
            )
            place = (*part, *forms[:-1])
            before = loops.load(total.array, place)
            loops.store(_plus_product(made, inner, before, x, y), total.array, place)
        self._finish("sum", op.results[0], total)

    def _terms(self, product: _Value) -> int:
        return self.values[product.op.operands[0]].shape[-1]

    def _is_written_out(self, made: _Value, terms: int) -> bool:
        """Whether its few terms are added where one nest takes each element for something else."""
        takers = [use.owner for use in made.op.results[0].uses]
        return (
            self.arrays.on_cpu
            and terms <= MOST_TERMS
            and len(made.nests) == 1
            and all(taker.name.removeprefix(PREFIX) in ELEMENTWISE for taker in takers)
        )

    def _factors(self, made: _Value, forms: Forms) -> tuple[Forms, Forms]:
        """Where in both factors of a product what is at `forms` of stacks, rows, columns, terms."""
        lefts, rights = (self.values[operand].shape for operand in made.op.operands)
        rows, columns = len(lefts) > 1, len(rights) > 1
        batch = len(made.shape) - rows - columns
        stack, term = forms[:batch], forms[-1]
        row = forms[batch : batch + 1] if rows else ()
        column = forms[batch + rows : batch + rows + 1] if columns else ()
        return (
            (*_stacked(stack, lefts[:-2], made), *row, term),
            (*_stacked(stack, rights[:-2], made), term, *column),
        )

    def _under_views(self, value: ir.Value) -> ir.Value:
        """What it is another view of, element for element: that lies as what it is computed of."""
        known = self.values[value]
        while known.op.name == "ptensor.view":
            source = known.op.operands[0]
            if self.values[source].size != known.size or not self._is_open(source):
                break
            value, known = source, self.values[source]
        return value

    def _way_of_product(self, made: _Value) -> _Way:
        """By blocks of terms, where both factors lie by terms and are much more than the product:
        each rank multiplies what it has.
        """
        terms, inner = len(made.shape), self._terms(made)
        whole, operands = (*made.shape, inner), made.op.operands
        places = self._factors(made, dims(len(whole)))
        along = self._following(list(zip(operands, places, strict=True)), whole)
        if along != terms:
            return _Way(along)
        read = sum(self.values[operand].size for operand in operands)
        most = read // made.size
        if is_multiplied_in_order(made.shape, inner, dtype_of(made.element)):
            in_turns = self.arrays.on_cpu and read > MOST_SUMMED
            return _Way(terms, turns=_turns_of(inner)) if in_turns else _Way(0)
        parts = _parts_of(min(inner, most))
        if parts == 1:
            return _Way(0)
        is_small = len(made.shape) > 1 and made.size <= MOST_OF_ROWS
        return _Way(terms, parts, by_rows=is_small and self.arrays.on_cpu)

    def _places(self, value: ir.Value, forms: Forms, dims: int) -> Iterator[tuple[ir.Value, Forms]]:
        """The arrays, and where in them, that element `forms` of the value is computed of."""
        memory = self.values[value].memory
        if memory is not None:
            yield memory, forms
        elif self.values[value].op.name != "ptensor.index":
            for source, its in self._sources(value, forms, dims):
                yield from self._places(source, its, dims)

    def _total(self, name: str, result: ir.Value, way: _Way, *, at_once: bool = False) -> _Total:
        """Where a reduction adds up, with what it begins with; `at_once` with its blocks: products
        of matrices are known by loops that do nothing else.
        """
        made, into = self.values[result], self._home(result)
        array = into if way.parts == 1 else self._new(made, (way.parts, *made.shape))

        def begin(loops: Nest) -> None:
            loops.store(first(name, made.element), array, loops.forms)

        if at_once and way.parts > 1:
            return _Total(into, array, way, made.shape, begin)
        kind = ir.MemRefType(array.type)
        with nest(kind.shape, by_parts=way.parts > 1, on_one=way.turns > 0) as loops:
            begin(loops)
        return _Total(into, array, way)

    def _finish(self, name: str, result: ir.Value, total: _Total) -> None:
        if total.way.parts > 1:
            element = self.values[result].element
            self.arrays.combine(name, element, total.array, total.into)
        self._is_kept(result, total.into)


@dataclass(frozen=True)
class _Way:
    """How a reduction goes through all that it reduces: along that dimension; in blocks of it,
    which are combined at its end, or in turns, in their order, if it is one that is reduced.
    on_one: one rank does it. by_rows: of a block of a product all terms of a row are added before
    those of the next.
    """

    along: int
    parts: int = 1
    turns: int = 0
    on_one: bool = False
    by_rows: bool = False


@dataclass(frozen=True)
class _Total:
    """Of a reduction: where its result goes, and before that those of blocks, which `begin`."""

    into: ir.Value
    array: ir.Value
    way: _Way
    shape: Sequence[int] = ()
    begin: Callable[[Nest], None] | None = None

    @contextmanager
    def over(self, shape: Sequence[int]) -> Iterator[tuple[Nest, Forms, Forms]]:
        """Loops over all that is reduced: its places, and that of the part."""
        way = self.way
        if way.turns:
            with nest_in_turns(shape, way.along, way.turns) as (loops, forms):
                yield loops, forms, ()
        elif way.by_rows and self.begin is not None:
            rows = nest_of_rows(self.shape, shape[-1], way.parts, self.begin)
            with rows as (loops, forms):
                yield loops, forms, dims(1)
        elif way.parts > 1:
            made, begin = self.shape, self.begin
            with nest_in_parts(shape, way.along, way.parts, made, begin) as (loops, forms):
                yield loops, forms, dims(1)
        else:
            with nest(shape, first=way.along, on_one=way.on_one) as loops:
                yield loops, loops.forms, ()


def _way(name: str, known: _Value, axes: Sequence[int], made: _Value, along: int) -> _Way:
    """Sums of all elements are always in blocks, where their bits hang on the order; others by
    what lies with a rank. Where there is little of it, or it is not worth it, in order.
    """
    ordered = name in ("sum", "prod") and not isinstance(made.element, ir.IntegerType)
    if known.size <= MOST_SUMMED:
        return _Way(0, on_one=ordered and not made.shape)
    if along not in axes:
        return _Way(along)
    rows = known.shape[along]
    if made.shape or ordered:
        parts = _parts_of(rows)
        if parts > 1:
            return _Way(along, parts)
        if not made.shape:
            along = known.shape.index(max(known.shape))
            return _Way(along, max(_parts_of(known.shape[along]), FEWEST))
    if made.shape and 2 * made.size > known.size:
        return _Way(0)
    return _Way(along, turns=_turns_of(rows) if made.shape else 0)


def _turns_of(rows: int) -> int:
    """As many as have three rows at least: more than what is handed on, read and written."""
    return next((turns for _, turns in IN_TURN if rows >= 3 * turns), rows // 3)


FEWEST = IN_TURN[-1][0]


def _parts_of(rows: int) -> int:
    """How many blocks of them are added up by themselves: the same on any number of ranks."""
    known = zip(IN_TURN, LEAST_ROWS, strict=True)
    return next((parts for (parts, _), least in known if rows >= least * parts), 1)


def _stacked(stack: Forms, extents: Sequence[int], made: _Value) -> Forms:
    """The place in a stack of matrices that is broadcast to that of the result."""
    kept = stack[len(stack) - len(extents) :] if extents else ()
    full = made.shape[len(stack) - len(extents) : len(stack)]
    zero = ir.AffineExpr.get_constant(0)
    return tuple(
        zero if extent == 1 and whole != 1 else form
        for form, extent, whole in zip(kept, extents, full, strict=True)
    )


def _are_sums_in_order(function: ir.Operation) -> bool:
    """Whether there are sums or products of floating-point numbers, and all have few terms."""
    found: list[bool] = []
    for op in operations_in(function):
        if op.name not in ("ptensor.reduce", "ptensor.matmul"):
            continue
        made, source = (PtensorType.of(v).tensor for v in (op.results[0], op.operands[0]))
        if not isinstance(made.element_type, ir.FloatType | ir.ComplexType):
            continue
        kind = dtype_of(made.element_type)
        if op.name == "ptensor.matmul":
            found.append(is_multiplied_in_order(made.shape, source.shape[-1], kind))
        elif ir.StringAttr(op.attributes["op"]).value in ("sum", "prod"):
            found.append(is_summed_in_order(source.shape, kind))
    return bool(found) and all(found)


def dtype_of(kind: ir.Type) -> np.dtype:
    return dtype_of_element(str(stored(kind)))


def _plus_product(made: _Value, terms: int, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Rounded once where there are many and the machine does so, as BLAS has it."""
    kind = made.element
    if isinstance(kind, ir.F32Type | ir.F64Type) and not is_multiplied_in_order(
        made.shape, terms, dtype_of(kind)
    ):
        return math.fma(x, y, total)
    if is_bool(kind):
        return arith.ori(total, arith.andi(x, y))
    return binary("add", kind, total, binary("multiply", kind, x, y))
