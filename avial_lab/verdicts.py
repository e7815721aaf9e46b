"""What became of each loop, and why: the answers that `program.explain()` gives.

Facts for people; no MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.dag import TaskKind
from avial_lab.errors import CellSpan


@dataclass(frozen=True)
class Verdict:
    """What one part of a program became: `depth` counts the converges around it.

    reasons: of a replicate how it is divided, of a converge or task what forbids to divide it.
    """

    name: str
    kind: TaskKind
    depth: int
    reasons: tuple[str, ...]
    span: CellSpan | None = None

    @property
    def title(self) -> str:
        return _TITLES[self.kind]

    def __str__(self) -> str:
        place = f"line {self.span.line}" if self.span is not None else ""
        head = f"{'  ' * self.depth}{self.name}  {place}  {self.title}"
        return "\n".join([head, *(f"{'  ' * self.depth}    {line}" for line in self.reasons)])


_TITLES = {
    TaskKind.REPLICATE: "divided over the ranks",
    TaskKind.CONVERGE: "in order on every rank, with work inside",
    TaskKind.TASK: "in order on one rank",
}


@dataclass(frozen=True)
class Explanation:
    """The verdicts on a whole program, in textual order; its text is what a cell prints."""

    verdicts: tuple[Verdict, ...]

    def __str__(self) -> str:
        if not self.verdicts:
            return "the program is made of tasks, each on the device its target asks for"
        return "\n".join(map(str, self.verdicts))
