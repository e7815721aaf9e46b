"""Control flow around operations: results doubled, swapped, unused, constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.witness.drawn.numbers import below, operation
from tests.witness.drawn.writer import INTEGERS, Number, Range, Writer, is_integer

DEEPEST = 2


def statements(w: Writer, most: int) -> None:
    """Some operations, and now and then one with regions."""
    for _ in range(w.whole(1, most)):
        if w.depth < DEEPEST + 1 and not w.whole(0, 4):
            w.pick((_if, _while, _for, _switch))(w)
        else:
            operation(w)


def _types(w: Writer) -> list[str]:
    """Of one to three results, often the same."""
    first = w.pick([number.type for number in w.numbers if is_integer(number.type)])
    return [first if w.flip() else w.pick(INTEGERS) for _ in range(w.whole(1, 3))]


def _handed(w: Writer, types: Sequence[str]) -> str:
    """Numbers of these types, and the types; one is often handed on twice."""
    found: dict[str, Number] = {}
    names = []
    for type_ in types:
        if type_ not in found or w.flip():
            found[type_] = w.of(type_)
        names.append(found[type_].name)
    return f"{', '.join(names)} : {', '.join(types)}"


def _results(w: Writer, types: Sequence[str], line: Callable[[str], str]) -> list[Number]:
    """`line(%r:n)`; the results, not in scope yet."""
    name = w.fresh()
    w.put(line(f"{name}:{len(types)}" if len(types) > 1 else name))
    names = [f"{name}#{k}" for k in range(len(types))] if len(types) > 1 else [name]
    return [Number(n, t) for n, t in zip(names, types, strict=True)]


def _branch(w: Writer, types: Sequence[str]) -> None:
    with w.region():
        statements(w, 3)
        w.put(f"scf.yield {_handed(w, types)}")


def _if(w: Writer) -> None:
    types, condition = _types(w), w.of("i1")
    results = _results(
        w, types, lambda name: f"{name} = scf.if {condition.name} -> ({', '.join(types)}) {{"
    )
    _branch(w, types)
    w.put("} else {")
    _branch(w, types)
    w.put("}")
    w.numbers += results


def _switch(w: Writer) -> None:
    types, flag = _types(w), w.of("index")
    if w.flip():
        flag = below(w, flag, 3)
    wide = w.pick((0, 0, 2**32, -(2**40)))
    cases = sorted({w.whole(-2, 3) + wide for _ in range(w.whole(1, 3))})
    results = _results(
        w, types, lambda name: f"{name} = scf.index_switch {flag.name} -> {', '.join(types)}"
    )
    for case in cases:
        w.put(f"case {case} {{")
        _branch(w, types)
        w.put("}")
    w.put("default {")
    _branch(w, types)
    w.put("}")
    w.numbers += results


def _for(w: Writer) -> None:
    """Few rounds, signed or unsigned, of any width; the unsigned ones also over the sign."""
    kind = w.pick(("index", "i8", "i8", "i16", "i32", "i64", "i7", "i33"))
    unsigned = kind != "index" and w.flip()
    whole = Range.full(kind)
    step, rounds = w.whole(1, 3), w.whole(0, 4)
    if unsigned and w.flip():
        start = whole.high - w.whole(0, 3)
    else:
        start = w.pick((whole.low, -2, 0, 1, whole.high - step * (rounds + 1)))
    start = min(start, 2**62) if kind == "index" else start
    stop = start + step * rounds
    if not unsigned and stop > whole.high:
        stop = whole.high
    if unsigned and start < 0 <= stop:
        stop = start  # past the greatest there is nothing
    if stop > whole.high:
        stop -= 2 * (whole.high + 1)
    types = _types(w)
    low, high = w.constant(kind, start), w.constant(kind, stop)
    by, given = w.constant(kind, step), [w.of(type_) for type_ in types]
    variable, carried = w.fresh(), [Number(w.fresh(), type_) for type_ in types]
    pairs = ", ".join(f"{c.name} = {g.name}" for c, g in zip(carried, given, strict=True))
    results = _results(
        w,
        types,
        lambda name: (
            f"{name} = scf.for {'unsigned ' if unsigned else ''}{variable} = {low.name} "
            f"to {high.name} step {by.name} iter_args({pairs}) -> ({', '.join(types)})"
            f"{'' if kind == 'index' else f' : {kind}'} {{"
        ),
    )
    with w.region(Number(variable, kind), *carried):
        statements(w, 3)
        w.put(f"scf.yield {_handed(w, types)}")
    w.put("}")
    w.numbers += results


def _while(w: Writer) -> None:
    """At most four rounds, by a counter of its own that goes through both regions."""
    types, handed = _types(w), _types(w)
    given = [w.of(type_) for type_ in types]
    zero = w.constant("i32", 0)
    carried = [Number(w.fresh(), type_) for type_ in types]
    counter, after = Number(w.fresh(), "i32"), Number(w.fresh(), "i32")
    pairs = ", ".join(
        f"{c.name} = {g.name}" for c, g in zip([counter, *carried], [zero, *given], strict=True)
    )
    outs = ["i32", *handed]
    results = _results(
        w,
        outs,
        lambda name: (
            f"{name} = scf.while ({pairs}) : ({', '.join(['i32', *types])}) "
            f"-> ({', '.join(outs)}) {{"
        ),
    )
    with w.region(*carried):
        statements(w, 2)
        most = w.constant("i32", w.whole(0, 4))
        goes_on = w.made(f"arith.cmpi slt, {counter.name}, {most.name} : i32", "i1")
        if w.flip():
            wanted = w.of("i1")
            goes_on = w.made(f"arith.andi {goes_on.name}, {wanted.name} : i1", "i1")
        if w.flip():
            _if(w)
        names, _, listed = _handed(w, handed).partition(" : ")
        w.put(f"scf.condition({goes_on.name}) {counter.name}, {names} : i32, {listed}")
    w.put("} do {")
    received = [Number(w.fresh(), type_) for type_ in handed]
    head = ", ".join(f"{r.name}: {r.type}" for r in [after, *received])
    w.put(f"^bb0({head}):")
    with w.region(*received):
        statements(w, 2)
        one = w.constant("i32", 1)
        following = w.made(f"arith.addi {after.name}, {one.name} : i32", "i32")
        names, _, listed = _handed(w, types).partition(" : ")
        w.put(f"scf.yield {following.name}, {names} : i32, {listed}")
    w.put("}")
    w.numbers += results
