"""A function with tasks as an `avial.schedule`: each task with what it reads and writes, loops of
the program's control around them.

Arranged statements (`tasks.py`) -> lines of avial's text. What a task computes and others use goes
by memory; constants and arithmetic on indices stand between the tasks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avial_lab.compiler.frontends.python.liveness import assigned, live_after_each, live_before
from avial_lab.compiler.frontends.python.tasks import Marked, Rounds
from avial_lab.compiler.frontends.python.values import Array, Fixed, Held, Number

if TYPE_CHECKING:
    from avial_lab.compiler.frontends.python.translate import Translation

_ACCESS = re.compile(r"(?:affine|memref)\.(?P<what>load|store [^,]+,) (?P<memory>%[\w$.-]+)\[")
_OWN = re.compile(r"^\s*(?P<memory>%[\w$.-]+) = memref\.alloca")
_WORK = re.compile(r"memref\.|affine\.(?!apply)|scf\.|cf\.")
_WORD = re.compile(r"\W+")


@dataclass
class Scheduled:
    """Writes with the translation `t`, of whose function it is."""

    t: Translation
    targets: dict[str, str] = field(default_factory=dict[str, str])
    names: set[str] = field(default_factory=set[str])
    in_rounds: bool = False

    def function(self, body: Sequence[ast.stmt]) -> list[str]:
        """All of it; what it returns is stored by a task of its own. The lines of the schedule."""
        e = self.t.e
        e.depth += 1
        last = body[-1] if body and isinstance(body[-1], ast.Return) else None
        with e.aside() as lines:
            before = body if last is None else body[:-1]
            after = frozenset[str]() if last is None else live_before([last], frozenset())
            self.block(before, after)
            if last is not None and last.value is not None:
                with e.at(last), self.work("task", "cpu", "result"):
                    self.t.told = self.t.result_of(self.t.expression(last.value))
        e.depth -= 1
        return lines

    def head(self, buffers: Sequence[str]) -> list[str]:
        given = "".join(f" {name}," for name in buffers).rstrip(",")
        targets = [
            f'    {name} = avial.target {{arch = "{arch}"}}' for arch, name in self.targets.items()
        ]
        return [f"  avial.schedule{given} {{", *targets]

    # -- statements --------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], after: frozenset[str]) -> None:
        for node, live in zip(body, live_after_each(body, after), strict=True):
            with self.t.e.at(node):
                self.statement(node, live)

    def statement(self, node: ast.stmt, live: frozenset[str]) -> None:
        match node:
            case Marked():
                with self.work(node.as_what, node.target, node.name):
                    self.t.block(node.body, live)
                    self._hand_on(node, live)
            case Rounds():
                self._rounds(node, live)
            case ast.For():
                self._loop(node, live)
            case _:
                raise self.t.refused("a return is at the end of a function with tasks", "")

    def _hand_on(self, node: Marked, live: frozenset[str]) -> None:
        """Numbers that others look at are in memory afterwards."""
        names = self.t.frame.names
        for name in sorted(assigned(*node.body) & live):
            value = names.get(name)
            if isinstance(value, Number) and value.known is None and value.ssa is not None:
                cell = self.t.arrays.fresh(value.kind, ())
                self.t.arrays.store(value, cell, [])
                names[name] = Fixed(Held(cell, value.kind))

    def _rounds(self, node: Rounds, live: frozenset[str]) -> None:
        if self.in_rounds:
            raise self.t.refused("a converge is not within another loop", "")
        until = ""
        if node.watched is not None:
            watched = self.t.expression(node.watched)
            if not isinstance(watched, Array) or not watched.is_whole:
                raise self.t.refused("converge watches a whole array of one element", "")
            until = f"until {watched.memory} {node.predicate} {node.threshold!r} max "
        self._variables(node, live)
        head = f"{self._name('rounds')} = avial.converge {until}{node.most} {{"
        self.in_rounds = True
        with self.t.e.block(head):
            self.block(node.body, live | live_before([node], live))
        self.in_rounds = False

    def _loop(self, node: ast.For, live: frozenset[str]) -> None:
        sequence = self.t.calls.iterated(node.iter)
        step, e = sequence.step.known, self.t.e
        ends = sequence.low, sequence.high
        if not isinstance(node.target, ast.Name) or step is None or step < 1:
            raise self.t.refused("a loop around tasks goes up by a number", "for t in range(n)")
        if not all(map(e.is_affine, ends)):
            raise self.t.refused("a loop around tasks has a constant number of iterations", "")
        names = dict(self.t.frame.names)
        self._variables(node, live)
        word = node.target.id if node.target.id.isascii() else "t"
        outermost, self.in_rounds = not self.in_rounds, True
        if outermost:
            e.bare(f"{self._name('rounds')} = avial.converge {{")
        with e.loop(*ends, step, word) as at:
            self.t.bind_name(node.target.id, sequence.element(at))
            self.block(node.body, live | live_before([node], live))
        if outermost:
            e.line("}")
            self.in_rounds = False
        kept = self.t.frame.names
        self.t.frame.names = {name: kept[name] for name in kept if name in names or name in live}
        self.t.frame.names.pop(node.target.id, None)

    def _variables(self, node: ast.For, live: frozenset[str]) -> None:
        """Those that a round hands on to the next are in memory, and stay there."""
        self.t.arrays.shared = True
        try:
            with self.work("task", "cpu", ""):
                self.t.cells_of(node, live)
        finally:
            self.t.arrays.shared = False

    # -- tasks -------------------------------------------------------------------------------------

    @contextmanager
    def work(self, as_what: str, target: str, name: str) -> Generator[None]:
        """The lines written meanwhile are a task, unless they only compute indices."""
        e = self.t.e
        node = e.node
        e.depth += 1
        try:
            with e.aside() as lines:
                yield
        finally:
            e.depth -= 1
        if not any(map(_WORK.search, lines)):
            e.lines += [line[2:] for line in lines]
            return
        with e.at(node) if node is not None else _nothing():
            roles = "".join(f", {role}" for role in _roles(lines))
            head = f"{self._name(name)} = avial.{as_what} {self._target(target)}{roles} {{"
            with e.block(head):
                e.lines += lines

    def _target(self, arch: str) -> str:
        if arch not in self.targets:
            self.targets[arch] = self._free(_WORD.sub("_", arch) or "target")
        return self.targets[arch]

    def _name(self, name: str) -> str:
        return self._free(_WORD.sub("_", name) or f"line{getattr(self.t.e.node, 'lineno', 0)}")

    def _free(self, word: str) -> str:
        """As the name of a value that nobody else has."""
        taken = {*self.names, *self.t.arguments}
        found = next(
            w for w in (word, *(f"{word}_t{k}" for k in range(2, 10**6))) if w not in taken
        )
        self.names.add(found)
        return f"%{found}"


@contextmanager
def _nothing() -> Generator[None]:
    yield


def _roles(lines: Sequence[str]) -> list[str]:
    """`reads(…)` and `writes(…)` of a body."""
    own = {found["memory"] for line in lines if (found := _OWN.match(line))}
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for line in lines:
        for found in _ACCESS.finditer(line):
            if found["memory"] not in own:
                (reads if found["what"] == "load" else writes)[found["memory"]] = None
    named = ("reads", reads), ("writes", writes)
    return [f"{role}({', '.join(memory)})" for role, memory in named if memory]
