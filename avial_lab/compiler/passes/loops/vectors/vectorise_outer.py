"""Iterations of a parallel loop as lanes of vectors, where the loops inside hand values on.

Functions of loops -> the same operations on every element, so the same bits. What an inner loop
hands from one iteration to the next keeps its own iterations in order: vectors are made of the loop
around it, which LLVM's vectoriser does not look at.

Source: D. Nuzman, A. Zaks, Outer-loop vectorization: revisited for short SIMD architectures,
PACT 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import may_run_at_once
from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.parallelism.sums import side_by_side
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop
from avial_lab.compiler.codegen.loops.unroll_and_jam import in_blocks
from avial_lab.compiler.codegen.vectors.lane_strides import WHILE, NoLanes, Strides
from avial_lab.compiler.codegen.vectors.lanes import LaneCode
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.effects import ACCESSES, is_pure
from avial_lab.compiler.ir.nesting import FORS, defined_in, parent_of
from avial_lab.compiler.ir.operations import itemsize_of, loops_in, operations_in, operations_named
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.machine.constants import FMA_LATENCY_CYCLES, VECTOR_UNITS
from avial_lab.machine.cpu import this_cpu

NAME = "vectorise-outer"

MOST_VECTORS = FMA_LATENCY_CYCLES * VECTOR_UNITS
"""Beside each other: as many as hide how long a product and a sum take."""

FREE_REGISTERS = 2
"""For what is computed from those that are handed on."""

LOOPS = (*FORS, WHILE)

LEAST_BLOCKS = 8
"""Of a loop whose iterations are for threads."""

GATHERED = 1
"""What is lost where the lanes of a vector are put together, or taken apart, one by one, in what an
operation on vectors wins: each lane has a load or store of its own where there are no vectors, too.
"""

MOST_GATHERED = 32
"""Lanes, where they are put together one by one: each has a line of the cache of its own meanwhile,
and LLVM's SLP vectorizer looks at them in pairs (1 s for 64, which were slower as well).
"""

LONG = ("arith.muli", "arith.shrsi", "arith.sitofp", "arith.fptosi")
LONG_ONES = 4
"""What these lose with integers of 64 bits, for which few processors have an instruction."""


@dataclass(frozen=True)
class VectoriseOuter:
    """Run as many iterations at once as some vectors have lanes, each with all of its inner loops.

    before:  affine.for %j { %x = affine.load %X[%j]
               %y = affine.for %q iter_args(%s = %zero) { … math.fma %s, %x, %c … }
               affine.store %y, %Y[%j] }
    after:   affine.for %j step 16 { %x = affine.vector_load %X[%j] : vector<16xf64>
               %y = affine.for %q iter_args(%s = %zeros) { … math.fma %s, %x, %cs … }
               affine.vector_store %y, %Y[%j] }

    Only where an inner loop does not make vectors of its own: it hands on what is no sum, product
    or extreme, or jumps from element to element in memory. Iterations that are left over run in one
    vector at a time, then one by one.

    `lanes`: how many; 0 where that is to follow from the machine's registers and the loop.
    """

    lanes: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for loop in reversed(_around_what_is_carried(function)):
                    self._vectorise(loop)

    def __str__(self) -> str:
        return f"{NAME}{{lanes={self.lanes}}}" if self.lanes else NAME

    def _vectorise(self, loop: ir.Operation) -> None:
        strides = _lanes_of(loop)
        if strides is None:
            return
        one, lanes = _Lanes(strides).one, self.lanes or _Lanes(strides).several
        if lanes < 2:
            return
        names = listed(dict.fromkeys(map(loop_name, _carrying(loop))))
        remark = f"{lanes} iterations of {loop_name(loop)} as lanes, since {names} carries values"
        add_remark(loop, f"{NAME}{{lanes={lanes}}}", remark)
        left = _in_lanes(strides, lanes)
        if lanes > one > 1:
            _in_lanes(Strides(left), one)


def _in_lanes(strides: Strides, lanes: int) -> ir.Operation:
    """So many iterations at once; the loop over those that are left over."""
    blocks = in_blocks(strides.loop, lanes)
    with strides.loop.location, ir.InsertionPoint(blocks.end):
        LaneCode(strides, lanes, blocks.first).write()
    strides.loop.erase()
    return blocks.left


def _around_what_is_carried(function: ir.Operation) -> list[ir.Operation]:
    """The nearest loops around loops that hand values on, which hand on nothing themselves; outer
    before inner.
    """
    found: list[ir.Operation] = []
    for loop in _carrying(function):
        around = parent_of(loop)
        while around is not None and around != function:
            if around.name in FORS and not len(around.results):
                if around not in found:
                    found.append(around)
                break
            around = parent_of(around)
    return found


def _carrying(inside: ir.Operation) -> list[ir.Operation]:
    """The loops that hand on values."""
    return [op for op in loops_in(inside, LOOPS) if len(op.results)]


def _lanes_of(loop: ir.Operation) -> Strides | None:
    """What differs between its iterations, if these are to be lanes."""
    plain = loop.name == "affine.for" and ir.IntegerAttr(loop.attributes["step"]).value == 1
    if not plain:
        return None
    alone = _alone(loop)
    if len(alone) == len(_innermost(loop)):
        return None  # each makes vectors of its own
    try:
        strides = Strides(loop)
    except NoLanes as reason:
        add_remark(loop, NAME, f"iterations of {loop_name(loop)} cannot be lanes: {reason}")
        return None
    if not _gains(strides, alone):
        return None
    return strides if PARALLEL in loop.attributes or may_run_at_once(loop) else None


def _alone(loop: ir.Operation) -> list[ir.Operation]:
    """The innermost loops that make vectors of their own."""
    scop = read_scop(loop)
    return [
        inner
        for inner in _innermost(loop)
        if all(_is_vector_by_itself(own, scop) for own in scop.loops_of(inner))
    ]


def _is_vector_by_itself(own: Loop, scop: Scop) -> bool:
    """Whether LLVM may compute it in any order, and finds what it loads side by side."""
    if _is_scan(own.op):
        return False
    carried = carried_among(own, scop.statements)
    if forbidding(own, scop, carried):
        return False
    in_order = any(each.reorders_rounding for each in reductions(own, scop, carried))
    if in_order and not any("reassoc" in _fastmath(op) for op in operations_in(own.op)):
        return False
    return side_by_side(own, scop)


def _is_scan(loop: ir.Operation) -> bool:
    """Whether it looks at what it hands on."""
    if loop.name not in FORS or not len(loop.results):
        return False
    handed = loop.regions[0].blocks[0].operations[-1].operation.operands
    own = (value for value in handed if not isinstance(value.owner, ir.Block))
    return any(len(list(value.uses)) > 1 for value in own)


def _fastmath(op: ir.Operation) -> str:
    return str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""


def _gains(strides: Strides, alone: Sequence[ir.Operation]) -> bool:
    """Whether the innermost loops have less to do as vectors; those that make vectors `alone` have
    more.
    """
    won = lost = 0
    for loop in _innermost(strides.loop):
        again = loop in alone
        for op in operations_in(loop):
            if op.name in ACCESSES:
                lost += GATHERED * _is_gathered(op, strides)
                won += _differs(op, strides) and strides.is_beside(op)
            elif is_pure(op) and strides.are_vectors(op):
                long = op.name in LONG and any(map(_is_long, (*op.operands, *op.results)))
                won += not (long or again)
                lost += LONG_ONES if long else again
    return won > lost


def _is_gathered(access: ir.Operation, strides: Strides) -> bool:
    """Whether the lanes of what is loaded or stored lie apart in memory."""
    return _differs(access, strides) and not strides.is_beside(access)


def _differs(access: ir.Operation, strides: Strides) -> bool:
    return any(stride != 0 for stride in strides.of_subscripts(access))


def _is_long(value: ir.Value) -> bool:
    return not this_cpu().long_integers and str(value.type) in ("i64", "index")


def _innermost(loop: ir.Operation) -> list[ir.Operation]:
    return [op for op in loops_in(loop, LOOPS) if not operations_named(op, *LOOPS)]


@dataclass(frozen=True)
class _Lanes:
    """How many lanes fit `strides`."""

    strides: Strides

    @property
    def one(self) -> int:
        """Lanes of one vector of the widest elements."""
        return this_cpu().lanes(max(map(self._width, _innermost(self.strides.loop))))

    @property
    def several(self) -> int:
        """Of as many vectors as registers hold what the innermost loops need, and as there are
        iterations; 0 where those fill no vector.
        """
        count = min(MOST_VECTORS, self._room)
        lanes = self.one << max(0, count.bit_length() - 1)
        if self._gathers:
            lanes = max(self.one, min(lanes, MOST_GATHERED))
        most = self._iterations
        if most is not None and PARALLEL in self.strides.loop.attributes:
            most = max(self.one, most // LEAST_BLOCKS) if most >= self.one else most
        while most is not None and lanes > most:
            lanes //= 2
        return lanes if lanes >= self.one else 0

    @property
    def _gathers(self) -> bool:
        return any(
            op.name in ACCESSES and _is_gathered(op, self.strides)
            for loop in _innermost(self.strides.loop)
            for op in operations_in(loop)
        )

    def _width(self, loop: ir.Operation) -> int:
        """Bytes of the widest elements that are different ones in each lane."""
        return max((itemsize_of(_stored_type(v.type)) for v in self._values(loop)), default=8)

    def _values(self, loop: ir.Operation) -> list[ir.Value]:
        """Vectors that the loop has to do with."""
        used = [v for op in operations_in(loop) for v in (*op.operands, *op.results)]
        return [v for v in dict.fromkeys(used) if self.strides.of(v) is None]

    @property
    def _room(self) -> int:
        """Vectors side by side for which registers hold what goes through the loops."""
        free = this_cpu().vector_registers - FREE_REGISTERS
        return min(free // max(1, self._lasting(loop)) for loop in _innermost(self.strides.loop))

    def _lasting(self, loop: ir.Operation) -> int:
        """Values of a lane that the loop keeps from iteration to iteration."""
        body = loop.regions[0].blocks[0]
        return sum(
            value in body.arguments or not defined_in(loop, value) for value in self._values(loop)
        )

    @property
    def _iterations(self) -> int | None:
        lows, highs = known_ends(self.strides.loop)
        if None in (*lows, *highs):
            return None
        return min(high or 0 for high in highs) - max(low or 0 for low in lows)


def _stored_type(kind: ir.Type) -> ir.Type:
    """The type of elements in memory; addresses are as wide as the longest integers."""
    return ir.IntegerType.get_signless(64) if isinstance(kind, ir.IndexType) else kind
