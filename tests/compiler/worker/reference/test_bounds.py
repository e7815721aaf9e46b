"""Accesses outside their array: found, placed, the end of the program; the process lives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.worker.reference.bodies import module_text, run

CASES = {
    "load": (
        """%x = memref.load %a[%far] : memref<20xi32>
           memref.store %x, %big[%zero] : memref<30xi32>""",
        "memref.load",
        1000000000,
        0,
        20,
    ),
    "store": ("memref.store %one, %a[%far] : memref<20xi32>", "memref.store", 1000000000, 0, 20),
    "negative": ("memref.store %one, %a[%below] : memref<20xi32>", "memref.store", -1, 0, 20),
    "one past": ("memref.store %one, %a[%past] : memref<20xi32>", "memref.store", 20, 0, 20),
    "second dimension": (
        """%x = memref.load %m[%zero, %three] : memref<4x3xi32>
           memref.store %x, %big[%zero] : memref<30xi32>""",
        "memref.load",
        3,
        1,
        3,
    ),
    "affine": (
        "affine.store %one, %a[symbol(%far) + 1] : memref<20xi32>",
        "affine.store",
        1000000001,
        0,
        20,
    ),
    "vector": (
        """%x = vector.load %a[%late] : memref<20xi32>, vector<4xi32>
           vector.store %x, %big[%zero] : memref<30xi32>, vector<4xi32>""",
        "vector.load",
        17,
        0,
        20,
    ),
    "transfer": (
        """%pad = arith.constant 0 : i32
           %x = vector.transfer_read %a[%late], %pad {in_bounds = [true]} : memref<20xi32>,
        vector<4xi32>
           vector.store %x, %big[%zero] : memref<30xi32>, vector<4xi32>""",
        "vector.transfer_read",
        20,
        0,
        20,
    ),
    "gather": (
        """%k = arith.constant dense<[0, 19, 20, 21]> : vector<4xi32>
           %all = arith.constant dense<[true, true, true, false]> : vector<4xi1>
           %none = arith.constant dense<0> : vector<4xi32>
           %x = vector.gather %a[%zero] [%k], %all, %none : memref<20xi32>, vector<4xi32>,
        vector<4xi1>, vector<4xi32> into vector<4xi32>
           vector.store %x, %big[%zero] : memref<30xi32>, vector<4xi32>""",
        "vector.gather",
        20,
        0,
        20,
    ),
    "masked store": (
        """%some = arith.constant dense<[true, false, false, true]> : vector<4xi1>
           %x = arith.constant dense<7> : vector<4xi32>
           vector.maskedstore %a[%late], %some, %x : memref<20xi32>, vector<4xi1>, vector<4xi32>""",
        "vector.maskedstore",
        20,
        0,
        20,
    ),
    "reinterpreted": (
        """%v = memref.reinterpret_cast %a to offset: [3], sizes: [6], strides: [4]
        : memref<20xi32> to memref<6xi32, strided<[4], offset: 3>>
           linalg.fill ins(%one : i32) outs(%v : memref<6xi32, strided<[4], offset: 3>>)""",
        "memref.reinterpret_cast",
        23,
        0,
        20,
    ),
    "endless": (
        """%end = scf.while (%i = %zero) : (index) -> index {
             %x = memref.load %a[%i] : memref<20xi32>
             %again = arith.cmpi sge, %x, %x : i32
             scf.condition(%again) %i : index
           } do {
           ^bb0(%i: index):
             %step = arith.constant 1 : index
             %next = arith.addi %i, %step : index
             scf.yield %next : index
           }""",
        "memref.load",
        20,
        0,
        20,
    ),
    "sizes that disagree": (
        """%v = memref.subview %a[0] [%three] [1] : memref<20xi32> to memref<?xi32, strided<[1]>>
           %w = memref.subview %big[0] [%late] [1] : memref<30xi32> to memref<?xi32, strided<[1]>>
           linalg.copy ins(%v : memref<?xi32, strided<[1]>>)
             outs(%w : memref<?xi32, strided<[1]>>)""",
        "linalg.copy",
        3,
        0,
        3,
    ),
    "subview": (
        """%v = memref.subview %a[%late] [4] [1] : memref<20xi32> to memref<4xi32, strided<[1],
        offset: ?>>
           linalg.fill ins(%one : i32) outs(%v : memref<4xi32, strided<[1], offset: ?>>)""",
        "memref.subview",
        20,
        0,
        20,
    ),
    "copy": (
        """%v = memref.subview %a[0] [%three] [1] : memref<20xi32>
             to memref<?xi32, strided<[1]>>
           %w = memref.cast %big : memref<30xi32> to memref<?xi32>
           memref.copy %w, %v : memref<?xi32> to memref<?xi32, strided<[1]>>""",
        "memref.copy",
        3,
        0,
        3,
    ),
    "atomic": (
        "%x = memref.atomic_rmw addi %one, %a[%far] : (i32, memref<20xi32>) -> i32",
        "memref.atomic_rmw",
        1000000000,
        0,
        20,
    ),
}

ELEMENTS = {
    "linalg.copy": "memref.load",
    "vector.gather": "memref.load",
    "vector.maskedstore": "memref.store",
    "vector.transfer_read": "memref.load",
}

INDICES = """
      %zero = arith.constant 0 : index
      %three = arith.constant 3 : index
      %late = arith.constant 17 : index
      %past = arith.constant 20 : index
      %far = arith.constant 1000000000 : index
      %below = arith.constant -1 : index
      %one = arith.constant 1 : i32
