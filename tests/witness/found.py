"""Programs that run, reference or the compiler had wrong, and have right now, by what it was."""

from __future__ import annotations

import numpy as np

from tests.witness.drawn import Drawn

_ADDED = """linalg.generic {{
    indexing_maps = [affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> ({dims})>],
    iterator_types = [{kinds}]}} ins({source}) outs({target}) {{
  ^bb0(%x: i32, %y: i32):
    %z = arith.subi %y, %x : i32
    linalg.yield %z : i32
  }}"""


def added(source: str, target: str, rank: int) -> str:
    """`target -= source`, as a generic that reads its init."""
    dims, kinds = ", ".join(f"d{k}" for k in range(rank)), ", ".join(['"parallel"'] * rank)
    return _ADDED.format(dims=dims, kinds=kinds, source=source, target=target)


_INDEX = np.arange(8)
_LOAD = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = memref.load %n[%c0] : memref<8xindex>
  %m = memref.load %n[%c1] : memref<8xindex>"""

_WINDOW = "memref<2x1xi32, strided<[2, 1], offset: ?>>"
_ROWS = "memref<?x2xi32, strided<[2, 1], offset: 4>>"
_SPLIT = "memref<?x2x1xi32, strided<[2, 1, 1], offset: 4>>"
_ALIKE = "memref<1x?x?xi32, strided<[1, 1, 1], offset: ?>>"
_CUBE = "tensor<1x3x4xi32>"

_UNSIGNED = (("i64", "f32"), ("i64", "bf16"), ("i32", "bf16"))


def _converted(name: str, wide: str, real: str) -> str:
    """Eight numbers that are made wide with their sign, and then taken for unsigned ones."""
    return "".join(
        f"""
  %c{k}{name} = arith.constant {k} : index
  %x{k}{name} = memref.load %a[%c{k}{name}] : memref<8xi8>
  %n{k}{name} = arith.cmpi slt, %x{k}{name}, %c : i8
  %w{k}{name} = arith.extsi %n{k}{name} : i1 to {wide}
  %u{k}{name} = arith.uitofp %w{k}{name} : {wide} to {real}
  %f{k}{name} = arith.extf %u{k}{name} : {real} to f64
  memref.store %f{k}{name}, %{name}[%c{k}{name}] : memref<8xf64>"""
        for k in range(8)
    )


def _all_converted() -> Drawn:
    names = [f"b{k}" for k in range(len(_UNSIGNED))]
    heads = "".join(f", %{name}: memref<8xf64>" for name in names)
    body = "".join(_converted(name, *form) for name, form in zip(names, _UNSIGNED, strict=True))
    head = f"func.func @f(%a: memref<8xi8>{heads}) {{\n  %c = arith.constant 0 : i8"
    text = f"{head}{body}\n  return\n}}\n"
    numbers = np.array([-85, 118, -6, -99, 39, 93, -121, 72], np.int8)
    return Drawn(text, {"a": numbers, **{name: np.zeros(8) for name in names}})


FOUND: dict[str, Drawn] = {
    # A step made the stride of one dimension that of another; MLIR's getDroppedDims then asserts.
    "a step beside an extent of 1": Drawn(
        f"""avial.schedule %a: memref<?x3x1xi32>, %b: memref<2x1xi32>, %n: memref<8xindex> {{
  %cpu = avial.target {{arch = "cpu"}}
  %t = avial.task %cpu, %a, %b, %n {{
{_LOAD}
  %v = memref.subview %a[%m, 0, 0] [1, 2, 1] [1, 2, 1] : memref<?x3x1xi32> to {_WINDOW}
  {added(f"%v : {_WINDOW}", "%b : memref<2x1xi32>", 2)}
  }}
}}
""",
        {"a": np.arange(12, dtype=np.int32).reshape(4, 3, 1), "b": np.zeros((2, 1), np.int32),
         "n": _INDEX},
    ),
    # The extent of a window that has its size from memory was taken for a symbol.
    "a size from memory, reshaped": Drawn(
        f"""func.func @f(%a: memref<?x2xi32>, %b: memref<1x2x1xi32>, %n: memref<8xindex>) {{
{_LOAD}
  %v = memref.subview %a[2, 0] [%m, 2] [1, 1] : memref<?x2xi32> to {_ROWS}
  %w = memref.expand_shape %v [[0], [1, 2]] output_shape [%m, 2, 1] : {_ROWS} into {_SPLIT}
  {added(f"%w : {_SPLIT}", "%b : memref<1x2x1xi32>", 3)}
  return
}}
""",
        {"a": np.arange(6, dtype=np.int32).reshape(3, 2), "b": np.zeros((1, 2, 1), np.int32),
         "n": _INDEX},
    ),
    # Beside an operation of tosa canonicalize is run, which takes the first 1 for the dropped one.
    "slices that keep an extent of 1, beside tosa": Drawn(
        f"""func.func @f(%a: {_CUBE}, %b: {_CUBE}, %n: memref<8xindex>) -> ({_CUBE}, {_CUBE}) {{
{_LOAD}
  %x = tensor.extract_slice %a[0, 2, 1] [1, %m, 3] [1, 1, 1] : {_CUBE} to tensor<?x3xi32>
  %y = tensor.insert_slice %x into %b[%i, 0, 3] [%c1, 3, 1] [1, 1, 1]
    : tensor<?x3xi32> into {_CUBE}
  %s = tensor.extract_slice %a[0, 0, %i] [1, %c1, 1] [1, 1, 1] : {_CUBE} to tensor<1x?xi32>
  %t = tensor.insert_slice %s into %y[0, %m, 2] [1, %c1, 1] [1, 1, 1]
    : tensor<1x?xi32> into {_CUBE}
  %yes = arith.constant dense<true> : tensor<i1>
  %r = tosa.cond_if %yes : tensor<i1> -> {_CUBE} {{
    tosa.yield %t : {_CUBE}
  }} else {{
    tosa.yield %b : {_CUBE}
  }}
  return %y, %r : {_CUBE}, {_CUBE}
}}
""",
        {"a": np.arange(12, dtype=np.int32).reshape(1, 3, 4),
         "b": -np.arange(12, dtype=np.int32).reshape(1, 3, 4), "n": _INDEX},
    ),
    # Known strides that are equal do not tell either; MLIR's folder of memref.dim then asserts.
    "extents of 1 with the same stride": Drawn(
        f"""avial.schedule %a: memref<5x1x1x1xi32>, %b: memref<1x1x1xi32>, %n: memref<8xindex> {{
  %cpu = avial.target {{arch = "cpu"}}
  %t = avial.task %cpu, %a, %b, %n {{
{_LOAD}
  %k = memref.load %n[%m] : memref<8xindex>
  %v = memref.subview %a[3, 0, %i, 0] [1, %m, %k, 1] [1, 1, 1, 1]
    : memref<5x1x1x1xi32> to {_ALIKE}
  {added("%b : memref<1x1x1xi32>", f"%v : {_ALIKE}", 3)}
  }}
}}
""",
        {"a": np.arange(5, dtype=np.int32).reshape(5, 1, 1, 1),
         "b": np.full((1, 1, 1), 9, np.int32), "n": _INDEX},
    ),
    # No guess, and left alone: MLIR casts no stride to another, along one element neither.
    "only extents of 1, with other strides": Drawn(
        f"""func.func @f(%a: memref<1x2x1xf32>, %b: memref<1xf32>, %n: memref<8xindex>) {{
{_LOAD}
  %k = memref.load %n[%m] : memref<8xindex>
  %v = memref.subview %a[%i, 0, 0] [%m, %k, 1] [1, 1, 1]
    : memref<1x2x1xf32> to memref<?x?x1xf32, strided<[2, 1, 1], offset: ?>>
  %w = memref.subview %v[0, 0, 0] [1, 1, 1] [1, 1, 1]
    : memref<?x?x1xf32, strided<[2, 1, 1], offset: ?>> to memref<1xf32, strided<[1], offset: ?>>
  memref.copy %w, %b : memref<1xf32, strided<[1], offset: ?>> to memref<1xf32>
  return
}}
""",
        {"a": np.array([[[3], [4]]], np.float32), "b": np.zeros(1, np.float32), "n": _INDEX},
    ),
    # The extent of what a branch chose, or a loop handed on, was taken for a symbol.
    "a size that a branch chooses": Drawn(
        """func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>, %n: memref<8xindex>)
    -> tensor<6xi32> {
  %c0 = arith.constant 0 : index
  %i = memref.load %n[%c0] : memref<8xindex>
  %yes = arith.cmpi eq, %i, %c0 : index
  %v = scf.if %yes -> tensor<?xi32> {
    scf.yield %a : tensor<?xi32>
  } else {
    scf.yield %b : tensor<?xi32>
  }
  %r = linalg.map { arith.muli } ins(%v, %v : tensor<?xi32>, tensor<?xi32>)
    outs(%v : tensor<?xi32>)
  %s = tensor.cast %r : tensor<?xi32> to tensor<6xi32>
  return %s : tensor<6xi32>
}
""",
        {"a": np.arange(6, dtype=np.int32), "b": 5 - np.arange(6, dtype=np.int32), "n": _INDEX},
    ),
    # LLVM's SLP narrows the operand with its sign, and converts it as an unsigned number.
    "uitofp of a number with its sign": _all_converted(),
}  # fmt: skip
