"""Convolutions: sums over several loops become one, in the same order, and then blocks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.machine.cpu import Cpu
from tests.compiler.passes.rewriting import assert_same_bits

CPU = Cpu(vector_bytes=64, vector_registers=32)


def convolution(
    sizes: tuple[int, ...],
    *,
    first: int = 0,
    weight: str = "%o, %c, %p, %q",
    order: str = "ojcpq",
) -> str:
    """Y[o, j] += F[o, c, p, q] * X[c, p, j + q]."""
    o, j, c, p, q = sizes
    loops = {
        name: f"affine.for %{name} = 0 to {n} {{" for name, n in zip("ojcpq", sizes, strict=True)
    }
    loops["q"] = f"affine.for %q = {first} to {q} {{"
    f = f"memref<{o}x{c}x{p}x{q}xf64>"
    x, y = f"memref<{c}x{p}x{j + q}xf64>", f"memref<{o}x{j}xf64>"
    return f"""
      func.func @f(%F: {f}, %X: {x}, %Y: {y}) attributes {{avial.no_alias}} {{
          {" ".join(loops[name] for name in order)}
            %a = affine.load %F[{weight}] : {f}
            %b = affine.load %X[%c, %p, %j + %q] : {x}
            %old = affine.load %Y[%o, %j] : {y}
            %new = math.fma %a, %b, %old : f64
            affine.store %new, %Y[%o, %j] : {y} }} }} }} }} }}
        return }}"""


def blocked(text: str) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (BlockContractions(cpu=CPU),))
        return str(module)


def check(sizes: tuple[int, ...], before: str, after: str, **shapes: tuple[int, ...]) -> None:
    """`shapes`: those of other arrays, or of another shape."""
    o, j, c, p, q = sizes
    rng = np.random.default_rng(sum(sizes))
    arrays = {
        "F": rng.normal(size=(o, c, p, q)),
        "X": rng.normal(size=(c, p, j + q)),
        "Y": rng.normal(size=(o, j)),
    }
    arrays |= {name: rng.normal(size=shape) for name, shape in shapes.items()}
    assert_same_bits([before], [after], arrays)


@pytest.mark.parametrize(
    "sizes", [(40, 800, 3, 3, 1), (9, 1100, 3, 3, 3), (33, 57, 16, 3, 3), (81, 95, 1, 5, 7)]
)
def test_a_convolution_is_a_product_of_matrices(sizes):
    text = convolution(sizes)
    after = blocked(text)
    assert "avial.parallel" in after
    assert "memref.collapse_shape" in after, "weights lie one after another"
    check(sizes, text, after)


@pytest.mark.parametrize(
    ("sizes", "place"),
    [
        ((33, 57, 16, 3, 3), "%c, %p, %j + %q"),
        ((40, 95, 8, 3, 5), "%c, %p, %j - %q + 5"),
        ((40, 95, 8, 3, 5), "7 - %c, 2 - %p, %j + 2"),
    ],
)
def test_places_of_terms_are_found_once_for_all_rows(sizes, place):
    text = convolution(sizes).replace("%X[%c, %p, %j + %q]", f"%X[{place}]")
    assert f"%X[{place}]" in text
    after = blocked(text)
    terms = sizes[2] * sizes[3] * sizes[4]
    assert f"memref.alloc() : memref<{terms}xindex>" in after
    assert after.count("memref.dealloc") == after.count("memref.alloc("), "of the table, too"
    check(sizes, text, after)


def test_places_that_terms_and_columns_make_together_are_no_sum():
    """A row of X is of 3 + 57 elements; 57 and more of them are in the next ones."""
    sizes = (33, 57, 16, 3, 3)
    text = convolution(sizes).replace("%X[%c, %p, %j + %q]", "%X[%c, %p, (%j + %q) mod 60]")
    after = blocked(text)
    assert "xindex>" not in after
    check(sizes, text, after)


@pytest.mark.parametrize("columns", [8, 16, 40, 70])
def test_images_whose_channels_lie_side_by_side(columns):
    """Rows are found by a table as well, and read where they stand."""
    text = images(columns)
    after = blocked(text)
    assert "memref<72xindex>" in after
    assert "pack_left" not in after
    rng = np.random.default_rng(columns)
    arrays = {
        "X": rng.normal(size=(13, 14, 8)),
        "W": rng.normal(size=(3, 3, 8, columns)),
        "Y": rng.normal(size=(11, 12, columns)),
    }
    assert_same_bits([text], [after], arrays)


def images(columns: int) -> str:
    """Y[i, j, o] += X[i + a, j + b, c] * W[a, b, c, o]."""
    x, w, y = "memref<13x14x8xf64>", f"memref<3x3x8x{columns}xf64>", f"memref<11x12x{columns}xf64>"
    return f"""
      func.func @f(%X: {x}, %W: {w}, %Y: {y}) attributes {{avial.no_alias}} {{
        affine.for %i = 0 to 11 {{ affine.for %j = 0 to 12 {{
          affine.for %a = 0 to 3 {{ affine.for %b = 0 to 3 {{ affine.for %c = 0 to 8 {{
            affine.for %o = 0 to {columns} {{
              %x = affine.load %X[%i + %a, %j + %b, %c] : {x}
              %w = affine.load %W[%a, %b, %c, %o] : {w}
              %old = affine.load %Y[%i, %j, %o] : {y}
              %new = math.fma %x, %w, %old : f64
              affine.store %new, %Y[%i, %j, %o] : {y} }} }} }} }} }} }}
        return }}"""


@pytest.mark.parametrize(
    "form", [{"first": 1}, {"weight": "%o, %c, %p, %q mod 2"}, {"weight": "%o, %c, %q, %p"}]
)
def test_weights_in_another_order(form):
    sizes = (67, 191, 5, 3, 3)
    text = convolution(sizes, **form)
    after = blocked(text)
    assert "avial.parallel" in after
    assert set(re.findall(r"memref<67x\d+xf64>", after)) == {"memref<67x191xf64>"}, "that is Y"
    check(sizes, text, after)


@pytest.mark.parametrize("order", ["cpqoj", "cojpq", "cpqjo", "ocpqj"])
def test_terms_outside(order: str) -> None:
    """Those of one loop in the other are joined, also where the outermost is the whole nest."""
    sizes = (33, 67, 4, 3, 3)
    text = convolution(sizes, order=order)
    after = blocked(text)
    assert "avial.parallel" in after or order == "cojpq"
    check(sizes, text, after)


@pytest.mark.parametrize("order", ["ocjpq", "cojpq", "cjopq", "pcojq", "ocpjq", "cpoqj"])
@pytest.mark.parametrize("sizes", [(33, 67, 4, 3, 3), (40, 57, 16, 3, 5)])
def test_more_terms_around_elements_go_inside(order: str, sizes: tuple[int, ...]) -> None:
    """A sum over channels and windows is one, wherever the channels stand."""
    text = convolution(sizes, order=order)
    after = blocked(text)
    assert "avial.parallel" in after
    check(sizes, text, after)


@pytest.mark.parametrize("order", ["cojpq", "ocjpq"])
def test_what_else_is_added_up_in_these_loops_keeps_its_order(order: str) -> None:
    sizes = (33, 67, 4, 3, 3)
    text = convolution(sizes, order=order)
    text = text.replace("%Y: memref<33x67xf64>)", "%Y: memref<33x67xf64>, %Z: memref<33xf64>)")
    text = text.replace(
        "%old =",
        """%z = affine.load %Z[%o] : memref<33xf64>
           %s = arith.addf %z, %b : f64
           affine.store %s, %Z[%o] : memref<33xf64>
           %old =""",
    )
    check(sizes, text, blocked(text), Z=(33,))


def test_elements_that_several_iterations_around_add_to_keep_their_order() -> None:
    sizes = (33, 67, 4, 3, 3)
    text = convolution(sizes, order="cojpq").replace("33x67", "33x70").replace("%j]", "%j + %r]")
    text = text.replace("affine.for %o", "affine.for %r = 0 to 3 { affine.for %o")
    text = text.replace("return", "} return")
    check(sizes, text, blocked(text), Y=(33, 70))


@pytest.mark.parametrize("order", ["ojcpq", "cojpq", "ocjpq"])
@pytest.mark.parametrize("inside", "cjpq")
def test_a_loop_over_one_element_is_none_over_terms(order: str, inside: str) -> None:
    """Though what it stores to is the same in all its iterations."""
    sizes = (33, 67, 16, 3, 3)
    text = convolution(sizes, order=order).replace("33x67", "1x33x67")
    text = text.replace("%Y[%o", "%Y[%i, %o").replace("return", "} return")
    text = text.replace(f"affine.for %{inside}", f"affine.for %i = 0 to 1 {{ affine.for %{inside}")
    after = blocked(text)
    assert "avial.parallel" in after
    check(sizes, text, after, Y=(1, 33, 67))


def test_loops_that_are_no_box_stay_loops():
    """Only the innermost is summed then, and has too few terms."""
    sizes = (9, 20, 5, 3, 3)
    upto = "affine_map<(d) -> (d + 1)>(%p)"
    text = convolution(sizes).replace("%q = 0 to 3", f"%q = 0 to {upto}")
    assert "avial.parallel" not in blocked(text)


@pytest.mark.parametrize("thin", [0, 1])
def test_few_rows_or_columns_stay_loops(thin):
    sizes = [900, 900, 16, 3, 3]
    sizes[thin] = 7
    assert "avial.parallel" not in blocked(convolution(tuple(sizes)))


SMALL = "#y = affine_map<(d0, d1, d2) -> (d0 * 64 + d1 * 8 + d2)>\n"


def small_images(
    place: str, *, columns: int = 7, order: str = "oijcpq", window: int = 3, layout: str = ""
) -> str:
    """Y[o, i, j] += W[o, c, p, q] * X[c, place], rows of at most seven columns."""
    ends = {"o": 24, "i": 7, "j": columns, "c": 40, "p": window, "q": window}
    x, y = "memref<40x16x16xf64>", f"memref<24x7x7xf64{layout}>"
    w = f"memref<24x40x{window}x{window}xf64>"
    return f"""{SMALL if layout else ""}
      func.func @f(%W: {w}, %X: {x}, %Y: {y}) attributes {{avial.no_alias}} {{
        {" ".join(f"affine.for %{name} = 0 to {ends[name]} {{" for name in order)}
          %a = affine.load %W[%o, %c, %p, %q] : {w}
          %b = affine.load %X[%c, {place}] : {x}
          %old = affine.load %Y[%o, %i, %j] : {y}
          %new = math.fma %a, %b, %old : f64
          affine.store %new, %Y[%o, %i, %j] : {y} {"}" * 6}
        return }}"""


@pytest.mark.parametrize(
    ("place", "form"),
    [
        ("%i + %p, %j + %q", {}),
        ("%i * 2 + %p, %j * 2 + %q", {}),
        ("%i, %j", {"window": 1}),
        ("%i + %p, %j + %q", {"order": "oicpjq"}),
    ],
)
def test_rows_of_few_columns_that_lie_one_after_the_other_are_one(place, form):
    text = small_images(place, **form)
    after = blocked(text)
    assert "avial.parallel" in after
    assert "memref<24x49xf64>" in after
    rng = np.random.default_rng(7)
    window = form.get("window", 3)
    shapes = {"W": (24, 40, window, window), "X": (40, 16, 16), "Y": (24, 7, 7)}
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    assert_same_bits([text], [after], arrays)


@pytest.mark.parametrize("form", [{"columns": 6}, {"layout": ", #y"}])
def test_rows_with_something_in_between_stay_apart(form):
    assert "avial.parallel" not in blocked(small_images("%i + %p, %j + %q", **form))


@pytest.mark.parametrize(("columns", "blocks"), [(64, False), (65, True)])
def test_few_products_of_one_loop_stay_loops(columns, blocks):
    """32 x 64 x 128: their arrays stay in a core's caches."""
    product = f"""
    func.func @f(%A: memref<32x128xf64>, %B: memref<128x{columns}xf64>,
                 %C: memref<32x{columns}xf64>) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to 32 {{ affine.for %j = 0 to {columns} {{ affine.for %k = 0 to 128 {{
        %a = affine.load %A[%i, %k] : memref<32x128xf64>
        %b = affine.load %B[%k, %j] : memref<128x{columns}xf64>
        %old = affine.load %C[%i, %j] : memref<32x{columns}xf64>
        %new = math.fma %a, %b, %old : f64
        affine.store %new, %C[%i, %j] : memref<32x{columns}xf64> }} }} }}
      return }}"""
    assert ("avial.parallel" in blocked(product)) == blocks
    assert "avial.parallel" in blocked(convolution((32, 8, 8, 4, 4)))
