"""Arguments made up for a plain function: as large as its accesses allow, and no larger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.reference.sample_arguments import trial_arguments
from avial_lab.core.errors import BindError
from avial_lab.program.inputs import random_arguments
from kernels import Array, load, names
from tests.compiler.worker.reference.test_functions import run

FOREIGN = sorted(Path(__file__).parents[3].glob("foreign/*.mlir"))


def made_up(
    text: str, given: dict[str, tuple[int, ...]] | None = None, **numbers: float
) -> dict[str, Any]:
    """Each argument's value or shape; None for a float."""
    found = trial_arguments(Source(text, "f.mlir", None, numbers), given or {})
    return {a.name: a.value if a.shape is None else a.shape for a in found}


def body(inner: str, arguments: str) -> str:
    return f"func.func @f({arguments}) {{\n{inner}\n  return\n}}\n"


COPY = """  %n = arith.index_cast %arg0 : i32 to index
  affine.for %i = 0 to %n {
    %x = affine.load %arg1[%i + 2] : memref<SIZExf32>
    affine.store %x, %arg2[3 * %i] : memref<?xf32>
  }"""


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("?", {"arg0": 64, "arg1": (66,), "arg2": (190,)}),
        ("1000", {"arg0": 64, "arg1": (1000,), "arg2": (190,)}),
        ("10", {"arg0": 8, "arg1": (10,), "arg2": (22,)}),
    ],
)
def test_sizes_follow_from_accesses(size: str, expected: dict[str, object]) -> None:
    arguments = f"%arg0: i32, %arg1: memref<{size}xf32>, %arg2: memref<?xf32>"
    assert made_up(body(COPY.replace("SIZE", size), arguments)) == expected


def test_what_is_given_counts() -> None:
    text = body(COPY.replace("SIZE", "?"), "%arg0: i32, %arg1: memref<?xf32>, %arg2: memref<?xf32>")
    assert made_up(text, {"arg2": (31,)}) == {"arg0": 11, "arg1": (13,), "arg2": (31,)}
    assert made_up(text, arg0=5) == {"arg1": (7,), "arg2": (13,)}


def test_products_of_sizes() -> None:
    """C has one dimension: A[i * n + j]."""
    text = body(
        """  %n = arith.index_cast %arg0 : i32 to index
  affine.for %i = 0 to %n {
    %row = arith.muli %i, %n : index
    affine.for %j = 0 to %n {
      %at = arith.addi %row, %j : index
      %x = memref.load %arg1[%at] : memref<TxTYPE>
      memref.store %x, %arg2[%at] : memref<?xTYPE>
    }
  }""".replace("TYPE", "f32").replace("T", "?"),
        "%arg0: i32, %arg1: memref<?xf32>, %arg2: memref<?xf32>",
    )
    assert made_up(text) == {"arg0": 64, "arg1": (4096,), "arg2": (4096,)}
    small = text.replace("%arg1: memref<?xf32>", "%arg1: memref<300xf32>").replace(
        "%arg1[%at] : memref<?xf32>", "%arg1[%at] : memref<300xf32>"
    )
    assert made_up(small) == {"arg0": 16, "arg1": (300,), "arg2": (256,)}


def test_two_numbers_that_share_an_array() -> None:
    text = body(
        """  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.store %x, %a[%i + %j] : memref<20xf32>
    }
  }""",
        "%n: index, %m: index, %x: f32, %a: memref<20xf32>",
    )
    assert made_up(text) == {"n": 20, "m": 1, "x": None, "a": (20,)}


def test_whole_arrays_are_of_one_size() -> None:
    """What is copied, and what linalg runs over, has the same size on both sides."""
    text = body(
        """  affine.for %i = 0 to %n {
    affine.store %x, %a[%i + 1, 0] : memref<?x?xf32>
  }
  memref.copy %a, %b : memref<?x?xf32> to memref<?x?xf32>
  linalg.add ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)""",
        "%n: index, %x: f32, %a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>",
    )
    found = made_up(text)
    assert found["a"] == found["b"] == found["c"]
    assert found["n"] == found["a"][0] - 1


def test_bytes_that_other_arrays_are_made_of() -> None:
    text = body(
        "  %at = arith.constant 8 : index\n"
        "  %v = memref.view %a[%at][%n] : memref<?xi8> to memref<?x3xf64>\n"
        "  affine.for %i = 0 to %n {\n"
        "    %x = affine.load %v[%i, 0] : memref<?x3xf64>\n"
        "    affine.store %x, %v[%i, 1] : memref<?x3xf64>\n  }",
        "%a: memref<?xi8>, %n: index",
    )
    assert made_up(text, n=5) == {"a": (8 + 5 * 3 * 8,)}
    assert made_up(text)["a"] == (8 + 64 * 3 * 8,)


@pytest.mark.parametrize("kind", ["memref", "tensor"])
def test_what_a_convolution_slides_over_is_larger(kind: str) -> None:
    one = f"{kind}<?x?x?x?xf32>"
    head = f"%x: {one}, %w: {one}, %y: {one}"
    conv = (
        "linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, "
        f"dilations = dense<1> : tensor<2xi64>}} ins(%x, %w : {one}, {one}) outs(%y : {one})"
    )
    text = f"func.func @f({head}) {{\n  {conv}\n  return\n}}\n"
    if kind == "tensor":
        text = (
            f"func.func @f({head}) -> {one} {{\n  %r = {conv} -> {one}\n  return %r : {one}\n}}\n"
        )
    found = made_up(text)
    rows = found["y"][1]
    assert found["x"][1:3] == (2 * (rows - 1) + found["w"][0],) * 2
    assert 1 < rows < 64, "its work counts"
    assert made_up(text, {"x": (1, 9, 9, 1), "w": (3, 3, 1, 1)})["x"] == (1, 9, 9, 1)


