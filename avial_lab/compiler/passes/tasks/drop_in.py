"""Drop-in: a plain function becomes a program of tasks, by what its loops depend on.

Function of loops over memrefs -> the same function with an avial.schedule: each parallel nest in a
replicate, each sequential loop around one in a converge, the rest in tasks. No value changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.analysis.accesses.footprints import body_touches
from avial_lab.compiler.analysis.parallelism.partition import (
    Around,
    Node,
    Sequential,
    Split,
    partition,
)
from avial_lab.compiler.codegen.describe_split import describe_split, parts_wanted, text_attributes
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS, rebuilt
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.views import VIEWS
from avial_lab.core.errors import PassError

ALLOCATIONS = ("memref.alloc", "memref.alloca")

_EXTENTS = VIEWS - {"memref.reshape"} | {"memref.dim", "arith.constant"}
"""What may stand earlier: no value in memory says how it ends."""


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


def _that_it_hangs_on(op: ir.Operation) -> list[ir.Operation]:
    """Operations before it, in order, and it."""
    found: dict[ir.Operation, None] = {}
    for operand in op.operands:
        if not isinstance(operand.owner, ir.Block):
            found |= dict.fromkeys(_that_it_hangs_on(operand.owner.operation))
    return [*found, op]


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
        for view in block.operations:
            if view.operation.name == "memref.dim":
                self._keep_outside(view.operation)
        for view in list(block.operations)[:-1]:
            op = view.operation
            if op not in self.outside and op != schedule:
                op.move_before(end)
        for node in nodes:
            self._node(node)

    def _keep_outside(self, dim: ir.Operation) -> None:
        """An extent that hangs on nothing inside: loops of affine take it for a size only where it
        stands in the function itself, and `normalise` has asked there.
        """
        needed, function = _that_it_hangs_on(dim), self.target.owner.parent
        assert function is not None
        if all(op in self.outside or op.name in _EXTENTS for op in needed):
            for op in needed:
                if op not in self.outside:
                    op.move_before(function)
                    self.outside.add(op)

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
            self._work("avial.task", node.op, {"avial.why": text_attributes(node.reasons)})

    def _around(self, node: Around) -> None:
        for child in node.children:
            self._node(child)
        if node.op.name not in ("affine.for", "scf.for", "scf.while"):
            return
        empty = ir.DenseI32ArrayAttr.get([0, 0])
        with ir.InsertionPoint(node.op), node.op.location:
            if len(node.op.results):
                # Its values go on to what follows: it stays bare, and says why itself.
                node.op.attributes["avial.why"] = text_attributes(node.reasons)
                return
            converge = ir.Operation.create(
                "avial.converge",
                [ir.Type.parse("!avial.task_ref")],
                [],
                attributes={
                    "name": ir.StringAttr.get(self._name("loop")),
                    "avial.why": text_attributes(node.reasons),
                    SEGMENTS: empty,
                },
                regions=1,
            )
        self._fill(converge, node.op)

    def _split(self, node: Split) -> None:
        wanted = parts_wanted(node)
        replicate = self._work("avial.replicate", node.op, wanted)
        describe_split(node, replicate, grid=self.grid or "avial.columns" in wanted)

    def _work(
        self, kind: str, op: ir.Operation, attributes: dict[str, ir.Attribute]
    ) -> ir.Operation:
        """`op` in a replicate or task that lists what it reads and writes."""
        if any(True for result in op.results for _ in result.uses):
            raise PassError(
                f"{op.name} passes on a value that only one rank would have",
                span=span_of(op.location),
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
