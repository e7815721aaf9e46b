"""Programs of nests over the same array, by its rows and by its columns."""

from __future__ import annotations

ROWS = """
      %v = affine.load %u[%j] : {vector}
      %a = affine.load %A[%i, %j] : {matrix}
      %s = affine.load %x[%i] : {vector}
      %p = arith.mulf %a, %v : {element}
      %t = arith.addf %s, %p : {element}
      affine.store %t, %x[%i] : {vector}"""


def product(of: str) -> str:
    return f"""
      %v = affine.load {{of}} : {{vector}}
      %a = affine.load {of}[%j, %i] : {{matrix}}
      %s = affine.load %y[%i] : {{vector}}
      %p = arith.mulf %a, %v : {{element}}
      %t = arith.addf %s, %p : {{element}}
      affine.store %t, %y[%i] : {{vector}}"""


COLUMNS = product("%A")

SCALED = """
      %a = affine.load %A[%i, %j] : {matrix}
      %v = affine.load %w[%i] : {vector}
      %p = arith.mulf %a, %v : {element}
      affine.store %p, %A[%i, %j] : {matrix}"""

CHANGED = (
    SCALED
    + """
      %s = affine.load %x[%i] : {vector}
      %t = arith.addf %s, %p : {element}
      affine.store %t, %x[%i] : {vector}"""
)
"""With a sum of each row."""


def both(n: int, *bodies: str, of: str = "%w[%j]", element: str = "f64", around: int = 1) -> str:
    """A nest of each of the bodies over n × n, `around` times; `of` is what COLUMNS multiply by."""
    kinds = {"matrix": f"memref<{n}x{n}x{element}>", "vector": f"memref<{n}x{element}>"}
    nests = "".join(
        f"""
    affine.for %i = 0 to {n} {{ affine.for %j = 0 to {n} {{{
            body.format(of=of, element=element, **kinds)
        }
    }} }}"""
        for body in bodies
    )
    vectors = ", ".join(f"%{name}: {kinds['vector']}" for name in "uwxy")
    loop = f"affine.for %turn = 0 to {around} {{{nests}\n  }}" if around > 1 else nests
    return f"""
func.func @both(%A: {kinds["matrix"]}, %B: {kinds["matrix"]}, {vectors}) {{
  {loop}
  return
}}"""
