"""What the caller's process and the compiler's process say to each other.

Questions and answers are plain frozen dataclasses: neither MLIR objects nor the user's own classes
cross over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.explanation import LoopReport, Nest
from avial_lab.artifact.plan import Plan
from avial_lab.artifact.stages import Inside, Stage
from avial_lab.compiler.options import CompileOptions
from avial_lab.core.buffers import Binding
from avial_lab.core.errors import CellSpan
from avial_lab.core.words import brief, count, format_seconds, listed
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.topology import Topology
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.graph_facts import graph_summary
from avial_lab.planning.model_costs import ModelCosts
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import Access, TaskGraph
from avial_lab.planning.turns import Turns

Scalar = bool | int | float


@dataclass(frozen=True)
class Source:
    """A program as the caller has it: its text, the cell it stands in, and what its buffers are
    bound to.

    Without a binding every buffer has to be typed in place. `function` is the one that is meant
    where the text holds plain functions, None for the only one there is. `parallel` says how one
    on tensors is divided over devices (`planning/parallelism.py`), after it was made to return the
    derivatives of its first result by the arguments that `gradient` names, or these arguments as
    the optimizer `update` changes them (`planning/optimizers.py`). `ignore`: what
    types of arrays say ("dist", "device") and is not looked at. `written`: what the person wrote,
    where the text was made of that, and its places are places in it.
    """

    text: str
    cell: str
    binding: Binding | None = None
    scalars: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    function: str | None = None
    parallel: str = ""
    gradient: str = ""
    update: str = ""
    ignore: tuple[str, ...] = ()
    written: str = ""

    @property
    def shown(self) -> str:
        """What its places are places in."""
        return self.written or self.text

    def __repr__(self) -> str:
        given = [buffer.name for buffer in self.binding.buffers] if self.binding else []
        given += [f"{name}={value}" for name, value in self.scalars.items()]
        words = f"of {self.cell}: {count(len(self.text.splitlines()), 'line')}"
        return brief(self, f"{words}, with {listed(given)}" if given else words)


@dataclass(frozen=True)
class Analyse:
    """Ask: what are the tasks and their dependencies? Answer: `Analysis`."""

    source: Source


@dataclass(frozen=True)
class Analysis:
    """seconds by what took them."""

    graph: TaskGraph
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        took = format_seconds(sum(self.seconds.values()))
        return brief(self, f"in {took}: {graph_summary(self.graph)}")


@dataclass(frozen=True)
class Build:
    """Ask: lower the program for these devices and build its binary. Answer: `Built`.

    With a topology `ranks` and `gpus` of the options are not looked at. With `whole`, a plain
    function is one task, for that reason. chips: of the GPUs of this machine that programs are to
    run on; where there are none GPUs are emulated.
    """

    source: Source
    topology: Topology | None = None
    options: CompileOptions = field(default_factory=CompileOptions)
    whole: str = ""
    chips: tuple[str, ...] = ()

    def __repr__(self) -> str:
        options = self.options
        ranks = options.ranks if self.topology is None else self.topology.ranks
        how = f"policy {options.policy.value}, " if options.policy is not None else ""
        how += f"sync {options.sync.value}, division {options.division}"
        return brief(self, f"for {count(ranks, 'rank')}, {how}, of {self.source!r}")


ANY_SIZE = "compiled for arrays of any size, and any numbers"
"""What is said of a program that is."""


@dataclass(frozen=True)
class Built:
    """`plan` and `reports` are those of a structured program: what its runs will move, and why its
    loops became what they are. `contracted`: products are fused with the sums that they go into.
    `reordered`: storages whose values hang on floating-point sums in another order, with the number
    of terms. `functions`: elementary ones that have code of their own in place of libm's. `sizes`:
    whether a program that was asked for `dynamic` is, in a sentence. `fault`: what failed in the
    compiler, and what was done without for that. `divided`: of tensors on several devices, what
    moves and what devices hold. `between`: what is written outside of all tasks.
    """

    schedule: Schedule
    stages: tuple[Stage, ...]
    binary: Binary
    seconds: Mapping[str, float]
    plan: Plan | None = None
    reports: tuple[LoopReport, ...] = ()
    reordered: Mapping[str, int] = field(default_factory=dict[str, int])
    contracted: bool = False
    functions: tuple[str, ...] = ()
    sizes: str = ""
    fault: str = ""
    divided: tuple[str, ...] = ()
    between: tuple[Access, ...] = ()

    @property
    def written(self) -> Iterator[Access]:
        """All that the program may write."""
        for task in self.schedule.graph.tasks:
            yield from task.writes
        yield from self.between

    @property
    def dynamic(self) -> bool:
        """Whether its code is for arrays of any size and any numbers."""
        return self.sizes == ANY_SIZE

    def __repr__(self) -> str:
        took = format_seconds(sum(self.seconds.values()))
        what = f"{graph_summary(self.schedule.graph, self.schedule)}; binary {self.binary.summary}"
        return brief(self, f"in {took}: {what}")


@dataclass(frozen=True)
class Resume:
    """Ask: what becomes of a program with this text in place of a stage's? Answer: `Built`.

    `built` is the answer that the question `build` had, or one to an earlier Resume.
    """

    build: Build
    built: Built
    stage: str
    text: str

    def __repr__(self) -> str:
        size = count(len(self.text.splitlines()), "line")
        return brief(self, f"from {size} in place of stage {self.stage}, of {self.build.source!r}")

    @property
    def source(self) -> Source:
        """What its errors are told in."""
        return Source(self.text, f"stage {self.stage}", self.build.source.binding)


@dataclass(frozen=True)
class Look:
    """Ask: what are the stages of this program made of? Answer: `Inside`.

    `built` is the answer that the question `build` had. With `after`, of the stages from the edited
    one on, their lines' origins being lines of that.
    """

    build: Build
    built: Built
    after: Resume | None = None

    def __repr__(self) -> str:
        return brief(self, f"at {self.build.source!r}")

    @property
    def source(self) -> Source:
        return self.build.source


@dataclass(frozen=True)
class Weigh:
    """Ask: what does each task of a program of tasks ask of the machine? Answer: `Weighed`."""

    source: Source


@dataclass(frozen=True)
class Weighed:
    """`demands` by the task's name, of those whose iterations are known. runs: how often each is
    run; without those in a loop whose end is not a number.
    """

    demands: Mapping[str, Demand]
    runs: Mapping[str, float] = field(default_factory=dict[str, float])

    def __repr__(self) -> str:
        return brief(self, f"{count(len(self.demands), 'task')}")


@dataclass(frozen=True)
class TimeLoops:
    """Ask: how long do the loops of a program's stage `loops` keep a core busy, or so many threads?
    Answer: `LoopTimes`.
    """

    source: Source
    text: str = field(repr=False)
    entry: str
    threads: int

    def __repr__(self) -> str:
        return brief(self, f"by {count(self.threads, 'thread')}: {self.source!r}")


@dataclass(frozen=True)
class LoopTimes:
    """By the name of the phase, of those whose iterations are known: the mean of its turns."""

    phases: Mapping[str, CoreTime]

    def __repr__(self) -> str:
        return brief(self, f"of {count(len(self.phases), 'phase')}")


@dataclass(frozen=True)
class TimeTasks:
    """Ask: how long do the loops of each task of a program, compiled with these options, keep a
    core busy, or each of these numbers of threads? Answer: `TaskTimes`.
    """

    source: Source
    options: CompileOptions
    threads: tuple[int, ...]

    def __repr__(self) -> str:
        return brief(self, f"by {listed(list(map(str, self.threads)))} threads: {self.source!r}")


@dataclass(frozen=True)
class TaskTimes:
    """By the number of threads and by the name of the task, of those whose iterations are known."""

    tasks: Mapping[int, Mapping[str, CoreTime]]

    def __repr__(self) -> str:
        return brief(self, f"of {count(max(map(len, self.tasks.values()), default=0), 'task')}")


@dataclass(frozen=True)
class WeighLayers:
    """Ask: what do the layers of a function on tensors cost? Answer: `ModelCosts`."""

    source: Source


@dataclass(frozen=True)
class Simulate:
    """Ask: what would happen if a function were divided as its source says? Answer: `Simulated`."""

    source: Source
    topology: Topology


@dataclass(frozen=True)
class Foresee:
    """Ask: what would such a function do when, and hold? Answer: `Foreseen`."""

    source: Source
    topology: Topology


@dataclass(frozen=True)
class Simulated:
    """By events: seconds of a run, bytes that each rank holds, bytes that go between ranks."""

    seconds: float
    held_bytes: tuple[int, ...]
    moved_bytes: int

    def __repr__(self) -> str:
        return brief(self, f"{format_seconds(self.seconds)}, {self.moved_bytes:,} B moved")


@dataclass(frozen=True)
class Export:
    """Ask: what is a function on tensors in ONNX? Answer: `Exported`.

    names: what arguments and results (`result0` …) are called there, where not as in the text.
    """

    source: Source
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        return brief(self, f"of {self.source!r}")


@dataclass(frozen=True)
class Exported:
    """A ModelProto, as bytes; arrays of arguments are not in it."""

    model: bytes = field(repr=False)

    def __repr__(self) -> str:
        return brief(self, f"{len(self.model):,} B")


@dataclass(frozen=True)
class Walk:
    """Ask: what does every rank of a program of loops do, turn by turn? Answer: `Turns`.

    `built` is the answer that the question `build` had; without it the program is lowered for this.
    A loop whose end depends on data takes `trips` turns.
    """

    build: Build
    built: Built | None = None
    trips: int = 2

    def __repr__(self) -> str:
        return brief(self, f"through {self.build!r}, {count(self.trips, 'trip')}")

    @property
    def source(self) -> Source:
        return self.build.source


@dataclass(frozen=True)
class Propose:
    """Ask: with which arguments can the plain function be tried? Answer: `Proposal`.

    `given`: the shapes of the arrays that there are.
    """

    source: Source
    given: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Argument:
    """An argument of a plain function: an array of that shape, or a number (`shape` None).

    `element` is MLIR's type; `value` an integer's, None where any will do.
    """

    name: str
    element: str
    shape: tuple[int, ...] | None
    value: int | None = None


@dataclass(frozen=True)
class Proposal:
    """Every argument that has no number in the source yet, in order."""

    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Explore:
    """Ask: which iterations of the nests need which? Answer: `Explored`.

    With `grid`, of the nests as they are where a second loop is divided too.
    """

    source: Source
    grid: bool = False


@dataclass(frozen=True)
class Explored:
    nests: tuple[Nest, ...]


@dataclass(frozen=True)
class PrintBack:
    """Ask: how does the program read in the short notation? Answer: `Printed`.

    A plain function is shown as the tasks that it becomes; with `grid`, where a second loop of each
    nest is divided too.
    """

    source: Source
    grid: bool = False


@dataclass(frozen=True)
class Printed:
    text: str

    def __repr__(self) -> str:
        return brief(self, f"back in {count(len(self.text.splitlines()), 'line')}")


@dataclass(frozen=True)
class RunReference:
    """Ask: run the program in program order on these storages, checking every index where `bounds`
    are to be. Answer: `Referenced`.

    `strict` as in `CompileOptions`: the reference of a run has that run's arithmetic.

    `journal` is a file of one 64-bit word that keeps the number of the task that runs: what a task
    does may end the compiler's process.
    """

    source: Source
    data: Mapping[str, np.ndarray]
    journal: str | None = None
    strict: bool = False
    bounds: bool = True

    def __repr__(self) -> str:
        return brief(self, f"on {listed(list(self.data))} {self.source!r}")


@dataclass(frozen=True)
class Violation:
    """An access outside its buffer that the reference run met first, or an assertion that does not
    hold (`message` is its text).
    """

    message: str
    span: CellSpan | None
    asserted: bool = False


@dataclass(frozen=True)
class Referenced:
    """Every storage after the run; `ended` says what ended it too early: `killed by SIGFPE`."""

    data: Mapping[str, np.ndarray]
    violations: tuple[Violation, ...]
    seconds: float
    ended: str = ""

    def __repr__(self) -> str:
        outside = [found for found in self.violations if not found.asserted]
        left = f", {count(len(outside), 'access')} out of bounds" * bool(outside)
        took = format_seconds(self.seconds)
        return brief(self, f"run of {took}: values of {listed(list(self.data)) or 'nothing'}{left}")


Question = (
    Analyse
    | Build
    | Explore
    | Export
    | Look
    | PrintBack
    | Propose
    | Resume
    | RunReference
    | Foresee
    | Simulate
    | TimeLoops
    | TimeTasks
    | Walk
    | Weigh
    | WeighLayers
)
Answer = (
    Analysis | Built | Explored | Exported | Foreseen | Inside | LoopTimes | ModelCosts | Printed
    | Proposal | Referenced | Simulated | TaskTimes | Turns | Weighed
)  # fmt: skip