"""


@pytest.mark.parametrize("name", CASES)
def test_found_and_placed(name: str) -> None:
    body, operation, index, dimension, size = CASES[name]
    arrays = {
        "a": np.arange(20, dtype=np.int32),
        "m": np.zeros((4, 3), np.int32),
        "big": np.zeros(30, np.int32),
        "done": np.zeros(1, np.int32),
    }
    after = "memref.store %one, %done[%zero] : memref<1xi32>"
    result = run(f"{INDICES}{body}\n{after}", arrays, bounds_checks=True)
    (violation,) = result.violations
    # Affine accesses and those of vectors are memref's by the time they are checked.
    checked = ELEMENTS.get(operation, operation.replace("affine.", "memref."))
    assert violation.message.startswith(checked)
    wanted = f"index {index} is out of bounds for dimension {dimension} of size {size}"
    assert violation.message.endswith(wanted)
    assert violation.span is not None
    text = module_text([("cpu", f"{INDICES}{body}\n{after}")], arrays)
    faulty = next(line for line in body.splitlines() if operation in line)
    assert violation.span.line == text.splitlines().index(faulty) + 1
    assert result.data["done"][0] == 0, "the program ends there"


def test_inside_means_inside() -> None:
    """The last elements, the empty view at the end, and a view to the very end are no
    violations.
    """
    body = f"""{INDICES}
      %last = arith.constant 19 : index
      %sixteen = arith.constant 16 : index
      %x = memref.load %a[%last] : memref<20xi32>
      %v = memref.subview %a[%past] [%zero] [1] : memref<20xi32>
             to memref<?xi32, strided<[1], offset: ?>>
      %w = memref.subview %a[%sixteen] [4] [1] : memref<20xi32>
             to memref<4xi32, strided<[1], offset: ?>>
      %y = vector.load %a[%sixteen] : memref<20xi32>, vector<4xi32>
      linalg.fill ins(%one : i32) outs(%w : memref<4xi32, strided<[1], offset: ?>>)"""
    result = run(body, {"a": np.arange(20, dtype=np.int32)}, bounds_checks=True)
    assert result.violations == ()
    np.testing.assert_array_equal(result.data["a"], [*range(16), 1, 1, 1, 1])
