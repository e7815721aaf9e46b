"""linalg and vector operations: types of operands follow, those of new vectors are written.

linalg.matmul ins(%a, %b) outs(%c)
linalg.generic {indexing_maps = […], iterator_types = […]} ins(%a) outs(%b) { ^bb0(%x, %y): … }
%v = vector.load %a[%i] : vector<4xf32>             vector.store %v, %b[%i]
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.copied import check_integers
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import Type
from avial_lab.compiler.frontends.notation.memory import LOAD, STORE
from avial_lab.compiler.frontends.notation.rules import RULES, finish, no_type
from avial_lab.compiler.frontends.notation.source import VALUE, first_name

_GROUP = re.compile(r"\b(ins|outs)\s*(?=\()")
_VALUE = re.compile(VALUE)
_NEXT = re.compile(rf"\s*,\s*({VALUE})")

LINALG = """
    abs add batch_matmul batch_matvec batch_mmt4d batch_reduce_matmul batch_vecmat broadcast ceil
    conv_1d conv_1d_ncw_fcw conv_1d_nwc_wcf conv_2d conv_2d_nchw_fchw conv_2d_nhwc_fhwc
    conv_2d_nhwc_hwcf conv_3d copy contract depthwise_conv_1d_nwc_wc depthwise_conv_2d_nchw_chw
    depthwise_conv_2d_nhwc_hwc div div_unsigned dot elementwise erf exp fill floor generic log map
    matmul matvec max min mmt4d mul negf pooling_nchw_max pooling_nchw_sum pooling_nhwc_max
    pooling_nhwc_min pooling_nhwc_sum powf reciprocal reduce round rsqrt select softmax sqrt square
    sub tanh transpose vecmat winograd_filter_transform
"""


def _linalg(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """Fill in the types in `ins(…)` and `outs(…)`, and of the region's arguments."""
    groups: list[tuple[int, int, list[tuple[str, int]], int | None]] = []
    place = offset
    following = e.source.skip(place)
    if e.text.startswith("{", following):
        place = e.bracket_end(following)
    while len(groups) < 2:
        match = _GROUP.search(e.text, place)
        if match is None or not _only_attributes(e, place, match.start()):
            break
        opened = e.source.skip(match.end())
        end = e.bracket_end(opened)
        colon = e.text.find(":", opened, end)
        stop = end if colon < 0 else colon
        values = [(m[0], m.start()) for m in _VALUE.finditer(e.text, opened, stop)]
        groups.append((opened, end, values, None if colon < 0 else colon))
        place = end
    if not groups:
        return e.copied(results, op, start, offset)
    written: dict[int, list[str]] = {}
    for k, (_, end, _, colon) in enumerate(groups):
        if colon is not None:
            written[k] = types.split_commas(e.text[colon + 1 : end - 1])
    element: str | None = None
    found: list[list[str]] = [[] for _ in groups]
    for k in reversed(range(len(groups))):  # outs first: they say what a scalar constant has to be
        for j, (name, where) in enumerate(groups[k][2]):
            known = written.get(k, [])
            type_ = e.type_of(name, where, known[j] if j < len(known) else element)
            type_ = known[j] if j < len(known) else type_
            if type_ is None:
                raise no_type(e, op, start)
            found[k].append(type_)
            element = element or types.element_of(type_)
    begun = start
    for (_, end, values, colon), group_types in zip(groups, found, strict=True):
        if colon is None and values:
            e.out.put(e.text[begun : end - 1], begun)
            e.out.put(f" : {', '.join(group_types)})", end - 1)
            begun = end
    elements: list[Type] = [types.element_of(t) or t for group in found for t in group]
    place = groups[-1][1]
    outputs = elements[-len(found[-1]) :]
    return _after_groups(e, results, op, start, begun, place, elements, outputs)


def _after_groups(
    e: Elaborator,
    results: str | None,
    op: str,
    start: int,
    begun: int,
    place: int,
    elements: list[Type],
    outputs: list[Type],
) -> int:
    """The rest of a linalg statement; `(%x, %y) {` of map and reduce gets its types.

    elements are those of all buffers, which the region's arguments have; outputs those of the last
    group, which it yields.
    """
    if op in ("linalg.map", "linalg.reduce"):
        opened = re.compile(r"[^{}()%]*(\()(?=\s*%)").match(e.text, place)
        if opened is not None:
            for word in re.compile(r"\bdimensions\b").finditer(e.text, place, opened.end()):
                check_integers(e, word)
            e.out.put(e.text[begun : opened.end()], begun)
            mark = len(e.undo)
            owner, e.owner = e.owner, e.place(start)
            pieces, end = e.block_arguments(opened.end(), elements)
            # Types only: here MLIR takes no location behind an argument.
            e.out.put(
                ", ".join(piece.partition(" loc(")[0] for piece in pieces) + ")", opened.end()
            )
            brace = e.expect(end, "{", "after the region's arguments")
            e.out.put(" {\n", brace - 1)
            end = e.region(brace, expected=outputs, opened_at=brace - 1)
            e.out.put("}", end - 1)
            e.leave(mark)
            e.owner = owner
            e.out.put(f"{e.loc(start, first_name(results))}\n", start)
            return end
    return e.copied(
        results,
        op,
        start,
        place,
        copy_from=begun,
        found=[None],
        block_types=elements,
        expected=outputs,
    )


