"""The reference runs a plain function as it is written, whatever is made of it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.analysis.accesses.buffers import caller_memory
from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.worker.reference.interpreter import ReferenceResult, reference
from avial_lab.core.buffers import bind_arrays, read_box, write_box
from avial_lab.core.errors import BindError
from avial_lab.core.regions import Box
from kernels import Dataset, load, names

Arrays = Mapping[str, np.ndarray]


def run(
    text: str, arrays: Arrays, numbers: Mapping[str, float] | None = None, *, checks: bool = True
) -> tuple[dict[str, np.ndarray], ReferenceResult]:
    """The arrays afterwards (those given stay as they are), results among them."""
    binding = bind_arrays(arrays)
    module = parse_cell(
        text, cell="f.mlir", context=ir.Context(), binding=binding, scalars=numbers or {}
    )
    buffers, storages = caller_memory(program_function(module), binding)
    data = {s.name: read_box(arrays, s, Box.whole(s.shape)) for s in binding.storages}
    found = reference(module, buffers, storages, data, bounds_checks=checks)
    after = {name: value for name, value in found.data.items() if name not in arrays}
    copies = _copies(arrays)
    for storage in binding.storages:
        write_box(copies, storage, Box.whole(storage.shape), found.data[storage.name])
    return after | copies, found


def _copies(arrays: Arrays) -> dict[str, np.ndarray]:
    """With the memory that they share shared."""
    base = {
        id(a if a.base is None else a.base): a if a.base is None else a.base
        for a in arrays.values()
    }
    assert all(isinstance(whole, np.ndarray) for whole in base.values())
    copied = {key: whole.copy() for key, whole in base.items()}
    result = {}
    for name, array in arrays.items():
        whole = array if array.base is None else array.base
        offset = array.ctypes.data - whole.ctypes.data
        result[name] = np.ndarray(
            array.shape, array.dtype, copied[id(whole)].data, offset, array.strides
        )
    return result


@pytest.mark.parametrize("name", names())
def test_a_kernel_is_what_numpy_says(name: str) -> None:
    kernel = load(name)
    sizes = kernel.datasets[Dataset.MINI]
    element = kernel.elements[0]
    dtype = {"f32": np.float32, "i32": np.int32}[element]
    given = kernel.inputs(sizes, dtype, np.random.default_rng(3))
    arrays = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
    numbers = {k: v.item() for k, v in given.items() if not isinstance(v, np.ndarray)}
    after, found = run(kernel.mlir(element), arrays, numbers)
    assert found.violations == ()
    truth, bound = kernel.truth(given), kernel.bound(given)
    for output in kernel.outputs:
        got, want = after[output], truth[output]
        with np.errstate(invalid="ignore"):
            near = np.abs(got - want) <= bound[output]
        assert (near | (np.isnan(got) & np.isnan(want))).all()


STENCIL = """\
func.func @f(%arg0: i32, %arg1: memref<?xf64>, %arg2: memref<?xf64>) attributes {llvm.linkage = #llvm.linkage<external>} {
  %c1_i32 = arith.constant 1 : i32
  %0 = arith.addi %arg0, %c1_i32 : i32
  %1 = arith.index_cast %0 : i32 to index
  %alloca = memref.alloca() : memref<3xf64>
  affine.for %arg3 = 1 to %1 {
    affine.for %arg4 = 0 to 3 {
      %2 = affine.load %arg1[%arg3 + %arg4 - 1] : memref<?xf64>
      affine.store %2, %alloca[%arg4] : memref<3xf64>
    }
    %3 = affine.load %alloca[0] : memref<3xf64>
    %4 = affine.load %alloca[2] : memref<3xf64>
    %5 = arith.addf %3, %4 : f64
    affine.store %5, %arg2[%arg3] : memref<?xf64>
  }
  return
}
"""  # noqa: E501  as it is written


def test_i32_arithmetic_and_stack_memory() -> None:
    a = np.random.default_rng(0).random(10)
    after, found = run(STENCIL, {"arg1": a, "arg2": np.zeros(10)}, {"arg0": 8})
    want = np.zeros(10)
    want[1:9] = a[:8] + a[2:]
    assert found.violations == ()
    assert (after["arg2"] == want).all()
    assert (after["arg1"] == a).all()


def test_i32_arithmetic_wraps_around() -> None:
    """2147483647 + 1 is negative: the loop does not run."""
    after, found = run(STENCIL, {"arg1": np.ones(10), "arg2": np.zeros(10)}, {"arg0": 2**31 - 1})
    assert found.violations == ()
    assert not after["arg2"].any()


@pytest.mark.parametrize("n", [0, -5])
def test_a_size_below_one_runs_nothing(n: int) -> None:
    after, found = run(STENCIL, {"arg1": np.ones(10), "arg2": np.zeros(10)}, {"arg0": n})
    assert found.violations == ()
    assert not after["arg2"].any()


def test_empty_arrays() -> None:
    empty = np.zeros(0)
    _, found = run(STENCIL, {"arg1": empty, "arg2": empty.copy()}, {"arg0": 0})
    assert found.violations == ()


def test_a_size_beyond_the_array_is_told() -> None:
    _, found = run(STENCIL, {"arg1": np.ones(10), "arg2": np.zeros(10)}, {"arg0": 9})
    (first,) = found.violations
    assert first.message == (
        "memref.load %arg1[%…]: index 10 is out of bounds for dimension 0 of size 10"
    )
    assert first.span is not None
    assert (first.span.cell, first.span.line) == ("f.mlir", 8)


CALLS = """\
func.func private @cosf(f32) -> f32
memref.global "private" constant @weights : memref<3xf32> = dense<[1.0, 2.0, 3.0]>
func.func @one(%x: memref<?xf32>, %i: index) -> f32 {
  %v = memref.load %x[%i] : memref<?xf32>
  %c = func.call @cosf(%v) : (f32) -> f32
  return %c : f32
}
func.func @main(%x: memref<?xf32>) -> (f32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %w = memref.get_global @weights : memref<3xf32>
  %n = memref.dim %x, %c0 : memref<?xf32>
  %sum, %count = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %k = %none) -> (f32, i32) {
    %v = func.call @one(%x, %i) : (memref<?xf32>, index) -> f32
    %a = memref.load %w[%i] : memref<3xf32>
    %p = arith.mulf %a, %v : f32
    %t = arith.addf %s, %p : f32
    %l = arith.addi %k, %one : i32
    scf.yield %t, %l : f32, i32
  }
  return %sum, %count : f32, i32
}
"""


@pytest.mark.parametrize("checks", [True, False])
def test_calls_globals_and_results(checks: bool) -> None:
    x = np.array([0.0, 0.5, 1.0], np.float32)
    after, _ = run(CALLS, {"x": x}, checks=checks)
    want = np.cos(x) @ np.array([1, 2, 3], np.float32)
    assert after["result0"].view(np.float32) == pytest.approx(want, rel=1e-6)
    assert after["result1"].view(np.int32) == 3


def test_an_index_beyond_a_global_is_told_in_the_helper_s_caller() -> None:
    _, found = run(CALLS, {"x": np.ones(4, np.float32)})
    assert found.violations[0].message == (
        "memref.load %w[%i]: index 3 is out of bounds for dimension 0 of size 3"
    )


def test_a_function_that_calls_itself() -> None:
    text = """\
