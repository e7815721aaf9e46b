"""What differs between bodies of tasks that are otherwise equal: numbers that become parameters.

Operations of a body -> its shape, equal for bodies that one function can serve, and the numbers
that the shape leaves open; a function made of one such body -> the same, some of them its
arguments.

    affine.for %i = 64 to 128 { … %A[%i, %k + 192] … }    shape: 64 iterations, A[i + ?, k + ?]
                                                          numbers: 64, 192
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.ir.operations import attributes_of, replaced
from avial_lab.compiler.ir.views import defining
from avial_lab.core.regions import Box, box_between

Number = ir.Attribute
"""A typed attribute, as `arith.constant` takes it."""

Parameters = Sequence[ir.Value | None]
"""For each number of a site what stands for it; None where it stays."""


class Site(ABC):
    """Where numbers stand in an operation. Bodies of one shape have the same sites, in order."""

    op: ir.Operation

    @property
    @abstractmethod
    def numbers(self) -> tuple[Number, ...]: ...

    @abstractmethod
    def take(self, parameters: Parameters) -> None:
        """Let `parameters`, of the numbers' types, stand in their places."""


@dataclass(frozen=True)
class Constants(Site):
    """The operands at `places`, which are constants.

    before:  arith.mulf %x, %cst
    after:   arith.mulf %x, %parameter
    """

    op: ir.Operation
    places: tuple[int, ...]

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(_constant(self.op.operands[place]) for place in self.places)

    def take(self, parameters: Parameters) -> None:
        for place, parameter in zip(self.places, parameters, strict=True):
            if parameter is not None:
                self.op.operands[place] = parameter


@dataclass(frozen=True)
class LoopStarts(Site):
    """Where a loop of a known number of iterations begins, in each of its dimensions.

    before:  affine.for %i = 64 to 128 { … %i … }
    after:   affine.for %i = 0 to 64 { %j = affine.apply (%i + %parameter)  … %j … }

    The number of iterations stays known.
    """

    op: ir.Operation
    ranges: tuple[tuple[int, int], ...]

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(_index(low) for low, _ in self.ranges)

    def take(self, parameters: Parameters) -> None:
        for dimension, parameter in enumerate(parameters):
            if parameter is not None:
                low, high = self.ranges[dimension]
                self._begin_at_zero(dimension, high - low)
                self._shift(dimension, parameter)

    def _begin_at_zero(self, dimension: int, extent: int) -> None:
        if self.op.name == "affine.for":
            for name, end in (("lowerBoundMap", 0), ("upperBoundMap", extent)):
                self.op.attributes[name] = ir.AffineMapAttr.get(ir.AffineMap.get_constant(end))
            return
        with ir.InsertionPoint(self.op), self.op.location:
            for first, end in ((0, 0), (len(self.ranges), extent)):
                self.op.operands[first + dimension] = arith.constant(ir.IndexType.get(), end)

    def _shift(self, dimension: int, parameter: ir.Value) -> None:
        block = self.op.regions[0].blocks[0]
        variable = block.arguments[dimension]
        both = ir.AffineExpr.get_dim(0) + ir.AffineExpr.get_symbol(0)
        with ir.InsertionPoint.at_block_begin(block), variable.location:
            if self.op.name == "affine.for":
                form = ir.AffineMap.get(1, 1, [both])
                shifted = affine.AffineApplyOp(form, [variable, parameter]).result
            else:  # its variable is no dimension of a map
                shifted = arith.addi(variable, parameter)
        variable.replace_all_uses_except(shifted, shifted.owner.operation)


@dataclass(frozen=True)
class Added(Site):
    """What is added in each result of an affine access or `affine.apply`.

    before:  affine.load %A[%i, %k + 192]
    after:   affine.load %A[%i + symbol(%first), %k + symbol(%second)]
    """

    op: ir.Operation

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(_index(_summands(each)[1]) for each in _map_of(self.op).results)

    def take(self, parameters: Parameters) -> None:
        if not any(parameters):
            return
        form = _map_of(self.op)
        results, given = list(form.results), list[ir.Value]()
        for k, parameter in enumerate(parameters):
            if parameter is not None:
                symbol = ir.AffineExpr.get_symbol(form.n_symbols + len(given))
                results[k] = _summands(results[k])[0] + symbol
                given.append(parameter)
        changed = ir.AffineMap.get(form.n_dims, form.n_symbols + len(given), results)
        attributes = attributes_of(self.op) | {"map": ir.AffineMapAttr.get(changed)}
        replaced(self.op, self.op.name, [*self.op.operands, *given], attributes)


