"""What the notation knows of MLIR's operations: where the types go, and what they are.

One rule an operation: it reads the operands, and either adds the types that were left out or, where
they are written, copies the statement. Rules are grouped by the form of the statement:

    same      %z = arith.addi %x, %y            : T                    result T
    compare   %z = arith.cmpi slt, %x, %y       : T                    result i1
    load      %x = memref.load %a[%i]           : memref               result its element
    store     memref.store %x, %a[%i]           : memref
    cast      %y = arith.sitofp %x to f32       : T to f32
    fixed     %i = gpu.thread_id x                                     result index
    loops, linalg, vector: below
"""

from __future__ import annotations

import re
from collections.abc import Callable

from avial_lab.errors import AvialError, VerifyError
from avial_lab.notation import types
from avial_lab.notation.elaborate import Constant, Elaborator, Type, _first_name
from avial_lab.notation.source import SKIP, VALUE
from avial_lab.notation.types import DYNAMIC, Extent

Rule = Callable[[Elaborator, str | None, str, int, int], int]

RULES: dict[str, Rule] = {}
USAGE: dict[str, str] = {}
"""How an operation is written in short, for the hint of an error in it."""


def _rule(names: str, usage: str = "") -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        for name in names.split():
            RULES[name] = rule
            if usage:
                USAGE[name] = usage.replace("OP", name)
        return rule

    return enter


def _finish(
    e: Elaborator,
    results: str | None,
    op: str,
    start: int,
    end: int,
    suffix: str | None,
    found: list[Type],
) -> int:
    """Write a statement whose operands end at `end`: with `suffix` behind it, or copied where types
    are written.
    """
    text = e.text
    following = SKIP.match(text, end).end()  # type: ignore[union-attr]
    char = text[following : following + 1]
    if char == "{":
        end = e.bracket_end(following)
        following = SKIP.match(text, end).end()  # type: ignore[union-attr]
        char = text[following : following + 1]
    if char == ":" or (char == "l" and text.startswith("loc(", following)):
        return e.copied(results, op, start, end, found=found)
    if char and char in ",[(=<+-*/|;?":
        usage = USAGE.get(op)
        raise e.error(
            f"'{char}' where {op} has ended", following, f"write it as: {usage}" if usage else None
        )
    if suffix is None:
        raise no_type(e, op, start)
    name = _first_name(results)
    e.out.put(f"{text[start:end]}{suffix}{e.loc(start, name)}\n", start)
    if results is not None:
        e.define_results(results, found)
    return end


def no_type(e: Elaborator, op: str, start: int) -> AvialError:
    return e.error(
        f"the types of {op} do not follow from its operands here", start, "write them", VerifyError
    )


_ONE = re.compile(rf"\s*({VALUE})")
_TWO = re.compile(
    rf"\s*({VALUE})\s*,\s*({VALUE})(\s*(?:overflow|fastmath)\s*<[^<>\n]*>|\s+exact\b)*"
)
_MANY = re.compile(rf"\s*({VALUE}(?:\s*,\s*{VALUE})*)(\s*(?:overflow|fastmath)\s*<[^<>\n]*>)*")
_NAME = re.compile(VALUE)


def _names(match: re.Match[str], group: int = 1) -> list[tuple[str, int]]:
    """The values in a group of a match, with their offsets."""
    return [(m[0], match.start(group) + m.start()) for m in _NAME.finditer(match[group])]


# -- Arithmetic

_BINARY = """
    arith.addi arith.subi arith.muli arith.divsi arith.divui arith.remsi arith.remui arith.ceildivsi
    arith.ceildivui arith.floordivsi arith.andi arith.ori arith.xori arith.shli arith.shrsi
    arith.shrui arith.maxsi arith.maxui arith.minsi arith.minui arith.addf arith.subf arith.mulf
    arith.divf arith.remf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf math.powf
    math.atan2 math.copysign math.ipowi complex.add complex.sub complex.mul complex.div complex.pow
    complex.atan2
"""


