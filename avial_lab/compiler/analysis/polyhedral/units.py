"""What moves together when loops are put into another order: the accesses that one store needs.

Scop -> Units. A unit is what one iteration of a loop computes and stores, with its loads.

    for i, j:                          U0: S0, S1, S2 of loops (i, j)
      s = A[i, j] * x[j]  (S0, S1)
      y[i] = s            (S2)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.ir.nesting import holds

PURE = ("arith.", "math.", "complex.", "index.", "affine.apply", "affine.min", "affine.max")
"""Operations that may be computed again wherever their operands are known."""


class Immovable(Exception):
    """Why the statements have to stay in their order; a reason for people."""


@dataclass(frozen=True)
class Unit:
    """Statements of one block that run together, for every iteration of `loops`.

    `sunk` are loads that are not theirs alone, of blocks around or for other units too: of arrays
    that nobody writes, so that they may be loaded where they are used.
    """

    name: str
    statements: tuple[Statement, ...]
    sunk: tuple[Statement, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        return self.statements[0].loops

    @property
    def domain(self) -> isl.Set:
        return self.statements[0].domain.set_tuple_name(self.name)

    @property
    def operations(self) -> tuple[ir.Operation, ...]:
        return tuple(statement.op for statement in (*self.sunk, *self.statements))


def units_of(scop: Scop, *, apart: bool = False) -> tuple[Unit, ...]:
    """The units of `scop`; raises Immovable where something in it is not known exactly, or has an
    effect that is not memory.

    With `apart`, stores that share nothing but loads of arrays nobody writes are units of their
    own, each with its own loads.
    """
    at = {s.op: s for s in scop.statements}
    for statement in scop.statements:
        _check(statement)
    written = {a.array for s in scop.statements for a in s.accesses if a.writes}
    leader = {s.name: s.name for s in scop.statements}
    sunk: dict[str, list[Statement]] = {}

    def first(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for statement in scop.statements:
        if not any(access.writes for access in statement.accesses):
            continue
        for load in _loads(statement, at, scop.op):
            fixed = not any(access.array in written for access in load.accesses)
            if load.op.block == statement.op.block and not (apart and fixed):
                # The earlier of the two names stays, so that units are numbered as in the text.
                a, b = sorted((first(load.name), first(statement.name)), key=_number)
                leader[b] = a
            elif not fixed:
                raise Immovable(f"{load.accesses[0]} is loaded outside the loop that uses it")
            else:
                sunk.setdefault(statement.name, []).append(load)
    groups: dict[str, list[Statement]] = {}
    for statement in scop.statements:
        groups.setdefault(first(statement.name), []).append(statement)
    stored = [g for g in groups.values() if any(a.writes for s in g for a in s.accesses)]
    return tuple(
        Unit(f"U{k}", tuple(group), _distinct(x for s in group for x in sunk.get(s.name, ())))
        for k, group in enumerate(stored)
    )


def _distinct(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    return tuple(dict.fromkeys(statements))


def _number(name: str) -> int:
    return int(name[1:])


def _check(statement: Statement) -> None:
    if not statement.exact:
        raise Immovable(statement.note or f"the iterations in which {statement} runs are not known")
    for access in statement.accesses:
        if access.array.kind is not ArrayKind.MEMORY or access.array.loops:
            raise Immovable(f"{access} is carried from iteration to iteration")
        if not access.exact:
            raise Immovable(f"which element {access} is depends on data")


def _loads(
    statement: Statement, at: dict[ir.Operation, Statement], root: ir.Operation
) -> Iterator[Statement]:
    """The statements whose values it uses; raises Immovable for what `root` does not compute from
    them. (What stands outside of it is there already.)
    """
    seen: set[ir.Operation] = set()
    todo = [statement.op]
    while todo:
        for used in computed_by(todo.pop()):
            if used in seen or not holds(root, used):
                continue
            seen.add(used)
            if used in at:
                yield at[used]
            elif used.name.startswith(PURE) and not len(used.regions):
                todo.append(used)
            elif not _names_memory(used):
                raise Immovable(f"{statement} uses a result of {used.name}")


def computed_by(op: ir.Operation) -> Iterable[ir.Operation]:
    """The operations whose results `op` uses."""
    for value in op.operands:
        if not isinstance(value.owner, ir.Block):
            yield value.owner.operation


def _names_memory(op: ir.Operation) -> bool:
    return all(isinstance(result.type, ir.MemRefType) for result in op.results)
