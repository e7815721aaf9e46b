"""Operations on values: their operands' types follow, a cast's result is written.

%z = arith.addi %x, %y        %b = arith.cmpi slt, %x, %y        %y = arith.sitofp %x to f32
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import Constant
from avial_lab.compiler.frontends.notation.rules import (
    MANY,
    ONE,
    RULES,
    TWO,
    USAGE,
    Rule,
    check_kinds,
    copied_operands,
    finish,
    names_in,
    no_type,
    rule,
)
from avial_lab.compiler.frontends.notation.source import VALUE, first_name

_BINARY = """
    arith.addi arith.subi arith.muli arith.divsi arith.divui arith.remsi arith.remui arith.ceildivsi
    arith.ceildivui arith.floordivsi arith.andi arith.ori arith.xori arith.shli arith.shrsi
    arith.shrui arith.maxsi arith.maxui arith.minsi arith.minui arith.addf arith.subf arith.mulf
    arith.divf arith.remf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf math.powf
    math.atan2 math.copysign math.ipowi complex.add complex.sub complex.mul complex.div complex.pow
    complex.atan2
"""


@rule(_BINARY, "%z = OP %x, %y")
def _binary(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = TWO.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    x, y = match[1], match[2]
    type_ = e.values.get(x)
    if type(type_) is not str or y not in e.values or type(e.values[y]) is not str:
        type_ = e.common_type([(x, match.start(1)), (y, match.start(2))])
    check_kinds(e, op, names_in(match, 1) + names_in(match, 2), match.end())
    suffix = None if type_ is None else f" : {type_}"
    return finish(e, results, op, start, match.end(), suffix, [type_])


@rule(
    """arith.negf math.absf math.absi math.acos math.acosh math.asin math.asinh math.atan
    math.atanh math.cbrt
    math.ceil math.cos math.cosh math.ctlz math.cttz math.ctpop math.erf math.erfc math.exp
    math.exp2 math.expm1 math.floor math.log math.log10 math.log1p math.log2 math.round
    math.roundeven math.rsqrt math.sin math.sinh math.sqrt math.tan math.tanh math.trunc
    complex.conj complex.cos complex.exp complex.expm1 complex.log complex.log1p complex.neg
    complex.rsqrt complex.sign complex.sin complex.sqrt complex.tan complex.tanh""",
    "%y = OP %x",
)
@rule("math.fma vector.fma", "%d = OP %a, %b, %c")
def _same(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = MANY.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    type_ = e.common_type(names_in(match))
    suffix = None if type_ is None else f" : {type_}"
    return finish(e, results, op, start, match.end(), suffix, [type_])


@rule("complex.abs complex.angle complex.re complex.im", "%r = OP %z")
def _complex_part(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = ONE.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    type_ = e.type_of(match[1], match.start(1))
    part = re.fullmatch(r"complex<\s*(.*?)\s*>", type_ or "")
    suffix = None if type_ is None else f" : {type_}"
    return finish(e, results, op, start, match.end(), suffix, [part[1] if part else None])


@rule("complex.create", "%z = OP %re, %im")
def _complex_create(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = TWO.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    part = e.common_type([(match[1], match.start(1)), (match[2], match.start(2))])
    type_ = None if part is None else f"complex<{part}>"
    return finish(e, results, op, start, match.end(), type_ and f" : {type_}", [type_])


@rule("complex.eq complex.neq", "%same = OP %x, %y")
@rule("math.isfinite math.isinf math.isnan math.isnormal", "%b = OP %x")
def _to_bool(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = MANY.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    type_ = e.common_type(names_in(match))
    found = None if type_ is None else types.with_element(type_, "i1")
    return finish(e, results, op, start, match.end(), type_ and f" : {type_}", [found])


_COMPARE = re.compile(rf"\s*\w+\s*,\s*({VALUE}\s*,\s*{VALUE})(\s*fastmath\s*<[^<>\n]*>)?")


@rule("arith.cmpi", "%b = OP slt, %x, %y  (eq ne slt sle sgt sge ult ule ugt uge)")
@rule(
    "arith.cmpf", "%b = OP olt, %x, %y  (oeq one olt ole ogt oge ord ueq une ult ule ugt uge uno)"
)
def _compare(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _COMPARE.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    type_ = e.common_type(names_in(match))
    check_kinds(e, op, names_in(match), match.end())
    found = None if type_ is None else types.with_element(type_, "i1")
    return finish(e, results, op, start, match.end(), type_ and f" : {type_}", [found])


_SELECT = re.compile(rf"\s*({VALUE})\s*,\s*({VALUE}\s*,\s*{VALUE})")


@rule("arith.select", "%z = OP %condition, %x, %y")
def _select(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _SELECT.match(e.text, offset)
    if match is None:
        return copied_operands(e, results, op, start, offset)
    condition = e.type_of(match[1], match.start(1), "i1")
    type_ = e.common_type(names_in(match, 2))
    suffix = None
    if type_ is not None and condition is not None:
        suffix = f" : {type_}" if condition == "i1" else f" : {condition}, {type_}"
    return finish(e, results, op, start, match.end(), suffix, [type_])


_LITERAL = re.compile(
    r"\s*(?:\{[^{}]*\}\s*)?(?P<literal>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|true\b|false\b)"
)


@rule("arith.constant", "%c = OP 1.0 : f32")
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
        return finish(e, results, op, start, match.end(), "", ["i1"])
    e.out.put(e.text[start : match.start("literal")], start)
    open_constant = Constant(
        e.out, len(e.out.pieces) - 1, literal, e.loc(start, first_name(results)) + "\n"
    )
    e.open_constants.append(open_constant)
    e.define_results(results, [open_constant])
    return match.end()


_CAST = re.compile(rf"\s*({VALUE})(\s*fastmath\s*<[^<>\n]*>|\s+nneg\b)*")


@rule(
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
        f"{e.text[start : match.end()]} : {type_} to {wanted}{e.loc(start, first_name(results))}\n",
        start,
    )
    e.define_results(results, [wanted])
    return end


@rule(
    """index.add index.sub index.mul index.divs index.divu index.ceildivs index.ceildivu
    index.floordivs index.rems
    index.remu index.maxs index.maxu index.mins index.minu index.shl index.shrs index.shru index.and
    index.or index.xor""",
    "%k = OP %i, %j",
)
def _index(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = MANY.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    for name, where in names_in(match):
        e.type_of(name, where, "index")
    return finish(e, results, op, start, match.end(), "", ["index"])


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


@rule("linalg.index", "%i = OP 0")
def _linalg_index(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = re.compile(r"\s*\d+").match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    return finish(e, results, op, start, match.end(), " : index", ["index"])
