"""arith and index: integers with their flags, floats rounded to their own type, casts.

The meaning is that of MLIR's pages of the two dialects; what they call poison or undefined is
`Undefined` here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tests.witness.floats import (
    as_integer,
    bits_of,
    compared,
    from_bits,
    greatest,
    least,
    rounded,
)
from tests.witness.machine import INDEX, RULES, Op, Step, rule
from tests.witness.values import (
    Array,
    Float,
    Integer,
    Number,
    Undefined,
    Value,
    array_of,
    is_shaped,
    number_of,
)

# -- integers --------------------------------------------------------------------------------------


def _divisor(y: int) -> int:
    if y == 0:
        raise Undefined("a division by zero")
    return y


def _shift(y: int, width: int) -> int:
    if y >= width:
        raise Undefined(f"a shift by {y} of {width} bits")
    return y


def toward_zero(x: int, y: int) -> int:
    q = abs(x) // abs(_divisor(y))
    return q if (x < 0) == (y < 0) else -q


def _remainder(x: int, y: int) -> int:
    return x - y * toward_zero(x, y)


# Of the exact (signed or unsigned) operands, the exact result.
_SIGNED: dict[str, Callable[[int, int], int]] = {
    "divs": toward_zero,
    "rems": _remainder,
    "ceildivs": lambda x, y: -(-x // _divisor(y)),
    "floordivs": lambda x, y: x // _divisor(y),
    "maxs": max,
    "mins": min,
}
_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divu": lambda x, y: x // _divisor(y),
    "remu": lambda x, y: x % _divisor(y),
    "ceildivu": lambda x, y: -(-x // _divisor(y)),
    "maxu": max,
    "minu": min,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
_WRAPPING: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
}
OVERFLOWS = ("divs", "ceildivs", "floordivs")


def signed_pair(kind: Integer, name: str, x: int, y: int) -> int:
    """A signed division of the least by -1 has no result; its remainder has none either."""
    a, b = kind.signed(x), kind.signed(y)
    if b == -1 and a == kind.least and name in (*OVERFLOWS, "rems"):
        raise Undefined(f"the least of {kind.width} bits by -1")
    return _SIGNED[name](a, b) & kind.mask


def flagged(kind: Integer, compute: Callable[[int, int], int], flags: str) -> Callable[..., int]:
    """`compute` with wrap; Undefined where a flag rules the wrap out."""
    mask, signed = kind.mask, kind.signed
    nsw, nuw = "nsw" in flags, "nuw" in flags
    if not (nsw or nuw):
        return lambda x, y: compute(x, y) & mask

    def checked(x: int, y: int) -> int:
        result = compute(x, y) & mask
        if nuw and compute(x, y) != result:
            raise Undefined("an overflow in spite of nuw")
        if nsw and compute(signed(x), signed(y)) != signed(result):
            raise Undefined("an overflow in spite of nsw")
        return result

    return checked


def _integer_operation(name: str, op: Op) -> Step:
    kind = op.integer(0)
    if name in _WRAPPING:
        return op.elementwise(flagged(kind, _WRAPPING[name], op.text("overflowFlags")))
    if name in _UNSIGNED:
        compute = _UNSIGNED[name]
        if name == "divu" and op.has("isExact"):
            return op.elementwise(partial(_exact, compute, lambda x, y: x % y))
        return op.elementwise(compute)
    compute = partial(signed_pair, kind, name)
    if name == "divs" and op.has("isExact"):
        return op.elementwise(
            partial(_exact, compute, lambda x, y: kind.signed(x) % kind.signed(y))
        )
    return op.elementwise(compute)


def _exact(
    compute: Callable[[int, int], int], rest: Callable[[int, int], int], x: int, y: int
) -> int:
    result = compute(x, y)
    if rest(x, y):
        raise Undefined("a remainder in spite of exact")
    return result


for _name in (*_WRAPPING, *_UNSIGNED, *_SIGNED):
    _make = partial(_integer_operation, _name)
    RULES[f"index.{_name}"] = _make
    RULES[f"arith.{_name}i"] = _make


@rule("arith.shli", "index.shl")
def _left(op: Op) -> Step:
    kind, flags = op.integer(0), op.text("overflowFlags")

    def shift(x: int, y: int) -> int:
        times = flagged(kind, lambda a, b: a * b, "")
        result = times(x, 1 << _shift(y, kind.width))
        if "nuw" in flags and result >> y != x:
            raise Undefined("an overflow in spite of nuw")
        if "nsw" in flags and kind.signed(result) >> y != kind.signed(x):
            raise Undefined("an overflow in spite of nsw")
        return result

    return op.elementwise(shift)


@rule("arith.shrsi", "arith.shrui", "index.shrs", "index.shru")
def _right(op: Op) -> Step:
    kind, signed, exact = op.integer(0), "shrs" in op.name, op.has("isExact")

    def shift(x: int, y: int) -> int:
        value = kind.signed(x) if signed else x
        if exact and value & ((1 << _shift(y, kind.width)) - 1):
            raise Undefined("a bit shifted out in spite of exact")
        return value >> _shift(y, kind.width) & kind.mask

    return op.elementwise(shift)


@rule("arith.addui_extended")
def _carry(op: Op) -> Step:
    return _two_results(op, lambda kind, x, y: (x + y & kind.mask, int(x + y > kind.mask)))


@rule("arith.mului_extended")
def _wide_product(op: Op) -> Step:
    return _two_results(op, lambda kind, x, y: (x * y & kind.mask, x * y >> kind.width))


@rule("arith.mulsi_extended")
def _wide_signed_product(op: Op) -> Step:
    def compute(kind: Integer, x: int, y: int) -> tuple[int, int]:
        product = kind.signed(x) * kind.signed(y)
        return product & kind.mask, product >> kind.width & kind.mask

    return _two_results(op, compute)


def _two_results(op: Op, compute: Callable[[Integer, int, int], tuple[int, int]]) -> Step:
    kind = op.integer(0)

    def both(x: Value, y: Value) -> tuple[Value, Value]:
        if isinstance(x, Array):
            pairs = [compute(kind, a, b) for a, b in zip(x.values(), y.values(), strict=True)]
            return Array.of(x.sizes, (p[0] for p in pairs)), Array.of(
                x.sizes, (p[1] for p in pairs)
            )
        return compute(kind, x, y)

    return op.several(both)


_PREDICATES: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
    ("eq", lambda x, y: x == y),
    ("ne", lambda x, y: x != y),
    ("lt", lambda x, y: x < y),
    ("le", lambda x, y: x <= y),
    ("gt", lambda x, y: x > y),
    ("ge", lambda x, y: x >= y),
)
ORDER = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""arith.cmpi's predicates by number."""


