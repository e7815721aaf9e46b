"""Operations on divided memory become memory of the ownership runtime, and loops on it.

Module with dist operations -> the same program on memref. Below that come phases: what ranks tell
the runtime of them (`avial_begin`, `avial_read`, `avial_write`) follows from the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.codegen.arrays.elementwise import stored
from avial_lab.compiler.codegen.arrays.nests import Forms, Nest, nest
from avial_lab.compiler.codegen.arrays.reductions import JOINS, combine_parts
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import constant_of, operations_in
from avial_lab.compiler.ir.program import functions_of
from avial_lab.compiler.passes.ptensor.arrays import is_plain_memory
from avial_lab.core.errors import VerifyError

PREFIX = "dist."
RANKS = "dist.ranks"
"""On a loop that has an iteration for each rank."""


@dataclass(frozen=True)
class DistToRuntime:
    """Memory of dtensors is the runtime's, of the size of the whole array, of which each rank has
    the pages that it touches. What is done with them as a whole is loops over all elements.

    before:  %a, %A = dist.alloc_dtensor %n       after:  %A = memref.alloc() : memref<64x30xf64>
             dist.finalize_reduce %a, %s                  affine.for … { %S[%j] = (%A[0, %j] + …
             dist.copy_view %a, %b                        affine.for … { %B[%i] = %A[%i] }
             affine.for %r = 0 to 3 {                     affine.for %r = 0 to 3 {
               %e = dist.local_shape %a                     %e = (%r + 1) * 64 / 3 - %r * 64 / 3
             } {dist.ranks}                               }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of(module):
                if any(op.name.startswith(PREFIX) for op in operations_in(function)):
                    _Lowering(function).run()

    def __str__(self) -> str:
        return "dist-to-runtime"


def has_dist(module: ir.Module | ir.Operation) -> bool:
    return any(op.name.startswith(PREFIX) for op in operations_in(module.operation))


@dataclass(frozen=True)
class _Dtensor:
    """Memory, and where it is a view with known numbers, of which array, first places and steps."""

    memory: ir.Value
    root: ir.Value
    first: tuple[int, ...] | None
    step: tuple[int, ...] | None

    @property
    def shape(self) -> list[int]:
        return list(ir.MemRefType(self.memory.type).shape)

    @property
    def is_slice(self) -> bool:
        """Whether its elements' places in the array are known."""
        return self.first is not None and self.step is not None and is_plain_memory(self.root)

    def places(self, loops: Nest) -> Forms:
        """In the array, of the elements that loops over it go through."""
        lines = zip(loops.forms, self.first or (), self.step or (), strict=True)
        return tuple(form * step + first for form, first, step in lines)


@dataclass
class _Lowering:
    function: ir.Operation
    known: dict[ir.Value, _Dtensor] = field(default_factory=dict[ir.Value, _Dtensor])

    def run(self) -> None:
        found = [op for op in operations_in(self.function) if op.name.startswith(PREFIX)]
        for op in found:
            lower = getattr(self, f"_{op.name.removeprefix(PREFIX)}", None)
            if lower is None:
                raise VerifyError(f"there is no {op.name}", span=span_of(op.location))
            with ir.InsertionPoint(op), op.location:
                lower(op)
        numbers = {
            operand.owner.operation
            for op in found
            for operand in op.operands
            if constant_of(operand) is not None
        }
        self.known.clear()
        for op in reversed(found):
            op.erase()
        for number in numbers:
            if not any(True for _ in number.results[0].uses):
                number.erase()
        for op in operations_in(self.function):
            if RANKS in op.attributes:
                del op.attributes[RANKS]

    def _of(self, op: ir.Operation, k: int) -> _Dtensor:
        found = self.known.get(op.operands[k])
        if found is None:
            raise VerifyError(
                f"operand {k} of {op.name} is no dtensor of this function",
                span=span_of(op.location),
                hint="dist.alloc_dtensor, dist.register_dtensor and dist.create_view make some",
            )
        return found

    def _alloc_dtensor(self, op: ir.Operation) -> None:
        dtensor, memory = op.results
        kind = ir.MemRefType(memory.type)
        extents = list(op.operands)
        if len(extents) != len(kind.shape):
            raise VerifyError(
                f"{op.name} has {len(extents)} extents, and its memory {len(kind.shape)}",
                span=span_of(op.location),
            )
        for extent, size in zip(extents, kind.shape, strict=True):
            number = constant_of(extent)
            if size != OPEN and number is not None and number != size:
                raise VerifyError(
                    f"{op.name} has the extent {number}, and its memory {size}",
                    span=span_of(op.location),
                )
        open_ = [e for e, size in zip(extents, kind.shape, strict=True) if size == OPEN]
        made = memref.alloc(kind, open_, [])
        made.owner.location = memory.owner.location
        memory.replace_all_uses_with(made)
        self._is(dtensor, made)

    def _is(self, dtensor: ir.Value, memory: ir.Value) -> None:
        dims = len(ir.MemRefType(memory.type).shape)
        self.known[dtensor] = _Dtensor(memory, memory, (0,) * dims, (1,) * dims)

    def _register_dtensor(self, op: ir.Operation) -> None:
        self._is(op.results[0], op.operands[0])

    def _dealloc_dtensor(self, op: ir.Operation) -> None:
        memref.dealloc(self._of(op, 0).memory)

    def _create_view(self, op: ir.Operation) -> None:
        whole, (dtensor, memory) = self._of(op, 0), op.results
        slice_ = list(op.operands)[1:]
        dims = len(whole.shape)
        if len(slice_) != 3 * dims:
            raise VerifyError(
                f"{op.name} has {len(slice_)} numbers for {dims} dimensions",
                span=span_of(op.location),
                hint="the first places, then how many, then the steps",
            )
        parts = [slice_[k * dims : (k + 1) * dims] for k in range(3)]
        numbers = [[constant_of(each) for each in part] for part in parts]
        shown = [
            [value if number is None else number for value, number in zip(*each, strict=True)]
            for each in zip(parts, numbers, strict=True)
        ]
        made = memref.subview(whole.memory, *shown)
        if made.type != memory.type:
            made = memref.cast(memory.type, made)
        memory.replace_all_uses_with(made)
        first, step = _settled(numbers[0]), _settled(numbers[2])
        if first is None or step is None or whole.first is None or whole.step is None:
            self.known[dtensor] = _Dtensor(made, whole.root, None, None)
            return
        self.known[dtensor] = _Dtensor(
            made,
            whole.root,
            tuple(a + f * s for a, f, s in zip(whole.first, first, whole.step, strict=True)),
            tuple(a * s for a, s in zip(whole.step, step, strict=True)),
        )

    def _local_shape(self, op: ir.Operation) -> None:
        dtensor = self._of(op, 0)
        if len(op.results) != len(dtensor.shape):
            raise VerifyError(
                f"{op.name} has {len(op.results)} results for {len(dtensor.shape)} dimensions",
                span=span_of(op.location),
            )
        rank, ranks = self._rank_around(op)
        for d, result in enumerate(op.results):
            number = arith.constant(ir.IndexType.get(), d)
            extent = memref.dim(dtensor.memory, number)
            result.replace_all_uses_with(_rows(extent, rank, ranks) if d == 0 else extent)

    def _rank_around(self, op: ir.Operation) -> tuple[ir.Value, int]:
        """The variable of the loop over ranks, and how many there are."""
        around = op.parent
        while around is not None and RANKS not in around.operation.attributes:
            around = around.operation.parent
        if around is None or around.operation.name != "affine.for":
            raise VerifyError(
                f"{op.name} stands in no loop over ranks",
                span=span_of(op.location),
                hint=f"affine.for %rank = 0 to N {{ … }} {{{RANKS}}}, with as many as there are",
            )
        loop = around.operation
        low, high = (
            list(ir.AffineMapAttr(loop.attributes[name]).value.results)
            for name in ("lowerBoundMap", "upperBoundMap")
        )
        known = all(len(e) == 1 and isinstance(e[0], ir.AffineConstantExpr) for e in (low, high))
        if not known or low[0].value != 0 or high[0].value < 1:
            raise VerifyError(
                "a loop over ranks goes from 0 to their number", span=span_of(loop.location)
            )
        return loop.regions[0].blocks[0].arguments[0], high[0].value

    def _finalize_reduce(self, op: ir.Operation) -> None:
        parts = self._of(op, 0)
        into = self._of(op, 1) if len(op.operands) > 1 else None
        name = ir.StringAttr(op.attributes["op"]).value
        element = ir.MemRefType(parts.memory.type).element_type
        kind = (
            ir.TypeAttr(op.attributes["element"]).value if "element" in op.attributes else element
        )
        if name not in JOINS or stored(kind) != element:
            raise VerifyError(
                f"there is no reduction {name} of {kind} in memory of {element}",
                span=span_of(op.location),
                hint=f"there are {', '.join(JOINS)}",
            )
        if not parts.shape or OPEN in parts.shape:
            raise VerifyError(
                f"{op.name} combines what lies along the first dimension, of known extents",
                span=span_of(op.location),
            )
        if into is not None and into.shape != parts.shape[1:]:
            raise VerifyError(
                f"what {op.name} combines has the shape {parts.shape[1:]}, where it is to go "
                f"{into.shape}",
                span=span_of(op.location),
            )
        combine_parts(name, kind, parts.memory, into and into.memory)

    def _copy_view(self, op: ir.Operation) -> None:
        source, target = self._of(op, 0), self._of(op, 1)
        if len(source.shape) != len(target.shape) or any(
            OPEN not in both and both[0] != both[1]
            for both in zip(source.shape, target.shape, strict=True)
        ):
            raise VerifyError(
                f"{op.name} copies {source.shape} to {target.shape}", span=span_of(op.location)
            )
        if source.root == target.root:
            between = memref.alloc(
                ir.MemRefType.get(source.shape, ir.MemRefType(source.memory.type).element_type),
                self._open_extents(source),
                [],
            )
            memref.copy(source.memory, between)
            memref.copy(between, target.memory)
            memref.dealloc(between)
            return
        if OPEN in source.shape or not (source.is_slice and target.is_slice):
            memref.copy(source.memory, target.memory)
            return
        with nest(source.shape) as loops:
            loops.store(
                loops.load(source.root, source.places(loops)), target.root, target.places(loops)
            )

    def _open_extents(self, dtensor: _Dtensor) -> list[ir.Value]:
        return [
            memref.dim(dtensor.memory, arith.constant(ir.IndexType.get(), d))
            for d, extent in enumerate(dtensor.shape)
            if extent == OPEN
        ]


OPEN = ir.ShapedType.get_dynamic_size()


def _settled(numbers: Sequence[int | None]) -> tuple[int, ...] | None:
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else None


def _rows(rows: ir.Value, rank: ir.Value, ranks: int) -> ir.Value:
    """Of so many rows those of that rank: blocks, as loops are divided."""
    one, count = (arith.constant(ir.IndexType.get(), k) for k in (1, ranks))
    below, above = (
        arith.divui(arith.muli(rows, at), count) for at in (rank, arith.addi(rank, one))
    )
    return arith.subi(above, below)
