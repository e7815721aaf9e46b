"""What isl is asked depends on the question alone, and not on what was asked before."""

from __future__ import annotations

from itertools import count

import islpy as isl
import pytest
from mlir import ir

from avial_lab.compiler.analysis.polyhedral import statements
from avial_lab.compiler.analysis.polyhedral.budget import forget, limited, remembered
from avial_lab.compiler.analysis.polyhedral.reading import read_scop

TEXT = "{ [i, j, k] : 0 <= i < 50 and i <= 3j <= 2k <= 70 and (exists e: k = 7e + i) }"


def holes() -> bool:
    return isl.Set(TEXT).subtract(isl.Set(TEXT.replace("70", "60"))).coalesce().is_empty()


def test_an_answer_that_is_remembered_leaves_as_much_for_the_next_question() -> None:
    @remembered
    def asked(_: str) -> bool:
        return holes()

    least = next(
        n for n in count(50, 50) if limited(lambda: holes() or True, lambda: False, limit=n)
    )
    outcomes = [
        limited(lambda: (holes(), asked("once"), holes()), lambda: None, limit=least + least // 2)
        for _ in range(3)
    ]
    assert outcomes == [(False, False, False)] * 3
    forget()


def test_a_number_that_is_not_read_to_its_end_is_none() -> None:
    """isl has no text for it at the limit, and says nothing."""
    found = {
        n: limited(lambda: isl.Set(TEXT).dim_max_val(0).to_python(), lambda: None, limit=n)
        for n in range(1, 3000)
    }
    assert set(found.values()) == {None, 49}
    assert found[2999] == 49


NEST = """
func.func @f(%A: memref<9x9xf64>, %B: memref<9x9xf64>) {
  affine.for %i = 0 to 9 {
    affine.for %j = 1 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf64>
      %b = affine.load %A[%i, %j - 1] : memref<9x9xf64>
      %s = arith.addf %a, %b : f64
      affine.store %s, %A[%i, %j] : memref<9x9xf64>
    }
    BEFORE
    affine.for %j = 1 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf64>
      affine.store %a, %B[%i, %j] : memref<9x9xf64>
    }
  }
  return
}
"""
MORE = """affine.for %j = 0 to 3 {
  %z = affine.load %B[%i, %j] : memref<9x9xf64>
}"""


def test_accesses_that_are_the_same_are_asked_for_once_whatever_their_statements_are_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def note(text: str, points: isl.Set) -> isl.Map:
        asked.append(text)
        return relation(text, points)

    relation = statements._relation
    monkeypatch.setattr(statements, "_relation", note)
    forget()
    with ir.Context():
        for before in ("", MORE):  # the second has more statements, and others of these names
            module = ir.Module.parse(NEST.replace("BEFORE", before))
            loop = module.body.operations[0].regions[0].blocks[0].operations[0]
            scop = read_scop(loop)
            names = [access.relation.get_tuple_name(isl.dim_type.in_)
                     for s in scop.statements for access in s.accesses]  # fmt: skip
            assert names == [s.name for s in scop.statements]
            assert len(asked) == (3 if not before else 4), asked
    forget()
