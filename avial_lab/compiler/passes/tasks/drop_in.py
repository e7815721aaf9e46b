"""Drop-in: a plain function becomes a program of tasks, by what its loops depend on.

Function of loops over memrefs -> the same function with an avial.schedule: each parallel nest in a
replicate, each sequential loop around one in a converge, the rest in tasks. No value changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.analysis.accesses.footprints import body_touches
from avial_lab.compiler.analysis.accesses.reassociation import FAR, TERMS
from avial_lab.compiler.analysis.accesses.view_maps import is_memref, view_chain
from avial_lab.compiler.analysis.parallelism.partition import (
    Around,
    Node,
    Sequential,
    Split,
    partition,
)
from avial_lab.compiler.analysis.polyhedral import Array, Loop, Reduction, ReductionKind, read_scop
from avial_lab.compiler.analysis.polyhedral.slice_costs import slice_weights
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS, buffer_of, rebuilt
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distribution.phases import SPLIT, split_dimensions
from avial_lab.compiler.passes.loops.reductions.reassociate_sums import most_on_one
from avial_lab.core.errors import PassError

ALLOCATIONS = ("memref.alloc", "memref.alloca")


@dataclass(frozen=True)
class DropIn:
    """Wrap what can run in parallel, and say of the rest why it cannot.

    before:  func.func @f(%A, %B) { affine.for %t = 0 to 100 { affine.for %i = 1 to 99 {…} … } }
    after:   func.func @f(%A, %B) {
               avial.schedule %A, %B {
                 %cpu = avial.target {arch = "cpu"}
                 avial.converge {                      // %t carries A from step to step
                   affine.for %t = 0 to 100 {
                     avial.replicate %cpu, %A, %B { affine.for %i = 1 to 99 {…} {avial.split = 0} }
                     … } } } }

    Scalar code and the loops' own bounds stay between the tasks: every rank runs them. With `grid`
    a second loop is split too, where there is one.
    """

    grid: bool = False

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        with module.context, function.location:
            _Wrapper(function, self.grid).wrap(partition(function))

    def __str__(self) -> str:
        return "drop-in{grid=true}" if self.grid else "drop-in"


@dataclass
class _Wrapper:
    function: ir.Operation
    grid: bool
    names: dict[str, int] = field(default_factory=dict)
    handles: dict[ir.Value, ir.Value] = field(default_factory=dict)
    functions: Functions = field(default_factory=Functions)

    def wrap(self, nodes: Sequence[Node]) -> None:
        block = self.function.regions[0].blocks[0]
        schedule = self._open_schedule(block)
        inside = schedule.regions[0].blocks[0]
        end = inside.operations[-1].operation
        for view in list(block.operations)[:-1]:
            op = view.operation
            if op not in self.outside and op != schedule:
                op.move_before(end)
        for node in nodes:
            self._node(node)

    def _open_schedule(self, block: ir.Block) -> ir.Operation:
        """An empty schedule where the function's first effect is; what stands before stays."""
        self.outside = set[ir.Operation]()
        first = block.operations[-1].operation
        for view in block.operations:
            op = view.operation
            if op.name in ALLOCATIONS or is_pure(op):
                self.outside.add(op)
                continue
            first = op
            break
        roots = [a for a in block.arguments if isinstance(a.type, ir.MemRefType)]
        before = (view.operation for view in block.operations)  # a set has no order of its own
        roots += [op.results[0] for op in before if op in self.outside and op.name in ALLOCATIONS]
        reference = ir.Type.parse("!avial.buffer_ref")
        with ir.InsertionPoint(first):
            for root in roots:
                with root.location:
                    self.handles[root] = ir.Operation.create(CAST, [reference], [root]).result
                self.outside.add(self.handles[root].owner.operation)
            arguments = [self.handles[root] for root in roots if isinstance(root.owner, ir.Block)]
            schedule = ir.Operation.create("avial.schedule", operands=arguments, regions=1)
        inside = ir.Block.create_at_start(schedule.regions[0], [])
        with ir.InsertionPoint(inside):
            self.target = ir.Operation.create(
                "avial.target",
                [ir.Type.parse("!avial.target_ref")],
                attributes={"name": ir.StringAttr.get("cpu"), "arch": ir.StringAttr.get("cpu")},
            ).result
            ir.Operation.create("omp.terminator")
        return schedule

    # -- nodes -------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if isinstance(node, Split):
            self._split(node)
        elif isinstance(node, Around):
            self._around(node)
        elif isinstance(node, Sequential):
            self._work("avial.task", node.op, {"avial.why": _texts(node.reasons)})

    def _around(self, node: Around) -> None:
        for child in node.children:
            self._node(child)
        if node.op.name not in ("affine.for", "scf.for", "scf.while"):
            return
        empty = ir.DenseI32ArrayAttr.get([0, 0])
        with ir.InsertionPoint(node.op), node.op.location:
            if len(node.op.results):
                # Its values go on to what follows: it stays bare, and says why itself.
                node.op.attributes["avial.why"] = _texts(node.reasons)
                return
            converge = ir.Operation.create(
                "avial.converge",
                [ir.Type.parse("!avial.task_ref")],
                [],
                attributes={
                    "name": ir.StringAttr.get(self._name("loop")),
                    "avial.why": _texts(node.reasons),
                    SEGMENTS: empty,
                },
                regions=1,
            )
        self._fill(converge, node.op)

    def _split(self, node: Split) -> None:
        replicate = self._work("avial.replicate", node.op, {})
        describe_split(node, replicate, grid=self.grid)

    def _work(
        self, kind: str, op: ir.Operation, attributes: dict[str, ir.Attribute]
    ) -> ir.Operation:
        """`op` in a replicate or task that lists what it reads and writes."""
        if any(True for result in op.results for _ in result.uses):
            raise PassError(
                f"{op.name} hands on what only one rank would have", span=span_of(op.location)
            )
        with ir.InsertionPoint(op), op.location:
            work = ir.Operation.create(
                kind,
                [ir.Type.parse("!avial.task_ref")],
                [self.target],
                attributes={
                    "name": ir.StringAttr.get(self._name("S")),
                    SEGMENTS: ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                    **attributes,
                },
                regions=1,
            )
        self._fill(work, op)
        touches = body_touches(work.regions[0].blocks[0], self.functions)
        reads = self._listed(touch.root for touch in touches if touch.reads)
        writes = self._listed(touch.root for touch in touches if touch.writes)
        sizes = ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), 0])
        return rebuilt(work, [self.target, *reads, *writes], {SEGMENTS: sizes})

    def _listed(self, roots: Iterable[ir.Value]) -> list[ir.Value]:
        """The handles of the program's arrays among them, each once."""
        return [self.handles[root] for root in dict.fromkeys(roots) if root in self.handles]

    def _fill(self, wrapper: ir.Operation, op: ir.Operation) -> None:
        block = ir.Block.create_at_start(wrapper.regions[0], [])
        with ir.InsertionPoint(block), op.location:
            end = ir.Operation.create("omp.terminator")
        op.move_before(end)

    def _name(self, stem: str) -> str:
        self.names[stem] = self.names.get(stem, 0) + 1
        return f"{stem}{self.names[stem]}"


