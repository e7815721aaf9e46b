"""How many cycles of a core straight code takes, once and in a loop that is repeated.

Steps of compiled loops -> cycles. An iteration takes as long as the unit that has most to do in it,
or as the longest recurrence that links it with those before: the minimum initiation interval of
modulo scheduling (Rau, Iterative modulo scheduling, MICRO 1994). Loads hit the nearest cache.

    for j: A[j] = (A[j - 1] + B[j]) / c      4 + 13 + 5 cycles: sum, quotient, from store to load
    for j: A[j] = (C[j - 1] + B[j]) / c      5 / 4 cycles: the divider, on vectors of four
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from avial_lab.compiler.analysis.costs.compiled_loops import FAR, LOADS, STORES, Numbers, Step
from avial_lab.compiler.analysis.costs.weights import weight_of
from avial_lab.machine.constants import (
    DIVISION_CYCLES,
    DIVISION_LATENCY_CYCLES,
    FAR_FUNCTION_CYCLES,
    FMA_LATENCY_CYCLES,
    LOAD_LATENCY_CYCLES,
    LOADS_PER_CYCLE,
    OPERATIONS_PER_CYCLE,
    STORE_TO_LOAD_CYCLES,
    VECTOR_UNITS,
)

_TURNS = 12
"""Iterations that are followed to see how fast a recurrence goes on; the first half warms up."""

_DIVISIONS = ("arith.divf", "math.sqrt")
_SUMS = ("arith.addf", "arith.subf", "math.fma")

Place = tuple[int | str, ...]
"""Of an element: its memory's number, and its indices, as far as they are known."""