@_rule(_BINARY, "%z = OP %x, %y")
def _binary(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _TWO.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    x, y = match[1], match[2]
    type_ = e.values.get(x)
    if type(type_) is not str or y not in e.values or type(e.values[y]) is not str:
        type_ = e.common_type([(x, match.start(1)), (y, match.start(2))])
    suffix = None if type_ is None else f" : {type_}"
    return _finish(e, results, op, start, match.end(), suffix, [type_])


@_rule(
    """arith.negf math.absf math.absi math.acos math.acosh math.asin math.asinh math.atan
    math.atanh math.cbrt
    math.ceil math.cos math.cosh math.ctlz math.cttz math.ctpop math.erf math.erfc math.exp
    math.exp2 math.expm1 math.floor math.log math.log10 math.log1p math.log2 math.round
    math.roundeven math.rsqrt math.sin math.sinh math.sqrt math.tan math.tanh math.trunc
    complex.conj complex.cos complex.exp complex.expm1 complex.log complex.log1p complex.neg
    complex.rsqrt complex.sign complex.sin complex.sqrt complex.tan complex.tanh""",
    "%y = OP %x",
)
@_rule("math.fma vector.fma", "%d = OP %a, %b, %c")
def _same(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _MANY.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.common_type(_names(match))
    suffix = None if type_ is None else f" : {type_}"
    return _finish(e, results, op, start, match.end(), suffix, [type_])


@_rule("complex.abs complex.angle complex.re complex.im", "%r = OP %z")
def _complex_part(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _ONE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.type_of(match[1], match.start(1))
    part = re.fullmatch(r"complex<\s*(.*?)\s*>", type_ or "")
    suffix = None if type_ is None else f" : {type_}"
    return _finish(e, results, op, start, match.end(), suffix, [part[1] if part else None])


@_rule("complex.create", "%z = OP %re, %im")
def _complex_create(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _TWO.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    part = e.common_type([(match[1], match.start(1)), (match[2], match.start(2))])
    type_ = None if part is None else f"complex<{part}>"
    return _finish(e, results, op, start, match.end(), type_ and f" : {type_}", [type_])


@_rule("complex.eq complex.neq", "%same = OP %x, %y")
@_rule("math.isfinite math.isinf math.isnan math.isnormal", "%b = OP %x")
def _to_bool(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _MANY.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.common_type(_names(match))
    found = None if type_ is None else types.with_element(type_, "i1")
    return _finish(e, results, op, start, match.end(), type_ and f" : {type_}", [found])


_COMPARE = re.compile(rf"\s*\w+\s*,\s*({VALUE}\s*,\s*{VALUE})(\s*fastmath\s*<[^<>\n]*>)?")


@_rule("arith.cmpi", "%b = OP slt, %x, %y  (eq ne slt sle sgt sge ult ule ugt uge)")
@_rule(
    "arith.cmpf", "%b = OP olt, %x, %y  (oeq one olt ole ogt oge ord ueq une ult ule ugt uge uno)"
)
def _compare(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _COMPARE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.common_type(_names(match))
    found = None if type_ is None else types.with_element(type_, "i1")
    return _finish(e, results, op, start, match.end(), type_ and f" : {type_}", [found])


_SELECT = re.compile(rf"\s*({VALUE})\s*,\s*({VALUE}\s*,\s*{VALUE})")


@_rule("arith.select", "%z = OP %condition, %x, %y")
def _select(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _SELECT.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    condition = e.type_of(match[1], match.start(1), "i1")
    type_ = e.common_type(_names(match, 2))
    suffix = None
    if type_ is not None and condition is not None:
        suffix = f" : {type_}" if condition == "i1" else f" : {condition}, {type_}"
    return _finish(e, results, op, start, match.end(), suffix, [type_])


_LITERAL = re.compile(
    r"\s*(?:\{[^{}]*\}\s*)?(?P<literal>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|true\b|false\b)"
)


@_rule("arith.constant", "%c = OP 1.0 : f32")
def _constant(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _LITERAL.match(e.text, offset)
    if match is None or results is None:
        return e.copied(results, op, start, offset)
    following = e.source.skip(match.end())
    if e.text.startswith(":", following):
        type_, _ = e.read_type(following + 1)
        return e.copied(results, op, start, match.end(), found=[type_])
    literal = match["literal"]
    if e.text[following : following + 1] in ("{", "<", "(", "[", ","):
        return e.copied(results, op, start, offset)
    if literal in ("true", "false"):
        return _finish(e, results, op, start, match.end(), "", ["i1"])
    e.out.put(e.text[start : match.start("literal")], start)
    open_constant = Constant(
        e.out, len(e.out.pieces) - 1, literal, e.loc(start, _first_name(results)) + "\n"
    )
    e.open_constants.append(open_constant)
    e.define_results(results, [open_constant])
    return match.end()


_CAST = re.compile(rf"\s*({VALUE})(\s*fastmath\s*<[^<>\n]*>|\s+nneg\b)*")


@_rule(
    """arith.extf arith.extsi arith.extui arith.fptosi arith.fptoui arith.index_cast
    arith.index_castui
    arith.sitofp arith.trunci arith.truncf arith.uitofp arith.bitcast index.casts index.castu
    memref.cast memref.memory_space_cast vector.broadcast vector.bitcast vector.shape_cast
    math.fpowi complex.bitcast""",
    "%y = OP %x to TYPE",
)
def _cast(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _CAST.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    to = e.at(match.end(), "to ")
    if to is None:
        return e.copied(results, op, start, offset)
    wanted, end = e.read_type(to)
    type_ = e.type_of(match[1], match.start(1))
    if type_ is None:
        raise no_type(e, op, start)
    e.out.put(
        f"{e.text[start : match.end()]} : {type_} to {wanted}"
        f"{e.loc(start, _first_name(results))}\n",
        start,
    )
    e.define_results(results, [wanted])
    return end


@_rule(
    """index.add index.sub index.mul index.divs index.divu index.ceildivs index.ceildivu
    index.floordivs index.rems
    index.remu index.maxs index.maxu index.mins index.minu index.shl index.shrs index.shru index.and
    index.or index.xor""",
    "%k = OP %i, %j",
)
def _index(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _MANY.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    for name, where in _names(match):
        e.type_of(name, where, "index")
    return _finish(e, results, op, start, match.end(), "", ["index"])


_ANYTHING = re.compile(r"[^\n{}%]*")


def _fixed(type_: str) -> Rule:
    """An operation that needs no types, with a result of that type."""

    def rule(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
        return e.copied(results, op, start, offset, found=[type_])

    return rule


for _name in [
    "index.constant",
    "index.sizeof",
    "gpu.thread_id",
    "gpu.block_id",
    "gpu.block_dim",
    "gpu.grid_dim",
    "gpu.global_id",
    "gpu.lane_id",
    "gpu.subgroup_id",
    "gpu.num_subgroups",
    "gpu.subgroup_size",
    "gpu.cluster_id",
    "gpu.cluster_dim",
    "affine.apply",
    "affine.min",
    "affine.max",
    "vector.vscale",
]:
    RULES[_name] = _fixed("index")
USAGE |= {"gpu.thread_id": "%i = gpu.thread_id x", "affine.apply": "%k = affine.apply MAP(%i)[%n]"}
RULES["index.cmp"] = RULES["index.bool.constant"] = _fixed("i1")


@_rule("linalg.index", "%i = OP 0")
def _linalg_index(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = re.compile(r"\s*\d+").match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    return _finish(e, results, op, start, match.end(), " : index", ["index"])


# -- Memory

_LOAD = re.compile(rf"\s*({VALUE})\s*\[([^\[\]\n]*)\]")
_STORE = re.compile(rf"\s*({VALUE})\s*,\s*({VALUE})\s*\[([^\[\]\n]*)\]")


def _memref_of(e: Elaborator, name: str, offset: int, op: str) -> tuple[str, str] | None:
    """The memref type of `name` and its element; None where it cannot be told."""
    type_ = e.type_of(name, offset)
    if type_ is None:
        return None
    element = types.element_of(type_)
    if element is None or not type_.startswith("memref"):
        if type_.startswith(("!", "#")):
            return None
        raise e.error(
            f"{name} is no memref but {type_}; {op} cannot index it", offset, kind=VerifyError
        )
    return type_, element


def _indices(
    e: Elaborator, op: str, type_: str, inside: str, offset: int, rank_exact: bool
) -> None:
    """Check how many indices there are, and that each exists."""
    known = types.memref(type_)
    if "(" not in inside and known is not None and known.shape is not None and rank_exact:
        count = inside.count(",") + 1 if inside.strip() else 0
        if count != len(known.shape):
            raise e.error(
                f"{op} has {count} {'index' if count == 1 else 'indices'} "
                f"for a buffer of {len(known.shape)} "
                f"dimension{'' if len(known.shape) == 1 else 's'} ({type_})",
                offset,
                kind=VerifyError,
            )
    if not inside:
        return
    values = e.values
    if inside in values and values[inside] == "index":
        return
    found = False
    for m in _NAME.finditer(inside):
        found = True
        where = offset + m.start()
        type_of_index = e.type_of(m[0], where, "index")
        if type_of_index is not None and type_of_index != "index" and rank_exact:
            raise e.error(
                f"{m[0]} indexes a buffer but is {type_of_index}, not index",
                where,
                f"convert it: %k = arith.index_cast {m[0]} to index",
                VerifyError,
            )
    if not found and rank_exact and inside.strip() and not op.startswith("affine"):
        raise e.error(
            f"{op} takes values as indices, not literals",
            offset,
            f"%k = arith.constant {inside.split(',')[0].strip()}",
            VerifyError,
        )


@_rule("memref.load affine.load", "%x = OP %a[%i]")
def _load(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _LOAD.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    found = _memref_of(e, match[1], match.start(1), op)
    if found is None:
        return _finish(e, results, op, start, match.end(), None, [None])
    _indices(e, op, found[0], match[2], match.start(2), rank_exact=True)
    return _finish(e, results, op, start, match.end(), f" : {found[0]}", [found[1]])


@_rule("memref.store affine.store", "OP %x, %a[%i]")
def _store(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _STORE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset, found=[])
    found = _memref_of(e, match[2], match.start(2), op)
    if found is None:
        return _finish(e, results, op, start, match.end(), None, [])
    value = e.type_of(match[1], match.start(1), found[1])
    _indices(e, op, found[0], match[3], match.start(3), rank_exact=True)
    if value is not None and value != found[1] and "!" not in value + found[1]:
        raise e.error(
            f"{match[1]} is {value} but {match[2]} holds {found[1]}",
            match.start(1),
            "convert the value before it is stored",
            VerifyError,
        )
    return _finish(e, results, op, start, match.end(), f" : {found[0]}", [])


@_rule("memref.dim", "%n = OP %a, %dimension")
def _dim(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _TWO.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset, found=["index"])
    e.type_of(match[2], match.start(2), "index")
    type_ = e.type_of(match[1], match.start(1))
    return _finish(e, results, op, start, match.end(), type_ and f" : {type_}", ["index"])


@_rule("memref.rank", "%n = OP %a")
@_rule("memref.extract_aligned_pointer_as_index")
def _rank(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _ONE.match(e.text, offset)
    if match is None or op != "memref.rank":
        return e.copied(results, op, start, offset, found=["index"])
    type_ = e.type_of(match[1], match.start(1))
    return _finish(e, results, op, start, match.end(), type_ and f" : {type_}", ["index"])


@_rule("memref.dealloc", "OP %a")
def _dealloc(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _ONE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.type_of(match[1], match.start(1))
    return _finish(e, results, op, start, match.end(), type_ and f" : {type_}", [])


@_rule("memref.copy", "OP %from, %to")
def _copy(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _TWO.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    a = e.type_of(match[1], match.start(1))
    b = e.type_of(match[2], match.start(2))
    suffix = None if a is None or b is None else f" : {a} to {b}"
    return _finish(e, results, op, start, match.end(), suffix, [])


@_rule("memref.alloc memref.alloca", "%t = OP() : memref<20xf32>")
def _alloc(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = re.compile(r"\s*\([^()]*\)\s*(?:\[[^\[\]]*\]\s*)?(?:\{[^{}]*\}\s*)?:").match(
        e.text, offset
    )
    if match is None:
        return e.copied(results, op, start, offset)
    for m in _NAME.finditer(match[0]):
        e.type_of(m[0], match.start() + m.start(), "index")
    type_, _ = e.read_type(match.end())
    return e.copied(results, op, start, match.end(), found=[type_])


_TRIPLE = re.compile(rf"\s*({VALUE})\s*\[([^\[\]]*)\]\s*\[([^\[\]]*)\]\s*\[([^\[\]]*)\]")


@_rule("memref.subview", "%v = OP %a[%offset][4][1]")
def _subview(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _TRIPLE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    for group in (2, 3, 4):
        for name, where in _names(match, group):
            e.type_of(name, where, "index")
    if e.at(match.end(), ":") is not None:
        return e.copied(results, op, start, offset, found=_written_target(e, match.end()))
    type_ = e.type_of(match[1], match.start(1))
    source = types.memref(type_) if type_ else None
    if source is None:
        raise no_type(e, op, start)
    lists = [_extents(e, match, group) for group in (2, 3, 4)]
    rank = len(source.shape) if source.shape is not None else None
    if any(len(numbers) != rank for numbers in lists):
        raise e.error(
            f"{op} has {', '.join(str(len(numbers)) for numbers in lists)} offsets, sizes, strides "
            f"for a buffer of {rank} dimensions ({type_})",
            match.start(2),
            kind=VerifyError,
        )
    found = types.subview_type(source, *lists)
    if found is None:
        raise no_type(e, op, start)
    return _finish(e, results, op, start, match.end(), f" : {type_} to {found}", [found])


def _extents(e: Elaborator, match: re.Match[str], group: int) -> list[Extent]:
    parts = [part.strip() for part in match[group].split(",") if part.strip()]
    for part in parts:
        if not part.startswith("%") and not re.fullmatch(r"-?\d{1,18}", part):
            raise e.error(f"'{part[:20]}' is neither a value nor an integer", match.start(group))
    return [DYNAMIC if part.startswith("%") else int(part) for part in parts]


def _written_target(e: Elaborator, offset: int) -> list[Type]:
    """The type behind `: T to`."""
    colon = e.at(offset, ":")
    if colon is None:
        return [None]
    _, end = e.read_type(colon)
    to = e.at(end, "to") or e.at(end, "into")
    if to is None:
        return [None]
    if e.text[to - 2 : to + 2] == "into":
        to += 2
    return [e.read_type(to)[0]]


_ATOMIC = re.compile(rf"\s*\w+\s+({VALUE})\s*,\s*({VALUE})\s*\[([^\[\]]*)\]")


@_rule("memref.atomic_rmw", "%old = OP addf %x, %a[%i]")
def _atomic(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _ATOMIC.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    found = _memref_of(e, match[2], match.start(2), op)
    if found is None:
        return _finish(e, results, op, start, match.end(), None, [None])
    e.type_of(match[1], match.start(1), found[1])
    _indices(e, op, found[0], match[3], match.start(3), rank_exact=True)
    suffix = f" : ({found[1]}, {found[0]}) -> {found[1]}"
    return _finish(e, results, op, start, match.end(), suffix, [found[1]])


@_rule("memref.generic_atomic_rmw", "%old = OP %a[%i] { ^bb0(%x): … memref.atomic_yield %y }")
def _generic_atomic(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _LOAD.match(e.text, offset)
    found = match and _memref_of(e, match[1], match.start(1), op)
    if not match or not found:
        return e.copied(results, op, start, offset)
    _indices(e, op, found[0], match[2], match.start(2), rank_exact=True)
    if e.at(match.end(), "{") is None:
        return e.copied(results, op, start, offset, found=[found[1]], block_types=[found[1]])
    e.out.put(f"{e.text[start : match.end()]} : {found[0]}", start)
    begin = e.source.skip(match.end())
    return e.copied(
        results, op, start, begin, copy_from=begin, found=[found[1]], block_types=[found[1]]
    )


def types_where_expected(
    e: Elaborator, values: list[tuple[str, int]], expected: list[Type]
) -> list[str | None]:
    """The types of values that leave a region; what the region is to give decides for constants."""
    found: list[str | None] = []
    for k, (name, where) in enumerate(values):
        wanted = expected[k] if k < len(expected) else None
        found.append(e.type_of(name, where, wanted if isinstance(wanted, str) else None))
    return found


def _operand_types(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """`op %x, %y : T, U`, nothing or each operand's type; no results."""
    match = _MANY.match(e.text, offset)
    if match is None:
        following = e.source.skip(offset)
        if e.text.startswith(":", following):
            return e.copied(results, op, start, offset)
        e.out.put(f"{e.text[start:offset]}{e.loc(start)}\n", start)
        return offset
    found = types_where_expected(e, _names(match), e.expected)
    e.yielded = list(found)
    suffix = None if None in found else f" : {', '.join(map(str, found))}"
    return _finish(e, results, op, start, match.end(), suffix, [])


for _name in [
    "scf.yield",
    "affine.yield",
    "linalg.yield",
    "scf.reduce.return",
    "memref.atomic_yield",
    "return",
    "func.return",
    "gpu.yield",
    "memref.alloca_scope.return",
]:
    RULES[_name] = _operand_types
USAGE |= {"scf.yield": "scf.yield %x", "linalg.yield": "linalg.yield %x"}

_CONDITION = re.compile(rf"\s*\(\s*({VALUE})\s*\)\s*({VALUE}(?:\s*,\s*{VALUE})*)?")


@_rule("scf.condition", "OP(%go_on) %x, %y")
def _condition(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _CONDITION.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    e.type_of(match[1], match.start(1), "i1")
    found = [e.type_of(*pair) for pair in _names(match, 2)] if match[2] else []
    e.yielded = found
    suffix = None if None in found else (f" : {', '.join(map(str, found))}" if found else "")
    return _finish(e, results, op, start, match.end(), suffix, [])