def describe_split(node: Split, replicate: ir.Operation, *, grid: bool = False) -> None:
    """Write on a replicate and its loops what is divided, and what each part owns."""
    i64 = ir.DenseI64ArrayAttr
    for dimension, loops in enumerate((node.loops, node.second if grid else ())):
        _mark(loops, dimension)
        outermost = dimension == 0 and len(loops) == 1 and loops[0].op == node.op
        if loops and not outermost:
            replicate.attributes[f"avial.bounds{dimension}"] = i64.get(_hull(node.op, loops))
    if node.anchor is not None:
        extent = node.anchor.array.shape[node.anchor.dimension]
        if extent is not None:
            replicate.attributes["avial.owned0"] = i64.get([node.anchor.offset, extent])
    if node.triangular and not grid:
        replicate.attributes["avial.weights"] = i64.get(_weights(node, replicate))
    if node.reductions:
        arrays = {array.value for reduction in node.reductions for array in reduction.arrays}
        operands = [buffer_of(operand) for operand in replicate.operands]
        # An array that is read and written is listed twice: the later is the write.
        places = {value: k for k, value in enumerate(operands) if value in arrays}
        replicate.attributes["avial.reduced"] = i64.get(sorted(places.values()))
        if any(reduction.reorders_rounding for reduction in node.reductions):
            replicate.attributes[TERMS] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(64), _most_terms(node)
            )
    for array in node.private:
        _copy_inside(array, replicate)
    replicate.attributes["avial.why"] = _texts(_how_divided(node))


def _most_terms(node: Split) -> int:
    """How many terms at most are combined in one element, by all the loops of the nest together;
    FAR where nobody knows.
    """
    scop = read_scop(node.op)
    statements = {statement.name: statement for statement in scop.statements}
    terms: dict[Array, int] = {}
    reduced = {array.value for reduction in node.reductions for array in reduction.arrays}
    for update in scop.updates:
        if update.array.value in reduced:
            store = statements[update.store]
            own = FAR if _comes_of_a_loop(store.op) else most_on_one(store, update.array)
            terms[update.array] = terms.get(update.array, 0) + own
    return min(FAR, max(terms.values(), default=FAR))