def test_linalg_alone_has_sizes_too() -> None:
    text = body(
        "linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x9xf32>) outs(%c : memref<?x9xf32>)",
        "%a: memref<?x?xf32>, %b: memref<?x9xf32>, %c: memref<?x9xf32>",
    )
    assert made_up(text) == {"a": (64, 64), "b": (64, 9), "c": (64, 9)}


def test_a_program_that_would_run_for_hours_is_smaller() -> None:
    nest = "affine.for %i{0} = 0 to %n {{\n"
    text = body(
        "".join(nest.format(k) for k in range(7))
        + "%v = affine.load %a[%i6] : memref<?xf32>\n affine.store %v, %a[%i0] : memref<?xf32>\n"
        + "}\n" * 7,
        "%n: index, %a: memref<?xf32>",
    )
    assert made_up(text) == {"n": 8, "a": (8,)}


def test_unused_arguments_and_other_types() -> None:
    text = body("", "%a: i8, %b: i1, %c: i64, %d: f64, %e: memref<?x3xi8>, %f: memref<index>")
    assert made_up(text) == {"a": 64, "b": 1, "c": 64, "d": None, "e": (64, 3), "f": ()}


def test_what_cannot_be_made_up() -> None:
    with pytest.raises(BindError, match="its number of dimensions is not known"):
        made_up("func.func @f(%a: memref<*xf32>) { return }")
    with pytest.raises(BindError, match="which no NumPy array holds"):
        made_up("func.func @f(%a: memref<4xvector<4xf32>>) { return }")


@pytest.mark.parametrize("name", names())
def test_a_kernel_gets_arrays_that_fit_together(name: str) -> None:
    """Every size of its own, or what the largest access needs."""
    kernel = load(name)
    found = made_up(kernel.mlir(kernel.elements[0]))
    for key, argument in kernel.arguments.items():
        if isinstance(argument, Array):
            assert len(found[key]) == len(argument.extents.split())


# Values -------------------------------------------------------------------------------------------


@pytest.mark.quick(
    "table_to_an_argument",
    "csr_power",
    "small_cnn",
    "lu_solve",
    "bound_from_memory",
    "unsigned_guards",
    "swapped_buffers",
    "tickets",
)
@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_a_function_runs_on_them(path: Path) -> None:
    """No index leaves its array; where integers are indices, on the second try."""
    text = path.read_text()
    found = random_arguments(text, arrays={}, scalars={})
    _, result = run(text, found.arrays, found.scalars)
    if result.violations and found.draw_indices(0) is not None:
        _, result = run(text, found.arrays, found.scalars)
    assert result.violations == ()


VALUES = body("", "%f: memref<50xf32>, %i: memref<50xi8>, %b: memref<50xi1>, %n: i32, %x: f32")


def test_the_same_seed_gives_the_same_values() -> None:
    first, again, other = (
        random_arguments(VALUES, arrays={}, scalars={}, seed=seed) for seed in (1, 1, 2)
    )
    for name, array in first.arrays.items():
        assert (array == again.arrays[name]).all()
        assert not (array == other.arrays[name]).all()
        assert len(np.unique(array)) > 1, "never constant"
    assert first.scalars == again.scalars != other.scalars
    assert 0.5 <= first.scalars["x"] < 1.5
    integers = first.arrays["i"]
    assert (integers < 0).any()
    assert (integers > 0).any()
    assert (integers != 0).all(), "they may be divisors"


def test_single_elements_are_arrays_too() -> None:
    text = body("", "%i: memref<i8>, %b: memref<i1>, %f: memref<f32>, %c: memref<complex<f32>>")
    for array in random_arguments(text, arrays={}, scalars={}).arrays.values():
        assert isinstance(array, np.ndarray)
        assert array.shape == ()


def test_what_was_chosen_is_told() -> None:
    found = random_arguments(VALUES, arrays={}, scalars={}, seed=3)
    assert found.note.startswith(
        "no inputs given: random f = 50xf32, i = 50xi8, b = 50xi1, n = 64, x = "
    )
    assert found.note.endswith(", seed 3; set your own with --seed, -D NAME=…, --in NAME=…")
    some = random_arguments(VALUES, arrays={"2": np.ones(50, bool)}, scalars={"n": 1, "4": 2.0})
    assert some.note.startswith("not all inputs given: random f = 50xf32, i = 50xi8, seed 0")
    assert some.arrays["b"].all()
    assert some.scalars == {"n": 1, "x": 2.0}


def test_integers_as_indices() -> None:
    found = random_arguments(
        body("", "%i: memref<50xi32>, %j: memref<30xi8>, %f: memref<7x?xf32>"),
        arrays={},
        scalars={},
    )
    assert found.draw_indices(0) == 7
    assert sorted(set(found.arrays["i"])) == list(range(7))
    given = random_arguments(
        body("", "%i: memref<50xi32>, %f: memref<7xf32>"),
        arrays={"i": np.full(50, -3, np.int32)},
        scalars={},
    )
    assert given.draw_indices(0) is None
    assert (given.arrays["i"] == -3).all(), "the caller's stay"
