"""What a schedule costs on one rank and on several, in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlir import ir

from avial_lab.compiler.analysis.costs.traffic import (
    ALL,
    Layouts,
    PhaseWork,
    Traffic,
    phase_work,
)
from avial_lab.compiler.analysis.costs.work import Unknown
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.ir.attributes import IFS, LIES, PHASES, SPLIT, WHERE_IT_LIES
from avial_lab.compiler.ir.dialects.avial import buffer_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.machine.constants import (
    CLOCK_HZ,
    CORE_CACHE_BYTES_PER_S,
    CORES_THAT_FILL_MEMORY,
    LAST_CACHE_BYTES_PER_S,
    MEMORY_BYTES_PER_S,
    MESSAGE_BYTES_PER_S,
    MESSAGE_LATENCY_S,
    REACHED_OF_PEAK,
    VECTOR_UNITS,
)
from avial_lab.machine.cpu import Cpu


def ranks_of(phases: Sequence[ir.Operation], all_ranks: int) -> int:
    """How many ranks run each of the phases; 0 where not all have the same."""
    placed = {_ranks(op) for op in phases}
    ranks = len(placed.pop()) or all_ranks
    return 0 if placed else ranks


def _ranks(phase: ir.Operation) -> tuple[int, ...]:
    """Those it may run on; none where that is all."""
    if "avial.ranks" not in phase.attributes:
        return ()
    return tuple(ir.DenseI64ArrayAttr(phase.attributes["avial.ranks"]))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


@dataclass(frozen=True)
class Spent:
    """Seconds on one rank, `memory` of them at least for what is loaded and stored; the `share`
    that each of several ranks has of them, and what it is sent meanwhile.
    """

    one: float = 0.0
    memory: float = 0.0
    share: float = 0.0
    sent: Traffic = field(default_factory=Traffic)

    @property
    def several(self) -> float:
        """Seconds on several ranks."""
        sent_s = self.sent.nbytes / MESSAGE_BYTES_PER_S + self.sent.waits * MESSAGE_LATENCY_S
        return self.share + sent_s

    def summary(self, ranks: int) -> str:
        more = "go over the same arrays in each phase"
        if self.sent.waits:
            phases = f"{self.sent.waits:,} phase{'s' * (self.sent.waits != 1)}"
            more = f"wait for {self.sent.nbytes / 1e6:.3g} MB in {phases}"
        return (
            f"about {_ms(self.one)} of work; each of {ranks} ranks would have {_ms(self.share)} of "
            f"it, and {more}"
        )

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.one + other.one,
            self.memory + other.memory,
            self.share + other.share,
            self.sent + other.sent,
        )

    def times(self, count: int) -> Spent:
        sent = self.sent.times(count)
        return Spent(self.one * count, self.memory * count, self.share * count, sent)


@dataclass
class Cost:
    """What a program takes on one rank and on `ranks`, as far as that is known before it runs.

    footprint: bytes of all its arrays; gathered: those that one rank would be sent if it ran all of
    it, None where nothing is known of how they lie before. Loops that others bound, as in
    triangles, are as long as in the middle of those; branches are taken.
    """

    ranks: int
    cpu: Cpu
    footprint: int = 0
    gathered: float | None = None
    _middles: dict[ir.Value, int] = field(default_factory=dict)

    def of(self, schedule: ir.Operation) -> Spent:
        works = {op: work_in(op) for op in operations_in(schedule) if op.name in PHASES}
        self._middles.clear()  # those of another program
        sizes = {use.array: use.total * use.itemsize for w in works.values() for use in w.uses}
        self.footprint = sum(sizes.values())
        lying = lying_before(schedule)
        if lying:
            read = {use.array for w in works.values() for use in w.uses if not use.writes}
            divided = {array for array, dims in lying.items() if array in read and ALL not in dims}
            away = (self.ranks - 1) / self.ranks
            self.gathered = sum(sizes[array] for array in divided) * away
        return self._block(schedule.regions[0].blocks[0], works, Layouts(self.ranks, lying))

    def _block(
        self, block: ir.Block, works: Mapping[ir.Operation, PhaseWork], layouts: Layouts
    ) -> Spent:
        spent = Spent()
        for op in (view.operation for view in block.operations):
            if op.name in PHASES:
                spent += self._phase(works[op], layouts)
            elif op.name == "avial.converge":
                spent += self._block(op.regions[0].blocks[0], works, layouts)
            elif op.name == "affine.for":
                spent += self._loop(op, works, layouts)
            elif op.name in IFS:
                for inner in (inner for region in op.regions for inner in region.blocks):
                    spent += self._block(inner, works, layouts)
            elif len(op.regions):
                raise Unknown
        return spent

    def _loop(
        self, loop: ir.Operation, works: Mapping[ir.Operation, PhaseWork], layouts: Layouts
    ) -> Spent:
        """The first turn, and all others as the second: arrays then lie as a turn leaves them."""
        trips, body = self._trips(loop), loop.regions[0].blocks[0]
        count = len(trips)
        self._middles[body.arguments[0]] = trips[count // 2] if count else 0
        spent = Spent()
        if count > 0:
            spent += self._block(body, works, layouts)
        if count > 1:
            spent += self._block(body, works, layouts).times(count - 1)
        return spent

    def _trips(self, loop: ir.Operation) -> range:
        lows, highs = (
            [end for end in ends if end is not None] for ends in known_ends(loop, self._middles)
        )
        maps = (loop.attributes[name].value for name in ("lowerBoundMap", "upperBoundMap"))
        if [len(lows), len(highs)] != [len(form.results) for form in maps]:
            raise Unknown
        return range(max(lows), min(highs), ir.IntegerAttr(loop.attributes["step"]).value)

    def _phase(self, work: PhaseWork, layouts: Layouts) -> Spent:
        peak = CLOCK_HZ * VECTOR_UNITS * 2 * self.cpu.lanes(work.itemsize)
        arithmetic = work.flops / (peak * REACHED_OF_PEAK)
        speed, faster = self._stream()
        memory = work.nbytes / speed
        one = max(arithmetic, memory)
        share = max(arithmetic / self.ranks, memory / faster) if work.divided else one
        return Spent(one, memory, share, layouts.run(work))

    def _stream(self) -> tuple[float, float]:
        """Bytes a second that one rank goes through, and how many times as fast all of them do."""
        if self.footprint <= self.cpu.l2_bytes:
            return CORE_CACHE_BYTES_PER_S, self.ranks
        if self.footprint <= self.cpu.last_bytes:
            return LAST_CACHE_BYTES_PER_S, self.ranks
        return MEMORY_BYTES_PER_S, self.ranks / (1 + (self.ranks - 1) / CORES_THAT_FILL_MEMORY)


def work_in(phase: ir.Operation) -> PhaseWork:
    """Raises Unknown."""
    scop = read_scop(phase)
    divided = [loop for loop in scop.loops if SPLIT in loop.op.attributes]
    roams = any(WHERE_IT_LIES in loop.op.attributes for loop in scop.loops)
    return replace(phase_work(scop, divided, reduced_arrays(phase)), roams=roams)


def lying_before(schedule: ir.Operation) -> dict[ir.Value, set[int]]:
    """How arguments of the function lie before the run, of those that say it."""
    found: dict[ir.Value, set[int]] = {}
    for array in map(buffer_of, schedule.operands):
        if not isinstance(array.owner, ir.Block):
            continue
        function = array.owner.owner.operation
        if "arg_attrs" in function.attributes:
            number = ir.BlockArgument(array).arg_number
            told = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[number])
            if LIES in told:
                found[array] = {ir.IntegerAttr(told[LIES]).value}
    return found
