"""How long the loops of each phase or task keep a core busy, as they are compiled.

Module in stage `loops`, threads -> CoreTime of a turn by the phase's name, of a run by the task's.

Control flow is followed as it would run, on the whole iteration space; of a loop with many
iterations only a few are looked at, which stand for all (the midpoint rule).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mlir import ir

from avial_lab.compiler.analysis.costs.compiled_loops import (
    IFS,
    INNER,
    LOOPS,
    Code,
    Numbers,
    Reading,
    Step,
)
from avial_lab.compiler.analysis.costs.core_model import Core, Iteration, in_lines
from avial_lab.compiler.ir.attributes import OF_TASK
from avial_lab.core.runtime_constants import SPACE_WORDS, SpaceWord
from avial_lab.machine.constants import (
    ADDITIONS_WORTH_THREADS,
    BRANCH_MISS_CYCLES,
    CALL_CYCLES,
    LINE_BYTES,
)
from avial_lab.machine.cpu import Cpu
from avial_lab.machine.demand import CoreTime

MOST_STEPS = 200_000
"""Blocks that are gone through before a phase counts as too much to look at."""

ALL_OF = 6
"""So many iterations of a loop are all looked at."""

MIDDLES = (1 / 6, 1 / 2, 5 / 6)
"""Of a loop with more: each stands for a third of them."""

UNROLLED = 8
"""Iterations of a loop of known length that LLVM writes out."""

TERMINATORS = ("affine.yield", "scf.yield", "omp.yield", "omp.terminator", "func.return")


class _Unknown(Exception):
    """How often a loop of a phase runs is only known when it does."""


def core_times(module: ir.Operation, entry: str, threads: int, cpu: Cpu) -> dict[str, CoreTime]:
    """Of one turn of each phase, in the mean of all. A phase with a loop whose end is not known is
    not in it.
    """
    run = _Run(Reading(module), threads, Core(cpu.unit_bytes, cpu.own_adders))
    run.function(entry)
    return run.found()


def core_times_of_tasks(
    module: ir.Operation, entry: str, shared: Mapping[str, Iterable[str]], threads: int, cpu: Cpu
) -> dict[str, CoreTime]:
    """Of each task that the entry calls. shared: of a function that several tasks call, by the task
    that it is named after: those, in the order of the calls. Each gives it numbers of its own.
    """
    tasks = {name: iter(names) for name, names in shared.items()}
    run = _Run(Reading(module), threads, Core(cpu.unit_bytes, cpu.own_adders), tasks)
    run.function(entry)
    return run.found()


class _Run:
    """reading: the functions. Values have different numbers everywhere, so that what is known of
    all of them is in one table. tasks: who calls a function that several do, in turn; None where
    functions are not tasks but phases.
    """

    def __init__(
        self,
        reading: Reading,
        threads: int,
        core: Core,
        tasks: Mapping[str, Iterator[str]] | None = None,
    ) -> None:
        self.reading, self._threads, self._core, self._tasks = reading, threads, core, tasks
        self._called: dict[tuple[str, tuple[int | None, ...]], CoreTime] = {}
        self._known: Numbers = {}
        self._words: dict[tuple[int, int], int] = {}  # of control memory, by its number and index
        self._memory: dict[int, int] = {}  # what a pointer points at
        self._globals: dict[int, str] = {}
        self._space = -1
        self._weight = 1.0
        self._phase: str | None = None
        self._looked = 0
        self._sums: dict[str, tuple[CoreTime, float]] = {}
        self._unknown: set[str] = set()
        self._once: dict[int, float] = {}
        self._iterations: dict[tuple[int, tuple[int, ...], tuple[int | None, ...]], Iteration] = {}

    def found(self) -> dict[str, CoreTime]:
        return {
            name: time.times(1 / weight)
            for name, (time, weight) in self._sums.items()
            if weight and name not in self._unknown
        }

    def function(self, name: str) -> CoreTime:
        code = self.reading.function(name)
        return CoreTime() if code is None else self._code(code)

    def _code(self, code: Code) -> CoreTime:
        self._looked += 1
        if self._looked > MOST_STEPS:
            raise _Unknown
        if id(code) not in self._once:
            straight = [s for s in code.steps if not s.blocks and s.name not in INNER]
            self._once[id(code)] = self._core.once(straight)
        total = CoreTime(self._once[id(code)])
        for step in code.steps:
            total += self._step(step)
        return total

    def _step(self, step: Step) -> CoreTime:
        if step.name in LOOPS:
            return self._loop(step)
        if step.name in IFS:
            branch = self._branch(step)
            return self._code(step.blocks[branch]) if branch < len(step.blocks) else CoreTime()
        if step.name == "func.call":
            return self._call(step)
        if step.name == "omp.parallel":
            return CoreTime(0.0, 1.0) + self._code(step.blocks[0])
        if step.name == "omp.wsloop":
            return self._shared(step)
        if step.blocks:
            return sum((self._code(code) for code in step.blocks), CoreTime())
        self._compute(step)
        return CoreTime()

    # Loops ---------------------------------------------------------------------------------------

    def _ends(self, step: Step) -> tuple[int, int, int] | None:
        """First value, step and number of iterations."""
        try:
            low, high, by = (forms[0](self._known) for forms in step.forms)
        except (KeyError, ZeroDivisionError):
            return None
        return low, by, max(0, -(-(high - low) // by)) if by > 0 else 0

    def _loop(self, step: Step) -> CoreTime:
        ends = self._ends(step)
        if ends is None:
            if self._phase is not None:
                raise _Unknown
            return self._code(step.blocks[0])
        low, by, trips = ends
        body = step.blocks[0]
        chosen = list(_chosen(trips))
        if not chosen:
            return CoreTime()
        total, weight = CoreTime(), self._weight
        self._weight *= trips / len(chosen)
        for k in chosen:
            self._known[body.arguments[0]] = low + k * by
            branches: list[int] = []
            # (Control code is gone through once: it changes what is in memory.)
            steps = None if self._phase is None else self._taken(body, branches)
            if steps is None:
                total += self._code(body).times(trips / len(chosen))
            else:
                start = low + (k - k % LINE_BYTES) * by  # vectors begin there as at `low`
                each = self._innermost(step, steps, branches, start, by).times(trips)
                leaving = BRANCH_MISS_CYCLES if trips > UNROLLED else 0
                total += CoreTime((each + leaving) / len(chosen))
        self._weight = weight
        return total

    def _innermost(
        self, step: Step, steps: Sequence[Step], branches: Sequence[int], start: int, by: int
    ) -> Iteration:
        """Of a loop in whose iterations none is, and which go as this one, from `start` on."""
        body = step.blocks[0]
        key = id(step), tuple(branches), in_lines(steps, self._known)
        if key not in self._iterations:
            variable, *carried = body.arguments
            handed = body.steps[-1].operands[: len(carried)]
            self._iterations[key] = self._core.iteration(
                steps, carried[: len(handed)], handed, variable, by,
                self._known | {variable: start}, branches=bool(branches),
            )  # fmt: skip
        return self._iterations[key]

    def _taken(self, code: Code, branches: list[int]) -> list[Step] | None:
        """The operations of an iteration, with those of the branches that are taken; None where a
        loop is among them.
        """
        if any(step.name in INNER for step in code.steps):
            return None
        found: list[Step] = []
        for step in code.steps:
            if step.name in IFS:
                branch = self._branch(step)
                branches.append(branch)
                if branch < len(step.blocks):
                    taken = self._taken(step.blocks[branch], branches)
                    if taken is None:
                        return None
                    found += taken
            elif step.name not in TERMINATORS:
                self._compute(step)
                found.append(step)
        return found

    def _branch(self, step: Step) -> int:
        """Of a condition that hangs on data the first; of versions by argument the nearer one."""
        try:
            return int(not step.forms[0][0](self._known))
        except (KeyError, ZeroDivisionError, IndexError):
            return int(len(step.blocks) == 2 and step.blocks[0].far and not step.blocks[1].far)

    def _shared(self, step: Step) -> CoreTime:
        """A loop divided among threads: the one with most iterations is the last."""
        nest = step.blocks[0].steps[0]
        whole, ends = self._code(step.blocks[0]), self._ends(nest)
        trips = ends[2] if ends is not None else 0
        return whole.times(-(-trips // self._threads) / trips) if trips else whole

    # Calls and control ---------------------------------------------------------------------------

    def _call(self, step: Step) -> CoreTime:
        code = self.reading.function(step.callee)
        if code is None:
            return CoreTime()
        for argument, operand in zip(code.arguments, step.operands, strict=True):
            self._known.pop(argument, None)
            if operand in self._known:
                self._known[argument] = self._known[operand]
        phase = self.reading.attribute(step.callee, OF_TASK)
        if phase is None:
            return self._code(code) + CoreTime(CALL_CYCLES)
        if self._tasks is not None and phase in self._tasks:
            phase = next(self._tasks[phase])
        self._phase, self._looked = phase, 0
        try:
            time, weight = self._sums.get(phase, (CoreTime(), 0.0))
            once = self._code(code) if self._tasks is None else self._task(step, code)
            self._sums[phase] = time + once.times(self._weight), weight + self._weight
        except _Unknown:
            self._unknown.add(phase)
        self._phase = None
        return CoreTime()

    def _task(self, step: Step, code: Code) -> CoreTime:
        """Gone through once for all that give its function the same numbers."""
        key = step.callee, tuple(map(self._known.get, step.operands))
        if key not in self._called:
            self._called[key] = self._code(code)
        return self._called[key]

    def _compute(self, step: Step) -> None:
        if step.name in _CONTROL:
            getattr(self, _CONTROL[step.name])(step)
        elif step.forms and step.results and step.forms[0]:
            result = step.results[0]
            try:
                self._known[result] = step.forms[0][0](self._known)
            except (KeyError, ZeroDivisionError, ValueError):
                self._known.pop(result, None)
            if step.operands and step.operands[0] in self._memory:
                self._memory[result] = self._memory[step.operands[0]]

    def _address(self, step: Step) -> None:
        self._globals[step.results[0]] = step.callee

    def _read_global(self, step: Step) -> None:
        known = {"avial_threads": self._threads, "avial_worth": ADDITIONS_WORTH_THREADS}
        name = self._globals.get(step.operands[0], "")
        if name in known:
            self._known[step.results[0]] = known[name]

    def _pointer(self, step: Step) -> None:
        """(Arrays begin at a line of the cache.)"""
        self._known[step.results[0]] = 0
        self._memory[step.results[0]] = self._memory.get(step.operands[0], step.operands[0])

    def _stored_word(self, step: Step) -> None:
        value, memory, *index = step.operands
        if len(index) == 1 and index[0] in self._known:
            place = memory, self._known[index[0]]
            self._words.pop(place, None)
            if value in self._known:
                self._words[place] = self._known[value]

    def _loaded_word(self, step: Step) -> None:
        memory, *index = step.operands
        self._known.pop(step.results[0], None)
        if len(index) == 1 and index[0] in self._known:
            word = self._words.get((memory, self._known[index[0]]))
            if word is not None:
                self._known[step.results[0]] = word

    def _runtime(self, step: Step) -> None:
        """What the ownership runtime says: one range, of all iterations."""
        if step.callee == "avial_begin":
            self._space = self._memory.get(step.operands[4], -1)
        if step.callee == "avial_range":
            memory = self._memory.get(step.operands[1], -1)
            for k in range(4):
                word = (SpaceWord.LOWER, SpaceWord.UPPER)[k % 2] + SPACE_WORDS * (k // 2)
                if (self._space, word) in self._words:
                    self._words[memory, k] = self._words[self._space, word]
        for result in step.results:
            self._known[result] = 1


_CONTROL = {
    "llvm.mlir.addressof": "_address",
    "llvm.load": "_read_global",
    "memref.extract_aligned_pointer_as_index": "_pointer",
    "llvm.inttoptr": "_pointer",
    "memref.store": "_stored_word",
    "memref.load": "_loaded_word",
    "llvm.call": "_runtime",
}


def _chosen(trips: int) -> Iterator[int]:
    """The iterations that are looked at."""
    yield from range(trips) if trips <= ALL_OF else (int(part * trips) for part in MIDDLES)
