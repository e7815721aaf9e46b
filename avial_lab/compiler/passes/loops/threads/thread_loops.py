"""Loops whose iterations are divided among the threads of a rank.

Functions with loops marked `avial.parallel` -> the same, where each such loop stands in a function
of its own that runs a range of its iterations, called by every thread on its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, func, llvm, openmp, scf

from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.codegen.loops.outline_loop import outline
from avial_lab.compiler.codegen.loops.outlined_code import WORK
from avial_lab.compiler.codegen.loops.work_estimate import LoopWork
from avial_lab.compiler.ir.attributes import PARALLEL, PART, SLICED
from avial_lab.compiler.ir.loop_bounds import bounds_of, narrowed, ranged
from avial_lab.compiler.ir.operations import (
    LOOPS,
    arrays_of,
    functions_in,
    itemsize_of,
    loops_in,
    nbytes_of,
    operations_in,
)
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.machine.constants import LINE_BYTES
from avial_lab.machine.cpu import Cpu, this_cpu

THREADS, WORTH = "avial_threads", "avial_worth"
"""Globals that are set before each run: how many threads a rank has, and from how many operations
on elements on a nest is divided.
"""

NAME = "thread-loops"

SLICES = 8
"""Parts for every thread where not all iterations take equally long."""

IN_CACHES = 4
"""Times as many operations have to be there where all arrays stay in the second caches of two
cores: vectors of them take a fifth of the time, and what moves between the cores as long as ever.
"""

LINES = 2 * LINE_BYTES
"""Bytes of a row that go to one thread together: whole vectors, and no line of the cache is written
by two. They are counted from the array's beginning: a loop that begins one further in each step (of
a factorisation) is cut at the same places in the next.
"""


@dataclass(frozen=True)
class ThreadLoops:
    """Divide the outermost marked loops through their first dimension only, so that loops inside
    stay as they are, vector code.

    before:  affine.for %i = 0 to %n { … } {avial.parallel}
    after:   func.func private @S1.part(%low, %high, %A) { affine.for %i = %low to %high {
             … } }
             scf.if (%threads > 1 and %work >= %worth) {
               omp.parallel num_threads(%threads) { omp.wsloop schedule(static) {
                 omp.loop_nest (%low) = 0 to %n step %chunk { call @S1.part(%low, %low + %chunk, %A)
               } } }
             } else { call @S1.part(0, %n, %A) }

    Of a nest that is `avial.sliced` every thread runs all iterations, with its part of the rows; on
    one thread it runs as it was.

    A loop whose inner bounds depend on its variable is dealt out in smaller parts, as threads get
    through with them.
    """

    cpu: Cpu = field(default_factory=this_cpu, repr=False)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            threaded = [_thread(function, self.cpu) for function in functions_in(module)]
            if any(threaded):
                _declare(module)

    def __str__(self) -> str:
        return NAME


def _declare(module: ir.Operation) -> None:
    """The globals; as long as nobody sets them there is one thread."""
    i64 = ir.IntegerType.get_signless(64)
    external = ir.Attribute.parse("#llvm.linkage<external>")
    start = ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0])
    with start, ir.Location.unknown():
        for name, value in ((THREADS, 1), (WORTH, 0)):
            llvm.GlobalOp(i64, name, external, value=ir.IntegerAttr.get(i64, value))


def _thread(function: ir.Operation, cpu: Cpu) -> bool:
    """Whether some loop of the function has been divided."""
    loops = list(_marked(function))
    for number, loop in enumerate(loops):
        name = ir.StringAttr(function.attributes["sym_name"]).value
        _Division(function, loop, f"{name}{PART}{number or ''}", cpu).write()
    return bool(loops)


def _marked(op: ir.Operation, *, inside: bool = False) -> Iterator[ir.Operation]:
    """The outermost loops to divide, of those that hand nothing on.

    Rows inside of another loop are not: they would be waited for more than they are worth.
    """
    for loop in nearest_loops(op):
        divided = SLICED in loop.attributes or (
            PARALLEL in loop.attributes and not (inside and _is_row(loop))
        )
        if divided and not len(loop.results):
            yield loop
        else:
            yield from _marked(loop, inside=True)


def _is_row(loop: ir.Operation) -> bool:
    """Whether its iterations are single elements."""
    inside = any(op.name in LOOPS or WORK in op.attributes for op in operations_in(loop))
    return not inside and len(loop.regions[0].blocks[0].arguments) == 1


def _elements_of_lines(loop: ir.Operation) -> int:
    """Of the smallest elements that it touches."""
    sizes = (itemsize_of(each.element_type) for each in arrays_of(loop))
    return max(1, LINES // min(sizes, default=1))


def _stays_in_caches(loop: ir.Operation, nbytes: int) -> bool:
    """Whether its arrays are known to be no larger, and it is no part of a contraction, which has
    more to compute than to move.
    """
    arrays = arrays_of(loop)
    if not all(each.has_static_shape for each in arrays):
        return False
    if any(WORK in op.attributes for op in operations_in(loop)):
        return False
    return sum(map(nbytes_of, arrays)) <= nbytes


def _take_marks(loop: ir.Operation, *, sliced: bool) -> list[ir.Operation]:
    """The loops of the nest that are divided: it itself, or its rows."""
    if not sliced:
        del loop.attributes[PARALLEL]
        return [loop]
    del loop.attributes[SLICED]
    rows = [op for op in loops_in(loop) if PARALLEL in op.attributes]
    for row in rows:
        del row.attributes[PARALLEL]
    return rows


@dataclass
class _Division:
    """One nest, `loop` of `function`, and the name of the function that its body moves to."""

    function: ir.Operation
    loop: ir.Operation
    symbol: str
    cpu: Cpu

    def write(self) -> None:
        loop, self.index = self.loop, ir.IndexType.get()
        sliced = SLICED in loop.attributes
        self.rows = sliced or _is_row(loop)
        self.arguments = self._outline(sliced=sliced)
        divided = _take_marks(loop, sliced=sliced)
        with ir.InsertionPoint(loop), loop.location:
            work = LoopWork(loop)
            amount = work.total(*bounds_of(loop, 0))
            low, high, step = self._range(divided)
            even = sliced or work.is_even
            parts = "equal parts" if even else f"{SLICES} parts per thread, scheduled dynamically"
            names = listed(dict.fromkeys(map(loop_name, divided)))
            remark = f"loop {names} divided among threads, where that pays, in {parts}"
            add_remark(self.function, NAME, remark)
            threads, worth = self._read(THREADS), self._read(WORTH)
            if _stays_in_caches(loop, 2 * self.cpu.l2_bytes):
                worth = arith.muli(worth, self._index(IN_CACHES))
            enough = arith.cmpi(arith.CmpIPredicate.sge, amount, worth)
            several = arith.cmpi(arith.CmpIPredicate.sgt, threads, self._index(1))
            choice = scf.IfOp(arith.andi(enough, several), has_else=True)
            with ir.InsertionPoint(choice.then_block):
                self._fork(low, high, step, threads, even=even)
                scf.YieldOp([])
            with ir.InsertionPoint(choice.elseRegion.blocks[0]):
                if not sliced:
                    self._call(low, high)
                end = scf.YieldOp([])
        if sliced:  # whole rows are the faster ones
            loop.move_before(end.operation)
        else:
            loop.erase()

    def _range(self, divided: Sequence[ir.Operation]) -> tuple[ir.Value, ir.Value, ir.Value | int]:
        """From the least value of their variables to the greatest, and the step."""
        low, high, step = bounds_of(divided[0], 0)
        low, high = self._index(low), self._index(high)
        for loop in divided[1:]:
            first, last, _ = bounds_of(loop, 0)
            low = arith.minsi(low, self._index(first))
            high = arith.maxsi(high, self._index(last))
        return low, high, step

    def _outline(self, *, sliced: bool) -> list[ir.Value]:
        """A function before ours with a copy of the loop, for the range that it is given; what else
        it is to be called with.
        """

        def cut(copy: ir.Operation, ends: Sequence[ir.Value]) -> ir.Operation:
            low, high = ends
            divided = _take_marks(copy, sliced=sliced)
            if not sliced:
                return ranged(copy, 0, low, high)
            for row in divided:
                narrowed(row, 0, low, high)
            return copy

        return outline(self.loop, self.function, self.symbol, ("low", "high"), cut)

    def _read(self, name: str) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        place = llvm.mlir_addressof(ir.Type.parse("!llvm.ptr"), name)
        return arith.index_cast(self.index, llvm.load(i64, place))

    def _fork(
        self, low: ir.Value, high: ir.Value, step: ir.Value | int, threads: ir.Value, *, even: bool
    ) -> None:
        """The loop over the parts, each of as many iterations, divided among the threads."""
        slices = threads if even else arith.muli(threads, self._index(SLICES))
        line = self._index(_elements_of_lines(self.loop)) if self.rows else None
        first = low
        if line is not None and step == 1:
            first = arith.muli(arith.floordivsi(low, line), line)
        count = arith.subi(high, first)
        if step != 1:
            count = arith.ceildivsi(count, self._index(step))
        # A loop of no iterations comes here where nothing is too little to be worth it.
        chunk = arith.maxsi(arith.ceildivsi(count, slices), self._index(1))
        if line is not None:
            chunk = arith.muli(arith.ceildivsi(chunk, line), line)
        stride = chunk if step == 1 else arith.muli(chunk, self._index(step))
        number = arith.index_cast(ir.IntegerType.get_signless(32), threads)
        region = openmp.ParallelOp([], [], [], [], num_threads=number)
        with ir.InsertionPoint(region.region.blocks.append()):
            kind = "static" if even else "dynamic"
            # In their order: else libomp begins with a half for each thread, which are not alike.
            modifier = None if even else ir.Attribute.parse("#omp<sched_mod monotonic>")
            shared = openmp.WsloopOp(
                [], [], [], [], [], [],
                nowait=True,
                schedule_kind=ir.Attribute.parse(f"#omp<schedulekind {kind}>"),
                schedule_mod=modifier,
            )  # fmt: skip
            with ir.InsertionPoint(shared.region.blocks.append()):
                nest = openmp.LoopNestOp([first], [high], [stride])
            start = ir.Location.name("part", self.loop.location)
            with ir.InsertionPoint(nest.region.blocks.append(self.index, arg_locs=[start])) as at:
                begin = at.block.arguments[0]
                end = arith.minsi(arith.addi(begin, stride), high)
                self._call(begin if first == low else arith.maxsi(begin, low), end)
                openmp.YieldOp([])
            openmp.TerminatorOp()

    def _call(self, low: ir.Value, high: ir.Value) -> None:
        func.CallOp([], self.symbol, [low, high, *self.arguments])

    def _index(self, value: ir.Value | int) -> ir.Value:
        return arith.constant(self.index, value) if isinstance(value, int) else value