@rule("arith.cmpi", "index.cmp")
def _compare(op: Op) -> Step:
    if op.name == "index.cmp":
        name = op.text("pred").rstrip(">").rpartition(" ")[2]
    else:
        name = ORDER[op.number("predicate")]
    kind, compute = op.integer(0), dict(_PREDICATES)[name if len(name) == 2 else name[1:]]
    if name[0] == "s":
        signed = kind.signed
        return op.elementwise(lambda x, y: int(compute(signed(x), signed(y))))
    return op.elementwise(lambda x, y: int(compute(x, y)))


@rule("arith.select")
def _select(op: Op) -> Step:
    def choose(condition: Number | Array, yes: object, no: object) -> object:
        return yes if condition else no

    if is_shaped(op.operands[0].type):
        return op.elementwise(choose)
    return op.pure(choose)


@rule("arith.constant", "index.constant", "index.bool.constant")
def _constant(op: Op) -> Step:
    (out,) = op.outs
    attribute = op.attribute("value")
    value = array_of(attribute) if is_shaped(op.type) else number_of(attribute)

    def step(frame: list[object]) -> None:
        frame[out] = value

    return step


# -- casts of integers -----------------------------------------------------------------------------


@rule("arith.extsi", "arith.index_cast", "index.casts")
def _signed_cast(op: Op) -> Step:
    source, target = op.integer(0), op.integer()
    return op.elementwise(lambda x: source.signed(x) & target.mask)


@rule("arith.extui", "arith.index_castui", "index.castu")
def _unsigned_cast(op: Op) -> Step:
    source, target, nneg = op.integer(0), op.integer(), op.has("nonNeg")

    def cast(x: int) -> int:
        if nneg and source.signed(x) < 0:
            raise Undefined("a negative number in spite of nneg")
        return x & target.mask

    return op.elementwise(cast)


@rule("arith.trunci")
def _truncate(op: Op) -> Step:
    source, target, flags = op.integer(0), op.integer(), op.text("overflowFlags")

    def cast(x: int) -> int:
        result = x & target.mask
        if "nuw" in flags and result != x:
            raise Undefined("bits cut off in spite of nuw")
        if "nsw" in flags and target.signed(result) != source.signed(x):
            raise Undefined("bits cut off in spite of nsw")
        return result

    return op.elementwise(cast)


@rule("arith.bitcast")
def _bitcast(op: Op) -> Step:
    source, target = op.element(0), op.element()
    return op.elementwise(lambda x: from_bits(bits_of(x, source), target))


# -- floats ----------------------------------------------------------------------------------------

_FLOATS: dict[str, Callable[..., Number]] = {
    "addf": lambda x, y: x + y,
    "subf": lambda x, y: x - y,
    "mulf": lambda x, y: x * y,
    "divf": lambda x, y: x / y,
    "negf": lambda x: -x,
    "maximumf": partial(greatest, number=False),
    "minimumf": partial(least, number=False),
    "maxnumf": partial(greatest, number=True),
    "minnumf": partial(least, number=True),
}


def _float_operation(name: str, op: Op) -> Step:
    return op.elementwise(_FLOATS[name])


for _name in _FLOATS:
    RULES[f"arith.{_name}"] = partial(_float_operation, _name)


@rule("arith.remf")
def _float_remainder(op: Op) -> Step:
    kind = op.element()
    return op.elementwise(lambda x, y: kind.read(np.fmod(np.float64(x), np.float64(y))))


@rule("arith.cmpf")
def _compare_floats(op: Op) -> Step:
    return op.elementwise(partial(compared, op.number("predicate")))


@rule("arith.extf", "arith.truncf")
def _float_cast(op: Op) -> Step:
    target = op.element()
    assert isinstance(target, Float)
    return op.elementwise(lambda x: rounded(np.float64(x), target))


@rule("arith.sitofp", "arith.uitofp")
def _to_float(op: Op) -> Step:
    source, target, nneg = op.integer(0), op.element(), op.has("nonNeg")
    assert isinstance(target, Float)

    def cast(x: int) -> Number:
        if nneg and source.signed(x) < 0:
            raise Undefined("a negative number in spite of nneg")
        return rounded(source.signed(x) if op.name == "arith.sitofp" else x, target)

    return op.elementwise(cast)


@rule("arith.fptosi", "arith.fptoui")
def _from_float(op: Op) -> Step:
    target = op.integer()
    low = target.least if op.name == "arith.fptosi" else 0
    return op.elementwise(lambda x: as_integer(x, low, low + target.mask) & target.mask)


@rule("index.sizeof")
def _sizeof(op: Op) -> Step:
    return op.pure(lambda: INDEX.width)