func.func @power(%n: i32, %x: memref<i64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i64
  %more = arith.cmpi sgt, %n, %zero : i32
  scf.if %more {
    %v = memref.load %x[] : memref<i64>
    %w = arith.muli %v, %two : i64
    memref.store %w, %x[] : memref<i64>
    %m = arith.subi %n, %one : i32
    func.call @power(%m, %x) : (i32, memref<i64>) -> ()
  }
  return
}
"""
    after, _ = run(text, {"x": np.array(3)}, {"n": 10})
    assert after["x"] == 3 * 2**10


def test_branches_between_blocks() -> None:
    text = """\
func.func @f(%a: memref<4xi1>, %b: memref<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  %more = arith.cmpi slt, %i, %c4 : index
  cf.cond_br %more, ^body, ^done
^body:
  %x = memref.load %a[%i] : memref<4xi1>
  %true = arith.constant true
  %y = arith.xori %x, %true : i1
  memref.store %y, %b[%i] : memref<4xi1>
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index)
^done:
  return
}
"""
    a = np.array([True, False, False, True])
    after, found = run(text, {"a": a, "b": np.zeros(4, bool)})
    assert found.violations == ()
    assert (after["b"] == ~a).all()


def test_arrays_that_share_memory() -> None:
    """a[i + 1] = a[i], forwards: every element becomes the first."""
    text = """\
