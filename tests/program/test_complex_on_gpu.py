"""Complex numbers in kernels: the CPU's bits, and no approximate root in what a device gets."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab

LOOPS = """func.func @f(%a: memref<300xT>, %b: memref<300xT>, %c: memref<300xT>,
                  %n: memref<300xE>) {
  %c0 = arith.constant 0 : index
  %scale = memref.load %b[%c0] : memref<300xT>
  affine.for %i = 0 to 300 {
    %x = affine.load %a[%i] : memref<300xT>
    %y = affine.load %b[%i] : memref<300xT>
    %p = complex.mul %x, %scale : T
    %q = complex.div %p, %y : T
    %d = complex.sub %q, %x : T
    %e = complex.conj %d : T
    %k = complex.constant [2.5 : E, -1.25 : E] : T
    %s = complex.add %e, %k : T
    %v = complex.abs %s : T
    affine.store %s, %c[%i] : memref<300xT>
    affine.store %v, %n[%i] : memref<300xE>
  }
  return
}"""

LAUNCH = (
    LOOPS.replace(
        "affine.for %i = 0 to 300 {",
        """%c1 = arith.constant 1 : index
  %c300 = arith.constant 300 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%i, %ty, %tz) in (%sx = %c300, %sy = %c1, %sz = %c1) {""",
    )
    .replace("affine.load", "memref.load")
    .replace("affine.store", "memref.store")
)
LAUNCH = LAUNCH.replace("  }\n  return", "    gpu.terminator\n  }\n  return")


@pytest.mark.quick("f32-loops")
@pytest.mark.parametrize("text", [LOOPS, LAUNCH], ids=["loops", "launch"])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_the_bits_of_the_cpu(text: str, element: str) -> None:
    kind = np.dtype({"f32": np.complex64, "f64": np.complex128}[element])
    rng = np.random.default_rng(3)
    a, b = ((rng.normal(size=300) + 1j * rng.normal(size=300)).astype(kind) for _ in "ab")
    a[:6] = [0, np.inf, complex(np.nan, 1), 1e-30, 1e30, -0.0]
    b[1:6] = [1, 1, complex(0, np.inf), 1e30, 0]
    written = text.replace("xT>", f"xcomplex<{element}>>").replace(": T", f": complex<{element}>")
    written = written.replace("xE>", f"x{element}>").replace(": E", f": {element}")
    found: list[bytes] = []
    for on in ("cpu", "gpu"):
        real = np.zeros(300, kind.type(0).real.dtype)
        arrays = {"a": a.copy(), "b": b.copy(), "c": np.zeros(300, kind), "n": real}
        program = avial_lab.compile(written, arrays=arrays, ranks=1, gpus=1, on=on)
        program.run(check=True)
        found.append(np.asarray(program.arrays["c"]).tobytes())
        found.append(np.asarray(program.arrays["n"]).tobytes())
        if on == "gpu":
            (ptx,) = program.binary.ptx.values()
            assert "sqrt.rn" in ptx
            assert ".approx" not in ptx
    assert found[:2] == found[2:]
