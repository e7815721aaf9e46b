"""How many cycles of a core straight code takes, once and in a loop that is repeated.

Steps of compiled loops -> cycles. An iteration takes as long as the unit that has most to do in it,
or as the longest recurrence that links it with those before: the minimum initiation interval of
modulo scheduling (Rau, Iterative modulo scheduling, MICRO 1994). Loads hit the nearest cache.

    for j: A[j] = (A[j - 1] + B[j]) / c      3 + 13 cycles: sum, quotient; LLVM keeps A[j - 1]
    for j: A[j] = (A[j - 2] + B[j]) / c      (3 + 13 + 7) / 2 cycles: from store to load besides
    for j: A[j] = (C[j - 1] + B[j]) / c      5 / 4 cycles: the divider, on vectors of four
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from avial_lab.compiler.analysis.costs.compiled_loops import (
    FAR,
    LOADS,
    STORES,
    Numbers,
    Step,
    memory_of,
)
from avial_lab.compiler.analysis.costs.weights import weight_of
from avial_lab.machine.constants import (
    ADD_LATENCY_CYCLES,
    DIVISION_CYCLES,
    DIVISION_LATENCY_CYCLES,
    FAR_FUNCTION_CYCLES,
    FMA_LATENCY_CYCLES,
    LINE_BYTES,
    LOAD_ACROSS_LINES_CYCLES,
    LOAD_LATENCY_CYCLES,
    LOADS_PER_CYCLE,
    OPERATIONS_PER_CYCLE,
    STORE_ACROSS_LINES_CYCLES,
    STORE_TO_LOAD_CYCLES,
    VECTOR_UNITS,
)

_TURNS = 12
"""Iterations that are followed to see how fast a recurrence goes on; the first half warms up."""

_DIVISIONS = ("arith.divf", "math.sqrt")
_SUMS = ("arith.addf", "arith.subf")

Place = tuple[int | str, ...]
"""Of an element: its memory's number, and its indices, as far as they are known."""