func.func @f(%a: memref<?xf32>, %b: memref<?xf32, strided<[?], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %v = affine.load %a[%i] : memref<?xf32>
    affine.store %v, %b[%i] : memref<?xf32, strided<[?], offset: ?>>
  }
  return
}
"""
    base = np.arange(1, 11, dtype=np.float32)
    after, found = run(text, {"a": base[:9], "b": base[1:]})
    assert found.violations == ()
    assert (after["b"] == 1).all()
    strided = np.arange(1, 21, dtype=np.float32)
    after, _ = run(text, {"a": strided[:10], "b": strided[1::2]})
    want = strided.copy()
    for i in range(10):
        want[1 + 2 * i] = want[i]
    assert (after["b"] == want[1::2]).all()


def test_tensors() -> None:
    """The argument is a value: it stays as it is."""
    text = """\
func.func @f(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
  %r = linalg.map ins(%x : tensor<?x3xf32>) outs(%x : tensor<?x3xf32>) (%in: f32, %old: f32) {
    %p = arith.mulf %in, %in : f32
    linalg.yield %p : f32
  }
  return %r, %x : tensor<?x3xf32>, tensor<?x3xf32>
}
"""
    x = np.random.default_rng(1).random((4, 3), np.float32)
    after, _ = run(text, {"x": x})
    assert (after["x"] == x).all()
    assert (after["result0"].view(np.float32) == x * x).all()
    assert (after["result1"].view(np.float32) == x).all()


def test_arithmetic_on_tensors_and_loops_that_hand_on_new_ones() -> None:
    text = """\
