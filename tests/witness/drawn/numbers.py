"""One operation on numbers: arithmetic with the flags that hold, shifts, comparisons, casts."""

from __future__ import annotations

from collections.abc import Callable

from tests.witness.drawn.writer import FLOATS, INTEGERS, Number, Range, Writer, is_integer, width_of

# -- integers --------------------------------------------------------------------------------------

_LINEAR: dict[str, Callable[[Number, Number], Range]] = {
    "addi": lambda x, y: Range(x.least + y.least, x.most + y.most),
    "subi": lambda x, y: Range(x.least - y.most, x.most - y.least),
    "muli": lambda x, y: Range(
        min(a * b for a in (x.least, x.most) for b in (y.least, y.most)),
        max(a * b for a in (x.least, x.most) for b in (y.least, y.most)),
    ),
}
_OF_INDEX = {"addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor"}


def _linear(w: Writer) -> Number:
    """A sum, difference or product; nsw and nuw where nothing can overflow."""
    x = w.any_integer()
    y, name = w.of(x.type), w.pick(("addi", "addi", "subi", "subi", "muli"))
    range_ = _LINEAR[name](x, y)
    if x.type == "index" and w.flip():
        fits = range_ if range_.within("index") else None
        return w.made(f"index.{_OF_INDEX[name]} {x.name}, {y.name}", "index", fits)
    if not range_.within(x.type):
        return w.made(f"arith.{name} {x.name}, {y.name} : {x.type}", x.type)
    flags = ["nsw"] if w.flip() else []
    if x.least >= 0 and y.least >= 0 and range_.low >= 0 and w.flip():
        flags.append("nuw")
    written = f" overflow<{', '.join(flags)}>" if flags else ""
    return w.made(f"arith.{name} {x.name}, {y.name}{written} : {x.type}", x.type, range_)


def _chain(w: Writer) -> Number:
    """The same operation twice, with constants: what is merged to one."""
    x = w.any_integer()
    name, times = w.pick(("addi", "subi", "muli", "andi", "ori", "xori")), w.whole(2, 3)
    for _ in range(times):
        y = w.any_constant(x.type)
        range_ = _LINEAR[name](x, y) if name in _LINEAR else None
        fits = range_ is not None and range_.within(x.type)
        flags = " overflow<nsw>" if fits and w.flip() else ""
        pair = [x.name, y.name] if w.whole(0, 3) else [y.name, x.name]
        if pair[0] == y.name and name == "subi":
            range_ = _LINEAR[name](y, x)
            fits = range_.within(x.type)
            flags = " overflow<nsw>" if fits and w.flip() else ""
        line = f"arith.{name} {', '.join(pair)}{flags} : {x.type}"
        x = w.made(line, x.type, range_ if fits else None)
    return x


def _bits(w: Writer) -> Number:
    x = w.any_integer()
    y, name = w.of(x.type), w.pick(("andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"))
    return w.made(f"arith.{name} {x.name}, {y.name} : {x.type}", x.type)


def below(w: Writer, x: Number, power: int) -> Number:
    """The lowest `power` bits of it."""
    mask = w.constant(x.type, (1 << power) - 1)
    range_ = Range(0, (1 << power) - 1)
    return w.made(f"arith.andi {x.name}, {mask.name} : {x.type}", x.type, range_)


def _shift(w: Writer) -> Number:
    x = w.any_integer()
    width = width_of(x.type)
    if width < 3:
        return _bits(w)
    name = w.pick(("shli", "shrsi", "shrui"))
    if w.flip():
        amount = w.constant(x.type, w.whole(0, min(width - 1, Range.full(x.type).high)))
    else:
        amount = below(w, w.of(x.type), min(width.bit_length() - 1, width - 2))
    return w.made(f"arith.{name} {x.name}, {amount.name} : {x.type}", x.type)


