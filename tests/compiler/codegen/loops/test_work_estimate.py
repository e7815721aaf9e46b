"""How much a nest has to do, as a number before it runs."""

from __future__ import annotations

import pytest
from mlir import ir
from mlir.dialects import vector

from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.codegen.loops.unroll_and_jam import MANY_ROWS
from avial_lab.compiler.codegen.loops.work_estimate import LoopWork
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.jam.jam_for_stores import JamForStores

ROWS = """
func.func @S1(%A: memref<?x240xf64>, %x: memref<?xf64>, %y: memref<240xf64>)
    attributes {avial.no_alias} {
  affine.for %i = 0 to ROWS { affine.for %j = 0 to 240 {
    %a = affine.load %A[%i, %j] : memref<?x240xf64>
    %v = affine.load %x[%i] : memref<?xf64>
    %s = affine.load %y[%j] : memref<240xf64>
    %n = math.fma %a, %v, %s : f64
    affine.store %n, %y[%j] : memref<240xf64>
  } }
  return
}"""


def counted(text: str, *, jammed: bool) -> tuple[int, bool]:
    """Operations of the first nest, and whether each of its iterations has as many."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text).operation
        run_passes(module, (JamForStores(),) * jammed)
        assert ("jam-for-stores" in str(module)) == jammed
        (function,) = functions_in(module)
        loop = next(nearest_loops(function))
        with ir.InsertionPoint(loop):
            work = LoopWork(loop)
            vector.PrintOp(source=work.total(*bounds_of(loop, 0)))
        run_passes(module, ("canonicalize", "sccp", "canonicalize"))
        (printed,) = (op for op in operations_in(module) if op.name == "vector.print")
        total = printed.operands[0].owner
        return ir.IntegerAttr(total.attributes["value"]).value, work.is_even


@pytest.mark.parametrize("rows", [2, 4, 5, MANY_ROWS, MANY_ROWS + 1, 200, 203])
def test_rows_at_once_count_as_often_as_one_by_one(rows: int) -> None:
    """Those that are left over are a few, and not as many as there are: a block of rows was counted
    fifty times, and threads shared what is done in microseconds. A few rows are all at once.
    """
    text = ROWS.replace("ROWS", str(rows))
    alone, even = counted(text, jammed=False)
    together, still_even = counted(text, jammed=True)
    assert even
    assert still_even
    assert alone == 5 * 240 * rows
    assert together == 5 * 240 * (rows if rows <= MANY_ROWS else 4 * -(-rows // 4))
