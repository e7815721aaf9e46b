"""Loop report, and why: the answers that `program.explain()` and `program.nests` give.

Facts for people; no MLIR.
"""

from __future__ import annotations

import enum
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from avial_lab.core.errors import CellSpan, RenamedWarning
from avial_lab.core.table import ROW_LIMIT, Table, left_out
from avial_lab.core.words import MOST_ROWS, brief, count
from avial_lab.machine.demand import Demand
from avial_lab.planning.task_graph import TaskKind


@dataclass(frozen=True)
class LoopReport:
    """What one part of a program became: `depth` counts the converges around it.

    reasons: of a replicate how it is divided, of a converge or task what forbids to divide it.
    done: what each pass made of its loops on a rank, or why it left them. demand: what one
    execution of it asks for, where that is known; model: what the machine makes of that.
    """

    name: str
    kind: TaskKind
    depth: int
    reasons: tuple[str, ...]
    span: CellSpan | None = None
    done: tuple[str, ...] = ()
    demand: Demand | None = None
    model: str = ""

    @property
    def title(self) -> str:
        return _TITLES[self.kind]

    def __str__(self) -> str:
        place = f"line {self.span.line}" if self.span is not None else ""
        head = f"{'  ' * self.depth}{self.name}  {place}  {self.title}"
        model = (f"model: {self.model}",) if self.model else ()
        lines = (*self.reasons, *(f"· {line}" for line in self.done), *model)
        return "\n".join([head, *(f"{'  ' * self.depth}    {line}" for line in lines)])

    def __repr__(self) -> str:
        return brief(self, f"on {self.headline}", self.reasons, len(self.reasons))

    @property
    def headline(self) -> str:
        place = f" (line {self.span.line})" if self.span is not None else ""
        return f"{self.name}{place}: {self.title}"


_TITLES = {
    TaskKind.REPLICATE: "divided over the ranks",
    TaskKind.CONVERGE: "in order on every rank, with work inside",
    TaskKind.TASK: "in order on one rank",
}


@dataclass(frozen=True)
class Explanation:
    """The reports on a program's parts, in textual order, a sentence on how it rounds, what tuning
    chose, whether its code is for any sizes, what failed in the compiler, and of tensors on several
    devices what moves and what devices hold; its text is what a cell prints.
    """

    reports: tuple[LoopReport, ...]
    arithmetic: str = ""
    choice: Choice | None = None
    sizes: str = ""
    fault: str = ""
    divided: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[LoopReport, ...]:
        """As `reports` was called before."""
        warnings.warn("Explanation.verdicts is called reports now", RenamedWarning, stacklevel=2)
        return self.reports

    @property
    def summary(self) -> str:
        """`2 divided over the ranks, 1 in order on every rank, 0 on one rank`."""
        kinds = [report.kind for report in self.reports]
        return (
            f"{kinds.count(TaskKind.REPLICATE):,} divided over the ranks, "
            f"{kinds.count(TaskKind.CONVERGE):,} in order on every rank, "
            f"{kinds.count(TaskKind.TASK):,} on one rank"
        )

    def __str__(self) -> str:
        lines = list(map(str, self.reports))
        if not lines:
            lines = ["the program is made of tasks, each on the device its target asks for"]
        lines += self.divided
        if self.arithmetic:
            lines.append(f"arithmetic  {self.arithmetic}")
        if self.sizes:
            lines.append(f"sizes       {self.sizes}")
        if self.choice is not None:
            lines.append(str(self.choice))
        if self.fault:
            lines.append(self.fault)
        return "\n".join(lines)

    def __repr__(self) -> str:
        if not self.reports:
            return brief(self, "of tasks, each on the device its target asks for")
        rows = (report.headline for report in self.reports[:MOST_ROWS])
        words = f"of {count(len(self.reports), 'part')}: {self.summary}"
        return brief(self, words, rows, len(self.reports))


def arithmetic_told(
    *,
    strict: bool,
    contracted: bool,
    reordered: Mapping[str, int],
    functions: Sequence[str] = (),
) -> str:
    """How a program rounds: `reordered` are the arrays with sums of so many terms at most,
    `functions` those that are not libm's.

    >>> arithmetic_told(strict=False, contracted=True, reordered={"y": 124})
    'a product that is only added is fused with the sum; y (a sum of 124 terms) in another order'
    >>> arithmetic_told(strict=False, contracted=False, reordered={}, functions=["exp"])[-44:]
    'exp in loops is vector code in place of libm'
    """
    if strict:
        return "strict: every operation is rounded separately, in the program's order"
    said = "every operation is rounded separately"
    if contracted:
        said = "a product that is only added is fused with the sum"
    if reordered:
        sums = ", ".join(f"{name} (a sum of {k:,} terms)" for name, k in reordered.items())
        said = f"{said}; {sums} in another order"
    else:
        said = f"{said}, in the program's order"
    if functions:
        verb = "is" if len(functions) == 1 else "are"
        said += f"; {', '.join(functions)} in loops {verb} vector code in place of libm"
    return said


