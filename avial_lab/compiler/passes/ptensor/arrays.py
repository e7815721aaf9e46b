"""Memory for the values of a program of arrays: as the dist dialect's, or as MLIR's.

Shapes -> memory at the beginning of the function; what is done with it as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.codegen.arrays.elementwise import stored
from avial_lab.compiler.codegen.arrays.nests import Forms
from avial_lab.compiler.codegen.arrays.reductions import combine_parts
from avial_lab.compiler.ir.attributes import LIES

Part = tuple[ir.Value, Forms]
"""Of an array, which element is for each of some loops' variables."""


@dataclass
class Arrays:
    """entry: the function's first block. divided: whether there are dtensors at all. on_cpu: where
    they are computed. lies: by which of its dimensions an array does; in_parts: and how, where that
    is not in one part for each rank. What is made is there until `free`.
    """

    entry: ir.Block
    divided: bool
    on_cpu: bool = True
    made: list[ir.Value] = field(default_factory=list[ir.Value])
    dtensors: dict[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    lies: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])
    in_parts: dict[ir.Value, str] = field(default_factory=dict[ir.Value, str])

    def new(self, shape: Sequence[int], element: ir.Type, *, divided: bool) -> ir.Value:
        kind = ir.MemRefType.get(list(shape), element)
        with ir.InsertionPoint.at_block_begin(self.entry):
            if divided and self.divided:
                extents = [_index(extent) for extent in shape]
                op = ir.Operation.create("dist.alloc_dtensor", [_id(), kind], extents)
                array = op.results[1]
                self.dtensors[array] = op.results[0]
            else:
                array = memref.alloc(kind, [], [])
        self.made.append(array)
        return array

    def tell(self, function: ir.Operation) -> None:
        """How what the function is given lies, on its arguments."""
        arguments = list(self.entry.arguments)
        written: list[dict[str, ir.Attribute]] = [{} for _ in arguments]
        if "arg_attrs" in function.attributes:
            before = ir.ArrayAttr(function.attributes["arg_attrs"])
            written = [{item.name: item.attr for item in ir.DictAttr(each)} for each in before]
        for argument, attributes in zip(arguments, written, strict=True):
            if argument in self.lies:
                attributes[LIES] = _i64(self.lies[argument])
        made = [ir.DictAttr.get(attributes) for attributes in written]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(made)

    def free(self) -> None:
        for array in self.made:
            if array in self.dtensors:
                ir.Operation.create("dist.dealloc_dtensor", [], [self.dtensors[array]])
            else:
                memref.dealloc(array)

    def combine(self, name: str, kind: ir.Type, parts: ir.Value, into: ir.Value) -> None:
        """The partial results along the first dimension, as one; kind: with its sign."""
        if parts not in self.dtensors:
            combine_parts(name, kind, parts, into)
            return
        attributes: dict[str, ir.Attribute] = {"op": ir.StringAttr.get(name)}
        if stored(kind) != kind:
            attributes["element"] = ir.TypeAttr.get(kind)
        operands = [self._dtensor(parts), self._dtensor(into)]
        ir.Operation.create("dist.finalize_reduce", [], operands, attributes)

    def copy(self, source: Part, target: Part, shape: Sequence[int]) -> bool:
        """Whether that could be said in a word: both are slices, and have that shape."""
        views = [_slice_of(part, shape) for part in (source, target)]
        if not self.divided or not all(views):
            return False
        operands = [
            self._view(array, view, shape)
            for (array, _), view in zip((source, target), views, strict=True)
            if view is not None
        ]
        ir.Operation.create("dist.copy_view", [], operands)
        return True

    def _dtensor(self, array: ir.Value) -> ir.Value:
        if array not in self.dtensors:
            place = ir.InsertionPoint.at_block_begin(self.entry)
            if not isinstance(array.owner, ir.Block):
                place = ir.InsertionPoint.after(array.owner)
            with place:
                op = ir.Operation.create("dist.register_dtensor", [_id()], [array])
            self.dtensors[array] = op.results[0]
        return self.dtensors[array]

    def _view(self, array: ir.Value, view: _Slice, shape: Sequence[int]) -> ir.Value:
        dtensor, kind = self._dtensor(array), ir.MemRefType(array.type)
        first, step = view
        if list(shape) == list(kind.shape):
            return dtensor
        strides: list[int] = []
        offset, width = 0, 1
        for d in reversed(range(len(shape))):
            strides = [step[d] * width, *strides]
            offset += first[d] * width
            width *= kind.shape[d]
        layout = ir.StridedLayoutAttr.get(offset, strides)
        made = ir.MemRefType.get(list(shape), kind.element_type, layout=layout)
        numbers = [_index(number) for number in (*first, *shape, *step)]
        return ir.Operation.create("dist.create_view", [_id(), made], [dtensor, *numbers]).results[
            0
        ]


_Slice = tuple[list[int], list[int]]
"""First places, and steps."""


def _slice_of(part: Part, shape: Sequence[int]) -> _Slice | None:
    """Which slice of the array it is; None where it is none, or none with steps forwards."""
    array, forms = part
    if len(forms) != len(shape) or not is_plain_memory(array):
        return None
    lines = [line_of(form, d) for d, form in enumerate(forms)]
    found = [line for line in lines if line is not None]
    if len(found) < len(lines):
        return None
    return [first for first, _ in found], [step for _, step in found]


def is_plain_memory(array: ir.Value) -> bool:
    """Whether its elements lie row by row, from the first on."""
    return isinstance(ir.MemRefType(array.type).layout, ir.AffineMapAttr)


def line_of(form: ir.AffineExpr, dim: int) -> tuple[int, int] | None:
    """The numbers of `first + step * d`, with a step above 0."""
    first, step = 0, 1
    if isinstance(form, ir.AffineAddExpr) and isinstance(form.rhs, ir.AffineConstantExpr):
        form, first = form.lhs, form.rhs.value
    if isinstance(form, ir.AffineMulExpr) and isinstance(form.rhs, ir.AffineConstantExpr):
        form, step = form.lhs, form.rhs.value
    return (first, step) if form == ir.AffineExpr.get_dim(dim) and step > 0 else None


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def _id() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _index(number: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), number)
