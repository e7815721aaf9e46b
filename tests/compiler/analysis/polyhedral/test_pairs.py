"""Statements that share nothing cost nothing in pairs: counted in questions, not in seconds."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.parallelism import conflicts as conflicts_of
from avial_lab.compiler.analysis.parallelism.conflicts import Conflicts
from avial_lab.compiler.analysis.parallelism.partition import Split, partition
from avial_lab.compiler.analysis.polyhedral.dependences import (
    carried_among,
    carried_by,
    dependences,
)
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from tests.compiler.analysis.polyhedral.texts import named_module, scop_of


def apart(count: int, *, shared: str = "") -> str:
    """One loop around so many nests, each with an array of its own; `shared` is read by all."""
    own = [f"A{k}" for k in range(count)]
    given = ", ".join(f"%{name}: memref<9x9xf64>" for name in (*own, *([shared] if shared else [])))
    nests = "\n".join(
        f"""  affine.for %j{k} = 0 to 8 {{
    %x{k} = affine.load %{shared or name}[%i, %j{k}] : memref<9x9xf64>
    %y{k} = arith.addf %x{k}, %x{k} : f64
    affine.store %y{k}, %{name}[%i, %j{k} + 1] : memref<9x9xf64>
  }}"""
        for k, name in enumerate(own)
    )
    return f"func.func @f({given}) {{\naffine.for %i = 0 to 9 {{\n{nests}\n}}\nreturn\n}}"


@pytest.mark.parametrize("shared", ["", "B"])
def test_what_one_loop_carries_is_found_alone(shared: str, context: ir.Context) -> None:
    scop = scop_of(apart(4, shared=shared), context)
    for loop in {loop.op: loop for s in scop.statements for loop in s.loops}.values():
        assert carried_among(loop, scop.statements) == carried_by(loop, scop)


@pytest.mark.parametrize("shared", ["", "B"])
def test_splits_ask_in_proportion_to_the_statements(
    shared: str, context: ir.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs: list[int] = []
    ask = Conflicts.between

    def counting(self: Conflicts, *given: object) -> object:
        pairs.append(1)
        return ask(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(conflicts_of.Conflicts, "between", counting)
    counts: list[int] = []
    for count in (4, 8, 16):
        module = named_module(apart(count, shared=shared), context)
        pairs.clear()
        (split,) = partition(module.body.operations[0].operation)
        assert isinstance(split, Split)
        counts.append(len(pairs))
    assert counts[0] > 0
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


def test_what_shares_an_array_is_asked_for_in_textual_order(context: ir.Context) -> None:
    text = apart(3).replace("%A1[%i, %j1 + 1]", "%A0[%i, %j1 + 1]")
    scop = scop_of(text.replace("%A2[%i, %j2 + 1]", "%A0[%i + 0, %j2]"), context)
    places = {s.name: 0 for s in scop.statements}
    found = [(c.first.name, c.second.name) for c in _all(scop, places)]
    assert found == sorted(found, key=lambda pair: [_place(scop, name) for name in pair])
    brute = [
        (a.name, b.name)
        for k, a in enumerate(scop.statements)
        for b in scop.statements[k:]
        for _ in Conflicts(scop).between(a, b, places, 0)
    ]
    assert found == brute
    assert len(dependences(scop)) > 0


def _all(scop: Scop, places: dict[str, int]) -> list[conflicts_of.Conflict]:
    return list(Conflicts(scop).among(scop.statements, places, 0))


def _place(scop: Scop, name: str) -> int:
    return next(k for k, s in enumerate(scop.statements) if s.name == name)
