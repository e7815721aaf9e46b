# ruff: noqa: E501  a line of the table holds a whole statement
"""Each construct of the short notation, and what MLIR reads it as."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell, print_module
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import VerifyError

BUFFERS = {
    "i": "memref<20xi32>", "f": "memref<20xf32>", "g": "memref<8x8xf32>", "h": "memref<8x8xf32>",
    "s": "memref<f32>", "z": "memref<20xcomplex<f32>>",
}  # fmt: skip


def body_of(text: str, context: ir.Context) -> str:
    """What the statements become inside a task that declares nothing and is not checked for roles."""
    head = ", ".join(f"%{name}: {type_}" for name, type_ in BUFFERS.items())
    cell = (
        f"func.func @main({head}, %k: index, %n: index, %x: f32, %j: i32) {{\n"
        "%inside = memref.alloca() : memref<1xf32>\n"
        f"{text}\n"
        "avial.schedule { %cpu = avial.target avial.task %cpu { } } }"
    )
    module = parse_cell(cell, cell="test", context=context)
    again = parse_cell(print_module(module), cell="test", context=context)
    assert str(again) == str(module)
    lines = module.operation.get_asm(use_name_loc_as_prefix=True).splitlines()
    start = next(k for k, line in enumerate(lines) if "memref.alloca" in line)
    end = next(k for k, line in enumerate(lines) if '"avial.schedule"' in line)
    return textwrap.dedent("\n".join(line.rstrip() for line in lines[start + 1 : end]))


ONE_LINE = [
    ("%a = arith.addf %x, %x", "%a = arith.addf %x, %x : f32"),
    ("%a = arith.addf %x, %x fastmath<fast>", "%a = arith.addf %x, %x fastmath<fast> : f32"),
    ("%a = arith.addi %j, %j overflow<nsw>", "%a = arith.addi %j, %j overflow<nsw> : i32"),
    ("%a = arith.addi %k, %n", "%a = arith.addi %k, %n : index"),
    ("%a = arith.negf %x", "%a = arith.negf %x : f32"),
    ("%a = arith.cmpi slt, %k, %n", "%a = arith.cmpi slt, %k, %n : index"),
    ("%a = arith.cmpf olt, %x, %x", "%a = arith.cmpf olt, %x, %x : f32"),
    ("%a = math.sqrt %x", "%a = math.sqrt %x : f32"),
    ("%a = math.fma %x, %x, %x", "%a = math.fma %x, %x, %x : f32"),
    ("%a = math.isnan %x", "%a = math.isnan %x : f32"),
    ("%a = arith.sitofp %j to f32", "%a = arith.sitofp %j : i32 to f32"),
    ("%a = arith.index_cast %k to i64", "%a = arith.index_cast %k : index to i64"),
    ("%a = arith.index_cast %k : index to i64", "%a = arith.index_cast %k : index to i64"),
    ("%a = index.add %k, %n", "%a = index.add %k, %n"),
    ("%a = memref.load %i[%k]", "%a = memref.load %i[%k] : memref<20xi32>"),
    ("%a = memref.load %g[%k, %n]", "%a = memref.load %g[%k, %n] : memref<8x8xf32>"),
    ("%a = memref.load %s[]", "%a = memref.load %s[] : memref<f32>"),
    ("memref.store %x, %f[%k]", "memref.store %x, %f[%k] : memref<20xf32>"),
    ("memref.store %x, %f[%k] {nontemporal = true}",
     "memref.store %x, %f[%k] {nontemporal = true} : memref<20xf32>"),
    ("%a = affine.load %f[%k + 1]", "%a = affine.load %f[%k + 1] : memref<20xf32>"),
    ("memref.copy %g, %h", "memref.copy %g, %h : memref<8x8xf32> to memref<8x8xf32>"),
    ("%a = memref.subview %g[%k, 0][2, 4][1, 2]",
     "%a = memref.subview %g[%k, 0] [2, 4] [1, 2] "
     ": memref<8x8xf32> to memref<2x4xf32, strided<[8, 2], offset: ?>>"),
    ("%a = memref.subview %g[3, 1][2, 4][2, 1]",
     "%a = memref.subview %g[3, 1] [2, 4] [2, 1] "
     ": memref<8x8xf32> to memref<2x4xf32, strided<[16, 1], offset: 25>>"),
    ("%a = memref.subview %f[4][%n][1]",
     "%a = memref.subview %f[4] [%n] [1] : memref<20xf32> to memref<?xf32, strided<[1], offset: 4>>"),
    ("%a = memref.cast %f to memref<?xf32>", "%a = memref.cast %f : memref<20xf32> to memref<?xf32>"),
    ("%a = memref.rank %f", "%a = memref.rank %f : memref<20xf32>"),
    ("%a = memref.atomic_rmw addf %x, %f[%k]",
     "%a = memref.atomic_rmw addf %x, %f[%k] : (f32, memref<20xf32>) -> f32"),
    ("%a = affine.apply affine_map<(d0) -> (d0 + 1)>(%k)", "%a = affine.apply #map(%k)"),
    ("%a = vector.load %f[%k] : vector<4xf32>", "%a = vector.load %f[%k] : memref<20xf32>, vector<4xf32>"),
    ("%a = vector.load %f[%k] : memref<20xf32>, vector<4xf32>",
     "%a = vector.load %f[%k] : memref<20xf32>, vector<4xf32>"),
    ("linalg.fill ins(%x) outs(%f)", "linalg.fill ins(%x : f32) outs(%f : memref<20xf32>)"),
    ("linalg.matmul ins(%g, %h) outs(%g)",
     "linalg.matmul ins(%g, %h : memref<8x8xf32>, memref<8x8xf32>) outs(%g : memref<8x8xf32>)"),
    ("linalg.transpose ins(%g) outs(%h) permutation = [1, 0]",
     "linalg.transpose ins(%g : memref<8x8xf32>) outs(%h : memref<8x8xf32>) permutation = [1, 0]"),
]  # fmt: skip


@pytest.mark.parametrize(("short", "full"), ONE_LINE, ids=[short[:40] for short, _ in ONE_LINE])
def test_a_statement_gets_its_types(short: str, full: str, context: ir.Context) -> None:
    assert body_of(short, context) == full
    assert body_of(full.replace("#map", "affine_map<(d0) -> (d0 + 1)>"), context) == full


SEVERAL_LINES = [
    # An integer constant takes the type of its first use.
    ("%c = arith.constant 2\n%y = arith.mulf %x, %c",
     "%c = arith.constant 2.000000e+00 : f32\n%y = arith.mulf %x, %c : f32"),
    ("%c = arith.constant 2\n%y = memref.load %f[%c]",
     "%c = arith.constant 2 : index\n%y = memref.load %f[%c] : memref<20xf32>"),
    ("%c = arith.constant 2", "%c = arith.constant 2 : i64"),
    ("%c = arith.constant true\n%y = arith.select %c, %x, %x",
     "%c = arith.constant true\n%y = arith.select %c, %x, %x : f32"),
    # Several statements on a line; comments between and behind them.
    ("%a = arith.addf %x, %x %b = arith.addf %a, %a // no more\n// nor here",
     "%a = arith.addf %x, %x : f32\n%b = arith.addf %a, %a : f32"),
    # A statement that nothing is known of gives its result's type when it is asked for.
    ("%v = vector.from_elements %x, %x : vector<2xf32>\n%w = arith.addf %v, %v\n%r = vector.reduction <add>, %w",
     "%v = vector.from_elements %x, %x : vector<2xf32>\n%w = arith.addf %v, %v : vector<2xf32>\n"
     "%r = vector.reduction <add>, %w : vector<2xf32> into f32"),
    ("%v = vector.load %f[%k] : vector<4xf32>\n%e = vector.extract %v[0]\n%u = vector.insert %e, %v[1]\n"
     "vector.store %u, %f[%k]\n%b = arith.cmpf olt, %v, %u\n%q = arith.select %b, %v, %u",
     "%v = vector.load %f[%k] : memref<20xf32>, vector<4xf32>\n%e = vector.extract %v[0] : f32 from vector<4xf32>\n"
     "%u = vector.insert %e, %v [1] : f32 into vector<4xf32>\nvector.store %u, %f[%k] : memref<20xf32>, vector<4xf32>\n"
     "%b = arith.cmpf olt, %v, %u : vector<4xf32>\n%q = arith.select %b, %v, %u : vector<4xi1>, vector<4xf32>"),
    ("%a = memref.load %z[%k]\n%r = complex.re %a\n%c = complex.create %r, %r\n%s2 = complex.mul %a, %c\n%m = complex.abs %s2",
     "%a = memref.load %z[%k] : memref<20xcomplex<f32>>\n%r = complex.re %a : complex<f32>\n"
     "%c = complex.create %r, %r : complex<f32>\n%s2 = complex.mul %a, %c : complex<f32>\n%m = complex.abs %s2 : complex<f32>"),
    # Loops.
    ("scf.for %a = 0 to 20 step 2 { memref.store %x, %f[%a] }",
     "%c0 = arith.constant 0 : index\n%c20 = arith.constant 20 : index\n%c2 = arith.constant 2 : index\n"
     "scf.for %a = %c0 to %c20 step %c2 {\n  memref.store %x, %f[%a] : memref<20xf32>\n}"),
    ("%r = scf.for %a = %k to %n step %n iter_args(%t = %x) { %u = arith.addf %t, %x scf.yield %u }",
     "%r = scf.for %a = %k to %n step %n iter_args(%t = %x) -> (f32) {\n  %u = arith.addf %t, %x : f32\n"
     "  scf.yield %u : f32\n}"),
    # What a region gives decides for its constants, and not what the region around it gives.
    ("%r = scf.for %a = %k to %n step %n iter_args(%t = %x) { %u = arith.constant 1 scf.yield %u }",
     "%r = scf.for %a = %k to %n step %n iter_args(%t = %x) -> (f32) {\n"
     "  %u = arith.constant 1.000000e+00 : f32\n  scf.yield %u : f32\n}"),
    ("%r = scf.for %a = %k to %n step %n iter_args(%t = %x) { linalg.map outs(%i) (%o) { %u = arith.constant 1 linalg.yield %u } scf.yield %t }",
     "%r = scf.for %a = %k to %n step %n iter_args(%t = %x) -> (f32) {\n"
     "  linalg.map outs(%i : memref<20xi32>)\n    (%o: i32) {\n      %u = arith.constant 1 : i32\n"
     "      linalg.yield %u : i32\n    }\n  scf.yield %t : f32\n}"),
    ("scf.for %a = 0 to %j { }",
     "%c0_i32 = arith.constant 0 : i32\n%c1_i32 = arith.constant 1 : i32\n"
     "scf.for %a = %c0_i32 to %j step %c1_i32  : i32 {\n}"),
    ("scf.parallel %a, %b = 0, 0 to %n, 20 { memref.store %x, %g[%a, %b] }",
     "%c0 = arith.constant 0 : index\n%c20 = arith.constant 20 : index\n%c1 = arith.constant 1 : index\n"
     "scf.parallel (%a, %b) = (%c0, %c0) to (%n, %c20) step (%c1, %c1) {\n"
     "  memref.store %x, %g[%a, %b] : memref<8x8xf32>\n  scf.reduce\n}"),
    ("%r = scf.parallel %a = %k to %n step %n init(%x) { scf.reduce(%x) { ^bb0(%l, %q): %u = arith.addf %l, %q scf.reduce.return %u } }",
     "%r = scf.parallel (%a) = (%k) to (%n) step (%n) init (%x) -> f32 {\n  scf.reduce(%x : f32) {\n"
     "  ^bb0(%l: f32, %q: f32):\n    %u = arith.addf %l, %q : f32\n    scf.reduce.return %u : f32\n  }\n}"),
    ("%b = arith.cmpf olt, %x, %x\n%r = scf.if %b { scf.yield %x } else { %y = arith.negf %x scf.yield %y }",
     "%b = arith.cmpf olt, %x, %x : f32\n%r = scf.if %b -> (f32) {\n  scf.yield %x : f32\n} else {\n"
     "  %y = arith.negf %x : f32\n  scf.yield %y : f32\n}"),
    ("%r = scf.while (%a = %k) { %b = arith.cmpi slt, %a, %n scf.condition(%b) %a } "
     "do { ^bb0(%c): %d = arith.addi %c, %n scf.yield %d }",
     "%r = scf.while (%a = %k) : (index) -> index {\n  %b = arith.cmpi slt, %a, %n : index\n"
     "  scf.condition(%b) %a : index\n} do {\n^bb0(%c: index):\n  %d = arith.addi %c, %n : index\n"
     "  scf.yield %d : index\n}"),
    ("%r = affine.for %a = 0 to 20 iter_args(%t = %x) { %u = affine.load %f[%a] affine.yield %u }",
     "%r = affine.for %a = 0 to 20 iter_args(%t = %x) -> (f32) {\n  %u = affine.load %f[%a] : memref<20xf32>\n"
     "  affine.yield %u : f32\n}"),
    ("affine.parallel %a, %b = 0, 0 to 8, 8 { affine.store %x, %g[%a, %b] }",
     "affine.parallel (%a, %b) = (0, 0) to (8, 8) {\n  affine.store %x, %g[%a, %b] : memref<8x8xf32>\n}"),
    ("affine.for %a = 0 to 20 { affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%a) { affine.store %x, %f[%a] } }",
     "affine.for %a = 0 to 20 {\n  affine.if #set(%a) {\n    affine.store %x, %f[%a] : memref<20xf32>\n  }\n}"),
    ("linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], "
     'iterator_types = ["parallel"]} ins(%f) outs(%f) { ^bb0(%a, %b): %c = arith.addf %a, %b linalg.yield %c }',
     'linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} '
     "ins(%f : memref<20xf32>) outs(%f : memref<20xf32>) {\n^bb0(%a: f32, %b: f32):\n"
     "  %c = arith.addf %a, %b : f32\n  linalg.yield %c : f32\n}"),
    ("linalg.reduce ins(%f) outs(%s) dimensions = [0] (%a, %b) { %c = arith.maximumf %a, %b linalg.yield %c }",
     "linalg.reduce ins(%f : memref<20xf32>) outs(%s : memref<f32>) dimensions = [0]\n  (%a: f32, %b: f32) {\n"
     "    %c = arith.maximumf %a, %b : f32\n    linalg.yield %c : f32\n  }"),
    ("%q = memref.generic_atomic_rmw %f[%k] { ^bb0(%a): %b = arith.addf %a, %x memref.atomic_yield %b }",
     "%q = memref.generic_atomic_rmw %f[%k] : memref<20xf32> {\n^bb0(%a: f32):\n  %b = arith.addf %a, %x : f32\n"
     "  memref.atomic_yield %b : f32\n}"),
    # Unknown operations with regions keep them, and what is short inside is completed.
    ("%r = scf.execute_region -> f32 { %a = arith.negf %x scf.yield %a }",
     "%r = scf.execute_region -> f32 {\n  %a = arith.negf %x : f32\n  scf.yield %a : f32\n}"),
    ("scf.forall (%a) in (20) { memref.store %x, %f[%a] }",
     "scf.forall (%a) in (20) {\n  memref.store %x, %f[%a] : memref<20xf32>\n}"),
    ("scf.index_switch %k\ncase 2 { memref.store %x, %f[%k] scf.yield }\ndefault { }",
     "scf.index_switch %k\ncase 2 {\n  memref.store %x, %f[%k] : memref<20xf32>\n  scf.yield\n}\ndefault {\n}"),
]  # fmt: skip


@pytest.mark.parametrize(("short", "full"), SEVERAL_LINES, ids=[s[:40] for s, _ in SEVERAL_LINES])
def test_statements_become(short: str, full: str, context: ir.Context) -> None:
    assert body_of(short, context) == full


def test_full_mlir_stays_as_it_is(context: ir.Context) -> None:
    for _, full in SEVERAL_LINES:
        if "#" not in full:
            assert body_of(full, context) == full


def test_buffers_take_the_arrays_types(context: ir.Context) -> None:
    arrays = bind_arrays({"a": np.zeros((4, 5), np.float32), "b": np.zeros((), np.complex128)})
    text = "avial.schedule %a, %b { %t = avial.target %x = avial.task %t, %a, %b { } }"
    module = parse_cell(text, cell="test", context=context, binding=arrays)
    assert "%arg0: memref<4x5xf32>" in str(module)
    assert "%arg1: memref<complex<f64>>" in str(module)


def test_overlapping_arrays_get_their_strides(context: ir.Context) -> None:
    base = np.zeros((8, 8), np.float32)
    arrays = bind_arrays({"a": base[:, :4], "b": base[:, 2:6]})
    text = "avial.schedule %a, %b { %t = avial.target %x = avial.task %t, %a, %b { } }"
    module = parse_cell(text, cell="test", context=context, binding=arrays)
    assert "%arg0: memref<8x4xf32, strided<[8, 1]>>" in str(module)


def test_a_type_with_unknown_sizes_is_cast(context: ir.Context) -> None:
    arrays = bind_arrays({"a": np.zeros(7, np.float32)})
    text = (
        "avial.schedule %a: memref<?xf32> { %t = avial.target %x = avial.task %t, %a {"
        " %c = arith.constant 0 %v = memref.load %a[%c] memref.store %v, %a[%c] } }"
    )
    module = parse_cell(text, cell="test", context=context, binding=arrays)
    shown = str(module.operation.get_asm(use_name_loc_as_prefix=True))
    assert '%a: memref<7xf32> {avial.name = "a"}' in shown
    assert "memref.cast %a : memref<7xf32> to memref<?xf32>" in shown
    assert str(parse_cell(print_module(module), cell="x", context=context)) == str(module)


@pytest.mark.parametrize(
    ("type_", "number", "constant"),
    [
        ("index", 42, "42 : index"),
        ("i8", 255, "-1 : i8"),
        ("f32", 2, "2.000000e+00 : f32"),
        ("i1", True, "true"),
    ],
)
def test_numbers_become_constants(
    type_: str, number: float, constant: str, context: ir.Context
) -> None:
    text = f"avial.schedule %n: {type_} {{ %t = avial.target %x = avial.task %t {{ }} }}"
    module = parse_cell(text, cell="test", context=context, scalars={"n": number})
    assert f"arith.constant {constant}" in str(module)
    assert "@main()" in str(module)


def test_schedules_share_one_main(context: ir.Context) -> None:
    text = """
        avial.schedule %a: memref<4xf32> { %t = avial.target %x = avial.task %t, %a { } }
        avial.schedule %b: memref<4xf32>, %a { %t = avial.target %y = avial.task %t, %a after_nothing { } }
    """.replace(" after_nothing", "")
    shown = str(parse_cell(text, cell="test", context=context))
    assert shown.count("func.func") == 1
    assert shown.count('"avial.schedule"') == 2
    assert shown.index('avial.name = "a"') < shown.index('avial.name = "b"')


def test_every_operation_knows_its_place(context: ir.Context) -> None:
    text = (
        "\navial.schedule %a: memref<4xf32> {\n  %t = avial.target\n  %x = avial.task %t, %a {\n"
        "    scf.parallel %i = 0 to 4 {\n      %v = memref.load %a[%i]\n    }\n    gpu.launch {\n"
        "      %k = gpu.thread_id x\n      %w = memref.load %a[%k]\n      memref.store %w, %a[%k]\n    }\n  }\n}\n"
    )
    module = parse_cell(text, cell="In [4]", context=context)
    unknown: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if '"In [4]"' not in str(op.location) and op.name != "builtin.module":
            unknown.append(f"{op.name} {op.location}")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    assert not unknown
    asm = str(module.operation.get_asm(enable_debug_info=True, use_name_loc_as_prefix=True))
    assert '#loc = loc("In [4]"' in asm or 'loc("In [4]":6:7)' in asm
    assert "scf.parallel (%i)" in asm


@pytest.mark.parametrize(
    ("extent", "blocks", "threads"), [(20, 1, 20), (256, 1, 256), (257, 2, 256), (1000, 4, 256)]
)
def test_a_bare_launch_has_a_thread_for_each_index(
    extent: int, blocks: int, threads: int, context: ir.Context
) -> None:
    text = (
        f"avial.schedule %a: memref<{extent}xf32> {{ %t = avial.target %x = avial.task %t, %a {{ gpu.launch {{"
        " %k = gpu.thread_id x %w = memref.load %a[%k] memref.store %w, %a[%k] } } }"
    )
    shown = str(parse_cell(text, cell="test", context=context))
    assert f"= %c{blocks}" in shown
    assert f"= %c{threads}" in shown
    assert ("arith.cmpi ult" in shown) == (blocks > 1)
    assert ("gpu.thread_id" in shown) == (blocks == 1)


def test_names_beyond_ascii(context: ir.Context) -> None:
    arrays = bind_arrays({"größe": np.zeros(4, np.float32)})
    text = (
        "avial.schedule %größe { %zíel = avial.target %añadir = avial.task %zíel, %größe {"
        " %c = arith.constant 1 %ü = memref.load %größe[%c] memref.store %ü, %größe[%c] } }"
    )
    module = parse_cell(text, cell="In [ü]", context=context, binding=arrays)
    assert 'name = "a\\C3\\B1adir"' in str(module)
    again = parse_cell(print_module(module), cell="x", context=context, binding=arrays)
    assert str(again) == str(module)


def test_a_wide_launch_looks_like_one_block(context: ir.Context) -> None:
    text = (
        "avial.schedule %a: memref<1000xindex> { %t = avial.target %x = avial.task %t, %a { gpu.launch {"
        " %me = gpu.thread_id x %b = gpu.block_id x %n = gpu.block_dim x %g = gpu.grid_dim x"
        " %s = arith.addi %b, %n %r = arith.addi %s, %g memref.store %r, %a[%me] } } }"
    )
    module = parse_cell(text, cell="test", context=context)
    shown = str(module.operation.get_asm(use_name_loc_as_prefix=True))
    assert "gpu.block_dim" not in shown
    assert "arith.addi %c0, %c1000" in shown
    assert "memref.store %r, %a[%me]" in shown


def test_a_block_label_in_a_task_is_refused(context: ir.Context) -> None:
    text = "avial.schedule { %t = avial.target avial.task %t { cf.br ^next ^next: } }"
    with pytest.raises(VerifyError, match="several blocks"):
        parse_cell(text, cell="test", context=context)
