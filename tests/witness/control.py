"""scf, func, cf, and what a terminator hands on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from mlir import ir

from tests.witness.machine import INDEX, Frame, Jump, Op, Step, rule
from tests.witness.values import Array, Integer, Undefined, Value, array_of

signed = INDEX.signed


def put(frame: Frame, outs: Sequence[int], values: Sequence[Value]) -> None:
    for out, value in zip(outs, values, strict=True):
        frame[out] = value


@rule("scf.yield", "func.return", "memref.alloca_scope.return", "gpu.return")
def _handed_on(op: Op) -> Step:
    return op.handed_on()


@rule("omp.terminator", "gpu.terminator")
def _nothing(op: Op) -> Step:
    return lambda frame: ()


def counted(kind: Integer, unsigned: bool, low: int, high: int, step: int) -> range:
    """The values of a loop's variable; the count is that of mathematics, it does not wrap."""
    view: Callable[[int], int] = int if unsigned else kind.signed
    if view(step) <= 0:
        raise Undefined(f"a step of {view(step)}")
    return range(view(low), view(high), view(step))


@rule("scf.for")
def _for(op: Op) -> Step:
    low, high, step, *carried = op.ins
    kind, unsigned, body, outs = op.integer(0), op.has("unsignedCmp"), op.region(), op.outs

    def run(frame: Frame) -> None:
        values: Sequence[Value] = [frame[k] for k in carried]
        for i in counted(kind, unsigned, frame[low], frame[high], frame[step]):
            values = body(frame, i & kind.mask, *values)
        put(frame, outs, values)

    return run


@rule("scf.condition")
def _condition(op: Op) -> Step:
    flag, *values = op.ins
    return lambda frame: (frame[flag], [frame[k] for k in values])


@rule("scf.while")
def _while(op: Op) -> Step:
    (before, after), ins, outs = op.regions, op.ins, op.outs

    def run(frame: Frame) -> None:
        values: Sequence[Value] = [frame[k] for k in ins]
        while True:
            goes_on, values = before(frame, *values)
            if not goes_on:
                return put(frame, outs, values)
            values = after(frame, *values)

    return run


@rule("scf.if")
def _if(op: Op) -> Step:
    (yes, no), (flag,), outs = op.regions, op.ins, op.outs

    def run(frame: Frame) -> None:
        chosen = yes if frame[flag] else no
        put(frame, outs, () if chosen.empty else chosen(frame))

    return run


@rule("tosa.yield")
def _tosa_yield(op: Op) -> Step:
    return op.handed_on()


@rule("tosa.cond_if")
def _tosa_if(op: Op) -> Step:
    (yes, no), (flag, *given), outs = op.regions, op.ins, op.outs

    def run(frame: Frame) -> None:
        put(frame, outs, (yes if frame[flag][()] else no)(frame, *(frame[k] for k in given)))

    return run


@rule("tosa.while_loop")
def _tosa_while(op: Op) -> Step:
    (asks, does), ins, outs = op.regions, op.ins, op.outs

    def run(frame: Frame) -> None:
        values: Sequence[Value] = [frame[k] for k in ins]
        while asks(frame, *values)[0][()]:
            values = does(frame, *values)
        put(frame, outs, values)

    return run


@rule("scf.index_switch")
def _switch(op: Op) -> Step:
    (default, *others), (flag,), outs = op.regions, op.ins, op.outs
    cases = dict(zip(op.integers("cases"), others, strict=True))

    def run(frame: Frame) -> None:
        put(frame, outs, cases.get(signed(frame[flag]), default)(frame))

    return run


@rule("scf.execute_region", "memref.alloca_scope")
def _region(op: Op) -> Step:
    body, outs = op.region(), op.outs
    return lambda frame: put(frame, outs, body(frame))