@dataclass(frozen=True)
class Cut:
    """What a subview cuts out of an array, in each dimension."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def box(self) -> Box:
        return box_between(self.starts, self.sizes, self.steps)


@dataclass(frozen=True)
class Offsets(Site):
    """The known offsets of a subview, whose type then says that it begins anywhere.

    before:  memref.subview %A[64, 192] [64, 64] [1, 1] : … offset: 32960>>
    after:   memref.subview %A[%first, %second] [64, 64] [1, 1] : … offset: ?>>
    """

    op: ir.Operation

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(_index(offset) for offset in self._known())

    @property
    def is_known(self) -> bool:
        """Whether the text says all of what it cuts out, and keeps all dimensions."""
        same = (
            ir.MemRefType(self.op.operands[0].type).rank == ir.MemRefType(self.op.result.type).rank
        )
        return len(self.op.operands) == 1 and same

    def cut(self, numbers: Sequence[Number]) -> Cut:
        """What it cuts out where these are its offsets; to be asked where that is known."""
        sizes, steps = (
            tuple(ir.DenseI64ArrayAttr(self.op.attributes[f"static_{name}"]))
            for name in ("sizes", "strides")
        )
        return Cut(tuple(ir.IntegerAttr(number).value for number in numbers), sizes, steps)

    def _known(self) -> list[int]:
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        offsets = ir.DenseI64ArrayAttr(self.op.attributes["static_offsets"])
        return [offset for offset in offsets if offset != dynamic]

    def take(self, parameters: Parameters) -> None:
        if not any(parameters):
            return
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        source, *rest = self.op.operands
        offsets, values = list(ir.DenseI64ArrayAttr(self.op.attributes["static_offsets"])), []
        old, waiting = iter(rest), iter(parameters)
        for k, offset in enumerate(offsets):
            parameter = next(old) if offset == dynamic else next(waiting)
            if parameter is not None:
                offsets[k] = dynamic
                values.append(parameter)
        _, _, sizes, strides = ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"])
        attributes = attributes_of(self.op) | {
            "static_offsets": ir.DenseI64ArrayAttr.get(offsets),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(values), sizes, strides]),
        }
        with ir.InsertionPoint(self.op), self.op.location:
            made = ir.Operation.create(
                self.op.name,
                [beginning_anywhere(self.op.result.type)],
                [source, *values, *old],
                attributes=attributes,
            )
        self.op.result.replace_all_uses_with(made.result)
        self.op.erase()


def beginning_anywhere(kind: ir.Type) -> ir.MemRefType:
    """The type of a view whose first element may lie anywhere."""
    view = ir.MemRefType(kind)
    strides, _ = view.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), strides)
    nowhere = ir.Location.unknown(kind.context)
    return ir.MemRefType.get(
        list(view.shape), view.element_type, layout, view.memory_space, loc=nowhere
    )


# Shapes -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """`facts` are equal for two bodies exactly when one function can serve both, given the numbers
    at `sites`; names and places do not count.
    """

    facts: tuple[object, ...]
    sites: tuple[Site, ...]

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(number for site in self.sites for number in site.numbers)


def shape_of(arrays: Sequence[ir.Value], operations: Iterable[ir.Operation]) -> Shape:
    """Of a body that works on `arrays`; `operations` are all of it, outer before inner."""
    reader = _Reader(arrays)
    for op in operations:
        reader.read(op)
    return Shape(tuple(reader.facts), tuple(reader.sites))


class _Reader:
    def __init__(self, arrays: Sequence[ir.Value]) -> None:
        self.facts: list[object] = []
        self.sites: list[Site] = []
        self._numbers: dict[ir.Value, int] = {}
        for array in arrays:
            self._name(array)

    def _name(self, value: ir.Value, kind: object = None) -> None:
        self._numbers[value] = len(self._numbers)
        self.facts.append(value.type if kind is None else kind)

    def read(self, op: ir.Operation) -> None:
        if _is_number(op):
            return  # each of its uses is a site
        self.facts.append(op.name)
        left_out = self._read_starts(op) + self._read_constants(op)
        self.facts += [
            self._numbers[operand] for k, operand in enumerate(op.operands) if k not in left_out
        ]
        self._read_attributes(op)
        for region in op.regions:
            self.facts.append(len(region.blocks))
            for block in region.blocks:
                # A block is numbered before its operations, so that branches can name it.
                self.facts.append(len(block.operations))
                for argument in block.arguments:
                    self._name(argument)
        self.facts += [list(op.block.region.blocks).index(block) for block in op.successors]

    def _read_starts(self, op: ir.Operation) -> list[int]:
        """The operands that say where a loop begins and ends, if that is known."""
        ranges = _ranges(op)
        if not ranges:
            return []
        self.sites.append(LoopStarts(op, ranges))
        self.facts.append(tuple(high - low for low, high in ranges))
        return [] if op.name == "affine.for" else list(range(2 * len(ranges)))

    def _read_constants(self, op: ir.Operation) -> list[int]:
        starts = 0 if op.name == "affine.for" else 2 * len(_ranges(op))
        places = tuple(
            k for k, operand in enumerate(op.operands) if k >= starts and _is_constant(operand)
        )
        if places:
            self.sites.append(Constants(op, places))
            self.facts.append(places)
            self.facts += [op.operands[place].type for place in places]
        return list(places)

    def _read_attributes(self, op: ir.Operation) -> None:
        hidden: tuple[str, ...] = ()
        kinds = [result.type for result in op.results]
        if op.name == "affine.for" and _ranges(op):
            hidden = ("lowerBoundMap", "upperBoundMap")
        elif op.name in WITH_MAPS:
            self.sites.append(Added(op))
            form = _map_of(op)
            self.facts.append((form.n_dims, form.n_symbols))
            self.facts += [str(_summands(each)[0]) for each in form.results]
            hidden = ("map",)
        elif op.name == "memref.subview" and _may_begin_anywhere(op):
            site = Offsets(op)
            self.sites.append(site)
            self.facts.append(len(site.numbers))
            hidden = ("static_offsets",)
            kinds = [beginning_anywhere(op.result.type)]
        for k in range(len(op.attributes)):
            named = op.attributes[k]
            if named.name not in hidden:
                self.facts.append((named.name, named.attr))
        for result, kind in zip(op.results, kinds, strict=True):
            self._name(result, kind)


WITH_MAPS = (
    "affine.apply", "affine.load", "affine.store", "affine.vector_load", "affine.vector_store"
)  # fmt: skip
"""Operations with a map whose results may each have a number added to them."""

ANYWHERE = (
    "affine.load", "affine.store", "affine.vector_load", "affine.vector_store", "memref.cast",
    "memref.copy", "memref.dim", "memref.load", "memref.store", "vector.load", "vector.store",
)  # fmt: skip
"""Operations that take a view whatever its type says of where it begins."""


def _may_begin_anywhere(op: ir.Operation) -> bool:
    users = (use.owner.operation.name for use in op.result.uses)
    return all(user in ANYWHERE or user.startswith("linalg.") for user in users)


def _is_number(op: ir.Operation) -> bool:
    if op.name != "arith.constant":
        return False
    return isinstance(op.attributes["value"], ir.IntegerAttr | ir.FloatAttr)


def _is_constant(value: ir.Value) -> bool:
    op = defining(value)
    return op is not None and _is_number(op)


def _constant(value: ir.Value) -> Number:
    op = defining(value)
    assert op is not None, "an operand's site is made for a constant"
    return op.attributes["value"]


def _index(number: int) -> Number:
    return ir.IntegerAttr.get(ir.IndexType.get(), number)


def _map_of(op: ir.Operation) -> ir.AffineMap:
    return ir.AffineMapAttr(op.attributes["map"]).value


def _summands(expr: ir.AffineExpr) -> tuple[ir.AffineExpr, int]:
    """The expression as a sum of something and a number."""
    if isinstance(expr, ir.AffineConstantExpr):
        return ir.AffineExpr.get_constant(0), expr.value
    if isinstance(expr, ir.AffineAddExpr) and isinstance(expr.rhs, ir.AffineConstantExpr):
        return expr.lhs, expr.rhs.value
    return expr, 0


def _ranges(op: ir.Operation) -> tuple[tuple[int, int], ...]:
    """For each dimension of a loop its first number and its end; empty where not all are known."""
    if op.name == "affine.for":
        ends = [ir.AffineMapAttr(op.attributes[name]).value for name in _BOUNDS]
        if any(end.n_inputs or len(end.results) != 1 for end in ends):
            return ()
        low, high = (ir.AffineConstantExpr(end.results[0]).value for end in ends)
        return ((low, high),)
    if op.name not in ("scf.for", "scf.parallel") or op.operands[0].type != ir.IndexType.get():
        return ()
    count = len(op.regions[0].blocks[0].arguments) if op.name == "scf.parallel" else 1
    ends = list(op.operands)[: 2 * count]
    if not all(map(_is_constant, ends)):
        return ()
    numbers = [ir.IntegerAttr(_constant(end)).value for end in ends]
    return tuple(zip(numbers[:count], numbers[count:], strict=True))


_BOUNDS = ("lowerBoundMap", "upperBoundMap")
