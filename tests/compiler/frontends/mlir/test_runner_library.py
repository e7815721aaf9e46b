"""What MLIR's runner libraries print: the witness is MLIR's own runner, with those libraries."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.backends.nvptx import mlir_opt
from avial_lab.core.errors import AvialError

PRINTS = """module {
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %tenth = arith.constant -0.1 : f32
    %m = memref.alloc() : memref<2x3xf32>
    %cube = memref.alloc() : memref<2x3x2xi32>
    %n = memref.alloc(%c5) : memref<?xi64>
    %one = memref.alloc() : memref<f64>
    scf.for %i = %c0 to %c2 step %c1 {
      scf.for %j = %c0 to %c3 step %c1 {
        %s = arith.muli %i, %c3 : index
        %k = arith.addi %s, %j : index
        %w = arith.index_cast %k : index to i32
        %x = arith.sitofp %w : i32 to f32
        %y = arith.mulf %x, %tenth : f32
        memref.store %y, %m[%i, %j] : memref<2x3xf32>
        scf.for %l = %c0 to %c2 step %c1 {
          memref.store %w, %cube[%i, %j, %l] : memref<2x3x2xi32>
        }
      }
    }
    %large = arith.constant -5000000000 : i64
    scf.for %i = %c0 to %c5 step %c1 { memref.store %large, %n[%i] : memref<?xi64> }
    %sixth = arith.constant 123456789.125 : f64
    memref.store %sixth, %one[] : memref<f64>
    %um = memref.cast %m : memref<2x3xf32> to memref<*xf32>
    %ucube = memref.cast %cube : memref<2x3x2xi32> to memref<*xi32>
    %un = memref.cast %n : memref<?xi64> to memref<*xi64>
    %uone = memref.cast %one : memref<f64> to memref<*xf64>
    call @printMemrefF32(%um) : (memref<*xf32>) -> ()
    call @printMemrefI32(%ucube) : (memref<*xi32>) -> ()
    call @printMemrefI64(%un) : (memref<*xi64>) -> ()
    call @printMemrefF64(%uone) : (memref<*xf64>) -> ()
    %v = vector.load %m[%c1, %c0] : memref<2x3xf32>, vector<3xf32>
    vector.print %v : vector<3xf32>
    %rows = arith.constant dense<[[1, -2], [3, 4]]> : vector<2x2xi32>
    vector.print %rows : vector<2x2xi32>
    vector.print %c5 : index
    vector.print str "100 % done"
    vector.print punctuation <newline>
    %yes = arith.constant dense<[true, false]> : vector<2xi1>
    vector.print %yes : vector<2xi1>
    return
  }
  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
  func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
  func.func private @printMemrefI64(memref<*xi64>) attributes {llvm.emit_c_interface}
  func.func private @printMemrefF64(memref<*xf64>) attributes {llvm.emit_c_interface}
}
"""

_TO_LLVM = ("convert-vector-to-scf", "convert-scf-to-cf", "expand-strided-metadata",
            "convert-vector-to-llvm", "convert-to-llvm", "reconcile-unrealized-casts")  # fmt: skip


def by_mlir(text: str) -> list[str]:
    """What MLIR's runner prints, but for where arrays are: ours have no one address."""
    found = find_spec("mlir")
    assert found is not None
    assert found.submodule_search_locations is not None
    home = Path(next(iter(found.submodule_search_locations)))
    libraries = [home / "lib" / f"libmlir_{name}.so" for name in ("runner_utils", "c_runner_utils")]
    run = subprocess.run(
        [home / "bin" / "mlir-runner", "-e", "main", "--entry-point-result=void",
         f"--shared-libs={','.join(map(str, libraries))}"],
        input=mlir_opt(_TO_LLVM, text).stdout, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return re.sub(r"base@ = \S+", "base@ = -", run.stdout).splitlines()


def test_as_mlir_prints_it() -> None:
    program = avial_lab.compile(PRINTS, ranks=1)
    program.run(check=True)
    assert list(program.printed.lines[0]) == by_mlir(PRINTS)


def test_an_array_whose_rank_nobody_knows() -> None:
    text = """func.func @f(%a: memref<*xf32>) {
  call @printMemrefF32(%a) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)"""
    with pytest.raises(AvialError, match="its rank is not known here") as caught:
        avial_lab.compile(text, arrays={"a": np.zeros(3, np.float32)}, ranks=1)
    assert caught.value.span is not None
    assert caught.value.span.line == 2
