"""The remainder of a division of floating numbers as a function of whole ones: exact, as C's fmod
is, for devices, whose own instructions round the quotient.

f32 or f64 -> text of a function. Long division of the significands, bit by bit, as in musl's fmod.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir


@dataclass(frozen=True)
class _Format:
    bits: int
    significand: int
    """Bits behind the point."""

    @property
    def infinity(self) -> int:
        return ((1 << (self.bits - 1 - self.significand)) - 1) << self.significand


_FORMATS = {"f32": _Format(32, 23), "f64": _Format(64, 52)}


def remainder_name(element: str) -> str:
    return f"remainder_{element}"


def remainder_function(element: str) -> str:
    """`func.func private @remainder_f64(%x, %y)`: x - trunc(x / y) * y, with the sign of x; NaN
    where x is infinite, y is 0 or one of them is NaN.
    """
    form = _FORMATS[element]
    top = form.bits - 1 - form.significand  # zeros before the first bit of a significand
    return f"""
    func.func private @{remainder_name(element)}(%x: T, %y: T) -> T {{
      %zero = arith.constant 0 : i{form.bits}
      %one = arith.constant 1 : i{form.bits}
      %behind = arith.constant {form.significand} : i{form.bits}
      %top = arith.constant {top} : i{form.bits}
      %hidden = arith.constant {1 << form.significand} : i{form.bits}
      %fraction = arith.constant {(1 << form.significand) - 1} : i{form.bits}
      %infinity = arith.constant {form.infinity} : i{form.bits}
      %magnitude = arith.constant {(1 << (form.bits - 1)) - 1} : i{form.bits}
      %bx = arith.bitcast %x : T to i{form.bits}
      %by = arith.bitcast %y : T to i{form.bits}
      %ux = arith.andi %bx, %magnitude : i{form.bits}
      %uy = arith.andi %by, %magnitude : i{form.bits}
      %sign = arith.xori %bx, %ux : i{form.bits}
      %x_ends = arith.cmpi uge, %ux, %infinity : i{form.bits}
      %y_is_none = arith.cmpi eq, %uy, %zero : i{form.bits}
      %y_is_nan = arith.cmpi ugt, %uy, %infinity : i{form.bits}
      %odd = arith.ori %x_ends, %y_is_none : i1
      %undefined = arith.ori %odd, %y_is_nan : i1
      %is_less = arith.cmpi ult, %ux, %uy : i{form.bits}
      %result = scf.if %undefined -> T {{
        %nan = arith.constant {hex(form.infinity | (1 << (form.significand - 1)))} : T
        scf.yield %nan : T
      }} else {{
        %kept = scf.if %is_less -> T {{
          scf.yield %x : T
        }} else {{
          {_parts("x")}
          {_parts("y")}
          %divided:2 = scf.while (%m = %mx, %e = %ex) : (W, W) -> (W, W) {{
            %goes_on = arith.cmpi sgt, %e, %ey : W
            scf.condition(%goes_on) %m, %e : W, W
          }} do {{
          ^bb0(%m: W, %e: W):
            %d = arith.subi %m, %my : W
            %fits = arith.cmpi uge, %m, %my : W
            %left = arith.select %fits, %d, %m : W
            %twice = arith.shli %left, %one : W
            %next = arith.subi %e, %one : W
            scf.yield %twice, %next : W, W
          }}
          %d = arith.subi %divided#0, %my : W
          %fits = arith.cmpi uge, %divided#0, %my : W
          %left = arith.select %fits, %d, %divided#0 : W
          %lz = math.ctlz %left : W
          %shift = arith.subi %lz, %top : W
          %is_nothing = arith.cmpi eq, %left, %zero : W
          %by_none = arith.select %is_nothing, %zero, %shift : W
          %m = arith.shli %left, %by_none : W
          %e = arith.subi %divided#1, %by_none : W
          %is_normal = arith.cmpi sgt, %e, %zero : W
          %inside = arith.subi %m, %hidden : W
          %placed = arith.shli %e, %behind : W
          %normal = arith.ori %inside, %placed : W
          %under = arith.subi %one, %e : W
          %down = arith.select %is_normal, %zero, %under : W
          %small = arith.shrui %m, %down : W
          %some = arith.select %is_normal, %normal, %small : W
          %bits = arith.select %is_nothing, %zero, %some : W
          %signed = arith.ori %bits, %sign : W
          %r = arith.bitcast %signed : W to T
          scf.yield %r : T
        }}
        scf.yield %kept : T
      }}
      return %result : T
    }}
    """.replace(" T", f" {element}").replace("W", f"i{form.bits}")


def _parts(of: str) -> str:
    """A number's significand with its first bit, and its exponent; of those below the least normal
    one as if there were exponents below 1.
    """
    return f"""
          %e{of}_raw = arith.shrui %u{of}, %behind : W
          %f{of} = arith.andi %u{of}, %fraction : W
          %n{of} = arith.ori %f{of}, %hidden : W
          %small_{of} = arith.cmpi eq, %e{of}_raw, %zero : W
          %lz_{of} = math.ctlz %u{of} : W
          %over_{of} = arith.subi %lz_{of}, %top : W
          %by_{of} = arith.select %small_{of}, %over_{of}, %zero : W
          %s{of} = arith.shli %u{of}, %by_{of} : W
          %m{of} = arith.select %small_{of}, %s{of}, %n{of} : W
          %es{of} = arith.subi %one, %by_{of} : W
          %e{of} = arith.select %small_{of}, %es{of}, %e{of}_raw : W
    """


def call_remainder(op: ir.Operation) -> str:
    """Put the call of such a function in place of an arith.remf; the element of the function.
    Halves are computed as f32, which is exact.
    """
    kind = op.result.type
    wide = kind if isinstance(kind, ir.F64Type | ir.F32Type) else ir.F32Type.get()
    with ir.InsertionPoint(op), op.location:
        given = [_converted("arith.extf", value, wide) for value in op.operands]
        called = ir.Operation.create(
            "func.call",
            [wide],
            given,
            {"callee": ir.FlatSymbolRefAttr.get(remainder_name(str(wide)))},
        ).result
        op.result.replace_all_uses_with(_converted("arith.truncf", called, kind))
    op.erase()
    return str(wide)


def _converted(by: str, value: ir.Value, kind: ir.Type) -> ir.Value:
    return value if value.type == kind else ir.Operation.create(by, [kind], [value]).result