func.func @f(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<4xf32>) {
    %new = tensor.empty() : tensor<4xf32>
    %twice = arith.addf %y, %y : tensor<4xf32>
    %moved = linalg.generic {indexing_maps = [affine_map<(d0) -> (3 - d0)>,
        affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%twice : tensor<4xf32>) outs(%new : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4xf32>
    scf.yield %moved : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""
    x = np.arange(4, dtype=np.float32)
    after, _ = run(text, {"x": x}, {"n": 3})
    assert (after["result0"].view(np.float32) == 8 * x[::-1]).all()
    assert (after["x"] == x).all()


OF_A_LAYOUT = """
func.func @double(%x: memref<LAYOUT>, %y: memref<LAYOUT>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<LAYOUT>
  %m = memref.dim %x, %c1 : memref<LAYOUT>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %v = affine.load %x[%i, %j] : memref<LAYOUT>
      %w = arith.addf %v, %v : f64
      affine.store %w, %y[%i, %j] : memref<LAYOUT>
    }
  }
  return
}
"""


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (3, 4)])
@pytest.mark.parametrize("backwards", [(-1, 1), (1, -1), (-1, -1)])
def test_an_array_that_shares_memory_backwards(
    shape: tuple[int, int], backwards: tuple[int, int]
) -> None:
    """Element 0 of y is not its lowest in memory, and what lies around them stays as it is."""
    base = np.arange(70.0).reshape(7, 10)
    x = base[2 : 2 + shape[0], 3 : 3 + shape[1]]
    y = x[:: backwards[0], :: backwards[1]]
    text = OF_A_LAYOUT.replace("LAYOUT", "?x?xf64, strided<[?, ?], offset: ?>")
    after, found = run(text, {"x": x, "y": y})
    expected = base.copy()
    ex = expected[2 : 2 + shape[0], 3 : 3 + shape[1]]
    ey = ex[:: backwards[0], :: backwards[1]]
    for place in np.ndindex(shape):
        ey[place] = 2 * ex[place]
    assert found.violations == ()
    assert (np.asarray(after["x"].base).reshape(7, 10) == expected).all()


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("?x?xf64", (1, 1)),
        ("?x?xf64", (1, 4)),
        ("?x?xf64, strided<[?, 1]>", (3, 1)),
        ("?x?xf64, strided<[9, 1]>", (1, 4)),
        ("?x?xf64, strided<[9, 1]>", (0, 4)),
        ("1x?xf64, strided<[9, 1]>", (1, 1)),
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_along_one_element_any_stride_is_the_one_that_is_written(
    layout: str, shape: tuple[int, int], *, shared: bool
) -> None:
    """MLIR casts no stride to another, though a single element has none; `y` has one of its own."""
    base = np.arange(70.0).reshape(7, 10)
    x = base[: shape[0], : shape[1]]
    y = x if shared else np.zeros(shape)
    y = np.lib.stride_tricks.as_strided(
        y, shape, [-80 if n == 1 else s for n, s in zip(shape, y.strides, strict=True)]
    )
    arrays = {"x": x, "y": y}
    binding = bind_arrays(arrays)
    module = parse_cell(
        OF_A_LAYOUT.replace("LAYOUT", layout),
        cell="f.mlir",
        context=ir.Context(),
        binding=binding,
    )
    buffers, storages = caller_memory(program_function(module), binding)
    data = {s.name: read_box(arrays, s, Box.whole(s.shape)) for s in binding.storages}
    expected = 2 * x
    found = reference(module, buffers, storages, data)
    for storage in binding.storages:
        write_box(arrays, storage, Box.whole(storage.shape), found.data[storage.name])
    assert (y == expected).all()


@pytest.mark.parametrize("layout", ["", ", strided<[-4, 1]>", ", affine_map<(i, j) -> (i, j)>"])
def test_a_layout_that_the_array_has_not_is_refused(layout: str) -> None:
    """No layout is a layout without gaps, whatever the sizes: collapse_shape counts on it."""
    x = np.arange(12.0).reshape(3, 4)
    text = OF_A_LAYOUT.replace("LAYOUT", f"?x?xf64{layout}")
    with pytest.raises(BindError, match="has strides"):
        run(text, {"x": x[::-1], "y": x[::-1]})
    with pytest.raises(BindError, match="has strides"):
        run(text, {"x": x[:, 1:], "y": x[:, :-1]})


def test_what_nothing_stands_for() -> None:
    module = parse_cell(STENCIL, cell="f", context=ir.Context())
    with pytest.raises(BindError, match=r"no array or number is given for %arg0, which is i32"):
        caller_memory(program_function(module), None)


ENDS = {
    "an assertion": (
        """func.func @f(%a: memref<4xi64>) {
  %at = arith.constant 0 : index
  %x = memref.load %a[%at] : memref<4xi64>
  %zero = arith.constant 0 : i64
  %holds = arith.cmpi ne, %x, %zero : i64
  cf.assert %holds, "the first is 0"
  memref.store %zero, %a[%at] : memref<4xi64>
  return
}""",
        "",
    ),
    "a division by 0": (
        """func.func @f(%a: memref<4xi64>) {
  %at = arith.constant 0 : index
  %x = memref.load %a[%at] : memref<4xi64>
  %seven = arith.constant 7 : i64
  %y = arith.divsi %seven, %x : i64
  memref.store %y, %a[%at] : memref<4xi64>
  return
}""",
        "killed by SIGFPE",
    ),
    "no end of calls": (
        """func.func private @g(%a: memref<4xi64>) {
  %big = memref.alloca() : memref<4096xi64>
  %at = arith.constant 0 : index
  %x = memref.load %a[%at] : memref<4xi64>
  memref.store %x, %big[%at] : memref<4096xi64>
  func.call @g(%a) : (memref<4xi64>) -> ()
  %y = memref.load %big[%at] : memref<4096xi64>
  memref.store %y, %a[%at] : memref<4xi64>
  return
}
func.func @f(%a: memref<4xi64>) {
  func.call @g(%a) : (memref<4xi64>) -> ()
  return
}""",
        "killed by SIGSEGV",
    ),
}


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("what", ENDS)
def test_what_ends_a_program_does_not_end_this_process(what: str, checks: bool) -> None:
    text, ended = ENDS[what]
    after, found = run(text, {"a": np.zeros(4, np.int64)}, checks=checks)
    assert found.ended == ended
    asserted = [each.message for each in found.violations if each.asserted]
    assert asserted == ["the first is 0"] * (what == "an assertion")
    assert after["a"].tolist() == [0] * 4


@pytest.mark.parametrize("checks", [True, False])
def test_an_assertion_that_holds(checks: bool) -> None:
    text, _ = ENDS["an assertion"]
    after, found = run(text, {"a": np.ones(4, np.int64)}, checks=checks)
    assert (found.ended, found.violations) == ("", ())
    assert after["a"].tolist() == [0, 1, 1, 1]