@dataclass(frozen=True)
class Core:
    """unit_bytes: what each unit for vectors takes at once. own_adders: sums have units of their
    own.
    """

    unit_bytes: int
    own_adders: bool = False

    def once(self, steps: Sequence[Step]) -> float:
        """Cycles of code that nothing overlaps with: until its last result is there."""
        flow = _Flow({}, frozenset(), _fused(steps))
        latest = flow.go(steps)
        return max(latest, self._busiest(steps, [flow.places], frozenset(), 1.0))

    def iteration(
        self, steps: Sequence[Step], carried: Sequence[int], handed: Sequence[int],
        variable: int, by: int, known: Numbers, *, branches: bool,
    ) -> Iteration:  # fmt: skip
        """Of a loop over `variable` in steps of `by`, from its value in `known` on, which is
        changed. carried: what an iteration is handed by the one before it, as `handed` names it
        there. branches: whether `steps` were chosen by conditions.
        """
        flow = _Flow(known, frozenset(carried), _fused(steps))
        places: list[list[Place | None]] = []
        latest: list[float] = []
        for _ in range(_TURNS):
            latest.append(flow.go(steps))
            places.append(flow.places)
            flow.hand_on(carried, handed)
            flow.known[variable] += by
        recurrence = (latest[-1] - latest[_TURNS // 2 - 1]) / (_TURNS // 2)
        made = {result for step in steps for result in step.results}
        invariant = frozenset(
            place
            for step, place, later in zip(steps, places[0], places[1], strict=True)
            if place == later and (_is_known(place) or made.isdisjoint(step.operands))
        )
        lanes = 1.0
        far = any(step.flags.endswith(FAR) for step in steps)
        if not (branches or far) and recurrence < 1 and _unit_strides(steps, places[0], places[1]):
            lanes = self.unit_bytes / max(step.element for step in steps if step.data)
        side_by_side = frozenset[Place]()
        if lanes == 1 and not (branches or far):
            side_by_side = self._side_by_side(steps, places[0])
        alone = max(self._busiest(steps, places, invariant, 1.0, side_by_side), recurrence, 1.0)
        busiest = self._busiest(steps, places, invariant, lanes, side_by_side)
        return Iteration(max(busiest, recurrence), alone, int(lanes))

    def _side_by_side(
        self, steps: Sequence[Step], places: Sequence[Place | None]
    ) -> frozenset[Place]:
        """Elements that LLVM's SLP vectoriser loads or stores as vectors: of rows that are computed
        together, two vectors of them or more, where there is as much of each operation for all.
        Elsewhere none.
        """
        data = [step for step in steps if step.data]
        if not data or any(step.nbytes > step.element for step in data):
            return frozenset()
        lanes = self.unit_bytes // max(step.element for step in data)
        counted = Counter(step.name for step in data if step.name not in (*LOADS, *STORES, *_FREE))
        if lanes < 2 or any(number % lanes for number in counted.values()):
            return frozenset()
        rows: dict[Place, set[int]] = {}
        for place in places:
            if place is not None and _is_known(place) and len(place) > 1:
                rows.setdefault(place[:-1], set()).add(int(place[-1]))
        return frozenset(
            (*row, k)
            for row, found in rows.items()
            for k in found
            if any(
                found.issuperset(range(a, a + 2 * lanes)) for a in range(k - 2 * lanes + 1, k + 1)
            )
        )

    def _busiest(
        self,
        steps: Sequence[Step],
        places: Sequence[Sequence[Place | None]],
        invariant: Collection[Place | None],
        lanes: float,
        side_by_side: Collection[Place | None] = (),
    ) -> float:
        """Cycles of the unit that has most to do. An element is loaded once, and not at all where
        it was just stored, or never changes; of several stores to it the last one is left. places:
        of each turn. side_by_side: what is a lane of a vector, and so all arithmetic.
        """
        packed = self.unit_bytes / max(s.element for s in steps if s.data) if side_by_side else 1.0
        arithmetic = sums = divisions = loads = issued = 0.0
        stores: dict[Place, float] = {}
        there: set[Place | None] = set()
        fused = _fused(steps)
        for step, (place, *later) in zip(steps, zip(*places, strict=True), strict=True):
            wide = max(1.0, step.nbytes / self.unit_bytes) if step.nbytes > step.element else 1.0
            if place is None or place in side_by_side:
                wide /= packed
            elif side_by_side:
                arithmetic += 1  # put into a vector, or taken out of it
            if place is not None:
                across = _across_lines(step, (place, *later), lanes)
                if lanes > 1 and _goes_down(place, later[0]):
                    arithmetic += 1  # its lanes are turned around
                if step.name in STORES:
                    stores[place] = wide + across * STORE_ACROSS_LINES_CYCLES
                elif place not in there and place not in invariant:
                    loads += wide + across * LOAD_ACROSS_LINES_CYCLES * LOADS_PER_CYCLE
                    issued += min(wide, 1)
                there.add(place)
                continue
            if not step.data or (step.results[:1] and step.results[0] in fused):
                continue
            issued += min(wide, 1)
            if step.name in _DIVISIONS:
                divisions += wide * DIVISION_CYCLES
            elif step.name not in _FREE:
                slots = _SLOTS.get(step.name, weight_of(step.name).additions)
                if step.flags.endswith(FAR):
                    slots = VECTOR_UNITS * FAR_FUNCTION_CYCLES
                if self.own_adders and step.name in _SUMS and fused.isdisjoint(step.operands):
                    sums += wide
                else:
                    arithmetic += wide * slots
        busiest = max(
            arithmetic / VECTOR_UNITS,
            sums / VECTOR_UNITS,
            divisions,
            loads / LOADS_PER_CYCLE,
            sum(stores.values()),
            (issued + len(stores)) / OPERATIONS_PER_CYCLE,
        )
        return busiest / lanes


_FREE = ("arith.constant", "vector.broadcast", "arith.sitofp", "memref.prefetch")
"""What another instruction does on its way, or what is done before the loop."""


_SLOTS = {"arith.minimumf": 3, "arith.maximumf": 3}
"""Two of the instruction, which takes the second operand for NaN, and an or of both
(`ieee-min-max`)."""


@dataclass(frozen=True)
class Iteration:
    """Cycles of one among many, and of one that is left over where the others are computed on
    vectors, so many at a time.
    """

    cycles: float
    alone: float
    lanes: int

    def times(self, trips: int) -> float:
        rest = trips % self.lanes
        return (trips - rest) * self.cycles + rest * self.alone


def _fused(steps: Sequence[Step]) -> set[int]:
    """Products that become part of the sum that takes them."""
    taken = {
        operand
        for step in steps
        if step.name in (*_SUMS, "math.fma") and "contract" in step.flags
        for operand in step.operands
    }
    return {
        step.results[0]
        for step in steps
        if step.name == "arith.mulf" and "contract" in step.flags and step.results[0] in taken
    }


def _across_lines(step: Step, places: Sequence[Place | None], lanes: float) -> float:
    """The part of its vectors that lie across two lines of the cache: those of `step` itself at
    these places, or as many elements as `lanes` from the first of them on, again and again.
    """
    nbytes = step.nbytes if step.nbytes > step.element else int(lanes * step.element)
    if nbytes <= step.element:
        return 0.0
    found = [_address(step, place) for place in places if place is not None]
    known = [each % LINE_BYTES for each in found if each is not None]
    if not known:  # any element may be the first
        return (min(nbytes, LINE_BYTES) - step.element) / LINE_BYTES
    if step.nbytes <= step.element:
        return nbytes / LINE_BYTES if known[0] % nbytes else 0.0
    return sum(each + nbytes > LINE_BYTES for each in known) / len(known)


def _place(step: Step, known: Numbers) -> Place:
    """Of the element that it loads or stores, the first one of a vector."""
    found: list[int | str] = [step.operands[memory_of(step.name)]]
    for k, form in enumerate(step.forms[0] if step.forms else ()):
        try:
            found.append(form(known))
        except (KeyError, ZeroDivisionError):
            found.append(f"{step.operands} {k}")
    return tuple(found)


def in_lines(steps: Sequence[Step], known: Numbers) -> tuple[int | None, ...]:
    """Where in a line of the cache each begins that is loaded or stored."""
    found = (_address(step, _place(step, known)) for step in steps if step.strides)
    return tuple(None if each is None else each % LINE_BYTES for each in found)


def _is_known(place: Place | None) -> bool:
    """Whether all of its indices are."""
    return place is not None and not any(isinstance(each, str) for each in place)


def _address(step: Step, place: Place) -> int | None:
    """Of an element, from where its memory begins, which is at a line."""
    if len(step.strides) != len(place) - 1 or not _is_known(place):
        return None
    return sum(s * int(each) for s, each in zip(step.strides, place[1:], strict=True))


def _unit_strides(
    steps: Sequence[Step], now: Sequence[Place | None], then: Sequence[Place | None]
) -> bool:
    """Whether LLVM makes vectors of such a loop: elements beside each other from iteration to
    iteration, up or down, none of them vectors already.
    """
    if any(step.nbytes > step.element for step in steps) or not any(s.data for s in steps):
        return False
    for step, a, b in zip(steps, now, then, strict=True):
        if a is None or b is None:
            continue
        if a[:-1] != b[:-1] or not isinstance(a[-1], int) or not isinstance(b[-1], int):
            return False
        apart = b[-1] - a[-1] if len(a) > 1 else 0
        if abs(apart) != 1 and (apart or step.name in STORES):
            return False
    return True


def _goes_down(now: Place | None, then: Place | None) -> bool:
    """From iteration to iteration, in a loop of unit strides."""
    return now is not None and then is not None and len(now) > 1 and int(now[-1]) > int(then[-1])


@dataclass(frozen=True, slots=True)
class _Stored:
    """A value, from when it is there: in which turn, where and how wide it was stored."""

    ready: float
    turn: int
    place: Place
    nbytes: int


class _Flow:
    """When each value of straight code is there, run again and again. places: of the elements that
    were loaded and stored in the last turn, one for each step. fused: products that are part of
    sums.
    """

    def __init__(self, known: Numbers, carried: frozenset[int], fused: set[int]) -> None:
        self.known, self._carried, self._fused = known, carried, fused
        self._ready: dict[int, float] = {}
        self._stored: dict[Place, _Stored] = {}
        self._turn = 0
        self.places: list[Place | None] = []

    def go(self, steps: Sequence[Step]) -> float:
        """When the last of its values is there."""
        latest, ready, self.places = 0.0, self._ready, []
        self._turn += 1
        for step in steps:
            start = max((ready.get(each, 0.0) for each in step.operands), default=0.0)
            place = _place(step, self.known) if step.name in LOADS or step.name in STORES else None
            self.places.append(place)
            if place is None:
                start += self._latency(step)
                self._compute(step)
            elif step.name in STORES:
                stored = _Stored(start, self._turn, place, step.nbytes)
                self._stored.update(dict.fromkeys(_lanes(step, place), stored))
            else:
                start = self._loaded(step, place, start)
            for result in step.results:
                ready[result] = start
            latest = max(latest, start)
        return latest

    def _loaded(self, step: Step, place: Place, start: float) -> float:
        """When the value is there. One that this turn stored, or the one before, as a whole, is
        still in a register (LLVM's gvn, loop-load-elim).
        """
        found = [self._stored[each] for each in _lanes(step, place) if each in self._stored]
        if found and all(
            (each.place, each.nbytes) == (place, step.nbytes) and self._turn - each.turn <= 1
            for each in found
        ):
            return found[0].ready
        there = [each.ready + STORE_TO_LOAD_CYCLES for each in found]
        return max([start + LOAD_LATENCY_CYCLES, *there])

    def hand_on(self, carried: Sequence[int], handed: Sequence[int]) -> None:
        times = [self._ready.get(each, 0.0) for each in handed]
        self._ready.update(zip(carried, times, strict=True))

    def _compute(self, step: Step) -> None:
        for form in step.forms[0] if step.forms and step.results else ():
            try:
                self.known[step.results[0]] = form(self.known)
            except (KeyError, ZeroDivisionError, ValueError):
                self.known.pop(step.results[0], None)

    def _latency(self, step: Step) -> float:
        if not step.data or step.name in _FREE:
            return 0.0
        if "reassoc" in step.flags and not self._carried.isdisjoint(step.operands):
            return 0.0  # as many partial sums as hide it
        if step.name in _DIVISIONS:
            return DIVISION_LATENCY_CYCLES
        if step.name in _SLOTS:
            return 2 * ADD_LATENCY_CYCLES
        if step.results and step.results[0] in self._fused:
            return 0.0
        if step.name == "math.fma" or not self._fused.isdisjoint(step.operands):
            return FMA_LATENCY_CYCLES
        if step.name.endswith("f"):
            return ADD_LATENCY_CYCLES
        return weight_of(step.name).additions * (
            FMA_LATENCY_CYCLES if step.name.startswith("math.") else 1
        )


def _lanes(step: Step, place: Place) -> Sequence[Place]:
    """Of a vector, each of its elements."""
    lanes = step.nbytes // step.element if step.element else 1
    last = place[-1]
    if lanes <= 1 or len(place) == 1 or isinstance(last, str):
        return (place,)
    return [(*place[:-1], last + lane) for lane in range(lanes)]