@rule("scf.parallel")
def _parallel(op: Op) -> Step:
    lows, highs, steps, starts = op.segments()
    body, outs = op.region(), op.outs

    def run(frame: Frame) -> None:
        totals: list[Value] = [frame[k] for k in starts]
        ranges = [
            counted(INDEX, False, frame[a], frame[b], frame[s])
            for a, b, s in zip(lows, highs, steps, strict=True)
        ]
        for index in itertools.product(*ranges):
            reductions = body(frame, *(i & INDEX.mask for i in index))
            for k, combine in enumerate(reductions):
                totals[k] = combine(totals[k])
        put(frame, outs, totals)

    return run


@rule("scf.reduce")
def _reduce(op: Op) -> Step:
    """Hands on, for each operand, how a total takes it in."""
    regions, ins = op.regions, op.ins

    def step(frame: Frame) -> list[Callable[[Value], Value]]:
        return [
            lambda total, region=region, value=frame[k]: region(frame, total, value)[0]
            for region, k in zip(regions, ins, strict=True)
        ]

    return step


@rule("scf.reduce.return")
def _reduced(op: Op) -> Step:
    return op.handed_on()


@rule("scf.forall")
def _forall(op: Op) -> Step:
    lows, highs, steps, shared = op.segments()
    low = op.mixed("staticLowerBound", lows)
    high = op.mixed("staticUpperBound", highs)
    step = op.mixed("staticStep", steps)
    body, outs = op.region(), op.outs

    def run(frame: Frame) -> None:
        results: list[Array] = [frame[k].copy() for k in shared]
        ranges = [
            counted(INDEX, False, a, b, s)
            for a, b, s in zip(low(frame), high(frame), step(frame), strict=True)
        ]
        for index in itertools.product(*ranges):
            body(frame, *(i & INDEX.mask for i in index), *results)
        put(frame, outs, results)

    return run


@rule("scf.forall.in_parallel")
def _in_parallel(op: Op) -> Step:
    body = op.region()

    def step(frame: Frame) -> Sequence[Value]:
        if not body.empty:
            body(frame)
        return ()

    return step


# -- calls and branches ----------------------------------------------------------------------------


@rule("func.call")
def _call(op: Op) -> Step:
    machine = op.function.machine
    name = ir.FlatSymbolRefAttr(op.attribute("callee")).value
    return op.several(lambda *values: machine.function(name)(*values))


@rule("func.constant")
def _function(op: Op) -> Step:
    found = op.function.machine.function(ir.FlatSymbolRefAttr(op.attribute("value")).value)
    return op.pure(lambda: found) if op.ins else _kept(op, found)


def _kept(op: Op, value: Value) -> Step:
    (out,) = op.outs

    def step(frame: Frame) -> None:
        frame[out] = value

    return step


@rule("func.call_indirect")
def _call_indirect(op: Op) -> Step:
    return op.several(lambda function, *values: function(*values))


@rule("cf.br")
def _branch(op: Op) -> Step:
    target, ins = op.successor(0), op.ins
    return lambda frame: Jump(target, [frame[k] for k in ins])


@rule("cf.cond_br")
def _branch_on(op: Op) -> Step:
    (flag,), yes, no = op.segments()
    first, second = op.successor(0), op.successor(1)

    def step(frame: Frame) -> Jump:
        target, ins = (first, yes) if frame[flag] else (second, no)
        return Jump(target, [frame[k] for k in ins])

    return step


@rule("cf.switch")
def _branch_by(op: Op) -> Step:
    (flag,), default, others = op.segments()
    values = array_of(op.attribute("case_values")).values() if op.has("case_values") else []
    sizes, starts = op.integers("case_operand_segments"), [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    cases = {
        value: (op.successor(k + 1), others[starts[k] : starts[k + 1]])
        for k, value in enumerate(values)
    }
    otherwise = (op.successor(0), default)

    def step(frame: Frame) -> Jump:
        target, ins = cases.get(frame[flag], otherwise)
        return Jump(target, [frame[k] for k in ins])

    return step


@rule("cf.assert")
def _assert(op: Op) -> Step:
    (flag,) = op.ins

    def step(frame: Frame) -> None:
        if not frame[flag]:
            raise Undefined(f"an assertion failed: {op.text('msg')}")

    return step