# What tuning chose --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """An alternative to the model's choice: `ratio` is how many times as fast it was as the best
    until then, the median of runs in turn; `noise` what that may be off.
    """

    what: str
    seconds: float
    ratio: float
    noise: float
    kept: bool


@dataclass(frozen=True)
class Choice:
    """What was measured to be best on this machine: `ratio` times as fast as what the model chose.

    `sizes` and `without` are as `compile` takes them, both empty where nothing was better.
    """

    when: str
    threads: int | None
    ratio: float
    sizes: str = ""
    without: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()

    @property
    def summary(self) -> str:
        """`tuned on 2026-11-22: 1.12 × the model's choice, 14 alternatives tried`."""
        count = len(self.tried)
        tried = f"{count} alternative{'s' * (count != 1)} tried"
        if not self.sizes and not self.without:
            return f"tuned on {self.when}: nothing is better than the model's choice, {tried}"
        return f"tuned on {self.when}: {self.ratio:.2f} × the model's choice, {tried}"

    def __str__(self) -> str:
        width = max((len(each.what) for each in self.tried), default=0)
        rows = (
            f"    {each.what:<{width}}  {each.seconds * 1e3:10.3f} ms  {each.ratio:5.2f} × "
            f"± {each.noise:.2f}{'  kept' if each.kept else ''}"
            for each in self.tried
        )
        return "\n".join([self.summary, *rows])

    def __repr__(self) -> str:
        taken = ", ".join(filter(None, [self.sizes, *(f"without {name}" for name in self.without)]))
        return brief(self, f"{self.summary}" + (f"; {taken}" if taken else ""))


# The iterations of a nest -------------------------------------------------------------------------


class Order(enum.Enum):
    """Why one iteration comes before another; as in `polyhedra.DependenceKind`."""

    FLOW = "flow"  # it writes what the other reads
    ANTI = "anti"  # it reads what the other overwrites
    OUTPUT = "output"  # both write it, and the last one counts

    @property
    def hazard(self) -> str:
        """What it is called wherever a person reads it: `RAW`, `WAR`, `WAW`."""
        return {Order.FLOW: "RAW", Order.ANTI: "WAR", Order.OUTPUT: "WAW"}[self]


@dataclass(frozen=True)
class Dependence:
    """`target` needs `source` (accesses as written), by `distance` in the loops around both.

    An entry of `distance` is a number where it is the same for all pairs of iterations next to each
    other in time, else `<` (later), `=`, `>` or `*`. `carrier` is the loop that it keeps in order,
    None within one iteration. Where `exact` is false it may be none after all.
    """

    order: Order
    source: str
    source_line: int | None
    target: str
    target_line: int | None
    loops: tuple[str, ...]
    distance: tuple[str, ...]
    carrier: str | None
    exact: bool

    def __str__(self) -> str:
        steps = ", ".join(
            f"{name} {by}" for name, by in zip(self.loops, self.distance, strict=True)
        )
        carried = f"carried by {self.carrier}" if self.carrier else "within an iteration"
        return f"{self.order.hazard} {self.source} -> {self.target}, {carried} ({steps})"

    def __repr__(self) -> str:
        return brief(self, str(self))


@dataclass(frozen=True, order=True)
class Cell:
    """Iterations of a nest that are drawn as one: those with these values of its two outer loops.

    `lane` counts the loops side by side within the outer one; `row` is None in a nest of one loop,
    `column` None beside the inner loops.
    """

    row: int | None
    lane: int
    column: int | None


@dataclass(frozen=True)
class Nest:
    """A piece of a nest's iteration space, and what in it needs what.

    rows, columns: the names of its two outer loops (rows is None where there is one alone); where
    several are siblings within the outer one, each has a row with its name in `lanes`.
    `needs`: the pairs of cells (before, after) of each order; of one dependence and target, the
    last source. `forbidding`: those that keep the outermost loop in order. `note` says what is not
    in it.
    """

    name: str
    kind: TaskKind
    rows: str | None
    columns: str
    lanes: tuple[str, ...]
    cells: tuple[Cell, ...]
    needs: tuple[tuple[Order, Cell, Cell], ...]
    forbidding: frozenset[tuple[Cell, Cell]]
    dependences: tuple[Dependence, ...]
    note: str = ""
    span: CellSpan | None = None

    def __str__(self) -> str:
        return nest_text(self)

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {nest_summary(self)}")


def nest_summary(nest: Nest) -> str:
    """`dependences: t carries 5 RAW, 5 WAR and 2 WAW; within an iteration 5 RAW`."""
    carried: dict[str | None, Counter[Order]] = {}
    for each in nest.dependences:
        carried.setdefault(each.carrier, Counter())[each.order] += 1
    depth = {name: k for each in nest.dependences for k, name in enumerate(each.loops)}
    parts: list[str] = []
    for carrier, orders in sorted(carried.items(), key=lambda item: depth.get(item[0] or "", 99)):
        number = [f"{orders[order]} {order.hazard}" for order in Order if orders[order]]
        words = " and ".join([", ".join(number[:-1]), number[-1]] if len(number) > 1 else number)
        parts.append(f"{carrier} carries {words}" if carrier else f"within an iteration {words}")
    if not parts:
        return nest.note or "no iteration depends on another"
    return f"dependences: {'; '.join(parts)}"


def dependence_table(nest: Nest) -> Table:
    """Every dependence with its accesses, lines, distance, and the loop that carries it."""
    rows = tuple(
        (
            each.order.hazard + ("" if each.exact else ", perhaps"),
            each.source,
            str(each.source_line or ""),
            each.target,
            str(each.target_line or ""),
            ", ".join(f"{n} {by}" for n, by in zip(each.loops, each.distance, strict=True)),
            each.carrier or "none",
        )
        for each in nest.dependences[:ROW_LIMIT]
    )
    head = ("order", "first", "line", "then", "at line", "distance", "carried by")
    note = left_out(len(nest.dependences), "dependence").replace("dependences", "dependence")
    return Table(f"Dependences of {nest.name}", head, rows, frozenset({"line", "at line"}), note)


def nest_text(nest: Nest) -> str:
    """The picture's facts for a terminal."""
    return f"{nest.name}: {nest_summary(nest)}\n{dependence_table(nest).to_text()}"
