"""Programs that one of several ranks runs sooner than all of them: messages take longer than the
work that they save.

Module of replicates, converges and tasks, placed on several ranks -> the same, marked where it is
left to one rank; later passes treat it as a program of a single rank then.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.costs.schedule_cost import Cost, ranks_of
from avial_lab.compiler.analysis.costs.work import Unknown
from avial_lab.compiler.ir.attributes import ALONE, PHASES
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.passes.placement.join_phases import join_in
from avial_lab.machine.cpu import this_cpu

LEAST_S = 1e-3
"""Of work on one rank: less is over soon in any case, and people may want to look at its parts."""

LATE_S, FAR_LATER = 1e-2, 10.0
"""What takes several ranks so long, and so many times as long as one of them, is left to one,
however little work it is: thousands of messages are no parts to look at.
"""

MOST_BYTES = 1 << 32
"""Of a program's arrays: with more of them ranks may be there for their memory."""

WORTH = 0.9
"""Of its time on one rank a program may take on several: the model is not as exact."""


@dataclass(frozen=True)
class KeepOnOne:
    """Leave a program to the first of its `ranks` where that is sooner done.

    before:  avial.schedule { avial.replicate {A by rows}  avial.replicate {B = transposed A} … }
    after:   avial.schedule { … } {avial.alone = "about 83 ms of work; …"}

    It is not where the number of iterations is unknown, or is too small to matter; nor where the
    arrays lie on the ranks before (`avial.lies`), and more of them would move to one of these than
    they send each other.
    """

    ranks: int = 2

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for schedule in [op for op in operations_in(module) if op.name == "avial.schedule"]:
                why = self._why(schedule)
                if why:
                    schedule.attributes[ALONE] = ir.StringAttr.get(why)

    def __str__(self) -> str:
        return f"keep-on-one{{ranks={self.ranks}}}"

    def _why(self, schedule: ir.Operation) -> str:
        """What one rank is better for; empty where all of them are."""
        phases = [op for op in operations_in(schedule) if op.name in PHASES]
        if len(phases) < 2 or not any(op.name == "avial.replicate" for op in phases):
            return ""  # one phase alone waits for nothing
        ranks = ranks_of(phases, self.ranks)
        if ranks < 2:
            return ""  # devices that were chosen are used
        cost = Cost(ranks, this_cpu())
        try:
            spent = cost.of(schedule)
            late = spent.several > LATE_S and spent.several > FAR_LATER * spent.one
            if (spent.one < LEAST_S and not late) or cost.footprint > MOST_BYTES:
                return ""
            sooner = spent.several > WORTH * spent.one or (
                2 * spent.memory > spent.one
                and 2 * spent.several > WORTH * spent.one
                and not _repeats(schedule)
                and spent.several > WORTH * _joined(cost, schedule)
            )
        except Unknown:
            return ""
        # Arrays that lie on the ranks already: what moves decides.
        if cost.gathered is not None and cost.gathered > spent.sent.nbytes:
            return ""
        return spent.summary(ranks) if sooner else ""


def _repeats(schedule: ir.Operation) -> bool:
    """Whether there are loops around phases: then there is more to them than what joins two."""
    return any(op.name == "avial.converge" for op in operations_in(schedule))


def _joined(cost: Cost, schedule: ir.Operation) -> float:
    """Seconds on one rank with phases that go over the same arrays as one."""
    copy = schedule.clone().operation
    join_in(copy)
    one = cost.of(copy).one
    copy.erase()
    return one
