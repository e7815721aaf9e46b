"""PTX of GPU tasks: each for its architecture, and a reason where there is none."""

from __future__ import annotations

import re

from avial_lab.compiler.backends.nvptx import make_kernels

KERNEL = """
func.func private @{name}(%c: {kind}, %d: {kind}) attributes {{avial.arch = "{arch}"}} {{
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c20, %sy = %c1, %sz = %c1) {{
    %x = memref.load %c[%tx] : {kind}
    %y = math.exp %x : f32
    {extra}
    memref.store %y, %d[%tx] : {kind}
    gpu.terminator
  }}
  return
}}
"""


def _kernel(name: str, arch: str, *, extra: str = "", kind: str = "memref<20xf32>") -> str:
    return KERNEL.format(name=name, arch=arch, extra=extra, kind=kind)


def test_each_for_its_own_architecture() -> None:
    kernels = make_kernels(_kernel("a", "sm_90") + _kernel("b", "sm_80") + _kernel("a_b", "sm_75"))
    targets = {name: re.findall(r"\.target (\w+)", ptx) for name, ptx in kernels.ptx.items()}
    assert targets == {"a": ["sm_90"], "b": ["sm_80"], "a_b": ["sm_75"]}
    assert kernels.failures == {}
    assert kernels.remarks == ()


def test_a_target_without_a_compute_capability_is_said() -> None:
    kernels = make_kernels(_kernel("a", "gpu"))
    assert ".target sm_80" in kernels.ptx["a"]
    assert kernels.remarks == ("a: target 'gpu' names no compute capability; compiled for sm_80",)


def test_loops_without_a_launch_become_kernels() -> None:
    kernels = make_kernels(
        """
func.func private @loops(%c: memref<20xf32>, %d: memref<20xf32>) attributes {avial.arch = "sm_90"} {
  affine.parallel (%i) = (0) to (20) {
    %x = affine.load %c[%i] : memref<20xf32>
    affine.store %x, %d[%i] : memref<20xf32>
  }
  return
}"""
    )
    assert ".entry loops_kernel" in kernels.ptx["loops"]


def test_a_task_without_a_kernel_says_why() -> None:
    kernels = make_kernels(
        """
func.func private @serial(%c: memref<20xf32>) attributes {avial.arch = "sm_90"} {
  affine.for %i = 1 to 20 {
    %x = affine.load %c[%i - 1] : memref<20xf32>
    affine.store %x, %c[%i] : memref<20xf32>
  }
  return
}"""
    )
    assert kernels.ptx == {}
    assert "no kernel was found" in kernels.failures["serial"]


def test_one_bad_kernel_costs_only_its_own_ptx() -> None:
    """A load of an i1 aborts this MLIR; the other kernel still gets its PTX."""
    bad = "%m = memref.alloca() : memref<4xi1>\n    %b = memref.load %m[%tx] : memref<4xi1>\n"
    bad += "    memref.store %b, %m[%tx] : memref<4xi1>"
    kernels = make_kernels(_kernel("good", "sm_90") + _kernel("bad", "sm_90", extra=bad))
    assert list(kernels.ptx) == ["good"]
    assert list(kernels.failures) == ["bad"]
    assert kernels.failures["bad"].startswith("no PTX: ")


def test_functions_that_loops_have_code_for() -> None:
    """A kernel has the GPU's own, in a task of loops too: no question, and nothing of libm's."""
    loops = """
func.func private @loops(%c: memref<20xf32>, %d: memref<20xf32>) attributes {avial.arch = "sm_90"} {
  affine.parallel (%i) = (0) to (20) {
    %x = affine.load %c[%i] : memref<20xf32>
    %y = math.sin %x {avial.expand = "fused"} : f32
    affine.store %y, %d[%i] : memref<20xf32>
  }
  return
}"""
    marked = make_kernels(loops)
    assert ".entry loops_kernel" in marked.ptx["loops"]
    assert marked.ptx == make_kernels(loops.replace('{avial.expand = "fused"}', "")).ptx


def test_text_that_mlir_opt_refuses() -> None:
    kernels = make_kernels(_kernel("a", "sm_90").replace("math.exp", "math.no_such"))
    assert kernels.ptx == {}
    assert kernels.failures["a"].startswith("no kernels: ")


def test_shapes_known_only_at_run_time() -> None:
    kernels = make_kernels(_kernel("a", "sm_90", kind="memref<?xf32>"))
    assert ".entry a_kernel" in kernels.ptx["a"]