def _only_attributes(e: Elaborator, start: int, end: int) -> bool:
    """Whether nothing but attributes stands between the operation's name and `ins(`."""
    between = e.text[start:end]
    return not re.search(rf"[{{}}]|{VALUE}\s*=|\b[a-z_]+\.[a-z]", between)


def _vector_load(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = LOAD.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    end = match.end()
    if op == "vector.transfer_read":
        pad = _NEXT.match(e.text, end)
        end = pad.end() if pad else end
        mask = _NEXT.match(e.text, end)
        end = mask.end() if mask else end
    else:
        pad = mask = None
    base = e.type_of(match[1], match.start(1))
    for m in _VALUE.finditer(match[2]):
        e.type_of(m[0], match.start(2) + m.start(), "index")
    if pad is not None:
        e.type_of(pad[1], pad.start(1), types.element_of(base) if base else None)
    if mask is not None:
        e.type_of(mask[1], mask.start(1))
    dictionary = e.dictionary(end)
    if dictionary is not None:
        end = dictionary[1]
    colon = e.at(end, ":")
    if colon is None:
        raise e.expected_error("': VECTOR TYPE'", end, "behind it", f"{op} … : vector<4xf32>")
    first, stop = e.read_type(colon)
    comma = e.at(stop, ",")
    if comma is not None:
        second, stop = e.read_type(comma)
        return e.copied(results, op, start, end, found=[second])
    if base is None:
        raise no_type(e, op, start)
    loc = e.loc(start, first_name(results))
    e.out.put(f"{e.text[start:end]} : {base}, {first}{loc}\n", start)
    e.define_results(results, [first])
    return stop


def _vector_store(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = STORE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    value = e.type_of(match[1], match.start(1))
    base = e.type_of(match[2], match.start(2))
    for m in _VALUE.finditer(match[3]):
        e.type_of(m[0], match.start(3) + m.start(), "index")
    end = match.end()
    pair = (base, value)
    if op == "vector.transfer_write":
        pair = (value, base)
        mask = _NEXT.match(e.text, end)
        if mask is not None:
            e.type_of(mask[1], mask.start(1))
            end = mask.end()
    suffix = None if None in pair else f" : {pair[0]}, {pair[1]}"
    return finish(e, results, op, start, end, suffix, [])


_REDUCTION = re.compile(
    rf"\s*<\s*\w+\s*>\s*,\s*({VALUE})(?:\s*,\s*({VALUE}))?(\s*fastmath\s*<[^<>]*>)?"
)


def _reduction(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _REDUCTION.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.type_of(match[1], match.start(1))
    element = types.element_of(type_) if type_ else None
    if match[2]:
        e.type_of(match[2], match.start(2), element)
    suffix = None if element is None else f" : {type_} into {element}"
    return finish(e, results, op, start, match.end(), suffix, [element])


def _extract(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = LOAD.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.type_of(match[1], match.start(1))
    part = _part(type_, match[2])
    suffix = None if part is None else f" : {part} from {type_}"
    return finish(e, results, op, start, match.end(), suffix, [part])


def _insert(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = STORE.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    type_ = e.type_of(match[2], match.start(2))
    part = _part(type_, match[3])
    value = e.type_of(match[1], match.start(1), part)
    suffix = None if value is None or type_ is None else f" : {value} into {type_}"
    return finish(e, results, op, start, match.end(), suffix, [type_])


def _part(type_: str | None, indices: str) -> str | None:
    """The type of `%v[indices]`."""
    shape = types.vector_shape(type_) if type_ else None
    element = types.element_of(type_) if type_ else None
    if shape is None or element is None:
        return None
    left = shape[indices.count(",") + 1 if indices.strip() else 0 :]
    return f"vector<{''.join(f'{n}x' for n in left)}{element}>" if left else element


RULES |= {f"linalg.{name}": _linalg for name in LINALG.split()}
RULES |= {
    "vector.load": _vector_load,
    "vector.transfer_read": _vector_load,
    "affine.vector_load": _vector_load,
    "vector.store": _vector_store,
    "vector.transfer_write": _vector_store,
    "affine.vector_store": _vector_store,
    "vector.reduction": _reduction,
    "vector.extract": _extract,
    "vector.insert": _insert,
}