def _exact(w: Writer) -> Number:
    """Multiplied (or shifted) without overflow, then divided (shifted back) exactly."""
    x = w.any_integer()
    width = width_of(x.type)
    if width < 4:
        return _bits(w)
    small = below(w, x, width // 2 - 1) if width > 3 else x
    power = w.whole(0, width // 2 - 1)
    factor = w.constant(
        x.type, 1 << power if w.flip() else w.whole(1, (1 << width // 2 - 1) - 1 or 1)
    )
    product = w.made(
        f"arith.muli {small.name}, {factor.name} overflow<nsw, nuw> : {x.type}", x.type
    )
    name, flag = w.pick(("divsi", "divui")), w.pick((" exact", ""))
    return w.made(f"arith.{name} {product.name}, {factor.name}{flag} : {x.type}", x.type)


def _exact_twice(w: Writer) -> Number:
    """Divided (shifted back) exactly twice, by constants: what is merged to one."""
    x = w.any_integer()
    width = width_of(x.type)
    if width < 8:
        return _bits(w)
    small = below(w, x, width // 2 - 1)
    first, second = w.whole(1, 2), w.whole(1, 2)
    shifts = w.flip()
    left = ("shli", w.constant(x.type, first + second)) if shifts else None
    factor = w.constant(x.type, (first + 1) * (second + 1))
    name, by = left or ("muli", factor)
    y = w.made(f"arith.{name} {small.name}, {by.name} overflow<nsw, nuw> : {x.type}", x.type)
    name = w.pick(("shrsi", "shrui") if shifts else ("divsi", "divui"))
    for k in (first, second):
        by = w.constant(x.type, k if shifts else k + 1)
        flag = w.pick((" exact", " exact", ""))
        y = w.made(f"arith.{name} {y.name}, {by.name}{flag} : {x.type}", x.type)
    return y


def _divide(w: Writer) -> Number:
    """By a number that is not 0, nor -1 where that can overflow."""
    x = w.any_integer()
    if width_of(x.type) < 3:
        return _bits(w)
    signed = w.flip()
    choices = (
        ("divsi", "remsi", "floordivsi", "ceildivsi") if signed else ("divui", "remui", "ceildivui")
    )
    name = w.pick(choices)
    divisor = _divisor(w, x, signed)
    if x.type == "index" and w.flip():
        name = name.removesuffix("i")
        return w.made(f"index.{name} {x.name}, {divisor.name}", "index")
    return w.made(f"arith.{name} {x.name}, {divisor.name} : {x.type}", x.type)


def _divisor(w: Writer, x: Number, signed: bool) -> Number:
    """A constant (not 0, and -1 only where the least is not divided), or a number above 0."""
    if w.flip():
        constant = w.any_constant(x.type)
        if constant.least not in (0, -1) or (
            constant.least == -1 and (not signed or x.least > Range.full(x.type).low)
        ):
            return constant
    one = w.constant(x.type, 1)
    half = below(w, w.of(x.type), width_of(x.type) - 1)
    return w.made(f"arith.ori {half.name}, {one.name} : {x.type}", x.type)


def _compare(w: Writer) -> Number:
    x = w.any_integer()
    y = w.of(x.type)
    predicate = w.pick(("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"))
    if x.type == "index" and w.flip():
        return w.made(f"index.cmp {predicate}({x.name}, {y.name})", "i1")
    return w.made(f"arith.cmpi {predicate}, {x.name}, {y.name} : {x.type}", "i1")


def _compare_difference(w: Writer) -> Number:
    """A difference (or sum) with wrap against 0 or another constant."""
    x = w.any_integer()
    y, name = w.of(x.type), w.pick(("subi", "addi", "xori"))
    difference = w.made(
        f"index.{_OF_INDEX[name]} {x.name}, {y.name}"
        if x.type == "index"
        else f"arith.{name} {x.name}, {y.name} : {x.type}",
        x.type,
    )
    zero = w.constant(x.type, 0) if w.flip() else w.any_constant(x.type)
    predicate = w.pick(("eq", "slt", "sle", "sgt", "ult", "ule", "ugt", "uge"))
    if x.type == "index":
        return w.made(f"index.cmp {predicate}({difference.name}, {zero.name})", "i1")
    return w.made(f"arith.cmpi {predicate}, {difference.name}, {zero.name} : {x.type}", "i1")


def _select(w: Writer) -> Number:
    condition = w.of("i1")
    x = w.pick(w.numbers[-8:])
    y = w.of(x.type)
    pair = [x.name, y.name] if w.flip() else [y.name, x.name]
    return w.made(f"arith.select {condition.name}, {', '.join(pair)} : {x.type}", x.type)


def _extended(w: Writer) -> Number:
    """Two results, of which either may go unused."""
    x = w.any_integer()
    if x.type == "index":
        return _bits(w)
    y, name = w.of(x.type), w.pick(("addui_extended", "mului_extended", "mulsi_extended"))
    low, high = w.fresh(), w.fresh()
    second = "i1" if name == "addui_extended" else x.type
    types = f"{x.type}, i1" if name == "addui_extended" else x.type
    w.put(f"{low}, {high} = arith.{name} {x.name}, {y.name} : {types}")
    w.numbers += [Number(low, x.type), Number(high, second)]
    return w.numbers[-1]


# -- casts -----------------------------------------------------------------------------------------


def cast(w: Writer, x: Number, type_: str) -> Number:
    """To any other integer type, by sign or without."""
    if x.type == type_:
        return x
    signed = w.flip()
    if "index" in (x.type, type_):
        if w.flip() and {x.type, type_} <= {"index", "i8", "i16", "i32", "i64"}:
            name = "index.casts" if signed else "index.castu"
        else:
            name = "arith.index_cast" if signed else "arith.index_castui"
    elif width_of(type_) < width_of(x.type):
        return _truncated(w, x, type_)
    else:
        name = "arith.extsi" if signed else "arith.extui"
    widens = width_of(type_) >= width_of(x.type)
    keeps = (widens and (signed or x.least >= 0)) or (
        not widens and Range(x.least, x.most).within(type_)
    )
    range_ = Range(x.least, x.most) if keeps else None
    if not keeps and widens and width_of(type_) > width_of(x.type):
        range_ = Range(0, (1 << width_of(x.type)) - 1)
    return w.made(f"{name} {x.name} : {x.type} to {type_}", type_, range_)


def _truncated(w: Writer, x: Number, type_: str) -> Number:
    fits = Range(x.least, x.most).within(type_)
    flags = ["nsw"] if fits and w.flip() else []
    if x.least >= 0 and x.most < 1 << width_of(type_) and w.flip():
        flags.append("nuw")
    written = f" overflow<{', '.join(flags)}>" if flags else ""
    range_ = Range(x.least, x.most) if fits else None
    return w.made(f"arith.trunci {x.name}{written} : {x.type} to {type_}", type_, range_)


def _casts(w: Writer) -> Number:
    """One, or there and back, or three in a row."""
    x = w.any_integer()
    first = x.type
    for k in range(w.whole(1, 3)):
        x = cast(w, x, first if k and w.flip() else w.pick(INTEGERS))
    return x


def _there_and_back(w: Writer) -> Number:
    """As an index, cut to fewer bits, and an index again: as a hash does."""
    x = w.pick([n for n in w.numbers if is_integer(n.type)][-8:])
    index = cast(w, x, "index")
    if w.flip():
        by = w.any_constant("index")
        index = w.made(f"arith.{w.pick(('muli', 'addi'))} {index.name}, {by.name} : index", "index")
    narrow = cast(w, index, w.pick(("i8", "i16", "i32", "i7", "i33", "i1", "i128")))
    back = cast(w, narrow, "index")
    return cast(w, back, "i64") if w.flip() else back


def _merged(w: Writer) -> Number:
    """A number moved twice by constants with nsw, against itself."""
    x = y = w.any_integer()
    whole = Range.full(x.type)
    if width_of(x.type) < 4:
        return _bits(w)
    for _ in range(2):
        low, high = max(whole.low, whole.low - y.least), min(whole.high, whole.high - y.most)
        by = w.constant(x.type, w.pick((low, high, w.whole(low, high))))
        y = w.made(
            f"arith.addi {y.name}, {by.name} overflow<nsw> : {x.type}",
            x.type,
            Range(y.least + by.least, y.most + by.least),
        )
    predicate = w.pick(("slt", "sle", "sgt", "sge"))
    return w.made(f"arith.cmpi {predicate}, {y.name}, {x.name} : {x.type}", "i1")


# -- floats ----------------------------------------------------------------------------------------


def _to_float(w: Writer) -> Number:
    x, type_ = w.any_integer(), w.pick(FLOATS)
    if x.type == "index":
        x = cast(w, x, "i64")
    return w.made(f"arith.{w.pick(('sitofp', 'uitofp'))} {x.name} : {x.type} to {type_}", type_)


def _float(w: Writer) -> Number:
    """Arithmetic that is rounded once, of two numbers or a number and a constant."""
    found = [number for number in w.numbers if number.type in FLOATS]
    if not found:
        return _to_float(w)
    x = w.pick(found[-4:])
    if w.flip():
        y = w.pick([number for number in found if number.type == x.type])
    else:
        literal = w.pick(("0.0", "-0.0", "1.0", "-1.0", "2.0", "0.5", "3.0e5", "1.0e-3"))
        y = w.made(f"arith.constant {literal} : {x.type}", x.type)
    name = w.pick(("addf", "subf", "mulf", "divf", "maximumf", "minimumf"))
    pair = [x.name, y.name] if w.flip() else [y.name, x.name]
    return w.made(f"arith.{name} {', '.join(pair)} : {x.type}", x.type)


def _float_cast(w: Writer) -> Number:
    found = [number for number in w.numbers if number.type in FLOATS]
    if not found:
        return _to_float(w)
    x, type_ = w.pick(found[-4:]), w.pick(FLOATS)
    bits = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
    if bits[x.type] == bits[type_]:
        predicate = w.pick(("oeq", "une", "olt", "uge", "ord", "ueq"))
        y = w.pick([number for number in found if number.type == x.type])
        return w.made(f"arith.cmpf {predicate}, {x.name}, {y.name} : {x.type}", "i1")
    name = "extf" if bits[x.type] < bits[type_] else "truncf"
    return w.made(f"arith.{name} {x.name} : {x.type} to {type_}", type_)


_KINDS: tuple[Callable[[Writer], Number], ...] = (
    _linear, _linear, _linear, _chain, _chain, _bits, _shift, _shift, _exact, _exact_twice, _divide,
    _divide,
    _compare, _compare, _compare_difference, _select, _select, _extended, _casts, _casts, _casts,
    _casts, _there_and_back, _there_and_back, _merged, _merged, _compare_difference, _to_float,
    _float, _float_cast,
)  # fmt: skip


def operation(w: Writer) -> Number:
    """One more number (or a few)."""
    return w.pick(_KINDS)(w)


def subscript(w: Writer, extent: int) -> Number:
    """An index from 0 to below `extent`, a power of two: masked, or cut to so few bits."""
    x, bits = w.any_integer(), extent.bit_length() - 1
    if w.flip():
        index = cast(w, x, "index")
        name = w.pick(("arith.index_cast", "arith.index_castui"))
        few = w.made(f"{name} {index.name} : index to i{bits}", f"i{bits}")
        range_ = Range(0, extent - 1)
        return w.made(f"arith.index_castui {few.name} : {few.type} to index", "index", range_)
    if width_of(x.type) < bits + 2:
        x = cast(w, x, w.pick(("i8", "i16", "i64", "index")))
    low = below(w, x, bits)
    return low if low.type == "index" else cast(w, low, "index")


def stored(w: Writer, x: Number) -> list[Number]:
    """The number as some of i64 or f64, as arrays of the caller's have them."""
    if not is_integer(x.type):
        if x.type == "f64":
            return [x]
        return [w.made(f"arith.extf {x.name} : {x.type} to f64", "f64")]
    if width_of(x.type) <= 64:
        return [cast(w, x, "i64")]
    low = w.made(f"arith.trunci {x.name} : {x.type} to i64", "i64")
    amount = w.constant(x.type, width_of(x.type) - 64)
    rest = w.made(f"arith.shrui {x.name}, {amount.name} : {x.type}", x.type)
    return [low, w.made(f"arith.trunci {rest.name} : {x.type} to i64", "i64")]