@dataclass(frozen=True)
class Core:
    """unit_bytes: what each unit for vectors takes at once."""

    unit_bytes: int

    def once(self, steps: Sequence[Step]) -> float:
        """Cycles of code that nothing overlaps with: until its last result is there."""
        flow = _Flow({}, frozenset())
        latest = flow.go(steps)
        return max(latest, self._busiest(steps, flow.places, frozenset(), 1.0))

    def iteration(
        self, steps: Sequence[Step], carried: Sequence[int], handed: Sequence[int],
        variable: int, by: int, known: Numbers, *, branches: bool,
    ) -> Iteration:  # fmt: skip
        """Of a loop over `variable` in steps of `by`, from its value in `known` on. carried: what
        an iteration is handed by the one before it, as `handed` names it there. branches: whether
        `steps` were chosen by conditions.
        """
        flow = _Flow(dict(known), frozenset(carried))
        places: list[list[Place | None]] = []
        latest: list[float] = []
        for _ in range(_TURNS):
            latest.append(flow.go(steps))
            places.append(flow.places)
            flow.hand_on(carried, handed)
            flow.known[variable] += by
        recurrence = (latest[-1] - latest[_TURNS // 2 - 1]) / (_TURNS // 2)
        invariant = frozenset(
            place for place, later in zip(places[0], places[1], strict=True) if place == later
        )
        lanes = 1.0
        far = any(step.flags.endswith(FAR) for step in steps)
        if not (branches or far) and recurrence < 1 and _unit_strides(steps, places[0], places[1]):
            lanes = self.unit_bytes / max(step.element for step in steps if step.data)
        alone = max(self._busiest(steps, places[0], invariant, 1.0), recurrence, 1.0)
        return Iteration(max(self._busiest(steps, places[0], invariant, lanes), recurrence),
                         alone, int(lanes))  # fmt: skip

    def _busiest(
        self,
        steps: Sequence[Step],
        places: Sequence[Place | None],
        invariant: Collection[Place | None],
        lanes: float,
    ) -> float:
        """Cycles of the unit that has most to do. An element is loaded once, and not at all where
        it was just stored, or never changes.
        """
        arithmetic = divisions = loads = stores = issued = 0.0
        there: set[Place | None] = set()
        fused = _fused(steps)
        for step, place in zip(steps, places, strict=True):
            wide = max(1.0, step.nbytes / self.unit_bytes) if step.nbytes > step.element else 1.0
            if place is not None:
                if step.name in STORES:
                    stores += wide
                    issued += 1
                elif place not in there and place not in invariant:
                    loads += wide
                    issued += 1
                there.add(place)
                continue
            if not step.data or (step.results[:1] and step.results[0] in fused):
                continue
            issued += 1
            if step.name in _DIVISIONS:
                divisions += wide * DIVISION_CYCLES
            elif step.name not in _FREE:
                slots = _SLOTS.get(step.name, weight_of(step.name).additions)
                if step.flags.endswith(FAR):
                    slots = VECTOR_UNITS * FAR_FUNCTION_CYCLES
                arithmetic += wide * slots
        busiest = max(
            arithmetic / VECTOR_UNITS,
            divisions,
            loads / LOADS_PER_CYCLE,
            stores,
            issued / OPERATIONS_PER_CYCLE,
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
        if step.name in _SUMS and "contract" in step.flags
        for operand in step.operands
    }
    return {
        step.results[0]
        for step in steps
        if step.name == "arith.mulf" and "contract" in step.flags and step.results[0] in taken
    }


def _unit_strides(
    steps: Sequence[Step], now: Sequence[Place | None], then: Sequence[Place | None]
) -> bool:
    """Whether LLVM makes vectors of such a loop: elements beside each other from iteration to
    iteration, none of them vectors already.
    """
    if any(step.nbytes > step.element for step in steps) or not any(s.data for s in steps):
        return False
    for step, a, b in zip(steps, now, then, strict=True):
        if a is None or b is None:
            continue
        if a[:-1] != b[:-1] or not isinstance(a[-1], int) or not isinstance(b[-1], int):
            return False
        apart = b[-1] - a[-1] if len(a) > 1 else 0
        if apart != 1 and (apart or step.name in STORES):
            return False
    return True


class _Flow:
    """When each value of straight code is there, run again and again. places: of the elements that
    were loaded and stored in the last turn, one for each step.
    """

    def __init__(self, known: Numbers, carried: frozenset[int]) -> None:
        self.known, self._carried = known, carried
        self._ready: dict[int, float] = {}
        self._stored: dict[Place, float] = {}
        self.places: list[Place | None] = []

    def go(self, steps: Sequence[Step]) -> float:
        """When the last of its values is there."""
        latest, ready, self.places = 0.0, self._ready, []
        for step in steps:
            start = max((ready.get(each, 0.0) for each in step.operands), default=0.0)
            place = self._place(step) if step.name in LOADS or step.name in STORES else None
            self.places.append(place)
            if place is None:
                start += self._latency(step)
                self._compute(step)
            elif step.name in STORES:
                for each in _lanes(step, place):
                    self._stored[each] = start + STORE_TO_LOAD_CYCLES
            else:
                there = (self._stored.get(each, 0.0) for each in _lanes(step, place))
                start = max(start + LOAD_LATENCY_CYCLES, *there)
            for result in step.results:
                ready[result] = start
            latest = max(latest, start)
        return latest

    def hand_on(self, carried: Sequence[int], handed: Sequence[int]) -> None:
        times = [self._ready.get(each, 0.0) for each in handed]
        self._ready.update(zip(carried, times, strict=True))

    def _compute(self, step: Step) -> None:
        for form in step.forms[0] if step.forms and step.results else ():
            try:
                self.known[step.results[0]] = form(self.known)
            except (KeyError, ZeroDivisionError, ValueError):
                self.known.pop(step.results[0], None)

    def _place(self, step: Step) -> Place:
        memory = step.operands[0 if step.name in LOADS or "masked" in step.name else 1]
        found: list[int | str] = [memory]
        for k, form in enumerate(step.forms[0] if step.forms else ()):
            try:
                found.append(form(self.known))
            except (KeyError, ZeroDivisionError):
                found.append(f"{step.operands} {k}")
        return tuple(found)

    def _latency(self, step: Step) -> float:
        if not step.data or step.name in _FREE:
            return 0.0
        if "reassoc" in step.flags and not self._carried.isdisjoint(step.operands):
            return 0.0  # as many partial sums as hide it
        if step.name in _DIVISIONS:
            return DIVISION_LATENCY_CYCLES
        if step.name in _SLOTS:
            return 2 * FMA_LATENCY_CYCLES
        if step.name.endswith(("f", "fma")):
            return FMA_LATENCY_CYCLES
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