def _comes_of_a_loop(store: ir.Operation) -> bool:
    """Whether what is stored was added up by a loop that hands it on: its terms are none of the
    store's own iterations.
    """
    pending = [store.operands[0]]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block) or value.owner.operation.block != store.block:
            continue
        op = value.owner.operation
        if len(op.regions):
            return True
        pending += op.operands
    return False


def _how_divided(node: Split) -> list[str]:
    """For people: which loop, who owns what, what is combined."""
    names = " and ".join(dict.fromkeys(loop.name for loop in node.loops))
    lines = [f"iterations of {names} touch nothing of each other"]
    if node.reductions:
        lines = [f"iterations of {names} only {_aim(reduction)}: {reduction}"
                 for reduction in node.reductions]  # fmt: skip
    if node.anchor is not None:
        place = ", ".join(
            ":" if d != node.anchor.dimension else _shifted(names, node.anchor.offset)
            for d in range(node.anchor.array.rank)
        )
        verb = "owns" if node.anchor.written else "has most of"
        lines.append(f"a rank that {verb} {node.anchor.array}[{place}] does iteration {names}")
    lines += [f"each rank has a {array} of its own" for array in node.private]
    return lines


def _aim(reduction: Reduction) -> str:
    if not reduction.op.startswith("avial.arg"):
        return "add to what others add to"
    least = reduction.kind is ReductionKind.MINIMUM
    return f"look for the {'least' if least else 'greatest'} of all"


def _shifted(name: str, offset: int) -> str:
    return name if not offset else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"


def _mark(loops: Sequence[Loop], dimension: int) -> None:
    """Write on each loop which dimension of the grid divides it."""
    for loop in loops:
        if loop.op.name.endswith(".for"):
            i64 = ir.IntegerType.get_signless(64)
            loop.op.attributes[SPLIT] = ir.IntegerAttr.get(i64, dimension)
            continue
        marks = split_dimensions(loop.op)
        marks[loop.dimension] = dimension
        loop.op.attributes[SPLIT] = ir.DenseI64ArrayAttr.get(marks)


def _weights(node: Split, replicate: ir.Operation) -> list[int]:
    """The work in equal slices of what is owned, or of the iterations."""
    low, high, _ = _hull(node.op, node.loops)
    if "avial.owned0" in replicate.attributes:
        offset, extent = ir.DenseI64ArrayAttr(replicate.attributes["avial.owned0"])
        low, high = -offset, extent - offset
    return slice_weights(read_scop(node.op), node.loops, first=low, extent=high - low)


def _hull(nest: ir.Operation, loops: Sequence[Loop]) -> list[int]:
    """The least and one past the greatest value of the loops' variables, and the step."""
    ends: list[tuple[int, int]] = []
    for statement in read_scop(nest).statements:
        for place, loop in enumerate(statement.loops):
            if any(loop.op == each.op and loop.dimension == each.dimension for each in loops):
                domain = statement.domain
                domain = domain.project_out(isl.dim_type.param, 0, domain.dim(isl.dim_type.param))
                if domain.is_empty():
                    continue
                low, high = domain.dim_min_val(place), domain.dim_max_val(place)
                ends.append(
                    (
                        low.to_python() if low.is_int() else -FAR,
                        high.to_python() + 1 if high.is_int() else FAR,
                    )
                )
    if not ends:
        return [0, 0, 1]
    (step,) = {loop.step or 1 for loop in loops} if len(loops) == 1 else {1}
    return [min(low for low, _ in ends), max(high for _, high in ends), step]


def _texts(lines: Sequence[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(line) for line in lines])


def _copy_inside(array: Array, work: ir.Operation) -> None:
    """A temporary that carries nothing from one iteration to another is the phase's own, and views
    of it that were made outside are views of that.
    """
    first = work.regions[0].blocks[0].operations[0].operation
    assert array.value is not None, "an array of the function's own is an allocation"
    own: dict[ir.Value, ir.Value] = {}

    def own_view(value: ir.Value) -> ir.Value:
        if value not in own:
            sources = view_chain(value)[1:2]  # none of the array itself
            given = list(map(own_view, sources))
            made = value.owner.operation.clone(ip=ir.InsertionPoint(first)).operation
            for source, copy in zip(sources, given, strict=True):
                made.replace_uses_of_with(source, copy)
            own[value] = made.results[0]
        return own[value]

    for inner in list(operations_in(work)):
        for k, operand in enumerate(inner.operands):
            if not is_memref(operand) or defined_in(work, operand):
                continue
            if view_chain(operand)[-1] == array.value:
                inner.operands[k] = own_view(operand)
