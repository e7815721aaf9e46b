"""What the threads of a kernel can do, with the values of the CPU to the bit.

A phase, or a function of one -> why no kernel can be made of it, if so; its loops -> those whose
iterations are threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.parallelism.marked_loops import maps_of, order_of
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.strides import stride_of
from avial_lab.compiler.ir.attributes import CHOSEN
from avial_lab.compiler.ir.effects import ACCESSES, is_pure
from avial_lab.compiler.ir.nesting import FORS, body_of, defined_in
from avial_lab.compiler.ir.operations import nbytes_of, operations_in
from avial_lab.compiler.ir.phases import split_dimensions
from avial_lab.compiler.ir.remarks import loop_name
from avial_lab.compiler.ir.views import VIEWS

MOST_OWN_BYTES = 2048
"""Of memory that each thread has for itself: a device sets it aside for all that may run."""

_EXACT = frozenset(
    f"math.{name}"
    for name in (
        "absf", "absi", "ceil", "copysign", "ctlz", "ctpop", "cttz", "floor", "fma", "isfinite",
        "isinf", "isnan", "isnormal", "round", "roundeven", "sqrt", "trunc",
    )
)  # fmt: skip
"""Functions that have one right value, which every device computes."""

_COMPLEX = frozenset(
    f"complex.{name}"
    for name in (
        "abs", "add", "bitcast", "conj", "constant", "create", "div", "eq", "im", "mul", "neg",
        "neq", "re", "sub",
    )
)  # fmt: skip
"""Of these MLIR makes arithmetic of real numbers, the same for every device."""

_CONTROL = frozenset(
    {
        *FORS, "affine.parallel", "scf.parallel", "affine.if", "scf.if", "scf.while",
        "affine.yield", "scf.yield", "scf.reduce", "scf.condition", "scf.index_switch",
        "omp.terminator", "func.return",
    }
)  # fmt: skip

_MEMORY = frozenset({*ACCESSES, *VIEWS, "memref.alloc", "memref.alloca", "memref.dealloc",
                     "memref.dim"})  # fmt: skip


def why_no_kernel(phase: ir.Operation) -> str:
    """What in it keeps it from running on a GPU; "" where nothing does."""
    found = first_without_kernel(phase)
    return "" if found is None else found[1]


def first_without_kernel(phase: ir.Operation) -> tuple[ir.Operation, str] | None:
    """The first operation in it that no kernel has, and why."""
    found = ((op, why_not_in_thread(op)) for op in operations_in(phase))
    return next((each for each in found if each[1]), None)


def why_not_in_thread(op: ir.Operation) -> str:
    """Why no thread does that; "" where threads do."""
    kinds = [value.type for value in (*op.operands, *op.results)]
    if op.name.startswith("complex."):
        name = op.name.removeprefix("complex.")
        return "" if op.name in _COMPLEX else f"{name} of complex numbers is computed by the CPU"
    if any(isinstance(kind, ir.VectorType) for kind in kinds):
        return "its numbers are vectors"
    if op.name.startswith("math."):
        name = op.name.removeprefix("math.")
        return (
            ""
            if CHOSEN in op.attributes or op.name in _EXACT
            else f"{name} is computed by the CPU's library"
        )
    if op.name in ("memref.alloc", "memref.alloca"):
        kind = ir.MemRefType(op.results[0].type)
        if not kind.has_static_shape:
            return "it has memory of a size known only at run time in its loops"
        if nbytes_of(kind) > MOST_OWN_BYTES:
            return f"it has {nbytes_of(kind)} bytes of its own for each iteration"
        return ""
    if op.name == "llvm.call":  # of check-loaded
        return "it checks bounds that it loads"
    if op.name == "memref.get_global":
        return "it reads a table of constants"
    if op.name in _CONTROL or op.name in _MEMORY or is_pure(op):
        return ""
    return f"it has {op.name}"


@dataclass(frozen=True)
class Axis:
    """One dimension of a loop whose iterations are threads. `depends`: where it begins or ends
    depends on axes before it. `unit`: so many accesses go with it from element to element.
    """

    loop: ir.Operation
    dimension: int
    depends: bool
    unit: int

    @property
    def variable(self) -> ir.Value:
        return self.loop.regions[0].blocks[0].arguments[self.dimension]


MOST_AXES = 3


def is_free(loop: ir.Operation, scop: Scop) -> bool:
    """Whether its iterations may all run at once: those that are divided among ranks do. One of
    more dimensions than a grid has runs in order.
    """
    if loop.name not in (*FORS, "affine.parallel", "scf.parallel") or len(loop.results):
        return False
    if len(loop.regions[0].blocks[0].arguments) > MOST_AXES:
        return False
    divided = split_dimensions(loop)
    if divided and all(dimension >= 0 for dimension in divided):
        return True
    return loop.name in ("affine.parallel", "scf.parallel") or order_of(loop, scop) is None


def axes_of(loop: ir.Operation, scop: Scop, *, alone: bool = False) -> list[Axis]:
    """The free loop and those right inside of it that are free too, outermost first. `alone`:
    nothing is known of arrays, and so of other loops than this.
    """
    axes = _dimensions(loop, scop, ())
    while not alone and len(axes) < MOST_AXES:
        inner = _only_loop(axes[-1].loop)
        if inner is None or not is_free(inner, scop):
            break
        more = _dimensions(inner, scop, axes)
        if len(axes) + len(more) > MOST_AXES or not all(_bounded(axis, loop) for axis in more):
            break
        axes += more
    return axes


def _dimensions(loop: ir.Operation, scop: Scop, around: Sequence[Axis]) -> list[Axis]:
    variables = {axis.variable for axis in around}
    depends = any(operand in variables for operand in loop.operands)
    count = len(loop.regions[0].blocks[0].arguments) if loop.name.endswith("parallel") else 1
    return [Axis(loop, k, depends, _unit_strides(loop, k, scop)) for k in range(count)]


def _unit_strides(loop: ir.Operation, dimension: int, scop: Scop) -> int:
    own = scop.loops_of(loop)[dimension]
    return sum(
        abs(stride_of(access, s.loops.index(own)) or 0)
        for s in scop.within(own)
        for access in s.accesses
    )


def _only_loop(loop: ir.Operation) -> ir.Operation | None:
    """The loop that is all there is in it, beside arithmetic that each thread can do."""
    others = [op for op in body_of(loop) if not is_pure(op)]
    return others[0] if len(others) == 1 and len(others[0].regions) else None


def _bounded(axis: Axis, outermost: ir.Operation) -> bool:
    """Whether the ends of an axis can be told before the kernel, for all threads of the axes
    around: they are the same, or grow or fall with them.
    """
    loop = axis.loop
    made_inside = (
        defined_in(outermost, operand)
        for operand in loop.operands
        if not isinstance(operand.owner, ir.Block)
    )
    if any(made_inside):
        return False
    if not axis.depends:
        return True
    if loop.name != "affine.for" or ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return False
    return not any("mod" in str(form) for form in maps_of(loop))


def is_launched_from_host(block: ir.Block, scop: Scop) -> bool:
    """Whether all that is done in it is done by loops whose iterations are threads, or in such
    loops within others that run in order, or is a few loads and stores between them.
    """
    return are_launched_from_host([view.operation for view in block.operations][:-1], scop)


def are_launched_from_host(ops: Sequence[ir.Operation], scop: Scop) -> bool:
    """The same of operations that follow each other."""
    return first_on_host(ops, scop) is None


def first_on_host(ops: Sequence[ir.Operation], scop: Scop) -> tuple[ir.Operation, str] | None:
    """The first operation among them, or in them, that is not, and why."""
    for op in ops:
        if is_pure(op) or op.name in ACCESSES or is_free(op, scop):
            continue
        if op.name not in (*FORS, "affine.if", "scf.if"):
            return op, f"it has {op.name}"
        if op.name in FORS and not has_free_loops([op], scop):
            return op, f"neither {loop_name(op)} nor a loop in it is free of order"
        if len(op.results):
            name = loop_name(op) if op.name in FORS else op.name
            return (
                op,
                f"{name} hands a value on, which would be on the GPU, and not where loops begin",
            )
        for region in op.regions:
            for inner in region.blocks:
                found = first_on_host([view.operation for view in inner.operations][:-1], scop)
                if found is not None:
                    return found
    runs = (run for run in accesses_among(ops) if not _keeps_its_values(run))
    return next(((run[0], "a loop needs the value of a single element") for run in runs), None)


def accesses_among(ops: Sequence[ir.Operation]) -> list[list[ir.Operation]]:
    """Loads and stores that no loop stands between, with what is computed of what they load."""
    runs: list[list[ir.Operation]] = []
    open_ = False
    for op in ops:
        if len(op.regions):
            open_ = False
        elif op.name in ACCESSES:
            if not open_:
                runs.append([])
            runs[-1].append(op)
            open_ = True
        elif open_ and any(_is_made_by(runs[-1], operand) for operand in op.operands):
            runs[-1].append(op)
    return runs


def _is_made_by(run: Sequence[ir.Operation], value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation in run


def _keeps_its_values(run: Sequence[ir.Operation]) -> bool:
    """Whether nothing behind uses what it loads: that is on the device, and the host is not."""
    uses = (use.owner.operation for op in run for result in op.results for use in result.uses)
    return all(user in run for user in uses)


def has_free_loops(ops: Sequence[ir.Operation], scop: Scop) -> bool:
    """Whether there are loops among them, or in them, whose iterations are threads."""
    inside = (inner for op in ops for inner in (op, *operations_in(op)))
    return any(is_free(op, scop) for op in inside if len(op.regions))


def launched_accesses(block: ir.Block, scop: Scop) -> Iterator[list[ir.Operation]]:
    """Of a block that is launched from the host, what stands between its loops."""
    ops = [view.operation for view in block.operations][:-1]
    yield from accesses_among(ops)
    for op in ops:
        if len(op.regions) and not is_free(op, scop):
            for region in op.regions:
                for inner in region.blocks:
                    yield from launched_accesses(inner, scop)


def free_loops_in(block: ir.Block, scop: Scop) -> Iterator[ir.Operation]:
    """The outermost free loops of a block that is launched from the host, in program order."""
    for view in list(block.operations)[:-1]:
        op = view.operation
        if not len(op.regions):
            continue
        if is_free(op, scop):
            yield op
        else:
            for region in op.regions:
                for inner in region.blocks:
                    yield from free_loops_in(inner, scop)
