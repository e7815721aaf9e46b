"""Which memory a memref may be of, where loops and branches hand memrefs on."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.views import may_be

BODIES = {
    "a loop swaps two": (
        """%r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%p = %x, %q = %y)
      -> (memref<4xf32>, memref<4xf32>) {
    memref.copy %z, %p : memref<4xf32> to memref<4xf32>
    scf.yield %q, %p : memref<4xf32>, memref<4xf32>
  }
  memref.store %f, %r#1[%c0] : memref<4xf32>""",
        "xy",
    ),
    "a loop keeps one beside another": (
        """%r:2 = affine.for %i = 0 to 2 iter_args(%p = %x, %q = %y)
      -> (memref<4xf32>, memref<4xf32>) {
    memref.copy %z, %p : memref<4xf32> to memref<4xf32>
    affine.yield %p, %q : memref<4xf32>, memref<4xf32>
  }
  memref.store %f, %r#1[%c0] : memref<4xf32>""",
        "y",
    ),
    "a while loop, in its body": (
        """%r:2 = scf.while (%p = %x, %q = %y)
      : (memref<4xf32>, memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
    %v = memref.load %z[%c0] : memref<4xf32>
    scf.condition(%b) %q, %p : memref<4xf32>, memref<4xf32>
  } do {
  ^bb0(%s: memref<4xf32>, %t: memref<4xf32>):
    memref.store %f, %s[%c0] : memref<4xf32>
    scf.yield %t, %s : memref<4xf32>, memref<4xf32>
  }""",
        "y",
    ),
    "a branch": (
        """%r:2 = scf.if %b -> (memref<4xf32>, memref<4xf32>) {
    memref.copy %z, %x : memref<4xf32> to memref<4xf32>
    scf.yield %x, %z : memref<4xf32>, memref<4xf32>
  } else {
    scf.yield %y, %z : memref<4xf32>, memref<4xf32>
  }
  memref.store %f, %r#0[%c0] : memref<4xf32>""",
        "xy",
    ),
    "a select": (
        """%r = arith.select %b, %x, %z : memref<4xf32>
  memref.store %f, %r[%c0] : memref<4xf32>""",
        "xz",
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_what_is_handed_on(case: str, context: ir.Context) -> None:
    body, names = BODIES[case]
    text = f"""func.func @f(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %b: i1,
    %f: f32) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  {body}
  return
}}"""
    with context:
        module = ir.Module.parse(text)
    arguments = module.body.operations[0].operation.regions[0].blocks[0].arguments
    (store,) = operations_named(module.operation, "memref.store")
    assert may_be(store.operands[1]) == {arguments["xyz".index(name)] for name in names}
