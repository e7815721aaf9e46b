"""Contractions of one form call the same functions, and those of another do not."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import vector

from avial_lab.cpu import Cpu
from avial_lab.passes.block_loops import BlockLoops
from avial_lab.passes.loop_bounds import bounds_of
from avial_lab.passes.loop_work import LoopWork
from avial_lab.passes.mark_parallel import PARALLEL
from avial_lab.passes.operations import functions_in, operations_in
from avial_lab.pipelines import run_passes

PRODUCT = """
  affine.for %i = 0 to 90 {{ affine.for %j = 0 to 70 {{ affine.for %k = 0 to 50 {{
    %a = affine.load %{left}[%i, %k] : memref<90x90xf64>
    %b = affine.load %{right}[%k, %j] : memref<90x90xf64>
    %c = affine.load %{to}[%i, %j] : memref<90x90xf64>
    %p = arith.mulf %a, %b : f64
    %s = arith.{sum} %c, %p : f64
    affine.store %s, %{to}[%i, %j] : memref<90x90xf64>
  }} }} }}
"""


def blocked(context: ir.Context, *sums: str) -> ir.Operation:
    """Products, one after the other, that are added or subtracted."""
    nests = "".join(
        PRODUCT.format(left="A", right="B", to=to, sum=sum_)
        for to, sum_ in zip("CD", sums, strict=True)
    )
    arrays = ", ".join(f"%{name}: memref<90x90xf64>" for name in "ABCD")
    with context, ir.Location.unknown():
        module = ir.Module.parse(
            f"func.func private @S1({arrays}) attributes {{avial.apart}} {{ {nests} return }}"
        ).operation
    run_passes(module, (BlockLoops(cpu=Cpu(vector_bytes=64, vector_registers=32)),))
    return module


def called(module: ir.Operation) -> list[str]:
    ops = (op for op in operations_in(module) if op.name == "func.call")
    return [ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in ops]


def written(module: ir.Operation) -> list[str]:
    names = (ir.StringAttr(op.attributes["sym_name"]).value for op in functions_in(module))
    return [name for name in names if name != "S1"]


def test_two_products_of_one_form_are_the_same_functions(context: ir.Context) -> None:
    module = blocked(context, "addf", "addf")
    assert len(called(module)) == 2 * len(set(called(module)))
    assert sorted(written(module)) == sorted(set(called(module)))


def test_a_product_that_is_subtracted_has_a_tile_of_its_own(context: ir.Context) -> None:
    module = blocked(context, "addf", "subf")
    tiles = [name for name in called(module) if "add_terms" in name]
    packs = [name for name in called(module) if "pack" in name]
    assert len(set(tiles)) == 2 == len(tiles)
    assert len(packs) == 2 * len(set(packs))


def test_what_is_called_counts_as_work(context: ir.Context) -> None:
    """Of blocks of rows: about as many operations as the product has."""
    module = blocked(context, "addf", "subf")
    loops = [op for op in operations_in(module) if PARALLEL in op.attributes]
    for loop in (op for op in loops if any("add_terms" in name for name in called(op))):
        with module.context, loop.location, ir.InsertionPoint(loop):
            vector.PrintOp(source=LoopWork(loop).total(*bounds_of(loop, 0)))
    run_passes(module, ("canonicalize", "sccp", "canonicalize"))
    printed = [op.operands[0].owner for op in operations_in(module) if op.name == "vector.print"]
    found = [ir.IntegerAttr(op.attributes["value"]).value for op in printed]
    assert len(found) == 2
    assert all(1 <= work / (90 * 70 * 50) <= 4 for work in found)
