"""Contractions of one form call the same functions, and those of another do not."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import vector

from avial_lab.compiler.analysis.costs.weights import MOVED
from avial_lab.compiler.codegen.loops.work_estimate import LoopWork
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.machine.cpu import Cpu

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
            f"func.func private @S1({arrays}) attributes {{avial.no_alias}} {{ {nests} return }}"
        ).operation
    run_passes(module, (BlockContractions(cpu=Cpu(vector_bytes=64, vector_registers=32)),))
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


def work_of(module: ir.Operation, name: str) -> list[int]:
    """Of the parallel loops that call functions of this name."""
    loops = [op for op in operations_in(module) if PARALLEL in op.attributes]
    for loop in (op for op in loops if any(name in each for each in called(op))):
        with module.context, loop.location, ir.InsertionPoint(loop):
            vector.PrintOp(source=LoopWork(loop).total(*bounds_of(loop, 0)))
    run_passes(module, ("canonicalize", "sccp", "canonicalize"))
    printed = [op.operands[0].owner for op in operations_in(module) if op.name == "vector.print"]
    return [ir.IntegerAttr(op.attributes["value"]).value for op in printed]


def test_what_is_called_counts_as_work(context: ir.Context) -> None:
    """Of blocks of rows: about as many operations as the product has."""
    found = work_of(blocked(context, "addf", "subf"), "add_terms")
    assert len(found) == 2
    assert all(1 <= work / (90 * 70 * 50) <= 4 for work in found)


def test_what_is_packed_counts_more(context: ir.Context) -> None:
    """Its values come from memory, and are computed with once for each row."""
    found = work_of(blocked(context, "addf", "subf"), "pack_right")
    assert len(found) == 2
    assert all(1 <= work / (70 * 50 * MOVED.additions) <= 2 for work in found)


TRIANGLE = """
#id = affine_map<(d) -> (d)>
func.func private @S1(%A: memref<90x90xf64>, %B: memref<90x90xf64>, %C: memref<90x90xf64>)
    attributes {avial.no_alias} {
  affine.for %i = 0 to 90 { affine.for %j = 0 to 70 { affine.for %p = 0 to #id(%i) {
    %c = affine.load %C[%i, %j] : memref<90x90xf64>
    %a = affine.load %A[%i, %p] : memref<90x90xf64>
    %b = affine.load %B[%p, %j] : memref<90x90xf64>
    %new = math.fma %a, %b, %c : f64
    affine.store %new, %C[%i, %j] : memref<90x90xf64>
  } } }
  return
}"""


def test_a_tile_is_one_call_where_each_row_has_terms_of_its_own(context: ir.Context) -> None:
    """Its elements are loaded and stored once, and not row by row for the terms of a diagonal."""
    with context, ir.Location.unknown():
        module = ir.Module.parse(TRIANGLE).operation
    run_passes(module, (BlockContractions(cpu=Cpu(vector_bytes=64, vector_registers=32)),))
    assert sorted(called(module)) == ["S1.add_terms2", "S1.pack_left1", "S1.pack_right"]


def test_triangles_of_other_bounds_have_the_same_tile(context: ir.Context) -> None:
    """The caller finds out which terms a row has."""
    head, _, loops = TRIANGLE.partition("attributes {avial.no_alias} {")
    nest = loops.partition("  return")[0]
    other = nest.replace("%i = 0 to 90", "%i = 7 to 80").replace("#id(%i)", "min #both(%i)")
    both = "#both = affine_map<(d) -> (d + 9, 85)>\n"
    text = f"{both}{head}attributes {{avial.no_alias}} {{ {nest} {other} return }}"
    with context, ir.Location.unknown():
        module = ir.Module.parse(text).operation
    run_passes(module, (BlockContractions(cpu=Cpu(vector_bytes=64, vector_registers=32)),))
    tiles = [name for name in called(module) if "add_terms" in name]
    assert tiles == [tiles[0]] * 2


ROOM = """
func.func private @S1(%A: memref<900x900xf64>, %B: memref<900x900xf64>, %C: memref<900x900xf64>)
    attributes {avial.no_alias} {
  affine.for %i = 0 to 900 { affine.for %j = 0 to 900 { affine.for %p = 0 to 900 {
    %c = affine.load %C[%i, %j] : memref<900x900xf64>
    %a = affine.load %A[%i, %p] : memref<900x900xf64>
    %b = affine.load %B[%j, %p] : memref<900x900xf64>
    %one = math.fma %a, %b, %c : f64
    MORE
    affine.store %new, %C[%i, %j] : memref<900x900xf64>
  } } }
  return
}"""

MORE = """
    %d = affine.load %B[%i, %p] : memref<900x900xf64>
    %e = affine.load %A[%j, %p] : memref<900x900xf64>
    %new = math.fma %d, %e, %one : f64"""


def test_left_values_of_two_products_have_the_room_of_one(context: ir.Context) -> None:
    """In L2, all of them together."""
    cpu = Cpu(vector_bytes=32, vector_registers=16)
    for more in ("%new = arith.addf %one, %one : f64", MORE):
        with context, ir.Location.unknown():
            module = ir.Module.parse(ROOM.replace("MORE", more)).operation
        run_passes(module, (BlockContractions(cpu=cpu),))
        made = (op.results[0].type for op in operations_in(module) if op.name == "memref.alloc")
        left = [ir.MemRefType(kind).shape for kind in made if ir.MemRefType(kind).has_static_shape]
        nbytes = sum(8 * panels * terms * rows for panels, terms, rows in left)
        assert 0.9 <= nbytes / (cpu.l2_bytes // 4) <= 1.1
