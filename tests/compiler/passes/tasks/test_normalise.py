"""Normalised functions compute the same bits, keep their places, and have the promised form."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mlir import ir

import kernels
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.normalise import Normalise
from avial_lab.core.errors import PassError
from kernels.kernel import ELEMENTS
from tests.kernels.jit import Machine
from tests.kernels.some import some_kernels

AWKWARD = ((7, 11, 5, 13, 3), (2, 4, 3, 1, 2))
"""For dynamic shapes, for static ones."""


def normalised(text: str, context: ir.Context) -> ir.Module:
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (Normalise(),))
    module.operation.verify()
    return module


def function_text(module: ir.Module, name: str) -> str:
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    return next(str(op) for op in functions if op.sym_name.value == name)


@some_kernels()
def test_kernels_compute_the_same_bits(name: str, context: ir.Context) -> None:
    kernel = kernels.load(name)
    texts, wanted = [], []
    for element in kernel.elements[:1]:
        for number, extents in enumerate(AWKWARD):
            sizes = dict(zip(kernel.size_names, extents, strict=False))
            text = kernel.mlir(element, sizes if number else None)
            module = normalised(text, context)
            assert not re.search(r"linalg\.|memref\.copy|tensor", str(module))
            key = f"{element}_{number}"
            texts += [(key, text), (f"{key}_normal", function_text(module, kernel.function))]
            wanted.append((key, element, sizes))
    machine = Machine(texts, context)
    for key, element, sizes in wanted:
        arguments = kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(5))
        before, after = machine.call(key, arguments), machine.call(f"{key}_normal", arguments)
        for array, value in before.items():
            assert value.tobytes() == after[array].tobytes(), (key, array)


# -- what other compilers write --------------------------------------------------------------------

CASES = {
    "a sum by affine.for": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %zero = arith.constant 0.5 : f32
      %s = affine.for %i = 0 to 5 iter_args(%a = %zero) -> f32 {
        %t = affine.for %j = 0 to 7 iter_args(%b = %a) -> f32 {
          %x = affine.load %A[%i, %j] : memref<5x7xf32>
          %n = arith.addf %b, %x : f32
          affine.yield %n : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %B[1] : memref<3xf32>
      return }""",
    "two sums, of which one is handed through": """
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %zero = arith.constant 0.5 : f32
      %s:2 = affine.for %i = 0 to 5 iter_args(%a = %zero, %c = %zero) -> (f32, f32) {
        %t:3 = affine.for %j = 0 to affine_map<(d) -> (d * 3 - 3)>(%i)
            iter_args(%d = %zero, %b = %a, %e = %c) -> (f32, f32, f32) {
          %x = affine.load %A[%i, %j mod 7] : memref<5x7xf32>
          %n = arith.addf %b, %x : f32
          %m = arith.mulf %d, %x : f32
          %o = arith.addf %m, %e : f32
          affine.yield %o, %n, %m : f32, f32, f32
        }
        %u = arith.addf %t#0, %t#2 : f32
        affine.yield %t#1, %u : f32, f32
      }
      affine.store %s#0, %B[1] : memref<3xf32>
      affine.store %s#1, %B[2] : memref<3xf32>
      return }""",
    "sums of three loops that change places": """
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c5 = arith.constant 5 : index
      %zero = arith.constant 0.5 : f32
      %one = arith.constant 1.5 : f32
      %s:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %zero, %b = %one) -> (f32, f32) {
        %t:2 = scf.for %j = %c0 to %c5 step %c2 iter_args(%c = %b, %d = %a) -> (f32, f32) {
          %u:2 = scf.for %k = %c0 to %j step %c1 iter_args(%e = %d, %f = %c) -> (f32, f32) {
            %x = memref.load %A[%i, %k] : memref<5x7xf32>
            %n = arith.addf %e, %x : f32
            %m = arith.mulf %f, %x : f32
            scf.yield %m, %n : f32, f32
          }
          scf.yield %u#1, %u#0 : f32, f32
        }
        scf.yield %t#1, %t#0 : f32, f32
      }
      memref.store %s#0, %B[%c1] : memref<3xf32>
      memref.store %s#1, %B[%c2] : memref<3xf32>
      return }""",
    "from an element and back": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      affine.for %j = 1 to 3 {
        %first = affine.load %B[%j] : memref<3xf32>
        %s = affine.for %i = 0 to 5 iter_args(%a = %first) -> f32 {
          %x = affine.load %A[%i, %j] : memref<5x7xf32>
          %y = affine.load %B[%j - 1] : memref<3xf32>
          %z = arith.mulf %x, %y : f32
          %n = arith.addf %a, %z : f32
          affine.yield %n : f32
        }
        %u = affine.load %B[%j - 1] : memref<3xf32>
        %v = arith.addf %s, %u : f32
        affine.store %v, %B[%j] : memref<3xf32>
      }
      return }""",
    "from an element read in its loop": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      affine.for %j = 1 to 3 {
        %first = affine.load %B[%j] : memref<3xf32>
        %s = affine.for %i = 0 to 5 iter_args(%a = %first) -> f32 {
          %x = affine.load %A[%i, %j] : memref<5x7xf32>
          %y = affine.load %B[%j] : memref<3xf32>
          %z = arith.mulf %x, %y : f32
          %n = arith.addf %a, %z : f32
          affine.yield %n : f32
        }
        %u = affine.load %B[%j - 1] : memref<3xf32>
        %v = arith.addf %s, %u : f32
        affine.store %v, %B[%j] : memref<3xf32>
      }
      return }""",
    "from an element read after its loop": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      affine.for %j = 1 to 3 {
        %first = affine.load %B[%j] : memref<3xf32>
        %s = affine.for %i = 0 to 5 iter_args(%a = %first) -> f32 {
          %x = affine.load %A[%i, %j] : memref<5x7xf32>
          %y = affine.load %B[%j - 1] : memref<3xf32>
          %z = arith.mulf %x, %y : f32
          %n = arith.addf %a, %z : f32
          affine.yield %n : f32
        }
        %u = affine.load %B[-%j + 2] : memref<3xf32>
        %v = arith.addf %s, %u : f32
        affine.store %v, %B[%j] : memref<3xf32>
      }
      return }""",
    "two carried values, one of them a count": """
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %zero = arith.constant 0.5 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %s:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %zero, %k = %c1) -> (f32, index) {
        %j = arith.remui %k, %c5 : index
        %x = memref.load %A[%i, %j] : memref<5x7xf32>
        %n = arith.maximumf %a, %x : f32
        %more = arith.addi %k, %k : index
        scf.yield %n, %more : f32, index
      }
      %m = arith.remui %s#1, %c5 : index
      %y = memref.load %A[%m, %m] : memref<5x7xf32>
      %z = arith.mulf %s#0, %y : f32
      memref.store %z, %B[%c1] : memref<3xf32>
      return }""",
    "reductions of scf.parallel": """
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %one = arith.constant 1.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %c7 = arith.constant 7 : index
      %s:2 = scf.parallel (%i, %j) = (%c0, %c0) to (%c5, %c7) step (%c1, %c1)
          init (%one, %one) -> (f32, f32) {
        %x = memref.load %A[%i, %j] : memref<5x7xf32>
        %y = arith.mulf %x, %x : f32
        scf.reduce(%x, %y : f32, f32) {
        ^bb0(%l: f32, %r: f32):
          %t = arith.addf %l, %r : f32
          scf.reduce.return %t : f32
        }, {
        ^bb0(%l: f32, %r: f32):
          %t = arith.minimumf %r, %l : f32
          scf.reduce.return %t : f32
        }
      }
      memref.store %s#0, %B[%c0] : memref<3xf32>
      memref.store %s#1, %B[%c1] : memref<3xf32>
      return }""",
    "reductions of affine.parallel": """
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %s:3 = affine.parallel (%i, %j) = (0, 0) to (5, 7)
          reduce ("addf", "maximumf", "mulf") -> (f32, f32, f32) {
        %x = affine.load %A[%i, %j] : memref<5x7xf32>
        affine.yield %x, %x, %x : f32, f32, f32
      }
      affine.store %s#0, %B[0] : memref<3xf32>
      affine.store %s#1, %B[1] : memref<3xf32>
      affine.store %s#2, %B[2] : memref<3xf32>
      return }""",
    "a while loop with a residual": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %big = arith.constant 100.0 : f32
      %small = arith.constant 0.05 : f32
      %zero = arith.constant 0.0 : f32
      %half = arith.constant 0.5 : f32
      %r:2 = scf.while (%res = %big, %k = %c0) : (f32, index) -> (f32, index) {
        %more = arith.cmpf ogt, %res, %small : f32
        %room = arith.cmpi ult, %k, %c9 : index
        %go = arith.andi %more, %room : i1
        scf.condition(%go) %res, %k : f32, index
      } do {
      ^bb0(%res: f32, %k: index):
        affine.for %i = 0 to 5 {
          affine.for %j = 0 to 7 {
            %x = affine.load %A[%i, %j] : memref<5x7xf32>
            %y = arith.mulf %x, %half : f32
            affine.store %y, %A[%i, %j] : memref<5x7xf32>
          }
        }
        %sum = affine.for %i = 0 to 5 iter_args(%a = %zero) -> f32 {
          %x = affine.load %A[%i, 3] : memref<5x7xf32>
          %p = math.absf %x : f32
          %n = arith.addf %a, %p : f32
          affine.yield %n : f32
        }
        %next = arith.addi %k, %c1 : index
        scf.yield %sum, %next : f32, index
      }
      memref.store %r#0, %B[%c0] : memref<3xf32>
      return }""",
    "a scalar that every iteration overwrites": """
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %zero = arith.constant 0.5 : f32
      %t = memref.alloca() : memref<1xf32>
      affine.for %i = 0 to 3 {
        affine.store %zero, %t[0] : memref<1xf32>
        affine.for %j = 0 to 7 {
          %o = affine.load %t[0] : memref<1xf32>
          %x = affine.load %A[%i, %j] : memref<5x7xf32>
          %n = arith.addf %o, %x : f32
          affine.store %n, %t[0] : memref<1xf32>
        }
        %s = affine.load %t[0] : memref<1xf32>
        affine.store %s, %B[%i] : memref<3xf32>
      }
      return }""",
    "a row of scratch": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %t = memref.alloc() : memref<7xf32>
      affine.for %i = 1 to 5 {
        affine.for %j = 0 to 7 {
          %x = affine.load %A[%i - 1, 6 - %j] : memref<5x7xf32>
          affine.store %x, %t[%j] : memref<7xf32>
        }
        affine.for %j = 0 to 7 {
          %x = affine.load %t[6 - %j] : memref<7xf32>
          %y = arith.addf %x, %x : f32
          affine.store %y, %A[%i, %j] : memref<5x7xf32>
        }
      }
      memref.dealloc %t : memref<7xf32>
      return }""",
    "memory that a time step allocates": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      affine.for %t = 0 to 3 {
        %n = memref.alloc() : memref<5x7xf32>
        affine.for %i = 0 to 5 {
          affine.for %j = 0 to 7 {
            %x = affine.load %A[4 - %i, 6 - %j] : memref<5x7xf32>
            %y = arith.addf %x, %x : f32
            affine.store %y, %n[%i, %j] : memref<5x7xf32>
          }
        }
        memref.copy %n, %A : memref<5x7xf32> to memref<5x7xf32>
        memref.dealloc %n : memref<5x7xf32>
      }
      return }""",
    "loops of i32, one in another": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c5 = arith.constant 5 : i32
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %k = arith.index_cast %i : i32 to index
        scf.for %j = %i to %c5 step %c1 : i32 {
          %l = arith.index_cast %j : i32 to index
          %less = arith.subi %j, %i : i32
          %x = arith.sitofp %less : i32 to f32
          memref.store %x, %A[%k, %l] : memref<5x7xf32>
        }
      }
      return }""",
    "a forall": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      scf.forall (%i, %j) in (5, 7) {
        %x = memref.load %A[%i, %j] : memref<5x7xf32>
        %y = arith.addf %x, %x : f32
        memref.store %y, %A[%i, %j] : memref<5x7xf32>
      } {mapping = [#gpu.block<y>, #gpu.block<x>]}
      return }""",
    "a generic that reduces first": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %t = memref.alloc() : memref<7xf32>
      %zero = arith.constant 0.5 : f32
      linalg.fill ins(%zero : f32) outs(%t : memref<7xf32>)
      linalg.generic {indexing_maps = [affine_map<(r, p) -> (r, p)>, affine_map<(r, p) -> (p)>],
                      iterator_types = ["reduction", "parallel"]}
        ins(%A : memref<5x7xf32>) outs(%t : memref<7xf32>) {
      ^bb0(%x: f32, %o: f32):
        %k = linalg.index 0 : index
        %l = linalg.index 1 : index
        %m = arith.subi %k, %l : index
        %q = arith.index_cast %m : index to i32
        %w = arith.sitofp %q : i32 to f32
        %y = arith.mulf %w, %x : f32
        %n = arith.addf %o, %y : f32
        linalg.yield %n : f32
      }
      affine.for %i = 0 to 3 {
        %x = affine.load %t[%i + 2] : memref<7xf32>
        affine.store %x, %B[%i] : memref<3xf32>
      }
      return }""",
    "tensors inside": """func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %a = bufferization.to_tensor %A restrict : memref<5x7xf32> to tensor<5x7xf32>
      %e = tensor.empty() : tensor<5x5xf32>
      %zero = arith.constant 0.5 : f32
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x5xf32>) -> tensor<5x5xf32>
      %te = tensor.empty() : tensor<7x5xf32>
      %at = linalg.transpose ins(%a : tensor<5x7xf32>) outs(%te : tensor<7x5xf32>)
          permutation = [1, 0]
      %m = linalg.matmul ins(%a, %at : tensor<5x7xf32>, tensor<7x5xf32>)
          outs(%f : tensor<5x5xf32>) -> tensor<5x5xf32>
      %s = tensor.extract_slice %m[1, 2] [1, 3] [1, 1] : tensor<5x5xf32> to tensor<3xf32>
      bufferization.materialize_in_destination %s in restrict writable %B
          : (tensor<3xf32>, memref<3xf32>) -> ()
      return }""",
    "a call in a time loop": """func.func private @step(%X: memref<5x7xf32>, %n: i32) {
      %m = arith.index_cast %n : i32 to index
      affine.for %i = 1 to %m {
        affine.for %j = 0 to 7 {
          %x = affine.load %X[%i - 1, %j] : memref<5x7xf32>
          %y = affine.load %X[%i, %j] : memref<5x7xf32>
          %z = arith.addf %x, %y : f32
          affine.store %z, %X[%i, %j] : memref<5x7xf32>
        }
      }
      return
    }
    func.func @f(%A: memref<5x7xf32>, %B: memref<3xf32>) {
      %n = arith.constant 5 : i32
      affine.for %t = 0 to 3 {
        func.call @step(%A, %n) : (memref<5x7xf32>, i32) -> ()
      }
      return }""",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases_compute_the_same_bits(name: str, context: ir.Context) -> None:
    arguments = {
        key: np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)
        for key, shape in (("A", (5, 7)), ("B", (3,)))
    }
    plain = ir.Module.parse(CASES[name], context)
    run_passes(plain.operation, _PLAINLY)
    after = normalised(CASES[name], context)
    machine = Machine(
        [("before", function_text(plain, "f")), ("after", function_text(after, "f"))], context
    )
    first, second = machine.call("before", arguments), machine.call("after", arguments)
    for key, value in first.items():
        assert value.tobytes() == second[key].tobytes(), key
    assert any(value.tobytes() != arguments[key].tobytes() for key, value in first.items())


# What gives the same function to a compiler that knows nothing of ours.
_PLAINLY = (
    "one-shot-bufferize",
    "convert-linalg-to-loops",
    "scf-forall-to-for",
    "lower-affine",
    "inline",
    "expand-strided-metadata",
    "lower-affine",
)


def body_of(name: str, context: ir.Context) -> str:
    return function_text(normalised(CASES[name], context), "f")


def test_sums_are_in_memory_where_ranks_can_add_up(context: ir.Context) -> None:
    for name in (
        "a sum by affine.for",
        "reductions of scf.parallel",
        "reductions of affine.parallel",
    ):
        text = body_of(name, context)
        assert re.search(r"memref\.alloc\(\)\s*: memref<f32>", text)
        assert not re.search(r"^  %\S+ = (affine|scf)\.(for|parallel)", text, re.MULTILINE)
    outer = body_of("a sum by affine.for", context)
    assert "affine.for %arg2 = 0 to 5 {" in outer
    assert "iter_args" not in outer  # the inner one only hands it through
    assert outer.count("memref.alloc()") == 1
    some = body_of("two sums, of which one is handed through", context)
    assert some.count("memref.alloc()") == 2
    assert some.count("iter_args") == 1


def test_a_value_stays_in_its_element_where_nobody_looks(context: ir.Context) -> None:
    assert "memref<f32>" not in body_of("from an element and back", context)
    for name in (
        "from an element read in its loop",
        "from an element read after its loop",
    ):
        assert "memref<f32>" in body_of(name, context), name


def test_what_scalars_decide_stays_a_value(context: ir.Context) -> None:
    text = body_of("two carried values, one of them a count", context)
    assert re.search(r"affine\.for .* iter_args\(%\w+ = %c1\) -> \(index\)", text)
    text = body_of("a while loop with a residual", context)
    assert re.search(r"scf\.while \(%\w+ = %c0\) : \(index\) -> index", text)


def test_scratch_memory_stands_where_it_is_private(context: ir.Context) -> None:
    text = body_of("a scalar that every iteration overwrites", context)
    assert text.index("affine.for") < text.index("memref.alloca")
    # Rows depend on the row before: nothing would run in parallel with rows of its own.
    text = body_of("a row of scratch", context)
    assert text.index("memref.alloc()") < text.index("affine.for")
    assert "dealloc" not in text
    text = body_of("memory that a time step allocates", context)
    assert text.index("memref.alloc()") < text.index("affine.for")
    assert "dealloc" not in text


def test_one_variable_for_many_loops_is_one_for_each(context: ir.Context) -> None:
    """As C has it: `double w;` at the top, used by loop after loop."""
    loop = """affine.for %i = 0 to 5 {
        %x = affine.load %A[%i, 0] : memref<5x7xf32>
        affine.store %x, %w[] : memref<f32>
        affine.for %j = 1 to 7 {
          %o = affine.load %w[] : memref<f32>
          %y = affine.load %A[%i, %j] : memref<5x7xf32>
          %n = arith.addf %o, %y : f32
          affine.store %n, %w[] : memref<f32>
        }
        %s = affine.load %w[] : memref<f32>
        affine.store %s, %A[%i, 0] : memref<5x7xf32>
      }
      """
    head = """func.func @f(%A: memref<5x7xf32>) {
      %w = memref.alloca() : memref<f32>
      %u = llvm.mlir.undef : f32
      affine.store %u, %w[] : memref<f32>
      """
    text = function_text(normalised(f"{head}{loop}{loop}return }}", context), "f")
    assert text.count("memref.alloca") == 2
    assert "undef" not in text
    assert text.index("affine.for") < text.index("memref.alloca")


def test_memory_that_outlives_an_iteration_stays(context: ir.Context) -> None:
    first = "affine.store %zero, %t[0] : memref<1xf32>\n"
    text = CASES["a scalar that every iteration overwrites"].replace(first, "", 1)
    text = text.replace("affine.for %i", f"{first} affine.for %i", 1)
    after = function_text(normalised(text, context), "f")
    assert after.index("memref.alloca") < after.index("affine.for")


def test_loops_count_in_index(context: ir.Context) -> None:
    text = body_of("loops of i32, one in another", context)
    assert ": i32 {" not in text


def test_calls_are_written_out(context: ir.Context) -> None:
    text = body_of("a call in a time loop", context)
    assert "call" not in text
    assert text.count("affine.for") == 3


def test_a_function_that_calls_itself_is_left_alone(context: ir.Context) -> None:
    text = """func.func @f(%A: memref<4xf32>) {
      func.call @f(%A) : (memref<4xf32>) -> ()
      return }"""
    assert "call @f" in function_text(normalised(text, context), "f")


@pytest.mark.parametrize("name", CASES)
def test_every_operation_keeps_its_place(name: str, context: ir.Context) -> None:
    for op in operations_in(normalised(CASES[name], context).operation):
        if op.name not in ("func.func", "arith.constant"):
            assert span_of(op.location) is not None, f"{op.name} {op.location}"


def test_tensors_that_have_no_memory_are_refused(context: ir.Context) -> None:
    text = """func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %b = linalg.exp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
      return %b : tensor<4xf32> }"""
    with pytest.raises(PassError, match="tensor"):
        normalised(text, context)


FREED_IN_A_LOOP = """
  func.func @f(%A: memref<8xf64>, %n: index) {
    affine.for %t = 0 to %n {
      MEMORY
      affine.for %i = 1 to 8 {
        %a = affine.load %A[%i - 1] : memref<8xf64>
        affine.store %a, %A[%i] : memref<8xf64>
      }
    }
    return
  }"""

ONE_OF_THEM = """
      %mN = memref.alloc() : memref<8xf64>
      affine.for %i = 0 to 8 {
        %a = affine.load %A[%i] : memref<8xf64>
        affine.store %a, %mN[%i] : memref<8xf64>
      }
      affine.for %i = 0 to 8 {
        %a = affine.load %mN[7 - %i] : memref<8xf64>
        affine.store %a, %A[%i] : memref<8xf64>
      }
      memref.dealloc %mN : memref<8xf64>"""


def test_memory_freed_in_a_loop_around_parallel_ones_is_there_once(context: ir.Context) -> None:
    memory = "".join(ONE_OF_THEM.replace("%mN", f"%m{k}") for k in range(12))
    text = function_text(normalised(FREED_IN_A_LOOP.replace("MEMORY", memory), context), "f")
    assert "dealloc" not in text
    assert text.index("affine.for") > text.rindex("memref.alloc()")
