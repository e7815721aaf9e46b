"""A program begins each run with its globals' first values."""

from __future__ import annotations

from avial_lab.compiler.passes.host.reset_globals import ResetGlobals
from tests.compiler.passes.golden import assert_same, each_case, loaded


@each_case("reset_globals", without=("taken", "nobody_calls_it"))
def test_the_same_bits(case: str) -> None:
    assert_same(case, "reset-globals")


COUNTS = """
memref.global "private" @n : memref<1xi64> = dense<7>
func.func @count(%y: memref<1xi64>) {
  %n = memref.get_global @n : memref<1xi64>
  %old = affine.load %n[0] : memref<1xi64>
  %new = arith.addi %old, %old : i64
  affine.store %new, %n[0] : memref<1xi64>
  affine.store %new, %y[0] : memref<1xi64>
  return
}"""


def test_every_run_is_the_first() -> None:
    run = loaded(COUNTS, (ResetGlobals(),))
    assert [run()[0].tolist() for _ in range(3)] == [[14]] * 3
    left_alone = loaded(COUNTS, ())
    assert [left_alone()[0].tolist() for _ in range(3)] == [[14], [28], [56]]
