"""Loops marked parallel may run their parts in any order, and every part is run once.

Nothing here is left to the scheduler's chance: the parts of a region run one after the other in
this process, the last one first. An iteration that needs one before it then computes other bits.

    parts of a loop of 5, 3 threads    0 1 | 2 3 | 4        run as    4   2 3   0 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir
from mlir.dialects import arith, scf
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.analysis.parallelism import marked_loops
from avial_lab.compiler.ir.attributes import NO_ALIAS, PARALLEL, SLICED
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.loops.facts.mark_parallel import MarkParallel
from avial_lab.compiler.passes.loops.order.interchange_loops import InterchangeLoops
from avial_lab.compiler.passes.loops.threads import thread_loops
from avial_lab.compiler.passes.loops.threads.thread_loops import THREADS, ThreadLoops
from tests.compiler.analysis.polyhedral.nests import Nest, computing_text, near_nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.rewriting import SIZE
from tests.kernels.jit import OPT_LEVEL, Guarded, pointer_to
from tests.quick import examples

THREAD_COUNTS = st.sampled_from([2, 3, SIZE, 11])


def backwards(module: ir.Operation, threads: int) -> None:
    """Every region's parts in a loop, the last one first; so many threads as constants."""
    for op in operations_in(module):
        if op.name == "llvm.mlir.global":
            number = threads if ir.StringAttr(op.attributes["sym_name"]).value == THREADS else 0
            i64 = ir.IntegerType.get_signless(64)
            op.attributes["value"] = ir.IntegerAttr.get(i64, number)
    for region in [op for op in operations_in(module) if op.name == "omp.parallel"]:
        nest = next(op for op in operations_in(region) if op.name == "omp.loop_nest")
        low, high, stride = nest.operands
        with ir.InsertionPoint(region), region.location:
            zero, one = (arith.constant(low.type, number) for number in (0, 1))
            count = arith.ceildivsi(arith.subi(high, low), stride)
            loop = scf.ForOp(zero, count, one)
            with ir.InsertionPoint(loop.body):
                before = arith.subi(arith.subi(count, one), loop.induction_variable)
                start = arith.addi(low, arith.muli(before, stride))
                block = nest.regions[0].blocks[0]
                inside: dict[ir.Value, ir.Value] = {block.arguments[0]: start}
                for op in list(block.operations)[:-1]:
                    copy = op.operation.clone().operation
                    for place, operand in enumerate(op.operands):
                        copy.operands[place] = inside.get(operand, operand)
                    inside.update(zip(op.results, copy.results, strict=True))
                scf.YieldOp([])
        region.erase()


def results(module: ir.Module) -> list[bytes]:
    """What the function @nest leaves in its arrays."""
    run_passes(module.operation, ("lower-affine", *TO_LLVM))
    engine = ExecutionEngine(module, opt_level=OPT_LEVEL)
    rng = np.random.default_rng(1)
    arrays = [
        Guarded(rng.integers(0, 1 << 40, SIZE + 2)),
        Guarded(rng.integers(0, 1 << 40, (SIZE + 2, SIZE + 2))),
    ]
    scalars = [pointer_to(np.int64(SIZE)), pointer_to(np.int64(11))]
    engine.invoke("nest", *(array.pointer() for array in arrays), *scalars)
    return [array.checked(name).tobytes() for array, name in zip(arrays, "AB", strict=True)]


def threaded(
    text: str, *, threads: int, ordered: bool, more: Sequence[Pass] = ()
) -> tuple[ir.Module, ir.Module, int, int]:
    """The nest as it is, the same with its loops divided and `more` done to them, how many of them
    are, and of how many nests threads take the rows.
    """
    modules: list[ir.Module] = []
    with ir.Context(), ir.Location.unknown():
        for _ in range(2):
            module = ir.Module.parse(text)
            function = module.body.operations[0]
            function.attributes["sym_name"] = ir.StringAttr.get("nest")
            function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
            function.attributes[NO_ALIAS] = ir.UnitAttr.get()
            modules.append(module)
        plain, divided = modules
        run_passes(divided.operation, (*((InterchangeLoops(),) * ordered), MarkParallel()))
        marked, sliced = (
            sum(mark in op.attributes for op in operations_in(divided.operation))
            for mark in (PARALLEL, SLICED)
        )
        run_passes(divided.operation, (ThreadLoops(), *more))
        with divided.context:
            backwards(divided.operation, threads)
    return plain, divided, marked, sliced


def check_backwards(nests: Sequence[Nest], threads: int, *, ordered: bool = False) -> int:
    count = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_loops, "LINES", 1)  # else a short row is one part
        for nest in nests:
            plain, divided, marked, _ = threaded(
                computing_text(nest), threads=threads, ordered=ordered
            )
            check_same(plain, divided, nest)
            count += marked
    return count


def check_same(plain: ir.Module, divided: ir.Module, what: object) -> None:
    with plain.context, ir.Location.unknown():
        before = results(plain)
    with divided.context, ir.Location.unknown():
        assert results(divided) == before, what


@settings(max_examples=examples(8), deadline=None, suppress_health_check=SLOW)
@given(nests=st.lists(near_nests, min_size=4, max_size=4), threads=THREAD_COUNTS)
def test_any_order(nests: list[Nest], threads: int) -> None:
    event(f"{check_backwards(nests, threads)} loops marked in 4 nests")


@settings(max_examples=examples(6), deadline=None, suppress_health_check=SLOW)
@given(nests=st.lists(near_nests, min_size=4, max_size=4), threads=THREAD_COUNTS)
def test_any_order_of_loops_in_another_order(nests: list[Nest], threads: int) -> None:
    check_backwards(nests, threads, ordered=True)


def test_a_loop_that_carries_something_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail: with a mark on every loop, some nest computes other bits."""
    monkeypatch.setattr(marked_loops, "carried_among", lambda *_: ())
    wrong: list[Nest] = []

    @settings(max_examples=30, deadline=None, suppress_health_check=SLOW, derandomize=True)
    @given(nest=near_nests)
    def collect(nest: Nest) -> None:
        if wrong:  # one is enough
            return
        try:
            check_backwards([nest], SIZE)
        except AssertionError:
            wrong.append(nest)

    collect()
    assert wrong


COLUMNS = {
    "each row from the one above": """affine.for %i = 1 to 6 { affine.for %j = 0 to 7 {
      %a = affine.load %B[%i - 1, %j] : memref<?x?xi64>
      %b = affine.load %B[%i, %j] : memref<?x?xi64>
      %c = arith.addi %a, %b : i64
      affine.store %c, %B[%i, %j] : memref<?x?xi64> } }""",
    "sums of columns": """affine.for %i = 0 to 7 { affine.for %j = 0 to 7 {
      %a = affine.load %A[%j] : memref<?xi64>
      %b = affine.load %B[%i, %j] : memref<?x?xi64>
      %c = arith.addi %a, %b : i64
      %d = arith.muli %c, %three : i64
      affine.store %d, %A[%j] : memref<?xi64> } }""",
    "rows of other lengths": """affine.for %i = 0 to 6 {
      affine.for %j = 0 to 4 {
        %b = affine.load %B[%i, %j] : memref<?x?xi64>
        affine.store %b, %A[%j] : memref<?xi64> }
      affine.for %j = 2 to 7 {
        %a = affine.load %A[%j] : memref<?xi64>
        affine.store %a, %B[%i + 1, %j] : memref<?x?xi64> } }""",
}


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("body", COLUMNS.values(), ids=COLUMNS)
def test_slices(body: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_loops, "LINES", 1)
    text = f"""func.func @f(%A: memref<?xi64>, %B: memref<?x?xi64>, %n: index, %x: i64) {{
      %three = arith.constant 3 : i64
      {body}
      return }}"""
    plain, divided, marked, _ = threaded(text, threads=threads, ordered=False)
    assert marked
    assert ".part" in str(divided)
    check_same(plain, divided, body)
